from collections import Counter

import pytest
import trio
from structlog.testing import capture_logs

from svc.kernel.store.engine import UnavailableError
from svc.kernel.work.supervisor import supervise


class Flaky:
    """An actor that fails so many times, so far apart, and then ends."""

    def __init__(self, failures: int, apart_s: float) -> None:
        self.left = failures
        self.apart_s = apart_s
        self.starts = 0

    async def run(self) -> None:
        self.starts += 1
        await trio.sleep(self.apart_s)
        if self.left:
            self.left -= 1
            raise RuntimeError("broken")


async def test_a_peripheral_actor_is_restarted(autojump_clock):
    actor = Flaky(failures=3, apart_s=1)
    await supervise("flaky", actor.run)
    assert actor.starts == 4


async def test_the_fourth_failure_within_a_minute_ends_the_process(autojump_clock):
    actor = Flaky(failures=4, apart_s=1)
    with pytest.raises(RuntimeError, match="broken"):
        await supervise("flaky", actor.run)


async def test_failures_far_apart_do_not_add_up(autojump_clock):
    actor = Flaky(failures=10, apart_s=25)
    await supervise("flaky", actor.run)
    assert actor.starts == 11


async def test_restarts_are_counted_by_actor_name(autojump_clock):
    restarts: Counter[str] = Counter()
    await supervise("flaky", Flaky(failures=2, apart_s=1).run, restarts)
    await supervise("steady", Flaky(failures=0, apart_s=1).run, restarts)
    assert restarts == {"flaky": 2}


async def test_an_actor_waits_while_the_store_is_unreachable_and_that_is_not_its_failure(autojump_clock):
    """Also where it says so from a nursery of its own."""
    actor, restarts = Flaky(failures=20, apart_s=0.1), Counter[str]()

    async def run() -> None:
        try:
            await actor.run()
        except RuntimeError:
            error = UnavailableError("away")
            raise (ExceptionGroup("of a nursery", [error]) if actor.left % 2 else error) from None

    with capture_logs() as lines:
        await supervise("flaky", run, restarts)
    assert actor.starts == 21
    assert not restarts
    assert {line["reason"] for line in lines} == {"away"}, "and not that of the group"
