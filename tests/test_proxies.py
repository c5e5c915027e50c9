"""The first-party proxies of `ops/proxy`: each as the real program, where it is installed, before a real `svc serve`.

A page of the shop speaks with `/id/` of its own origin alone. The way to the service is over TLS, and recorded.
"""

from __future__ import annotations

import gzip
import json
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from svc.http.pages.app import sdk_version
from tests.support.certificates import Files
from tests.support.live import ORIGIN, USER_AGENT, report
from tests.support.ports import free_port
from tests.support.process import Served
from tests.test_reverse_proxies import PATIENCE_S, VISITOR, await_listening, made_data, nginx_around

pytestmark = pytest.mark.slow

PROXY = Path(__file__).parents[1] / "ops" / "proxy"
WORKER_HOST = Path(__file__).parent / "support" / "worker_host.mjs"
OTHER = "81.2.69.160"
"""An address that a client claims."""


UA_DATA = {
    "brands": [{"brand": "Chromium", "version": "137"}, {"brand": "Google Chrome", "version": "137"}],
    "mobile": False,
    "platform": "Windows",
}


class Kind(NamedTuple):
    """How a proxy is tried: its program and file, what in it is of another machine, and how it is started."""

    program: str
    file: str
    here: Callable[[Files, Path, int, int], dict[str, str]]
    command: Callable[[Path, Files, int], list[str]]
    around: Callable[[Path, str], str] = lambda _, text: text


def nginx_here(files: Files, folder: Path, port: int, upstream: int) -> dict[str, str]:
    return {
        "listen 443": f"listen 127.0.0.1:{port}",
        "/etc/ssl/shop/fullchain.pem": str(files.certfile),
        "/etc/ssl/shop/privkey.pem": str(files.keyfile),
        "server id.shop.example:443": f"server 127.0.0.1:{upstream}",
        "proxy_ssl_name id.shop.example": "proxy_ssl_name localhost",
        "/etc/ssl/certs/ca-certificates.crt": str(folder / "authority.pem"),
        "/etc/nginx/svc-proxy-key": str(folder / "svc-proxy-key"),
    }


def haproxy_here(files: Files, folder: Path, port: int, upstream: int) -> dict[str, str]:
    return {
        "bind :443": f"bind 127.0.0.1:{port}",
        "/etc/ssl/shop/combined.pem": str(files.combined()),
        "svc id.shop.example:443": f"svc 127.0.0.1:{upstream}",
        "@system-ca": str(folder / "authority.pem"),
        "sni str(id.shop.example)": "sni str(localhost)",
    }


def caddy_here(files: Files, _: Path, port: int, upstream: int) -> dict[str, str]:
    return {
        "\nshop.example {": f"\nhttps://localhost:{port} {{\n\ttls {files.certfile} {files.keyfile}",
        "https://id.shop.example": f"https://localhost:{upstream}",
    }


TRIED = {
    "nginx": Kind(
        "nginx",
        "nginx.conf",
        nginx_here,
        lambda file, _, __: ["nginx", "-p", str(file.parent), "-e", "stderr", "-c", str(file)],
        nginx_around,
    ),
    "haproxy": Kind("haproxy", "haproxy.cfg", haproxy_here, lambda file, _, __: ["haproxy", "-db", "-f", str(file)]),
    "caddy": Kind(
        "caddy",
        "Caddyfile",
        caddy_here,
        lambda file, _, __: ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)],
        lambda _, text: text.replace("\n{\n", "\n{\n\tadmin off\n\tauto_https disable_redirects\n", 1),
    ),
    "worker": Kind(
        "node",
        "worker.js",
        lambda *_: {},
        lambda file, files, port: [
            "node",
            str(WORKER_HOST),
            str(file),
            str(port),
            str(files.certfile),
            str(files.keyfile),
        ],
    ),
}


class Recorder(socketserver.ThreadingTCPServer):
    """Ends TLS before a service, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext, service_port: int) -> None:
        self.received = b""
        self.context = context
        self.service_port = service_port
        super().__init__(("127.0.0.1", 0), RecordedConnection)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self.server_address[1]

    def handle_error(self, *_: object) -> None:
        """A health check or a warm connection that ends is no failure."""


class RecordedConnection(socketserver.BaseRequestHandler):
    server: Recorder

    def handle(self) -> None:
        with (
            self.server.context.wrap_socket(self.request, server_side=True) as client,
            socket.create_connection(("127.0.0.1", self.server.service_port)) as service,
        ):
            threading.Thread(target=self.respond, args=(service, client), daemon=True).start()
            while data := client.recv(65536):
                self.server.received += data
                service.sendall(data)

    def respond(self, service: socket.socket, client: ssl.SSLSocket) -> None:
        with suppress(OSError):
            while data := service.recv(65536):
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)


class Shop:
    """A shop whose origin serves `/id/`, and the service behind it."""

    def __init__(
        self, program: str, port: int, service_port: int, recorder: Recorder, files: Files, keys: dict[str, str]
    ) -> None:
        self.program = program
        self.port = port
        self.service_port = service_port
        self.recorder = recorder
        self.trust = files.client()
        self.keys = keys

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """As a browser on the visitor's machine; `_` in a header's name is `-`."""
        client = HTTPSConnection(
            "localhost", self.port, timeout=PATIENCE_S, context=self.trust, source_address=(VISITOR, 0)
        )
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            client.request(method, path, body, sent)
            response = client.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        finally:
            client.close()

    def page(self, path: str, body: dict[str, Any], **headers: str) -> tuple[int, Any]:
        """A request of the SDK on a page of the shop, compressed as the SDK does it."""
        given = {
            "x_api_key": self.keys["public"],
            "origin": ORIGIN,
            "user_agent": USER_AGENT,
            "content_type": "application/json",
            "content_encoding": "gzip",
            **headers,
        }
        status, _, text = self.ask("POST", f"/id/api/v1{path}", gzip.compress(json.dumps(body).encode()), **given)
        return status, json.loads(text)

    def identify(self, **headers: str) -> tuple[int, Any]:
        return self.page("/identify", {"sdk": {"platform": "web"}, "signals": report()}, **headers)

    def event(self, request_id: str) -> dict[str, Any]:
        return run_event(self.service_port, self.keys["secret"], request_id)


def run_event(port: int, secret: str, request_id: str) -> dict[str, Any]:
    """The event as the shop's server reads it, from the service itself."""
    client = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    client.request("GET", f"/api/v1/events/{request_id}", headers={"x-api-key": secret})
    response = client.getresponse()
    found = json.loads(response.read())
    client.close()
    assert response.status == 200, found
    return found


KEYS: dict[str, dict[str, Any]] = {
    "public": {"environment": "development", "platforms": ("web",), "allowed_origins": (ORIGIN,)},
    "secret": {"environment": "development"},
    "proxy": {"environment": "development"},
}
"""Of development: the address of this machine is none that production takes."""


class Behind(NamedTuple):
    """The service behind every proxy, and what clients need of it."""

    port: int
    keys: dict[str, str]
    files: Files
    folder: Path


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Generator[Behind]:
    folder = tmp_path_factory.mktemp("service")
    keys = made_data(folder / "data", **KEYS)
    files = Files(folder)
    files.authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    (folder / "svc-proxy-key").write_text(f"~^svc_pk_ {keys['proxy']};\n")
    server = Served(folder / "data")
    yield Behind(server.port, keys, files, folder)
    assert server.terminate() == 0


@pytest.fixture(scope="module", params=sorted(TRIED))
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, service: Behind) -> Generator[Shop]:
    kind = TRIED[request.param]
    program = shutil.which(kind.program)
    if program is None:
        pytest.skip(f"{kind.program} is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    recorder = Recorder(service.files.serving(), service.port)
    port = free_port()
    text = (PROXY / kind.file).read_text()
    for there, here in kind.here(service.files, service.folder, port, recorder.port).items():
        assert there in text, f"{kind.file} doesn't say {there!r}"
        text = text.replace(there, here)
    file = folder / kind.file.replace(".js", ".mjs")
    file.write_text(kind.around(folder, text))
    environment = {
        "HOME": str(folder),
        "PATH": f"{Path(program).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
        "SVC_PROXY_KEY": service.keys["proxy"],
        "SVC_URL": f"https://localhost:{recorder.port}",
        "SSL_CERT_FILE": str(service.folder / "authority.pem"),
        "NODE_EXTRA_CA_CERTS": str(service.folder / "authority.pem"),
    }
    with (folder / "log").open("w") as log:
        command = kind.command(file, service.files, port)
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            await_listening(port, process, folder / "log")
            yield Shop(request.param, port, service.port, recorder, service.files, service.keys)
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_S)
            recorder.shutdown()
            recorder.server_close()


def test_the_event_is_that_of_the_visitor_and_of_the_page(shop: Shop):
    status, identified = shop.identify()
    assert status == 200, identified
    event = shop.event(identified["request_id"])
    assert (event["ip_address"], event["origin"]) == (VISITOR, ORIGIN)
    sent = [
        line for line in shop.recorder.received.splitlines() if line.lower().startswith(b"x-svc-visitor-user-agent")
    ]
    assert sent[0].split(b": ", 1)[1].decode() == USER_AGENT, "a header with commas in it arrives whole"


HINTS = {
    "sec_ch_ua": '"Google Chrome";v="137", "Chromium";v="137", "Not/A)Brand";v="24"',
    "sec_ch_ua_mobile": "?0",
    "sec_ch_ua_platform": '"Windows"',
}
OF_A_SCRIPT = {"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors", "sec_fetch_dest": "empty"}
LANGUAGES = {"accept_language": "en-GB,en;q=0.9"}


def forged(shop: Shop, **headers: str) -> list[str]:
    """The evidence of `forged_report` in an identification with these headers."""
    body = {"sdk": {"platform": "web"}, "signals": report(userAgentData=UA_DATA)}
    status, identified = shop.page("/identify", body, **headers)
    assert status == 200, identified
    return shop.event(identified["request_id"])["document"]["evidence"].get("forged_report", [])


def test_the_headers_of_the_visitors_browser_are_passed_on(shop: Shop):
    """Decisions 2.9: what a browser sends arrives, quotes and commas in it, and what it does not send is missed."""
    everything = {**HINTS, **OF_A_SCRIPT, **LANGUAGES}
    assert forged(shop, **everything) == []
    line = next(
        line.split(b": ", 1)[1]
        for line in reversed(shop.recorder.received.splitlines())
        if line.lower().startswith(b"x-svc-visitor-headers: ")
    )
    sent = {name: value for name, value in json.loads(line).items() if value}
    assert sent == {name.replace("_", "-"): value for name, value in everything.items()}
    assert forged(shop, **LANGUAGES) == ["hints_missing", "fetch_metadata_missing"]
    assert forged(shop) == ["accept_language_missing", "hints_missing", "fetch_metadata_missing"]
    assert forged(shop, **everything | {"sec_ch_ua_platform": '"Linux"'}) == ["hints_vs_report"]


@pytest.mark.parametrize(
    "changed",
    [
        {"accept_language": 'en", "sec-fetch-mode": "cors'},
        {"accept_language": "en\\"},
        {"sec_ch_ua": '"a", "b'},
        {"sec_ch_ua_platform": '"Win\\"dows"'},
        {"sec_fetch_mode": '"}'},
    ],
)
def test_no_header_of_a_client_breaks_the_object_of_the_others(shop: Shop, changed: dict[str, str]):
    """Who sends quotes where browsers send none is refused nothing and gains nothing."""
    status, identified = shop.identify(**HINTS | OF_A_SCRIPT | LANGUAGES | changed)
    assert status == 200, identified


def test_one_address_is_limited_before_the_service(shop: Shop):
    """Of nginx and HAProxy; the others leave it to the service."""
    if shop.program not in ("nginx", "haproxy"):
        pytest.skip("limits no rate itself")
    body = json.dumps({"sdk": {"platform": "web"}, "signals": report()}).encode()
    answers = {shop.ask("POST", "/id/api/v1/identify", body, origin=ORIGIN, x_api_key="x")[0] for _ in range(60)}
    assert answers == {401, 429}
    threading.Event().wait(4)
    assert shop.identify()[0] == 200


def test_forwarding_headers_of_the_client_are_replaced(shop: Shop):
    claims = {
        "x_svc_visitor_ip": OTHER,
        "x_svc_visitor_origin": "https://evil.example",
        "x_svc_visitor_user_agent": "claimed",
        "x_svc_visitor_headers": '{"accept-language":"claimed"}',
        "x_svc_public_key": "svc_pk_us_development_claimed",
        "x_forwarded_for": OTHER,
        "cf_connecting_ip": OTHER,
    }
    before = len(shop.recorder.received)
    status, identified = shop.identify(**claims)
    assert status == 200, identified
    event = shop.event(identified["request_id"])
    assert (event["ip_address"], event["origin"]) == (VISITOR, ORIGIN)
    assert b"claimed" not in shop.recorder.received[before:]


def test_the_supplement_takes_the_same_path(shop: Shop):
    _, identified = shop.identify()
    body = {"token": identified["deferred_token"], "sdk": {"platform": "web"}, "signals": {"tier": "deferred", "a": 1}}
    status, accepted = shop.page(f"/events/{identified['request_id']}/supplement", body)
    assert (status, accepted) == (202, {"request_id": identified["request_id"]})
    assert shop.event(identified["request_id"])["deferred_signals"] == {"tier": "deferred", "a": 1}


def test_a_page_of_another_origin_is_rejected_as_without_the_proxy(shop: Shop):
    status, error = shop.identify(origin="https://evil.example")
    assert (status, error["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("kind", ["secret", "proxy", None])
def test_the_proxy_does_not_send_its_key_without_a_public_key(shop: Shop, kind: str | None):
    body = json.dumps({"sdk": {"platform": "web"}, "signals": report()}).encode()
    key = {} if kind is None else {"x_api_key": shop.keys[kind]}
    before = len(shop.recorder.received)
    status, _, _ = shop.ask("POST", "/id/api/v1/identify", body, origin=ORIGIN, content_type="application/json", **key)
    assert status in (401, 404)
    assert shop.keys["proxy"].encode() not in shop.recorder.received[before:]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/id/api/v1/events"),
        ("GET", "/id/api/v1/identify"),
        ("POST", "/id/sdk/v1/svc.js"),
        ("GET", "/id/docs"),
        ("GET", "/id/readyz"),
        ("POST", "/id/api/v1/attestation/challenge"),
        ("GET", "/id/sdk/v1/../../docs"),
    ],
)
def test_no_other_route_of_the_service_is_reachable(shop: Shop, method: str, path: str):
    before = len(shop.recorder.received)
    status, _, _ = shop.ask(method, path, x_api_key=shop.keys["public"], origin=ORIGIN)
    assert status in (403, 404, 405)
    assert len(shop.recorder.received) == before


def test_cookies_and_credentials_of_the_shop_are_not_forwarded(shop: Shop):
    before = len(shop.recorder.received)
    shop.identify(cookie="session=of-the-shop", authorization="Bearer of-the-shop")
    shop.ask("GET", "/id/sdk/v1/svc.js", cookie="session=of-the-shop", authorization="Bearer of-the-shop")
    sent = shop.recorder.received[before:]
    assert b"/api/v1/identify" in sent
    assert b"/sdk/v1/svc.js" in sent
    assert b"of-the-shop" not in sent


@pytest.mark.skipif(sdk_version() is None, reason="the web pages are not built (`make web`)")
def test_the_sdk_is_served_from_the_origin_of_the_shop(shop: Shop):
    for name in ("svc.esm.js", "svc.worker.js"):
        status, headers, script = shop.ask("GET", f"/id/sdk/v1/{name}")
        assert (status, headers["content-type"].partition(";")[0]) == (200, "text/javascript")
        assert script
        assert shop.ask("GET", f"/id/sdk/v1/{name}", if_none_match=headers["etag"])[0] == 304


def test_a_retry_through_the_proxy_gets_the_whole_response(shop: Shop):
    """Decisions 3.2: `x-svc-replay` arrives, whatever else of this kind is dropped."""
    key = f"late by {shop.program}"
    _, identified = shop.identify(idempotency_key=key)
    again = shop.identify(idempotency_key=key, x_svc_replay="full")
    assert again == (200, {**identified, "duplicate": True})


def test_a_retry_at_the_service_itself_makes_no_second_identification(shop: Shop):
    """What the SDK does with `endpoint: ["/id", "https://id.shop.example"]` when the first response is lost."""
    key = f"lost by {shop.program}"
    _, identified = shop.identify(idempotency_key=key)
    client = HTTPConnection("127.0.0.1", shop.service_port, timeout=PATIENCE_S)
    headers = {
        "x-api-key": shop.keys["public"],
        "origin": ORIGIN,
        "idempotency-key": key,
        "content-type": "application/json",
        "user-agent": USER_AGENT,
    }
    body = json.dumps({"sdk": {"platform": "web"}, "signals": report()})
    client.request("POST", "/api/v1/identify", body, headers)
    assert json.loads(client.getresponse().read()) == {"request_id": identified["request_id"], "duplicate": True}
    client.close()
