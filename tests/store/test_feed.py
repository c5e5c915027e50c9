"""The feed against a plain list: each event once, whatever the order in which events come, and none behind a position
that was given out (ADR 130).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import msgspec
import pytest
import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from svc.features.checks.invariants import violations
from svc.features.feed import jobs as feeds
from svc.features.feed import pages as feed_pages
from svc.features.feed.feed import AHEAD_MS, BEGINNING, HOLD_MS, STEP_MS, Ahead, Feed
from svc.features.feed.jobs import close
from svc.features.feed.pages import FEED, FeedPages
from svc.identify.events.listing import Filters, Listing, Position
from svc.identify.index.queries import Scope
from svc.identify.indexing import jobs as indexing
from svc.identify.indexing.jobs import rebuild
from svc.identify.queries.events import event_page, rewrite_event
from svc.identify.records import Event
from svc.identify.tables import EVENT_SEGMENTS, EVENTS, FEED_CLOSED, LATE_EVENTS
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.world import World
from tests.store.test_event_index import SMALLER, indexed
from tests.store.test_events import count_again, event, filled_store, record
from tests.store.test_filters import some_filters
from tests.support.effort import effort
from tests.support.worlds import EPOCH_MS
from tests.support.writes import purge_event

SCOPE = Scope(1, 1)
ENVIRONMENT = "staging"


class Consumer:
    """Reads a feed with its filters, and keeps what it got."""

    def __init__(self, store: Store, filters: Filters, limit: int) -> None:
        self.store, self.filters, self.limit = store, filters, limit
        self.after = BEGINNING
        self.got: list[tuple[Position, UUID]] = []

    async def read_on(self, now_ms: int) -> bool:
        """Read a page; whether it was at the end."""

        async def close_to(to_ms: int) -> int:
            return await self.store.write_one(partial(close, scope=SCOPE, to_ms=to_ms), SCOPE.number)

        async def read(places: Sequence[feeds.FeedPosition]) -> list[tuple[Position, UUID]]:
            reading = partial(feeds.read, wanted=places, filters=self.filters, oldest_ms=0)
            return [(at, match.request_id) for at, match in await self.store.query(reading)]

        feed = Feed(self.after, self.filters, self.limit, 0)
        page = await FeedPages(World.real(), self.store, SCOPE, FEED, close_to).page(feed, now_ms, read)
        assert len(page.rows) <= self.limit
        assert page.behind >= self.after
        assert all(self.after < at <= page.behind for at, _ in page.rows)
        self.got += page.rows
        self.after = page.behind
        return not page.has_more

    async def read_all(self, now_ms: int) -> None:
        while not await self.read_on(now_ms):
            pass


class Machine(RuleBasedStateMachine):
    """Events come in any order, also by clocks that are ahead or behind, are indexed, changed and erased, while others
    read the feed.
    """

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.patch = pytest.MonkeyPatch()
        for name, value in SMALLER.items():
            self.patch.setattr(indexing, name, value)
        self.chance = random.Random(seed)
        self.patch.setattr(feeds, "KEYS_OF_A_LOOK", self.chance.choice((3, 20, 250)))
        self.patch.setattr(feed_pages, "MAX_LOOKS", 3)
        self.folder = TemporaryDirectory()
        self.opened = filled_store(Path(self.folder.name))
        self.store: Store = self.opened.__enter__()
        self.kept: dict[UUID, Event] = {}
        self.erased: set[UUID] = set()
        self.now_ms = EPOCH_MS
        self.consumers: list[Consumer] = []
        self.is_unchecked = False

    def teardown(self) -> None:
        if hasattr(self, "opened"):
            if self.consumers:
                self.everything_arrives()
            self.opened.__exit__(None, None, None)
            self.folder.cleanup()
            self.patch.undo()

    def write(self, *jobs: Any) -> None:
        self.is_unchecked = True
        failed = [outcome for outcome in self.store.write_now([*jobs, count_again]) if isinstance(outcome, Exception)]
        assert failed == []

    @rule(count=st.integers(1, 40), off_ms=st.sampled_from((0, 0, 0, 300, 3_000, -3_000, 60_000, -60_000)))
    def arrive(self, count: int, off_ms: int) -> None:
        """By a clock that is so far ahead, negative = behind."""
        jobs: list[Any] = []
        for _ in range(count):
            self.now_ms += self.chance.choice((0, 1, 1, 40, 200))
            at_ms = self.now_ms + off_ms - self.chance.choice((0, 0, 5, 2_500))
            request_id = UUID(int=self.chance.getrandbits(128))
            self.kept[request_id] = event(self.chance, at_ms)
            jobs.append(partial(record, number=1, request_id=request_id, given=self.kept[request_id]))
        self.write(*jobs)

    @rule(most=st.sampled_from((1, 5, 100)), settled=st.integers(0, 5))
    def index(self, most: int, settled: int) -> None:
        self.write(partial(indexed, before_ms=self.now_ms - settled, most=most))

    @rule(by_ms=st.sampled_from((700, 3_000, -500, -100_000, 100_000)))
    def time_passes(self, by_ms: int) -> None:
        """Or the clock is set."""
        self.now_ms += by_ms

    @rule(most=st.integers(1, 8))
    def erase(self, most: int) -> None:
        gone = self.chance.sample(sorted(self.kept), min(most, len(self.kept)))
        self.erased.update(gone)
        for request_id in gone:
            del self.kept[request_id]
        self.write(*(partial(purge_event, number=1, request_id=request_id.bytes) for request_id in gone))

    @rule()
    def change(self) -> None:
        """As an update of an event does; what filters select by stays."""
        if self.kept:
            request_id = self.chance.choice(sorted(self.kept))
            self.write(partial(changed, request_id=request_id))

    @rule()
    def rebuild_the_index(self) -> None:
        self.store.change_log(partial(rebuild, now_ms=self.now_ms))

    @rule(filtered=st.booleans(), limit=st.integers(1, 30))
    def begin_to_read(self, filtered: bool, limit: int) -> None:
        filters = some_filters(self.chance) if filtered else Filters()
        self.consumers.append(Consumer(self.store, filters, limit))

    @rule(pages=st.integers(1, 4))
    def read_on(self, pages: int) -> None:
        for consumer in self.consumers:
            for _ in range(pages):
                trio.run(consumer.read_on, self.now_ms)

    @rule()
    def everything_arrives(self) -> None:
        """When the clock is beyond what any other clock said, everybody has got everything, each once."""
        later_ms = self.now_ms + 1_000_000
        for consumer in self.consumers:
            trio.run(consumer.read_all, later_ms)
            ids = [request_id for _, request_id in consumer.got]
            assert len(ids) == len(set(ids)), "an event came twice"
            wanted = {one for one, given in self.kept.items() if fits(consumer.filters, given)}
            assert wanted == set(ids) - self.erased
            assert consumer.got == sorted(consumer.got)

    @invariant()
    def holds(self) -> None:
        if self.is_unchecked:
            with self.store.read() as snapshot:
                assert list(violations(snapshot)) == []
            self.is_unchecked = False


def fits(filters: Filters, given: Event) -> bool:
    return given.environment == ENVIRONMENT and filters.matches(given)


def changed(transaction: Transaction, request_id: UUID) -> None:
    stored = transaction.get(EVENTS, 1, request_id.bytes)
    assert stored is not None
    rewrite_event(transaction, 1, request_id, stored, msgspec.structs.replace(stored, action="changed"), EPOCH_MS)


TestMachine = pytest.mark.slow(8)(Machine.TestCase)
TestMachine.settings = settings(max_examples=effort(10, 40), stateful_step_count=40, deadline=None)


def at(*arrivals_ms: int) -> list[tuple[int, UUID, Event]]:
    """Events that arrived so long after the epoch, with the ids 1, 2, ..."""
    chance = random.Random(7)
    return [
        (1, UUID(int=number), event(chance, EPOCH_MS + arrival_ms, environment=ENVIRONMENT))
        for number, arrival_ms in enumerate(arrivals_ms, start=1)
    ]


def stored(*made: tuple[int, UUID, Event]) -> list[Any]:
    jobs = [partial(record, number=number, request_id=one, given=given) for number, one, given in made]
    return [*jobs, count_again]


async def test_an_event_is_held_back_for_two_seconds_and_one_that_is_later_comes_when_it_is_stored(tmp_path: Path):
    first, second, late, later = at(0, 1000, 500, 700)
    with filled_store(tmp_path, first, second) as store:
        consumer = Consumer(store, Filters(), 10)
        for now_ms, got in ((HOLD_MS - 1, 0), (HOLD_MS, 1), (HOLD_MS + 999, 1), (HOLD_MS + 1000, 2)):
            assert await consumer.read_on(EPOCH_MS + now_ms)
            assert [one.int for _, one in consumer.got] == [1, 2][:got]
        store.write_now(stored(late))
        await consumer.read_on(EPOCH_MS + HOLD_MS + 1001)
        store.write_now(stored(later))
        await consumer.read_on(EPOCH_MS + HOLD_MS + 1002)
        assert [one.int for _, one in consumer.got] == [1, 2, 3, 4]
        assert [at.arrival_ms - EPOCH_MS for at, _ in consumer.got] == [0, 1000, 1001, 1002]
        again = Consumer(store, Filters(), 1)
        await again.read_all(EPOCH_MS + HOLD_MS + 1003)
        assert again.got == consumer.got, "who comes later gets the same, in the same order"
        with store.read() as snapshot:
            newest = event_page(snapshot, 1, ENVIRONMENT, Listing(EPOCH_MS, EPOCH_MS + 5000))
            assert [match.request_id.int for match in newest.events] == [2, 4, 3, 1], "lists go by arrival as ever"
            assert snapshot.count(LATE_EVENTS) == 2


def test_the_newest_event_of_a_segment_that_was_changed_is_found_wherever_a_look_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A changed event is in the tail again, at the very position at which its segment ends."""
    for name, value in SMALLER.items():
        monkeypatch.setattr(indexing, name, value)
    made = at(*range(1, 40))
    with filled_store(tmp_path, *made) as store:
        while store.write_now([partial(indexed, before_ms=EPOCH_MS + 100, most=100)]) != [0]:
            pass
        with store.read() as snapshot:
            ends = {key[-1] for key in snapshot.scan_keys(EVENT_SEGMENTS, (*SCOPE,))}
        assert len(ends) == 3
        store.write_now([partial(changed, request_id=UUID(bytes=raw_id)) for raw_id in ends])
        for most_keys in range(1, 30):
            found: list[bytes] = []
            after: Position | None = BEGINNING
            with store.read() as snapshot:
                while after is not None:
                    part = feeds.positions(snapshot, SCOPE, Filters(), after, EPOCH_MS + 100, 10, most_keys)
                    found += [row.of.request_id for row in part.rows]
                    after = part.resume
            assert found == [one.bytes for _, one, _ in made], most_keys


async def test_without_new_events_reading_the_feed_writes_nothing(tmp_path: Path):
    with filled_store(tmp_path, *at(0)) as store:
        consumer = Consumer(store, Filters(), 10)
        await consumer.read_on(EPOCH_MS + HOLD_MS)
        commits = store.commits
        for now_ms in range(0, 60_000, 1000):
            await consumer.read_on(EPOCH_MS + HOLD_MS + now_ms)
        assert store.commits == commits
        with store.read() as snapshot:
            assert snapshot.get(FEED_CLOSED, *SCOPE) == EPOCH_MS, "and only up to the last event is it closed"


async def test_a_position_from_before_a_restore_is_closed_again_before_anybody_goes_on_from_it(tmp_path: Path):
    """What was stored after the backup is gone, and what is stored now by a clock that is behind must not hide."""
    with filled_store(tmp_path) as store:
        consumer = Consumer(store, Filters(), 10)
        consumer.after = Position(EPOCH_MS + 1000, b"\xff" * 16)
        await consumer.read_on(EPOCH_MS + 60_000)
        store.write_now(stored(*at(900)))
        await consumer.read_on(EPOCH_MS + 60_001)
        assert [one.int for _, one in consumer.got] == [1]


@pytest.mark.parametrize(
    ("ahead", "closing_ms"),
    [
        (Ahead(1000, None, None, None), 1000),
        (Ahead(1000, None, 1400, 1900), 1400),
        (Ahead(1000, 1001, None, 1900), 1001),
        (Ahead(1000, 1001, 1400, 1900), 1400),
        (Ahead(1000, None, 1400, 9_000 + AHEAD_MS), 1400),
        (Ahead(1000, None, 1400, 9_001 + AHEAD_MS), 9_001 + AHEAD_MS),
        (Ahead(9_000 - HOLD_MS - STEP_MS + 1, None, 6_900, 6_900), 9_000 - HOLD_MS - STEP_MS + 1),
        (Ahead(20_000, 20_001, None, None), 20_001),
    ],
    ids=("nothing", "due", "late", "both", "a-little-early", "early", "too-soon", "clock-behind"),
)
def test_how_far_the_feed_is_closed_at_a_time(ahead: Ahead, closing_ms: int):
    assert ahead.closing_ms(9_000, 0) == closing_ms
    assert ahead.closing_ms(9_000, closing_ms + 5) == closing_ms + 5, "at least up to where somebody is"


def test_closing_goes_only_forward(tmp_path: Path):
    with filled_store(tmp_path) as store:
        jobs = [partial(close, scope=SCOPE, to_ms=to_ms) for to_ms in (5, 3, 9)]
        assert store.write_now(jobs) == [5, 5, 9]


def test_what_leads_nowhere_in_the_feed_is_found(tmp_path: Path):
    late, lost = at(5, 6)
    with filled_store(tmp_path) as store:
        store.write_one_now(partial(close, scope=SCOPE, to_ms=EPOCH_MS + 10))
        store.write_now(stored(late, lost))

        def damage(transaction: Transaction) -> None:
            transaction.delete(LATE_EVENTS, *SCOPE, EPOCH_MS + 11, lost[1].bytes)
            transaction.put(LATE_EVENTS, (*SCOPE, EPOCH_MS + 12, late[1].bytes), b"")

        store.write_one_now(damage)
        with store.read() as snapshot:
            assert sorted(violations(snapshot)) == [
                f"late_events has request {late[1]}, which has no such place in the feed",
                f"request {lost[1]} is not found in the feed",
            ]
