"""The files of `ops/reverse-proxy`: each in the real program, where it is installed, before a real `svc serve`."""

from __future__ import annotations

import getpass
import http.client
import http.server
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from svc.features.keys.command import issue_key
from svc.features.organizations.command import create_organization
from svc.kernel.store.directory import open_directory
from svc.world import World
from tests.support.certificates import Files
from tests.support.live import ORIGIN, USER_AGENT, report
from tests.support.ports import free_port
from tests.support.process import Served

pytestmark = pytest.mark.slow

FILES = Path(__file__).parents[1] / "ops" / "reverse-proxy"
VISITOR = "127.0.0.2"
"""Another address of this machine than 127.0.0.1, from which the reverse proxy asks and which is trusted."""
MISMATCH = "vpn_os_mismatch"
PATIENCE_S = 20


class ReverseProxy(NamedTuple):
    """How one is tried: its file, what in it is of another machine, and how it is started."""

    file: str
    here: Callable[[Files, int, int], dict[str, str]]
    command: Callable[[Path, Path], list[str]]
    around: Callable[[Path, str], str] = lambda _, text: text
    beside: tuple[str, ...] = ()
    """Further files, which the first one reads."""

    def written(self, folder: Path, here: dict[str, str]) -> Path:
        """The first of its files, all of them in this folder, with what is of this machine."""
        for name in (self.file, *self.beside):
            text = (FILES / name).read_text()
            for there, replaced in here.items():
                text = text.replace(there, replaced)
            (folder / Path(name).name).write_text(self.around(folder, text))
        return folder / Path(self.file).name


def paths(files: Files) -> dict[str, str]:
    return {"/etc/ssl/svc/fullchain.pem": str(files.certfile), "/etc/ssl/svc/privkey.pem": str(files.keyfile)}


def nginx_around(folder: Path, text: str) -> str:
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "".join(f"{kind}_temp_path {folder / kind};" for kind in kinds)
    return (
        f"user {getpass.getuser()};daemon off;worker_processes 1;pid {folder / 'pid'};error_log stderr;events {{}}\n"
        f"http {{ access_log off;{folders}\n{text}}}"
    )


TRIED = {
    "nginx": ReverseProxy(
        "nginx.conf",
        lambda files, port, upstream: {
            "listen 443": f"listen 127.0.0.1:{port}",
            "127.0.0.1:8080": f"127.0.0.1:{upstream}",
            **paths(files),
        },
        lambda folder, file: ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(file)],
        nginx_around,
    ),
    "haproxy": ReverseProxy(
        "haproxy.cfg",
        lambda files, port, upstream: {
            "bind :443": f"bind 127.0.0.1:{port}",
            "svc 127.0.0.1:8080": f"svc 127.0.0.1:{upstream}",
            "/etc/ssl/svc/combined.pem": str(files.combined()),
        },
        lambda _, file: ["haproxy", "-db", "-f", str(file)],
    ),
    "caddy": ReverseProxy(
        "Caddyfile",
        lambda files, port, upstream: {
            "id.example.com {": f"https://localhost:{port} {{",
            "reverse_proxy 127.0.0.1:8080": f"reverse_proxy 127.0.0.1:{upstream}",
            **paths(files),
        },
        lambda _, file: ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)],
        lambda _, text: text.replace("\n{\n", "\n{\n\tadmin off\n\tauto_https disable_redirects\n", 1),
    ),
    "traefik": ReverseProxy(
        "traefik/traefik.yaml",
        lambda files, port, upstream: {
            '":443"': f"127.0.0.1:{port}",
            "/etc/traefik/": f"{files.certfile.parent}/",
            "id.example.com": "localhost",
            "127.0.0.1:8080": f"127.0.0.1:{upstream}",
            **paths(files),
        },
        lambda _, file: ["traefik", f"--configFile={file}"],
        beside=("traefik/dynamic.yaml",),
    ),
    "envoy": ReverseProxy(
        "envoy.yaml",
        lambda files, port, upstream: {
            "address: 0.0.0.0, port_value: 443": f"address: 127.0.0.1, port_value: {port}",
            "address: 127.0.0.1, port_value: 8080": f"address: 127.0.0.1, port_value: {upstream}",
            **paths(files),
        },
        lambda _, file: ["envoy", "--disable-hot-restart", "--concurrency", "1", "-l", "warning", "-c", str(file)],
    ),
}


class Site:
    """A service behind a reverse proxy, and what a visitor of it needs."""

    def __init__(self, name: str, port: int, service_port: int, trust: ssl.SSLContext, keys: dict[str, str]) -> None:
        self.name = name
        self.port = port
        self.service_port = service_port
        self.trust = trust
        self.keys = keys
        self.origin = f"https://localhost:{port}"

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "localhost", self.port, timeout=PATIENCE_S, context=self.trust, source_address=(VISITOR, 0)
        )

    def ask(
        self, method: str, path: str, body: bytes | None = None, *more: tuple[str, str], **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        client = self.connect()
        try:
            return send(client, method, path, body, *more, **headers)
        finally:
            client.close()


def send(
    client: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    *more: tuple[str, str],
    **headers: str,
) -> tuple[int, dict[str, str], Any]:
    client.putrequest(method, f"/api/v1{path}")
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    if body is not None:
        named += [("content-type", "application/json"), ("content-length", str(len(body)))]
    for name, value in (*named, *more):
        client.putheader(name, value)
    client.endheaders(body)
    response = client.getresponse()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, json.loads(response.read())


def made_data(directory: Path, **kinds: dict[str, Any]) -> dict[str, str]:
    """A data directory, and the keys in it, by name: what each is made of beside its kind, which is else the name."""
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy)
    number = create_organization(found, world, "shop", credit=10_000_000, rate_limit=0).number
    issued = {
        name: issue_key(found, world, organization=number, region="us", name=name, **{"kind": name, **fields})[1]
        for name, fields in kinds.items()
    }
    found.store.close()
    return issued


KEYS: dict[str, dict[str, Any]] = {
    "public": {"environment": "production", "platforms": ("web",), "allowed_origins": (ORIGIN,)},
    "secret": {"environment": "production"},
    "development": {"kind": "secret", "environment": "development"},
    "management": {"environment": None, "role": "developer"},
}


@pytest.fixture(scope="module", params=sorted(TRIED))
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    proxy = TRIED[request.param]
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    files = Files(folder)
    keys = made_data(folder / "data", **KEYS)
    server = Served(folder / "data", SVC_CONNECTION_OS_HEADER="x-connection-os")
    port = free_port()
    here = proxy.here(files, port, server.port)
    text = "".join((FILES / name).read_text() for name in (proxy.file, *proxy.beside))
    assert [there for there in here if there not in text] == []
    file = proxy.written(folder, here)
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        proxy.command(folder, file),
        stdout=log,
        stderr=log,
        env={"HOME": str(folder), "PATH": os.environ["PATH"]},
    )
    try:
        running = Site(request.param, port, server.port, files.client(), keys)
        await_response(running, process, folder / "log")
        yield running
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
        log.close()
        assert server.terminate() == 0


def await_response(site: Site, process: subprocess.Popen[bytes], log: Path) -> None:
    waiting = threading.Event()
    for _ in range(PATIENCE_S * 10):
        assert process.poll() is None, log.read_text()
        try:
            if site.ask("GET", "/readyz")[0] == 200:
                return
        except (OSError, ValueError):  # not listening yet, or the reverse proxy has an answer of its own
            pass
        waiting.wait(0.1)
    raise AssertionError(log.read_text())


class Nodes:
    """Two that say which one they are, and count what they got."""

    def __init__(self) -> None:
        self.ports = free_port(), free_port()
        self.posts = Counter[str]()
        self.hangs_up = False
        """Whether they read a request and close the connection."""
        self.may_respond = threading.Event()
        self.may_respond.set()
        self._servers = dict[int, http.server.ThreadingHTTPServer]()
        self._connections = defaultdict[int, list[socket.socket]](list)

    def start(self, port: int) -> None:
        nodes = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                nodes._connections[port].append(self.connection)

            def do_GET(self) -> None:
                body = str(port).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                nodes.posts[self.headers["x-number"]] += 1
                nodes.may_respond.wait(PATIENCE_S)
                if nodes.hangs_up:
                    self.close_connection = True
                else:
                    self.do_GET()

            def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002  as there

        self._servers[port] = server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()

    def stop(self, port: int) -> None:
        server = self._servers.pop(port)
        server.shutdown()
        for connection in self._connections.pop(port, []):
            with suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)
        server.server_close()

    def stop_all(self) -> None:
        for port in list(self._servers):
            self.stop(port)


OF_ONE_NODE = {
    "envoy": ("              - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8080}}}\n",),
    "haproxy": ("    retries 0\n", "    server svc 127.0.0.1:8080 check inter 2s pool-purge-delay 50s\n"),
    "nginx": ("    server 127.0.0.1:8080;\n", "        proxy_next_upstream off;\n"),
}


@contextmanager
def in_front_of(nodes: Nodes, name: str, folder: Path) -> Generator[Callable[[str | None], str]]:
    """A reverse proxy of this name, and what sends a request with a key, or without: the port of the node that
    responded, or the status if that is not 200.
    """
    files, port, numbers = Files(folder), free_port(), count()
    text = (FILES / TRIED[name].file).read_text()
    for line in OF_ONE_NODE[name]:
        assert text.count(line) == 1
        text = text.replace(line, "")
    text = re.sub(r"^( *)#   ", r"\1", text, flags=re.MULTILINE)
    named = {
        form.format(f"10.0.0.{number}", 8080): form.format("127.0.0.1", one)
        for number, one in enumerate(nodes.ports, 1)
        for form in ("{}:{}", "address: {}, port_value: {}")
    }
    for there, here in {**named, **TRIED[name].here(files, port, 0)}.items():
        text = text.replace(there, here)
    file, log = folder / TRIED[name].file, folder / "log"
    file.write_text(TRIED[name].around(folder, text))

    def reached(key: str | None) -> str:
        client = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE_S, context=files.client())
        headers = {"x-number": str(next(numbers)), "content-length": "0", **({"x-api-key": key} if key else {})}
        client.request("POST", "/api/v1/identify", headers=headers)
        response = client.getresponse()
        body = response.read().decode()
        client.close()
        return body if response.status == 200 else str(response.status)

    with log.open("w") as written:
        process = subprocess.Popen(TRIED[name].command(folder, file), stdout=written, stderr=written)
    try:
        for one in nodes.ports:
            nodes.start(one)
        await_listening(port, process, log)
        yield reached
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
        nodes.stop_all()


@pytest.mark.parametrize(("name", "has_bound"), [("haproxy", True), ("nginx", False), ("envoy", True)])
def test_with_several_nodes_a_key_goes_to_one_that_is_up(name: str, has_bound: bool, tmp_path: Path):
    """Or to several where one has too many requests on their way; and what was sent is not sent again (ADR 215)."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    nodes, keys = Nodes(), [f"svc_pk_us_{number}" for number in range(20)]
    first, second = nodes.ports
    both = {str(first), str(second)}
    with in_front_of(nodes, name, tmp_path) as reached:
        home = {key: reached(key) for key in keys}
        assert set(home.values()) == both
        assert {key: reached(key) for key in keys} == home
        assert {reached(None) for _ in range(20)} == both
        nodes.posts.clear()
        nodes.may_respond.clear()
        with ThreadPoolExecutor(8) as threads:
            at_once = list[Future[str]]()
            waiting = threading.Event()
            for _ in range(2):
                at_once += [threads.submit(reached, keys[0]) for _ in range(4)]
                while nodes.posts.total() < len(at_once):
                    waiting.wait(0.05)
            nodes.may_respond.set()
        assert {each.result() for each in at_once} == (both if has_bound else {home[keys[0]]})
        nodes.stop(first)
        assert {reached(key) for key in keys} == {str(second)}, "the first takes no connection"
        nodes.hangs_up = True
        nodes.posts.clear()
        assert reached(keys[0]) in ("502", "503")
        assert list(nodes.posts.values()) == [1]


BODY = json.dumps({"sdk": {"platform": "web"}, "signals": report()}).encode()


def identified_from(site: Site, *more: tuple[str, str]) -> str:
    """The address that the event of an identification names."""
    status, _, response = site.ask(
        "POST", "/identify", BODY, *more, x_api_key=site.keys["public"], origin=ORIGIN, user_agent="Mozilla/5.0"
    )
    assert status == 200, response
    _, _, event = site.ask("GET", f"/events/{response['request_id']}", x_api_key=site.keys["secret"])
    return event["ip_address"]


CADDYFILES = sorted(FILES.parent.rglob("Caddyfile*"))


@pytest.mark.parametrize("file", CADDYFILES, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_the_log_of_a_caddyfile_has_no_headers(file: Path):
    """Caddy itself leaves out a few that it knows, not `x-api-key`. Whatever Caddy reads is a file with the filter."""
    (block,) = re.findall(r"^{\n(.*?)^}$", file.read_text(), re.MULTILINE | re.DOTALL)
    deleted = {line.split()[0] for line in block.splitlines() if line.endswith(" delete")}
    assert "log default {\n\t\tformat filter {" in block
    assert {"request>headers", "headers", "resp_headers"} <= deleted
    assert "log " not in file.read_text().replace(block, ""), "another log than the filtered one"
    assert len(CADDYFILES) == 3
    for composed in FILES.parent.glob("compose*.yaml"):
        assert "[caddy, " not in composed.read_text(), "a command line has no filter"


SECRET_HEADERS = {
    "X-Svc-Public-Key": "svc_pk_us_" + "a" * 49,
    "Authorization": "Bearer 70fab3",
    "Cookie": "shop=70fab3",
}


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")
@pytest.mark.parametrize("level", ["", "\tdebug\n"], ids=["as_shipped", "debug"])
def test_caddy_logs_no_key_of_a_request_that_fails(tmp_path: Path, level: str):
    """Each restart of the service makes some; `debug` logs what is sent to the service, too."""
    port, files = free_port(), Files(tmp_path)
    proxy, text = TRIED["caddy"], (FILES / "Caddyfile").read_text()
    for there, here in proxy.here(files, port, free_port()).items():
        text = text.replace(there, here)
    file, log = tmp_path / "Caddyfile", tmp_path / "log"
    file.write_text(proxy.around(tmp_path, text).replace("\n{\n", "\n{\n" + level, 1))
    key = "svc_mk_us_" + "b" * 49
    with log.open("w") as written:
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        process = subprocess.Popen(proxy.command(tmp_path, file), stdout=written, stderr=written, env=environment)
    try:
        await_listening(port, process, log)
        client = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE_S, context=files.client())
        client.request("GET", "/api/v1/management/key", headers={"x-api-key": key, **SECRET_HEADERS})
        response = client.getresponse()
        assert response.status == 502, response.read()
        client.close()
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
    lines = log.read_text()
    assert "/api/v1/management/key" in lines, "the failure is logged"
    assert [secret for secret in (key, "svc_pk_us_", "70fab3") if secret in lines] == []


def await_listening(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    waiting = threading.Event()
    for _ in range(PATIENCE_S * 10):
        assert process.poll() is None, log.read_text()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        waiting.wait(0.1)
    raise AssertionError(log.read_text())


def test_the_address_of_an_identification_is_that_of_the_visitor(site: Site):
    assert identified_from(site) == VISITOR


@pytest.mark.parametrize("spoofed", ["81.2.69.160", "81.2.69.160, 127.0.0.1", "127.0.0.1"])
def test_an_address_claimed_by_the_visitor_is_ignored(site: Site, spoofed: str):
    assert identified_from(site, ("x-forwarded-for", spoofed), ("X-Forwarded-For", spoofed)) == VISITOR


def test_an_address_is_set_although_the_visitor_calls_its_header_one_of_the_connection(site: Site):
    """A proxy drops what `Connection` names, but not what it says itself; Envoy refuses the request."""
    claims = ("Connection", "keep-alive, X-Forwarded-For")
    client = site.connect()
    client.request("GET", "/readyz", headers=dict([claims]))
    is_refused = client.getresponse().status == 400
    client.close()
    assert is_refused or identified_from(site, claims) == VISITOR


def test_the_visitor_cannot_set_the_connection_fingerprint(site: Site):
    claims = ("X-Connection-Os", "Linux 3.11 and newer")
    headers = {"x_api_key": site.keys["public"], "origin": ORIGIN, "user_agent": USER_AGENT}
    _, _, response = site.ask("POST", "/identify", BODY, claims, **headers)
    assert MISMATCH not in {trigger["signal"] for trigger in response.get("triggers", ())}
    behind = http.client.HTTPConnection("127.0.0.1", site.service_port, timeout=PATIENCE_S)
    _, _, response = send(behind, "POST", "/identify", BODY, claims, ("x-forwarded-for", "81.2.69.160"), **headers)
    behind.close()
    assert MISMATCH in {trigger["signal"] for trigger in response.get("triggers", ())}, (
        "the service believes its proxies"
    )


def test_a_page_can_read_its_response_and_another_origin_is_refused(site: Site):
    _, headers, _ = site.ask("POST", "/identify", BODY, x_api_key=site.keys["public"], origin=ORIGIN)
    assert headers["access-control-allow-origin"] == ORIGIN
    refused, _, _ = site.ask("POST", "/identify", BODY, x_api_key=site.keys["public"], origin="https://evil.example")
    assert refused == 401


def test_the_name_of_an_account_may_have_any_character(site: Site):
    name = quote("a/b\\c;d%e?f#g", safe="")
    status, _, response = site.ask("GET", f"/accounts/{name}", x_api_key=site.keys["secret"])
    assert (status, response["error"]["code"]) == (404, "not_found")


def test_the_service_recognizes_its_own_https_origin(site: Site):
    """Decisions 2.8: a development key from the page /docs, and from no other."""
    assert site.ask("GET", "/events", x_api_key=site.keys["development"], origin=site.origin)[0] == 200
    assert site.ask("GET", "/events", x_api_key=site.keys["development"], origin="https://localhost")[0] == 401


def test_the_console_signs_in_and_its_stream_is_not_buffered(site: Site):
    same_site = {"Origin": site.origin, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
    client = site.connect()
    client.request("POST", "/console/session", json.dumps({"key": site.keys["management"]}), same_site)
    response = client.getresponse()
    assert response.status == 200, response.read()
    cookie = response.headers["Set-Cookie"].partition(";")[0]
    response.read()
    client.request("GET", "/console/api/stream", headers={"Cookie": cookie, "Sec-Fetch-Site": "same-origin"})
    stream = client.getresponse()
    assert stream.status == 200
    request_id = site.ask("POST", "/identify", BODY, x_api_key=site.keys["public"], origin=ORIGIN)[2]["request_id"]
    while request_id.encode() not in (line := stream.readline()):
        assert line, "the stream ended"
    client.close()


def test_a_connection_serves_several_requests_in_sequence(site: Site):
    client = site.connect()
    connections = set()
    for _ in range(3):
        assert send(client, "POST", "/identify", BODY, x_api_key=site.keys["public"], origin=ORIGIN)[0] == 200
        assert client.sock is not None
        connections.add(client.sock.fileno())
    client.close()
    assert len(connections) == 1


def test_a_body_over_the_limit_gets_the_413_of_the_service(site: Site):
    body = BODY[:-1] + b" " * (1 << 20) + b"}"
    status, headers, response = site.ask("POST", "/identify", body, x_api_key=site.keys["public"], origin=ORIGIN)
    assert (status, response["error"]["code"]) == (413, "payload_too_large")
    assert headers["access-control-allow-origin"] == ORIGIN
    assert site.ask("GET", "/readyz")[0] == 200


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_body_above_the_limit_of_the_reverse_proxy_is_refused(site: Site, tmp_path: Path):
    """With 413; Caddy 2.6 stops reading it, and says 502. As a browser does, curl reads a response while it sends."""
    body = tmp_path / "body"
    body.write_bytes(b" " * (3 << 20))
    headers = [f"-H{name}: {value}" for name, value in {"x-api-key": site.keys["public"], "origin": ORIGIN}.items()]
    done = subprocess.run(
        [
            *("curl", "--silent", "--insecure", "--http1.1", "--output", os.devnull, "--write-out", "%{http_code}"),
            *("--data-binary", f"@{body}", *headers, f"{site.origin}/api/v1/identify"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.stdout in {"413", "502" if site.name == "caddy" else "413"}, done.stderr
    assert site.ask("GET", "/readyz")[0] == 200
