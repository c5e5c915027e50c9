"""Whether writes are stored, by effect (decisions 17.4): the rules of `WriteHealth`."""

from __future__ import annotations

from contextlib import suppress

from svc.kernel.store.engine import EngineError, UnavailableError
from svc.kernel.store.group import LeaseEpoch, LeaseLostError
from svc.kernel.store.write_health import FAILING_S, SUSPECT_S, WriteHealth
from tests.support.worlds import SettableClock


def health(clock: SettableClock) -> WriteHealth:
    return WriteHealth(lambda: clock.elapsed_s)


def fail(health: WriteHealth, error: EngineError) -> None:
    with suppress(EngineError), health.attempt():
        raise error


AWAY = UnavailableError("the lock timeout")


def test_attempts_that_fail_for_ten_seconds_fail_and_say_why():
    clock = SettableClock()
    writes = health(clock)
    for _ in range(int(FAILING_S)):
        fail(writes, AWAY)
        assert not writes.is_failing()
        clock.advance(seconds=1)
    assert writes.is_failing()
    assert writes.because == "the lock timeout"


def test_one_attempt_that_does_not_end_is_followed_by_a_trial_write_and_then_fails():
    clock = SettableClock()
    writes = health(clock)
    with writes.attempt():
        assert not writes.needs_trial_write()
        clock.advance(seconds=SUSPECT_S + 1)
        assert writes.needs_trial_write()
        clock.advance(seconds=FAILING_S)
        assert writes.is_failing()
    assert not writes.is_failing(), "it ended well"


def test_the_oldest_attempt_counts_whatever_begins_or_fails_beside_it():
    """Ten seconds, as decisions 17.4 have it."""
    clock = SettableClock()
    writes = health(clock)
    assert writes.unproven_s() == 0
    with writes.attempt():
        clock.advance(seconds=9)
        with writes.attempt():
            fail(writes, AWAY)
            assert not writes.is_failing()
            clock.advance(seconds=1)
            assert writes.is_failing()


def test_only_an_identification_or_a_trial_write_proves_that_writes_are_stored():
    """Others use other tables."""
    clock = SettableClock()
    writes = health(clock)
    fail(writes, AWAY)
    clock.advance(seconds=FAILING_S)
    with writes.attempt():
        pass
    assert writes.is_failing()
    with writes.attempt(proves=True):
        pass
    assert not writes.is_failing()
    assert not writes.needs_trial_write()


def test_after_a_trial_write_the_next_failure_counts_at_once_until_an_identification_is_stored():
    """A rule about the rows of events, of which a trial write knows nothing."""
    clock = SettableClock()
    writes = health(clock)
    fail(writes, AWAY)
    clock.advance(seconds=FAILING_S)
    writes.note_trial_write()
    assert not writes.is_failing()
    fail(writes, AWAY)
    assert writes.is_failing()
    writes.note_trial_write()
    writes.note_stored()
    fail(writes, AWAY)
    assert not writes.is_failing()


def test_a_trial_write_of_a_store_that_never_failed_puts_it_on_no_probation():
    clock = SettableClock()
    writes = health(clock)
    fail(writes, AWAY)
    writes.note_trial_write()
    fail(writes, AWAY)
    assert not writes.is_failing()


def test_a_lease_that_another_process_holds_is_no_failure():
    clock = SettableClock()
    writes = health(clock)
    fail(writes, LeaseLostError([LeaseEpoch("keeper", 1)]))
    clock.advance(seconds=FAILING_S)
    assert not writes.needs_trial_write()


def test_an_attempt_that_ends_after_a_later_one_failed_counts_from_its_own_beginning():
    """A trial write beside it is given up sooner."""
    clock = SettableClock()
    writes = health(clock)
    with suppress(EngineError), writes.attempt():
        clock.advance(seconds=3)
        fail(writes, AWAY)
        clock.advance(seconds=1)
        raise AWAY
    clock.advance(seconds=FAILING_S - 4)
    assert writes.is_failing()


def test_a_store_that_turns_out_to_be_full_is_not_called_failing():
    clock = SettableClock()
    writes = health(clock)
    fail(writes, AWAY)
    writes.note_full()
    clock.advance(seconds=FAILING_S)
    assert not writes.is_failing()
