"""The web SDK's reports of real Chromium 109 to 153 on simulated devices: what each version says, and whose it is.

`tests/captures/README.md` says how they were taken.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest

from bench.browsers.pack import read_rows
from svc.identify.detection import detect
from svc.identify.matching import Features, extract
from svc.identify.model import Attribute, Network, Report, RequestFacts
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from svc.identify.useragent.agent import read_hints
from tests.domain.matching_world import DAY_MS, MINUTE_MS, START_MS, Organization

pytestmark = pytest.mark.slow

FILE = Path(__file__).parents[1] / "captures" / "sdk-upgrades.jsonl.gz"
NAMES = ["office", "office-twin", "small-laptop", "scaled-laptop", "large-screen", "phone"]
TWINS = {"office", "office-twin"}
"""Two machines of one model that differ in their number of cores: behind one address they may share an id."""
RELEASE_DAYS = 28
"""Between two major versions of Chromium."""
SHARED_ADDRESS = "81.2.69.142"

Row = dict[str, Any]
Where = Literal["home", "office", "moving"]
"""A network each; one address for all; elsewhere at each step."""


def address(where: Where, place: int, major: int) -> str:
    """Where the device at this place of `NAMES` is when it has this version."""
    if where == "home":
        return f"81.{2 + 7 * place}.69.142"
    return f"{81 + place}.{major}.69.142" if where == "moving" else SHARED_ADDRESS


@cache
def rows() -> dict[tuple[str, int], Row]:
    return {(row["device"], row["major"]): row for row in read_rows(FILE)}


@cache
def majors() -> list[int]:
    return sorted({major for _, major in rows()})


def facts_of(row: Row, ip: str = SHARED_ADDRESS) -> RequestFacts:
    headers = row["headers"]
    return RequestFacts(
        ip=ip,
        user_agent=headers["user-agent"],
        accept_language=headers["accept-language"],
        hints=read_hints(headers),
    )


def report_of(row: Row) -> Report:
    return read_report(row["signals"], facts_of(row))


@cache
def features_of(device: str, major: int, ip: str) -> Features:
    row = rows()[device, major]
    facts, report = facts_of(row, ip), report_of(row)
    return extract(report, read_agent(facts, report), facts)


def follow_upgrades(where: Where, days: int) -> tuple[list[tuple[str, int]], dict[int, set[str]]]:
    """Take every device through its versions without a token: (steps that gave it another id, id -> its devices)."""
    organization = Organization()
    known: dict[str, int] = {}
    owners: dict[int, set[str]] = {}
    lost: list[tuple[str, int]] = []
    for major in majors():
        for place, name in enumerate(NAMES):
            ip = address(where, place, major)
            now_ms = START_MS + (major - majors()[0]) * days * DAY_MS + place * 10 * MINUTE_MS
            number = organization.visit(features_of(name, major, ip), now_ms).number
            owners.setdefault(number, set()).add(name)
            if known.setdefault(name, number) != number:
                lost.append((name, major))
            known[name] = number
    return lost, owners


def test_every_version_was_captured_on_every_device():
    assert set(rows()) == {(name, major) for name in NAMES for major in majors()}
    assert (majors()[0], majors()[-1], len(majors())) == (109, 153, 31)
    for (_, major), row in rows().items():
        assert f"Chrome/{major}." in row["headers"]["user-agent"]


def test_every_version_reports_all_attributes_that_matching_uses():
    """But the pixel ratio, which the SDK does not ask for, the model, which phones alone have, and the memory beyond
    8 GB, which Chromium named at last between 143 and 147.
    """
    for (name, major), row in rows().items():
        report = report_of(row)
        missing = {Attribute.PIXEL_RATIO}
        missing |= {Attribute.MODEL} if name != "phone" else set()
        missing |= {Attribute.REST} if major <= 143 else set()
        assert set(Attribute) - set(report.attributes) == missing, (name, major)
        assert report.rest == (() if major <= 143 else ("deviceMemory=16",))
        assert report.collectors == ("fingerprintjs", "probes", "botd")
        assert not report.masked
        assert set(report.claims.contexts or ()) == {"iframe", "worker"}, (name, major)
        assert features_of(name, major, SHARED_ADDRESS).identifiable


def test_a_driven_headless_browser_fires_exactly_the_expected_signals():
    for (name, major), row in rows().items():
        facts, report = facts_of(row), report_of(row)
        seen = detect(report, facts, read_agent(facts, report), Network(state="enriched"), "web")
        fired = {observation.signal for observation in seen}
        assert fired == {"automation", "headless", "virtual_machine"}, (name, major, seen)


@pytest.mark.parametrize("days", [1, RELEASE_DAYS])
def test_a_device_keeps_its_id_through_all_versions_and_shares_it_with_none(days: int):
    """Each on a network of its own; a day, or the time that it took, between two releases."""
    lost, owners = follow_upgrades("home", days)
    assert lost == []
    assert sorted(owners.values(), key=str) == sorted(({name} for name in NAMES), key=str)


@pytest.mark.parametrize("days", [1, RELEASE_DAYS])
def test_devices_behind_one_address_keep_their_ids_distinct(days: int):
    lost, owners = follow_upgrades("office", days)
    assert lost == []
    assert [devices for devices in owners.values() if len(devices) > 1 and devices != TWINS] == []


@pytest.mark.parametrize("days", [2, 28, 224])
def test_a_jump_over_eight_captured_versions_is_recognized_at_home(days: int):
    for before, after in pairwise(majors()[::8]):
        organization = Organization()
        for now_ms, major in ((START_MS, before), (START_MS + days * DAY_MS, after)):
            seen = [
                organization.visit(features_of(name, major, address("home", place, major)), now_ms).number
                for place, name in enumerate(NAMES)
            ]
            assert seen == [1, 2, 3, 4, 5, 6], (before, after, major)


def test_a_jump_over_eight_versions_within_a_day_is_another_program():
    """Programs bring engines of their own, and stand side by side on one machine (ADR 89)."""
    for before, after in pairwise(majors()[::8]):
        organization = Organization()
        owners = [
            organization.visit(features_of(name, major, address("home", place, major)), now_ms).number
            for now_ms, major in ((START_MS, before), (START_MS + DAY_MS, after))
            for place, name in enumerate(NAMES)
        ]
        assert len(set(owners)) == 2 * len(NAMES), (before, after)
