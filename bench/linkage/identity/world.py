"""What the rows of the measurement share: reports, visits, the service that answers them, and the counts of a row."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from bench.browsers.measure import Capture, as_the_sdk_sends, read_captures
from bench.browsers.pack import read_rows
from bench.linkage.inprocess import Service, features_of
from bench.linkage.judge import Answer
from bench.linkage.streams import ORIGIN, read_stream
from svc.identify.matching import Features
from svc.identify.matching.features import hash64
from svc.identify.model import Agent, Network, Report, RequestFacts
from svc.identify.network.facts import read_network
from svc.identify.network_data.lookup import BuiltInRanges, NetworkData
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from svc.identify.useragent.agent import read_hints

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
START_MS = 1_767_225_600_000
"""The first of January 2026, 0:00 UTC."""
ACCEPTED = 90
"""Least confidence that a shop takes for proof that it is this visitor."""
CAPTURES = Path("tests/captures/real-browsers.jsonl.gz")
UPGRADES = Path("tests/captures/sdk-upgrades.jsonl.gz")

Part = Literal["", "fitted on", "held out"]
"""Of which reports a figure is; empty = all that the row has."""


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """What a browser sends, but for what belongs to the visit. Never change the fields' contents: they are shared."""

    name: str
    signals: dict[str, Any]
    headers: dict[str, str]
    held_out: bool = False
    """Nothing was fitted on it."""
    peer: bytes = b""
    """Hash of what a library that hashes everything it collects makes its id of."""

    @property
    def part(self) -> Part:
        return "held out" if self.held_out else "fitted on"


class Reading:
    """Features of reports; what was read once is kept."""

    def __init__(self) -> None:
        self._ranges = NetworkData(BuiltInRanges(), {})
        self._read: dict[tuple[int, bool], tuple[Report, Agent, RequestFacts]] = {}
        self._networks: dict[str, Network] = {}
        self._features: dict[tuple[int, str, str, bool], Features] = {}
        self._alive: list[Sent] = []

    def features(self, sent: Sent, ip: str, origin: str = ORIGIN, *, private: bool = False) -> Features:
        """Without a token. `private`: the collector saw that the window was a private one."""
        key = id(sent), ip, origin, private
        known = self._features.get(key)
        if known is None:
            self._alive.append(sent)
            report, agent, facts = self._report(sent, private=private)
            facts = msgspec.structs.replace(facts, ip=ip)
            if ip not in self._networks:
                self._networks[ip] = read_network(ip, self._ranges)
            known = self._features[key] = features_of(report, agent, facts, self._networks[ip], origin)
        return known

    def _report(self, sent: Sent, *, private: bool) -> tuple[Report, Agent, RequestFacts]:
        key = id(sent), private
        if key not in self._read:
            facts = RequestFacts(
                ip="",
                user_agent=sent.headers.get("user-agent", ""),
                accept_language=sent.headers.get("accept-language", ""),
                hints=read_hints(sent.headers),
            )
            report = read_report({**sent.signals, "incognito": True} if private else sent.signals, facts)
            self._read[key] = report, read_agent(facts, report), facts
        return self._read[key]


class Visit(NamedTuple):
    browser: str
    """The truth: who visits."""
    sent: Sent
    ip: str
    at_ms: int
    token: str | None = None
    token_is_new: bool = False
    origin: str = ORIGIN
    private: bool = False
    key: bytes | None = None
    """The public key that verifiably signed the report."""
    nonce: str | None = None
    """`None` = one of its own, which nobody sent before."""


class Recognizer(Protocol):
    """Who answers visits with ids."""

    def visit(self, visit: Visit) -> Answer: ...

    def ask(self, visit: Visit) -> Answer:
        """What the visit would be answered. It does not take place. A new visitor is `None`."""
        ...

    def copy(self) -> Recognizer:
        """One that goes on from here by itself."""
        ...


Recognizers = Callable[[], Recognizer]


class OurService:
    """The service's matching."""

    def __init__(self, reading: Reading, service: Service | None = None) -> None:
        self._reading = reading
        self._service = service or Service()

    def visit(self, visit: Visit) -> Answer:
        return self._service.visit(self._features(visit), visit.ip, visit.at_ms, visit.nonce)

    def ask(self, visit: Visit) -> Answer:
        recognition = self._service.recognize(self._features(visit), visit.ip, visit.at_ms, visit.nonce)
        return Answer(recognition.number, recognition.confidence)

    def copy(self) -> OurService:
        return OurService(self._reading, self._service.copy())

    def _features(self, visit: Visit) -> Features:
        features = self._reading.features(visit.sent, visit.ip, visit.origin, private=visit.private)
        more: dict[str, Any] = {}
        if visit.token is not None:
            more = {"token": token_hash(visit.token), "token_is_new": visit.token_is_new}
        if visit.key is not None and "key" in Features.__struct_fields__:
            more["key"] = hash64(visit.key)
        return msgspec.structs.replace(features, **more) if more else features


class Hashes:
    """A library whose id is a hash of all that it collected, as FingerprintJS's and ThumbmarkJS's are. Everybody who
    sends an equal report is one visitor, and it is always sure.
    """

    def __init__(self, known: Iterable[bytes] = ()) -> None:
        self._known = set(known)

    def visit(self, visit: Visit) -> Answer:
        known = visit.sent.peer in self._known
        self._known.add(visit.sent.peer)
        return Answer(visit.sent.peer, 100 if known else 0)

    def ask(self, visit: Visit) -> Answer:
        known = visit.sent.peer in self._known
        return Answer(visit.sent.peer if known else None, 100 if known else 0)

    def copy(self) -> Hashes:
        return Hashes(self._known)


class World:
    """Somebody who answers, and the truth about those who visit."""

    def __init__(self, recognizer: Recognizer, ids: Mapping[str, Iterable[object]] | None = None) -> None:
        self._recognizer = recognizer
        self._ids: dict[str, set[object]] = defaultdict(set, {who: set(own) for who, own in (ids or {}).items()})
        self.confidences: Counter[tuple[int, bool]] = Counter()
        """(confidence, whether the browser had this id before) -> visits that were answered so; new ids left out."""

    def visit(self, visit: Visit) -> Answer:
        answer = self._counted(visit, self._recognizer.visit(visit))
        self._ids[visit.browser].add(answer.visitor)
        return answer

    def ask(self, visit: Visit) -> Answer:
        """What the visit would be answered. It does not take place. A new visitor is `None`."""
        return self._counted(visit, self._recognizer.ask(visit))

    def daily(self, visit: Visit, days: int) -> object:
        """Repeat the visit on each of `days` days, the first with a new token. Returns the last id."""
        number: object = None
        for day in range(days):
            at_ms, is_new = START_MS + day * DAY_MS, visit.token is not None and day == 0
            number = self.visit(visit._replace(at_ms=at_ms, token_is_new=is_new)).visitor
        return number

    def _counted(self, visit: Visit, answer: Answer) -> Answer:
        if answer.confidence:
            self.confidences[answer.confidence, answer.visitor in self._ids[visit.browser]] += 1
        return answer

    def copy(self) -> World:
        """One that goes on from here by itself, with its own count of confidences."""
        return World(self._recognizer.copy(), self._ids)


@cache
def token_hash(token: str) -> int:
    return hash64(token.encode()) & ~1 or 2


# ---- what a row counts


class Count(NamedTuple):
    hits: float = 0
    of: float = 0

    @property
    def share(self) -> float | None:
        return self.hits / self.of if self.of else None


class Aim(NamedTuple):
    sense: Literal["<=", ">="]
    share: float

    def met(self, share: float) -> bool:
        return share <= self.share if self.sense == "<=" else share >= self.share

    def __str__(self) -> str:
        sign = "≤" if self.sense == "<=" else "≥"
        return (
            f"{sign} {self.share:.3f}".removesuffix("0").replace("0.", ".", 1)
            if 0 < self.share < 1
            else (f"{sign} {self.share:.0f}")
        )


def at_most(share: float) -> Aim:
    return Aim("<=", share)


def at_least(share: float) -> Aim:
    return Aim(">=", share)


@dataclass(slots=True)
class Counts:
    """What one run of a row found."""

    shares: dict[tuple[str, Part], Count] = field(default_factory=dict[tuple[str, Part], Count])
    """(case, part) -> how often it was so."""
    confidences: Counter[tuple[int, bool]] = field(default_factory=Counter[tuple[int, bool]])

    def add(self, case: str, hit: float, of: float = 1, part: Part = "") -> None:
        before = self.shares.get((case, part), Count())
        self.shares[case, part] = Count(before.hits + hit, before.of + of)

    def whole(self, case: str) -> Count:
        """The case on all reports, fitted on or held out."""
        counts = [count for (name, _), count in self.shares.items() if name == case]
        return Count(sum(count.hits for count in counts), sum(count.of for count in counts))

    def add_confidences(self, world: World) -> None:
        self.confidences.update(world.confidences)


# ---- reports and addresses


def stream_reports(folder: Path) -> list[Sent]:
    """Each different report of a stream once, in the order of its file; held out as the device that first sent it."""
    name = folder.name
    held_out: dict[str, bool] = {}
    for visit in read_stream(folder).visits:
        held_out.setdefault(visit.report, visit.held_out)
    with gzip.open(folder / "fps.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [plain(f"{name}/{row['fp']}", row["signals"], held_out=held_out.get(str(row["fp"]), False)) for row in rows]


def plain(name: str, signals: dict[str, Any], *, held_out: bool) -> Sent:
    """A report in the shape of the streams."""
    return Sent(name, signals, {"user-agent": signals.get("userAgent") or ""}, held_out, _digest(signals))


def captured(path: Path = CAPTURES, kinds: Iterable[str] = ("normal",)) -> list[Capture]:
    """Visits of real browsers (`tests/captures/README.md`)."""
    kept = set(kinds)
    return [capture for capture in read_captures(path) if capture.kind in kept]


def of_capture(capture: Capture, changed: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> Sent:
    """What the web SDK sends from this browser, and what FingerprintJS makes its id of. `changed` gives the captured
    report as the browser would send it after a change of its surroundings.
    """
    report = changed(capture.report) if changed else capture.report
    name = f"{capture.tag}/{capture.visit}"
    return Sent(name, as_the_sdk_sends(report), capture.headers, peer=_digest(report["components"]))


@cache
def upgrades(path: Path = UPGRADES) -> dict[str, dict[int, Sent]]:
    """Device -> major version -> what the web SDK sent from that version there."""
    found: dict[str, dict[int, Sent]] = defaultdict(dict)
    for row in read_rows(path):
        name = f"{row['device']}/{row['major']}"
        sent = Sent(name, row["signals"], row["headers"], peer=_digest([row["signals"]["components"], row["major"]]))
        found[row["device"]][row["major"]] = sent
    return dict(found)


def _digest(value: Any) -> bytes:
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()


def different(reading: Reading, sents: Iterable[Sent]) -> list[Sent]:
    """Of equal reports the first; those that say too little to identify anybody left out."""
    found: dict[int, Sent] = {}
    for sent in sents:
        features = reading.features(sent, "81.2.69.142")
        if features.identifiable:
            found.setdefault(features.exact, sent)
    return list(found.values())


def address(random: Random) -> str:
    """One of an access network, where nobody was before."""
    first = random.choice((71, 81, 82, 86, 91, 93))
    return f"{first}.{random.randrange(1, 250)}.{random.randrange(1, 250)}.{random.randrange(1, 250)}"


def token(random: Random) -> str:
    return f"{random.getrandbits(128):032x}"


def warmed(make: Recognizers, sents: Sequence[Sent], random: Random, visits: int = 200) -> World:
    """A world in which so many strangers were within four weeks, each with one of these reports, from an address and
    with a token of its own; every second one came twice.
    """
    world = World(make())
    planned: list[Visit] = []
    for place in range(visits * 2 // 3):
        stranger = Visit(f"stranger {place}", random.choice(sents), address(random), 0, token(random))
        times = sorted(random.uniform(-28, 0) for _ in range(1 + place % 2))
        planned += [
            stranger._replace(at_ms=START_MS + round(time * DAY_MS), token_is_new=visit == 0)
            for visit, time in enumerate(times)
        ]
    for visit in sorted(planned, key=lambda visit: visit.at_ms):
        world.visit(visit)
    world.confidences.clear()
    return world


def begun(row: str, seed: int, make: Recognizers | None) -> tuple[Reading, Recognizers, Counts, Random]:
    """What a run of a row has at its beginning; the service answers, unless another is made."""
    reading = Reading()
    return reading, make or partial(OurService, reading), Counts(), random_of(row, seed)


def random_of(row: str, seed: int) -> Random:
    return Random(blake2b(f"{row} {seed}".encode(), digest_size=8).digest())
