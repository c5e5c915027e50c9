"""Long reads of one organization and the turn that all share (docs/adr/0172): who waits for whom."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from tests.spec.automation import Automation
from tests.spec.console import Console
from tests.spec.responses import act
from tests.support.live import Live, succeeded

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.any_store]

EXCLUSIVE: dict[str, tuple[str, Any]] = {
    "preview of rules": (
        "/management/organizations/{}/rules/preview",
        {"rules": [{"name": "any", "condition": "score >= 0", "action": "review"}]},
    ),
    "preview of weights": ("/weights/preview", {"platform": "web", "environment": "production"}),
    "sorted list": ("/seen-visitors", {"sort": "events"}),
}
NOBODY = "mem_" + "0" * 20


async def asked(console: Console, path: str, given: Any) -> None:
    path = path.format(console.organization.id)
    succeeded(await (console.post(path, given) if "preview" in path else console.get(path, **given)))


@asynccontextmanager
async def waiting_for(turn: AbstractAsyncContextManager[object], *question: Any) -> AsyncGenerator[None]:
    """A request (`asked`) that waits while somebody has the turn, in a `with` block, and is answered behind it."""
    done = trio.Event()

    async def ask() -> None:
        await asked(*question)
        done.set()

    async with trio.open_nursery() as nursery:
        async with turn:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert not done.is_set()
            yield
        with trio.fail_after(5):
            await done.wait()


@pytest.mark.parametrize("name", EXCLUSIVE)
@pytest.mark.slow(0.5)
async def test_an_exclusive_read_leaves_the_turn_to_other_organizations_between_its_slices(live: Live, name: str):
    """A preview takes up to twenty seconds, and a list of another organization had to wait for all of them."""
    _, public = live.issue(environment="production")
    for device in range(40):
        await act(live, public, device=device)
    console, other = Console(live), live.new_organization()
    reads, number, taken = live.service.services.limits.long_reads, live.organization.number, 0

    async def take_turns() -> None:
        nonlocal taken
        while True:
            async with reads.turn(other.number).held():
                taken += number in reads.exclusive

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        await asked(console, *EXCLUSIVE[name])
        nursery.cancel_scope.cancel()
    assert taken >= 3, "of slices of 8, 16 and 16 events"


@pytest.mark.parametrize(
    ("path", "nobody"), [("/management/organizations/{}/reviews", "assignee"), ("/audit", "actor")]
)
async def test_a_list_that_finds_little_waits_for_the_turn(live: Live, public: str, path: str, nobody: str):
    """Any number of searches for what is not there ran at once, each with half of the loop."""
    admin, console = Automation(live), Console(live, role="admin")
    for device in range(3):
        answer = await act(live, public, device=device)
        assert (await admin("POST", "/reviews", {"request_id": answer["request_id"]})).status_code == 201
    turn = live.service.services.limits.long_reads.turn(live.organization.number)
    async with waiting_for(turn.held(), console, path, {"limit": 1, nobody: NOBODY}):
        pass


async def test_statistics_of_an_organization_are_read_one_after_the_other(live: Live):
    """Those of 30 days by hours take 40 ms, and any number of them ran at once, each with half of the loop."""
    console, other = Console(live), Console(live, organization=live.new_organization())
    turn, hours = live.service.services.limits.long_reads.turn(live.organization.number), {"step": "hour"}
    async with waiting_for(turn.page(), console, "/statistics", hours):
        with trio.fail_after(5):
            await asked(other, "/statistics", hours)
