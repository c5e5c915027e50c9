"""Rows for a store that should be as large as months of traffic made it, in bulk: for `bench.pages`.

What may live here: what such rows look like. They have the keys, the lengths and the spread of those that the real
transaction writes (`tests/bench/test_page_fill.py` compares them), and are written table by table in the order of keys,
a chunk of the past at a time, so that trees grow as they do in service. A store of them passes `svc check`. Archived
reports are left out, since they lie in the order of time; and a visitor's blocks are not all those of its record.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from ipaddress import IPv4Address
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from bench.page_events import CYCLE, PRICE, Arrived, Events, Rows, add_row, event, row
from svc.identify.events.hour_counts import NOTHING, HourCounts, sum_of
from svc.identify.history.activity import AddressActivity, VisitorActivity, VisitorHistory
from svc.identify.history.evidence import DAY_S
from svc.identify.matching import EMPTY_BLOCK, Block, BlockKey, Features, block_keys
from svc.identify.matching.blocks import TOKEN, token_key
from svc.identify.matching.parameters import BLOCK_LENGTH
from svc.identify.matching.tokens import CAME_BACK
from svc.identify.matching.visitor import first_record
from svc.identify.network.facts import Country, Known
from svc.identify.network_data.lists import COUNTRY_NAMES
from svc.identify.records import Event, Idempotency
from svc.identify.tables import ACCOUNTS, ADDRESSES, BLOCKS, HOURS, IDEMPOTENCY, VISITOR_IDS, VISITORS
from svc.identify.velocity.counts import EMPTY, LONGEST_S, Counts, Velocity, VelocityRow
from svc.identify.velocity.record import AccountRecord, KnownVisitor
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.jobs import add
from svc.kernel.tenants.tables import BALANCES
from svc.kernel.values.ids import DAY_MS
from svc.world import visitor_id

EPOCH_MS = 1_785_628_800_000 - 1_800_000
"""2026-08-01T23:30:00Z: when the bulk ends and visits begin. Late in a day, when tables that begin again with each day
have most rows: after midnight an identification writes 8 kB less (ADR 72).
"""
DAYS = 30
CHUNK = 200_000
"""Visitors of one transaction."""
VISITOR_CHUNKS = 5
"""At least, so that pages of rows at random places are split as in service, and not filled in order."""
_NOBODY = "!" * 20
_HISTORY = VisitorHistory(((EPOCH_MS // 600_000, 1),), ((1 << 60, 1),), (("GB", 1),), 1, EPOCH_MS // DAY_MS)
_ORGANIZATION = (1).to_bytes(4)


class Countries:
    """Ranges that know the country of every address, and nothing else: a few have most of them."""

    _known = tuple(Known(country=Country(code, COUNTRY_NAMES[code], "bench")) for code in sorted(COUNTRY_NAMES)[:120])

    def find(self, address: Any, /) -> Known:
        """A country, by the address's second and third byte."""
        _, second, third, _ = IPv4Address(address).packed
        return self._known[int(len(self._known) * ((64 * third + second) / 16384) ** 3)]

    def publishes(self, operator: str, /) -> bool:
        """It knows no crawlers."""
        del operator
        return False


class Plan(NamedTuple):
    """What a store is filled with."""

    visitors: int
    """Their numbers are 1 to this, those of `taken` included."""
    taken: range
    """Numbers of visitors who are in the store already."""
    events: int
    tagged: float
    """Share of the events that have a tag, which is their visitor's own."""
    accounts: bool
    """Whether each visitor has an account of its own."""
    in_time: bool
    """Whether nonces and idempotency keys are UUIDv7, or random."""
    models: Sequence[Features]
    """Devices that visitors are made after: what most of them share with others, visitors share, too."""


class Model(NamedTuple):
    """A device that visitors are made after."""

    before: bytes
    between: bytes
    after: bytes
    """Bytes of its record around the visitor id, and around the hash of its token."""
    shared: tuple[BlockKey, ...]
    """Of its blocks those of a kind that most devices share with others."""
    own: tuple[bytes, ...]
    """The kinds of the others."""


class Filler:
    """Rows of organization 1. First all of `chunks`, and then `finish`."""

    def __init__(self, chance: random.Random, plan: Plan) -> None:
        self._chance = chance
        self._plan = plan
        self._models = _models(plan.models, plan)
        self._shared: dict[BlockKey, Block] = {}
        self._countries = [
            Countries().find(IPv4Address(f"81.{second}.{third}.1")).country
            for second in range(64)
            for third in range(256)
        ]
        self._events = Events(self._event() for _ in range(min(CYCLE, plan.events)))

    def chunks(self) -> Iterator[Rows]:
        """Table -> (packed key, stored bytes), in no order; all visitors, and then the events, oldest first."""
        visitors, events = self._plan.visitors, self._plan.events
        chunk = min(CHUNK, -(-visitors // VISITOR_CHUNKS))
        for first in range(1, visitors + 1, chunk):
            yield self._of_visitors(range(first, min(first + chunk, visitors + 1)))
        for first in range(0, events, CYCLE):
            yield self._of_events(range(first, min(first + CYCLE, events)))

    def finish(self, transaction: Transaction) -> None:
        """Write what is added to rows that may be there: sums, and blocks that are shared."""
        for key, block in sorted(self._shared.items()):
            known = transaction.get(BLOCKS, 1, key) or EMPTY_BLOCK
            both = Block(known.count + block.count, (*block.numbers, *known.numbers)[:BLOCK_LENGTH])
            transaction.put(BLOCKS, (1, key), both)
        for hour, counts in self._events.hours().items():
            transaction.update(HOURS, (1, 0, hour), partial(_added, more=counts))
        visitors, events = self._plan.visitors - len(self._plan.taken), self._plan.events
        transaction.update(BALANCES, (1,), lambda micros: (micros or 0) - PRICE * events)
        add(transaction, 1, EPOCH_MS, lambda held: held.plus(events=events, visitors=visitors))

    def _of_visitors(self, numbers: range) -> Rows:
        rows: Rows = defaultdict(list)
        randbytes, choice = self._chance.randbytes, self._chance.choice
        seeds = [crc32(table.name.encode()) for table in (VISITORS, VISITOR_IDS, BLOCKS)]
        records, ids, blocks = (rows[table.name] for table in (VISITORS, VISITOR_IDS, BLOCKS))
        activity = _activity(self._plan)
        for number in numbers:
            if number in self._plan.taken:
                continue
            model, raw_id = choice(self._models), self._visitor_id(number).encode()
            token = self._chance.getrandbits(63) << 1
            record = b"".join(
                (model.before, raw_id, model.between, (token | CAME_BACK).to_bytes(8, "little"), model.after)
            )
            records.append(row(seeds[0], VISITORS.key.pack(1, number), record))
            ids.append(row(seeds[1], VISITOR_IDS.key.pack(1, raw_id), number.to_bytes(8)))
            block = Block(1.0, (number,)).pack()
            blocks.append(row(seeds[2], _ORGANIZATION + token_key(token), block))
            period, at_s = EPOCH_MS // 1000 // LONGEST_S, EPOCH_MS // 1000 - DAY_S
            add_row(rows, ADDRESSES, (1, period, self._chance.getrandbits(64)), AddressActivity(activity))
            if self._plan.accounts:
                account = AccountRecord(at_s, at_s, (KnownVisitor(number, at_s, at_s),), activity)
                add_row(rows, ACCOUNTS, (1, 0, self._chance.getrandbits(64)), account)
            for kind in model.own:
                blocks.append(row(seeds[2], kind + randbytes(8), block))
            for key in model.shared:
                self._shared[key] = self._shared.get(key, EMPTY_BLOCK).with_posting(number, 1.0)
        return rows

    def _of_events(self, places: range) -> Rows:
        chance, of_all = self._chance, self._plan.events
        times_ms = [EPOCH_MS - DAYS * DAY_MS * (of_all - place) // of_all for place in places]
        arrived = [Arrived(at_ms, at_ms.to_bytes(6) + b"\x70" + chance.randbytes(9)) for at_ms in times_ms]
        rows = self._events.rows(arrived, [(self._digest(at_ms), chance.getrandbits(64)) for at_ms in times_ms])
        for at_ms, request_id in arrived:
            if at_ms >= EPOCH_MS - DAY_MS:
                add_row(rows, IDEMPOTENCY, (1, self._digest(at_ms)), Idempotency(request_id, at_ms))
        return rows

    def _visitor(self) -> int:
        """Any that is made here."""
        while True:
            number = 1 + int(self._plan.visitors * self._chance.random())
            if number not in self._plan.taken:
                return number

    def _event(self) -> Event:
        chance, visitor = self._chance, self._visitor()
        address = chance.getrandbits(22).to_bytes(3)
        made = event(
            self._visitor_id(visitor),
            ip=f"81.{address[0]}.{address[1]}.{address[2]}",
            country=chance.choice(self._countries),
            tag=f"account {visitor}" if chance.random() < self._plan.tagged else None,
            fired=chance.random() < 0.1,
        )
        account = f"user {visitor}" if self._plan.accounts else None
        return msgspec.structs.replace(made, account_id=account, velocity=_velocity(self._plan))

    def _visitor_id(self, number: int) -> str:
        """The same for the same number; visitors came one after the other in these days."""
        at_ms = EPOCH_MS - DAYS * DAY_MS * (self._plan.visitors - number) // self._plan.visitors
        return visitor_id(lambda length: blake2b(number.to_bytes(8), digest_size=length).digest(), at_ms)

    def _digest(self, at_ms: int) -> bytes:
        """As of `ordered_digest`, of a UUIDv7 or of a random text."""
        return (at_ms.to_bytes(6) if self._plan.in_time else self._chance.randbytes(6)) + self._chance.randbytes(10)


def _activity(plan: Plan) -> VelocityRow:
    """Of a visitor with as many events as each has on the average: with one address, one country, and one account."""
    row, others = EMPTY, (1 if plan.accounts else None, 2, 3)
    for each in range(plan.events // plan.visitors):
        row = row.with_event(EPOCH_MS // 1000 - 2 * each * DAY_S, others)
    return row


def _velocity(plan: Plan) -> Velocity:
    """As an event has it. It says that no row counts the event: those made here have other times."""
    once = (1, 1, 10)
    visitor, address = Counts(once, (once, once, once)), Counts(once, (once, once))
    return Velocity(visitor, visitor if plan.accounts else None, address, is_counted=False)


def _models(devices: Sequence[Features], plan: Plan) -> list[Model]:
    """Of devices with a token. A kind of block is shared where less than half of them have a key of their own; that of
    the token never is.
    """
    keys = [block_keys(features) for features in devices]
    counts = Counter(key for of_one in keys for key in of_one)
    alone = Counter(key[0] for key, count in counts.items() if count == 1)
    own_kinds = {kind for kind in alone if 2 * alone[kind] >= len(devices)} | {TOKEN}
    shared = [tuple(key for key in of_one if key[0] not in own_kinds) for of_one in keys]
    made: list[Model] = []
    for features, of_one, others in zip(devices, keys, shared, strict=True):
        record = first_record(msgspec.structs.replace(features, token_is_new=False), EPOCH_MS - DAY_MS)
        lately = VisitorActivity(_activity(plan), history=_HISTORY).pack()
        record = msgspec.structs.replace(record, visitor_id=_NOBODY, activity=lately)
        before, _, rest = VISITORS.value.encode(record).partition(_NOBODY.encode())
        between, _, after = rest.partition((features.token | CAME_BACK).to_bytes(8, "little"))
        own = tuple(_ORGANIZATION + key[:1] for key in of_one if key not in others and key[0] != TOKEN)
        made.append(Model(before, between, after, others, own))
    return made


def _added(counts: HourCounts | None, more: HourCounts) -> HourCounts:
    return sum_of((counts or NOTHING, more))
