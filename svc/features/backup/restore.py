"""Restore: a snapshot and what the operation log says after it, made into a data directory beside its place.

Nothing has the directory's name before everything is verified and on disk, nor where a part of what was copied, or of
what was asked for, is lost and nobody has accepted that.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple

from svc.features.backup import copied_up_to, segments, snapshots
from svc.features.backup.copied_up_to import CopiedUpTo, Loss
from svc.features.backup.move import up_to
from svc.features.backup.snapshots import BackupSnapshot
from svc.features.checks.verification import Verification, faults
from svc.kernel.access.jobs import end_all
from svc.kernel.store import operations
from svc.kernel.store.directory import pepper_mark
from svc.kernel.store.engine import Writer
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.group import write_changes
from svc.kernel.store.installation import NewerStoreError
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.opening import open_store
from svc.kernel.store.reading import read_only
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.operation_log import Batch
from svc.kernel.store.schema.table import installed
from svc.kernel.store.steps import Steps
from svc.kernel.store.tables import META
from svc.kernel.values.errors import DirectoryError, OperatorError
from svc.kernel.values.timestamps import timestamp
from svc.world import RunSync

BYTES_A_COMMIT = 8 << 20


@dataclass(frozen=True)
class Restored:
    """What was restored, and to which moment."""

    snapshot: BackupSnapshot
    batches: int
    """Commits that were made again."""
    at_ms: int
    """Of the latest of them, or when the snapshot was taken."""
    torn: segments.Torn | None
    """What the follower was writing when it stopped; it is left out."""
    pepper: str
    """`restored`, `present` where SVC_PEPPER_FILE names it, or `missing`."""
    copied: CopiedUpTo | None = None
    """What the follower recorded; `None` = nothing, or a snapshot was restored as it was taken."""
    loss: Loss | None = None
    """What was accepted as lost."""
    is_unknown: bool = False
    """Whether a log continued the snapshot, and no record says how far it was copied."""


class Restoring(NamedTuple):
    """What a store is restored with."""

    to_ms: int | None
    """As of this moment; `None` = the last that was copied."""
    accept_loss: bool
    """Whether to restore what is there where that does not reach so far."""
    verification: Verification
    pepper_file: Path | None
    """Where the settings place the pepper."""


class LossError(OperatorError):
    """A restore would not reach the last moment that was copied, or the moment that was asked for (decisions 17.6)."""


def choose(source: Path, to_ms: int | None) -> BackupSnapshot:
    """Return the newest snapshot of a folder that was taken at `to_ms` or before, or `source` itself, if it is one.
    Raises `DirectoryError`.
    """
    if snapshots.is_snapshot(source):
        chosen = snapshots.read(source)
        if to_ms is not None and chosen.manifest.taken_at_ms > to_ms:
            raise DirectoryError(f"{source} was taken at {timestamp(chosen.manifest.taken_at_ms)}, after that moment")
        return chosen
    found = snapshots.listed(source)
    if not found:
        raise DirectoryError(f"{source} holds no snapshot of this service")
    fitting = [one for one in found if to_ms is None or one.manifest.taken_at_ms <= to_ms]
    if not fitting:
        raise DirectoryError(f"the oldest snapshot in {source} was taken at {timestamp(found[0].manifest.taken_at_ms)}")
    return fitting[-1]


def restore(
    source: Path,
    directory: Path,
    restoring: Restoring,
    *,
    run_sync: RunSync,
    map_bytes: int,
    steps: Steps,
) -> Restored:
    """Make `directory`, which must not be there or be empty, what the store was at `to_ms`, or at the last.

    A snapshot that is named itself is restored as it was taken, or with `to_ms` carried on to that moment. Raises
    `LossError` if something would be missing, unless `accept_loss`; `DirectoryError`, `NewerStoreError`,
    `CorruptionError` and `StoreFullError`; and then has changed nothing.
    """
    to_ms = restoring.to_ms
    chosen = choose(source, to_ms)
    if chosen.manifest.store_version > installed().version:
        raise NewerStoreError(
            f"{chosen.path} has version {chosen.manifest.store_version} and this program knows {installed().version}: "
            "restore it with a newer one"
        )
    with files.reporting("cannot read", directory):
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise DirectoryError(f"{directory} is there and not empty; name one that does not exist yet")
    carried_on = to_ms is not None or chosen.path != source
    partial = directory.with_name(directory.name + ".restoring")
    try:
        files.make_folder(partial.parent)
        partial.mkdir(mode=0o700)
    except FileExistsError:
        raise DirectoryError(_in_the_way(partial)) from None
    try:
        with files.locked_folder(partial) as lock, files.reporting("cannot write", partial):
            lock.acquire()
            restored = _restore(chosen, partial, to_ms, map_bytes, steps, carried_on=carried_on)
            if restored.loss is not None and not restoring.accept_loss:
                raise LossError(f"{restored.loss.text}; nothing was made, and --accept-loss restores what is there")
            _bring_up_to_date(partial, run_sync, map_bytes, restored.at_ms)
            _verify(partial, restoring.verification, steps)
            restored = replace(restored, pepper=_pepper(chosen, partial, restoring.pepper_file))
            for path in (partial / "store" / "data.mdb", partial / "store", partial):
                files.sync(path)
            partial.rename(directory)
            files.sync(directory.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return restored


def _in_the_way(partial: Path) -> str:
    with files.locked_folder(partial) as lock:
        if not lock.acquire():
            return f"another `svc restore` is running and holds {partial} locked; let it end, or stop it"
    return f"{partial} is left of a restore that did not end; remove it and begin again"


def _restore(
    chosen: BackupSnapshot, partial: Path, to_ms: int | None, map_bytes: int, steps: Steps, *, carried_on: bool
) -> Restored:
    free = shutil.disk_usage(partial).free
    if free < chosen.manifest.bytes:
        needed = -(-chosen.manifest.bytes >> 20)
        raise DirectoryError(f"{partial.parent} has {free >> 20} MiB left and {needed} are needed: free some space")
    store = partial / "store"
    store.mkdir(mode=0o700)
    steps.stage("copying the snapshot", chosen.manifest.bytes)
    if files.copy(chosen.file, store / "data.mdb", steps.step) != chosen.manifest.blake3:
        raise CorruptionError(f"{chosen.file} is not what its manifest says; restore an older snapshot, named itself")
    restored = Restored(chosen, 0, chosen.manifest.taken_at_ms, None, "missing")
    if not carried_on:
        return restored
    records = copied_up_to.listed(chosen.path.parent)
    if chosen.manifest.timeline is None or chosen.manifest.sequence is None:
        return replace(restored, loss=_loss_without_log(restored.at_ms, to_ms, records))
    timeline = bytes.fromhex(chosen.manifest.timeline)
    taken_at_ms = chosen.manifest.taken_at_ms
    batches = _Batches(chosen.path.parent, timeline, chosen.manifest.sequence, taken_at_ms, to_ms, steps)
    _apply(store, batches, map_bytes)
    copied = next((record for record in records if record.timeline == chosen.manifest.timeline), None)
    loss = batches.loss(copied) or (_newer(batches.at_ms, copied, records) if to_ms is None else None)
    return replace(
        restored,
        batches=batches.count,
        at_ms=batches.at_ms,
        torn=batches.torn,
        copied=copied,
        loss=loss,
        is_unknown=copied is None and loss is None and not batches.is_reached,
    )


def _loss_without_log(taken_at_ms: int, to_ms: int | None, records: list[CopiedUpTo]) -> Loss | None:
    """Return the loss where no log continues the snapshot."""
    if to_ms is None:
        return _newer(taken_at_ms, None, records)
    if taken_at_ms >= to_ms:
        return None
    return Loss("no log continues the snapshot", taken_at_ms, to_ms)


def _newer(at_ms: int, copied: CopiedUpTo | None, records: list[CopiedUpTo]) -> Loss | None:
    """Return the loss where a later timeline was copied and all its snapshots are gone."""
    reached_ms = max(at_ms, 0 if copied is None else copied.at_ms)
    newest = max(records, key=attrgetter("at_ms"), default=None)
    if newest is None or newest.at_ms <= reached_ms:
        return None
    return Loss("the snapshot that the later log continues is missing", reached_ms, newest.at_ms)


class _Batches:
    """The batches that continue a snapshot up to a moment. Read them all, then ask for the loss."""

    def __init__(self, folder: Path, timeline: bytes, held: int, at_ms: int, to_ms: int | None, steps: Steps) -> None:
        self.count = 0
        self.at_ms = at_ms
        self.torn: segments.Torn | None = None
        self.is_reached = to_ms is not None and at_ms >= to_ms
        """Whether everything up to the moment that was asked for is there."""
        self._broken: str | None = None
        self._held: int = held
        self._to_ms = to_ms
        self._steps = steps
        self._segments = segments.listed(folder, timeline)

    def __iter__(self) -> Iterator[tuple[int, Batch]]:
        """Yield (size in bytes, batch)."""
        following = segments.with_next(self._segments)
        needed = [segment for segment, after in following if after is None or after.first > self._held + 1]
        self._steps.stage("carrying on from the log", sum(segment.path.stat().st_size for segment in needed))
        wanted: int | None = None
        for segment in needed:
            for record in self._records(segment, last=segment is needed[-1]):
                if isinstance(record, segments.Torn):
                    self.torn = record
                    return
                self._steps.step(len(record.raw))
                if record.sequence <= self._held:
                    continue
                if record.sequence != self._held + 1:
                    self._broken = f"the segment with batch {self._held + 1} is missing before {segment.path}"
                    return
                if self._to_ms is not None and record.batch.at_ms > self._to_ms:
                    wanted = self._last_until(self._to_ms, needed) if wanted is None else wanted
                    if record.sequence > wanted:
                        self.is_reached = True
                        return
                self._held = record.sequence
                self.count, self.at_ms = self.count + 1, record.batch.at_ms
                self.is_reached = self.at_ms == self._to_ms
                yield len(record.raw), record.batch

    @staticmethod
    def _last_until(to_ms: int, needed: list[segments.SegmentFile]) -> int:
        """Return the sequence of the last batch dated `to_ms` or before; 0 = none. What is dated later and comes before
        it was committed while a clock ran ahead.
        """
        last = 0
        with suppress(segments.CorruptBackupError):  # nothing is read beyond it
            for segment in needed:
                for record in segments.records(segment, last=segment is needed[-1]):
                    if isinstance(record, segments.SegmentRecord) and record.batch.at_ms <= to_ms:
                        last = record.sequence
        return last

    def _records(
        self, segment: segments.SegmentFile, *, last: bool
    ) -> Iterator[segments.SegmentRecord | segments.Torn]:
        try:
            yield from segments.records(segment, last=last)
        except segments.CorruptBackupError as error:
            self._broken = str(error)

    def loss(self, copied: CopiedUpTo | None) -> Loss | None:
        """Return what is missing of what was copied, or up to the moment that was asked for; `None` = nothing, or
        nothing is known of it.
        """
        if self.is_reached:
            return None
        missing = 0 if copied is None else max(0, copied.sequence - self._held)
        wanted_ms = copied.at_ms if self._to_ms is None and copied is not None and missing else self._to_ms
        if self._broken is not None:
            return Loss(self._broken, self.at_ms, wanted_ms, missing)
        if copied is None:
            return None
        if missing:
            return Loss(
                f"the log ends before batch {copied.sequence}, which was copied", self.at_ms, wanted_ms, missing
            )
        reached_ms = max(self.at_ms, copied.at_ms)
        if self._to_ms is None or self._to_ms <= reached_ms:
            return None
        return Loss("nothing was copied after that", reached_ms, self._to_ms)


def _apply(store: Path, batches: Iterable[tuple[int, Batch]], map_bytes: int) -> None:
    known = {*installed().names}
    opened: set[str] = set()
    with closing(LmdbEngine.open(store, map_bytes=map_bytes, durable=False)) as engine:
        left = iter(batches)
        while found := list(up_to(left, BYTES_A_COMMIT, itemgetter(0))):
            some = [batch for _, batch in found]
            named = {name for batch in some for name in batch.changes}
            for name in sorted(named - known):
                raise NewerStoreError(
                    f"the log names a table {name!r}, which this program does not know: use a newer one"
                )
            engine.open_tables(named - opened, create=True)
            opened |= named
            engine.write(partial(_apply_some, batches=some), may_use_reserve=True)
        engine.sync()


def _apply_some(writer: Writer, batches: Iterable[Batch]) -> None:
    for batch in batches:
        write_changes(writer, batch.changes)


def _bring_up_to_date(partial: Path, run_sync: RunSync, map_bytes: int, at_ms: int) -> None:
    """Upgrade the store to this program's version and end its operation log. Sessions and console links are ended: some
    have ended or were used after `at_ms`. The keys made for them are revoked as of then.
    """
    with closing(open_store(partial / "store", run_sync, map_bytes=map_bytes)) as store:
        store.change_log(operations.end)
        store.write_one_now(lambda transaction: end_all(transaction, at_ms), may_use_reserve=True)


def _verify(partial: Path, how: Verification, steps: Steps) -> None:
    with read_only(partial / "store", live=False) as opened, opened.read() as snapshot:
        broken = next(faults(opened, snapshot, how, steps), None)
    if broken is not None:
        raise CorruptionError(f"what was restored does not pass its verification: {broken}")


def _pepper(chosen: BackupSnapshot, partial: Path, pepper_file: Path | None) -> str:
    """Put the snapshot's pepper in, unless it was replaced between the snapshot and the moment that is restored."""
    with read_only(partial / "store", live=False) as opened, opened.read() as snapshot:
        mark = snapshot.get(META, "pepper_mark")

    def fits(file: Path) -> bool:
        return file.exists() and pepper_mark(file.read_bytes()) == mark

    if fits(saved := chosen.path / "pepper"):
        files.write(partial / "pepper", saved.read_bytes())
    if not fits(partial / "pepper" if pepper_file is None else pepper_file):
        return "missing"
    return "restored" if pepper_file is None else "present"
