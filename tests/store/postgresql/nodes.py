"""What tests of nodes need: connections to a database with the schema, and waiting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import trio

from svc.store.postgresql.cluster.leases import Lease
from svc.store.postgresql.cluster.nodes import Connect, Node
from svc.store.postgresql.connection.url import StoreUrl
from svc.store.postgresql.connection.wire import Statement, Timeouts, Wire
from svc.store.postgresql.statements import CREATE_SCHEMA

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
