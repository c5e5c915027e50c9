"""Interface 2 (conventions), 2.12, 7 and 9.1; decisions 1: what holds for every request and every answer."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import pytest
import trio

from svc.command.output import CommandError
from svc.features.keys.command import check_name as check_key_name
from svc.features.organizations.command import check_name as check_organization_name
from svc.features.views.tables import is_name
from svc.kernel.tenants.queries import organization
from svc.kernel.tenants.tables import ORGANIZATIONS
from tests.spec.automation import Automation
from tests.spec.people import add_member
from tests.spec.responses import (
    BROWSER,
    IDENTIFY,
    VISITOR_ID,
    assert_error,
    assert_invalid,
    assert_request_id,
    body_of,
    nothing_stored,
    post,
    visit,
)
from tests.support.live import ORIGIN, Live, report

pytestmark = pytest.mark.any_store

INVISIBLE = [" ", "\n", "\u3000", "\u200b", "\u202e\ufeff", "\xad \u2060", "\u3164", "\u2800\ufe0f", "\u115f\u034f"]
SEEN = ["a", "\u200ba", "\u0628", "\u5b57", "\U0001f469\u200d\U0001f4bb", "\u0301e", "-"]
"""Names that people can tell from none."""


async def test_request_ids_are_uuids_of_version_7_and_sort_by_time(live: Live, key: str):
    """Interface 2, decisions 1.1."""
    ids: list[str] = []
    for device in range(3):
        ids.append((await visit(live, key, report(device))).json()["request_id"])
        live.clock.advance(seconds=0.001)
    for request_id in ids:
        assert_request_id(request_id)
    assert ids == sorted(ids)
    assert [request_id for request_id, _ in live.events()] == ids


async def test_ids_of_organizations_and_keys_have_a_prefix_and_those_of_visitors_have_none(live: Live):
    """Decisions 1.1."""
    key, secret = live.issue()
    answer = (await visit(live, secret)).json()
    assert re.fullmatch(r"org_[0-9A-Za-z]{20}", live.organization.id)
    assert re.fullmatch(r"key_[0-9A-Za-z]{20}", key.id)
    assert VISITOR_ID.fullmatch(answer["visitor_id"])


async def test_a_name_that_nobody_could_see_is_refused(live: Live):
    """Of keys, members and rules; of saved filters too, and commands have the same check."""
    admin, rules = Automation(live), [{"condition": "score > 90", "action": "review"}]
    member = f"/members/{add_member(live).id}"
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/sdk-keys", {"environment": "staging"}),
        ("POST", "/proxy-credentials", {"environment": "staging"}),
        ("POST", "/members", {"email": "{}@shop.example", "role": "viewer"}),
        ("PATCH", member, {}),
    ]
    for at, name in enumerate(INVISIBLE):
        for method, path, body in asked:
            assert_invalid(await admin(method, path, body | {"name": name}), "name", "invalid_value")
        put = {"revision": 0, "rules": [rules[0] | {"name": name}]}
        assert_invalid(await admin("PUT", "/rules", put), "rules[0].name", "invalid_value")
        assert not is_name(name), at
        for check in (check_key_name, check_organization_name):
            with pytest.raises(CommandError, match="invisible"):
                check(name)
    for at, name in enumerate(SEEN):
        for method, path, body in asked:
            filled = body | ({"email": f"ada{at}@shop.example"} if "email" in body else {})
            assert (await admin(method, path, filled | {"name": name})).is_success, (path, name)
        put = {"revision": at, "rules": [rules[0] | {"name": name}]}
        assert (await admin("PUT", "/rules", put)).is_success, name
        assert check_key_name(name) == check_organization_name(name) == name


async def test_every_response_has_its_own_request_id(live: Live, key: str):
    """Interface 2, decisions 1.3: answers, errors, preflights, health, and what the edge itself refuses."""
    ask = live.client.request
    answers = [
        await visit(live, key),
        await visit(live, key, sdk=5),
        await visit(live, "svc_pk_nonsense"),
        await ask("GET", "/nowhere"),
        await ask("GET", IDENTIFY),
        await ask("OPTIONS", IDENTIFY, headers={"origin": ORIGIN}),
        await ask("OPTIONS", IDENTIFY),
        await ask("GET", "/healthz"),
        await ask("HEAD", "/healthz"),
        await ask("GET", "/readyz"),
        await live.raw(b"nonsense\r\n\r\n"),
    ]
    ids = [answer.headers["x-request-id"] for answer in answers]
    for request_id in ids:
        assert_request_id(request_id)
    assert len(set(ids)) == len(ids)


async def test_the_request_id_of_identify_is_also_its_header(live: Live, key: str):
    """Decisions 1.3, duplicates included: their `request_id` is that of the first."""
    for _ in range(2):
        response = await visit(live, key, headers={"idempotency-key": "a"})
        assert response.headers["x-request-id"] == response.json()["request_id"]
        assert response.headers.get_list("x-request-id") == [response.json()["request_id"]]


async def test_json_is_accepted_with_any_parameter_of_its_media_type(live: Live, key: str):
    """Decisions 1.4."""
    for content_type in (
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=UTF-8",
        "application/json ;a=b",
    ):
        assert (await post(live, key, body_of(), content_type=content_type)).status_code == 200


async def test_another_media_type_is_refused(live: Live, key: str):
    """Decisions 1.4: `415`, whether the body would be readable or not."""
    with nothing_stored(live):
        for content_type in (
            "text/plain",
            "application/json+patch",
            "application/x-json",
            "application/x-www-form-urlencoded",
            "json",
            "*/*",
        ):
            for content in (body_of(), b"nonsense", b""):
                assert_error(await post(live, key, content, content_type=content_type), 415, "unsupported_media_type")


async def test_a_missing_media_type_is_refused_and_an_empty_body_is_only_invalid_json(live: Live, key: str):
    """Decisions 1.4: "an absent one on an empty body is fine"."""
    head = f"POST {IDENTIFY} HTTP/1.1\r\nhost: x\r\nconnection: close\r\norigin: {ORIGIN}\r\nx-api-key: {key}\r\n"
    body = body_of()
    with nothing_stored(live):
        response = await live.raw(head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
        assert_error(response, 415, "unsupported_media_type")
        assert_invalid(await live.raw(head.encode() + b"content-length: 0\r\n\r\n"), "", "malformed_json")
        assert_invalid(await live.raw(head.encode() + b"\r\n"), "", "malformed_json")


@pytest.mark.parametrize(
    "types",
    [
        ("application/json", "text/plain"),
        ("text/plain", "application/json"),
        ("application/json; charset=utf-8", "text/plain"),
    ],
)
async def test_two_media_types_are_refused(live: Live, key: str, types: tuple[str, str]):
    """Decisions 1.4: a body that claims to be two things is not JSON only."""
    body = body_of()
    lines = [f"POST {IDENTIFY} HTTP/1.1", "host: x", "connection: close", f"origin: {ORIGIN}", f"x-api-key: {key}"]
    lines += [f"content-type: {name}" for name in types] + [f"content-length: {len(body)}", "", ""]
    with nothing_stored(live):
        assert_error(await live.raw("\r\n".join(lines).encode() + body), 415, "unsupported_media_type")


INVALID: list[tuple[bytes, str, str]] = [
    (body_of() + b"x", "", "malformed_json"),
    (b'{"sdk": {}, "signals": {"a": NaN}}', "", "malformed_json"),
    (b'{"sdk": {}, "sdk": {}, "signals": {}}', "sdk", "invalid_value"),
    (b'{"sdk": {}, "signals": {"a": %b1%b}}' % (b"[" * 31, b"]" * 31), "", "too_deep"),
    (b'{"sdk": {}, "signals": {"a": [%b]}}' % b",".join([b"1"] * 20_000), "", "out_of_range"),
    (b'{"sdk": {}}', "signals", "required"),
    (b'{"sdk": {"name": "a"}, "signals": {}}', "sdk.name", "unknown_field"),
    (b'{"sdk": {}, "signals": []}', "signals", "wrong_type"),
]


async def test_an_invalid_body_names_the_field_and_the_reason(live: Live, key: str):
    """Interface 2, 2.1; decisions 1.4, 1.5: `422`, never `400` or `500`. Each error: tests/http/test_body.py."""
    with nothing_stored(live):
        for content, field, issue in INVALID:
            assert_invalid(await post(live, key, content), field, issue)


async def test_no_value_in_a_report_causes_a_server_error(live: Live, key: str):
    """Decisions 1.4: never `400`, never `500`."""
    content = '{"sdk": {}, "signals": {"userAgent": %s, "screen": {"width": %s}, "fonts": [%s]}}'
    for value in ("1e999", "-1e999", "1" + "0" * 500, '"\\ud800"', '"\\u0000"', '""', "1e-999", "-0"):
        response = await post(live, key, (content % (value, value, value)).encode())
        assert response.status_code in (200, 422)
        assert response.headers["x-request-id"]


async def test_unknown_query_parameters_are_refused(live: Live, key: str):
    """Decisions 1.6: a mistyped filter must not silently do nothing."""
    headers = {"x-api-key": key, "origin": ORIGIN, "content-type": "application/json", **BROWSER}
    with nothing_stored(live):
        for query in ("a=1", "a", "a=", "a=1&b=2"):
            response = await live.client.post(f"{IDENTIFY}?{query}", content=body_of(), headers=headers)
            assert_invalid(response, "a", "unknown_field", "query")
    for path in ("/healthz", "/readyz", "/api/v1/healthz"):
        assert_invalid(await live.client.get(f"{path}?verbose=1"), "verbose", "unknown_field", "query")
    assert (await live.client.post(f"{IDENTIFY}?", content=body_of(), headers=headers)).status_code == 200


async def test_an_unknown_path_returns_404(live: Live):
    """Decisions 1.7; interface 9.1: the version is in the path."""
    for path in (
        "/index.html",
        "/identify",
        "/api/v1",
        "/api/v1/",
        "/api/v2/identify",
        "/api/v1/identify/",
        "/api/v1//identify",
        "/docs.php",
    ):
        for method in ("GET", "POST", "DELETE"):
            assert_error(await live.client.request(method, path), 404, "not_found")


async def test_an_escape_in_a_fixed_path_segment_returns_404(live: Live, management: str):
    """Decisions 1.7: a reverse proxy that closes a path by its beginning closes all of it."""
    for path in (
        "/api/v1/%6danagement/key",
        "/api%2fv1%2fhealthz",
        "/api/v1%2Fhealthz",
        "/%61pi/v1/identify",
        "/api/v1/management/%6Frganizations/org_x/webhooks",
        "/%64ocs",
    ):
        request = f"GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {management}\r\nconnection: close\r\n\r\n"
        assert_error(await live.raw(request.encode()), 404, "not_found")


async def test_escapes_in_variable_segments_are_decoded(live: Live, management: str):
    """Interface 4.4: they stand for the same identifier."""
    escaped = "".join(f"%{ord(letter):02x}" for letter in live.organization.id)
    for organization_id, status in ((escaped, 200), (escaped + "%2F", 404), ("%ff%00", 404)):
        path = f"/api/v1/management/organizations/{organization_id}/webhooks"
        request = f"GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {management}\r\nconnection: close\r\n\r\n"
        assert (await live.raw(request.encode())).status_code == status, path


MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/api/v1/attestation/challenge", 200), ("GET", "/api/v1/healthz", 200), ("GET", "/docs", 200)],
)
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_an_unexpected_body_is_ignored_up_to_one_mebibyte(
    live: Live, key: str, method: str, path: str, status: int, is_streamed: bool
):
    """Interface 8, decisions 9.3: whatever it is and claims to be; beyond that `413` and nothing is done."""
    headers = {"x-api-key": key, "origin": ORIGIN, "content-type": "text/plain", "content-encoding": "br"}

    async def parts(size: int) -> AsyncGenerator[bytes, None]:
        for start in range(0, size, MEBIBYTE // 8):
            yield bytes(min(MEBIBYTE // 8, size - start))

    def body(size: int) -> Any:
        return parts(size) if is_streamed else bytes(size)

    ask = partial(live.client.request, method, path, headers=headers)
    for size in (1, MEBIBYTE):
        assert (await ask(content=body(size))).status_code == status
    with nothing_stored(live):
        assert_error(await ask(content=body(MEBIBYTE + 1)), 413, "payload_too_large")
    assert (await ask()).status_code == status


async def test_an_unexpected_body_over_the_limit_is_refused_by_its_length(live: Live, key: str):
    """Decisions 9.3."""
    head = f"POST /api/v1/attestation/challenge HTTP/1.1\r\nhost: x\r\norigin: {ORIGIN}\r\nx-api-key: {key}\r\n"
    with nothing_stored(live):
        assert_error(await live.raw(f"{head}content-length: {MEBIBYTE + 1}\r\n\r\n".encode()), 413, "payload_too_large")


async def test_a_wrong_method_returns_405_with_the_allowed_ones(live: Live):
    """Decisions 1.7."""
    for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE"):
        response = await live.client.request(method, IDENTIFY)
        assert response.status_code == 405
        assert response.headers["allow"] == "OPTIONS, POST"
        if method != "HEAD":
            assert_error(response, 405, "method_not_allowed")
    for lower in (f"post {IDENTIFY}", "get /healthz", "get /docs", "head /docs/", "get /api/v1/openapi.json"):
        response = await live.raw(f"{lower} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        assert_error(response, 405, "method_not_allowed")
    for path in ("/healthz", "/readyz", "/api/v1/healthz", "/api/v1/readyz"):
        for method in ("POST", "OPTIONS", "DELETE"):
            response = await live.client.request(method, path)
            assert_error(response, 405, "method_not_allowed")
            assert "GET" in response.headers["allow"].split(", ")


@pytest.mark.served(request_timeout_s=0.05)
async def test_an_incomplete_body_gets_a_408_with_cors_headers(live: Live, key: str):
    """Decisions 1.7: `408 request_timeout`, with the CORS headers of the client API (3.11)."""
    head = f"POST {IDENTIFY} HTTP/1.1\r\nhost: x\r\norigin: {ORIGIN}\r\nx-api-key: {key}\r\n"
    more = "content-type: application/json\r\ncontent-length: 100\r\n\r\n{"
    with nothing_stored(live):
        response = await live.raw((head + more).encode())
        assert_error(response, 408, "request_timeout")
        assert response.headers["access-control-allow-origin"] == ORIGIN


async def test_invalid_http_gets_the_error_body_too(live: Live):
    """Interface 2.12, decisions 1.7: all errors, those of the edge included."""
    assert_error(await live.raw(b"nonsense\r\n\r\n"), 400, "bad_request")
    large = b"GET /healthz HTTP/1.1\r\nhost: x\r\nfiller: " + b"x" * 20_000 + b"\r\n\r\n"
    assert_error(await live.raw(large), 431, "header_fields_too_large")


@pytest.mark.every_case
async def test_an_internal_error_reveals_nothing(live: Live, key: str):
    """Decisions 1.7: `500 internal_error`. Here the organization of a valid key is gone from the store."""
    number = live.organization.number
    with live.found.store.read() as snapshot:
        kept = organization(snapshot, number)
    live.found.store.write_now([lambda transaction: transaction.delete(ORGANIZATIONS, number)])
    response = await visit(live, key)
    live.found.store.write_now([lambda transaction: transaction.put(ORGANIZATIONS, (number,), kept)])
    message = assert_error(response, 500, "internal_error")
    for inside in ("Traceback", "LookupError", "organization", str(number), key):
        assert inside not in message
    assert response.headers["access-control-allow-origin"] == ORIGIN
    assert (await visit(live, key)).status_code == 200


async def test_without_a_valid_key_nothing_about_the_body_is_revealed(live: Live):
    """Decisions 1.8: the key comes before body size, encoding, JSON, fields and query."""
    key, revoked = live.issue()
    live.revoke(key)
    _, native = live.issue(platforms=("ios",))
    _, foreign = live.issue(allowed_origins=("https://other.example",))
    large = b" " * ((1 << 20) + 8192)
    with nothing_stored(live):
        for secret in (None, revoked, foreign, "svc_pk_nonsense"):
            for content, headers in (
                (b"nonsense", {}),
                (b"{}", {}),
                (large, {}),
                (body_of(), {"content_type": "text/plain"}),
                (body_of(), {"content_encoding": "br"}),
                (b"no gzip", {"content_encoding": "gzip"}),
                (body_of(), {"idempotency_key": "x" * 256}),
                (body_of(), {"x_svc_visitor_ip": "nonsense"}),
            ):
                assert_error(await post(live, secret, content, **headers), 401, "unauthorized")
        send = partial(live.client.post, headers={"x-api-key": native, "content-type": "application/json"})
        assert_error(await send(IDENTIFY, content=b"nonsense"), 401, "unauthorized")
        assert_error(await send(f"{IDENTIFY}?a=1", content=body_of()), 401, "unauthorized")


async def test_an_invalid_key_gets_a_response_before_its_body_has_arrived(live: Live):
    """Decisions 1.8."""
    head = f"POST {IDENTIFY} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n"
    with trio.fail_after(60):
        assert_error(await live.raw(head.encode()), 401, "unauthorized")


async def test_checks_run_in_the_order_size_encoding_json_fields(live: Live, key: str):
    """Decisions 1.8."""
    large = b"x" * ((1 << 20) + 8192)
    with nothing_stored(live):
        assert_error(await post(live, key, large, content_encoding="br", idempotency_key=""), 413, "payload_too_large")
        response = await post(live, key, b"nonsense", content_encoding="br", idempotency_key="")
        assert_error(response, 415, "unsupported_media_type")
        assert_invalid(await post(live, key, b"nonsense", idempotency_key=""), "", "malformed_json")
        assert_invalid(await post(live, key, b'{"sdk": {}, "sdk": 5, "signals": {"a": NaN}}'), "", "malformed_json")
