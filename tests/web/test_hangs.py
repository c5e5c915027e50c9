"""A service that accepts connections and never responds costs the pages that use it a few seconds: what the guides and
the examples show, in a real browser.
"""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.chromium import browser, built
from tests.web.test_examples import EXAMPLES, GUIDE, ROOT, SEND, Service, django, running, serving, shown_page

pytestmark = pytest.mark.slow(30)

SAY = 'document.body.append(Object.assign(document.createElement("code"), { textContent: %s }))'
LATER = f'<script type="module">{SAY % "`goes on`"}</script>'
"""What the page has after what the guides show: a module, as which the application of a page is loaded."""
FORM = "<form"


@pytest.fixture
def service(tmp_path: Path) -> Generator[Service]:
    built()
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        keys = {"url": url, "public": "svc_pk_us_development_x", "secret": "svc_sk_us_development_x"}
        (tmp_path / "keys.json").write_text(json.dumps(keys))
        yield Service(url, tmp_path / "keys.json")


def shown(url: str, expected: str | None = None) -> str:
    """What the page says once somebody has sent its form, or it has loaded what comes after the SDK. `expected`: an
    error that its console may show.
    """
    seen = json.loads(browser().run("examples.mjs", url, "hangs", timeout_s=120))
    assert [problem for problem in seen["problems"] if expected is None or expected not in problem] == []
    return " ".join(seen["shown"])


@pytest.mark.parametrize("file", ["README.md", "docs/frontend.md", "web/sdk/README.md"])
def test_a_page_that_begins_as_the_guide_shows_goes_on(service: Service, tmp_path: Path, file: str):
    page = f"<!doctype html><body>{shown_page(service, file, SEND)}{LATER}</body>"
    with serving(service, page, tmp_path / "log") as example:
        assert shown(example.url) == "goes on"


def test_a_page_without_modules_goes_on(service: Service, tmp_path: Path):
    (script,) = re.findall(r'`(<script [^`]*svc\.js">)`', GUIDE)
    script = script.replace("https://id.shop.example", service.url)
    with serving(service, f"<!doctype html><body>{script}</script>{LATER}</body>", tmp_path / "log") as example:
        assert shown(example.url) == "goes on"


def test_the_form_of_the_guide_is_sent(service: Service, tmp_path: Path):
    with serving(service, shown_page(service, "docs/frontend.md", FORM), tmp_path / "log") as example:
        assert shown(example.url) == ""


def test_the_recipe_of_the_package_gives_no_request_id(service: Service, tmp_path: Path):
    (recipe,) = re.findall(
        r"^// visitor\.js\n(.*?)^```$", (ROOT / "web/sdk/README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    recipe = recipe.replace("export ", "").replace("https://id.shop.example", service.url)
    page = f'<!doctype html><body><script type="module">{recipe}{SAY % "await requestId({})"}</script></body>'
    with serving(service, page, tmp_path / "log") as example:
        assert shown(example.url) == ""


def test_the_form_of_the_plain_example_is_sent(service: Service, tmp_path: Path):
    with running(["make", "run"], EXAMPLES / "html", tmp_path / "log", **service.settings) as example:
        assert shown(example.url) == ""
        assert "verify: \n" in example.log


@django
def test_the_form_of_the_shop_is_sent(service: Service, tmp_path: Path):
    secrets = {"SVC_WEBHOOK_SECRETS": "svc_whsec_" + "aB3" * 14 + "x"}
    command = [sys.executable, "app.py"]
    with running(command, EXAMPLES / "django", tmp_path / "log", **service.settings, **secrets) as example:
        assert "could not verify this browser" in shown(f"{example.url}/sign-up", "status of 422")
