"""One service per data directory: DATA/serve.lock, held by whatever must be alone on the store.

A second service would attempt each webhook again, count rate limits by itself, and overwrite what the first learned.
The lock is an flock: the kernel releases it when the process ends, however it ends. The name of its holder in the file
is for people alone. Commands that only change rows, as `svc key issue` does, don't need the lock.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from svc.kernel.store.files import durable_files
from svc.kernel.values.errors import NO_SPACE, DirectoryError
from svc.kernel.values.timestamps import timestamp
from svc.world import pause

NAME = "serve.lock"
POLL_INTERVAL_S = 0.1


class Holder(msgspec.Struct, frozen=True):
    """The content of the lock file: the process that holds the lock, and since when (Unix ms)."""

    command: str
    pid: int
    host: str
    since_ms: int


class DirectoryInUseError(DirectoryError):
    """Another process holds the lock of the data directory; the message names it."""


@contextmanager
def sole_process(
    directory: Path,
    command: str,
    now_ms: Callable[[], int],
    *,
    reason: str,
    wait_s: float = 0,
    on_wait: Callable[[str], None] | None = None,
    pause: Callable[[float], None] = pause,
) -> Generator[None]:
    """Hold the lock of an existing data directory for this command, for a `with` block. `reason` tells an operator who
    is refused what would go wrong. Wait at most `wait_s` seconds for a predecessor that is still draining; `on_wait` is
    called once with its name. Raises `DirectoryInUseError`, which names the holder, and `DirectoryError`.
    """
    path = directory / NAME
    holder = Holder(command, os.getpid(), socket.gethostname(), now_ms())
    polls = math.ceil(wait_s / POLL_INTERVAL_S)
    with durable_files.locked(path) as lock:
        for poll in range(polls + 1):
            if lock.acquire():
                break
            if poll == polls:
                other = _named(lock.content())
                raise DirectoryInUseError(
                    f"{directory} is in use by {other}: stop that first, or name another --data; {reason}"
                )
            if poll == 0 and on_wait is not None:
                on_wait(_named(lock.content()))
            pause(POLL_INTERVAL_S)
        try:
            lock.write(msgspec.json.encode(holder) + b"\n")
        except OSError as error:  # on a full disk the store can still be read
            if error.errno not in NO_SPACE:
                raise
        yield


def holder_of(directory: Path) -> str | None:
    """Return who holds the lock of a data directory now, `None` if nobody does. Raises `DirectoryError`."""
    content = _content_of_holder(directory)
    return None if content is None else _named(content)


def is_held_by(directory: Path, command: str) -> bool:
    """Return whether this command holds the lock of a data directory now. Raises `DirectoryError` as `holder_of`."""
    content = _content_of_holder(directory)
    holder = None if content is None else _read(content)
    return holder is not None and holder.command == command


def _content_of_holder(directory: Path) -> bytes | None:
    path = directory / NAME
    if not path.exists():
        return None
    with durable_files.locked(path) as lock:
        return None if lock.acquire() else lock.content()


def _named(content: bytes) -> str:
    holder = _read(content)
    if holder is None:
        return "another process"
    return f"`{holder.command}` (process {holder.pid} on {holder.host}, since {timestamp(holder.since_ms)})"


def _read(content: bytes) -> Holder | None:
    """Read the holder; `None` if it has not written its name yet."""
    try:
        return msgspec.json.decode(content, type=Holder)
    except msgspec.DecodeError:
        return None
