"""Rows of identifications themselves that are of a visitor, and that no key leads to."""

from __future__ import annotations

from svc.features.contracts.erased import Erased, Keys
from svc.features.erasure.visitors import address_key, blocks_of, fingerprint_key
from svc.identify.index.queries import rows_of
from svc.identify.queries.hours import hour_key
from svc.identify.queries.velocity import is_counted, party_of, row_keys
from svc.identify.recording.browser_keys import keys_of
from svc.identify.records import Event
from svc.identify.tables.accounts import ACCOUNTS, VELOCITY
from svc.identify.tables.attestation import ATTESTED_KEYS, VISITOR_KEYS
from svc.identify.tables.events import EVENT_SEGMENTS, EVENT_TAIL, HOURS, LATE_EVENTS
from svc.identify.tables.proofs import BROWSER_KEYS
from svc.identify.tables.visitors import ADDRESS_HISTORY, BLOCKS, REPORT_FINGERPRINTS, VISITOR_IDS, VISITORS
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
    """Nothing but the visitor's number leads to them: all are looked at."""
    for key, record in snapshot.scan(ACCOUNTS, number):
        if visitor and record.of(visitor) is not None:
            yield ACCOUNTS, key


def _counts(_: Snapshot, number: int, _id: bytes, event: Event) -> Keys:
    yield HOURS, hour_key(number, event)


def _memory_of_report(snapshot: Snapshot, number: int, request_id: bytes, event: Event) -> Keys:
    fingerprint = fingerprint_key(snapshot, number, request_id, event)
    if fingerprint is not None:
        yield REPORT_FINGERPRINTS, fingerprint
    yield ADDRESS_HISTORY, address_key(number, event)


def _velocity(snapshot: Snapshot, number: int, request_id: bytes, event: Event) -> Keys:
    visitor = snapshot.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
    if is_counted(snapshot, number, request_id, event):
        yield from ((VELOCITY, key) for key in row_keys(party_of(number, request_id, event, visitor)))


ERASED = {
    "unindex": Erased((EVENT_TAIL, EVENT_SEGMENTS, LATE_EVENTS), of_event=rows_of),
    "uncount": Erased((HOURS,), of_event=_counts),
    "purge_velocity": Erased((VELOCITY,), of_event=_velocity),
    "leave_accounts": Erased((ACCOUNTS,), of_visitor=_accounts),
    "purge_report": Erased((ADDRESS_HISTORY, REPORT_FINGERPRINTS), of_event=_memory_of_report),
    "leave_blocks": Erased((BLOCKS,), of_visitor=_blocks),
    "purge_browser_keys": Erased((BROWSER_KEYS,), of_visitor=_browser_keys),
    "purge_attested_keys": Erased((ATTESTED_KEYS, VISITOR_KEYS), of_visitor=_attested_keys),
}
