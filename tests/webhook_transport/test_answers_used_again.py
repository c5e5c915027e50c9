"""An answer of the resolver serves for a moment, and no longer: many deliveries a second share a look-up."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from svc.domain.webhooks.schedule import JITTER, STEPS_MS
from svc.webhook_transport.resolver import REUSE_S, SystemResolver

INSTANT_S = 30
"""Of virtual time, which jumps only when nothing else can happen: no look-up runs out of it."""


class Zone:
    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked = 0

    def __call__(self, _: str) -> tuple[str, ...]:
        self.asked += 1
        return self.addresses


async def test_deliveries_of_one_moment_share_a_look_up(mock_clock: MockClock):
    zone = Zone("81.2.69.160", "2001:4860::1")
    resolver = SystemResolver(zone, limit_s=INSTANT_S)
    for _ in range(20):
        assert await resolver("receiver.test") == zone.addresses
        mock_clock.jump(0.9 * REUSE_S / 20)
    assert zone.asked == 1
    assert await resolver("other.test") == zone.addresses
    assert zone.asked == 2


async def test_a_name_that_has_moved_is_followed_as_soon_as_the_answer_is_old(mock_clock: MockClock):
    """However often the old answer was used meanwhile: its time counts from the look-up."""
    zone = Zone("81.2.69.160")
    resolver = SystemResolver(zone, limit_s=INSTANT_S)
    assert await resolver("receiver.test") == ("81.2.69.160",)
    zone.addresses = ("10.0.0.5",)
    mock_clock.jump(0.6 * REUSE_S)
    assert await resolver("receiver.test") == ("81.2.69.160",)
    mock_clock.jump(0.4 * REUSE_S)
    assert await resolver("receiver.test") == ("10.0.0.5",)


async def test_that_a_name_has_no_addresses_is_never_taken_from_before(mock_clock: MockClock):
    zone = Zone()
    resolver = SystemResolver(zone, limit_s=INSTANT_S)
    assert await resolver("receiver.test") == ()
    zone.addresses = ("81.2.69.160",)
    assert await resolver("receiver.test") == ("81.2.69.160",)
    zone.addresses = ()
    mock_clock.jump(REUSE_S)
    assert await resolver("receiver.test") == ()
    assert await resolver("receiver.test") == ()
    assert zone.asked == 4


@pytest.mark.parametrize("attempt", range(len(STEPS_MS)))
def test_no_attempt_uses_the_answer_of_the_one_before(attempt: int):
    assert STEPS_MS[attempt] * (1 - JITTER) > 1000 * REUSE_S


async def test_a_cancelled_caller_is_cancelled_though_the_answer_is_at_hand(mock_clock: MockClock):
    resolver = SystemResolver(Zone("81.2.69.160"), limit_s=INSTANT_S)
    assert await resolver("receiver.test")
    with trio.CancelScope() as scope:
        scope.cancel()
        await resolver("receiver.test")
    assert scope.cancelled_caught
