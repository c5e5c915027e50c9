"""Bodies and queries of the console about events and visitors. As in `svc.http.schema`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from svc.features.events.archived_document import EventDetailBody
from svc.features.webhooks.bodies import WebhookDeliveryBody
from svc.http.schema import EventsWindowQuery, FiltersQuery, Limit, WindowEnd
from svc.identify.events.event_row import EventBody
from svc.identify.events.listing import MAX_TAG_LENGTH
from svc.identify.matching import Visitor
from svc.identify.model import AnonymityNetwork
from svc.identify.queries.events import EventMatch
from svc.identify.queries.visitors import Activity
from svc.identify.records import Event
from svc.kernel.values.fields import (
    A_KEY_ID,
    TIME_FORM,
    Cursor,
    Environment,
    PageCursor,
    RequestId,
    Tag,
    Timestamp,
    VisitorId,
    about,
    open_to,
)
from svc.kernel.values.struct_fields import body_of
from svc.kernel.values.timestamps import timestamp

InEnvironment = Annotated[Environment, about("Environment whose events are meant.", "production")]


class EventKeyBody(msgspec.Struct, frozen=True, kw_only=True):
    """The key with which an event came."""

    id: Annotated[str, about("Id of the key whose platforms, origins and weights applied.", A_KEY_ID)]
    name: Annotated[str | UnsetType, about("A name for people; left out where the key is gone.", "checkout")] = UNSET
    last4: Annotated[str | UnsetType, about("Last four characters of the secret.", "x7Qe")] = UNSET


class ConsoleEventBody(msgspec.Struct, frozen=True, kw_only=True):
    """One event, and what surrounds it."""

    event: Annotated[EventDetailBody, about("The event, as the server API shows it.")]
    key: Annotated[EventKeyBody, about("The key with which it came.")]
    previous: Annotated[RequestId, about("The visitor's event before it, in the same environment.")] | UnsetType = UNSET
    next: Annotated[RequestId, about("The visitor's event after it, in the same environment.")] | UnsetType = UNSET
    deliveries: Annotated[
        tuple[WebhookDeliveryBody, ...], about("The last 100 attempts to deliver webhooks about it, newest first.")
    ]


class ConsoleEventsQuery(EventsWindowQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the events of an environment."""

    environment: InEnvironment = "production"


class CountEventsQuery(FiltersQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of how many events there are. Window and filters are checked by `svc.identify.events.listing`."""

    environment: InEnvironment = "production"
    start: Annotated[
        str | UnsetType,
        about("Start of the window; 24 hours before its end when left out.", "2026-01-05T09:00:00Z", form=TIME_FORM),
    ] = msgspec.field(default=UNSET, name="from")
    end: WindowEnd = msgspec.field(default=UNSET, name="to")


class ExportEventsQuery(CountEventsQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of a file of events."""

    format: Annotated[Literal["csv", "jsonl"], about("CSV with a fixed list of columns, or JSON lines.", "csv")] = "csv"


class VisitorsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the visitors. The filters are checked by `svc.features.visitors.routes`."""

    environment: Annotated[Environment, about("Only visitors of this environment.", "production")] | UnsetType = UNSET
    tag: (
        Annotated[str, about("Only visitors seen with this tag.", "order 1234", form={"maxLength": MAX_TAG_LENGTH})]
        | UnsetType
    ) = UNSET
    ip_address: Annotated[str, about("Only visitors seen at this address.", "81.2.69.160")] | UnsetType = UNSET
    limit: Limit = 50
    cursor: PageCursor | UnsetType = UNSET


class VisitorQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of one visitor."""

    environment: InEnvironment = "production"


class VisitorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One visitor of a list."""

    visitor_id: VisitorId
    first_seen: Annotated[Timestamp, about("When the organization first saw it, in any environment, to the second.")]
    last_seen: Annotated[Timestamp, about("When it was last seen, in any environment.")]
    events: Annotated[int, about("Its events that are kept, in all environments.", 12)]
    matching_events: (
        Annotated[int, about("With a tag or an address: its events among the newest 500 with that.", 3)] | UnsetType
    ) = UNSET


class VisitorsBody(msgspec.Struct, frozen=True):
    """A page of visitors."""

    visitors: Annotated[
        tuple[VisitorRow, ...], about("The most recently created first; with a filter in the order of their ids.")
    ]
    next_cursor: Annotated[Cursor, about("For the next page; left out on the last one.")] | UnsetType = UNSET


class TagRow(msgspec.Struct, frozen=True, kw_only=True):
    """A tag that a visitor was seen with."""

    tag: Tag
    first_seen: Annotated[Timestamp, about("When first.")]
    last_seen: Annotated[Timestamp, about("When last.")]
    events: Annotated[int, about("How often.", 3)]


class AddressRow(msgspec.Struct, frozen=True, kw_only=True):
    """An address that a visitor was seen at, as it was known when it was last used."""

    ip_address: Annotated[str, about("The address.", "81.2.69.160")]
    country_code: Annotated[str | UnsetType, about("ISO 3166-1 alpha-2.", "GB")] = UNSET
    asn: Annotated[str | UnsetType, about("Number of the autonomous system.", "20712")] = UNSET
    asn_name: Annotated[str | UnsetType, about("Name of the network.", "Andrews & Arnold Ltd")] = UNSET
    anonymity_network: Annotated[
        str | UnsetType, about("Left out for an ordinary connection.", "vpn", form=open_to(*get_args(AnonymityNetwork)))
    ] = UNSET
    first_seen: Annotated[Timestamp, about("When first.")]
    last_seen: Annotated[Timestamp, about("When last.")]
    events: Annotated[int, about("How often.", 3)]


class VisitBody(EventBody, frozen=True, kw_only=True):
    """An event of a visitor's timeline."""

    changes: Annotated[
        tuple[str, ...] | UnsetType,
        about(
            "What differed from the visitor's last report; left out for a new visitor and without a document.",
            ["browser_version"],
        ),
    ] = UNSET


class VisitorBody(msgspec.Struct, frozen=True, kw_only=True):
    """One visitor."""

    visitor_id: VisitorId
    first_seen: Annotated[Timestamp, about("When the organization first saw it, in any environment, to the second.")]
    last_seen: Annotated[Timestamp, about("When it was last seen, in any environment.")]
    event_count: Annotated[int, about("Its events that are kept, in all environments.", 12)]
    environment_event_count: Annotated[int, about("Those of them in the environment.", 12)]
    identifiable: Annotated[
        bool, about("`false` for one that cannot be recognized: what is here is what its one event says.", True)
    ]
    tags: Annotated[tuple[TagRow, ...], about("Those of its newest 200 events, the latest first, at most 50.")]
    addresses: Annotated[tuple[AddressRow, ...], about("Those of its newest 200 events, the latest first.")]
    events: Annotated[tuple[VisitBody, ...], about("Its newest 50 events, newest first.")]
    next_cursor: (
        Annotated[Cursor, about("For the events behind them: of the list of events with `visitor` alone.")] | UnsetType
    ) = UNSET


def tag_rows(found: Iterable[EventMatch]) -> list[TagRow]:
    """Return the tags of these events, which are newest first; the tag that came last is the first."""
    return [TagRow(tag=tag, **_span(used)) for tag, used in _grouped(found, "tag").items()]


def address_rows(found: Iterable[EventMatch]) -> list[AddressRow]:
    """Return the addresses of these events, which are newest first; the address that came last is the first."""
    return [body_of(AddressRow, used[0], **_span(used)) for used in _grouped(found, "ip_address").values()]


def seen(record: Visitor | None, activity: Activity) -> dict[str, str]:
    """Return `first_seen` (to the second) and `last_seen` of a visitor by its record, which is `None` if it cannot be
    recognized, and its events in all environments; nothing if it has neither.
    """
    firsts = [] if activity.first_ms is None else [activity.first_ms // 1000]
    last_ms = activity.last_ms
    if record is not None:
        firsts.append(record.first_seen_s)
        last_ms = record.last_seen_s * 1000 if last_ms is None else last_ms
    return {} if last_ms is None else {"first_seen": timestamp(1000 * min(firsts)), "last_seen": timestamp(last_ms)}


def _grouped(found: Iterable[EventMatch], name: str) -> dict[str, list[Event]]:
    """Group events by the value of a field; those without one are left out."""
    groups: dict[str, list[Event]] = {}
    for _, event in found:
        value = getattr(event, name)
        if value is not None:
            groups.setdefault(value, []).append(event)
    return groups


def _span(used: Sequence[Event]) -> dict[str, Any]:
    first, last = used[-1], used[0]
    return {
        "first_seen": timestamp(first.occurred_at_ms),
        "last_seen": timestamp(last.occurred_at_ms),
        "events": len(used),
    }
