"""What `svc check` says of history and of weights that do not belong to anybody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from svc.domain.history import VisitorHistory
from svc.domain.scoring import default_profile
from svc.domain.weights import StoredWeights, WeightsChange, changed
from svc.store.directory import open_directory
from svc.store.invariants import violations
from svc.store.snapshot import Transaction
from svc.store.tables import VISITOR_HISTORY, WEIGHTS
from svc.store.transactions.accounts import create_organization
from svc.store.transactions.weights import restore_weights, save_weights
from svc.world import World

STORED = changed(None, default_profile("web"), WeightsChange(threshold=5), "web", 5)
assert isinstance(STORED, StoredWeights)


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
        (lambda txn: txn.put(VISITOR_HISTORY, (1, 20454, 9), VisitorHistory()), "names visitor 9, who is not known"),
        (lambda txn: txn.put(WEIGHTS, (1, 0, "key_x"), STORED), "weights for key key_x, which is none of its SDK keys"),
        (lambda txn: txn.put(WEIGHTS, (1, 3, ""), STORED), "weights for platform 3, which does not exist"),
    ],
)
def test_what_belongs_to_nobody_is_told(tmp_path: Path, job: Callable[[Transaction], None], sentence: str):
    (violation,) = found_in(tmp_path, job)
    assert sentence in violation


def test_an_organizations_own_weights_break_nothing_and_leave_nothing_behind(tmp_path: Path):
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
