"""What a copied client token is worth to a thief, and what the defense costs the token's owner.

A victim visits three times from home. Then another real device of the same browser and operating system presents the
victim's token: from another network or from the victim's own, with its whole report, without the attributes that could
contradict the token, or through another collector. Taken over = the answer is the victim's id. In the other half the
visitor is the owner, on a network where it was never seen, with the report that the same browser sent later in the
stream. Each attack meets two organizations: a young one that knows only the victim, and one that has seen the first
visits of the stream. Attacks change nothing there: each finds the organization as the stream left it.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench.linkage.streams import Stream, client_token, read_stream
from bench.linkage.tables import Table
from svc.identify.matching import Features, extract, match_visitor
from svc.identify.model import RequestFacts
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from tests.domain.matching_world import DAY_MS, START_MS, Organization

STREAMS = ("small", "small-hard")
SEEDS = 2
VICTIMS = 250
"""Drawn for each seed and stream."""
WARM_UP_VISITS = 12_000
"""Visits of the stream that the grown organization has seen."""
TOKEN = "stolen-token-0123456789"
HOME, SAME_NETWORK, ELSEWHERE = "91.10.20.30", "91.10.20.77", "203.10.113.9"
HIDDEN_BY_THIEVES = ("webgl", "hardwareConcurrency", "deviceMemory", "platform", "maxTouchPoints")
"""What a thief leaves out of its report, so that it cannot contradict the token."""

Signals = dict[str, Any]


class Kind(NamedTuple):
    """Devices that a user agent does not tell apart."""

    browser: str
    system: str
    mobile: bool


@dataclass(slots=True)
class Count:
    attempts: int = 0
    hits: int = 0

    def add(self, hit: bool) -> None:
        self.attempts += 1
        self.hits += hit

    @property
    def share(self) -> float | None:
        return self.hits / self.attempts if self.attempts else None


Results = dict[tuple[str, str, bool], Count]
"""(scenario, organization, whether the owner's device is held out) -> how often the visit got the id of the token's
owner.
"""


class Browser(NamedTuple):
    """One browser of a stream: its different reports, oldest first."""

    device: str
    kind: Kind
    reports: list[Signals]
    held_out: bool


@cache
def _kind_of(user_agent: str) -> Kind:
    facts = RequestFacts(ip=HOME, user_agent=user_agent)
    agent = read_agent(facts, read_report({"userAgent": user_agent}, facts))
    return Kind(agent.browser_family, agent.os_family, agent.mobile)


def features_of(signals: Signals, ip: str, token: str | None = None, *, is_new: bool = False) -> Features:
    """What matching sees of this report from this address."""
    if token is not None:
        signals = {**signals, "client_token": token, "client_token_is_new": is_new}
    facts = RequestFacts(ip=ip, user_agent=signals.get("userAgent"))
    report = read_report(signals, facts)
    return extract(report, read_agent(facts, report), facts)


def without_hard_attributes(signals: Signals) -> Signals:
    return {name: value for name, value in signals.items() if name not in HIDDEN_BY_THIEVES}


def through_fingerprintjs(signals: Signals) -> Signals:
    """The same device as FingerprintJS reports it."""
    screen = signals.get("screen") or {}
    graphics = signals.get("webgl") or {}
    values = {
        "languages": [[language] for language in signals.get("languages") or ()],
        "timezone": signals.get("timezone"),
        "screenResolution": [screen.get("width"), screen.get("height")],
        "colorDepth": screen.get("colorDepth"),
        "hardwareConcurrency": signals.get("hardwareConcurrency"),
        "deviceMemory": signals.get("deviceMemory"),
        "platform": signals.get("platform"),
        "vendor": signals.get("vendor"),
        "touchSupport": {"maxTouchPoints": signals.get("maxTouchPoints"), "touchEvent": False, "touchStart": False},
        "fonts": signals.get("fonts"),
        "audio": signals.get("audio"),
        "canvas": {"winding": True, "geometry": signals.get("canvas"), "text": signals.get("canvas")},
        "webGlBasics": {"vendorUnmasked": graphics.get("vendor"), "rendererUnmasked": graphics.get("renderer")},
    }
    return {
        "userAgent": signals.get("userAgent"),
        "components": {name: {"value": value, "duration": 1} for name, value in values.items() if value is not None},
    }


def browsers_of(stream: Stream) -> list[Browser]:
    reports: dict[str, dict[str, Signals]] = defaultdict(dict)
    held_out: dict[str, bool] = {}
    for request, visit in zip(stream.requests, stream.visits, strict=True):
        reports[visit.browser].setdefault(visit.report, request.signals)
        held_out[visit.browser] = visit.held_out
    found: list[Browser] = []
    for browser, different in reports.items():
        signals = list(different.values())
        found.append(Browser(browser, _kind_of(signals[0].get("userAgent") or ""), signals, held_out[browser]))
    return found


def grown(stream: Stream, visits: int = WARM_UP_VISITS) -> tuple[Organization, int]:
    """The organization after so many visits of the stream, and the time of the last one."""
    organization = Organization()
    seen: set[str] = set()
    at_ms = START_MS
    for request, visit in zip(stream.requests[:visits], stream.visits[:visits], strict=True):
        token = client_token(request.storage_id) if request.storage_id else None
        at_ms = round(visit.at_s * 1000)
        organization.visit(features_of(request.signals, request.ip, token, is_new=token not in seen), at_ms)
        if token:
            seen.add(token)
    return organization, at_ms


class Victim:
    """Somebody whose token is copied, in a copy of an organization that nobody else changes."""

    def __init__(self, organization: Organization, now_ms: int, report: Signals) -> None:
        self.organization = copy.copy(organization)
        self.organization.blocks = dict(organization.blocks)
        self.organization.visitors = dict(organization.visitors)
        self._at_ms = now_ms + DAY_MS
        for day in range(3):
            features = features_of(report, HOME, TOKEN, is_new=day == 0)
            recognition = match_visitor(
                self.organization, self.organization.statistics, features, self._at_ms + day * DAY_MS
            )
            self.number = self.organization.apply(recognition)
        self._at_ms += 3 * DAY_MS

    def is_answer_to(self, features: Features) -> bool:
        """Whether a visit with these features would get this visitor's id. The visit changes nothing."""
        statistics = self.organization.statistics
        return match_visitor(self.organization, statistics, features, self._at_ms).number == self.number

    def visit(self, features: Features) -> bool:
        """As `is_answer_to`, a day later; the visit counts."""
        self._at_ms += DAY_MS
        recognition = match_visitor(self.organization, self.organization.statistics, features, self._at_ms)
        return self.organization.apply(recognition) == self.number


Attack = Callable[[Victim, Signals], bool]


def _present(report: Callable[[Signals], Signals], ip: str) -> Attack:
    return lambda victim, thief: victim.is_answer_to(features_of(report(thief), ip, TOKEN))


def _same(signals: Signals) -> Signals:
    return signals


def _settle(victim: Victim, thief: Signals) -> bool:
    """Four visits with the token from elsewhere, then one without it."""
    for _ in range(4):
        victim.visit(features_of(thief, ELSEWHERE, TOKEN))
    return victim.visit(features_of(thief, ELSEWHERE))


THEFTS: dict[str, Attack] = {
    "whole report, other network": _present(_same, ELSEWHERE),
    "hard attributes left out, other network": _present(without_hard_attributes, ELSEWHERE),
    "other collector, other network": _present(through_fingerprintjs, ELSEWHERE),
    "whole report, the victim's network": _present(_same, SAME_NETWORK),
    "hard attributes left out, the victim's network": _present(without_hard_attributes, SAME_NETWORK),
    "without a token, after four visits with it": _settle,
}


def _copied_report_then_own_token(victim: Victim, report: Signals) -> bool:
    """A copy of the victim's report from its network brings a token of its own; the token then comes from elsewhere."""
    own = "token-of-the-neighbor-0123456789"
    victim.visit(features_of(report, SAME_NETWORK, own, is_new=True))
    return victim.visit(features_of(report, ELSEWHERE, own))


def measure(folder: Path, seeds: int = SEEDS, victims: int = VICTIMS) -> dict[str, Results]:
    """For thieves and for owners."""
    stream = read_stream(folder)
    browsers = browsers_of(stream)
    of_kind: dict[Kind, list[Browser]] = defaultdict(list)
    for browser in browsers:
        of_kind[browser.kind].append(browser)
    organizations = {"young": (Organization(), START_MS), "grown": grown(stream)}
    thefts: Results = defaultdict(Count)
    owners: Results = defaultdict(Count)
    for seed in range(seeds):
        random = Random(f"{folder.name} {seed}")
        for victim in random.sample(browsers, min(victims, len(browsers))):
            others = [other for other in of_kind[victim.kind] if other.device != victim.device]
            thief = random.choice(others) if others else None
            for name, (organization, now_ms) in organizations.items():
                if thief is not None:
                    for scenario, attack in THEFTS.items():
                        robbed = Victim(organization, now_ms, victim.reports[0])
                        thefts[scenario, name, victim.held_out].add(attack(robbed, thief.reports[0]))
                neighbor = Victim(organization, now_ms, victim.reports[0])
                thefts["own token bound by a copied report, then elsewhere", name, victim.held_out].add(
                    _copied_report_then_own_token(neighbor, victim.reports[0])
                )
                for scenario, hit in _travel(Victim(organization, now_ms, victim.reports[0]), victim.reports):
                    owners[scenario, name, victim.held_out].add(hit)
    return {"thief": thefts, "owner": owners}


def _travel(victim: Victim, reports: Sequence[Signals]) -> Iterator[tuple[str, bool]]:
    """The owner elsewhere: as it was, and with the reports that it sent later."""
    first = reports[0]
    yield "unchanged", victim.is_answer_to(features_of(first, ELSEWHERE, TOKEN))
    if len(reports) > 1:
        features = features_of(reports[1], ELSEWHERE, TOKEN)
        hit = victim.is_answer_to(features)
        yield "after one change of its report", hit
        for what, changed in _hard_changes(first, reports[1]):
            if changed:
                yield f"of these, {what} changed", hit


def _hard_changes(before: Signals, after: Signals) -> Iterator[tuple[str, bool]]:
    def renderer(signals: Signals) -> Any:
        return (signals.get("webgl") or {}).get("renderer")

    yield "the GPU", renderer(before) != renderer(after)
    names = ("hardwareConcurrency", "deviceMemory", "maxTouchPoints", "platform")
    yield "cores, memory or touch", any(before.get(name) != after.get(name) for name in names)
    hard = renderer(before) != renderer(after) or any(before.get(name) != after.get(name) for name in names)
    yield "nothing of the hardware", not hard


def theft_tables(measured: Iterable[tuple[str, dict[str, Results]]]) -> list[Table]:
    """A row for each stream and scenario; for each organization a column of the owners that the rules were fitted on,
    and one of those that were held out.
    """
    titles = {"thief": "A copied token: taken over", "owner": "The token's owner elsewhere: recognized"}
    columns = [(organization, held_out) for organization in ("young", "grown") for held_out in (False, True)]
    found = list(measured)
    tables: list[Table] = []
    for who, title in titles.items():
        rows: list[tuple[str, ...]] = []
        for stream, results in found:
            for scenario in dict.fromkeys(scenario for scenario, _, _ in results[who]):
                counts = [results[who].get((scenario, *column), Count()) for column in columns]
                rows.append((stream, scenario, *map(_shown, counts)))
        parts = (f"{organization}, {'held out' if held_out else 'fitted on'}" for organization, held_out in columns)
        tables.append(Table(title, ("stream", "visit", *parts), rows, left=2))
    return tables


def _shown(count: Count) -> str:
    return "-" if count.share is None else f"{count.share:.3f} of {count.attempts}"
