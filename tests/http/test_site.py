"""The documentation site as the service and `svc docs` serve it (docs/adr/0054)."""

from __future__ import annotations

import re
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

from svc.http.pages import app as pages
from tests.spec.responses import assert_error
from tests.support.live import Live, live_service
from tests.support.process import ENVIRONMENT, read_until, run, start
from tools.docs import ROOT

HTML = {"accept": "text/html"}


@pytest.fixture(autouse=True)
def built():
    if pages.HOME not in pages.SITE:
        pytest.skip("the documentation site is not built: `make docs`")


@pytest.fixture
async def live(tmp_path):
    async with live_service(tmp_path / "data") as running:
        yield running


@pytest.mark.slow(0.3)
async def test_every_page_allows_scripts_and_hosts_of_its_own_only(live: Live):
    for name in ("", "index.html", "quickstart.html", "adr/"):
        page = await live.client.get(f"/docs/{name}")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert re.fullmatch(r"'self' 'sha256-[\w+/]{43}='", policy["script-src"])
        assert policy["connect-src"] == "'self'"
        assert page.headers["x-content-type-options"] == "nosniff"


async def test_pages_are_compressed_and_revalidated_and_versioned_files_are_cached(live: Live):
    page = await live.client.get("/docs/quickstart.html", headers={"accept-encoding": "gzip"})
    assert (page.headers["content-encoding"], page.headers["cache-control"]) == ("gzip", "no-cache")
    again = await live.client.get("/docs/quickstart.html", headers={"if-none-match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    style = next(iter(re.findall(r'href="(_static/styles/furo\.css\?v=\w+)"', page.text)))
    kept = await live.client.get(f"/docs/{style}")
    assert "immutable" in kept.headers["cache-control"]
    assert kept.headers["content-type"] == "text/css; charset=utf-8"


async def test_the_search_accepts_a_query_and_an_unknown_parameter_is_refused(live: Live):
    assert (await live.client.get("/docs/search.html?q=webhook")).status_code == 200
    assert_error(
        await live.client.get("/docs/index.html?page=2"), 422, "validation_error", ("page", "unknown_field", "query")
    )


@pytest.mark.parametrize("name", ["nothing.html", "..%2F..%2Fpyproject.toml", "concepts/", "index.html.gz", "adr//"])
async def test_an_unknown_page_returns_404_with_a_link_home_and_a_json_error_to_programs(live: Live, name: str):
    page = await live.client.get(f"/docs/{name}", headers=HTML)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert f'href="{"../" * (name.count("/") + name.count("%2F") + 1)}docs/"' in page.text
    assert_error(await live.client.get(f"/docs/{name}"), 404, "not_found")


async def test_a_site_that_is_not_built_shows_how_to_build_it(live: Live, monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setattr(pages, "SITE", pages.Folder(tmp_path))
    page = await live.client.get("/docs/", headers=HTML)
    assert page.status_code == 404
    assert "make docs" in page.text


async def test_the_pages_of_the_service_link_to_the_documentation(live: Live):
    for path in ("/", "/docs", "/docs/api"):
        assert "docs/" in (await live.client.get(path)).text, path
    for page in ("try.tsx", "console.tsx"):
        assert 'href="docs/"' in (ROOT / "web" / "pages" / page).read_text()


@pytest.mark.slow
def test_svc_docs_serves_the_site_and_redirects_to_it():
    process = start("docs", "--port", "0", stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+", read_until(process, "Ctrl-C"))
        assert address
        with urllib.request.urlopen(address[0], timeout=20) as page:
            assert page.url == f"{address[0]}/docs/"
            assert "script-src 'self' 'sha256-" in page.headers["content-security-policy"]
            assert b"Documentation" in page.read()
        with urllib.request.urlopen(f"{address[0]}/docs/quickstart.html", timeout=20) as page:
            assert page.status == 200
        for path, says in (("/docs/nothing", b"no such page"), ("/try", b"svc dev")):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{address[0]}{path}", timeout=20)
            assert refused.value.code == 404
            assert says in refused.value.read()
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.slow
def test_svc_docs_names_a_port_that_is_in_use():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert "--port" in run("docs", "--port", port, status=1).stderr
