"""From create to retry, by the outbox itself: no address that is not public is ever dialed (reliability R8).

Names, dials and time are small worlds; store, outbox and transport are the real ones. Nothing answers at the addresses
that are dialed, so that every delivery is tried again, and its name looked up again.
"""

from __future__ import annotations

import ssl
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import httpcore
import pytest
import trio
from trio.testing import MockClock

from svc.features.webhooks.addresses import TargetPolicy
from svc.features.webhooks.records import MAX_ENDPOINTS
from svc.features.webhooks.sending.outbox import Outbox
from svc.features.webhooks.transport.transport import WebhookTransport
from tests.support.outbox import OutboxWorld, outbox_world
from tests.webhook_transport.loopback import issue_of
from tests.webhook_transport.test_addresses import HOSTILE, PUBLIC_V4, PUBLIC_V6

PUBLIC = (PUBLIC_V4, PUBLIC_V6)
RECORDS = {
    "alone": lambda hostile: (hostile,),
    "after public ones": lambda hostile: (*PUBLIC, hostile),
    "before public ones": lambda hostile: (hostile, *PUBLIC),
}
MOMENTS = ("create", "delivery", "retry", "after the retry")
"""When the name turns: what it is asked for the first, second, third and fourth time."""


class Case(NamedTuple):
    hostile: str
    records: str
    moment: str

    def answer(self, asked: int) -> tuple[str, ...]:
        """To the question of this number, from 0; it is hostile once, and public again afterwards."""
        return RECORDS[self.records](self.hostile) if asked == MOMENTS.index(self.moment) else PUBLIC


CASES = [Case(*parts) for parts in product(HOSTILE, RECORDS, MOMENTS)]


class Names:
    """Each case has a name of its own, and counts how often it was asked for."""

    def __init__(self) -> None:
        self.asked = [0] * len(CASES)

    async def __call__(self, host: str, organization: int, /) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        number = int(host.removeprefix("case").removesuffix(".test"))
        self.asked[number] += 1
        return CASES[number].answer(self.asked[number] - 1)


class Dials(httpcore.AsyncNetworkBackend):
    """Where nobody is at home; writes down who was called."""

    def __init__(self) -> None:
        self.dialed: list[str] = []

    async def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        await trio.lowlevel.checkpoint()
        self.dialed.append(host)
        raise httpcore.ConnectError


async def subscribe(world: OutboxWorld, names: Names) -> int:
    """An endpoint for each case whose name may be stored, ten to an organization; how many organizations."""
    number, taken = 0, MAX_ENDPOINTS
    for place, case in enumerate(CASES):
        url = f"https://case{place}.test/"
        issue = await issue_of(url, names)
        assert issue == ("not_public_address" if case.moment == "create" else None), case
        if issue is None:
            if taken == MAX_ENDPOINTS:
                number, taken = world.organization(), 0
            world.endpoint(number, url)
            taken += 1
    return number


@pytest.mark.slow
async def test_a_name_rebound_at_any_moment_is_never_dialed(tmp_path: Path, autojump_clock: MockClock):
    assert len(CASES) >= 500
    names, dials = Names(), Dials()
    transport = WebhookTransport(names, TargetPolicy(), ssl.create_default_context(), lambda: 0, backend=dials)
    with outbox_world(tmp_path) as world:
        organizations = await subscribe(world, names)
        outbox = Outbox(world.store, world.world, transport, world.secrets_key)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outbox.run)
            for number in range(1, organizations + 1):
                outbox.wake(world.enqueue(number))
            await trio.sleep(240)  # four attempts
            nursery.cancel_scope.cancel()
        errors: dict[str, list[str]] = {}
        for number in range(1, organizations + 1):
            for attempt in world.attempts(number):
                errors.setdefault(attempt.endpoint_url, []).append(attempt.error)
    assert set(dials.dialed) == set(PUBLIC)
    stored = [(place, case) for place, case in enumerate(CASES) if case.moment != "create"]
    assert len(errors) == len(stored)
    for place, case in stored:
        turned = MOMENTS.index(case.moment) - 1
        expected = ["blocked_address" if attempt == turned else "connect_error" for attempt in range(4)]
        assert errors[f"https://case{place}.test/"] == expected, case
    assert len(dials.dialed) == len(stored) * 3 * len(PUBLIC), "a name with one bad address is dialed at none"
