"""The schema of the store that this program writes; `svc.kernel.store.schema.table` looks it up."""

from __future__ import annotations

from svc.features.exports.sql_events import ADD_ROWS, encoded_rows
from svc.features.tables import TABLES
from svc.features.upgrade.migrations import FORMER_TABLES, MIGRATIONS
from svc.identify.tables import EVENTS
from svc.kernel.store.schema.table import Schema, SqlRows

SCHEMA = Schema(TABLES, MIGRATIONS, FORMER_TABLES, SqlRows(EVENTS.name, ADD_ROWS, encoded_rows))
