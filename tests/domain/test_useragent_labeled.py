"""User agents that others have labeled: how many are read right, and that the judge itself judges right."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.detection.useragents import (
    OF_LABELS,
    OF_LISTS,
    Measure,
    Reading,
    equivalents,
    plain,
    read_labeled,
    read_listed,
    read_one,
    same,
    share,
)

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0 Safari/537.36"
)
BY_NAME = {measure.name: measure for measure in (*OF_LABELS, *OF_LISTS)}


@pytest.fixture(scope="module")
def labeled(shared_data: Path) -> list[Reading]:
    return read_labeled(shared_data)


@pytest.fixture(scope="module")
def listed(shared_data: Path) -> list[Reading]:
    return read_listed(shared_data)


def measured(measure: Measure, readings: list[Reading], *, tuned_on: bool) -> float:
    count, met = share(measure, [reading for reading in readings if reading.tuned_on() is tuned_on])
    assert count > 10
    assert met is not None
    return met


@pytest.mark.slow
@pytest.mark.parametrize("tuned_on", [True, False])
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("operating system right", 0.99),
        ("browser right", 0.985),
        ("app right", 0.58),
        ("kind of device right", 0.88),
        ("bots found", 0.99),
        ("AI agents: recall", 0.5),
        ("AI agents: precision", 0.6),
        ("search crawlers: recall", 0.5),
        ("search crawlers: precision", 0.5),
    ],
)
def test_labeled_user_agents_are_read_as_well_in_the_held_out_half(
    labeled: list[Reading], name: str, least: float, tuned_on: bool
):
    assert measured(BY_NAME[name], labeled, tuned_on=tuned_on) >= least


@pytest.mark.slow
@pytest.mark.parametrize("tuned_on", [True, False])
def test_labeled_people_are_rarely_classified_as_bots(labeled: list[Reading], tuned_on: bool):
    assert measured(BY_NAME["people taken for bots"], labeled, tuned_on=tuned_on) <= 0.0012


@pytest.mark.slow
@pytest.mark.parametrize("tuned_on", [True, False])
def test_other_lists_agree_on_who_is_a_bot(listed: list[Reading], tuned_on: bool):
    assert measured(BY_NAME["other lists: bots found"], listed, tuned_on=tuned_on) >= 0.89
    assert measured(BY_NAME["other lists: people taken for bots"], listed, tuned_on=tuned_on) <= 0.03


@pytest.mark.slow
def test_no_search_crawler_is_read_as_an_ai_agent_except_by_policy(labeled: list[Reading]):
    tuned_on = [reading for reading in labeled if reading.tuned_on()]
    assert {one.agent.program for one in tuned_on if one.is_search() and one.found_ai()} == {"TikTokSpider"}
    # Siri's search lists pages, and somebody who is compatible with Googlebot says to be it.
    assert {one.agent.program for one in tuned_on if one.is_ai() and one.found_search()} == {"Applebot", "Googlebot"}


def test_the_table_of_equivalent_names_is_the_published_one():
    assert equivalents("Operating systems")["Linux"] == {"GNU/Linux"}
    assert equivalents("Browsers and apps")["Edge"] == {"Microsoft Edge"}
    for heading in ("Operating systems", "Browsers and apps"):
        rows = equivalents(heading)
        assert list(rows) == sorted(rows)
        for ours, theirs in rows.items():
            assert all(plain(ours) != plain(label) for label in theirs), f"{ours}: the rule says so already"


@pytest.mark.parametrize(
    ("ours", "label", "expected"),
    [
        ("Chrome Mobile", "Chrome", True),
        ("HiBrowser", "Hi Browser", True),
        ("Edge Mobile", "Microsoft Edge", True),
        ("Browser", "Mobile Browser", False),
        ("Chrome", "Chrome Webview", False),
        ("Chrome", "Chromium", False),
        (None, "Chrome", False),
    ],
)
def test_names_match_by_their_letters_or_by_the_table(ours: str | None, label: str, expected: bool):
    assert same("Browsers and apps", ours, label) is expected


def test_a_reading_is_scored_by_its_label():
    label = {"ua": CHROME, "kind": "human", "os": "Windows", "client": "Chrome", "client_type": "browser"}
    right, wrong = read_one(label), read_one({**label, "os": "Mac", "client": "Firefox"})
    assert right.os_is_right()
    assert right.client_is_right()
    assert not wrong.os_is_right()
    assert not wrong.client_is_right()
    assert share(BY_NAME["browser right"], [right, wrong]) == (2, 0.5)
    assert share(BY_NAME["bots found"], [right, wrong]) == (0, None)
