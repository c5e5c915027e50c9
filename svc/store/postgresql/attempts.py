"""Groups on their way to be committed once, over as many connections as that takes.

What may live here: what one attempt leaves to the next. No connection, and no decision how often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from svc.store.engine import EngineError
from svc.store.lease import LeaseEpoch
from svc.store.postgresql.errors import READ_ONLY, ConnectionLostError, SqlError
from svc.store.postgresql.groups import Part, Transactions, UncertainCommitError, UnfencedError, Written
from svc.store.postgresql.version import OtherVersionError
from svc.store.postgresql.wire import Wire

T = TypeVar("T")


class GroupAttempt(Generic[T]):
    """A group on its way to be committed once, over as many connections as that takes.

    One that organizations share is made again only where it lost its connection: what fails it otherwise may be of one
    of them.
    """

    def __init__(
        self, transactions: Transactions, parts: Sequence[Part[T]], leases: frozenset[LeaseEpoch], *, shared: bool
    ) -> None:
        self._transactions = transactions
        self._parts = parts
        self._leases = leases
        self._is_shared = shared
        self._uncertain: Written[T] | None = None

    async def run(self, wire: Wire) -> Written[T] | None:
        """Commit the jobs, unless an earlier attempt turns out to have done so; `None` where a shared group has failed,
        and nothing was written. Raises what `Transactions.run` does: for a shared group only what another attempt may
        not meet, and `OtherVersionError`.
        """
        if self._uncertain is not None and await self._transactions.has_happened(wire, self._uncertain):
            return self._uncertain
        self._uncertain = None
        try:
            return await self._transactions.run(wire, self._parts, self._leases, free=self._is_shared)
        except UncertainCommitError as error:
            self._uncertain = error.written
            raise
        except (ConnectionLostError, OtherVersionError):
            raise
        except (EngineError, UnfencedError) as error:
            if isinstance(error, SqlError) and error.state == READ_ONLY:
                wire.close()  # it leads to a standby: the next connection finds the primary
            if self._is_shared:
                return None
            if isinstance(error, UnfencedError):
                self._parts = [part._replace(fences=error.fences) for part in self._parts]
                self._transactions.counts.unfenced += 1
            raise
