"""R17 of docs/internals/reliability.md, interface 5, decisions 2.2: no secret is anywhere but in its own answer.

A real service is led through everything that is done with secrets: issued, rotated, revoked, right, wrong, in every
place of a request where somebody may put one by mistake, and in the message of an exception. Then the log, the store, a
backup, the metrics and every other answer are searched for each of them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.features.tables import TABLES
from svc.identify.events.archive import inflate
from svc.identify.tables import DOCUMENTS
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, mistyped, opened, options_of, report, settings_of
from tests.support.process import PRELOADED, Served, run, run_json

pytestmark = pytest.mark.slow(15)

FAULTY = """
import svc.cli
from svc.http import exchange

read = exchange.read_query

def faulty(query, kind):
    if b"fault=" in query:
        raise RuntimeError(f"while reading {query!r}") from KeyError(query.decode())
    return read(query, kind)

exchange.read_query = faulty
svc.cli.main()
"""
"""The program with a fault: an exception that says what it was given."""

IDENTIFY = "/api/v1/identify"
BODY = {"sdk": {"platform": "web"}, "signals": report()}


class Tour:
    """A running service, every secret it has issued, and everything it answered that issued none."""

    def __init__(self, directory: Path, backup: Path) -> None:
        self.directory, self.backup = directory, backup
        self.secrets: list[str] = []
        self.answers: list[str] = []
        self.organization: str = self._svc("org", "create", "shop")["organization_id"]
        self.key_ids: dict[str, str] = {}
        for kind, options in (
            ("public", ("--environment", "development", "--origin", ORIGIN)),
            ("secret", ("--environment", "production")),
            ("proxy", ("--environment", "production")),
            ("management", ("--role", "admin")),
        ):
            issued = self._svc("key", "issue", self.organization, "--kind", kind, *options)
            self.secrets.append(issued["secret"])
            self.key_ids[kind] = issued["key"]["id"]
        self.public, self.secret, self.proxy, self.management = self.secrets

    def _svc(self, *arguments: str) -> Any:
        return run_json(*arguments, *options_of(self.directory))

    def link(self, url: str) -> str:
        """The token of a new link to the console."""
        made = self._svc("console", "link", self.organization, "--url", url)["url"]
        token = made.partition("/console#")[2]
        self.secrets.append(token)
        return token

    def ask(self, client: httpx.Client, method: str, path: str, **given: Any) -> httpx.Response:
        """A request whose answer shows no secret."""
        response = client.request(method, path, **given)
        echoed = "access-control-allow-origin"  # says the request's own origin, whatever it was (decisions 3.11)
        self.answers += [
            response.text,
            *(f"{name}: {value}" for name, value in response.headers.items() if name != echoed),
        ]
        return response

    def manage(self, client: httpx.Client, method: str, path: str, body: Any = None) -> Any:
        """What is managed over HTTP; a secret in the answer is one more to look for."""
        own = f"/api/v1/management/organizations/{self.organization}{path}"
        given = {} if body is None else {"json": body}
        response = client.request(method, own, headers={"x-api-key": self.management}, **given)
        assert response.is_success, response.text
        answer = response.json() if response.content else {}
        if "secret" in answer:
            self.secrets.append(answer.pop("secret"))
        self.answers.append(json.dumps(answer))
        return answer


def keys_and_webhooks(tour: Tour, client: httpx.Client) -> None:
    """Everything that issues, changes and revokes."""
    key = tour.manage(client, "POST", "/sdk-keys", {"name": "a", "environment": "staging"})["key"]
    tour.manage(client, "PUT", f"/sdk-keys/{key['id']}/allowed-origins", {"allowed_origins": [ORIGIN]})
    tour.manage(client, "POST", f"/sdk-keys/{key['id']}/revoke")
    tour.manage(client, "POST", "/sdk-keys", {"name": "b", "environment": "production", "kind": "secret"})
    tour.manage(client, "POST", "/proxy-credentials", {"name": "c", "environment": "production"})
    target = {
        "url": "https://127.0.0.1:65009/hook",
        "environment": "live",
        "events": ["identification.completed"],
        "description": "",
    }
    hook = tour.manage(client, "POST", "/webhooks", target)["endpoint"]["id"]
    for hours in (24, 0):
        tour.manage(client, "POST", f"/webhooks/{hook}/rotate-secret", {"previous_secret_valid_hours": hours})
    tour.manage(client, "POST", f"/webhooks/{hook}/test")
    for path in ("/sdk-keys", "/proxy-credentials", "/webhooks", "/webhook-deliveries"):
        tour.answers.append(
            client.get(
                f"/api/v1/management/organizations/{tour.organization}{path}", headers={"x-api-key": tour.management}
            ).text
        )


def console(tour: Tour, client: httpx.Client) -> None:
    """Signing in by a link and by a key, and everywhere else where a token may get; of three sessions one is over."""
    page = {"origin": str(client.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
    made = tour.link(str(client.base_url))
    for given in ({"token": made}, {"key": tour.management}, {"token": tour.link(str(client.base_url))}):
        response = client.post("/console/session", json=given, headers=page)
        assert response.status_code == 200, response.text
        tour.answers.append(response.text)
        token = response.cookies["svc-console"]
        client.cookies.clear()
        tour.secrets.append(token)
        session = {"cookie": f"svc-console={token}"}
        tour.ask(client, "GET", "/console/session", headers=session)
        own = f"/console/api/management/organizations/{tour.organization}/sdk-keys"
        tour.ask(client, "GET", own, headers=session)
        tour.ask(client, "GET", "/console/api/stream", headers=session | {"last-event-id": token})
    assert tour.ask(client, "DELETE", "/console/session", headers=page | session).status_code == 204
    tour.ask(client, "POST", "/console/session", json={"token": made}, headers=page)
    for secret in (made, token):
        tour.ask(client, "GET", f"/console/{secret}", params={"token": secret})
        tour.ask(client, "POST", "/console/session", json={secret: secret}, headers=page)
        tour.ask(client, "POST", "/console/session", json={"key": secret}, headers=page)
        tour.ask(client, "GET", "/healthz", params={"fault": secret})


def right(tour: Tour, client: httpx.Client) -> None:
    """Each kind where it belongs; what is sent is kept, and holds no secret."""
    browser = {"x-api-key": tour.public, "origin": ORIGIN}
    proxied = {"x-api-key": tour.proxy, "x-svc-visitor-ip": PUBLIC_ADDRESS, "x-svc-public-key": tour.public}
    for headers in (browser, {"x-api-key": tour.secret}, {**proxied, "x-svc-visitor-origin": ORIGIN}, browser):
        headers["idempotency-key"] = f"for {tour.secret}"
        tour.ask(client, "POST", IDENTIFY, json=BODY, headers=headers)
    tour.ask(client, "GET", "/api/v1/events", headers={"x-api-key": tour.secret})


def wrong(tour: Tour, client: httpx.Client) -> None:
    """Each of them where it does not belong, and every one nearly right: all is refused."""
    for secret in list(tour.secrets):
        for presented, path in itertools.product((secret, mistyped(secret), secret[:-7]), (IDENTIFY, "/api/v1/events")):
            headers = {"x-api-key": presented, "origin": "https://other.example"}
            method = "POST" if path == IDENTIFY else "GET"
            given = {"json": BODY} if path == IDENTIFY else {}
            assert tour.ask(client, method, path, headers=headers, **given).is_error
        for name in ("authorization", "cookie", "x-request-id", "user-agent", "referer", "forwarded", "x-odd", secret):
            tour.ask(client, "POST", IDENTIFY, json=BODY, headers={name: secret})
        for path in (IDENTIFY, f"/api/v1/{secret}", f"/{secret}", f"/docs/{secret}", "/healthz"):
            tour.ask(client, "GET", path, params={"api_key": secret}, headers={"x-api-key": secret})
        tour.ask(client, secret[:40], IDENTIFY)
        assert tour.ask(client, "GET", "/healthz", params={"fault": secret}).status_code == 500


def odd(tour: Tour, client: httpx.Client) -> None:
    """In the place of values that are read: what is refused for them is not told, and not kept."""
    management = {"x-api-key": tour.management}
    own = f"/api/v1/management/organizations/{tour.organization}"
    for secret in list(tour.secrets):
        valid = {"x-api-key": tour.secret}
        tour.ask(client, "GET", f"/api/v1/events/{secret}", headers=valid)
        tour.ask(client, "GET", "/api/v1/events", params={"visitor": secret, "level": secret}, headers=valid)
        tour.ask(client, "GET", f"/api/v1/management/organizations/{secret}/sdk-keys", headers=management)
        tour.ask(client, "POST", f"{own}/sdk-keys/{secret}/revoke", headers=management)
        tour.ask(client, "DELETE", f"{own}/visitors/{secret}", headers=management)
        tour.ask(client, "PUT", f"{own}/risk-weights/{secret}", json={}, headers=management)
        tour.ask(client, "PUT", f"{own}/risk-weights/web", json={"weights": {secret: 1}}, headers=management)
        tour.ask(client, "POST", f"{own}/sdk-keys", json={"name": "x", "environment": secret}, headers=management)
        tour.ask(client, "POST", f"{own}/webhooks", json={"url": f"http://{secret}"}, headers=management)
        tour.ask(client, "POST", IDENTIFY, json={"sdk": {}, "signals": {}, "tag": [secret]}, headers=valid)
        tour.ask(client, "POST", IDENTIFY, json={"sdk": {secret: secret}, secret: 1}, headers=valid)
        tour.ask(
            client, "POST", IDENTIFY, content=f'{{"{secret}', headers={**valid, "content-type": "application/json"}
        )
        tour.ask(client, "POST", IDENTIFY, content=secret, headers={**valid, "content-type": secret})
        tour.ask(client, "POST", IDENTIFY, json=BODY, headers={**valid, "x-svc-visitor-ip": secret})
        tour.ask(client, "POST", IDENTIFY, json=BODY, headers={**valid, "idempotency-key": secret * 9})
        tour.ask(client, "POST", "/api/v1/attestation/challenge", headers={"x-api-key": tour.public, "origin": secret})
        supplement = {"deferred_token": secret, "sdk": {}, "signals": {"tier": "deferred"}}
        event = "/api/v1/events/019b76da-a800-7000-8000-000000000000/supplement"
        tour.ask(client, "POST", event, json=supplement, headers={"x-api-key": tour.public, "origin": ORIGIN})


def found_in(text: str | bytes, secrets: Iterable[str]) -> list[str]:
    """Which of the secrets are in it: whole, or the random part that is all one needs."""
    raw = text.encode() if isinstance(text, str) else text
    return [secret for secret in secrets if secret.encode() in raw or random_part(secret).encode() in raw]


def random_part(secret: str) -> str:
    """Tokens of the console end in the organization's id, which is no secret."""
    return secret.split("_")[2 if secret.startswith(("svc_cs_", "svc_cl_")) else -1][:43]


def stored(directory: Path) -> str:
    """Every row as it is read, archived reports unpacked."""
    found = opened(directory)
    with found.store.read() as snapshot:
        rows = [repr(row) for table in TABLES for row in snapshot.scan(table)]
        rows += [repr(inflate(document.signals)) for _, document in snapshot.scan(DOCUMENTS)]
    found.store.close()
    return "\n".join(rows)


def test_a_secret_appears_only_in_the_response_that_issued_it(directory: Path, engine: str):
    tour = Tour(directory / "data", directory / "backup")
    unlimited = {"SVC_MANAGEMENT_RATE": "1000", "SVC_READ_RATE": "1000", "SVC_CLIENT_RATE": "1000"}
    settings = {"SVC_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8", **unlimited, **settings_of(tour.directory)}
    served = Served(tour.directory, program=(PRELOADED, FAULTY), **settings)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{served.port}", timeout=20, verify=False) as client:
            for leg in (keys_and_webhooks, right, wrong, odd, console):
                leg(tour, client)
            metrics = next(json.loads(line)["metrics"][0] for line in served.log if '"serving"' in line)
            scraped = httpx.get(f"http://{metrics}/metrics").text
        if engine == "lmdb":
            run("backup", str(tour.backup), "--data", str(tour.directory))
    finally:
        assert served.terminate() == 0
    log = "".join(served.log)
    assert len(tour.secrets) == 15
    assert "svc_sk_us_production_[redacted]" in log, "the fault never had a secret in its message"
    assert log.count('"reason"') > 50
    assert found_in(log, tour.secrets) == []
    assert [answer for answer in tour.answers if found_in(answer, tour.secrets)] == []
    assert found_in(scraped, tour.secrets) == []
    assert found_in(stored(tour.directory), tour.secrets) == []
    files = [file for place in (tour.directory, tour.backup) for file in place.rglob("*") if file.is_file()]
    assert len(files) >= (4 if engine == "lmdb" else 1)
    assert [str(file) for file in files if found_in(file.read_bytes(), tour.secrets)] == []
