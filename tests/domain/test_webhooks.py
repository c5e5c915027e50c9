"""Envelope, payloads, signature, schedule, states, refusals: the rules of decisions 8 without store or network."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from svc.features.webhooks.content.envelope import (
    derived_event_id,
    identification_event_id,
    seal,
    secrets_in_force,
    secrets_key,
    signed_headers,
    signing_secret,
)
from svc.features.webhooks.content.payloads import suspect
from svc.features.webhooks.jobs.refusals import note, notify
from svc.features.webhooks.records import (
    DELIVERY_KINDS,
    EVENT_TYPES,
    AttemptError,
    DeliveryKey,
    DeliveryKind,
    Endpoint,
    Health,
    Refusals,
    webhook_environment,
)
from svc.features.webhooks.retries import (
    DELIVERY_TRANSITIONS,
    ENDPOINT_TRANSITIONS,
    STEPS_MS,
    AttemptResult,
    after_attempt,
    classify_result,
    jittered,
)
from svc.identify.events.event_row import event_row
from svc.identify.model import EventSignal, EventTrigger, Verdict
from svc.identify.records import Event
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import NOTIFIABLE, RefusedRequest
from svc.kernel.values.timestamps import timestamp

AT_MS = 1_767_225_600_000
REQUEST_ID = UUID("019b76da-a800-7752-8079-3cdead0412c1")
QUEUE = EndpointKey(1, 2)
KEY = DeliveryKey(b"e" * 16, "auto")
EVENT = Event(
    verdict=Verdict(
        visitor_id="0qppzPLvL54VURDkQrfS",
        state="enriched",
        reason=None,
        suspect_score=40,
        suspect_level="medium",
        triggers=(EventTrigger("tor", 40, "high"),),
        identifiable=True,
        visitor_is_new=True,
        visitor_confidence=0,
        linkage="new",
    ),
    environment="production",
    occurred_at_ms=AT_MS,
    platform="web",
    sdk_platform="web",
    sdk_version="0.1.0",
    origin="https://shop.example",
    tag=None,
    ip_address="81.2.69.160",
    country_code="GB",
    country_name="United Kingdom",
    asn="64500",
    asn_name="Example",
    anonymity_network="tor",
    agent="Chrome",
    agent_version="137",
    os="Windows",
    device_kind="desktop",
    visitor_kind="human",
    key_id="key_x",
    price_micros=3000,
)
ENDPOINT = Endpoint(
    id="whk_00000000000000000001",
    url="https://receiver.example/",
    description="",
    environment="live",
    events=("visitor.suspect",),
    created_at_ms=AT_MS,
    secret_last4="abcd",
)


def with_verdict(**fields: Any) -> Event:
    return msgspec.structs.replace(EVENT, verdict=msgspec.structs.replace(EVENT.verdict, **fields))


def result(
    attempt: int = 1,
    error: AttemptError | None = "http_status",
    code: int | None = 500,
    *,
    scheduled_ms: int = AT_MS,
    started_ms: int | None = None,
    retry_after_s: int | None = None,
) -> AttemptResult:
    started = scheduled_ms if started_ms is None else started_ms
    return AttemptResult(
        attempt, scheduled_ms, started, 100, None if error == "timeout" else code, error, retry_after_s
    )


# The envelope and what is in it


def test_the_envelope_matches_the_documented_format():
    sealed = seal(REQUEST_ID, "visitor.suspect", "live", "org_x", {"a": 1}, AT_MS)
    assert json.loads(sealed.body) == {
        "id": str(REQUEST_ID),
        "type": "visitor.suspect",
        "version": 1,
        "organization_id": "org_x",
        "environment": "live",
        "created_at": "2026-01-01T00:00:00.000Z",
        "data": {"a": 1},
    }


def test_an_event_id_is_a_uuid_of_version_7_derived_from_the_fact():
    one = identification_event_id("identification.completed", REQUEST_ID)
    assert one == identification_event_id("identification.completed", REQUEST_ID)
    assert (one.version, one.variant) == (7, "specified in RFC 4122")
    assert one.int >> 80 == REQUEST_ID.int >> 80, "it sorts by the time of the fact"
    others = {identification_event_id("visitor.suspect", REQUEST_ID), derived_event_id("webhook.test", b"", AT_MS)}
    assert len({one, *others}) == 3


def row(event: Event) -> dict[str, Any]:
    """What `identification.completed` says."""
    return json.loads(msgspec.json.encode(event_row(event, REQUEST_ID)))


def test_the_row_of_an_event_has_its_properties_and_omits_those_that_do_not_apply():
    assert row(EVENT).items() >= {"visitor_is_new": True, "identifiable": True, "visitor_confidence": 0}.items()
    said = row(msgspec.structs.replace(with_verdict(suspect_score=None, suspect_level=None, triggers=()), origin=None))
    assert said["suspect_score"] is None
    assert {"origin", "reason", "suspect_level"}.isdisjoint(said)


def test_the_row_of_an_event_has_its_signals_where_they_were_stored():
    assert "signals" not in row(EVENT)
    fired = EventSignal("tor", "tor", 40, "high")
    said = row(with_verdict(signals=(fired,)))
    assert said["signals"] == [{"signal": "tor", "group": "tor", "weight": 40, "confidence": "high"}]
    assert row(with_verdict(signals=()))["signals"] == []


def test_the_suspect_event_is_the_row_plus_the_threshold():
    said = json.loads(msgspec.json.encode(suspect(EVENT, REQUEST_ID, 30)))
    assert said == {**row(EVENT), "suspect_threshold": 30}


def test_only_production_traffic_is_live():
    assert [webhook_environment(name) for name in ("production", "staging", "development")] == ["live", "test", "test"]


# Secrets and signatures


def test_a_secret_follows_from_the_pepper_the_endpoint_and_the_generation():
    key = secrets_key(b"p" * 32)
    secrets = {
        signing_secret(key, "whk_a", 1),
        signing_secret(key, "whk_a", 2),
        signing_secret(key, "whk_b", 1),
        signing_secret(secrets_key(b"q" * 32), "whk_a", 1),
    }
    assert len(secrets) == 4
    assert signing_secret(key, "whk_a", 1) in secrets
    for secret in secrets:
        assert secret.startswith("svc_whsec_")
        assert len(secret) == len("svc_whsec_") + 43
        assert secret.isascii()
        assert secret.replace("_", "").isalnum()


def test_a_secret_is_the_same_in_every_version():
    """It is kept nowhere, but receivers keep it."""
    assert secrets_key(b"p" * 32).hex() == "1f7ff132d657cd31d45e3bf875082c7366c5166da83bb8a85f3047b505da0f15"
    secret = "svc_whsec_rvf8mQJrxwsGYIhutBUv0Hzfj141LCBVl380R5YgILJ"
    assert signing_secret(b"k" * 32, "whk_" + "A" * 20, 1) == secret


def test_a_signature_is_what_a_receiver_computes():
    sealed = seal(REQUEST_ID, "visitor.suspect", "live", "org_x", {}, AT_MS)
    secret = "svc_whsec_abc"
    headers = signed_headers(REQUEST_ID, sealed, (secret,), 1_767_225_601)
    digest = hmac.new(secret.encode(), b"1767225601." + sealed.body, hashlib.sha256).hexdigest()
    assert headers["X-Svc-Signature"] == f"sha256={digest}"
    assert headers["X-Svc-Timestamp"] == "1767225601"
    assert headers["X-Svc-Event-ID"] == str(REQUEST_ID) == json.loads(sealed.body)["id"]
    assert headers["X-Svc-Event-Type"] == "visitor.suspect"
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"] == "Svc-Webhooks/1.0"


def test_standard_webhooks_headers_are_signed_with_the_same_key_bytes():
    sealed = seal(REQUEST_ID, "visitor.suspect", "live", "org_x", {}, AT_MS)
    headers = signed_headers(REQUEST_ID, sealed, ("one", "two"), 5)
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + sealed.body
    expected = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in (b"one", b"two")]
    assert headers["webhook-signature"] == f"v1,{expected[0]} v1,{expected[1]}"
    assert headers["X-Svc-Signature"].count("sha256=") == 2


def test_the_previous_secret_signs_until_it_expires_and_not_after():
    key = secrets_key(b"p" * 32)
    rotated = msgspec.structs.replace(ENDPOINT, generation=3, previous_secret_expires_at_ms=AT_MS)
    third, second = (signing_secret(key, ENDPOINT.id, generation) for generation in (3, 2))
    assert secrets_in_force(key, rotated, AT_MS - 1) == (third, second)
    assert secrets_in_force(key, rotated, AT_MS) == (third,)
    assert secrets_in_force(key, ENDPOINT, AT_MS) == (signing_secret(key, ENDPOINT.id, 1),)


# The schedule


def test_nine_attempts_in_about_seven_hours_over_a_thousand_seeds():
    totals: list[float] = []
    for seed in range(1000):
        key = DeliveryKey(hashlib.sha256(seed.to_bytes(4)).digest()[:16], "auto")
        at, attempt = AT_MS, 1
        while (verdict := classify_result(result(attempt, scheduled_ms=at), QUEUE, key)).due_ms is not None:
            assert verdict.status == "retrying"
            assert 0.9 <= (verdict.due_ms - at) / STEPS_MS[attempt - 1] <= 1.1
            at, attempt = verdict.due_ms, attempt + 1
        assert (verdict.status, attempt) == ("failed", 9)
        totals.append((at - AT_MS) / 3_600_000)
    assert 6.4 <= min(totals) < 6.9
    assert 7.0 < max(totals) <= 7.5


def test_jitter_depends_only_on_the_delivery():
    steps = {
        jittered(10_000, queue, DeliveryKey(event_id, "auto"), attempt)
        for queue in (EndpointKey(1, 1), EndpointKey(1, 2))
        for event_id in (b"a" * 16, b"b" * 16)
        for attempt in (1, 2)
    }
    assert len(steps) == 8
    assert jittered(10_000, QUEUE, KEY, 1) == jittered(10_000, QUEUE, KEY, 1)


def test_retries_count_from_the_scheduled_time_unless_the_delivery_was_delayed_long():
    step = jittered(STEPS_MS[3], QUEUE, KEY, 4)
    assert classify_result(result(4, started_ms=AT_MS + 9_000), QUEUE, KEY).due_ms == AT_MS + step
    days_later = AT_MS + 3 * 86_400_000
    assert classify_result(result(4, started_ms=days_later), QUEUE, KEY).due_ms == days_later + step
    by_a_clock_set_ahead = result(4, started_ms=days_later)._replace(late_ms=0)
    assert classify_result(by_a_clock_set_ahead, QUEUE, KEY).due_ms == AT_MS + step


@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_is_honored_up_to_twice_the_step(code: int):
    step = jittered(STEPS_MS[2], QUEUE, KEY, 3)
    ended = AT_MS + 100

    def due_ms(retry_after_s: int) -> int | None:
        return classify_result(result(3, code=code, retry_after_s=retry_after_s), QUEUE, KEY).due_ms

    assert due_ms(1) == AT_MS + step
    assert due_ms(180) == ended + 180_000
    assert due_ms(86_400) == ended + 2 * step
    assert classify_result(result(3, code=500, retry_after_s=180), QUEUE, KEY).due_ms == AT_MS + step


def test_a_410_a_removed_endpoint_a_test_and_a_redelivery_are_not_retried():
    assert classify_result(result(code=410), QUEUE, KEY) == ("failed", None)
    assert classify_result(result(error="removed", code=None), QUEUE, KEY) == ("failed", None)
    assert classify_result(result(), QUEUE, KEY).status == "retrying"
    kinds: list[DeliveryKind] = ["test", "redelivery"]
    for kind in kinds:
        assert classify_result(result(), QUEUE, DeliveryKey(b"e" * 16, kind)) == ("failed", None)
    assert classify_result(result(error=None, code=204), QUEUE, KEY) == ("delivered", None)


# States


def test_every_endpoint_status_has_a_transition_for_every_trigger():
    triggers = {"paused", "resumed", "url_changed", "delivered", "broken"}
    assert all(set(row) == triggers for row in ENDPOINT_TRANSITIONS.values())
    assert [ENDPOINT_TRANSITIONS["failing"][trigger] for trigger in ("delivered", "url_changed", "resumed")] == [
        "active"
    ] * 3
    assert [trigger for trigger, then in ENDPOINT_TRANSITIONS["paused"].items() if then != "paused"] == ["resumed"]
    assert not DELIVERY_TRANSITIONS["delivered"]
    assert not DELIVERY_TRANSITIONS["failed"]
    assert DELIVERY_TRANSITIONS["pending"] == DELIVERY_TRANSITIONS["retrying"]


def after(health: Health, *results: AttemptResult) -> tuple[Health, Any]:
    trigger = None
    for one in results:
        health, trigger = after_attempt(health, one, classify_result(one, QUEUE, KEY), "auto")
    return health, trigger


def test_five_failures_in_a_row_fail_an_endpoint_only_over_ten_minutes():
    quick = [result(scheduled_ms=AT_MS + n * 1000) for n in range(6)]
    slow = [result(scheduled_ms=AT_MS + n * 150_000) for n in range(5)]
    assert after(Health(), *quick)[1] is None
    assert after(Health(), *slow)[1] == "broken"
    assert after(Health(), *slow[:4])[1] is None
    assert after(Health(), *slow[:4], result(error=None, code=200), slow[4])[1] is None
    hourly = [result(scheduled_ms=AT_MS + n * 3_600_000) for n in range(4)]
    assert after(Health(), *hourly)[1] is None, "four are too few, however long they take"
    early = [*slow[:4], result(scheduled_ms=AT_MS + 599_999)]
    assert after(Health(), *early)[1] is None


def test_failures_are_counted_one_by_one_from_the_first():
    health = Health()
    for number in range(1, 5):
        failed = result(number, started_ms=AT_MS + number)
        health, trigger = after_attempt(health, failed, classify_result(failed, QUEUE, KEY), "auto")
        assert trigger is None
        assert health == Health(number, AT_MS + 1, AT_MS + number)


def test_a_dead_letter_or_a_410_fails_the_endpoint_at_once():
    assert after(Health(), result(9))[1] == "broken"
    assert after(Health(), result(code=410))[1] == "broken"
    assert after(Health(), result(error=None, code=200)) == (Health(last_attempt_at_ms=AT_MS), "delivered")


def test_a_pause_or_a_removal_does_not_count_as_a_failure():
    for error in ("paused", "removed"):
        assert after(Health(failures=4), result(error=error, code=None)) == (Health(failures=4), None)


# Refusals


def refused(second: float, count: int = 1) -> RefusedRequest:
    return RefusedRequest(
        organization=1,
        key_id="key_x",
        code="rate_limited",
        status=429,
        environment="production",
        request_id=REQUEST_ID.bytes,
        occurred_at_ms=AT_MS + round(second * 1000),
        origin=None,
        ip_address="81.2.69.160",
        count=count,
    )


def test_refusals_for_authorization_payment_validation_and_rate_limits_are_notified():
    assert frozenset({401, 402, 413, 422, 429}) == NOTIFIABLE


def test_the_first_refusal_is_notified_at_once_and_then_one_a_minute_with_a_count():
    kept: Refusals | None = None
    told: list[tuple[float, int]] = []
    for tenth in range(1200):  # ten a second for two minutes
        event, kept = note(kept, refused(tenth / 10))
        if event is not None:
            told.append((tenth / 10, event.count))
    assert told == [(0, 1), (60, 600)]
    assert kept is not None
    assert kept.count == 599
    event, kept = notify(kept, "key_x", "rate_limited", AT_MS + 120_000)
    assert event is not None
    assert (event.count, event.occurred_at) == (599, timestamp(AT_MS + 119_900))
    assert kept is not None
    assert notify(kept, "key_x", "rate_limited", AT_MS + 120_001) == (None, kept), "not before its minute is over"
    assert notify(kept, "key_x", "rate_limited", AT_MS + 180_000) == (None, None), "nothing gathered: forgotten"


def test_refusals_are_notified_of_although_the_clock_was_set_back():
    """Decisions 8.9: at most one a minute; by the clock from before it would be none for an hour."""
    _, kept = note(None, refused(3600))
    event, kept = note(kept, refused(3599.9))
    assert event is None, "two requests that changed places"
    event, kept = note(kept, refused(0))
    assert event is not None
    assert event.count == 2
    event, kept = note(kept, refused(30))
    assert event is None
    assert kept is not None
    assert kept.due_ms == AT_MS + 60_000


def test_a_refusal_notification_has_the_decided_fields():
    event, _ = note(None, refused(0, count=3))
    assert json.loads(msgspec.json.encode(event)) == {
        "request_id": str(REQUEST_ID),
        "occurred_at": "2026-01-01T00:00:00.000Z",
        "code": "rate_limited",
        "status": 429,
        "environment": "production",
        "key_id": "key_x",
        "ip_address": "81.2.69.160",
        "count": 3,
    }


def test_values_stored_in_keys_keep_their_position():
    assert DELIVERY_KINDS == ("auto", "test", "redelivery")
    assert [DeliveryKey(b"", kind).kind_index for kind in DELIVERY_KINDS] == [0, 1, 2]
    assert all(one < other for one, other in pairwise(STEPS_MS))


def test_the_console_offers_every_type_of_events():
    """Saving an endpoint in the console would take from it the types that the form has no box for."""
    page = (Path(__file__).parents[2] / "web/pages/console/webhooks.tsx").read_text()
    (offered,) = re.findall(r"const EVENTS = (\[.*?\]);", page, re.DOTALL)
    assert set(json.loads(offered)) == set(EVENT_TYPES)


def test_the_type_of_a_delivery_in_typescript_names_every_type_of_events():
    source = (Path(__file__).parents[2] / "clients/node/src/webhooks.ts").read_text()
    (named,) = re.findall(r"  type: Open<(.*?)>;", source, re.DOTALL)
    assert set(re.findall(r'"([a-z_.]+)"', named)) == set(EVENT_TYPES)
