"""Many nodes on a database, simulated: throughput, latency and fairness under a skewed load.

    python -m bench.scaling [--nodes 100] [--shards 1] [--spread 8] [--rate 50000] [--zipf 1.0] [--seed 1]
    python -m bench.scaling --table

Nothing is served here. `bench/scaling.toml` has the times that were measured, and those that are assumed; the result is
computed from them, and the same for the same seed. Not in it: failures, slow clients, webhooks, reads of the console,
and a network whose delay varies.

The model. Identifications arrive by chance, each of an organization drawn by Zipf's law, at a node drawn evenly from
all, or from the `--spread` nodes to which the load balancer sends that organization. A node has one core and does its
work in order; while several organizations send, what has begun goes first (`fair_queue.py` of the HTTP server).
Identifications wait for their organization: a node writes one group of an organization at a time, over one of its
connections. A group takes the organization's fence, in the order of asking, and holds it for two round trips, its
time on a core of the database, that of its jobs on the node's core, for which it may have to wait twice, and the
commit. It answers one half of a round trip later. An organization's rows lie on one shard.
"""

from __future__ import annotations

import argparse
import heapq
import tomllib
from bisect import bisect
from collections import deque
from collections.abc import Callable
from itertools import accumulate, count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from bench.measures import quantile

Act = Callable[[float, Any], None]
"""What happens at a time, with what."""
At = Callable[[float, Act, Any], None]
PARAMETERS = Path(__file__).with_suffix(".toml")
WARM_UP = 0.25
"""The part of the simulated time that is not counted."""
CLASSES = (("the largest", 0, 1), ("2nd to 10th", 1, 10), ("11th to 100th", 10, 100), ("all others", 100, None))
TABLE = (
    (1, 1, 0, 150),
    (3, 1, 0, 450),
    (10, 1, 0, 1_500),
    (30, 1, 0, 4_500),
    (100, 1, 0, 9_000),
    (100, 1, 8, 9_000),
    (100, 1, 8, 15_000),
    (100, 8, 8, 15_000),
)
"""(nodes, shards, nodes of an organization, identifications a second) of `--table`."""


class NodeTimes(msgspec.Struct, frozen=True):
    """`[node]` of the parameters."""

    cpu_ms: float
    job_ms: float
    group_ms: float
    batch: int
    connections: int
    admission: int
    owner_part: float


class DatabaseTimes(msgspec.Struct, frozen=True):
    """`[database]` of the parameters."""

    rtt_ms: float
    group_ms: float
    job_ms: float
    commit_ms: float
    cores: int


class Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is assumed, and how much is simulated."""

    seed: int
    seconds: float
    organizations: int
    zipf: float
    node: NodeTimes
    database: DatabaseTimes
    nodes: int = 100
    shards: int = 1
    rate: float = 50_000.0
    """Identifications a second that arrive."""
    spread: int = 0
    """Nodes that get the requests of one organization; 0 = all of them."""
    clients: int = 0
    """Instead of `rate`: so many, evenly over the nodes; each sends its next request when it has its response."""
    client_ms: float = 0.0
    """CPU of the process of all clients for a request."""
    machine_cores: int = 0
    """Of one machine that everything runs on; 0 = a core for each node, and the database's own."""


class Share(NamedTuple):
    """What a class of organizations got."""

    name: str
    offered: int
    served: int
    p50_ms: float
    p99_ms: float


class Outcome(NamedTuple):
    """What a simulation comes to, after its warm-up."""

    offered: int
    served: int
    refused: int
    """Answered with 503 at the door of a node."""
    seconds: float
    p50_ms: float
    p99_ms: float
    group: float
    """Identifications in a group, on average."""
    node_busy: float
    database_busy: float
    fairness: float
    """Jain's index of what part of its requests each organization got served: 1 = the same for all."""
    shares: list[Share]


class _Request(NamedTuple):
    arrived_ms: float
    organization: int
    client: int | None = None


class _Group(NamedTuple):
    node: int
    organization: int
    requests: list[_Request]


class _Cores:
    """Work in its order, so much at once; each piece on a core of what lies `below`, if given."""

    def __init__(self, at: At, count: int, below: _Cores | None = None) -> None:
        self._at, self._free, self._below = at, count, below
        self._waiting: deque[tuple[float, Act, Any]] = deque()
        self._ahead: deque[tuple[float, Act, Any]] = deque()

    def work(self, now_ms: float, takes_ms: float, then: Act, subject: Any, *, ahead: bool = False) -> None:
        """`ahead`: before all that is not."""
        if self._free:
            self._free -= 1
            self._start(now_ms, takes_ms, then, subject)
        else:
            (self._ahead if ahead else self._waiting).append((takes_ms, then, subject))

    def _start(self, now_ms: float, takes_ms: float, then: Act, subject: Any) -> None:
        if self._below is None:
            self._at(now_ms + takes_ms, self._done, (then, subject))
        else:
            self._below.work(now_ms, takes_ms, self._done, (then, subject))

    def _done(self, now_ms: float, ended: tuple[Act, Any]) -> None:
        if waiting := self._ahead or self._waiting:
            self._start(now_ms, *waiting.popleft())
        else:
            self._free += 1
        then, subject = ended
        then(now_ms, subject)


class _Node:
    def __init__(self, core: _Cores) -> None:
        self.core = core
        self.inside = 0
        self.of_owner: dict[int, int] = {}
        self.waiting: dict[int, deque[_Request]] = {}
        self.writing: set[int] = set()
        self.turns: deque[int] = deque()
        """Organizations that have something to write and no connection yet."""
        self.connections = 0


class Simulation:
    """One run. Events are (time, number, what to do, with what), in that order."""

    def __init__(self, parameters: Parameters) -> None:
        self._p = parameters
        self._random = Random(parameters.seed)
        machine = _Cores(self._at, parameters.machine_cores) if parameters.machine_cores else None
        self._nodes = [_Node(_Cores(self._at, 1, machine)) for _ in range(parameters.nodes)]
        self._shards = [_Cores(self._at, parameters.database.cores, machine) for _ in range(parameters.shards)]
        self._clients = _Cores(self._at, 1, machine)
        self._fences: dict[int, deque[_Group]] = {}
        """Of each fence that is held, who waits for it."""
        weights = (1 / rank**parameters.zipf for rank in range(1, parameters.organizations + 1))
        self._bounds = list(accumulate(weights))
        self._events: list[tuple[float, int, Act, Any]] = []
        self._numbers = count()
        self._groups = self._grouped = 0
        self._node_ms = self._database_ms = 0.0
        self._offered = [0] * parameters.organizations
        self._latencies: dict[int, list[float]] = {}
        self._refused = 0

    def run(self) -> Outcome:
        """To the end of the simulated time, and until everything that had arrived is answered."""
        end_ms = self._p.seconds * 1000
        for client in range(self._p.clients):
            self._send(0.0, client)
        if not self._p.clients:
            self._at(0.0, self._arrive, end_ms)
        while self._events:
            now_ms, _, act, subject = heapq.heappop(self._events)
            act(now_ms, subject)
        return self._outcome(end_ms)

    def _at(self, when_ms: float, act: Act, subject: Any) -> None:
        heapq.heappush(self._events, (when_ms, next(self._numbers), act, subject))

    def _counts(self, arrived_ms: float) -> bool:
        return arrived_ms >= WARM_UP * self._p.seconds * 1000

    def _arrive(self, now_ms: float, end_ms: float) -> None:
        next_ms = now_ms + self._random.expovariate(self._p.rate / 1000)
        if next_ms < end_ms:
            self._at(next_ms, self._arrive, end_ms)
        organization = self._organization()
        place = self._random.randrange(self._p.spread or self._p.nodes)
        if self._p.spread:
            place = (organization * 7_919 + place) % self._p.nodes  # neighbors in rank lie apart
        self._admit(now_ms, place, _Request(now_ms, organization))

    def _send(self, now_ms: float, client: int) -> None:
        if now_ms < self._p.seconds * 1000:
            request = _Request(now_ms, self._organization(), client)
            self._clients.work(now_ms, self._p.client_ms, self._sent, request)

    def _sent(self, now_ms: float, request: _Request) -> None:
        assert request.client is not None
        self._admit(now_ms, request.client % self._p.nodes, request)

    def _organization(self) -> int:
        return bisect(self._bounds, self._random.random() * self._bounds[-1])

    def _admit(self, now_ms: float, place: int, request: _Request) -> None:
        organization = request.organization
        node, times, counts = self._nodes[place], self._p.node, self._counts(request.arrived_ms)
        self._offered[organization] += counts
        own = node.of_owner.get(organization, 0)
        if node.inside >= times.admission or own >= times.admission * times.owner_part:
            self._refused += counts
            return
        node.inside += 1
        node.of_owner[organization] = own + 1
        self._node_ms += (times.cpu_ms + times.job_ms) * counts
        node.core.work(now_ms, times.cpu_ms, self._assessed, (place, request))

    def _assessed(self, now_ms: float, subject: tuple[int, _Request]) -> None:
        place, request = subject
        node, organization = self._nodes[place], request.organization
        waiting = node.waiting.setdefault(organization, deque())
        waiting.append(request)
        if organization not in node.writing and len(waiting) == 1:
            node.turns.append(organization)
            self._begin(now_ms, place)

    def _begin(self, now_ms: float, place: int) -> None:
        node = self._nodes[place]
        while node.turns and node.connections < self._p.node.connections:
            organization = node.turns.popleft()
            waiting = node.waiting[organization]
            group = _Group(
                place, organization, [waiting.popleft() for _ in range(min(len(waiting), self._p.node.batch))]
            )
            if not waiting:
                del node.waiting[organization]
            node.connections += 1
            node.writing.add(organization)
            self._groups += 1
            self._grouped += len(group.requests)
            self._node_ms += self._p.node.group_ms * self._counts(group.requests[0].arrived_ms)
            self._at_node(now_ms, group, 0.0, self._traveling(self._ask))

    def _traveling(self, then: Act) -> Act:
        """One way, between a node and the database; `then` at its end."""
        return lambda now_ms, group: self._at(now_ms + self._p.database.rtt_ms / 2, then, group)

    def _ask(self, now_ms: float, group: _Group) -> None:
        waiting = self._fences.get(group.organization)
        if waiting is not None:
            waiting.append(group)
            return
        self._fences[group.organization] = deque()
        self._hold(now_ms, group)

    def _hold(self, now_ms: float, group: _Group) -> None:
        """The fence is this group's. The rows that hints know are read."""
        self._on_database(now_ms, group, self._traveling(self._fetch))

    def _fetch(self, now_ms: float, group: _Group) -> None:
        """At the node: asks for the rest, for which the database needs little."""
        self._at_node(now_ms, group, 0.0, self._traveling(self._traveling(self._run)))

    def _run(self, now_ms: float, group: _Group) -> None:
        """At the node: the jobs, and what they write is sent."""
        self._at_node(now_ms, group, self._p.node.job_ms * len(group.requests), self._traveling(self._write))

    def _write(self, now_ms: float, group: _Group) -> None:
        self._on_database(now_ms, group, self._sync)

    def _sync(self, now_ms: float, group: _Group) -> None:
        self._at(now_ms + self._p.database.commit_ms, self._commit, group)

    def _at_node(self, now_ms: float, group: _Group, jobs_ms: float, then: Act) -> None:
        takes_ms = self._p.node.group_ms / 3 + jobs_ms
        self._nodes[group.node].core.work(now_ms, takes_ms, then, group, ahead=self._p.organizations > 1)

    def _on_database(self, now_ms: float, group: _Group, then: Act) -> None:
        """One half of its work."""
        database = self._p.database
        work_ms = (database.group_ms + database.job_ms * len(group.requests)) / 2
        self._database_ms += work_ms * self._counts(group.requests[0].arrived_ms)
        self._shards[group.organization % self._p.shards].work(now_ms, work_ms, then, group)

    def _commit(self, now_ms: float, group: _Group) -> None:
        waiting = self._fences[group.organization]
        if waiting:
            self._hold(now_ms, waiting.popleft())
        else:
            del self._fences[group.organization]
        self._at(now_ms + self._p.database.rtt_ms / 2, self._answer, group)

    def _answer(self, now_ms: float, group: _Group) -> None:
        node = self._nodes[group.node]
        node.connections -= 1
        node.writing.discard(group.organization)
        node.inside -= len(group.requests)
        node.of_owner[group.organization] -= len(group.requests)
        for request in group.requests:
            if self._counts(request.arrived_ms):
                self._latencies.setdefault(group.organization, []).append(now_ms - request.arrived_ms)
            if request.client is not None:
                self._send(now_ms, request.client)
        if group.organization in node.waiting:
            node.turns.append(group.organization)
        self._begin(now_ms, group.node)

    def _outcome(self, end_ms: float) -> Outcome:
        seconds = end_ms / 1000 * (1 - WARM_UP)
        every = sorted(latency for latencies in self._latencies.values() for latency in latencies)
        parts = [len(self._latencies.get(one, ())) / offered for one, offered in enumerate(self._offered) if offered]
        return Outcome(
            offered=sum(self._offered),
            served=len(every),
            refused=self._refused,
            seconds=seconds,
            p50_ms=quantile(every, 0.5),
            p99_ms=quantile(every, 0.99),
            group=self._grouped / max(1, self._groups),
            node_busy=self._node_ms / 1000 / seconds / self._p.nodes,
            database_busy=self._database_ms / 1000 / seconds / (self._p.shards * self._p.database.cores),
            fairness=sum(parts) ** 2 / (len(parts) * sum(part * part for part in parts)) if any(parts) else 0.0,
            shares=[self._share(*each) for each in CLASSES],
        )

    def _share(self, name: str, first: int, beyond: int | None) -> Share:
        offered = self._offered[first:beyond]
        of_class = range(first, first + len(offered))
        latencies = sorted(latency for one in of_class for latency in self._latencies.get(one, ()))
        return Share(name, sum(offered), len(latencies), quantile(latencies, 0.5), quantile(latencies, 0.99))


def read_parameters(**instead: float) -> Parameters:
    """Those of `bench/scaling.toml`, with some replaced."""
    given = tomllib.loads(PARAMETERS.read_text())
    return msgspec.convert(given | instead, Parameters)


def _print(outcome: Outcome) -> None:
    rate = outcome.served / outcome.seconds
    print(
        f"{rate:,.0f} identifications a second of {outcome.offered / outcome.seconds:,.0f}, {outcome.refused:,} refused"
    )
    print(f"latency p50 {outcome.p50_ms:.1f} ms, p99 {outcome.p99_ms:.1f} ms; groups of {outcome.group:.1f}")
    print(f"busy: nodes {outcome.node_busy:.0%}, database {outcome.database_busy:.0%}; fairness {outcome.fairness:.4f}")
    print(f"{'organizations':<16}{'offered/s':>12}{'served/s':>12}{'p50 ms':>9}{'p99 ms':>9}")
    for share in outcome.shares:
        offered, served = share.offered / outcome.seconds, share.served / outcome.seconds
        print(f"{share.name:<16}{offered:>12,.0f}{served:>12,.0f}{share.p50_ms:>9.1f}{share.p99_ms:>9.1f}")


def _print_table(**instead: float) -> None:
    columns = ("nodes", "shards", "spread", "offered/s", "served/s", "p50 ms", "p99 ms", "largest/s", "its p99 ms")
    print("| " + " | ".join(columns) + " |")
    print("|---:" * len(columns) + "|")
    for nodes, shards, spread, rate in TABLE:
        one = Simulation(read_parameters(**instead, nodes=nodes, shards=shards, spread=spread, rate=rate)).run()
        largest = one.shares[0]
        rates = [f"{each / one.seconds:,.0f}" for each in (one.offered, one.served)]
        values = [nodes, shards, spread or "all", *rates, f"{one.p50_ms:.1f}", f"{one.p99_ms:.1f}"]
        print(
            "|", *(f"{each} |" for each in [*values, f"{largest.served / one.seconds:,.0f}", f"{largest.p99_ms:.0f}"])
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--table", action="store_true", help="some sizes, as in docs/internals/nodes.md")
    for name, kind in (
        ("nodes", int),
        ("shards", int),
        ("spread", int),
        ("rate", float),
        ("zipf", float),
        ("seed", int),
    ):
        parser.add_argument(f"--{name}", type=kind)
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    if given.pop("table"):
        _print_table(**given)
    else:
        _print(Simulation(read_parameters(**given)).run())


if __name__ == "__main__":
    main()
