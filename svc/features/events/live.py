"""The live hub: publishes committed identifications to the viewers that are subscribed now.

Owns the viewers, and the counts of what was sent and dropped. An identification is published after its commit, and that
never waits: each viewer has a bounded channel, and what finds it full is dropped and counted as missed. Without viewers
of its organization and environment an identification costs one look-up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from uuid import UUID

import msgspec
import trio

from svc.identify.events.event_row import event_row
from svc.identify.events.listing import Filters
from svc.identify.records import Event
from svc.kernel.values.fields import Environment

MAX_VIEWERS = 20
"""Of one organization."""
EVENTS_HELD = 256
"""Identifications that wait for one viewer."""

_encoder = msgspec.json.Encoder()


class LiveEvent:
    """One committed identification, as it is published to viewers."""

    def __init__(self, request_id: UUID, event: Event) -> None:
        self.request_id = request_id
        self.event = event

    @cached_property
    def row(self) -> bytes:
        """Return the event's row as JSON (interface 2.3), encoded once for all viewers, when one is sent it."""
        return _encoder.encode(event_row(self.event, self.request_id))


class LiveStatistics(msgspec.Struct, frozen=True):
    """Viewers now, and counts since the start."""

    open: int
    """Viewers, of all organizations."""
    sent: int
    """Identifications that went into the channel of a viewer, once for each."""
    missed: int
    """Identifications that were dropped because the channel of a viewer was full, once for each."""


class Viewer:
    """One subscriber: its filters, and the channel of the identifications that it has not read. `LiveHub.watch` creates
    it; the caller closes it with `close`.
    """

    def __init__(
        self,
        hub: LiveHub,
        number: int,
        environment: Environment,
        filters: Filters,
        credential: bytes,
        holds: Callable[[], Awaitable[bool]],
    ) -> None:
        self._hub = hub
        self.number = number
        self.environment: Environment = environment
        self.credential = credential
        self.holds = holds
        self._filters = filters
        self._send, self._receive = trio.open_memory_channel[LiveEvent](EVENTS_HELD)
        self._missed = 0
        self._has_ended = False

    def offer(self, found: LiveEvent) -> bool | None:
        """Put an identification into the channel without waiting. Return `False` if the channel is full: the
        identification is then dropped and counted. Return `None` if it does not pass the filters.
        """
        if self._has_ended or not self._filters.matches(found.event):
            return None
        try:
            self._send.send_nowait(found)
        except trio.WouldBlock:
            self._missed += 1
            return False
        return True

    async def next(self) -> LiveEvent:
        """Return the next identification; wait until there is one. Raises `trio.EndOfChannel` after the hub has ended
        the viewer and everything was read.
        """
        return await self._receive.receive()

    def waiting(self) -> list[LiveEvent]:
        """Return, oldest first, the identifications that are in the channel now; do not wait."""
        found: list[LiveEvent] = []
        while True:
            try:
                found.append(self._receive.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                return found

    def take_missed(self) -> int:
        """Return how many events were dropped for this viewer since the last call, and count from 0 again."""
        missed, self._missed = self._missed, 0
        return missed

    def end(self) -> None:
        """Send nothing more to the viewer: `next` ends."""
        self._has_ended = True
        self._send.close()

    def close(self) -> None:
        """Unsubscribe. What was not read is dropped; a second call does nothing."""
        self.end()
        self._receive.close()
        self._hub.remove(self)


async def _always() -> bool:
    return True


class LiveHub:
    """The viewers of one service, at most `most` over all organizations: each holds a connection that is
    never evicted.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._viewers: dict[tuple[int, Environment], list[Viewer]] = {}
        self._sent = self._missed = 0
        self.on_change: Callable[[], None] = lambda: None
        """Called when a viewer has come or gone."""
        self.elsewhere: Callable[[int], int] = lambda _number: 0
        """Viewers of an organization, by number, in other workers."""

    def publish(self, number: int, request_id: UUID, event: Event) -> None:
        """Offer an identification to the viewers of its organization (`number`) and environment, after its commit."""
        viewers = self._viewers.get((number, event.environment))
        if viewers is None:
            return
        found = LiveEvent(request_id, event)
        for viewer in viewers:
            taken = viewer.offer(found)
            if taken is not None:
                self._sent += taken
                self._missed += not taken

    @property
    def is_full(self) -> bool:
        """Return whether the hub has its maximum number of viewers."""
        return sum(map(len, self._viewers.values())) >= self._most

    def watch(
        self,
        number: int,
        environment: Environment,
        filters: Filters,
        credential: bytes,
        holds: Callable[[], Awaitable[bool]] = _always,
    ) -> Viewer | None:
        """Subscribe a new viewer of the organization. Return `None` if the organization has `MAX_VIEWERS`, or the hub
        is full. `credential`: the digest of the session token or key that it was opened with; `holds`: returns whether
        that is valid now.
        """
        here = sum(len(viewers) for (watched, _), viewers in self._viewers.items() if watched == number)
        if self.is_full or here + self.elsewhere(number) >= MAX_VIEWERS:
            return None
        viewer = Viewer(self, number, environment, filters, credential, holds)
        self._viewers.setdefault((number, environment), []).append(viewer)
        self.on_change()
        return viewer

    def viewer_counts(self) -> dict[tuple[int, Environment], int]:
        """Return how many viewers there are, by organization and environment."""
        return {watch_key: len(viewers) for watch_key, viewers in self._viewers.items()}

    async def look(self) -> None:
        """End the viewers whose credential is no longer valid."""
        for viewer in [viewer for viewers in self._viewers.values() for viewer in viewers]:
            if not await viewer.holds():
                viewer.end()

    def end(self, credential: bytes) -> None:
        """End the viewers that were opened with this credential, which is no longer valid."""
        for viewers in self._viewers.values():
            for viewer in viewers:
                if viewer.credential == credential:
                    viewer.end()

    def remove(self, viewer: Viewer) -> None:
        """Remove a viewer; do nothing if it was removed before."""
        watch_key = viewer.number, viewer.environment
        left = [other for other in self._viewers.get(watch_key, ()) if other is not viewer]
        if left:
            self._viewers[watch_key] = left
        else:
            self._viewers.pop(watch_key, None)
        self.on_change()

    def statistics(self) -> LiveStatistics:
        """Return a copy of the counts."""
        return LiveStatistics(sum(map(len, self._viewers.values())), self._sent, self._missed)
