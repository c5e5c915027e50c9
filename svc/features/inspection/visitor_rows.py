"""Everything that is kept of one visitor, row by row, for the answer to a data subject's request.

What may live here: finding the rows that erasure would delete, with what of them is of this visitor. Which tables have
any is said where they are declared (`tables`): this module does not load while a table is erased by a function that it
has no reader for.

Rows are read some at a time, each time in a state of its own, as `inspection` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any
from uuid import UUID

from svc.features.erasure.policies import BY_FUNCTION, rows_by, rows_by_subject
from svc.features.erasure.visitors import address_key, blocks_of, events_of, fingerprint_key
from svc.features.inspection.inspection import Row
from svc.features.labels.tables import SUBJECT_LABELS
from svc.features.lists.jobs import listed
from svc.features.lists.queries import mark_of
from svc.features.lists.tables import LIST_ENTRIES, LIST_EXPIRIES, LIST_MARKS
from svc.features.reviews.jobs import review_rows, webhook_event_ids
from svc.features.reviews.queries import reviews_of
from svc.features.reviews.reviews import SUBJECTS
from svc.features.webhooks.content.envelope import identification_event_id
from svc.features.webhooks.content.payloads import OF_IDENTIFICATION
from svc.features.webhooks.jobs.deliveries import webhook_event_rows
from svc.identify.events.hour_counts import NOTHING
from svc.identify.events.segments import Digests
from svc.identify.history.evidence import AddressHistory
from svc.identify.index.queries import digests, rows_of
from svc.identify.matching.blocks import Block
from svc.identify.queries.hours import hour_key
from svc.identify.queries.velocity import is_counted, party_of, row_keys
from svc.identify.recording.browser_keys import keys_of
from svc.identify.recording.velocity import own_part
from svc.identify.records import Event
from svc.identify.tables.accounts import ACCOUNTS, VELOCITY
from svc.identify.tables.attestation import ATTESTED_KEYS, VISITOR_KEYS
from svc.identify.tables.events import EVENT_SEGMENTS, EVENTS, HOURS
from svc.identify.tables.proofs import BROWSER_KEYS
from svc.identify.tables.visitors import ADDRESS_HISTORY, BLOCKS, ERASURES, REPORT_FINGERPRINTS, VISITOR_IDS, VISITORS
from svc.identify.velocity.counts import KINDS
from svc.identify.velocity.record import AccountRecord
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.schema.table import PolicyError, Table
from svc.kernel.store.snapshot import Snapshot

Keys = Iterator[tuple[Table[Any], tuple[Any, ...]]]


class VisitorRows:
    """What is kept of a visitor. `number` is the organization's; `visitor_id` any text of the form of one."""

    def __init__(self, store: ReadOnlyStore, number: int, visitor_id: str) -> None:
        self._store = store
        self._number = number
        self._raw_id = visitor_id.encode()
        with store.read() as snapshot:
            self._visitor = (
                snapshot.get(VISITOR_IDS, number, self._raw_id) or snapshot.get(ERASURES, number, self._raw_id) or 0
            )
            self.request_ids = list(events_of(snapshot, number, self._raw_id))
            """Of its events, in no order of time: 16 bytes each."""
            self._is_named = (
                any(listed(snapshot, number, "visitor", visitor_id))
                or any(reviews_of(snapshot, number, "visitor", visitor_id))
                or any(rows_by_subject(snapshot, number, "visitor", visitor_id))
            )

    @property
    def exists(self) -> bool:
        """Whether anything is kept of such a visitor."""
        return bool(self._visitor or self.request_ids or self._is_named)

    def of_visitor(self) -> list[Row]:
        """Return the visitor's ids, record, history, reviews and notes, and the lists and look-alike lists that contain
        it.
        """
        number, visitor = self._number, self._visitor
        with self._store.read() as snapshot:
            by_id = rows_by(snapshot, number, "visitor_id", self._raw_id)
            by_number = rows_by(snapshot, number, "visitor", visitor)
            by_subject = rows_by_subject(snapshot, number, "visitor", self._raw_id.decode())
            otherwise = (key for read in OF_VISITOR.values() for key in read(snapshot, number, visitor, self._raw_id))
            return [self._own(row) for row in _present(snapshot, chain(by_id, by_number, by_subject, otherwise))]

    def of_event(self, request_id: bytes) -> list[Row]:
        """Return the rows of one of its events: the report, later changes, its rows in indexes and histories, and its
        webhooks. Empty if it was deleted meanwhile.
        """
        with self._store.read() as snapshot:
            event = snapshot.get(EVENTS, self._number, request_id)
            if event is None:
                return []
            by_key = rows_by(snapshot, self._number, "request_id", request_id)
            otherwise = (key for read in OF_EVENT.values() for key in read(snapshot, self._number, request_id, event))
            rows = _present(snapshot, chain(by_key, otherwise))
            return [self._own(row, request_id, event) for row in rows if self._is_about(row)]

    def _is_about(self, row: Row) -> bool:
        """The history of an address may be of visits of others alone; one that names nobody goes with any of them."""
        if row.table is not ADDRESS_HISTORY:
            return True
        return not row.value.visitors or self._visitor in row.value.visitors

    def _own(self, row: Row, request_id: bytes = b"", event: Event | None = None) -> Row:
        """Without what the row says of other visitors; of counters, what this event added to them."""
        if event is not None and row.table in (HOURS, EVENT_SEGMENTS, VELOCITY):
            return row._replace(value=self._counted(row, request_id, event))
        if row.table is ACCOUNTS:
            return row._replace(value=self._own_record(row.value))
        if row.table is BLOCKS:
            return row._replace(value=Block(0, (self._visitor,)))
        if row.table is ADDRESS_HISTORY:
            return row._replace(value=self._own_history(row.value))
        return row

    def _counted(self, row: Row, request_id: bytes, event: Event) -> Any:
        """What an event added to a row of counters, of the index or of velocity."""
        if row.table is HOURS:
            return NOTHING.plus(event)
        if row.table is EVENT_SEGMENTS:
            return Digests(digests(event).values if row.value.digests else ())
        who = party_of(self._number, request_id, event, self._visitor or None)
        return own_part(who, row.table.key.unpack(row.key), row.value)

    def _own_history(self, history: AddressHistory) -> AddressHistory:
        pairs = zip(history.visitors, history.homelands, strict=True)
        own = tuple((visitor, homeland) for visitor, homeland in pairs if visitor == self._visitor)
        return AddressHistory(tuple(visitor for visitor, _ in own), tuple(homeland for _, homeland in own))

    def _own_record(self, record: AccountRecord) -> AccountRecord:
        own = tuple(known for known in record.visitors if known.visitor == self._visitor)
        return AccountRecord(own[0].first_s, own[0].last_s, own)


def _present(snapshot: Snapshot, keys: Keys) -> Iterator[Row]:
    for table, key in keys:
        value = snapshot.get(table, *key)
        if value is not None:
            yield Row(table, table.key.pack(*key), value)


def _blocks(snapshot: Snapshot, number: int, visitor: int, raw_id: bytes) -> Keys:  # noqa: ARG001  as the others
    record = snapshot.get(VISITORS, number, visitor)
    if record is None:
        return
    for key in blocks_of(record):
        block = snapshot.get(BLOCKS, number, key)
        if block is not None and visitor in block.numbers:
            yield BLOCKS, (number, key)


def _attested_keys(snapshot: Snapshot, number: int, visitor: int, raw_id: bytes) -> Keys:  # noqa: ARG001  as the others
    held = snapshot.get(VISITOR_KEYS, number, raw_id)
    if held is not None:
        yield VISITOR_KEYS, (number, raw_id)
        for attested_key in held.key_ids:
            yield ATTESTED_KEYS, (number, attested_key)


def _browser_keys(snapshot: Snapshot, number: int, visitor: int, raw_id: bytes) -> Keys:  # noqa: ARG001  as the others
    record = snapshot.get(VISITORS, number, visitor)
    if record is not None:
        yield from ((BROWSER_KEYS, key) for key in keys_of(snapshot, number, record))


def _listed(snapshot: Snapshot, number: int, visitor: int, raw_id: bytes) -> Keys:  # noqa: ARG001  as the others
    for raw_list, entry in listed(snapshot, number, "visitor", raw_id.decode()):
        yield LIST_ENTRIES, (number, raw_list, entry.value)
        yield LIST_MARKS, (number, mark_of(raw_list, entry.value))
        if entry.expires_at_ms is not None:
            yield LIST_EXPIRIES, (number, entry.expires_at_ms, raw_list, entry.value)


def _accounts(snapshot: Snapshot, number: int, visitor: int, raw_id: bytes) -> Keys:  # noqa: ARG001  as the others
    """Nothing but the visitor's number leads to them: all are looked at."""
    for key, record in snapshot.scan(ACCOUNTS, number):
        if visitor and record.of(visitor) is not None:
            yield ACCOUNTS, key


def _labels(snapshot: Snapshot, number: int, visitor: int, raw_id: bytes) -> Keys:  # noqa: ARG001  as the others
    for kind in range(len(KINDS)):
        yield SUBJECT_LABELS, (number, kind, SUBJECTS.index("visitor"), visitor)


def _reviews(snapshot: Snapshot, number: int, visitor: int, raw_id: bytes) -> Keys:  # noqa: ARG001  as the others
    for review in reviews_of(snapshot, number, "visitor", raw_id.decode()):
        yield from review_rows(number, review)
        for event_id in webhook_event_ids(review):
            yield from webhook_event_rows(snapshot, number, event_id)


def _counts(snapshot: Snapshot, number: int, request_id: bytes, event: Event) -> Keys:  # noqa: ARG001  as the others
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


def _webhooks(snapshot: Snapshot, number: int, request_id: bytes, event: Event) -> Keys:  # noqa: ARG001  as the others
    for event_type in OF_IDENTIFICATION:
        event_id = identification_event_id(event_type, UUID(bytes=request_id))
        yield from webhook_event_rows(snapshot, number, event_id.bytes)


OF_VISITOR: dict[str, Callable[[Snapshot, int, int, bytes], Keys]] = {
    "leave_blocks": _blocks,
    "leave_accounts": _accounts,
    "purge_attested_keys": _attested_keys,
    "purge_browser_keys": _browser_keys,
    "purge_listed": _listed,
    "forget_labels": _labels,
    "forget_reviews": _reviews,
}
"""Function of `policies.BY_FUNCTION` that erases by the visitor -> what finds the same rows, by number and id."""
OF_EVENT: dict[str, Callable[[Snapshot, int, bytes, Event], Keys]] = {
    "unindex": rows_of,
    "uncount": _counts,
    "purge_report": _memory_of_report,
    "purge_velocity": _velocity,
    "erase_identification": _webhooks,
}
"""The same, of those that erase by the event."""


def unread(functions: dict[str, Any]) -> set[str]:
    """Return the names of the erasure functions whose rows this module would miss."""
    return set(functions) - OF_VISITOR.keys() - OF_EVENT.keys()


if unread(BY_FUNCTION):
    raise PolicyError(f"what {', '.join(sorted(unread(BY_FUNCTION)))} erases is not found for a visitor's export")
