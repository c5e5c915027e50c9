"""The phases of a connection, without a socket."""

from __future__ import annotations

import pytest

from svc.http.phases import TRANSITIONS, Phase, Step, advance

REQUEST = (Step.INPUT, Step.HEAD_READ, Step.REQUEST_READ, Step.RESPONSE_BEGUN, Step.RESPONSE_SENT)


def after(*steps: Step) -> Phase:
    phase = Phase.IDLE
    for step in steps:
        phase = advance(phase, step)
    return phase


def test_after_a_response_the_connection_is_ready_for_the_next_request():
    assert after(*REQUEST, *REQUEST) is Phase.IDLE


def test_a_response_may_begin_before_its_request_is_read():
    assert after(Step.INPUT, Step.HEAD_READ, Step.RESPONSE_BEGUN) is Phase.RESPONSE
    assert after(Step.INPUT, Step.HEAD_READ, Step.RESPONSE_BEGUN, Step.REQUEST_READ) is Phase.RESPONSE


@pytest.mark.parametrize("length", range(len(REQUEST)))
def test_a_connection_can_be_closed_in_every_phase_and_stays_closed(length: int):
    ends = [Phase.CLOSING, Phase.LINGERING, Phase.CUT]
    for number, (end, phase) in enumerate(zip((Step.CLOSE, Step.LINGER, Step.CUT), ends, strict=True)):
        closed = after(*REQUEST[:length], end)
        assert closed is phase
        assert {advance(closed, step) for step in Step} == set(ends[number:]), "it only ever loses what it could do"
        assert {advance(closed, step) for step in REQUEST} == {closed}


@pytest.mark.parametrize(
    ("steps", "next_one"),
    [
        ((), Step.HEAD_READ),
        ((), Step.RESPONSE_BEGUN),
        ((Step.INPUT,), Step.INPUT),
        ((Step.INPUT,), Step.RESPONSE_BEGUN),
        ((Step.INPUT, Step.HEAD_READ), Step.RESPONSE_SENT),
        ((Step.INPUT, Step.HEAD_READ, Step.REQUEST_READ), Step.INPUT),
    ],
)
def test_a_step_out_of_order_raises_an_error(steps: tuple[Step, ...], next_one: Step):
    with pytest.raises(RuntimeError, match=next_one.name):
        advance(after(*steps), next_one)


def test_the_table_has_every_phase_and_leads_to_every_phase():
    assert set(TRANSITIONS) == set(Phase)
    assert {phase for steps in TRANSITIONS.values() for phase in steps.values()} == set(Phase)
