"""Decisions 9.2 and 2.8: what the service publishes of itself, and the page that shows it and tries it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.features.routes import API
from svc.http.openapi.collection import collection, from_responses
from svc.http.pages.app import ASSETS
from svc.http.route import BASE
from svc.kernel.limits.ratelimit import Allowances
from tests.spec.commands import Run
from tests.spec.responses import BROWSER, IDENTIFY, assert_error, assert_invalid, body_of
from tests.support.collection_runner import run_collection
from tests.support.development import development_service
from tests.support.documents import published
from tests.support.live import Live

pytestmark = pytest.mark.any_store

DOCUMENTS = {
    "/api/v1/openapi.json": ("openapi",),
    "/console/openapi.json": ("openapi", "--console"),
    "/api/v1/collection.json": ("collection",),
}
"""Path -> the command that prints the same."""


@pytest.mark.parametrize("path", DOCUMENTS)
@pytest.mark.slow(0.3)
async def test_a_document_is_public_and_equals_that_of_the_command_line(live: Live, run: Run, path: str):
    response = await live.client.get(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    arguments = ("--url", f"{live.client.base_url}") if path.endswith("collection.json") else ()
    assert response.text == run(*DOCUMENTS[path], *arguments).out


@pytest.mark.parametrize("path", [*DOCUMENTS, "/docs", "/docs/api", "/docs/api/reference.js"])
async def test_an_unchanged_document_is_not_sent_again(live: Live, path: str):
    first = await live.client.get(path)
    again = await live.client.get(path, headers={"if-none-match": f'"other", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    changed = await live.client.get(path, headers={"if-none-match": '"other"'})
    assert (changed.status_code, changed.content) == (200, first.content)


async def test_a_document_takes_no_query(live: Live):
    assert_invalid(await live.client.get("/api/v1/openapi.json?format=yaml"), "format", "unknown_field", "query")


@pytest.mark.parametrize(("path", "root"), [("/docs", ""), ("/docs/api", "../")])
async def test_the_page_and_its_files_name_no_other_host_and_may_connect_to_none(live: Live, path: str, root: str):
    page = await live.client.get(path)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "//" not in re.sub(r"<!doctype.*?>", "", page.text)
    named = re.findall(r'(?:src|href)="([^"]*docs/api/[^"]+)"', page.text)
    assert {f"{root}docs/api/{name}" for name in ASSETS.names} == set(named)
    for response in [page, *[await live.client.get(f"/{name.removeprefix(root)}") for name in named]]:
        assert response.status_code == 200
        policy = dict(part.split(" ", 1) for part in response.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert {sources for name, sources in policy.items() if name != "img-src"} == {"'none'", "'self'"}
        assert policy["img-src"] == "'self' data:"
        assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["swagger-ui-bundle.js.gz", "reference.html", "..%2Freference.html", "nothing.js"])
async def test_only_the_files_of_the_page_are_served(live: Live, name: str):
    assert_error(await live.client.get(f"/docs/api/{name}"), 404, "not_found")


async def test_the_renderer_is_compressed_for_clients_that_accept_it_and_plain_for_others(live: Live):
    packed = await live.client.get("/docs/api/swagger-ui.css", headers={"accept-encoding": "gzip"})
    plain = await live.client.get("/docs/api/swagger-ui.css", headers={"accept-encoding": "identity"})
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) * 4 < int(plain.headers["content-length"])


async def test_the_quality_of_an_accepted_encoding_is_honored(live: Live):
    for accepted, gzipped in (
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("br", False),
        ("", False),
    ):
        style = await live.client.get("/docs/api/reference.css", headers={"accept-encoding": accepted})
        assert (style.headers.get("content-encoding") == "gzip") is gzipped


# A secret key in a browser (decisions 2.8)


async def test_a_secret_development_key_is_accepted_from_the_page_of_this_service(live: Live, server_key: str):
    response = await identify_from(live, server_key, live.url)
    assert response.status_code == 200


async def test_a_reverse_proxy_that_terminates_tls_keeps_the_page_same_origin(live: Live, server_key: str):
    response = await identify_from(live, server_key, "https://id.shop.example", host="id.shop.example")
    assert response.status_code == 200


@pytest.mark.parametrize("environment", ["production", "staging"])
async def test_no_other_secret_key_is_accepted_from_any_page(live: Live, environment: str):
    _, secret = live.issue("secret", environment)
    assert_error(await identify_from(live, secret, live.url), 401, "unauthorized")


@pytest.mark.parametrize(
    "origin", ["https://shop.example", "http://127.0.0.1:1", "http://localhost", "null", "ftp://{}"]
)
async def test_a_secret_development_key_is_refused_from_any_other_origin(live: Live, server_key: str, origin: str):
    assert_error(await identify_from(live, server_key, origin.format(f"127.0.0.1:{live.port}")), 401, "unauthorized")


async def test_a_management_key_is_refused_from_the_page_too(live: Live, management: str):
    response = await live.client.get("/api/v1/management/key", headers={"x-api-key": management, "origin": live.url})
    assert_error(response, 401, "unauthorized")


async def identify_from(live: Live, secret: str, origin: str, **headers: str):
    sent = {**BROWSER, "origin": origin, "x-api-key": secret, "content-type": "application/json", **headers}
    return await live.client.post(IDENTIFY, content=body_of(), headers=sent)


# The request collection


def test_the_collection_has_every_operation_once_with_its_method_and_path():
    folders = collection(published())["item"]
    requests = [item["request"] for folder in folders for item in folder["item"]]
    told = sorted((request["method"], request["url"]["raw"]) for request in requests)
    known = sorted(
        (route.method, "{{baseUrl}}" + re.sub(r"{(\w+)}", r":\1", route.path)) for route in API if BASE in route.under
    )
    assert told == known


def test_the_collection_names_its_format_and_asks_for_each_kind_of_key_once():
    made = collection(published())
    assert made["info"]["schema"].endswith("/v2.1.0/collection.json")
    variables = {variable["key"]: variable["value"] for variable in made["variable"]}
    assert list(variables)[:4] == ["baseUrl", "publicKey", "secretKey", "managementKey"]
    empty = {name for name, value in variables.items() if not value}
    filled = {name for variables in from_responses(published()).values() for name in variables}
    assert empty == {"publicKey", "secretKey", "managementKey"} | filled
    assert set(re.findall(r"{{(\w+)}}", json.dumps(made["item"]))) == set(variables)


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({"host": "svc.example.com"}, "http://svc.example.com"),
        ({"host": "svc.example.com", "x-forwarded-proto": "https"}, "https://svc.example.com"),
        ({"host": "SVC.Example.com:443", "x-forwarded-proto": "HTTPS"}, "https://svc.example.com"),
        ({"host": "127.0.0.1:9000"}, "http://127.0.0.1:9000"),
    ],
)
async def test_a_served_collection_names_the_address_that_served_it(live: Live, headers: dict[str, str], address: str):
    response = await live.client.get("/api/v1/collection.json", headers=headers)
    assert response.status_code == 200
    variables = {variable["key"]: variable["value"] for variable in response.json()["variable"]}
    assert variables["baseUrl"] == f"{address}/api/v1"
    assert "address-of-the-service" not in response.text
    assert response.headers["cache-control"] == "private, no-cache"  # another client has reached another address


@pytest.mark.parametrize("more", [0, 4, 40])
def test_a_run_of_the_collection_keeps_to_the_allowance_of_management_keys(more: int):
    """However fast it is, and however many operations there are."""
    paths = published()["paths"]
    path, of = next((path, of) for path, of in paths.items() if path.endswith("/lists"))
    added = {f"{path}{at}": {"get": of["get"] | {"operationId": f"listLists{at}"}} for at in range(more)}
    document = published() | {"paths": paths | added}
    left = most = Allowances().management
    for item in items_of(collection(document)):
        for waiting in re.findall(r"setTimeout\(function \(\) {}, (\d+)\)", json.dumps(item["event"])):
            left = min(most, left + most * int(waiting) // 1000)
        left -= "{{managementKey}}" in json.dumps(item["request"]["auth"])
        assert left >= 0, item["name"]


def test_the_command_names_another_address_and_refuses_what_is_none(run: Run):
    made = json.loads(run("collection", "--url", "https://svc.example.com/").out)
    assert {"key": "baseUrl", "value": "https://svc.example.com/api/v1"} in made["variable"]
    refused = run("collection", "--url", "svc.example.com")
    assert (refused.status, refused.out) == (1, "")
    assert "--url svc.example.com: expected an address such as https://svc.example.com" in refused.err


def test_the_collection_contains_no_id_of_an_example():
    """Each would be answered with `404`: ids are variables."""
    sent = json.dumps([item["request"] | {"description": ""} for item in items_of(collection(published()))])
    values = re.findall(r'"(?:value|raw)": ("(?:[^"\\\\]|\\\\.)*")', sent)
    ids = r"\b(?:org|key|whk|mem)_[0-9A-Za-z]{20}|[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-|" + "0qppzPLvL54VURDkQrfS"
    assert len(values) > 100
    assert [value for value in values if re.search(ids, value)] == []


def items_of(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for folder in made["item"] for item in folder["item"]]


@pytest.mark.slow(8)
@pytest.mark.only_on("lmdb", "a development service has its own directory")
async def test_a_run_of_the_whole_collection_against_svc_dev_passes(tmp_path: Path):
    """Decisions 9.2: with the address and the three keys that `svc dev` prints, and again after a restart, which begins
    with a whole allowance of management requests.
    """
    made = collection(published())
    for _ in range(2):
        with development_service(tmp_path / "data") as dev:
            given = {"baseUrl": f"{dev.url}/api/v1", **{f"{kind}Key": key for kind, key in dev.keys.items()}}
            async with httpx.AsyncClient(timeout=30) as client:
                ran = await run_collection(client, made, given)
        assert len(ran) == len([route for route in API if BASE in route.under])
        assert all(one.checks == 1 for one in ran)
