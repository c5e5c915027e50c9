"""Everything that is kept of one visitor, row by row, as it lies there for the operator (`of_visitor`); of a visitor or
an account, without what it says of others, for the answer to a data subject's request (`SubjectRows`).

Which tables have any is said where they are declared, and what finds the rows says their feature
(`features/contracts/erased.py`). They are the rows that erasure deletes. Rows are read some at a time, each time in a
state of its own, as `inspection` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from svc.features.contracts.erased import Keys, Owner
from svc.features.erasure import policies
from svc.features.erasure.accounts import account_records
from svc.features.erasure.policies import erased, forgetting
from svc.features.erasure.visitors import events_of
from svc.features.inspection.inspection import Row, find_rows, under
from svc.features.reviews.queries import subject_stem
from svc.identify.events.listing import filters_of
from svc.identify.model import Subject
from svc.identify.queries.events import event_if_readable, request_ids_matching
from svc.identify.tables import DELETED_VISITORS, ERASURES, EVENTS, VISITOR_IDS
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import ErasedBy, Table
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.ids import made_at_ms

EVENTS_AT_ONCE: Final = 64
"""Events whose rows are read in one state: in a database, in the round trips that one event takes."""


def of_visitor(store: ReadOnlyStore, number: int, visitor_id: str) -> Iterator[Row]:
    """Yield the rows of a visitor, and its events. Nothing if there is no such visitor; corrupt rows have a `problem`,
    and where a feature could not go on finding rows, one without a key says why.
    """
    raw_id = visitor_id.encode()
    found = [*find_rows(store, VISITOR_IDS, number, raw_id), *find_rows(store, ERASURES, number, raw_id)]
    visitor: int = next((row.value for row in found if row.value), 0)
    found += find_rows(store, DELETED_VISITORS, number, visitor)
    for table, find in _finders(number, "visitor", visitor_id, visitor):
        with store.read() as snapshot:
            keys, problem = _readable(find(snapshot))
        for of, key in keys:
            found += find_rows(store, of, *key)
        found += [] if problem is None else [Row(table, b"", None, problem)]
    yield from {(row.table.name, row.key, row.problem): row for row in found}.values()
    with store.read() as snapshot:
        request_ids, problem = _readable(events_of(snapshot, number, raw_id))
    for request_id in sorted(request_ids):
        yield from find_rows(store, EVENTS, number, request_id)
    for row in under(store, EVENTS, number) if problem is not None else ():  # the index is corrupt: all are looked at
        if row.problem is not None or (row.value.verdict.visitor_id == visitor_id and row.key[-16:] not in request_ids):
            yield row


def _readable(found: Iterator[Any]) -> tuple[list[Any], str | None]:
    """Return what comes before the first corrupt row, and the error if there is one."""
    some: list[Any] = []
    try:
        some.extend(found)
    except CorruptionError as error:
        return some, str(error)
    return some, None


def _finders(
    number: int, subject: Subject, subject_id: str, visitor: int
) -> Iterator[tuple[Table[Any], Callable[[Snapshot], Keys]]]:
    """Yield tables and how to find a subject's rows in them: by declared keys, then by what features declare."""
    raw_id = subject_id.encode()
    by_visitor = (("visitor_id", (raw_id,)), ("visitor", (visitor,))) if subject == "visitor" else ()
    for part, lead in (*by_visitor, ("subject", subject_stem(number, subject, subject_id))):
        for table in policies.ERASED_BY_KEY[part]:
            yield table, _asking(policies.rows_in, table, number, lead)
    for of in erased().values():
        if of.of_subject is not None:
            yield of.tables[0], _asking(of.of_subject, number, subject, subject_id)
        if of.of_visitor is not None and subject == "visitor":
            yield of.tables[0], _asking(of.of_visitor, number, visitor, raw_id)
        if of.of_account is not None and subject == "account":
            yield of.tables[0], _asking(of.of_account, number, subject_id)


def _asking(find: Callable[..., Keys], *what: Any) -> Callable[[Snapshot], Keys]:
    return lambda snapshot: find(snapshot, *what)


class SubjectRows:
    """What is kept of a visitor or an account. `number` is the organization's; `subject_id` any text of the form of
    one.
    """

    def __init__(self, store: ReadOnlyStore, number: int, subject: Subject, subject_id: str) -> None:
        self._store = store
        self._number = number
        self._subject: Subject = subject
        self._id = subject_id
        self._visitor = 0
        """Its number, of a visitor that has one."""
        self.corrupt = 0
        """Rows that could not be read so far."""
        with store.read() as snapshot:
            if subject == "visitor":
                self._visitor = _visitor_number(snapshot, number, subject_id.encode())
            self.request_ids = request_ids_matching(snapshot, number, filters_of(subject, subject_id))
            """Of its events, in no order of time: 16 bytes each."""
            self._is_named = (
                any(of.is_known(snapshot, number, subject, subject_id) for of in forgetting())
                or any(policies.rows_by_subject(snapshot, number, subject, subject_id))
                or (subject == "account" and any(account_records(snapshot, number, subject_id)))
            )

    @property
    def exists(self) -> bool:
        """Return whether anything is kept of it."""
        return bool(self._visitor or self.request_ids or self._is_named)

    def of_subject(self) -> list[Row]:
        """Return the ids of a visitor, its record, history, reviews, notes, and lists and look-alike lists that name
        it; the record of an account, its labels, reviews, notes, and lists that name it.
        """
        with self._store.read() as snapshot:
            return self._counted(snapshot.evaluate(self._subject_rows))

    def of_events(self) -> Iterator[tuple[bytes, list[Row]]]:
        """Yield its events by their ids, oldest first, each with its rows: the report, later changes, those in indexes
        and histories, and its webhooks; of a corrupt one what its id leads to. Without those deleted meanwhile.
        """
        ordered = sorted(self.request_ids, key=made_at_ms)
        for start in range(0, len(ordered), EVENTS_AT_ONCE):
            some = ordered[start : start + EVENTS_AT_ONCE]
            with self._store.read() as snapshot:
                found = snapshot.evaluate(partial(self._rows_of_events, some))
            yield from ((one, self._counted(rows)) for one, rows in zip(some, found, strict=True) if rows)

    def _rows_of_events(self, request_ids: list[bytes], snapshot: Snapshot) -> list[list[Row]]:
        return [self._event_rows(snapshot, request_id) for request_id in request_ids]

    def _subject_rows(self, snapshot: Snapshot) -> list[Row]:
        owner = Owner(self._number, self._visitor) if self._subject == "visitor" else None
        finders = _finders(self._number, self._subject, self._id, self._visitor)
        return _rows(snapshot, owner, ((table, find(snapshot)) for table, find in finders))

    def _event_rows(self, snapshot: Snapshot, request_id: bytes) -> list[Row]:
        event = event_if_readable(snapshot, self._number, request_id)
        found = [(EVENTS, policies.rows_by(snapshot, self._number, "request_id", request_id))]
        found += [
            (of.tables[0], of.of_event(snapshot, self._number, request_id, event))
            for of in erased().values()
            if of.of_event is not None and event is not None
        ]
        visitor = self._visitor
        if self._subject == "account" and event is not None:
            visitor = _visitor_number(snapshot, self._number, event.verdict.visitor_id.encode())
        return _rows(snapshot, Owner(self._number, visitor, request_id, event), found)

    def _counted(self, rows: list[Row]) -> list[Row]:
        self.corrupt += sum(row.problem is not None for row in rows)
        return rows


def _rows(snapshot: Snapshot, owner: Owner | None, found: Iterable[tuple[Table[Any], Keys]]) -> list[Row]:
    """Return the rows under these keys; where no further ones could be found, a row without a key says why."""
    rows: list[Row] = []
    for table, some in found:
        keys, problem = _readable(some)
        rows += _own(snapshot, owner, keys)
        rows += [] if problem is None else [Row(table, b"", None, problem)]
    return rows


def _visitor_number(snapshot: Snapshot, number: int, raw_id: bytes) -> int:
    return snapshot.get(VISITOR_IDS, number, raw_id) or snapshot.get(ERASURES, number, raw_id) or 0


def _own(snapshot: Snapshot, owner: Owner | None, keys: Iterable[tuple[Table[Any], tuple[Any, ...]]]) -> Iterator[Row]:
    """Yield the rows under these keys, without the parts that belong to others than `owner`, where one is given; a
    corrupt one has a `problem`.
    """
    for table, key in keys:
        try:
            value = snapshot.get(table, *key)
        except CorruptionError as error:
            yield Row(table, table.key.pack(*key), None, str(error))
            continue
        own = erased()[table.personal.function].own if isinstance(table.personal, ErasedBy) else None
        if owner is not None and own is not None and value is not None:
            value = own(owner, key, value)
        if value is not None:
            yield Row(table, table.key.pack(*key), value)
