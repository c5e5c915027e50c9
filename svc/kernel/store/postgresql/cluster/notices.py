"""Notices: short messages between nodes by way of the database, with LISTEN and NOTIFY on a connection of its own.

NOTIFY takes one lock of the whole database when its transaction commits. So it is never part of a transaction that
writes; what a node has to say gathers for `GATHER_S` and leaves together. Any notice may be lost.

Where notices do not come (a database without LISTEN, a connection that was lost), the node polls every
`POLL_INTERVAL_S` until they do. Where there are other nodes, which say something every few seconds, silence is taken
for that. Behind a pooler it polls always: one that shares sessions passes some notices on and loses others.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog
import trio

from svc.kernel.store.engine import EngineError
from svc.kernel.store.postgresql.cluster.nodes import Connect, pause_s
from svc.kernel.store.postgresql.connection.errors import SqlError
from svc.kernel.store.postgresql.connection.wire import Notice, Statement, Timeouts, Wire
from svc.kernel.store.postgresql.statistics import NoticeStatistics

log = structlog.get_logger()

GATHER_S = 0.05
"""Time between two batches of notices."""
POLL_INTERVAL_S = 1.0
"""Time between two polls while no notices come."""
SILENT_S = 15.0
"""Other nodes are never silent for this long."""
AGAIN_S = 60.0
"""Time until a database that refuses LISTEN is asked again."""
PAYLOAD_BYTES = 7_999
"""The longest payload that PostgreSQL takes."""
NOTICE_BYTES = PAYLOAD_BYTES * 3 // 4 - 2
"""The longest content of a notice: a payload is text, base64."""
MAX_HELD = 4_096
"""Notices that wait to be sent."""
NOTICE_TIMEOUTS = Timeouts(statement_s=5.0, lock_s=5.0, idle_s=10.0, answer_s=10.0)

_NOTIFY = b"select pg_notify($1::text, $2::text)"

NoticeHandler = Callable[[str, bytes], Awaitable[None]]
"""(channel, content) of a notice that has come."""


def notification(channel: str, content: bytes) -> Statement:
    """Return the statement that sends one notice. It must not be sent in a transaction that writes."""
    return Statement(_NOTIFY, (channel.encode(), b64encode(content)))


class Notices:
    """The notices of one node. It receives those of the other nodes, and never its own."""

    def __init__(self, connect: Connect, jitter: Callable[[], float], has_others: Callable[[], bool]) -> None:
        """Take `jitter`, random from 0 to 1, and `has_others`, which says whether other nodes live now."""
        self._connect = connect
        self._jitter = jitter
        self._has_others = has_others
        self._channels: dict[str, None] = {}
        self._held: deque[tuple[str, bytes]] = deque()
        self._waiting: trio.CancelScope | None = None
        self._channels_changed = False
        self._sent_s = -math.inf
        self._poll_at_s = 0.0
        self._sent = self._received = self._dropped = 0
        self._listening = False

    def statistics(self) -> NoticeStatistics:
        """Return a copy of the counts."""
        return NoticeStatistics(self._sent, self._received, self._dropped, self._listening)

    def listen(self, channel: str) -> None:
        """Subscribe to a channel; it takes effect soon. A channel name has lower-case letters, digits and `_`."""
        self._channels[channel] = None
        self._change_channels()

    def unlisten(self, channel: str) -> None:
        """Unsubscribe from a channel."""
        self._channels.pop(channel, None)
        self._change_channels()

    def send(self, channel: str, content: bytes) -> None:
        """Queue a notice, without waiting. One that is too long or too many is dropped and counted."""
        if len(content) > NOTICE_BYTES or len(self._held) >= MAX_HELD:
            self._dropped += 1
            return
        self._held.append((channel, content))
        self._wake()

    async def run(self, handle: NoticeHandler, poll: Callable[[], Awaitable[None]]) -> None:
        """Send queued notices, and pass received ones to `handle`, in order, until cancelled. `poll` is called each
        time that notices may have been missed, and every `POLL_INTERVAL_S` while none are received.
        """
        failures = 0
        while True:
            try:
                wire = await self._connect(NOTICE_TIMEOUTS)
                try:
                    await self._adjust(wire, heard := set[str]())
                    failures = 0
                    await poll()
                    await self._serve(wire, heard, handle, poll)
                finally:
                    self._listening = False
                    wire.close()
            except EngineError as error:
                if not failures:
                    log.warning("no notices come: polling every second instead", because=str(error))
                failures += 1
                wait_s = AGAIN_S if isinstance(error, SqlError) else pause_s(failures, self._jitter())
                await self._poll_for(wait_s, poll)

    async def _poll_for(self, seconds: float, poll: Callable[[], Awaitable[None]]) -> None:
        """Poll for this time. Notices that are queued are dropped: they would arrive too late."""
        self._dropped += len(self._held)
        self._held.clear()
        until_s = trio.current_time() + seconds
        while (left_s := until_s - trio.current_time()) > 0:
            with suppress(EngineError):  # the database may be unavailable for the poll, too
                await poll()
            await trio.sleep(min(POLL_INTERVAL_S, left_s))

    async def _serve(
        self, wire: Wire, heard: set[str], handle: NoticeHandler, poll: Callable[[], Awaitable[None]]
    ) -> None:
        self._listening = not wire.is_pooled
        self._poll_at_s = trio.current_time() + (SILENT_S if self._listening else POLL_INTERVAL_S)
        while True:
            self._channels_changed = False
            if await self._adjust(wire, heard):
                await poll()
            await self._send_held(wire)
            for notice in await self._next(wire):
                if notice.process != wire.process:
                    if not wire.is_pooled:
                        self._listening, self._poll_at_s = True, trio.current_time() + SILENT_S
                    await self._hear(notice, handle)
            if trio.current_time() >= self._poll_at_s:
                await self._note_silence(poll)

    async def _note_silence(self, poll: Callable[[], Awaitable[None]]) -> None:
        if not self._has_others():
            self._poll_at_s = trio.current_time() + SILENT_S
            return
        if self._listening:
            self._listening = False
            log.warning("no notices come from other nodes: polling every second instead", silent_s=SILENT_S)
        await poll()
        self._poll_at_s = trio.current_time() + POLL_INTERVAL_S

    async def _adjust(self, wire: Wire, heard: set[str]) -> bool:
        """Listen to the channels that are wanted, and to no others. Return whether any was added."""
        wanted = set(self._channels)
        is_more = bool(wanted - heard)
        words = [f'listen "{name}"' for name in sorted(wanted - heard)]
        words += [f'unlisten "{name}"' for name in sorted(heard - wanted)]
        if words:
            await wire.exchange([Statement(each.encode(), prepared=False) for each in words])
        heard.clear()
        heard.update(wanted)
        return is_more

    async def _send_held(self, wire: Wire) -> None:
        if not self._held or trio.current_time() - self._sent_s < GATHER_S:
            return
        gathered = list(self._held)
        self._held.clear()
        self._sent_s = trio.current_time()
        await wire.exchange([notification(name, content) for name, content in gathered])
        self._sent += len(gathered)

    async def _next(self, wire: Wire) -> list[Notice]:
        """Wait for notices. Return none if there is something else to do first."""
        deadline_s = min(self._poll_at_s, self._sent_s + GATHER_S if self._held else math.inf)
        with trio.CancelScope(deadline=deadline_s) as self._waiting:
            if self._channels_changed:
                return []
            return await wire.notices()
        return []

    async def _hear(self, notice: Notice, handle: NoticeHandler) -> None:
        channel = notice.channel.decode(errors="replace")
        try:
            content = b64decode(notice.payload, validate=True)
        except ValueError:
            log.warning("a notice that no node has sent", channel=channel)
            return
        self._received += 1
        if channel in self._channels:
            await handle(channel, content)

    def _change_channels(self) -> None:
        self._channels_changed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
