"""Which events an identification gives rise to, and that they leave a running service (decisions 8.9, 8.10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from svc.features.webhooks.jobs.endpoints import Issued, NewEndpoint, create_endpoint
from svc.features.webhooks.records import Attempted, WebhookEnvironment
from svc.features.webhooks.tables import REFUSALS
from svc.features.weights.jobs import save_weights
from svc.identify.scoring.score import WeightsChange
from svc.identify.scoring.signals import signal_names
from tests.spec.responses import forward
from tests.support.live import PUBLIC_ADDRESS, Live, live_service, mistyped, opened, report, succeeded

SUSPICIOUS = {**report(), "webdriver": True}


class Receiver:
    """Keeps what arrives, by URL."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []
        self._more = trio.Event()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], organization: int) -> Attempted:
        said = json.loads(body)
        assert headers["X-Svc-Event-ID"] == said["id"]
        self.said.append((url, said))
        self._more.set()
        return Attempted(200, None, 1, None)

    async def events(self, count: int) -> list[dict[str, Any]]:
        """The first so many envelopes, by type."""
        while len(self.said) < count:
            self._more = trio.Event()
            with trio.fail_after(60):
                await self._more.wait()
        return sorted((said for _, said in self.said), key=lambda said: said["type"])


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def served(receiver: Receiver) -> dict[str, Any]:
    return {"transport": receiver}


IDENTIFICATIONS = ("identification.completed", "visitor.suspect", "identification.refused")


def subscribe(live: Live, environment: WebhookEnvironment) -> str:
    """An endpoint for what identifications give rise to; its URL."""
    url, events = f"https://{environment}.example/", IDENTIFICATIONS
    new = NewEndpoint(id=f"whk_{environment}", url=url, description="", environment=environment, events=events)
    job = partial(create_endpoint, number=live.organization.number, new=new, secrets_key=b"", now_ms=live.clock.now_ms)
    (issued,) = live.found.store.write_now([job])
    assert isinstance(issued, Issued)
    return url


def suspect_everything(live: Live) -> None:
    change = WeightsChange(threshold=1, weights={"automation": 50})
    number = live.organization.number
    live.found.store.write_now([lambda txn: save_weights(txn, number, None, "web", change, live.clock.now_ms)])


async def test_a_suspicious_identification_sends_two_events_with_the_fields_of_the_event(
    live: Live, public: str, receiver: Receiver
):
    subscribe(live, "live")
    suspect_everything(live)
    answer = (await live.identify(public, SUSPICIOUS, tag="order 7")).json()
    completed, suspect = await receiver.events(2)
    assert [completed["type"], suspect["type"]] == ["identification.completed", "visitor.suspect"]
    assert completed["id"] != suspect["id"]
    assert completed["organization_id"] == live.organization.id
    assert (completed["environment"], completed["version"]) == ("live", 1)
    data = completed["data"]
    shared = ("request_id", "visitor_id", "visitor_is_new", "identifiable", "visitor_confidence", "suspect_score")
    assert {name: data[name] for name in shared} == {name: answer[name] for name in shared}
    assert data["signals"] == answer["triggers"]
    assert (data["tag"], data["environment"], data["has_document"]) == ("order 7", "production", True)
    assert completed["created_at"] == data["occurred_at"]
    assert suspect["data"] == {**data, "suspect_threshold": 1}


async def test_an_identification_is_suspect_from_the_threshold_on(live: Live, receiver: Receiver):
    weights = dict.fromkeys(signal_names("web"), 0) | {"automation": 50}
    subscribe(live, "live")
    number, now_ms = live.organization.number, live.clock.now_ms
    public, secret = (live.issue(kind, "production")[1] for kind in ("public", "secret"))
    for threshold in (51, 50, 49):
        change = WeightsChange(threshold=threshold, weights=weights)
        live.found.store.write_now([lambda txn, of=change: save_weights(txn, number, None, "web", of, now_ms)])
        assert (await live.identify(public, SUSPICIOUS)).json()["suspect_score"] == 50
    unscored = await forward(live, secret, {"x-svc-visitor-ip": PUBLIC_ADDRESS}, signals={"q": 1})
    assert "suspect_score" not in succeeded(unscored)
    said = await receiver.events(6)
    suspect = [each["data"]["suspect_threshold"] for each in said if each["type"] == "visitor.suspect"]
    assert sorted(suspect) == [49, 50], "in any order, as they are sent side by side"


async def test_an_unsuspicious_identification_sends_one_event_and_a_duplicate_none(live: Live, receiver: Receiver):
    subscribe(live, "live")
    _, secret = live.issue(environment="production")
    for _ in range(3):
        await live.identify(secret, headers={"idempotency-key": "once"})
    await live.identify(secret)
    events = await receiver.events(2)
    assert [said["type"] for said in events] == ["identification.completed"] * 2
    requests = {said["data"]["request_id"] for said in events}
    assert len(receiver.said) == 2
    assert len(requests) == 2


async def refused_twice_over(live: Live, receiver: Receiver, key: str, **sent: Any) -> dict[str, Any]:
    """The event of the first of two refusals alike."""
    before = len(receiver.said)
    for _ in range(2):
        await live.identify(key, **sent)
    events = await receiver.events(before + 1)
    return events[-1]


async def test_refusals_of_a_recognized_key_are_notified_and_others_are_not(live: Live, receiver: Receiver):
    subscribe(live, "live")
    key, secret = live.issue(environment="production")
    await live.identify(mistyped(secret))
    said = await refused_twice_over(live, receiver, secret, origin="https://evil.example")
    data = said["data"]
    assert said["type"] == "identification.refused"
    assert (data["code"], data["status"], data["key_id"], data["count"]) == ("unauthorized", 401, key.id, 1)
    assert (data["origin"], data["environment"]) == ("https://evil.example", "production")
    assert (data["ip_address"], data["reason"]) == (
        "127.0.0.1",
        "the origin is not in the key's list: 'https://evil.example'",
    )
    assert len(receiver.said) == 1


async def test_refusals_of_the_last_second_are_kept_when_the_service_ends(directory: Path, receiver: Receiver):
    """The sum of `count` is how many there were (decisions 8.9), over restarts, too."""
    async with live_service(directory, transport=receiver) as live:
        subscribe(live, "live")
        _, secret = live.issue(environment="production")
        await live.identify(secret, origin="https://evil.example")
        (first,) = await receiver.events(1)
        for _ in range(3):
            await live.identify(secret, origin="https://evil.example")
    with closing(opened(directory).store) as store, store.read() as snapshot:
        ((_, kept),) = snapshot.scan(REFUSALS)
    assert (first["data"]["count"], kept.count) == (1, 3)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({"tag": 5}, "validation_error"),
        ({"origin": "null"}, "unauthorized"),
        ({"tag": "x" * (1 << 20)}, "payload_too_large"),
        ({"headers": {"idempotency-key": "x" * 256}}, "idempotency_key_too_long"),
        ({}, "billing_blocked"),
    ],
)
@pytest.mark.every_case
async def test_each_kind_of_refusal_is_notified(live: Live, receiver: Receiver, sent: dict[str, Any], code: str):
    subscribe(live, "live")
    _, secret = live.issue(environment="production")
    live.set_billing_status("blocked")
    said = await refused_twice_over(live, receiver, secret, **sent)
    assert said["data"]["code"] == code
    assert said["data"]["ip_address"] == "127.0.0.1"
    assert said["data"].get("reason", "").endswith("'null'" if code == "unauthorized" else "")
