"""`@svc/fingerprint-compat`: results and errors of both agents, the adapter against a running service, and the package
as it is installed. What needs a browser is in tests/web.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from svc.identify.scoring.signals import CATALOG
from tests.clients.fingerprint import Compatible, changed, installed
from tests.spec.responses import BROWSER, DRIVEN, HEADLESS, TOO_LITTLE
from tests.support.live import PUBLIC_ADDRESS, Live, live_service, mistyped, report, succeeded
from tests.support.ports import free_port
from tools.node_client import FINGERPRINT_COMPAT as PACKAGE
from tools.web import WEB

pytestmark = pytest.mark.slow(5)


@pytest.fixture(scope="session")
def compat(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Compatible:
    return installed(tmp_path_factory, worker_id)


# The agents -----------------------------------------------------------------------------------------------------------

SEEN = {
    "request_id": "01993f0e-52a1-7c3d-9b52-6f1f3c0a9d11",
    "visitor_id": "0qppzPLvL54VURDkQrfS",
    "visitor_is_new": False,
    "identifiable": True,
    "visitor_confidence": 97,
    "suspect_score": 4,
    "triggers": [{"signal": "incognito", "group": "privacy", "weight": 4, "confidence": "medium"}],
}


async def told(compat: Compatible, script: str, *, required: bool = False) -> Any:
    """What a script returns that has both agents, with a web SDK that says what it was told: `given` are the options
    of `load` and `identify`, `answers` what it resolves with, or rejects with if that is an error.
    """
    stub = compat.folder / "node_modules" / "@svc" / "web"
    stub.mkdir(parents=True, exist_ok=True)
    (stub / "package.json").write_text('{"name": "@svc/web", "type": "module", "exports": "./index.js"}')
    (stub / "index.js").write_text(
        """
        export const given = [], answers = [];
        const answer = () => {
          const next = answers.shift();
          if (next instanceof Error) throw next;
          return next;
        };
        export function load(options) {
          given.push(options);
          if (answers[0] instanceof Error && answers[0].atLoad) answer();
          return { identify: async (asked) => { given.push(asked); return answer(); } };
        }
        """
    )
    imports = """
        import FingerprintJS, * as v3 from "@svc/fingerprint-compat/v3";
        import Default, * as Fingerprint from "@svc/fingerprint-compat/v4";
    """
    requires = """
        import { createRequire } from "node:module";
        const require = createRequire(import.meta.url);
        const v3 = require("@svc/fingerprint-compat/v3"), FingerprintJS = v3.default;
        const Fingerprint = require("@svc/fingerprint-compat/v4"), Default = Fingerprint.default;
    """
    return await compat.run(
        f"""
        import {{ answers, given }} from "@svc/web";
        {requires if required else imports}
        const SEEN = {json.dumps(SEEN)}, apiKey = "svc_pk_us_development_x";
        const refused = (code, more = {{}}) => Object.assign(new Error(code), {{ name: "SvcError", code, ...more }});
        const main = async () => {{ {script} }};
        console.log(JSON.stringify(await main()));
        """
    )


async def test_agent_v3_has_its_results(compat: Compatible):
    found = await told(
        compat,
        """
        const late = { request_id: SEEN.request_id, duplicate: true };
        answers.push(SEEN, SEEN, { ...SEEN, visitor_is_new: true, visitor_confidence: 0 });
        answers.push({ ...SEEN, identifiable: false }, late);
        const endpoint = ["https://id.shop.example", FingerprintJS.defaultEndpoint];
        const agent = await FingerprintJS.load({ apiKey, endpoint, region: "eu", storageKey: "_vid" });
        const told = [await agent.get({ linkedId: 7, tag: { a: [1] }, timeout: 5, products: [] })];
        told.push(await agent.get({ extendedResult: true, tag: "t", linkedId: "" }));
        for (let left = 3; left > 0; left -= 1) told.push(await agent.get());
        await agent.collect().catch((error) => told.push(error.message));
        return { told, given };
        """,
    )
    first, extended, new, unknown, late, collected = found["told"]
    assert collected == "Request failed"
    assert first == {
        "requestId": SEEN["request_id"],
        "visitorId": SEEN["visitor_id"],
        "visitorFound": True,
        "confidence": {"score": 0.97},
    }
    assert extended == {
        **first,
        "incognito": True,
        **dict.fromkeys(("ip", "browserName", "browserVersion", "os", "osVersion", "device"), ""),
        "firstSeenAt": {"subscription": None, "global": None},
        "lastSeenAt": {"subscription": None, "global": None},
        "zeroTrust": extended["zeroTrust"],
    }
    assert set(extended["zeroTrust"]["hiddenFields"]) == set(extended) - set(first) - {"incognito", "zeroTrust"}
    assert (new["visitorFound"], new["confidence"]["score"], new["confidence"]["comment"]) == (
        False,
        0,
        "A new visitor",
    )
    assert unknown["visitorId"] == ""
    assert (late["visitorId"], late["confidence"]["score"]) == ("", 0)
    loaded, *asked = found["given"]
    assert loaded == {"apiKey": "svc_pk_us_development_x", "endpoint": ["https://id.shop.example"], "cache": False}
    assert asked[:3] == [{"accountId": "7", "tag": '{"a":[1]}', "timeoutMs": 5}, {"tag": "t"}, {}]


async def test_agent_v4_has_its_results(compat: Compatible):
    found = await told(
        compat,
        """
        const unknown = { request_id: SEEN.request_id, identifiable: false, visitor_id: "x", suspect_score: null };
        answers.push(SEEN, { ...SEEN, cached: true }, unknown);
        const cache = { storage: "sessionStorage", duration: "optimize-cost" };
        const endpoints = Fingerprint.withoutDefault("https://id.shop.example");
        const told = [await Fingerprint.start({ apiKey, endpoints }).get({ tags: true, tag: "no", action: "log_in" })];
        const caching = Default.start({ apiKey, endpoints: "/id", cache });
        told.push(await caching.get(), await caching.get());
        await caching.collect().catch((error) => told.push(error.code));
        return { told, given };
        """,
    )
    result = {
        "event_id": SEEN["request_id"],
        "visitor_id": SEEN["visitor_id"],
        "suspect_score": 4,
        "sealed_result": None,
    }
    unknown = {"event_id": SEEN["request_id"], "sealed_result": None, "cache_hit": False}
    assert found["told"] == [result, {**result, "cache_hit": True}, unknown, "failed"]
    assert found["given"][0] == {
        "apiKey": "svc_pk_us_development_x",
        "endpoint": ["https://id.shop.example"],
        "cache": False,
    }
    assert found["given"][1] == {"tag": "true", "action": "log_in"}
    assert found["given"][2]["cache"] == {"storage": "session", "durationMs": 3_600_000}


CODES = {
    "unauthorized": ("ERROR_API_KEY_INVALID", "public_api_key_not_found"),
    "rate_limited": ("ERROR_RATE_LIMIT", "too_many_requests"),
    "no_credit": ("ERROR_SUBSCRIPTION_NOT_ACTIVE", "subscription_not_active"),
    "billing_blocked": ("ERROR_SUBSCRIPTION_NOT_ACTIVE", "subscription_not_active"),
    "validation_error": ("ERROR_BAD_REQUEST_FORMAT", "request_cannot_be_parsed"),
    "invalid_options": ("ERROR_BAD_REQUEST_FORMAT", "request_cannot_be_parsed"),
    "payload_too_large": ("ERROR_BAD_REQUEST_FORMAT", "payload_too_large"),
    "network": ("ERROR_NETWORK_CONNECTION", "network_connection"),
    "offline": ("ERROR_NETWORK_CONNECTION", "network_connection"),
    "blocked_by_policy": ("ERROR_CSP_BLOCK", "csp_block"),
    "timeout": ("ERROR_CLIENT_TIMEOUT", "client_timeout"),
    "aborted": ("ERROR_NETWORK_ABORT", "network_abort"),
    "bad_response": ("ERROR_BAD_RESPONSE_FORMAT", "bad_response_format"),
    "service_unavailable": ("ERROR_GENERAL_SERVER_FAILURE", "failed"),
    "internal_error": ("ERROR_GENERAL_SERVER_FAILURE", "failed"),
}
"""Code of the web SDK or the service -> constant of v3, code of v4."""


@pytest.mark.parametrize("required", [False, True], ids=["import", "require"])
async def test_errors_have_the_names_of_each_agent(compat: Compatible, required: bool):
    found = await told(
        compat,
        f"""
        const named = ({{ message }}) =>
          Object.keys(v3).find((name) => v3[name] === message && FingerprintJS[name] === message);
        const old = await FingerprintJS.load({{ token: apiKey }}), current = Fingerprint.start({{ apiKey }});
        const told = {{}};
        for (const code of {json.dumps(list(CODES))}) {{
          answers.push(refused(code), refused(code, {{ requestId: "r" }}));
          const first = await old.get().catch((error) => [named(error), error.cause.code]);
          const second = await current.get().catch((error) =>
            [error.code, error.cause.code, error.event_id, error.name, Fingerprint.isFingerprintError(error)]);
          told[code] = [...first, ...second];
        }}
        return told;
        """,
        required=required,
    )
    assert found == {code: [old, code, new, code, "r", "FingerprintError", True] for code, (old, new) in CODES.items()}


async def test_wrong_options_are_named_when_the_agent_starts(compat: Compatible):
    found = await told(
        compat,
        """
        const told = [];
        const invalid = () => refused("invalid_options", { atLoad: true });
        const keys = [{}, { apiKey: 5 }, { apiKey: "svc_sk_us_production_x" }];
        const options = [...keys, { apiKey, endpoint: "no", endpoints: "no" }];
        for (const one of options) {
          if (one.endpoint) answers.push(invalid());
          const old = await FingerprintJS.load(one).catch((error) => error.message);
          if (one.endpoint) answers.push(invalid());
          try { Fingerprint.start(one); } catch (error) { told.push([old, error.code, error.event_id]); }
        }
        await FingerprintJS.load().catch((error) => told.push([error.message]));
        return told;
        """,
    )
    assert found == [
        ["API key required", "api_key_missing", None],
        ["API key not found", "api_key_invalid", None],
        ["API key not found", "api_key_invalid", None],
        ["The endpoint parameter is not a valid URL", "invalid_endpoint", None],
        ["API key required"],
    ]
    found = await told(
        compat,
        """
        const told = [];
        for (const duration of [0, 50_000, "long", NaN]) {
          const cache = { storage: "agent", duration };
          try { Fingerprint.start({ apiKey, cache }); } catch (error) { told.push(error.code); }
        }
        const circle = {}; circle.circle = circle;
        await Fingerprint.start({ apiKey }).get({ tag: circle }).catch((error) => told.push(error.code));
        return told;
        """,
    )
    assert found == ["cache_misconfigured"] * 4 + ["request_cannot_be_parsed"]


# The adapter ----------------------------------------------------------------------------------------------------------


@contextmanager
def adapting(compat: Compatible, url: str, options: str = "") -> Generator[httpx.Client]:
    """The adapter in front of a service, as a program of its own."""
    port = free_port()
    program = compat.folder / f"adapter-{port}.mjs"
    program.write_text(
        f"""
        import {{ createServer }} from "node:http";
        import {{ createEventsHandler }} from "@svc/fingerprint-compat/server";
        const handler = createEventsHandler({{ url: {json.dumps(url)}, {options} }});
        createServer((request, response) =>
          handler(request, response, request.url === "/own" ? () => response.end("own") : undefined),
        ).listen({port}, "127.0.0.1", () => console.log("ready"));
        """
    )
    process = subprocess.Popen(
        [str(compat.node.node), str(program)], env=compat.node.environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            yield client
        assert process.poll() is None, "a request ended the adapter"
    finally:
        process.kill()
        process.communicate()


async def read(client: httpx.Client, path: str, key: str | None, method: str = "GET") -> httpx.Response:
    """On another thread: the service runs on this one."""
    from trio import to_thread

    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return await to_thread.run_sync(lambda: client.request(method, path, headers=headers))


def error(response: httpx.Response) -> tuple[int, str]:
    assert set(response.json()) == {"error"}
    assert set(response.json()["error"]) == {"code", "message"}
    return response.status_code, response.json()["error"]["code"]


async def identified(
    live: Live, *, signals: Any = None, headers: dict[str, str] = BROWSER, **body: Any
) -> dict[str, Any]:
    """With an address that has network facts."""
    sent = {**headers, "x-forwarded-for": PUBLIC_ADDRESS}
    return succeeded(await live.identify(live.issue()[1], signals, headers=sent, **body))


async def test_an_event_has_the_form_of_the_server_api(compat: Compatible, tmp_path: Path):
    async with live_service(tmp_path) as live:
        secret = live.issue("secret")[1]
        await identified(live)
        now_ms = live.clock.now_ms
        live.clock.now_ms += 5_000
        seen = await identified(live, account_id="a", action="log_in", tag='{"form": "log_in"}')
        own = (await live.client.get(f"/api/v1/events/{seen['request_id']}", headers={"x-api-key": secret})).json()
        with adapting(compat, live.url + "/api/v1/", "firstSeen: true, velocity: true") as adapter:
            response = await read(adapter, f"/v4/events/{seen['request_id']}?ii=theirs", secret)
            assert (await read(adapter, "/own", None)).text == "own"
    assert response.status_code == 200
    event = response.json()
    score = seen["visitor_confidence"] / 100
    expected = {
        "event_id": seen["request_id"],
        "timestamp": now_ms + 5_000,
        "linked_id": "a",
        "tags": {"form": "log_in"},
        "url": "https://shop.example",
        "sdk": {"platform": "js", "version": "unknown"},
        "identification": {
            "visitor_id": seen["visitor_id"],
            "visitor_found": True,
            "confidence": {"score": score},
            "first_seen_at": now_ms,
        },
        "ip_address": PUBLIC_ADDRESS,
        "suspect_score": seen["suspect_score"],
        "bot": "not_detected",
        "velocity": {
            "events": {"1_hour": 2, "24_hours": 2},
            "ip_events": {"1_hour": 2, "24_hours": 2},
            "distinct_ip": {"1_hour": 1, "24_hours": 1},
            "distinct_linked_id": {"1_hour": 1, "24_hours": 1},
            "distinct_country": {"1_hour": 0, "24_hours": 0},  # without a database of countries
            "distinct_ip_by_linked_id": {"1_hour": 1, "24_hours": 1},
            "distinct_visitor_id_by_linked_id": {"1_hour": 1, "24_hours": 1},
        },
    }
    assert {name: event[name] for name in expected} == expected
    assert event["ip_info"]["v4"]["address"] == PUBLIC_ADDRESS
    assert event["ip_info"]["v4"]["datacenter_result"] is False
    assert event["browser_details"]["browser_name"] == own["agent"]
    assert event["browser_details"]["browser_major_version"] == own["agent_version"].split(".")[0]
    flags = {name for name, value in event.items() if value is True}
    assert flags == set()
    assert event["vpn_methods"] == dict.fromkeys(("timezone_mismatch", "public_vpn", "os_mismatch", "relay"), False)
    assert not {"rule_action", "suspect", "emulator", "jailbroken", "vpn_confidence", "proxy_details"} & set(event)


async def test_what_the_service_refuses_has_the_form_of_the_server_api(compat: Compatible, tmp_path: Path):
    never = "019b76da-a800-7000-8000-000000000000"
    async with live_service(tmp_path, read_rate=1) as live:
        secret = live.issue("secret")[1]
        public = live.issue()[1]
        request_id = (await identified(live))["request_id"]
        with adapting(compat, live.url) as adapter:
            found = [
                await read(adapter, f"/v4/events/{request_id}", None),
                await read(adapter, f"/v4/events/{request_id}", mistyped(secret)),
                await read(adapter, f"/v4/events/{request_id}", public),
                await read(adapter, "/v4/events/1708102555327.NLOjmg", secret),
                await read(adapter, "/v4/events/..%2fvisitors", secret),
                await read(adapter, f"/v4/events/{request_id.upper()}", secret),  # may have been used in the other case
                await read(adapter, f"/v4/events/{never}", secret),
                await read(adapter, f"/v4/events/{request_id}", secret, "PATCH"),
                await read(adapter, "/v4/events?limit=1", secret),
                await read(adapter, "/v4/visitors/x", secret, "DELETE"),
            ]
            nothing = await read(adapter, "/elsewhere", secret)
            limited = [await read(adapter, f"/v4/events/{never}", secret) for _ in range(3)]
        with adapting(compat, f"http://127.0.0.1:{free_port()}") as lonely:
            found.append(await read(lonely, f"/v4/events/{never}", secret))
    assert [error(one) for one in found] == [
        (403, "secret_api_key_required"),
        (403, "secret_api_key_not_found"),
        (403, "secret_api_key_not_found"),
        (400, "request_cannot_be_parsed"),
        (400, "request_cannot_be_parsed"),
        (400, "request_cannot_be_parsed"),
        (404, "event_not_found"),
        (403, "feature_not_enabled"),
        (403, "feature_not_enabled"),
        (403, "feature_not_enabled"),
        (503, "service_unavailable"),
    ]
    assert nothing.status_code == 404
    assert error(limited[-1]) == (429, "too_many_requests")
    assert int(limited[-1].headers["retry-after"]) > 0


async def test_an_event_that_was_not_asked_for_is_none(compat: Compatible, tmp_path: Path):
    """As of a cache that mistakes one for another."""
    async with live_service(tmp_path) as live:
        secret = live.issue("secret")[1]
        request_id = (await identified(live))["request_id"]
        event = (await live.client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": secret})).content

    class Cache(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(event)))
            self.end_headers()
            self.wfile.write(event)

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Cache) as cache:
        Thread(target=cache.serve_forever, daemon=True).start()
        with adapting(compat, f"http://127.0.0.1:{cache.server_port}") as adapter:
            asked = await read(adapter, f"/v4/events/{request_id}", secret)
            other = await read(adapter, "/v4/events/019b76da-a800-7000-8000-000000000000", secret)
        cache.shutdown()
    assert asked.json()["event_id"] == request_id
    assert error(other) == (500, "failed")


async def test_a_rule_and_a_label_are_read_from_the_event(compat: Compatible, tmp_path: Path):
    async with live_service(tmp_path) as live:
        secret, management = live.issue("secret")[1], live.issue("management")[1]
        place = f"/api/v1/management/organizations/{live.organization.id}/rules?environment=test"
        rules = [
            {"name": name, "action": name, "condition": f'action == "{name}"'} for name in ("block", "allow", "review")
        ]
        kept = (await live.client.get(place, headers={"x-api-key": management})).json()
        body = {"revision": kept["revision"], "rules": rules}
        assert (await live.client.put(place, json=body, headers={"x-api-key": management})).status_code == 200
        ids = [(await identified(live, action=action))["request_id"] for action in ("block", "allow", "review")]
        body = {"label": "fraud", "label_reason": "other"}
        labeled = await live.client.patch(f"/api/v1/events/{ids[0]}", json=body, headers={"x-api-key": secret})
        assert labeled.status_code == 200, labeled.text
        with adapting(compat, live.url) as adapter:
            asked = [(await read(adapter, f"/v4/events/{one}?ruleset_id=rs_1", secret)).json() for one in ids]
            plain = (await read(adapter, f"/v4/events/{ids[0]}", secret)).json()
    assert [one["rule_action"]["type"] for one in asked[:2]] == ["block", "allow"]
    assert "rule_action" not in asked[2]
    assert asked[0]["rule_action"]["ruleset_id"] == "rs_1"
    assert asked[0]["rule_action"]["rule_id"].startswith("rul_")
    assert ([one.get("suspect") for one in asked], "rule_action" in plain) == ([True, None, None], False)
    assert "velocity" not in plain
    assert "first_seen_at" not in plain["identification"]


async def test_a_driven_browser_is_a_bad_bot_and_too_little_identifies_nobody(compat: Compatible, tmp_path: Path):
    async with live_service(tmp_path) as live:
        secret = live.issue("secret")[1]
        driven = await identified(live, signals=report(1, **DRIVEN), headers=HEADLESS)
        nobody = await identified(live, signals=TOO_LITTLE)
        with adapting(compat, live.url, "firstSeen: true") as adapter:
            first, second = [
                (await read(adapter, f"/v4/events/{one['request_id']}", secret)).json() for one in (driven, nobody)
            ]
    assert first["bot"] == "bad"
    assert "identification" not in second


EVENT: dict[str, Any] = {
    "request_id": "r",
    "visitor_id": "v",
    "visitor_is_new": False,
    "identifiable": True,
    "visitor_confidence": 90,
    "state": "enriched",
    "occurred_at": "2026-01-01T00:00:00Z",
    "platform": "web",
    "sdk_platform": "web",
    "sdk_version": "1",
    "ip_address": "2001:db8::1",
    "suspect_score": 0,
    "signals": [],
}
FIRES: dict[str, dict[str, Any]] = {
    **{name: {"bot": "bad"} for name in ("automation", "headless", "bot_user_agent", "spoofed_crawler")},
    **{name: {"bot": "good"} for name in ("search_crawler", "ai_agent")},
    **{
        name: {"tampering": True}
        for name in ("browser_tampering", "os_mismatch", "engine_mismatch", "gpu_mismatch", "app_tampering")
    },
    "anti_detect_browser": {"tampering": True, "tampering_details": {"anti_detect_browser": True}},
    "tor": {"ip_blocklist": {"tor_node": True}, "vpn": None, "vpn_methods": None},
    "ip_attack_source": {"ip_blocklist": {"attack_source": True}},
    "ip_email_spam": {"ip_blocklist": {"email_spam": True}},
    "vpn_public": {"vpn": True, "vpn_methods": {"public_vpn": True}},
    "vpn_relay": {"vpn": True, "vpn_methods": {"relay": True}},
    "vpn_timezone_mismatch": {"vpn": True, "vpn_methods": {"timezone_mismatch": True}},
    "vpn_os_mismatch": {"vpn": True, "vpn_methods": {"os_mismatch": True}},
    "vpn_auxiliary_mobile": {"vpn": True, "vpn_methods": {"auxiliary_mobile": True}},
    **{f"vpn_{one}": {"vpn": True, "vpn_confidence": one, "vpn_methods": None} for one in ("low", "medium", "high")},
    "public_proxy": {"proxy": True, "proxy_details": {"proxy_type": "unknown"}},
    **{
        f"residential_proxy_{name}": {"proxy": True, "proxy_details": {"proxy_type": "residential"}}
        for name in ("listed", "behavior", "low", "medium", "high")
    },
    **{
        name: {name: True}
        for name in (
            *("incognito", "privacy_settings", "developer_tools", "virtual_machine", "emulator", "simulator"),
            *("cloned_app", "jailbroken", "frida", "mitm_attack", "location_spoofing", "replayed", "rare_device"),
        )
    },
    "rooted": {"root_apps": True},
    "high_activity": {"high_activity_device": True},
}
"""Signal -> what changes in the event."""
OF_BROWSERS = {"bot", "tampering_details", "rare_device"}
"""Fields that Fingerprint has for browsers alone."""


async def test_each_signal_is_one_field_on_the_platforms_that_know_it(compat: Compatible):
    found: Any = await compat.run(
        f"""
        import {{ toFingerprintEvent }} from "@svc/fingerprint-compat/server";
        const EVENT = {json.dumps(EVENT)}, told = {{}};
        for (const [platform, names] of Object.entries({json.dumps(_by_platform())})) {{
          for (const name of [null, ...names]) {{
            const signals = name === null ? [] : [{{ signal: name, confidence: "medium" }}];
            told[platform + " " + name] = toFingerprintEvent({{
              ...EVENT, platform, sdk_platform: platform, signals,
            }});
          }}
        }}
        console.log(JSON.stringify(told));
        """,
        "signals.mjs",
    )
    for platform, names in _by_platform().items():
        plain = found[f"{platform} null"]
        assert {value for value in plain.values() if isinstance(value, bool)} == {False}
        for name in names:
            event = found[f"{platform} {name}"]
            wanted = FIRES.get(name, {})
            if platform != "web":
                wanted = {field: value for field, value in wanted.items() if field not in OF_BROWSERS}
            assert {**event, **_confidences(event)} == _with(plain, wanted, _confidences(event)), (platform, name)
            for kind, field in (
                ("vpn", "vpn_confidence"),
                ("proxy", "proxy_confidence"),
                ("tampering", "tampering_confidence"),
            ):
                assert (field in event) == event.get(kind, False)


async def test_what_is_not_known_is_left_out(compat: Compatible):
    """Beside a network of its own kind, without network facts, without a score, and of an old event."""
    changes: dict[str, dict[str, Any]] = {
        "known": {
            "country_code": "GB",
            "country_name": "United Kingdom",
            "asn": "20712",
            "asn_name": "A",
            "os": "Windows",
        },
        "hosting": {"anonymity_network": "hosting"},
        "tor": {"anonymity_network": "tor", "label": "legitimate", "tag": "{half"},
        "offline": {"state": "unavailable", "reason": "no_network_data"},
        "not scored": {"suspect_score": None},
        "old": {"signals": None},
        "new": {"visitor_is_new": True, "visitor_confidence": 0},
        "app": {"platform": "android", "sdk_platform": "flutter-android", "agent": "App"},
        "crawler": {
            "visitor_kind": "search_crawler",
            "sdk_platform": "curl",
            "agent": "Googlebot",
            "agent_version": "2.1",
        },
    }
    events = {name: {**EVENT, **change} for name, change in changes.items()}
    del events["old"]["signals"]
    found: Any = await compat.run(
        f"""
        import {{ toFingerprintEvent }} from "@svc/fingerprint-compat/server";
        const events = Object.entries({json.dumps(events)});
        const told = events.map(([name, event]) => [name, toFingerprintEvent(event)]);
        console.log(JSON.stringify(Object.fromEntries(told)));
        """,
        "left-out.mjs",
    )
    geolocation = {"country_code": "GB", "country_name": "United Kingdom"}
    info = {"address": EVENT["ip_address"], "geolocation": geolocation, "asn": "20712", "asn_name": "A"}
    assert found["known"]["ip_info"] == {"v6": {**info, "datacenter_result": False}}
    assert found["known"]["os"] == "Windows"
    assert found["hosting"]["ip_info"]["v6"]["datacenter_result"] is True
    assert "datacenter_result" not in found["tor"]["ip_info"]["v6"]
    assert found["tor"]["ip_blocklist"]["tor_node"] is True
    assert (found["tor"]["suspect"], found["tor"]["tags"]) == (False, {"tag": "{half"})
    network = {"vpn", "vpn_methods", "proxy", "ip_blocklist"}
    assert set(found["hosting"]) - set(found["offline"]) == {*network, "ip_info"}
    assert set(found["hosting"]) - set(found["old"]) == set(found["hosting"]) - set(found["not scored"]) - {
        "suspect_score"
    }
    assert {*network, "bot", "tampering", "incognito", "replayed"} < set(found["hosting"]) - set(found["old"])
    assert found["new"]["identification"]["confidence"] == {"score": 0, "comment": "A new visitor"}
    assert found["app"]["sdk"] == {"platform": "android", "version": "1"}
    assert not {"bot", "browser_details", "incognito"} & set(found["app"])
    assert (found["crawler"]["bot"], found["crawler"]["sdk"]["platform"]) == ("good", "unknown")
    assert found["crawler"]["browser_details"]["browser_major_version"] == "2"


def _by_platform() -> dict[str, list[str]]:
    return {
        platform: [name for name, signal in CATALOG.items() if platform in signal.weights]
        for platform in ("web", "android", "ios")
    }


def _confidences(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name.endswith("_confidence")}


def _with(plain: dict[str, Any], wanted: dict[str, Any], confidences: dict[str, Any]) -> dict[str, Any]:
    made = {**plain, **confidences}
    for field, value in wanted.items():
        if value is None:
            made.pop(field)
        else:
            made[field] = {**plain.get(field, {}), **value} if isinstance(value, dict) else value
    return made


# The package ----------------------------------------------------------------------------------------------------------


def test_five_lines_change_in_a_page_and_its_server():
    page, server = changed("FingerprintJS.load"), changed("createServer")
    assert [len(page[0]), len(server[0])] == [3, 2]
    assert [len(page[1]), len(server[1])] == [3, 2]


USES_V3 = """
import FingerprintJS, { type Agent, ERROR_CLIENT_TIMEOUT } from "@svc/fingerprint-compat/v3";
const endpoint = ["a", FingerprintJS.defaultEndpoint];
const agent: Promise<Agent> = FingerprintJS.load({ apiKey: "k", endpoint, region: "eu" });
export async function seen(): Promise<[string, boolean]> {
  const { visitorId } = await (await agent).get({ linkedId: "a", tag: { b: 1 } });
  const { incognito, firstSeenAt } = await (await agent).get({ extendedResult: true });
  const at: string | null = firstSeenAt.subscription;
  return [`${visitorId} ${at} ${ERROR_CLIENT_TIMEOUT}`, incognito];
}
"""
USES_V4 = """
import * as Fingerprint from "@svc/fingerprint-compat/v4";
const cache = { storage: "agent", duration: 60 } as const;
const agent = Fingerprint.start({ apiKey: "k", endpoints: Fingerprint.withoutDefault(["a"]), cache });
export async function seen(): Promise<string | undefined> {
  try {
    const result: Fingerprint.GetResult = await agent.get({ tags: { a: 1 } });
    return result.visitor_id;
  } catch (error) {
    if (Fingerprint.isFingerprintError(error) && error.code === "client_timeout") return error.event_id ?? undefined;
    throw error;
  }
}
"""
USES_SERVER = """
import { createServer } from "node:http";
import { createEventsHandler, type FingerprintEvent, toFingerprintEvent } from "@svc/fingerprint-compat/server";
import type { EventDetailBody } from "./types.js";
createServer(createEventsHandler({ url: "https://id.shop.example", timeoutMs: 1_000 }));
export const event = (body: EventDetailBody): FingerprintEvent => toFingerprintEvent(body);
"""


def test_the_types_are_strict_and_take_what_the_server_library_reads(compat: Compatible):
    """As ES modules and as CommonJS, without the types of the web SDK, and with those of `@svc/client` for an event."""
    folder = compat.folder / "types"
    folder.mkdir(exist_ok=True)
    (folder / "types.d.ts").write_text((PACKAGE.parent / "node" / "src" / "types.ts").read_text())
    sources = {"v3": USES_V3, "v4": USES_V4, "server": USES_SERVER}
    for name, source in sources.items():
        (folder / f"{name}.mts").write_text(source)
        (folder / f"{name}.cts").write_text(source)
    options = {"strict": True, "noEmit": True, "module": "node16", "target": "ES2022", "lib": ["ES2022"]}
    options |= {"types": ["node"], "typeRoots": [str(WEB / "node_modules" / "@types")]}
    files = [f"{name}.{kind}" for name in sources for kind in ("mts", "cts")]
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": files}))
    command = [str(compat.node.node), str(WEB / "node_modules" / "typescript" / "bin" / "tsc"), "-p", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=compat.node.environment)
    assert done.stdout == ""


def test_the_packed_file_has_everything_that_its_description_names(compat: Compatible):
    described = json.loads((compat.package / "package.json").read_text())
    command = [*compat.node.npm, "pack", "--dry-run", "--json", "--ignore-scripts"]
    done = subprocess.run(
        command, cwd=compat.package, env=compat.node.environment, check=True, capture_output=True, text=True
    )
    (packed,) = json.loads(done.stdout)
    files = {file["path"] for file in packed["files"]}
    entries = [entry for entry in described["exports"].values() if not isinstance(entry, str)]
    named = {target for entry in entries for form in entry.values() for target in form.values()}
    assert {name.removeprefix("./") for name in named} < files
    assert {"README.md", "LICENSE", "dist/cjs/package.json"} < files
    assert not [name for name in files if name.startswith(("src", "tsconfig"))]
    assert "dependencies" not in described
    assert described["sideEffects"] is False
    assert packed["size"] < 25_000
