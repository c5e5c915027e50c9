"""Nodes: the processes that serve one database, and what each does to be known.

A node has a row that it renews at every heartbeat, with the clock of the database. Rows that were renewed within a term
are the living nodes: rate limits are divided among them. The heartbeat carries the node's leases too, so that both take
one round trip on a connection of their own, which no large transaction holds up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing

import structlog
import trio

from svc.kernel.store.engine import EngineError
from svc.kernel.store.installation import pepper_mark
from svc.kernel.store.postgresql import statements
from svc.kernel.store.postgresql.cluster.leases import RENEWALS, TERM_S, ClockOffset, Lease
from svc.kernel.store.postgresql.cluster.partitions import NodeRank, PartitionLeases
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.values import byteas, float8, int4, integer
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Timeouts, Wire
from svc.kernel.store.postgresql.statistics import NodeStatistics
from svc.kernel.store.tables import META
from svc.kernel.values.errors import OperatorError

log = structlog.get_logger()

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
HURRIES = 20
"""Heartbeats in a term, while other nodes have partitions that this one waits for."""
LEAVE_S = 2.0
"""Time that a node has to give back its leases when it ends."""
BEAT_TIMEOUTS = Timeouts(statement_s=2.0, lock_s=2.0, idle_s=5.0, answer_s=3.0)
"""A heartbeat that takes longer is given up, and tried again on another connection while there is time."""

_BEAT = b"""
insert into svc.nodes (node, started_at, seen_at) values ($1::text, clock_timestamp(), clock_timestamp())
on conflict (node) do update set seen_at = clock_timestamp()
"""
_LIVING = b"""
select count(*), count(*) filter (where node < $2::text) from svc.nodes
where seen_at > clock_timestamp() - make_interval(secs => $1)
"""
"""How many nodes there are, and how many of them come before this one."""
_PURGE = b"delete from svc.nodes where seen_at < clock_timestamp() - interval '1 hour'"
_LEAVE = b"delete from svc.nodes where node = $1::text"

_NAMES = b"""
select node from svc.nodes where seen_at > clock_timestamp() - make_interval(secs => $1) order by node
"""

Connect = Callable[[Timeouts], Awaitable[Wire]]
"""Makes a connection to the database. Raises `EngineError`."""


def pause_s(failures: int, jitter: float) -> float:
    """Return the seconds until the next attempt after `failures` failed in a row. `jitter`, from 0 to 1, spreads the
    attempts of many nodes, which a restart of the database would otherwise synchronize.
    """
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures, 20)) * (0.5 + jitter / 2)


def living_nodes(url: StoreUrl) -> list[str]:
    """Return the nodes of a database now: host, process id and a number. Raises `EngineError`."""
    with closing(Wire.connect_now(url)) as wire:
        (found,) = wire.exchange_now([Statement(_NAMES, (float8(TERM_S),))])
    return [name.decode() for (name,) in found.rows]


_PEPPER_MARK = META.key.pack("pepper_mark")


class PepperReplacedError(OperatorError):
    """The pepper of a node is not that of its database any more."""


class PepperMark:
    """Checks whether a node still has the pepper of its database, with every heartbeat: `svc pepper replace` may run on
    another node, and a node that was suspended meanwhile would continue with the old one.
    """

    def __init__(self, pepper: bytes) -> None:
        self._mark = pepper_mark(pepper)

    def ask(self) -> Statement:
        """Return the statement that reads the present mark."""
        return Statement(statements.fetch(META.name), (int4(0), byteas([_PEPPER_MARK])))

    def learn(self, answer: Result) -> None:
        """Raise `PepperReplacedError` if the result of `ask` is another mark; a store without one passes."""
        for key, value in answer.rows:
            if META.decode(key, value) != self._mark:
                raise PepperReplacedError(
                    "the pepper of the database was replaced while this node ran: copy the new one here, and start it"
                )


class Node:
    """The node that this process is."""

    def __init__(
        self,
        connect: Connect,
        name: str,
        leases: Sequence[Lease],
        jitter: Callable[[], float],
        term_s: float = TERM_S,
        partitions: PartitionLeases | None = None,
        pepper: PepperMark | None = None,
        clock: ClockOffset | None = None,
    ) -> None:
        """Take a `name` that no process has or had, and `jitter`, random from 0 to 1. Without `partitions` the node
        sends no webhooks. Without `pepper` it does not check if that was replaced, without `clock` if its clock is off.
        """
        self._connect = connect
        self._name = name
        self._leases = leases
        self._jitter = jitter
        self._term_s = term_s
        self._partitions = partitions
        self._pepper = pepper
        self._clock = clock
        self._wire: Wire | None = None
        self.living = 1
        """Living nodes at the last heartbeat that was answered."""
        self._beats = self._failed = 0
        self._answered_s = float("-inf")

    def is_answered(self) -> bool:
        """Return whether the database has answered a heartbeat within the last `term_s` seconds."""
        return trio.current_time() - self._answered_s < self._term_s

    def statistics(self) -> NodeStatistics:
        """Return a copy of the counts."""
        held = sum(lease.is_held() for lease in self._leases)
        partitions = 0 if self._partitions is None else len(self._partitions.held)
        offset_s = 0.0 if self._clock is None else self._clock.offset_s
        return NodeStatistics(self.living, self._beats, self._failed, held, partitions, offset_s)

    async def beat(self) -> None:
        """Send one heartbeat: renew this node's row and leases, count the living nodes, and take leases that are free.
        Raises `EngineError`; the connection is then closed, and the next heartbeat makes another. Raises
        `PepperReplacedError`.
        """
        try:
            if self._wire is None or not self._wire.is_open:
                self._wire = await self._connect(BEAT_TIMEOUTS)
                rows = [] if self._partitions is None else [self._partitions.setup()]
                await self._wire.exchange([*(lease.setup() for lease in self._leases), *rows])
            sent_s = trio.current_time()
            since, name = float8(self._term_s), self._name.encode()
            words = [Statement(_BEAT, (name,)), Statement(_PURGE), Statement(_LIVING, (since, name))]
            asked = [each.ask() for each in self._leases]
            partitions = [] if self._partitions is None else self._partitions.ask()
            pepper = [] if self._pepper is None else [self._pepper.ask()]
            clock = [] if self._clock is None else [self._clock.ask()]
            _, _, living, *answers = await self._wire.exchange([*words, *asked, *partitions, *pepper, *clock])
        except EngineError:
            self._failed += 1
            self.close()
            raise
        self._beats += 1
        self._answered_s = trio.current_time()
        self.living, rank = map(integer, living.rows[0])
        for lease, answer in zip(self._leases, answers, strict=False):
            lease.learn(answer, sent_s)
        if self._partitions is not None:
            self._partitions.learn(answers[len(asked) :][: len(partitions)], sent_s, NodeRank(self.living, rank))
        if self._clock is not None:
            self._clock.learn(answers.pop())
        if self._pepper is not None:
            self._pepper.learn(answers.pop())

    async def run(self) -> None:
        """Send heartbeats until cancelled; then leave, which frees the leases. Raises `PepperReplacedError`."""
        failures = 0
        try:
            while True:
                try:
                    await self.beat()
                except EngineError as error:
                    if not failures:
                        log.warning("the database does not respond to a heartbeat", because=str(error))
                    failures += 1
                    await trio.sleep(pause_s(failures, self._jitter()))
                else:
                    if failures:
                        log.info("the database responds again", beats_failed=failures)
                    failures = 0
                    await self._rest()
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + LEAVE_S):
                await self._leave()

    def close(self) -> None:
        """Close the connection."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    async def _rest(self) -> None:
        if self._partitions is None:
            await trio.sleep(self._term_s / RENEWALS)
            return
        beats = HURRIES if self._partitions.is_below_part else RENEWALS
        with trio.move_on_after(self._term_s / beats):
            await self._partitions.wanted()

    async def _leave(self) -> None:
        words = [statement for lease in self._leases for statement in lease.end()]
        words += [] if self._partitions is None else self._partitions.end()
        try:
            # A heartbeat that was cancelled has closed its connection, and leases must not wait for their end.
            wire = self._wire if self._wire is not None and self._wire.is_open else await self._connect(BEAT_TIMEOUTS)
            self._wire = wire
            await wire.exchange([*words, Statement(_LEAVE, (self._name.encode(),))])
        except EngineError as error:
            log.warning("this node could not deregister", because=str(error))
        finally:
            self.close()
