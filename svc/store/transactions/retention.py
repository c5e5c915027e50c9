"""Retention: the bounded transactions that delete what is over. What is kept for how long is said in `tables`.

Where the key says the age, the rows that are over are one range, and nothing else is read. Where it does not, a pass
looks at all rows, some at a time; it comes round every few hours, so that each row is looked at a few times in its
life. Everything is decided by the age of the row now: a clock that jumps ahead by an hour deletes what that hour ends,
and one that is set back deletes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from svc.domain.attestation.attested_key import AttestedKey
from svc.domain.ids import DAY_MS, first_id
from svc.domain.matching import Block
from svc.domain.records import IDEMPOTENCY_MS, Idempotency
from svc.domain.sessions import ConsoleLink, Session
from svc.store.snapshot import Snapshot, Transaction
from svc.store.table import KeptFor, LastTwoPeriods
from svc.store.tables import (
    ATTEMPT_COUNTS,
    ATTEMPTS,
    ATTESTED_KEYS,
    BLOCKS,
    CONSOLE_LINKS,
    DELETED_VISITORS,
    EVENTS,
    IDEMPOTENCY,
    KEYS,
    ORGANIZATION_KEYS,
    SESSIONS,
    TABLES,
    VISITORS,
    WEBHOOK_EVENTS,
    Table,
)
from svc.store.transactions.attested_keys import purge_attested_key
from svc.store.transactions.erasure import has_events, purge_event, purge_visitor, remove_from_block
from svc.store.transactions.keys import purge_key
from svc.store.transactions.sessions import end_link, end_session, usable_key
from svc.store.transactions.webhooks import purge_webhook_event
from svc.store.webhook_views import attempt_index_keys

EVENTS_A_STEP = 32
ROWS_A_STEP = 256
LOOKS_A_STEP = 512
"""Rows that one step of a pass looks at."""
ASKED_A_STEP = 16
"""Visitors of which one step asks whether they have events: that is a look into every segment."""
ENDED_KEY_MS = 400 * DAY_MS
"""How long a revoked key is still listed (decisions 2.5), and an expired one."""
DELETED_A_PASS = 100_000
"""Visitors that one pass takes out of the blocks: their numbers are held in memory meanwhile."""


class CleanupStep(NamedTuple):
    """What one bounded transaction of a cleanup task did."""

    deleted: int
    resume: tuple[Any, ...] | None
    """The key at which the next step begins; `None` = the task is done."""


class CleanupTask(NamedTuple):
    """Rows of one table and organization to delete, in steps, each a transaction."""

    name: str
    step: Callable[[tuple[Any, ...], Transaction], CleanupStep]
    """Of the key to begin at and the transaction."""
    start: tuple[Any, ...]


BY_AGE = tuple(table for table in TABLES if isinstance(table.keep, KeptFor | LastTwoPeriods))
"""Tables of which the keys are the organization and then what says the age: rows that are over are one range."""


def bound_of_age(table: Table[Any], now_ms: int) -> bytes | int:
    """The second part of the first key that is still kept, in a table of `BY_AGE`: an id (16 bytes) or a period. Rows
    below it have expired.
    """
    if isinstance(table.keep, KeptFor):
        return first_id(now_ms - table.keep.ms)
    _, period, *_ = table.key.parts.values()
    return max(now_ms // period.period_ms - 1, 0)


def expired_by_key(snapshot: Snapshot, number: int, now_ms: int) -> list[CleanupTask]:
    """A task for each table in which the organization has expired rows, found by one look at the first key."""
    tasks: list[CleanupTask] = []
    for table in BY_AGE:
        bound = bound_of_age(table, now_ms)
        if next(_below(snapshot, table, number, bound), None) is not None:
            tasks.append(CleanupTask(table.name, partial(_delete_below, table, bound), (number,)))
    return tasks


def full_scans(number: int, now_ms: int, visitor_days: int) -> tuple[CleanupTask, ...]:
    """Tasks that look at every row of an organization: idempotency keys, visitors and attested keys of devices unseen
    for `visitor_days`, ended keys, sessions and links.
    """

    def each_row(table: Table[Any], act: _Act, name: str = "") -> CleanupTask:
        return CleanupTask(name or table.name, partial(_look, table, act), (number,))

    return (
        each_row(IDEMPOTENCY, partial(_delete_idempotency, now_ms)),
        CleanupTask(VISITORS.name, partial(_pass_visitors, now_ms, visitor_days), (number,)),
        each_row(ATTESTED_KEYS, partial(_delete_attested_key, now_ms, visitor_days)),
        each_row(SESSIONS, partial(_delete_session, now_ms)),
        each_row(CONSOLE_LINKS, partial(_delete_link, now_ms)),
        each_row(ORGANIZATION_KEYS, partial(_delete_key, now_ms), KEYS.name),
    )


def stale_blocks(snapshot: Snapshot, number: int) -> CleanupTask | None:
    """The task that takes deleted visitors out of the organization's blocks; `None` where none was deleted."""
    deleted = frozenset(visitor for (_, visitor), _ in islice(snapshot.scan(DELETED_VISITORS, number), DELETED_A_PASS))
    return CleanupTask(BLOCKS.name, partial(_pass_blocks, deleted), (number,)) if deleted else None


def _below(snapshot: Snapshot, table: Table[Any], number: int, bound: Any) -> Iterator[tuple[Any, ...]]:
    return snapshot.scan_keys_reverse(table, (number,), (number, bound))


def _delete_below(table: Table[Any], bound: Any, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    (number,) = start
    purge, most = _PURGED_BY.get(table.name, (None, ROWS_A_STEP))
    keys = list(islice(_below(transaction, table, number, bound), most))
    for key in keys:
        if purge is None:
            transaction.delete(table, *key)
        else:
            purge(transaction, *key)
    return CleanupStep(len(keys), start if len(keys) == most else None)


def _purge_attempt(transaction: Transaction, number: int, attempt_id: bytes) -> None:
    """With its index rows, and with the count of its minute, which nothing counts any more."""
    attempt = transaction.get(ATTEMPTS, number, attempt_id)
    assert attempt is not None
    transaction.delete(ATTEMPTS, number, attempt_id)
    for table, key in attempt_index_keys(number, attempt_id, attempt):
        transaction.delete(table, *key)
    transaction.delete(ATTEMPT_COUNTS, number, attempt.endpoint, attempt.occurred_at_ms // 60_000)


_PURGED_BY: dict[str, tuple[Callable[[Transaction, int, bytes], None], int]] = {
    EVENTS.name: (purge_event, EVENTS_A_STEP),
    WEBHOOK_EVENTS.name: (purge_webhook_event, EVENTS_A_STEP),
    ATTEMPTS.name: (_purge_attempt, ROWS_A_STEP),
}
"""How rows to which others belong are deleted, and how many in one step."""


def _delete_idempotency(now_ms: int, transaction: Transaction, key: tuple[Any, ...], row: Idempotency) -> bool:
    return now_ms - row.at_ms >= IDEMPOTENCY_MS and transaction.delete(IDEMPOTENCY, *key)


def _pass_visitors(now_ms: int, visitor_days: int, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    unseen_ms = visitor_days * DAY_MS
    rows = list(islice(transaction.scan(VISITORS, start[0], start=start), LOOKS_A_STEP + 1))
    asked = deleted = 0
    for (number, visitor_number), visitor in rows[:LOOKS_A_STEP]:
        if now_ms - visitor.last_seen_s * 1000 < unseen_ms:
            continue
        if asked == ASKED_A_STEP:
            return CleanupStep(deleted, (number, visitor_number))
        asked += 1
        if not has_events(transaction, number, visitor.visitor_id.encode()):  # only visits that are sure move the last
            purge_visitor(transaction, number, visitor_number, now_ms)
            deleted += 1
    return CleanupStep(deleted, rows[LOOKS_A_STEP][0] if len(rows) > LOOKS_A_STEP else None)


def _delete_attested_key(
    now_ms: int, visitor_days: int, transaction: Transaction, key: tuple[int, bytes], attested: AttestedKey
) -> bool:
    if now_ms - attested.last_seen_ms < visitor_days * DAY_MS:
        return False
    purge_attested_key(transaction, *key, attested)
    return True


def _delete_key(now_ms: int, transaction: Transaction, _: tuple[Any, ...], digest: bytes) -> bool:
    key = transaction.get(KEYS, digest)
    ended_at_ms = None if key is None else key.ended_at_ms
    if key is None or ended_at_ms is None or now_ms - ended_at_ms < ENDED_KEY_MS:
        return False
    purge_key(transaction, key, digest, now_ms)
    return True


def _delete_session(now_ms: int, transaction: Transaction, key: tuple[int, bytes], session: Session) -> bool:
    number, digest = key
    holds = not session.has_ended(now_ms) and usable_key(transaction, number, session.key_id, now_ms) is not None
    return not holds and end_session(transaction, number, digest, now_ms)


def _delete_link(now_ms: int, transaction: Transaction, key: tuple[int, bytes], link: ConsoleLink) -> bool:
    number, digest = key
    holds = now_ms < link.expires_at_ms and usable_key(transaction, number, link.key_id, now_ms) is not None
    if not holds:
        end_link(transaction, number, digest, now_ms)
    return not holds


def _pass_blocks(deleted: frozenset[int], start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    step = _look(BLOCKS, partial(_leave, deleted), start, transaction)
    if step.resume is None:
        for visitor_number in deleted:
            transaction.delete(DELETED_VISITORS, start[0], visitor_number)
    return step


def _leave(deleted: frozenset[int], transaction: Transaction, key: tuple[Any, ...], block: Block) -> bool:
    gone = deleted.intersection(block.numbers)
    for visitor_number in gone:
        block = block.without(visitor_number)
    if gone:
        number, block_key = key
        remove_from_block(transaction, number, block_key, block)
    return bool(gone)


_Act = Callable[[Transaction, Any, Any], bool]
"""Of a row's key and value: whether it has deleted or changed the row."""


def _look(table: Table[Any], act: _Act, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    """Act upon the next rows of the organization's table."""
    rows = list(islice(transaction.scan(table, start[0], start=start), LOOKS_A_STEP + 1))
    acted = sum(act(transaction, key, value) for key, value in rows[:LOOKS_A_STEP])
    return CleanupStep(acted, rows[LOOKS_A_STEP][0] if len(rows) > LOOKS_A_STEP else None)
