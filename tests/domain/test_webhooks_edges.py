"""Webhooks at their edges: entries of queues that are stale, and the times in ids."""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

import pytest

from svc.domain.ids import made_at_ms
from svc.domain.webhooks.envelope import derived_event_id, identification_event_id
from svc.domain.webhooks.queues import DeliveryScheduler
from svc.domain.webhooks.records import DeliveryKey, EndpointKey

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


@pytest.mark.parametrize("at_ms", [0, 1, 1_767_225_600_001, (1 << 48) - 1])
def test_the_id_of_an_event_contains_its_time_and_is_the_same_for_the_same_fact(at_ms: int) -> None:
    one = derived_event_id("usage.daily_settled", b"fact", at_ms)
    assert made_at_ms(one.bytes) == at_ms
    assert (one.version, one.variant) == (7, "specified in RFC 4122")
    assert one == derived_event_id("usage.daily_settled", b"fact", at_ms)
    others = {
        derived_event_id("usage.daily_settled", b"another", at_ms),
        derived_event_id("billing.status_changed", b"fact", at_ms),
    }
    assert len({one, *others}) == 3
    noise = int.from_bytes(blake2b(b"usage.daily_settled\nfact", digest_size=10).digest())
    assert one.int & (1 << 62) - 1 == noise & (1 << 62) - 1, "the lower bits of the digest"
    assert one.int >> 64 & 0xFFF == noise >> 62 & 0xFFF, "and the next twelve"
    random_bits = (1 << 76) - 1
    assert all((one.int ^ other.int) & random_bits & ~(0b11 << 62) for other in others)


def test_the_id_of_an_identification_event_has_the_time_of_its_request() -> None:
    request_id = UUID(int=(1_767_225_600_001 << 80) | 0x7 << 76 | 0b10 << 62 | 5)
    assert made_at_ms(identification_event_id("identification.completed", request_id).bytes) == 1_767_225_600_001
