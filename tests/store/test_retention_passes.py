"""Passes of retention read what can be over and little else, and leave nothing behind (ADR 72)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from svc.features.organizations.jobs import create_organization
from svc.features.retention.jobs import BLOCKS_INTERVAL_MS, PASS_INTERVAL_MS, VISITORS_OF_A_LOOK
from svc.features.retention.sweeper import sweep
from svc.features.tables import TABLES
from svc.identify.events.segments import Digests, of_one
from svc.identify.index.queries import Scope, write_run
from svc.identify.matching import Visitor
from svc.identify.records import IDEMPOTENCY_MS, Idempotency
from svc.identify.tables import (
    BLOCKS,
    DELETED_VISITORS,
    EVENT_SEGMENTS,
    IDEMPOTENCY,
    LAST_LOOKS,
    VISITOR_COUNTS,
    VISITOR_IDS,
    VISITORS,
)
from svc.kernel.store.directory import open_directory
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import STEP_LOOKS
from svc.kernel.store.store import Store
from svc.kernel.tenants.jobs import add
from svc.kernel.values.ids import DAY_MS
from tests.support.counted_store import CountedStore
from tests.support.worlds import EPOCH_MS, inline, seeded_entropy

VISITORS_MADE = 6 * VISITORS_OF_A_LOOK
DAYS = 100
"""Of `visitor_retention_days`."""


class CrashedError(Exception):
    """Retention does not go on here."""


@contextmanager
def new_store(directory: Path) -> Generator[Store]:
    """With organization 1."""
    found = open_directory(directory, inline, seeded_entropy(1), durable=False, map_bytes=64 << 20)
    make = partial(create_organization, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)
    found.store.write_now([make])
    yield found.store
    found.store.close()


def put_visitor(transaction: Transaction, number: int, now_ms: int) -> None:
    """A visitor who comes for the first time."""
    visitor = Visitor(
        visitor_id=f"{number:020}", family=1, collector=1, values=(0,) * 20, browser_version=0, os_release=0,
        font_sketch=0, rest_sketch=0, first_seen_s=now_ms // 1000, last_seen_s=now_ms // 1000,
    )  # fmt: skip
    transaction.put(VISITORS, (1, number), visitor)
    transaction.put(VISITOR_IDS, (1, visitor.visitor_id.encode()), number)
    given = max(number, transaction.get(VISITOR_COUNTS, 1) or 0)
    transaction.put(VISITOR_COUNTS, (1,), given)
    add(transaction, 1, now_ms, lambda held: held.plus(visitors=1))


def see_visitor(transaction: Transaction, number: int, now_ms: int) -> None:
    """As `Visitor.updated`, where it is there."""
    visitor = transaction.get(VISITORS, 1, number)
    if visitor is not None:
        seen_s = max(visitor.last_seen_s, now_ms // 1000)
        transaction.put(VISITORS, (1, number), msgspec.structs.replace(visitor, last_seen_s=seen_s))


def put_key(transaction: Transaction, first: bytes, at_ms: int) -> None:
    """An idempotency key under a digest that begins so."""
    place = sum(1 for _ in transaction.scan(IDEMPOTENCY, 1))
    transaction.put(IDEMPOTENCY, (1, first + place.to_bytes(10)), Idempotency(b"r" * 16, at_ms))


def swept(store: Store, now_ms: int, *, days: int = DAYS, crash_after: int = 1_000_000) -> Counter[str]:
    """Sweep as the actor does; the rows that were read. It dies after so many transactions."""
    counted = CountedStore(store)
    left = crash_after

    async def write(writes: Any, **given: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise CrashedError
        return await CountedStore.write(counted, writes, **given)

    counted.write = write

    async def run() -> None:
        with suppress(CrashedError):
            await sweep(cast("Store", counted), now_ms, days)

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
    return counted.rows


def numbers_in(store: Store) -> set[int]:
    with store.read() as snapshot:
        return {number for (_, number), _ in snapshot.scan(VISITORS)}


def many(store: Store, now_ms: int) -> None:
    """Visitors, and idempotency keys in the order of time."""

    def put(transaction: Transaction) -> None:
        for number in range(1, VISITORS_MADE + 1):
            put_visitor(transaction, number, now_ms)
        for key in range(2 * VISITORS_OF_A_LOOK):
            transaction.put(IDEMPOTENCY, (1, now_ms.to_bytes(6) + key.to_bytes(10)), Idempotency(b"r" * 16, now_ms))

    assert store.write_now([put]) == [None]


@pytest.mark.slow(0.2)
def test_a_second_start_reads_no_row_but_whether_a_pass_is_due(tmp_path: Path):
    with new_store(tmp_path) as store:
        many(store, EPOCH_MS)
        assert swept(store, EPOCH_MS)[VISITORS.name] >= VISITORS_MADE
        again = swept(store, EPOCH_MS + PASS_INTERVAL_MS - 1)
        assert again.total() <= len(TABLES)
        assert not any(again[table.name] for table in (VISITORS, IDEMPOTENCY, LAST_LOOKS, BLOCKS))


@pytest.mark.slow
def test_the_next_pass_reads_one_row_for_each_range_of_visitors(tmp_path: Path):
    """Whatever was made or seen since; only a range with somebody who may be over is read again."""
    with new_store(tmp_path) as store:
        many(store, EPOCH_MS)
        swept(store, EPOCH_MS)
        first_new = VISITORS_MADE + 10 * VISITORS_OF_A_LOOK
        later_ms = EPOCH_MS + DAY_MS // 2

        def visits(transaction: Transaction) -> None:
            see_visitor(transaction, 5, later_ms)
            for number in range(first_new, first_new + 20):
                put_visitor(transaction, number, later_ms)

        store.write_now([visits])
        rows = swept(store, later_ms)
        new_ranges = 11
        assert rows[VISITORS.name] < 20 + new_ranges  # and the first one behind a range
        assert rows[LAST_LOOKS.name] == VISITORS_MADE // VISITORS_OF_A_LOOK + 1
        assert rows[IDEMPOTENCY.name] <= 1
        rows = swept(store, later_ms + PASS_INTERVAL_MS)
        assert rows[VISITORS.name] == 0
        assert numbers_in(store) == {*range(1, VISITORS_MADE + 1), *range(first_new, first_new + 20)}
        swept(store, EPOCH_MS + DAYS * DAY_MS)
        assert numbers_in(store) == {5, *range(first_new, first_new + 20)}


@pytest.mark.slow
@pytest.mark.parametrize("segments", [10, 300, 1000])
def test_a_step_looks_for_events_of_as_many_visitors_as_the_index_allows(tmp_path: Path, segments: int):
    """Each search reads a row of every segment, and everybody's identifications wait for the step."""
    with new_store(tmp_path) as store:

        def put(transaction: Transaction) -> None:
            for number in range(1, 41):
                put_visitor(transaction, number, EPOCH_MS)
            for at in range(1, segments + 1):
                here = (at, at.to_bytes(16))
                write_run(transaction, Scope(1, at % 3), of_one(here, Digests((at << 50,))), here, large=False)

        store.write_now([put])
        steps = list[int]()
        counted = CountedStore(store)

        async def write(writes: Any, **given: Any) -> Any:
            before = counted.rows[EVENT_SEGMENTS.name]
            done = await CountedStore.write(counted, writes, **given)
            steps.append(counted.rows[EVENT_SEGMENTS.name] - before)
            return done

        counted.write = write
        run = partial(sweep, cast("Store", counted), EPOCH_MS + DAYS * DAY_MS, DAYS)
        trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
        assert numbers_in(store) == set()
        assert sum(steps) >= 40 * segments
        assert max(steps) <= max(STEP_LOOKS, segments) + min(STEP_LOOKS, segments) + 100


@pytest.mark.slow
def test_other_visitor_days_are_in_force_at_the_next_start(tmp_path: Path):
    with new_store(tmp_path) as store:
        many(store, EPOCH_MS)
        now_ms = EPOCH_MS + 50 * DAY_MS
        swept(store, now_ms)
        assert len(numbers_in(store)) == VISITORS_MADE
        swept(store, now_ms + 1, days=60)
        assert len(numbers_in(store)) == VISITORS_MADE
        swept(store, now_ms + 2, days=50)
        assert numbers_in(store) == set()


@pytest.mark.slow(0.2)
def test_a_pass_that_was_interrupted_is_made_again_and_reads_on(tmp_path: Path):
    """What its transactions noted stays."""
    with new_store(tmp_path) as store:
        many(store, EPOCH_MS)
        steps = 4
        first = swept(store, EPOCH_MS, crash_after=steps)
        assert first[VISITORS.name] < VISITORS_MADE
        second = swept(store, EPOCH_MS + 1)
        assert first[VISITORS.name] + second[VISITORS.name] <= VISITORS_MADE + 2 * VISITORS_OF_A_LOOK
        assert swept(store, EPOCH_MS + 2)[VISITORS.name] == 0


def test_blocks_are_read_once_a_day_however_many_visitors_are_deleted(tmp_path: Path):
    assert BLOCKS_INTERVAL_MS == DAY_MS
    with new_store(tmp_path) as store:
        hours = range(0, 49, 6)
        for hour in hours:
            store.write_now([partial(put_visitor, number=1 + hour, now_ms=EPOCH_MS + hour * 3_600_000)])
        read: list[bool] = []
        for gone, hour in enumerate(hours, 1):
            read.append(swept(store, EPOCH_MS + DAYS * DAY_MS + hour * 3_600_000)[DELETED_VISITORS.name] > 0)
            assert len(numbers_in(store)) == len(hours) - gone
    assert read == [place % 4 == 0 for place in range(len(hours))]


class Retained(RuleBasedStateMachine):
    """A store whose visitors come and go while clocks jump, workers give numbers that they took long ago, and sweeps
    die: after any of it, a sweep that comes to its end has deleted who is over, and nobody else.
    """

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.opened = new_store(Path(self.folder.name))
        self.store = self.opened.__enter__()
        self.now_ms = EPOCH_MS
        self.days = DAYS
        self.taken = 0

    def _do(self, job: Callable[[Transaction], Any]) -> None:
        (outcome,) = self.store.write_now([job])
        assert not isinstance(outcome, Exception), outcome

    @rule(gap=st.sampled_from((1, 1, 2, 32, 300)))
    def come(self, gap: int) -> None:
        self.taken += gap
        self._do(partial(put_visitor, number=self.taken, now_ms=self.now_ms))

    @rule(back=st.integers(1, 600))
    def come_under_a_number_taken_before(self, back: int) -> None:
        number = self.taken - back
        if number > 0 and number not in numbers_in(self.store):
            self._do(partial(put_visitor, number=number, now_ms=self.now_ms))

    @rule(place=st.integers(0, 10))
    def return_(self, place: int) -> None:
        known = sorted(numbers_in(self.store))
        if known:
            self._do(partial(see_visitor, number=known[place % len(known)], now_ms=self.now_ms))

    @rule(ahead_ms=st.sampled_from((0, 60_000, 20 * 3_600_000, 40 * DAY_MS)), random=st.booleans())
    def use_a_key(self, ahead_ms: int, *, random: bool) -> None:
        first = b"\xf0random"[:6] if random else (self.now_ms + ahead_ms).to_bytes(6)
        self._do(partial(put_key, first=first, at_ms=self.now_ms))

    @rule(hours=st.sampled_from((1, 7, 25, 24 * 20, 24 * 60, 24 * 200)))
    def wait(self, hours: int) -> None:
        self.now_ms += hours * 3_600_000

    @rule(hours=st.sampled_from((1, 7, 25, 24 * 20, 24 * 60)))
    def clock_is_set_back(self, hours: int) -> None:
        self.now_ms -= hours * 3_600_000
        self._complete()

    @rule(days=st.sampled_from((1, 31, 90, 365)))
    def retention_is_set(self, days: int) -> None:
        self.days = days

    @rule(after=st.integers(0, 12))
    def sweep_and_die(self, after: int) -> None:
        before = self._over()
        swept(self.store, self.now_ms, days=self.days, crash_after=after)
        assert before >= self.known - numbers_in(self.store)

    @rule()
    def sweep(self) -> None:
        self._complete()

    def _complete(self) -> None:
        over = self._over()
        swept(self.store, self.now_ms, days=self.days)
        assert self.known - numbers_in(self.store) <= over
        assert self._over(PASS_INTERVAL_MS) == set(), "left behind"
        with self.store.read() as snapshot:
            ages = [self.now_ms - row.at_ms for _, row in snapshot.scan(IDEMPOTENCY)]
        assert max(ages, default=0) < IDEMPOTENCY_MS + DAY_MS + 2 * PASS_INTERVAL_MS

    def _over(self, late_ms: int = 0) -> set[int]:
        """By a full scan. `late_ms`: for so long at least."""
        unseen_ms = max(self.days, 30) * DAY_MS + late_ms
        with self.store.read() as snapshot:
            seen = {number: visitor.last_seen_s for (_, number), visitor in snapshot.scan(VISITORS)}
        self.known = set(seen)
        return {number for number, seen_s in seen.items() if self.now_ms - seen_s * 1000 >= unseen_ms}

    def teardown(self) -> None:
        if hasattr(self, "opened"):
            self.opened.__exit__(None, None, None)
            self.folder.cleanup()


TestRetained = pytest.mark.slow(Retained.TestCase)
TestRetained.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_numbers_of_deleted_visitors_are_read_some_at_a_time(tmp_path: Path):
    with new_store(tmp_path) as store:

        def put(transaction: Transaction) -> None:
            for number in range(3 * STEP_LOOKS):
                transaction.put(DELETED_VISITORS, (1, number), EPOCH_MS)

        store.write_now([put])
        reads = list[int]()
        counted = CountedStore(store)

        async def query(read: Any, **given: Any) -> Any:
            before = counted.rows[DELETED_VISITORS.name]
            found = await CountedStore.query(counted, read, **given)
            reads.append(counted.rows[DELETED_VISITORS.name] - before)
            return found

        counted.query = query
        run = partial(sweep, cast("Store", counted), EPOCH_MS + DAY_MS, DAYS)
        trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
        assert max(reads) == STEP_LOOKS
        with store.read() as snapshot:
            assert snapshot.count(DELETED_VISITORS) == 0
