"""Rewrite a store's file without its free pages, so that what was deleted or erased is no longer in it.

LMDB never clears a page that it frees: its bytes stay in the file until the page is used again. Nobody else may have
the store open meanwhile: a commit to the old file after it was copied would be lost with it. What keeps others out is
the lock that LMDB itself takes on `lock.mdb` for as long as a process has a store open.

The copy is verified and on disk before it takes the old file's name, in one step. A crash before that leaves the old
file, a crash after it the new one; what is left of an unfinished copy goes with the next run.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import closing
from itertools import zip_longest
from pathlib import Path

import msgspec

from svc.kernel.store.engine import CheckDepth, EngineError, InUseError, KeyRange
from svc.kernel.store.files import durable_files
from svc.kernel.store.files.durable_files import require_space
from svc.kernel.store.lmdb import witness
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.lmdb.environment import open_read_only
from svc.kernel.store.lmdb.meta_pages import check_meta_pages
from svc.kernel.store.lmdb.pages import clear_gaps
from svc.kernel.store.lmdb.witness import sole_user
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.steps import Steps, counted
from svc.kernel.values.errors import DirectoryError, cause

PARTIAL = ".compact.partial"
"""A folder in that of the store: LMDB writes some flags of the environment that it copies into the copy, and those of a
file that was opened by its own name are not the usual ones."""


class Compacted(msgspec.Struct, frozen=True):
    """What a compaction did; sizes in bytes are those of the file."""

    bytes_before: int
    bytes_after: int
    rows: int


def compact(store: Path, steps: Steps) -> Compacted:
    """Compact the store in a directory. Raises `DirectoryError` and `CorruptionError`; the store is then unchanged."""
    try:
        with sole_user(store):
            return _compact(store, steps)
    except InUseError:
        raise DirectoryError(
            f"{store} is in use by another process, a backup or another command: let it end, or stop "
            "`svc backup --follow`, and start this again"
        ) from None
    except EngineError as error:
        raise DirectoryError(str(error)) from error


def _compact(store: Path, steps: Steps) -> Compacted:
    file, partial = store / "data.mdb", store / PARTIAL
    copy = partial / "data.mdb"
    check_meta_pages(file)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        before = file.stat()
        with _opened(store) as original:
            original.check(CheckDepth.EVERYTHING, steps)
            needed = original.space().used_bytes
            require_space(needed, store, "the copy beside the store", "free some space, and start this again")
            original.copy(partial, now_ms=lambda: 0)
            clear_gaps(copy, original.environment.stat()["psize"])
            copy.chmod(stat.S_IMODE(before.st_mode))
            if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(copy, before.st_uid, before.st_gid)  # of root's making, it is still the service's
            durable_files.sync(copy)
            rows = _verify(original, partial, steps)
        after = copy.stat()
        witness.forget(store)  # its commits are counted from one again
        durable_files.rename(copy, file)
    except EngineError as error:
        raise DirectoryError(f"cannot compact {file}: {error}; the store is as it was") from error
    except OSError as error:
        path = error.filename or copy
        raise DirectoryError(f"cannot compact {file}, which is as it was: {path}: {cause(error)}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Compacted(before.st_size, after.st_size, rows)


def _opened(directory: Path) -> closing[LmdbEngine]:
    return closing(LmdbEngine(open_read_only(directory, live=True, locked=False)))


def _verify(original: LmdbEngine, copy: Path, steps: Steps) -> int:
    """Compare all rows of all tables; return how many. Raises `CorruptionError` where the copy differs."""
    with _opened(copy) as copied:
        copied.check(CheckDepth.EVERYTHING, steps)
        names = sorted(original.tables())
        if names != sorted(copied.tables()):
            raise CorruptionError("the copy has other tables than the store; the store is as it was")
        for engine in (original, copied):
            engine.open_tables(names)
        rows = 0
        with closing(original.read()) as old, closing(copied.read()) as new:
            steps.stage("comparing the rows", sum(map(old.count, names)))
            for name in names:
                asked = KeyRange(name, checked=False)
                for row, other in counted(zip_longest(old.range(asked), new.range(asked)), steps):
                    if row != other:
                        raise CorruptionError(f"the copy has other rows of {name}; the store is as it was")
                    rows += 1
    return rows
