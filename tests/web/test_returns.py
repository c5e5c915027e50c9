"""Real browsers that come back, live: the shipped SDK in an installed Chromium and Firefox, against a real service, on
a page that demands Trusted Types (decisions 18.1 and 18.4).
"""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.web.visits import Visits, seen_by

pytestmark = pytest.mark.slow(90)

BROWSERS = {
    "chromium": shutil.which("chromium") or shutil.which("google-chrome"),
    "firefox": shutil.which("firefox-esr") or shutil.which("firefox"),
}
CLEARED = [f"cleared {time}" for time in range(1, 9)]
WITHOUT_PROOF = ["upgraded and cleared", "private", *CLEARED]
"""Visits that bring a token and a key that nobody has seen."""


@pytest.fixture(params=BROWSERS, scope="module")
def visits(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Visits:
    installed = BROWSERS[request.param]
    if installed is None:
        pytest.skip(f"{request.param} is not installed")
    name = f"returns-{request.param}"
    return seen_by("returns.mjs", tmp_path_factory, worker_id, request.param, installed, name=name)


def event(visits: Visits, name: str) -> dict[str, Any]:
    return visits[name]["event"]


def test_eight_clearings_make_two_visitors_at_most(visits: Visits):
    ids = {event(visits, name)["visitor_id"] for name in visits if name != "page"}
    assert len(ids) <= 2, {name: event(visits, name)["visitor_id"] for name in visits if name != "page"}
    first = event(visits, "first")["visitor_id"]
    assert sum(event(visits, name)["visitor_id"] == first for name in CLEARED) >= len(CLEARED) - 1


@pytest.mark.parametrize("name", ["again", "traveling", "upgraded"])
def test_a_browser_that_kept_its_storage_is_proven_wherever_and_whatever_it_is(visits: Visits, name: str):
    visit = event(visits, name)
    assert visit["visitor_id"] == event(visits, "first")["visitor_id"]
    assert visit["proven"] is True
    assert visit["visitor_confidence"] >= 90


@pytest.mark.parametrize("name", WITHOUT_PROOF)
def test_what_is_not_proven_is_not_certain(visits: Visits, name: str):
    """85 to 89: the same visitor by all that is known."""
    visit = event(visits, name)
    assert visit["proven"] is False
    assert visit["visitor_confidence"] < 90


def test_a_reload_after_a_clearing_is_proven_and_not_certain_before_the_former_token_stayed_away(visits: Visits):
    visit = event(visits, "reloaded")
    assert (visit["visitor_id"], visit["proven"]) == (event(visits, CLEARED[-1])["visitor_id"], True)
    assert visit["visitor_confidence"] < 90


def test_a_page_that_demands_trusted_types_has_no_complaints(visits: Visits):
    assert visits["page"]["errors"] == []
    assert {name: visit["violations"] for name, visit in visits.items() if visit.get("violations")} == {}
    notes = {note for visit in visits.values() for note in visit.get("notes", ())}
    assert not [note for note in notes if "policy" in note], notes
