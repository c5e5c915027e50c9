"""How rows that identifications write are erased and found, and which part of a shared row is a visitor's own."""

from __future__ import annotations

from typing import Any

from svc.features.contracts.erased import Erased, Keys, Owner
from svc.features.erasure.accounts import account_records
from svc.features.erasure.visitors import blocks_of, fingerprint_key
from svc.identify.events.hour_counts import NOTHING, HourCounts
from svc.identify.events.segments import Digests, Segment
from svc.identify.history.activity import AddressActivity
from svc.identify.index.digests import digests
from svc.identify.index.queries import rows_of
from svc.identify.matching.blocks import Block
from svc.identify.queries.hours import hour_key
from svc.identify.queries.velocity import address_keys, event_subjects
from svc.identify.recording.proofs import keys_of
from svc.identify.recording.velocity import own_part
from svc.identify.records import Event
from svc.identify.tables import (
    ACCOUNTS,
    ADDRESSES,
    ATTESTED_KEYS,
    BLOCKS,
    BROWSER_KEYS,
    EVENT_SEGMENTS,
    EVENT_TAIL,
    HOURS,
    LATE_EVENTS,
    REPORT_FINGERPRINTS,
    VISITOR_KEYS,
    VISITORS,
)
from svc.identify.velocity.counts import EMPTY
from svc.identify.velocity.record import AccountRecord
from svc.kernel.store.snapshot import Snapshot


def _blocks(snapshot: Snapshot, number: int, visitor: int, _: bytes) -> Keys:
    record = snapshot.get(VISITORS, number, visitor)
    if record is None:
        return
    for key in blocks_of(record):
        block = snapshot.get(BLOCKS, number, key)
        if block is not None and visitor in block.numbers:
            yield BLOCKS, (number, key)


def _attested_keys(snapshot: Snapshot, number: int, _: int, raw_id: bytes) -> Keys:
    held = snapshot.get(VISITOR_KEYS, number, raw_id)
    if held is not None:
        yield VISITOR_KEYS, (number, raw_id)
        for attested_key in held.key_ids:
            yield ATTESTED_KEYS, (number, attested_key)


def _browser_keys(snapshot: Snapshot, number: int, visitor: int, _: bytes) -> Keys:
    record = snapshot.get(VISITORS, number, visitor)
    if record is not None:
        yield from ((BROWSER_KEYS, key) for key in keys_of(snapshot, number, record))


def _accounts(snapshot: Snapshot, number: int, visitor: int, _: bytes) -> Keys:
    """Yield accounts that name the visitor. No key leads to them, so all are scanned."""
    for key, record in snapshot.scan(ACCOUNTS, number):
        if visitor and record.of(visitor) is not None:
            yield ACCOUNTS, key


def _counts(_: Snapshot, number: int, _id: bytes, event: Event) -> Keys:
    yield HOURS, hour_key(number, event)


def _memory_of_report(snapshot: Snapshot, number: int, request_id: bytes, event: Event) -> Keys:
    fingerprint = fingerprint_key(snapshot, number, request_id, event)
    if fingerprint is not None:
        yield REPORT_FINGERPRINTS, fingerprint


def _activity(_: Snapshot, number: int, request_id: bytes, event: Event) -> Keys:
    yield from ((ADDRESSES, key) for key in address_keys(event_subjects(number, request_id, event, None)))


def _own_digests(owner: Owner, _: Any, row: Any) -> Any:
    if not isinstance(row, Segment):
        return row
    return Digests(digests(_event_of(owner)).values if row.digests else ())


def _own_counts(owner: Owner, _: Any, _row: Any) -> HourCounts:
    return NOTHING.plus(_event_of(owner))


def _own_activity(owner: Owner, _: Any, row: AddressActivity) -> AddressActivity:
    return own_part(event_subjects(owner.number, owner.request_id, _event_of(owner), owner.visitor or None), row)


def _own_record(owner: Owner, _: Any, record: AccountRecord) -> AccountRecord:
    own = tuple(known for known in record.visitors if known.visitor == owner.visitor)
    seen = dict(zip(record.activity.others[0].ids, record.activity.others[0].times, strict=True))
    at_s = seen.get(owner.visitor)
    activity = EMPTY if at_s is None else EMPTY.with_others(at_s, (owner.visitor, None, None))
    return AccountRecord(own[0].first_s, own[0].last_s, own, activity)


def _own_block(owner: Owner, _: Any, _row: Any) -> Block:
    return Block(0, (owner.visitor,))


def _event_of(owner: Owner) -> Event:
    assert owner.event is not None, "the row was found by an event"
    return owner.event


ERASED = {
    "unindex": Erased((EVENT_TAIL, EVENT_SEGMENTS, LATE_EVENTS), of_event=rows_of, own=_own_digests),
    "uncount": Erased((HOURS,), of_event=_counts, own=_own_counts),
    "purge_activity": Erased((ADDRESSES,), of_event=_activity, own=_own_activity),
    "leave_accounts": Erased((ACCOUNTS,), of_visitor=_accounts, of_account=account_records, own=_own_record),
    "purge_report": Erased((REPORT_FINGERPRINTS,), of_event=_memory_of_report),
    "leave_blocks": Erased((BLOCKS,), of_visitor=_blocks, own=_own_block),
    "purge_browser_keys": Erased((BROWSER_KEYS,), of_visitor=_browser_keys),
    "purge_attested_keys": Erased((ATTESTED_KEYS, VISITOR_KEYS), of_visitor=_attested_keys),
}
