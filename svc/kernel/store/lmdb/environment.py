"""Opening LMDB environments, and why one cannot be opened."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import lmdb

from svc.kernel.store.engine import EngineError
from svc.kernel.store.lmdb.free_space import DISK_FULL
from svc.kernel.store.lmdb.meta_pages import check_meta_pages, refuse_cut
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.values.errors import NO_SPACE

FILE = "data.mdb"
DEFAULT_MAP_BYTES = 64 << 30
MAX_TABLES = 128
_MAX_READERS = 126
_LOCK_FILE = "lock.mdb"
_LOCK_BYTES = 8192
"""With a place for each reader."""


def open_writable(directory: Path, *, map_bytes: int, durable: bool) -> lmdb.Environment:
    """Return a directory's environment; `durable`: fsync each commit. Raises `EngineError` and `CorruptionError`."""
    if (directory / FILE).exists():
        check_meta_pages(directory / FILE)
    _reserve_lock_file(directory)
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
    lock = live if locked is None else locked
    if lock:
        _reserve_lock_file(path)
    try:
        return lmdb.open(
            str(path),
            subdir=live,
            readonly=True,
            lock=lock,
            create=False,
            max_dbs=MAX_TABLES,
            map_size=0,  # as the file says
        )
    except lmdb.Error as error:
        raise _unopened(path / FILE if live else path, error) from error


def _reserve_lock_file(directory: Path) -> None:
    """Take the space of a new lock file from the disk. LMDB writes to it by way of memory: on a full disk that ends the
    process by SIGBUS. One that has any block may be in use, and is left alone: to close it would drop its locks.
    Raises `EngineError`.
    """
    file = directory / _LOCK_FILE
    if not directory.is_dir() or (file.exists() and file.stat().st_blocks):
        return
    try:
        with open(file, "a+b", opener=_private) as opened:
            os.posix_fallocate(opened.fileno(), 0, _LOCK_BYTES)
    except OSError as error:  # another one LMDB meets itself, or the file system reserves nothing
        if error.errno in NO_SPACE:
            raise EngineError(DISK_FULL) from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _unopened(file: Path, error: lmdb.Error) -> EngineError | CorruptionError:
    """Return the exception for a file that LMDB cannot open, with advice if the cause is known."""
    if file.is_file() and not file.stat().st_size:
        return EngineError("the file is empty: restore a backup, or delete it if nothing was ever stored there")
    if isinstance(error, lmdb.InvalidError):
        return CorruptionError(f"{file}: its first pages are corrupt, or it is not an LMDB file")
    if isinstance(error, lmdb.MemoryError):
        return EngineError(
            "its map does not fit into the address space that this process may use: raise that limit (`ulimit -v`), or "
            "lower map_gib to what the store needs"
        )
    if getattr(error, "code", None) == errno.EAGAIN:  # of the lock by which LMDB tells that a reader lives
        return EngineError(
            f"a process of another container uses it, and has the number of this one there ({os.getpid()}): run the "
            "command in that container, as with docker exec, or start this one with --pid container:NAME"
        )
    for used in (file, file.with_name(_LOCK_FILE)):
        if getattr(error, "code", None) == errno.EACCES and used.exists() and not os.access(used, os.R_OK | os.W_OK):
            owner = f"{used.name} belongs to user {used.stat().st_uid}, and this is user {os.getuid()}"
            return EngineError(f"{owner}: run this as its owner, or change the owner with chown -R")
    return EngineError(str(error))
