"""The answers of matching to a stream, without a store: what `svc replay` answers, ten times as fast.

Reading of reports, networks, matching and the limits on what a visit may teach are the service's own; the index and the
histories are kept in memory. `bench.linkage.accuracy` replays one stream both ways and compares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from bench.linkage.judge import Answer
from bench.linkage.streams import Request, Stream, client_token
from svc.domain.history import ADDRESS_UPDATES, LOOKALIKES, VISITOR_UPDATES
from svc.domain.matching import Features, extract, match_visitor
from svc.domain.matching.features import hash64
from svc.domain.matching.recognition import likeliest_visitor
from svc.domain.model import Agent, Network, Report, RequestFacts
from svc.domain.network import read_network
from svc.domain.report import read_report
from svc.domain.useragent import read_agent
from svc.network_data.builtin import BuiltInRanges
from svc.network_data.lookup import NetworkData
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
            self._extracted[key] = extract(*self._read[report_id], facts, self._networks[request.ip])
        return self._extracted[key]


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
    organization = Organization()
    tokens: set[str] = set()
    updates: Counter[tuple[int, int | str]] = Counter()
    lookalikes: Counter[tuple[int, str]] = Counter()
    for request, visit in zip(stream.requests, stream.visits, strict=True):
        features = extraction.features(request)
        if with_tokens and request.storage_id:
            features = with_token(features, client_token(request.storage_id), seen=tokens)
        at_ms = round(visit.at_s * 1000)
        day = at_ms // DAY_MS
        flooding = lookalikes[day, request.ip] >= LOOKALIKES
        recognition = match_visitor(organization, organization.statistics, features, at_ms, flooding=flooding)
        if watch is not None and recognition.outcome not in _NOT_JUDGED:
            unproven = features.without_token() if recognition.token_conflict else features
            decision = likeliest_visitor(organization, organization.statistics, unproven, at_ms).decision
            prior = organization.statistics.return_rate(unproven)
            watch(UncalibratedDecision(decision.number, decision.kind, decision.raw, prior))
        if not features.identifiable:
            organization.last_number += 1
            yield Answer(organization.last_number)
            continue
        lookalikes[day, request.ip] += recognition.lookalike
        number = organization.apply(recognition)
        of_visitor, of_address = (day, number), (day, request.ip)
        if updates[of_visitor] < VISITOR_UPDATES and updates[of_address] < ADDRESS_UPDATES:
            updates[of_visitor] += 1
            updates[of_address] += 1
            organization.statistics.learn(recognition.statistics_update)
        yield Answer(number, recognition.confidence)


def with_token(features: Features, token: str, seen: set[str]) -> Features:
    """The same report with this client token, which is new where it was not `seen`, and then is."""
    is_new = token not in seen
    seen.add(token)
    return msgspec.structs.replace(features, token=hash64(token.encode()) & ~1 or 2, token_is_new=is_new)
