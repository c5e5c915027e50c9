"""What `svc check` says of history and of weights that do not belong to anybody."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

import svc
from bench.retention import Months
from svc.features.checks.invariants import repeated, violations
from svc.features.lists.jobs import remove_entries
from svc.features.lists.lists import Listed, Listing
from svc.features.lists.tables import FILLED_LISTS, LISTED, LISTS
from svc.features.organizations.jobs import create_organization
from svc.features.registry import FEATURES
from svc.features.tables import TABLES
from svc.features.weights.jobs import restore_weights, save_weights
from svc.identify.attestation.challenge import AttestedKey, VisitorKeys
from svc.identify.history.evidence import VisitorPlaces
from svc.identify.matching import EMPTY_BLOCK
from svc.identify.matching.blocks import token_key
from svc.identify.matching.tokens import DEVICE, STRANGERS, UNKNOWN_ORIGIN, Token
from svc.identify.scoring.score import StoredWeights, WeightsChange, changed, default_profile
from svc.identify.tables import (
    ATTESTED_KEYS,
    BLOCKS,
    DELETED_VISITORS,
    DOCUMENTS,
    ERASURES,
    EVENT_TAIL,
    EVENTS,
    IDEMPOTENCY,
    VISITOR_COUNTS,
    VISITOR_IDS,
    VISITOR_KEYS,
    VISITOR_PLACES,
    VISITORS,
    WEIGHTS,
)
from svc.kernel.limits.quotas import ActiveKeys
from svc.kernel.store.directory import open_directory
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import Steps
from svc.kernel.store.store import Store
from svc.kernel.tenants.tables import BALANCES, HOLDINGS, LEDGER, ORGANIZATION_IDS, ORGANIZATIONS
from svc.world import World
from tests.store.release import RELEASED, unpack
from tests.support.backup import put
from tests.support.live import opened

STORED = changed(None, default_profile("web"), WeightsChange(threshold=5), "web", 5)
assert isinstance(STORED, StoredWeights)
ATTESTED = AttestedKey(bytes(65), "A1B2C3D4E5.com.example.shop", "production", 1, "v" * 20, 5, 5)


def found_in(directory: Path, *jobs: Callable[[Transaction], object]) -> list[str]:
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy, durable=False, map_bytes=16 << 20)

    def prepare(transaction: Transaction) -> None:
        create_organization(transaction, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)

    assert not any(isinstance(outcome, Exception) for outcome in found.store.write_now([prepare, *jobs]))
    with found.store.read() as snapshot:
        broken = list(violations(snapshot))
    found.store.close()
    return broken


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (lambda txn: txn.put(VISITOR_PLACES, (1, 9), VisitorPlaces()), "of visitor 9 of organization 1, who is"),
        (lambda txn: txn.put(WEIGHTS, (1, 0, "key_x"), STORED), "weights for key key_x, which is none of its SDK keys"),
        (lambda txn: txn.put(WEIGHTS, (1, 3, ""), STORED), "weights for platform 3, which does not exist"),
        (lambda txn: txn.put(ATTESTED_KEYS, (1, b"k" * 32), ATTESTED), "is not listed with its visitor"),
        (lambda txn: txn.put(VISITOR_KEYS, (1, b"v" * 20), VisitorKeys((b"k" * 32,))), "which is not a key of it"),
    ],
)
def test_orphaned_rows_are_reported(tmp_path: Path, job: Callable[[Transaction], None], sentence: str):
    (violation,) = found_in(tmp_path, job)
    assert sentence in violation


def test_weights_of_an_organization_violate_no_rule_and_leave_nothing_behind(tmp_path: Path):
    seen: list[int] = []

    def save(transaction: Transaction) -> None:
        save_weights(transaction, 1, None, "android", WeightsChange(threshold=9), 5)
        seen.append(transaction.count(WEIGHTS))

    def restore_twice(transaction: Transaction) -> None:
        assert restore_weights(transaction, 1, None, "android") is None
        assert restore_weights(transaction, 1, None, "android") is None
        seen.append(transaction.count(WEIGHTS))

    assert found_in(tmp_path / "saved", save) == []
    assert found_in(tmp_path / "restored", save, restore_twice) == []
    assert seen == [1, 1, 0]


class Heard(Steps):
    def __init__(self) -> None:
        self.stages: list[list[Any]] = []

    def stage(self, label: str, length: int) -> None:
        self.stages.append([label, length, 0])

    def step(self, count: int) -> None:
        self.stages[-1][2] += count


@pytest.mark.slow
def test_progress_is_measured_by_rows_counted_in_advance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A rule that reads more or fewer tables than it says would leave the bar short, or run past its end."""
    monkeypatch.setattr("svc.kernel.store.snapshot.ROWS_REPORTED", 1)
    months, heard = Months(tmp_path, visits_an_hour=1), Heard()
    for _ in range(40):
        months.visit()
    with months.found.store.read() as snapshot:
        assert list(violations(snapshot, heard)) == []
    months.found.store.close()
    assert [label for label, *_ in heard.stages] == ["reading every row", "checking the rules"]
    for _, length, told in heard.stages:
        assert length == told > 300


def test_duplicate_ids_are_found_in_any_number_of_runs(tmp_path: Path):
    chance = random.Random(3)
    ids = [chance.randbytes(16) for _ in range(500)]
    again = sorted([ids[3], ids[77], ids[77], ids[499]])
    mixed = ids + again
    chance.shuffle(mixed)
    for ids_a_run in (1, 7, 100, 504, 10_000):
        assert list(repeated(iter(mixed), ids_a_run)) == again
    assert list(repeated([])) == []


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> Generator[Store]:
    """A store with some identifications in it. What a test does to it is undone."""
    months = Months(tmp_path_factory.mktemp("traffic"), visits_an_hour=1, devices=5)
    for _ in range(20):
        months.visit()
    yield months.found.store
    months.found.store.close()


UNTOLD = {
    "audit",
    "browser_keys",
    "challenges",
    "console_links",
    "event_changes",
    "feed_closed",
    "idempotency",
    "invitations",
    "last_looks",
    "meta",
    "origin_history",
    "origin_proofs",
    "retention_passes",
    "rule_proposals",
    "sendings",
    "sessions",
    "statistics",
    "subject_notes",
    "visitor_places",
    "webhook_attempt_counts",
    "webhook_endpoint_health",
    "weights",
}
"""Tables of which no row of another table says what they hold, beside those of a feature that has no other table or
checks none.
"""


def _unchecked() -> Iterator[str]:
    for feature in FEATURES:
        values = (value for module in feature.modules("tables") for value in vars(module).values())
        names = [value.name for value in values if isinstance(value, Table)]
        if feature.package.startswith("svc.features.") and (len(names) == 1 or not feature.invariants):
            yield from names


UNCHECKED = {*_unchecked()}


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> Generator[Store]:
    """The store of this release, in which a service has done something of everything."""
    directory, _ = unpack(RELEASED / f"{svc.__version__}.tar.xz", tmp_path_factory.mktemp("toured"))
    store = opened(directory).store
    yield store
    store.close()


class Undone(Exception):  # noqa: N818  a way out rather than a mistake
    pass


def broken_by(store: Store, job: Callable[[Transaction], object]) -> list[str]:
    """What is violated after the job."""
    told: list[str] = []

    def look(transaction: Transaction) -> None:
        job(transaction)
        told.extend(violations(transaction))
        raise Undone

    (outcome,) = store.write_now([look])
    assert isinstance(outcome, Undone), outcome
    return told


def first(transaction: Transaction, table: Table[Any], place: int = 0) -> tuple[tuple[Any, ...], Any]:
    return next(islice(transaction.scan(table), place, None))


def drop(table: Table[Any]) -> Callable[[Transaction], object]:
    return lambda txn: txn.delete(table, *first(txn, table)[0])


def change(table: Table[Any], **fields: Any) -> Callable[[Transaction], object]:
    def job(transaction: Transaction) -> None:
        key, row = first(transaction, table)
        transaction.put(table, key, msgspec.structs.replace(row, **fields))

    return job


def stranger(transaction: Transaction) -> None:
    key, event = first(transaction, EVENTS)
    verdict = msgspec.structs.replace(event.verdict, visitor_id="0" * 20)
    transaction.put(EVENTS, key, msgspec.structs.replace(event, verdict=verdict))


def twice(transaction: Transaction) -> None:
    key, row = first(transaction, IDEMPOTENCY)
    transaction.put(IDEMPOTENCY, (key[0], b"another digest.."), row)


def departed(transaction: Transaction) -> None:
    (number, visitor_number), _ = first(transaction, VISITORS)
    transaction.put(DELETED_VISITORS, (number, visitor_number), 5)


def stray(transaction: Transaction) -> None:
    key, row = first(transaction, EVENT_TAIL)
    transaction.put(EVENT_TAIL, (*key[:2], key[2] + 1, key[3]), row)


def split_from(visitor: int, *, is_new: bool = True) -> Callable[[Transaction], object]:
    """Of an event whose visitor was known or new."""

    def job(transaction: Transaction) -> None:
        key, _ = next(row for row in transaction.scan(EVENTS) if row[1].verdict.visitor_is_new is is_new)
        document = transaction.get(DOCUMENTS, *key)
        assert document is not None
        transaction.put(DOCUMENTS, key, msgspec.structs.replace(document, split_from=visitor))

    return job


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (put(BALANCES, 1, value=5), "organization 1 has a balance of 5 micros, its ledger sums to"),
        (drop(ORGANIZATION_IDS), "organization 1 is not found by its id org_x"),
        (
            change(ORGANIZATIONS, billing_status="blocked"),
            "organization 1 is blocked, its changes of billing status say",
        ),
        (change(ORGANIZATIONS, billing_status="past_due"), "organization 1 is past_due, its term of payment says"),
        (change(EVENTS, price_micros=1), "cost 1 and was charged"),
        (stranger, "names the visitor 00000000000000000000, who is not known"),
        (drop(EVENTS), "has no event"),
        (drop(DOCUMENTS), "has no document"),
        (change(DOCUMENTS, weights_digest=b"x" * 16), "was scored with weights that are not kept"),
        (drop(EVENT_TAIL), "is not found in the index"),
        (stray, "event_tail has request"),
        (twice, "belongs to two idempotency keys"),
        (change(IDEMPOTENCY, request_id=b"x" * 16), "an idempotency key leads to request"),
        (drop(VISITORS), "leads to no visitor"),
        (drop(VISITOR_IDS), "is not found by its id"),
        (put(VISITOR_IDS, 1, b"x" * 20, value=1), "the visitor id xxxxxxxxxxxxxxxxxxxx leads to visitor"),
        (put(VISITOR_COUNTS, 1, value=0), "is beyond the 0 numbers taken"),
        (departed, "is gone and known"),
        (split_from(999), "was split from visitor 999, a number that is not taken"),
        (split_from(1, is_new=False), "was split from a visitor and names one that was known"),
        (change(ORGANIZATIONS, filled_lists=("vip",)), "says that the list vip has entries, which it does not have"),
        (change(HOLDINGS, active_keys=ActiveKeys(7)), "active keys, its count says 7"),
        (change(HOLDINGS, active_keys=ActiveKeys(1, (5,))), "active keys, its count says 2"),
        (put(BLOCKS, 1, b"123456789", value=EMPTY_BLOCK.with_posting(999, 1)), "names visitor 999, who is not known"),
    ],
)
def test_each_violation_is_named(traffic: Store, job: Callable[[Transaction], object], sentence: str):
    assert broken_by(traffic, lambda txn: None) == []
    assert any(sentence in violation for violation in broken_by(traffic, job))


def test_a_list_with_entries_that_its_organization_does_not_name_is_a_violation(toured: Store):
    """One without entries may be named: it costs a read."""

    def empties(transaction: Transaction) -> None:
        (number, name), found = first(transaction, LISTS)
        described = transaction.get(FILLED_LISTS, number)
        assert transaction.get(ORGANIZATIONS, number).filled_lists == described.names == (name,)
        remove_entries(transaction, number, found.id, ["203.0.113.0/24"], 0)
        owner = transaction.get(ORGANIZATIONS, number)
        assert owner.filled_lists == ()
        assert transaction.get(FILLED_LISTS, number) is None
        transaction.put(ORGANIZATIONS, (number,), msgspec.structs.replace(owner, filled_lists=(name,)))
        transaction.put(FILLED_LISTS, (number,), described)

    unnamed, others = broken_by(toured, change(ORGANIZATIONS, filled_lists=()))
    assert "has entries, organization 1 does not say so" in unnamed
    assert others == "the lists with entries of organization 1 are not those that its row names"
    assert broken_by(toured, empties) == []


def test_what_rules_read_of_lists_is_compared_with_them(toured: Store):
    with toured.read() as snapshot:
        told = snapshot.get(FILLED_LISTS, 1)
    assert told is not None
    (list_of,) = told.lists
    another = msgspec.structs.replace(list_of, kind="tag")
    (violation,) = broken_by(toured, change(FILLED_LISTS, lists=(another,)))
    assert violation.endswith("of organization 1 is not what rules read of it")
    (violation,) = broken_by(toured, drop(LISTED))
    assert violation.endswith("is not found by its value")
    (violation,) = broken_by(toured, put(LISTED, 1, "stray", value=Listed((Listing(list_of.raw_id, None),))))
    assert violation == "a value of organization 1 is said to be in a list that does not have it so"


SITE = 77


def own(hash_: int, **fields: Any) -> Token:
    return Token(**{"hash": hash_, "origin": SITE, "first_s": 5, "last_s": 9, "came_back": True, **fields})


def having(*tokens_of: tuple[Token, ...], posted: bool = True) -> Callable[[Transaction], object]:
    """The first visitors have these tokens, and stand in the blocks of them."""

    def job(transaction: Transaction) -> None:
        rows = list(islice(transaction.scan(VISITORS), len(tokens_of)))
        for (key, visitor), tokens in zip(rows, tokens_of, strict=True):
            transaction.put(VISITORS, key, msgspec.structs.replace(visitor, tokens=tokens))
            for token in tokens if posted else ():
                place = (key[0], token_key(token.hash))
                block = transaction.get(BLOCKS, *place) or EMPTY_BLOCK
                transaction.put(BLOCKS, place, block.with_posting(key[1], 1.0))

    return job


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (having((own(2),), posted=False), "is not found by a token that it has"),
        (having((own(2), own(4, origin=5))), None),
        (having((own(2, probation=STRANGERS),), posted=False), None),
        (having((own(2),), (own(2),)), "have a token of one browser"),
        (having((own(2),), (own(2, probation=1),)), None),
        (having((own(2),), (own(2, probation=STRANGERS),)), None),
        (having((own(2),), (own(2, origin=UNKNOWN_ORIGIN),)), None),
        (having((own(2),), (own(2), own(6, origin=DEVICE))), None),
        (having((own(2), own(2))), "has a token twice"),
        (having(tuple(own(2 * hash_) for hash_ in range(1, 14))), "has 13 tokens, of which 12 are kept"),
        (having((own(2, probation=9),)), "has a token on probation for longer than any is"),
        (having((own(2, origin=DEVICE), own(4, origin=DEVICE))), "has two device ids"),
        (having((own(2, origin=DEVICE, key=5, key_s=5),)), "has a device id that is treated as a token"),
    ],
)
def test_a_token_leads_to_its_visitor_and_is_one_browsers(
    traffic: Store, job: Callable[[Transaction], object], sentence: str | None
):
    told = broken_by(traffic, job)
    assert [sentence for violation in told if sentence is not None and sentence in violation] == (
        [] if sentence is None else [sentence]
    )
    assert len(told) == (sentence is not None), told


def test_a_visitor_that_is_being_erased_may_have_left_the_blocks_of_its_tokens(traffic: Store):
    def job(transaction: Transaction) -> None:
        having((own(2),), posted=False)(transaction)
        _, visitor = first(transaction, VISITORS)
        transaction.put(ERASURES, (1, visitor.visitor_id.encode()), 5)

    assert broken_by(traffic, job) == []


def test_a_production_event_without_its_ledger_line_is_named(traffic: Store):
    def job(transaction: Transaction) -> None:
        raw_id = first(transaction, EVENTS)[0][1]
        transaction.delete(LEDGER, 1, raw_id)

    ledger, unpaid = broken_by(traffic, job)
    assert "its ledger sums to" in ledger
    assert "is production traffic and not on the ledger" in unpaid


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_rows_that_are_not_there_any_more_are_named(toured: Store, table: Table[Any]):
    """Decisions 17.5: who is shown that something is not there may be wrong, and the check says so."""
    gone: list[bytes] = []

    def hide(transaction: Transaction) -> None:
        gone.extend(key for key, _ in transaction.unchecked(table, b""))
        for key in gone:
            transaction.writer.delete(table.name, key)

    try:
        told = broken_by(toured, hide)
    except AssertionError as error:  # the check itself met what is not there
        told = [str(error)]
    assert bool(told) == (bool(gone) and table.name not in UNTOLD | UNCHECKED), told


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_row_under_a_key_with_a_flipped_bit_is_named(toured: Store, table: Table[Any]):
    """Of every table: a row has a checksum over its key."""

    def flip(transaction: Transaction) -> None:
        for key, raw in list(transaction.unchecked(table, b""))[:1]:
            transaction.writer.delete(table.name, key)
            transaction.writer.put(table.name, key[:-1] + bytes([key[-1] ^ 1]), raw)

    with toured.read() as snapshot:
        has_rows = snapshot.count(table) > 0
    told = broken_by(toured, flip)
    assert bool(told) == has_rows
    assert all(table.name in sentence for sentence in told)
