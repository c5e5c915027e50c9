"""Plans: a seed becomes a list of small records, so that a failing run can be made smaller and pasted into a test.

Every step can be left out without the others losing their sense: what a step needs and does not find, it leaves alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from svc.features.webhooks.records import EVENT_TYPES, LIVE_ONLY
from tests.sim.internet import MANNERS, NAMINGS, Manner, Naming

HOUR_S = 3600.0
QUIET_HOURS = 14
"""Without faults, after a plan: longer than nine attempts with `Retry-After`, and clocks set back, can take."""
FAR_S = 400 * 24 * 3600
"""Further than anything is kept."""
REMEMBERED_S = 12 * HOUR_S
"""An idempotency key that was used so long ago is remembered (decisions 3.2) unless clocks have gone forward by as much
since, and they never do."""


class Shop(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """An organization as it begins."""

    credit_micros: int = 1_000_000_000
    rate_limit: int = 0


class Step(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Something that happens `at` so many virtual seconds after the start. `org` and `hook` count from 0."""

    at: float


class Client(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """How a client behaves: for `after_s` seconds and then so many turns of the loop, then it is gone."""

    manner: Literal["waits", "drips", "leaves", "closes half-way", "leaves while it sends"] = "waits"
    after_s: float = 0.0
    turns: int = 0


class Identify(Step, frozen=True, kw_only=True):
    org: int
    production: bool = True
    device: int = 0
    changed: int = 0
    """Which of a device's canvases it shows."""
    bot: bool = False
    key: int | None = None
    """Of idempotency."""
    server: bool = False
    """By a customer's server, with its secret key."""
    astray: bool = False
    """From an origin that the key does not know."""
    stale: bool = False
    """With the public key that was revoked last, if any was."""
    account: int | None = None
    """For which of a few accounts."""
    client: Client = Client()


class Attest(Step, frozen=True, kw_only=True):
    """One challenge, named by several identifications at once."""

    org: int
    uses: int = 2


class Supplement(Step, frozen=True, kw_only=True):
    """A deferred report for the latest identification; of two variants only one is kept."""

    org: int
    variant: int = 0
    client: Client = Client()


class Erase(Step, frozen=True, kw_only=True):
    """The latest visitor asks to be forgotten."""

    org: int
    client: Client = Client()


class Block(Step, frozen=True, kw_only=True):
    """An account is put into the list of blocked ones, or taken out."""

    org: int
    account: int
    on: bool = True
    client: Client = Client()


class SaveRules(Step, frozen=True, kw_only=True):
    """Rules of which each variant decides otherwise."""

    org: int
    variant: int
    production: bool = True
    client: Client = Client()


class SetAccount(Step, frozen=True, kw_only=True):
    """The customer's backend gives the latest event another account, or none."""

    org: int
    account: int | None = None
    production: bool = True
    client: Client = Client()


class EraseAccount(Step, frozen=True, kw_only=True):
    org: int
    account: int
    client: Client = Client()


class Register(Step, frozen=True, kw_only=True):
    hook: int
    org: int
    live: bool = True
    events: tuple[str, ...] = EVENT_TYPES
    client: Client = Client()


class Change(Step, frozen=True, kw_only=True):
    """What a customer does to an endpoint."""

    hook: int
    what: Literal["pause", "resume", "remove", "test", "redeliver"]
    client: Client = Client()


class Rotate(Step, frozen=True, kw_only=True):
    hook: int
    overlap_hours: int = 24
    client: Client = Client()


class Receive(Step, frozen=True, kw_only=True):
    """A receiver takes up another manner."""

    hook: int
    manner: Manner


class Name(Step, frozen=True, kw_only=True):
    """A receiver's name resolves in another way."""

    hook: int
    naming: Naming


class Revoke(Step, frozen=True, kw_only=True):
    """The public key of an organization, for one that is issued again."""

    org: int
    production: bool = True


class Bill(Step, frozen=True, kw_only=True):
    """The operator changes a billing status, from a process of his own."""

    org: int
    status: Literal["free", "active", "past_due", "blocked"]


class Credit(Step, frozen=True, kw_only=True):
    org: int
    micros: int


class Crash(Step, frozen=True, kw_only=True):
    """The power fails, so many turns of the loop later."""

    down_s: float = 1.0
    turns: int = 0


class Restart(Step, frozen=True, kw_only=True):
    pass


class Kill(Step, frozen=True, kw_only=True):
    """One of the processes of several workers is killed, so many turns of the loop later. Where it is the parent, the
    workers drain, and the service begins again so long after their end.
    """

    victim: Literal["worker", "leader", "parent"]
    turns: int = 0
    down_s: float = 0.5


class Jump(Step, frozen=True, kw_only=True):
    """The wall clock is set, and `back_after_s` later set right again, unless that is 0."""

    seconds: int
    back_after_s: float = 0


class Slow(Step, frozen=True, kw_only=True):
    """A commit takes up to so long from now on, on either side of being durable."""

    seconds: float


class RefuseCommits(Step, frozen=True, kw_only=True):
    """The disk is full for the next commits."""

    commits: int


class BreakCommit(Step, frozen=True, kw_only=True):
    """The next commit fails, and may or may not be durable."""

    when: Literal["before", "after"]


class Fill(Step, frozen=True, kw_only=True):
    """The map of the store has no page left."""


class FreeSpace(Step, frozen=True, kw_only=True):
    pass


class Plan(msgspec.Struct, frozen=True):
    """`seed` decides what the steps leave open: latencies, jitter, the order in which tasks run, ids."""

    seed: int
    shops: tuple[Shop, ...]
    steps: tuple[Step, ...]
    workers: int = 1


class Scale(msgspec.Struct, frozen=True):
    shops: int
    hooks: int
    hours: float
    bursts: int
    steps_a_burst: int


SHORT = Scale(shops=3, hooks=8, hours=3, bursts=10, steps_a_burst=10)
TINY = Scale(shops=2, hooks=4, hours=0.5, bursts=5, steps_a_burst=8)
FULL = Scale(shops=10, hooks=40, hours=24, bursts=36, steps_a_burst=12)
"""24 virtual hours, 10 organizations, 40 endpoints."""
SCALES = {"tiny": TINY, "short": SHORT, "full": FULL}


def make_plan(seed: int, scale: Scale, workers: int = 1) -> Plan:
    """The plan of a seed. With several workers some of them are killed besides."""
    return _Making(random.Random(f"plan {seed}"), scale, workers).plan(seed)


class _Making:
    def __init__(self, chance: random.Random, scale: Scale, workers: int) -> None:
        self._chance = chance
        self._scale = scale
        self._workers = workers
        self._kinds = _KINDS if workers == 1 else _KINDS | {_Making._kill: 8}
        self._keys = [0] * scale.shops
        """Of idempotency, given so far: each organization uses the same ones."""
        self._jumped_s = 0
        self._recent: list[Identify] = []

    def plan(self, seed: int) -> Plan:
        chance, scale = self._chance, self._scale
        shops = tuple(
            Shop(chance.choice((1_000_000_000, 1_000_000_000, 60_000)), chance.choice((0, 0, 3)))
            for _ in range(scale.shops)
        )
        steps: list[Step] = [step for hook in range(scale.hooks) for step in self._hook(hook)]
        for _ in range(scale.bursts):
            start = chance.uniform(5, scale.hours * HOUR_S)
            length = chance.choice((0.05, 0.5, 3.0, 30.0, 600.0))
            for _ in range(scale.steps_a_burst):
                steps += self._steps(round(start + chance.uniform(0, length), 4))
        steps += self._far_jumps(steps, random.Random(f"far jumps {seed}"))
        steps = [*map(_for_account, steps), *self._deciding(steps, random.Random(f"deciding {seed}"))]
        return Plan(seed, shops, tuple(sorted(steps, key=lambda step: step.at)), self._workers)

    def _far_jumps(self, steps: list[Step], chance: random.Random) -> Iterator[Step]:
        """Clocks that are wrong by more than a year, for less than the hour after which they would be believed; one
        after the other. Drawn apart, so that the rest of a plan is what it was before there were any.
        """
        free_at = 0.0
        moments = sorted(chance.choice(steps).at for _ in range(chance.choice((0, 1, 1, 2))))
        for at in moments:
            back_after_s = chance.choice((5.0, 300.0, 2000.0))
            if at > max(free_at, 1.0):
                yield Jump(at=round(at - 0.001, 4), seconds=chance.choice((FAR_S, -FAR_S)), back_after_s=back_after_s)
                free_at = at + back_after_s + 1

    def _deciding(self, steps: list[Step], chance: random.Random) -> Iterator[Step]:
        """Changes of lists, rules and accounts, around moments at which something else happens. Drawn apart, too."""
        clients = (
            Client(),
            Client(),
            Client("leaves", 0, 9),
            Client("closes half-way"),
            Client("leaves while it sends"),
        )
        for number in range(len(steps) // 8):
            at = round(max(1.0, chance.choice(steps).at + chance.choice((-0.01, 0, 0.01, 3))), 4)
            org, account = chance.randrange(self._scale.shops), chance.randrange(ACCOUNTS)
            production, client = chance.random() < 0.7, chance.choice(clients)
            match chance.choice(("block", "block", "unblock", "rules", "rules", "account", "account", "erase")):
                case "block" | "unblock" as what:
                    yield Block(at=at, org=org, account=account, on=what == "block", client=client)
                case "rules":
                    yield SaveRules(at=at, org=org, variant=number, production=production, client=client)
                case "account":
                    given = chance.choice((None, account, account))
                    yield SetAccount(at=at, org=org, account=given, production=production, client=client)
                case _:
                    yield EraseAccount(at=at, org=org, account=account, client=client)

    def _hook(self, hook: int) -> Iterator[Step]:
        chance = self._chance
        yield self._register(round(0.1 * hook, 1), hook)
        if chance.random() < 0.5:
            yield Receive(at=round(0.1 * hook, 1), hook=hook, manner=chance.choice(("mixed", chance.choice(MANNERS))))

    def _register(self, at: float, hook: int) -> Register:
        chance = self._chance
        live = chance.random() < 0.7
        types = [name for name in EVENT_TYPES if chance.random() < 0.7 and (live or name not in LIVE_ONLY)]
        if chance.random() < 0.8:
            types = ["identification.completed", *(name for name in types if name != "identification.completed")]
        return Register(at=at, hook=hook, org=hook % self._scale.shops, live=live, events=tuple(types))

    def _steps(self, at: float) -> list[Step]:
        (make,) = self._chance.choices(tuple(self._kinds), tuple(self._kinds.values()))
        return list(make(self, at))

    def _identify(self, at: float) -> Iterator[Step]:
        chance = self._chance
        if self._recent and chance.random() < 0.15:
            earlier = chance.choice(self._recent[-8:])
            if -REMEMBERED_S < at - earlier.at < HOUR_S:  # bursts are made in any order
                yield msgspec.structs.replace(earlier, at=at, client=Client())
                return
        org = self._org()
        self._keys[org] += 1
        step = Identify(
            at=at,
            org=org,
            production=chance.random() < 0.7,
            device=chance.randrange(12),
            changed=chance.randrange(3),
            bot=chance.random() < 0.25,
            key=self._keys[org] if chance.random() < 0.8 else None,
            server=chance.random() < 0.2,
            astray=chance.random() < 0.05,
            stale=chance.random() < 0.1,
            client=self._client(),
        )
        yield step
        if step.key is not None:
            self._recent.append(step)
            if chance.random() < 0.4:
                twin_at = round(at + chance.choice((0, 0.001, 0.02, 1, 60)), 4)
                yield msgspec.structs.replace(step, at=twin_at, client=self._client())

    def _client(self) -> Client:
        chance = self._chance
        after_s = chance.choice((0, 0, chance.uniform(0, 0.08)))
        turns = chance.randrange(40)
        match chance.randrange(10):
            case 0 | 1:
                return Client("leaves", after_s, turns)
            case 2:
                return Client("closes half-way", after_s, turns)
            case 3:
                return Client("leaves while it sends", after_s, turns)
            case 4:
                return Client("drips", chance.choice((0.01, 0.5, 3.0)))
            case _:
                return Client()

    def _attest(self, at: float) -> Iterator[Step]:
        yield Attest(at=at, org=self._org(), uses=self._chance.randint(2, 4))

    def _supplement(self, at: float) -> Iterator[Step]:
        org = self._org()
        for _ in range(self._chance.randint(1, 3)):
            yield Supplement(at=at, org=org, variant=self._chance.choice((0, 0, 1)), client=self._client())

    def _erase(self, at: float) -> Iterator[Step]:
        yield Erase(at=at, org=self._org(), client=self._client())

    def _change(self, at: float) -> Iterator[Step]:
        hook = self._chance.randrange(self._scale.hooks)
        what = self._chance.choice(("pause", "pause", "resume", "test", "test", "redeliver", "redeliver", "remove"))
        yield Change(at=at, hook=hook, what=what, client=self._client())
        if what == "pause":
            yield Change(at=at + self._chance.choice((0.01, 40, 9000)), hook=hook, what="resume")
        if what == "remove":
            yield self._register(at + self._chance.choice((0.01, 600)), hook)

    def _rotate(self, at: float) -> Iterator[Step]:
        hook = self._chance.randrange(self._scale.hooks)
        for _ in range(self._chance.randint(1, 2)):
            yield Rotate(at=at, hook=hook, overlap_hours=self._chance.choice((0, 0, 1, 24)), client=self._client())
            at += self._chance.choice((0.001, 3, 2000))

    def _receive(self, at: float) -> Iterator[Step]:
        hook = self._chance.randrange(self._scale.hooks)
        yield Receive(at=at, hook=hook, manner=self._chance.choice(MANNERS))
        if self._chance.random() < 0.6:
            yield Receive(at=at + self._chance.uniform(1, 6000), hook=hook, manner="well")

    def _name(self, at: float) -> Iterator[Step]:
        hook = self._chance.randrange(self._scale.hooks)
        yield Name(at=at, hook=hook, naming=self._chance.choice(NAMINGS))
        yield Name(at=at + self._chance.uniform(1, 6000), hook=hook, naming=self._chance.choice(("well", "flips")))

    def _revoke(self, at: float) -> Iterator[Step]:
        yield Revoke(at=at, org=self._org(), production=self._chance.random() < 0.7)

    def _bill(self, at: float) -> Iterator[Step]:
        org = self._org()
        if self._chance.random() < 0.4:
            yield Credit(at=at, org=org, micros=self._chance.choice((3_000, 40_000, 1_000_000)))
            return
        for _ in range(2):
            yield Bill(at=at, org=org, status=self._chance.choice(("free", "active", "past_due", "blocked", "active")))
            at += self._chance.choice((0, 0.01, 5, 600))

    def _crash(self, at: float) -> Iterator[Step]:
        if self._chance.random() < 0.3:
            yield Restart(at=at)
        else:
            down_s = self._chance.choice((0.0, 0.5, 20.0, 900.0))
            yield Crash(at=at, down_s=down_s, turns=self._chance.randrange(40))

    def _kill(self, at: float) -> Iterator[Step]:
        victim = self._chance.choice(("worker", "worker", "leader", "leader", "parent"))
        down_s = self._chance.choice((0.0, 0.5, 20.0))
        yield Kill(at=at, victim=victim, turns=self._chance.randrange(40), down_s=down_s)

    def _jump(self, at: float) -> Iterator[Step]:
        seconds = self._chance.choice((3600, -3600, 3600, -3600, 61, -7))
        if abs(self._jumped_s + seconds) <= 3 * HOUR_S:
            self._jumped_s += seconds
            yield Jump(at=at, seconds=seconds)

    def _disk(self, at: float) -> Iterator[Step]:
        chance = self._chance
        match chance.randrange(4):
            case 0:
                yield RefuseCommits(at=at, commits=chance.randint(1, 6))
            case 1:
                yield BreakCommit(at=at, when=chance.choice(("before", "after")))
            case 2:
                yield Fill(at=at)
                yield FreeSpace(at=at + chance.choice((0.5, 20, 700)))
            case _:
                yield Slow(at=at, seconds=chance.choice((0.3, 1.5)))
                yield Slow(at=at + chance.choice((0.5, 20, 700)), seconds=0.02)

    def _org(self) -> int:
        return self._chance.randrange(self._scale.shops)


ACCOUNTS = 4
"""Of a shop."""


def _for_account(step: Step) -> Step:
    """Every second device acts for an account, which others have, too."""
    if not isinstance(step, Identify) or step.device % 2:
        return step
    return msgspec.structs.replace(step, account=step.device // 2 % ACCOUNTS)


_KINDS: dict[Callable[[_Making, float], Iterator[Step]], int] = {
    _Making._identify: 60,
    _Making._attest: 3,
    _Making._supplement: 3,
    _Making._erase: 2,
    _Making._change: 9,
    _Making._rotate: 4,
    _Making._receive: 8,
    _Making._name: 4,
    _Making._revoke: 2,
    _Making._bill: 4,
    _Making._crash: 4,
    _Making._jump: 2,
    _Making._disk: 5,
}
