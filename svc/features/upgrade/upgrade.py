"""Upgrading a data directory: an older store is copied first, and then brought to this version in one transaction.

DATA/before-upgrade/version-N/    the store as it was, for `svc restore` of the older program

The copy is a snapshot like those of `svc backup`, but for one thing: the invariants are those of this program, and are
not asked of a store that it does not know yet. It is of the data directory's own disk, so it is the way back from an
upgrade and no backup, and it holds what was erased since. The next upgrade replaces it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from svc.features.backup.snapshots import Manifest, copied, keep
from svc.kernel.store.directory import has_store
from svc.kernel.store.engine import EngineError, InUseError
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.installation import refuse_newer
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.lmdb.witness import sole_user
from svc.kernel.store.opening import open_store, version_of
from svc.kernel.store.schema.table import Migration, installed
from svc.kernel.store.steps import QUIET, Steps
from svc.kernel.store.store import ReadTransaction
from svc.kernel.store.tables import META
from svc.kernel.values.errors import DirectoryError, explained
from svc.world import RunSync

FOLDER = "before-upgrade"
_PARTIAL = ".partial"
_THE_COPY = "the copy that is kept before an upgrade"
_NO_SPACE = "free some space, or have a backup and start `svc serve --no-snapshot` once"


@dataclass(frozen=True)
class Upgraded:
    """Versions before and after an upgrade, and where the copy is."""

    before: int
    after: int
    copy: Path | None
    """Of the store before; `None` where none was wanted."""


def upgrade(
    directory: Path,
    run_sync: RunSync,
    *,
    map_bytes: int,
    program: str,
    now_ms: Callable[[], int],
    copy: bool = True,
    migrations: Sequence[Migration] | None = None,
    steps: Steps = QUIET,
) -> Upgraded | None:
    """Upgrade the store of a data directory; return `None` if there is no store, or it is not older. Raises
    `DirectoryError`, `installation.NewerStoreError` and `StoreFullError`; the store is then unchanged.
    """
    path = directory / "store"
    if not has_store(directory):
        return None
    with closing(open_as_it_is(path)) as engine:
        before, migrations = version_of(engine), installed().migrations if migrations is None else migrations
    refuse_newer(before, len(migrations))
    if before in (0, len(migrations)):
        return None
    _refuse_in_use(path)
    try:
        kept = _keep(path, directory / FOLDER, program, now_ms) if copy else None
        open_store(path, run_sync, map_bytes=map_bytes, migrations=migrations, now_ms=now_ms, steps=steps).close()
        for folder_path in (directory / FOLDER).glob(
            "version-*"
        ):  # going back is one step, and these hold what was erased
            if folder_path != kept:
                shutil.rmtree(folder_path)
    except OSError as error:
        raise DirectoryError(explained(f"cannot upgrade {directory}:", error.filename or path, error)) from error
    return Upgraded(before, len(migrations), kept)


def open_as_it_is(path: Path) -> LmdbEngine:
    """Open the store in a folder for reading, whatever its version, also while a service runs on it. Raises
    `DirectoryError`.
    """
    try:
        return LmdbEngine.open_read_only(path, live=True, check_row=installed().check_row)
    except EngineError as error:
        raise DirectoryError(f"{path} cannot be read as a store: {error}") from error


def _refuse_in_use(path: Path) -> None:
    """Raise `DirectoryError` if another process uses the store: an older one would write its rows after the copy."""
    try:
        with sole_user(path):
            pass
    except InUseError:
        raise DirectoryError(
            f"{path} is older than this program and another process is using it: stop that first, and start this "
            "again to upgrade it"
        ) from None
    except EngineError as error:
        raise DirectoryError(f"cannot upgrade {path}: {error}") from error


def _keep(path: Path, folder: Path, program: str, now_ms: Callable[[], int]) -> Path:
    """Copy the store and verify the copy; it gets its name once it is complete and on disk."""
    files.make_folder(folder)
    partial = folder / _PARTIAL
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700)
    try:
        with closing(open_as_it_is(path)) as engine:
            files.require_space(engine.space().used_bytes, folder, _THE_COPY, _NO_SPACE)
            manifest = _copied(engine, partial, program, now_ms)
        folder_path = folder / f"version-{manifest.store_version}"
        shutil.rmtree(folder_path, ignore_errors=True)  # of an upgrade that got no further, or was gone back on
        keep(partial, folder_path, manifest)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder_path


def _copied(engine: LmdbEngine, target: Path, program: str, now_ms: Callable[[], int]) -> Manifest:
    file, taken_at_ms = copied(engine.copy, target, now_ms)
    names = engine.tables()
    engine.open_tables(names)
    with ReadTransaction(engine) as snapshot:
        return Manifest(
            program=program,
            store_version=snapshot.get(META, "version") or 0,
            store=snapshot.get(META, "pepper_mark") or 0,
            taken_at_ms=taken_at_ms,
            timeline=None,
            sequence=None,
            bytes=file.stat().st_size,
            blake3=files.copy(file, None, lambda _: None),
            pepper=False,
            rows={name: snapshot.reader.count(name) for name in sorted(names)},
        )
