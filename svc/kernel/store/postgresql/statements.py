"""The schema of a store on PostgreSQL, and the statements that read and write it.

A table of the store is a table of the schema `svc`: (organization, key, value), where `key` is the whole packed key and
`organization` the number in its first four bytes, so that a database that spreads rows by a column can keep those of
one customer together. Where keys do not begin with the organization, it is 0. Their order is the order of the keys.

What may live here: SQL, and how a key becomes a row. No connection.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

from svc.kernel.store.postgresql.connection.values import byteas, int4s
from svc.kernel.store.schema.table import installed

SCHEMA = "svc"
FENCES = "writers"
"""The rows that a writer locks first: one per organization, and 0 for rows of none, also the lock of migrations."""
INTERNAL = frozenset({FENCES, "leases", "nodes", "sql_events"})
"""Tables of the schema that are not tables of the store; no table of the store may have such a name."""
LARGEST_ORGANIZATION = 0x7FFFFFFF

BEGIN = b"begin isolation level read committed"
BEGIN_READING = b"begin isolation level repeatable read read only"
COMMIT = b"commit"
ROLLBACK = b"rollback"

CREATE_SCHEMA = (
    b"create schema if not exists svc",
    b"create table if not exists svc.writers (organization int4 primary key, turn int8 not null)",
    b"""create table if not exists svc.leases
        (name text primary key, holder text not null, epoch int8 not null, expires_at timestamptz not null)""",
    b"""create table if not exists svc.nodes
        (node text primary key, started_at timestamptz not null, seen_at timestamptz not null)""",
    b"insert into svc.writers values (0, 0) on conflict do nothing",
)
"""Each may be repeated."""

TABLE_NAMES = b"""
select c.relname::text from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'svc' and c.relkind in ('r', 'p') order by 1
"""
"""Every table of the schema, as text; none where there is no schema."""

VERSION = b"""
select value, to_regclass('svc.sql_events') is not null from svc.meta
where organization = 0 and key = $1::bytea
"""
"""(value, whether there is the table of `features/exports/sql_events.py`) of one row of `meta`."""
COMMITS = b"select coalesce(sum(turn), 0)::int8 from svc.writers"
"""How many commits there were, counted once for each fence that they took: never the same for two states."""
ADD_FENCES = b"insert into svc.writers select unnest($1::int4[]), 0 on conflict do nothing"
TAKE_FENCES = b"""
with taken as (
  select organization from svc.writers where organization = any($1::int4[]) order by organization for update
)
update svc.writers w set turn = w.turn + 1 from taken where w.organization = taken.organization
returning w.organization, w.turn
"""
"""Fences of these organizations, in ascending order so that two writers cannot wait for each other."""
TAKE_FREE_FENCES = TAKE_FENCES.replace(b"for update", b"for update skip locked")
"""Those of them that nobody has: it waits for none."""
LOCK_ROWS_OF_NONE = b"select turn from svc.writers where organization = 0 for update"
ADD_EVERY_FENCE = b"insert into svc.writers select organization, 0 from svc.organizations on conflict do nothing"
TAKE_EVERY_FENCE = b"""
with taken as (select organization from svc.writers order by organization for update)
update svc.writers w set turn = w.turn + 1 from taken where w.organization = taken.organization
"""
"""After `LOCK_ROWS_OF_NONE` and `ADD_EVERY_FENCE` none is missing: who creates an organization holds fence 0."""
ROW_ESTIMATES = b"""
select c.relname::text, c.reltuples::int8 from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = 'svc' and c.relkind in ('r', 'p')
"""
"""(table, rows that it has had at its last vacuum or analysis)."""
DATABASE_SIZE = b"select pg_database_size(current_database())"
HAS_SQL_EVENTS = b"select to_regclass('svc.sql_events') is not null"


def organization_of(table: str, key: bytes) -> int:
    """Return the value of the column `organization` for a key, or for a bound of a range of keys."""
    if table not in installed().by_organization:
        return 0
    return min(int.from_bytes(key[:4].ljust(4, b"\0")), LARGEST_ORGANIZATION)


def split_by_organization(table: str, keys: Iterable[bytes]) -> list[tuple[int, list[bytes]]]:
    """Return the keys by their `organization`, in order: by bytes, as keys are many and organizations few."""
    if table not in installed().by_organization:
        return [(0, list(keys))]
    found: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for key in keys:
        found[key[:4]].append(key)
    return [(organization_of(table, stem), own) for stem, own in found.items()]


def key_columns(table: str, keys: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return the values of the columns `organization` and `key` for these keys, as arrays."""
    organizations = {stem: organization_of(table, stem) for stem in {key[:4] for key in keys}}
    return int4s([organizations[key[:4]] for key in keys]), byteas(keys)


def create_table(table: str) -> tuple[bytes, bytes]:
    """Return two statements, to be executed in order, that create a table of the store if it is missing. Large values
    are stored outside the row and uncompressed: documents are compressed already.
    """
    columns = "organization int4 not null, key bytea not null, value bytea not null, primary key (organization, key)"
    name = _name(table)
    return (
        f"create table if not exists {name} ({columns})".encode(),
        f"alter table {name} alter column value set storage external".encode(),
    )


@lru_cache
def fetch(table: str, *, versions: bool = False) -> bytes:
    """Return the query for (key, value), with `versions` (key, value, version), of the rows with the keys `$2::bytea[]`
    of organization `$1::int4`, no key twice, in no order. The version is the transaction that wrote the row.

    `offset 0` makes each an index look-up. With `key = any(...)` or a join, whose sizes the planner guesses, it may
    read all rows of the organization or the whole table: it did so for a table that had not been analyzed yet.
    """
    version = ", t.xmin as version" if versions else ""
    return (
        "select wanted.key, found.* from unnest($2::bytea[]) as wanted (key), "
        f"lateral (select t.value{version} from {_name(table)} t "
        "where t.organization = $1::int4 and t.key = wanted.key offset 0) as found"
    ).encode()


@lru_cache
def fetch_changed(table: str) -> bytes:
    """Return the query for (key, value, version) of those rows of organization `$1::int4` with the keys `$2::bytea[]`
    whose versions differ from `$3::xid[]`, which is null for a key that had no row. Value and version are null if there
    is no row now.
    """
    return (
        "select wanted.key, found.value, found.version from unnest($2::bytea[], $3::xid[]) as wanted (key, version) "
        f"left join lateral (select t.value, t.xmin as version from {_name(table)} t "
        "where t.organization = $1::int4 and t.key = wanted.key offset 0) as found on true "
        "where found.version is distinct from wanted.version"
    ).encode()


@lru_cache
def page(table: str, *, has_end: bool, reverse: bool, keys_only: bool) -> bytes:
    """Return the query for (key, value), or (key,) with `keys_only`, of up to `$1::int8` rows from the bound
    (`$2::int4`, `$3::bytea`) on, in order. `has_end`: only those below the bound (`$4::int4`, `$5::bytea`); `reverse`:
    the last ones, largest first.
    """
    end = " and (organization, key) < ($4::int4, $5::bytea)" if has_end else ""
    order = "organization desc, key desc" if reverse else "organization, key"
    return (
        f"select key{'' if keys_only else ', value'} from {_name(table)} "
        f"where (organization, key) >= ($2::int4, $3::bytea){end} order by {order} limit $1::int8"
    ).encode()


@lru_cache
def fetch_of_several(table: str) -> bytes:
    """Return the query that is `fetch` for the rows (`$1::int4[]`, `$2::bytea[]`) of several organizations."""
    return (
        "select found.key, found.value from unnest($1::int4[], $2::bytea[]) as wanted (organization, key), "
        f"lateral (select t.key, t.value from {_name(table)} t "
        "where t.organization = wanted.organization and t.key = wanted.key offset 0) as found"
    ).encode()


@lru_cache
def pages_of_several(table: str, *, reverse: bool) -> bytes:
    """Return the query for (number, key, value) of several pages, in order. Each has up to `$1::int8` rows, from
    (`$2::int4[]`, `$3::bytea[]`) to below (`$4::int4[]`, `$5::bytea[]`); the first has number 1.
    """
    order = "organization desc, key desc" if reverse else "organization, key"
    return (
        "select wanted.number, found.key, found.value "
        "from unnest($2::int4[], $3::bytea[], $4::int4[], $5::bytea[]) "
        "with ordinality as wanted (low, first, high, beyond, number), "
        f"lateral (select t.organization, t.key, t.value from {_name(table)} t "
        "where (t.organization, t.key) >= (wanted.low, wanted.first) "
        "and (t.organization, t.key) < (wanted.high, wanted.beyond) "
        f"order by {order} limit $1::int8) as found "
        f"order by wanted.number, {'found.' + order.replace(', ', ', found.')}"
    ).encode()


@lru_cache
def count(table: str) -> bytes:
    """Return the query for the number of rows of a table, as int8."""
    return f"select count(*) from {_name(table)}".encode()


@lru_cache
def size(table: str) -> bytes:
    """Return the query for the bytes of a table, indexes and large values included, as int8."""
    return f"select pg_total_relation_size('{_name(table)}')".encode()


@lru_cache
def write(table: str) -> bytes:
    """Return the statement that puts the rows (`$1::int4[]`, `$2::bytea[]`, `$3::bytea[]`), no key twice."""
    return add(table).replace(b"do nothing", b"(organization, key) do update set value = excluded.value")


@lru_cache
def add(table: str) -> bytes:
    """Return the statement that inserts those of the rows of `write` that do not exist: for rows that never change."""
    return (
        f"insert into {_name(table)} select * from unnest($1::int4[], $2::bytea[], $3::bytea[]) on conflict do nothing"
    ).encode()


@lru_cache
def delete(table: str) -> bytes:
    """Return the statement that deletes the rows with the keys `$2::bytea[]` of organization `$1::int4`."""
    return f"delete from {_name(table)} where organization = $1::int4 and key = any($2::bytea[])".encode()


@lru_cache
def clear(table: str) -> bytes:
    """Return the statement that deletes every row of a table."""
    return f"delete from {_name(table)}".encode()


def _name(table: str) -> str:
    assert table.isidentifier(), table
    return f'{SCHEMA}."{table}"'
