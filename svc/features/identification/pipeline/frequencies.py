"""What the visitor index has learned of classes of devices: in memory, and written behind.

What may live here: which classes are in memory, and when they are read, written and evicted. What is learned of a class
is `identify/matching`'s.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from itertools import islice
from math import inf
from typing import NamedTuple

import msgspec
import structlog
import trio

from svc.features.identification.transaction import Recorded
from svc.identify.matching import Statistics, StatisticsUpdate
from svc.identify.matching.statistics import VERSIONS_REMEMBERED
from svc.identify.queries.learned import (
    SHARED,
    class_row,
    delete_corrupt,
    load_class,
    load_statistics,
    store_statistics,
)
from svc.identify.tables import STATISTICS
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.group import Write
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.store import Store, StoreFullError
from svc.kernel.tenants.queries import is_removed
from svc.kernel.work.store_watch import CorruptRows

log = structlog.get_logger()

UPDATES_BETWEEN_WRITES = 256
"""Updates that the tables of a class may be ahead of the store. A crash forgets, and other processes do not know, at
most so many of each class.
"""
YOUNG_UPDATES, YOUNG_PART = 4, 1 / 8
YOUNG_VISITS = VERSIONS_REMEMBERED / 2
"""A class with fewer visits is due after so many updates, or this part of its visits, while all that its scope has to
write is of such classes (ADR 270).
"""
YOUNG_EVERY_S, YOUNG_AT_ONCE = 5.0, 32
"""Scopes of such classes are written that seldom, and so many at a time, whatever is due: each takes some 0.3 ms, and
on a database no identification is recorded meanwhile.
"""

CLASSES_HELD = 256
"""Classes of devices, of all organizations, whose tables are held in memory between batches: 0.3 MB each when they are
full, so 80 MB at most. Loading one again takes less than a millisecond."""
UPDATES_HELD = 8_192
"""Updates of all classes together that are not stored yet: each takes some two kilobytes of memory."""

NOT_WRITTEN = (StoreFullError, UnavailableError)
"""Outcomes of a job that say nothing of it: the store takes no writes now."""

ScopeKey = tuple[int, int]
"""Organization and scope."""


class ClassKey(NamedTuple):
    """A class of devices (`family`) in one scope of an organization: what is loaded, written and evicted as one."""

    organization: int
    scope: int
    family: int


class _Scope:
    """The statistics of a scope in memory, with updates that the store does not have yet."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self.stored: dict[int, bytes | None] = {}
        """Digest of each row, the shared one included, as this process last read or wrote it; `None` = no row."""
        self.updates: list[tuple[int, StatisticsUpdate]] = []
        """The class of each, since the last write."""
        self.given_up: set[int] = set()
        self.is_large = False
        """Whether a class that is not young has learned since the last write: its row is as large as hundreds of visits
        made it.
        """


class _Written(NamedTuple):
    """The statistics of a scope as a transaction wrote them."""

    statistics: Statistics
    stored: dict[int, bytes | None]
    rebased: bool
    """Whether another process had written meanwhile, and the statistics are others than before."""


class Frequencies:
    """The statistics of organizations in memory, at most `most` classes for long; changes are written behind.

    A row that cannot be read is deleted and learned again: what was learned is worth less than the identifications that
    would fail for it.

    Where several processes learn, each keeps its updates since its last write. When another has written since, the
    updates are applied to what is stored and the result is written: as if one process had learned everything, in the
    order of the writes.
    """

    def __init__(self, store: Store, most: int = CLASSES_HELD, corrupt: CorruptRows | None = None) -> None:
        self._store = store
        self._most = most
        self._corrupt = corrupt or CorruptRows()
        self._scopes: dict[ScopeKey, _Scope] = {}
        self._held: OrderedDict[ClassKey, None] = OrderedDict()
        """The least recently used first."""
        self._loading = trio.Lock()
        self._ahead: dict[ClassKey, int] = {}
        """Updates that are not stored yet; each of these classes is held."""
        self._full: set[ScopeKey] = set()
        """Scopes with a class that is as far ahead of the store as it may be."""
        self._young: dict[ScopeKey, None] = {}
        """Scopes of young classes of which one is due, in the order in which they became so."""
        self._young_at_s = -inf
        """When the next of them may be written."""

    async def of(self, key: ClassKey) -> Statistics:
        """Return the statistics of a scope with this class loaded, from the store if needed. The caller must not change
        them: `learn` does.
        """
        if key not in self._held:
            async with self._loading:  # a second load would forget what was learned since the first
                if key not in self._held:
                    await self._read(key)
        self._held.move_to_end(key)
        return self._scopes[key[:2]].statistics

    async def _read(self, key: ClassKey) -> None:
        scope = self._scopes.get(key[:2])
        load = partial(_load, key=key, known=None if scope is None else scope.statistics)
        try:
            loaded = await self._store.query(load)
        except (CorruptionError, msgspec.DecodeError) as error:
            await self._forget_corrupt(key.organization, error)
            loaded = await self._store.query(load)
        if scope is None:
            scope = self._scopes[key[:2]] = _Scope(loaded.statistics)
            scope.stored[SHARED] = loaded.stored_shared
        scope.stored[key.family] = loaded.stored
        if loaded.row is not None:
            scope.statistics.load(key.family, loaded.row)
        self._held[key] = None

    async def learn(self, key: ClassKey, recorded: Recorded) -> None:
        """Apply the statistics update of a committed identification. Call this only after the commit: nothing is
        learned from a transaction that is undone.
        """
        if recorded.statistics_update is None:
            return
        statistics = await self.of(key)
        given_up = statistics.learn(recorded.statistics_update)
        scope = self._scopes[key[:2]]
        scope.updates.append((key.family, recorded.statistics_update))
        scope.given_up.discard(key.family)
        ahead = self._ahead[key] = self._ahead.get(key, 0) + 1
        visits = statistics.visits(key.family)
        if ahead >= UPDATES_BETWEEN_WRITES:
            self._full.add(key[:2])
        elif visits >= YOUNG_VISITS:
            scope.is_large = True
            self._young.pop(key[:2], None)
        elif not scope.is_large and ahead >= max(YOUNG_UPDATES, int(visits * YOUNG_PART)):
            self._young.setdefault(key[:2])
        if given_up is not None:
            gone = key._replace(family=given_up)
            scope.given_up.add(given_up)
            self._ahead.pop(gone, None)
            self._held.pop(gone, None)

    async def write_behind(self, *, everything: bool = False) -> None:
        """Write the scopes with a class that is as far ahead of the store as it may be, some of young classes that are
        due, or every scope that is ahead, and evict the least recently used classes. What a full store does not take
        stays in memory.
        """
        due, surplus = self._due()
        if everything:
            due = sorted({key[:2] for key in self._ahead})
        if due:
            await self._write(due)
            surplus = [key for key in surplus if key not in self._ahead]
        for key in surplus:
            if key in self._held:
                self._let_go(key)

    async def _write(self, due: Sequence[ScopeKey]) -> None:
        if not self._young.keys().isdisjoint(due):
            self._young_at_s = self._store.elapsed_s() + YOUNG_EVERY_S
        writes = [Write(partial(self._put, scope_key), scope_key[0]) for scope_key in due]
        try:
            outcomes = await self._store.write(writes, urgent=True)
        except NOT_WRITTEN as error:
            outcomes = [error] * len(due)
        for scope_key, outcome in zip(due, outcomes, strict=True):
            if isinstance(outcome, NOT_WRITTEN):
                self._store.outage.stopped("statistics", outcome)
            elif isinstance(outcome, CorruptionError):
                await self._forget_corrupt(scope_key[0], outcome)
            elif isinstance(outcome, Exception):
                raise outcome
            else:
                self._keep(scope_key, outcome)

    async def _forget_corrupt(self, organization: int, error: Exception) -> None:
        corruption = error if isinstance(error, CorruptionError) else CorruptionError(f"a row of statistics: {error}")
        self._corrupt.note("statistics", organization, corruption)
        deleted = await self._store.write_one(partial(delete_corrupt, organization=organization), organization)
        log.warning("statistics learned again from nothing", organization=organization, rows=deleted)

    def is_due(self) -> bool:
        """Return whether `write_behind` has something to do."""
        return any(self._due())

    def _due(self) -> tuple[list[ScopeKey], list[ClassKey]]:
        """Return (scopes to write, classes to evict)."""
        # Many at once: else each batch would have a second commit.
        is_over = len(self._held) > self._most + self._most // 4
        surplus = list(islice(self._held, len(self._held) - self._most)) if is_over else []
        due = self._full | {key[:2] for key in surplus if key in self._ahead}
        if self._young and self._store.elapsed_s() >= self._young_at_s:
            due.update(islice(self._young, YOUNG_AT_ONCE))
        if sum(len(scope.updates) for scope in self._scopes.values()) > UPDATES_HELD:
            due.update(key[:2] for key in self._ahead)
        return sorted(due), surplus

    def _put(self, scope_key: ScopeKey, transaction: Transaction) -> _Written | None:
        """Write a scope, nothing in memory: the transaction may run again. `None` for a removed organization."""
        if is_removed(transaction, scope_key[0]):
            return None
        scope = self._scopes[scope_key]
        changed = sorted(key.family for key in self._ahead if key[:2] == scope_key)
        given_up, statistics = scope.given_up, scope.statistics
        rebased = any(_stored(transaction, *scope_key, row) != scope.stored.get(row) for row in (SHARED, *changed))
        if rebased:
            statistics, changed_classes, given_up = _applied_again(transaction, scope_key, scope.updates)
            changed = sorted(changed_classes)
        store_statistics(transaction, *scope_key, statistics, changed, sorted(given_up))
        return _Written(statistics, {row: _stored(transaction, *scope_key, row) for row in (SHARED, *changed)}, rebased)

    def _keep(self, scope_key: ScopeKey, written: _Written | None) -> None:
        """Take over what was committed; `None` means that the organization is removed and nothing was written."""
        scope = self._scopes[scope_key]
        scope.updates.clear()
        scope.given_up.clear()
        scope.is_large = False
        self._ahead = {key: ahead for key, ahead in self._ahead.items() if key[:2] != scope_key}
        self._full.discard(scope_key)
        self._young.pop(scope_key, None)
        if written is None:
            return
        scope.stored.update(written.stored)
        if written.rebased:
            scope.statistics, scope.stored = written.statistics, dict(written.stored)
            for key in [key for key in self._held if key[:2] == scope_key and key.family not in scope.stored]:
                del self._held[key]  # as another process may have changed it: it is loaded again when it is needed
            for family in scope.stored:
                if family != SHARED:
                    self._held.setdefault(ClassKey(*scope_key, family))

    def _let_go(self, key: ClassKey) -> None:
        del self._held[key]
        self._scopes[key[:2]].statistics.unload(key.family)
        if not any(other[:2] == key[:2] for other in self._held):
            del self._scopes[key[:2]]


class _Loaded(NamedTuple):
    """What the store has of a class and its scope."""

    statistics: Statistics
    """Of the scope: those that are in memory, or new ones."""
    stored_shared: bytes | None
    stored: bytes | None
    row: bytes | None
    """To be loaded for the class; `None` = nothing is known of it."""


def _load(snapshot: Snapshot, key: ClassKey, known: Statistics | None) -> _Loaded:
    statistics = known or load_statistics(snapshot, key.organization, key.scope)
    row = class_row(snapshot, *key, known=statistics)
    if row is not None:
        Statistics().load(key.family, row)  # raises `msgspec.DecodeError`, here and not where it would end the process
    return _Loaded(statistics, _stored(snapshot, *key[:2], SHARED), _stored(snapshot, *key), row)


def _stored(snapshot: Snapshot, organization: int, scope: int, row: int) -> bytes | None:
    """Return the digest of a stored row of statistics; `None` without a row."""
    raw = snapshot.get(STATISTICS, organization, scope, row)
    return None if raw is None else blake2b(raw, digest_size=16).digest()


def _applied_again(
    snapshot: Snapshot, scope_key: ScopeKey, updates: list[tuple[int, StatisticsUpdate]]
) -> tuple[Statistics, set[int], set[int]]:
    """Apply the updates to the stored statistics. Returns the result, the classes changed and those given up."""
    statistics = load_statistics(snapshot, *scope_key)
    changed_classes: set[int] = set()
    given_up: set[int] = set()
    for family, update in updates:
        if family not in changed_classes and family not in given_up:
            load_class(snapshot, *scope_key, family, into=statistics)
        gone = statistics.learn(update)
        changed_classes.add(family)
        given_up.discard(family)
        if gone is not None:
            changed_classes.discard(gone)
            given_up.add(gone)
    return statistics, changed_classes, given_up
