"""The client library for Python, against a running service over loopback: blocking, under trio and under asyncio."""

from __future__ import annotations

import asyncio
import base64
import pickle
import socket
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpcore
import httpx
import pytest
import trio
from svc_client import (
    UNSET,
    ApiError,
    AsyncClient,
    Client,
    Retries,
    UnreachableError,
    WebhookError,
    decide,
    verify_webhook,
    visitor_headers,
)
from svc_client.deadlines import with_deadlines

from tests.clients.cases import ABOUT, NEVER, PRINTED, UNPRINTABLE, checks
from tests.clients.vectors import cases
from tests.spec.responses import BROWSER, DRIVEN, HEADLESS, TOO_LITTLE
from tests.spec.subscriber import URL, subscribing
from tests.support.live import ORIGIN, live_service, mistyped, report
from tests.support.ports import free_port

AT_ONCE = Retries(first_wait_s=0)


class Network(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """The network to a service, which loses the answers of the first requests, or answers in its place."""

    def __init__(self, *, lost: int = 0, answers: tuple[httpx.Response, ...] = ()) -> None:
        self.lost, self.answers = lost, list(answers)
        self.sent: list[httpx.Request] = []
        self._transport = httpx.HTTPTransport(verify=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        if self.answers:
            return self.answers.pop(0)
        response = self._transport.handle_request(request)
        if len(self.sent) <= self.lost:
            response.close()
            raise httpx.ReadError("the connection was reset")
        return response

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        return self.answers.pop(0)

    def close(self) -> None:
        self._transport.close()


def through(network: Network) -> httpx.Client:
    return httpx.Client(transport=network)


def refusal(status: int, code: str = "service_unavailable", **headers: str) -> httpx.Response:
    error = {"error": {"code": code, "message": "Later.", "status": status}, "request_id": NEVER}
    return httpx.Response(status, json=error, headers={name.replace("_", "-"): v for name, v in headers.items()})


async def in_thread(function: Callable[[], Any]) -> Any:
    return await trio.to_thread.run_sync(function)


# Checks


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


@pytest.mark.slow
async def test_one_call_verifies_that_an_event_belongs_to_its_action(tmp_path: Path):
    async with live_service(tmp_path) as live:
        request_id = (await live.identify(live.issue()[1], **ABOUT)).json()["request_id"]
        secret = live.issue("secret")[1]
        cases = checks(request_id, live.clock.now_ms)
        used: set[str] = set()

        def is_first_use(request_id: str) -> bool:
            is_new = request_id not in used
            used.add(request_id)
            return is_new

        async def is_first_use_later(request_id: str) -> bool:
            await trio.lowlevel.checkpoint()
            return is_first_use(request_id)

        def asked() -> list[str | None]:
            with Client(live.url, secret) as client:
                return [
                    client.check(
                        case.pop("id"), **{**case, "now": moment(case["now"])}, is_first_use=is_first_use
                    ).problem
                    for case in (dict(case) for case, _ in cases)
                ]

        expected = [problem for _, problem in cases]
        assert await in_thread(asked) == expected
        used.clear()
        async with AsyncClient(live.url, secret) as client:
            for case, problem in cases:
                given = {**case, "now": moment(case["now"])}
                checked = await client.check(given.pop("id"), **given, is_first_use=is_first_use_later)
                assert checked.problem == problem, case
                if problem is not None:
                    assert checked.decision == "refuse"


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_blocking_client_takes_no_coroutine_for_a_first_use():
    """It would be true for each use."""

    async def is_first_use(_: str) -> bool:
        return False

    event = {**SEEN, "request_id": NEVER}
    with through(Network(answers=(httpx.Response(200, json=event),))) as http:
        client, now = (
            Client("http://127.0.0.1:9", "svc_sk_key", http=http),
            datetime.fromisoformat(event["occurred_at"]),
        )
        given: dict[str, Any] = {"origin": event.get("origin"), "tag": event.get("tag"), "is_first_use": is_first_use}
        with pytest.raises(TypeError, match="AsyncClient"):
            client.check(NEVER, **given, now=now)


@pytest.mark.slow
async def test_an_account_is_set_on_an_event_and_removed(tmp_path: Path):
    async with live_service(tmp_path) as live:
        request_id = (await live.identify(live.issue()[1], action="sign_up", tag="t")).json()["request_id"]
        changes: list[dict[str, Any]] = [
            {"account_id": "a"}, {}, {"account_id": UNSET, "tag": None}, {"account_id": None},
        ]  # fmt: skip
        secret = live.issue("secret")[1]
        async with AsyncClient(live.url, secret) as client:
            told = [await client.update_event(request_id, **change) for change in changes]

        def blocking() -> tuple[Any, Any]:
            with Client(live.url, secret) as client:
                set_again = client.update_event(request_id, account_id="b", action="log_in")
                given: dict[str, Any] = {"origin": ORIGIN, "ip": None, "tag": None, "is_first_use": lambda _: True}
                checked = client.check(request_id, account_id="a", now=moment(live.clock.now_ms), **given)
                return set_again, checked

        set_again, checked = await in_thread(blocking)
    named = [[event.get(name) for name in ("account_id", "account_verified", "action", "tag")] for event in told]
    assert named == [
        ["a", True, "sign_up", "t"],
        ["a", True, "sign_up", "t"],
        ["a", True, "sign_up", None],
        [None, None, "sign_up", None],
    ]
    assert (set_again["account_id"], set_again["action"], checked.problem) == ("b", "log_in", "other_account")
    assert checked.event is not None
    assert checked.event["velocity"]["visitor"]["events"]["1h"] == 1


@pytest.mark.slow
async def test_a_check_names_its_error_and_an_unreachable_address_is_its_own_error(tmp_path: Path):
    async with live_service(tmp_path) as live:
        request_id = (await live.identify(live.issue()[1])).json()["request_id"]
        given: dict[str, Any] = {"origin": ORIGIN, "tag": None, "is_first_use": lambda _: True}
        async with AsyncClient(live.url, mistyped(live.issue("secret")[1])) as stranger:
            with pytest.raises(ApiError) as refused:
                await stranger.check(request_id, ip=None, **given)
        assert (refused.value.status, refused.value.code) == (401, "unauthorized")
        assert refused.value.request_id is not None
        async with AsyncClient(live.url, live.issue("secret")[1]) as client:
            with pytest.raises(ValueError, match="address"):
                await client.check(request_id, ip="nowhere", **given, now=moment(live.clock.now_ms))


SEEN: dict[str, Any] = next(case["given"]["event"] for case in cases("check") if case["kind"] == "check")


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, content=b"[" * 100_000),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={}),
        *(httpx.Response(200, json={**SEEN, name: value}) for name, value in [
            ("occurred_at", 7), ("occurred_at", "2026-03-01"), ("ip_address", None), ("platform", ["web"]),
            ("identifiable", "yes"), ("visitor_confidence", "100"), ("visitor_confidence", True), ("origin", {}),
            ("decision", "block"), ("decision", {"action": "block"}), ("decision", {"action": 1, "rule": "r"}),
        ]),
        httpx.Response(429, json={"error": 1}, headers={"retry-after": "9" * 5_000}),
        httpx.Response(422, json={"error": {"code": "c", "message": "m", "details": 7}}),
    ],
)  # fmt: skip
def test_what_has_not_the_form_of_an_event_is_an_unexpected_response(answer: httpx.Response):
    """Decisions 20."""
    with through(Network(answers=(answer,))) as http:
        client = Client("http://127.0.0.1:9", "svc_sk_key", http=http, retries=Retries(attempts=1))
        with pytest.raises(ApiError) as refused:
            client.check(NEVER, origin=None, tag=None, ip="127.0.0.1", is_first_use=lambda _: True)
    assert refused.value.code == "unexpected_response"


def test_a_body_that_cannot_be_unpacked_is_an_unexpected_response():
    class Garbled(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, stream=httpx.ByteStream(b"no gzip"), headers={"content-encoding": "gzip"})

    with httpx.Client(transport=Garbled()) as http:
        client = Client("http://127.0.0.1:9", "svc_sk_key", http=http, retries=AT_ONCE)
        with pytest.raises(ApiError, match="unexpected_response"):
            client.check(NEVER, origin=None, tag=None, is_first_use=lambda _: True)


@pytest.mark.slow
async def test_new_visitors_are_challenged_and_only_suspects_refused(tmp_path: Path):
    async with live_service(tmp_path) as live:
        key = live.issue()[1]
        async with AsyncClient(live.url, live.issue("secret")[1]) as client:
            decisions = []
            for signals, headers in (
                (report(1), BROWSER),
                (report(1), BROWSER),
                (TOO_LITTLE, BROWSER),
                (report(1, **DRIVEN), HEADLESS),
            ):
                answer = (await live.identify(key, signals, headers=headers)).json()
                decisions.append(decide(await client.get_event(answer["request_id"])))
    assert decisions == ["verify", "accept", "verify", "refuse"]


# Calls


@pytest.mark.slow
async def test_a_server_identifies_and_a_lost_response_does_not_create_another_event(tmp_path: Path):
    async with live_service(tmp_path) as live:
        secret = live.issue("secret")[1]
        network = Network(lost=1)

        def asked() -> Any:
            with through(network) as http:
                client = Client(live.url, secret, http=http, retries=AT_ONCE)
                return client.identify(sdk={"platform": "web"}, signals=report(), tag="é", visitor_ip="81.2.69.160")

        answer = await in_thread(asked)
        ((request_id, event),) = live.events()
        assert (answer["request_id"], answer["duplicate"]) == (request_id, True)
        assert (answer["visitor_is_new"], answer["suspect_level"]) == (True, "low"), "the whole response of the first"
        assert event.tag == "é"
        assert len({request.headers["idempotency-key"] for request in network.sent}) == 1
        assert len(network.sent) == 2


@pytest.mark.slow
async def test_events_are_read_page_by_page_with_filters(tmp_path: Path):
    async with live_service(tmp_path) as live:
        key, secret = live.issue()[1], live.issue("secret")[1]
        made = [(await live.identify(key, tag="a&b=c")).json()["request_id"] for _ in range(5)]
        other = (await live.identify(key, tag="other")).json()["request_id"]
        begin = moment(live.clock.now_ms - 60_000).isoformat()
        given: dict[str, Any] = {"tag": "a&b=c", "limit": 2, "from_": begin}
        async with AsyncClient(live.url, secret) as client:
            assert [row["request_id"] async for row in client.iterate_events(**given)] == made[::-1]
            with pytest.raises(ApiError) as refused:
                await client.list_events(limit=0)
        assert refused.value.details == [{"field": "limit", "issue": "out_of_range", "location": "query"}]

        def read() -> list[str]:
            with Client(live.url + "/", secret) as client:
                return [row["request_id"] for row in client.iterate_events(**given)]

        assert await in_thread(read) == made[::-1]
        live.clock.now_ms += 2_000

        read_later: dict[str, Any] = {"ip_address": "127.0.0.1", "limit": 2, "from_": begin}

        def feed() -> list[list[str]]:
            with Client(live.url, secret) as client:
                pages = client.iterate_feed(follow=False, **read_later)
                return [[row["request_id"] for row in page["rows"]] for page in pages]

        fed = [made[:2], made[2:4], [made[4], other], []]
        assert await in_thread(feed) == fed
        async with AsyncClient(live.url, secret) as client:
            pages = [page async for page in client.iterate_feed(follow=False, **read_later)]
            assert [[row["request_id"] for row in page["rows"]] for page in pages] == fed
            resumed = client.iterate_feed(after=pages[0].get("next_cursor"), follow=False)
            assert (await anext(resumed))["rows"][0] == pages[1]["rows"][0]

            await client.update_event(made[0], label="fraud")
            live.clock.now_ms += 2_000
            changed = [page async for page in client.iterate_changes(follow=False, limit=4)]
            found = [[(change["type"], change["request_id"]) for change in page["changes"]] for page in changed]
            created = [("event.created", one) for one in (*made, other)]
            assert found == [created[:4], [*created[4:], ("event.updated", made[0])]]
            again = client.iterate_changes(after=changed[0]["next_cursor"], poll_s=0)
            assert (await anext(again))["changes"] == changed[1]["changes"]
            assert (await anext(again))["changes"] == [], "it looks again"

        def changes() -> list[Any]:
            with Client(live.url, secret) as client:
                return list(client.iterate_changes(follow=False, limit=4))

        assert await in_thread(changes) == changed


@pytest.mark.slow
async def test_the_management_api_also_works_under_asyncio(tmp_path: Path):
    async with subscribing(tmp_path) as subscriber:
        live = subscriber.live
        management = live.issue("management", role="admin")[1]

        async def managed() -> Any:
            async with AsyncClient(live.url, management) as client:
                organization = (await client.get_management_key())["organization_id"]
                issued = await client.issue_sdk_key(organization, name="a", environment="staging", kind="secret")
                await client.revoke_sdk_key(organization, issued["key"]["id"])
                with pytest.raises(ApiError, match="409 sdk_key_revoked"):
                    await client.revoke_sdk_key(organization, issued["key"]["id"])
                endpoint = await client.create_webhook(
                    organization, url=URL, environment="live", events=["identification.completed"], description=""
                )
                webhook_id = endpoint["endpoint"]["id"]
                await client.test_webhook(organization, webhook_id)
                assert await client.delete_webhook(organization, webhook_id) is None
                with pytest.raises(ValueError, match="not an identifier"):
                    await client.delete_webhook(organization, "..")
                return [key["status"] for key in (await client.list_sdk_keys(organization))["keys"]]

        statuses = await in_thread(lambda: asyncio.run(managed()))
        assert "revoked" in statuses


@pytest.mark.slow
async def test_a_delivery_of_the_service_is_authentic(tmp_path: Path):
    async with subscribing(tmp_path) as subscriber:
        _, secret = await subscriber.create()
        (post,) = await subscriber.happen()
        now = subscriber.live.clock.now_ms / 1000
        event = verify_webhook(post.body, post.headers, secret, now=now)
        assert (event["type"], event["id"]) == ("identification.completed", post.headers["X-Svc-Event-ID"])
        assert event["data"]["origin"] == ORIGIN


def test_a_header_that_is_no_text_is_not_authentic():
    """As aiohttp has one of other bytes, and a receiver that picks its headers one that is missing."""
    given = cases("webhook")[0]["given"]
    for change in ({"X-Svc-Signature": "\udcff"}, {"X-Svc-Signature": None}, {"X-Svc-Timestamp": None}):
        with pytest.raises(WebhookError):
            verify_webhook(
                base64.b64decode(given["body"]), {**given["headers"], **change}, given["secrets"], now=given["now_s"]
            )


def test_a_key_that_was_read_from_a_file_works_and_a_wrong_one_is_not_repeated():
    network = Network(answers=(httpx.Response(200, json={}),))
    Client("http://127.0.0.1:1/api/v1/", " svc_sk_key\n", http=through(network)).get_health()
    assert network.sent[0].headers["x-api-key"] == "svc_sk_key"
    assert "/api/v1/api" not in network.sent[0].url.path
    for wrong in ("", "svc_sk_one\nsvc_sk_two", "svc_sk_é"):
        with pytest.raises(ValueError, match="api_key") as refused:
            Client("http://127.0.0.1:1", wrong)
        assert "sk_o" not in str(refused.value)
    with pytest.raises(ValueError, match=r"https://id\.shop\.example, not 'id\.shop\.example'"):
        AsyncClient("id.shop.example", "svc_sk_key")
    for broken in ("https://", "https://[::1", "https://a..b", f"https://{'a' * 64}.example", "http://127.0.0.1:99999"):
        with pytest.raises(ValueError, match="address of the service"):
            Client(broken, "svc_sk_key")


def test_errors_are_handed_on_by_a_pool_of_processes():
    """Whose other tasks fail, too, where one raises what cannot be restored."""
    detail = {"field": "label", "issue": "invalid_value", "location": "body"}
    for error in (
        ApiError(422, "validation_error", "Wrong.", details=[detail], request_id=NEVER, retry_after_s=2),
        UnreachableError("no response", was_sent=True),
        WebhookError("the body is not an event"),
    ):
        restored = pickle.loads(pickle.dumps(error))
        assert (type(restored), str(restored), vars(restored)) == (type(error), str(error), vars(error))


# Attempts


@pytest.mark.parametrize(
    ("method", "answers", "attempts"),
    [
        ("get_health", (503,), 2),
        ("get_health", (500, 502), 3),
        ("get_health", (408,), 2),
        ("test_webhook", (429,), 2),
        ("test_webhook", (503,), 1),
        ("test_webhook", (500,), 1),
        ("get_health", (404,), 1),
        ("get_health", (503, 503, 503), 3),
    ],
)
def test_a_call_is_retried_only_where_that_can_help_and_is_safe(method: str, answers: tuple[int, ...], attempts: int):
    network = Network(answers=(*map(refusal, answers), httpx.Response(200, json={})))
    client = Client("http://127.0.0.1:1", "key", http=through(network), retries=AT_ONCE)
    arguments = ("org", "whk") if method == "test_webhook" else ()
    if attempts > len(answers):
        assert getattr(client, method)(*arguments) == {}
    else:
        with pytest.raises(ApiError):
            getattr(client, method)(*arguments)
    assert len(network.sent) == attempts


async def test_waiting_between_attempts_uses_no_thread(autojump_clock: trio.testing.MockClock):
    network = Network(answers=(refusal(429, "rate_limited", retry_after="2"), httpx.Response(200, json={})))
    client = AsyncClient("http://127.0.0.1:1", "key", http=httpx.AsyncClient(transport=network))
    began = trio.current_time()
    assert await client.test_webhook("org", "whk") == {}
    assert 2 <= trio.current_time() - began <= 2.1


async def test_a_refused_connection_raises_an_error_that_says_nothing_was_sent():
    url = f"http://127.0.0.1:{free_port()}"
    async with AsyncClient(url, "key", retries=AT_ONCE) as client:
        with pytest.raises(UnreachableError) as unreachable:
            await client.test_webhook("org", "whk")
    assert not unreachable.value.was_sent
    assert str(unreachable.value).startswith(f"no response from {url}: ")


async def test_an_alert_of_tls_instead_of_a_response_is_an_error_of_the_library():
    """Under asyncio httpx lets it pass as it is."""

    async def alert(_: httpx.Request) -> httpx.Response:
        raise ssl.SSLError(1, "tlsv13 alert certificate required")

    http = httpx.AsyncClient(transport=httpx.MockTransport(alert))
    with pytest.raises(UnreachableError, match="certificate required") as unreachable:
        await AsyncClient("https://127.0.0.1:1", "key", http=http).test_webhook("org", "whk")
    assert unreachable.value.was_sent


@pytest.mark.parametrize("answer", [
    httpx.Response(502, text="<html>"), httpx.Response(400, json={"error": "no"}), httpx.Response(400, json=[1]),
    httpx.Response(302, headers={"location": "/"}), httpx.Response(200, text="hello"),
])  # fmt: skip
def test_an_unexpected_response_raises_an_error(answer: httpx.Response):
    client = Client("http://127.0.0.1:1", "key", http=through(Network(answers=(answer,))), retries=Retries(attempts=1))
    with pytest.raises(ApiError, match="unexpected_response") as refused:
        client.get_health()
    assert refused.value.status == answer.status_code


def test_a_visitor_can_put_nothing_into_a_call_that_is_not_sent():
    network = Network(answers=tuple(httpx.Response(200, json={}) for _ in range(2)))
    with through(network) as http:
        client = Client("http://127.0.0.1:9", "svc_sk_key", http=http)
        given: dict[str, Any] = {"sdk": {"platform": "web"}, "signals": {"a": "\ud800", "b": float("nan")}}
        client.identify(**given, visitor_user_agent=UNPRINTABLE, idempotency_key="M\u00fc")
        client.identify(**given, visitor_user_agent="\udce9", idempotency_key="M\u00f6")
    sent = [(one.headers["x-svc-visitor-user-agent"], one.headers["idempotency-key"]) for one in network.sent]
    assert sent == [(PRINTED, "M%C3%BC"), ("%ED%B3%A9", "M%C3%B6")]
    assert b'"\\ud800"' in network.sent[0].content
    assert network.sent[0].headers["content-type"] == "application/json"


async def test_forwarded_headers_are_accepted(tmp_path: Path):
    passed_on = [case["given"] for case in cases("check") if case["kind"] == "visitor_headers"]
    async with live_service(tmp_path) as live:
        _, secret = live.issue("secret")

        def send() -> None:
            with Client(live.url, secret) as client:
                for headers in passed_on:
                    client.identify(
                        sdk={"platform": "web"}, signals=report(), visitor_ip="81.2.69.160", visitor_origin=ORIGIN,
                        visitor_headers=visitor_headers(headers),
                    )  # fmt: skip

        await in_thread(send)
        assert len(live.events()) == len(passed_on)


def test_all_addresses_of_a_host_have_one_deadline(monkeypatch: pytest.MonkeyPatch):
    """As of a name with IPv6 and IPv4, neither of which responds."""
    asked: list[str] = []
    clock_s = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[0])

    class Silent(httpcore.NetworkBackend):
        def connect_tcp(self, host: str, port: int, timeout: float | None = None, *_: Any) -> httpcore.NetworkStream:
            asked.append(host)
            clock_s[0] += timeout or 0
            raise httpcore.ConnectTimeout("timed out")

    both = [(0, 0, 0, "", (address, 443)) for address in ("2001:db8::1", "203.0.113.7")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    http = httpx.Client()
    http._transport._pool._network_backend = Silent()
    client = Client(
        "http://shop.example", "key", timeout_s=0.2, deadline_s=0.3, retries=AT_ONCE, http=with_deadlines(http)
    )
    began_s = clock_s[0]
    with pytest.raises(UnreachableError) as late:
        client.get_health()
    assert clock_s[0] - began_s == pytest.approx(0.3)
    assert not late.value.was_sent
    assert asked == ["2001:db8::1", "203.0.113.7"] * 2
