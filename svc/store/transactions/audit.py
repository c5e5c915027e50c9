"""The audit log: a change and its record are one transaction. Nothing here alters a record or takes one away.

Only retention deletes records, when their 400 days are over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from svc.domain.access.audit import AuditRecord
from svc.store.schema.tables import AUDIT
from svc.store.snapshot import Transaction

T = TypeVar("T")


def audited(
    job: Callable[[Transaction], T], audit_id: UUID, record: Callable[[T], AuditRecord | None]
) -> Callable[[Transaction], T]:
    """A job that also writes the record which `record` makes of the outcome, in the same transaction; `None` = nothing
    was changed, so nothing is recorded.

    A change of several transactions, such as an erasure, is recorded with the first: later ones with its `audit_id` add
    nothing.
    """

    def recorded_job(transaction: Transaction) -> T:
        outcome = job(transaction)
        made = record(outcome)
        if made is not None and not transaction.has(AUDIT, made.organization, audit_id.bytes):
            transaction.put(AUDIT, (made.organization, audit_id.bytes), made)
        return outcome

    return recorded_job
