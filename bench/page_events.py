"""Rows of events in bulk: for `page_fill`.

What may live here: events that are encoded once and written again and again under other request ids and times, each
with the rows that the service writes for it. `CYCLE` different ones follow each other, so that a large segment never
holds one twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple
from zlib import crc32

from svc.identify.events.hour_counts import NOTHING, HourCounts, sum_of
from svc.identify.events.segments import Digests, Segment, joined, of_one, packed
from svc.identify.history.evidence import REPLAY_MEMORY_S, ReportFingerprint
from svc.identify.index.digests import digests
from svc.identify.index.queries import SLOTS, part_of
from svc.identify.indexing.jobs import EVENTS_A_LARGE
from svc.identify.model import EventSignal, EventTrigger, Verdict
from svc.identify.network.facts import Country
from svc.identify.records import Event
from svc.identify.tables import EVENT_SEGMENTS, EVENT_TAIL, EVENTS, REPORT_FINGERPRINTS
from svc.kernel.store.schema.table import Table
from svc.kernel.tenants.billing import LedgerEntry
from svc.kernel.tenants.tables import LEDGER
from svc.kernel.values.ids import HOUR_MS

CYCLE = 49 * EVENTS_A_LARGE
"""Some 200,000: also those of one transaction."""
PRICE = 3000
Rows = dict[str, list[tuple[bytes, bytes]]]
_ORGANIZATION = (1).to_bytes(4)
_AT_MS = 0x0123_4567_89AB_CDEF
"""Stands where the time will be."""
_AT_S = 0x7654_3210


class Arrived(NamedTuple):
    """Where an event lies."""

    at_ms: int
    request_id: bytes


class _Encoded(NamedTuple):
    before: bytes
    after: bytes
    """Bytes of the event around its time."""
    digests: Digests
    of_class: tuple[str, bool]
    """What the counters of an hour tell apart: the country, and whether anything fired."""


class Events:
    """The events of one cycle."""

    def __init__(self, given: Iterable[Event]) -> None:
        """`given` are events at any time, each with a country."""
        self._encoded: list[_Encoded] = []
        self._of_class: dict[tuple[str, bool], Event] = {}
        self._counts: Counter[tuple[int, tuple[str, bool]]] = Counter()
        for event in given:
            before, after = _around(EVENTS, event, _AT_MS.to_bytes(8))
            of_class = (event.country_code or "", bool(event.verdict.triggers))
            self._of_class.setdefault(of_class, event)
            self._encoded.append(_Encoded(before, after, digests(event), of_class))
        self._segments = [
            _postings([one.digests for one in self._encoded[first : first + EVENTS_A_LARGE]])
            for first in range(0, len(self._encoded) - EVENTS_A_LARGE + 1, EVENTS_A_LARGE)
        ]

    def rows(self, arrived: Sequence[Arrived], reports: Iterable[tuple[bytes, int]]) -> Rows:
        """Of so many events of the cycle from its beginning on, in the order of arrival; `reports`: of each the digest
        of its nonce, and an address. What makes no large segment is in the tail.
        """
        rows: Rows = defaultdict(list)
        paid = _around(LEDGER, LedgerEntry("identification", -PRICE, _AT_MS), _AT_MS.to_bytes(8))
        sent, behind = _around(REPORT_FINGERPRINTS, ReportFingerprint(_AT_S, _AT_MS), _AT_S.to_bytes(4))
        between, _ = behind[:-8], behind[-8:]
        seeds = [crc32(table.name.encode()) for table in (EVENTS, LEDGER, REPORT_FINGERPRINTS)]
        own, lines, marks = (rows[table.name] for table in (EVENTS, LEDGER, REPORT_FINGERPRINTS))
        for (at_ms, request_id), one, (digest, address) in zip(arrived, self._encoded, reports, strict=False):
            stamp, key = at_ms.to_bytes(8), _ORGANIZATION + request_id
            own.append(row(seeds[0], key, one.before + stamp + one.after))
            lines.append(row(seeds[1], key, paid[0] + stamp + paid[1]))
            key = REPORT_FINGERPRINTS.key.pack(1, at_ms // (1000 * REPLAY_MEMORY_S), digest)
            body = sent + (at_ms // 1000).to_bytes(4) + between + address.to_bytes(8)
            marks.append(row(seeds[2], key, body))
        self._counts.update(
            zip(
                [at_ms // HOUR_MS for at_ms, _ in arrived],
                [one.of_class for one in islice(self._encoded, len(arrived))],
                strict=True,
            )
        )
        self._index(rows, arrived)
        return rows

    def hours(self) -> dict[int, HourCounts]:
        """Hour -> what all events of it add up to."""
        found: dict[int, HourCounts] = {}
        for (hour, of_class), count in self._counts.items():
            found[hour] = sum_of((found.get(hour, NOTHING), _times(NOTHING.plus(self._of_class[of_class]), count)))
        return found

    def _index(self, rows: Rows, arrived: Sequence[Arrived]) -> None:
        whole = len(arrived) // EVENTS_A_LARGE
        for number, postings in enumerate(self._segments[:whole]):
            own = arrived[number * EVENTS_A_LARGE : (number + 1) * EVENTS_A_LARGE]
            slots = b"".join([at_ms.to_bytes(8) + request_id for at_ms, request_id in own])
            for part, segment in (*postings.items(), (SLOTS, Segment(slots))):
                add_row(rows, EVENT_SEGMENTS, (1, 0, part, *own[-1]), segment)
        for here, one in islice(zip(arrived, self._encoded, strict=False), whole * EVENTS_A_LARGE, None):
            add_row(rows, EVENT_TAIL, (1, 0, *here), one.digests)


def _postings(values: list[Digests]) -> dict[int, Segment]:
    """Part -> postings of a large segment."""
    run = joined([of_one((place, bytes(16)), each) for place, each in enumerate(values, 1)])
    parts: dict[int, dict[int, Sequence[int]]] = defaultdict(dict)
    for digest, places in run.postings.items():
        parts[part_of(digest)][digest] = places
    return {part: packed(b"", postings) for part, postings in parts.items()}


def _around(table: Table[Any], value: Any, mark: bytes) -> tuple[bytes, bytes]:
    """The encoded value without checksum, before the mark and behind it."""
    before, found, after = table.value.encode(value).partition(mark)
    assert found, f"{table.name} stores times otherwise"
    return before, after


def row(seed: int, key: bytes, body: bytes) -> tuple[bytes, bytes]:
    """As `Table.encode`."""
    return key, crc32(body, crc32(key, seed)).to_bytes(4) + body


def add_row(rows: Rows, table: Table[Any], key: tuple[Any, ...], value: Any) -> None:
    packed_key = table.key.pack(*key)
    rows[table.name].append((packed_key, table.encode(packed_key, value)))


def _times(counts: HourCounts, count: int) -> HourCounts:
    def times(value: int | dict[Any, int]) -> Any:
        return value * count if isinstance(value, int) else {name: each * count for name, each in value.items()}

    return HourCounts(**{name: times(getattr(counts, name)) for name in HourCounts.__struct_fields__})


def event(visitor_id: str, *, ip: str, country: Country | None, tag: str | None, fired: bool) -> Event:
    """An identification, at no time yet."""
    assert country is not None
    return Event(
        environment="production",
        verdict=Verdict(
            visitor_id=visitor_id,
            state="enriched",
            reason=None,
            suspect_score=40 if fired else 0,
            suspect_level="medium" if fired else "low",
            triggers=(EventTrigger("bot", 40, "high"),) if fired else (),
            identifiable=True,
            visitor_is_new=False,
            visitor_confidence=100,
            linkage="token",
            signals=(EventSignal("headless", "bot", 40, "high"),) if fired else (),
        ),
        occurred_at_ms=_AT_MS,
        platform="web",
        sdk_platform="web",
        sdk_version="0.2.0",
        origin="https://shop.example",
        tag=tag,
        ip_address=ip,
        country_code=country.code,
        country_name=country.name,
        asn="20712",
        asn_name="Andrews & Arnold Ltd",
        anonymity_network=None,
        agent="Chrome",
        agent_version="137.0.0.0",
        os="Windows",
        device_kind="desktop",
        visitor_kind="automation" if fired else "human",
        key_id="key_0123456789abcdefGHIJ",
        price_micros=PRICE,
        has_document=False,
    )
