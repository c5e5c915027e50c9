"""Filters of the list of events: any combination is what a look at every event says, in bounded work (ADR 37)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from svc.features.checks.invariants import violations
from svc.identify.events.listing import EVERYTHING, FACETS, KINDS, LEVELS, Filters, Listing, Position
from svc.identify.index import digests
from svc.identify.index import queries as event_index
from svc.identify.index.digests import digest_of
from svc.identify.index.forward_queries import SearchForward
from svc.identify.index.queries import SEGMENT_KEYS
from svc.identify.indexing.jobs import step
from svc.identify.model import Decision, ShadowMatch
from svc.identify.queries import events
from svc.identify.queries.events import EventMatch, event_page, positions, put_event, read
from svc.identify.records import Event
from svc.identify.scoring.signals import CATALOG
from svc.identify.tables import EVENT_SEGMENTS, EVENT_TAIL, EVENTS
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.store import Store
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from tests.store.test_events import ADDRESSES, SIGNALS, TAGS, VISITORS, event, filled_store, fired, uuid
from tests.support.worlds import EPOCH_MS
from tests.support.writes import purge_event

LATER = EPOCH_MS + 10**9
RULES = ("rul_a", "rul_b")
OFFSETS = (0, 0, 3, 40, 100, 300)
"""Some that pass over segments as a whole."""
CHOICES: dict[str, tuple[str | None, ...]] = {
    "level": (None, *LEVELS),
    "visitor_id": (None, None, *VISITORS[:2]),
    "tag": (None, None, *TAGS, "nobody's"),
    "ip_address": (None, None, *ADDRESSES),
    "country": (None, None, "GB", "DE"),
    "signal": (None, None, *SIGNALS, "tor"),
    "kind": (None, None, *KINDS[:2]),
    "rule": (None, None, None, *RULES),
    "shadow": (None, None, None, *RULES),
    "group": (None, None, None, None, *dict.fromkeys(CATALOG[signal].group for signal in (*SIGNALS, "tor"))),
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

    def scan(self, table: Any, *prefix: Any, start: tuple[Any, ...] | None = None) -> Iterator[Any]:
        return self._each(table, super().scan(table, *prefix, start=start))

    def scan_reverse(self, table: Any, start: tuple[Any, ...], end: tuple[Any, ...]) -> Iterator[Any]:
        return self._each(table, super().scan_reverse(table, start, end))

    def scan_past_corruption(
        self, table: Any, start: tuple[Any, ...], end: tuple[Any, ...], *, reverse: bool = False
    ) -> Iterator[Any]:
        return self._each(table, super().scan_past_corruption(table, start, end, reverse=reverse))

    def _each(self, table: Any, rows: Iterator[Any]) -> Iterator[Any]:
        for row in rows:
            self.touched[table.name] += 1
            yield row


def index(store: Store) -> None:
    """Put all that there is into segments, but for fewer events than make one."""

    def job(transaction: Transaction) -> None:
        for environment in range(len(ENVIRONMENTS)):
            while step(transaction, event_index.Scope(1, environment), 2**64 - 1):
                pass

    assert store.write_now([job]) == [None]


def some_events(chance: random.Random, count: int, span_ms: int) -> list[tuple[int, UUID, Event]]:
    return [
        (1, UUID(int=chance.getrandbits(128)), event(chance, EPOCH_MS + chance.randrange(span_ms), **ruled(chance)))
        for _ in range(count)
    ]


def ruled(chance: random.Random) -> dict[str, Any]:
    """What rules may have made of an event: one decided, or none, and any of them matched in shadow mode."""
    decided = chance.choice((None, *RULES))
    shadow = chance.sample(RULES, chance.randrange(3))
    return {
        "decision": decided and Decision("review", decided, "its name then"),
        "shadow": tuple(ShadowMatch(each, "its name then", "block") for each in shadow),
    }


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
        and filters.account_id in (None, given.account_id)
        and filters.action in (None, given.action)
        and filters.asn in (None, given.asn)
        and filters.label in (None, given.label)
        and filters.decision in (None, given.verdict.decision and given.verdict.decision.action)
        and filters.rule in (None, given.verdict.decision and given.verdict.decision.rule_id)
        and (filters.shadow is None or filters.shadow in {each.rule_id for each in given.shadow})
        and (filters.signal is None or filters.signal in {each.signal for each in verdict.signals or ()})
        and filters.group in (None, *(CATALOG[each.signal].group for each in verdict.signals or ()))
    )


def how_many(snapshot: Snapshot, environment: Environment, listing: Listing, most: int = 2**62) -> int:
    """The sum of all parts of a count."""
    asked = {"number": 1, "environment": environment, "listing": listing, "most": most}
    resume, found = listing.start, 0
    while resume != events.NOTHING_BEHIND:
        parts = list(events.scan_counts(snapshot, resume, 3, **asked))
        found += sum(part for _, part in parts)
        resume = parts[-1][0]
    return found


def some_filters(chance: random.Random) -> Filters:
    return Filters(**{name: chance.choice(values) for name, values in CHOICES.items()})  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_any_filter_combination_equals_a_scan_of_every_event_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whatever bound ends a page early, the pages together are the whole list, each event once and in order; and the
    count of the list is its length.
    """
    chance = random.Random(21)
    made = some_events(chance, 1200, 60)
    several = 0
    with filled_store(tmp_path, *made) as store:
        for turn in range(300):
            if turn == 150:
                index(store)
            filters = some_filters(chance)
            from_ms = EPOCH_MS + chance.randrange(-5, 40)
            listing = Listing(
                from_ms, from_ms + chance.randrange(1, 70), filters, chance.choice(OFFSETS), chance.randrange(1, 9)
            )
            environment, most_keys = chance.choice(("staging", "development")), chance.choice((1, 7, 50, 20_000))
            wanted = expected(made, environment, listing)
            found: list[EventMatch] = []
            left: Listing | None = listing
            with store.read() as snapshot:
                while left is not None:
                    page = positions(snapshot, 1, environment, left, most_keys)
                    assert len(page.rows) <= listing.limit
                    found += read(snapshot, page.rows, filters)
                    resume = page.resume
                    left = None if resume is None else left._replace(after=resume.after, offset=resume.offset)
                assert found == wanted, filters
                assert event_page(snapshot, 1, environment, listing).events == wanted[: listing.limit]
                every = expected(made, environment, listing._replace(offset=0))
                monkeypatch.setattr(events, "KEYS_OF_A_LOOK", most_keys)
                assert how_many(snapshot, environment, listing) == len(every), filters
                bounds = (from_ms, bytes(16)), (listing.to_ms, bytes(16))
                scope = event_index.Scope(1, ENVIRONMENTS.index(environment))
                forward = SearchForward(snapshot, scope, digests.wanted(filters), *bounds)
                assert [each.request_id for each in forward] == [found.request_id.bytes for found in reversed(every)]
            several += len(wanted) > 0 and len(filters.facets()) > 1
        assert several > 20, "combinations found something"
        with store.read() as snapshot:
            assert snapshot.count(EVENT_SEGMENTS) > 10
            assert list(violations(snapshot)) == []


def test_matches_follows_the_fields():
    chance = random.Random(22)
    outcomes: Counter[bool] = Counter()
    for _ in range(3000):
        filters, given = some_filters(chance), event(chance, EPOCH_MS, **ruled(chance))
        for name in (*FACETS, "group"):  # fewer filters, so that some match
            if chance.random() < 0.6:
                filters = msgspec.structs.replace(filters, **{name: None})
        outcomes[filters.matches(given)] += 1
        assert filters.matches(given) == matches(filters, given)
    assert min(outcomes.values()) > 100
    before = event(chance, EPOCH_MS, signals=None)
    assert EVERYTHING.matches(before)
    assert not Filters(signal="headless").matches(before), "0.1.0 kept no names"


@pytest.mark.slow
def test_events_before_a_page_are_passed_over_by_segments(tmp_path: Path):
    """Three large ones and a small one. Where values are asked for, rows of slots are read for the page alone. Erased
    events do not count, nor is one left out.
    """
    made = odd(3 * 4096 + 64 + 44, 2, {"visitor_kind": "human"}, visitor_kind="ai_bot")
    gone = made[5::97]
    with filled_store(tmp_path, *made) as store:
        index(store)
        store.write_now([partial(purge_event, number=1, request_id=one.bytes) for _, one, _ in gone])
        left = [one for one in made if one not in gone]
        with store.read() as snapshot:
            for filters, most in (
                (EVERYTHING, 4),
                (Filters(kind="human"), 5),
                (Filters(kind="human", level=LEVELS[0]), 8),
            ):
                fits = expected(left, "staging", Listing(EPOCH_MS, LATER, filters))
                for offset in (0, 1, 100, 4200, 6000, 10_000, len(fits) - 3, len(fits), len(fits) + 7):
                    counted = Counted(snapshot)
                    page = event_page(counted, 1, "staging", Listing(EPOCH_MS, LATER, filters, offset, 10))
                    assert page.events == fits[offset : offset + 10], (filters, offset)
                    assert counted.touched[EVENTS.name] == len(page.events)
                    assert counted.touched[EVENT_TAIL.name] <= 44
                    assert counted.touched[EVENT_SEGMENTS.name] <= most, (filters, offset)


@pytest.mark.slow
def test_events_are_counted_by_segments_and_none_is_read(tmp_path: Path):
    """In a window that begins and ends within large segments, with erased events, and with a late one in the tail."""
    made = odd(3 * 4096 + 64 + 44, 2, {"signals": fired("tor")}, signals=None)
    gone = made[5::97]
    with filled_store(tmp_path, *made) as store:
        index(store)
        store.write_now([partial(purge_event, number=1, request_id=one.bytes) for _, one, _ in gone])
        left = [one for one in made if one not in gone]
        late = (1, uuid(10**6), event(random.Random(1), EPOCH_MS + 5000, environment="staging", signals=fired("tor")))
        with store.read() as snapshot:
            for start, end in ((0, 10**6), (100, 9000), (5000, 5001), (4097, 8193), (0, 50)):
                for filters in (EVERYTHING, Filters(signal="tor"), Filters(group=CATALOG["tor"].group)):
                    listing = Listing(EPOCH_MS + start, EPOCH_MS + end, filters)
                    fits = len(expected(left, "staging", listing))
                    counted = Counted(snapshot)
                    assert how_many(counted, "staging", listing) == fits, (filters, start, end)
                    assert counted.touched[EVENTS.name] == 0
                    assert counted.touched[EVENT_SEGMENTS.name] < 40, "a row of each group's signal, and of slots"
            listing = Listing(EPOCH_MS, LATER, Filters(signal="tor"))
            assert how_many(snapshot, "staging", listing, most=1000) == 1000
        store.write_now([partial(put_event, number=1, request_id=late[1], event=late[2])])
        with store.read() as snapshot:
            listing = Listing(EPOCH_MS, LATER, Filters(signal="tor"))
            assert how_many(snapshot, "staging", listing) == len(expected([*left, late], "staging", listing))


def odd(count: int, every: int, fields: dict[str, Any], **of_others: Any) -> list[tuple[int, UUID, Event]]:
    """Events a millisecond apart, of which every so many have these fields."""
    chance = random.Random(23)
    return [
        (1, uuid(number), event(chance, EPOCH_MS + number, environment="staging", **given))
        for number in range(1, count + 1)
        for given in [fields if number % every == 0 else of_others]
    ]


RARE: dict[str, Any] = {
    "tag": "rare", "ip_address": "81.2.69.199", "country_code": "FR", "visitor_kind": "ai_bot", "signals": fired("tor"),
}  # fmt: skip
RARE |= {
    "account_id": "rare",
    "action": "log_in",
    "asn": "4711",
    "decision": Decision("block", "rul_x", "x"),
    "label": "fraud",
    "shadow": (ShadowMatch("rul_y", "y", "allow"), ShadowMatch("rul_z", "z", "block")),
}
ASKED = {
    "tag": "rare", "ip_address": "81.2.69.199", "country": "FR", "kind": "ai_bot", "signal": "tor",
    "account_id": "rare", "action": "log_in", "asn": "4711", "decision": "block", "label": "fraud",
    "rule": "rul_x", "shadow": "rul_z",
}  # fmt: skip


@pytest.mark.slow
def test_one_filter_reads_the_events_of_its_page_and_few_segments(tmp_path: Path):
    """Two large segments, one small one, and a tail of 44."""
    made = odd(2 * 4096 + 64 + 44, 100, RARE, signals=None, visitor_kind="human")
    with filled_store(tmp_path, *made) as store:
        index(store)
        with store.read() as snapshot:
            for name, (offset, limit) in product(FACETS, ((0, 10), (20, 10), (75, 10))):
                listing = Listing(EPOCH_MS, LATER, Filters(**{name: ASKED[name]}), offset, limit)
                counted = Counted(snapshot)
                page = event_page(counted, 1, "staging", listing)
                assert page.events == expected(made, "staging", listing)[:limit], name
                assert len(page.events) == min(limit, 83 - offset), name
                assert counted.touched[EVENTS.name] == len(page.events), name
                assert counted.touched[EVENT_TAIL.name] <= 44, name
                assert counted.touched[EVENT_SEGMENTS.name] <= 5, (
                    f"{name}: postings and slots of two, and the small one"
                )
            counted = Counted(snapshot)
            nothing = Filters(**{name: "??"})
            assert event_page(counted, 1, "staging", Listing(EPOCH_MS, LATER, nothing)) == ([], None)
            assert counted.touched[EVENTS.name] == 0
            assert counted.touched[EVENT_SEGMENTS.name] <= 3
            counted = Counted(snapshot)
            assert len(event_page(counted, 1, "staging", Listing(EPOCH_MS, LATER, limit=20)).events) == 20
            assert counted.touched == {EVENTS.name: 20, EVENT_TAIL.name: 21, EVENT_SEGMENTS.name: 1}


@pytest.mark.slow(0.1)
def test_values_that_never_occur_together_cost_a_bounded_number_of_keys(tmp_path: Path):
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
        for number in range(1, 1000)
    ]
    never = Filters(tag=TAGS[0], country="DE")
    with filled_store(tmp_path, *made) as store:
        for most, least in ((100, 9), (5, 2)):  # of the tail; and of the segments that are made of it
            with store.read() as snapshot:
                left: Listing | None = Listing(EPOCH_MS, LATER, never, 3, 10)
                looked = pages = 0
                while left is not None:
                    counted = Counted(snapshot)
                    page = positions(counted, 1, "staging", left, most)
                    assert page.rows == []
                    assert counted.touched.total() <= most + 2
                    looked += counted.touched.total()
                    pages += 1
                    assert page.resume is None or page.resume.offset == 3, "nothing was passed over"
                    left = None if page.resume is None else left._replace(after=page.resume.after)
                assert pages >= least
                assert looked <= snapshot.count(EVENT_TAIL) + 2 * snapshot.count(EVENT_SEGMENTS) + 2 * pages
                both = positions(snapshot, 1, "staging", Listing(EPOCH_MS, LATER, Filters(tag=TAGS[0], country="GB")))
                assert len(both.rows) == 10
            index(store)


def test_a_search_for_a_rare_value_reads_a_bounded_number_of_segments(tmp_path: Path):
    made = odd(640, 640, {"tag": "other"}, tag=None)
    made[0] = (1, made[0][1], msgspec.structs.replace(made[0][2], tag="rare"))
    with filled_store(tmp_path, *made) as store:
        index(store)
        with store.read() as snapshot:
            listing: Listing | None = Listing(EPOCH_MS, LATER, Filters(tag="rare"), 0, 10)
            found: list[EventMatch] = []
            pages = 0
            while listing is not None:
                page = positions(snapshot, 1, "staging", listing, 2 * SEGMENT_KEYS)
                found += read(snapshot, page.rows, listing.filters)
                listing = None if page.resume is None else listing._replace(after=page.resume.after)
                pages += 1
            assert [one.request_id for one in found] == [made[0][1]]
            assert 5 <= pages <= 10, "two segments each, of which one may be that of the page before"


def test_values_with_equal_digests_are_distinguished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With a digest under which all values are the same."""
    monkeypatch.setattr(digests, "digest_of", lambda name, value: digest_of(name, value[:1]))
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
