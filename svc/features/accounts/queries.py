"""Read queries about accounts and visitors in the order in which they were last seen (decisions 11.3), and about
accounts whose ids look alike (decisions 11.1).

The list reads the index of events, newest first: a subject is listed at its last event. Nothing is kept
between two pages, and each step looks at a bounded number of events, of however many there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from svc.identify.events.listing import EVERYTHING, LEVELS, Filters, Position
from svc.identify.index.digests import HAS_ACCOUNT, wanted
from svc.identify.index.queries import LAST, Scope, Search
from svc.identify.index.read_once import ReadOnce
from svc.identify.model import Level
from svc.identify.queries import events
from svc.identify.queries.events import EventMatch, EventPosition, event_if_readable, in_looks, newest
from svc.identify.queries.velocity import shown_row
from svc.identify.records import Event
from svc.identify.tables import ERASURES, VISITOR_IDS
from svc.identify.velocity.counts import EnvironmentKind, VelocityRow, account_digest, country_digest, folded, kind_of
from svc.kernel.net.addresses import is_within
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import DAY_MS

Listed = Literal["account", "visitor"]
"""What is listed by when it was last seen."""
NEWEST = Position(*LAST)
"""Where the first page begins."""
MAX_OF_A_DAY = 100
"""Events of a day that are looked at one by one for the highest level; of more, the index is asked for each level."""
MAX_NEWER = 200
"""Newer events of one that are looked at for one from a network: with more of them elsewhere, it may be listed twice.
"""


class Sought(NamedTuple):
    """The accounts or visitors of an organization that a list is to have."""

    listed: Listed
    number: int
    """Of the organization."""
    kind: EnvironmentKind
    now_ms: int
    oldest_ms: int
    """When the oldest event arrived that is readable."""
    prefix: str = ""
    """Of the id."""
    least: int = 0
    """Visitors of an account, or accounts of a visitor, in 30 days."""
    country: str | None = None
    """Two upper-case letters: one of its countries in 30 days."""
    level: Level | None = None
    """The highest of its events in 24 hours."""
    network: str | None = None
    """An address or a network: of its events only those from there are looked at."""
    with_levels: bool = True
    """Whether the highest level of each is looked for, which is some searches."""

    def is_meant(self, event: Event) -> bool:
        """Return whether the list considers the event: its address is in `network`, if one is given."""
        return self.network is None or is_within(event.ip_address, self.network)

    def id_in(self, event: Event) -> str | None:
        """Return the id of the account or visitor of an event; `None` if it has none."""
        return event.account_id if self.listed == "account" else event.verdict.visitor_id

    def filters(self, subject_id: str) -> Filters:
        """Return the filters that find the events of one account or visitor."""
        return filters_of(self.listed, subject_id)

    @property
    def scopes(self) -> list[Scope]:
        """Return the index scopes of the environments of the kind."""
        return [Scope(self.number, ENVIRONMENTS.index(name)) for name in environments_of(self.kind)]


class Sighted(NamedTuple):
    """An account or a visitor of a list, with its last event."""

    id: str
    last: EventMatch
    """Its last event."""
    row: VelocityRow
    """What it counts; an empty one where its events were stored before 0.3.0."""
    level: Level | None
    """The highest of its events in 24 hours; `None` where none was scored, or nobody asked."""

    @property
    def at(self) -> Position:
        """Return the position of its last event."""
        return _at(self.last)


def environments_of(kind: EnvironmentKind) -> list[Environment]:
    """Return the environments of a kind, which are counted together."""
    return [name for name in ENVIRONMENTS if kind_of(name) == kind]


def filters_of(listed: Listed, subject_id: str) -> Filters:
    """Return the filters that find the events of an account or a visitor."""
    return Filters(account_id=subject_id) if listed == "account" else Filters(visitor_id=subject_id)


def has_events(snapshot: Snapshot, number: int, listed: Listed, subject_id: str) -> bool:
    """Return whether an account or a visitor of the organization has any event, in any environment."""
    filters = filters_of(listed, subject_id)
    found = (
        place
        for environment in range(len(ENVIRONMENTS))
        for place in Search(snapshot, Scope(number, environment), wanted(filters))
    )
    return any(_found(snapshot, number, place, filters) is not None for place in found)


def number_of(snapshot: Snapshot, number: int, listed: Listed, subject_id: str) -> int | None:
    """Return the id under which velocity rows know an account or a visitor of the organization; `None` for a visitor
    that is not identifiable or is being erased.
    """
    if listed == "account":
        return account_digest(number, subject_id)
    raw_id = subject_id.encode()
    return None if snapshot.has(ERASURES, number, raw_id) else snapshot.get(VISITOR_IDS, number, raw_id)


def scan_subjects(
    snapshot: Snapshot,
    beyond: Position,
    count: int,
    *,
    sought: Sought,
    looked_at: dict[str, Position],
    is_first: bool,
) -> Iterator[tuple[Position, Sighted | None]]:
    """Yield the accounts or visitors that are sought, the one seen last first: of `count` events below `beyond`, each
    with its position, what it shows; `None` = nothing. `looked_at` has whom the page looked at already, and at which
    event; a page that is not the first leaves out whom an earlier one may have had. Raises `CorruptionError` as
    `identify.queries.events.read` does.
    """
    asked = (HAS_ACCOUNT,) if sought.listed == "account" else ()
    oldest, once = (max(sought.oldest_ms, 0), bytes(16)), ReadOnce(snapshot)

    def look(beyond: Position, limit: int) -> tuple[list[tuple[EventPosition, bool]], Position | None]:
        places, resume = newest(snapshot, sought.scopes, asked, oldest, beyond, limit)
        named = set(events.naming(once, places, sought.prefix))
        return [(place, place in named) for place in places], None if resume is None else resume.after

    # One by one: the caller may stop at any of them, and begin again there.
    for position, found in in_looks(look, lambda row: row[0].position, beyond, count):
        matches = events.read(once, [found[0]], EVERYTHING) if found is not None and found[1] else ()
        shown = [_shown(once, sought, looked_at, match, is_first=is_first) for match in matches]
        yield position, shown[0] if shown else None


def _shown(
    snapshot: Snapshot, sought: Sought, looked_at: dict[str, Position], match: EventMatch, *, is_first: bool
) -> Sighted | None:
    """Return the subject of an event, unless the page has already looked at it."""
    subject_id, here = sought.id_in(match.event), _at(match)
    if subject_id is None or not sought.is_meant(match.event) or looked_at.setdefault(subject_id, here) != here:
        return None
    return _sighted(snapshot, sought, match, subject_id, is_first=is_first)


def _at(match: EventMatch) -> Position:
    return Position(match.event.occurred_at_ms, match.request_id.bytes)


def _sighted(
    snapshot: Snapshot, sought: Sought, match: EventMatch, subject_id: str, *, is_first: bool
) -> Sighted | None:
    """Return the subject of an event; `None` where it does not fit, or has a newer event."""
    if not subject_id.startswith(sought.prefix):
        return None
    known_as = number_of(snapshot, sought.number, sought.listed, subject_id)
    if known_as is None:
        return None
    now_s = sought.now_ms // 1000
    row = shown_row(snapshot, sought.number, sought.kind, sought.listed, known_as, now_s)
    if not _counts_enough(sought, row, now_s):
        return None
    if not is_first and _was_seen_later(snapshot, sought, row, match, subject_id):
        return None
    level = highest_level(snapshot, sought, match) if sought.with_levels or sought.level is not None else None
    return Sighted(subject_id, match, row, level) if sought.level in (None, level) else None


def _counts_enough(sought: Sought, row: VelocityRow, now_s: int) -> bool:
    """Return whether the row has as many visitors or accounts, and the country, as the query asks for."""
    if sought.least and row.counts(sought.listed, now_s).others[0][-1] < sought.least:
        return False
    return sought.country is None or country_digest(sought.country) in row.others[2].ids


def _was_seen_later(snapshot: Snapshot, sought: Sought, row: VelocityRow, match: EventMatch, subject_id: str) -> bool:
    """Return whether the subject has a newer event. Its row answers to the second; the index decides the rest."""
    here = _at(match)
    at_s = here.arrival_ms // 1000
    if row.last_s > at_s and sought.network is None:
        return True
    top = Position(1000 * (at_s + 1), bytes(16)) if row.last_s == at_s else NEWEST
    filters = sought.filters(subject_id)
    newer = (place for scope in sought.scopes for place in Search(snapshot, scope, wanted(filters), here, top))
    found = (_found(snapshot, sought.number, place, filters) for place in newer if place > here)
    return any(event is not None and sought.is_meant(event) for event in islice(found, MAX_NEWER))


def highest_level(snapshot: Snapshot, sought: Sought, last: EventMatch) -> Level | None:
    """Return the highest level of the last 24 hours of the subject last seen at `last`; `None` if none was scored."""
    subject_id = sought.id_in(last.event)
    if subject_id is None or last.event.occurred_at_ms < sought.now_ms - DAY_MS:
        return None
    oldest = (max(sought.now_ms - DAY_MS, 0), bytes(16))
    of_all = sought.filters(subject_id)
    found_all = [
        (scope, list(islice(Search(snapshot, scope, wanted(of_all), oldest), MAX_OF_A_DAY + 1)))
        for scope in sought.scopes
    ]
    if all(len(places) <= MAX_OF_A_DAY for _, places in found_all):
        return _highest_of(snapshot, sought.number, of_all, [place for _, places in found_all for place in places])
    for level in reversed(LEVELS):
        filters = sought.filters(subject_id)
        filters = Filters(account_id=filters.account_id, visitor_id=filters.visitor_id, level=level)
        for scope in sought.scopes:
            found = Search(snapshot, scope, wanted(filters), oldest)
            if any(_found(snapshot, sought.number, place, filters) is not None for place in found):
                return level
    return None


def _highest_of(snapshot: Snapshot, number: int, filters: Filters, places: Sequence[Position]) -> Level | None:
    """Return the highest level of those events at these positions that match the filters."""
    highest = -1
    for place in places:
        event = _found(snapshot, number, place, filters)
        if event is not None and event.verdict.suspect_level is not None:
            highest = max(highest, LEVELS.index(event.verdict.suspect_level))
        if highest == len(LEVELS) - 1:
            break
    return None if highest < 0 else LEVELS[highest]


def _found(snapshot: Snapshot, number: int, place: Position, filters: Filters) -> Event | None:
    """Return the event; `None` where it is unreadable, or matches by its digests alone."""
    event = events.event_if_readable(snapshot, number, place.request_id)
    return event if event is not None and filters.matches(event) else None


MAX_EVENTS = 2_000
"""The newest events with an account, of each environment, that are looked at: about a tenth of a second."""


def alike_accounts(snapshot: Snapshot, number: int, kind: EnvironmentKind) -> list[tuple[str, ...]]:
    """Return groups of accounts of an organization whose ids differ only in case, blanks or invisible characters, of
    those that its newest events name; each group in the order of its ids.
    """
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for environment in environments_of(kind):
        scope = Scope(number, ENVIRONMENTS.index(environment))
        for _, request_id in islice(Search(snapshot, scope, (HAS_ACCOUNT,)), MAX_EVENTS):
            event = event_if_readable(snapshot, number, request_id)
            if event is not None and event.account_id is not None:
                groups[folded(event.account_id)].add(event.account_id)
    return sorted(tuple(sorted(ids)) for ids in groups.values() if len(ids) > 1)
