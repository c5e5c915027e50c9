import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.limits.ratelimit import (
    MAX_ADDRESSES,
    Bucket,
    BucketName,
    DividedBuckets,
    Limiter,
    LimitShares,
    MemoryBuckets,
    share_of,
    take,
)


def test_a_new_bucket_holds_as_much_as_the_limit():
    bucket, admitted = None, 0
    for _ in range(10):
        taken = take(bucket, 5, 1000)
        bucket = taken.bucket
        admitted += taken.admitted
    assert admitted == 5


def test_the_wait_is_whole_seconds_and_at_least_one():
    empty = Bucket(0, 0)
    assert take(empty, 100, 0).retry_after_s == 1
    assert take(empty, 1, 0).retry_after_s == 1
    assert take(Bucket(0, 5000), 1, 4000).retry_after_s == 1


def test_a_token_is_refilled_after_its_fraction_of_a_second():
    assert not take(Bucket(0, 0), 4, 249).admitted
    assert take(Bucket(0, 0), 4, 250).admitted


def test_zero_means_no_limit():
    taken = take(None, 0, 0)
    assert all(take(taken.bucket, 0, 0).admitted for _ in range(1000))


@given(st.integers(1, 1000), st.lists(st.integers(-5000, 5000), max_size=60))
def test_a_bucket_never_admits_more_than_burst_plus_refill_whatever_the_clock_does(limit: int, steps: list[int]):
    now, highest, bucket, admitted, forward = 100_000, 100_000, None, 0, 0
    for step in steps:
        now = max(0, now + step)
        forward += max(0, step)
        highest = max(highest, now)
        taken = take(bucket, limit, now)
        bucket = taken.bucket
        admitted += taken.admitted
        assert 0 <= taken.remaining < limit
        assert taken.admitted or taken.retry_after_s >= 1
    assert admitted <= limit + limit * forward / 1000 + 1


def test_a_share_is_whole_and_within_the_limit():
    assert [share_of(limit, 0.25) for limit in (1, 3, 4, 100)] == [1, 1, 1, 25]
    assert [share_of(limit, 0.25) for limit in (6, 7, 10, 11, 14)] == [1, 1, 2, 2, 3], "at most a quarter"
    assert [share_of(100, share) for share in (0.29, 0.57, 0.58)] == [29, 57, 58]
    assert [share_of(limit, 0.25, 10) for limit in (4, 20, 100)] == [4, 10, 25]


SITE = "2a0206b80001"
ADDRESSES = ["192.0.2.1", f"{SITE}0001", f"{SITE}0002", f"{SITE}0003", "2a0206b800020001", None]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(ADDRESSES), st.integers(0, 40)), max_size=200))
def test_no_part_takes_more_than_its_share_and_a_refusal_takes_nothing(requests: list[tuple[bool, str | None, int]]):
    """Decisions 4: beside the limiter runs one bucket for each part, which must never be short."""
    limiter, now = Limiter("identify", LimitShares(0.25, 0.25, 2), MemoryBuckets()), 0
    buckets: dict[object, Bucket] = {}
    for production, address, step in requests:
        now += step
        parts: list[tuple[object, int]] = [("whole", 16)]
        parts += [] if production else [("nonproduction", 4)]
        parts += [] if address is None else [(address, 4)]
        parts += [] if address is None or "." in address else [(address[:12], 8)]
        expected = {name: take(buckets.get(name), most, now) for name, most in parts}
        taken = limiter.take(1, 16, now, production=production, address=address)
        assert taken.admitted == all(one.admitted for one in expected.values())
        if taken.admitted:
            buckets |= {name: one.bucket for name, one in expected.items()}


@pytest.mark.slow(0.2)
def test_the_buckets_of_addresses_are_bounded_and_the_oldest_are_evicted():
    buckets = MemoryBuckets()
    limiter = Limiter("identify", LimitShares(address_least_per_s=1), buckets)
    for host in range(MAX_ADDRESSES + 100):
        limiter.take(1, 1_000_000, host, production=True, address=str(host))
    assert buckets.addresses == MAX_ADDRESSES


def test_clock_readings_out_of_order_refill_nothing_twice():
    """Two processes read 1,000 and 1,001 ms, and the later reading is the first to take."""
    buckets, name, admitted = MemoryBuckets(), BucketName("identify", 1), 0
    for now_ms in range(1_000, 3_000):
        for at_ms in (now_ms + 1, now_ms):
            (taken,) = buckets.take({name: 100}, at_ms)
            admitted += taken.admitted
    assert admitted == 100 + 199, "a full bucket, and 1,999 milliseconds"


def test_an_empty_bucket_refills_at_once_after_the_clock_goes_back():
    buckets, name = MemoryBuckets(), BucketName("identify", 1)
    for _ in range(11):
        (taken,) = buckets.take({name: 10}, 3_600_000)
    assert not taken.admitted
    assert not buckets.take({name: 10}, 0)[0].admitted
    assert buckets.take({name: 10}, 100)[0].admitted


def test_a_refused_request_takes_from_no_bucket():
    buckets = MemoryBuckets()
    whole, part = BucketName("identify", 1), BucketName("identify", 1, "nonproduction")
    assert [one.admitted for one in buckets.take({whole: 2, part: 1}, 0)] == [True, True]
    assert [one.admitted for one in buckets.take({whole: 2, part: 1}, 0)] == [True, False]
    assert buckets.take({whole: 2}, 0)[0].admitted


@given(st.integers(1, 8), st.integers(1, 300))
def test_nodes_together_admit_at_most_the_limit_or_one_each(nodes: int, limit: int):
    parts = [DividedBuckets(MemoryBuckets(), lambda: nodes) for _ in range(nodes)]
    name = BucketName("identify", 1)
    admitted = sum(each.take({name: limit}, 0)[0].admitted for each in parts for _ in range(limit))
    assert limit - nodes < admitted <= max(limit, nodes)


def test_the_remaining_part_is_shown_scaled_to_the_whole():
    part = DividedBuckets(MemoryBuckets(), lambda: 3)
    name = BucketName("identify", 1)
    assert part.take({name: 90}, 0)[0].remaining == 87
    assert [part.take({name: 90}, 0)[0].admitted for _ in range(30)] == [True] * 29 + [False]


def test_a_part_follows_the_number_of_nodes():
    nodes = 1
    part = DividedBuckets(MemoryBuckets(), lambda: nodes)
    name = BucketName("identify", 1)
    assert sum(part.take({name: 100}, 0)[0].admitted for _ in range(100)) == 100
    nodes = 4
    assert sum(part.take({name: 100}, 2_000)[0].admitted for _ in range(100)) == 25
    nodes = 2
    assert sum(part.take({name: 100}, 4_000)[0].admitted for _ in range(100)) == 50
