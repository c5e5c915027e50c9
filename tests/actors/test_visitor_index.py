"""The writer of identifications: what it keeps in memory, when it writes it, and what a job that fails costs."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from svc.actors import visitor_index
from svc.actors.mailbox import Mailbox, Reply
from svc.actors.messages import Admission, Admitted, Answer, Assessed, Failed
from svc.actors.tally import Tally
from svc.actors.visitor_index import Frequencies, run
from svc.domain.identification import Duplicate, Identified, Refused, assess
from svc.domain.matching import Lesson, Statistics
from svc.domain.refusals import Refusal
from svc.domain.webhooks.records import LaneKey
from svc.store.directory import Opened
from svc.store.store import StoreFull
from svc.store.tables import EVENTS, STATISTICS
from svc.store.transactions.accounts import create_organization
from svc.store.transactions.identification import Recorded
from svc.store.transactions.webhook_endpoints import NewEndpoint, create_endpoint
from svc.world import World
from tests.actors.test_pipeline import open_store, submission
from tests.domain.matching_world import features_of
from tests.support.worlds import HeldThreads

LESSONS_BETWEEN_WRITES = 256
"""What a crash may forget of them, as is promised."""
NOTHING_ELSE = Refused(Refusal("no_credit"), 0)


@pytest.fixture
def found(tmp_path: Path) -> Generator[Opened]:
    opened = open_store(tmp_path, HeldThreads())
    yield opened
    opened.store.close()


def kept(found: Opened, organization: int = 1) -> Statistics | None:
    with found.store.read() as snapshot:
        raw = snapshot.get(STATISTICS, organization)
    return None if raw is None else Statistics.from_bytes(raw)


def learn(frequencies: Frequencies, lessons: int, organization: int = 1) -> Statistics:
    statistics = frequencies.of(organization)
    for _ in range(lessons):
        frequencies.learn(organization, Recorded(NOTHING_ELSE, Lesson(features=features_of(), new_devices=1.0)))
    return statistics


async def test_what_was_learned_is_written_after_so_many_lessons_and_is_there_after_a_restart(found: Opened):
    frequencies = Frequencies(found.store)
    learn(frequencies, LESSONS_BETWEEN_WRITES - 1)
    learn(frequencies, 1, organization=2)
    await frequencies.write_behind(visitor_index.LESSONS_BETWEEN_WRITES)
    assert kept(found) is None
    learned = learn(frequencies, 1)
    await frequencies.write_behind(visitor_index.LESSONS_BETWEEN_WRITES)
    family = features_of().family
    written = kept(found)
    assert written is not None
    assert written.devices(family) == learned.devices(family) == LESSONS_BETWEEN_WRITES
    assert kept(found, 2) is None, "each by its own lessons"
    assert Frequencies(found.store).of(1).to_bytes() == learned.to_bytes()


async def test_what_is_written_is_not_written_again_before_as_many_lessons_more(found: Opened):
    frequencies = Frequencies(found.store)
    learn(frequencies, LESSONS_BETWEEN_WRITES)
    await frequencies.write_behind(visitor_index.LESSONS_BETWEEN_WRITES)
    before = found.store.statistics().commits
    learn(frequencies, LESSONS_BETWEEN_WRITES - 1)
    await frequencies.write_behind(visitor_index.LESSONS_BETWEEN_WRITES)
    assert found.store.statistics().commits == before
    learn(frequencies, 1)
    await frequencies.write_behind(visitor_index.LESSONS_BETWEEN_WRITES)
    assert found.store.statistics().commits == before + 1


async def test_what_taught_nothing_is_no_lesson(found: Opened):
    frequencies = Frequencies(found.store)
    before = frequencies.of(1).to_bytes()
    frequencies.learn(1, Recorded(NOTHING_ELSE, None))
    await frequencies.write_behind(1)
    assert kept(found) is None
    assert frequencies.of(1).to_bytes() == before
    assert frequencies.of(1) is frequencies.of(1)


async def test_statistics_that_find_no_room_are_kept_in_memory(found: Opened, monkeypatch: pytest.MonkeyPatch):
    async def full(_: Any) -> Any:
        raise StoreFull("no room")

    frequencies = Frequencies(found.store)
    learned = learn(frequencies, 5)
    with monkeypatch.context() as patched:
        patched.setattr(found.store, "write", full)
        await frequencies.write_behind(1)
    assert frequencies.of(1) is learned
    learn(frequencies, 1)
    await frequencies.write_behind(1)
    written = kept(found)
    assert written is not None
    assert written.devices(features_of().family) == 6


async def test_statistics_that_cannot_be_written_for_another_reason_end_the_writer(found: Opened):
    class Broken(Statistics):
        def to_bytes(self) -> bytes:
            raise RuntimeError("nobody foresaw this")

    frequencies = Frequencies(found.store)
    frequencies._known[1] = Broken()
    learn(frequencies, 1)
    with pytest.raises(RuntimeError, match="nobody foresaw this"):
        await frequencies.write_behind(1)


def assessed(sent: Any) -> tuple[Assessed, Reply[Answer]]:
    reply: Reply[Answer] = Reply()
    return Assessed(assess(sent, None), Admitted(sent, Admission(0, 0), reply)), reply


async def record(found: Opened, *submissions: Any) -> tuple[list[Any], list[LaneKey], Tally]:
    """Their outcomes; who was nudged; what was counted."""
    inbox, nudged, tally = Mailbox[Assessed](64), list[LaneKey](), Tally()
    messages = [assessed(sent) for sent in submissions]
    for message, _ in messages:
        await inbox.put(message)
    inbox.close()
    await run(inbox, found.store, 64, nudged.extend, tally)
    with trio.fail_after(1):
        return [(await reply.wait()).outcome for _, reply in messages], nudged, tally


async def test_an_identification_that_fails_in_its_transaction_fails_alone(found: Opened):
    bad = msgspec.structs.replace(submission(2), spare_visitor_id="not in ÄSCII")
    outcomes, _, tally = await record(found, submission(1), bad, submission(3))
    assert outcomes[1] == Failed("internal_error")
    assert isinstance(outcomes[0], Identified)
    assert isinstance(outcomes[2], Identified)
    with found.store.read() as snapshot:
        assert snapshot.count(EVENTS) == 2
    assert sum(tally.statistics().matched.values()) == 2


async def test_what_is_recorded_is_counted_and_teaches_and_is_kept_at_the_end(found: Opened):
    twice = msgspec.structs.replace(submission(1), idempotency=b"i" * 16)
    outcomes, _, tally = await record(found, twice, msgspec.structs.replace(twice), submission(5))
    assert [type(outcome) for outcome in outcomes] == [Identified, Duplicate, Identified]
    assert tally.statistics().duplicates == 1
    written = kept(found)
    assert written is not None
    family = assess(twice, None).features.family
    assert written.devices(family) > 0.5


async def test_without_room_everybody_is_told_to_come_again_and_nothing_is_learned(
    found: Opened, monkeypatch: pytest.MonkeyPatch
):
    async def full(_: Any) -> Any:
        raise StoreFull("no room")

    monkeypatch.setattr(found.store, "write", full)
    outcomes, nudged, tally = await record(found, submission(1), submission(2))
    assert outcomes == [Failed("service_unavailable")] * 2
    assert nudged == []
    assert tally.statistics().matched == {}
    assert kept(found) is None


async def test_whoever_sends_webhooks_is_told_after_the_commit(found: Opened):
    entropy = World.real().entropy
    make = partial(create_organization, organization_id="org_" + "A" * 20, name="x", now_ms=0, rate_limit_per_s=0)
    url, events = "https://receiver.example/", ("identification.completed",)
    new = NewEndpoint(id="whk_" + "A" * 20, url=url, description="", environment="test", events=events)
    subscribe = partial(create_endpoint, number=1, new=new, secrets_key=entropy(32), now_ms=0)
    for job in (make, subscribe):
        (outcome,) = found.store.write_now([job])
        assert not isinstance(outcome, Exception)
    _, nudged, _ = await record(found, submission(1), submission(2))
    assert nudged == [LaneKey(1, 1)] * 2
