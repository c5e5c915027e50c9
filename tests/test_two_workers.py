"""Two workers are one service to clients, commands and monitoring: counts, limits and what an operator changes."""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.inspect import FloatType, IntType

from svc.kernel.config import Config
from svc.kernel.values.fields import bare, fields_of
from tests.support.decided_elsewhere import ACCOUNT, assert_changes_are_in_force_on_the_other
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, report
from tests.support.process import Served, run, run_json

ARRIVE_S = 20
"""For counts that every worker leaves four times a second, on a machine that has other things to do."""


class Shop(NamedTuple):
    server: Served
    data: Path
    organization: str

    def key(self) -> tuple[str, str]:
        """(id, secret) of a new key."""
        options = ("--kind", "public", "--environment", "production", "--origin", ORIGIN, "--data", str(self.data))
        issued = run_json("key", "issue", self.organization, *options)
        return issued["key"]["id"], issued["secret"]

    def command(self, *arguments: str) -> None:
        run(*arguments, "--data", str(self.data))


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Two workers, and an organization with credit and without a limit."""
    data = tmp_path / "data"
    options = ("--credit-usd", "100", "--rate-limit", "0", "--data", str(data))
    organization = run_json("org", "create", "shop", *options)["organization_id"]
    server = Served(data, SVC_WORKERS="2")
    workers = server.workers()
    try:
        server.wait_until_said("serving", 2)
        yield Shop(server, data, organization)
        assert server.terminate() == 0
    finally:
        server.kill_all(workers)


class Client:
    """One connection, and so one worker."""

    def __init__(self, server: Served) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)

    def manage(self, secret: str, method: str, path: str, body: Any) -> Any:
        """The response of a management route; `None` for 204."""
        headers = {"x-api-key": secret, "content-type": "application/json"}
        self.connection.request(method, f"/api/v1/management/organizations{path}", json.dumps(body), headers)
        response = self.connection.getresponse()
        content = response.read()
        assert response.status in (200, 204), content
        return json.loads(content) if content else None

    def identify(self, secret: str, device: int) -> int:
        """The status of one identification."""
        return self.response(secret, device)[0]

    def response(self, secret: str, device: int, account: str | None = None, **more: str) -> tuple[int, dict[str, Any]]:
        """Status and body of one identification; `_` in the name of a header is `-`."""
        headers = {
            "x-api-key": secret,
            "origin": ORIGIN,
            "content-type": "application/json",
            "x-forwarded-for": PUBLIC_ADDRESS,
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        named = {} if account is None else {"account_id": account}
        body = json.dumps({"sdk": {"platform": "web"}, "signals": report(device), **named})
        self.connection.request("POST", "/api/v1/identify", body, headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def close(self) -> None:
        self.connection.close()


NOT_OF_EVERY_MACHINE = {"map_gib", "hsts_max_age_s"}
"""Settings whose largest value needs its address space, or a certificate."""
LARGEST: dict[str, Any] = {
    f"SVC_{field.name.upper()}": f"{kind.le:.12g}"
    for field in fields_of(Config)
    if isinstance(kind := bare(field.type), IntType | FloatType) and field.name not in NOT_OF_EVERY_MACHINE
}


def test_the_largest_values_of_all_settings_are_served(tmp_path: Path):
    """Two workers share what they count, in memory where a number has 64 bits."""
    data = tmp_path / "data"
    organization = run_json("org", "create", "shop", "--data", str(data))["organization_id"]
    issue = ("key", "issue", organization, "--data", str(data))
    public = run_json(*issue, "--kind", "public", "--environment", "production", "--origin", ORIGIN)["secret"]
    secret = run_json(*issue, "--kind", "secret", "--environment", "production")["secret"]
    management = run_json(*issue, "--kind", "management")["secret"]
    server = Served(data, SVC_WORKERS="2", **LARGEST)
    workers = server.workers()
    try:
        server.wait_until_said("serving", 2)
        with closing(Client(server)) as client:
            assert client.identify(public, 1) == 200
            for method, path, key in (
                ("POST", "/attestation/challenge", public),
                ("GET", "/events", secret),
                ("GET", "/management/key", management),
            ):
                headers = {"x-api-key": key} | ({"origin": ORIGIN} if key == public else {})
                client.connection.request(method, f"/api/v1{path}", headers=headers)
                response = client.connection.getresponse()
                assert response.status == 200, (path, response.read())
                response.read()
            client.manage(management, "POST", f"/{organization}/rules/preview", {"rules": []})
        scraped(server)
        assert server.terminate() == 0
        assert not [line for line in server.log if '"level":"error"' in line]
    finally:
        server.kill_all(workers)


def one_of_each(server: Served) -> tuple[Client, Client]:
    """A client of each worker, as the log says of a request that nobody else sends."""
    found: dict[int, Client] = {}
    for attempt in range(200):
        client = Client(server)
        client.connection.request("GET", f"/api/v1/attempt-{attempt}")
        client.connection.getresponse().read()
        line = server.wait_until_said("request", attempt + 1)[attempt]
        if line["worker"] in found:
            client.close()
        else:
            found[line["worker"]] = client
        if len(found) == 2:
            return found[0], found[1]
    raise AssertionError("one worker took every connection")


def scraped(server: Served) -> Mapping[str, float]:
    """The value of each sample of `/metrics`, by its name and labels as they are written."""
    (address,) = {place for line in server.said("serving") for place in line["metrics"]}
    with closing(http.client.HTTPConnection(address, timeout=30)) as connection:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    return {name: float(value) for name, value in re.findall(r"^(\w+(?:\{.*\})?) (\S+)$", text, re.MULTILINE)}


@pytest.mark.slow
def test_the_metrics_equal_the_counts_of_the_clients_of_both_workers(shop: Shop):
    _, secret = shop.key()
    clients = one_of_each(shop.server)
    counted: Counter[int] = Counter()
    for number in range(12):
        for client in clients:
            counted[client.identify(secret if number % 3 else "svc_pk_nobody", number)] += 1
    assert counted == {200: 16, 401: 8}
    expected = {
        'svc_http_requests_total{code="",route="identify",status="200"}': 16,
        'svc_http_requests_total{code="unauthorized",route="identify",status="401"}': 8,
        'svc_http_request_duration_seconds_count{route="identify"}': 24,
    }
    until = time.monotonic() + ARRIVE_S
    while time.monotonic() < until:
        found = scraped(shop.server)
        if {name: found.get(name, 0) for name in expected} == expected:
            break
        time.sleep(0.1)
    assert {name: found.get(name, 0) for name in expected} == expected
    identified = [value for name, value in found.items() if name.startswith("svc_identifications_total{")]
    assert sum(identified) == 16
    assert found["svc_workers_silent"] == 0
    for client in clients:
        client.close()


@pytest.mark.slow
def test_a_duplicate_gets_the_original_response_from_either_worker(shop: Shop):
    """Decisions 3.2."""
    _, secret = shop.key()
    clients = one_of_each(shop.server)
    for number, (one, other) in enumerate((clients, clients[::-1])):
        keyed = {"idempotency_key": str(number)}
        status, first = one.response(secret, number, **keyed)
        assert (status, "duplicate" in first) == (200, False)
        full = {**first, "duplicate": True}
        assert other.response(secret, number, **keyed, x_svc_replay="full") == (200, full)
        assert one.response(secret, number, **keyed, x_svc_replay="full") == (200, full)
    for client in clients:
        client.close()


@pytest.mark.slow
def test_changes_by_a_command_apply_at_the_next_request_to_each_worker(shop: Shop):
    key_id, revoked = shop.key()
    _, kept = shop.key()
    clients = one_of_each(shop.server)

    def statuses(secret: str) -> list[int]:
        return [client.identify(secret, device) for device in range(2) for client in clients]

    assert statuses(revoked) == statuses(kept) == [200] * 4
    shop.command("key", "revoke", key_id, "--yes")
    assert (statuses(revoked), statuses(kept)) == ([401] * 4, [200] * 4)
    shop.command("org", "billing-status", shop.organization, "blocked")
    assert statuses(kept) == [402] * 4
    shop.command("org", "billing-status", shop.organization, "free")
    shop.command("org", "rate-limit", shop.organization, "1")
    assert 200 in statuses(kept)
    assert 429 in [status for _ in range(5) for status in statuses(kept)]
    for client in clients:
        client.close()


@pytest.mark.slow
def test_a_change_of_a_member_applies_at_the_next_request_to_each_worker(shop: Shop):
    """Decisions 15.1: a session that began on one worker has the role that its member has now, on both."""
    options = ("--role", "developer", "--data", str(shop.data))
    invited = run_json("member", "invite", shop.organization, "ada@shop.example", *options)
    clients = one_of_each(shop.server)
    origin = f"http://127.0.0.1:{shop.server.port}"
    page = {"origin": origin, "sec-fetch-site": "same-origin", "content-type": "application/json"}

    def ask(client: Client, method: str, path: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
        client.connection.request(method, path, json.dumps(body or {}), page | headers)
        response = client.connection.getresponse()
        response.read()
        return response

    body = {"token": invited["invitation_url"].partition("#")[2], "password": "a horse that is correct"}
    came = ask(clients[0], "POST", "/console/invitations", body)
    assert came.status == 200
    cookie = (came.getheader("set-cookie") or "").partition(";")[0]
    lists, numbers = f"/console/api/management/organizations/{shop.organization}/lists", count()

    def statuses() -> list[int]:
        return [
            ask(client, "POST", lists, {"name": f"list_{next(numbers)}", "kind": "tag"}, cookie=cookie).status
            for client in clients
        ]

    assert statuses() == [201, 201]
    shop.command("member", "role", shop.organization, "ada@shop.example", "viewer")
    assert statuses() == [403, 403]
    shop.command("member", "suspend", shop.organization, "ada@shop.example")
    assert statuses() == [401, 401]
    for client in clients:
        client.close()


@pytest.mark.slow
def test_a_block_and_a_rule_are_in_force_on_the_other_worker_at_the_next_request(shop: Shop):
    _, secret = shop.key()
    options = ("--kind", "management", "--role", "admin", "--data", str(shop.data))
    management = run_json("key", "issue", shop.organization, *options)["secret"]
    clients = one_of_each(shop.server)

    def manage(which: int, method: str, path: str, body: Any) -> Any:
        return clients[which].manage(management, method, f"/{shop.organization}{path}", body)

    def decided(which: int) -> str | None:
        status, body = clients[which].response(secret, 1, account=ACCOUNT)
        assert status == 200, body
        return body.get("decision", {}).get("action")

    assert_changes_are_in_force_on_the_other(manage, decided)
    for client in clients:
        client.close()


@pytest.mark.slow
def test_a_limit_applies_to_both_workers_together(shop: Shop):
    """As many as it has tokens and gets while they are asked for, and not twice as many."""
    limit = 4
    _, secret = shop.key()
    clients = one_of_each(shop.server)
    shop.command("org", "rate-limit", shop.organization, str(limit))
    served: list[int] = []

    def hammer(client: Client) -> None:
        served.extend(client.identify(secret, number) for number in range(25))

    began = time.monotonic()
    threads = [threading.Thread(target=hammer, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.monotonic() - began
    assert limit <= served.count(200) <= limit + took_s * limit
    assert set(served) == {200, 429}
    for client in clients:
        client.close()
