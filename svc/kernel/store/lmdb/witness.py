"""Who has LMDB's file open, and the witness: a file beside `data.mdb` that says which commit the store had reached.

A service writes the witness once a second while something is committed, without a sync, so that it may lag behind the
store. An older `data.mdb` that is copied over the present one leaves it there, while a folder that is restored has none
(ADR 184).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from svc.kernel.store.engine import EngineError, InUseError
from svc.kernel.store.lmdb.environment import FILE
from svc.kernel.store.lmdb.meta_pages import last_commit_of
from svc.kernel.values.errors import explained

PROC = Path("/proc")
STOPPED = frozenset("Tt")
"""States of a process that a signal or a debugger has stopped."""
WAITS_FOR_DISK = "D"


class Holder(NamedTuple):
    """A process that has the file open."""

    pid: int
    state: str
    """As in /proc/PID/stat; of its threads one that waits for the disk, else the process's own."""
    command: str


def holders_of(file: Path) -> list[Holder]:
    """Return the processes of this machine that have the file open, as far as this user may see."""
    try:
        wanted = file.stat()
    except OSError:
        return []
    found: list[Holder] = []
    for entry in PROC.iterdir():
        if entry.name.isdecimal() and _has_open(entry, (wanted.st_dev, wanted.st_ino)):
            with suppress(OSError):
                found.append(_holder(entry))
    return found


def why_stalled(file: Path) -> str:
    """Return what is known of a commit to the store of this file that does not end, in one line."""
    others = [one for one in holders_of(file) if one.pid != os.getpid()]
    stopped = [f"process {one.pid} ({one.command})" for one in others if one.state in STOPPED]
    if stopped:
        return f"{', '.join(stopped)} is stopped and has the store open: continue or end it"
    if any(one.state == WAITS_FOR_DISK for one in holders_of(file)):
        return "the disk does not respond"
    return "the disk does not respond, or another process holds the store's lock"


def state_of(pid: int) -> str:
    """Return the state of a process, or of its thread that waits for the disk; empty if there is none."""
    try:
        return _holder(PROC / str(pid)).state
    except OSError:
        return ""


def _has_open(process: Path, wanted: tuple[int, int]) -> bool:
    try:
        for link in (process / "fd").iterdir():
            with suppress(OSError):
                status = link.stat()
                if (status.st_dev, status.st_ino) == wanted:
                    return True
    except OSError:
        return False
    return False


def _holder(process: Path) -> Holder:
    states = [_state(thread) for thread in (process / "task").iterdir()]
    own = _state(process)
    command = (process / "comm").read_text().strip()
    return Holder(int(process.name), WAITS_FOR_DISK if WAITS_FOR_DISK in states else own, command)


def _state(process: Path) -> str:
    return (process / "stat").read_text().rpartition(")")[2].split()[0]


@contextmanager
def sole_user(directory: Path) -> Generator[None]:
    """Prevent every other process from opening the environment, in a `with` block: others wait. LMDB holds a shared
    lock on the first byte of its lock file while a process has the environment open. The caller must not have it open:
    closing a file releases all its locks on it (POSIX, fcntl). Raises `InUseError` while another process has it open,
    and `EngineError` if the lock file cannot be written.
    """
    lock = directory / "lock.mdb"
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise EngineError(explained("cannot write", lock, error)) from error
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        except BlockingIOError:
            raise InUseError(f"{directory} is in use by another process") from None
        yield
    finally:
        os.close(descriptor)


WITNESS = "last-commit"


def write(store: Path, commit: int) -> None:
    """Record that the store in this folder has reached a commit. Raises `OSError`."""
    descriptor = os.open(store / WITNESS, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, b"%020d\n" % commit, 0)  # of one width: never half a number
    finally:
        os.close(descriptor)


def forget(store: Path) -> None:
    """Remove the witness, before a file with other numbers takes the store's place. Raises `OSError`."""
    (store / WITNESS).unlink(missing_ok=True)


def went_back(store: Path) -> str | None:
    """Return a sentence if the store, which may be served, is known to have reached a later commit; else `None`."""
    try:
        reached = int((store / WITNESS).read_bytes())  # read first, so that what is read later is at least as new
        last = last_commit_of(store / FILE)
    except (OSError, ValueError):
        return None
    if last is None or last >= reached:
        return None
    return (
        f"{store} ends with commit {last}, and commit {reached} was stored: what was acknowledged between them is "
        f"gone. If an older data.mdb was put there on purpose, delete {store / WITNESS}"
    )
