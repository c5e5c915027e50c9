"""Whether writes are stored, by effect: what was tried, and what came of it (decisions 17.4, ADR 183).

What may live here: times of attempts, what follows from them, and what the log says of work that was stopped. Nothing
asks for a cause: a lock, a right, a table, a disk and a rule of somebody else all look the same from here, and the text
of the last error is for the log.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import structlog

from svc.kernel.limits.lasting import LastingFault
from svc.kernel.store.engine import EngineError, StoreFullError
from svc.kernel.store.group import LeaseLostError

log = structlog.get_logger()

FAILING_S = 10.0
"""Writes are failing if none was stored for this long, though some were tried."""
SUSPECT_S = 2.0
"""If an attempt has not ended after this time, a write is tried, as after one that failed."""


class WriteHealth:
    """The attempts of one process, in seconds of the monotonic clock `elapsed_s`. Only an identification and a trial
    write, which writes to every table, prove that writes are stored; while clients are turned away, only a trial write.
    If the next write fails nevertheless, as for a rule about the rows of events, writes fail at once.
    """

    def __init__(self, elapsed_s: Callable[[], float]) -> None:
        self._elapsed_s = elapsed_s
        self._pending: dict[object, float] = {}
        self._stored_s = float("-inf")
        self._failed_since_s: float | None = None
        self._is_on_probation = False
        self.is_full = False
        """Whether the last write did not fit."""
        self.because = "no attempt has ended yet"
        """The error of the latest attempt that failed."""

    @contextmanager
    def attempt(self, *, proves: bool = False) -> Generator[None]:
        """Note an attempt to write. `proves`: where it succeeds, writes are stored, of all kinds that matter."""
        token, began_s = object(), self._elapsed_s()
        self._pending[token] = began_s
        try:
            yield
        except LeaseLostError:  # the store works: another process has the lease
            raise
        except EngineError as error:
            self.note_failure(error, began_s)
            raise
        else:
            if proves:
                self.note_stored()
        finally:
            del self._pending[token]

    def note_failure(self, error: EngineError, began_s: float | None = None) -> None:
        """Note that an attempt failed which began at `began_s`; `None` = now."""
        self.because = str(error)
        now_s = self._elapsed_s()
        # An attempt that began earlier may fail later: a trial write beside it fails sooner.
        since_s = max(now_s if began_s is None else began_s, self._stored_s)
        self._failed_since_s = since_s if self._failed_since_s is None else min(self._failed_since_s, since_s)
        if self._is_on_probation:
            self._failed_since_s = min(self._failed_since_s, now_s - FAILING_S)

    def note_stored(self) -> None:
        """Note that an identification was stored."""
        self._stored_s, self._failed_since_s, self._is_on_probation = self._elapsed_s(), None, False

    def note_full(self) -> None:
        """Note that a trial write did not fit: what failed before is over, and `full` is a state of its own."""
        self._failed_since_s, self.is_full = None, True

    def note_trial_write(self) -> None:
        """Note that a trial write was stored."""
        was_failing = self.is_failing()
        on_probation = was_failing or self._is_on_probation
        self.note_stored()
        self._is_on_probation, self.is_full = on_probation, False

    def is_failing(self) -> bool:
        """Return whether writes were tried for `FAILING_S`, and none was stored."""
        return self.unproven_s() >= FAILING_S

    def needs_trial_write(self) -> bool:
        """Return whether an attempt has failed or takes long, and nothing was stored since."""
        return self._failed_since_s is not None or self.unproven_s() > SUSPECT_S

    def unproven_s(self) -> float:
        """Return the seconds since the first attempt after the last success, if it has failed or not ended; else 0."""
        begun = [max(began_s, self._stored_s) for began_s in self._pending.values()]
        if self._failed_since_s is not None:
            begun.append(self._failed_since_s)
        return max(0.0, self._elapsed_s() - min(begun)) if begun else 0.0


class Outage:
    """The work of one process that a full or unavailable store stops: one fault, whatever meets it."""

    def __init__(self, elapsed_s: Callable[[], float]) -> None:
        self._fault = LastingFault(elapsed_s)

    def stopped(self, doing: str, error: EngineError | StoreFullError, times: int = 1) -> None:
        """Note that the store stopped this work, `times` pieces of it. Log it when that begins, and each minute."""
        if (fields := self._fault.met(doing, times)) is not None:
            full = isinstance(error, StoreFullError)
            log.warning("store full, write rejected" if full else "store not available", reason=str(error), **fields)

    def settle(self) -> None:
        """Log that the outage is over, if nothing was stopped lately. The caller knows that the store takes writes."""
        if (fields := self._fault.over()) is not None:
            log.info("the store is available again", **fields)
