"""Events are found by their indexes, in bounded work, and `svc check` tells an index that is wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from svc.domain.listing import KINDS, LEVELS, Filters, Listing
from svc.domain.model import ENVIRONMENTS
from svc.domain.records import RETENTION_MS, DeferredReport, Document, Event, WeightsSnapshot
from svc.domain.verdict import EventSignal, Verdict
from svc.store.directory import open_directory
from svc.store.events import EventMatch, event_by_request, event_page, index_keys, put_event
from svc.store.invariants import violations
from svc.store.snapshot import Snapshot, Transaction
from svc.store.store import Store
from svc.store.tables import DEFERRED_REPORTS, DOCUMENTS, EVENTS, EVENTS_BY_LEVEL, EVENTS_BY_VISITOR, WEIGHTS_SNAPSHOTS
from svc.store.transactions.accounts import create_organization
from svc.store.transactions.holdings import counted, keep
from svc.world import World
from tests.support.worlds import EPOCH_MS

VISITORS = [f"{number:020d}" for number in range(4)]
SIGNALS = ("automation", "headless", "os_mismatch")
TAGS = ("cart", "order 1")
ADDRESSES = ("81.2.69.160", "81.2.69.161", "2001:db8::1")
WEIGHTS = b"w" * 16


def event(chance: random.Random, at_ms: int, **fields: Any) -> Event:
    of_verdict: dict[str, Any] = {
        "visitor_id": chance.choice(VISITORS),
        "suspect_level": chance.choice((None, *LEVELS)),
        "signals": fired(*chance.sample(SIGNALS, chance.randrange(3))),
        "suspect_score": None,
        "identifiable": False,
        "visitor_is_new": True,
    }
    given: dict[str, Any] = {
        "environment": chance.choice(ENVIRONMENTS[1:]),
        "tag": chance.choice((None, *TAGS)),
        "ip_address": chance.choice(ADDRESSES),
        "country_code": chance.choice((None, "GB", "DE")),
        "visitor_kind": chance.choice(KINDS[:2]),
        "price_micros": 0,
        **fields,
    }
    for name in of_verdict.keys() & given.keys():
        of_verdict[name] = given.pop(name)
    verdict = Verdict(state="enriched", reason=None, triggers=(), visitor_confidence=0, linkage="new", **of_verdict)
    return Event(
        verdict=verdict, occurred_at_ms=at_ms, platform="web", sdk_platform="web", sdk_version="1",
        origin=None, country_name=None, asn=None, asn_name=None, anonymity_network=None, agent=None,
        agent_version=None, os=None, device_kind=None, key_id="key_test", **given,
    )  # fmt: skip


def fired(*names: str) -> tuple[EventSignal, ...]:
    return tuple(EventSignal(name, "group", 10, "high") for name in names)


def uuid(number: int) -> UUID:
    return UUID(int=number)


def record(transaction: Transaction, number: int, request_id: UUID, given: Event) -> None:
    """An event as it is stored with whatever `svc check` asks of it."""
    put_event(transaction, number, request_id, given)
    document = Document(
        signals=b"", sdk_platform=None, sdk_version=None, tag=None, suspect_threshold=30, weights_scope="default",
        weights_digest=WEIGHTS,
    )  # fmt: skip
    transaction.put(DOCUMENTS, (number, request_id.bytes), document)


@contextmanager
def filled_store(directory: Path, *events: tuple[int, UUID, Event]) -> Generator[Store]:
    """A store with two organizations and these (organization, request id, event)."""
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy, durable=False, map_bytes=64 << 20)

    def prepare(transaction: Transaction) -> None:
        transaction.put(WEIGHTS_SNAPSHOTS, (WEIGHTS,), WeightsSnapshot({}))
        for name in ("org_a", "org_b"):
            create_organization(transaction, organization_id=name, name=name, now_ms=0, rate_limit_per_s=0)
        for number, request_id, given in events:
            record(transaction, number, request_id, given)
        count_again(transaction)

    assert found.store.write_now([prepare]) == [None]
    try:
        yield found.store
    finally:
        found.store.close()


def count_again(transaction: Transaction) -> None:
    """What each organization holds, after rows were put in or deleted by hand."""
    for number in (1, 2):
        keep(transaction, number, counted(transaction, number))


class Counted(Snapshot):
    """A snapshot that counts the keys it steps over and the rows it reads."""

    def __init__(self, of: Snapshot) -> None:
        super().__init__(of.reader)
        self.touched: Counter[str] = Counter()

    def get(self, table: Any, *key: Any) -> Any:
        self.touched[table.name] += 1
        return super().get(table, *key)

    def scan_keys_reverse(self, table: Any, start: tuple[Any, ...], end: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        for key in super().scan_keys_reverse(table, start, end):
            self.touched[table.name] += 1
            yield key


def fits(listing: Listing, environment: str, given: Event) -> bool:
    return (
        given.environment == environment
        and listing.from_ms <= given.occurred_at_ms < listing.to_ms
        and listing.filters.visitor_id in (None, given.verdict.visitor_id)
        and listing.filters.level in (None, given.verdict.suspect_level)
    )


def test_a_page_is_what_a_look_at_every_event_says(tmp_path: Path):
    """Every filter, over windows whose ends are on events, between them and outside; many share a millisecond."""
    chance = random.Random(11)
    numbers = [chance.getrandbits(128) for _ in range(1500)]
    events = [
        (chance.choice((1, 2)), uuid(number), event(chance, EPOCH_MS + chance.randrange(60))) for number in numbers
    ]
    with filled_store(tmp_path, *events) as store, store.read() as snapshot:
        shown = 0
        for visitor_id in (None, *VISITORS[1:], "z" * 20):
            for level in (None, *LEVELS):
                for _ in range(6):
                    from_ms = EPOCH_MS + chance.randrange(-5, 60)
                    listing = Listing(
                        from_ms, from_ms + chance.randrange(1, 70), Filters(visitor_id=visitor_id, level=level),
                        chance.randrange(12), chance.randrange(1, 30),
                    )  # fmt: skip
                    organization, environment = chance.choice((1, 2)), chance.choice(ENVIRONMENTS)
                    expected = sorted(
                        (
                            EventMatch(request_id, given)
                            for number, request_id, given in events
                            if number == organization and fits(listing, environment, given)
                        ),
                        key=lambda found: (found.event.occurred_at_ms, found.request_id),
                        reverse=True,
                    )[listing.offset : listing.offset + listing.limit]
                    assert event_page(snapshot, organization, environment, listing).events == expected
                    shown += len(expected)
        assert shown > 200, "the listings were not all empty"
        assert list(violations(snapshot)) == []


def test_a_page_reads_the_keys_before_it_and_no_event_that_it_does_not_show(tmp_path: Path):
    chance = random.Random(12)
    events = [(1, uuid(number), event(chance, EPOCH_MS + number, environment="staging")) for number in range(3000)]
    with filled_store(tmp_path, *events) as store, store.read() as snapshot:
        for visitor_id, table in ((None, EVENTS_BY_LEVEL), (VISITORS[0], EVENTS_BY_VISITOR)):
            for level, streams in ((None, 4), ("high", 1)):
                for offset in (0, 100):
                    counted = Counted(snapshot)
                    listing = Listing(
                        EPOCH_MS, EPOCH_MS + 5000, Filters(visitor_id=visitor_id, level=level), offset, 20
                    )
                    assert len(event_page(counted, 1, "staging", listing).events) == 20
                    assert counted.touched[EVENTS.name] == 20
                    assert offset + 20 < counted.touched[table.name] <= offset + 20 + streams
                    assert set(counted.touched) == {EVENTS.name, table.name}


def test_what_nobody_has_is_looked_for_in_no_event(tmp_path: Path):
    chance = random.Random(13)
    events = [(1, uuid(number), event(chance, EPOCH_MS + number, suspect_level="low")) for number in range(500)]
    with filled_store(tmp_path, *events) as store, store.read() as snapshot:
        for organization, visitor_id, level in ((1, "z" * 20, None), (1, None, "high"), (2, None, None)):
            counted = Counted(snapshot)
            listing = Listing(EPOCH_MS, EPOCH_MS + 5000, Filters(visitor_id=visitor_id, level=level), 0, 20)
            assert event_page(counted, organization, "staging", listing) == ([], None)
            assert counted.touched == Counter()


def test_one_event_is_its_own_organizations_and_environments_for_30_days(tmp_path: Path):
    given = event(random.Random(1), EPOCH_MS, environment="staging")
    with filled_store(tmp_path, (1, uuid(7), given)) as store, store.read() as snapshot:
        last_ms = EPOCH_MS + RETENTION_MS
        assert event_by_request(snapshot, 1, "staging", uuid(7), last_ms) == given
        assert event_by_request(snapshot, 1, "staging", uuid(7), last_ms + 1) is None
        assert event_by_request(snapshot, 1, "production", uuid(7), EPOCH_MS) is None
        assert event_by_request(snapshot, 2, "staging", uuid(7), EPOCH_MS) is None
        assert event_by_request(snapshot, 1, "staging", uuid(8), EPOCH_MS) is None


GIVEN = event(
    random.Random(1), EPOCH_MS, environment="staging", visitor_id="a" * 20, suspect_level="high", tag="cart",
    ip_address="81.2.69.160", country_code="GB", visitor_kind="human", signals=fired("headless", "automation"),
)  # fmt: skip
KEYS = index_keys(1, uuid(7).bytes, GIVEN)


def test_the_bytes_of_the_index_keys_are_pinned():
    visitor, tail = "61" * 20, "0000019b76daa80000000000000000000000000000000007"
    keys = [(table.name, table.key.pack(*key).hex()) for table, key in index_keys(258, uuid(7).bytes, GIVEN)]
    assert keys == [
        ("events_by_level", "0000010201" + "03" + tail),
        ("events_by_visitor", "0000010201" + visitor + "03" + tail),
        ("events_by_facet", "0000010201" + "00" + "c200930b493ae896" + tail),
        ("events_by_facet", "0000010201" + "01" + "528546ab4ab80ee1" + tail),
        ("events_by_facet", "0000010201" + "02" + "29bd660e02bb9dd4" + tail),
        ("events_by_facet", "0000010201" + "03" + "bfef581a183ab598" + tail),
        ("events_by_facet", "0000010201" + "03" + "90ab2300494f82ee" + tail),
        ("events_by_facet", "0000010201" + "04" + "cbd332ae21717733" + tail),
    ]
    levels = [index_keys(1, b"", event(random.Random(1), 0, suspect_level=level))[0][1][2] for level in (None, *LEVELS)]
    assert levels == [0, 1, 2, 3]


REPORT = DeferredReport(signals=b"", sdk_platform=None, sdk_version=None, digest=b"d" * 16, received_at_ms=0)


@pytest.mark.parametrize(
    ("job", "sentences"),
    [
        (lambda txn: txn.delete(KEYS[0][0], *KEYS[0][1]), [f"request {uuid(7)} is not found in events_by_level"]),
        (lambda txn: txn.delete(KEYS[1][0], *KEYS[1][1]), [f"request {uuid(7)} is not found in events_by_visitor"]),
        (
            lambda txn: txn.put(EVENTS_BY_LEVEL, (1, 1, 2, EPOCH_MS, uuid(7).bytes), b""),
            [f"events_by_level has request {uuid(7)} where it does not belong"],
        ),
        (
            lambda txn: txn.delete(EVENTS, 1, uuid(7).bytes) and txn.delete(DOCUMENTS, 1, uuid(7).bytes),
            [
                *(f"{table.name} names request {uuid(7)}, which has no event" for table, _ in KEYS),
                "the counters of organization 1, staging, 2026-01-01T00:00:00.000Z are not what its events add up to",
            ],
        ),
        (
            lambda txn: txn.put(DEFERRED_REPORTS, (1, uuid(8).bytes), REPORT),
            [f"deferred report {uuid(8)} has no event"],
        ),
    ],
)
def test_an_index_that_is_wrong_is_told(tmp_path: Path, job: Callable[[Transaction], object], sentences: list[str]):
    with filled_store(tmp_path, (1, uuid(7), GIVEN)) as store:
        with store.read() as snapshot:
            assert list(violations(snapshot)) == []
        store.write_now([partial(job), count_again])
        with store.read() as snapshot:
            assert list(violations(snapshot)) == sentences
