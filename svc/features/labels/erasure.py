"""Counts of labels of a visitor, and the number by which outcomes know an account."""

from __future__ import annotations

from svc.features.contracts.erased import Erased, Forgetting, Keys
from svc.features.labels.jobs import forget_account_number, forget_labels
from svc.features.labels.queries import account_number
from svc.features.labels.tables import ACCOUNT_NUMBERS, NUMBERED_ACCOUNTS, SUBJECT_LABELS
from svc.identify.model import SUBJECTS, Subject
from svc.identify.velocity.counts import KINDS, account_digest
from svc.kernel.store.snapshot import Snapshot, Transaction


def _has_number(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> bool:
    return subject == "account" and bool(account_number(snapshot, number, subject_id))


def _forget_account(transaction: Transaction, number: int, subject: Subject, subject_id: str) -> bool:
    is_known = _has_number(transaction, number, subject, subject_id)
    if is_known:
        forget_account_number(transaction, number, account_digest(number, subject_id))
    return is_known


def _forget_visitor(transaction: Transaction, number: int, visitor_number: int) -> None:
    forget_labels(transaction, number, "visitor", visitor_number)


def _of_visitor(_: Snapshot, number: int, visitor: int, _id: bytes) -> Keys:
    for kind in range(len(KINDS)):
        yield SUBJECT_LABELS, (number, kind, SUBJECTS.index("visitor"), visitor)


ERASED = {"forget_labels": Erased((SUBJECT_LABELS, ACCOUNT_NUMBERS, NUMBERED_ACCOUNTS), of_visitor=_of_visitor)}
FORGET = Forgetting(is_known=_has_number, at_once=_forget_account, visitor=_forget_visitor)
