"""Plans that once failed, made small; each says what was wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.plan import (
    FAR_S,
    Bill,
    Change,
    Client,
    Crash,
    Identify,
    Jump,
    Plan,
    Receive,
    Register,
    Restart,
    SetAccount,
    Shop,
    Slow,
)
from tests.sim.simulation import simulate

DAY_S = 86_400


@pytest.mark.slow
def test_a_clock_that_jumped_ahead_blocks_nobody_who_has_just_not_paid(tmp_path: Path):
    steps = (
        Bill(at=5, org=0, status="active"),
        Bill(at=10, org=0, status="past_due"),
        Jump(at=20, seconds=FAR_S, back_after_s=300),
        Identify(at=150, org=0),
        Identify(at=400, org=0),
    )
    assert simulate(Plan(1, (Shop(),), steps), tmp_path).violations == []


@pytest.mark.slow
def test_the_idempotency_key_of_an_event_that_came_with_a_clock_far_behind_goes_before_it(tmp_path: Path):
    steps = (Jump(at=7583, seconds=-FAR_S, back_after_s=5), Identify(at=7583.001, org=0, device=8, key=9))
    assert simulate(Plan(8, (Shop(),), steps), tmp_path).violations == []


@pytest.mark.slow
def test_equal_events_of_two_organizations_at_the_same_moment_have_distinct_ids(tmp_path: Path):
    plan = Plan(
        seed=13,
        shops=(Shop(), Shop()),
        steps=(
            Register(at=0, hook=0, org=0, events=("usage.daily_settled",)),
            Register(at=0, hook=1, org=1, events=("usage.daily_settled",)),
            Identify(at=1, org=0),
            Identify(at=1, org=1),
            Jump(at=2, seconds=DAY_S),
            Identify(at=4000, org=0),  # the jump counts once it has stayed for an hour
        ),
    )
    outcome = simulate(plan, tmp_path)
    assert outcome.counts["posts"] == 2
    assert outcome.violations == []


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [3600, -3600])
def test_setting_the_clock_does_not_lengthen_a_cancelled_attempt(seconds: int, tmp_path: Path):
    plan = Plan(
        seed=1,
        shops=(Shop(),),
        steps=(
            Register(at=0, hook=0, org=0),
            Receive(at=0, hook=0, manner="never responds"),
            Identify(at=1, org=0),
            Jump(at=3, seconds=seconds),
            Change(at=4, hook=0, what="remove"),
        ),
    )
    assert simulate(plan, tmp_path).violations == []


@pytest.mark.slow
def test_a_clock_that_was_behind_for_a_moment_does_not_block_who_became_past_due_then(tmp_path: Path):
    plan = Plan(
        seed=45,
        shops=(Shop(),),
        steps=(
            Bill(at=1710.1, org=0, status="active"),
            Jump(at=1710.11, seconds=-400 * DAY_S, back_after_s=5.0),
            Bill(at=1710.12, org=0, status="past_due"),
            Identify(at=1848.9, org=0),
        ),
    )
    assert simulate(plan, tmp_path).violations == []


@pytest.mark.slow
def test_a_request_that_arrived_while_the_clock_was_ahead_is_delivered_when_it_is_right(tmp_path: Path):
    plan = Plan(
        seed=264,
        shops=(Shop(),),
        steps=(
            Register(at=0.6, hook=6, org=0),
            Jump(at=9738.75, seconds=400 * DAY_S, back_after_s=5.0),
            Identify(at=9738.76, org=0, client=Client(manner="drips", after_s=3.0)),
        ),
    )
    assert simulate(plan, tmp_path).violations == []


@pytest.mark.slow
def test_a_jump_before_the_first_pass_of_retention_deletes_nothing_either(tmp_path: Path):
    """A crash in the first minute: no pass has noted when the clock was believed."""
    plan = Plan(
        seed=504,
        shops=(Shop(),),
        steps=(
            Crash(at=37.0, down_s=20.0, turns=9),
            Identify(at=114.6, org=0),
            Jump(at=114.9, seconds=400 * DAY_S, back_after_s=2000.0),
            Restart(at=116.1),
        ),
    )
    assert simulate(plan, tmp_path).violations == []


@pytest.mark.slow
def test_an_account_that_is_set_while_the_clock_is_far_behind_is_counted(tmp_path: Path):
    """Its row lay in the period of that clock, and nobody looked there once the clock was right."""
    steps = (
        Identify(at=5, org=0, device=1),
        Jump(at=20, seconds=-FAR_S, back_after_s=300),
        SetAccount(at=21, org=0, account=3),
    )
    assert simulate(Plan(14, (Shop(),), steps), tmp_path).violations == []


@pytest.mark.slow
def test_an_attempt_that_reaches_nobody_while_the_clock_is_far_behind_is_not_missed(tmp_path: Path):
    """It is listed by that clock, which an operator confirmed, and so not for long."""
    steps = (
        Register(at=0, hook=0, org=0, events=("identification.completed",)),
        Receive(at=1, hook=0, manner="refuses"),
        Identify(at=5, org=0),
        Jump(at=50, seconds=-FAR_S, back_after_s=900),
        Restart(at=60),
        Identify(at=9 * 3600, org=0),
    )
    assert simulate(Plan(1, (Shop(),), steps), tmp_path).violations == []


@pytest.mark.slow
def test_what_was_refused_after_the_longest_wait_may_be_recorded(tmp_path: Path):
    """Commits of up to ten seconds, one behind the other."""
    visits = [Identify(at=6 + number, org=0, device=number, server=True) for number in range(8)]
    steps = (Slow(at=5, seconds=4.9), *visits, Identify(at=100, org=0))
    outcome = simulate(Plan(1, (Shop(),), steps), tmp_path)
    assert outcome.counts["answered 503"] > 0
    assert outcome.violations == []
