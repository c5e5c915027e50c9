"""Retention: what is kept for how long, and the bounded transactions that delete what is over.

    what                                                                kept for
    event, document, deferred report, index rows                        30 days (interface 8)
    webhook event, its deliveries, attempts                             30 days (interface 8)
    history of visitors and addresses                                   the day and the one before
    what a report is known again by                                     its period of 30 days and the one before
    attestation challenge                                               its 5 minutes and the 5 before
    idempotency key                                                     24 hours (decisions 3.2), deleted within 6 more
    visitor unseen, without events                                      `visitor_retention_days`
    audit record                                                        400 days
    key, since it was revoked, or since it expired if it was not         400 days, deleted within 6 hours

Ledger, settlements and changes of billing status are for ever; a set of weights is kept once, however often it scored.

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

from svc.domain.attestation.challenge import period
from svc.domain.audit import AUDIT_MS
from svc.domain.history import DAY_S, REPLAY_MEMORY_S
from svc.domain.ids import DAY_MS, first_id
from svc.domain.matching import Block, Visitor
from svc.domain.records import IDEMPOTENCY_MS, RETENTION_MS, Idempotency
from svc.domain.webhooks.records import HISTORY_MS, WEBHOOK_ENVIRONMENTS
from svc.store.snapshot import Snapshot, Transaction
from svc.store.tables import (
    ADDRESS_HISTORY,
    ATTEMPT_COUNTS,
    ATTEMPTS,
    ATTEMPTS_BY_ENVIRONMENT,
    AUDIT,
    BLOCKS,
    CHALLENGES,
    DEPARTED,
    EVENTS,
    IDEMPOTENCY,
    KEYS,
    ORGANIZATION_KEYS,
    SENDINGS,
    VISITOR_HISTORY,
    VISITORS,
    WEBHOOK_EVENTS,
    Table,
)
from svc.store.transactions.erasure import forget_event, forget_visitor, has_events, leave_block
from svc.store.transactions.keys import forget_key
from svc.store.transactions.webhooks import forget_webhook_event

EVENTS_A_STEP = 32
ROWS_A_STEP = 256
LOOKS_A_STEP = 512
"""Rows that one step of a pass looks at."""
ENDED_KEY_MS = 400 * DAY_MS
"""How long a revoked key is still listed (decisions 2.5), and an expired one."""
DEPARTED_A_PASS = 100_000
"""Visitors that one pass takes out of the blocks: their numbers are held in memory meanwhile."""


class Step(NamedTuple):
    """One bounded transaction of a duty."""

    deleted: int
    resume: tuple[Any, ...] | None
    """The key at which the next step begins; `None` = the duty is done."""


class Duty(NamedTuple):
    """Something to delete, in steps."""

    name: str
    step: Callable[[tuple[Any, ...], Transaction], Step]
    """Of the key to begin at and the transaction."""
    start: tuple[Any, ...]


_Bound = Callable[[int], Any]
BY_AGE: tuple[tuple[Table[Any], _Bound, int], ...] = (
    (EVENTS, lambda now_ms: first_id(now_ms - RETENTION_MS), EVENTS_A_STEP),
    (WEBHOOK_EVENTS, lambda now_ms: first_id(now_ms - HISTORY_MS), EVENTS_A_STEP),
    (ATTEMPTS, lambda now_ms: first_id(now_ms - HISTORY_MS), ROWS_A_STEP),
    (VISITOR_HISTORY, lambda now_ms: _last(now_ms // 1000 // DAY_S), ROWS_A_STEP),
    (ADDRESS_HISTORY, lambda now_ms: _last(now_ms // 1000 // DAY_S), ROWS_A_STEP),
    (SENDINGS, lambda now_ms: _last(now_ms // 1000 // REPLAY_MEMORY_S), ROWS_A_STEP),
    (CHALLENGES, lambda now_ms: _last(period(now_ms)), ROWS_A_STEP),
    (AUDIT, lambda now_ms: first_id(now_ms - AUDIT_MS), ROWS_A_STEP),
)
"""Tables whose keys are organization, then age: what is below the bound of now is over; so much goes in one step."""


def over(snapshot: Snapshot, number: int, now_ms: int) -> list[Duty]:
    """What is over by its key, one look at each table; nothing where there is nothing."""
    duties: list[Duty] = []
    for table, bound_at, most in BY_AGE:
        bound = bound_at(now_ms)
        if next(_below(snapshot, table, number, bound), None) is not None:
            duties.append(Duty(table.name, partial(_delete_below, table, bound, most), (number,)))
    return duties


def passes(number: int, now_ms: int, visitor_days: int) -> tuple[Duty, ...]:
    """What can only be found by looking at all rows."""
    return (
        Duty(IDEMPOTENCY.name, partial(_pass_idempotency, now_ms), (number,)),
        Duty(VISITORS.name, partial(_pass_visitors, now_ms, visitor_days), (number,)),
        Duty(KEYS.name, partial(_pass_keys, now_ms), (number,)),
    )


def leaving(snapshot: Snapshot, number: int) -> Duty | None:
    """The pass that takes visitors who are gone out of the blocks; `None` where none are."""
    departed = frozenset(key[1] for key, _ in islice(snapshot.scan(DEPARTED, number), DEPARTED_A_PASS))
    return Duty(BLOCKS.name, partial(_pass_blocks, departed), (number,)) if departed else None


def _last(of_now: int) -> int:
    """The period before this one is read still."""
    return max(of_now - 1, 0)


def _below(snapshot: Snapshot, table: Table[Any], number: int, bound: Any) -> Iterator[tuple[Any, ...]]:
    return snapshot.keys_down(table, (number,), (number, bound))


def _delete_below(table: Table[Any], bound: Any, most: int, start: tuple[Any, ...], transaction: Transaction) -> Step:
    (number,) = start
    keys = list(islice(_below(transaction, table, number, bound), most))
    forget = _FORGET.get(table.name)
    for key in keys:
        if forget is None:
            transaction.delete(table, *key)
        else:
            forget(transaction, number, key[1])
    return Step(len(keys), start if len(keys) == most else None)


def _forget_attempt(transaction: Transaction, number: int, attempt_id: bytes) -> None:
    """With its index row, and with the count of its minute, which nothing counts any more."""
    attempt = transaction.get(ATTEMPTS, number, attempt_id)
    assert attempt is not None
    transaction.delete(ATTEMPTS, number, attempt_id)
    place = WEBHOOK_ENVIRONMENTS.index(attempt.environment)
    transaction.delete(ATTEMPTS_BY_ENVIRONMENT, number, place, attempt_id)
    transaction.delete(ATTEMPT_COUNTS, number, attempt.endpoint, attempt.occurred_at_ms // 60_000)


_FORGET: dict[str, Callable[[Transaction, int, bytes], None]] = {
    EVENTS.name: forget_event,
    WEBHOOK_EVENTS.name: forget_webhook_event,
    ATTEMPTS.name: _forget_attempt,
}
"""Rows to which others belong."""


def _pass_idempotency(now_ms: int, start: tuple[Any, ...], transaction: Transaction) -> Step:
    def delete(key: tuple[Any, ...], row: Idempotency) -> bool:
        return now_ms - row.at_ms >= IDEMPOTENCY_MS and transaction.delete(IDEMPOTENCY, *key)

    return _look(transaction, IDEMPOTENCY, start, delete)


def _pass_visitors(now_ms: int, visitor_days: int, start: tuple[Any, ...], transaction: Transaction) -> Step:
    unseen_ms = visitor_days * DAY_MS

    def delete(key: tuple[Any, ...], visitor: Visitor) -> bool:
        if now_ms - visitor.last_seen_s * 1000 < unseen_ms:
            return False
        if has_events(transaction, key[0], visitor.visitor_id.encode()):
            return False  # only visits that are sure move the last one
        forget_visitor(transaction, key[0], key[1], now_ms)
        return True

    return _look(transaction, VISITORS, start, delete)


def _pass_keys(now_ms: int, start: tuple[Any, ...], transaction: Transaction) -> Step:
    def delete(_: tuple[Any, ...], digest: bytes) -> bool:
        key = transaction.get(KEYS, digest)
        ended_at_ms = None if key is None else key.ended_at_ms
        if key is None or ended_at_ms is None or now_ms - ended_at_ms < ENDED_KEY_MS:
            return False
        forget_key(transaction, key, digest, now_ms)
        return True

    return _look(transaction, ORGANIZATION_KEYS, start, delete)


def _pass_blocks(departed: frozenset[int], start: tuple[Any, ...], transaction: Transaction) -> Step:
    def leave(key: tuple[Any, ...], block: Block) -> bool:
        gone = departed.intersection(block.numbers)
        for visitor_number in gone:
            block = block.without(visitor_number)
        if gone:
            leave_block(transaction, key[0], key[1], block)
        return bool(gone)

    step = _look(transaction, BLOCKS, start, leave)
    if step.resume is None:
        for visitor_number in departed:
            transaction.delete(DEPARTED, start[0], visitor_number)
    return step


def _look(
    transaction: Transaction, table: Table[Any], start: tuple[Any, ...], act: Callable[[tuple[Any, ...], Any], bool]
) -> Step:
    """Act upon the next rows of the organization's table; `act` says whether it has deleted or changed one."""
    rows = list(islice(transaction.scan(table, start[0], start=start), LOOKS_A_STEP + 1))
    acted = sum(act(key, value) for key, value in rows[:LOOKS_A_STEP])
    return Step(acted, rows[LOOKS_A_STEP][0] if len(rows) > LOOKS_A_STEP else None)
