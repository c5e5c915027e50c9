"""Transactions that make the records of accounts, and count the events of an upgraded store.

Both run after an upgrade from a version without them. A recount (decisions 11.3, docs/adr/0192) counts the newest
events first, and writes in the same transaction how far it came. So each event is counted once, whatever interrupts
it, and counts are always of everything since some time.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from svc.identify.queries.velocity import EventSubjects, account_key, event_subjects, is_replayed, row_key
from svc.identify.recording.velocity import count_stored
from svc.identify.tables import ACCOUNT_ERASURES, ACCOUNTS, EVENTS, RECOUNTS, VELOCITY, VISITOR_IDS
from svc.identify.velocity.counts import LONGEST_S, OTHERS, SUBJECTS, Recount, VelocityRow
from svc.identify.velocity.record import AccountRecord, PairEvent, first_record
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.queries import is_removed
from svc.kernel.values.ids import first_id


def build_records(transaction: Transaction) -> None:
    """Make the record of each account, and count each sign-up without an account as one of its own (decisions 11.2).

    The visitor of the oldest event that is stored passes for the first. An account without events, of which a velocity
    row is left, has the visitors of that row. Events from before velocity are noted as such: `recount` counts them.
    """
    uncounted: dict[int, bytes] = {}
    for (number, request_id), event in transaction.scan(EVENTS):
        if event.velocity is None:
            uncounted[number] = request_id  # they come in the order of their ids
        if event.velocity is None or not event.velocity.is_counted:
            continue
        visitor = transaction.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
        who = event_subjects(number, request_id, event, visitor)
        if who.account is not None:
            record = transaction.get(ACCOUNTS, *account_key(who))
            own = PairEvent(who.at_s, visitor, event.account_verified)
            after = first_record(own) if record is None else record.with_event(own)
            _write(transaction, account_key(who), record, after)
        elif who.counted_account is not None:
            _count_sign_up(transaction, who)
    of_account = SUBJECTS.index("account")
    for (number, _, kind, subject, account), row in transaction.scan(VELOCITY):
        if subject == of_account and row.first_s:
            record = transaction.get(ACCOUNTS, number, kind, account)
            _write(transaction, (number, kind, account), record, _with_row(record, row))
    begin(transaction, uncounted)


def _write(
    transaction: Transaction, key: tuple[int, int, int], before: AccountRecord | None, after: AccountRecord
) -> None:
    if after is not before:
        transaction.put(ACCOUNTS, key, after)


def _with_row(record: AccountRecord | None, row: VelocityRow) -> AccountRecord:
    """Add the first day and the visitors of a velocity row to the record."""
    seen = row.others[0]
    for at_s, visitor in zip(seen.times, seen.ids, strict=True):
        own = PairEvent(at_s, visitor, is_verified=False)
        if record is None:
            record = first_record(own)
        elif record.of(visitor) is None:
            record = record.with_event(own)
    if record is None:
        record = AccountRecord(row.first_s, row.last_s)
    return record.with_event(PairEvent(row.first_s, None, is_verified=False))


def _count_sign_up(transaction: Transaction, who: EventSubjects) -> None:
    period = who.at_s // LONGEST_S
    for subject in ("visitor", "address"):
        place = tuple(who.counted_account if kind == "accounts" else None for kind in OTHERS[subject])
        keys = [row_key(who, subject, of) for of in (period + 1, period)] if who.id_of(subject) is not None else []
        key = next((key for key in keys if transaction.has(VELOCITY, *key)), None)
        row = None if key is None else transaction.get(VELOCITY, *key)
        if key is not None and row is not None:
            transaction.put(VELOCITY, key, row.with_others(who.at_s, place))


MAX_EVENTS = 20
"""In one step. Each reads its row and its visitor's number, and reads and writes at most four rows of counts."""


def begin(transaction: Transaction, newest: Mapping[int, bytes]) -> None:
    """Note that no old event is counted. `newest`: the id of the newest one by the number of its organization."""
    for number, request_id in newest.items():
        above = (int.from_bytes(request_id) + 1).to_bytes(16)
        transaction.put(RECOUNTS, (number,), Recount(above))


class Pending(NamedTuple):
    """A recount that is under way."""

    number: int
    """Of the organization."""
    recount: Recount


def pending(snapshot: Snapshot) -> list[Pending]:
    """Return the recounts that are not complete, by the number of their organization."""
    return [Pending(number, recount) for (number,), recount in snapshot.scan(RECOUNTS) if not recount.is_complete]


def step(transaction: Transaction, number: int, now_ms: int) -> Recount | None:
    """Count the next events of an organization and return how far that is; `None` if it has nothing to count. Events
    that cannot be read are left out.
    """
    recount = transaction.get(RECOUNTS, number)
    if recount is None or recount.is_complete or is_removed(transaction, number):
        return None
    oldest, counted = first_id(now_ms - 1000 * LONGEST_S), 0
    start, end = (number, min(oldest, recount.counted_from)), (number, recount.counted_from)
    rows = list(islice(transaction.scan_past_corruption(EVENTS, start, end, reverse=True), MAX_EVENTS))
    for (_, request_id), event in rows:
        if isinstance(event, CorruptionError) or event.velocity is not None or is_replayed(event):
            continue
        visitor = transaction.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
        who = event_subjects(number, request_id, event, visitor)
        if who.account is not None and transaction.has(ACCOUNT_ERASURES, number, who.account):
            who = who._replace(account=None, counted_account=None)
        count_stored(transaction, who, now_ms // 1000, is_verified=event.account_verified)
        counted += 1
    is_complete = len(rows) < MAX_EVENTS
    counted_from = start[1] if is_complete else rows[-1][0][1]
    after = Recount(counted_from, recount.events + counted, is_complete)
    transaction.put(RECOUNTS, (number,), after)
    return after
