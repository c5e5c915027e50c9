"""`svc.sql_events`: the events of a store as plain columns for SQL; made, filled and dropped while nodes serve.

Whether the table is there, a group asks once it holds its fences. Where it is, the transaction that writes an event
writes its row as well. A row leaves by triggers of `svc.events`, whatever program changes or deletes the event: what is
erased is erased here in the same transaction.

Once the table is there and every fence was had, each group writes its rows. Earlier events are then added by pages. A
page locks its events and skips those that are locked: neither waits for the other, and nothing erased comes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from uuid import UUID

import msgspec

from svc.features.exports.lines import KINDS, plain_row
from svc.identify.tables import EVENTS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.values.timestamps import timestamp

_TYPES = {
    "id": "uuid",
    "time": "timestamptz",
    "text": "text",
    "texts": "text[]",
    "integer": "int4",
    "boolean": "boolean",
}
COLUMNS = {"organization": "int4", **{name: _TYPES[kind] for name, kind in KINDS.items()}}
"""Name -> type, in the order of a new table. One that was made by an earlier version has those of that version."""

ADD_ROWS = b"""
insert into svc.sql_events select * from json_populate_recordset(null::svc.sql_events, $1::json) on conflict do nothing
"""
"""Rows as a JSON array of objects. A column that the table does not have is left out, one that they do
not have is null.
"""
DELETE_OTHER_ROWS = b"""
delete from svc.sql_events s using json_populate_recordset(null::svc.sql_events, $1::json) x
where s.request_id = x.request_id and s is distinct from x
"""
COUNT_OTHER_ROWS = b"""
select count(*) from json_populate_recordset(null::svc.sql_events, $1::json) x
where not exists (select from svc.sql_events s where s.request_id = x.request_id and s is not distinct from x)
"""
"""Rows that are missing, or are not those of the table."""
_WITHOUT_EVENT = """svc.sql_events s where not exists
(select from svc.events e where e.organization = s.organization
 and e.key = int4send(s.organization) || uuid_send(s.request_id))
"""
COUNT_WITHOUT_EVENT = f"select count(*) from {_WITHOUT_EVENT}".encode()
DELETE_WITHOUT_EVENT = f"delete from {_WITHOUT_EVENT}".encode()

MADE_COLUMNS = b"""
select attname::text from pg_catalog.pg_attribute
where attrelid = to_regclass('svc.sql_events') and attnum > 0 and not attisdropped
"""
READERS = b"""
select distinct grantee::text from information_schema.role_table_grants
where table_schema = 'svc' and table_name = 'sql_events' and privilege_type = 'SELECT' and grantee <> current_user
order by 1
"""
ROLE = b"select 1 from pg_catalog.pg_roles where rolname = $1::text"
ENCODING = b"select current_setting('server_encoding')"
COUNTS = b"""
select (select count(*) from svc.events), (select count(*) from svc.sql_events),
 pg_total_relation_size('svc.sql_events')
"""
"""Events, rows, and the bytes of the rows with their indexes."""
EVENTS_AFTER = b"""
select organization, key, value from svc.events where (organization, key) > ($1::int4, $2::bytea)
order by organization, key limit $3::int8
"""
LOCKED_EVENTS_AFTER = EVENTS_AFTER + b" for share skip locked"
"""Those that nobody is changing or deleting: who does writes the row, or wants none."""

_REQUEST_ID = "encode(substring({}key from 5), 'hex')::uuid"
_FUNCTION = "language plpgsql set search_path to '' set enable_seqscan to off as $$"
"""The plan is made once for all sizes of the table."""
_DECLARED = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
MAKE = (
    f"create table svc.sql_events ({_DECLARED}, primary key (request_id))",
    "alter table svc.sql_events alter column organization set not null, alter column occurred_at set not null",
    "create index sql_events_occurred_at on svc.sql_events (occurred_at)",
    f"""create or replace function svc.sql_events_deleted() returns trigger {_FUNCTION}
begin
  delete from svc.sql_events where request_id = any (array(select {_REQUEST_ID.format("")} from gone));
  return null;
end $$""",
    f"""create or replace function svc.sql_events_updated() returns trigger {_FUNCTION}
begin
  delete from svc.sql_events where request_id = {_REQUEST_ID.format("old.")};
  return null;
end $$""",
    """create or replace trigger sql_events_deleted after delete on svc.events referencing old table as gone
for each statement execute function svc.sql_events_deleted()""",
    """create or replace trigger sql_events_updated after update on svc.events
for each row execute function svc.sql_events_updated()""",
    """create or replace function svc.sql_text(record bytea, place int4) returns text language plpgsql immutable as $$
declare
  at int4 := 5 + (get_byte(record, 4) = 152)::int4;
  head int4;
  width int4;
  size int4;
begin
  for passed in 0..place loop
    head := get_byte(record, at);
    size := head & 31;
    width := case when size < 24 then 0 else 1 << (size - 24) end;
    if width > 0 then
      size := 0;
      for each in 1..width loop
        size := size * 256 + get_byte(record, at + each);
      end loop;
    end if;
    at := at + 1 + width;
    exit when passed = place;
    if head >> 5 = 3 then
      at := at + size;
    end if;
  end loop;
  return convert_from(substring(record from at + 1 for size), 'UTF8');
end $$""",
    """create or replace view svc.sql_organizations as
select organization, svc.sql_text(value, 0) as organization_id, svc.sql_text(value, 2) as name
from svc.organizations""",
)
"""What an installation consists of. `sql_text` reads a text of a record, before which are only texts and unsigned
numbers: the id and the name of an organization."""
STOP = (
    *(
        f"create or replace function svc.sql_events_{what}() returns trigger language plpgsql as "
        "$$ begin return null; end $$"
        for what in ("deleted", "updated")
    ),
    "drop table if exists svc.sql_events",
)
"""While every fence is held: no group writes to the table, and triggers do nothing from then on."""
DROP_REST = (
    "drop trigger if exists sql_events_deleted on svc.events",
    "drop trigger if exists sql_events_updated on svc.events",
    "drop function if exists svc.sql_events_deleted, svc.sql_events_updated",
    "drop view if exists svc.sql_organizations",
    "drop function if exists svc.sql_text",
)
"""While no fence is held: a group may have written events and be waiting for its fence."""
GIVE_UP_SOON = "set local lock_timeout = '2s'"
"""Nodes wait for the transaction that waits here for a reader's query."""

_encoder = msgspec.json.Encoder()
_NULL = b"\\u0000"


def grant(role: str) -> tuple[str, ...]:
    """Return SQL that lets a role read events and organization names, and nothing else. Executes nothing."""
    quoted = '"' + role.replace('"', '""') + '"'
    return (
        f"grant usage on schema svc to {quoted}",
        f"grant select on svc.sql_events, svc.sql_organizations to {quoted}",
    )


def encoded_rows(rows: Iterable[tuple[bytes, bytes]]) -> bytes:
    r"""Return these rows as `ADD_ROWS` takes them, in JSON. PostgreSQL text has no zero character: it is written as
    `\x00`, as in CSV. A corrupt event is left out; `svc check` reports it.
    """
    found: list[dict[str, Any]] = []
    for key, value in rows:
        with suppress(CorruptionError):
            found.append(_row(key, value))
    encoded = _encoder.encode(found)
    return encoded if _NULL not in encoded else _encoder.encode(_without_null(found))


def _row(key: bytes, value: bytes) -> dict[str, Any]:
    row = plain_row(EVENTS.decode(key, value), UUID(bytes=key[4:]))
    row["organization"] = int.from_bytes(key[:4])
    row["occurred_at"] = timestamp(row["occurred_at"])
    return row


def _without_null(value: Any) -> Any:
    match value:
        case str():
            return value.replace("\0", "\\x00")
        case list():
            return [_without_null(one) for one in value]  # pyright: ignore[reportUnknownVariableType]  of any kind
        case dict():
            return {name: _without_null(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
