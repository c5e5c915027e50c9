"""Outcomes: what is kept of an identification for 400 days, so that a label of it can be judged (decisions 14.1).

What may live here: the outcome of one event, and the bytes of many. As long as an event is stored, it says all this
itself; when it is deleted, its outcome goes into a segment of the archive (docs/adr/0119).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Annotated, Final

import msgspec
from isal import isal_zlib
from msgspec import Meta

from svc.identify.events.hour_counts import matched_rules
from svc.identify.model import Label, Level, Observation, RuleAction
from svc.identify.records import Event
from svc.identify.scoring.signals import CATALOG, weighs_twice
from svc.kernel.values.fields import Environment, Platform
from svc.kernel.values.ids import DAY_MS, made_at_ms

OUTCOME_MS: Final = 400 * DAY_MS
"""How long after its arrival an identification may be labeled."""
_ID_BYTES: Final = 16
_TAIL_BYTES: Final = 10
"""Of a request id behind its time."""


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """What an outcome says besides subject and time; many outcomes share one. Stored: append fields, never
    move them.
    """

    environment: Environment
    platform: Platform
    score: int | None
    """`None` = not scored."""
    level: Level | None
    signals: tuple[str, ...]
    """That fired."""
    rules: tuple[str, ...]
    """Ids of those that matched: the one that decided, then shadows."""
    decision: RuleAction | None
    label: Label | None = None
    label_reason: str | None = None
    twice: tuple[str, ...] = ()
    """Of the signals, those that weighed twice."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the groups of the signals, each once."""
        return tuple(dict.fromkeys(CATALOG[name].group for name in self.signals if name in CATALOG))


class Outcome(msgspec.Struct, frozen=True):
    """What is kept of one identification to judge a label by. It has neither report nor address, and visitor and
    account only by numbers, which lead nowhere once these are erased.
    """

    request_id: bytes
    """16 bytes."""
    at_ms: int
    """When it arrived."""
    visitor: int
    """Its number; 0 = not identifiable, or erased."""
    account: int
    """Its number; 0 = none, or erased."""
    facts: Facts

    @property
    def day(self) -> int:
        """Return the UTC day of its arrival, since 1970."""
        return self.at_ms // DAY_MS

    def with_label(self, label: Label | None, reason: str | None) -> Outcome:
        """Return the outcome with another label, or with none."""
        return msgspec.structs.replace(
            self, facts=msgspec.structs.replace(self.facts, label=label, label_reason=reason)
        )


def outcome_of(event: Event, request_id: bytes, visitor: int, account: int) -> Outcome:
    """Return the outcome of a stored event, with the numbers of its visitor and its account."""
    verdict = event.verdict
    facts = Facts(
        environment=event.environment,
        platform=event.platform,
        score=verdict.suspect_score,
        level=verdict.suspect_level,
        signals=tuple(fired.signal for fired in verdict.signals or ()),
        rules=tuple(matched_rules(verdict.decision, event.shadow)),
        decision=None if verdict.decision is None else verdict.decision.action,
        label=event.label,
        label_reason=event.label_reason,
        twice=tuple(
            fired.signal for fired in verdict.signals or () if weighs_twice(Observation(fired.signal, fired.confidence))
        ),
    )
    return Outcome(request_id, event.occurred_at_ms, visitor, account, facts)


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    facts: list[Facts]
    """Each once."""
    indexes: list[int]
    """Of each outcome, in `facts`."""
    times: list[Annotated[int, Meta(ge=0, lt=1 << 48)]]
    """Milliseconds in the request ids: the first, and then what is added."""
    lags: list[int]
    """Arrival, less the time in the request id."""
    visitors: list[int]
    accounts: list[int]
    tails: bytes
    """The last 10 bytes of each request id."""


class OutcomeSegment(msgspec.Struct, frozen=True):
    """The outcomes of one row of the archive, by request id."""

    outcomes: tuple[Outcome, ...]

    def pack(self) -> bytes:
        """Return the columns as MessagePack, compressed in zlib's format (RFC 1950)."""
        places: dict[Facts, int] = {}
        indexes = [places.setdefault(each.facts, len(places)) for each in self.outcomes]
        times = [made_at_ms(each.request_id) for each in self.outcomes]
        packed = _Packed(
            facts=list(places),
            indexes=indexes,
            times=times[:1] + [after - before for before, after in pairwise(times)],
            lags=[each.at_ms - time for each, time in zip(self.outcomes, times, strict=True)],
            visitors=[each.visitor for each in self.outcomes],
            accounts=[each.account for each in self.outcomes],
            tails=b"".join(each.request_id[-_TAIL_BYTES:] for each in self.outcomes),
        )
        return isal_zlib.compress(_encode(packed), 1)  # pyright: ignore[reportUnknownMemberType]  its stub

    @staticmethod
    def unpack(raw: bytes) -> OutcomeSegment:
        """Return the segment in these bytes. Raises `ValueError` for other bytes."""
        try:
            packed = _decode(zlib.decompress(raw))
        except (zlib.error, msgspec.DecodeError) as error:  # what is not a `ValueError` yet
            raise ValueError(str(error)) from error
        rest = (packed.lags, packed.visitors, packed.accounts, packed.indexes)
        if {len(packed.times) * _TAIL_BYTES, *(len(column) * _TAIL_BYTES for column in rest)} != {len(packed.tails)}:
            raise ValueError("columns of different lengths")
        if sum(packed.times) >= 1 << 48:
            raise ValueError("a time beyond those of request ids")
        outcomes = tuple(
            Outcome(
                request_id=time.to_bytes(_ID_BYTES - _TAIL_BYTES)
                + packed.tails[at * _TAIL_BYTES : (at + 1) * _TAIL_BYTES],
                at_ms=time + packed.lags[at],
                visitor=packed.visitors[at],
                account=packed.accounts[at],
                facts=packed.facts[packed.indexes[at]],
            )
            for at, time in enumerate(accumulate(packed.times))
        )
        return OutcomeSegment(outcomes)

    @property
    def newest(self) -> bytes:
        """Return the largest of its request ids."""
        return self.outcomes[-1].request_id

    def find(self, request_id: bytes) -> Outcome | None:
        """Return the outcome of one request; `None` if it has none."""
        return next((each for each in self.outcomes if each.request_id == request_id), None)

    def replacing(self, outcome: Outcome) -> OutcomeSegment:
        """Return the segment with another outcome of one of its requests."""
        outcomes = (outcome if each.request_id == outcome.request_id else each for each in self.outcomes)
        return OutcomeSegment(tuple(outcomes))


def merged(segment: OutcomeSegment | None, added: Sequence[Outcome], most: int) -> list[OutcomeSegment]:
    """Return the segments, of at most `most` outcomes each, that result from adding outcomes to one. Outcomes that come
    after its last, or before its first, leave it full.
    """
    kept = () if segment is None else segment.outcomes
    outcomes = sorted((*kept, *added), key=lambda each: each.request_id)
    is_behind = not kept or min(each.request_id for each in added) > kept[-1].request_id
    first = most if is_behind else len(outcomes) % most or most
    bounds = [0, *range(first, len(outcomes), most), len(outcomes)]
    return [OutcomeSegment(tuple(outcomes[low:high])) for low, high in pairwise(bounds)]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Packed).decode
