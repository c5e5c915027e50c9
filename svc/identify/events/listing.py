"""Which events a list shows: the window in time, the filters and the page (interface 4.2, decisions 7.1).

What may live here: what the query says in, a `Listing` or a `Refusal` out; and the order of events, which their changes
share (decisions 19).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from svc.identify.model import LABELS, RULE_ACTIONS, Level, Subject, VisitorKind
from svc.identify.records import Event
from svc.identify.scoring.signals import CATALOG, GROUPS
from svc.identify.velocity.counts import ACCOUNT_ID, ACTION
from svc.kernel.net.addresses import parse_ip
from svc.kernel.values.encodings import Cursors, bound_to
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import DAY_MS, end_of_now, is_id, is_visitor_id
from svc.kernel.values.refusals import Detail, Issue, Refusal, invalid
from svc.kernel.values.timestamps import read_timestamp

DEFAULT_WINDOW_MS = 24 * 3600 * 1000
MAX_WINDOW_MS = 30 * DAY_MS
"""Also where events are kept for longer (decisions 16.1)."""
MAX_OFFSET = 10_000
"""Events that may come before a page."""
MAX_TAG_LENGTH = 1024
"""Characters (decisions 3.1)."""
LEVELS: tuple[Level, ...] = get_args(Level)
KINDS: tuple[VisitorKind, ...] = get_args(VisitorKind)
Facet = Literal[
    "tag",
    "ip_address",
    "country",
    "signal",
    "kind",
    "account_id",
    "action",
    "asn",
    "decision",
    "label",
    "rule",
    "shadow",
]
"""What events are found by beside visitor and level."""
FACETS: tuple[Facet, ...] = get_args(Facet)
"""Their indexes are stored in keys: append, never move."""

_ASN = re.compile(r"[0-9]{1,10}", re.ASCII)
_COUNTRY = re.compile(r"[A-Za-z]{2}", re.ASCII)
_CURSOR = struct.Struct(">qIQ16s")
"""Start of the window, offset, position."""


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Which events of a window are meant: those that have all of these values. `None` = any."""

    level: Level | None = None
    """Any includes those that were not scored."""
    visitor_id: str | None = None
    tag: str | None = None
    ip_address: str | None = None
    """In the spelling of `parse_ip`, as events have it."""
    country: str | None = None
    """Two upper-case letters."""
    signal: str | None = None
    """One that fired, by its name. Events stored by 0.1.0 name none."""
    kind: str | None = None
    """A `VisitorKind`."""
    account_id: str | None = None
    action: str | None = None
    asn: str | None = None
    """Digits."""
    decision: str | None = None
    """The action that a rule decided."""
    label: str | None = None
    """What the event turned out to be."""
    rule: str | None = None
    """Id of the rule that decided it."""
    shadow: str | None = None
    """Id of a rule that matched it in shadow mode."""
    group: str | None = None
    """Of signals, of which at least one fired. No value of the index: it stands for the names of its signals."""

    def matches(self, event: Event) -> bool:
        """Return whether the event has every value that is asked for."""
        verdict = event.verdict
        return (
            self.level in (None, verdict.suspect_level)
            and self.visitor_id in (None, verdict.visitor_id)
            and (self.group is None or any(fired.signal in self.signals_of_group for fired in verdict.signals or ()))
            and all(value in values_of(event, facet) for facet, value in self.facets())
        )

    def facets(self) -> list[tuple[Facet, str]]:
        """Return (facet, value) of the facets that are filtered by, in the order of `FACETS`."""
        return [(facet, value) for facet in FACETS if (value := getattr(self, facet)) is not None]

    @property
    def signals_of_group(self) -> tuple[str, ...]:
        """Return the names of the signals of the group that is filtered by; none without one."""
        return GROUPS.get(self.group or "", ())


EVERYTHING = Filters()


def filters_of(subject: Subject, subject_id: str) -> Filters:
    """Return the filters that find the events of an account or a visitor."""
    return Filters(account_id=subject_id) if subject == "account" else Filters(visitor_id=subject_id)


def values_of(event: Event, facet: Facet) -> tuple[str, ...]:
    """Return the values of one facet that an event has: one, or none; of signals and shadows, any number."""
    match facet:
        case "tag":
            value = event.tag
        case "ip_address":
            value = event.ip_address
        case "country":
            value = event.country_code
        case "kind":
            value = event.visitor_kind
        case "decision":
            value = None if event.verdict.decision is None else event.verdict.decision.action
        case "rule":
            value = None if event.verdict.decision is None else event.verdict.decision.rule_id
        case "account_id" | "action" | "asn" | "label":
            value = getattr(event, facet)
        case "signal":
            return tuple(fired.signal for fired in event.verdict.signals or ())
        case "shadow":
            return tuple(match.rule_id for match in event.shadow)
    return () if value is None else (value,)


class Position(NamedTuple):
    """A position in the order of events: that of one event, or of where one would stand. Larger is newer."""

    arrival_ms: int
    request_id: bytes
    """16 bytes."""


class Resume(NamedTuple):
    """Where the page after one begins."""

    after: Position
    offset: int = 0
    """Events that are still to be passed over: where a page ended before it reached its first event."""


class Listing(NamedTuple):
    """A checked request for one page of events."""

    from_ms: int
    """Of arrival, inclusive."""
    to_ms: int
    """Exclusive."""
    filters: Filters = EVERYTHING
    offset: int = 0
    """Events before the page."""
    limit: int = 10
    after: Position | None = None
    """The page begins with the next older event; `None` = with the newest of the window."""

    @property
    def start(self) -> Resume:
        """Return where the page begins."""
        return Resume(self.after or Position(self.to_ms, bytes(16)), self.offset)


class Asked(NamedTuple):
    """The parameters of a list of events as they were sent, their values not checked yet."""

    start: str | None = None
    end: str | None = None
    page: int | None = None
    limit: int = 10
    visitor: str | None = None
    level: str | None = None
    tag: str | None = None
    ip_address: str | None = None
    country: str | None = None
    signal: str | None = None
    kind: str | None = None
    account_id: str | None = None
    action: str | None = None
    asn: str | None = None
    decision: str | None = None
    label: str | None = None
    rule: str | None = None
    shadow: bool = False
    """Asks for what `rule` matched in shadow mode, not for what it decided."""
    group: str | None = None
    cursor: str | None = None
    order: str | None = None
    """`newest` or `oldest` first; `oldest` asks for the feed (`features/feed/feed.py`)."""
    after: str | None = None
    """Cursor of the feed."""


class CursorScope(NamedTuple):
    """Whose cursors are written and read: one of another organization or environment is not valid here."""

    key: bytes
    """As of `cursors_key`."""
    organization: int
    environment: Environment


def read_listing(asked: Asked, now_ms: int, scope: CursorScope, retention_ms: int) -> Listing | Refusal:
    """Check the parameters of a list of events against the window and the limits (interface 4.2): `422 invalid_window`
    with the parameter that is wrong, `422 validation_error` for the filters of decisions 7.1 and for the cursor.

    A cursor goes on in the window of the page that it came with. `retention_ms`: for how long events are readable.
    """
    for name in ("order", "after"):
        if getattr(asked, name) not in (None, "newest"):
            return invalid(name, "invalid_value", "query")
    if asked.cursor is not None:
        return _continued(asked, asked.cursor, now_ms - retention_ms, scope)
    found = read_search(asked, now_ms, retention_ms)
    if isinstance(found, Refusal):
        return found
    offset = ((asked.page or 1) - 1) * asked.limit
    return _invalid("page", "out_of_range") if offset > MAX_OFFSET else found._replace(offset=offset, limit=asked.limit)


def read_search(asked: Asked, now_ms: int, retention_ms: int) -> Listing | Refusal:
    """Return all events of the window and the filters, without a page. Refuses as `read_listing`."""
    window = read_window(asked.start, asked.end, now_ms, retention_ms)
    filters = read_filters(asked)
    if isinstance(window, Refusal):
        return window
    return filters if isinstance(filters, Refusal) else Listing(*window, filters)


def next_cursor(asked: Asked, listing: Listing, resume: Resume, scope: CursorScope) -> str:
    """Return the cursor of the page that follows. It is valid with the same window and filters alone."""
    row = _CURSOR.pack(listing.from_ms, resume.offset, *resume.after)
    return _cursors(asked, listing.filters, scope).write(row)


def _continued(asked: Asked, cursor: str, oldest_ms: int, scope: CursorScope) -> Listing | Refusal:
    filters = read_filters(asked)
    if isinstance(filters, Refusal):
        return filters
    if asked.page is not None:
        return invalid("page", "invalid_value", "query")
    row = _cursors(asked, filters, scope).read(cursor)
    if row is None:
        return invalid("cursor", "invalid_cursor", "query")
    from_ms, offset, *after = _CURSOR.unpack(row)
    from_ms, position = max(from_ms, oldest_ms), Position(*after)
    return Listing(from_ms, max(from_ms, position.arrival_ms + 1), filters, offset, asked.limit, position)


def _cursors(asked: Asked, filters: Filters, scope: CursorScope) -> Cursors:
    """Bound to the environment, the filters and the window as they were sent."""
    bound = bound_to(ENVIRONMENTS.index(scope.environment), filters, asked.start, asked.end)
    return Cursors(scope.key, "events", scope.organization, bound)


def read_filters(asked: Asked) -> Filters | Refusal:
    """Return the filters of a list, without its window; the first that is not valid is refused: `422 invalid_window`
    for visitor and level, `422 validation_error` for the others, which decisions 7.1 and 13.1 added.
    """
    if asked.shadow and asked.rule is None:
        return invalid("rule", "required", "query")
    values: dict[str, Any] = {}
    for name, read in FILTERS.items():
        text = getattr(asked, name)
        values[name] = None if text is None else read(text)
        if values[name] is None and text is not None:
            old = name in ("visitor", "level")
            return _invalid(name, "invalid_value") if old else invalid(name, "invalid_value", "query")
    if asked.shadow:
        values["shadow"] = values.pop("rule")
    return Filters(visitor_id=values.pop("visitor"), **values)


FILTERS: dict[str, Callable[[str], str | None]] = {
    "visitor": lambda text: text if is_visitor_id(text) else None,
    "level": lambda text: text if text in LEVELS else None,
    "tag": lambda text: text if len(text) <= MAX_TAG_LENGTH else None,
    "ip_address": parse_ip,
    "country": lambda text: text.upper() if _COUNTRY.fullmatch(text) else None,
    "signal": lambda text: text if text in CATALOG else None,
    "kind": lambda text: text if text in KINDS else None,
    "account_id": lambda text: text if ACCOUNT_ID.fullmatch(text) else None,
    "action": lambda text: text if ACTION.fullmatch(text) else None,
    "asn": lambda text: text if _ASN.fullmatch(text) else None,
    "decision": lambda text: text if text in RULE_ACTIONS else None,
    "label": lambda text: text if text in LABELS else None,
    "rule": lambda text: text if is_id("rul_", text) else None,
    "group": lambda text: text if text in GROUPS else None,
}
"""Parameter -> its value as events have it; `None` for one that is not valid."""


def read_window(start: str | None, end: str | None, now_ms: int, retention_ms: int) -> tuple[int, int] | Refusal:
    """Return (from, to) in Unix milliseconds: to is not in it. The default start is 24 hours before, but not before the
    oldest event that is readable.

    Without an end, what arrived in this very millisecond is readable at once, and so is what arrived at another node.
    """
    to_ms = now_ms if end is None else read_timestamp(end)
    if to_ms is None:
        return _invalid("to", "invalid_value")
    oldest_ms = now_ms - retention_ms
    from_ms = max(to_ms - DEFAULT_WINDOW_MS, oldest_ms) if start is None else read_timestamp(start)
    if from_ms is None:
        return _invalid("from", "invalid_value")
    if not oldest_ms <= from_ms < to_ms:
        return _invalid("to" if start is None else "from", "out_of_range")
    if to_ms - from_ms > MAX_WINDOW_MS:
        return _invalid("to", "out_of_range")
    return from_ms, end_of_now(now_ms) if end is None else to_ms


def _invalid(parameter: str, issue: Issue) -> Refusal:
    return Refusal("invalid_window", (Detail(parameter, issue, "query"),))


ChangeKind = Literal["updated", "erased"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
"""Their indexes are stored in keys: append, never move."""

_BEHIND_EVENTS: Final = b"\xff" * 12
"""No request id begins so, since the version of a UUIDv7 is in its seventh byte."""


def place_of_change(changed_at_ms: int, sequence: int) -> Position:
    """Return a change's place: behind the events of its millisecond (Unix ms), in the order of `sequence`."""
    return Position(changed_at_ms, _BEHIND_EVENTS + sequence.to_bytes(4))


def first_change_behind(place: Position) -> tuple[int, int]:
    """Return (`changed_at_ms`, `sequence`) of the first change that could come behind a place."""
    at_ms, tail = place
    sequence = int.from_bytes(tail[12:]) + 1 if tail.startswith(_BEHIND_EVENTS) else 0
    return (at_ms + 1, 0) if sequence >> 32 else (at_ms, sequence)
