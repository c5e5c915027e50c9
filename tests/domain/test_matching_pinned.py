"""What matching answers to a year of visits in a small town, pinned: a change of a result is made on purpose.

The other tests say what the rules are for. This one holds the numbers behind them: a likelihood with a wrong sign, or a
limit that is off by one, still keeps to most rules, but not to every answer. Where a change of the numbers is meant,
the test shows the new values to put here, and `make accuracy` whether they are better.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from hashlib import blake2b
from typing import Any

import msgspec
import pytest

from svc.identify.matching import Features, extract
from svc.identify.matching.blocks import EXACT, TOKEN, block_keys
from svc.identify.matching.decision import decide
from svc.identify.matching.statistics import StatisticsRows
from svc.identify.model import Agent, Attribute, Network, Report, RequestFacts
from tests.domain.matching_world import (
    CHROME,
    DAY_MS,
    DESKTOP_VALUES,
    PHONE,
    START_MS,
    Organization,
    Seen,
)

SAFARI = Agent(browser_family="safari", browser_version=1850, os_family="mac", os_release=1500)
FIREFOX = Agent(browser_family="firefox", browser_version=1280, os_family="linux", os_release=600)
BROWSERS = (CHROME, PHONE, SAFARI, FIREFOX)
OFTEN = (Attribute.CANVAS, Attribute.AUDIO, Attribute.WEBGL, Attribute.REST, Attribute.MISCELLANEOUS)
AT_TIMES = (Attribute.SCREEN, Attribute.PIXEL_RATIO, Attribute.TIMEZONE, Attribute.LANGUAGES, Attribute.FONTS)
MODELS = 9
"""Kinds of devices: people who have the same one differ in a few attributes at most."""
VISITS = 420


class Person:
    """A device, its browser and where it is."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.number = number
        self.chance = chance
        model = self.below(MODELS)
        self.values = {attribute: f"{value} of {model}" for attribute, value in DESKTOP_VALUES.items()}
        for attribute in OFTEN[: self.below(4)]:
            self.values[attribute] += f" with {number}"
        self.fonts = tuple(f"Font {model} {place}" for place in range(5))
        self.agent = BROWSERS[model % len(BROWSERS)]
        self.home = f"81.2.{self.below(5)}.{self.below(200)}"
        self.token = f"token of {number}" if self.below(3) else None
        self.collector = "plain"

    def below(self, limit: int) -> int:
        return int(self.chance.random() * limit)

    def lives_on(self) -> None:
        """What happens to a browser between two visits."""
        what = self.below(14)
        if what == 0:
            self.agent = msgspec.structs.replace(self.agent, browser_version=self.agent.browser_version + 100)
            self.values[OFTEN[self.below(len(OFTEN))]] += "+"
        elif what == 1:
            changed = AT_TIMES[self.below(len(AT_TIMES))]
            self.values[changed] = self.values.get(changed, "") + "'"
        elif what == 2:
            self.fonts = (*self.fonts[1:], f"Font of {self.number} {self.below(99)}")
            self.values[Attribute.FONTS] = ",".join(self.fonts)
        elif what == 3 and self.token is not None:
            self.token += "*"
        elif what == 4:
            self.values.pop(AT_TIMES[self.below(2)], None)
        elif what == 5:
            self.collector = "fingerprintjs" if self.collector == "plain" else "plain"
        elif what == 6:
            self.agent = msgspec.structs.replace(self.agent, os_release=self.agent.os_release + 100)

    def report(self) -> Features:
        token, is_new = self.token, False
        if token is not None and self.below(9) == 0:
            token, is_new = f"{token} {self.below(1000)}", True
        if self.below(60) == 0:
            token = f"token of {self.below(40)}"
        seen = Report(
            collectors=(self.collector,),
            attributes={attribute: f"{self.collector}:{value}" for attribute, value in self.values.items()},
            fonts=self.fonts,
            client_token=token,
            client_token_is_new=is_new,
        )
        away = self.below(5)
        ip = f"203.0.{self.below(3)}.{self.below(9)}" if away == 0 else self.home
        network = Network(state="enriched", vpn=away == 1)
        return extract(seen, self.agent, RequestFacts(ip=ip), network)


def visited(organization: Organization, *, seed: int = 20, persons: int = 70, visits: int = VISITS) -> list[Seen]:
    """What the organization answers to a year of visits."""
    chance = random.Random(seed)
    people = [Person(number, chance) for number in range(persons)]
    now_ms, answers = START_MS, []
    for _ in range(visits):
        person = people[int(chance.random() ** 2 * len(people))]
        person.lives_on()
        now_ms += int(chance.random() * 2 * 365 * DAY_MS / visits)
        answers.append(organization.visit(person.report(), now_ms))
    return answers


class Noted(Organization):
    """Keeps every link decision."""

    def __init__(self) -> None:
        super().__init__()
        self.decisions: list[Any] = []

    def visit(self, features: Features, now_ms: int = START_MS) -> Seen:
        read = {key[0]: self.block(key) for key in block_keys(features) if key[0] != TOKEN}
        numbers = dict.fromkeys(number for block in read.values() for number in block.numbers)
        candidates = [(number, visitor) for number in numbers if (visitor := self.visitor(number)) is not None]
        counts = {kind: block.count for kind, block in read.items()}
        exact = read[EXACT].numbers
        self.decisions.append(decide(features, now_ms, counts, candidates, exact, self.statistics))
        return super().visit(features, now_ms)


def digest(rows: object) -> str:
    return blake2b(msgspec.msgpack.encode(rows), digest_size=8).hexdigest()


def rounded(value: Any) -> Any:
    """Of figures nine digits, within which the arithmetic of machines agrees."""
    if isinstance(value, dict):
        return sorted((str(key), rounded(inner)) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return f"{value:.9g}" if isinstance(value, float) else value


def learned(rows: StatisticsRows) -> list[Any]:
    decode = partial(msgspec.msgpack.decode, strict=False)
    return [decode(rows.shared), *(decode(raw) for _, raw in sorted(rows.classes.items()))]


@pytest.mark.slow(0.2)
def test_a_year_of_visits_has_pinned_results() -> None:
    organization = Noted()
    answers = visited(organization)
    assert Counter(answer.outcome for answer in answers) == {
        "token": 133,
        "doubted_token": 1,
        "exact": 66,
        "match": 61,
        "ambiguous": 19,
        "doubtful": 113,
        "no_candidate": 27,
    }
    assert {
        "answers": digest([msgspec.structs.astuple(answer) for answer in answers]),
        "visitors": digest(sorted(organization.visitors.items())),
        "blocks": digest(sorted(organization.blocks.items())),
        "statistics": digest(rounded(learned(organization.statistics.rows()))),
        "decisions": digest(rounded([msgspec.structs.astuple(judged) for judged in organization.decisions])),
    } == {
        "answers": "2d5bd9d73e3dc506",
        "visitors": "7f63d72f0992779b",
        "blocks": "08a9fbe6f8d7f24e",
        "statistics": "80dc1324f8355591",
        "decisions": "1b07893ece50f85f",
    }
