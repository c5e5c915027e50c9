"""Webhooks at their edges: entries of queues that are stale, and the times in ids."""

from __future__ import annotations

from svc.features.webhooks.queues import DeliveryScheduler
from svc.features.webhooks.records import DeliveryKey
from svc.kernel.values.partitions import EndpointKey

KEY, OTHER = EndpointKey(1, 1), EndpointKey(1, 2)
DELIVERY = DeliveryKey(bytes(16), "auto")


def test_a_dropped_queue_wakes_nothing() -> None:
    queues: DeliveryScheduler[None] = DeliveryScheduler()
    queues.offer(KEY, 100)
    queues.offer(KEY, 50)
    queue = queues.take(50)
    assert queue is not None
    queues.wait(queue, None)
    assert queues.all() == []
    assert queues.wake_at_ms() is None


def test_a_queue_with_a_later_due_time_does_not_wake_at_the_earlier_one() -> None:
    queues: DeliveryScheduler[None] = DeliveryScheduler()
    queues.offer(KEY, 100)
    queues.offer(OTHER, 300)
    queues.offer(KEY, 40)
    queue = queues.take(40)
    assert queue is not None
    queues.wait(queue, 500)
    assert queues.wake_at_ms() == 300
    assert queues.take(299) is None
    later = queues.take(300)
    assert later is not None
    assert later.key == OTHER
    queues.wait(later, None)
    assert queues.wake_at_ms() == 500


def test_a_queue_in_line_needs_no_wakeup() -> None:
    """What it waits for is a slot, and the one that is freed goes on by itself."""
    queues: DeliveryScheduler[None] = DeliveryScheduler()
    queues.offer(KEY, 0)
    queue = queues.take(10)
    assert queue is not None
    queues.start(queue, DELIVERY, None)
    queues.offer(KEY, 0)
    assert queues.wake_at_ms() is None
    queue = queues.take(10)
    assert queue is not None
    queues.wait(queue, 70)
    assert queues.wake_at_ms() == 70
