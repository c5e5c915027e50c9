"""Filters of the list of events: any combination is what a look at every event says, in bounded work (ADR 37)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from svc.domain.listing import EVERYTHING, FACETS, KINDS, LEVELS, Filters, Listing, Position
from svc.domain.records import Event
from svc.store import events
from svc.store.events import EventMatch, event_page, places, read, value_digest
from svc.store.invariants import violations
from svc.store.snapshot import Snapshot
from svc.store.tables import EVENTS, EVENTS_BY_FACET
from tests.store.test_events import ADDRESSES, SIGNALS, TAGS, VISITORS, event, filled_store, fired, uuid
from tests.support.worlds import EPOCH_MS

LATER = EPOCH_MS + 10**9
CHOICES: dict[str, tuple[str | None, ...]] = {
    "level": (None, *LEVELS),
    "visitor_id": (None, None, *VISITORS[:2]),
    "tag": (None, None, *TAGS, "nobody's"),
    "ip_address": (None, None, *ADDRESSES),
    "country": (None, None, "GB", "DE"),
    "signal": (None, None, *SIGNALS, "tor"),
    "kind": (None, None, *KINDS[:2]),
}


class Counted(Snapshot):
    """A snapshot that counts the keys and rows it looks at."""

    def __init__(self, of: Snapshot) -> None:
        super().__init__(of.reader)
        self.touched: Counter[str] = Counter()

    def get(self, table: Any, *key: Any) -> Any:
        self.touched[table.name] += 1
        return super().get(table, *key)

    def has(self, table: Any, *key: Any) -> bool:
        self.touched[table.name] += 1
        return super().has(table, *key)

    def scan_keys_reverse(self, table: Any, start: tuple[Any, ...], end: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        for key in super().scan_keys_reverse(table, start, end):
            self.touched[table.name] += 1
            yield key


def some_events(chance: random.Random, count: int, span_ms: int) -> list[tuple[int, UUID, Event]]:
    return [
        (1, UUID(int=chance.getrandbits(128)), event(chance, EPOCH_MS + chance.randrange(span_ms)))
        for _ in range(count)
    ]


def expected(made: list[tuple[int, UUID, Event]], environment: str, listing: Listing) -> list[EventMatch]:
    """By looking at every event."""
    fits = [
        EventMatch(request_id, given)
        for _, request_id, given in made
        if given.environment == environment
        and listing.from_ms <= given.occurred_at_ms < listing.to_ms
        and matches(listing.filters, given)
        and (listing.after is None or (given.occurred_at_ms, request_id.bytes) < listing.after)
    ]
    fits.sort(key=lambda found: (found.event.occurred_at_ms, found.request_id), reverse=True)
    return fits[listing.offset :]


def matches(filters: Filters, given: Event) -> bool:
    verdict = given.verdict
    return (
        filters.level in (None, verdict.suspect_level)
        and filters.visitor_id in (None, verdict.visitor_id)
        and filters.tag in (None, given.tag)
        and filters.ip_address in (None, given.ip_address)
        and filters.country in (None, given.country_code)
        and filters.kind in (None, given.visitor_kind)
        and (filters.signal is None or filters.signal in {each.signal for each in verdict.signals or ()})
    )


def some_filters(chance: random.Random) -> Filters:
    return Filters(**{name: chance.choice(values) for name, values in CHOICES.items()})  # pyright: ignore[reportArgumentType]


def test_any_combination_is_what_a_look_at_every_event_says_page_after_page(tmp_path: Path):
    """Whatever bound ends a page early, the pages together are the whole list, each event once and in order."""
    chance = random.Random(21)
    made = some_events(chance, 1200, 60)
    several = 0
    with filled_store(tmp_path, *made) as store, store.read() as snapshot:
        for _ in range(300):
            filters = some_filters(chance)
            from_ms = EPOCH_MS + chance.randrange(-5, 40)
            listing = Listing(
                from_ms, from_ms + chance.randrange(1, 70), filters, chance.choice((0, 0, 3)), chance.randrange(1, 9)
            )
            environment, most_keys = chance.choice(("staging", "development")), chance.choice((1, 7, 50, 20_000))
            wanted = expected(made, environment, listing)
            found: list[EventMatch] = []
            left: Listing | None = listing
            while left is not None:
                page = places(snapshot, 1, environment, left, most_keys)
                assert len(page.rows) <= listing.limit
                found += read(snapshot, page.rows, filters)
                resume = page.resume
                left = None if resume is None else left._replace(after=resume.after, offset=resume.offset)
            assert found == wanted, filters
            assert event_page(snapshot, 1, environment, listing).events == wanted[: listing.limit]
            several += len(wanted) > 0 and len(filters.facets()) > 1
        assert several > 20, "combinations found something"
        assert list(violations(snapshot)) == []


def test_matches_is_what_the_fields_say():
    chance = random.Random(22)
    outcomes: Counter[bool] = Counter()
    for _ in range(3000):
        filters, given = some_filters(chance), event(chance, EPOCH_MS)
        for name in FACETS:  # fewer filters, so that some match
            if chance.random() < 0.6:
                filters = msgspec.structs.replace(filters, **{name: None})
        outcomes[filters.matches(given)] += 1
        assert filters.matches(given) == matches(filters, given)
    assert min(outcomes.values()) > 100
    before = event(chance, EPOCH_MS, signals=None)
    assert EVERYTHING.matches(before)
    assert not Filters(signal="headless").matches(before), "0.1.0 kept no names"


@pytest.mark.parametrize("name", FACETS)
def test_one_filter_costs_its_own_page_however_large_the_store_is(tmp_path: Path, name: str):
    chance = random.Random(23)
    made = [
        (1, uuid(number), event(chance, EPOCH_MS + number, environment="staging", signals=None))
        for number in range(2000)
    ]
    rare: dict[str, Any] = {
        "tag": "rare", "ip_address": "81.2.69.199", "country_code": "FR", "visitor_kind": "ai_bot",
        "signals": fired("tor"),
    }  # fmt: skip
    for place in range(0, 2000, 40):
        made[place] = (1, uuid(place), event(chance, EPOCH_MS + place, environment="staging", **rare))
    values = {"tag": "rare", "ip_address": "81.2.69.199", "country": "FR", "kind": "ai_bot", "signal": "tor"}
    filters = Filters(**{name: values[name]})
    with filled_store(tmp_path, *made) as store, store.read() as snapshot:
        for offset, limit in ((0, 10), (20, 10)):
            counted = Counted(snapshot)
            page = event_page(counted, 1, "staging", Listing(EPOCH_MS, LATER, filters, offset, limit))
            assert len(page.events) == limit
            assert counted.touched == {EVENTS_BY_FACET.name: offset + limit + 1, EVENTS.name: limit}
        counted = Counted(snapshot)
        nothing = Filters(**{name: "??"})
        assert event_page(counted, 1, "staging", Listing(EPOCH_MS, LATER, nothing)) == ([], None)
        assert counted.touched == Counter()


def test_what_never_comes_together_is_looked_for_in_a_bounded_number_of_keys(tmp_path: Path):
    """The page ends short, says where it goes on, and what it has looked at is not looked at again."""
    chance = random.Random(24)
    made = [
        (
            1,
            uuid(number),
            event(
                chance,
                EPOCH_MS + number,
                environment="staging",
                tag=TAGS[number % 2],
                country_code=("GB", "DE")[number % 2],
            ),
        )
        for number in range(1000)
    ]
    never = Filters(tag=TAGS[0], country="DE")
    with filled_store(tmp_path, *made) as store, store.read() as snapshot:
        left: Listing | None = Listing(EPOCH_MS, LATER, never, 3, 10)
        looked = pages = 0
        while left is not None:
            counted = Counted(snapshot)
            page = places(counted, 1, "staging", left, 100)
            assert page.rows == []
            assert counted.touched.total() <= 103
            looked += counted.touched.total()
            pages += 1
            assert page.resume is None or page.resume.offset == 3, "nothing was passed over"
            left = None if page.resume is None else left._replace(after=page.resume.after, offset=page.resume.offset)
        assert pages > 10
        assert looked <= 3 * 1000, "one step for each event"
        counted = Counted(snapshot)
        both = places(counted, 1, "staging", Listing(EPOCH_MS, LATER, Filters(tag=TAGS[0], country="GB"), 0, 10))
        assert len(both.rows) == 10
        assert counted.touched.total() <= 22


def test_a_rare_value_beside_a_common_one_costs_what_is_rare(tmp_path: Path):
    chance = random.Random(25)
    made = [
        (1, uuid(number), event(chance, EPOCH_MS + number, environment="staging", tag=None, visitor_kind="human"))
        for number in range(2000)
    ]
    for place in (100, 900, 1700):
        made[place] = (1, uuid(place), msgspec.structs.replace(made[place][2], tag="rare"))
    with filled_store(tmp_path, *made) as store, store.read() as snapshot:
        for filters in (Filters(tag="rare", kind="human"), Filters(ip_address=ADDRESSES[0], kind="ai_bot")):
            counted = Counted(snapshot)
            found = places(counted, 1, "staging", Listing(EPOCH_MS, LATER, filters))
            assert len(found.rows) == (3 if filters.tag else 0)
            assert counted.touched.total() <= 20


def test_values_of_one_digest_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With a digest under which all values are the same."""
    monkeypatch.setattr(events, "value_digest", lambda value: value_digest(value[:1]))
    chance = random.Random(26)
    made = [
        (1, uuid(number), event(chance, EPOCH_MS + number, environment="staging", tag=f"t{number % 3}"))
        for number in range(90)
    ]
    with filled_store(tmp_path, *made) as store, store.read() as snapshot:
        listing = Listing(EPOCH_MS, LATER, Filters(tag="t1"), 0, 30)
        page = event_page(snapshot, 1, "staging", listing)
        assert [found.event.tag for found in page.events] == ["t1"] * 10
        assert page.resume is not None
        assert page.resume.after == Position(EPOCH_MS + 60, uuid(60).bytes), "it goes on behind what it looked at"
