"""`svc webhook listen --forward-to` and `svc webhook trigger` beside a real `svc dev` and a receiver of one's own."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import httpx
import pytest

from svc.command.local_service import DevService
from svc.features.refusals import CATALOG
from svc.features.webhooks.commands.forwarding import verify_delivery
from svc.features.webhooks.records import EVENT_TYPES
from svc.world import World
from tests.spec.commands import Run
from tests.support.development import Dev, development_service, running
from tests.support.process import PRELOADED
from tests.test_docs import block
from tests.test_recover_at_once import NEVER_LOOKING

pytestmark = pytest.mark.only_on("lmdb", "a development service has its own directory: test_store_in_a_database.py")

PATIENCE_S = 30
_, BUSY = CATALOG["webhook_busy"]


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Application(ThreadingHTTPServer):
    """What a developer writes: it takes deliveries and answers with `status`."""

    daemon_threads = True

    def __init__(self) -> None:
        self.received: Queue[Received] = Queue()
        self.status = 200
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    server: Application  # pyright: ignore[reportIncompatibleVariableOverride]  made for no other

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.put(Received(self.path, headers, body))
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  http.server's name for it
        """Says nothing."""


@pytest.fixture
def dev(tmp_path: Path) -> Generator[Dev]:
    """One for each test: what is not delivered yet keeps an endpoint busy. What commands queue is sent if they say so,
    and never because the service looks for it.
    """
    with development_service(tmp_path / "dev" / "data", (PRELOADED, NEVER_LOOKING)) as running_service:
        yield running_service


@pytest.fixture
def application() -> Generator[Application]:
    server = Application()
    yield server
    server.shutdown()
    server.server_close()


@contextmanager
def listening(dev: Dev, application: Application) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A session, and its signing secret."""
    target = f"http://127.0.0.1:{application.server_port}/hook?from=svc"
    with running("webhook", "listen", "--forward-to", target, *dev.options(), until="secret") as (process, seen):
        yield process, seen.rpartition(": ")[2].strip()


def trigger(run: Run, dev: Dev, event_type: str) -> dict[str, Any]:
    """Once the delivery before has ended: an application has it a moment before the service knows what became of it."""
    for _ in range(PATIENCE_S * 10):
        done = run("webhook", "trigger", event_type, *dev.options(), "--json")
        if BUSY not in done.err:
            break
        time.sleep(0.1)
    return done.json


@pytest.mark.slow
def test_every_type_is_triggered_forwarded_unchanged_and_printed(run: Run, dev: Dev, application: Application):
    with listening(dev, application) as (process, secret):
        got: dict[str, Received] = {}
        for event_type in EVENT_TYPES:
            done = trigger(run, dev, event_type)
            assert done["type"] == event_type
            while event_type not in got:
                received = application.received.get(timeout=PATIENCE_S)
                got[received.headers["x-svc-event-type"]] = received
        now_s = World.real().now_ms() // 1000
        for event_type, received in got.items():
            headers = received.headers
            signature, at = headers["x-svc-signature"], headers["x-svc-timestamp"]
            assert verify_delivery([secret], signature, at, received.body, now_s) == "valid"
            assert (received.path, headers["content-type"]) == ("/hook?from=svc", "application/json")
            assert headers["user-agent"].startswith("Svc-Webhooks/")
            envelope = json.loads(received.body)
            assert (envelope["type"], envelope["id"]) == (event_type, headers["x-svc-event-id"])
        assert process.stdout is not None
        shown: list[list[str]] = []
        while {words[4] for words in shown} != set(EVENT_TYPES):
            line = process.stdout.readline()
            assert line, "it ended before it had printed each type"
            shown += [line.split()] if line.strip() else []
    assert {(words[1], words[3]) for words in shown} == {("200", "ms")}


@pytest.mark.slow
def test_forwarding_says_what_the_page_shows(run: Run, dev: Dev, application: Application):
    shown = block("webhooks.md", "console", "--forward-to http://localhost:3000/hook")
    target = f"http://127.0.0.1:{application.server_port}/hook"
    with running("webhook", "listen", "--forward-to", target, *dev.options(), until="secret") as (process, seen):
        trigger(run, dev, "webhook.test")
        assert process.stdout is not None
        said = seen + process.stdout.readline() + process.stdout.readline()
    as_shown = {dev.url: "http://127.0.0.1:8080", target: "http://localhost:3000/hook", r"\d\d:\d\d:\d\d": "12:03:55"}
    as_shown |= {
        r"svc_whsec_\w+": "svc_whsec_...",
        "200  .*": "200  8 ms  identification.completed  019b76da-a800-7b05-94ac-4531d432f023",
    }
    for pattern, text in as_shown.items():
        said = re.sub(pattern, text, said)
    assert said == shown.partition("\n")[2]


@pytest.mark.slow
def test_a_review_is_opened_as_often_as_it_is_triggered(run: Run, dev: Dev, application: Application):
    with listening(dev, application):
        reviews = [trigger(run, dev, "review.opened")["review_id"] for _ in range(2)]
        opened: list[str] = []
        while len(opened) < 2:
            received = json.loads(application.received.get(timeout=PATIENCE_S).body)
            opened += [received["data"]["id"]] if received["type"] == "review.opened" else []
    assert opened == reviews


@pytest.mark.slow
def test_sessions_share_the_secret_and_only_one_runs_at_a_time(run: Run, dev: Dev, application: Application):
    with listening(dev, application) as (_, first):
        again = run("webhook", "listen", "--forward-to", "http://localhost:1/", *dev.options())
        again.assert_refused("another `svc webhook listen`")
    run("webhook", "trigger", "webhook.test", *dev.options()).assert_refused("svc webhook listen --forward-to")
    with listening(dev, application) as (_, second):
        assert second == first


@pytest.mark.slow
def test_a_session_whose_secret_is_rotated_says_so_and_the_next_one_has_a_new_one(
    run: Run, dev: Dev, application: Application
):
    with listening(dev, application) as (process, secret):
        kept = json.loads((dev.data / "webhook-listen" / "endpoint.json").read_bytes())
        body = {"previous_secret_valid_hours": 0}
        DevService(dev.data, None).managed("POST", f"/webhooks/{kept['id']}/rotate-secret", body)
        trigger(run, dev, "webhook.test")
        assert process.stdout is not None
        printed = next(line for line in process.stdout if line.strip())
        assert "  401  " in printed
        assert printed.rstrip().endswith("wrong signature")
        assert application.received.empty()
    with listening(dev, application) as (_, new_secret):
        assert new_secret != secret
        trigger(run, dev, "webhook.test")
        received = application.received.get(timeout=PATIENCE_S)
        headers = received.headers
        given = (headers["x-svc-signature"], headers["x-svc-timestamp"], received.body)
        assert verify_delivery([new_secret], *given, World.real().now_ms() // 1000) == "valid"


@pytest.mark.slow(5)
def test_a_delivery_refused_by_the_application_is_retried_and_a_missing_target_reported(
    run: Run, dev: Dev, application: Application
):
    application.status = 500
    with listening(dev, application) as (process, _):
        event_id = trigger(run, dev, "identification.completed")
        assert event_id["request_id"]
        first = application.received.get(timeout=PATIENCE_S)
        application.status = 200
        second = application.received.get(timeout=PATIENCE_S)  # after the first step of the schedule, five seconds
        assert (first.body, first.headers["x-svc-event-id"]) == (second.body, second.headers["x-svc-event-id"])
        application.shutdown()
        application.server_close()
        trigger(run, dev, "webhook.test")
        assert process.stdout is not None
        lines = [line for line in (process.stdout.readline() for _ in range(4)) if line.strip()]
    assert [line.split()[1] for line in lines] == ["500", "200", "failed"]
    assert "refused" in lines[2]


@pytest.mark.slow
def test_only_deliveries_signed_by_the_service_are_forwarded(dev: Dev, application: Application):
    folder = dev.data / "webhook-listen"
    with listening(dev, application):
        kept = json.loads((folder / "endpoint.json").read_bytes())
        registered = DevService(dev.data, dev.url).managed("GET", "/webhooks")["endpoints"]
        (url,) = [endpoint["url"] for endpoint in registered if endpoint["id"] == kept["id"]]
        trusting = ssl.create_default_context(cafile=folder / "certificate.pem")
        assert httpx.post(url, content=b"{}", verify=trusting).status_code == 401
    assert application.received.empty()
    assert {(folder / name).stat().st_mode & 0o777 for name in ("endpoint.json", "key.pem")} == {0o600}


@pytest.mark.slow
def test_invalid_options_are_reported(run: Run, tmp_path: Path, dev: Dev):
    options = dev.options()
    run("webhook", "listen", "--forward-to", "localhost:3000", *options).assert_refused("http://localhost:3000/hook")
    run("webhook", "listen", "--forward-to", "http://localhost:3000", "--plain", *options).assert_usage()
    run("webhook", "trigger", "visitor.unknown", *options).assert_usage()
    run("webhook", "trigger", "webhook.test", "--data", tmp_path / "none").assert_refused("svc dev")
    elsewhere = ("--service", "http://127.0.0.1:9", "--data", dev.data)
    run("webhook", "trigger", "webhook.test", *elsewhere).assert_refused("--service")
    run("webhook", "trigger", "webhook.test", "--service", "ftp://x", "--data", dev.data).assert_refused("--service")


@pytest.mark.slow
def test_a_triggered_event_is_in_the_audit_log(run: Run, dev: Dev, application: Application):
    """Decisions 10, docs/audit.md: it is a change that a command makes in the store."""
    with listening(dev, application):
        done = trigger(run, dev, "usage.daily_settled")
    (record, *_) = run("audit", "--action", "svc webhook trigger", "--data", dev.data, "--json").json["records"]
    assert (record["subject"], record["change"]) == (done["endpoints"][0], {"events": ["usage.daily_settled"]})
    assert run("check", "--data", dev.data).status == 0
