"""Opening LMDB environments, and what LMDB's errors mean."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import lmdb

from svc.kernel.store.engine import EngineError, StoreFullError
from svc.kernel.store.lmdb.free_space import DISK_FULL, MAP_FULL, may_grow
from svc.kernel.store.lmdb.meta_pages import check_meta_pages, refuse_cut
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.values.errors import NO_SPACE

FILE = "data.mdb"
DEFAULT_MAP_BYTES = 64 << 30
MAX_TABLES = 128
_MAX_READERS = 126


def open_writable(directory: Path, *, map_bytes: int, durable: bool) -> lmdb.Environment:
    """Return the environment in a directory, created with mode 0600 where there is none.

    `durable=False` leaves out the fsync of each commit. Raises `EngineError` and `codec.CorruptionError`.
    """
    if (directory / FILE).exists():
        check_meta_pages(directory / FILE)
    try:
        return lmdb.open(
            str(directory),
            map_size=map_bytes,
            max_dbs=MAX_TABLES,
            max_readers=_MAX_READERS,
            mode=0o600,
            sync=durable,
            metasync=durable,
        )
    except lmdb.Error as error:
        raise _unopened(directory / FILE, error) from error


def open_read_only(path: Path, *, live: bool, locked: bool | None = None) -> lmdb.Environment:
    """Return an existing environment: of a directory if it is `live`, so that other processes may write to it, or else
    of a file alone. `locked=False`: of a directory that the caller keeps everybody else from. Raises `EngineError` and
    `codec.CorruptionError`.
    """
    file = path / FILE if live else path
    if file.exists():
        refuse_cut(file)
    try:
        return lmdb.open(
            str(path),
            subdir=live,
            readonly=True,
            lock=live if locked is None else locked,
            create=False,
            max_dbs=MAX_TABLES,
            map_size=0,  # as the file says
        )
    except lmdb.Error as error:
        raise _unopened(path / FILE if live else path, error) from error


def _unopened(file: Path, error: lmdb.Error) -> EngineError | CorruptionError:
    """Return the exception for a file that LMDB cannot open, with advice if the cause is known."""
    if file.is_file() and not file.stat().st_size:
        return EngineError("the file is empty: restore a backup, or delete it if nothing was ever stored there")
    if isinstance(error, lmdb.InvalidError):
        return CorruptionError(f"{file}: its first pages are corrupt, or it is not an LMDB file")
    for used in (file, file.with_name("lock.mdb")):
        if getattr(error, "code", None) == errno.EACCES and used.exists() and not os.access(used, os.R_OK | os.W_OK):
            owner = f"{used.name} belongs to user {used.stat().st_uid}, and this is user {os.getuid()}"
            return EngineError(f"{owner}: run this as its owner, or change the owner with chown -R")
    return EngineError(str(error))


def write_failure(environment: lmdb.Environment, error: lmdb.Error) -> EngineError | StoreFullError:
    """Return the exception for a failed write: `StoreFullError` if the map or the disk is full, else `EngineError`.
    LMDB reports an input/output error if only a part of its writes found space, so the free space of the disk is
    checked.
    """
    if isinstance(error, lmdb.MapFullError):
        return StoreFullError(MAP_FULL)
    code = getattr(error, "code", None)
    if code in NO_SPACE or (code == errno.EIO and not may_grow(environment)):
        return StoreFullError(DISK_FULL)
    return EngineError(str(error))
