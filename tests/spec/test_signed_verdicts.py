"""Signed verdicts: only on request, by keys that are published, rotated and kept nowhere (docs/adr/0046)."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from svc.http.callers.limits import OPEN_READS_PER_S
from svc.identify.keys.signed_verdict import signing_key, verdict_key
from svc.kernel.access.tables import AUDIT
from tests.spec.automation import Automation
from tests.spec.responses import TOO_LITTLE, assert_error, assert_invalid
from tests.support.live import ORIGIN, Live, succeeded

Jwk = dict[str, str]


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims(token: str, keys: list[Jwk]) -> dict[str, Any]:
    """What a verdict says, read by RFC 7515 and 8037 alone. Raises `StopIteration` or `InvalidSignature`."""
    head, body, signature = token.split(".")
    header = json.loads(decoded(head))
    assert {name: header[name] for name in ("alg", "typ")} == {"alg": "EdDSA", "typ": "svc-verdict+jwt"}
    key = next(key for key in keys if key["kid"] == header["kid"])
    Ed25519PublicKey.from_public_bytes(decoded(key["x"])).verify(decoded(signature), f"{head}.{body}".encode())
    return json.loads(decoded(body))


async def published(live: Live, organization: str | None = None) -> list[Jwk]:
    response = await live.client.get(f"/api/v1/organizations/{organization or live.organization.id}/verdict-keys")
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "public, max-age=3600"
    return response.json()["keys"]


async def test_a_verdict_contains_the_response_and_its_audience(live: Live):
    answer = (await live.identify(live.issue()[1], verdict=True, tag="signup")).json()
    keys = await published(live)
    said = claims(answer["verdict"], keys)
    now_s = live.clock.now_ms // 1000
    assert said == {
        "iss": "svc",
        "aud": live.organization.id,
        "sub": answer["visitor_id"],
        "jti": answer["request_id"],
        "iat": now_s,
        "exp": now_s + 300,
        "environment": "development",
        "platform": "web",
        "ip_address": "127.0.0.1",
        "origin": ORIGIN,
        "tag": "signup",
        **{name: answer[name] for name in ("visitor_is_new", "identifiable", "visitor_confidence", "proven")},
        **{name: answer[name] for name in ("suspect_score", "suspect_level")},
    }
    assert [set(key) for key in keys] == [{"kty", "crv", "x", "kid", "use", "alg"}] * 2


async def test_a_verdict_is_returned_only_on_request_and_not_with_a_duplicate(live: Live):
    key = live.issue()[1]
    for asked in ({}, {"verdict": False}):
        assert "verdict" not in (await live.identify(key, **asked)).json()
    once = {"idempotency-key": "a"}
    assert "verdict" in (await live.identify(key, headers=once, verdict=True)).json()
    again = (await live.identify(key, headers=once, verdict=True)).json()
    assert set(again) == {"request_id", "duplicate"}
    unscored = (await live.identify(key, TOO_LITTLE, headers={"user-agent": ""}, verdict=True)).json()
    said = claims(unscored["verdict"], await published(live))
    assert ("suspect_score" in said) == ("suspect_score" in unscored)
    assert_invalid(await live.identify(key, verdict="yes"), "verdict", "wrong_type")


async def test_a_rotated_key_is_published_before_it_signs_and_afterwards_for_the_requested_time(live: Live):
    key = live.issue()[1]
    admin = Automation(live, "admin")

    async def verdict() -> str:
        return (await live.identify(key, verdict=True)).json()["verdict"]

    before, first = await published(live), await verdict()
    answer = succeeded(await admin("POST", "/verdict-keys/rotate", {"previous_key_valid_hours": 2}))
    second, after = await verdict(), await published(live)
    assert answer["keys"] == after
    assert (after[0], after[2]) == (before[1], before[0])
    assert claims(second, before), "who read the keys before the rotation knows the new one"
    assert claims(first, after)
    with pytest.raises(InvalidSignature):
        claims(first, [{**after[1], "kid": before[0]["kid"]}])
    live.clock.advance(hours=2)
    with pytest.raises(StopIteration):
        claims(first, await published(live))
    assert (await admin("POST", "/verdict-keys/rotate", {"previous_key_valid_hours": 0})).status_code == 200
    assert len(await published(live)) == 2
    wrong = await admin("POST", "/verdict-keys/rotate", {"previous_key_valid_hours": 169})
    assert_invalid(wrong, "previous_key_valid_hours", "out_of_range")
    with live.found.store.read() as snapshot:
        records = [record for _, record in snapshot.scan(AUDIT)]
    made = [(record.action, record.subject, record.change) for record in records]
    assert made[-2:] == [
        ("rotateVerdictKey", live.organization.id, {"previous_key_valid_hours": hours}) for hours in (2, 0)
    ]


async def test_an_address_reads_published_keys_so_often_and_hinders_no_other(live: Live):
    """Decisions 4: they are open to all, and read from the store."""
    path = f"/api/v1/organizations/{live.organization.id}/verdict-keys"

    async def read(address: str) -> httpx.Response:
        return await live.client.get(path, headers={"x-forwarded-for": address})

    for _ in range(OPEN_READS_PER_S):
        assert (await read("203.0.113.7")).status_code == 200
    refused = await read("203.0.113.7")
    assert_error(refused, 429, "rate_limited")
    assert refused.headers["retry-after"] == "1"
    assert (await read("203.0.113.8")).status_code == 200
    live.clock.advance(seconds=1)
    assert (await read("203.0.113.7")).status_code == 200


async def test_organizations_have_their_own_keys_and_unknown_ones_have_none(live: Live):
    other = live.new_organization()
    theirs = {key["kid"] for key in await published(live, other.id)}
    assert theirs & {key["kid"] for key in await published(live)} == set()
    for unknown in ("org_AAAAAAAAAAAAAAAAAAAA", "x", other.id + "x", "x" * 600, "%ff%00"):
        assert_error(await live.client.get(f"/api/v1/organizations/{unknown}/verdict-keys"), 404, "not_found")


async def test_no_private_key_is_in_the_data_directory(live: Live, tmp_path: Path):
    await live.identify(live.issue()[1], verdict=True)
    signing = signing_key(verdict_key(live.found.pepper), live.organization.id, 1)
    secret = signing.private.private_bytes_raw()
    kept = contents(tmp_path)
    assert kept
    assert not [name for name, content in kept.items() if secret in content]


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.rglob("*") if file.is_file()}
