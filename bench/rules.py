"""What conditions cost beside what the model says: those drawn from the grammar (`tests.support.condition_grammar`),
of the largest events that there can be. Printed is how much of the CPU that its price stands for each took, and what
the greatest ruleset that can be saved takes of an event. A search: what it finds beyond 1 is a fault of
`svc.features.rules.language.cost`. What rules add to an identification, `bench.stages --profile full` measures.

    python -m bench.rules [--conditions 20000] [--seed 1]
"""

from __future__ import annotations

import random
import time
from typing import Any, NamedTuple

from bench.measures import quantile
from bench.usage import read_options
from svc.features.rules.checking import check_rules
from svc.features.rules.language.conditions import Condition, known
from svc.features.rules.language.cost import BUDGET, UNITS_A_MS
from svc.features.rules.language.evaluation import Evaluation, Values
from svc.features.rules.ruleset import Rule
from svc.identify.scoring.signals import CATALOG
from tests.support.condition_grammar import conditions

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
        "signals": list(CATALOG),
        "groups": list(dict.fromkeys(signal.group for signal in CATALOG.values())),
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


def model(seed: int, count: int) -> None:
    texts = [text for text in conditions(seed, count) if known(text).units <= BUDGET]
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


def main() -> None:
    given = read_options(__doc__)
    model(given.seed, given.conditions)


if __name__ == "__main__":
    main()
