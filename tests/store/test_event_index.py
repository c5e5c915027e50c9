"""The index of events against a plain list, whenever and however far it is made (ADR 63)."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from svc.features.checks.invariants import violations
from svc.features.erasure.visitors import events_of
from svc.identify.events.listing import FACETS, Filters, Listing, Position
from svc.identify.index.digests import digest_of, digests
from svc.identify.index.queries import SLOTS, SMALL, Scope, scope_of
from svc.identify.index.tally_queries import read_part
from svc.identify.indexing import jobs as indexing
from svc.identify.indexing.jobs import poll, step
from svc.identify.model import Decision, ShadowMatch
from svc.identify.queries import visitors as visitor_views
from svc.identify.queries.events import NOTHING_BEHIND, event_page, positions, read, scan_action_counts
from svc.identify.queries.visitors import Activity, neighbors
from svc.identify.records import Event
from svc.identify.tables import EVENT_SEGMENTS, EVENT_TAIL, EVENTS
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.store import Store
from svc.kernel.values.fields import ENVIRONMENTS
from tests.store.test_events import (
    TAGS,
    VISITORS,
    count_again,
    event,
    filled_store,
    fired,
    record,
)
from tests.store.test_filters import OFFSETS, Counted, expected, some_filters
from tests.support.effort import effort
from tests.support.process import run
from tests.support.worlds import EPOCH_MS
from tests.support.writes import purge_event

SMALLER = {
    "EVENTS_A_SMALL": 4,
    "MAX_IN_SMALL": 8,
    "SMALL_IN_LARGE": 4,
    "EVENTS_A_LARGE": 16,
    "MAX_IN_LARGE": 32,
    "SCOPES_A_POLL": 2,
}
ALWAYS_MS = 2**64 - 1


@pytest.fixture
def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALLER.items():
        monkeypatch.setattr(indexing, name, value)


def indexed(transaction: Transaction, before_ms: int = ALWAYS_MS, most: int = 10**6) -> int:
    """Do so many steps; how many there were."""
    done, after = 0, None
    while True:
        found, after = poll(transaction, after, before_ms)
        while found is not None and done < most and step(transaction, found, before_ms):
            done += 1
        if after is None or done == most:
            return done


def segments(snapshot: Snapshot) -> dict[int, int]:
    """Part -> how many segments there are."""
    return {part: sum(1 for key, _ in snapshot.scan(EVENT_SEGMENTS) if key.part == part) for part in (SMALL, SLOTS)}


class Machine(RuleBasedStateMachine):
    """Events come in any order, are indexed, erased and queried; a list of them says what the queries have to say."""

    is_unchecked = False

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.patch = pytest.MonkeyPatch()
        for name, value in SMALLER.items():
            self.patch.setattr(indexing, name, value)
        self.chance = random.Random(seed)
        self.folder = TemporaryDirectory()
        self.opened = filled_store(Path(self.folder.name))
        self.store: Store = self.opened.__enter__()
        self.made: list[tuple[int, UUID, Event]] = []
        self.now_ms = EPOCH_MS
        self.arrive(count=seed % 200, late=0)
        self.index(most=100, settled=0)

    def teardown(self) -> None:
        if hasattr(self, "opened"):
            self.opened.__exit__(None, None, None)
            self.folder.cleanup()
            self.patch.undo()

    def write(self, *jobs: Any) -> list[Any]:
        self.is_unchecked = True
        outcomes = self.store.write_now([*jobs, count_again])
        failed = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        if failed:
            raise failed[0]
        return outcomes

    @rule(count=st.integers(1, 60), late=st.sampled_from((0, 0, 3, 200)))
    def arrive(self, count: int, late: int) -> None:
        """In order, or up to `late` ms late."""
        jobs = []
        for _ in range(count):
            self.now_ms += self.chance.randrange(3)
            at_ms = max(self.now_ms - self.chance.randrange(late + 1), EPOCH_MS)
            new = (1, UUID(int=self.chance.getrandbits(128)), event(self.chance, at_ms))
            self.made.append(new)
            jobs.append(partial(record, number=new[0], request_id=new[1], given=new[2]))
        self.write(*jobs)

    @rule(most=st.sampled_from((1, 2, 5, 100)), settled=st.integers(0, 5))
    def index(self, most: int, settled: int) -> None:
        self.write(partial(indexed, before_ms=self.now_ms - settled, most=most))

    @rule(most=st.integers(1, 8), oldest=st.booleans())
    def erase(self, most: int, *, oldest: bool) -> None:
        """A few of them, or the oldest as retention does."""
        if oldest:
            gone = sorted(self.made, key=lambda one: one[2].occurred_at_ms)[:most]
        else:
            gone = self.chance.sample(self.made, min(most, len(self.made)))
        self.made = [one for one in self.made if one not in gone]
        self.write(*(partial(purge_event, number=number, request_id=one.bytes) for number, one, _ in gone))

    @rule()
    def erase_a_visitor(self) -> None:
        visitor_id = self.chance.choice(VISITORS)

        def erase(transaction: Transaction) -> None:
            for request_id in list(events_of(transaction, 1, visitor_id.encode())):
                purge_event(transaction, 1, request_id)

        self.write(erase)
        self.made = [one for one in self.made if one[2].verdict.visitor_id != visitor_id]
        with self.store.read() as snapshot:
            kept = {digest for *_, given in self.made for digest in digests(given).values}
            assert stored(snapshot) == kept, "no digest stays that is not of an event"

    @rule(most_keys=st.sampled_from((1, 9, 60, 20_000)))
    def query(self, most_keys: int) -> None:
        """All pages of a listing, which are the whole list, each event once and in order."""
        chance = self.chance
        filters = some_filters(chance) if chance.random() < 0.8 else Filters()
        from_ms = EPOCH_MS + chance.randrange(-5, self.now_ms - EPOCH_MS + 5)
        until_ms = from_ms + chance.randrange(1, self.now_ms - EPOCH_MS + 10)
        after = Position(chance.randrange(from_ms, until_ms), chance.randbytes(16)) if chance.random() < 0.3 else None
        listing = Listing(from_ms, until_ms, filters, chance.choice(OFFSETS), chance.randrange(1, 40), after)
        environment = chance.choice(("staging", "development"))
        wanted = expected(self.made, environment, listing)
        with self.store.read() as snapshot:
            found = []
            left: Listing | None = listing
            while left is not None:
                page = positions(snapshot, 1, environment, left, most_keys)
                found += read(snapshot, page.rows, filters)
                resume = page.resume
                left = None if resume is None else left._replace(after=resume.after, offset=resume.offset)
            assert found == wanted
            assert event_page(snapshot, 1, environment, listing).events == wanted[: listing.limit]

    @rule()
    def visit(self) -> None:
        """The neighbors of an event, and all events of its visitor."""
        if not self.made:
            return
        _, request_id, given = self.chance.choice(self.made)
        visitor_id = given.verdict.visitor_id
        own = sorted(
            (other.occurred_at_ms, one)
            for _, one, other in self.made
            if other.verdict.visitor_id == visitor_id and other.environment == given.environment
        )
        place = own.index((given.occurred_at_ms, request_id))
        oldest_ms = EPOCH_MS + self.chance.randrange(60)
        before = own[place - 1] if place and own[place - 1][0] >= oldest_ms else None
        after = own[place + 1] if place + 1 < len(own) else None
        with self.store.read() as snapshot:
            found = neighbors(snapshot, 1, request_id, given, oldest_ms)
            assert found == (before and before[1], after and after[1])
            every = {UUID(bytes=one) for one in events_of(snapshot, 1, visitor_id.encode())}
        assert every == {one for _, one, other in self.made if other.verdict.visitor_id == visitor_id}

    @rule(at_once=st.sampled_from((1, 2, 9)), most_keys=st.sampled_from((1, 9, 60, 20_000)))
    def count_visitors(self, at_once: int, most_keys: int) -> None:
        """All parts of the counts of some visitors together, while the index is made."""
        since_ms = EPOCH_MS + self.chance.randrange(-5, self.now_ms - EPOCH_MS + 5)
        beyond = Position(EPOCH_MS + self.chance.randrange(self.now_ms - EPOCH_MS + 10), bytes(16))
        wanted = self.chance.sample(VISITORS, self.chance.randrange(1, len(VISITORS)))
        asked = {"number": 1, "environment": "staging", "visitor_ids": wanted, "since_ms": since_ms}
        after, found = beyond, dict[str, Activity]()
        self.patch.setattr(visitor_views, "KEYS_OF_A_LOOK", most_keys)
        while after != visitor_views.END:
            with self.store.read() as snapshot:
                for behind, part in [*visitor_views.scan_activities(snapshot, after, at_once, **asked)]:
                    after = behind
                    found |= {each: found.get(each, Activity()).plus(more) for each, more in part.items()}
            self.write(partial(indexed, before_ms=self.now_ms, most=1))
        times: dict[str, list[int]] = {}
        for _, _, given in self.made:
            visitor_id = given.verdict.visitor_id
            is_asked = visitor_id in wanted and given.environment == "staging"
            if is_asked and since_ms <= given.occurred_at_ms < beyond.arrival_ms:
                times.setdefault(visitor_id, []).append(given.occurred_at_ms)
        assert found == {each: Activity(len(all_), min(all_), max(all_)) for each, all_ in times.items()}

    @rule(most=st.sampled_from((1, 3, 100)), most_keys=st.sampled_from((1, 9, 60, 20_000)))
    def newest_of_visitors(self, most: int, most_keys: int) -> None:
        """The newest events of some visitors together, in parts, while the index is made."""
        since = Position(EPOCH_MS + self.chance.randrange(-5, self.now_ms - EPOCH_MS + 5), bytes(16))
        asked = {digest_of("visitor", name): name for name in self.chance.sample(VISITORS, 3)}
        found: dict[str, list[bytes]] = {name: [] for name in asked.values()}
        beyond: Position | None = Position(EPOCH_MS + self.chance.randrange(self.now_ms - EPOCH_MS + 10), bytes(16))
        until_ms = beyond.arrival_ms
        while beyond is not None:
            with self.store.read() as snapshot:
                scope = Scope(1, ENVIRONMENTS.index("staging"))
                part = read_part(snapshot, scope, asked, since, beyond, most_keys)
                beyond = part.rest
            for digest, places in part.newest_of_each(most).items():
                assert places == sorted(places, reverse=True)
                assert len(places) <= most
                found[asked[digest]] += [place.request_id for place in places]
            self.write(partial(indexed, before_ms=self.now_ms, most=1))
        for name in found:
            own = sorted(
                (
                    (given.occurred_at_ms, one.bytes)
                    for _, one, given in self.made
                    if given.verdict.visitor_id == name
                    and given.environment == "staging"
                    and since.arrival_ms <= given.occurred_at_ms < until_ms
                ),
                reverse=True,
            )
            assert found[name][:most] == [one for _, one in own][:most]

    @invariant()
    def holds(self) -> None:
        """After a rule that wrote: to check the whole store takes ten times as long as a rule."""
        if self.is_unchecked:
            with self.store.read() as snapshot:
                assert list(violations(snapshot)) == []
            self.is_unchecked = False


def stored(snapshot: Snapshot) -> set[int]:
    """Every digest that is anywhere in the index."""
    found = {digest for _, row in snapshot.scan(EVENT_TAIL) for digest in row.values}
    return found.union(digest for _, segment in snapshot.scan(EVENT_SEGMENTS) for digest in segment.digests)


TestMachine = pytest.mark.slow(8)(Machine.TestCase)
TestMachine.settings = settings(max_examples=effort(10, 40), stateful_step_count=40, deadline=None)


def some(count: int, environment: str = "staging", start: int = 1, **fields: Any) -> list[tuple[int, UUID, Event]]:
    chance = random.Random(5)
    return [
        (1, UUID(int=number), event(chance, EPOCH_MS + number, environment=environment, **fields))
        for number in range(start, start + count)
    ]


def recorded(made: list[tuple[int, UUID, Event]]) -> list[Any]:
    return [partial(record, number=number, request_id=one, given=given) for number, one, given in made]


@pytest.mark.slow
def test_events_move_to_small_segments_and_those_to_large_ones(tmp_path: Path):
    """With the sizes as they are: at most 127 events stay in the tail, and at most 63 small segments beside."""
    made = some(64 * 64 + 63)
    with filled_store(tmp_path, *made) as store:
        assert store.write_now([partial(indexed, before_ms=EPOCH_MS)]) == [0], "not before they have settled"
        assert store.write_now([indexed]) == [65]
        with store.read() as snapshot:
            assert (snapshot.count(EVENT_TAIL), segments(snapshot)) == (63, {SMALL: 0, SLOTS: 1})
            assert list(violations(snapshot)) == []
        store.write_now(recorded(some(1, start=9000)))
        assert store.write_now([indexed]) == [1]
        with store.read() as snapshot:
            assert (snapshot.count(EVENT_TAIL), segments(snapshot)) == (0, {SMALL: 1, SLOTS: 1})


def test_late_events_are_found_and_moved_to_the_segment_of_their_time(tmp_path: Path, smaller: None):
    made = some(40)
    late = [
        (1, UUID(int=10_000 + number), event(random.Random(number), EPOCH_MS + 5, environment="staging"))
        for number in range(9)
    ]
    with filled_store(tmp_path, *made) as store:
        store.write_now([indexed])
        store.write_now(recorded(late))
        listing = Listing(EPOCH_MS, EPOCH_MS + 10**6, limit=200)
        for left in (9, 1):
            with store.read() as snapshot:
                assert snapshot.count(EVENT_TAIL) == left
                assert event_page(snapshot, 1, "staging", listing).events == expected(
                    [*made, *late], "staging", listing
                )
            assert store.write_now([indexed, count_again])[0] == (2 if left == 9 else 0)
        with store.read() as snapshot:
            assert list(violations(snapshot)) == []


def test_a_crash_between_steps_leaves_a_usable_index(tmp_path: Path, smaller: None):
    """Each step is a transaction: after any number of them, everything is found."""
    made = some(75)
    listing = Listing(EPOCH_MS, EPOCH_MS + 10**6, Filters(tag=TAGS[0]), limit=200)
    with filled_store(tmp_path, *made) as store:
        steps = 0
        while store.write_now([partial(indexed, most=1)]) == [1]:
            steps += 1
            with store.read() as snapshot:
                assert event_page(snapshot, 1, "staging", listing).events == expected(made, "staging", listing)
        assert steps == 18 + 4
        with store.read() as snapshot:
            count_before = snapshot.count(EVENT_TAIL)

        def breaks(transaction: Transaction) -> None:
            purge_event(transaction, 1, made[3][1].bytes)
            raise RuntimeError("half way")

        (outcome,) = store.write_now([breaks])
        assert isinstance(outcome, RuntimeError)
        with store.read() as snapshot:
            assert snapshot.count(EVENT_TAIL) == count_before
            assert list(violations(snapshot))[:1] == [], "nothing of it was done"


def test_short_tails_are_skipped_in_batches(tmp_path: Path, smaller: None):
    made = [(number, UUID(int=number * 100 + place), event(random.Random(place), EPOCH_MS + place, environment=name))
            for number in (1, 2) for name in ("staging", "development") for place in range(1, 4)]  # fmt: skip
    made += [(2, UUID(int=900), event(random.Random(1), EPOCH_MS + 9, environment="development"))]
    with filled_store(tmp_path, *made) as store, store.read() as snapshot:
        assert poll(snapshot, None, ALWAYS_MS) == (None, Scope(1, 2))
        assert poll(snapshot, Scope(1, 2), ALWAYS_MS) == (Scope(2, 2), Scope(2, 2))
        assert poll(snapshot, Scope(2, 2), ALWAYS_MS) == (None, None)


@pytest.mark.slow
def test_a_segment_is_shown_as_counts_without_its_values(tmp_path: Path):
    """The inspector shows no digest, by which a value that is guessed could be confirmed."""
    with filled_store(tmp_path, *some(64 * 64 + 64)) as store:
        store.write_now([indexed])
        store.write_now([partial(purge_event, number=1, request_id=UUID(int=7).bytes)])
    ran = run("inspect", "rows", "event_segments", "--data", str(tmp_path), "--json", "--limit", "100")
    shown = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {"part", "arrival", "request_id"} < {*shown[0]["key"]}
    events = {line["key"]["part"]: line["value"]["events"] for line in shown}
    assert (events[SMALL], events[SLOTS], events[7]) == (64, 64 * 64 - 1, 0)
    assert all({*line["value"]} == {"events", "digests"} for line in shown)


def test_counting_no_actions_reads_nothing(tmp_path: Path, smaller: None):
    start, parts = Listing(EPOCH_MS, EPOCH_MS + 10**6).start, 1000
    asked: dict[str, Any] = {"number": 1, "environment": "staging", "from_ms": EPOCH_MS}
    with filled_store(tmp_path, *some(70, action=None)) as store:
        store.write_now([indexed])
        with store.read() as snapshot:
            assert segments(snapshot)[SLOTS] > 0
            counted = Counted(snapshot)
            assert list(scan_action_counts(counted, start, parts, actions=(), **asked)) == [(NOTHING_BEHIND, {})]
            assert not counted.touched
            assert list(scan_action_counts(counted, start, parts, actions=("none",), **asked)) == [(NOTHING_BEHIND, {})]
            assert counted.touched


def drop(table: Any, **parts: int) -> Any:
    def job(transaction: Transaction) -> None:
        key = next(key for key, _ in transaction.scan(table) if parts.items() <= key._asdict().items())
        transaction.delete(table, *key)

    return job


def copied_to_the_tail(transaction: Transaction) -> None:
    _, request_id, given = some(1)[0]
    transaction.put(EVENT_TAIL, (*scope_of(1, given), given.occurred_at_ms, request_id.bytes), digests(given))


def cleared(transaction: Transaction) -> None:
    transaction.clear(EVENT_TAIL)


def overlapping(transaction: Transaction) -> None:
    """A small segment whose key is that of an event within a large one."""
    keys = [key for key, _ in transaction.scan(EVENT_SEGMENTS) if key.part == SMALL]
    segment = transaction.get(EVENT_SEGMENTS, *keys[0])
    assert segment is not None
    transaction.delete(EVENT_SEGMENTS, *keys[0])
    transaction.put(EVENT_SEGMENTS, (*keys[0][:3], EPOCH_MS + 8, UUID(int=8).bytes), segment)


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (cleared, "is not found in the index"),
        (copied_to_the_tail, "is in event_tail and in event_segments"),
        (drop(EVENT_SEGMENTS, part=SMALL), "is not found in the index"),
        (drop(EVENT_SEGMENTS, part=SLOTS), "belongs to no segment"),
        (drop(EVENT_SEGMENTS, part=7), "under other values than it has"),
        (drop(EVENTS), "which has no event"),
        (overlapping, "out of order"),
    ],
)
def test_a_wrong_index_is_reported(tmp_path: Path, smaller: None, job: Any, sentence: str):
    with filled_store(tmp_path, *some(16 + 8 + 3)) as store:
        assert store.write_now([indexed]) == [7]
        assert faults(store) == []
        store.write_now([job, count_again])
        assert any(sentence in fault for fault in faults(store)), faults(store)


def faults(store: Store) -> list[str]:
    with store.read() as snapshot:
        return list(violations(snapshot))


def test_every_filter_value_is_indexed():
    named = {"account_id": "a", "action": "log_in", "asn": "1", "label": "fraud"}
    shadow = tuple(ShadowMatch(name, name, "block") for name in ("rul_y", "rul_z"))
    given = event(random.Random(1), EPOCH_MS, tag="t", country_code="GB", signals=fired("tor", "vpn"))
    verdict = msgspec.structs.replace(given.verdict, decision=Decision("block", "rul_x", "x"))
    given = msgspec.structs.replace(given, verdict=verdict, shadow=shadow, **named)
    assert len(digests(given).values) == 2 + len(FACETS) + 2 + 1, (
        "of two signals, two shadows, and that it has an account"
    )
