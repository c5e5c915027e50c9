"""Rows that were fetched, as a state to read. What is read and was not fetched is noted, and taken as absent.

A function of a snapshot runs over them as over any state. Where it asked for something that is not here, what it made
is worth nothing: what it asked for is fetched, all of it in one round trip, and it runs again. As it goes on behind the
first such row, it asks in one run for all that does not depend on the rows that are missing.

What may live here: the rows, what is missing of them, and the statements that fetch and write them. No connection, and
nothing of how long rows are kept (`recent.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from svc.kernel.store.engine import KeyRange, Reader
from svc.kernel.store.overlay import Raw, RowKey
from svc.kernel.store.postgresql import statements
from svc.kernel.store.postgresql.connection.values import byteas, int4, int8, integer, xids
from svc.kernel.store.postgresql.connection.wire import Result, Statement
from svc.kernel.store.postgresql.statements import key_columns, organization_of, split_by_organization
from svc.kernel.store.schema.table import installed

T = TypeVar("T")

MAX_FETCHES = 100
"""Round trips in which a group, a query or a command may fetch. One that needs more would never end."""
FIRST_PAGE = 64
"""Rows of a range that are fetched at first; `GROWTH` times as many when that was not enough."""
GROWTH = 4
MAX_MISSING = 4096
"""Missing rows at which a run ends: anything further would rest on guesses."""

EVERY = -1
"""Stands for all fences, if what was read belongs to several. A fence is 0 for rows of no organization."""
OWNER = -2
"""Stands for the fence of the organization that a row belongs to, if its key does not name it."""
NOTHING = -3
"""Stands for no fence."""

_Take = Callable[[Result, frozenset[int]], None]

_NUMBERS = {"count": statements.count, "size": statements.size}
_ORGANIZATION_BYTES = 4
_UNKNOWN: Any = object()
_OTHER_VERSION = bytes(4)
"""No transaction has this number. It stands for the version of a row from a page, so that it is fetched again."""


class TooMuchMissingError(BaseException):
    """Ends a run that asked for `MAX_MISSING` rows. No `Exception`: code that runs does not handle it."""


def run_over(rows: Rows, read: Callable[[], T]) -> tuple[T] | None:
    """Return what a function found over these rows; `None` if it asked for rows that are to be fetched first, in whose
    place it found nothing. Raises what it raises of rows that were all there.
    """
    try:
        found = read()
    except TooMuchMissingError:
        return None
    except Exception:
        if rows.is_missing:
            return None
        raise
    return None if rows.is_missing else (found,)


class _Page(NamedTuple):
    limit: int
    rows: Sequence[tuple[bytes, bytes]] = ()

    @property
    def has_ended(self) -> bool:
        return len(self.rows) < self.limit


class Rows:
    """A `Reader` over rows that were fetched from one state of the database."""

    def __init__(
        self, known: Callable[[RowKey], Raw] | None = None, *, of_several: bool = False, versioned: bool = False
    ) -> None:
        """Use `known` for rows that need not be fetched; it returns `None` for others. `of_several`: one statement may
        fetch rows of several organizations, which a database that spreads rows by organization could not run in one
        place. `versioned`: rows can be read again (see `look_again`); not together with `of_several`.
        """
        self._known = known
        self._of_several = of_several
        self._versions: dict[RowKey, bytes | None] | None = {} if versioned else None
        """Versions of the rows that were fetched by their keys."""
        self._read: set[RowKey] = set()
        self._read_ranges: set[KeyRange] = set()
        self._looked_at: defaultdict[str, list[bytes]] = defaultdict(list)
        self.has_changed = False
        """Whether a second look has found something that was not there at the first."""
        self._changed: set[RowKey] | None = None
        self._rows: defaultdict[str, dict[bytes, Raw]] = defaultdict(dict)
        self._pages: dict[KeyRange, _Page] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._missing_keys: defaultdict[str, dict[bytes, None]] = defaultdict(dict)
        self._missing_ranges: dict[KeyRange, _Page] = {}
        self._missing_numbers: dict[tuple[str, str], None] = {}
        self._missing = 0
        self._sent: list[tuple[Statement, _Take]] = []
        """What `fetches` has returned, until `take`."""
        self.fences: set[int] = set()
        """Fences of the rows that were fetched; see `fence_of`."""
        self.has_sql_events = False
        """Whether events are rows for SQL, too, in the state of the fences that are held: see `sql_events`."""
        self.commit = 0
        """Grows with each fetch: see `Reader.commit`."""

    def get(self, table: str, key: bytes, /) -> Raw:
        """See `Reader.get`."""
        if self._versions is not None:
            self._read.add((table, key))
        raw = self._rows[table].get(key, _UNKNOWN)
        if raw is _UNKNOWN:
            raw = None if self._known is None else self._known((table, key))
            if raw is None:
                missing = self._missing_keys[table]
                if key not in missing:
                    missing[key] = None
                    self._one_more()
        return raw

    def get_many(self, table: str, keys: Sequence[bytes], /) -> list[Raw]:
        """See `Reader.get_many`."""
        return [self.get(table, key) for key in keys]

    def range(self, asked: KeyRange, /) -> Iterator[tuple[bytes, bytes]]:
        """See `Reader.range`. The database checks its pages, and each value has its checksum: nothing is `checked`."""
        key_range = asked._replace(checked=False) if asked.checked else asked
        self._read_ranges.add(key_range)
        page = self._pages.get(key_range)
        if page is not None:
            yield from page.rows
            if page.has_ended:
                return
        if key_range not in self._missing_ranges:
            self._missing_ranges[key_range] = _Page(FIRST_PAGE if page is None else GROWTH * page.limit)
            self._one_more()

    def count(self, table: str, /) -> int:
        """See `Reader.count`; reads an index of the table."""
        return self._number("count", table)

    def size(self, table: str, /) -> int:
        """See `Reader.size`."""
        return self._number("size", table)

    def evaluate(self, read: Callable[[Reader], T], /) -> T:
        """See `Reader.evaluate`: the caller repeats the run itself (`run_over`)."""
        return read(self)

    def close(self) -> None:
        """See `Reader.close`."""

    @property
    def is_missing(self) -> bool:
        """See `Reader.is_missing`."""
        return self._missing > 0

    def begin_reading(self) -> set[RowKey] | None:
        """Begin to track reads for `look_again`. Return the rows that it found changed; `None` if more may differ."""
        self._read.clear()
        self._read_ranges.clear()
        changed, self._changed = self._changed, None
        return changed

    def look_again(self) -> None:
        """Request again what was read, as far as it has changed: rows that have another version or were deleted, and
        all pages. Rows that were fetched but not read are dropped. Numbers are not fetched again: their reader has held
        every fence from the start.
        """
        fetched, self._rows = self._rows, defaultdict(dict)
        for table, key in self._read:
            if key in fetched[table]:
                self._rows[table][key] = fetched[table][key]
                self._looked_at[table].append(key)
        self._missing_ranges = {key_range: _Page(self._pages[key_range].limit) for key_range in self._read_ranges}
        self._pages = {key_range: self._pages[key_range] for key_range in self._read_ranges}
        self._missing = 1
        self.has_changed, self._changed = False, set()

    def fetches(self) -> list[Statement]:
        """Return the statements that fetch everything that is missing; pass their results to `take`."""
        self._sent = list(self._asked())
        return [statement for statement, _ in self._sent]

    def take(self, results: Sequence[Result], but: frozenset[int] = frozenset()) -> None:
        """Add the results of `fetches`, in order and before any reading, except rows of the organizations `but`."""
        for (_, take), result in zip(self._sent, results, strict=True):
            take(result, but)
        self._missing_keys.clear()
        self._missing_ranges.clear()
        self._missing_numbers.clear()
        self._looked_at.clear()
        self._missing, self._sent = 0, []
        self.commit += 1

    def _asked(self) -> Iterator[tuple[Statement, _Take]]:
        """Yield statements, each with the function that takes its result."""
        for table, keys in self._missing_keys.items():
            by_organization = split_by_organization(table, keys)
            for parts in [by_organization] if self._of_several else [[part] for part in by_organization]:
                yield self._ask_keys(table, parts), partial(self._take_keys, table, parts)
        for table, keys in self._looked_at.items():
            for organization, own in split_by_organization(table, keys):
                yield self._ask_changed(table, organization, own), partial(self._take_changed, table)
        alike: defaultdict[tuple[str, bool, int], list[KeyRange]] = defaultdict(list)
        for key_range, page in self._missing_ranges.items():
            if self._of_several and key_range.beyond is not None and not key_range.keys_only:
                alike[key_range.table, key_range.reverse, page.limit].append(key_range)
            else:
                yield page_of(key_range, page.limit), partial(self._take_page, key_range)
        for (table, reverse, limit), key_ranges in alike.items():
            if len(key_ranges) == 1:
                yield page_of(key_ranges[0], limit), partial(self._take_page, key_ranges[0])
            else:
                yield _select_several(table, key_ranges, limit, reverse=reverse), partial(self._take_pages, key_ranges)
        for what, table in self._missing_numbers:
            yield Statement(_NUMBERS[what](table)), partial(self._take_number, what, table)

    def _ask_keys(self, table: str, parts: list[tuple[int, list[bytes]]]) -> Statement:
        if len(parts) == 1:
            ((organization, keys),) = parts
            sql = statements.fetch(table, versions=self._versions is not None)
            return Statement(sql, (int4(organization), byteas(keys)))
        return Statement(
            statements.fetch_of_several(table), key_columns(table, [key for _, own in parts for key in own])
        )

    def _take_keys(self, table: str, parts: list[tuple[int, list[bytes]]], result: Result, but: frozenset[int]) -> None:
        rows = self._rows[table]
        for organization, keys in parts:
            if (fence := fence_of(table, organization)) not in but:
                rows.update(dict.fromkeys(keys))
                self.fences.add(fence)
        if self._versions is not None:
            self._versions.update(dict.fromkeys((table, key) for _, keys in parts for key in keys))
            self._take_versions(table, result, but)
            return
        rows.update(result.rows if not but else [row for row in result.rows if row[0] in rows])

    def _ask_changed(self, table: str, organization: int, keys: list[bytes]) -> Statement:
        assert self._versions is not None
        versions = [self._versions[table, key] for key in keys]
        return Statement(statements.fetch_changed(table), (int4(organization), byteas(keys), xids(versions)))

    def _take_versions(self, table: str, result: Result, but: frozenset[int]) -> None:
        assert self._versions is not None
        assert not but, "one organization has its rows, or waits"
        rows = self._rows[table]
        for key, value, version in result.rows:
            rows[key] = value
            self._versions[table, key] = version

    def _take_changed(self, table: str, result: Result, but: frozenset[int]) -> None:
        self.has_changed |= bool(result.rows)
        if result.rows and any(key_range.table == table for key_range in self._read_ranges):
            self._changed = None  # the page may be younger than the row, and as it was; what a job adds to it is not
        if self._changed is not None:
            self._changed.update((table, key) for key, _, _ in result.rows)
        self._take_versions(table, result, but)

    def _take_page(self, key_range: KeyRange, result: Result, but: frozenset[int]) -> None:
        if (fence := _fence_of_range(key_range)) in but:
            return
        rows, limit = result.rows, self._missing_ranges[key_range].limit
        page = _Page(limit, [(key, b"") for (key,) in rows] if key_range.keys_only else rows)
        before = self._pages.get(key_range, page)
        if before != page:
            self.has_changed, self._changed = True, None
        self._pages[key_range] = page
        self.fences.add(fence)
        if not key_range.keys_only:
            known = self._rows[key_range.table]
            for key, _ in before.rows:
                known.pop(key, None)
            known.update(rows)
            if self._versions is not None:
                self._versions.update(((key_range.table, key), _OTHER_VERSION) for key, _ in rows)

    def _take_pages(self, key_ranges: list[KeyRange], result: Result, but: frozenset[int]) -> None:
        found: list[list[tuple[bytes, bytes]]] = [[] for _ in key_ranges]
        for key_range, key, value in result.rows:
            found[integer(key_range) - 1].append((key, value))
        for key_range, rows in zip(key_ranges, found, strict=True):
            self._take_page(key_range, Result(rows, len(rows)), but)

    def _take_number(self, what: str, table: str, result: Result, but: frozenset[int]) -> None:
        del but  # the number counts rows of all organizations
        self._numbers[what, table] = integer(result.rows[0][0])
        self.fences.add(EVERY)

    def again(self) -> Rows:
        """Return the same request for another state: all that was fetched or is missing is to be fetched."""
        other = Rows(self._known)
        for table, rows in self._rows.items():
            other._missing_keys[table].update(dict.fromkeys(rows))
        for table, keys in self._missing_keys.items():
            other._missing_keys[table].update(keys)
        pages = self._pages | self._missing_ranges
        other._missing_ranges = {key_range: _Page(page.limit) for key_range, page in pages.items()}
        other._missing_numbers = dict.fromkeys((*self._numbers, *self._missing_numbers))
        other._missing = 1
        return other

    def found(self, table: str, key: bytes) -> Raw:
        """Return the fetched value of a row; `None` if it does not exist or was not fetched."""
        return self._rows[table].get(key)

    def found_in(self, table: str) -> Mapping[bytes, Raw]:
        """Return the fetched rows of a table by key; `None` for those that do not exist."""
        return self._rows[table]

    def found_everywhere(self, of: Callable[[str], bool] = lambda _: True) -> Iterator[tuple[RowKey, bytes]]:
        """Yield every row that was fetched, of the tables for whose name `of` is true."""
        for table, rows in self._rows.items():
            if of(table):
                yield from (((table, key), raw) for key, raw in rows.items() if raw is not None)

    def _number(self, what: str, table: str) -> int:
        found = self._numbers.get((what, table))
        if found is None:
            self._missing_numbers[what, table] = None
            self._missing += 1
        return found or 0

    def _one_more(self) -> None:
        self._missing += 1
        if self._missing > MAX_MISSING:
            raise TooMuchMissingError


def is_immutable(table: str) -> bool:
    """Return whether rows of this table never change after they were written."""
    return installed().fenced_by[table] == "nothing"


def fence_of(table: str, organization: int) -> int:
    """Return the fence that writers of such a row hold. `organization`: of the row's key, 0 if it has none."""
    match installed().fenced_by[table]:
        case "key":
            return organization
        case "owner":
            return OWNER
        case "nothing":
            return NOTHING


def _fence_of_range(key_range: KeyRange) -> int:
    table, first, beyond, *_ = key_range
    low = organization_of(table, first)
    fence = fence_of(table, low)
    if fence in (OWNER, NOTHING) or table not in installed().by_organization:
        return fence
    if beyond is None or len(first) < _ORGANIZATION_BYTES:
        return EVERY
    high = organization_of(table, beyond) - (len(beyond) <= _ORGANIZATION_BYTES)
    return low if high == low else EVERY


def writes(changed: Mapping[RowKey, Raw]) -> Iterator[Statement]:
    """Yield the statements that write the rows, and delete those that are `None`, in key order, so that two
    transactions which write the same rows of no fence do not wait for each other.
    """
    put: defaultdict[str, list[tuple[bytes, bytes]]] = defaultdict(list)
    deleted: defaultdict[tuple[str, int], list[bytes]] = defaultdict(list)
    for table, key in sorted(changed):
        raw = changed[table, key]
        if raw is None:
            deleted[table, organization_of(table, key)].append(key)
        else:
            put[table].append((key, raw))
    for table, rows in put.items():
        keys, values = zip(*rows, strict=True)
        sql = statements.add(table) if is_immutable(table) else statements.write(table)
        yield Statement(sql, (*key_columns(table, keys), byteas(values)))
    for (table, organization), keys in deleted.items():
        yield Statement(statements.delete(table), (int4(organization), byteas(keys)))


def plain_columns(rows_of: Callable[[str], Iterable[tuple[bytes, bytes]]]) -> list[Statement]:
    """Return the statement that also adds rows as plain columns, in a store that keeps them so; an empty list if there
    are none. `rows_of`: the written rows of a table by its name, as (key, value).
    """
    kept = installed().sql_rows
    encoded = b"[]" if kept is None else kept.encoded(rows_of(kept.table))
    return [] if kept is None or encoded == b"[]" else [Statement(kept.statement, (encoded,))]


def page_of(key_range: KeyRange, limit: int) -> Statement:
    """Return the statement that fetches the first rows of a range, at most `limit`."""
    table, first, beyond, reverse, keys_only, _ = key_range
    sql = statements.page(table, has_end=beyond is not None, reverse=reverse, keys_only=keys_only)
    bounds = (first,) if beyond is None else (first, beyond)
    return Statement(sql, (int8(limit), *(part for key in bounds for part in (int4(organization_of(table, key)), key))))


def _select_several(table: str, key_ranges: list[KeyRange], limit: int, *, reverse: bool) -> Statement:
    firsts = key_columns(table, [key_range.first for key_range in key_ranges])
    beyonds = key_columns(table, [key_range.beyond or b"" for key_range in key_ranges])
    return Statement(statements.pages_of_several(table, reverse=reverse), (int8(limit), *firsts, *beyonds))
