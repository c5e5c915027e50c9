"""Changes against a plain history: each once, in one order for every reader, and a copy that follows them is equal to
the store (ADR 221).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from svc.features.changes import jobs as changes
from svc.features.changes.jobs import Change, ChangePlace
from svc.features.changes.routes import CHANGES
from svc.features.feed.feed import BEGINNING, HOLD_MS, Feed
from svc.features.feed.jobs import close
from svc.features.feed.pages import FeedPages
from svc.identify.events.listing import EVERYTHING, Position, first_change_behind, place_of_change
from svc.identify.queries.event_changes import note_changes
from svc.identify.queries.events import EventMatch, feed_time_ms, rewrite_event
from svc.identify.records import Event
from svc.identify.tables import EVENT_CHANGES, EVENTS
from svc.kernel.store.engine import KeyRange
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.world import World
from tests.store.test_events import filled_store
from tests.store.test_feed import ENVIRONMENT, SCOPE, Machine, at
from tests.store.test_filters import Counted
from tests.support.effort import effort
from tests.support.worlds import EPOCH_MS
from tests.support.writes import purge_event

ORDER = ("event.created", "event.updated", "event.erased")


class Follower:
    """Reads changes, keeps them in their order, and a copy of the events."""

    def __init__(self, store: Store, limit: int) -> None:
        self.store, self.limit = store, limit
        self.after = BEGINNING
        self.got: list[Change] = []
        self.copy: dict[UUID, Event] = {}

    async def read_on(self, now_ms: int) -> bool:
        """Read a page; whether it was at the end."""

        async def close_to(to_ms: int) -> int:
            return await self.store.write_one(partial(close, scope=SCOPE, to_ms=to_ms), SCOPE.number)

        async def read(places: Sequence[ChangePlace]) -> list[Change]:
            def each(snapshot: Any) -> list[Change]:
                return [row for row in changes.read_each(snapshot, places, SCOPE, 0) if row is not None]

            return await self.store.query(each)

        feed = Feed(self.after, EVERYTHING, self.limit, 0)
        page = await FeedPages(World.real(), self.store, SCOPE, CHANGES, close_to).page(feed, now_ms, read)
        assert len(page.rows) <= self.limit
        assert all(self.after < change.place <= page.behind for change in page.rows)
        for change in page.rows:
            self.apply(change)
        self.got += page.rows
        self.after = page.behind
        return not page.has_more

    def apply(self, change: Change) -> None:
        if change.type == "event.erased":
            self.copy.pop(change.request_id, None)
        elif isinstance(change.event, EventMatch):
            self.copy[change.request_id] = change.event.event

    async def read_all(self, now_ms: int) -> None:
        while not await self.read_on(now_ms):
            pass


def updated(transaction: Transaction, request_id: UUID, action: str, now_ms: int) -> None:
    event = transaction.get(EVENTS, 1, request_id.bytes)
    assert event is not None
    rewrite_event(transaction, 1, request_id, event, msgspec.structs.replace(event, action=action), now_ms)


def erased(transaction: Transaction, request_id: UUID, now_ms: int) -> None:
    event = transaction.get(EVENTS, 1, request_id.bytes)
    assert event is not None
    if event.environment == ENVIRONMENT:
        note_changes(transaction, SCOPE, "erased", now_ms, [(request_id.bytes, feed_time_ms(event))])
    purge_event(transaction, 1, request_id.bytes)


class FollowingMachine(Machine):
    """The machine of the feed, whose events are changed and erased by clocks that are ahead or behind, too."""

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        super().begin(seed)
        self.patch.setattr(changes, "KEYS_OF_A_LOOK", self.chance.choice((3, 20, 250)))
        self.followers: list[Follower] = []
        self.updates: Counter[UUID] = Counter()
        self.all_erased: set[UUID] = set()

    @rule(most=st.integers(1, 8), off_ms=st.sampled_from((0, 0, -3_000, 20_000)))
    def erase(self, most: int, off_ms: int) -> None:
        gone = self.chance.sample(sorted(self.kept), min(most, len(self.kept)))
        now_ms = self.now_ms + off_ms
        self.write(*(partial(erased, request_id=request_id, now_ms=now_ms) for request_id in gone))
        self.all_erased.update(one for one in gone if self.kept[one].environment == ENVIRONMENT)
        for request_id in gone:
            del self.kept[request_id]

    @rule(count=st.integers(1, 5), off_ms=st.sampled_from((0, 0, -60_000, 3_000, 60_000)))
    def change(self, count: int, off_ms: int) -> None:
        for _ in range(count if self.kept else 0):
            request_id = self.chance.choice(sorted(self.kept))
            action = f"a{self.chance.random()}"
            self.write(partial(updated, request_id=request_id, action=action, now_ms=self.now_ms + off_ms))
            if self.kept[request_id].environment == ENVIRONMENT:
                self.updates[request_id] += 1

    @rule(limit=st.integers(1, 30))
    def begin_to_read(self, limit: int) -> None:
        self.followers.append(Follower(self.store, limit))

    @rule(pages=st.integers(1, 4))
    def read_on(self, pages: int) -> None:
        for follower in self.followers:
            for _ in range(pages):
                trio.run(follower.read_on, self.now_ms)

    def teardown(self) -> None:
        if hasattr(self, "followers") and self.followers:
            self.everything_arrives()
        super().teardown()

    @rule()
    def everything_arrives(self) -> None:
        """Everybody has everything, each once and in one order, and a copy that is equal to the store."""
        with self.store.read() as snapshot:
            found = snapshot.scan(EVENTS, 1)
            now = {UUID(bytes=raw_id): event for (_, raw_id), event in found if event.environment == ENVIRONMENT}
        orders: list[list[tuple[Position, str, UUID]]] = []
        for follower in self.followers:
            trio.run(follower.read_all, self.now_ms + 1_000_000)
            assert follower.copy == now
            said = Counter((change.type, change.request_id) for change in follower.got)
            assert {one: said["event.updated", one] for one in self.updates} == dict(self.updates)
            assert {one for kind, one in said if kind == "event.erased"} == self.all_erased
            assert all(count == 1 for (kind, _), count in said.items() if kind != "event.updated")
            of_each: defaultdict[UUID, list[str]] = defaultdict(list)
            for change in follower.got:
                of_each[change.request_id].append(change.type)
            assert all(kinds == sorted(kinds, key=ORDER.index) for kinds in of_each.values())
            assert [change.place for change in follower.got] == sorted({change.place for change in follower.got})
            created = {one for kind, one in said if kind == "event.created"}
            assert now.keys() <= created
            assert created - now.keys() <= self.all_erased
            order = [(change.place, change.type, change.request_id) for change in follower.got]
            orders.append([each for each in order if each[2] not in self.all_erased or each[1] != "event.created"])
        assert all(order == orders[0] for order in orders)


TestFollowing = pytest.mark.slow(8)(FollowingMachine.TestCase)
TestFollowing.settings = settings(max_examples=effort(10, 40), stateful_step_count=40, deadline=None)


def test_the_place_of_a_change_is_behind_every_event_of_its_millisecond():
    """Of request ids, which are UUIDv7."""
    last = UUID(int=(1 << 128) - 1 - (8 << 76)).bytes  # the version is 7
    assert last[6] >> 4 == 7
    places = [Position(5, last), place_of_change(5, 0), place_of_change(5, 1), place_of_change(5, 2**32 - 1)]
    assert places == sorted(places)
    assert places[-1] < Position(6, bytes(16))
    behind = [first_change_behind(place) for place in places]
    assert behind == [(5, 0), (5, 1), (5, 2), (6, 0)]


def test_notes_are_in_the_order_of_their_commits_whatever_the_clocks_say(tmp_path: Path):
    (first,) = at(100)
    with filled_store(tmp_path, first) as store:

        def note(now_ms: int) -> Any:
            return partial(updated, request_id=first[1], action=f"a{now_ms}", now_ms=EPOCH_MS + now_ms)

        for now_ms in (50, 40, 200, 150, 200):
            assert store.write_now([note(now_ms)]) == [None]
        store.write_one_now(partial(close, scope=SCOPE, to_ms=EPOCH_MS + 1000))
        store.write_now([note(300), note(1001), note(900)])
        with store.read() as snapshot:
            rows = list(snapshot.scan(EVENT_CHANGES, *SCOPE))
        places = [(key[2] - EPOCH_MS, key[3]) for key, _ in rows]
        assert places == [(100, 0), (100, 1), (200, 0), (200, 1), (200, 2), (1001, 0), (1001, 1), (1001, 2)]
        assert [made_ms - EPOCH_MS for _, made_ms in rows] == [50, 40, 200, 150, 200, 300, 1001, 900]


def test_an_event_that_was_updated_several_times_is_read_once(tmp_path: Path):
    """Each of its updates has the event as it is now."""
    first, second = at(0, 1)
    with filled_store(tmp_path, first, second) as store:
        for now_ms, (_, request_id, _) in enumerate((first, second, first, first), start=2):
            store.write_now([partial(updated, request_id=request_id, action=f"a{now_ms}", now_ms=EPOCH_MS + now_ms)])
        with store.read() as snapshot:
            noted = changes.places(snapshot, SCOPE, EVERYTHING, BEGINNING, EPOCH_MS + 9, 9).rows[2:]
            counted = Counted(snapshot)
            found = [each for each in changes.read_each(counted, noted, SCOPE, 0) if each is not None]
        assert counted.touched == {EVENTS.name: 2}
        assert [(each.place, each.request_id) for each in found] == [(row.place, row.request_id) for row in noted]
        events = [each.event.event.action for each in found if isinstance(each.event, EventMatch)]
        assert events == ["a5", "a3", "a5", "a5"]


async def test_a_note_that_cannot_be_read_is_passed_over(tmp_path: Path):
    (first,) = at(0)
    with filled_store(tmp_path, first) as store:
        for now_ms in (1, 2, 3):
            store.write_now([partial(updated, request_id=first[1], action=f"a{now_ms}", now_ms=EPOCH_MS + now_ms)])
        for row in (2, 1):

            def damage(writer: Any, row: int = row) -> None:
                key, raw = list(writer.range(KeyRange(EVENT_CHANGES.name)))[row]
                writer.put(EVENT_CHANGES.name, key, raw[:-1] + bytes([raw[-1] ^ 1]))

            store.engine.write(damage)
            follower = Follower(store, 10)
            await follower.read_all(EPOCH_MS + HOLD_MS + 1000)
            assert [change.type for change in follower.got] == ["event.created"] + ["event.updated"] * row
        assert store.write_now([partial(updated, request_id=first[1], action="b", now_ms=EPOCH_MS + 1)]) == [None]


async def test_without_changes_reading_them_writes_nothing(tmp_path: Path):
    with filled_store(tmp_path, *at(0)) as store:
        follower = Follower(store, 10)
        await follower.read_on(EPOCH_MS + HOLD_MS)
        commits = store.commits
        for now_ms in range(0, 60_000, 1000):
            await follower.read_on(EPOCH_MS + HOLD_MS + now_ms)
        assert store.commits == commits
