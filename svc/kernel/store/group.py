"""A group of jobs that share a commit, in two phases.

1. `run`, against a snapshot, with nobody waiting: each job runs in a recording over what the jobs before it left.
2. `settle`, in the write transaction: where nothing was committed since the snapshot, all stands. Else each job, in
   order, is held against the state as it is now, with the jobs before it: what it read must still be so, then its
   changes are taken over, with its updates made again where their rows differ. A job that disagrees runs again.

Either way the outcomes are those of the jobs run one after the other in the transaction. A job that raises undoes only
itself, and its exception is its outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar, cast

from svc.kernel.store.engine import EngineError, Reader, StoreFullError, UnavailableError, Writer
from svc.kernel.store.overlay import Overlay, Recording, RowKey
from svc.kernel.store.schema.codec import CorruptPageError
from svc.kernel.store.schema.operation_log import Changes
from svc.kernel.store.snapshot import DecodedSums, Late, RecordedTransaction, Snapshot, Transaction

OF_THE_COMMIT = (EngineError, StoreFullError, CorruptPageError)
"""Exceptions that concern all jobs: nothing more can be read or written."""


class LeaseEpoch(NamedTuple):
    """A lease as it was held: each new holder has another epoch."""

    name: str
    epoch: int


class LeaseLostError(UnavailableError):
    """Another process holds the lease; nothing was written."""

    def __init__(self, lost: Iterable[LeaseEpoch]) -> None:
        self.lost = frozenset(lost)
        super().__init__(f"another node has the lease {', '.join(sorted(lease.name for lease in self.lost))}")


T = TypeVar("T")
V = TypeVar("V")

Job = Callable[[Transaction], T | Late[T]]
Hint = Callable[[Snapshot], Iterator[None]]
"""Reads what a job will probably read, for stores that fetch rows in advance (`features/identification/hints.py`)."""


class Write(NamedTuple, Generic[T]):
    """A job to commit, and what a store that nodes share has to know about it."""

    job: Job[T]
    organization: int | None = None
    """The organization whose rows it reads and writes; `None` if that is only known after it has run."""
    hint: Hint | None = None
    lease: LeaseEpoch | None = None
    """The lease that it was made under: it is refused if another node has the lease now."""


class Settled(NamedTuple, Generic[T]):
    """The result of a group in its write transaction."""

    outcomes: list[T | Exception]
    """For each job what it returned, or the exception that it raised."""
    changes: Changes
    """To be written."""
    repeated: Sequence[int]
    """Places of the jobs that ran again."""


class _Ran(NamedTuple):
    recording: Recording
    result: Any
    """As the job returned it, `Late` included; or its exception."""


class Group(Generic[T]):
    """The jobs of one commit. `settle` may be called once."""

    def __init__(self, jobs: Sequence[Job[T]]) -> None:
        self._jobs = jobs
        self._commit: int | None = None
        self._ran: list[_Ran] = []
        self._sums = DecodedSums()
        self._settled = Settled[T]([], {}, ())
        self.runs = 0
        """Runs of jobs in the first phase."""

    def run(
        self,
        reader: Reader,
        changed: Collection[RowKey] | None = None,
        must_wait: Callable[[int], bool] = lambda _: False,
    ) -> Settled[T]:
        """Run the first phase and return its outcomes and changes. Nothing may be read from `reader` afterwards. Raises
        `EngineError` and `CorruptPageError`.

        It may be called again with a newer reader: only jobs whose reads differ run again. `changed`: the only rows
        that differ from those of the last call. `must_wait`: called with the index of a job that has to run again; if
        it returns true, the job is left for one more call of this method.
        """
        self._commit = reader.commit
        state = Overlay(reader)
        outcomes: list[T | Exception] = []
        before, self._ran = self._ran, []
        for index, job in enumerate(self._jobs):
            ran = before[index] if index < len(before) else None
            changes = None if ran is None else _changes_now(ran.recording, state, changed)
            if ran is None or changes is None:
                changed = None  # what it writes may differ now, too
                if ran is not None and must_wait(index):
                    self._ran.append(ran)
                    state.take(ran.recording.changes)
                    continue
                recording = Recording(state)
                ran = _Ran(recording, _outcome(partial(job, RecordedTransaction(recording, self._sums))))
                changes = recording.changes
                self.runs += 1
            self._ran.append(ran)
            outcomes.append(_finish(ran.result, changes, state))
        self._settled = Settled(outcomes, state.changes, ())
        return self._settled

    def settle(self, reader: Reader) -> Settled[T]:
        """Run the second phase: return the outcomes and changes that hold for the state of `reader`, running again jobs
        whose reads differ, or all jobs if `run` was not called. Nothing is written yet. Raises `EngineError` and
        `CorruptPageError`.
        """
        if self._commit == reader.commit:
            return self._settled
        state = Overlay(reader)
        outcomes: list[T | Exception] = []
        repeated: list[int] = []
        for index, job in enumerate(self._jobs):
            changes = _changes_now(self._ran[index].recording, state) if self._ran else None
            if changes is not None:
                outcomes.append(_finish(self._ran[index].result, changes, state))
                continue
            if self._ran:
                repeated.append(index)
            own = Overlay(state)
            outcomes.append(_finish(_outcome(partial(job, Transaction(own))), own.changes, state))
        return Settled(outcomes, state.changes, repeated)


def write_changes(writer: Writer, changes: Changes) -> None:
    """Write a group's changes by table, in the order of keys. Raises `StoreFullError` and `EngineError`."""
    for table, rows in changes.items():
        in_order = sorted(rows.items())
        if None in rows.values():
            writer.put_many(table, [(key, raw) for key, raw in in_order if raw is not None])
        else:
            writer.put_many(table, in_order)  # pyright: ignore[reportArgumentType]  none of them is None
        if deleted := [key for key, raw in in_order if raw is None]:
            writer.delete_many(table, deleted)


def _outcome(call: Callable[[], V]) -> V | Exception:
    try:
        return call()
    except OF_THE_COMMIT:
        raise  # which fails every job
    except Exception as error:  # noqa: BLE001  a job's failure is its outcome, and undoes only itself
        return error


def _finish(result: T | Late[T] | Exception, changes: Changes, state: Overlay) -> T | Exception:
    """Return the outcome of a job. Its changes become part of the state, unless it failed."""
    if isinstance(result, Late):
        late = cast("Late[T]", result)
        outcome = _outcome(lambda: late.finish(Snapshot(Overlay(state, changes))))
    else:
        outcome = result
    if not isinstance(outcome, Exception):
        state.take(changes)
    return outcome


def _changes_now(recording: Recording, state: Reader, changed: Collection[RowKey] | None = None) -> Changes | None:
    """Return the changes of a job if it would read the same in this state; `None` if it has to run again. If `changed`
    is given, only these rows differ from what it may have read.
    """
    try:
        holds = recording.holds_over(state) if changed is None else recording.holds_but_for(changed, state)
        return recording.changes_over(state) if holds else None
    except OF_THE_COMMIT:
        raise
    except Exception:  # noqa: BLE001  a row that cannot be read: the job meets it again, and says so
        return None
