"""Every table of the store: the on-disk schema, in the order in which it is documented.

A declaration says everything that is said of a table (ADR 31): the parts of its key, the form of its values, how long
rows are kept, how those of a visitor are erased, whether they stay when the organization is removed, and which rules of
`invariants` read them through. Adding a table is a declaration in its folder and the transaction that uses it; its
`since` makes a new version of the store.

`organization` in a key is the organization's number (4 bytes), so that everything of one customer lies together and
nothing of another can be reached by a range. Request ids are UUIDv7: the id is the time index.
"""

from __future__ import annotations

from svc.features.registry import FEATURES
from svc.kernel.store.schema.table import declared

TABLES = declared(*(module for feature in FEATURES for module in feature.modules("tables")))
