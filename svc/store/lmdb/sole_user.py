"""Working on an environment that no other process has open.

LMDB keeps a shared lock on the first byte of its lock file while a process has the environment open. The process that
calls this must not have it open itself: closing a file gives up all its locks on it (POSIX, fcntl).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from svc.store.engine import EngineError, InUseError


@contextmanager
def sole_user(directory: Path) -> Generator[None]:
    """Keep every other process from opening the environment: it waits.

    Raises `InUseError` while another process has it open, and `EngineError` where the lock file cannot be written.
    """
    lock = directory / "lock.mdb"
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise EngineError(f"cannot write {lock}: {error.strerror}") from error
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        except BlockingIOError:
            raise InUseError(f"{directory} is in use by another process") from None
        yield
    finally:
        os.close(descriptor)
