"""What tests of nodes need: connections to a database with the schema, and waiting."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from typing import Protocol

import pytest
import trio

from svc.kernel.store.postgresql.cluster.leases import Lease
from svc.kernel.store.postgresql.cluster.nodes import Connect, Node
from svc.kernel.store.postgresql.cluster.notices import Notices
from svc.kernel.store.postgresql.connection.errors import SqlError
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Timeouts, Wire
from svc.kernel.store.postgresql.statements import COMMIT, CREATE_SCHEMA

TERM_S = 0.6


def with_schema(url: StoreUrl) -> StoreUrl:
    with closing(Wire.connect_now(url)) as wire:
        wire.exchange_now([Statement(sql, prepared=False) for sql in CREATE_SCHEMA])
    return url


def connecting(url: StoreUrl) -> Connect:
    async def connect(timeouts: Timeouts) -> Wire:
        return await Wire.connect(url, timeouts)

    return connect


def node(url: StoreUrl, name: str, *leases: Lease, term_s: float = TERM_S, connect: Connect | None = None) -> Node:
    return Node(connect or connecting(url), name, leases, jitter=lambda: 0.5, term_s=term_s)


def leader_lease(name: str, term_s: float = TERM_S) -> Lease:
    return Lease("keeper", name, term_s)


async def until(holds: Callable[[], object], seconds: float = 60) -> None:
    """`seconds` only end a test that would else wait for ever."""
    with trio.fail_after(seconds):
        while not holds():  # noqa: ASYNC110  what is waited for tells nobody
            await trio.sleep(0.01)


class Listener(Protocol):
    notices: Notices

    async def run(self) -> None: ...


@asynccontextmanager
async def running(*listeners: Listener) -> AsyncGenerator[None]:
    """From when each listens to what it is to hear."""
    async with trio.open_nursery() as nursery:
        for each in listeners:
            nursery.start_soon(each.run)
        await until(lambda: all(each.notices.statistics().listening for each in listeners))
        yield
        nursery.cancel_scope.cancel()


def fill_disk(patch: pytest.MonkeyPatch) -> None:
    """From now on no commit of this process finds space."""
    exchange = Wire.exchange

    async def full(wire: Wire, sent: Sequence[Statement]) -> list[Result]:
        if sent[-1].sql == COMMIT:
            raise SqlError("53100", "could not extend file: No space left on device")
        return await exchange(wire, sent)

    patch.setattr(Wire, "exchange", full)
