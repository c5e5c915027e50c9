"""The web SDK in browsers that no driver steers: people's fire nothing that is not true of them, and the same without a
window or under a false name are found.

`tests/captures/README.md` says how they were taken.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bench.browsers.pack import read_rows
from svc.identify.detection import detect, visitor_kind
from svc.identify.detection.graphics import is_software_renderer
from svc.identify.model import Network, VisitorKind
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from tests.domain.test_automation_tools import facts_of

FILE = Path(__file__).parents[1] / "captures" / "sdk-browsers.jsonl.gz"
ENRICHED = Network(state="enriched")

PROGRAMS = {"automation", "headless"}
UNDETECTED = {"falkon/offscreen", "konqueror/offscreen"}
"""QtWebEngine 5.15 on a platform that shows nothing: a small window on a small screen, as anybody's."""


class Row:
    def __init__(self, row: dict[str, Any]) -> None:
        facts = facts_of(row)
        report = read_report(row["signals"], facts)
        agent = read_agent(facts, report)
        seen = detect(report, facts, agent, ENRICHED, "web")
        self.tag: str = row["tag"]
        self.kind: str = row["kind"]
        self.fired = {observation.signal for observation in seen}
        self.visitor_kind: VisitorKind = visitor_kind(seen, agent, ENRICHED)
        of_machine = {"virtual_machine"} if is_software_renderer(report.claims.gpu_renderer) else set[str]()
        self.false = self.fired - set(row["true"]) - of_machine


@cache
def rows() -> list[Row]:
    return [Row(row) for row in read_rows(FILE)]


def those(kind: str) -> list[Row]:
    return [row for row in rows() if row.kind == kind]


def test_the_captures_contain_the_browsers_of_people_and_what_looks_like_them():
    assert {kind: len(those(kind)) for kind in ("normal", "headless", "spoofed")} == {
        "normal": 48,
        "headless": 15,
        "spoofed": 8,
    }
    browsers = {row.tag.partition("/")[0] for row in those("normal")}
    assert browsers >= {"chromium", "firefox", "epiphany", "falkon", "qutebrowser", "qt-6.4", "qt-6.5", "qt-6.11"}


def test_people_fire_nothing_that_is_not_true_of_them():
    assert {row.tag: row.false for row in those("normal") if row.false} == {}
    assert {row.visitor_kind for row in those("normal")} == {"human"}


def test_private_windows_are_seen_where_the_browser_lets_them_show():
    private = {row.tag for row in those("normal") if "incognito" in row.fired}
    assert private == {"chromium/incognito", "chromium/guest", "firefox/private", "qt-6.11/private"}


def test_browsers_without_a_window_are_found_under_whatever_name():
    missed = {row.tag for row in those("headless") if row.fired.isdisjoint(PROGRAMS)}
    assert missed == UNDETECTED


def test_disguises_are_found_and_are_no_programs():
    """Flags and extensions in a person's window."""
    for row in those("spoofed"):
        assert "browser_tampering" in row.fired or "os_mismatch" in row.fired, row.tag
        assert row.visitor_kind == "human", row.tag


@pytest.mark.parametrize("tag", ["chromium/renamed-gpu", "chromium/other-cores", "chromium/canvas-noise"])
def test_an_extension_that_changes_one_thing_invents_no_device(tag: str):
    (row,) = [row for row in rows() if row.tag == tag]
    assert row.false == {"browser_tampering"}
