"""The bus of a node: the other processes that serve the same database, reached by notices."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec
import structlog
import trio

from svc.kernel.store.engine import Engine, EngineError
from svc.kernel.store.postgresql.cluster.notices import Notices, notification
from svc.kernel.store.postgresql.cluster.partitions import PartitionLeases
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.values.partitions import EndpointKey, partition_of
from svc.kernel.work.leader import LEADER
from svc.workers.bus import Bus, Committed, Message, MessageHandler, pack, unpack

log = structlog.get_logger()

ALL: Final = "svc_nodes"
LEADER_CHANNEL: Final = f"svc_{LEADER}"


def channel_of(index: int) -> str:
    """Return the name of the channel of one node."""
    return f"svc_node_{index:x}"


def channel_of_partition(partition: int) -> str:
    """Return the name of the channel of the node that has a partition of the outbox."""
    return f"svc_share_{partition}"


def announce_to_nodes(engine: Engine) -> None:
    """Notify the nodes that serve a database that another process has committed. The notice may be lost: then the nodes
    find out when they poll, some seconds later.
    """
    assert isinstance(engine, PostgresqlEngine), engine
    with suppress(EngineError):
        engine.send(notification(ALL, pack([Committed()])))


class NodeBus(Bus):
    """A `Bus` over the notices of a node. `index`: its number among all nodes that ever existed."""

    def __init__(self, notices: Notices, index: int, partitions: PartitionLeases) -> None:
        self.index = index
        self._notices = notices
        self._partitions = partitions
        for channel in (ALL, channel_of(index)):
            notices.listen(channel)

    def keep(self) -> None:
        """See `Bus`."""
        super().keep()
        self._notices.listen(LEADER_CHANNEL)

    def resign(self) -> None:
        """See `Bus`."""
        super().resign()
        self._notices.unlisten(LEADER_CHANNEL)

    def to_leader(self, message: Message) -> None:
        """Send a message to the leader node, as `Bus.to_leader`, but drop it if this node is the leader."""
        self._send(LEADER_CHANNEL, message)

    def partition_of(self, queue: EndpointKey) -> int:
        """See `Bus`."""
        return partition_of(queue)

    def sends(self, partition: int) -> bool:
        """See `Bus`."""
        return self._partitions.holds(partition)

    def to_sender(self, partition: int, message: Message) -> None:
        """See `Bus`."""
        self._send(channel_of_partition(partition), message)

    def to_worker(self, index: int, message: Message) -> None:
        """See `Bus`."""
        self._send(channel_of(index), message)

    def to_others(self, message: Message) -> None:
        """See `Bus`."""
        self._send(ALL, message)

    async def run(self, handle: MessageHandler) -> None:
        """See `Bus`. If messages may have been missed, act as if another process had committed."""

        async def heard(channel: str, content: bytes) -> None:
            try:
                messages = unpack(content)
            except msgspec.MsgspecError as error:
                log.warning("not a message of a node", channel=channel, because=str(error))
                return
            for message in messages:
                await handle(message)

        async def look() -> None:
            await handle(Committed())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._listen_for_partitions)
            await self._notices.run(heard, look)

    async def _listen_for_partitions(self) -> None:
        heard = frozenset[int]()
        while True:
            held = self._partitions.held
            for partition in held - heard:
                self._notices.listen(channel_of_partition(partition))
            for partition in heard - held:
                self._notices.unlisten(channel_of_partition(partition))
            heard = held
            await self._partitions.changed()

    def _send(self, channel: str, message: Message) -> None:
        self._notices.send(channel, pack([message]))
