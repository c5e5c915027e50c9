"""Rows for a store that should be as large as months of traffic made it, in bulk: for `bench.pages`.

What may live here: what such rows look like. They have the keys, the lengths and the spread of those that the real
transaction writes, and are written table by table in the order of keys, a chunk of the past at a time, so that trees
grow as they do in service. They are no whole: an event's values are not those of its visitor.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from ipaddress import IPv4Address
from typing import Any, NamedTuple, cast

import msgspec

from svc.domain.billing import LedgerEntry
from svc.domain.countries import COUNTRY_NAMES
from svc.domain.history import DAY_S, REPLAY_MEMORY_S, AddressHistory, ReportFingerprint, VisitorHistory
from svc.domain.ids import DAY_MS
from svc.domain.matching import Block, Visitor
from svc.domain.network import Country, Known
from svc.domain.records import Event, Idempotency
from svc.domain.verdict import EventSignal, EventTrigger, Verdict
from svc.store.event_index import Scope, digests, write_run
from svc.store.segments import Digests, joined, of_one
from svc.store.snapshot import Transaction
from svc.store.tables import (
    ADDRESS_HISTORY,
    BLOCKS,
    EVENT_TAIL,
    EVENTS,
    IDEMPOTENCY,
    LEDGER,
    REPORT_FINGERPRINTS,
    VISITOR_HISTORY,
    VISITOR_IDS,
    VISITORS,
    Table,
)
from svc.store.transactions.indexing import EVENTS_A_LARGE

EPOCH_MS = 1_785_585_600_000 + DAY_MS // 2
"""2026-08-01T12:00:00Z: when the bulk ends and visits begin."""
DAYS = 30
CHUNK = 200_000
"""Events, or visitors, of one transaction."""
BLOCK_KINDS = b"XEABCDNT"
Rows = dict[str, list[tuple[bytes, bytes]]]


class Countries:
    """Ranges that know the country of every address, and nothing else: a few have most of them."""

    _known = tuple(Known(country=Country(code, COUNTRY_NAMES[code], "bench")) for code in sorted(COUNTRY_NAMES)[:120])

    def find(self, address: Any, /) -> Known:
        """A country, by the address's second and third byte."""
        _, second, third, _ = IPv4Address(address).packed
        return self._known[int(len(self._known) * ((64 * third + second) / 16384) ** 3)]


class Plan(NamedTuple):
    """What a store is filled with."""

    visitors: int
    events: int
    stride: int
    tagged: float
    """Share of the events that have a tag, which is their visitor's own."""
    in_time: bool
    """Whether nonces and idempotency keys are UUIDv7, or random."""


class Filler:
    """Rows of organization 1. Visitor numbers that `stride` leaves as remainder 1 are left out: others are there."""

    def __init__(self, chance: random.Random, plan: Plan) -> None:
        self._chance = chance
        self._visitors, self._events, self._stride, self._tagged, self._in_time = plan
        self._waiting: list[tuple[tuple[int, bytes], Digests]] = []
        self._indexed = 0
        self._countries = [
            Countries().find(IPv4Address(f"81.{second}.{third}.1")).country
            for second in range(64)
            for third in range(256)
        ]
        self._record = Visitor(
            visitor_id="", family=1, collector=1, values=(7,) * 20, browser_version=1, os_release=1, font_sketch=1,
            rest_sketch=1, first_seen_s=1, last_seen_s=EPOCH_MS // 1000 - DAY_S, networks=((1, 2),), addresses=(1,),
            tokens=(2,), probation=(0,), exact_hashes=(5,),
        )  # fmt: skip

    def chunks(self) -> Iterator[Rows]:
        """Table -> (packed key, stored bytes), in no order; all visitors, and then the events, oldest first."""
        for first in range(1, self._visitors + 1, CHUNK):
            yield self._of_visitors(range(first, min(first + CHUNK, self._visitors + 1)))
        for first in range(0, self._events, CHUNK):
            yield self._of_events(range(first, min(first + CHUNK, self._events)))

    def _of_visitors(self, numbers: range) -> Rows:
        rows: Rows = defaultdict(list)
        randbytes = self._chance.randbytes
        for number in numbers:
            if number % self._stride == 1:
                continue
            _add(rows, VISITORS, (1, number), _with_id(self._record, self._visitor_id(number)))
            _add(rows, VISITOR_IDS, (1, self._visitor_id(number)), number)
            block = Block(1.0, (number,))
            for kind in BLOCK_KINDS:
                _add(rows, BLOCKS, (1, bytes((kind,)) + randbytes(8)), block)
        return rows

    def _of_events(self, places: range) -> Rows:
        rows: Rows = defaultdict(list)
        chance = self._chance
        body = b""
        yesterday_ms = (EPOCH_MS // DAY_MS - 1) * DAY_MS
        line = LedgerEntry("identification", -3000, EPOCH_MS)
        history = VisitorHistory(((EPOCH_MS // 600_000, 1),), ((1 << 60, EPOCH_MS // 1000),), (("GB", 1),), 1)
        address_history = AddressHistory((1,), ("GB",), 1)
        for place in places:
            at_ms = EPOCH_MS - DAYS * DAY_MS * (self._events - place) // self._events
            request_id = at_ms.to_bytes(6) + b"\x70" + chance.randbytes(9)
            visitor = 1 + chance.randrange(self._visitors)
            given = self._event(at_ms, visitor)
            if not body or place % 1000 == 0:
                body = EVENTS.value.encode(given)
            key = EVENTS.key.pack(1, request_id)
            rows[EVENTS.name].append((key, bytes(4) + body))
            self._index(rows, (at_ms, request_id), given)
            _add(rows, LEDGER, (1, request_id), line)
            mark = ReportFingerprint(at_ms // 1000, chance.getrandbits(64))
            _add(rows, REPORT_FINGERPRINTS, (1, at_ms // (1000 * REPLAY_MEMORY_S), self._digest(at_ms)), mark)
            if at_ms >= EPOCH_MS - DAY_MS:
                _add(rows, IDEMPOTENCY, (1, self._digest(at_ms)), Idempotency(request_id, at_ms))
            if at_ms >= yesterday_ms:
                _add(rows, VISITOR_HISTORY, (1, at_ms // DAY_MS, visitor), history)
                _add(rows, ADDRESS_HISTORY, (1, at_ms // DAY_MS, chance.getrandbits(64)), address_history)
        return rows

    def _index(self, rows: Rows, here: tuple[int, bytes], given: Event) -> None:
        """In large segments, and what is left of the newest in the tail."""
        self._waiting.append((here, digests(given)))
        self._indexed += 1
        if len(self._waiting) == EVENTS_A_LARGE:
            run = joined([of_one(*each) for each in self._waiting])
            write_run(cast("Transaction", _Into(rows)), Scope(1, 0), run, here, large=True)
            self._waiting.clear()
        if self._indexed == self._events:
            for place, values in self._waiting:
                _add(rows, EVENT_TAIL, (1, 0, *place), values)

    def _event(self, at_ms: int, visitor: int) -> Event:
        chance = self._chance
        ip = f"81.{chance.randrange(64)}.{chance.randrange(256)}.{chance.randrange(256)}"
        visitor_id = self._visitor_id(visitor).decode()
        return _event(chance, at_ms, visitor_id, ip, chance.choice(self._countries), tagged=self._tagged)

    def _digest(self, at_ms: int) -> bytes:
        """As of `ordered_digest`, of a UUIDv7 or of a random text."""
        return (at_ms.to_bytes(6) if self._in_time else self._chance.randbytes(6)) + self._chance.randbytes(10)

    def _visitor_id(self, number: int) -> bytes:
        """20 letters and digits, the same for the same number, spread evenly."""
        return blake2b(number.to_bytes(8), digest_size=10).hexdigest().encode()


def _add(rows: Rows, table: Table[Any], key: tuple[Any, ...], value: Any) -> None:
    packed = table.key.pack(*key)
    rows[table.name].append((packed, table.encode(packed, value)))


class _Into:
    """What `write_run` writes to."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def put(self, table: Table[Any], key: tuple[Any, ...], value: Any) -> None:
        _add(self._rows, table, key, value)


def _with_id(record: Visitor, visitor_id: bytes) -> Visitor:
    return msgspec.structs.replace(record, visitor_id=visitor_id.decode())


def _event(
    chance: random.Random, at_ms: int, visitor_id: str, ip: str, country: Country | None, *, tagged: float
) -> Event:
    fired = chance.random() < 0.1
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
        occurred_at_ms=at_ms,
        platform="web",
        sdk_platform="web",
        sdk_version="0.2.0",
        origin="https://shop.example",
        tag=f"account {visitor_id}" if chance.random() < tagged else None,
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
        price_micros=3000,
    )
