"""What the outbox asks about the endpoints that it sends to: all, or those of the shares that its process has."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

import trio

from svc.domain.webhooks.records import EndpointKey
from svc.store.lease import LeaseEpoch


class Shares(Protocol):
    """The shares of one process (`svc.domain.webhooks.shares`)."""

    @property
    def senders(self) -> int:
        """How many processes send, this one among them."""
        ...

    def sends(self, queue: EndpointKey) -> bool:
        """Whether this process may begin attempts in this queue now."""
        ...

    def lease(self, queue: EndpointKey) -> LeaseEpoch | None:
        """What an attempt in this queue, and what is written of it, is made under; `None` where no lease is needed."""
        ...

    def is_lost(self, lease: LeaseEpoch | None) -> bool:
        """Whether this process can no longer count on a lease."""
        ...

    def drop(self, lost: Iterable[LeaseEpoch]) -> None:
        """The store has refused what was made under these leases."""
        ...

    @property
    def leaving(self) -> Collection[int]:
        """Shares that others wait for: no attempt begins in them."""
        ...

    def give_back(self, shares: Iterable[int]) -> None:
        """Leave shares to others: what was in flight has been written down."""
        ...

    async def changed(self) -> None:
        """Returns when any of this has changed."""
        ...


class EveryShare:
    """As `Shares`, for a process that sends to all endpoints."""

    senders = 1
    leaving = ()

    def sends(self, queue: EndpointKey) -> bool:  # noqa: ARG002  any
        """As in `Shares`: always."""
        return True

    def lease(self, queue: EndpointKey) -> LeaseEpoch | None:  # noqa: ARG002  any
        """As in `Shares`: none."""
        return None

    def is_lost(self, lease: LeaseEpoch | None) -> bool:  # noqa: ARG002  there is none
        """As in `Shares`: never."""
        return False

    def drop(self, lost: Iterable[LeaseEpoch]) -> None:
        """As in `Shares`."""

    def give_back(self, shares: Iterable[int]) -> None:
        """As in `Shares`."""

    async def changed(self) -> None:
        """As in `Shares`: never."""
        await trio.sleep_forever()


EVERY_SHARE = EveryShare()
