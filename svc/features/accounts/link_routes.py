"""What links accounts and visitors, step by step from one of them, and whom a search finds by a part of a name.

Nothing keeps these links: they come from the newest events of each, of which a bounded number is looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from functools import partial
from itertools import islice
from typing import Annotated, Final, Literal, NamedTuple, cast
from uuid import UUID

import msgspec
import trio
from msgspec import UNSET, Meta, UnsetType

from svc.features.accounts.queries import is_subject_id
from svc.features.accounts.routes import events_of_subject
from svc.features.events.console_bodies import InEnvironment
from svc.features.events.routes import find_events, find_positions
from svc.features.lists.lists import canonical
from svc.http.route import Call, Route, Services, console_route
from svc.identify.events.event_row import EventBody, event_row
from svc.identify.events.listing import EVERYTHING, MAX_TAG_LENGTH, Filters, Listing
from svc.identify.model import Subject
from svc.identify.queries.events import EventMatch, EventPosition, naming, read, readable_event
from svc.identify.queries.visitors import visitors_like
from svc.identify.records import Event
from svc.identify.velocity.counts import ACCOUNT_ID, kind_of
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import AccountId, Timestamp, VisitorId, about
from svc.kernel.values.ids import end_of_now
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work.slices import in_slices, in_turns

MAX_NODES: Final = 100
MAX_LINKS: Final = 300
EVENTS_IN_THE_MIDDLE: Final = 1000
EVENTS_AROUND: Final = 100
"""The newest of each further account or visitor."""
MAX_STEPS: Final = 4
"""From a visitor or an account to one that it was seen with: of an account, the accounts of the visitors of its
visitors' accounts. What is so far away is shown, and leads no farther.
"""
MAX_EVENTS: Final = 4000
"""Events that are looked at for all of them together."""
MAX_FOUND: Final = 10
"""Visitors, or accounts, that a search finds."""
LEAST_LENGTH: Final = 3
"""Of the beginning of an id."""
EVENTS_SEARCHED: Final = 2000
"""The newest of an environment, among whose accounts one is looked for by its beginning."""


class LinksQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of links. Exactly one of `visitor` and `account` is sent."""

    environment: InEnvironment = "production"
    visitor: Annotated[VisitorId, about("The visitor in the middle.")] | UnsetType = UNSET
    account: Annotated[AccountId, Meta(max_length=256), about("The account in the middle.")] | UnsetType = UNSET


class NodeBody(msgspec.Struct, frozen=True, kw_only=True):
    """An account or a visitor."""

    kind: Annotated[Literal["visitor", "account"], about("What it is.", "account")]
    id: Annotated[str, about("Its id.", "user-8271")]
    steps: Annotated[int, about("How far from the one in the middle: 0 to 4.", 1)]


class LinkBody(msgspec.Struct, frozen=True, kw_only=True):
    """A visitor that acted for an account."""

    visitor_id: VisitorId
    account_id: AccountId
    events: Annotated[int, about("How often, of the events that were looked at.", 3)]
    first_seen_at: Annotated[Timestamp, about("When first, of these.")]
    last_seen_at: Annotated[Timestamp, about("When last.")]


class LinksBody(msgspec.Struct, frozen=True, kw_only=True):
    """Accounts and visitors that are connected with one of them."""

    nodes: Annotated[tuple[NodeBody, ...], about("The one in the middle first, then by steps.")]
    links: Annotated[tuple[LinkBody, ...], about("Those of the first step first, the latest first.")]
    is_complete: Annotated[bool, about("`false` where there are more than are shown.", True)]


class _Pair(NamedTuple):
    visitor_id: str
    account_id: str


class _Links:
    """The links found so far."""

    def __init__(self, kind: Subject, subject_id: str) -> None:
        self.steps: dict[tuple[Subject, str], int] = {(kind, subject_id): 0}
        self.times: dict[_Pair, list[int]] = {}
        self.is_complete = True

    def note(self, of: Subject, events: Sequence[EventMatch], steps: int) -> None:
        """Add links of an account or a visitor to those that its events name, which are `steps` away."""
        found: dict[_Pair, list[int]] = {}
        for _, event in events:
            pair = _pair(event)
            if pair is not None:
                found.setdefault(pair, []).append(event.occurred_at_ms)
        for pair, times in found.items():
            other: tuple[Subject, str]
            other = ("visitor", pair.visitor_id) if of == "account" else ("account", pair.account_id)
            if other not in self.steps and len(self.steps) >= MAX_NODES:
                self.is_complete = False
                continue
            if pair not in self.times and len(self.times) >= MAX_LINKS:
                self.is_complete = False
                continue
            self.steps.setdefault(other, steps)
            self.times[pair] = sorted({*self.times.get(pair, ()), *times})


def _pair(event: Event) -> _Pair | None:
    """Return the visitor and the account of an event; `None` where it lacks an account or is not identifiable."""
    if event.account_id is None or not event.verdict.identifiable:
        return None
    return _Pair(event.verdict.visitor_id, event.account_id)


async def read_links(services: Services, call: Call) -> LinksBody | Refusal:
    """`GET /console/api/links`: the ring around a visitor or an account, step by step, the nearest first. `422`
    (`required`, `invalid_value`).
    """
    query: LinksQuery = call.query
    if (query.visitor is UNSET) == (query.account is UNSET):
        return invalid("visitor", "required" if query.visitor is UNSET else "invalid_value", "query")
    listed: Subject = "account" if query.visitor is UNSET else "visitor"
    subject_id = cast("str", query.account if query.visitor is UNSET else query.visitor)
    if not is_subject_id(listed, subject_id):
        return invalid(listed, "invalid_value", "query")
    read = partial(events_of_subject, services, call, kind_of(query.environment))
    found = _Links(listed, subject_id)
    looked_at, waiting = 0, deque[tuple[Subject, str]]([(listed, subject_id)])
    while waiting:
        kind, each = waiting.popleft()
        steps = found.steps[kind, each] + 1
        if steps > MAX_STEPS:
            continue
        if looked_at >= MAX_EVENTS:
            found.is_complete = False
            break
        known = len(found.steps)
        seen = await read(kind, each, limit=EVENTS_IN_THE_MIDDLE if steps == 1 else EVENTS_AROUND)
        looked_at += len(seen)
        found.note(kind, seen, steps)
        waiting.extend(islice(found.steps, known, None))
        await trio.lowlevel.checkpoint()
    return LinksBody(
        nodes=tuple(NodeBody(kind=kind, id=each, steps=steps) for (kind, each), steps in found.steps.items()),
        links=tuple(
            LinkBody(
                visitor_id=pair.visitor_id,
                account_id=pair.account_id,
                events=len(times),
                first_seen_at=timestamp(times[0]),
                last_seen_at=timestamp(times[-1]),
            )
            for pair, times in found.times.items()
        ),
        is_complete=found.is_complete,
    )


class SearchQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of a search."""

    q: Annotated[str, Meta(min_length=1, max_length=MAX_TAG_LENGTH), about("What is looked for.", "user-8271")]
    environment: InEnvironment = "production"


class SearchBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a search has found: by the whole of a name or address, and by the beginning of an id."""

    event: Annotated[EventBody, about("The event with this request id, of any environment.")] | UnsetType = UNSET
    visitors: Annotated[
        tuple[VisitorId, ...], about("Visitors of any environment whose ids begin so, at most 10; from 3 characters.")
    ] = ()
    accounts: Annotated[
        tuple[AccountId, ...],
        about("The account of this id, and up to 10 of the newest 2,000 events whose ids begin so."),
    ] = ()
    tag: Annotated[bool, about("Whether an event has it as its tag.", False)] = False
    network: (
        Annotated[str, about("The address or network that it says, in its one spelling.", "95.194.0.0/16")] | UnsetType
    ) = UNSET


async def search(services: Services, call: Call) -> SearchBody:
    """`GET /console/api/search`: what somebody may mean by a text. `422 validation_error`."""
    query: SearchQuery = call.query
    number = call.organization.number
    text = query.q.strip().removesuffix("…")
    event = await services.store.query(
        partial(_event, number=number, text=text, now_ms=call.at_ms, retention_ms=services.event_retention_ms)
    )
    visitors: list[str] = []
    if len(text) >= LEAST_LENGTH and text.isascii() and text.isalnum():
        visitors = await services.store.query(partial(visitors_like, number=number, beginning=text, limit=MAX_FOUND))
    filters = Filters(tag=query.q.strip())
    listing = Listing(call.at_ms - services.event_retention_ms, end_of_now(call.at_ms), filters, limit=1)
    tagged, _ = await find_events(services, call.turn, number, [query.environment], listing)
    network = canonical("address", text)
    return SearchBody(
        event=event,
        visitors=tuple(visitors),
        accounts=tuple(await _accounts(services, call, number, query, text)),
        tag=bool(tagged),
        network=UNSET if network is None else network,
    )


def _event(snapshot: Snapshot, number: int, text: str, now_ms: int, retention_ms: int) -> EventBody | UnsetType:
    try:
        request_id = UUID(text)
    except ValueError:
        return UNSET
    event = readable_event(snapshot, number, request_id, now_ms, retention_ms)
    return UNSET if event is None else event_row(event, request_id)


async def _accounts(services: Services, call: Call, number: int, query: SearchQuery, text: str) -> list[str]:
    if not ACCOUNT_ID.fullmatch(text):
        return []
    kind = kind_of(query.environment)
    exact = await events_of_subject(services, call, kind, "account", text, limit=1)
    found = {text: None} if exact else {}
    if len(text) < LEAST_LENGTH:
        return list(found)
    most = len(found) + MAX_FOUND
    listing = Listing(call.at_ms - services.event_retention_ms, end_of_now(call.at_ms), limit=EVENTS_SEARCHED)
    places, _ = await find_positions(services, call.turn, number, [query.environment], listing)
    naming = partial(_account_ids, text=text)
    slices = in_slices(services.world, services.store, places, naming)
    async with aclosing(in_turns(slices, call.turn.held)) as parts:
        async for some in parts:
            found |= dict.fromkeys(account_id for account_id in some if account_id is not None)
            if len(found) >= most:
                break
    return list(islice(found, most))


def _account_ids(snapshot: Snapshot, places: Sequence[EventPosition], text: str) -> Iterator[str | None]:
    """Yield each event's account id if it begins with the text, else `None`."""
    found = read(snapshot, naming(snapshot, places, text), EVERYTHING)
    named = {match.request_id.bytes: match.event.account_id for match in found}
    for place in places:
        account_id = named.get(place.request_id)
        yield account_id if account_id is not None and account_id.startswith(text) else None


ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="getConsoleLinks",
        path="/links",
        summary="Read what links accounts and visitors",
        description=(
            f"In {MAX_STEPS} steps, each from an account to its visitors or from a visitor to its accounts: from the "
            f"newest {EVENTS_IN_THE_MIDDLE:,} events of the one in the middle, and the newest {EVENTS_AROUND} of each "
            f"that is linked to it, {MAX_EVENTS:,} in all, of the environments that are counted together. Visitors "
            "that are not identifiable are left out."
        ),
        handler=read_links,
        query=LinksQuery,
    ),
    console_route(
        operation_id="searchConsole",
        path="/search",
        summary="Search by an id, a name or an address",
        description="Nothing is looked for in the middle of an id.",
        handler=search,
        query=SearchQuery,
    ),
)
