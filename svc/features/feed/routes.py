"""The feed of events: `GET /events?order=oldest`, each event once for a reader that stops and goes on (ADR 130)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from svc.features.feed import queries as feeds
from svc.features.feed.feed import Feed, feed_cursor, read_feed
from svc.features.feed.jobs import close
from svc.features.feed.pages import FeedPages
from svc.http.change import change
from svc.http.route import Call, Services
from svc.http.rows import note_unreadable, read_and_encoded
from svc.http.schema import EventsAnswer
from svc.identify.events.event_row import EventBody, UnreadableEventBody
from svc.identify.events.listing import Asked, CursorScope
from svc.identify.index.queries import Scope
from svc.identify.queries.events import listed_row
from svc.kernel.values.environments import ENVIRONMENTS, Environment
from svc.kernel.values.refusals import Refusal


async def page_of_feed(
    services: Services, call: Call, asked: Asked, environment: Environment
) -> EventsAnswer | Refusal:
    """Return a page of the feed of the caller's organization, oldest first; it always has a cursor to go on with. `422
    invalid_window`, `422 validation_error`.
    """
    number = call.organization.number
    cursors = CursorScope(services.webhooks.cursors_key, number, environment)
    feed = read_feed(asked, call.at_ms, cursors, services.event_retention_ms)
    if isinstance(feed, Refusal):
        return feed
    scope = Scope(number, ENVIRONMENTS.index(environment))

    async def close_to(to_ms: int) -> int | None:
        closed_ms = await change(services, call, partial(close, scope=scope, to_ms=to_ms))
        return None if isinstance(closed_ms, Refusal) else closed_ms

    pages = FeedPages(services.store, scope, close_to, call.turn.held)
    read = partial(_rows, services, number, feed)
    page = await pages.page(feed, call.at_ms, lambda places: read_and_encoded(places, read))
    cursor = feed_cursor(page.behind, cursors)
    return EventsAnswer(
        rows=tuple(page.rows), page=1, page_size=asked.limit, next_cursor=cursor, has_more=page.has_more
    )


async def _rows(
    services: Services, number: int, feed: Feed, wanted: Sequence[feeds.FeedPosition]
) -> list[EventBody | UnreadableEventBody]:
    read = partial(feeds.read, wanted=wanted, filters=feed.filters, oldest_ms=feed.oldest_ms)
    found = [each for _, each in await services.store.query(read)]
    note_unreadable(services, "listEvents", number, found)
    return [listed_row(each) for each in found]
