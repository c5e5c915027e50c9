"""The pages in a headless Chromium against a real `svc dev`: what is refused, what a reader of the screen misses, and
what a person does with /try.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.chromium import browser, built
from tests.support.development import development_service

pytestmark = pytest.mark.slow(30)

DIAGRAM = "/docs/adr/0054-the-documentation-site.html"
UNKNOWN = "/nothing/here"
PAGES = ("/", "/try", "/docs/", "/docs/quickstart.html", DIAGRAM, UNKNOWN)
"""All but `/docs/api`, which `test_reference.py` looks at."""
LOOKS = ("light", "dark", "phone")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a development service with the pages."""
    built()
    with development_service(tmp_path_factory.mktemp("service") / "data") as running:
        yield running.url


@pytest.fixture(scope="module")
def looks(service: str) -> dict[str, dict[str, Any]]:
    """Page -> look -> what `web/browsers/look.mjs` found."""
    return json.loads(browser().run("look.mjs", service, *PAGES))


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_violates_no_policy_and_logs_no_error(looks: dict[str, dict[str, Any]], page: str, look: str):
    """web.md 5: no violation of the policy, nothing in the console, no request that fails or goes elsewhere."""
    found = looks[page][look]
    unknown = [entry for entry in found["failed"] if entry.endswith(UNKNOWN)]
    assert len(unknown) == (page == UNKNOWN), "a browser counts the page itself, and says so in its console"
    assert [entry for entry in found["console"] if not unknown or "404" not in entry] == []
    assert (found["violations"], found["failed"], found["outside"]) == ([], unknown, [])


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_serious_axe_finding_and_fits_its_window(looks: dict[str, dict[str, Any]], page: str, look: str):
    serious = {one["id"]: one["nodes"] for one in looks[page][look]["axe"] if one["impact"] in ("serious", "critical")}
    assert serious == {}
    assert looks[page][look]["overflows"] == []


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("page", PAGES)
def test_the_focus_is_seen_on_every_control_that_the_keyboard_reaches(
    looks: dict[str, dict[str, Any]], page: str, look: str
):
    assert looks[page][look]["unseen"] == []


def test_try_works_by_keyboard_and_recognizes_the_browser_until_erased(service: str):
    """web.md 3: the same id after a reload, after the storage is cleared and in a private window; and erasure."""
    found = json.loads(browser().run("try.mjs", service))
    assert re.fullmatch(r"[0-9A-Za-z]{20}", found["first"])
    visits = ("reloaded", "cleared", "private")
    assert {name: found[name] for name in visits} == dict.fromkeys(visits, found["first"])
    (reason,) = re.findall("Not proven: (.*?)[.]", found["unproven"])
    assert reason == "the key that signed is new, as on every first visit; later visits are compared with it"
    assert "The same visitor by all that is known, not proven" in found["uncertain"]
    rows = [row for row in found["counted"] if len(row) == 4]
    assert ["Accounts", "1", "1", "1"] in rows, "of this browser"
    assert ["Browsers", "1", "1", "1"] in rows, "of the account"
    assert '.identify({ accountId: "user-1", action: "log_in" })' in found["snippet"]
    assert found["refused"].startswith("accountId is 1 to 256 characters")
    assert found["kept"] == "\x85", "what was refused can be corrected"
    assert found["stored"] == ["", 0]
    assert found["visits"] >= 2
    assert found["hidden"] == 1, "without its token, another browser may look like it"
    assert {"components", "botd", "probes", "client_token"} <= set(found["report"])
    assert set(found["outlines"]) == {"solid"}, "what has the focus is seen"
    assert "Forgotten" in found["forgotten"]
    assert found["after"] != found["first"]


def test_the_documentation_is_searched_and_its_diagrams_drawn_without_another_host(service: str):
    found = json.loads(browser().run("docs.mjs", service, DIAGRAM))
    assert found["outside"] == found["failed"] == found["violations"] == found["console"] == []
    assert "webhooks.html" in found["results"][0], "the page of that name comes first"
    assert any("frontend.html" in link for link in found["status"]), "a status is found, though it is a number"
    assert found["nothing"] == []
    assert found["dark"] != found["light"], "the diagram follows the theme"
    assert "svc/docs_site" in found["name"]
    assert "project/examples" in found["followed"]
