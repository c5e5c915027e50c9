"""Token buckets that processes share: exact to one token, whichever process takes one or dies."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.limits.ratelimit import BucketName, Limiter, LimitShares, MemoryBuckets
from svc.workers.shared_memory import SETS, WAYS, SharedBuckets

ORGANIZATION = BucketName("identify", 1)


def entropy(size: int) -> bytes:
    return bytes(range(size))


def address(text: str) -> BucketName:
    return BucketName("identify", 1, "address", text)


def in_processes(count: int, work: Callable[[], int]) -> list[int]:
    """What each of so many forked processes counted; they begin together."""
    go, begin = os.pipe()
    reading, writing = os.pipe()
    pids: list[int] = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(begin)
                os.read(go, 1)
                os.write(writing, struct.pack("<q", work()))
                status = 0
            finally:
                os._exit(status)
        pids.append(pid)
    os.close(begin)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)
    counted = [struct.unpack("<q", os.read(reading, 8))[0] for _ in pids]
    for descriptor in (go, reading, writing):
        os.close(descriptor)
    return counted


@pytest.mark.slow
def test_two_processes_competing_for_one_bucket_get_exactly_its_content():
    buckets = SharedBuckets(entropy)
    takes, limit = 20_000, 30_000

    def hammer() -> int:
        return sum(buckets.take({ORGANIZATION: limit}, 1_000)[0].admitted for _ in range(takes))

    counted = in_processes(2, hammer)
    assert sum(counted) == limit
    assert all(0 < count <= takes for count in counted)


@pytest.mark.slow(0.5)
def test_two_processes_on_the_system_clock_get_burst_and_refill_and_no_token_more():
    buckets, limit = SharedBuckets(entropy), 5_000
    began_ms = time.time_ns() // 1_000_000

    def hammer() -> int:
        admitted = 0
        while (now_ms := time.time_ns() // 1_000_000) < began_ms + 500:
            admitted += buckets.take({ORGANIZATION: limit}, now_ms)[0].admitted
        return admitted

    # At most: a full bucket, and a token for each fifth of a millisecond since the first reading of the clock.
    assert sum(in_processes(2, hammer)) <= limit + limit * 500 // 1_000


Asked = tuple[int, bool, str | None, int]


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.booleans(), st.sampled_from(["a", "b", None]), st.integers(0, 400)),
        max_size=60,
    )
)
def test_shared_buckets_decide_like_those_of_one_process(requests: list[Asked]):
    shares, now_ms = LimitShares(0.25, 0.25, 2), 1_000_000
    alone, shared = (Limiter("identify", shares, buckets) for buckets in (MemoryBuckets(), SharedBuckets(entropy)))
    for organization, production, host, step in requests:
        now_ms += step
        one, other = (
            limiter.take(organization, 8, now_ms, production=production, address=host) for limiter in (alone, shared)
        )
        assert one[1:] == other[1:]


@pytest.mark.slow(0.3)
def test_addresses_never_evict_an_organization():
    buckets = SharedBuckets(entropy)
    assert buckets.take({ORGANIZATION: 2}, 0)[0].remaining == 1
    for host in range(3 * SETS):
        buckets.take({address(str(host)): 2}, 0)
    assert buckets.take({ORGANIZATION: 2}, 0)[0].remaining == 0


def test_a_slot_of_a_full_bucket_is_reused_before_one_in_use(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("svc.workers.shared_memory.SETS", 1)
    buckets = SharedBuckets(entropy)
    names = [BucketName("identify", number) for number in range(WAYS + 1)]
    for at_ms, name in enumerate(names[:-1]):
        buckets.take({name: 2}, at_ms)
        buckets.take({name: 2}, at_ms)
    assert not buckets.take({names[-2]: 2}, WAYS)[0].admitted
    assert buckets.take({names[-1]: 2}, 1_000)[0].remaining == 1, "instead of the one that is full again"
    kept = [buckets.take({name: 2}, 1_000)[0].remaining for name in names[1:]]
    assert kept == [0] * (WAYS - 1) + [0]


def test_both_buckets_of_a_request_fit_in_the_same_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("svc.workers.shared_memory.SETS", 1)
    buckets = SharedBuckets(entropy)
    both = {ORGANIZATION: 4, BucketName("identify", 1, "nonproduction"): 2}
    for number in range(WAYS):
        buckets.take({BucketName("read", number): 5}, 0)
    assert [one.remaining for one in buckets.take(both, 500)] == [3, 1]
    assert [one.remaining for one in buckets.take(both, 500)] == [2, 0]
    assert not buckets.take(both, 500)[0].remaining > 1


@pytest.mark.slow
@given(st.integers(0, 31), st.binary(min_size=1, max_size=32))
def test_a_torn_slot_is_a_full_bucket_at_worst(offset: int, torn: bytes):
    buckets = SharedBuckets(entropy)
    for _ in range(3):
        buckets.take({ORGANIZATION: 4}, 0)
    table = buckets._table
    slot = next(at for at in range(0, len(table), 32) if table[at : at + 32] != bytes(32))
    table[slot : slot + 32] = (table[slot : slot + offset] + torn + table[slot + offset + len(torn) :])[:32]
    assert buckets.take({ORGANIZATION: 4}, 0)[0].remaining in (0, 3)


@pytest.mark.slow
def test_a_process_that_was_stopped_with_a_lock_stops_nobody_else():
    """It would stop every worker, since each waits in its event loop."""
    buckets = SharedBuckets(entropy)
    buckets.take({ORGANIZATION: 5}, 1000)
    ready, says = os.pipe()
    holder = os.fork()
    if holder == 0:
        for number in range(2 * SETS):
            fcntl.lockf(buckets._file, fcntl.LOCK_EX, 1, number)
        os.write(says, b".")
        signal.pause()
        os._exit(0)
    try:
        assert os.read(ready, 1) == b"."
        os.kill(holder, signal.SIGSTOP)
        (taken,) = buckets.take({ORGANIZATION: 5}, 1000)
        assert (taken.admitted, taken.remaining) == (True, 3)
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        os.close(ready)
        os.close(says)


@pytest.mark.slow
def test_a_killed_process_leaves_no_lock_and_no_crash_behind():
    buckets = SharedBuckets(entropy)
    for _ in range(10):
        pid = os.fork()
        if pid == 0:
            while True:
                buckets.take({ORGANIZATION: 1_000, address("a"): 500}, 1_000)
        time.sleep(0.02)  # a real process: there is no clock to turn
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        (whole, _) = buckets.take({ORGANIZATION: 1_000, address("a"): 500}, 1_000)
        assert 0 <= whole.remaining < 1_000
