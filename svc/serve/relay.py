"""The relay: hands what must be done to the worker that does it.

Owns which viewers the other workers have. Receives from the bus and from this worker's own parts; passes it on to
the outbox where this worker sends, to the refusal log where it is the leader, to the live hub, and to the bus for
others. With one worker it is a call and no message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

import trio

from svc.features.events.live import LiveHub
from svc.features.webhooks.sending.outbox import Outbox
from svc.features.webhooks.sending.refusal_log import RefusalLog
from svc.identify.records import Event
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import RefusedRequest
from svc.workers.bus import (
    Bus,
    Committed,
    Due,
    Ended,
    IdentifiedMessage,
    Message,
    RefusedMessage,
    Removed,
    WatchKey,
    WorkerViewers,
)

ANNOUNCE_INTERVAL_S = 5.0
"""Between two messages about this worker's viewers, beside those about each change."""
EXPIRY_S = 3 * ANNOUNCE_INTERVAL_S
"""The viewers of a worker that was silent for so long are gone with it."""


class _WorkerState(NamedTuple):
    """What another worker last reported of itself."""

    at_s: float
    viewers: dict[WatchKey, int]


class Relay:
    """The relay of one worker. The refusal log runs only in the leader, and so does the outbox of LMDB workers."""

    def __init__(self, bus: Bus, outbox: Outbox, refusals: RefusalLog, live: LiveHub) -> None:
        self._bus = bus
        self._outbox = outbox
        self._refusals = refusals
        self._live = live
        live.on_change = self._announce_viewers
        live.elsewhere = self.viewers_elsewhere
        self._others: dict[int, _WorkerState] = {}
        self._is_ending = False

    def due(self, queues: Iterable[EndpointKey]) -> None:
        """Wake the senders, in any process, of queues in which a commit has made deliveries due. Never waits."""
        by_partition: dict[int, list[EndpointKey]] = {}
        for queue in queues:
            by_partition.setdefault(self._bus.partition_of(queue), []).append(queue)
        for partition, named in by_partition.items():
            if self._bus.sends(partition):
                self._outbox.wake(named)
            else:
                self._bus.to_sender(partition, Due(tuple(named)))

    def removed(self, queue: EndpointKey) -> None:
        """Notify the sender, in any process, that a commit has removed an endpoint. Never waits."""
        partition = self._bus.partition_of(queue)
        if self._bus.sends(partition):
            self._outbox.removed(queue)
        else:
            self._bus.to_sender(partition, Removed(queue))

    def end_together(self) -> None:
        """Leave nothing to the leader from now on: all workers of the service end."""
        self._is_ending = True

    def refused(self, request: RefusedRequest) -> None:
        """Count a refused request of a recognized key; never waits."""
        if self._bus.is_leader or self._is_ending:
            self._refusals.note(request)
        else:
            self._bus.to_leader(RefusedMessage(request))

    def identified(self, number: int, request_id: UUID, event: Event) -> None:
        """Show a committed identification to the viewers of all workers."""
        self._live.publish(number, request_id, event)
        for worker, state in self._others.items():
            if (number, event.environment) in state.viewers:
                self._bus.to_worker(worker, IdentifiedMessage(number, request_id, event))

    def ended(self, credential: bytes) -> None:
        """End the viewers of all workers that were opened with this credential."""
        self._live.end(credential)
        self._bus.to_others(Ended(credential))

    def viewers_elsewhere(self, number: int) -> int:
        """Return how many viewers of an organization other workers have, as far as this one knows."""
        return sum(
            count
            for state in self._others.values()
            for watch_key, count in state.viewers.items()
            if watch_key[0] == number
        )

    async def run(self) -> None:
        """Handle what comes, and announce this worker's viewers every `ANNOUNCE_INTERVAL_S`, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._bus.run, self.handle)
            self._announce_viewers(is_new=True)
            while True:
                await trio.sleep(ANNOUNCE_INTERVAL_S)
                self._announce_viewers()
                now_s = trio.current_time()
                self._others = {
                    worker: state for worker, state in self._others.items() if now_s - state.at_s < EXPIRY_S
                }

    async def handle(self, message: Message) -> None:
        """Do what a message from another process asks for. Pass on a message for the leader, or for the sender of a
        partition, if this worker is neither any more.
        """
        match message:
            case Due(queues):
                self.due(queues)
            case Removed(queue):
                self.removed(queue)
            case RefusedMessage(request):
                self.refused(request)
            case IdentifiedMessage(organization, request_id, event):
                self._live.publish(organization, request_id, event)
            case Ended(credential):
                self._live.end(credential)
            case Committed():
                await self._live.look()
                self._outbox.poll()  # which does nothing where it does not run
            case WorkerViewers(worker, viewers, is_new):
                self._others[worker] = _WorkerState(trio.current_time(), dict(viewers))
                if is_new:
                    self._announce_viewers()

    def _announce_viewers(self, *, is_new: bool = False) -> None:
        if self._bus.index is None:
            return
        viewers = tuple(self._live.viewer_counts().items())
        self._bus.to_others(WorkerViewers(self._bus.index, viewers, is_new))
