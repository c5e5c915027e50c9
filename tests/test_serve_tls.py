"""`svc serve` with a certificate: what it refuses to start with, and how it takes up a renewed one."""

from __future__ import annotations

import datetime as dt
import http.client
import json
import os
import re
import shlex
import signal
import socket
import ssl
import threading
from pathlib import Path

import httpx
import pytest

from tests.support.certificates import Files
from tests.support.process import Served, Started, run
from tests.test_docs import block

pytestmark = pytest.mark.slow(5)

PATIENCE_S = 20


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def settings(files: Files) -> dict[str, str]:
    return {"SVC_TLS_CERTFILE": str(files.certfile), "SVC_TLS_KEYFILE": str(files.keyfile)}


def shown(server: Served, files: Files) -> bytes:
    """The certificate that a client is shown."""
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as plain,
        files.client().wrap_socket(plain, server_hostname="localhost") as stream,
    ):
        certificate = stream.getpeercert(binary_form=True)
        assert certificate is not None
        return certificate


def expires(server: Served) -> dt.datetime:
    """When the certificate that is served expires, by the metrics."""
    (address,) = told(server, '"serving"')["metrics"]
    metrics = httpx.get(f"http://{address}/metrics").text
    (value,) = re.findall(r"^svc_tls_certificate_expires_timestamp_seconds (.+)$", metrics, re.MULTILINE)
    return dt.datetime.fromtimestamp(float(value), dt.UTC)


def told(server: Served, event: str) -> dict[str, str]:
    """The line of the log that says so, waited for."""
    waiting = threading.Event()
    for _ in range(PATIENCE_S * 20):
        for line in list(server.log):
            if event in line:
                return json.loads(line)
        waiting.wait(0.05)
    raise AssertionError(f"{event!r} is not in\n{''.join(server.log)}")


def test_the_command_of_the_page_serves_over_tls(data: Path, files: Files):
    (command,) = [line for line in block("tls.md", "sh", "--certfile fullchain.pem").splitlines() if line]
    names = {"fullchain.pem": str(files.certfile), "privkey.pem": str(files.keyfile)}
    options = [names.get(word, word) for word in shlex.split(command)]
    assert options[:6] == ["svc", "serve", "--data", "/var/lib/svc", "--bind", "0.0.0.0:443"]
    with Started(data, *options[6:]) as server:
        client = http.client.HTTPSConnection("localhost", server.port, timeout=PATIENCE_S, context=files.client())
        client.request("GET", "/readyz")
        assert client.getresponse().status == 200
        client.close()


def test_a_running_service_handles_requests_over_tls(data: Path, files: Files):
    server = Served(data, **settings(files))
    client = http.client.HTTPSConnection("localhost", server.port, timeout=PATIENCE_S, context=files.client())
    client.request("GET", "/readyz")
    answer = client.getresponse()
    assert answer.status == 200
    answer.read()
    client.request("GET", "/healthz")
    assert client.getresponse().status == 200
    client.close()
    assert server.terminate() == 0
    assert not any("certificate" in line for line in server.log)


@pytest.mark.parametrize(("seconds", "field"), [("0", None), ("31536000", "max-age=31536000")])
def test_every_response_over_tls_has_hsts_where_the_settings_ask_for_it(
    data: Path, files: Files, seconds: str, field: str | None
):
    """RFC 6797; those of the edge itself, too."""
    server = Served(data, **settings(files), SVC_HSTS_MAX_AGE_S=seconds)
    for path in ("/healthz", "/", "/api/v1/nowhere", f"/{'x' * 70_000}"):
        client = http.client.HTTPSConnection("localhost", server.port, timeout=PATIENCE_S, context=files.client())
        client.request("GET", path)
        assert client.getresponse().headers["strict-transport-security"] == field
        client.close()
    assert server.terminate() == 0


def test_sighup_loads_a_renewed_certificate_and_keeps_the_old_one_if_it_is_invalid(data: Path, files: Files):
    server = Served(data, **settings(files))
    first = shown(server, files)
    old = files.certfile.read_bytes()
    until = dt.datetime(2040, 1, 1, tzinfo=dt.UTC)
    files.issue(not_after=until)
    renewed, leaf = files.certfile.read_bytes(), files.leaf()
    files.certfile.write_bytes(old)
    os.kill(server.pid, signal.SIGHUP)
    assert "is not the key of" in told(server, "certificate reload failed")["because"]
    assert shown(server, files) == first
    assert expires(server) != until
    files.certfile.write_bytes(renewed)
    os.kill(server.pid, signal.SIGHUP)
    told(server, "certificate reloaded")
    assert shown(server, files) == leaf != first
    assert expires(server) == until
    assert server.terminate() == 0


def test_an_expired_certificate_is_served_with_a_warning(data: Path, files: Files):
    then = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)
    files.issue(not_before=then, not_after=then + dt.timedelta(days=90))
    server = Served(data, **settings(files))
    line = told(server, "certificate not valid now")
    assert (line["level"], line["not_after"]) == ("warning", "2025-04-01T00:00:00.000Z")
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        shown(server, files)
    assert server.terminate() == 0


def test_sighup_does_not_end_a_service_without_a_certificate(data: Path):
    server = Served(data)
    os.kill(server.pid, signal.SIGHUP)
    assert told(server, "settings reloaded")["changed"] == []
    assert server.terminate() == 0


def test_an_unusable_certificate_gives_one_line_and_status_1(data: Path, files: Files):
    serve = ["serve", "--data", str(data), "--bind", "127.0.0.1:0"]
    certfile, keyfile = str(files.certfile), str(files.keyfile)
    refused = run(*serve, "--certfile", certfile, status=1).stderr
    assert refused == "svc: tls_certfile and tls_keyfile go together, and tls_keyfile is not set\n"
    refused = run(*serve, status=1, SVC_HSTS_MAX_AGE_S="60").stderr
    assert refused.startswith("svc: hsts_max_age_s needs tls_certfile")
    files.keyfile.write_bytes(files.authority.issue_cert("localhost").private_key_pem.bytes())
    refused = run(*serve, "--certfile", certfile, "--keyfile", keyfile, status=1).stderr
    assert refused == f"svc: tls_certfile, tls_keyfile: {keyfile} is not the key of the certificate in {certfile}\n"
