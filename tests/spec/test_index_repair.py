"""Decisions 17.5: what follows from events and is corrupt is made again from them, here the segments of their index
(ADR 186). Until then the lists that need it are an error, and never a shorter list.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Any
from uuid import UUID

import pytest
import structlog

from svc.features.feed.feed import HOLD_MS
from svc.identify.index.digests import digests
from svc.identify.index.queries import FIRST_PART, SLOTS, SMALL, part_of
from svc.identify.indexing import indexer
from svc.identify.indexing import jobs as indexing
from svc.identify.indexing.indexer import repair
from svc.identify.tables import EVENT_SEGMENTS, EVENTS
from svc.kernel.store.engine import KeyRange, Writer
from svc.kernel.store.store import Store
from svc.kernel.values.fields import ENVIRONMENTS
from svc.kernel.work.store_watch import CorruptRows
from tests.spec.responses import assert_error
from tests.spec.test_events import get, secret_key, visits
from tests.spec.test_unreadable_events import corrupt, flipped, indexed, pages, unreadable
from tests.store.test_event_index import SMALLER
from tests.support.live import Live
from tests.support.writes import purge_event

HERE = ENVIRONMENTS.index("development")


@pytest.fixture(autouse=True)
def _smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALLER.items():
        monkeypatch.setattr(indexing, name, value)
    monkeypatch.setattr(indexing, "ROWS_A_SLICE", 3)
    monkeypatch.setattr(indexing, "EVENTS_A_SLICE", 5)
    monkeypatch.setattr(indexer, "SHORTEST_REST_S", 3600.0)  # the service's own would be faster at times


def damage(live: Live, part: int, place: int = 0) -> tuple[bytes, bytes]:
    """Flip a bit of a row of the index, of those with this part the one at `place`; its key and bytes before."""
    engine = live.found.store.engine
    with closing(engine.read()) as reader:
        rows = [
            (key, raw)
            for key, raw in reader.range(KeyRange(EVENT_SEGMENTS.name))
            if EVENT_SEGMENTS.key.unpack(key)[1:3] == (HERE, part)
        ]
    key, raw = rows[place]
    engine.write(lambda writer: writer.put_many(EVENT_SEGMENTS.name, [(key, flipped(raw))]))
    return key, raw


def parts(live: Live) -> list[int]:
    """Of the postings of large segments those that there are."""
    with live.found.store.read() as snapshot:
        found = {key[2] for key in snapshot.scan_keys(EVENT_SEGMENTS, ()) if key[1] == HERE}
    return sorted(part for part in found if part >= FIRST_PART)


async def filled(live: Live, count: int = 28, *, elsewhere: bool = False) -> tuple[list[str], str]:
    """So many events of five tags, in segments; `elsewhere`: and as many of another environment."""
    made: list[str] = []
    for at in range(count):
        made += await visits(live, 1, tag=f"tag-{at % 5}")
        if elsewhere:
            await visits(live, 1, environment="staging")
        live.clock.now_ms += 1000
    secret = secret_key(live)
    await indexed(live)
    live.clock.now_ms += HOLD_MS
    return made, secret


async def asked(live: Live, secret: str) -> list[list[dict[str, Any]]]:
    """What a list, a feed, and lists of a visitor and of each tag say."""
    everything = await pages(live, secret, limit=50)
    visitors = {row["visitor_id"] for row in everything if "visitor_id" in row}
    feed = await pages(live, secret, limit=50, order="oldest")
    filters = [{"visitor": each} for each in sorted(visitors)] + [{"tag": f"tag-{at}"} for at in range(5)]
    return [everything, feed, *[await pages(live, secret, limit=50, **each) for each in filters]]


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("what", ["small", "slots", "postings"])
@pytest.mark.slow(0.3)
async def test_a_corrupt_segment_is_made_again_and_lists_are_what_they_were(live: Live, what: str, elsewhere: bool):
    """Events of another environment lie between those that it had."""
    _, secret = await filled(live, elsewhere=elsewhere)
    before = await asked(live, secret)
    damaged = [SMALL] if what == "small" else [SLOTS] if what == "slots" else parts(live)
    for part in damaged:
        damage(live, part)
    if what != "postings":
        assert_error(await get(live, secret, limit=50), 500, "internal_error")
        assert live.service.services.corrupt.found.total()
    with structlog.testing.capture_logs() as logs:
        assert await repair(live.found.store, CorruptRows()) == 1
    assert [log["event"] for log in logs] == ["a corrupt segment of the index was made again"]
    assert await asked(live, secret) == before
    assert await repair(live.found.store, CorruptRows()) == 0


@pytest.mark.parametrize("part", [SMALL, SLOTS])
@pytest.mark.slow(0.2)
async def test_a_late_event_of_its_time_stays_where_it_is(live: Live, part: int):
    """It is in the tail, or at its own place of the feed, once."""
    _, secret = await filled(live)
    assert len(await pages(live, secret, limit=50, order="oldest")) == 28
    live.clock.now_ms -= 6 * 60_000
    await visits(live, 1)
    live.clock.now_ms += 6 * 60_000 + HOLD_MS
    before = await asked(live, secret)
    damage(live, part)
    assert await repair(live.found.store, CorruptRows()) == 1
    assert await asked(live, secret) == before


@pytest.mark.parametrize("part", [SMALL, SLOTS])
@pytest.mark.slow(0.2)
async def test_an_event_that_cannot_be_read_either_is_named(live: Live, part: int):
    made, secret = await filled(live)
    damage(live, part)
    lost = made[17 if part == SMALL else 3]
    with corrupt(live, EVENTS, lost):
        assert await repair(live.found.store, CorruptRows()) == 1
        rows = await pages(live, secret, limit=50)
        assert unreadable(lost) in rows
        assert sorted(row["request_id"] for row in rows) == sorted(made)
    damage(live, part)
    assert await repair(live.found.store, CorruptRows()) == 1, "and is found by its values once it can be read"


@pytest.mark.slow(0.2)
async def test_a_segment_whose_key_is_corrupt_is_left_to_the_operator(live: Live):
    """Which events it had is not known: made of others, they would be listed twice."""
    _, secret = await filled(live)
    key, raw = damage(live, SLOTS)
    store, found = live.found.store, CorruptRows()
    moved = key[:-16] + bytes([key[-16] ^ 1]) + key[-15:]
    rename(store, key, moved, raw)
    assert await repair(store, found) == 0
    assert found.found == {"index repair": 1}
    assert_error(await get(live, secret, limit=50), 500, "internal_error")
    rename(store, moved, key, raw)


def rename(store: Store, key: bytes, to: bytes, raw: bytes) -> None:
    def write(writer: Writer) -> None:
        writer.delete(EVENT_SEGMENTS.name, key)
        writer.put(EVENT_SEGMENTS.name, to, raw)

    store.engine.write(write)


@pytest.mark.slow(0.2)
async def test_what_changed_while_the_events_were_read_is_not_undone(live: Live, monkeypatch: pytest.MonkeyPatch):
    """An event that was erased meanwhile would be in the index again: the next look makes it of what there is then."""
    made, secret = await filled(live)
    store, number = live.found.store, live.organization.number
    with store.read() as snapshot:
        events = {each: snapshot.get(EVENTS, number, UUID(each).bytes) for each in made[:16]}
    used = {each: set(map(part_of, digests(event).values)) for each, event in events.items() if event is not None}
    part, erased = next((part, each) for part in parts(live) for each in made[:16] if part not in used[each])
    damage(live, part)
    write_one = store.write_one

    async def after_an_erasure(job: Any, organization: int, **how: Any) -> Any:
        await write_one(partial(purge_event, number=number, request_id=UUID(erased).bytes), number)
        return await write_one(job, organization, **how)

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_one", after_an_erasure)
        assert await repair(store, CorruptRows()) == 0
    assert await repair(store, CorruptRows()) == 1
    rows = await pages(live, secret, limit=50)
    assert [row["request_id"] for row in reversed(rows)] == [each for each in made if each != erased]
