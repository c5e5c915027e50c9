"""The indexer: puts events of the tail into segments, and small segments into large ones (ADR 63).

Owns how long it rests. Receives no messages: it looks where the tail is long, soon after it had something to do and
ever more rarely when not. Writes one segment in a transaction: a millisecond of work, or some twenty for a large one,
which is done on the writer's thread. While it is blocked every query has its result as before, and takes longer.
"""

from __future__ import annotations

from functools import partial

import structlog
import trio

from svc.actors.watch.corruption import CorruptRows
from svc.store.engine import UnavailableError
from svc.store.schema.codec import CorruptionError
from svc.store.store import Store, StoreFullError
from svc.store.transactions.indexing import mend_tail, poll, step
from svc.store.views.event_index import Scope
from svc.store.views.lookups import organizations
from svc.world import World

log = structlog.get_logger()

SHORTEST_REST_S = 1.0
LONGEST_REST_S = 30.0
SETTLED_MS = 1000
"""Events arrive in order but for this: a segment is made of those before, so that it is written once."""


async def run(store: Store, world: World, corrupt: CorruptRows | None = None) -> None:
    """Build the event index until cancelled. If the store takes no writes, log it and try again."""
    rest_s = SHORTEST_REST_S
    while True:
        await trio.sleep(rest_s)
        try:
            steps = await index(store, world.now_ms() - SETTLED_MS, corrupt)
        except (StoreFullError, UnavailableError) as error:
            log.warning("indexing stopped: the store takes no writes", reason=str(error))
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
        pass  # one organization's: the others are looked at by themselves
    steps = 0
    for number in await store.query(organizations):
        try:
            steps += await _index(store, before_ms, corrupt, number)
        except CorruptionError as error:
            corrupt.note("indexing", number, error)
    return steps


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
