"""The audit log in the store: one record with each change, never another, and how it is read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from svc.features.audit.queries import Sought, newest
from svc.features.contracts.cleanup import ROWS_OF_ONE
from svc.features.organizations.jobs import create_organization
from svc.features.retention.jobs import expired_by_key
from svc.kernel.access.audit import AUDIT_MS, Actor, AuditRecord
from svc.kernel.access.jobs import audited
from svc.kernel.access.tables import AUDIT
from svc.kernel.store.directory import open_directory
from svc.kernel.store.schema.codec import Record
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import items_of_step
from svc.kernel.store.store import Store
from svc.kernel.tenants.tables import PAST_DUE
from svc.kernel.values.ids import first_id
from svc.world import World
from tests.store.test_invariants import found_in
from tests.support.worlds import EPOCH_MS

ROOT = Path(__file__).parents[2]
KEY = Actor(kind="management_key", id="key_x", name="robot", role="admin", place="203.0.113.7")
RECORD = AuditRecord(
    at_ms=EPOCH_MS, actor=KEY, action="issueSdkKey", organization=1, subject="key_y", change={"name": "shop"}
)
_places = count()


def made_at(at_ms: int) -> UUID:
    """An id of this time, after all others of it."""
    return UUID(int=(at_ms << 80) + next(_places))


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    world = World.real()
    found = open_directory(tmp_path, world.run_sync, world.entropy, durable=False, map_bytes=16 << 20)

    def prepare(transaction: Transaction) -> None:
        for name in ("a", "b", "c"):
            create_organization(transaction, organization_id=name, name=name, now_ms=0, rate_limit_per_s=0)

    found.store.write_now([prepare])
    yield found.store
    found.store.close()


def put(store: Store, at_ms: int, **fields: Any) -> UUID:
    """One more record of this time; its id."""
    made = msgspec.structs.replace(RECORD, at_ms=at_ms, **fields)
    audit_id = made_at(at_ms)
    assert store.write_now([audited(lambda _: None, audit_id, lambda _: made)]) == [None]
    return audit_id


def records(store: Store, limit: int = 999, **sought: Any) -> list[UUID]:
    with store.read() as snapshot:
        return [found.id for found in newest(snapshot, Sought(**sought), limit)]


def change(transaction: Transaction) -> str:
    transaction.put(PAST_DUE, (1,), 5)
    return "changed"


def test_a_change_and_its_record_are_one_transaction(store: Store):
    audit_id = made_at(EPOCH_MS)
    assert store.write_now([audited(change, audit_id, lambda _: RECORD)]) == ["changed"]
    with store.read() as snapshot:
        assert snapshot.has(PAST_DUE, 1)
        assert list(snapshot.scan(AUDIT)) == [((1, audit_id.bytes), RECORD)]


def test_a_job_that_raises_leaves_neither_a_change_nor_a_record(store: Store):
    def fail(transaction: Transaction) -> None:
        change(transaction)
        raise LookupError("it may not")

    (outcome,) = store.write_now([audited(fail, made_at(EPOCH_MS), lambda _: RECORD)])
    assert isinstance(outcome, LookupError)
    with store.read() as snapshot:
        assert (snapshot.count(PAST_DUE), snapshot.count(AUDIT)) == (0, 0)


def test_a_failing_record_rolls_back_its_change(store: Store):
    """There is no change without a record."""

    def broken(_: object) -> AuditRecord:
        raise ValueError("no record")

    (outcome,) = store.write_now([audited(change, made_at(EPOCH_MS), broken)])
    assert isinstance(outcome, ValueError)
    with store.read() as snapshot:
        assert (snapshot.count(PAST_DUE), snapshot.count(AUDIT)) == (0, 0)


def test_without_a_change_nothing_is_recorded(store: Store):
    assert store.write_now([audited(lambda _: "no", made_at(EPOCH_MS), lambda _: None)]) == ["no"]
    assert records(store) == []


def test_an_existing_record_is_never_replaced(store: Store):
    audit_id = made_at(EPOCH_MS)
    later = msgspec.structs.replace(RECORD, subject="key_z")
    store.write_now([audited(change, audit_id, lambda _, made=made: made) for made in (RECORD, later)])
    with store.read() as snapshot:
        assert [record for _, record in snapshot.scan(AUDIT)] == [RECORD]


def test_within_a_millisecond_the_order_is_that_of_the_ids(store: Store):
    made = [put(store, EPOCH_MS, organization=place % 2 + 1) for place in range(6)]
    assert records(store) == made[::-1]


def test_only_expired_records_are_deleted_and_in_bounded_steps(store: Store):
    kept = [put(store, EPOCH_MS + 1), put(store, EPOCH_MS), put(store, EPOCH_MS - 1, organization=2)]

    def many(transaction: Transaction) -> None:
        for _ in range(items_of_step(ROWS_OF_ONE) + 1):
            audited(lambda _: None, made_at(EPOCH_MS - 1), lambda _: RECORD)(transaction)

    store.write_now([many])
    with store.read() as snapshot:
        (cleanup,) = expired_by_key(snapshot, 1, EPOCH_MS + AUDIT_MS)
    left: list[int] = []
    for _ in range(2):
        store.write_now([partial(cleanup.step, cleanup.start)])
        left.append(len(records(store)))
    assert left == [len(kept) + 1, len(kept)]
    assert records(store) == kept


@pytest.mark.parametrize(
    ("place", "record", "sentence"),
    [
        (
            (1, first_id(EPOCH_MS)),
            msgspec.structs.replace(RECORD, organization=2),
            "is of organization 2 and lies with",
        ),
        ((7, first_id(EPOCH_MS)), msgspec.structs.replace(RECORD, organization=7), "organization 7, which does not ex"),
        ((1, first_id(EPOCH_MS - 1)), RECORD, "has an id from before its own time"),
    ],
)
def test_a_misplaced_record_is_reported(tmp_path: Path, place: tuple[int, bytes], record: AuditRecord, sentence: str):
    def misplace(transaction: Transaction) -> None:
        transaction.put(AUDIT, place, record)

    (violation,) = found_in(tmp_path, misplace)
    assert sentence in violation


def test_an_id_ahead_of_a_clock_set_back_is_harmless(tmp_path: Path):
    ahead: Callable[[Transaction], None] = lambda txn: txn.put(AUDIT, (1, first_id(EPOCH_MS + 10**9)), RECORD)  # noqa: E731
    assert found_in(tmp_path, ahead) == []


def test_the_bytes_of_a_record_are_pinned():
    record = Record(AuditRecord)
    raw = record.encode(RECORD)
    assert raw.hex() == (
        "861b0000019b76daa800"  # at_ms
        "856e6d616e6167656d656e745f6b6579656b65795f7865726f626f746561646d696e6b3230332e302e3131332e37"
        "6b697373756553646b4b657901656b65795f79a1646e616d656473686f70"
    )
    assert record.decode(raw) == RECORD


@pytest.mark.slow
def test_the_log_is_written_and_deleted_in_one_place_each():
    """Append-only: every module that names the table is named here. Retention ages it as it is declared (`tables`)."""
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "svc").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and "AUDIT" in {alias.name for alias in node.names}
    }
    assert naming == {
        "svc/kernel/access/jobs.py",
        "svc/features/audit/queries.py",
        "svc/features/checks/invariants.py",
    }
