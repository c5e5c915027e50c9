"""Clocks of nodes that are apart (docs/postgresql.md): a node reads what another has stored, though its own clock is
behind.
"""

from __future__ import annotations

import pytest

from tests.features.house import OFF, SERVED, House, ask
from tests.support.live import Live

APART_S = 300
NAMED = ("request_id_1", "request_id_2", "visitor_id_1", "visitor_id_2", "account_1", "account_2", "tag_1", "address_1")


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("indexed", [False, True])
async def test_what_a_clock_that_is_ahead_has_stored_is_read_at_once(live: Live, indexed: bool):
    """Each route that reads names the same visitors, accounts and events by either clock."""
    house = House(live, live.organization, "annaxq")
    await house.fill()
    if indexed:
        await house.index()
    left_out = (*OFF, "streamEvents")
    reading = [each for each in SERVED if each[0].method == "GET" and each[0].operation_id not in left_out]

    async def named() -> dict[str, tuple[int, list[str]]]:
        found: dict[str, tuple[int, list[str]]] = {}
        for route, under in reading:
            response = await house.send(route, ask(route, house.names, under))
            names = [name for name in NAMED if name in house.names and house.names[name] in response.text]
            found[f"{under} {route.operation_id}"] = response.status_code, names
        return found

    live.clock.advance(seconds=10)  # the feed has held nothing back
    before = await named()
    live.clock.set(live.clock.now_ms - 1000 * APART_S)
    after = await named()
    assert {name: (before[name], after[name]) for name in before if before[name] != after[name]} == {}
    assert sum(bool(names) for _, names in after.values()) > 15
