"""A data directory that is backed up: commits at times that the test sets, and every row to compare."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from svc.features.backup import snapshots
from svc.features.backup.follower import DEFAULT_LIMIT_BYTES, Follower, begin, resume
from svc.features.backup.restore import Restored, Restoring, restore
from svc.features.backup.segments import SegmentWriter
from svc.features.backup.snapshots import BackupSnapshot
from svc.features.checks.verification import Verification
from svc.features.organizations.jobs import create_organization
from svc.features.tables import TABLES
from svc.kernel.store import operations
from svc.kernel.store.directory import open_directory
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import QUIET, Steps
from svc.kernel.store.store import Store
from svc.kernel.store.tables import FOLLOWING, OPERATIONS
from svc.kernel.tenants.jobs import add_credit
from tests.support.worlds import SettableClock, settable_world

MAP_BYTES = 64 << 20
Rows = dict[str, list[Any]]


def rows_of(store: Store) -> Rows:
    """Every row but those of the operation log."""
    with store.read() as snapshot:
        return {table.name: list(snapshot.scan(table)) for table in TABLES if table not in (FOLLOWING, OPERATIONS)}


class BackedUp:
    """One data directory and one folder of backups. Each commit comes a second after the one before."""

    def __init__(self, root: Path) -> None:
        self.data = root / "data"
        self.folder = root / "backup"
        self.clock = SettableClock()
        self.world = settable_world(self.clock)
        self._made = 0
        with self.opened() as store:
            store.write_now([partial(create_organization, organization_id="org_x", name="x", now_ms=0,
                                     rate_limit_per_s=0)])  # fmt: skip

    @contextmanager
    def opened(self, directory: Path | None = None) -> Generator[Store]:
        found = open_directory(
            directory or self.data,
            self.world.run_sync,
            self.world.entropy,
            pepper_file=self.data / "pepper",
            durable=False,
            map_bytes=MAP_BYTES,
            now_ms=lambda: self.clock.now_ms,
        )
        try:
            yield found.store
        finally:
            found.store.close()

    def commit(self, store: Store, count: int = 1, note: str = "") -> None:
        """Commits that keep every invariant: credit, on the ledger and in the balance."""
        for _ in range(count):
            self.clock.advance(seconds=1)
            self._made += 1
            entry_id = UUID(int=self.clock.now_ms << 80 | self._made)
            job = partial(
                add_credit, number=1, entry_id=entry_id, micros=self._made, now_ms=self.clock.now_ms, note=note
            )
            (outcome,) = store.write_now([job])
            assert not isinstance(outcome, Exception), outcome

    def follow(self, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> BackupSnapshot:
        """Begin a timeline, and take the snapshot that it needs."""
        with self.opened() as store:
            begin(store, self.folder, self.world.entropy(16), self.clock.now_ms, limit_bytes)
        return self.snapshot()

    def snapshot(self, *, pepper: Path | None = None, verification: Verification = Verification.FULL) -> BackupSnapshot:
        """One is taken a second after whatever was before."""
        self.clock.advance(seconds=1)
        taking = snapshots.Taking("test", lambda: self.clock.now_ms, pepper, verification)
        return snapshots.take(self.data, self.folder, taking, QUIET)

    @contextmanager
    def following(self, store: Store) -> Generator[Follower]:
        """A follower that goes on where its segments end; it must be able to."""
        resumed = resume(store, self.folder)
        assert isinstance(resumed, SegmentWriter), resumed
        follower = Follower(store, resumed, lambda: self.clock.now_ms)
        yield follower
        follower.close()

    def restore(
        self,
        directory: Path,
        *,
        source: Path | None = None,
        to_ms: int | None = None,
        accept_loss: bool = False,
        verification: Verification = Verification.FULL,
        steps: Steps = QUIET,
    ) -> Restored:
        return restore(
            source or self.folder,
            directory,
            Restoring(to_ms, accept_loss, verification, None),
            run_sync=self.world.run_sync,
            map_bytes=MAP_BYTES,
            steps=steps,
        )

    def rows(self, directory: Path | None = None) -> Rows:
        with self.opened(directory) as store:
            return rows_of(store)


def recorded(store: Store) -> list[int]:
    """The sequences that the log has."""
    return [sequence for sequence, _ in recorded_batches(store)]


def recorded_batches(store: Store) -> list[tuple[int, bytes]]:
    """The batches that the log has, packed."""
    with store.read() as snapshot:
        return list(operations.batches(snapshot, 0))


def put(table: Any, *key: Any, value: Any) -> Callable[[Transaction], None]:
    return lambda transaction: transaction.put(table, key, value)
