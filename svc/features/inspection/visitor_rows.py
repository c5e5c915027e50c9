"""Everything that is kept of one visitor, row by row, for the answer to a data subject's request.

What may live here: finding the rows that erasure would delete, with what of them is of this visitor. Which tables have
any is said where they are declared, and what finds them says their feature (`features/contracts/erased.py`).

Rows are read some at a time, each time in a state of its own, as `inspection` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from svc.features.contracts.erased import Keys
from svc.features.erasure.policies import rows_by, rows_by_subject
from svc.features.erasure.registered import erased, forgetting
from svc.features.erasure.visitors import events_of
from svc.features.inspection.inspection import Row
from svc.identify.events.hour_counts import NOTHING
from svc.identify.events.segments import Digests
from svc.identify.history.evidence import AddressHistory
from svc.identify.index.queries import digests
from svc.identify.matching.blocks import Block
from svc.identify.queries.velocity import party_of
from svc.identify.recording.velocity import own_part
from svc.identify.records import Event
from svc.identify.tables.accounts import ACCOUNTS, VELOCITY
from svc.identify.tables.events import EVENT_SEGMENTS, EVENTS, HOURS
from svc.identify.tables.visitors import ADDRESS_HISTORY, BLOCKS, ERASURES, VISITOR_IDS
from svc.identify.velocity.record import AccountRecord
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.snapshot import Snapshot


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
            self._is_named = any(of.is_known(snapshot, number, "visitor", visitor_id) for of in forgetting()) or any(
                rows_by_subject(snapshot, number, "visitor", visitor_id)
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
            found = (of.of_visitor for of in erased().values() if of.of_visitor is not None)
            otherwise = (key for read in found for key in read(snapshot, number, visitor, self._raw_id))
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
            found = (of.of_event for of in erased().values() if of.of_event is not None)
            otherwise = (key for read in found for key in read(snapshot, self._number, request_id, event))
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
