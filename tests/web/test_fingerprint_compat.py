"""A page and a server that were written for Fingerprint, in a headless Chromium against a real service, with the five
lines changed that clients/fingerprint-compat/README.md changes.
"""

from __future__ import annotations

import re

import pytest

from tests.clients.fingerprint import changed, installed, shown
from tests.support.ports import free_port
from tests.web.visits import Visits, seen_by

pytestmark = pytest.mark.slow(15)

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@pytest.fixture(scope="session")
def visits(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Visits:
    """The README's programs as they stand; the script puts addresses and key into them."""
    compat = installed(tmp_path_factory, worker_id)
    adapter, server = str(free_port()), str(free_port())
    files = {
        "importmap.html": shown("html", "importmap"),
        "page.js": changed("FingerprintJS.load")[2],
        "adapter.mjs": shown("js", "createEventsHandler("),
        "server.mjs": changed("createServer")[2],
    }
    for name, text in files.items():
        (compat.folder / name).write_text(text)
    return seen_by("fingerprint.mjs", tmp_path_factory, worker_id, str(compat.folder), adapter, server)


def test_the_page_and_the_server_of_the_guide_go_on_with_five_lines_changed(visits: Visits):
    """A driven browser is refused by the field that the server reads, of the event that the page made."""
    page = visits["page"]
    assert page["problems"] == []
    assert re.fullmatch(f"refused: {UUID}", page["shown"]), page["shown"]


def test_both_agents_find_the_visitor_of_the_page(visits: Visits):
    old, (new, cached) = visits["agents"]["v3"], visits["agents"]["v4"]
    assert re.fullmatch(UUID, old["requestId"])
    assert old["visitorFound"] is True
    assert 0.85 <= old["confidence"]["score"] <= 1
    assert old["visitorId"] == new["visitor_id"]
    assert old["zeroTrust"]["hiddenFields"]
    assert (new["cache_hit"], cached["cache_hit"]) == (False, True)
    assert new["event_id"] == cached["event_id"] != old["requestId"]
    assert new["suspect_score"] >= 40, "a driven browser"


def test_errors_have_the_names_of_each_agent_in_a_browser(visits: Visits):
    assert visits["agents"]["errors3"] == [
        "ERROR_INVALID_ENDPOINT",
        "ERROR_API_KEY_INVALID",
        "ERROR_NETWORK_CONNECTION",
        "ERROR_BAD_REQUEST_FORMAT",
    ]
    assert visits["agents"]["errors4"] == [
        ["invalid_endpoint", True, False],
        ["public_api_key_not_found", True, True],
        ["network_connection", True, False],
        ["request_cannot_be_parsed", True, False],
    ]
