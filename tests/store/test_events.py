"""Events are found by their indexes, in bounded work, and `svc check` tells an index that is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from svc.features.checks.invariants import violations
from svc.features.organizations.jobs import create_organization
from svc.identify.events.listing import EVERYTHING, KINDS, LEVELS, Listing, Position
from svc.identify.index.digests import digests
from svc.identify.index.queries import Scope
from svc.identify.model import EventSignal, Verdict
from svc.identify.queries.events import EventPosition, event_by_request, put_event, read_all
from svc.identify.recording.visitors import counted
from svc.identify.records import RETENTION_MS, DeferredReport, Document, Event, WeightsSnapshot
from svc.identify.tables import DEFERRED_REPORTS, DOCUMENTS, EVENT_TAIL, EVENTS, WEIGHTS_SNAPSHOTS
from svc.kernel.store.directory import open_directory
from svc.kernel.store.postgresql.connection.wire import Result
from svc.kernel.store.postgresql.rows import Rows
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.store import Store
from svc.kernel.tenants.jobs import keep
from svc.kernel.values.fields import ENVIRONMENTS
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
        "decision": None,
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
        origin=None, country_name=None, asn=given.pop("asn", None), asn_name=None, anonymity_network=None, agent=None,
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


def fits(listing: Listing, environment: str, given: Event) -> bool:
    return (
        given.environment == environment
        and listing.from_ms <= given.occurred_at_ms < listing.to_ms
        and listing.filters.visitor_id in (None, given.verdict.visitor_id)
        and listing.filters.level in (None, given.verdict.suspect_level)
    )


def test_one_event_belongs_to_its_organization_and_environment_for_30_days(tmp_path: Path):
    given = event(random.Random(1), EPOCH_MS, environment="staging")
    with filled_store(tmp_path, (1, uuid(7), given)) as store, store.read() as snapshot:
        last_ms = EPOCH_MS + RETENTION_MS
        assert event_by_request(snapshot, 1, "staging", uuid(7), last_ms, RETENTION_MS) == given
        assert event_by_request(snapshot, 1, "staging", uuid(7), last_ms + 1, RETENTION_MS) is None
        assert event_by_request(snapshot, 1, "production", uuid(7), EPOCH_MS, RETENTION_MS) is None
        assert event_by_request(snapshot, 2, "staging", uuid(7), EPOCH_MS, RETENTION_MS) is None
        assert event_by_request(snapshot, 1, "staging", uuid(8), EPOCH_MS, RETENTION_MS) is None


GIVEN = event(
    random.Random(1), EPOCH_MS, environment="staging", visitor_id="a" * 20, suspect_level="high", tag="cart",
    ip_address="81.2.69.160", country_code="GB", visitor_kind="human", signals=fired("headless", "automation"),
)  # fmt: skip
KEY = (1, 1, EPOCH_MS, uuid(7).bytes)


def test_the_index_is_asked_for_an_event_that_is_gone_and_not_for_one_that_was_not_fetched_yet():
    """A database runs a read over missing rows first: to guess why they are missing cost most of a list."""
    rows, at = Rows(), EPOCH_MS
    place = EventPosition(Scope(1, 0), Position(at, UUID(int=7).bytes))
    asks: list[Callable[[], object]] = [
        lambda: read_all(Snapshot(rows), [place, place], EVERYTHING),
        lambda: event_by_request(Snapshot(rows), 1, "production", UUID(int=7), at, at),
    ]
    for ask in asks:
        rows = Rows()
        ask()
        (asked,) = rows.fetches()
        assert b'svc."events"' in asked.sql
        rows.take([Result([], 0)])
        ask()
        assert any(b"event_tail" in asked.sql for asked in rows.fetches())


def test_the_bytes_of_the_index_are_pinned():
    key = EVENT_TAIL.key.pack(258, *KEY[1:])
    assert key.hex() == "0000010201" + "0000019b76daa80000000000000000000000000000000007"
    assert digests(GIVEN).pack().hex() == PINNED
    given = [event(random.Random(1), 0, suspect_level=level) for level in (None, *LEVELS)]
    assert len({digests(one) for one in given}) == 4


PINNED = (
    "41f17de4fcdd6008"
    "e935f843bde27808"
    "b810a6b06c909232"
    "34ae42682941ff42"
    "3530f64791e6d678"
    "c65499bd52c71c89"
    "99af558a90b5e2a8"
    "2dce62b8a44bf6d7"
)
"""The digests of `GIVEN`, in ascending order."""


REPORT = DeferredReport(signals=b"", sdk_platform=None, sdk_version=None, digest=b"d" * 16, received_at_ms=0)


@pytest.mark.parametrize(
    ("job", "sentences"),
    [
        (lambda txn: txn.delete(EVENT_TAIL, *KEY), [f"request {uuid(7)} is not found in the index"]),
        (
            lambda txn: txn.put(EVENT_TAIL, (1, 1, EPOCH_MS + 1, uuid(7).bytes), digests(GIVEN)),
            [f"event_tail has request {uuid(7)} where it does not belong"],
        ),
        (
            lambda txn: txn.put(EVENT_TAIL, KEY, digests(event(random.Random(2), EPOCH_MS))),
            [f"event_tail has request {uuid(7)} under other values than it has"],
        ),
        (
            lambda txn: txn.delete(EVENTS, 1, uuid(7).bytes) and txn.delete(DOCUMENTS, 1, uuid(7).bytes),
            [
                (
                    f"event_tail names request {uuid(7)}, which has no event; "
                    f"`svc store quarantine {uuid(7)}` takes it out"
                ),
                "the counters of organization 1, staging, 2026-01-01T00:00:00.000Z are not what its events add up to",
            ],
        ),
        (
            lambda txn: txn.put(DEFERRED_REPORTS, (1, uuid(8).bytes), REPORT),
            [f"deferred report {uuid(8)} has no event"],
        ),
    ],
)
def test_a_wrong_index_is_reported(tmp_path: Path, job: Callable[[Transaction], object], sentences: list[str]):
    with filled_store(tmp_path, (1, uuid(7), GIVEN)) as store:
        with store.read() as snapshot:
            assert list(violations(snapshot)) == []
        store.write_now([partial(job), count_again])
        with store.read() as snapshot:
            assert list(violations(snapshot)) == sentences
