"""A fault that lasts is told when it begins, each minute and when it is over, however often it is met."""

from __future__ import annotations

from svc.kernel.limits.lasting import QUIET_S, SAY_S, LastingFault


def test_a_fault_is_told_when_it_begins_each_minute_and_when_it_is_over():
    began_s = now_s = 1_000.0
    fault = LastingFault(lambda: now_s)
    assert fault.over() is None
    lines = []
    for second in range(151):
        now_s = began_s + second
        lines += [(second, line) for doing in ("identify", "change") for line in [fault.met(doing, 2)] if line]
        assert fault.over() is None
    assert lines == [
        (0, {"doing": "identify"}),
        (SAY_S, {"seconds": SAY_S, "times": {"identify": 122, "change": 120}}),
        (2 * SAY_S, {"seconds": 2 * SAY_S, "times": {"identify": 242, "change": 240}}),
    ]
    now_s += QUIET_S
    assert fault.over() == {"seconds": 150, "times": {"identify": 302, "change": 302}}
    assert fault.over() is None
    assert fault.met("change") == {"doing": "change"}


def test_a_fault_that_comes_and_goes_is_one():
    now_s = 0.0
    fault = LastingFault(lambda: now_s)
    assert fault.met("identify") is not None
    while now_s < SAY_S - 1:
        now_s += 1
        assert fault.over() is None
        assert fault.met("identify") is None
