"""The feed of events: `GET /events?order=oldest`, each event once for a reader that stops and goes on (ADR 130)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from svc.features.feed import jobs as feeds
from svc.features.feed.feed import Feed, feed_cursor, read_feed
from svc.features.feed.jobs import close
from svc.features.feed.pages import FEED, FeedPages, Source
from svc.http.change import change
from svc.http.listing import encoded_row, note_unreadable
from svc.http.route import Call, Services
from svc.http.schema import EventsAnswer
from svc.identify.events.listing import Asked, CursorScope
from svc.identify.index.queries import Scope
from svc.identify.queries.events import EventMatch, UnreadableEvent, listed_row
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.refusals import Refusal
from svc.kernel.work.slices import all_in_slices

T = TypeVar("T")


async def page_of_feed(
    services: Services, call: Call, asked: Asked, environment: Environment
) -> EventsAnswer | Refusal:
    """Return a page of the feed of the caller's organization, oldest first; it always has a cursor to go on with. `422
    invalid_window`, `422 validation_error`.
    """
    number = call.organization.number
    cursors = CursorScope(services.webhooks.cursors_key, number, environment)
    bound = partial(feeds.oldest_shown_ms, number=number, now_ms=call.at_ms, retention_ms=services.event_retention_ms)
    feed = read_feed(asked, call.at_ms, cursors, await services.store.query(bound))
    if isinstance(feed, Refusal):
        return feed

    async def read(places: Sequence[feeds.FeedPosition]) -> list[Any]:
        async with call.turn.page():
            found = await all_in_slices(services.world, services.store, places, partial(_rows, feed))
        shown = [row for row in found if row is not None]
        note_unreadable(services, "listEvents", number, (each for each, _ in shown))
        return [row for _, row in shown]

    page = await feed_pages(services, call, environment, FEED).page(feed, call.at_ms, read)
    cursor = feed_cursor(page.behind, cursors)
    return EventsAnswer(
        rows=tuple(page.rows), page=1, page_size=asked.limit, next_cursor=cursor, has_more=page.has_more
    )


def feed_pages(services: Services, call: Call, environment: Environment, source: Source[T]) -> FeedPages[T]:
    """Return the pages of a feed of the caller's organization, which is closed by a job of the request."""
    scope = Scope(call.organization.number, ENVIRONMENTS.index(environment))

    async def close_to(to_ms: int) -> int | None:
        closed_ms = await change(services, call, partial(close, scope=scope, to_ms=to_ms))
        return None if isinstance(closed_ms, Refusal) else closed_ms

    return FeedPages(services.world, services.store, scope, source, close_to, call.turn.held, call.turn.page)


def _rows(
    feed: Feed, snapshot: Snapshot, places: Sequence[feeds.FeedPosition]
) -> Iterator[tuple[EventMatch | UnreadableEvent, Any] | None]:
    for found in feeds.read_each(snapshot, places, feed.filters, feed.oldest_ms):
        yield None if found is None else (found[1], encoded_row(listed_row(found[1])))
