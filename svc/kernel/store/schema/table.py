"""What a table is: the form of its rows, how long they are kept, how those of a visitor are erased; and the schema.

Retention, erasure, the removal of an organization, the integrity check and the inspector read these declarations, so
that a table is described in one place (`tables`). One that they could not follow is refused when it is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache, cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast

from isal.isal_zlib import crc32  # pyright: ignore[reportUnknownVariableType]  its stub leaves the bytes untyped

from svc.kernel.store.schema.codec import CorruptionError, Key, Record, Value
from svc.kernel.store.schema.key_parts import UUID_V7

V = TypeVar("V")


class PolicyError(ValueError):
    """A table is declared in a way that retention, erasure or an upgrade could not follow."""


@dataclass(frozen=True)
class KeptFor:
    """By age: the key is the organization and an id (UUIDv7), which has the time at which the row was created."""

    ms: int
    setting: str = ""
    """Name of the setting that may say another time."""


@dataclass(frozen=True)
class LastTwoPeriods:
    """By age: the key is the organization and then a period. This one and the one before are kept."""


@dataclass(frozen=True)
class Aged:
    """By the age that the field `since` of the record says (Unix ms). Retention needs no code for such a table."""

    ms: int
    since: str


@dataclass(frozen=True)
class Swept:
    """The key does not tell the age: retention makes passes over the rows. `why` says when it deletes one."""

    why: str


@dataclass(frozen=True)
class With:
    """Kept as long as the row of another table that it belongs to, and deleted in the same transaction."""

    table: str


@dataclass(frozen=True)
class Until:
    """Kept until `what`: an act of the owner, the operator or the service itself."""

    what: str


FencedBy = Literal["key", "owner", "nothing"]
"""Which fence a transaction holds that writes a row, in an engine that several nodes share (`postgresql/groups.py`).

`key`: that of the organization in its key; without one, that of the rows of no organization. `owner`: that of the
organization which the row belongs to, though its key does not name it. `nothing`: rows never change once they are
there, and two writers of one write the same.
"""
Keep = KeptFor | LastTwoPeriods | Aged | Swept | With | Until
FOR_EVER = Until("the store is deleted")
WITH_ORGANIZATION = Until("the organization is removed")


@dataclass(frozen=True)
class ErasedByKey:
    """Rows of one visitor, found by their keys: the organization, this part, and whatever follows.

    `request_id`: one of the visitor's events; `visitor`: its number; `visitor_id`; `subject`: that it is a visitor or
    an account, and then the digest of its id (`subject_digest`), so that the erasure of an account finds its rows, too.
    Neither erasure nor the export or inspection of a visitor needs code for such a table, nor the check that no row of
    a visitor's number outlives the visitor. A visitor has some hundreds of rows in it at most: they are deleted in one
    transaction.
    """

    part: str


@dataclass(frozen=True)
class ErasedBy:
    """Rows of one visitor that a function finds by something else (`features/erasure/policies.py`)."""

    function: str


@dataclass(frozen=True)
class NotPersonal:
    """The table has no data about one visitor, or what it has says nothing about the person, for this reason."""

    why: str = ""


NOT_PERSONAL = NotPersonal()
Personal = ErasedByKey | ErasedBy | NotPersonal

LEADS = ("request_id", "visitor", "visitor_id", "subject")
"""Parts of keys by which erasure finds rows."""
SENT = frozenset({"signals", "headers", "body", "tag", "ip_address", "account_id", "tracestate"})
"""Fields of records with what a device or a customer sent."""
WRITTEN = frozenset({"note", "text"})
"""Fields of records with what people write, which may name a visitor or an account (`features/erasure/texts.py`)."""


@dataclass(frozen=True)
class Table(Generic[V]):
    """A named ordered map. Two tables are never merged and a name is never reused.

    A stored value is a CRC-32 of the table's name, the key and the value, and then the value: so every read sees a
    flipped bit in either, and a row that ended up under another key or in another table. Raises `PolicyError` when
    declared wrongly.
    """

    name: str
    key: Key
    value: Value[V]
    keep: Keep
    """How long rows are kept."""
    personal: Personal
    """Whether rows say something of a visitor, and what leads erasure to them."""
    _: KW_ONLY
    stays: bool = False
    """Whether rows stay when their organization is removed: its accounts, and what says who removed it."""
    fenced_by: FencedBy = "key"
    counted: bool = False
    """Whether its rows are counted exactly for metrics, where an engine has only estimates."""
    invariants: tuple[str, ...] = ()
    """Rules of `features/checks/invariants.py` that read it through, by name; beside them every row is read back."""
    since: int = 1
    """The version of the store that has it first."""

    def __post_init__(self) -> None:
        wrong = _fault_of_keep(self) or _fault_of_personal(self)
        if wrong is not None:
            raise PolicyError(f"table {self.name}: {wrong}")

    @property
    def by_organization(self) -> bool:
        """Whether the organization is the first part of its keys, so that its rows lie together."""
        return next(iter(self.key.parts)) == "organization"

    def encode(self, key: bytes, value: V) -> bytes:
        """Return the bytes to store under the packed key: checksum, then value."""
        body = self.value.encode(value)
        return crc32(body, crc32(key, self._seed)).to_bytes(4) + body

    def with_checksum(self, key: bytes, body: bytes) -> bytes:
        """Return the bytes to store of a value that is encoded."""
        return crc32(body, crc32(key, self._seed)).to_bytes(4) + body

    def decode(self, key: bytes, raw: bytes) -> V:
        """Return the value that was stored under the packed key. Raises `CorruptionError`."""
        if self._remembered:  # bytes that are those of the last time need no check
            known = self._known.get(key)
            if known is not None and known[0] == raw:
                return known[1]
        body = raw[4:]
        if crc32(body, crc32(key, self._seed)).to_bytes(4) != raw[:4]:  # inlined: every read of a row passes here
            raise self._corrupt(key)
        value = self.value.decode(body)
        if self._remembered:
            if len(self._known) >= self._remembered:
                self._known.clear()
            self._known[key] = raw, value
        return value

    def verify_checksum(self, key: bytes, raw: bytes) -> bytes:
        """Return the value's bytes. Raises `CorruptionError` if they or the key are not what was written."""
        body = raw[4:]
        if crc32(body, crc32(key, self._seed)).to_bytes(4) != raw[:4]:
            raise self._corrupt(key)
        return body

    def _corrupt(self, key: bytes) -> CorruptionError:
        return CorruptionError(f"a row of {self.name} fails its check: {key.hex()}")

    @cached_property
    def _known(self) -> dict[bytes, tuple[bytes, V]]:
        """By packed key, the bytes that were decoded last and their value (`Record.remembered`)."""
        return {}

    @cached_property
    def _remembered(self) -> int:
        return self.value.remembered if isinstance(self.value, Record) else 0

    @cached_property
    def _seed(self) -> int:
        return crc32(self.name.encode())


def declared(*modules: object) -> tuple[Table[Any], ...]:
    """Return the tables of modules, in order. Raises `PolicyError` for two of a name, or a `With` without its table."""
    values = (value for module in modules for value in vars(module).values())
    tables = tuple(cast("Table[Any]", value) for value in values if isinstance(value, Table))
    names = [table.name for table in tables]
    for table in tables:
        if names.count(table.name) > 1:
            raise PolicyError(f"two tables are named {table.name}")
        if isinstance(table.keep, With) and table.keep.table not in names:
            raise PolicyError(f"table {table.name}: there is no table {table.keep.table} with which its rows could go")
    return tables


def _fault_of_keep(table: Table[Any]) -> str | None:
    parts = tuple(table.key.parts.items())
    following = parts[1][1] if len(parts) > 1 and parts[0][0] == "organization" else None
    match table.keep:
        case KeptFor() if following is not UUID_V7:
            return "KeptFor needs a key of the organization and then an id (UUID_V7)"
        case Aged(since=since) if not table.by_organization or since not in _fields_of(table):
            return f"Aged needs a key that begins with the organization, and a record with {since}"
        case LastTwoPeriods() if following is None or not following.period_ms:
            return "LastTwoPeriods needs a key of the organization and then a period"
        case _:
            return None


def _fault_of_personal(table: Table[Any]) -> str | None:
    parts = table.key.parts
    match table.personal:
        case ErasedByKey(part):
            names = list(parts)
            is_followed = names[:2] == ["organization", part] and part in LEADS
            if not is_followed or (part == "subject" and names[2:3] != ["id"]):
                return (
                    f"a key that erasure follows begins with the organization and one of {', '.join(LEADS)}; "
                    "after a subject comes the digest of its id"
                )
        case NotPersonal(why=""):
            found = sorted((set(parts) | set(_fields_of(table))) & {*LEADS, *SENT, *WRITTEN})
            if found:
                return f"{', '.join(found)} is of a visitor: say how it is erased, or why it stays (NotPersonal)"
        case _:
            pass
    return None


def _fields_of(table: Table[Any]) -> tuple[str, ...]:
    return table.value.fields if isinstance(table.value, Record) else ()


OF_THE_PROGRAM = "svc.features.schema"
"""The module that has the `SCHEMA` of this program."""

Migration: TypeAlias = Callable[[Any], None]
"""A function of a `Transaction` that brings a store to the next version."""


def _adds_tables(_: Any) -> None:
    """Convert nothing: tables are made when a store is opened."""


class SqlRows(NamedTuple):
    """A table of which PostgreSQL also has the rows as plain columns (`features/exports/sql_events.py`)."""

    table: str
    statement: bytes
    """Adds rows, given as one parameter."""
    encoded: Callable[[Iterable[tuple[bytes, bytes]]], bytes]
    """That parameter, of rows as (key, value); `[]` = none."""


class Schema:
    """The tables of a store in their order, and the migrations that lead to them."""

    def __init__(
        self,
        tables: tuple[Table[Any], ...],
        migrations: Mapping[int, Migration] = MappingProxyType({}),
        former_tables: tuple[str, ...] = (),
        sql_rows: SqlRows | None = None,
    ) -> None:
        """Give in `migrations` what leads to a version, by its number; a version that only adds tables needs nothing.
        Name in `former_tables` tables of earlier versions, which are open while a store is upgraded. Raises
        `PolicyError` for a version that has no migration and adds no table.
        """
        self.tables, self.former_tables, self.sql_rows = tables, former_tables, sql_rows
        self.names = tuple(table.name for table in tables)
        ordered = [table for table in tables if table.by_organization]
        self.by_organization = frozenset(table.name for table in ordered)
        """Names of the tables whose keys begin with the organization."""
        self.by_own_id = frozenset(table.name for table in ordered if [*table.key.parts.values()][1:] == [UUID_V7])
        """Names of the tables whose keys are the organization and an id (UUIDv7)."""
        self.fenced_by: dict[str, FencedBy] = {table.name: table.fenced_by for table in tables}
        """By the name of a table, which fence its writers hold."""
        self.exactly_counted = tuple(table.name for table in tables if table.counted)
        """Names of the tables whose rows are counted exactly."""
        self._checks = {table.name: table.verify_checksum for table in tables}
        adding = {table.since for table in tables}
        self.version = max(adding | migrations.keys(), default=0)
        """The version of a store with these tables: the highest that has a migration or adds a table."""
        for version in range(1, self.version + 1):
            if version not in adding | migrations.keys():
                raise PolicyError(f"store version {version} has no migration and adds no table")
        self.migrations = tuple(migrations.get(number, _adds_tables) for number in range(1, self.version + 1))
        """Migration N - 1 leads to version N."""

    def check_row(self, table: str, key: bytes, value: bytes) -> None:
        """Verify a row of a table that this version has: a `CheckRow`. Raises `CorruptionError`."""
        check = self._checks.get(table)
        if check is not None:
            check(key, value)


@cache
def installed() -> Schema:
    """Return the schema of this program."""
    return cast("Schema", import_module(OF_THE_PROGRAM).SCHEMA)
