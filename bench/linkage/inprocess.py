"""The answers of matching to a stream, without a store: what `svc replay` answers, ten times as fast.

Reading of reports, networks, matching and the limits on what a visit may teach are the service's own; the index and the
histories are kept in memory. `bench.linkage.accuracy` replays one stream both ways and compares.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from bench.linkage.judge import Answer
from bench.linkage.streams import ORIGIN, Request, Stream, client_token
from svc.identify.history.evidence import ADDRESS_UPDATES, LOOKALIKES, REPLAY_MEMORY_S, VISITOR_UPDATES
from svc.identify.matching import Features, Recognition, extract, match_visitor
from svc.identify.matching.features import hash64
from svc.identify.matching.recognition import likeliest_visitor
from svc.identify.model import Agent, Network, Report, RequestFacts
from svc.identify.network.facts import read_network
from svc.identify.network_data.lookup import BuiltInRanges, NetworkData
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from tests.domain.matching_world import DAY_MS, Organization

_NOT_JUDGED = ("token", "doubted_token", "unidentifiable")


class UncalibratedDecision(NamedTuple):
    """What matching made of a visit that no token proved, before calibration."""

    number: int | None
    """The likeliest visitor, linked or not."""
    kind: int
    raw: float
    prior: float


class Extraction:
    """Features of requests; what was read once of a report or an address is kept."""

    def __init__(self) -> None:
        self._ranges = NetworkData(BuiltInRanges(), {})
        self._read: dict[int, tuple[Report, Agent]] = {}
        self._networks: dict[str, Network] = {}
        self._extracted: dict[tuple[int, str], Features] = {}

    def features(self, request: Request) -> Features:
        """Without a token."""
        report_id = id(request.signals)  # shared between visits of equal reports, and alive as long as the stream
        key = report_id, request.ip
        if key not in self._extracted:
            facts = RequestFacts(ip=request.ip, user_agent=request.signals.get("userAgent") or "")
            if report_id not in self._read:
                report = read_report(request.signals, facts)
                self._read[report_id] = report, read_agent(facts, report)
            if request.ip not in self._networks:
                self._networks[request.ip] = read_network(request.ip, self._ranges)
            self._extracted[key] = features_of(*self._read[report_id], facts, self._networks[request.ip])
        return self._extracted[key]


def features_of(report: Report, agent: Agent, facts: RequestFacts, network: Network, origin: str = ORIGIN) -> Features:
    """What matching sees of a report that a page of this site sent."""
    return extract(report, agent, facts, network, origin=origin)


class Service:
    """Matching with the service's limits on what a visit may teach and its memory of nonces, over an index in memory.

    Addresses stand for themselves here; the service counts IPv6 ones by their /64.
    """

    def __init__(self) -> None:
        self.organization = Organization()
        self._updates: Counter[tuple[int, int | str]] = Counter()
        self._lookalikes: Counter[tuple[int, str]] = Counter()
        self._nonces: dict[str, int] = {}

    def recognize(self, features: Features, ip: str, at_ms: int, nonce: str | None = None) -> Recognition:
        """What a visit would be answered; changes nothing. A `nonce` that was sent before makes it a replayed one."""
        organization = self.organization
        flooding = self._lookalikes[at_ms // DAY_MS, ip] >= LOOKALIKES
        replayed = self._is_replayed(nonce, at_ms)
        return match_visitor(
            organization, organization.statistics, features, at_ms, flooding=flooding, replayed=replayed
        )

    def visit(self, features: Features, ip: str, at_ms: int, nonce: str | None = None) -> Answer:
        recognition = self.recognize(features, ip, at_ms, nonce)
        if nonce is not None and not self._is_replayed(nonce, at_ms):
            self._nonces[nonce] = at_ms // 1000
        organization, day = self.organization, at_ms // DAY_MS
        if not features.identifiable:
            organization.last_number += 1
            return Answer(organization.last_number)
        self._lookalikes[day, ip] += recognition.lookalike
        number = organization.apply(recognition)
        of_visitor, of_address = (day, number), (day, ip)
        if self._updates[of_visitor] < VISITOR_UPDATES and self._updates[of_address] < ADDRESS_UPDATES:
            self._updates[of_visitor] += 1
            self._updates[of_address] += 1
            organization.statistics.learn(recognition.statistics_update)
        return Answer(number, recognition.confidence)

    def copy(self) -> Service:
        """One that goes on from here by itself."""
        other = Service()
        other.organization = copy.copy(self.organization)
        other.organization.blocks = dict(self.organization.blocks)
        other.organization.visitors = dict(self.organization.visitors)
        other.organization.statistics = copy.deepcopy(self.organization.statistics)
        other._updates, other._lookalikes = Counter(self._updates), Counter(self._lookalikes)
        other._nonces = dict(self._nonces)
        return other

    def _is_replayed(self, nonce: str | None, at_ms: int) -> bool:
        sent_s = None if nonce is None else self._nonces.get(nonce)
        return sent_s is not None and abs(at_ms // 1000 - sent_s) < REPLAY_MEMORY_S


def answers(
    stream: Stream,
    *,
    with_tokens: bool,
    extraction: Extraction | None = None,
    watch: Callable[[UncalibratedDecision], None] | None = None,
) -> Iterator[Answer]:
    """`extraction`: one that read this stream before, to save its time. `watch` gets each link decision that was made
    without a proof by token.
    """
    extraction = extraction or Extraction()
    service = Service()
    tokens: set[str] = set()
    for request, visit in zip(stream.requests, stream.visits, strict=True):
        features = extraction.features(request)
        if with_tokens and request.storage_id:
            features = with_token(features, client_token(request.storage_id), seen=tokens)
        at_ms = round(visit.at_s * 1000)
        if watch is not None:
            _show(service, features, request.ip, at_ms, watch)
        yield service.visit(features, request.ip, at_ms)


def _show(
    service: Service, features: Features, ip: str, at_ms: int, watch: Callable[[UncalibratedDecision], None]
) -> None:
    organization = service.organization
    recognition = service.recognize(features, ip, at_ms)
    if recognition.outcome in _NOT_JUDGED:
        return
    unproven = features.without_token() if recognition.token_conflict else features
    decision = likeliest_visitor(organization, organization.statistics, unproven, at_ms).decision
    prior = organization.statistics.return_rate(unproven)
    watch(UncalibratedDecision(decision.number, decision.kind, decision.raw, prior))


def with_token(features: Features, token: str, seen: set[str]) -> Features:
    """The same report with this client token, which is new where it was not `seen`, and then is."""
    is_new = token not in seen
    seen.add(token)
    return msgspec.structs.replace(features, token=hash64(token.encode()) & ~1 or 2, token_is_new=is_new)
