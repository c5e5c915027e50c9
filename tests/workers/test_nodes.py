"""The bus of a node, over notices of a real database: each message reaches its recipient."""

from __future__ import annotations

from uuid import UUID

import trio

from svc.kernel.store.postgresql.cluster.nodes import Connect
from svc.kernel.store.postgresql.cluster.notices import Notices
from svc.kernel.store.postgresql.cluster.partitions import NodeRank, PartitionLeases, lease_name
from svc.kernel.store.postgresql.connection.errors import ConnectionLostError
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.values import int8
from svc.kernel.store.postgresql.connection.wire import Result, Timeouts, Wire
from svc.kernel.values.partitions import EndpointKey, partition_of
from svc.workers.bus import Committed, Due, Ended, IdentifiedMessage, Message, RefusedMessage
from svc.workers.nodes import ALL, NodeBus
from tests.http.test_console_stream import an_event
from tests.store.postgresql.nodes import connecting, running, until
from tests.workers.test_bus import REFUSED

QUEUE = EndpointKey(1, 2)
SHARE = partition_of(QUEUE)
DUE = Due((QUEUE,))


def beat_results(*shares: int) -> list[Result]:
    """To a node's beat: it has these shares from now on."""
    taken = Result([(lease_name(share).encode(), int8(1)) for share in shares], len(shares))
    return [Result([], 0), Result([], 0), taken]


class Node:
    """One node's bus, and what was said to it. A look at the start is no message of another."""

    def __init__(self, connect: Connect, index: int) -> None:
        self.notices = Notices(connect, jitter=lambda: 0.5, has_others=lambda: True)
        self.shares = PartitionLeases(str(index))
        self.bus = NodeBus(self.notices, index, self.shares)
        self.heard: list[Message] = []
        self.looks = 0

    async def run(self) -> None:
        await self.bus.run(self._handle)

    async def _handle(self, message: Message) -> None:
        if isinstance(message, Committed):
            self.looks += 1
        else:
            self.heard.append(message)


async def test_messages_go_to_the_leader_to_the_sender_to_one_node_or_to_all_others(url: StoreUrl):
    leader, one, two = (Node(connecting(url), index) for index in (7, 1 << 60, 3))
    leader.bus.keep()
    two.shares.learn(beat_results(SHARE), trio.current_time(), NodeRank(3, 1))
    identified = IdentifiedMessage(1, UUID(int=7), an_event())
    async with running(leader, one, two):
        one.bus.to_leader(RefusedMessage(REFUSED))
        one.bus.to_sender(SHARE, DUE)
        one.bus.to_worker(3, identified)
        two.bus.to_worker(1 << 60, identified)
        two.bus.to_others(Ended(b"credential"))
        await until(lambda: len(leader.heard) == len(one.heard) == len(two.heard) == 2)
    for heard, first in ((leader.heard, RefusedMessage(REFUSED)), (one.heard, identified)):
        assert first in heard
        assert Ended(b"credential") in heard, "of two senders, in either order"
    assert DUE in two.heard
    assert identified in two.heard
    assert [one.bus.sends(SHARE), two.bus.sends(SHARE)] == [False, True]


async def test_a_new_leader_gets_messages_for_the_keeper(url: StoreUrl):
    former, next_one, sender = (Node(connecting(url), index) for index in (1, 2, 3))
    former.bus.keep()
    async with running(former, next_one, sender):
        former.bus.resign()
        next_one.bus.keep()
        with trio.fail_after(60):
            while not next_one.heard:
                sender.bus.to_leader(DUE)
                await trio.sleep(0.02)
        former.heard.clear()
        count = len(next_one.heard)
        sender.bus.to_leader(DUE)
        await until(lambda: len(next_one.heard) > count)
        assert former.heard == []
    assert (former.bus.is_leader, next_one.bus.is_leader) == (False, True)


async def test_a_node_that_receives_no_notices_polls():
    async def away(_: Timeouts) -> Wire:
        raise ConnectionLostError("gone")

    node = Node(away, 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.run)
        await until(lambda: node.looks > 1)
        nursery.cancel_scope.cancel()


async def test_an_invalid_message_is_ignored(url: StoreUrl):
    node, sender = (Node(connecting(url), index) for index in (1, 2))
    async with running(node, sender):
        sender.notices.send(ALL, b"\xc1 nothing of the kind")
        sender.bus.to_others(Ended(b"x"))
        await until(lambda: node.heard)
    assert node.heard == [Ended(b"x")]


async def test_a_node_that_takes_a_share_gets_its_messages_and_polls_for_earlier_ones(url: StoreUrl):
    former, next_one, sender = (Node(connecting(url), index) for index in (1, 2, 3))
    former.shares.learn(beat_results(SHARE), trio.current_time(), NodeRank(2, 0))
    async with running(former, next_one, sender):
        former.shares.give_back([SHARE])
        looks = next_one.looks
        next_one.shares.learn(beat_results(SHARE), trio.current_time(), NodeRank(2, 1))
        await until(lambda: next_one.looks > looks)
        former.heard.clear()
        sender.bus.to_sender(SHARE, DUE)
        await until(lambda: next_one.heard)
        assert former.heard == []
