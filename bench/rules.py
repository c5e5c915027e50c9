"""What conditions cost: beside what the model says, in an identification, and to those who share the service.

- `model`: conditions drawn from the grammar (`bench.condition_grammar`), asked about the largest events that there can
  be; how much of the CPU that its price stands for each took, and what the greatest rulesets that can be saved take of
  an event. A search: what it finds beyond 1 is a fault of `svc.features.rules.language.cost`.
- `events`: an evaluation of 0 to 100 ordinary rules.
- `service`: twenty organizations on two workers preview the greatest ruleset over their events, save rulesets, add
  entries, or identify with it in force; an honest organization identifies beside them at a steady rate. Each attack is
  measured between two quiet spells.

    python -m bench.rules [model] [events] [service] [--conditions 20000] [--seconds 6] [--rounds 2]

It stops by itself, and so do its attackers, also when it is killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.condition_grammar import conditions
from bench.identify import ENVIRONMENT, free_port, wait_for
from bench.load import Client
from bench.measures import quantile
from bench.tenants import GIVE_UP_S, Target, honest, report, request
from svc.features.rules.checking import check_rules
from svc.features.rules.language.conditions import Condition, known
from svc.features.rules.language.cost import BUDGET, UNITS_A_MS
from svc.features.rules.language.evaluation import Evaluation, Values
from svc.features.rules.ruleset import Rule
from svc.identify.scoring.signals import CATALOGUE
from tests.support.process import PROGRAM

ORGANIZATIONS = 20
EVENTS = 300
"""Of each of the attackers."""
LISTS = {"blocked_visitors": 0, "trusted_visitors": 0}
_FULL = {"1h": 64, "24h": 64, "30d": 64}
_KINDS = {
    "visitor": ("events", "accounts", "addresses", "countries"),
    "account": ("events", "visitors", "addresses", "countries"),
    "address": ("events", "visitors", "accounts"),
}


def largest_event(letters: str) -> dict[str, Any]:
    """Variables of an event whose texts are as long as they may be, of these letters."""
    chance = random.Random(1)
    text = "".join(chance.choice(letters) for _ in range(1_024))
    plain = "".join(chance.choice("ab") for _ in range(300))
    velocity = {subject: dict.fromkeys(kinds, _FULL) for subject, kinds in _KINDS.items()}
    names = ("level", "action", "environment", "platform", "device_kind", "visitor_kind", "address.anonymity_network")
    return {
        **dict.fromkeys(names, plain[:64]),
        **dict.fromkeys(("account.id", "address.asn_name", "agent", "os"), text[:256]),
        **dict.fromkeys(("visitor.is_new", "visitor.identifiable", "account.verified"), True),
        **dict.fromkeys(("score", "visitor.confidence", "visitor.age_days", "account.age_days"), 40),
        "visitor.id": plain[:20],
        "sdk_platform": text[:64],
        "tag": text,
        "origin": plain,
        "address.ip": "2001:db8:85a3:8d3:1319:8a2e:370:7348",
        "address.country": "GB",
        "address.asn": "1",
        "signals": list(CATALOGUE),
        "groups": list(dict.fromkeys(signal.group for signal in CATALOGUE.values())),
        "velocity": velocity,
        **{f"velocity.{subject}.{kind}": _FULL for subject, kinds in _KINDS.items() for kind in kinds},
        "labels.visitor": ["fraud", "legitimate"],
        "labels.account": ["fraud", "legitimate"],
        "now": 1_767_603_901_250_000_000,
    }


LARGEST = {letters: largest_event(letters) for letters in ("ab", "a", "é")}


class Asked(NamedTuple):
    """How long a condition took, of the event of which it took longest."""

    text: str
    units: int
    us: float

    @property
    def ratio(self) -> float:
        """Of the time that its price stands for; 1 = the model is right to the point."""
        return self.us / (self.units * 1_000 / UNITS_A_MS)


def ask(text: str, times: int = 3) -> Asked:
    """Measure a condition; the shortest of some times counts, since the machine is others' as well."""
    condition, longest = known(text), 0.0
    for values in LARGEST.values():
        best = min(timed(condition, values) for _ in range(times))
        longest = max(longest, best)
    return Asked(text, condition.units, longest)


def timed(condition: Condition, values: dict[str, Any]) -> float:
    """Microseconds of one evaluation."""
    evaluation = Evaluation(Values(values.get), lambda _: True, 1 << 40)
    began = time.perf_counter()
    condition.ask(evaluation)
    return (time.perf_counter() - began) * 1e6


def greatest(asked: list[Asked]) -> list[Rule]:
    """The dearest ruleset that can be saved of these conditions: those that take most of the time of their price."""
    rules: list[Rule] = []
    for one in sorted(asked, key=lambda each: (each.units > UNITS_A_MS / 100) * each.ratio, reverse=True):
        rule = Rule(id=str(len(rules)), name=str(len(rules)), condition=one.text, action="review", mode="shadow")
        if check_rules([(None, each) for each in (*rules, rule)], (), LISTS) is None:
            rules.append(rule)
        if len(rules) == 100:
            break
    return rules


def time_of(rules: list[Rule], values: dict[str, Any]) -> float:
    """Milliseconds that a ruleset takes of an event."""
    ready = [known(rule.condition) for rule in rules]
    evaluation = Evaluation(Values(values.get), lambda _: True, BUDGET)
    began = time.perf_counter()
    for condition in ready:
        condition.ask(evaluation)
    return (time.perf_counter() - began) * 1e3


def model(options: argparse.Namespace) -> list[Rule]:
    texts = [text for text in conditions(options.seed, options.conditions) if known(text).units <= BUDGET]
    asked = [ask(text) for text in texts]
    ratios = sorted(one.ratio for one in asked)
    beyond = [one for one in asked if one.ratio > 1]
    shares = ", ".join(f"p{percent} {quantile(ratios, percent / 100):.2f}" for percent in (50, 90, 99))
    print(f"\n{len(asked)} conditions, time beside price: {shares}, greatest {ratios[-1]:.2f}")
    print(f"{len(beyond)} beyond 1, of these the longest:")
    for one in sorted(beyond, key=lambda each: each.us, reverse=True)[:5]:
        print(f"  {one.ratio:5.2f}  {one.us:7.1f} us  {one.units:5} units  {one.text[:100]}")
    rules = greatest(asked)
    for letters, values in LARGEST.items():
        times = sorted(time_of(rules, values) for _ in range(21))
        print(f"greatest ruleset, {len(rules)} rules, tag of {letters!r}: {times[0]:.2f} ms, median {times[10]:.2f}")
    return rules


ORDINARY = (
    'action == "sign_up" && (velocity.visitor.accounts["24h"] >= 3 || "incognito" in signals)',
    'action == "sign_up" && velocity.address.accounts["1h"] >= 10',
    'velocity.account.visitors["30d"] > 6 && velocity.account.countries["30d"] > 1',
    'action == "log_in" && "account_new_device" in signals && present("address.anonymity_network")',
    'action == "checkout" && account.age_days < 7 && (score >= 40 || "incognito" in signals)',
    'address.country in ["GB", "IE", "FR"] && tag.startsWith("order") && score > 20',
)


def events() -> None:
    print("\nordinary rules, microseconds an event (median of 2,000)")
    values = LARGEST["ab"]
    for count in (0, 2, 20, 60, 100):
        rules = [
            Rule(
                id=str(number),
                name=str(number),
                condition=f"{ORDINARY[number % 6]} && score > {number}",
                action="review",
            )
            for number in range(count)
        ]
        times = sorted(time_of(rules, values) for _ in range(2_000))
        units = sum(known(rule.condition).units for rule in rules)
        print(f"{count:4} rules  {times[1_000] * 1e3:7.1f} us  {units:6} units of {BUDGET}")


# The service


class Attacker(NamedTuple):
    """One organization."""

    id: str
    public: str
    management: str
    addresses: str
    """Id of its list of blocked addresses."""


def attacks(rules: list[Rule], attackers: list[Attacker]) -> dict[str, list[bytes]]:
    """Name -> a request of each attacker."""
    chance = random.Random(5)
    sent = [{"name": rule.name, "condition": rule.condition, "action": "review", "mode": "shadow"} for rule in rules]

    def management(of: Attacker, method: str, path: str, body: Any) -> bytes:
        path = f"/api/v1/management/organizations/{of.id}{path}"
        return request(method, path, of.management, json.dumps(body).encode(), chance)

    ordinary = [
        {"name": str(number), "condition": f"{ORDINARY[number % 6]} && score > {number}", "action": "review"}
        for number in range(100)
    ]
    entries = {"entries": [{"value": f"10.{number // 250}.{number % 250}.1"} for number in range(1_000)]}
    return {
        "previews": [management(of, "POST", "/rules/preview", {"rules": sent}) for of in attackers],
        "saves, conflict": [management(of, "PUT", "/rules", {"revision": 99, "rules": ordinary}) for of in attackers],
        "entries": [management(of, "POST", f"/lists/{of.addresses}/entries", entries) for of in attackers],
        "identify": [
            request("POST", "/api/v1/identify", of.public, report(chance, "ab" * 512), chance) for of in attackers
        ],
    }


def attack_forever() -> None:
    """Each connection asks again as soon as it is answered, and a second after a 429, until the parent is gone; counts
    on standard output.
    """
    os.nice(5)
    given = json.loads(sys.stdin.readline())
    requests = [text.encode() for text in given["requests"]]
    stopped: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    selector, outcomes, parent = selectors.DefaultSelector(), Counter[str](), os.getppid()
    began = time.perf_counter()

    def connect(sent: bytes) -> None:
        client = Client(given["port"], GIVE_UP_S)
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.send(sent)

    for sent in requests:
        connect(sent)
    waiting: deque[tuple[float, Client]] = deque()
    while not stopped and os.getppid() == parent:
        while waiting and waiting[0][0] <= time.perf_counter():
            _, client = waiting.popleft()
            client.send(client.request)
        for key, _ in selector.select(timeout=0.05):
            client = key.data
            try:
                status = client.receive()
                if status is not None:
                    outcomes[str(status)] += 1
                    if status == 429:
                        waiting.append((time.perf_counter() + 1, client))
                    else:
                        client.send(client.request)
            except OSError:
                outcomes["closed"] += 1
                selector.unregister(client.socket)
                client.socket.close()
                connect(client.request)
    seconds = time.perf_counter() - began
    print(json.dumps({status: count / seconds for status, count in outcomes.items()}), flush=True)


def service(rules: list[Rule], options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        port = free_port()

        def program(*arguments: str) -> Any:
            command = [*PROGRAM, *arguments, "--data", directory, "--json"]
            return json.loads(subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT).stdout)

        def issue(of: str, *more: str) -> str:
            return program("key", "issue", of, "--name", "bench", *more)["secret"]

        def organization(name: str) -> str:
            return program("org", "create", name, "--credit-usd", "100000", "--rate-limit", "0")["organization_id"]

        def addresses(of: str) -> str:
            lists = program("list", "list", of)["lists"]
            return next(each["id"] for each in lists if each["name"] == "blocked_addresses")

        page = ("--kind", "public", "--environment", "production", "--origin", "https://shop.example")
        good = organization("honest")
        target = Target(port, issue(good, *page), "", {})
        attackers = [
            Attacker(of, issue(of, *page), issue(of, "--kind", "management", "--role", "admin"), addresses(of))
            for of in (organization(f"attacker {number}") for number in range(ORGANIZATIONS))
        ]
        with (Path(directory) / "log").open("wb") as log:
            command = [*PROGRAM, "serve", "--data", directory, "--bind", f"127.0.0.1:{port}", "--workers", "2"]
            serving = subprocess.Popen(command, env=ENVIRONMENT, stderr=log)
        try:
            wait_for(port)
            prepare(port, attackers, rules)
            for row in table(target, attacks(rules, attackers), options):
                print(row, flush=True)
        finally:
            serving.terminate()
            serving.wait(20)


def prepare(port: int, attackers: list[Attacker], rules: list[Rule]) -> None:
    """Events of each attacker, and the ruleset in force in all of them."""
    client, chance = Client(port, 60), random.Random(3)
    sent = [{"name": rule.name, "condition": rule.condition, "action": "review", "mode": "shadow"} for rule in rules]
    for of in attackers:
        for _ in range(EVENTS):
            client.ask(request("POST", "/api/v1/identify", of.public, report(chance, "ab" * 512), chance))
        path = f"/api/v1/management/organizations/{of.id}/rules"
        body = json.dumps({"revision": 0, "rules": sent}).encode()
        status = client.ask(request("PUT", path, of.management, body, chance))
        assert status == 200, f"the greatest ruleset is refused with {status}"


def table(target: Target, asked: dict[str, list[bytes]], options: argparse.Namespace) -> Iterator[str]:
    yield f"\n{'':18}{'quiet p50':>10}{'p99':>8}{'beside':>10}{'p99':>8}{'p50 x':>8}{'p99 x':>8}  attackers a second"
    honest(target, 2)
    ratios: dict[str, list[tuple[float, float]]] = {}
    for _ in range(options.rounds):
        before = honest(target, options.seconds)
        for name, requests in asked.items():
            attacker = subprocess.Popen(
                [sys.executable, "-m", "bench.rules", "--attack"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert attacker.stdin is not None
            given = {"port": target.port, "requests": [each.decode() for each in requests]}
            attacker.stdin.write(json.dumps(given) + "\n")
            attacker.stdin.flush()
            time.sleep(2)
            during = honest(target, options.seconds)
            attacker.send_signal(signal.SIGTERM)
            rates = json.loads(attacker.communicate(timeout=30)[0])
            time.sleep(3)
            after = honest(target, options.seconds)
            p50, p99 = (before.p50_ms + after.p50_ms) / 2, (before.p99_ms + after.p99_ms) / 2
            ratios.setdefault(name, []).append((during.p50_ms / p50, during.p99_ms / p99))
            failed = {status: count for status, count in during.outcomes.items() if status != "200"}
            yield (
                f"{name:18}{p50:10.1f}{p99:8.1f}{during.p50_ms:10.1f}{during.p99_ms:8.1f}"
                f"{during.p50_ms / p50:8.2f}{during.p99_ms / p99:8.2f}  "
                + ", ".join(f"{rate:.0f} x {status}" for status, rate in sorted(rates.items()))
                + (f"; honest {failed}" if failed else "")
            )
            before = after
    yield f"\nmedians of {options.rounds} rounds; load of the machine {os.getloadavg()[0]:.1f}"
    for name, pairs in ratios.items():
        p50, p99 = (statistics.median(column) for column in zip(*pairs, strict=True))
        yield f"{name:18}{p50:8.2f}{p99:8.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=["model", "events", "service", []], help="all without any")
    parser.add_argument("--conditions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6, help="of each measurement of the service")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--attack", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        attack_forever()
        return
    parts = options.parts or ["model", "events", "service"]
    rules = model(options) if {"model", "service"} & set(parts) else []
    if "events" in parts:
        events()
    if "service" in parts:
        service(rules, options)


if __name__ == "__main__":
    main()
