"""Files that are whole and on disk under their name, or not there at all; and lock files.

What may live here: writing, renaming, making durable, and locking. A file that is on disk says nothing of its name:
that is its folder's, and is made durable by itself.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryFile, gettempdir

from blake3 import blake3

from svc.kernel.values.errors import DirectoryError, explained


def sync(path: Path) -> None:
    """Make a file durable with fsync; of a folder, the names in it. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes) -> None:
    """Write and fsync a new file with mode 0600, but not its name in its folder. Raises `OSError`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def rename(partial: Path, path: Path) -> None:
    """Rename a durable file, durably, over the one of that name on the same file system. Raises `OSError`."""
    partial.replace(path)
    sync(path.parent)


def replace(path: Path, content: bytes) -> None:
    """Write a file with mode 0600: after a crash it has the old or the new content. Raises `OSError`."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    write(partial, content)
    rename(partial, path)


def refused(folder: Path) -> OSError | None:
    """Return why no file can be written in a folder, or `None`: one is tried. A full disk is no reason."""
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
            file.flush()
    except OSError as error:
        return None if error.errno == errno.ENOSPC else error
    return None


def temporary_folder() -> str:
    """Return the folder for temporary files. Raises `DirectoryError` if none can be written."""
    try:
        return gettempdir()
    except FileNotFoundError as error:
        raise DirectoryError(f"{error.strerror}; name one that may be written with TMPDIR") from None


BLOCK_BYTES = 4 << 20


@contextmanager
def reporting(what_failed: str, path: Path) -> Generator[None]:
    """Raise `DirectoryError` for an `OSError` of the block, about the file that it names, else `path`."""
    try:
        yield
    except OSError as error:
        raise DirectoryError(explained(what_failed, error.filename or path, error)) from error


def make_folder(path: Path) -> None:
    """Make a folder with mode 0700, and those above it; one that exists keeps its mode. Raises `DirectoryError`."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise DirectoryError(explained("cannot make the folder", path, error)) from error


def require_space(needed: int, folder: Path, copy: str, next_step: str) -> None:
    """Raise `DirectoryError`, with the `next_step`, if a `copy` may need more bytes than the disk of `folder` has."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DirectoryError(
            f"{folder} has {free >> 20} MiB left, and {copy} may take {-(-needed >> 20)} MiB: {next_step}"
        )


def copy(source: Path, target: Path | None, note: Callable[[int], None]) -> str:
    """Return the BLAKE3 of a file in hexadecimal; copies it on the way if there is a `target`, which must not exist and
    is durable on return. `note` is called with the bytes of each step. Raises `OSError`.
    """
    digest = blake3(max_threads=blake3.AUTO)
    descriptor = None if target is None else os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with source.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
                if descriptor is not None:
                    write_all(descriptor, block)
                note(len(block))
        if descriptor is not None:
            os.fsync(descriptor)
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return digest.hexdigest()


def write_all(descriptor: int, block: bytes) -> None:
    """Write every byte, in as many calls as it takes. Raises `OSError`; then a part may have been written."""
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view) :]


class Lock:
    """An open lock file. The kernel gives the lock up when the file is closed or the process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def acquire(self) -> bool:
        """Take the lock now; `False` while another process holds it."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Close the file, and so give the lock up. A second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def content(self) -> bytes:
        """Return what the process that holds the lock wrote, at most 4 KiB."""
        return os.pread(self._descriptor, 4096, 0)

    def write(self, content: bytes) -> None:
        """Replace the content, without giving up its place on a disk that may be full; only while holding the lock."""
        os.pwrite(self._descriptor, content, 0)
        os.ftruncate(self._descriptor, len(content))


@contextmanager
def locked(path: Path) -> Generator[Lock]:
    """Open a lock file in a `with` block; create it with mode 0600 if it is missing. Refuse a symbolic link: in a
    folder that others can write to, it would create or truncate a file elsewhere. Raises `DirectoryError`.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DirectoryError(f"{path} is a symbolic link, and a lock file must not be one: remove it") from error
        raise DirectoryError(explained("cannot write", path, error)) from error
    with closing(Lock(descriptor)) as lock:
        yield lock


@contextmanager
def locked_folder(path: Path) -> Generator[Lock]:
    """Open a folder as a lock in a `with` block. Raises `DirectoryError`."""
    try:
        lock = Lock(os.open(path, os.O_RDONLY))
    except OSError as error:
        raise DirectoryError(explained("cannot use", path, error)) from error
    with closing(lock):
        yield lock


@contextmanager
def exclusive(path: Path, otherwise: str) -> Generator[None]:
    """Hold a lock file for the block. Raises `DirectoryError(otherwise)` while another process holds it."""
    with locked(path) as lock:
        if not lock.acquire():
            raise DirectoryError(otherwise)
        yield
