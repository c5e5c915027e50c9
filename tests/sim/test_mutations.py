"""The simulation can fail: services that are broken on purpose, each in one way, are found out, and for what."""

from __future__ import annotations

import hmac
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from svc import world
from svc.cli.serve import processes
from svc.features.identification import transaction as identification
from svc.features.lists.queries import AskedLists
from svc.features.lists.tables import LIST_ENTRIES, LISTS
from svc.features.rules.ruleset import NOTHING_DECIDED
from svc.features.rules.tables import RULESET_HISTORY, RULESETS
from svc.features.webhooks.records import Attempted, Transport
from svc.features.webhooks.tables import DELIVERIES, DUE, ENDPOINTS, WEBHOOK_EVENTS
from svc.identify.tables import (
    ACCOUNTS,
    ADDRESSES,
    CHALLENGES,
    EVENT_CHANGES,
    EVENTS,
    FEED_CLOSED,
    IDEMPOTENCY,
    VISITOR_COUNTS,
)
from svc.kernel.access.tables import KEYS
from svc.kernel.store.schema.table import Table
from svc.kernel.tenants.tables import LEDGER, LEDGER_DAYS, ORGANIZATIONS
from svc.kernel.work.clock import ClockWatch, ServiceClock
from tests.sim.machine import Sabotage
from tests.sim.plan import (
    FAR_S,
    Attest,
    Block,
    Change,
    Crash,
    EraseAccount,
    Identify,
    Jump,
    Plan,
    Receive,
    Register,
    Revoke,
    Rotate,
    SaveRules,
    SetAccount,
    Shop,
    Step,
)
from tests.sim.simulation import simulate
from tests.support.effort import effort

SHOPS = (Shop(), Shop())
ONE_IN = effort(3, 1)
HOOK = Register(at=0, hook=0, org=0)
FIRST_VISITS = tuple(Identify(at=1 + device, org=0, device=device) for device in range(5))


def plan(*steps: Step) -> Plan:
    return Plan(1, SHOPS, steps)


def two_workers(*steps: Step) -> Plan:
    return Plan(1, SHOPS, steps, workers=2)


def losing(lost: Table[Any], verb: str = "put", first: int = 1) -> Sabotage:
    """A store that leaves out these writes of a table, from the `first` of each row on."""
    seen: Counter[Any] = Counter()

    def loses(done: str, table: Table[Any], key: tuple[Any, ...]) -> bool:
        if table is not lost or done != verb:
            return False
        seen[key] += 1
        return seen[key] >= first

    return Sabotage(loses=loses)


class Meddling:
    """Between the outbox and the network."""

    def __init__(self, transport: Transport, meddle: Callable[[bytes, dict[str, str]], tuple[bytes, dict[str, str]]]):
        self._transport = transport
        self._meddle = meddle

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], organization: int) -> Attempted:
        return await self._transport.post(url, *self._meddle(body, dict(headers)), organization)


class Lying:
    """Says that all is well, and sends nothing."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], organization: int) -> Attempted:
        return Attempted(200, None, 1, None)


def with_another_id_each_time() -> Sabotage:
    attempts = iter(range(1, 1000))

    def meddle(body: bytes, headers: dict[str, str]) -> tuple[bytes, dict[str, str]]:
        event_id = str(UUID(int=next(attempts)))
        body = json.dumps(json.loads(body) | {"id": event_id}).encode()
        return body, headers | {"X-Svc-Event-ID": event_id}

    return Sabotage(sends=lambda transport: Meddling(transport, meddle))


def signing_with(secret: bytes) -> Sabotage:
    def meddle(body: bytes, headers: dict[str, str]) -> tuple[bytes, dict[str, str]]:
        signed = headers["X-Svc-Timestamp"].encode() + b"." + body
        return body, headers | {"X-Svc-Signature": "sha256=" + hmac.digest(secret, signed, "sha256").hex()}

    return Sabotage(sends=lambda transport: Meddling(transport, meddle))


def with_an_old_timestamp() -> Sabotage:
    def meddle(body: bytes, headers: dict[str, str]) -> tuple[bytes, dict[str, str]]:
        return body, headers | {"X-Svc-Timestamp": str(int(headers["X-Svc-Timestamp"]) - 60)}

    return Sabotage(sends=lambda transport: Meddling(transport, meddle))


def twice() -> Sabotage:
    class Twice:
        def __init__(self, transport: Transport) -> None:
            self._transport = transport

        async def post(self, url: str, body: bytes, headers: Mapping[str, str], organization: int) -> Attempted:
            await self._transport.post(url, body, headers, organization)
            return await self._transport.post(url, body, headers, organization)

    return Sabotage(sends=Twice)


BLOCK, FREE = Block(at=2, org=0, account=1), Block(at=4, org=0, account=1, on=False)
NAMED = Identify(at=6, org=0, device=1, account=1)
NAMED_LATER = Identify(at=60, org=0, device=1, account=1)
VISIT = Identify(at=5, org=0, device=1, key=1)
LATER = Identify(at=60, org=0)
AGAIN = Identify(at=6, org=0, device=1, key=1)

MUTATIONS: dict[str, tuple[Sabotage, Plan, str]] = {
    "an event is not stored": (losing(EVENTS), plan(VISIT), "corrupt row"),
    "a line of the ledger is left out": (losing(LEDGER, first=1), plan(VISIT), "its ledger sums to"),
    "an idempotency key is forgotten": (losing(IDEMPOTENCY), plan(VISIT, AGAIN), "key 1 of shop 0 has 2 events"),
    "a challenge stays unused": (losing(CHALLENGES, first=2), plan(Attest(at=5, org=0)), "a challenge was used by 2"),
    "a revoked key stays": (
        losing(KEYS, first=3),
        plan(VISIT, Revoke(at=70, org=0), Identify(at=90, org=0, device=2, stale=True)),
        "active keys, its count says",
    ),
    "a delivery is not scheduled": (losing(DUE), plan(HOOK, VISIT), "is open and not scheduled"),
    "a delivery stays scheduled": (losing(DUE, "delete"), plan(HOOK, VISIT), "is scheduled and not open"),
    "a delivery is not queued": (losing(DELIVERIES), plan(HOOK, VISIT), "a due row without its delivery"),
    "what an attempt came to is lost": (losing(DELIVERIES, first=2), plan(HOOK, VISIT), "is open and not scheduled"),
    "an event has nothing to send": (
        losing(WEBHOOK_EVENTS),
        plan(HOOK, VISIT),
        "a due row without its delivery or its event",
    ),
    "a rotation is lost": (
        losing(ENDPOINTS, first=2),
        plan(HOOK, Rotate(at=2, hook=0), LATER),
        "is signed by generations [1], not by one of",
    ),
    "a pause is lost": (
        losing(ENDPOINTS, first=2),
        plan(HOOK, Change(at=2, hook=0, what="pause"), LATER, Identify(at=90, org=1)),
        "which was paused or removed",
    ),
    "a removal is lost": (
        losing(ENDPOINTS, "delete"),
        plan(HOOK, Change(at=2, hook=0, what="remove"), LATER),
        "which was paused or removed",
    ),
    "velocity is not counted": (losing(ADDRESSES), plan(NAMED), "there is no velocity of its address"),
    "velocity is counted once": (losing(ADDRESSES, first=2), plan(NAMED, NAMED_LATER), "it is not among the events"),
    "another account is not counted": (
        losing(ADDRESSES, first=3),
        plan(NAMED, Identify(at=60, org=0, device=1, account=2), SetAccount(at=70, org=0, account=3)),
        "is not among the accounts of its address",
    ),
    "an account is not recorded": (losing(ACCOUNTS), plan(NAMED), "its account has no record"),
    "a visitor is not recorded with the account": (
        losing(ACCOUNTS, first=2),
        plan(NAMED, Identify(at=60, org=0, device=3, account=1)),
        "is not within the record of its account",
    ),
    "an entry of a list is lost": (losing(LIST_ENTRIES), plan(BLOCK), "has 0 entries, its count says otherwise"),
    "an erased account stays in a list": (
        losing(LIST_ENTRIES, "delete"),
        plan(BLOCK, NAMED, EraseAccount(at=9, org=0, account=1)),
        "has 1 entries, its count says otherwise",
    ),
    "a list with entries is not named": (losing(ORGANIZATIONS, first=2), plan(BLOCK), "does not say so"),
    "a list is lost": (losing(LISTS), plan(BLOCK), "has 1 entries, its count says otherwise"),
    "rules are not in force": (
        losing(RULESETS),
        plan(SaveRules(at=2, org=0, variant=0)),
        "are of revision 0, and 1 before it are kept, not 0",
    ),
    "rules before are not kept": (
        losing(RULESET_HISTORY),
        plan(SaveRules(at=2, org=0, variant=0)),
        "are of revision 1, and 0 before it",
    ),
    "each attempt has an id of its own": (
        with_another_id_each_time(),
        plan(HOOK, Receive(at=0, hook=0, manner="500"), VISIT, Receive(at=8, hook=0, manner="well")),
        "tells with another id of what was told before",
    ),
    "another secret signs": (signing_with(b"svc_whsec_other"), plan(HOOK, VISIT), "is signed by generations [None]"),
    "a signature is old": (with_an_old_timestamp(), plan(HOOK, VISIT), "is signed by generations [None]"),
    "nothing is sent": (Sabotage(sends=lambda _: Lying()), plan(HOOK, VISIT), "nobody has answered 2xx"),
    "everything is sent twice": (twice(), plan(HOOK, VISIT), "for no reason"),
    "both workers are the leader": (
        Sabotage(keeps=lambda _: True),
        # Before its first attempt a process that has written nothing yet makes a commit: until then it is later.
        two_workers(
            HOOK,
            Receive(at=0.5, hook=0, manner="500"),
            *FIRST_VISITS,
            LATER,
            *(Identify(at=61 + 0.2 * device, org=0, device=device) for device in range(8)),
        ),
        "for no reason",
    ),
    "another account is not noted as a change": (
        losing(EVENT_CHANGES),
        plan(NAMED, SetAccount(at=70, org=0, account=3)),
        "the copy of who follows shop 0",
    ),
    "a change comes behind a cursor": (
        losing(FEED_CLOSED),
        plan(
            *FIRST_VISITS,
            *(Identify(at=40 + device, org=0, device=device) for device in range(5)),
            Jump(at=60, seconds=-3600),
            *(Identify(at=round(70 + 0.1 * device, 1), org=0, device=device) for device in range(12)),
        ),
        "was not shown",
    ),
    "what was taken of visitor numbers is lost": (
        losing(VISITOR_COUNTS),
        two_workers(*FIRST_VISITS),
        "is beyond the 0 numbers taken",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_sabotaged_service_is_detected(name: str, tmp_path: Path):
    sabotage, small, finding = MUTATIONS[name]
    violations = simulate(small, tmp_path, sabotage=sabotage).violations
    assert any(finding in violation for violation in violations), violations


@pytest.mark.slow
@pytest.mark.parametrize("stale", ["rules", "lists"])
def test_a_decision_by_what_was_in_force_before_is_detected(
    stale: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    save = SaveRules(at=2, org=0, variant=0)
    steps = plan(save, BLOCK, NAMED, NAMED_LATER) if stale == "lists" else plan(save, NAMED_LATER)
    assert simulate(steps, tmp_path / "sound").violations == []
    if stale == "lists":
        monkeypatch.setattr(AskedLists, "_lists_with", lambda *_: frozenset())
    else:
        monkeypatch.setattr(identification, "decide_event", lambda *_: NOTHING_DECIDED)
    violations = simulate(steps, tmp_path / "broken").violations
    assert any("was decided" in violation for violation in violations), violations


ASTRAY = (Identify(at=5, org=0, device=1), Jump(at=20, seconds=FAR_S, back_after_s=300))


def believe_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the first defense away: what is stored is dated by the wall clock, wherever it jumps (ADR 185)."""
    monkeypatch.setattr(ServiceClock, "now_ms", lambda clock: clock._wall_ms())
    monkeypatch.setattr(ServiceClock, "behind_s", lambda _: 0.0)


@pytest.mark.slow
def test_retention_by_a_clock_that_jumped_ahead_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert simulate(plan(*ASTRAY), tmp_path / "sound").violations == []
    believe_the_wall_clock(monkeypatch)
    monkeypatch.setattr(ClockWatch, "is_ahead", lambda *_: False)
    violations = simulate(plan(*ASTRAY), tmp_path / "broken").violations
    assert any("acknowledged" in violation for violation in violations), violations


@pytest.mark.slow
def test_retention_that_forgets_at_a_start_that_the_clock_had_jumped_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What is written after the jump is no proof that the clock is right."""
    away = Jump(at=200, seconds=FAR_S, back_after_s=900)
    steps = plan(FIRST_VISITS[0], away, Identify(at=230, org=0, device=2), Crash(at=260, down_s=1))
    assert simulate(steps, tmp_path / "sound").violations == []
    monkeypatch.setattr(processes, "last_believed_ms", lambda _: None)
    violations = simulate(steps, tmp_path / "broken").violations
    assert any("acknowledged" in violation for violation in violations), violations


@pytest.mark.slow
def test_ids_that_follow_a_clock_far_ahead_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    believe_the_wall_clock(monkeypatch)
    monkeypatch.setattr(world, "LONGEST_LEAD_MS", 10 * FAR_S * 1000)
    violations = simulate(plan(*ASTRAY, *(Identify(at=at, org=0, device=2) for at in (30, 400))), tmp_path).violations
    assert any("an id that is not within an hour" in violation for violation in violations), violations


@pytest.mark.slow
def test_a_line_of_another_day_that_is_not_listed_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """After a clock that was believed is set back, visits count for the day that it had begun."""
    believe_the_wall_clock(monkeypatch)
    steps = plan(HOOK, *ASTRAY, Identify(at=400, org=0, device=2), Identify(at=500, org=0, device=3))
    lost = simulate(steps, tmp_path / "lost", sabotage=losing(LEDGER_DAYS)).violations
    assert any("counts for day" in violation for violation in lost), lost


@pytest.mark.slow
def test_the_same_plans_find_nothing_in_an_intact_service(tmp_path: Path, crash_seed: int):
    """A third of them at a commit."""
    some = [*MUTATIONS.items()][crash_seed % ONE_IN :: ONE_IN]
    for number, (name, (_, small, _)) in enumerate(some):
        assert simulate(small, tmp_path / str(number)).violations == [], name


@pytest.mark.slow
def test_a_crash_of_an_intact_service_is_not_a_violation(tmp_path: Path):
    steps = plan(HOOK, VISIT, Crash(at=5.01), AGAIN, Crash(at=6.02, down_s=60))
    assert simulate(steps, tmp_path).violations == []
