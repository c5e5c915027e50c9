"""The part of an identification's transaction that remembers visitors, addresses, reports and origins
(`identify.history`).

Bounds, whatever the size of the store and however busy the visitor or the address: at most 5 rows are read (of a known
visitor its places; the address's in its period or the one before; the report's period and the one before) and 3 are
written. A report that was known, and places that are known are read and not written. The day of a visitor is in its
record, which matching has read. The origin's row is one more of each, in the first visit of a day of a visitor that
came back with a token; it is only written while its visitors differ. Of a new visitor whose very report was sent
before, one block and 16 visitors are read besides.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from svc.identify.history import evidence, newcomers, origins
from svc.identify.history.activity import AddressHistory, VisitorHistory
from svc.identify.identification import Assessment
from svc.identify.matching import Index, Recognition, Statistics, StatisticsUpdate
from svc.identify.matching.blocks import token_key
from svc.identify.matching.features import hash32
from svc.identify.model import Attribute, Observation
from svc.identify.tables import (
    BLOCKS,
    ORIGIN_HISTORY,
    REPORT_FINGERPRINTS,
    VISITOR_PLACES,
    VISITORS,
)
from svc.identify.velocity.counts import VelocityRow
from svc.kernel.store.snapshot import Transaction


def has_unknown_token(index: Index, assessment: Assessment) -> bool:
    """Return whether a report brings a token that the organization never saw. Ask before the recognition is applied."""
    token = assessment.features.token if assessment.features.identifiable else 0
    return token != 0 and not index.block(token_key(token)).numbers


def arrival_of(
    assessment: Assessment, visitor: int | None, *, is_new: bool, has_new_token: bool
) -> newcomers.Arrival | None:
    """Return what an identification is for its address; `None` where it says nothing: of a visitor that cannot be
    recognized, or at an address that may stand for many. `visitor`: its number.
    """
    seen, features = assessment.history, assessment.features
    if visitor is None or not seen.is_public or not seen.counts_address:
        return None
    # Phones of one model send one report, but for what the system calls each.
    report = features.exact ^ features.device
    return newcomers.Arrival(features.family, report, features.token, visitor, is_new, has_new_token)


def arrival_signals(
    index: Index,
    statistics: Statistics,
    assessment: Assessment,
    arrival: newcomers.Arrival | None,
    address: VelocityRow,
) -> tuple[Observation, ...]:
    """Return the signals of an arrival; `address`: the velocity row of its address, this one included."""
    if arrival is None or not arrival.is_new:
        return ()
    found: list[Observation] = []
    is_third = arrival.has_new_token and newcomers.renewals(address, arrival) >= newcomers.THIRD
    if is_third and not newcomers.has_several_devices(index, assessment.features):
        found.append(Observation("storage_renewed", "medium", ("new_tokens_of_one_report",)))
    if arrival.is_new_visitor:
        ratio = statistics.new_for_each_known()
        burst = newcomers.new_visitor_burst(address, arrival, assessment.history.at_s, ratio)
        found += () if burst is None else (burst,)
    return tuple(found)


class Days(NamedTuple):
    """The histories of the visitor and the address of an identification, before it."""

    visitor: VisitorHistory
    address: AddressHistory


class Remembered(NamedTuple):
    """What the histories contribute to an identification."""

    observations: tuple[Observation, ...]
    lesson: StatisticsUpdate | None
    """What matching learns from this visit; `None` where its visitor or its address has taught enough today."""
    visitor: VisitorHistory | None
    """Its history after the visit; `None` = it stays."""
    address: AddressHistory | None
    """Of its address, likewise."""


def update_history(
    transaction: Transaction,
    assessment: Assessment,
    statistics: Statistics,
    before: Days,
    replayed: Observation | None,
    recognition: Recognition,
    visitor_number: int | None,
) -> Remembered:
    """Add an identification to the histories of its visitor and its address, which the caller writes, and write those
    of its places and its origin. Return the observations of the report and those that the histories add
    (docs/signals.md).

    `replayed`: the result of `replay_of`; `visitor_number`: the recognized visitor's, or the one given to a new
    visitor. With `None`, for a visitor that cannot be recognized, the address is still recorded, but matching learns
    nothing; nor does it from a report that was sent before, which counts for nobody: sent again from elsewhere, it
    would give its visitor other addresses and countries.
    """
    seen, features = assessment.history, assessment.features
    visitor = before.visitor.on(seen.day)
    address = address_before = before.address.on(seen.day)
    judged = _judged_by_origin(transaction, assessment)
    observations = list(_with_handshake(judged, assessment, statistics))
    if recognition.lookalike:
        address = evidence.with_lookalike(address, seen)
    lesson: StatisticsUpdate | None = None
    if visitor_number is not None:
        is_new = recognition.number is None
        unseen = _unseen(assessment, statistics, recognition)
        visitor = evidence.visited(visitor, seen)
        if replayed is None and evidence.may_teach(visitor, address):
            is_first = not visitor.lessons
            lesson = _lesson(assessment, recognition, is_first=is_first)
            taught = "" if unseen else evidence.rendered(features, recognition, seen.at_s)
            lesson = msgspec.structs.replace(lesson, rendered=taught)
            _remember_origin(transaction, assessment, recognition, is_first=is_first)
            visitor = msgspec.structs.replace(visitor, lessons=visitor.lessons + 1)
            address = msgspec.structs.replace(address, lessons=address.lessons + 1)
        observations += evidence.velocity(visitor)
        rare = evidence.rare_device(statistics, features)
        if rare is not None:
            observations.append(rare)
        observations += unseen
        if is_new and recognition.lookalike:
            observations += _repeated(transaction, assessment, statistics, visitor_number)
        observations += _places(transaction, assessment, recognition, visitor_number, learns=replayed is None)
    if replayed is not None:
        observations.append(replayed)
    if seen.timezone_country is not None and replayed is None:
        # Without a number, equal poor reports pass for one visitor: else one person would look like many.
        address = evidence.met(
            address, features.exact if visitor_number is None else visitor_number, seen.timezone_country
        )
    shared = seen.timezone_country is not None and evidence.is_shared_address(address)
    found = evidence.with_shared_address(tuple(observations)) if shared else tuple(observations)
    is_kept = replayed is None and visitor_number is not None
    return Remembered(found, lesson, visitor if is_kept else None, None if address is address_before else address)


def _handshake(assessment: Assessment) -> int:
    """Return a 32-bit hash of the fingerprint of a browser's TLS handshake; 0 = not seen, or not a browser's."""
    seen = assessment.submission.facts.connection_tls
    return hash32(seen.encode("utf-8", "replace")) if seen and assessment.submission.platform == "web" else 0


def _origin_key(assessment: Assessment) -> tuple[int, int]:
    return assessment.submission.organization, assessment.features.origin


def _judged_by_origin(transaction: Transaction, assessment: Assessment) -> tuple[Observation, ...]:
    """Return the report's observations, without missing client hints if the origin's visitors do not send them."""
    observations = assessment.observations
    if not origins.needs_origin(observations):
        return observations
    known = transaction.get(ORIGIN_HISTORY, *_origin_key(assessment))
    is_exception = known is not None and origins.expects_hints(known)
    return observations if is_exception else origins.without_missing_hints(observations)


def _remember_origin(
    transaction: Transaction, assessment: Assessment, recognition: Recognition, *, is_first: bool
) -> None:
    """Record whether the origin's visitors send client hints: each returning visitor once a day."""
    submission = assessment.submission
    carried = origins.carries_hints(assessment.report, submission.facts)
    if carried is None or submission.platform != "web" or not is_first or recognition.outcome != "token":
        return
    key = _origin_key(assessment)
    before = transaction.get(ORIGIN_HISTORY, *key) or origins.OriginHistory()
    after = origins.visited(before, carried=carried)
    if after != before:
        transaction.put(ORIGIN_HISTORY, key, after)


def _with_handshake(
    observations: tuple[Observation, ...], assessment: Assessment, statistics: Statistics
) -> tuple[Observation, ...]:
    handshake = _handshake(assessment)
    if not handshake or not statistics.is_unusual_handshake(assessment.features, handshake):
        return observations
    return evidence.with_unusual_handshake(observations)


def _lesson(assessment: Assessment, recognition: Recognition, *, is_first: bool) -> StatisticsUpdate:
    """Add the TLS handshake to what is learned, once a day from each visitor that came back with a token."""
    update = recognition.statistics_update
    if not is_first or recognition.outcome != "token" or not (handshake := _handshake(assessment)):
        return update
    return msgspec.structs.replace(update, handshake=handshake)


def _unseen(assessment: Assessment, statistics: Statistics, recognition: Recognition) -> list[Observation]:
    if assessment.submission.platform != "web" or not evidence.is_first_day(recognition, assessment.history.at_s):
        return []
    unseen = statistics.unseen_renderings(assessment.features)
    checks: list[str] = []
    if Attribute.CANVAS in unseen:
        checks.append("canvas_never_seen")
    if Attribute.AUDIO in unseen:
        checks.append("audio_never_seen")
    return [Observation("unseen_rendering", "medium", tuple(checks))] if checks else []


def _repeated(
    transaction: Transaction, assessment: Assessment, statistics: Statistics, number: int
) -> list[Observation]:
    organization, features = assessment.submission.organization, assessment.features
    block = transaction.get(BLOCKS, organization, newcomers.alike_key(features))
    numbers = [other for other in block.numbers if other != number][: newcomers.READ] if block is not None else []
    found = (transaction.get(VISITORS, organization, other) for other in numbers)
    others = [visitor for visitor in found if visitor is not None]
    return newcomers.repeated_report(features, assessment.history.at_s, others, statistics)


def _places(
    transaction: Transaction, assessment: Assessment, recognition: Recognition, number: int, *, learns: bool
) -> list[Observation]:
    """Remember where the visitor came from if it `learns`. Return the signal of a new place if only the token says who
    the visitor is.
    """
    place = assessment.history.place
    if place is None:
        return []
    key = assessment.submission.organization, number
    known = None if recognition.number is None else transaction.get(VISITOR_PLACES, *key)
    before = known or evidence.VisitorPlaces()
    after = evidence.came_from(before, place) if learns else before
    if after is not before:
        transaction.put(VISITOR_PLACES, key, after)
    by_token_alone = recognition.outcome in ("token", "doubted_token") and not recognition.proven
    found = evidence.new_place(before, place) if by_token_alone else None
    return [] if found is None else [found]


def replay_of(transaction: Transaction, assessment: Assessment) -> Observation | None:
    """Return the `replayed` signal if the report was sent before, else `None`, and remember the report."""
    organization, seen = assessment.submission.organization, assessment.history
    if seen.replay_key is None:
        return None
    period = seen.at_s // evidence.REPLAY_MEMORY_S
    first = transaction.get(REPORT_FINGERPRINTS, organization, period, seen.replay_key.digest)
    if first is None:
        first = transaction.get(REPORT_FINGERPRINTS, organization, max(period - 1, 0), seen.replay_key.digest)
    if first is None or not evidence.is_remembered(first, seen.at_s):
        transaction.put(
            REPORT_FINGERPRINTS,
            (organization, period, seen.replay_key.digest),
            evidence.ReportFingerprint(seen.at_s, seen.address),
        )
        return None
    return evidence.replay(first, seen)
