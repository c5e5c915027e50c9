"""Groups on their way to be committed once, over as many connections as that takes.

What may live here: what one attempt leaves to the next. No connection, and no decision how often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from svc.store.engine import EngineError
from svc.store.group import Hint, Job
from svc.store.lease import LeaseEpoch
from svc.store.postgresql.errors import READ_ONLY, ConnectionLostError, SqlError
from svc.store.postgresql.groups import Part, Transactions, UncertainCommitError, UnfencedError, Written
from svc.store.postgresql.version import OtherVersionError
from svc.store.postgresql.wire import Wire

T = TypeVar("T")


class GroupAttempt(Generic[T]):
    """A group on its way to be committed once, over as many connections as that takes."""

    def __init__(
        self,
        transactions: Transactions,
        jobs: Sequence[Job[T]],
        hints: Sequence[Hint],
        fences: frozenset[int],
        leases: frozenset[LeaseEpoch],
    ) -> None:
        self._leases = leases
        self._transactions = transactions
        self._jobs = jobs
        self._hints = hints
        self._fences = fences
        self._uncertain: Written[T] | None = None

    async def run(self, wire: Wire) -> Written[T]:
        """Commit the jobs, unless an earlier attempt turns out to have done so. Raises what `Transactions.run` does."""
        if self._uncertain is not None and await self._transactions.has_happened(wire, self._uncertain):
            return self._uncertain
        self._uncertain = None
        try:
            return await self._transactions.run(wire, self._jobs, self._hints, self._fences, self._leases)
        except UnfencedError as error:
            self._fences = error.fences
            self._transactions.counts.unfenced += 1
            raise
        except UncertainCommitError as error:
            self._uncertain = error.written
            raise
        except SqlError as error:
            _look_for_the_primary(wire, error)
            raise


class SharedAttempt(Generic[T]):
    """A group of several organizations. Where it lost its connection it is made again; what fails it otherwise may be
    of one of them.
    """

    def __init__(self, transactions: Transactions, parts: Sequence[Part[T]]) -> None:
        self._transactions = transactions
        self._parts = parts
        self._uncertain: Written[T] | None = None

    async def run(self, wire: Wire) -> Written[T] | None:
        """Commit those whose fences are free; `None` where the group has failed, and nothing was written. Raises
        `ConnectionLostError` and `UncertainCommitError`, and may then be called again, and `OtherVersionError`.
        """
        if self._uncertain is not None:
            if await self._transactions.has_happened(wire, self._uncertain):
                return self._uncertain
            self._uncertain = None
        try:
            return await self._transactions.run_free(wire, self._parts)
        except UncertainCommitError as error:
            self._uncertain = error.written
            raise
        except (ConnectionLostError, OtherVersionError):
            raise
        except (EngineError, UnfencedError) as error:
            _look_for_the_primary(wire, error)
            return None


def _look_for_the_primary(wire: Wire, error: Exception) -> None:
    """The next connection finds it, where this one leads to a standby."""
    if isinstance(error, SqlError) and error.state == READ_ONLY:
        wire.close()
