"""`svc webhook listen` and `svc webhook verify`, as a person runs them beside a service."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest

from svc.features.webhooks.addresses import TargetPolicy
from svc.features.webhooks.transport.connections import tls_context
from svc.features.webhooks.transport.resolver import SystemResolver
from svc.features.webhooks.transport.transport import WebhookTransport
from tests.support.process import run, run_json, start

pytestmark = pytest.mark.slow(5)

SECRET = "svc_whsec_" + "k7" * 21 + "k"
BODY = b'{"type":"webhook.test","data":{"message":"Zo\xc3\xab"}}'


def headers(at: str, body: bytes = BODY, secret: str = SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {
        "X-Svc-Event-ID": "01993f0e-52a1-7c3d-9b52-6f1f3c0a9d11",
        "X-Svc-Event-Type": "webhook.test",
        "X-Svc-Timestamp": at,
        "X-Svc-Signature": f"sha256={digest}",
    }


@contextmanager
def listening(directory: Path, *arguments: str, as_json: bool = True) -> Generator[tuple[str, subprocess.Popen[str]]]:
    """The URL it says, and the process."""
    command = ("webhook", "listen", "--bind", "127.0.0.1:0", "--tls", directory, *["--json"][:as_json], *arguments)
    process = start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        introduction = process.stderr if as_json else process.stdout
        assert introduction is not None
        found = re.search(r"https?://localhost:\d+/", introduction.readline())
        assert found
        yield found[0], process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0


async def test_deliveries_are_shown_verified_and_get_a_response(tmp_path: Path):
    at = str(int(time.time()))
    with listening(tmp_path, "--secret", SECRET) as (url, process):
        networks = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
        trusting = tls_context(tmp_path / "certificate.pem")
        sender = WebhookTransport(SystemResolver(), TargetPolicy(networks), trusting, lambda: 0)
        sent = [
            headers(at),
            headers(at),
            headers(at, secret="another"),
            headers("1700000000"),
            {},
        ]
        answers = [(await sender.post(url, BODY, given, 1)).response_code for given in sent]
        await sender.aclose()
        shown = [json.loads(process.stdout.readline()) for _ in sent]
    assert answers == [200, 200, 401, 401, 401]
    assert [delivery["verdict"] for delivery in shown] == [
        "valid",
        "valid",
        "wrong signature",
        "too old or too new",
        "not signed",
    ]
    assert [delivery["again"] for delivery in shown] == [False, True, True, True, False]
    assert shown[0]["body"] == {"type": "webhook.test", "data": {"message": "Zoë"}}
    assert shown[0]["headers"]["x-svc-event-type"] == "webhook.test"


def test_without_a_secret_nothing_is_verified_and_the_status_can_be_chosen(tmp_path: Path):
    with listening(tmp_path, "--plain", "--answer", "503") as (url, process):
        assert url.startswith("http://")
        answered = httpx.post(url, content=b"no json").status_code
        shown = json.loads(process.stdout.readline())
    assert answered == 503
    assert (shown["verdict"], shown["body"]) == ("not checked", "no json")
    assert list(tmp_path.iterdir()) == []


def test_a_delivery_does_not_move_the_cursor_of_a_terminal(tmp_path: Path):
    """Its body has what visitors send, and without a secret anybody on the machine sends its headers too."""
    hostile = "\x1b[2J\x9b2J\x7f\u202e"
    last = json.dumps({"tag": "\x9b\u202e", "last": True}, ensure_ascii=False)
    seen = ""
    with listening(tmp_path, "--plain", as_json=False) as (url, process):
        named = [(b"X-Svc-Event-Type", hostile[:8].encode("latin-1")), (b"X-Svc-Event-ID", b"\x1b]0;x\x07")]
        for body in (hostile, json.dumps({"tag": hostile}), last):
            assert httpx.post(url, content=body.encode(), headers=named).status_code == 200
        while '"last"' not in seen:
            seen += process.stdout.readline()
    assert not {"\x1b", "\x9b", "\x7f", "\x07", "\u202e"} & set(seen)
    assert "\\u202e" in seen


def test_the_certificate_is_reused_at_the_next_start_and_its_key_is_private(tmp_path: Path):
    kept = []
    for _ in range(2):
        with listening(tmp_path / "tls"):
            kept.append((tmp_path / "tls" / "certificate.pem").read_bytes())
    assert kept[0] == kept[1]
    assert (tmp_path / "tls" / "key.pem").stat().st_mode & 0o777 == 0o600


def test_a_saved_delivery_is_verified_by_hand(tmp_path: Path):
    file = tmp_path / "body.json"
    file.write_bytes(BODY)
    given = headers("1700000000")
    arguments = ["webhook", "verify", "--timestamp", "1700000000", "--signature", given["X-Svc-Signature"], str(file)]
    said = run_json(*arguments, WEBHOOK_SECRET=f"another {SECRET}")
    assert said["signature"] == "valid"
    assert said["age_s"] > 80_000_000
    assert "the signature is not that of" in run(*arguments, "--secret", "another", status=1).stderr
    assert "--secret" in run(*arguments, status=2).stderr
