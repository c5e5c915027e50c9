"""Pages of a feed, out of a store that others write to: closing it and reading it, in the order that gives nothing
twice and leaves nothing out (ADR 130).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from svc.features.feed import jobs as feeds
from svc.features.feed.feed import Ahead, Feed
from svc.features.feed.jobs import FeedPosition
from svc.identify.events.listing import Position
from svc.identify.index.queries import Scope
from svc.identify.queries.events import MAX_LOOKS
from svc.kernel.store.store import Store
from svc.kernel.work.slices import Held, found_behind
from svc.world import World

T = TypeVar("T")
R = TypeVar("R")

MAX_READS = 20
"""Reads for a page until it is full: the filters may leave out many of the late events."""

Close = Callable[[int], Awaitable[int | None]]
"""Closes the feed up to a time (`jobs.close`); `None` where the store takes nothing now."""


class Source(NamedTuple, Generic[T]):
    """What a feed has, by its positions (`T`)."""

    ahead: Callable[..., Ahead]
    """As `jobs.ahead`."""
    scan: Callable[..., Iterator[tuple[Position, T | None]]]
    """As `jobs.scan_positions`."""


FEED: Source[FeedPosition] = Source(feeds.ahead, feeds.scan_positions)


class FeedPage(NamedTuple, Generic[R]):
    """A page of a feed, and the position after which the next page begins."""

    rows: list[R]
    behind: Position
    has_more: bool
    """Whether it ended for its size, or for what was looked at, and not because there is nothing more now."""


class FeedPages(Generic[T]):
    """Reads a feed of one environment. `close` closes it up to a time; `in_turn()` is a context that is entered for a
    long search.
    """

    def __init__(
        self,
        world: World,
        store: Store,
        scope: Scope,
        source: Source[T],
        close: Close,
        in_turn: Held = nullcontext,
        in_page: Held = nullcontext,
    ) -> None:
        self._world, self._store, self._scope, self._source = world, store, scope, source
        self._close, self._in_turn, self._in_page = close, in_turn, in_page

    async def page(self, feed: Feed, now_ms: int, read: Callable[[Sequence[T]], Awaitable[Sequence[R]]]) -> FeedPage[R]:
        """Return the next page, of at most `feed.limit` rows. `now_ms`: the time, or a little earlier; `read`:
        returns what `jobs.read` returns for some positions. If that is fewer rows than asked for, more positions are
        read.
        """
        found: list[R] = []
        reads, left = 0, feed
        while True:
            places, behind, has_more = await self._places(left, now_ms)
            found += await read(places)
            reads += 1
            if not has_more or len(places) < left.limit or len(found) == feed.limit or reads == MAX_READS:
                return FeedPage(found, behind, has_more)
            left = left._replace(after=behind, limit=feed.limit - len(found))

    async def _places(self, feed: Feed, now_ms: int) -> FeedPage[T]:
        """Find positions in the closed part first; only a reader that reaches its end closes more."""
        closed_ms = await self._store.query(partial(feeds.closed_to_ms, scope=self._scope))
        rows, resume = await self._find(feed, feed.start, closed_ms, feed.limit)
        at_end = resume is None and len(rows) < feed.limit
        if at_end:
            behind = max(feed.start, feed.at_end(closed_ms))
            closed_ms = await self._closed(now_ms, feed.after)
            more, resume = await self._find(feed, behind, closed_ms, feed.limit - len(rows))
            rows += more
        return FeedPage(rows, resume or feed.at_end(closed_ms), not at_end or resume is not None)

    async def _closed(self, now_ms: int, after: Position) -> int:
        """Close the feed as far as is allowed now, and return up to when it is closed."""
        ahead = await self._store.query(partial(self._source.ahead, scope=self._scope, now_ms=now_ms))
        to_ms = ahead.closing_ms(now_ms, after.arrival_ms)
        closed_ms = to_ms if to_ms == ahead.closed_to_ms else await self._close(to_ms)
        return ahead.closed_to_ms if closed_ms is None else closed_ms

    async def _find(self, feed: Feed, after: Position, to_ms: int, limit: int) -> tuple[list[T], Position | None]:
        scan = partial(self._source.scan, scope=self._scope, filters=feed.filters, to_ms=to_ms)
        return await found_behind(
            self._world, self._store, scan, after, limit, most=MAX_LOOKS + limit, held=self._in_turn, page=self._in_page
        )
