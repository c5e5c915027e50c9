"""What must be true of every store, at every moment: the rules behind `svc check` and behind the crash tests.

Each rule reads its tables once, in key order, and yields a sentence for each violation. Memory is bounded by what one
organization's ledger lines and request ids take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from uuid import UUID

from svc.domain.billing import BillingStatus, Usage, tally
from svc.domain.ids import DAY_MS, made_at_ms
from svc.domain.model import PLATFORMS
from svc.domain.records import Organization
from svc.store.codec import Corrupted
from svc.store.events import INDEXES, index_keys
from svc.store.snapshot import Snapshot
from svc.store.tables import (
    BALANCES,
    BILLING_CHANGES,
    BLOCKS,
    DEFERRED_REPORTS,
    DEPARTED,
    DOCUMENTS,
    ERASED_EVENTS,
    ERASURES,
    EVENTS,
    IDEMPOTENCY,
    KEY_IDS,
    KEYS,
    LEDGER,
    ORGANIZATION_IDS,
    ORGANIZATION_KEYS,
    ORGANIZATIONS,
    PAST_DUE,
    SETTLEMENTS,
    TABLES,
    VISITOR_COUNTS,
    VISITOR_HISTORY,
    VISITOR_IDS,
    VISITORS,
    WEIGHTS,
    WEIGHTS_SNAPSHOTS,
)
from svc.store.views import find_sdk_key
from svc.store.webhook_invariants import webhook_violations


def violations(snapshot: Snapshot) -> Iterator[str]:
    """Every broken rule, as a sentence that names the rows."""
    unreadable = list(_unreadable(snapshot))
    yield from unreadable
    if unreadable:
        return  # the other rules read what cannot be read
    yield from _keys(snapshot)
    for (number,), organization in snapshot.scan(ORGANIZATIONS):
        if snapshot.get(ORGANIZATION_IDS, organization.id) != number:
            yield f"organization {number} is not found by its id {organization.id}"
        yield from _money(snapshot, number)
        yield from _billing(snapshot, organization)
        yield from _events(snapshot, number)
        yield from _indexes(snapshot, number)
        yield from _idempotency(snapshot, number)
        yield from _visitors(snapshot, number)
        yield from _blocks(snapshot, number)
        yield from _history(snapshot, number)
        yield from _weights(snapshot, number)
        yield from webhook_violations(snapshot, number)


def _unreadable(snapshot: Snapshot) -> Iterator[str]:
    for table in TABLES:
        rows = snapshot.scan(table)
        count = 0
        try:
            for _ in rows:
                count += 1
        except Corrupted as error:
            yield f"{table.name}, row {count + 1}: {error}"


def _keys(snapshot: Snapshot) -> Iterator[str]:
    for (digest,), key in snapshot.scan(KEYS):
        if snapshot.get(KEY_IDS, key.id) != digest:
            yield f"key {key.id} is not found by its id"
        if snapshot.get(ORGANIZATION_KEYS, key.organization, key.created_at_ms, key.id) != digest:
            yield f"key {key.id} is not listed for its organization"
        if not snapshot.has(ORGANIZATIONS, key.organization):
            yield f"key {key.id} belongs to organization {key.organization}, which does not exist"


def _money(snapshot: Snapshot, number: int) -> Iterator[str]:
    total = 0
    for (_, entry_id), entry in snapshot.scan(LEDGER, number):
        total += entry.amount_micros
        if entry.kind == "identification":
            event = snapshot.get(EVENTS, number, entry_id)
            if event is not None and event.price_micros != -entry.amount_micros:
                yield f"request {UUID(bytes=entry_id)} cost {event.price_micros} and was charged {-entry.amount_micros}"
    balance = snapshot.get(BALANCES, number)
    if balance != total:
        yield f"organization {number} has a balance of {balance} micros, its ledger sums to {total}"


def _billing(snapshot: Snapshot, organization: Organization) -> Iterator[str]:
    number = organization.number
    if snapshot.has(PAST_DUE, number) != (organization.billing_status == "past_due"):
        yield f"organization {number} is {organization.billing_status}, its term of payment says otherwise"
    entered = Counter[BillingStatus](("free",))  # changes of one millisecond may lie in any order
    for _, change in snapshot.scan(BILLING_CHANGES, number):
        entered.update((change.current,))
        entered.subtract((change.previous,))
    if +entered != Counter((organization.billing_status,)):
        yield f"organization {number} is {organization.billing_status}, its changes of billing status say otherwise"
    ledger = snapshot.scan(LEDGER, number)
    by_day = groupby(ledger, key=lambda line: made_at_ms(line[0][1]) // DAY_MS)
    usages = {day: tally(entry for _, entry in of_day) for day, of_day in by_day}
    for (_, day), settled in snapshot.scan(SETTLEMENTS, number):
        usage = usages.get(day, Usage())
        # A clock that was set back may have added lines to a day after it was settled.
        if settled.amount_micros > usage.charged_micros or settled.free > usage.free:
            yield f"day {day} of organization {number} was settled with more than its ledger says"


def _events(snapshot: Snapshot, number: int) -> Iterator[str]:
    for (_, raw_id), event in snapshot.scan(EVENTS, number):
        request_id = UUID(bytes=raw_id)
        document = snapshot.get(DOCUMENTS, number, raw_id)
        if document is None:
            yield f"request {request_id} has no document"
        elif not snapshot.has(WEIGHTS_SNAPSHOTS, document.weights_digest):
            yield f"request {request_id} was scored with weights that are not kept"
        if event.environment == "production" and not snapshot.has(LEDGER, number, raw_id):
            yield f"request {request_id} is production traffic and not on the ledger"
        raw_visitor = event.visitor_id.encode()
        being_erased = snapshot.has(ERASURES, number, raw_visitor)
        if event.identifiable and not (being_erased or snapshot.has(VISITOR_IDS, number, raw_visitor)):
            yield f"request {request_id} names the visitor {event.visitor_id}, who is not known"
    for (_, raw_id), _ in snapshot.scan(DOCUMENTS, number):
        if not snapshot.has(EVENTS, number, raw_id):
            yield f"document {UUID(bytes=raw_id)} has no event"
    for (_, raw_id), _ in snapshot.scan(DEFERRED_REPORTS, number):
        if not snapshot.has(EVENTS, number, raw_id):
            yield f"deferred report {UUID(bytes=raw_id)} has no event"


def _indexes(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Each event is where its fields say, and nowhere else."""
    for (_, raw_id), event in snapshot.scan(EVENTS, number):
        for table, key in index_keys(number, raw_id, event):
            if not snapshot.has(table, *key):
                yield f"request {UUID(bytes=raw_id)} is not found in {table.name}"
    for table in INDEXES:
        for key, _ in snapshot.scan(table, number):
            raw_id: bytes = key[-1]
            event = snapshot.get(EVENTS, number, raw_id)
            if event is None:
                yield f"{table.name} names request {UUID(bytes=raw_id)}, which has no event"
            elif (table, key) not in index_keys(number, raw_id, event):
                yield f"{table.name} has request {UUID(bytes=raw_id)} where it does not belong"


def _idempotency(snapshot: Snapshot, number: int) -> Iterator[str]:
    answered: set[bytes] = set()
    may_be_gone = snapshot.get(ERASED_EVENTS, number) or 0
    for _, row in snapshot.scan(IDEMPOTENCY, number):
        if row.request_id in answered:
            yield f"request {UUID(bytes=row.request_id)} answers two idempotency keys"
        answered.add(row.request_id)
        if not snapshot.has(EVENTS, number, row.request_id):
            may_be_gone -= 1
            if may_be_gone < 0:
                yield f"an idempotency key is answered by request {UUID(bytes=row.request_id)}, which has no event"


def _visitors(snapshot: Snapshot, number: int) -> Iterator[str]:
    given = snapshot.get(VISITOR_COUNTS, number) or 0
    for (_, visitor_number), visitor in snapshot.scan(VISITORS, number):
        if visitor_number > given:
            yield f"visitor {visitor_number} of organization {number} is beyond the {given} numbers given"
        if snapshot.get(VISITOR_IDS, number, visitor.visitor_id.encode()) != visitor_number:
            yield f"visitor {visitor.visitor_id} is not found by its id"
    for (_, visitor_id), visitor_number in snapshot.scan(VISITOR_IDS, number):
        if not snapshot.has(VISITORS, number, visitor_number):
            yield f"the visitor id {visitor_id.decode()} leads to no visitor"


def _blocks(snapshot: Snapshot, number: int) -> Iterator[str]:
    departed = {key[1] for key, _ in snapshot.scan(DEPARTED, number)}
    for visitor_number in departed:
        if snapshot.has(VISITORS, number, visitor_number):
            yield f"visitor {visitor_number} of organization {number} is gone and known"
    for (_, block_key), block in snapshot.scan(BLOCKS, number):
        for visitor_number in block.numbers:
            if visitor_number not in departed and not snapshot.has(VISITORS, number, visitor_number):
                yield f"block {block_key.hex()} names visitor {visitor_number}, who is not known"


def _history(snapshot: Snapshot, number: int) -> Iterator[str]:
    for (_, day, visitor_number), _ in snapshot.scan(VISITOR_HISTORY, number):
        if not snapshot.has(VISITORS, number, visitor_number):
            yield f"the history of day {day} names visitor {visitor_number}, who is not known"


def _weights(snapshot: Snapshot, number: int) -> Iterator[str]:
    for (_, place, key_id), _ in snapshot.scan(WEIGHTS, number):
        if place >= len(PLATFORMS):
            yield f"organization {number} has weights for platform {place}, which does not exist"
        if key_id and find_sdk_key(snapshot, number, key_id) is None:
            yield f"organization {number} has weights for key {key_id}, which is none of its SDK keys"
