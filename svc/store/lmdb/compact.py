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
from collections.abc import Generator
from contextlib import closing, contextmanager
from itertools import zip_longest
from pathlib import Path

import lmdb
import msgspec

from svc.store import durable_files
from svc.store.backup.files import require_space
from svc.store.codec import CorruptionError
from svc.store.directory import DirectoryError
from svc.store.engine import CheckDepth, EngineError, InUseError
from svc.store.lmdb.environment import open_read_only
from svc.store.lmdb.meta_pages import check_meta_pages
from svc.store.lmdb.pages import check_pages
from svc.store.lmdb.sole_user import sole_user
from svc.store.steps import Steps

PARTIAL = ".compact.partial"
"""A folder in that of the store: LMDB writes some flags of the environment that it copies into the copy, and those of a
file that was opened by its own name are not the usual ones."""
_ROWS_A_STEP = 1000


class Compacted(msgspec.Struct, frozen=True):
    """What a compaction did; sizes in bytes are those of the file."""

    bytes_before: int
    bytes_after: int
    rows: int


def compact(store: Path, steps: Steps) -> Compacted:
    """Compact the store in a directory. Raises `DirectoryError` and `CorruptionError`, and then the store is as it
    was.
    """
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
            check_pages(original, CheckDepth.EVERYTHING, steps)
            needed = (original.info()["last_pgno"] + 1) * original.stat()["psize"]
            require_space(needed, store, "the copy beside the store", "free some space, and start this again")
            original.copy(str(partial), compact=True)
            copy.chmod(stat.S_IMODE(before.st_mode))
            if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(copy, before.st_uid, before.st_gid)  # of root's making, it is still the service's
            durable_files.sync(copy)
            rows = _verify(original, partial, steps)
        after = copy.stat()
        durable_files.rename(copy, file)
    except (EngineError, lmdb.Error) as error:
        raise DirectoryError(f"cannot compact {file}: {error}; the store is as it was") from error
    except OSError as error:
        place = error.filename or copy
        raise DirectoryError(f"cannot compact {file}: {place}: {error.strerror}; the store is as it was") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Compacted(before.st_size, after.st_size, rows)


@contextmanager
def _opened(directory: Path) -> Generator[lmdb.Environment]:
    with closing(open_read_only(directory, live=True, locked=False)) as environment:
        yield environment


def _verify(original: lmdb.Environment, copy: Path, steps: Steps) -> int:
    """Compare every row of every table; how many. Raises `CorruptionError` where the copy is not the same."""
    with _opened(copy) as copied:
        check_pages(copied, CheckDepth.EVERYTHING, steps)
        names = [_names(environment) for environment in (original, copied)]
        if names[0] != names[1]:
            raise CorruptionError("the copy has other tables than the store; the store is as it was")
        tables = [[environment.open_db(name, create=False) for name in names[0]] for environment in (original, copied)]
        rows = 0
        with original.begin() as old, copied.begin() as new:
            steps.stage("comparing the rows", sum(old.stat(table)["entries"] for table in tables[0]))
            for name, of_old, of_new in zip(names[0], *tables, strict=True):
                for row, other in zip_longest(old.cursor(db=of_old), new.cursor(db=of_new)):
                    if row != other:
                        raise CorruptionError(f"the copy has other rows of {name.decode()}; the store is as it was")
                    rows += 1
                    if rows % _ROWS_A_STEP == 0:
                        steps.step(_ROWS_A_STEP)
            steps.step(rows % _ROWS_A_STEP)
    return rows


def _names(environment: lmdb.Environment) -> list[bytes]:
    with environment.begin() as handle:
        return [bytes(name) for name in handle.cursor().iternext(values=False)]
