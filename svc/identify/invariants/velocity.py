"""The rules of velocity rows and of accounts: whatever event of the last 30 days is stored is counted with its visitor,
account and address, and whatever event is stored is within the record of its account. Events may be kept for longer
than 30 days, and are in no window then.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from typing import TypeAlias
from uuid import UUID

from svc.identify.queries.velocity import EventSubjects, account_key, event_subjects, is_counted, stored_rows
from svc.identify.tables import ACCOUNT_ERASURES, ACCOUNTS, EVENTS, RETENTION_PASSES, VISITOR_IDS
from svc.identify.velocity.counts import LONGEST_S, MOST, OTHERS, SUBJECTS, VelocityRow
from svc.identify.velocity.record import DAY_S, MAX_VISITORS, AccountRecord
from svc.kernel.store.snapshot import Snapshot

AccountKey: TypeAlias = tuple[int, int, int]
SAFE_S = LONGEST_S - 24 * 3600
"""No entry this far before the last event of a row has expired."""


def velocity_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield events of an organization that a row of their subjects does not count, in words. Events of earlier versions
    have none, and an account that is being erased is in some rows no longer.
    """
    made = snapshot.get(RETENTION_PASSES, number)
    # Retention may have deleted older velocity; what it noted before store version 9 is when its last pass began.
    kept_from_s = 0 if made is None else max(made.counts_from_s, made.began_at_ms // 1000 - LONGEST_S)
    for (_, request_id), event in snapshot.scan(EVENTS, number):
        if not is_counted(snapshot, number, request_id, event) or event.occurred_at_ms // 1000 < kept_from_s:
            continue
        visitor = snapshot.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
        who = event_subjects(number, request_id, event, visitor)
        if who.account is not None and snapshot.has(ACCOUNT_ERASURES, number, who.account):
            who = who._replace(account=None, counted_account=None)
        stored = list(stored_rows(snapshot, who))
        for subject in SUBJECTS:
            if who.id_of(subject) is None:
                continue
            others = dict(zip(OTHERS[subject], who.others_of(subject), strict=True))
            # The row of its own period has the event if it was committed after one of the next period.
            rows = [row.velocity for row in stored if row.subject == subject and row.velocity.last_s]
            if subject == "account" and not rows and _had_later(snapshot, who):
                continue
            faults = [list(_uncounted(row, who.at_s, others)) for row in rows]
            for fault in min(faults, key=len, default=["there is no velocity"]):
                yield f"event {UUID(bytes=request_id)} of organization {number}: {fault} of its {subject}"


def _had_later(snapshot: Snapshot, who: EventSubjects) -> bool:
    """Return whether the account of an event had one so much later that the event left the windows. The later one may
    have been erased since, or moved to another account.
    """
    record = snapshot.get(ACCOUNTS, *account_key(who))
    return record is not None and who.at_s <= record.last_s - SAFE_S


def _uncounted(row: VelocityRow, at_s: int, others: dict[str, int | None]) -> Iterator[str]:
    if at_s <= row.last_s - SAFE_S:
        return
    if at_s not in row.events and _is_kept(row.events, at_s):
        yield "it is not among the events"
    for (kind, other), seen in zip(others.items(), row.others, strict=False):
        if other is not None and other not in seen.ids and _is_kept(seen.times, at_s):
            yield f"it is not among the {kind}"


def _is_kept(times: tuple[int, ...], at_s: int) -> bool:
    """Return whether a list with entries of these times must have one of this time, if it was ever added. A full list
    has dropped older entries, and from one that is not full an erasure or another account may have taken entries.
    """
    return 0 < len(times) < MOST and at_s > times[0]


def account_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield records of accounts that are not sound, and events whose account or visitor no record has, in words. An
    account that is being erased may have no record any more, and one that ever had more than `MAX_VISITORS` visitors
    may lack any of them, though erasure or retention has made room since.
    """
    for (_, _, account), record in snapshot.scan(ACCOUNTS, number):
        yield from (f"account {account:016x} of organization {number} {fault}" for fault in _faults_of(record))
    lacking: dict[AccountKey, list[str]] = {}
    for (_, request_id), event in snapshot.scan(EVENTS, number):
        visitor = snapshot.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
        who = event_subjects(number, request_id, event, visitor)
        if not is_counted(snapshot, number, request_id, event) or who.account is None or visitor is None:
            continue
        record = snapshot.get(ACCOUNTS, *account_key(who))
        if record is None:
            if not snapshot.has(ACCOUNT_ERASURES, number, who.account):
                yield f"event {UUID(bytes=request_id)} of organization {number}: its account has no record"
            continue
        fault = f"event {UUID(bytes=request_id)} of organization {number} is not within the record of its account"
        if not (record.first_s <= who.at_s and who.at_s // DAY_S <= record.last_s // DAY_S):
            yield fault
        elif record.of(visitor) is None and len(record.visitors) < MAX_VISITORS:
            lacking.setdefault(account_key(who), []).append(fault)
    if lacking:
        full = _ever_full(snapshot, number, lacking.keys())
        yield from (fault for key, found in lacking.items() if key not in full for fault in found)


def _ever_full(snapshot: Snapshot, number: int, keys: Collection[AccountKey]) -> set[AccountKey]:
    """Which of these accounts may have had more visitors than a record has room for: those of whose stored events too
    many are by different ones, and those whose first event is no longer stored.
    """
    visitors: dict[AccountKey, set[bytes]] = {key: set() for key in keys}
    first_s = dict.fromkeys(keys, sys.maxsize)
    for (_, request_id), event in snapshot.scan(EVENTS, number):
        who = event_subjects(number, request_id, event, None)
        if who.account is not None and (key := account_key(who)) in visitors:
            visitors[key].add(event.verdict.visitor_id.encode())
            first_s[key] = min(first_s[key], who.at_s)
    records = {key: snapshot.get(ACCOUNTS, *key) for key in keys}
    return {
        key
        for key, record in records.items()
        if len(visitors[key]) > MAX_VISITORS or (record is not None and record.first_s < first_s[key])
    }


def _faults_of(record: AccountRecord) -> Iterator[str]:
    numbers = [known.visitor for known in record.visitors]
    if len(set(numbers)) < len(numbers) or len(numbers) > MAX_VISITORS:
        yield "has a visitor twice, or too many"
    if sum(known.is_first for known in record.visitors) > 1:
        yield "has two first visitors"
    for known in record.visitors:
        if not record.first_s <= known.first_s <= known.last_s or known.last_s // DAY_S > record.last_s // DAY_S:
            yield f"has a visitor {known.visitor} at times when it was not seen"


RULES = {"velocity": velocity_faults, "accounts": account_faults}
