"""Read queries about accounts and visitors in the order in which they were last seen (decisions 11.3), and about
accounts whose ids look alike (decisions 11.1).

The list reads the index of events, newest first: a subject is listed at its last event. Nothing is kept
between two pages, and each step looks at a bounded number of events, of however many there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from svc.identify.events.listing import EVERYTHING, LEVELS, Filters, Position, filters_of
from svc.identify.index.digests import HAS_ACCOUNT, digest_of, wanted
from svc.identify.index.looks import Looks
from svc.identify.index.queries import LAST, Scope, Search
from svc.identify.index.tally_queries import read_part
from svc.identify.model import Level, Subject
from svc.identify.queries.events import (
    EventMatch,
    EventPosition,
    event_if_readable,
    events_matching,
    naming,
    newest,
    read_one,
)
from svc.identify.queries.velocity import shown_row
from svc.identify.records import Event
from svc.identify.tables import ERASURES, VISITOR_IDS
from svc.identify.velocity.counts import (
    ACCOUNT_ID,
    EnvironmentKind,
    VelocityRow,
    account_digest,
    country_digest,
    folded,
    kind_of,
)
from svc.kernel.net.addresses import is_within
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import DAY_MS, is_visitor_id

NEWEST = Position(*LAST)
"""Where the first page begins."""
MAX_OF_A_DAY = 100
"""Events of a day that are looked at one by one for the highest level; of more, the index is asked for each level."""
KEYS_OF_LEVELS = 64
"""Keys of the index that are looked at in one step for the levels of many."""
MAX_NEWER = 200
"""Newer events of an account or visitor among which one from the network is looked for: where more are from elsewhere,
it may be listed twice.
"""
MAX_REPLAYS = 200
KEYS_OF_REPLAYS = 2048
"""Newest events of an environment before a page that fired `replayed`, and keys of the index that are looked at for
them: some milliseconds. Where there are more, somebody may be listed twice.
"""


class Sought(NamedTuple):
    """The accounts or visitors of an organization that a list is to have."""

    listed: Subject
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
    level: Level | None = None
    """The highest of its events in 24 hours; `None` where none was scored, or nobody looked."""

    @property
    def at(self) -> Position:
        """Return the position of its last event."""
        return _at(self.last)


def environments_of(kind: EnvironmentKind) -> list[Environment]:
    """Return the environments of a kind, which are counted together."""
    return [name for name in ENVIRONMENTS if kind_of(name) == kind]


def is_subject_id(listed: Subject, text: str) -> bool:
    """Return whether a text has the form of an id of an account or of a visitor."""
    return ACCOUNT_ID.fullmatch(text) is not None if listed == "account" else is_visitor_id(text)


def has_events(snapshot: Snapshot, number: int, listed: Subject, subject_id: str) -> bool:
    """Return whether an account or a visitor of the organization has any readable event, in any environment."""
    found = events_matching(snapshot, number, filters_of(listed, subject_id))
    return any(event is not None for _, event in found)


def number_of(snapshot: Snapshot, number: int, listed: Subject, subject_id: str) -> int | None:
    """Return the id under which velocity rows know an account or a visitor of the organization; `None` for a visitor
    that is not identifiable or is being erased.
    """
    if listed == "account":
        return account_digest(number, subject_id)
    raw_id = subject_id.encode()
    return None if snapshot.has(ERASURES, number, raw_id) else snapshot.get(VISITOR_IDS, number, raw_id)


class SubjectScan:
    """The accounts or visitors that are sought, without their levels, the one seen last first. One of these is for a
    whole read, which goes through it in slices.
    """

    def __init__(self, sought: Sought, *, is_first: bool) -> None:
        """`is_first`: it begins with the newest event; else it leaves out whom an earlier page may have had."""
        self._sought, self._is_first = sought, is_first
        self._asked = (HAS_ACCOUNT,) if sought.listed == "account" else ()
        self._looks = Looks[Position, tuple[EventPosition, bool]](lambda row: row[0].position)
        self._looked_at: dict[str, Position] = {}
        """Whom it has looked at already, and at which event: the newest. A store may call it again over rows that were
        missing, newer events among them.
        """
        self._replayed: set[str] = set()
        """Who was listed on an earlier page at an event that no row counts."""
        self._knows_replayed = is_first

    def __call__(self, snapshot: Snapshot, beyond: Position, count: int) -> Iterator[tuple[Position, Sighted | None]]:
        """Yield those of `count` events below `beyond`, each with its position; `None` = the event shows nobody new.
        Raises `CorruptionError` as `identify.queries.events.read` does.
        """
        sought, oldest = self._sought, (max(self._sought.oldest_ms, 0), bytes(16))
        if not self._knows_replayed:
            self._replayed = self._replayed_from(snapshot, beyond)
            self._knows_replayed = not snapshot.is_missing

        def look(beyond: Position, limit: int) -> tuple[list[tuple[EventPosition, bool]], Position | None]:
            places, resume = newest(snapshot, sought.scopes, self._asked, oldest, beyond, limit)
            named = set(naming(snapshot, places, sought.prefix))
            return [(place, place in named) for place in places], None if resume is None else resume.after

        # One by one: the caller may stop at any of them, and begin again there.
        for position, found in self._looks.scan(look, beyond, count, lambda: snapshot.is_missing):
            match = read_one(snapshot, found[0], EVERYTHING) if found is not None and found[1] else None
            yield position, None if match is None else self._shown(snapshot, match, position)

    def _shown(self, snapshot: Snapshot, match: EventMatch, here: Position) -> Sighted | None:
        """Return the subject of an event; `None` where it was looked at before, does not fit, or has a newer event."""
        sought = self._sought
        subject_id = sought.id_in(match.event)
        if subject_id is None or not subject_id.startswith(sought.prefix) or not sought.is_meant(match.event):
            return None
        if subject_id in self._replayed or self._looked_at.setdefault(subject_id, here) > here:
            return None
        self._looked_at[subject_id] = here
        found = sighted(snapshot, sought, match, subject_id)
        if found is None or not _counts_enough(sought, found.row, sought.now_ms // 1000):
            return None
        if not self._is_first and _was_seen_later(snapshot, sought, found.row, match, subject_id):
            return None
        return found

    def _replayed_from(self, snapshot: Snapshot, page: Position) -> set[str]:
        """Return those with an event from `page` on, where the page begins, that fired `replayed`: no row counts it."""
        asked = wanted(Filters(signal="replayed"))
        searches = (Search(snapshot, scope, asked, page, LAST, KEYS_OF_REPLAYS) for scope in self._sought.scopes)
        places = [place for search in searches for place in islice(search, MAX_REPLAYS)]
        events = [event_if_readable(snapshot, self._sought.number, request_id) for _, request_id in places]
        meant = (event for event in events if event is not None and self._sought.is_meant(event))
        return {found for event in meant if (found := self._sought.id_in(event)) is not None}


def sighted_at(snapshot: Snapshot, places: Sequence[Position], *, sought: Sought) -> Iterator[Sighted | None]:
    """Yield the subject of the event at each of these positions; `None` where it is gone."""
    for place in places:
        event = event_if_readable(snapshot, sought.number, place.request_id)
        subject_id = None if event is None else sought.id_in(event)
        if event is None or subject_id is None:
            yield None
        else:
            yield sighted(snapshot, sought, EventMatch(UUID(bytes=place.request_id), event), subject_id)


def sighted(snapshot: Snapshot, sought: Sought, match: EventMatch, subject_id: str) -> Sighted | None:
    """Return the subject with this last event; `None` for a visitor that is not identifiable or is being erased."""
    known_as = number_of(snapshot, sought.number, sought.listed, subject_id)
    if known_as is None:
        return None
    row = shown_row(snapshot, sought.number, sought.kind, sought.listed, known_as, sought.now_ms // 1000)
    return Sighted(subject_id, match, row)


def _at(match: EventMatch) -> Position:
    return Position(match.event.occurred_at_ms, match.request_id.bytes)


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


def places_of_a_day(
    snapshot: Snapshot, sought: Sought, scope: Scope, found: Sequence[Sighted], beyond: Position
) -> tuple[dict[int, list[Position]], Position | None]:
    """Return the positions of the events in the last 24 hours, by the digest of the subject, of a part of the index
    below `beyond`, and where to go on; `None` = these are all. Up to `MAX_OF_A_DAY + 1` of each.
    """
    asked = {_digest_of(sought, each) for each in found if _is_of_a_day(sought, each)}
    oldest = Position(max(sought.now_ms - DAY_MS, 0), bytes(16))
    part = read_part(snapshot, scope, asked, oldest, beyond, KEYS_OF_LEVELS)
    return part.newest_of_each(MAX_OF_A_DAY + 1), part.rest


def with_levels(
    snapshot: Snapshot, found: Sequence[Sighted], *, sought: Sought, places: Mapping[int, Sequence[Position]]
) -> Iterator[Sighted]:
    """Yield each with the highest level of its events in the last 24 hours, whose positions are `places`."""
    for each in found:
        own, level = places.get(_digest_of(sought, each), ()), None
        if len(own) > MAX_OF_A_DAY:
            level = _highest_in_index(snapshot, sought, each.id)
        elif _is_of_a_day(sought, each):
            level = _highest_of(snapshot, sought.number, sought.filters(each.id), own)
        yield each._replace(level=level)


def _is_of_a_day(sought: Sought, found: Sighted) -> bool:
    return found.last.event.occurred_at_ms >= sought.now_ms - DAY_MS


def _digest_of(sought: Sought, found: Sighted) -> int:
    return digest_of("account_id" if sought.listed == "account" else "visitor", found.id)


def _highest_in_index(snapshot: Snapshot, sought: Sought, subject_id: str) -> Level | None:
    """Return the highest level for which the index has an event of the last 24 hours; `None` if there is none."""
    oldest = (max(sought.now_ms - DAY_MS, 0), bytes(16))
    for level in reversed(LEVELS):
        filters = sought.filters(subject_id)
        filters = Filters(account_id=filters.account_id, visitor_id=filters.visitor_id, level=level)
        for scope in sought.scopes:
            found = Search(snapshot, scope, wanted(filters), oldest)
            if any(_found(snapshot, sought.number, place, filters) is not None for place in found):
                return level
    return None


def _highest_of(snapshot: Snapshot, number: int, filters: Filters, places: Sequence[Position]) -> Level | None:
    """Return the highest level of those events at these positions that match the filters; `None` if none is scored."""
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
    event = event_if_readable(snapshot, number, place.request_id)
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
