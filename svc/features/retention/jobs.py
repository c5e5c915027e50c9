"""Retention: the bounded transactions that delete expired rows. What is kept for how long is said in `tables`.

Where the key says the age, the expired rows are one range, and nothing else is read. Where it does not, passes
look at the rows, some at a time, every few hours; when the last pass began is noted, so that a start begins none. They
leave out what cannot be over: visitors by `LAST_LOOKS`, idempotency keys whose first bytes are a time of today.
Everything is decided by the age of the row now: a clock that jumps ahead by an hour deletes what that hour ends, and
one that is set back deletes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import chain, islice
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from svc.features.contracts.cleanup import (
    ROWS_OF_ONE,
    CleanupStep,
    CleanupTask,
    Pass,
    Purge,
    Sweep,
    act_upon,
    each_row,
    look,
)
from svc.features.erasure.visitors import has_events, purge_events, purge_visitor, remove_from_block
from svc.features.labels.jobs import archive
from svc.features.registry import FEATURES
from svc.features.tables import TABLES
from svc.identify.attestation.challenge import AttestedKey
from svc.identify.history.activity import VisitorActivity, VisitorHistory
from svc.identify.history.evidence import DAY_S
from svc.identify.index.queries import count_segments
from svc.identify.matching import Block, Visitor
from svc.identify.queries.events import event_if_readable
from svc.identify.queries.velocity import activity_of
from svc.identify.recording.proofs import purge_attested_key
from svc.identify.recording.velocity import keep_record
from svc.identify.records import IDEMPOTENCY_MS, RETENTION_MS, Idempotency, LastLook, RetentionPass
from svc.identify.tables import (
    ACCOUNTS,
    ATTESTED_KEYS,
    BLOCKS,
    DELETED_VISITORS,
    EVENTS,
    IDEMPOTENCY,
    LAST_LOOKS,
    RETENTION_PASSES,
    VISITOR_COUNTS,
    VISITORS,
)
from svc.identify.velocity.counts import LONGEST_S
from svc.identify.velocity.record import AccountRecord
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Aged, KeptFor, LastTwoPeriods, Table
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import EVENT_ROWS, STEP_LOOKS, items_of_step
from svc.kernel.tenants.queries import is_removed, organization, organizations
from svc.kernel.values.ids import DAY_MS, first_id

PASS_INTERVAL_MS = 6 * 3600 * 1000
"""Between two passes over an organization; by the wall clock, so that after a jump ahead the idempotency keys go before
the events that they were answered with."""
BLOCKS_INTERVAL_MS = DAY_MS
"""Between two passes over its blocks, which are many, and in which the number of a deleted visitor leads nowhere."""
VISITORS_OF_A_LOOK = 512
"""Numbers of visitors that have one row in `LAST_LOOKS`: it is stored."""
LEAST_LOOKS_OF_A_SEARCH = 32
"""What it costs at least to ask whether a visitor has events. It is a look into every segment."""
DELETED_A_PASS = 100_000
"""Visitors that one pass takes out of the blocks: their numbers are held in memory meanwhile."""


BY_AGE = tuple(table for table in TABLES if isinstance(table.keep, KeptFor | LastTwoPeriods))
"""Tables of which the keys are the organization and then what says the age: expired rows are one range."""


def bound_of_age(table: Table[Any], now_ms: int, event_ms: int = RETENTION_MS) -> bytes | int:
    """Return the second part of the first key that is still kept, in a table of `BY_AGE`: an id (16 bytes) or a period.
    Rows before it have expired. `event_ms`: how long events are kept, in milliseconds.
    """
    if isinstance(table.keep, KeptFor):
        return first_id(now_ms - (event_ms if table.keep.setting else table.keep.ms))
    _, period, *_ = table.key.parts.values()
    return max(now_ms // period.period_ms - 1, 0)


def last_believed_ms(snapshot: Snapshot) -> int | None:
    """Return when the clock was last trusted, in Unix ms: at the last pass, which happens every six hours and only with
    a trusted clock. Before the first pass, a minute after the first start, return when the first organization was
    created; `None` if there is none. Rows that cannot be read are ignored (decisions 17.5).
    """
    passes_ms, created_ms = [0], list[int]()
    for number in organizations(snapshot):
        with suppress(CorruptionError):
            passes_ms.append(_noted(snapshot, number).began_at_ms)
            created_ms.append(organization(snapshot, number).created_at_ms)
    return max(passes_ms) or min(created_ms, default=None)


def expired_by_key(snapshot: Snapshot, number: int, now_ms: int, event_ms: int = RETENTION_MS) -> list[CleanupTask]:
    """Return a task for each table in which the organization has expired rows, found by one look at the first key."""
    tasks: list[CleanupTask] = []
    for table in BY_AGE:
        bound = bound_of_age(table, now_ms, event_ms)
        if next(_below(snapshot, table, number, bound), None) is not None:
            step = partial(_delete_events, bound) if table is EVENTS else partial(_delete_below, table, bound)
            tasks.append(CleanupTask(table.name, step, (number,)))
    return tasks


def last_passes(snapshot: Snapshot, number: int) -> RetentionPass | None:
    """Return when the passes over an organization were completed (interrupted ones do not count); `None` for a removed
    organization, whose rows are deleted differently.
    """
    return None if is_removed(snapshot, number) else snapshot.get(RETENTION_PASSES, number) or RetentionPass()


def is_pass_due(made: RetentionPass, now_ms: int, visitor_days: int) -> bool:
    """Return whether the next pass over an organization is due; it also is if the clock was set back since the last
    pass, or if that was made with other `visitor_days`.
    """
    return abs(now_ms - made.began_at_ms) >= PASS_INTERVAL_MS or made.visitor_days != visitor_days


def has_stray_events(snapshot: Snapshot, number: int, now_ms: int, event_ms: int = RETENTION_MS) -> bool:
    """Return whether events expired so long ago that they should have been deleted: the clock was wrong when they
    arrived. A pass deletes the rows that lead to them first.
    """
    bound = first_id(now_ms - event_ms - PASS_INTERVAL_MS)
    return next(_below(snapshot, EVENTS, number, bound), None) is not None


def begin_pass(transaction: Transaction, number: int, now_ms: int) -> None:
    """Record which velocity a pass that begins now may delete. Rows of addresses go between passes, too: so a day is
    added.
    """
    _note(transaction, number, counts_from_s=(now_ms - 1000 * LONGEST_S + DAY_MS) // 1000)


def end_pass(transaction: Transaction, number: int, began_at_ms: int, visitor_days: int) -> None:
    """Record that a pass has ended."""
    _note(transaction, number, began_at_ms=began_at_ms, visitor_days=visitor_days)


def _noted(snapshot: Snapshot, number: int) -> RetentionPass:
    return snapshot.get(RETENTION_PASSES, number) or RetentionPass()


def _note(transaction: Transaction, number: int, **fields: int) -> None:
    noted = msgspec.structs.replace(_noted(transaction, number), **fields)
    transaction.put(RETENTION_PASSES, (number,), noted)


def passes(sweep: Sweep) -> tuple[CleanupTask, ...]:
    """Return the tasks over the tables of an organization whose keys do not say the age of a row: those of identify,
    those of each feature, and what is `Aged`.
    """
    number, now_ms, visitor_days, made, event_ms = sweep
    unseen_s = max(visitor_days * DAY_MS, event_ms) // 1000
    aged = (table for table in TABLES if isinstance(table.keep, Aged))
    return (
        CleanupTask(IDEMPOTENCY.name, partial(_pass_idempotency, now_ms, made), (number,)),
        CleanupTask(VISITORS.name, partial(_pass_visitors, now_ms, unseen_s), (number, 0)),
        each_row(ATTESTED_KEYS, partial(_delete_attested_key, now_ms, visitor_days), number),
        *(one(sweep) for one in of_features().passes),
        *(each_row(table, partial(_delete_aged, table, now_ms), number) for table in aged),
    )


class OfFeatures(NamedTuple):
    """What all features give retention."""

    passes: tuple[Pass, ...]
    purged_by: dict[str, Purge]
    """By the name of a table."""


@cache
def of_features() -> OfFeatures:
    """Return what the modules of the kind `retention` have."""
    modules = [module for feature in FEATURES for module in feature.modules("retention")]
    purged = {name: of for module in modules for name, of in getattr(module, "PURGED_BY", {}).items()}
    return OfFeatures(tuple(one for module in modules for one in module.PASSES), purged)


def stale_accounts(number: int, now_ms: int, visitor_days: int, event_ms: int = RETENTION_MS) -> CleanupTask:
    """Return the task that forgets accounts unseen for `visitor_days`, and visitors of accounts. Those of stored events
    stay: run it once expired events are deleted.
    """
    oldest_s = (now_ms - max(visitor_days * DAY_MS, event_ms)) // 1000
    prune = partial(_prune_account, oldest_s, now_ms // 1000 - LONGEST_S)
    return CleanupTask(ACCOUNTS.name, partial(look, ACCOUNTS, prune), (number,))


def are_blocks_due(snapshot: Snapshot, number: int, now_ms: int) -> bool:
    """Return whether `BLOCKS_INTERVAL_MS` have passed since the last task of `stale_blocks`."""
    return abs(now_ms - _noted(snapshot, number).blocks_at_ms) >= BLOCKS_INTERVAL_MS


def deleted_visitors(snapshot: Snapshot, number: int, behind: int) -> list[int]:
    """Return the next `STEP_LOOKS` numbers of the organization's deleted visitors, of those above `behind`."""
    keys = snapshot.scan_keys(DELETED_VISITORS, (number, behind + 1), (number + 1,))
    return [visitor for _, visitor in islice(keys, STEP_LOOKS)]


def stale_blocks(number: int, now_ms: int, deleted: frozenset[int]) -> CleanupTask:
    """Return the task that removes these deleted visitors from the organization's blocks and accounts."""
    return CleanupTask(BLOCKS.name, partial(_pass_deleted, deleted, now_ms), (BLOCKS, number))


def _below(snapshot: Snapshot, table: Table[Any], number: int, bound: Any) -> Iterator[tuple[Any, ...]]:
    return snapshot.scan_keys_reverse(table, (number,), (number, bound))


def _delete_below(table: Table[Any], bound: Any, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    (number,) = start
    purge, rows = of_features().purged_by.get(table.name, (None, ROWS_OF_ONE))
    most = items_of_step(rows)
    keys = list(islice(_below(transaction, table, number, bound), most))
    for key in keys:
        if purge is None:
            transaction.delete(table, *key)
        else:
            purge(transaction, *key)
    return CleanupStep(len(keys), start if len(keys) == most else None)


def _delete_events(bound: Any, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    """Delete expired events, except unreadable ones. A last step raises for the first of these, third in `start`."""
    number, below, unreadable = (*start, bound, None)[:3] if len(start) == 1 else start
    most = items_of_step(EVENT_ROWS)
    ids = [request_id for _, request_id in islice(_below(transaction, EVENTS, number, below), most)]
    if not ids and unreadable is not None:
        raise CorruptionError(f"the expired event {UUID(bytes=unreadable)} cannot be read; quarantine it")
    found = [(each, event_if_readable(transaction, number, each)) for each in ids]
    readable = [(request_id, event) for request_id, event in found if event is not None]
    archive(transaction, number, readable)
    purge_events(transaction, number, readable)
    unreadable = next((request_id for request_id, event in found if event is None), unreadable)
    goes_on = len(ids) == most or unreadable is not None
    return CleanupStep(len(readable), (number, ids[-1], unreadable) if goes_on and ids else None)


def _delete_idempotency(now_ms: int, transaction: Transaction, key: tuple[Any, ...], row: Idempotency) -> bool:
    return now_ms - row.at_ms >= IDEMPOTENCY_MS and transaction.delete(IDEMPOTENCY, *key)


def _pass_idempotency(
    now_ms: int, made: RetentionPass, start: tuple[Any, ...], transaction: Transaction
) -> CleanupStep:
    """Delete expired idempotency keys. A digest that begins with a time (`ids.ordered_digest`) of the last 24 hours is
    skipped: its row has not expired, unless its caller's clock is ahead, and then an earlier pass has deleted it or one
    of the next 24 hours will. Without such a pass before, nothing is skipped.
    """
    number, *rest = start
    young = ahead = b""
    if 0 <= now_ms - made.began_at_ms < IDEMPOTENCY_MS:
        young, ahead = ((at_ms).to_bytes(6) for at_ms in (max(now_ms - IDEMPOTENCY_MS, 0), now_ms + 1))
    beyond = (number, max([ahead.ljust(16, b"\0"), *rest]))
    before = transaction.scan_past_corruption(IDEMPOTENCY, start, max(start, (number, young.ljust(16, b"\0"))))
    rows = chain(before, transaction.scan_past_corruption(IDEMPOTENCY, beyond, (number + 1,)))
    return act_upon(partial(_delete_idempotency, now_ms), transaction, rows)


def _pass_visitors(now_ms: int, unseen_s: int, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    """Find the next range of visitors of whom one may have expired, and check it from the visitor in the third part of
    `start` on, if given; the fourth is when the earlier ones were seen. `unseen_s` is at least as long as events are
    kept, since younger visitors have the event of their last visit.
    """
    now_s = now_ms // 1000
    number, first, *rest = start
    if not rest:
        beyond = (transaction.get(VISITOR_COUNTS, number) or -1) + 1
        end = min(beyond, first + VISITORS_OF_A_LOOK * VISITORS_OF_A_LOOK)
        noted = transaction.scan(LAST_LOOKS, number, start=(number, first))
        looks = {of: look for (_, of), look in islice(noted, VISITORS_OF_A_LOOK)}
        ranges = range(first, end, VISITORS_OF_A_LOOK)
        of_due = (one for one in ranges if one not in looks or looks[one].is_due(now_s, unseen_s))
        found = next(of_due, None)
        if found is None:
            return CleanupStep(0, (number, end) if end < beyond else None)
        first, rest = found, [found, now_s]
    return _look_at_range(transaction, (number, first, *rest), now_ms, unseen_s)


def _look_at_range(transaction: Transaction, start: tuple[Any, ...], now_ms: int, unseen_s: int) -> CleanupStep:
    number, first, visitor_number, seen_s = start
    now_s, end = now_ms // 1000, first + VISITORS_OF_A_LOOK
    visitors = transaction.scan_past_corruption(VISITORS, (number, visitor_number), (number, end))
    asked = deleted = reduced = 0
    looks = max(LEAST_LOOKS_OF_A_SEARCH, count_segments(transaction, number, STEP_LOOKS))
    corrupt: CorruptionError | None = None
    for (_, visitor_number), visitor in visitors:
        if isinstance(visitor, CorruptionError):
            corrupt = corrupt or visitor
            continue
        if asked == STEP_LOOKS // looks or reduced == items_of_step(ROWS_OF_ONE):
            return CleanupStep(deleted, (number, first, visitor_number, seen_s), corrupt)
        activity = activity_of(visitor)
        last_s = visitor.last_seen_s
        if activity.history.day > last_s // DAY_S:  # the last visit was not sure to be its own
            last_s = (activity.history.day + 1) * DAY_S
        if now_s - last_s >= unseen_s:
            asked += 1
            if not has_events(transaction, number, visitor.visitor_id.encode()):
                purge_visitor(transaction, number, visitor_number, now_ms)
                deleted += 1
                continue
        left = _activity_left(visitor, activity, now_s)
        if left != activity:
            reduced += 1
            after = msgspec.structs.replace(visitor, activity=left.pack())
            transaction.put(VISITORS, (number, visitor_number), after)
        seen_s = min(seen_s, last_s)
    transaction.put(LAST_LOOKS, (number, first), LastLook(seen_s, now_s))
    return CleanupStep(deleted, (number, end), corrupt)


def _activity_left(visitor: Visitor, activity: VisitorActivity, now_s: int) -> VisitorActivity:
    """Return what is kept of what a visitor did lately: all for 30 days, and then the day of the last visit, if the
    record says only when the last sure one was.
    """
    left = activity.since(now_s - LONGEST_S)
    day = activity.history.day
    if left is activity or day <= visitor.last_seen_s // DAY_S:
        return left
    return left._replace(history=VisitorHistory(day=day))


def _delete_attested_key(
    now_ms: int, visitor_days: int, transaction: Transaction, key: tuple[int, bytes], attested: AttestedKey
) -> bool:
    if now_ms - attested.last_seen_ms < visitor_days * DAY_MS:
        return False
    purge_attested_key(transaction, *key, attested)
    return True


def _delete_aged(table: Table[Any], now_ms: int, transaction: Transaction, key: tuple[Any, ...], row: Any) -> bool:
    assert isinstance(table.keep, Aged)
    return now_ms - getattr(row, table.keep.since) >= table.keep.ms and transaction.delete(table, *key)


def _pass_deleted(
    deleted: frozenset[int], now_ms: int, start: tuple[Any, ...], transaction: Transaction
) -> CleanupStep:
    """Clear deleted visitors from blocks, then accounts, then their numbers. `start`: the table and first key."""
    table, *place = start
    act = _leave if table is BLOCKS else _leave_account if table is ACCOUNTS else _forget_number
    step = look(table, partial(act, deleted), tuple(place), transaction)
    if step.resume is not None:
        return step._replace(resume=(table, *step.resume))
    if table is DELETED_VISITORS:
        _note(transaction, place[0], blocks_at_ms=now_ms)
        return step
    return step._replace(resume=(ACCOUNTS if table is BLOCKS else DELETED_VISITORS, place[0]))


def _forget_number(deleted: frozenset[int], transaction: Transaction, key: tuple[int, int], _: int) -> bool:
    return key[1] in deleted and transaction.delete(DELETED_VISITORS, *key)


def _leave_account(
    deleted: frozenset[int], transaction: Transaction, key: tuple[int, int, int], record: AccountRecord
) -> bool:
    left = record.without(deleted)
    if left is not record:
        keep_record(transaction, key, left)
    return left is not record


def _prune_account(
    oldest_s: int, active_s: int, transaction: Transaction, key: tuple[int, int, int], record: AccountRecord
) -> bool:
    left = record.since(oldest_s, active_s)
    if left is not record:
        keep_record(transaction, key, left)
    return left is None


def _leave(deleted: frozenset[int], transaction: Transaction, key: tuple[Any, ...], block: Block) -> bool:
    gone = deleted.intersection(block.numbers)
    for visitor_number in gone:
        block = block.without(visitor_number)
    if gone:
        number, block_key = key
        remove_from_block(transaction, number, block_key, block)
    return bool(gone)
