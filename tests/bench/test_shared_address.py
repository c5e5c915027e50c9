"""Real browser upgrades behind one address: the bench that climbs at any pace, and what matching keeps."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

from bench.linkage.shared_address import (
    ORDERS,
    PACES,
    climb_together,
    fingerprintjs_ladder,
    imitated,
    part,
    sdk_ladder,
    spread,
)

CAPTURES = Path(__file__).parents[1] / "captures" / "sdk-upgrades.jsonl.gz"
TWINS = [("office", "office-twin")]
INTERLEAVED = [order for order in ORDERS if order != "device after device"]


@cache
def sdk():
    return sdk_ladder(CAPTURES)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pace", ["1 minute", "7 days", "28 days", "112 days"])
def test_devices_of_the_sdk_keep_their_ids_over_thirteen_versions(pace: str, order: str):
    found = climb_together(part(sdk(), spread(31, 13)), PACES[pace], order)
    assert (found.kept, found.steps) == (72, 72)
    assert found.merged in ([], TWINS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "pace"), [*((order, "7 days") for order in INTERLEAVED), ("in turn", "2 days"), ("in reverse", "2 days")]
)
def test_real_upgrades_are_recognized_behind_one_address(shared_data: Path, pace: str, order: str):
    """Upgrades, and the two steps to another build of the browser. Within two days of a visit, so far a leap is another
    program's (ADR 89).
    """
    found = climb_together(fingerprintjs_ladder(shared_data / "browsers" / "ladder.jsonl.gz"), PACES[pace], order)
    assert (found.kept, found.steps, found.merged) == (30, 30, [])


@pytest.mark.slow
@pytest.mark.parametrize("pace", ["1 minute", "1 hour", "1 day", "7 days"])
def test_devices_that_differ_in_canvas_and_font_preferences_alone_stay_apart(shared_data: Path, pace: str):
    ladder = imitated(fingerprintjs_ladder(shared_data / "browsers" / "ladder.jsonl.gz"), sdk())
    assert sorted(ladder) == ["p0", "p1", "p2", "p3", "p4", "p5"]
    for order in ("in turn", "in reverse", "device after device"):
        found = climb_together(ladder, PACES[pace], order)
        assert (found.kept, found.steps, found.merged) == (72, 72, [])


@pytest.mark.slow
@pytest.mark.parametrize("pace", PACES.values(), ids=PACES)
def test_devices_that_come_one_after_the_other_are_not_merged(shared_data: Path, pace: timedelta):
    ladder = fingerprintjs_ladder(shared_data / "browsers" / "ladder.jsonl.gz")
    assert climb_together(ladder, pace, "device after device").merged == []
