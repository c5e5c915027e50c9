"""Pages of lists: the one way in which a list is read, given out in pages, and continued (docs/adr/0196).

A list is declared by its scan: of the position behind which to read it yields rows, each with its own position, and
`None` for one that does not pass the filters. A page is what the scan finds in slices of time; its cursor is the
position of the last row that was looked at, so a page costs the same wherever it begins, and rows that come or go
meanwhile move nothing. What is looked at for one page is bounded: it may be short, and still have a cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from svc.http.callers.limits import Turn
from svc.http.route import Services
from svc.http.schema import TotalBody
from svc.identify.queries.events import UnreadableEvent
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.encodings import Cursors
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.work.slices import Scan, found_behind

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

DEFAULT_LIMIT = 50
MAX_LOOKED_AT = 10_000
"""Rows that one page looks at."""

_encoder = msgspec.json.Encoder()


class PageQuery(Protocol):
    """The part of a query that says which page is asked for."""

    @property
    def limit(self) -> int | UnsetType:
        """Return how many rows it may have."""
        ...

    @property
    def cursor(self) -> str | UnsetType:
        """Return the `next_cursor` of the page before."""
        ...


class Page(NamedTuple, Generic[R]):
    """A page of a list."""

    rows: tuple[R, ...]
    next_cursor: str | UnsetType
    """`UNSET` = it is the last one."""


async def read_page(
    services: Services,
    turn: Turn,
    cursors: Cursors,
    query: PageQuery,
    scan: Scan[bytes, R | None],
    start: bytes = b"",
    *,
    limit: int = DEFAULT_LIMIT,
    most: int | None = None,
) -> Page[R] | Refusal:
    """Return the page that a query asks for, of `limit` rows where it names no limit; the first one is behind `start`.
    A long search holds the turn of its request. `422` (`invalid_cursor`).
    """
    behind = start if query.cursor is UNSET else cursors.read(query.cursor)
    if behind is None:
        return invalid("cursor", "invalid_cursor", "query")
    asked = limit if query.limit is UNSET else query.limit
    found, resume = await read_behind(services, scan, behind, asked, turn=turn, most=most)
    return Page(tuple(found), UNSET if resume is None else cursors.write(resume))


async def read_behind(
    services: Services,
    scan: Scan[P, R | None],
    start: P,
    limit: int,
    *,
    turn: Turn,
    most: int | None = None,
) -> tuple[list[R], P | None]:
    """Return the same as `slices.found_behind`, of the service's store."""
    most = MAX_LOOKED_AT if most is None else most
    return await found_behind(
        services.world, services.store, scan, start, limit, most=most, held=turn.held, page=turn.page
    )


async def counted(services: Services, scan: Scan[P, R | None], start: P, turn: Turn) -> TotalBody:
    """Return how many rows a list has, up to `MAX_LOOKED_AT`; no more of them are looked at, and none is kept."""
    found, resume = await read_behind(services, _made(scan, lambda _: True), start, MAX_LOOKED_AT, turn=turn)
    return TotalBody(count=len(found), is_exact=resume is None)


def encoded(scan: Scan[P, T | None], make: Callable[[T], msgspec.Struct]) -> Scan[P, Any]:
    """Return the scan of the same rows as `make` makes them, encoded as JSON (`msgspec.Raw`)."""
    return _made(scan, lambda row: encoded_row(make(row)))


def _made(scan: Scan[P, T | None], make: Callable[[T], Any]) -> Scan[P, Any]:
    def rows(snapshot: Snapshot, position: P, count: int) -> Iterator[tuple[P, Any]]:
        for behind, row in scan(snapshot, position, count):
            yield behind, None if row is None else make(row)

    return rows


def encoded_row(row: msgspec.Struct) -> Any:
    """Return a row as JSON that a body takes in its place."""
    return msgspec.Raw(_encoder.encode(row))


def note_unreadable(services: Services, doing: str, number: int, found: Iterable[object]) -> None:
    """Count the events of organization `number` among `found` that cannot be read (decisions 17.5)."""
    for each in found:
        if isinstance(each, UnreadableEvent):
            services.corrupt.note(doing, number, each.because)
