"""The checks in docs/webhooks.md, run from the very text of the page on the same deliveries.

Each language runs where its program is on the machine; Go, which is compiled, in tests/clients. What signs here is
written apart from the service; one test holds the page against what the service sends.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, get_args
from uuid import UUID

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from svc.features.webhooks.commands.forwarding import verify_delivery
from svc.features.webhooks.content.envelope import seal, signed_headers, standard_secret
from svc.features.webhooks.records import EVENT_TYPES, TransportError
from tests.support.receivers import THANKS, Responder, receiver
from tests.webhook_transport.loopback import NAME, Authority, Names, sending

PAGE = (Path(__file__).parents[1] / "docs" / "webhooks.md").read_text()
SECRET, PREVIOUS = "svc_whsec_" + "aB3" * 14 + "x", "svc_whsec_" + "zY8" * 14 + "w"
BODY = '{"id":"01993f0e-52a1-7c3d-9b52-6f1f3c0a9d11","note":"Zoë, 😀 and \\u0000"}\n'.encode()


class Delivery(NamedTuple):
    secrets: list[str]
    signature: str
    timestamp: str
    body: bytes
    now: int


def signature(secret: str, timestamp: str, body: bytes = BODY) -> str:
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def deliveries(now: int) -> dict[str, tuple[Delivery, bool]]:
    """What each check must say of what."""
    at = str(now)
    right = Delivery([SECRET], signature(SECRET, at), at, BODY, now)
    both = f"{signature(SECRET, at)},{signature(PREVIOUS, at)}"
    old, new = str(now - 320), str(now + 330)
    return {
        "as it was sent": (right, True),
        "an empty body": (right._replace(body=b"", signature=signature(SECRET, at, b"")), True),
        "in a rotation, the new secret": (right._replace(signature=both), True),
        "in a rotation, the previous secret": (right._replace(signature=both, secrets=[PREVIOUS]), True),
        "in a rotation, with a blank": (right._replace(signature=both.replace(",", ", "), secrets=[PREVIOUS]), True),
        "a receiver that knows both secrets": (right._replace(secrets=[PREVIOUS, SECRET]), True),
        "minutes old": (right._replace(timestamp=str(now - 280), signature=signature(SECRET, str(now - 280))), True),
        "another secret": (right._replace(secrets=[PREVIOUS]), False),
        "no secret": (right._replace(secrets=[]), False),
        "an empty secret": (right._replace(secrets=["", SECRET], signature=signature("", at)), False),
        "another body": (right._replace(body=BODY + b" "), False),
        "another time": (right._replace(timestamp=str(now - 1)), False),
        "too old": (right._replace(timestamp=old, signature=signature(SECRET, old)), False),
        "too new": (right._replace(timestamp=new, signature=signature(SECRET, new)), False),
        "the body alone signed": (
            right._replace(signature="sha256=" + hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()),
            False,
        ),
        "the digest alone": (right._replace(signature=right.signature.removeprefix("sha256=")), False),
        "a digest cut short": (right._replace(signature=right.signature[:-2]), False),
        "no signature": (right._replace(signature=""), False),
        "a signature without a digest": (right._replace(signature="sha256="), False),
        "a signature that is no ASCII": (right._replace(signature="sha256=ä"), False),
        "a signature that is no text": (right._replace(signature="sha256=\udcff"), False),
        "a time of 5,000 digits": (right._replace(timestamp="9" * 5000), False),
        "no time": (right._replace(timestamp="", signature=signature(SECRET, "")), False),
        "a time that is none": (right._replace(timestamp="now", signature=signature(SECRET, "now")), False),
    }


def block(language: str, containing: str) -> str:
    """The one block of the page in this language that contains these words."""
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if containing in text]
    assert len(found) == 1, f"{len(found)} blocks of {language} with {containing!r}"
    return found[0]


def program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs {name}, which is not on this machine")
    return path


def as_json(cases: list[Delivery]) -> str:
    return json.dumps([{**case._asdict(), "body": base64.b64encode(case.body).decode()} for case in cases])


def in_python(cases: list[Delivery], _directory: Path) -> list[bool]:
    names: dict[str, Callable[..., bool]] = {}
    exec(compile(block("python", "def is_authentic"), "docs/webhooks.md", "exec"), names)
    return [names["is_authentic"](*case) for case in cases]


def in_javascript(cases: list[Delivery], directory: Path) -> list[bool]:
    node = program("node")
    (directory / "receiver.mjs").write_text(block("javascript", "isAuthentic"))
    (directory / "cases.json").write_text(as_json(cases))
    (directory / "main.mjs").write_text("""
        import { readFileSync } from "node:fs";
        import { isAuthentic } from "./receiver.mjs";
        const cases = JSON.parse(readFileSync("cases.json"));
        console.log(JSON.stringify(cases.map(({ secrets, signature, timestamp, body, now }) =>
          isAuthentic(secrets, signature, timestamp, Buffer.from(body, "base64"), now))));
    """)
    return json.loads(subprocess.check_output([node, "main.mjs"], cwd=directory, timeout=60))


def with_openssl(cases: list[Delivery], directory: Path) -> list[bool]:
    program("openssl")
    script = block("sh", "openssl dgst")
    return [any(_by_hand(script, case, secret, directory) for secret in case.secrets) for case in cases]


def _by_hand(script: str, case: Delivery, secret: str, directory: Path, shell: str = "sh") -> bool:
    (directory / "body.json").write_bytes(case.body)
    given = {"SECRET": secret, "TIMESTAMP": case.timestamp, "SIGNATURE": case.signature.replace(", ", ",")}
    done = subprocess.run(
        [shell, "-c", script],
        cwd=directory,
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout == "authentic\n") == (done.returncode == 0)
    return done.returncode == 0


def by_the_local_receiver(cases: list[Delivery], _directory: Path) -> list[bool]:
    return [verify_delivery(*case) == "valid" for case in cases]


CHECKS = [in_python, in_javascript, with_openssl, by_the_local_receiver]


@pytest.mark.slow(0.2)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_no_shell_runs_what_a_stranger_sends(shell: str, tmp_path: Path):
    """Most evaluate a variable within `$(( ))`, a command in an index included, before anything is verified."""
    program(shell)
    right = deliveries(int(time.time()))["as it was sent"][0]
    script = block("sh", "openssl dgst")
    assert _by_hand(script, right, SECRET, tmp_path, shell)
    for sent in (
        "index[$(touch ran)]",
        "1[$(touch ran)]",
        "$(touch ran)",
        "0+index[$(touch ran)]",
        "`touch ran`",
        "SECRET",
    ):
        assert not _by_hand(script, right._replace(timestamp=sent), SECRET, tmp_path, shell)
        assert not _by_hand(script, right._replace(signature=sent), SECRET, tmp_path, shell)
    assert not (tmp_path / "ran").exists()
    (tmp_path / "openssl").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "openssl").chmod(0o755)
    no_digest = f"PATH={tmp_path}:$PATH\n{script}"
    assert not _by_hand(no_digest, right._replace(signature="sha256="), SECRET, tmp_path, shell)


@pytest.mark.slow
@pytest.mark.parametrize("check", [in_python, in_javascript])
def test_a_header_that_is_missing_is_no_mistake_of_the_receiver(check: Callable, tmp_path: Path):
    """As frameworks hand it over: a sender must not end a receiver."""
    nothing: Any = None
    right = deliveries(int(time.time()))["as it was sent"][0]
    assert check([right, right._replace(signature=nothing), right._replace(timestamp=nothing)], tmp_path) == [
        True, False, False,
    ]  # fmt: skip


def gives_the_expected_verdicts(check: Callable[[list[Delivery], Path], list[bool]], directory: Path) -> None:
    expected = deliveries(int(time.time()))
    said = check([delivery for delivery, _ in expected.values()], directory)
    assert dict(zip(expected, said, strict=True)) == {name: right for name, (_, right) in expected.items()}


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_each_check_gives_the_expected_verdict_for_each_delivery(check: Callable, tmp_path: Path):
    gives_the_expected_verdicts(check, tmp_path)


def test_the_page_names_every_error_and_every_event_type():
    for name in (*get_args(TransportError), "paused", "removed", *EVENT_TYPES):
        assert f"`{name}`" in PAGE, name


@pytest.mark.slow
async def test_every_check_accepts_deliveries_of_the_service(tmp_path: Path):
    authority, hears, now = Authority(), Responder(THANKS), int(time.time())
    event_id = UUID("01993f0e-52a1-7c3d-9b52-6f1f3c0a9d11")
    event = seal(event_id, "webhook.test", "live", "org_1", {"message": "Zoë"}, now * 1000)
    headers = signed_headers(event_id, event, (SECRET, PREVIOUS), now)
    async with receiver(hears, authority.server(NAME)) as port, sending(authority, Names()) as sender:
        assert (await sender.post(f"https://{NAME}:{port}/", event.body, headers, 1)).error is None
    (arrived,) = hears.requests
    assert [name for name in headers if f"`{name}`" not in PAGE] == ["Content-Type"]
    signature, at = arrived.headers["x-svc-signature"], arrived.headers["x-svc-timestamp"]
    case = Delivery([PREVIOUS], signature, at, arrived.body, now)
    for check in CHECKS:
        assert check([case], tmp_path) == [True], check.__name__
    names: dict[str, Callable] = {}
    exec(compile(block("python", "standardwebhooks"), "docs/webhooks.md", "exec"), names)
    for secret in (SECRET, PREVIOUS):
        assert names["event_of"](standard_secret(secret), arrived.body, arrived.headers)["data"] == {"message": "Zoë"}
    with pytest.raises(WebhookVerificationError):
        names["event_of"](standard_secret(SECRET), arrived.body + b" ", arrived.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(b"another").verify(arrived.body, dict(arrived.headers))
