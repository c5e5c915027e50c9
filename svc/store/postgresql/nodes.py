"""Nodes: the processes that serve one database, and what each does to be known.

A node has a row that it renews at every beat, with the clock of the database. Rows that were renewed within a term are
the living nodes: rate limits are divided among so many. The beat carries the node's leases too, so that both take one
round trip on a connection of their own, which no large transaction holds up.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import structlog
import trio

from svc.store.engine import EngineError
from svc.store.postgresql.leases import RENEWALS, TERM_S, Lease
from svc.store.postgresql.values import integer
from svc.store.postgresql.wire import Statement, Timeouts, Wire

log = structlog.get_logger()

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
LEAVE_S = 2.0
"""For the last words of a node that ends."""
BEAT_TIMEOUTS = Timeouts(statement_s=2.0, lock_s=2.0, idle_s=5.0, answer_s=3.0)
"""A beat that takes longer is given up, and tried again on another connection while there is time."""

_BEAT = b"""
insert into svc.nodes (node, started_at, seen_at) values ($1::text, clock_timestamp(), clock_timestamp())
on conflict (node) do update set seen_at = clock_timestamp()
"""
_LIVING = b"select count(*) from svc.nodes where seen_at > clock_timestamp() - make_interval(secs => $1)"
_FORGET = b"delete from svc.nodes where seen_at < clock_timestamp() - interval '1 hour'"
_LEAVE = b"delete from svc.nodes where node = $1::text"

Connect = Callable[[Timeouts], Awaitable[Wire]]
"""Makes a connection to the database. Raises `EngineError`."""


def pause_s(failures: int, luck: float) -> float:
    """Seconds until the next attempt after so many that failed in a row; `luck` from 0 to 1 spreads those of many
    nodes, which a restart of the database would else bring together.
    """
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures, 20)) * (0.5 + luck / 2)


class NodeStatistics(NamedTuple):
    """What a node knows of itself and the others."""

    living: int
    """Nodes, this one among them, at its last beat."""
    beats: int
    """Answered."""
    beats_failed: int
    leases_held: int


class Node:
    """One node, for the process that it is."""

    def __init__(
        self,
        connect: Connect,
        name: str,
        leases: Sequence[Lease],
        luck: Callable[[], float],
        term_s: float = TERM_S,
    ) -> None:
        """`name` is nobody else's, of no process before either. `luck` is random from 0 to 1."""
        self._connect = connect
        self._name = name
        self._leases = leases
        self._luck = luck
        self._term_s = term_s
        self._wire: Wire | None = None
        self._living = 1
        self._beats = self._failed = 0
        self._answered_s = float("-inf")

    @property
    def living(self) -> int:
        """How many nodes there are; while the database does not answer, as many as there were."""
        return self._living

    def is_answered(self) -> bool:
        """Whether the database has answered a beat within the term."""
        return trio.current_time() - self._answered_s < self._term_s

    def statistics(self) -> NodeStatistics:
        """A copy of the counts."""
        held = sum(lease.is_held() for lease in self._leases)
        return NodeStatistics(self._living, self._beats, self._failed, held)

    async def beat(self) -> None:
        """Say once that this node lives, count the living, renew its leases and take those that are free. Raises
        `EngineError`; the connection is then closed, and the next beat makes another.
        """
        try:
            if self._wire is None or not self._wire.is_open:
                self._wire = await self._connect(BEAT_TIMEOUTS)
                await self._wire.exchange([lease.setup() for lease in self._leases])
            sent_s = trio.current_time()
            _, _, living, *answers = await self._wire.exchange([*self._words(), *(each.ask() for each in self._leases)])
        except EngineError:
            self._failed += 1
            self.close()
            raise
        self._beats += 1
        self._answered_s = trio.current_time()
        self._living = max(1, integer(living.rows[0][0]))
        for lease, answer in zip(self._leases, answers, strict=True):
            lease.learn(answer, sent_s)

    async def run(self) -> None:
        """Beat until cancelled, and then leave: what this node has is free for the others at once."""
        failures = 0
        try:
            while True:
                try:
                    await self.beat()
                except EngineError as error:
                    if not failures:
                        log.warning("the database does not respond to a heartbeat", because=str(error))
                    failures += 1
                    await trio.sleep(pause_s(failures, self._luck()))
                else:
                    if failures:
                        log.info("the database responds again", beats_failed=failures)
                    failures = 0
                    await trio.sleep(self._term_s / RENEWALS)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + LEAVE_S):
                await self._leave()

    def close(self) -> None:
        """Close the connection."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _words(self) -> list[Statement]:
        since = struct.pack(">d", self._term_s)
        return [Statement(_BEAT, (self._name.encode(),)), Statement(_FORGET), Statement(_LIVING, (since,))]

    async def _leave(self) -> None:
        words = [statement for lease in self._leases for statement in lease.end()]
        try:
            # A beat that was cancelled has closed its connection, and leases must not wait for their end.
            wire = self._wire if self._wire is not None and self._wire.is_open else await self._connect(BEAT_TIMEOUTS)
            self._wire = wire
            await wire.exchange([*words, Statement(_LEAVE, (self._name.encode(),))])
        except EngineError as error:
            log.warning("this node could not say that it leaves", because=str(error))
        finally:
            self.close()
