"""Real browsers, opened as people open them, and the same without a window, driven, or under another's name.

`tests/captures/README.md` says how they were taken. Each is looked at in two shapes: as FingerprintJS and BotD report
by themselves, and with what an SDK asks beside them.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from bench.browsers.measure import SHAPES, Capture, Shape, false_signals, is_found, read_captures
from svc.identify.matching import extract
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from tests.domain.matching_world import MINUTE_MS, START_MS, Organization

FILE = Path(__file__).parents[1] / "captures" / "real-browsers.jsonl.gz"

UNDETECTED = {
    "chromium/puppeteer-flagless-window": "without the flag of drivers, in a window of its own",
    "falkon/offscreen": "a window and bars as anybody's, on a plug-in of Qt that shows nothing",
    "firefox/headless-2560x1440": "the size of a first window, which large screens leave to everybody",
    "firefox/headless-on-display": "draws with the processor, as in a virtual machine with a small screen",
    "konqueror/offscreen": "as falkon/offscreen",
}
"""Programs that nothing in their reports gives away, and why."""

SAME_REPORT = {"luakit": "minibrowser"}
"""Browsers that send the very same report and headers as another: nobody can tell them apart without a token."""


@cache
def captures() -> list[Capture]:
    return read_captures(FILE)


def those(kind: str) -> list[Capture]:
    found = [capture for capture in captures() if capture.kind == kind]
    assert found
    return found


def test_the_captures_contain_all_kinds_of_browsers():
    kinds = Counter(capture.kind for capture in captures())
    assert set(kinds) == {"normal", "headless", "driven", "spoofed"}
    assert len({capture.browser for capture in those("normal")}) >= 10


@pytest.mark.parametrize("shape", SHAPES)
def test_a_genuine_visit_fires_no_false_signal(shape: Shape):
    for capture in those("normal"):
        assert false_signals(capture, capture.observe(shape)) == set(), capture.tag


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["headless", "driven", "spoofed"])
def test_programs_and_disguises_are_detected(kind: str, shape: Shape):
    missed = {capture.tag for capture in those(kind) if not is_found(capture, capture.observe(shape))}
    assert missed == UNDETECTED.keys() & {capture.tag for capture in those(kind)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.slow(0.2)
def test_no_browser_gets_the_id_of_another_on_the_same_machine(shape: Shape):
    organization, owners = Organization(), dict[int, str]()
    for count, capture in enumerate(those("normal")):
        facts = capture.facts()
        report = read_report(capture.signals(shape), facts)
        features = extract(report, read_agent(facts, report), facts)
        number = organization.visit(features, START_MS + count * MINUTE_MS).number
        browser = SAME_REPORT.get(capture.browser, capture.browser)
        assert owners.setdefault(number, browser) == browser, capture.tag
