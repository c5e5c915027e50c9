"""The decision: given a report and the visitors that it might belong to, which one is it, and how sure is that?

What may live here: pure decisions over features, records, block counts and statistics. What to read, and what to
write afterwards, is the business of `recognition`.

A link decision is record linkage after Fellegi and Sunter (JASA 1969): for every candidate, the likelihood of the
differences between its record and the report if it is the same device, against the expected number of other devices
that would agree as much by chance. Bayes' rule over "this candidate", "a known visitor that was not read" and "a new
one" gives a posterior that sums to one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import eq
from typing import Final, Literal

import msgspec

from svc.identify.matching import blocks, parameters
from svc.identify.matching.changes import TABLE_OF_RELEASES, releases_between
from svc.identify.matching.features import Features
from svc.identify.matching.likelihood import (
    ALL_AGREE,
    BIT,
    CROWDED,
    FAR,
    HIDDEN,
    INDEPENDENT,
    LEADERS,
    NEAR,
    SURROUNDINGS,
    UNKNOWN,
    WIDE,
    Chance,
    calibrated,
    changed_first,
    compare,
    is_other_program,
    kind_of,
    other_version,
    row_of,
)
from svc.identify.matching.statistics import Statistics
from svc.identify.matching.tokens import DAY_S, STRANGERS
from svc.identify.matching.visitor import VARIES, Visitor
from svc.identify.model import Attribute

Linkage = Literal["token", "doubted_token", "exact", "match", "ambiguous", "doubtful", "no_candidate", "unidentifiable"]
"""Linked by token, by a token that something contradicts, by a report seen before, by likeness; not linked because
several fit, because the likeness is too weak, because nobody resembles it, because the report says too little."""

_AT_HOME: Final = (NEAR, CROWDED, UNKNOWN)
_CANVAS_BIT, _TIMEZONE_BIT = BIT[Attribute.CANVAS], BIT[Attribute.TIMEZONE]


class LinkDecision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The known visitor that a report most probably belongs to, and whether the report is linked to it."""

    number: int | None = None
    """The most probable known visitor, linked or not."""
    linked: bool = False
    confidence: int = 0
    outcome: Linkage = "no_candidate"
    probability: float = 0.0
    """That it is `number`."""
    probability_new: float = 1.0
    kind: int = 0
    raw: float = 0.0
    """What kind of link decision it is, and its probability before calibration (`calibrated`)."""
    distinct: bool = False
    """The report tells devices apart: by chance hardly any other device would agree with all of it."""
    hidden: float = 0.0
    """Devices that are expected to hide behind the likeliest visitor, beside its own (`Visitor.hidden`)."""
    near: bool = False
    """Some known visitor differs from it in two independent attributes at most."""


class _Candidate(msgspec.Struct, gc=False):
    number: int
    visitor: Visitor
    odds: float
    log_twins: float
    recency: float
    exact: bool
    agreement: int
    network_context: int
    pooled: float


def by_token(number: int, changed: int, *, exact: bool) -> LinkDecision:
    """Return the decision for a token that is believed. The confidence is 100 if the report is the same (`exact`), else
    99 less one for each changed attribute, at least 90 (decisions 3.5).
    """
    return LinkDecision(
        number=number,
        linked=True,
        confidence=100 if exact else max(90, 99 - changed),
        outcome="token",
        probability=1.0,
        probability_new=0.0,
    )


def by_doubted_token(number: int) -> LinkDecision:
    """Return the decision for a token that is believed although an attribute that hardly changes contradicts it."""
    probability = parameters.DOUBTED_PROBABILITY
    return LinkDecision(
        number=number,
        linked=True,
        confidence=parameters.DOUBTED_CONFIDENCE,
        outcome="doubted_token",
        probability=probability,
        probability_new=1.0 - probability,
    )


def proven_by_network(decision: LinkDecision) -> bool:
    """Return whether a link from the visitor's own network counts as proven: its probability is at least
    `parameters.PROVEN_PROBABILITY`, so that it is wrong once in ten thousand visits.
    """
    near = decision.kind % SURROUNDINGS == NEAR
    return decision.linked and near and decision.probability >= parameters.PROVEN_PROBABILITY


def rank(features: Features, candidates: Sequence[tuple[int, Visitor]]) -> list[tuple[int, Visitor]]:
    """Return the candidates to score in full: those of the report's class and collector that are about as likely as the
    likeliest one, which comes first; at most `parameters.RECORDS_SCORED`.
    """
    family, collector = features.family, features.collector
    comparable = [pair for pair in candidates if pair[1].family == family and pair[1].collector == collector]
    if len(comparable) < 2:
        return comparable
    values, exact, near = features.values, features.exact, features.near_network
    alike: dict[int, int] = {}
    for number, visitor in comparable:
        likeness = sum(map(eq, values, visitor.values))
        alike[number] = likeness + 3 * (exact in visitor.exact_hashes) + 2 * visitor.has_near_network(near)
    bar = max(alike.values()) - parameters.LIKENESS_WITHIN
    close = [pair for pair in comparable if alike[pair[0]] >= bar]
    close.sort(key=lambda pair: alike[pair[0]], reverse=True)
    return close[: parameters.RECORDS_SCORED]


class _Weighing:
    """The parts of a link decision that are the same for every candidate."""

    def __init__(self, features: Features, now_s: int, counts: Mapping[int, float], statistics: Statistics) -> None:
        self.features = features
        self.now_s = now_s
        self.statistics = statistics
        self.chance = Chance(features, counts, statistics)
        self.return_rate = statistics.return_rate(features)
        self.latest_recency = 1.0
        self.change_table = statistics.change_tables[features.mobile]
        devices = self.chance.devices
        unseen = min((devices + parameters.UNSEEN_DEVICES) / devices, parameters.UNSEEN_AT_MOST)
        self.log_prior = math.log(self.return_rate * unseen)
        self._count_others(max(counts.get(blocks.NETWORK, 1.0) - 1.0, 0.0))
        mobile = features.mobile
        self.clones = parameters.CLONES_MOBILE if mobile else parameters.CLONES_DESKTOP
        self.same_network = parameters.SAME_NETWORK_MOBILE if mobile else parameters.SAME_NETWORK_DESKTOP
        self.log_far = parameters.LOG_FAR_NETWORK_MOBILE if mobile else parameters.LOG_FAR_NETWORK_DESKTOP
        seen_here = counts.get(blocks.NETWORK, 0.0)
        self.log_far += parameters.LOG_FAR_UNVISITED if seen_here < 0.5 else parameters.LOG_FAR_SHARED[seen_here >= 2.0]

    def _count_others(self, others_here: float) -> None:
        """Set `others_here`: devices of the class on the report's network, beside the visitor's own."""
        self.others_here = others_here
        self.log_twin_same_network = math.log(
            (others_here + parameters.NETWORK_PRIOR) / (self.chance.devices + 2.0 * parameters.NETWORK_PRIOR)
        )

    def look_around(self, candidates: Sequence[tuple[int, Visitor]]) -> None:
        """Count the other devices on the report's network, without programs that bring an engine of their own. Judge
        an absence by the latest visit there: where nobody came lately, nobody is away for longer than usual.
        """
        near, features, now_s = self.features.near_network, self.features, self.now_s
        here = [visitor for _, visitor in candidates if visitor.has_near_network(near)]
        programs = sum(is_other_program(features, visitor, max(now_s - visitor.last_seen_s, 0)) for visitor in here)
        self._count_others(max(self.others_here - programs, 0.0))
        last_seen_s = max((visitor.last_seen_s for visitor in here), default=0)
        self.latest_recency = min(self.statistics.recency(max(self.now_s - last_seen_s, 0) / DAY_S), 1.0)

    def weigh(self, number: int, visitor: Visitor, *, exact: bool) -> _Candidate:
        """Return the candidate with its odds, on a scale that all candidates and "new" share."""
        features = self.features
        gap_s = max(self.now_s - visitor.last_seen_s, 0)
        gap_days = gap_s / DAY_S
        log_network, log_twin_network, clones, network_context = self._network(visitor, gap_days)
        releases = releases_between(features, visitor)
        same_version = exact or not releases
        if exact:
            recent = features.exact in visitor.exact_hashes and features.browser_version >= visitor.browser_version
            known = recent or visitor.has_near_network(features.near_network)
            likelihood, agreement = 0.0 if known else parameters.LOG_FORMER_REPORT, ALL_AGREE
            likelihood += max(-gap_days / parameters.EXACT_KEEPS_DAYS, parameters.LOG_EXACT_KEPT_LEAST)
        else:
            row = self.change_table[TABLE_OF_RELEASES[releases]][row_of(gap_s // DAY_S)]
            likelihood, agreement = compare(features, visitor, row, LEADERS[not same_version])
            if gap_s < DAY_S:
                likelihood += parameters.LOG_CHANGED_AT_ONCE
            if not same_version:
                likelihood += other_version(features, visitor)
            if network_context == CROWDED and (same_version or features.browser_version < visitor.browser_version):
                likelihood += parameters.LOG_NEIGHBOR[gap_s < DAY_S]
        if not agreement & _CANVAS_BIT and features.forgetful and not features.token and visitor.tokens:
            likelihood += parameters.LOG_PRIVATE_CANVAS
        if network_context in (NEAR, CROWDED, WIDE) and not agreement & _TIMEZONE_BIT:
            likelihood += parameters.LOG_MOVED_AT_HOME
        log_twins = self.chance.log_twins(agreement, same_version=same_version, exact=exact)
        recency = self.statistics.recency(gap_days)
        if network_context == CROWDED:
            recency /= self.latest_recency
        likelihood += log_network + math.log(recency) + self._missing_token(visitor, gap_days)
        log_twins = math.log(math.exp(min(log_twins + log_twin_network, 30.0)) + clones)
        odds = math.exp(min(self.log_prior + likelihood - log_twins, 60.0))
        if is_other_program(features, visitor, gap_s) or visitor.is_other_device(features):
            odds = 0.0  # it counts as one of those that look alike
        return _Candidate(number, visitor, odds, log_twins, recency, exact, agreement, network_context, odds)

    def _network(self, visitor: Visitor, gap_days: float) -> tuple[float, float, float, int]:
        """Return (log likelihood of the address for this visitor, for a chance twin, expected clones, surroundings)."""
        near, wide = self.features.near_network, self.features.wide_network
        far_clones = self.clones * (1.0 - parameters.CLONES_NEAR)
        if not near:
            if visitor.was_hidden:
                return math.log(self.same_network[0]), self.log_twin_same_network, far_clones, UNKNOWN
            return parameters.LOG_HIDDEN_FIRST, 0.0, far_clones, HIDDEN
        if not visitor.was_seen:
            return 0.0, 0.0, far_clones, HIDDEN
        same_wide = False
        for index, (known_near, known_wide) in enumerate(visitor.networks):
            if known_near == near and visitor.addresses[index] in (0, VARIES, self.features.address):
                log_same = math.log(self.same_network[index > 0])
                network_context = CROWDED if self.others_here > parameters.CROWDED_DEVICES else NEAR
                return log_same, self.log_twin_same_network, self.clones * parameters.CLONES_NEAR, network_context
            same_wide = same_wide or known_wide == wide
        if same_wide:
            return 0.0, parameters.LOG_TWIN_SAME_WIDE_NETWORK, far_clones, WIDE
        exponent, usual = parameters.LOG_OFTEN[visitor.keeps_tokens]
        log_far = self.log_far + exponent * math.log(min(visitor.visits, parameters.OFTEN_AT_MOST) / usual)
        if gap_days < 1.0:
            log_far += parameters.LOG_FAR_AT_ONCE
        return log_far, 0.0, far_clones, FAR

    def _missing_token(self, visitor: Visitor, gap_days: float) -> float:
        """Return the log of how usual it is for this visitor to come without its stored token."""
        features = self.features
        if not features.token:
            stranger = features.device and visitor.device and features.device != visitor.device
            return parameters.LOG_OTHER_LIVE_TOKEN if stranger else 0.0
        token = visitor.token(features.token)
        if token is not None and token.probation == STRANGERS:
            return parameters.LOG_STRANGERS_TOKEN
        if token is not None:
            # On probation: it proves nothing here.
            return 0.0
        if features.token_is_new:
            forgets = features.forgetful and gap_days > parameters.FORGETFUL_DAYS
            usual = parameters.FORGETFUL_COMES_WITHOUT_TOKEN if forgets else parameters.COMES_WITHOUT_TOKEN
            return math.log((visitor.visits_without_token + 2.0 * usual) / (visitor.visits + 1.0) / usual)
        if visitor.keeps_tokens:
            return parameters.LOG_OTHER_LIVE_TOKEN
        return 0.0


def decide(
    features: Features,
    now_ms: int,
    counts: Mapping[int, float],
    candidates: Sequence[tuple[int, Visitor]],
    exact_numbers: Sequence[int],
    statistics: Statistics,
) -> LinkDecision:
    """Decide which candidate the report belongs to, from device and network context alone, without the token. `counts`:
    devices by kind of block; `candidates`: the visitors that were read; `exact_numbers`: those that sent this very
    report before.
    """
    weighing = _Weighing(features, now_ms // 1000, counts, statistics)
    distinct = weighing.chance.distinct()
    ranked = rank(features, candidates)
    if not ranked:
        return LinkDecision(distinct=distinct)
    if weighing.others_here > parameters.CROWDED_DEVICES:
        weighing.look_around(candidates)
    weighed = [
        weighing.weigh(number, visitor, exact=number in exact_numbers or features.exact in visitor.exact_hashes)
        for number, visitor in ranked
    ]
    _rule_out_equals_elsewhere(features, weighed)
    rate = weighing.return_rate
    likeliest = max(weighed, key=lambda candidate: candidate.odds)
    if not likeliest.odds:
        return LinkDecision(distinct=distinct)
    total = 1.0 - rate + rate * parameters.MISSED_BY_BLOCKS + sum(candidate.odds for candidate in weighed)
    # Known devices that agree as much but were not read, or that hide behind an id into which they were merged.
    equals = sum(
        candidate is not likeliest and candidate.log_twins <= likeliest.log_twins + 0.7 for candidate in weighed
    )
    unread_twins = max(0.0, math.exp(min(likeliest.log_twins, 20.0)) - equals)
    total += likeliest.odds / likeliest.recency * unread_twins
    _pool_split_records(weighed)
    best = max(weighed, key=lambda candidate: (candidate.pooled, candidate.visitor.last_seen_s, -candidate.number))
    raw = min(best.pooled / total, 1.0)
    kind = kind_of(best.network_context, exact=best.exact, token=bool(features.token))
    posterior = calibrated(kind, raw, rate, statistics.caution())
    # What the calibration takes from the best is shared by the others as before.
    doubt = (1.0 - posterior) / max(1.0 - raw, 1e-9)
    probability_new = min((1.0 - rate) / total * doubt, 1.0 - posterior)
    hidden = _hidden(features, best, now_ms // 1000, statistics)
    equals, living, gone = _equals(features, best, weighed, now_ms // 1000, statistics)
    probability = min(posterior / (1.0 + hidden), 1.0 / (1.0 + equals))
    # Until something returned, a new token costs no more than none, and who was parted is no equal (decisions 18.4).
    sure = min(posterior, 1.0 / (1.0 + living)) if hidden < parameters.HIDDEN_DEVICE else probability
    bar = _link_probability(features, best, counts, hidden, gone, statistics)
    outcome: Linkage
    if linked := sure >= bar:
        outcome = "exact" if best.exact else "match"
        sole = best.exact and counts.get(blocks.EXACT, 0.0) < parameters.SOLE_DEVICE
        sole = sole and probability >= parameters.SOLE_PROBABILITY
        confidence = 100 if sole else min(99, max(85, int(100 * reported_probability(kind, probability))))
    else:
        outcome = "ambiguous" if probability_new < 1.0 - bar else "doubtful"
        confidence = 0
    return LinkDecision(
        number=best.number,
        linked=linked,
        confidence=confidence,
        outcome=outcome,
        probability=probability,
        probability_new=probability_new,
        kind=kind,
        raw=raw,
        distinct=distinct,
        hidden=hidden,
        near=any((~candidate.agreement & INDEPENDENT).bit_count() <= 2 for candidate in weighed),
    )


def _rule_out_equals_elsewhere(features: Features, weighed: Sequence[_Candidate]) -> None:
    """Rule out a device from elsewhere that sent this very report where an equal one lives that was not updated yet:
    its own update makes it report what the other one reports already (ADR 250).
    """
    residents = [
        each.visitor
        for each in weighed
        if each.odds and each.network_context in (NEAR, CROWDED) and each.visitor.visits >= parameters.RESIDENT_VISITS
    ]
    for candidate in weighed:
        is_claimed = candidate.visitor.token(features.token) is not None
        if not candidate.exact or is_claimed or candidate.network_context in _AT_HOME:
            continue
        if any(changed_first(candidate.visitor, resident, features) for resident in residents):
            candidate.odds = candidate.pooled = 0.0  # it counts as one of those that look alike


def _hidden(features: Features, best: _Candidate, now_s: int, statistics: Statistics) -> float:
    """Return how many further devices are expected behind the likeliest visitor. A neighbor has an address of its own:
    a token that comes from another one than the visitor's is no sign of cleared storage.
    """
    if not features.token_is_new:
        return 0.0
    at_home = best.network_context in _AT_HOME
    return best.visitor.hidden(now_s, statistics.share_apart(features) if at_home else 1.0)


def _equals(
    features: Features, best: _Candidate, weighed: Sequence[_Candidate], now_s: int, statistics: Statistics
) -> tuple[float, float, int]:
    """Return how many other devices that send the likeliest visitor's very report from here are expected, as each may
    be the one that lost its token; how many of them the decision counts; and how many visitors it does not count: they
    came with a token that never came back, or fell silent when the next one appeared, as a browser does that clears its
    storage. Such a one counts by the share of such tokens that turned out to be another device's here.
    """
    if not best.exact or not features.token_is_new:
        return 0.0, 0.0, 0
    others = [
        other.visitor
        for other in weighed
        if other is not best and other.exact and other.network_context == best.network_context
    ]
    if not others:
        return 0.0, 0.0, 0
    mine, apart = best.visitor, statistics.share_apart(features)
    equals = sum(1.0 if other.keeps_tokens and other.coexists(mine) else apart for other in others)
    if best.network_context not in _AT_HOME or apart >= parameters.HIDDEN_DEVICE:
        return equals, equals, 0
    gone = sum(
        not other.keeps_tokens or other.is_past_of(mine, now_s) or mine.is_past_of(other, now_s) for other in others
    )
    return equals, equals - apart * gone, gone


def _link_probability(
    features: Features,
    best: _Candidate,
    counts: Mapping[int, float],
    hidden: float,
    gone: int,
    statistics: Statistics,
) -> float:
    """Return the probability from which on it is linked. `gone`: devices in the counts that are its own past."""
    devices = max(counts.get(kind, 0.0) for kind in (blocks.EXACT, blocks.EVERYTHING)) - gone
    alike = devices >= parameters.SOLE_DEVICE
    alike = alike or hidden >= parameters.HIDDEN_DEVICE
    at_home = best.network_context in _AT_HOME
    if features.token:
        nearby = at_home or best.network_context == WIDE
        if nearby and not alike:
            return statistics.link_nearby(features) if not best.exact else parameters.LINK_WITH_TOKEN_NEARBY
        # Equal devices elsewhere say nothing of who cleared the storage here (decisions 18.4).
        alone = best.network_context == NEAR and counts.get(blocks.NETWORK, 0.0) - gone < parameters.SOLE_DEVICE
        if alone and features.token_is_new and hidden < parameters.HIDDEN_DEVICE:
            return parameters.LINK_AT_HOME
        return parameters.LINK_WITH_TOKEN[alike]
    if best.visitor.keeps_tokens:
        return parameters.LINK_PRIVATE[alike]
    if best.network_context == CROWDED:
        return parameters.LINK_CROWDED
    return parameters.LINK_AT_HOME if at_home else parameters.LINK_ELSEWHERE


def reported_probability(kind: int, probability: float) -> float:
    """Return the probability to report: for a network that the visitor did not use before, it is lowered so that it
    holds in every population. Calibration is right on average, but a population full of factory copies is worse than
    the average; users who rely on the number must find at least that share right.
    """
    if kind % SURROUNDINGS < WIDE:
        return probability
    return probability / (probability + (1.0 - probability) * math.exp(parameters.STATED_CAUTION))


def _pool_split_records(weighed: list[_Candidate]) -> None:
    """Add odds of a record that a doubtful split made, and of its parent, to each other: probably one device."""
    by_number = {candidate.number: candidate for candidate in weighed}
    for candidate in weighed:
        parent = by_number.get(candidate.visitor.parent)
        if parent is not None and candidate.visitor.parent_probability:
            same = candidate.visitor.parent_probability / 255
            candidate.pooled += parent.odds * same
            parent.pooled += candidate.odds * same
