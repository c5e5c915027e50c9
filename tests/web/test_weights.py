"""Weights that labels suggest, in a headless Chromium against a real `svc dev`: tried, saved, and restored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.spec.responses import HEADLESS, PROGRAM
from tests.support.chromium import browser
from tests.web.test_console import Console, console
from tests.web.test_morning import Shop

pytestmark = pytest.mark.slow(10)
__all__ = ["console"]

LABELED = [
    *[("fraud", HEADLESS["user-agent"])] * 30,
    *[("fraud", None)] * 22,
    *[("legitimate", HEADLESS["user-agent"])] * 3,
    *[("legitimate", PROGRAM["user-agent"])] * 12,
    *[("legitimate", None)] * 37,
]
"""Labels of visits and their user agents: a program is never fraud here."""
HARMLESS = "bot_user_agent"


@pytest.fixture(scope="module")
def walk(console: Console, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    shop = Shop(console)
    lines = ["request_id,label,label_reason"]
    for number, (label, user_agent) in enumerate(LABELED):
        lines.append(f"{shop.identify(f'user-{number}', 'log_in', user_agent)['request_id']},{label},")
    file: Path = tmp_path_factory.mktemp("labels") / "labels.csv"
    file.write_text("\n".join(lines) + "\n")
    console.command("label", "import", shop.id, str(file))
    link = console.command("console", "link", shop.id, "--url", console.service)["url"]
    configuration = {"service": console.service, "link": link, "signal": HARMLESS}
    return json.loads(browser().run("weights.mjs", json.dumps(configuration)))


def test_weights_are_suggested_from_imported_labels(walk: dict[str, Any]):
    assert "Fitted to 52 fraud events and 52 legitimate events" in walk["suggestion"]
    row = next(row for row in walk["rows"] if row[0] == HARMLESS)
    assert row == [HARMLESS, "20", "0", "12", "0 (0 %)"]


def test_a_suggestion_that_is_tried_is_not_yet_in_force(walk: dict[str, Any]):
    assert walk["tried"] == {"field": "0", "weight": 20}
    assert "of the newest 104 in development would change their level" in walk["preview"]
    assert f"{HARMLESS} from 20 to 0" in " ".join(walk["preview"].split())


def test_a_saved_suggestion_is_in_force(walk: dict[str, Any]):
    assert walk["saved"] == {"field": "0", "weight": 0}


def test_restored_weights_are_the_defaults_again(walk: dict[str, Any]):
    assert walk["restored"] == {"field": "20", "weight": 20}


def test_the_walk_violates_no_policy_and_shows_every_focus(walk: dict[str, Any]):
    assert (walk["violations"], walk["outside"]) == ([], [])
    assert {entry.split()[0] for entry in walk["failed"]} <= {"401"}, "signed out"
    assert set(walk["outlines"]) == {"solid"}
    assert {one["id"]: one["nodes"] for one in walk["axe"] if one["impact"] != "minor"} == {}
    assert walk["overflows"] == []
