"""Whose turn it is to write: one group at a time for an organization, and what waits shares the next one.

A database lets one node at a time write for an organization. In the node they wait here, so that they hold no
connection meanwhile, and so that however many wait are one transaction. A group is formed when there is a connection
for it: what comes while none is free joins it.

A group costs as much as several of its jobs. So organizations with few jobs share groups (ADR 66), which take no fence
that another node has: its organization is left out, and put back. While one shared group is on its way the next one
gathers, until it has `FULL` jobs. An organization has groups of its own, which wait for its fence,

- if it has too many jobs to gain from sharing (`BACKLOG`),
- if its jobs may be slow: those without hints, and what may wait (`urgent` is false),
- for some groups, if two shared groups in a row left it out: it is busy on other nodes,
- if other nodes write for it, no other organization waits and no group is on its way: then its group need not have its
  fence at first.

These never have the last connection, so that what waits for another node's fence holds up nobody else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import trio

from svc.kernel.store.group import Hint, Job, LeaseEpoch

REMEMBERED = 16
"""Turns of this node for which it is remembered that others wrote, or that jobs clashed."""
MOST = 65_536
"""Organizations that are remembered; beyond that all are forgotten."""


class _Fence(NamedTuple):
    turn: int
    """The last turn of this node."""
    shared_for: int = 0
    """For how many more turns of this node it counts as shared."""
    clashed_for: int = 0
    """For how many more turns its jobs do not run ahead, as they clashed."""


class OtherWriters:
    """The organizations whose fences other nodes take."""

    def __init__(self) -> None:
        self._fences: dict[int, _Fence] = {}

    def note(self, turns: Mapping[int, int], *, clashed: bool = False) -> None:
        """Record fence -> turn of a commit of this node. `clashed`: it ran ahead, and many of its jobs ran again."""
        if len(self._fences) > MOST:
            self._fences.clear()
        for fence, turn in turns.items():
            last = self._fences.get(fence)
            if last is None:
                self._fences[fence] = _Fence(turn)
            else:
                left = REMEMBERED if turn > last.turn + 1 else max(0, last.shared_for - 1)
                met = REMEMBERED if clashed else max(0, last.clashed_for - 1)
                self._fences[fence] = _Fence(turn, left, met)

    def write_for(self, organization: int) -> bool:
        """Return whether another node has written for this organization recently."""
        fence = self._fences.get(organization)
        return fence is not None and fence.shared_for > 0

    def may_pass(self, organization: int) -> bool:
        """Return whether groups of this organization gain by running before their fence is taken. They do not if all of
        them write the same rows, for example of one crowded address.
        """
        return self.write_for(organization) and not self._fences[organization].clashed_for


T = TypeVar("T")

GROUP_LIMIT = 64
"""Jobs in a group that several share."""
BACKLOG = 8
"""From this number of jobs on, an organization has groups of its own."""
FULL = 16
"""From this number of waiting jobs for each shared group under way, another group begins."""
ALONE_AT_FIRST, ALONE_AT_MOST = 4, 256
"""Groups of its own for an organization that was left out twice; doubled where it then is again."""


@dataclass(eq=False)
class Waiting(Generic[T]):
    """Jobs of one organization that wait, and later their outcomes."""

    organization: int
    jobs: Sequence[Job[T]]
    hints: Sequence[Hint] = ()
    """One for each job, or none."""
    leases: frozenset[LeaseEpoch] = frozenset()
    """Leases that all of the jobs need."""
    _: KW_ONLY
    urgent: bool = False
    """Whether they come before others of the organization."""
    lane: Hashable = None
    """Only jobs of one lane are committed together."""
    since_s: float = field(default_factory=trio.current_time, init=False)
    outcomes: Sequence[T | Exception] | None = field(default=None, init=False)
    """`None` until their group has ended."""
    failure: Exception | None = field(default=None, init=False)
    """What their commit raised."""
    is_withdrawn: bool = field(default=False, init=False)
    """Nobody waits for them any more."""
    called: trio.Event = field(default_factory=trio.Event, init=False)
    """Set when they are to lead a group, or their group has ended."""
    leads: _Group | None = field(default=None, init=False)


class Turn(NamedTuple):
    """The jobs of one organization in a group, in order."""

    organization: int
    waiting: list[Waiting[Any]]

    @property
    def jobs(self) -> list[Job[Any]]:
        """The jobs of all callers that wait, in the order in which `end` takes their outcomes."""
        return [job for one in self.waiting for job in one.jobs]

    @property
    def hints(self) -> list[Hint]:
        """The hints of all callers that wait, in the order of `jobs`; none if no caller has any."""
        return [hint for one in self.waiting for hint in one.hints]

    def end(self, outcomes: Sequence[Any]) -> None:
        """Give each caller its outcomes."""
        index = 0
        for one in self.waiting:
            one.outcomes = outcomes[index : index + len(one.jobs)]
            index += len(one.jobs)
            one.called.set()

    def fail(self, error: Exception) -> None:
        """Raise the error in each caller."""
        for one in self.waiting:
            one.failure = error
            one.called.set()


RunGroup = Callable[[Sequence[Turn], bool], Awaitable[Sequence[Sequence[Any] | None] | None]]
"""Commits a group, and returns what each part came to. Of a shared one, for which the flag is set, parts may be left
out: `None`; and it may fail as a whole: then each part has a group of its own. Raises what all of them raise.
"""


class _Group(NamedTuple):
    parts: list[Turn]
    is_shared: bool


class _Busy(msgspec.Struct):
    """An organization that was left out of shared groups."""

    missed: int = 0
    """How many shared groups in a row left it out."""
    alone: int = 0
    """How many more groups of its own it gets."""
    next_alone: int = ALONE_AT_FIRST


class _Queue:
    """The writes of one organization that wait in one lane."""

    def __init__(self) -> None:
        self.waiting: list[Waiting[Any]] = []
        self.is_on_its_way = False

    @property
    def jobs(self) -> int:
        return sum(len(one.jobs) for one in self.waiting)

    def take(self, most: int) -> list[Waiting[Any]]:
        """Take the first urgent write, or else the first, to lead; then others in order, up to `most` jobs."""
        leader = next((one for one in self.waiting if one.urgent), self.waiting[0])
        self.waiting.remove(leader)
        taken, count = [leader], len(leader.jobs)
        while self.waiting and count + len(self.waiting[0].jobs) <= most:
            taken.append(self.waiting.pop(0))
            count += len(taken[-1].jobs)
        return taken


class GroupTurns:
    """The turns of all organizations, on a limited number of connections."""

    def __init__(
        self, connections: int, organizations: int, is_written_elsewhere: Callable[[int], bool] = lambda _: False
    ) -> None:
        """Let at most `organizations` share a group; with 1, or with one connection, each has its own.
        `is_written_elsewhere` says whether other nodes write for an organization, too.
        """
        self._is_written_elsewhere = is_written_elsewhere
        self._connections = connections
        self._organizations = organizations if connections > 1 else 1
        self._queues: dict[tuple[int, Hashable], _Queue] = {}
        """In the order in which the organizations began to wait."""
        self._busy: dict[int, _Busy] = {}
        self._on_their_way = Counter[bool]()
        """Number of groups, by whether they are shared."""

    @property
    def waiting(self) -> int:
        """Number of organizations that could write if there were a free connection."""
        return len(list(self._ready()))

    async def outcomes(self, waiting: Waiting[T], run: RunGroup) -> Sequence[T | Exception]:
        """Return the outcomes of the jobs, which `run` commits in a group that others may share. Raises what `run`
        raises. A caller that is cancelled while it waits takes its jobs back; a group that is under way is completed.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self._queue(waiting.organization, waiting.lane).waiting.append(waiting)
        try:
            await trio.lowlevel.checkpoint()  # what comes in the same pass of the loop shares the group
            self._call()
            while waiting.outcomes is None and waiting.failure is None:
                await waiting.called.wait()
                if waiting.leads is not None:
                    group, waiting.leads = waiting.leads, None
                    with trio.CancelScope(shield=True):  # the group has jobs of others, too
                        await self._lead(group, run)
        except trio.Cancelled:
            self._withdraw(waiting)
            raise
        if waiting.failure is not None:
            raise waiting.failure
        assert waiting.outcomes is not None, "a group that has ended says so"
        return waiting.outcomes

    def _queue(self, organization: int, lane: Hashable) -> _Queue:
        return self._queues.setdefault((organization, lane), _Queue())

    def _withdraw(self, waiting: Waiting[Any]) -> None:
        waiting.is_withdrawn = True
        queue = self._queue(waiting.organization, waiting.lane)
        if waiting in queue.waiting:
            queue.waiting.remove(waiting)
        if waiting.leads is not None:  # others of its group will lead instead
            for part in waiting.leads.parts:
                self._put_back(part)
            self._end(waiting.leads)
        elif not queue.waiting and not queue.is_on_its_way:
            del self._queues[waiting.organization, waiting.lane]

    def _call(self) -> None:
        """Form the groups that can begin, and wake the writes that lead them."""
        while (group := self._next()) is not None:
            self._on_their_way[group.is_shared] += 1
            for part in group.parts:
                self._queue(part.organization, part.waiting[0].lane).is_on_its_way = True
            leader = group.parts[0].waiting[0]
            leader.leads = group
            leader.called.set()

    def _next(self) -> _Group | None:
        if self._on_their_way.total() >= self._connections:
            return None
        sharing: list[tuple[int, _Queue]] = []
        may_be_alone = self._on_their_way[False] < self._connections - (self._organizations > 1)
        for organization, queue in self._ready():
            if self._may_share(organization, queue):
                sharing.append((organization, queue))
            elif may_be_alone:
                return _Group([Turn(organization, queue.take(GROUP_LIMIT))], is_shared=False)
        if len(sharing) == 1 and not self._on_their_way.total() and self._is_written_elsewhere(sharing[0][0]):
            ((organization, queue),) = sharing
            return _Group([Turn(organization, queue.take(GROUP_LIMIT))], is_shared=False)
        if sharing and sum(queue.jobs for _, queue in sharing) >= FULL * self._on_their_way[True]:
            taken = sharing[: self._organizations]
            return _Group([Turn(organization, queue.take(BACKLOG)) for organization, queue in taken], is_shared=True)
        return None

    def _ready(self) -> Iterable[tuple[int, _Queue]]:
        return (
            (organization, queue)
            for (organization, _), queue in self._queues.items()
            if queue.waiting and not queue.is_on_its_way
        )

    def _may_share(self, organization: int, queue: _Queue) -> bool:
        busy = self._busy.get(organization)
        return (
            self._organizations > 1
            and (busy is None or not busy.alone)
            and queue.jobs < BACKLOG
            and all(one.urgent and one.hints and one.lane is None for one in queue.waiting)
        )

    async def _lead(self, group: _Group, run: RunGroup) -> None:
        try:
            outcomes = await run(group.parts, group.is_shared)
        except Exception as error:  # noqa: BLE001  each of them raises it
            for part in group.parts:
                part.fail(error)
        else:
            for part, found in zip(group.parts, outcomes or [None] * len(group.parts), strict=True):
                self._note(part.organization, group, found, failed=outcomes is None)
                if found is None:
                    self._put_back(part)
                else:
                    part.end(found)
        finally:
            self._end(group)

    def _end(self, group: _Group) -> None:
        self._on_their_way[group.is_shared] -= 1
        for part in group.parts:
            index = part.organization, part.waiting[0].lane
            queue = self._queues.pop(index)
            queue.is_on_its_way = False
            if queue.waiting:
                self._queues[index] = queue  # behind the others
        self._call()

    def _put_back(self, part: Turn) -> None:
        left = [one for one in part.waiting if not one.is_withdrawn]
        for one in left:
            if one.called.is_set():  # an old call to lead
                one.called = trio.Event()
        queue = self._queue(part.organization, part.waiting[0].lane)
        queue.waiting[:0] = left

    def _note(self, organization: int, group: _Group, found: Sequence[Any] | None, *, failed: bool) -> None:
        """Determine which organizations need groups of their own next, and which no longer do."""
        if not group.is_shared:
            if (busy := self._busy.get(organization)) is not None:
                busy.alone = max(0, busy.alone - 1)
            return
        if found is not None:
            self._busy.pop(organization, None)
            return
        busy = self._busy.setdefault(organization, _Busy())
        if failed:
            busy.alone = 1
            return
        busy.missed += 1
        if busy.missed > 1:
            busy.missed, busy.alone = 1, busy.next_alone
            busy.next_alone = min(2 * busy.next_alone, ALONE_AT_MOST)
