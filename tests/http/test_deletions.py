"""What takes several commits to delete leaves half of the writer to others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from svc.http import change as changes
from svc.http.callers.limits import LongReads

STEP_S = 0.04


async def test_steps_of_an_organization_have_half_of_the_time_however_many_deletions_there_are(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
):
    reads, steps = LongReads(), list[float]()

    async def change(_: Any, call: Any, job: Any, **__: Any) -> bool:
        steps.append(trio.current_time())
        await trio.sleep(STEP_S)
        call.left -= 1
        return call.left <= 0

    monkeypatch.setattr(changes, "_change", change)
    services: Any = None
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            call: Any = SimpleNamespace(turn=reads.turn(1), left=10)
            nursery.start_soon(changes.delete_in_steps, services, call, lambda _: False, lambda _: False)
    assert len(steps) == 30
    assert trio.current_time() - steps[0] >= 2 * STEP_S * 27
