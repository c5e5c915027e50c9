"""Erasure of events and visitors: every row of an event or a visitor, and how a visitor is erased (decisions 7.6, 10).

A visitor is erased in steps, since it may have any number of events. The first step forgets who it is and leaves a row
in `erasures`, so that nothing can be added to what is left and that retention ends what an interruption has begun;
the last step deletes that row, and then the id is taken out of notes (`texts`). The response comes after the last step:
then there is no event, document, deferred report, index row, record, id, history, attested key or list entry of it, nor
what its reports are recognized by, nor a webhook about it that is not sent.

What stays is not of the person: ledger lines (when and how much, by request id), idempotency digests with the request
id that they were answered with (for a day), notes that events were changed and erased, by request id (as long as events
are kept), the audit record that names the visitor's id as erased (docs/audit.md),
sums of which one visitor's share cannot be separated, outcomes without the visitor (decisions 14.1), and, where a list
of look-alikes or the record of an account whose events are gone still names the visitor's number, that number, which
leads nowhere, until retention comes by. `NotPersonal` gives the reason table by table.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any
from uuid import UUID

import msgspec

from svc.features.erasure.policies import forgetting, purge, purge_subject
from svc.features.erasure.tables import ERASED_EVENTS
from svc.features.erasure.texts import begin_texts, continue_texts
from svc.features.labels.jobs import archive
from svc.features.reviews.queries import subject_digest
from svc.features.webhooks.tables import ENDPOINTS
from svc.identify.events.archive import inflate
from svc.identify.events.listing import Filters
from svc.identify.history.evidence import REPLAY_MEMORY_S, replay_key
from svc.identify.index.queries import scope_of, unindex
from svc.identify.matching import Visitor
from svc.identify.matching.blocks import Block, BlockKey, attribute_keys, exact_key, network_key, token_key
from svc.identify.queries.event_changes import note_changes
from svc.identify.queries.events import events_matching, feed_time_ms
from svc.identify.queries.hours import uncount
from svc.identify.queries.velocity import event_subjects, is_counted
from svc.identify.recording.proofs import has_keys, purge_attested_keys, purge_browser_keys
from svc.identify.recording.velocity import forget_in_history, forget_visitor
from svc.identify.recording.visitors import report_bytes
from svc.identify.records import Event
from svc.identify.report.table import IN_ANY_REPORT
from svc.identify.tables import (
    BLOCKS,
    DELETED_VISITORS,
    DOCUMENTS,
    ERASURES,
    REPORT_FINGERPRINTS,
    VISITOR_IDS,
    VISITORS,
)
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import EVENT_ROWS, STEP_ROWS, items_of_step
from svc.kernel.tenants.jobs import release
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import is_visitor_id
from svc.kernel.values.refusals import Refusal

DELIVERY_ROWS = 8
"""Rows of a webhook about an event, for each endpoint."""
LEAST_AT_ONCE = 16
"""Events for which a step begins again: each time the rows of the index that they share are written."""


def erase_visitor(transaction: Transaction, number: int, visitor_id: str, now_ms: int) -> Refusal | bool:
    """Begin or continue to erase a visitor (decisions 7.6); `visitor_id` may be any text. Return `False` if
    `continue_erasure` must follow, and `404 not_found` if neither the visitor nor a list entry, review or note of it
    exists.
    """
    if not is_visitor_id(visitor_id):
        return Refusal("not_found")
    raw_id = visitor_id.encode()
    if transaction.get(ERASURES, number, raw_id) is None:
        visitor_number = transaction.get(VISITOR_IDS, number, raw_id) or 0
        is_known = (
            transaction.has(VISITOR_IDS, number, raw_id)
            or has_events(transaction, number, raw_id)
            or has_keys(transaction, number, visitor_id)
            or any(of.is_known(transaction, number, "visitor", visitor_id) for of in forgetting())
        )
        purged = [of.at_once(transaction, number, "visitor", visitor_id) for of in forgetting()]
        purged.append(purge_subject(transaction, number, "visitor", visitor_id))
        if not any(purged) and not is_known:
            return Refusal("not_found")
        transaction.delete(ERASURES, number, raw_id)  # a corrupt one is not written over
        transaction.put(ERASURES, (number, raw_id), visitor_number)
        purge_attested_keys(transaction, number, visitor_id)
        if visitor_number:
            leave_blocks(transaction, number, visitor_number)
            purge_visitor(transaction, number, visitor_number, now_ms, visitor_id)
    return continue_erasure(transaction, number, raw_id, now_ms)


def continue_erasure(transaction: Transaction, number: int, raw_id: bytes, now_ms: int) -> bool:
    """Erase some more events of a visitor, or some of its reviews once there is no event, or its id
    from some notes. Return `True` if nothing is left, or no erasure is pending.
    """
    visitor_number = transaction.get(ERASURES, number, raw_id)
    if visitor_number is None:
        return continue_texts(transaction, number, "visitor", subject_digest(number, "visitor", raw_id.decode()))
    rows = _rows_of_event(transaction, number)
    most = items_of_step(rows)
    found = _erase_events(transaction, number, raw_id, visitor_number, now_ms, most)
    goes_on = found > most
    while found > most:  # most events have fewer rows than any may have
        most = max(0, STEP_ROWS - transaction.changed) // rows
        if most < LEAST_AT_ONCE:
            break
        found = _erase_events(transaction, number, raw_id, visitor_number, now_ms, most)
    if goes_on or not all(of.step(transaction, number, "visitor", raw_id.decode()) for of in forgetting()):
        return False
    transaction.delete(ERASURES, number, raw_id)
    return begin_texts(transaction, number, "visitor", raw_id.decode())


def _erase_events(
    transaction: Transaction, number: int, raw_id: bytes, visitor_number: int, now_ms: int, most: int
) -> int:
    """Erase up to `most` events of a visitor; return how many were found, one more at most. Corrupt ones stay for
    `svc store quarantine` (`texts.unreadable_events`).
    """
    of_visitor = events_matching(transaction, number, Filters(visitor_id=raw_id.decode()))
    found = list(islice(((each, event) for each, event in of_visitor if event is not None), most + 1))
    gone = found[:most]
    archive(transaction, number, gone)
    for request_id, event in gone:
        purge_report(transaction, number, request_id, event)
        purge_activity(transaction, number, request_id, event, visitor_number)
        for of in forgetting():
            of.event(transaction, number, UUID(bytes=request_id))
    for scope, events in groupby(gone, lambda each: scope_of(number, each[1])):
        places = [(request_id, feed_time_ms(event)) for request_id, event in events]
        note_changes(transaction, scope, "erased", now_ms, places)
    purge_events(transaction, number, gone)
    erased = (transaction.get(ERASED_EVENTS, number) or 0) + len(gone)
    transaction.put(ERASED_EVENTS, (number,), erased)
    return len(found)


def _rows_of_event(snapshot: Snapshot, number: int) -> int:
    """Return how many rows an event may have: more where endpoints have webhooks about each."""
    endpoints = sum(1 for _ in snapshot.scan_keys(ENDPOINTS, (number,), (number + 1,)))
    return EVENT_ROWS + DELIVERY_ROWS * endpoints


def purge_events(transaction: Transaction, number: int, events: Sequence[tuple[bytes, Event]]) -> None:
    """Delete every row of events, each with its request id (16 bytes), remove them from the index, and subtract them
    from the organization's holdings and the counters of their hours.
    """
    archived = sum(report_bytes(transaction, number, request_id) for request_id, _ in events)
    release(transaction, number, events=len(events), report_bytes=archived)
    uncount(transaction, number, [event for _, event in events])
    unindex(transaction, number, events)
    for request_id, _ in events:
        purge(transaction, number, "request_id", request_id)


def purge_visitor(
    transaction: Transaction, number: int, visitor_number: int, now_ms: int, visitor_id: str | None = None
) -> None:
    """Delete every row of a visitor except its events; do nothing if it has none. Its number is added to
    `deleted_visitors`, by which retention takes it out of the blocks, and is never reused. `visitor_id`: its id, if it
    is known without its record, which may be corrupt (`unreadable`).
    """
    visitor = transaction.get(VISITORS, number, visitor_number)
    if visitor is not None:
        visitor_id = visitor.visitor_id
        purge_browser_keys(transaction, number, visitor)
    if visitor_id is None or not transaction.has(VISITORS, number, visitor_number):
        return
    purge(transaction, number, "visitor", visitor_number)
    purge(transaction, number, "visitor_id", visitor_id.encode())
    purge_attested_keys(transaction, number, visitor_id)
    for of in forgetting():
        of.visitor(transaction, number, visitor_number)
    purge_subject(transaction, number, "visitor", visitor_id)
    release(transaction, number, visitors=1)
    transaction.put(DELETED_VISITORS, (number, visitor_number), now_ms)


def remove_from_block(transaction: Transaction, number: int, block_key: BlockKey, block: Block) -> None:
    """Write a block without some visitors; delete it if it lists none and counts for less than one device."""
    if block.numbers or block.count >= 1:
        transaction.put(BLOCKS, (number, block_key), block)
    else:
        transaction.delete(BLOCKS, number, block_key)


def has_events(
    snapshot: Snapshot, number: int, raw_id: bytes, environments: Sequence[Environment] = ENVIRONMENTS
) -> bool:
    """Return whether a visitor has any event in these environments. `raw_id`: the 20 bytes of the visitor's id."""
    return next(events_of(snapshot, number, raw_id, environments), None) is not None


def events_of(
    snapshot: Snapshot, number: int, raw_id: bytes, environments: Sequence[Environment] = ENVIRONMENTS
) -> Iterator[bytes]:
    """Yield the request ids (16 bytes) of a visitor's events, corrupt ones included. `raw_id`: the 20 bytes of the
    visitor's id.
    """
    found = events_matching(snapshot, number, Filters(visitor_id=raw_id.decode()), environments)
    return (request_id for request_id, _ in found)


def leave_blocks(transaction: Transaction, number: int, visitor_number: int) -> None:
    """Remove a visitor from the blocks that its record names; retention does so for those of earlier values."""
    visitor = transaction.get(VISITORS, number, visitor_number)
    if visitor is None:
        return
    for block_key in blocks_of(visitor):
        block = transaction.get(BLOCKS, number, block_key)
        if block is not None and visitor_number in block.numbers:
            remove_from_block(transaction, number, block_key, block.without(visitor_number))


def blocks_of(visitor: Visitor) -> set[BlockKey]:
    """Return the keys of the blocks in which the visitor's record would be looked for."""
    return {
        *attribute_keys(visitor.family, visitor.collector, visitor.values),
        *(exact_key(exact) for exact in visitor.exact_hashes),
        *(network_key(visitor.family, near) for near, _ in visitor.networks),
        *(token_key(token.hash) for token in visitor.tokens),
    }


def purge_report(transaction: Transaction, number: int, request_id: bytes, event: Event) -> None:
    """Delete the fingerprint by which the report of an event would be recognized. Call this before `purge_events`: it
    is found from the archived report.
    """
    fingerprint = fingerprint_key(transaction, number, request_id, event)
    if fingerprint is not None:
        transaction.delete(REPORT_FINGERPRINTS, *fingerprint)


def purge_activity(transaction: Transaction, number: int, request_id: bytes, event: Event, visitor_number: int) -> None:
    """Take an event of a visitor out of the velocity of its account and address, and the visitor out of the account's
    record and the day of the address.
    """
    who = event_subjects(number, request_id, event, visitor_number or None)
    forget_in_history(transaction, who)
    if is_counted(transaction, number, request_id, event):
        forget_visitor(transaction, who)


def fingerprint_key(snapshot: Snapshot, number: int, request_id: bytes, event: Event) -> tuple[Any, ...] | None:
    """Return the key of the row by which the report of an event would be recognized; `None` if there is no such row, or
    it belongs to an earlier event with the same report.
    """
    fingerprint = fingerprint_of(snapshot, number, request_id, event)
    if fingerprint is None:
        return None
    at_s = event.occurred_at_ms // 1000
    key = (number, at_s // REPLAY_MEMORY_S, fingerprint)
    first = snapshot.get(REPORT_FINGERPRINTS, *key)
    return key if first is not None and first.at_s == at_s else None


def fingerprint_of(snapshot: Snapshot, number: int, request_id: bytes, event: Event) -> bytes | None:
    """Return the digest of an event's report in `REPORT_FINGERPRINTS`, from its archive if there is one; `None` if the
    report has none. A corrupt archive is ignored.
    """
    try:
        document = snapshot.get(DOCUMENTS, number, request_id)
        if document is None:
            return event.mark
        signals_json = inflate(document.signals)
        said = IN_ANY_REPORT.read("", msgspec.json.decode(signals_json)).parts
    except (CorruptionError, zlib.error, msgspec.DecodeError):  # it must not keep others from being erased
        return event.mark
    found = replay_key(said.get("nonce"), said.get("collected_at_ms"), signals_json, event.occurred_at_ms)
    return None if found is None else found.digest
