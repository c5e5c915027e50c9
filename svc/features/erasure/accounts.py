"""Erasure of an account: its id leaves events, counts and queued webhooks; the events stay (decisions 11.6).

An account is erased in steps, since it may have any number of events. The first one leaves a row in `account_erasures`,
so that retention ends what an interruption has begun; the last one, which finds no event of the account any more,
deletes what counts it and that row, and then its id is taken out of notes (`texts`). What arrives for the account
meanwhile is erased, too.

What stays is the audit record that names the account as erased. A row of velocity whose events are gone by age may have
its digest until that row is gone, too; it leads to nobody.
"""

from __future__ import annotations

from itertools import islice
from typing import Final
from uuid import UUID

import msgspec

from svc.features.contracts.erased import Keys
from svc.features.erasure.policies import forgetting, purge_subject, rows_by_subject
from svc.features.erasure.texts import begin_texts, continue_texts
from svc.identify.events.listing import Filters
from svc.identify.queries.events import events_matching, rewrite_event
from svc.identify.queries.velocity import event_subjects, is_counted
from svc.identify.recording.velocity import forget_account
from svc.identify.tables import ACCOUNT_ERASURES, ACCOUNTS, EVENTS, VISITOR_IDS
from svc.identify.velocity.counts import ACCOUNT_ID, KINDS, account_digest
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import EVENT_ROWS, items_of_step
from svc.kernel.values.refusals import Refusal

LEAVING_ROWS: Final = 2 * EVENT_ROWS
"""Of an event that leaves its account: the records of its visitor and its address are among the largest rows."""


def erase_account(transaction: Transaction, number: int, account_id: str, now_ms: int) -> Refusal | bool:
    """Begin or continue to erase an account; `account_id` may be any text. Return `False` if `continue_account_erasure`
    must follow, and `404 not_found` if nothing is known of the account.
    """
    if not ACCOUNT_ID.fullmatch(account_id):
        return Refusal("not_found")
    digest = account_digest(number, account_id)
    if transaction.get(ACCOUNT_ERASURES, number, digest) is None:
        is_known = (
            any(events_matching(transaction, number, Filters(account_id=account_id)))
            or any(account_records(transaction, number, account_id))
            or any(of.is_known(transaction, number, "account", account_id) for of in forgetting())
            or any(rows_by_subject(transaction, number, "account", account_id))
        )
        if not is_known:
            return Refusal("not_found")
        transaction.delete(ACCOUNT_ERASURES, number, digest)  # a corrupt one is not written over
        transaction.put(ACCOUNT_ERASURES, (number, digest), account_id.encode())
    return continue_account_erasure(transaction, number, digest, now_ms)


def continue_account_erasure(transaction: Transaction, number: int, digest: int, now_ms: int) -> bool:
    """Take the account with this digest out of some more events, or out of some reviews once there
    is no such event, or of some notes. Return `True` if nothing is left, or no erasure is pending.
    """
    raw = transaction.get(ACCOUNT_ERASURES, number, digest)
    if raw is None:
        return continue_texts(transaction, number, "account", digest)
    account_id = raw.decode()
    most = items_of_step(LEAVING_ROWS)
    of_account = events_matching(transaction, number, Filters(account_id=account_id))
    readable = (request_id for request_id, event in of_account if event is not None)
    found = list(islice(readable, most + 1))
    for request_id in found[:most]:
        _leave_event(transaction, number, request_id, now_ms)
    if len(found) > most or not all(of.step(transaction, number, "account", account_id) for of in forgetting()):
        return False
    _purge_account(transaction, number, account_id)
    transaction.delete(ACCOUNT_ERASURES, number, digest)
    return begin_texts(transaction, number, "account", account_id)


def account_records(snapshot: Snapshot, number: int, account_id: str) -> Keys:
    """Yield the records of an account that are there, one for each kind of environment."""
    keys = ((number, kind, account_digest(number, account_id)) for kind in range(len(KINDS)))
    yield from ((ACCOUNTS, key) for key in keys if snapshot.has(ACCOUNTS, *key))


def _purge_account(transaction: Transaction, number: int, account_id: str) -> None:
    """Delete what belongs to an account and to no event: list entries, record, outcome number and notes."""
    for of in forgetting():
        of.at_once(transaction, number, "account", account_id)
    for table, key in list(account_records(transaction, number, account_id)):
        transaction.delete(table, *key)
    purge_subject(transaction, number, "account", account_id)


def _leave_event(transaction: Transaction, number: int, request_id: bytes, now_ms: int) -> None:
    """Take the account out of one event, which is a change of it, out of its visitor's and address's velocity, and out
    of webhooks about it.
    """
    event = transaction.get(EVENTS, number, request_id)
    assert event is not None, "it was found by its account"
    visitor = transaction.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
    velocity = None if event.velocity is None else msgspec.structs.replace(event.velocity, account=None)
    left = msgspec.structs.replace(event, account_id=None, account_verified=False, velocity=velocity)
    if is_counted(transaction, number, request_id, event):
        who = event_subjects(number, request_id, event, visitor)
        forget_account(transaction, who, event_subjects(number, request_id, left, visitor))
    rewrite_event(transaction, number, UUID(bytes=request_id), event, left, now_ms)
    for of in forgetting():
        of.account_of_event(transaction, number, UUID(bytes=request_id))
