"""The audit record of a change, in the transaction of the change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from svc.kernel.access.audit import AuditRecord
from svc.kernel.access.tables import AUDIT
from svc.kernel.store.snapshot import Transaction

T = TypeVar("T")


def audited(
    job: Callable[[Transaction], T], audit_id: UUID, record: Callable[[T], AuditRecord | None]
) -> Callable[[Transaction], T]:
    """Return a job that runs `job` and, in the same transaction, writes the audit record that `record` makes of its
    outcome; nothing is written if `record` returns `None`, since nothing was changed. A change of several transactions,
    such as an erasure, is recorded once, with the first: later ones with its `audit_id` add nothing.
    """

    def recorded_job(transaction: Transaction) -> T:
        outcome = job(transaction)
        made = record(outcome)
        if made is not None and not transaction.has(AUDIT, made.organization, audit_id.bytes):
            transaction.put(AUDIT, (made.organization, audit_id.bytes), made)
        return outcome

    return recorded_job
