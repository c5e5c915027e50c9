"""Real browsers, opened as people open them, and the same without a window, driven, or under another's name.

`tests/captures/README.md` says how they were taken. Each is looked at in two shapes: as FingerprintJS and BotD report
by themselves, and with what an SDK asks beside them.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from bench.browsers.measure import SHAPES, Capture, Shape, false_signals, is_found, read_captures, replayed

FILE = Path(__file__).parents[1] / "captures" / "undriven.jsonl.gz"

UNDETECTED = {
    "chromium/puppeteer-flagless-window": "attached without the flag of drivers, in a window of its own",
}
"""Programs that nothing in their reports gives away, and why."""


@cache
def captures() -> list[Capture]:
    return read_captures(FILE)


def those(kind: str) -> list[Capture]:
    found = [capture for capture in captures() if capture.kind == kind]
    assert found
    return found


def test_the_captures_hold_all_kinds_of_browsers():
    kinds = Counter(capture.kind for capture in captures())
    assert set(kinds) == {"normal", "headless", "driven", "spoofed"}
    assert len({capture.browser for capture in those("normal")}) >= 10


@pytest.mark.parametrize("shape", SHAPES)
def test_a_persons_visit_fires_nothing_that_is_not_true_of_it(shape: Shape):
    for capture in those("normal"):
        assert false_signals(capture, capture.observe(shape)) == set(), capture.tag


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["headless", "driven", "spoofed"])
def test_programs_and_disguises_are_found(kind: str, shape: Shape):
    missed = {capture.tag for capture in those(kind) if not is_found(capture, capture.observe(shape))}
    assert missed == {tag for tag in UNDETECTED if tag in {capture.tag for capture in those(kind)}}


@pytest.mark.parametrize("shape", SHAPES)
def test_no_browser_gets_the_id_of_another_on_the_same_machine(shape: Shape):
    people = those("normal")
    owners: dict[str, str] = {}
    for capture, answer in zip(people, replayed(people, shape), strict=True):
        assert owners.setdefault(answer["visitor_id"], capture.browser) == capture.browser, capture.tag
