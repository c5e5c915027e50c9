"""The indexer: puts events of the tail into segments, and small segments into large ones (ADR 63).

Owns how long it rests, and when it last looked for corrupt segments. Receives no messages: it looks where the tail is
long, soon after it had something to do and ever more rarely when not. Writes one segment in a transaction: a
millisecond of work, or some twenty for a large one, which is done on the writer's thread. While it is blocked every
query has its result as before, and takes longer. Once an hour, and soon after a corrupt row was found anywhere, it
looks through all segments and makes those again of which a row is corrupt (ADR 186).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import structlog
import trio

from svc.identify.events.segments import Run
from svc.identify.index.queries import Scope
from svc.identify.indexing.jobs import (
    BrokenSegment,
    broken_segments,
    events_of,
    mend_tail,
    poll,
    remains_of,
    replace,
    run_of,
    step,
)
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.store import Store, StoreFullError
from svc.kernel.tenants.queries import organizations
from svc.kernel.work.store_watch import CorruptRows
from svc.world import World

log = structlog.get_logger()

T = TypeVar("T")

SHORTEST_REST_S = 1.0
LONGEST_REST_S = 30.0
REST = 9.0
"""Pause after a query, in multiples of its time: queries take at most a tenth of the loop's time."""
LOOK_S = 3600.0
"""Between two looks through all segments."""
LOOK_AGAIN_S = 60.0
"""Between two looks while there are corrupt rows."""
SETTLED_MS = 1000
"""Events arrive in order but for this: a segment is made of those before, so that it is written once."""


async def run(store: Store, world: World, corrupt: CorruptRows | None = None) -> None:
    """Build the event index until cancelled. If the store takes no writes, log it and try again."""
    corrupt = corrupt or CorruptRows()
    rest_s, looked_at, known = SHORTEST_REST_S, trio.current_time() - LOOK_S, 0
    while True:
        await trio.sleep(rest_s)
        try:
            steps = await index(store, world.now_ms() - SETTLED_MS, corrupt)
            since_s = trio.current_time() - looked_at
            if since_s >= LOOK_S or (since_s >= LOOK_AGAIN_S and corrupt.found.total() != known):
                looked_at = trio.current_time()
                steps += await repair(store, corrupt)
                known = corrupt.found.total()
        except (StoreFullError, UnavailableError) as error:
            store.outage.stopped("indexing", error)
            steps = 0
        rest_s = SHORTEST_REST_S if steps else min(2 * rest_s, LONGEST_REST_S)


async def index(store: Store, before_ms: int, corrupt: CorruptRows | None = None) -> int:
    """Index the events that arrived before `before_ms` (Unix ms), and return how many segments were written. A corrupt
    row is noted in `corrupt`, and the scope that it blocks is skipped. Raises `StoreFullError` and `UnavailableError`,
    and what a step raises.
    """
    corrupt = corrupt or CorruptRows()
    try:
        return await _index(store, before_ms, corrupt, None)
    except CorruptionError:
        pass  # one organization's rows are corrupt: poll each by itself
    steps = 0
    for number in await store.query(organizations):
        try:
            steps += await _index(store, before_ms, corrupt, number)
        except CorruptionError as error:
            corrupt.note("indexing", number, error)
    return steps


async def repair(store: Store, corrupt: CorruptRows) -> int:
    """Make the segments of the index again of which a row is corrupt, and return how many. One that cannot be is noted
    in `corrupt`. It reads a slice at a time and rests in between, since it may be the whole index, or the events of two
    hours. Raises as `index` does.
    """
    count = 0
    start: bytes | None = b""
    while start is not None:
        broken, start = await _read(store, partial(broken_segments, start=start))
        for each in broken:
            try:
                count += await _repair(store, each)
            except CorruptionError as error:
                corrupt.note("index repair", each.scope.number, error)
    return count


async def _read(store: Store, read: Callable[[Snapshot], T]) -> T:
    """Run a query, then pause in proportion to the time that it took."""
    began = trio.current_time()
    found = await store.query(read)
    await trio.sleep(REST * (trio.current_time() - began))
    return found


async def _repair(store: Store, broken: BrokenSegment) -> bool:
    remains = await store.query(partial(remains_of, broken=broken))
    if remains is None:
        return False
    runs: list[Run] = []
    after, goes_on = None, True
    while goes_on:
        found, after = await _read(store, partial(events_of, broken=broken, remains=remains, after=after))
        runs.append(run_of(found))
        goes_on = after is not None
    job = partial(replace, broken=broken, remains=remains, found=runs)
    events = await store.write_one(job, broken.scope.number, may_use_reserve=True)
    if events is None:
        return False
    log.warning("a corrupt segment of the index was made again", organization=broken.scope.number, events=events)
    return True


async def _index(store: Store, before_ms: int, corrupt: CorruptRows, of: int | None) -> int:
    steps = 0
    after: Scope | None = None
    while True:
        found, after = await store.query(partial(poll, after=after, before_ms=before_ms, of=of))
        while found is not None:
            job = partial(step, scope=found, before_ms=before_ms)
            try:
                went_on = await store.write_one(job, found.number, may_use_reserve=True)
            except CorruptionError as error:
                corrupt.note("indexing", found.number, error)
                mend = partial(mend_tail, scope=found)
                if await store.write_one(mend, found.number, may_use_reserve=True):
                    continue
                break
            if not went_on:
                break
            steps += 1
        if after is None:
            return steps
        await trio.lowlevel.checkpoint()
