"""The integrity check of a store's pages before it is served, in a process of its own while this one loads the service.

The check takes as long as the store is large (ADR 16), and loading takes most of a second: begun together, they end
together for stores of up to some six gigabytes (ADR 44).
"""

from __future__ import annotations

import os
from contextlib import closing
from enum import IntEnum
from pathlib import Path

from svc.kernel.store.engine import CheckDepth, EngineError
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.opening import version_of
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import installed
from svc.kernel.store.store import Store


class _Status(IntEnum):
    """The exit status of the process."""

    WHOLE = 0
    CORRUPT = 1
    UNKNOWN = 2


class EarlyIntegrityCheck:
    """Run the store's integrity check in a forked child process. Call `finish` once to wait for the result; if it is
    never called, the child still exits by itself.
    """

    def __init__(self, process: int, problem: int) -> None:
        self._process = process
        self._problem = problem

    @classmethod
    def begin(cls, directory: Path) -> EarlyIntegrityCheck | None:
        """Check the store of this data directory, to `CheckDepth.BRANCHES`. To be called before there are threads,
        and while this process has no store open. `None` for an older store: it is upgraded first, and an upgrade is
        refused while another process has the store open.
        """
        if _is_older(directory / "store"):
            return None
        problem, problem_writer = os.pipe()
        process = os.fork()
        if process == 0:
            status = _Status.UNKNOWN
            try:
                status = _check(directory / "store", problem_writer)
            finally:
                os._exit(status)  # nothing that the parent has begun is ended here
        os.close(problem_writer)
        return cls(process, problem)

    def finish(self, store: Store) -> None:
        """Wait for the end of the check; if the child could not run it, run it on `store`. Raises `CorruptionError`."""
        with os.fdopen(self._problem, "rb") as reader:
            problem = reader.read().decode()
        _, status = os.waitpid(self._process, 0)
        match os.waitstatus_to_exitcode(status):
            case _Status.WHOLE:
                return
            case _Status.CORRUPT:
                raise CorruptionError(problem)
            case _:
                store.engine.check(CheckDepth.BRANCHES)


def _is_older(store: Path) -> bool:
    """Return whether an upgrade comes first; not for an unreadable store, whose fault the check names."""
    try:
        with closing(LmdbEngine.open_read_only(store, live=True)) as engine:
            return 0 < version_of(engine) < installed().version
    except (CorruptionError, EngineError):
        return False


def _check(store: Path, problem_writer: int) -> _Status:
    try:
        engine = LmdbEngine.open_read_only(store, live=True)
        engine.check(CheckDepth.BRANCHES)
    except CorruptionError as error:
        os.write(problem_writer, str(error).encode())
        return _Status.CORRUPT
    except Exception:  # noqa: BLE001  the parent makes the check itself, and says what is wrong
        return _Status.UNKNOWN
    return _Status.WHOLE
