"""What `svc check` says where somebody is gone and not all of it, and of money whose records disagree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svc.features.erasure.tables import ERASED_EVENTS
from svc.features.erasure.unreadable import UnreadableRows
from svc.identify.matching import Block
from svc.identify.records import Idempotency
from svc.identify.tables import BLOCKS, DELETED_VISITORS, EVENTS, IDEMPOTENCY, VISITORS
from svc.kernel.store.schema.codec import CorruptionError, CorruptPageError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.billing import BillingChange
from svc.kernel.tenants.tables import BILLING_CHANGES, PAST_DUE
from tests.store.test_invariants import found_in

Job = Callable[[Transaction], None]
LOOKALIKES = Block(1.0, (7,))


def answered_by_nobody(transaction: Transaction) -> None:
    transaction.put(IDEMPOTENCY, (1, b"k" * 16), Idempotency(b"r" * 16, 5))


def names_somebody(transaction: Transaction) -> None:
    transaction.put(BLOCKS, (1, b"X12345678"), LOOKALIKES)


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (answered_by_nobody, "which has no event"),
        (names_somebody, "names visitor 7, who is not known"),
        (lambda txn: txn.put(PAST_DUE, (1,), 5), "its term of payment says otherwise"),
        (
            lambda txn: txn.put(BILLING_CHANGES, (1, b"c" * 16), BillingChange("free", "blocked", "operator", 5, "x")),
            "its changes of billing status say otherwise",
        ),
    ],
)
def test_an_inconsistency_is_reported(tmp_path: Path, job: Job, sentence: str):
    (violation,) = found_in(tmp_path, job)
    assert sentence in violation


def test_blocks_and_keys_may_refer_to_erased_visitors_and_events(tmp_path: Path):
    def departed(transaction: Transaction) -> None:
        transaction.put(DELETED_VISITORS, (1, 7), 5)
        transaction.put(ERASED_EVENTS, (1,), 1)

    assert found_in(tmp_path / "one", departed, names_somebody, answered_by_nobody) == []

    def another_key(transaction: Transaction) -> None:
        transaction.put(IDEMPOTENCY, (1, b"l" * 16), Idempotency(b"s" * 16, 5))

    (violation,) = found_in(tmp_path / "other", departed, answered_by_nobody, another_key)
    assert "which has no event" in violation


@pytest.mark.parametrize(("table", "error"), [(EVENTS, CorruptionError), (VISITORS, CorruptPageError)])
def test_an_erasure_does_not_go_past_an_event_or_a_page_as_past_other_corrupt_rows(
    table: Table[Any], error: type[CorruptionError]
):
    """Events are read past corruption by erasure itself, and behind a corrupt page nothing can be read any more."""
    found = UnreadableRows()
    with pytest.raises(error):
        found.note(table, b"key", error("a row fails its check"))
    assert found.left() == []
