"""Records of accounts made from what a store has: its events, and the velocity rows of accounts.

Runs once, when a store of before the records is upgraded (`migrations`). Memory is bounded whatever the store has: each
record is read and written for each event of its account.
"""

from __future__ import annotations

from svc.features.accounts import recount_jobs as recount
from svc.identify.queries.velocity import Party, account_key, party_of, row_key
from svc.identify.tables.accounts import ACCOUNTS, VELOCITY
from svc.identify.tables.events import EVENTS
from svc.identify.tables.visitors import VISITOR_IDS
from svc.identify.velocity.counts import LONGEST_S, OTHERS, SUBJECTS, VelocityRow
from svc.identify.velocity.record import AccountRecord, PairEvent, first_record
from svc.kernel.store.snapshot import Transaction


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
        who = party_of(number, request_id, event, visitor)
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
    recount.begin(transaction, uncounted)


def _write(
    transaction: Transaction, key: tuple[int, int, int], before: AccountRecord | None, after: AccountRecord
) -> None:
    if after is not before:
        transaction.put(ACCOUNTS, key, after)


def _with_row(record: AccountRecord | None, row: VelocityRow) -> AccountRecord:
    """The record with the first day and the visitors of a velocity row."""
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


def _count_sign_up(transaction: Transaction, who: Party) -> None:
    period = who.at_s // LONGEST_S
    for subject in ("visitor", "address"):
        place = tuple(who.counted_account if kind == "accounts" else None for kind in OTHERS[subject])
        keys = [row_key(who, subject, of) for of in (period + 1, period)] if who.id_of(subject) is not None else []
        key = next((key for key in keys if transaction.has(VELOCITY, *key)), None)
        row = None if key is None else transaction.get(VELOCITY, *key)
        if key is not None and row is not None:
            transaction.put(VELOCITY, key, row.with_others(who.at_s, place))
