"""Retention: deletes what has expired, and ends the erasures and removals that were interrupted.

Owns when it made its last pass, and the count of what it did. Receives no messages; each minute it looks for expired
rows. Writes in small transactions and rests after each for nine times as long as it took: so it has a tenth of the
writer's time at most, and an identification waits for one step at most. What fails is logged and tried again in the
next sweep. While the wall clock is not trusted nothing is deleted but what somebody asked to erase (decisions 17.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec
import structlog
import trio

from svc.features.contracts.cleanup import CleanupTask, Sweep
from svc.features.erasure.accounts import continue_account_erasure
from svc.features.erasure.organizations import continue_removal, is_removal_pending
from svc.features.erasure.tables import TEXT_ERASURES
from svc.features.erasure.texts import continue_texts, unreadable_events
from svc.features.erasure.unreadable import UnreadableRows
from svc.features.erasure.visitors import continue_erasure
from svc.features.retention.jobs import (
    DELETED_A_PASS,
    are_blocks_due,
    begin_pass,
    deleted_visitors,
    end_pass,
    expired_by_key,
    has_stray_events,
    is_pass_due,
    last_passes,
    passes,
    stale_accounts,
    stale_blocks,
)
from svc.identify.model import SUBJECTS, Subject
from svc.identify.records import RETENTION_MS
from svc.identify.tables import ACCOUNT_ERASURES, ERASURES
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.group import Write
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store, StoreFullError
from svc.kernel.tenants.queries import organizations
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work.clock import ClockWatch, is_ahead
from svc.kernel.work.store_watch import CorruptRows
from svc.world import World

log = structlog.get_logger()

T = TypeVar("T")
V = TypeVar("V")

INTERVAL_S = 60.0
REST = 9.0


class RetentionStatistics(msgspec.Struct, frozen=True):
    """What retention has done since the start."""

    deleted: dict[str, int]
    """Rows, by table."""
    failed: dict[str, int]
    """Steps that changed nothing, by task."""
    swept_at_ms: int
    """When the last look at everything had ended, or before that when retention was started."""
    is_held: bool
    """Whether nothing is deleted, since the clock has jumped ahead."""


class Progress:
    """The counts of what retention has deleted since the start. Until the first sweep ends, `began_at_ms` (Unix ms) is
    reported as the end of the last one.
    """

    def __init__(self, began_at_ms: int = 0, corrupt: CorruptRows | None = None) -> None:
        self.corrupt = corrupt or CorruptRows()
        self.deleted: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.swept_at_ms = began_at_ms
        self.is_held = False

    def statistics(self) -> RetentionStatistics:
        """Return a copy of the counts."""
        return RetentionStatistics(dict(self.deleted), dict(self.failed), self.swept_at_ms, self.is_held)


async def run(
    store: Store,
    world: World,
    visitor_days: int,
    watch: ClockWatch,
    progress: Progress | None = None,
    interval_s: float = INTERVAL_S,
    event_ms: int = RETENTION_MS,
) -> None:
    """Sweep every `interval_s` seconds until cancelled, and count in `progress`. `visitor_days`: days without a visit
    after which a visitor is deleted; `event_ms`: how long events are kept, in milliseconds; `watch`: tells whether the
    clock is trusted. A step that fails is logged and repeated by the next sweep.
    """
    progress = progress or Progress()
    while True:
        await trio.sleep(interval_s)
        await sweep_if_believed(store, world, visitor_days, watch, progress, event_ms)


async def sweep_if_believed(
    store: Store,
    world: World,
    visitor_days: int,
    watch: ClockWatch,
    progress: Progress,
    event_ms: int = RETENTION_MS,
) -> None:
    """Run `sweep` now if the clock is trusted; otherwise only finish what was interrupted (decisions 17.3)."""
    held = await is_ahead(store, world, watch)
    now_ms = world.now_ms()
    _note_hold(progress, now_ms, held=held)
    if held:
        await finish_interrupted(store, progress, now_ms)
    else:
        await sweep(store, now_ms, visitor_days, progress, event_ms=event_ms)
    progress.swept_at_ms = world.now_ms()


def _note_hold(progress: Progress, now_ms: int, *, held: bool) -> None:
    if held and not progress.is_held:
        log.warning(
            "the clock has jumped ahead: nothing is deleted until it has stayed for an hour",
            now=timestamp(now_ms),
            next_step="set the clock, or run `svc retention confirm` if it is right",
        )
    elif progress.is_held and not held:
        log.info("the clock is trusted again: deletion resumes", now=timestamp(now_ms))
    progress.is_held = held


async def finish_interrupted(store: Store, progress: Progress, now_ms: int) -> None:
    """Finish erasures and removals that were interrupted. Failures are logged and counted, never raised."""
    for number in await store.query(organizations):
        try:
            for (_, raw_id), _ in await _begun(store, progress, number, ERASURES):
                go_on = partial(continue_erasure, number=number, raw_id=raw_id, now_ms=now_ms)
                await _end(store, progress, number, "erasure", go_on)
                await _note_unreadable(store, progress, number, "visitor", raw_id.decode())
            for (_, digest), raw in await _begun(store, progress, number, ACCOUNT_ERASURES):
                go_on = partial(continue_account_erasure, number=number, digest=digest, now_ms=now_ms)
                await _end(store, progress, number, "erasure", go_on)
                await _note_unreadable(store, progress, number, "account", raw.decode())
            for (_, subject, digest), _ in await _begun(store, progress, number, TEXT_ERASURES):
                go_on = partial(continue_texts, number=number, subject=SUBJECTS[subject], digest=digest)
                await _end(store, progress, number, "erasure", go_on)
            if await store.query(partial(is_removal_pending, number=number)):
                await _end(store, progress, number, "removal", partial(_remove, number=number))
        except CorruptionError as error:
            progress.corrupt.note("retention", number, error)


async def _begun(store: Store, progress: Progress, number: int, table: Table[V]) -> list[tuple[tuple[Any, ...], V]]:
    """Return the rows of erasures that have begun; note those that cannot be read, of which nothing else is known."""
    rows = await store.query(lambda snapshot: list(snapshot.scan_past_corruption(table, (number,), (number + 1,))))
    found: list[tuple[tuple[Any, ...], V]] = []
    for key, value in rows:
        if isinstance(value, CorruptionError):
            progress.corrupt.note("retention of erasure", number, value)
        else:
            found.append((key, value))
    return found


async def sweep(
    store: Store,
    now_ms: int,
    visitor_days: int,
    progress: Progress | None = None,
    *,
    with_passes: bool | None = None,
    event_ms: int = RETENTION_MS,
) -> None:
    """Delete what has expired at `now_ms` (Unix ms), in every organization, and finish what was interrupted.
    `with_passes`: whether to also scan the tables whose keys do not tell the age of a row; `None` = in organizations
    where a pass is due. Failures are logged and counted, never raised.
    """
    progress = progress or Progress()
    await finish_interrupted(store, progress, now_ms)
    for number in await store.query(organizations):
        try:
            await _sweep_one(store, number, now_ms, visitor_days, event_ms, progress, with_passes=with_passes)
        except CorruptionError as error:
            progress.corrupt.note("retention", number, error)
        await trio.lowlevel.checkpoint()


async def _sweep_one(
    store: Store,
    number: int,
    now_ms: int,
    visitor_days: int,
    event_ms: int,
    progress: Progress,
    *,
    with_passes: bool | None,
) -> None:
    made = await store.query(partial(last_passes, number=number))
    wanted = made is not None and (is_pass_due(made, now_ms, visitor_days) if with_passes is None else with_passes)
    if made is not None and with_passes is None and not wanted:
        wanted = await store.query(partial(has_stray_events, number=number, now_ms=now_ms, event_ms=event_ms))
    if made is not None and wanted:
        await _write(store, progress, number, "pass", partial(begin_pass, number=number, now_ms=now_ms))
        for task in passes(Sweep(number, now_ms, visitor_days, made, event_ms)):
            await _do(store, progress, number, task)
    tasks = await store.query(partial(expired_by_key, number=number, now_ms=now_ms, event_ms=event_ms))
    if wanted:
        tasks.append(stale_accounts(number, now_ms, visitor_days, event_ms))
        if with_passes is not None or await store.query(partial(are_blocks_due, number=number, now_ms=now_ms)):
            deleted = await _deleted(store, number)
            tasks += [stale_blocks(number, now_ms, deleted)] if deleted else []
    for task in tasks:
        await _do(store, progress, number, task)
    if wanted:
        note = partial(end_pass, number=number, began_at_ms=now_ms, visitor_days=visitor_days)
        await _write(store, progress, number, "pass", note)


async def _deleted(store: Store, number: int) -> frozenset[int]:
    """Return up to `DELETED_A_PASS` numbers of deleted visitors, read some at a time."""
    found: list[int] = []
    while len(found) < DELETED_A_PASS:
        behind = found[-1] if found else -1
        some = await store.query(partial(deleted_visitors, number=number, behind=behind))
        if not some:
            break
        found += some
        await trio.lowlevel.checkpoint()
    return frozenset(found)


async def _end(store: Store, progress: Progress, number: int, task: str, step: Callable[[Transaction], bool]) -> None:
    """Repeat the step until it is the last one or fails; note the rows that cannot be read and stay."""
    left = UnreadableRows()
    while (ended := await _write(store, progress, number, task, lambda of: step(left.past(of)))) is False:
        pass
    for error in left.left():
        progress.corrupt.note(f"retention of {task}", number, error)
    if ended:
        log.info("completed what was interrupted", organization=number, task=task)


def _remove(transaction: Transaction, number: int) -> bool:
    return continue_removal(transaction, number) == 0


async def _note_unreadable(store: Store, progress: Progress, number: int, subject: Subject, subject_id: str) -> None:
    find = partial(unreadable_events, number=number, subject=subject, subject_id=subject_id)
    for error in await store.query(find):
        progress.corrupt.note("retention of erasure", number, error)


async def _do(store: Store, progress: Progress, number: int, task: CleanupTask) -> None:
    """Repeat the task's step until nothing is left or a step fails."""
    deleted = 0
    resume: tuple[Any, ...] | None = task.start
    while resume is not None:
        step = await _write(store, progress, number, task.name, partial(task.step, resume))
        if step is None:
            return
        deleted, resume = deleted + step.deleted, step.resume
        progress.deleted[task.name] += step.deleted
        if step.corrupt is not None:
            progress.corrupt.note(f"retention of {task.name}", number, step.corrupt)
            progress.failed[task.name] += 1
    if deleted:
        log.info("deleted expired rows", organization=number, table=task.name, rows=deleted)


async def _write(store: Store, progress: Progress, number: int, task: str, job: Callable[[Transaction], T]) -> T | None:
    """Run the job, then rest; return its result. `None` means that it failed, which is logged."""
    began = trio.current_time()
    try:
        (outcome,) = await store.write([Write(job, number)], may_use_reserve=True)
    except (StoreFullError, UnavailableError) as error:
        store.outage.stopped("retention", error)
        progress.failed[task] += 1
        return None
    if isinstance(outcome, CorruptionError):
        progress.corrupt.note(f"retention of {task}", number, outcome)
        progress.failed[task] += 1
        return None
    if isinstance(outcome, Exception):
        log.error("retention task failed", organization=number, task=task, exc_info=outcome)
        progress.failed[task] += 1
        return None
    await trio.sleep(REST * (trio.current_time() - began))
    return outcome
