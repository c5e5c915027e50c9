"""Who writes together, and who waits for whom, without a database."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from svc.kernel.store.postgresql.turns import ALONE_AT_FIRST, BACKLOG, FULL, GroupTurns, Turn, Waiting
from svc.kernel.store.snapshot import Snapshot, Transaction

Begun = tuple[dict[int, int], bool]


def job(_: Transaction) -> int:
    return 0


def hint(_: Snapshot) -> Iterator[None]:
    yield


def by_organization(groups: Sequence[Begun]) -> list[Begun]:
    """Of groups that begin in the same pass of the loop, whose order is the scheduler's."""
    return sorted(groups, key=lambda group: list(group[0]))


class Groups:
    """Groups as they begin; each ends when the test says so, and leaves out organizations that are `elsewhere`."""

    def __init__(self, connections: int = 4, organizations: int = 16, others: frozenset[int] = frozenset()) -> None:
        self.turns = GroupTurns(connections, organizations, others.__contains__)
        self.begun: list[Begun] = []
        """Jobs of each organization, and whether the group is shared."""
        self.elsewhere: set[int] = set()
        self.failing: set[int] = set()
        self._ends: list[trio.Event] = []
        self._is_over = False

    @asynccontextmanager
    async def senders(self) -> AsyncGenerator[trio.Nursery]:
        """For tasks that send. All groups end with the test: what fails in it is not waited for."""
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            finally:
                self._is_over = True
                for end in self._ends:
                    end.set()

    async def run(self, group: Sequence[Turn], shared: bool) -> Sequence[Sequence[Any] | None] | None:
        self.begun.append(({turn.organization: len(turn.jobs) for turn in group}, shared))
        self._ends.append(trio.Event())
        if not self._is_over:
            await self._ends[-1].wait()
        if not shared and self.failing & {turn.organization for turn in group}:
            raise LookupError
        if shared and self.failing & {turn.organization for turn in group}:
            return None
        left_out = self.elsewhere if shared else set[int]()
        return [None if turn.organization in left_out else [turn.organization] * len(turn.jobs) for turn in group]

    async def end(self, place: int) -> None:
        self._ends[place].set()
        await wait_all_tasks_blocked()

    async def send(
        self, nursery: trio.Nursery, organization: int, *, jobs: int = 1, hinted: bool = True, **how: Any
    ) -> trio.CancelScope:
        scope = trio.CancelScope()
        how = {"urgent": True, **how}

        async def wait() -> None:
            with scope:
                waiting = Waiting(organization, [job] * jobs, [hint] * jobs if hinted else [], **how)
                try:
                    assert await self.turns.outcomes(waiting, self.run) == [organization] * jobs
                except LookupError:
                    assert organization in self.failing

        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        return scope


async def test_organizations_with_few_jobs_share_the_next_group():
    groups = Groups()
    async with groups.senders() as nursery:
        for organization in (1, 2, 3, 2):
            await groups.send(nursery, organization)
        assert groups.begun == [({1: 1}, True)]
        await groups.end(0)
        assert groups.begun[1:] == [({2: 2, 3: 1}, True)]
        await groups.end(1)
    assert groups.turns.waiting == 0


async def test_another_shared_group_begins_when_a_full_one_has_gathered():
    groups = Groups()
    async with groups.senders() as nursery:
        for organization in range(FULL + 1):
            assert len(groups.begun) == 1 or not organization
            await groups.send(nursery, organization)
        assert [sum(group.values()) for group, _ in groups.begun] == [1, FULL]
        await groups.end(0)
        await groups.end(1)


async def test_a_limit_of_one_organization_per_transaction_is_respected():
    groups = Groups(organizations=1)
    async with groups.senders() as nursery:
        for organization in (1, 2, 3, 4, 5):
            await groups.send(nursery, organization)
        assert groups.begun == [({number: 1}, False) for number in (1, 2, 3, 4)]
        for place in range(5):
            await groups.end(place)


async def test_an_organization_with_a_backlog_has_groups_of_its_own():
    groups = Groups()
    async with groups.senders() as nursery:
        await groups.send(nursery, 1, jobs=BACKLOG)
        await groups.send(nursery, 1, jobs=BACKLOG)
        await groups.send(nursery, 2)
        assert groups.begun == [({1: BACKLOG}, False), ({2: 1}, True)]
        await groups.end(0)
        assert groups.begun[2:] == [({1: BACKLOG}, False)]
        await groups.end(1)
        await groups.end(2)


async def test_an_organization_that_other_nodes_write_for_is_alone_where_nobody_else_waits():
    groups = Groups(others=frozenset((1, 2)))
    async with groups.senders() as nursery:
        for organization in (1, 2, 3, 1):
            await groups.send(nursery, organization)
        assert groups.begun == [({1: 1}, False), ({2: 1}, True)], "the third waits for the end of the shared one"
        await groups.end(0)
        await groups.end(1)
        assert groups.begun[2:] == [({1: 1, 3: 1}, True)]
        await groups.end(2)


async def test_jobs_that_may_be_slow_share_no_group():
    groups = Groups()
    async with groups.senders() as nursery:
        await groups.send(nursery, 1, hinted=False)
        await groups.send(nursery, 2, urgent=False)
        await groups.send(nursery, 3, lane="leased")
        assert groups.begun == [({number: 1}, False) for number in (1, 2, 3)]
        for place in range(3):
            await groups.end(place)


async def test_groups_that_wait_for_a_fence_never_take_the_last_connection():
    groups = Groups(connections=3)
    async with groups.senders() as nursery:
        for organization in (1, 2, 3):
            await groups.send(nursery, organization, jobs=BACKLOG)
        assert [group for group, _ in groups.begun] == [{1: BACKLOG}, {2: BACKLOG}]
        await groups.send(nursery, 4)
        assert groups.begun[2:] == [({4: 1}, True)]
        await groups.end(2)
        assert len(groups.begun) == 3
        for place in (0, 1, 3):
            await groups.end(place)


async def test_with_one_connection_every_organization_is_served():
    groups = Groups(connections=1)
    async with groups.senders() as nursery:
        for organization in (1, 2, 1, 3):
            await groups.send(nursery, organization, jobs=BACKLOG if organization == 1 else 1)
        for place in range(4):
            await groups.end(place)
    assert [list(group) for group, _ in groups.begun] == [[1], [2], [3], [1]]


async def test_an_organization_left_out_twice_has_its_own_groups_with_backoff():
    groups = Groups()
    groups.elsewhere = {1}
    async with groups.senders() as nursery:
        await groups.send(nursery, 1)
        for place in range(2):
            assert groups.begun[place] == ({1: 1}, True)
            await groups.end(place)
        done = 2
        for alone in (ALONE_AT_FIRST, 2 * ALONE_AT_FIRST):
            for _ in range(alone):
                assert groups.begun[done:] == [({1: 1}, False)]
                await groups.end(done)
                done += 1
                await groups.send(nursery, 1)
            assert groups.begun[done:] == [({1: 1}, True)], "it is tried again"
            await groups.end(done)
            done += 1
        await groups.end(done)
        groups.elsewhere = set()


async def test_a_group_that_leaves_some_out_completes_for_the_others():
    groups = Groups()
    groups.elsewhere = {2}
    async with groups.senders() as nursery:
        for organization in (9, 1, 2, 3):
            await groups.send(nursery, organization)
        await groups.end(0)
        groups.elsewhere = set()
        await groups.send(nursery, 4)
        groups.elsewhere = {2}
        await groups.end(1)
        groups.elsewhere = set()
        assert groups.begun[1:] == [({1: 1, 2: 1, 3: 1}, True), ({4: 1, 2: 1}, True)]
        await groups.end(2)


async def test_cancelling_a_waiting_caller_withdraws_its_jobs():
    groups = Groups()
    groups.elsewhere = {2, 3}
    async with groups.senders() as nursery:
        await groups.send(nursery, 9)
        waits = await groups.send(nursery, 1)
        leads, follows = await groups.send(nursery, 2), await groups.send(nursery, 3)
        waits.cancel()
        await wait_all_tasks_blocked()
        await groups.end(0)
        assert groups.begun[1:] == [({2: 1, 3: 1}, True)]
        follows.cancel()
        leads.cancel()
        await groups.end(1)
        assert groups.turns.waiting == 0
    assert len(groups.begun) == 2


async def test_cancelling_the_leader_of_a_group_affects_no_other():
    for _ in range(20):  # in either order
        groups = Groups()
        async with groups.senders() as nursery:
            await groups.send(nursery, 9)
            leads = await groups.send(nursery, 1)
            await groups.send(nursery, 2)
            leads.cancel()
            await groups.end(0)
            assert groups.begun[1:] == [({2: 1}, True)]
            await groups.end(1)
        assert groups.turns.waiting == 0


async def test_a_failure_affects_only_its_group():
    groups = Groups()
    groups.failing = {1}
    async with groups.senders() as nursery:
        for organization in (1, 1, 2):
            await groups.send(nursery, organization, jobs=BACKLOG)
        for place in range(3):
            await groups.end(place)
    assert [list(group) for group, _ in groups.begun] == [[1], [2], [1]]


async def test_after_a_shared_group_fails_each_organization_has_one_group_of_its_own():
    groups = Groups()
    groups.failing = {2}
    async with groups.senders() as nursery:
        for organization in (9, 1, 2, 3):
            await groups.send(nursery, organization)
        await groups.end(0)
        await groups.end(1)
        assert groups.begun[1] == ({1: 1, 2: 1, 3: 1}, True)
        assert by_organization(groups.begun[2:]) == [({1: 1}, False), ({2: 1}, False), ({3: 1}, False)]
        for place in (2, 3, 4):
            await groups.end(place)
        await groups.send(nursery, 1)
        assert groups.begun[5:] == [({1: 1}, True)]
        await groups.end(5)
