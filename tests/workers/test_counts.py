"""Counts of all workers: added exactly, and never less than they were."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from svc.kernel.config import Config
from svc.kernel.store.directory import open_directory
from svc.kernel.values.histogram import Exemplar, HistogramStatistics
from svc.serve.metrics.samples import PublishedSamples, SampleTable, added, pack_samples, read_samples
from svc.serve.service import Service
from svc.workers.shared_memory import HALF_BYTES, Counts, WorkerSlot
from svc.world import World

VALUES = st.one_of(
    st.integers(0, 1 << 40).map(float),
    st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda counts: HistogramStatistics((1.0,), counts, 2.0)),
    st.just(HistogramStatistics((1.0,), (0, 1), 2.0, {1: Exemplar("a" * 32, 2.0, 7)})),
)


def tables(value: st.SearchStrategy[object]) -> st.SearchStrategy[SampleTable]:
    return st.dictionaries(st.sampled_from(["a", "b"]), st.dictionaries(st.tuples(st.sampled_from(["x", "y"])), value))  # type: ignore[return-value]


@given(tables(VALUES), st.integers(0, 1 << 50))
def test_packing_and_unpacking_are_inverse(values: SampleTable, at_ms: int):
    assert read_samples(pack_samples(PublishedSamples(at_ms, values))) == PublishedSamples(at_ms, values)
    assert read_samples(b"") is None


@given(tables(st.integers(0, 1 << 40).map(float)), tables(st.integers(0, 1 << 40).map(float)))
def test_sums_are_by_name_and_labels(one: SampleTable, other: SampleTable):
    total = added(one, other)
    for name in {*one, *other}:
        for labels in {*one.get(name, {}), *other.get(name, {})}:
            assert total[name][labels] == one.get(name, {}).get(labels, 0.0) + other.get(name, {}).get(labels, 0.0)
    assert added(other, one) == total


def test_histograms_are_added_bucket_by_bucket():
    one, other = (
        HistogramStatistics((1.0, 2.0), counts, total) for counts, total in (((1, 2, 3), 5.0), ((4, 0, 1), 2.5))
    )
    assert added({"h": {(): one}}, {"h": {(): other}}) == {"h": {(): HistogramStatistics((1.0, 2.0), (5, 2, 4), 7.5)}}


def test_of_the_exemplars_of_two_workers_the_latest_is_kept():
    older, newer, only = Exemplar("a" * 32, 0.5, 1), Exemplar("b" * 32, 0.6, 2), Exemplar("c" * 32, 3.0, 1)
    one = HistogramStatistics((1.0,), (1, 1), 3.5, {0: older, 1: only})
    other = HistogramStatistics((1.0,), (1, 0), 0.6, {0: newer})
    for total in (added({"h": {(): one}}, {"h": {(): other}}), added({"h": {(): other}}, {"h": {(): one}})):
        assert total["h"][()] == HistogramStatistics((1.0,), (2, 1), 4.1, {0: newer, 1: only})


def test_each_worker_has_its_own_slot_and_an_oversized_value_changes_nothing():
    counts = Counts(2)
    assert counts.read(0) == b""
    for number in range(5):
        assert counts.write(0, b"a" * number)
        assert counts.write(1, b"b")
        assert (counts.read(0), counts.read(1)) == (b"a" * number, b"b")
    assert not counts.write(0, bytes(HALF_BYTES))
    assert counts.read(0) == b"aaaa"


def test_a_half_written_slot_is_not_read():
    counts = Counts(1)
    counts.write(0, b"first")
    counts.write(0, b"second")
    at = counts._memory.find(b"second")
    counts._memory[at] = 0
    assert counts.read(0) == b"first"


def test_a_worker_killed_while_it_writes_leaves_a_complete_set():
    counts = Counts(1)
    counts.write(0, b"0" * 50_000)
    pid = os.fork()
    if pid == 0:
        while True:
            for digit in b"123456789":
                counts.write(0, bytes([digit]) * 50_000)
    for _ in range(100):
        found = counts.read(0)
        assert len(found) in (0, 50_000)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    left = counts.read(0)
    assert len(left) == 50_000
    assert len(set(left)) == 1


async def test_the_sum_of_two_workers_outlives_them_both(tmp_path: Path):
    counts, world = Counts(2), World.real()
    found = open_directory(tmp_path, world.run_sync, world.entropy, durable=False, map_bytes=16 << 20)

    def worker(index: int) -> Service:
        return Service(Config(), world, found, tmp_path, slot=WorkerSlot(index, 2), counts=counts)

    async def shown(service: Service) -> dict[str, float]:
        text = (await service.metrics.expose()).decode()
        return {
            sample.name: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if not sample.labels or sample.labels.get("route") == "identify"
        }

    try:
        one, other = worker(0), worker(1)
        for service, requests in ((one, 3), (other, 4)):
            for _ in range(requests):
                context = service.traffic.began(world.request_id(0), 0)
                context.operation_id = "identify"
                service.traffic.ended(context, 200)
            service.traffic.began(world.request_id(0), 0)
            service.metrics.publish()
        seen = await shown(one)
        assert seen["svc_http_requests_total"] == seen["svc_http_request_duration_seconds_count"] == 7
        assert seen["svc_http_requests_in_flight"] == 2
        assert seen["svc_workers_silent"] == 0
        again = worker(1)
        again.metrics.publish()
        seen = await shown(worker(0))
        assert seen["svc_http_requests_total"] == 7, "also of those who are gone"
        assert seen["svc_http_requests_in_flight"] == 0, "which had no end"
    finally:
        found.store.close()
