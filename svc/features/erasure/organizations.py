"""Removal of an organization: its archived reports, or everything (decisions 10).

An organization loses its archived reports, or everything, in steps as well. It is removed by one mark on its row: from
that commit on its keys are refused and nothing is added to it. Retention goes on where the command was interrupted.
What stays is its accounts: its row, ledger, balance, settlements and changes of billing status, and its audit log.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec

from svc.features.contracts.cleanup import ROWS_OF_ONE
from svc.features.erasure.visitors import fingerprint_of
from svc.features.members.jobs import unlist_member
from svc.features.tables import TABLES
from svc.features.webhooks.jobs.endpoints import remove_endpoint
from svc.features.webhooks.queries import endpoints_of
from svc.identify.queries.events import event_if_readable
from svc.identify.recording.visitors import report_bytes
from svc.identify.tables import DEFERRED_REPORTS, DOCUMENTS, EVENTS
from svc.kernel.access.tables import KEY_IDS, KEYS, MEMBER_EMAILS, MEMBERS, ORGANIZATION_KEYS
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import EVENT_ROWS, items_of_step
from svc.kernel.tenants.jobs import release
from svc.kernel.tenants.queries import is_removed, organization
from svc.kernel.tenants.tables import ORGANIZATIONS

REMOVED: tuple[Table[Any], ...] = tuple(table for table in TABLES if table.by_organization and not table.stays)
"""What goes with a removed organization. Its keys and the addresses of its members, which are not
kept by organization, go with `organization_keys` and `members`."""


def drop_documents(transaction: Transaction, number: int, beyond: bytes) -> int:
    """Delete the archived reports of the next events whose request ids are below `beyond`. Return how many events had
    any, 0 if nothing is left. The events stay, with `has_document: false`.
    """
    found: set[bytes] = set()
    for table in (DOCUMENTS, DEFERRED_REPORTS):
        keys = transaction.scan_keys_reverse(table, (number,), (number, beyond))
        found.update(request_id for _, request_id in islice(keys, items_of_step(EVENT_ROWS)))
    for request_id in sorted(found):
        event = event_if_readable(transaction, number, request_id)
        if event is not None:
            mark = fingerprint_of(transaction, number, request_id, event)
            transaction.put(EVENTS, (number, request_id), msgspec.structs.replace(event, has_document=False, mark=mark))
        release(transaction, number, report_bytes=report_bytes(transaction, number, request_id))
        for table in (DOCUMENTS, DEFERRED_REPORTS):
            transaction.delete(table, number, request_id)
    return len(found)


def remove_organization(transaction: Transaction, number: int, now_ms: int) -> bool:
    """Mark an organization as removed and end its webhooks; return `False` if it was removed before. `continue_removal`
    deletes its rows. Raises `LookupError` for an unknown organization.
    """
    found = organization(transaction, number)
    if found.removed_at_ms is not None:
        return False
    transaction.put(ORGANIZATIONS, (number,), msgspec.structs.replace(found, removed_at_ms=now_ms))
    for registered in list(endpoints_of(transaction, number)):
        remove_endpoint(transaction, number, registered.endpoint.id)
    return True


def continue_removal(transaction: Transaction, number: int) -> int:
    """Delete some rows of a removed organization; returns how many, 0 when nothing is left."""
    for table in REMOVED:
        keys = _first(transaction, table, number, items_of_step(EVENT_ROWS if table is DOCUMENTS else ROWS_OF_ONE))
        for key in keys:
            if table is ORGANIZATION_KEYS:
                _, _, key_id = key
                digest = transaction.get(ORGANIZATION_KEYS, *key) or transaction.get(KEY_IDS, key_id)
                if digest is not None:
                    transaction.delete(KEYS, digest)
                transaction.delete(KEY_IDS, key_id)
            if table is MEMBERS:
                _unlist(transaction, *key)
            transaction.delete(table, *key)
        if keys:
            return len(keys)
    return 0


def _unlist(transaction: Transaction, number: int, member_id: str) -> None:
    """Delete what leads from an e-mail address to a member; from those of all its members if this one is corrupt."""
    if transaction.get(MEMBERS, number, member_id) is not None:
        unlist_member(transaction, number, member_id)
        return
    for key in [key for key in transaction.scan_keys(MEMBER_EMAILS, ()) if key[1] == number]:
        transaction.delete(MEMBER_EMAILS, *key)


def is_removal_pending(snapshot: Snapshot, number: int) -> bool:
    """Return whether a removed organization still has rows to delete."""
    return is_removed(snapshot, number) and any(_first(snapshot, table, number, 1) for table in REMOVED)


def _first(snapshot: Snapshot, table: Table[Any], number: int, count: int) -> list[tuple[Any, ...]]:
    return list(islice(snapshot.scan_keys_reverse(table, (number,), (number + 1,)), count))
