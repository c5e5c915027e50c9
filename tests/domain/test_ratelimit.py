from hypothesis import given
from hypothesis import strategies as st

from svc.domain.ratelimit import Bucket, take


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


def test_a_token_comes_back_after_its_share_of_a_second():
    assert not take(Bucket(0, 0), 4, 249).admitted
    assert take(Bucket(0, 0), 4, 250).admitted


def test_zero_is_no_limit():
    taken = take(None, 0, 0)
    assert all(take(taken.bucket, 0, 0).admitted for _ in range(1000))


@given(st.integers(1, 1000), st.lists(st.integers(-5000, 5000), max_size=60))
def test_never_more_than_burst_plus_refill_whatever_the_clock_does(limit: int, steps: list[int]):
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
