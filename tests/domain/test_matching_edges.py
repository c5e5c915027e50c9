"""Matching at its edges: the fewest attributes of a key, versions out of range, a token elsewhere, years between."""

from __future__ import annotations

import msgspec
import pytest

from svc.domain.matching.blocks import COVERED, EVERYTHING, FONTS, HARDWARE, RENDERING, SETTINGS, block_keys
from svc.domain.model import Attribute
from tests.domain.matching_world import CHROME, DAY_MS, DESKTOP_VALUES, START_MS, Organization, features_of

TOKEN = "t0ken-of-the-first-browser"
FIREFOX = msgspec.structs.replace(CHROME, browser_family="firefox", browser_version=1280)
ENOUGH = {EVERYTHING: 3, HARDWARE: 3, RENDERING: 3, FONTS: 3, SETTINGS: 4}


@pytest.mark.parametrize("kind", COVERED)
def test_a_block_key_needs_a_minimum_number_of_attributes(kind: int) -> None:
    """The canvas among them, where it is covered: without it the key of rendering is none."""
    covered = sorted(COVERED[kind], key=lambda attribute: attribute != Attribute.CANVAS)
    for count, is_there in ((ENOUGH[kind] - 1, False), (ENOUGH[kind], True)):
        features = features_of(dict.fromkeys(covered[:count], "x"), fonts=())
        assert (kind in {key[0] for key in block_keys(features)}) is is_there


def test_versions_are_reduced_to_sixteen_bits() -> None:
    agent = msgspec.structs.replace(CHROME, browser_version=(3 << 16) + 7, os_release=(1 << 16) + 9)
    features = features_of(agent=agent)
    assert (features.browser_version, features.os_release) == (7, 9)


@pytest.mark.parametrize(
    ("hard", "linked"), [((), True), (("GPU",), True), (("GPU", "TIMEZONE", "HARDWARE", "TOUCH"), False)]
)
def test_another_browser_with_the_token_is_accepted_at_home_unless_its_hardware_differs(
    hard: tuple[str, ...], linked: bool
) -> None:
    organization = Organization()
    first = organization.visit(features_of(token=TOKEN, token_is_new=True))
    values = DESKTOP_VALUES | {Attribute[name]: "another" for name in hard}
    seen = organization.visit(features_of(values, agent=FIREFOX, token=TOKEN), START_MS + DAY_MS)
    assert (seen.number == first.number, seen.token_conflict) == (linked, not linked)
    if linked:
        same_browser = Organization()
        same_browser.visit(features_of(token=TOKEN, token_is_new=True))
        one_more = values | {Attribute.TIMEZONE: "Asia/Tokyo"}
        expected = same_browser.visit(features_of(one_more, token=TOKEN), START_MS + DAY_MS)
        assert seen.confidence == expected.confidence


@pytest.mark.parametrize("days", [1, 365, 800, 4000])
@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_visitor_that_returns_after_years_gets_a_valid_result(days: int, token: str | None) -> None:
    organization = Organization()
    first = organization.visit(features_of(token=token, token_is_new=token is not None))
    again = organization.visit(features_of(token=token), START_MS + days * DAY_MS)
    if token is not None:
        assert (again.number, again.confidence) == (first.number, 100)
    assert organization.visit(features_of(token=token), START_MS + (days + 1) * DAY_MS).number == again.number
