"""One identification as a transaction: what it answers, writes and costs, and when it is the same again."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from svc.features.checks.invariants import violations
from svc.features.identification.transaction import Recorded, identify
from svc.features.tables import TABLES
from svc.features.weights.jobs import save_weights
from svc.identify.attestation.challenge import MAX_KEYS_OF_VISITOR, AttestedKey
from svc.identify.attestation.claim import Attestation
from svc.identify.identification import Identified, Submission, assess
from svc.identify.matching import Recognition, Statistics
from svc.identify.matching.blocks import exact_key, token_key
from svc.identify.matching.tokens import STRANGERS
from svc.identify.model import RequestFacts
from svc.identify.recording.proofs import keep_key
from svc.identify.recording.visitors import VisitorTables
from svc.identify.records import Event
from svc.identify.scoring.score import WeightsChange
from svc.identify.tables import (
    ATTESTED_KEYS,
    BLOCKS,
    DELETED_VISITORS,
    DOCUMENTS,
    EVENTS,
    VISITOR_COUNTS,
    VISITOR_IDS,
    VISITOR_KEYS,
    VISITORS,
    WEIGHTS_SNAPSHOTS,
)
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.tables import META
from svc.kernel.tenants import jobs as ledger
from svc.kernel.tenants.queries import balance
from svc.kernel.values.ids import first_id
from tests.store.test_identification_bounds import Counted
from tests.support.live import report
from tests.support.outbox import OutboxWorld, outbox_world
from tests.support.worlds import EPOCH_MS, Everywhere

DAY_MS = 86_400_000


class Shop:
    """One organization whose reports are recorded."""

    def __init__(self, world: OutboxWorld) -> None:
        self.world = world
        self.number = world.organization()
        self.statistics = Statistics()
        self._visits = 0

    def submission(self, signals: Any = None, **fields: Any) -> Submission:
        """From production, at the epoch, unless told otherwise."""
        self._visits += 1
        sent = report() if signals is None else signals
        given = {
            "request_id": UUID(bytes=first_id(EPOCH_MS + self._visits)),
            "new_visitor_id": f"{self._visits:020d}",
            "at_ms": EPOCH_MS,
            "organization": self.number,
            "key_id": "key_1",
            "touched_key": None,
            "environment": "production",
            "sdk_platform": "web",
            "sdk_version": "1.2.3",
            "origin": "https://shop.example",
            "tag": "a tag",
            "idempotency": None,
            "facts": RequestFacts(ip="81.2.69.160", user_agent=report()["userAgent"]),
            "signals": sent,
            "signals_json": msgspec.json.encode(sent),
        }
        return Submission(**given | fields)

    def visit(self, signals: Any = None, **fields: Any) -> Recorded:
        assessment = assess(self.submission(signals, **fields), Everywhere())
        recorded = self.world.do(partial(identify, assessment=assessment, statistics=self.statistics))
        if recorded.statistics_update is not None:
            self.statistics.learn(recorded.statistics_update)
        return recorded

    def visited(self, signals: Any = None, **fields: Any) -> Event:
        """The event that was recorded."""
        outcome = self.visit(signals, **fields).outcome
        assert isinstance(outcome, Identified)
        event = self.rows(EVENTS)[-1]
        assert event.verdict == outcome.verdict
        return event

    def credit(self, micros: int) -> None:
        entry_id = UUID(bytes=first_id(EPOCH_MS - 1))
        job = partial(ledger.add_credit, number=self.number, entry_id=entry_id, micros=micros, now_ms=0, note="")
        self.world.do(job)

    def balance(self) -> int:
        return self.world.read(partial(balance, number=self.number))

    def rows(self, table: Any) -> list[Any]:
        return self.world.read(lambda snapshot: [value for _, value in snapshot.scan(table)])

    def everything(self) -> dict[str, list[Any]]:
        with self.world.store.read() as snapshot:
            return {table.name: list(snapshot.scan(table)) for table in TABLES if table != META}


@pytest.fixture
def shop(tmp_path: Path) -> Generator[Shop]:
    with outbox_world(tmp_path) as world:
        yield Shop(world)


# Whose it is


def test_a_row_of_the_index_is_read_once(shop: Shop):
    """So that what one transaction sees of a visitor cannot cost more with each of its blocks."""
    shop.visited(environment="development")
    reads: list[str] = []

    class Noting(Transaction):
        def get(self, table: Any, *key: Any) -> Any:
            reads.append(table.name)
            return super().get(table, *key)

    def look(transaction: Transaction) -> None:
        index = VisitorTables(Noting(transaction.writer), shop.number)
        (key, block), *_ = [(key[1], value) for key, value in transaction.scan(BLOCKS, shop.number)]
        transaction.put(DELETED_VISITORS, (shop.number, 9), 1)
        for _ in range(2):
            assert index.block(key) == block
            assert index.visitor(1) == transaction.get(VISITORS, shop.number, 1)
            assert index.visitor(9) is None

    shop.world.do(look)
    assert sorted(reads) == ["blocks", "visitors", "visitors"]


# What is kept


def test_an_unnamed_sdk_is_of_the_web_and_unknown(shop: Shop):
    shop.visited(environment="development", sdk_platform=None, sdk_version=None)
    (event,) = shop.rows(EVENTS)
    (document,) = shop.rows(DOCUMENTS)
    assert (event.platform, event.sdk_platform, event.sdk_version) == ("web", "web", "unknown")
    assert (document.sdk_platform, document.sdk_version) == (None, None)


def test_the_effective_weights_are_stored_once_and_referenced_by_each_document(shop: Shop):
    for _ in range(2):
        shop.visited(environment="development")
    assert len(shop.rows(WEIGHTS_SNAPSHOTS)) == 1
    change = WeightsChange(threshold=33, weights={"automation": 77})
    shop.world.do(lambda transaction: save_weights(transaction, shop.number, None, "web", change, 0))
    signals = {**report(), "webdriver": True}
    shop.visited(signals, environment="development")
    documents = shop.rows(DOCUMENTS)
    assert [document.suspect_threshold for document in documents][-1] == 33
    assert len({document.weights_digest for document in documents}) == 2
    with shop.world.store.read() as snapshot:
        kept = snapshot.get(WEIGHTS_SNAPSHOTS, documents[-1].weights_digest)
    assert kept is not None
    assert kept.weights["automation"] == 77
    assert "automation" in documents[-1].evidence
    (*_, event) = shop.rows(EVENTS)
    assert ("bot", 77) in [(trigger.signal, trigger.weight) for trigger in event.verdict.triggers]
    assert event.visitor_kind == "automation"


def test_archived_data_is_at_most_a_third_of_the_submission(shop: Shop):
    signals = report() | {"fonts": [f"Font of the {place}th family" for place in range(150)]}
    shop.visited(signals, environment="development")
    (document,) = shop.rows(DOCUMENTS)
    assert len(document.signals) * 3 <= len(msgspec.json.encode(signals))


def test_of_two_devices_that_share_an_id_the_one_with_the_newer_token_gets_its_own(shop: Shop):
    """A copied profile: two stored tokens alternate, and with them the network. The older keeps the id; the other's
    next visit takes its token out of that record and says so, and nothing is left of it in any block of the older.
    """

    def visit(token: str, day: int, ip: str, **fields: Any) -> Event:
        signals = report(1) | {"client_token": token * 32} | fields
        facts = RequestFacts(ip=ip, user_agent=report()["userAgent"])
        return shop.visited(signals, environment="development", at_ms=EPOCH_MS + day * DAY_MS, facts=facts)

    home, away = "81.2.69.160", "203.0.113.9"
    first = visit("a", 0, home)
    assert visit("b", 1, home, client_token_is_new=True).verdict.visitor_id == first.verdict.visitor_id
    assert visit("b", 2, home).verdict.visitor_id == first.verdict.visitor_id
    with shop.world.store.read() as snapshot:
        standing = [key[1][:1] for key, block in snapshot.scan(BLOCKS, shop.number) if block.numbers]
    assert standing.count(b"T") == 2
    assert visit("a", 3, away).verdict.visitor_id == first.verdict.visitor_id
    assert [token.probation == STRANGERS for token in shop.rows(VISITORS)[0].tokens] == [True, False]
    assert [document.split_from for document in shop.rows(DOCUMENTS)] == [None] * 4
    apart = visit("b", 4, home)
    assert apart.verdict.visitor_is_new
    assert [document.split_from for document in shop.rows(DOCUMENTS)] == [None] * 4 + [1]
    ours, theirs = shop.rows(VISITORS)
    assert [len(visitor.tokens) for visitor in (ours, theirs)] == [1, 1]
    with shop.world.store.read() as snapshot:
        leads = {key[1]: block.numbers for key, block in snapshot.scan(BLOCKS, shop.number) if key[1][:1] == b"T"}
    assert leads == {token_key(ours.tokens[0].hash): (1,), token_key(theirs.tokens[0].hash): (2, 1)}
    assert visit("b", 5, away).verdict.visitor_id == apart.verdict.visitor_id
    assert visit("a", 6, home).verdict.visitor_id == first.verdict.visitor_id


def test_a_replayed_report_writes_no_visitor_and_is_no_fault_of_the_store(shop: Shop):
    """Its id is new where it is no known visitor's, and is not kept (decisions 3.5)."""
    known = report() | {"client_token": "k" * 32, "nonce": "n" * 16}
    shop.visited(known, environment="development")
    matching = (VISITORS, VISITOR_IDS, BLOCKS, VISITOR_COUNTS)
    before = {table.name: shop.everything()[table.name] for table in matching}
    owner = shop.rows(EVENTS)[0].verdict.visitor_id
    seen = [
        shop.visit(signals, environment="development", at_ms=EPOCH_MS + day * DAY_MS)
        for day, signals in enumerate([known, report(9) | {"nonce": "n" * 16}], start=1)
    ]
    assert {table.name: shop.everything()[table.name] for table in matching} == before
    assert [recorded.statistics_update for recorded in seen] == [None, None]
    verdicts = [event.verdict for event in shop.rows(EVENTS)[1:]]
    assert [(verdict.linkage, verdict.visitor_is_new) for verdict in verdicts] == [("token", False), ("replayed", True)]
    assert verdicts[0].visitor_id == owner != verdicts[1].visitor_id
    with shop.world.store.read() as snapshot:
        assert list(violations(snapshot)) == []


def test_an_attested_report_uses_up_its_challenge(shop: Shop):
    """The signal says what is wrong, here that nobody issued it; without an attestation there is none."""
    assessment = assess(shop.submission(environment="development"), Everywhere())
    attested = msgspec.structs.replace(assessment, attestation=Attestation(b"c" * 32, ()))
    shop.world.do(partial(identify, assessment=attested, statistics=shop.statistics))
    shop.visited(environment="development")
    told = [
        {"challenge_unknown"} & {item for items in document.evidence.values() for item in items}
        for document in shop.rows(DOCUMENTS)
    ]
    assert told == [{"challenge_unknown"}, set()]


def test_an_attested_key_costs_at_most_three_reads_and_four_writes(shop: Shop):
    """Also where it changes its visitor, and where the new one has as many keys as are kept."""

    def key(name: int, visitor_id: str) -> AttestedKey:
        return AttestedKey(bytes((name,)) * 65, "A1B2C3D4E5.com.example.shop", "production", 1, visitor_id, 5, 5)

    counted: list[tuple[int, int]] = []

    def keep(transaction: Transaction) -> None:
        owners: dict[int, str] = {}
        for name, owner in [(0, "a"), *((name, "b") for name in range(1, MAX_KEYS_OF_VISITOR + 1)), (0, "b"), (0, "b")]:
            counting = Counted(transaction)
            key_id, visitor_id = bytes((name,)) * 32, owner * 20
            before = counting.get(ATTESTED_KEYS, shop.number, key_id)
            assert (before and before.visitor_id) == owners.get(name)
            keep_key(counting, shop.number, key_id, key(name, visitor_id), before)
            owners[name] = visitor_id
            counted.append((counting.read.total(), counting.written.total()))

    shop.world.do(keep)
    assert counted[:2] == [(2, 2), (2, 2)]
    assert counted[-2:] == [(3, 4), (1, 1)]
    with shop.world.store.read() as snapshot:
        ((_, listed),) = snapshot.scan(VISITOR_KEYS)
        assert [key_id[0] for key_id in listed.key_ids] == [0, *range(MAX_KEYS_OF_VISITOR, 1, -1)]
        assert {key_id for (_, key_id), _ in snapshot.scan(ATTESTED_KEYS)} == set(listed.key_ids)


def test_a_block_that_lists_the_visitor_is_not_written_again(shop: Shop):
    shop.visited(environment="development")
    written: list[str] = []

    class Noting(Transaction):
        def put(self, table: Any, key: tuple[Any, ...], value: Any) -> int:
            written.append(table.name)
            return super().put(table, key, value)

    def post(transaction: Transaction) -> None:
        keys = [key[1] for key, _ in transaction.scan(BLOCKS, shop.number)]
        index = VisitorTables(Noting(transaction.writer), shop.number)
        index.apply(Recognition(number=1, postings=tuple((key, 1.0) for key in keys)), "0" * 20)
        assert written == []
        other = exact_key(5)
        index.apply(Recognition(number=1, postings=((other, 1.0),)), "0" * 20)
        assert written == ["blocks"]
        # What was changed is what is read from then on, in the same transaction too.
        assert index.block(other).numbers == (1,)
        index.apply(Recognition(number=1, postings=((other, 1.0),)), "0" * 20)
        assert written == ["blocks"]

    shop.world.do(post)


def test_stored_weights_are_not_written_again(shop: Shop):
    written: list[str] = []

    class Noting(Transaction):
        def put(self, table: Any, key: tuple[Any, ...], value: Any) -> int:
            written.append(table.name)
            return super().put(table, key, value)

    for _ in range(3):
        assessment = assess(shop.submission(environment="development"), Everywhere())
        shop.world.do(lambda txn, seen=assessment: identify(Noting(txn.writer), seen, shop.statistics))
    assert written.count("weights_snapshots") == 1
    assert written.count("documents") == 3
