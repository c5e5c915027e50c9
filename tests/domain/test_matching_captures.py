"""Recognition of real browsers: each capture is posted, then posted again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from svc.identify.matching import Features, extract
from svc.identify.model import RequestFacts
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from tests.domain.matching_world import DAY_MS, MINUTE_MS, START_MS, Organization

pytestmark = pytest.mark.slow


def features_of_capture(capture: dict, ip: str) -> Features:
    facts = RequestFacts(ip=ip, user_agent=capture["ua"])
    report = read_report({"components": capture["components"], "botd": capture["botComponents"]}, facts)
    return extract(report, read_agent(facts, report), facts)


def load(path: Path, ip: str) -> dict[str, Features]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {capture["tag"]: features_of_capture(capture, ip) for capture in map(json.loads, lines)}


@pytest.fixture(params=["127.0.0.1", "81.2.69.142"])
def captures(request: pytest.FixtureRequest, shared_data: Path) -> dict[str, Features]:
    ladder = load(shared_data / "browsers" / "ladder.jsonl.gz", request.param)
    bots = load(shared_data / "bots" / "captures.jsonl.gz", request.param)
    return ladder | bots


def test_every_capture_is_identifiable(captures: dict[str, Features]) -> None:
    assert [tag for tag, features in captures.items() if not features.identifiable] == []


def test_a_capture_repeated_at_once_is_the_same_visitor_at_confidence_100(captures: dict[str, Features]) -> None:
    for tag, features in captures.items():
        organization = Organization()
        first = organization.visit(features)
        again = organization.visit(features, START_MS + 1000)
        assert (tag, again.number, again.confidence) == (tag, first.number, 100)


def test_a_capture_repeated_at_once_among_all_others_is_the_same_visitor(captures: dict[str, Features]) -> None:
    organization = Organization()
    for place, (tag, features) in enumerate(captures.items()):
        first = organization.visit(features, START_MS + place * MINUTE_MS)
        again = organization.visit(features, START_MS + place * MINUTE_MS + 1000)
        assert (tag, again.number, again.confidence >= 99) == (tag, first.number, True)


def test_a_capture_repeated_after_all_others_is_the_same_visitor(captures: dict[str, Features]) -> None:
    """Behind one address stand up to 33 programs of a class by then, which is why some are not quite sure."""
    organization = Organization()
    first = {
        tag: organization.visit(features, START_MS + place * MINUTE_MS).number
        for place, (tag, features) in enumerate(captures.items())
    }
    for place, (tag, features) in enumerate(captures.items()):
        again = organization.visit(features, START_MS + (100 + place) * MINUTE_MS)
        assert (tag, again.number, again.confidence >= 99) == (tag, first[tag], True)


def test_a_capture_that_came_first_is_still_recognized_after_all_others(captures: dict[str, Features]) -> None:
    for tag, features in captures.items():
        organization = Organization()
        first = organization.visit(features)
        for place, other in enumerate(other for name, other in captures.items() if name != tag):
            organization.visit(other, START_MS + (1 + place) * MINUTE_MS)
        again = organization.visit(features, START_MS + 100 * MINUTE_MS)
        assert (tag, again.number, again.confidence >= 99) == (tag, first.number, True)


STEPS = ("shell109", "shell119", "shell127", "shell138", "shell148", "chromium-headless", "chromium-headful")
PROFILES = ("p0", "p1", "p2", "p3", "p5")


def climb(ladder: Path, days: int, addresses: list[str]) -> tuple[int, set[tuple[str, str]]]:
    """Take every device through its upgrades without a token: (steps recognized, pairs of devices that were merged)."""
    by_profile = {profile: load(ladder, address) for profile, address in zip(PROFILES, addresses, strict=True)}
    organization = Organization()
    known: dict[str, int] = {}
    owners: dict[int, str] = {}
    recognized, merged = 0, set[tuple[str, str]]()
    for step, name in enumerate(STEPS):
        for place, profile in enumerate(PROFILES):
            now_ms = START_MS + step * days * DAY_MS + place * 10 * MINUTE_MS
            seen = organization.visit(by_profile[profile][f"{profile}/{name}"], now_ms)
            owner = owners.setdefault(seen.number, profile)
            if owner != profile:
                merged.add((owner, profile))
            recognized += known.get(profile) == seen.number
            known[profile] = seen.number
    return recognized, merged


@pytest.mark.parametrize(("days", "at_least"), [(2, 30), (7, 30), (28, 28)])
def test_devices_are_recognized_across_real_upgrades_and_kept_distinct(
    shared_data: Path, days: int, at_least: int
) -> None:
    """Upgrades of about ten releases at a time, 30 steps, each device on its own network."""
    addresses = [f"81.{2 + 7 * place}.69.142" for place in range(len(PROFILES))]
    recognized, merged = climb(shared_data / "browsers" / "ladder.jsonl.gz", days, addresses)
    assert recognized >= at_least
    assert not merged


@pytest.mark.parametrize("days", [1, 7, 28])
def test_devices_behind_one_address_are_kept_distinct_across_upgrades(shared_data: Path, days: int) -> None:
    addresses = ["81.2.69.142"] * len(PROFILES)
    _, merged = climb(shared_data / "browsers" / "ladder.jsonl.gz", days, addresses)
    assert not merged
