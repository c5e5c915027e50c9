from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.values.histogram import GROUPS, REQUEST_S, WAIT_S, Histogram


def test_a_value_counts_in_the_first_bucket_whose_bound_it_does_not_exceed():
    histogram = Histogram((1, 2, 4))
    for value in (0, 1, 1.5, 2, 4, 4.1, 1e9):
        histogram.observe(value)
    found = histogram.statistics()
    assert (found.bounds, found.counts) == ((1, 2, 4), (2, 2, 1, 2))
    assert found.total == 0 + 1 + 1.5 + 2 + 4 + 4.1 + 1e9


@given(st.lists(st.floats(0, 20)))
def test_every_value_counts_once(values):
    for bounds in (REQUEST_S, WAIT_S, GROUPS):
        assert list(bounds) == sorted(set(bounds))
        histogram = Histogram(bounds)
        for value in values:
            histogram.observe(value)
        counts = histogram.statistics().counts
        assert len(counts) == len(bounds) + 1
        for place, bound in enumerate(bounds):
            assert sum(counts[: place + 1]) == sum(value <= bound for value in values)
        assert sum(counts) == len(values)


def test_statistics_that_were_read_do_not_change_afterwards():
    histogram = Histogram((1,))
    before = histogram.statistics()
    histogram.observe(1)
    assert before.counts == (0, 0)
