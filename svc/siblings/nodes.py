"""The siblings of a node: the other processes that serve the same database, reached by notices."""

from __future__ import annotations

from typing import Final

import msgspec
import structlog

from svc.siblings.bus import Handle
from svc.siblings.messages import Committed, Message, pack_one, pack_parts, unpack
from svc.store.postgresql.notices import Notices

log = structlog.get_logger()

ALL: Final = "svc_nodes"
KEEPER: Final = "svc_keeper"


def channel_of(index: int) -> str:
    """The channel of one node."""
    return f"svc_node_{index:x}"


class NodeSiblings:
    """As `Siblings`, over the notices of a node. `index` is its number among all nodes that there ever were."""

    def __init__(self, notices: Notices, index: int) -> None:
        self.index = index
        self.is_keeper = False
        self._notices = notices
        for channel in (ALL, channel_of(index)):
            notices.listen(channel)

    def keep(self) -> None:
        """As in `Siblings`."""
        self.is_keeper = True
        self._notices.listen(KEEPER)

    def resign(self) -> None:
        """As in `Siblings`."""
        self.is_keeper = False
        self._notices.unlisten(KEEPER)

    def to_keeper(self, message: Message) -> None:
        """As in `Siblings`; what this node sends to itself is lost."""
        self._send(KEEPER, message)

    def to_worker(self, index: int, message: Message) -> None:
        """As in `Siblings`."""
        self._send(channel_of(index), message)

    def to_others(self, message: Message) -> None:
        """As in `Siblings`."""
        self._send(ALL, message)

    def dropped(self) -> int:
        """As in `Siblings`."""
        return self._notices.statistics().dropped

    async def run(self, handle: Handle) -> None:
        """As in `Siblings`. Where messages may have been missed, it is as if another process had committed."""

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

        await self._notices.run(heard, look)

    def _send(self, channel: str, message: Message) -> None:
        self._notices.send(channel, pack_parts([pack_one(message)]))
