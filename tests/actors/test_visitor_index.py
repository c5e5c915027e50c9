"""The writer of identifications: what it keeps in memory, when it writes it, and what a job that fails costs."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.features.identification.pipeline import frequencies as in_memory
from svc.features.identification.pipeline.frequencies import ClassKey, Frequencies
from svc.features.identification.pipeline.messages import (
    Admission,
    Admitted,
    Assessed,
    Failed,
    IdentificationCounters,
    PipelineResult,
)
from svc.features.identification.pipeline.visitor_index import VisitorIndex
from svc.features.identification.transaction import Recorded
from svc.features.organizations.jobs import create_organization
from svc.features.webhooks.jobs.endpoints import NewEndpoint, create_endpoint
from svc.identify.identification import Duplicate, Identified, Refused, assess
from svc.identify.matching import Statistics, StatisticsUpdate
from svc.identify.matching.statistics import CLASSES, StatisticsRows
from svc.identify.queries.learned import OTHERS, PRODUCTION, SHARED, scope_of
from svc.identify.tables import EVENTS, STATISTICS
from svc.kernel.store import operations
from svc.kernel.store.directory import Opened
from svc.kernel.store.postgresql.connection.wire import Statement, Wire
from svc.kernel.store.schema.operation_log import Following, unpack_batch
from svc.kernel.store.store import StoreFullError
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import Refusal
from svc.kernel.work.mailbox import Mailbox, Reply
from svc.world import World
from tests.actors.test_pipeline import open_store, submission
from tests.domain.matching_world import features_of
from tests.support.postgresql import Cluster
from tests.support.serving_postgresql import open_served, url_of
from tests.support.worlds import SettableClock, failing, inline

UPDATES_BETWEEN_WRITES = 256
"""What a crash may forget of a class that came often, as is promised."""
MATURE = 300
NOTHING_ELSE = Refused(Refusal("no_credit"), 0)


FAMILY = features_of().family


def key_of(organization: int = 1, scope: int = PRODUCTION, family: int = FAMILY) -> ClassKey:
    return ClassKey(organization, scope, family)


def kept(found: Opened, organization: int = 1, scope: int = PRODUCTION) -> Statistics | None:
    """All that is stored of a scope."""
    with found.store.read() as snapshot:
        rows = {key[2]: raw for key, raw in snapshot.scan(STATISTICS, organization, scope)}
    return Statistics.of_rows(StatisticsRows(rows.pop(SHARED), rows)) if rows else None


@pytest.fixture
def clock(found: Opened, monkeypatch: pytest.MonkeyPatch) -> SettableClock:
    """That of the store."""
    clock = SettableClock()
    monkeypatch.setattr(found.store, "elapsed_s", lambda: clock.elapsed_s)
    return clock


async def learn(frequencies: Frequencies, updates: int, key: ClassKey | None = None) -> Statistics:
    key = key or key_of()
    features = msgspec.structs.replace(features_of(), family=key.family)
    statistics = await frequencies.of(key)
    for _ in range(updates):
        await frequencies.learn(key, Recorded(NOTHING_ELSE, StatisticsUpdate(features=features, new_devices=1.0)))
    return statistics


@pytest.mark.parametrize(("visits", "most"), [(0, 4), (80, 11), (MATURE, UPDATES_BETWEEN_WRITES)])
async def test_statistics_are_written_after_a_number_of_updates_and_survive_a_restart(
    found: Opened, clock: SettableClock, visits: int, most: int
):
    """After few while little is known: a crash, and another process, would else lack most of it."""
    frequencies = Frequencies(found.store)
    await learn(frequencies, visits)
    await frequencies.write_behind(everything=True)
    clock.advance(seconds=5)
    await learn(frequencies, most - 1)
    await learn(frequencies, 1, key_of(organization=2))
    await frequencies.write_behind()
    assert (kept(found) or Statistics()).devices(FAMILY) == visits
    learned = await learn(frequencies, 1)
    await frequencies.write_behind()
    written = kept(found)
    assert written is not None
    assert written.devices(FAMILY) == learned.devices(FAMILY) == visits + most
    assert kept(found, 2) is None, "each by its own updates"
    assert (await Frequencies(found.store).of(key_of())).rows() == learned.rows()


async def test_young_classes_are_written_every_five_seconds_and_few_at_a_time(found: Opened, clock: SettableClock):
    """However many organizations learn from little: one with much traffic would else wait for them."""
    frequencies = Frequencies(found.store)
    scopes = [(organization, scope) for organization in range(1, 6) for scope in range(8)]
    for organization, scope in scopes:
        await learn(frequencies, 4, key_of(organization, scope))
    counts: list[int] = []
    for seconds in (0, 4.9, 0.1, 5):
        clock.advance(seconds=seconds)
        await frequencies.write_behind()
        counts.append(sum(kept(found, *scope) is not None for scope in scopes))
    assert counts == [32, 32, 40, 40]
    assert not frequencies.is_due()


async def test_a_young_class_waits_for_the_large_ones_that_would_be_written_with_it(
    found: Opened, clock: SettableClock
):
    frequencies = Frequencies(found.store)
    await learn(frequencies, MATURE)
    await frequencies.write_behind(everything=True)
    clock.advance(seconds=5)
    await learn(frequencies, 4, key_of(family=5))
    assert frequencies.is_due()
    await learn(frequencies, 1)
    assert not frequencies.is_due()
    await learn(frequencies, 10, key_of(family=6))
    assert not frequencies.is_due()
    await frequencies.write_behind(everything=True)
    clock.advance(seconds=5)
    await learn(frequencies, 4, key_of(family=6))
    await frequencies.write_behind()
    written = kept(found)
    assert written is not None
    assert [written.devices(family) for family in (FAMILY, 5, 6)] == [MATURE + 1, 4, 14]


async def test_only_changed_classes_are_written_after_enough_further_updates(found: Opened):
    frequencies = Frequencies(found.store)
    for family in (FAMILY, 5, 6):
        await learn(frequencies, MATURE, key_of(family=family))
    await frequencies.write_behind()
    found.store.change_log(partial(operations.begin, following=Following(b"t" * 16, 0, "/backup", 1 << 20)))
    before = found.store.statistics().commits
    await learn(frequencies, UPDATES_BETWEEN_WRITES - 1)
    await frequencies.write_behind()
    assert found.store.statistics().commits == before
    await learn(frequencies, 1)
    await frequencies.write_behind()
    assert found.store.statistics().commits == before + 1
    with found.store.read() as snapshot:
        written = dict(operations.batches(snapshot, 1))
    assert len(written) == 1
    changes = unpack_batch(written[1]).changes["statistics"]
    assert {STATISTICS.key.unpack(packed) for packed in changes} == {(1, PRODUCTION, SHARED), (1, PRODUCTION, FAMILY)}


async def test_an_update_without_content_is_not_counted(found: Opened):
    frequencies = Frequencies(found.store)
    before = (await frequencies.of(key_of())).rows()
    await frequencies.learn(key_of(), Recorded(NOTHING_ELSE, None))
    await frequencies.write_behind(everything=True)
    assert kept(found) is None
    assert (await frequencies.of(key_of())).rows() == before
    assert (await frequencies.of(key_of())) is (await frequencies.of(key_of()))


async def test_other_environments_start_from_production_and_never_change_it(found: Opened):
    frequencies = Frequencies(found.store)
    await learn(frequencies, 10)
    await frequencies.write_behind(everything=True)
    for _ in range(2):  # the second time from their own row
        others = await learn(frequencies, 5, key_of(scope=OTHERS))
        await frequencies.write_behind(everything=True)
        frequencies = Frequencies(found.store)
    assert others.devices(FAMILY) == 20
    assert (await frequencies.of(key_of())).devices(FAMILY) == 10
    await learn(frequencies, 100)
    await frequencies.write_behind(everything=True)
    assert (await Frequencies(found.store).of(key_of(scope=OTHERS))).devices(FAMILY) == 20, (
        "production is a start and no more"
    )


async def test_memory_holds_the_most_recently_used_classes_and_nothing_is_lost(found: Opened):
    frequencies = Frequencies(found.store, most=3)
    for organization in range(1, 6):
        for family in (7, 8):
            await learn(frequencies, organization, key_of(organization, family=family))
            await frequencies.write_behind()
            assert sum(len(scope.statistics.rows().classes) for scope in frequencies._scopes.values()) <= 3
    assert set(frequencies._scopes) == {(4, PRODUCTION), (5, PRODUCTION)}
    await frequencies.write_behind(everything=True)
    for organization in range(1, 6):
        for family in (7, 8):
            assert (await frequencies.of(key_of(organization, family=family))).devices(family) == organization


async def test_the_least_visited_class_is_evicted_for_a_new_one_also_in_the_store(found: Opened):
    frequencies = Frequencies(found.store)
    for family in range(1, CLASSES + 1):
        await learn(frequencies, 2 if family == 9 else 3, key_of(family=family))
    await frequencies.write_behind(everything=True)
    await learn(frequencies, 1, key_of(family=1000))
    await frequencies.write_behind(everything=True)
    with found.store.read() as snapshot:
        families = {key[2] for key, _ in snapshot.scan(STATISTICS, 1, PRODUCTION)}
    assert families == {SHARED, 1000, *range(1, CLASSES + 1)} - {9}
    assert (await learn(frequencies, 1, key_of(family=9))).devices(9) == 1, "it learns from the beginning"


async def test_statistics_are_kept_in_memory_while_the_store_is_full(found: Opened):
    frequencies = Frequencies(found.store, most=0)
    learned = await learn(frequencies, 5)
    with failing(found.store, StoreFullError("no space"), "write"):
        await frequencies.write_behind(everything=True)
    assert (await frequencies.of(key_of())) is learned
    await learn(frequencies, 1)
    await frequencies.write_behind(everything=True)
    written = kept(found)
    assert written is not None
    assert written.devices(FAMILY) == 6


async def test_any_other_write_error_ends_the_statistics_writer(found: Opened):
    class NetworkFileError(Statistics):
        def shared_bytes(self) -> bytes:
            raise RuntimeError("nobody foresaw this")

    frequencies = Frequencies(found.store)
    await learn(frequencies, 1)
    frequencies._scopes[1, PRODUCTION].statistics = NetworkFileError()
    with pytest.raises(RuntimeError, match="nobody foresaw this"):
        await frequencies.write_behind(everything=True)


Learned = tuple[int, int, int, float | None]
"""Which worker, which class, which device, and how probably it returned."""


@pytest.mark.slow
@given(
    learned=st.lists(
        st.one_of(
            st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(1, 40), st.none() | st.floats(0, 1, width=32)),
            st.integers(0, 2),  # that worker writes what it has
        ),
        max_size=80,
    ),
    scope=st.sampled_from([PRODUCTION, OTHERS]),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_several_workers_learn_the_same_as_one_in_the_order_of_their_writes(
    tmp_path: Path, learned: list[Learned | int], scope: int
):
    with tempfile.TemporaryDirectory(dir=tmp_path) as directory:
        opened = open_store(Path(directory), inline)
        try:
            trio.run(_compare, opened, learned, scope)
        finally:
            opened.store.close()


async def _compare(opened: Opened, learned: list[Learned | int], scope: int) -> None:
    one = Statistics()
    workers = [Frequencies(opened.store, most=2) for _ in range(3)]
    pending: list[list[StatisticsUpdate]] = [[] for _ in workers]

    async def write(worker: int) -> None:
        await workers[worker].write_behind(everything=True)
        for update in pending[worker]:
            one.learn(update)
        pending[worker].clear()

    for step in [*learned, 0, 1, 2]:
        if isinstance(step, int):
            await write(step)
            continue
        worker, family, device, returned = step
        features = msgspec.structs.replace(features_of(), family=family, hardware=device)
        update = StatisticsUpdate(features=features, new_devices=0.5, returned=returned)
        await workers[worker].learn(key_of(scope=scope, family=family), Recorded(NOTHING_ELSE, update))
        pending[worker].append(update)
    written = kept(opened, scope=scope)
    assert (Statistics() if written is None else written).rows() == one.rows()
    families = {step[1] for step in learned if not isinstance(step, int)}
    for worker in workers:
        for family in families:
            await worker.of(key_of(scope=scope, family=family))
    last = Frequencies(opened.store)
    for family in families:
        assert (await last.of(key_of(scope=scope, family=family))).devices(family) == one.devices(family)


async def test_a_class_evicted_by_another_worker_starts_again_and_the_store_keeps_its_row_limit(found: Opened):
    first, second = Frequencies(found.store), Frequencies(found.store)
    for family in range(1, CLASSES + 1):
        await learn(first, 2 if family == 9 else 3, key_of(family=family))
    await first.write_behind(everything=True)
    await learn(second, 1, key_of(family=9))
    await learn(first, 1, key_of(family=1000))
    await first.write_behind(everything=True)  # gives up class 9
    await second.write_behind(everything=True)  # gives up the least visited in its turn: class 1000
    written = kept(found)
    assert written is not None
    assert set(written.rows().classes) == {*range(1, CLASSES + 1)}
    assert written.devices(9) == 1


async def test_updates_of_very_many_classes_are_written_before_they_fill_the_memory(
    found: Opened, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(in_memory, "UPDATES_HELD", 20)
    frequencies = Frequencies(found.store)
    for family in range(1, 12):
        await learn(frequencies, 2, key_of(family=family))
        await frequencies.write_behind()
    written = kept(found)
    assert written is not None
    assert sum(written.devices(family) for family in range(1, 12)) == 22


def assessed(sent: Any) -> tuple[Assessed, Reply[PipelineResult]]:
    reply: Reply[PipelineResult] = Reply()
    return Assessed(assess(sent, None), Admitted(sent, Admission(0, 0), reply)), reply


async def record(found: Opened, *submissions: Any) -> tuple[list[Any], list[EndpointKey], IdentificationCounters]:
    """Their outcomes; who was woken; what was counted."""
    inbox, woken, counters = Mailbox[Assessed](64), list[EndpointKey](), IdentificationCounters()
    messages = [assessed(sent) for sent in submissions]
    for message, _ in messages:
        await inbox.put(message)
    inbox.close()
    await VisitorIndex(found.store, woken.extend, counters).run(inbox, 64)
    with trio.fail_after(60):
        return [(await reply.wait()).outcome for _, reply in messages], woken, counters


async def test_an_identification_that_fails_in_its_transaction_fails_alone(found: Opened):
    bad = msgspec.structs.replace(submission(2), new_visitor_id="not in ÄSCII")
    outcomes, _, counters = await record(found, submission(1), bad, submission(3))
    assert outcomes[1] == Failed("internal_error")
    assert isinstance(outcomes[0], Identified)
    assert isinstance(outcomes[2], Identified)
    with found.store.read() as snapshot:
        assert snapshot.count(EVENTS) == 2
    assert sum(counters.statistics().matched.values()) == 2


@pytest.mark.slow
async def test_no_organization_waits_for_another_of_its_batch(cluster: Cluster, tmp_path: Path):
    """The database lets nobody write for the first one."""
    opened, held = open_served(tmp_path, World.real()), await Wire.connect(url_of(tmp_path))
    made = [
        partial(create_organization, organization_id=f"org_{number}", name="", now_ms=0, rate_limit_per_s=0)
        for number in (1, 2)
    ]
    opened.store.write_now(made)
    await held.exchange([Statement(b"insert into svc.writers values (1, 0) on conflict do nothing")])
    await held.exchange([Statement(b"begin"), Statement(b"select from svc.writers where organization = 1 for update")])
    inbox, counters = Mailbox[Assessed](64), IdentificationCounters()
    (first, first_reply), (second, second_reply) = (
        assessed(msgspec.structs.replace(submission(number), organization=number)) for number in (1, 2)
    )
    async with trio.open_nursery() as nursery:
        for message in (first, second):
            await inbox.put(message)
        inbox.close()
        nursery.start_soon(VisitorIndex(opened.store, list, counters).run, inbox, 64)
        assert isinstance((await second_reply.wait()).outcome, Identified)
        assert not first_reply.is_set
        held.close()
    assert isinstance((await first_reply.wait()).outcome, Identified)
    opened.store.close()


async def test_recorded_identifications_are_counted_learned_and_flushed_at_the_end(found: Opened):
    twice = msgspec.structs.replace(submission(1), idempotency=b"i" * 16)
    outcomes, _, counters = await record(found, twice, msgspec.structs.replace(twice), submission(5))
    assert [type(outcome) for outcome in outcomes] == [Identified, Duplicate, Identified]
    assert counters.statistics().duplicates == 1
    written = kept(found, scope=scope_of(twice.environment))
    assert written is not None
    family = assess(twice, None).features.family
    assert written.devices(family) > 0.5


async def test_with_a_full_store_every_request_gets_a_retry_response_and_nothing_is_learned(found: Opened):
    with failing(found.store, StoreFullError("no space"), "write"):
        outcomes, woken, counters = await record(found, submission(1), submission(2))
    assert outcomes == [Failed("service_unavailable")] * 2
    assert woken == []
    assert counters.statistics().matched == {}
    assert kept(found) is None


async def test_the_webhook_sender_is_notified_after_the_commit(found: Opened):
    entropy = World.real().entropy
    make = partial(create_organization, organization_id="org_" + "A" * 20, name="x", now_ms=0, rate_limit_per_s=0)
    url, events = "https://receiver.example/", ("identification.completed",)
    new = NewEndpoint(id="whk_" + "A" * 20, url=url, description="", environment="test", events=events)
    subscribe = partial(create_endpoint, number=1, new=new, secrets_key=entropy(32), now_ms=0)
    for job in (make, subscribe):
        (outcome,) = found.store.write_now([job])
        assert not isinstance(outcome, Exception)
    _, woken, _ = await record(found, submission(1), submission(2))
    assert woken == [EndpointKey(1, 1)] * 2
