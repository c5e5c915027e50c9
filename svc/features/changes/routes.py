"""`GET /changes`: new events, and what happens to them later, for a reader that stops and goes on (decisions 19)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from svc.features.changes import jobs as changes
from svc.features.changes.bodies import ChangesAnswer, ListChangesQuery, change_body
from svc.features.changes.jobs import Change, ChangePlace
from svc.features.feed.feed import BEGINNING, Feed, feed_cursor, read_feed_cursor
from svc.features.feed.jobs import oldest_shown_ms
from svc.features.feed.pages import Source
from svc.features.feed.routes import feed_pages
from svc.http.change import caller_of
from svc.http.listing import encoded_row, note_unreadable
from svc.http.route import Call, Route, Services
from svc.identify.events.listing import EVERYTHING, CursorScope
from svc.identify.index.queries import Scope
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import sent
from svc.kernel.work.slices import all_in_slices

CHANGES: Source[ChangePlace] = Source(changes.ahead, changes.scan_places)


async def list_changes(services: Services, call: Call) -> ChangesAnswer | Refusal:
    """`GET /changes`: a page of changes of the key's own organization and environment, oldest first. `422` for a cursor
    that is none of changes.
    """
    query: ListChangesQuery = call.query
    environment = caller_of(call).key.environment
    assert environment is not None, "only management keys have none"
    number = call.organization.number
    cursors = CursorScope(services.webhooks.cursors_key, number, environment)
    text = sent(query.after)
    after = BEGINNING if text is None else read_feed_cursor(text, cursors, "changes")
    if after is None:
        return invalid("after", "invalid_cursor", "query")
    bound = partial(oldest_shown_ms, number=number, now_ms=call.at_ms, retention_ms=services.event_retention_ms)
    feed = Feed(after, EVERYTHING, query.limit, await services.store.query(bound))
    scope = Scope(number, ENVIRONMENTS.index(environment))

    async def read(places: Sequence[ChangePlace]) -> list[Any]:
        rows = partial(_rows, scope, feed.oldest_ms)
        async with call.turn.page():
            looked = await all_in_slices(services.world, services.store, places, rows)
        found = [row for row in looked if row is not None]
        note_unreadable(services, "listChanges", number, (change.event for change, _ in found))
        return [row for _, row in found]

    page = await feed_pages(services, call, environment, CHANGES).page(feed, call.at_ms, read)
    cursor = feed_cursor(page.behind, cursors, "changes")
    return ChangesAnswer(changes=tuple(page.rows), next_cursor=cursor, has_more=page.has_more)


def _rows(
    scope: Scope, oldest_ms: int, snapshot: Snapshot, places: Sequence[ChangePlace]
) -> Iterator[tuple[Change, Any] | None]:
    for found in changes.read_each(snapshot, places, scope, oldest_ms):
        yield None if found is None else (found, encoded_row(change_body(found)))


ROUTES: tuple[Route, ...] = (
    Route(
        operation_id="listChanges",
        path="/changes",
        tag="Server API",
        summary="List changes of events",
        description=(
            "For a copy that follows the store: each event once as `event.created`, `event.updated` when its account, "
            "action, tag or label was set or removed, and `event.erased` when its visitor was erased; of the "
            "organization and environment of the key, in the order in which they were stored, each once. `event` is "
            "the event as it is when the page is read, and is left out once it is erased. Nothing comes behind a "
            "`next_cursor`, of which each page has one: go on with it as `after`, and wait a second where `has_more` "
            "is false. A change comes about two seconds after it was made, and is kept for as long as events are, "
            "from when it was made: start a new copy if its cursor is older: it has missed changes, erasures too. "
            "That events grow too old is no change. Cursors are not those of `GET /events`."
        ),
        handler=list_changes,
        kinds=("secret",),
        query=ListChangesQuery,
    ),
)
