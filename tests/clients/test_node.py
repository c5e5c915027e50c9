"""The client library for Node.js, compiled and run against a running service over loopback."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.clients.cases import ABOUT, PRINTED, UNPRINTABLE, checks, in_node
from tests.clients.conftest import Library
from tests.clients.vectors import cases
from tests.spec.responses import BROWSER, DRIVEN, HEADLESS, TOO_LITTLE
from tests.spec.subscriber import URL, subscribing
from tests.support.live import ORIGIN, Live, live_service, report
from tests.support.ports import free_port

pytestmark = pytest.mark.slow(5)


async def test_one_call_verifies_that_an_event_belongs_to_its_action(library: Library, tmp_path: Path):
    async with live_service(tmp_path) as live:
        request_id = (await live.identify(live.issue()[1], **ABOUT)).json()["request_id"]
        cases = checks(request_id, live.clock.now_ms)
        told = await library.run(
            """
            const client = new Client({ baseUrl: URL, apiKey: KEY });
            const used = new Set(), told = [];
            const isFirstUse = async (id) => !used.has(id) && Boolean(used.add(id));
            for (const { id, ...action } of CASES) told.push(await client.check(id, { ...action, isFirstUse }));
            return told;
            """,
            URL=live.url, KEY=live.issue("secret")[1], CASES=in_node(cases),
        )  # fmt: skip
    assert [one["problem"] for one in told] == [problem for _, problem in cases]
    assert all(one["decision"] == "refuse" for one in told if one["problem"])


async def test_errors_have_names_and_an_unreachable_address_is_its_own_error(library: Library, tmp_path: Path):
    async with live_service(tmp_path) as live:
        key, now = live.issue("secret")[1], live.clock.now_ms
        request_id = (await live.identify(live.issue()[1])).json()["request_id"]
        told = await library.run(
            """
            const action = { origin: "https://shop.example", tag: null, isFirstUse: () => true, now: NOW };
            const told = (promise) => promise.catch((error) => [error.name, error.code ?? null, error.wasSent ?? null]);
            const client = new Client({ baseUrl: URL + "/", apiKey: KEY });
            const stranger = new Client({ baseUrl: URL, apiKey: KEY + "x" });
            const lonely = new Client({ baseUrl: NOBODY, apiKey: KEY, retries: { firstWaitMs: 0 } });
            return [
              await told(stranger.check(ID, { ...action, ip: null })),
              await told(client.check(ID, { ...action, ip: "nowhere" })),
              await told(lonely.check(ID, { ...action, ip: null })),
              await lonely.getHealth().catch((error) => error.message.startsWith(`no response from ${NOBODY}: `)),
              await client.listEvents({ limit: 0 }).catch((error) => error.details),
              await told((async () => client.getEvent(".."))()),
            ];
            """,
            URL=live.url, KEY=key, ID=request_id, NOW=now, NOBODY=f"http://127.0.0.1:{free_port()}",
        )  # fmt: skip
    assert told == [
        ["ApiError", "unauthorized", None],
        ["TypeError", None, None],
        ["UnreachableError", None, False],
        True,
        [{"field": "limit", "issue": "out_of_range", "location": "query"}],
        ["TypeError", None, None],
    ]


async def test_an_account_is_set_on_an_event_and_removed(library: Library, tmp_path: Path):
    async with live_service(tmp_path) as live:
        request_id = (await live.identify(live.issue()[1], action="sign_up", tag="t")).json()["request_id"]
        told = await library.run(
            """
            const client = new Client({ baseUrl: URL, apiKey: KEY });
            const changes = [{ account_id: "a" }, {}, { account_id: undefined, tag: null }, { account_id: null }];
            const told = [];
            for (const change of changes) told.push(await client.updateEvent(ID, change));
            const action = { origin: ORIGIN, ip: null, tag: null, accountId: "a", now: NOW, isFirstUse: () => true };
            return { told, problem: (await client.check(ID, action)).problem };
            """,
            URL=live.url, KEY=live.issue("secret")[1], ID=request_id, ORIGIN=ORIGIN, NOW=live.clock.now_ms,
        )  # fmt: skip
    named = [
        [event.get(name) for name in ("account_id", "account_verified", "action", "tag")] for event in told["told"]
    ]
    assert named == [
        ["a", True, "sign_up", "t"],
        ["a", True, "sign_up", "t"],
        ["a", True, "sign_up", None],
        [None, None, "sign_up", None],
    ]
    assert told["told"][0]["velocity"]["visitor"]["events"] == {"1h": 1, "24h": 1, "30d": 1}
    assert told["problem"] == "other_account"


async def test_new_visitors_are_challenged_and_only_suspects_refused(library: Library, tmp_path: Path):
    async with live_service(tmp_path) as live:
        key = live.issue()[1]
        visits = ((report(1), BROWSER), (report(1), BROWSER), (TOO_LITTLE, BROWSER), (report(1, **DRIVEN), HEADLESS))
        ids = [(await live.identify(key, signals, headers=headers)).json()["request_id"] for signals, headers in visits]
        told = await library.run(
            """
            const client = new Client({ baseUrl: URL, apiKey: KEY });
            return Promise.all(IDS.map(async (id) => decide(await client.getEvent(id))));
            """,
            URL=live.url, KEY=live.issue("secret")[1], IDS=ids,
        )  # fmt: skip
    assert told == ["verify", "accept", "verify", "refuse"]


async def test_a_lost_response_does_not_create_another_event(library: Library, tmp_path: Path):
    async with live_service(tmp_path) as live:
        told = await identified_with_a_lost_response(library, live)
        ((request_id, event),) = live.events()
    assert (told["keys"], told["sent"]) == (1, 2)
    whole = {"request_id": request_id, "duplicate": True, "visitor_is_new": True, "suspect_level": "low"}
    assert whole.items() <= told["answer"].items()
    assert event.tag == "é"


async def test_a_visitor_can_put_nothing_into_a_call_that_is_not_sent(library: Library):
    told = await library.run(
        """
        const sent = [];
        const noting = async (url, options) => (sent.push(new Headers(options.headers)), Response.json({}));
        const client = new Client({ baseUrl: "http://127.0.0.1:9", apiKey: "svc_sk_key", fetch: noting });
        const body = { sdk: { platform: "web" }, signals: {} };
        await client.identify(body, { visitorUserAgent: UNPRINTABLE, idempotencyKey: "M\u00fc" });
        await client.identify(body, { idempotencyKey: 7 }); // as JavaScript may have it
        return [sent[0].get("x-svc-visitor-user-agent"), ...sent.map((one) => one.get("idempotency-key"))];
        """,
        UNPRINTABLE=UNPRINTABLE,
    )
    assert told == [PRINTED, "M%C3%BC", "7"]


async def identified_with_a_lost_response(library: Library, live: Live) -> Any:
    return await library.run(
        """
        const keys = new Set();
        let sent = 0;
        const losing = async (url, options) => {
          keys.add(options.headers["Idempotency-Key"]);
          const response = await fetch(url, options);
          if (++sent > 1) return response;
          await response.text();
          throw new TypeError("fetch failed", { cause: { code: "ECONNRESET" } });
        };
        const client = new Client({ baseUrl: URL, apiKey: KEY, fetch: losing, retries: { firstWaitMs: 0 } });
        const body = { sdk: { platform: "web" }, signals: REPORT, tag: "é" };
        const answer = await client.identify(body, { visitorIp: "81.2.69.160" });
        return { answer, keys: keys.size, sent };
        """,
        URL=live.url, KEY=live.issue("secret")[1], REPORT=report(),
    )  # fmt: skip


async def test_events_are_read_page_by_page_and_the_management_api_works(library: Library, tmp_path: Path):
    async with subscribing(tmp_path) as subscriber:
        live = subscriber.live
        key = live.issue()[1]
        made = [(await live.identify(key, tag="a&b=c")).json()["request_id"] for _ in range(5)]
        live.clock.now_ms += 2_000
        told = await library.run(
            """
            const read = new Client({ baseUrl: URL, apiKey: SECRET });
            const ids = [];
            const query = { tag: "a&b=c", limit: 2, from: FROM };
            for await (const row of read.iterateEvents(query)) ids.push(row.request_id);
            const fed = [];
            for await (const page of read.iterateFeed({ limit: 2, from: FROM }, { follow: false })) {
              fed.push(page.rows.map((row) => row.request_id));
            }
            const changed = [];
            for await (const page of read.iterateChanges({ limit: 3 }, { follow: false })) {
              changed.push(page.changes.map((change) => [change.type, change.request_id]));
            }
            const client = new Client({ baseUrl: URL, apiKey: MANAGEMENT });
            const { organization_id: organization } = await client.getManagementKey();
            const named = { name: "a", environment: "staging", kind: "secret" };
            const issued = await client.issueSdkKey(organization, named);
            await client.revokeSdkKey(organization, issued.key.id);
            const again = await client.revokeSdkKey(organization, issued.key.id).catch((error) => error.message);
            const body = { url: HOOK, environment: "live", events: ["visitor.suspect"], description: "" };
            const { endpoint } = await client.createWebhook(organization, body);
            await client.rotateWebhookSecret(organization, endpoint.id);
            return { ids, fed, changed, again, deleted: await client.deleteWebhook(organization, endpoint.id) ?? null };
            """,
            URL=live.url, SECRET=live.issue("secret")[1], MANAGEMENT=live.issue("management")[1], HOOK=URL,
            FROM=datetime.fromtimestamp(live.clock.now_ms / 1000 - 60, timezone(timedelta(hours=1))).isoformat(),
        )  # fmt: skip
    assert told["ids"] == made[::-1]
    assert told["fed"] == [made[:2], made[2:4], made[4:]]
    assert told["changed"] == [[["event.created", one] for one in some] for some in (made[:3], made[3:])]
    assert told["again"].startswith("409 sdk_key_revoked: ")
    assert told["deleted"] is None


@pytest.mark.parametrize(
    ("call", "answers", "attempts"),
    [
        ("getHealth()", [503], 2),
        ("getHealth()", [500, 502], 3),
        ("testWebhook('org', 'whk')", [429], 2),
        ("testWebhook('org', 'whk')", [503], 1),
        ("getHealth()", [404], 1),
        ("getHealth()", [503, 503, 503], 3),
        ("getHealth()", [302], 1),
    ],
)
async def test_a_call_is_retried_only_where_that_can_help_and_is_safe(
    library: Library, call: str, answers: list[int], attempts: int
):
    told = await library.run(
        f"""
        let sent = 0;
        const fetch = async () => new Response("{{}}", {{ status: ANSWERS[sent++] ?? 200 }});
        const client = new Client({{ baseUrl: "http://a", apiKey: "k", fetch, retries: {{ firstWaitMs: 0 }} }});
        const said = await client.{call}.catch((error) => error.code);
        return [said, sent];
        """,
        ANSWERS=answers,
    )
    said, sent = told
    assert sent == attempts
    assert said == ("unexpected_response" if attempts <= len(answers) else {})


async def test_a_key_that_was_read_from_a_file_works_and_a_wrong_one_is_not_repeated(library: Library):
    told = await library.run(
        """
        const sent = [];
        const fetch = async (url, { headers }) => {
          sent.push(url.href, headers["x-api-key"]);
          return new Response("{}");
        };
        const made = (baseUrl, apiKey) => new Client({ baseUrl, apiKey, fetch });
        await made("http://a/api/v1/", " svc_sk_key\\n").getHealth();
        const refused = (...given) => { try { made(...given); } catch (error) { return error.message; } };
        const keys = ["", "svc_sk_one\\nsvc_sk_two", undefined].map((key) => refused("http://a", key));
        const broken = ["https://", "https://[::1", "https://x y"].map((one) => refused(one, "svc_sk_key"));
        const password = refused("https://user:secret@id.shop.example", "svc_sk_key");
        return { sent, keys, broken, password, address: refused("id.shop.example", "svc_sk_key") };
        """
    )
    address, key = told["sent"]
    assert (address.count("/api/v1"), key) == (1, "svc_sk_key")
    assert all("apiKey" in message and "sk_o" not in message for message in told["keys"])
    assert told["address"].endswith("https://id.shop.example, not id.shop.example")
    assert ["address of the service" in one for one in told["broken"]] == [True, True, True]
    assert told["password"] == "baseUrl has a user name or a password, which are not sent"


async def test_a_parsed_body_is_a_mistake_that_is_named(library: Library):
    """What `express.json()` and `express.text()` leave of a body: every delivery would be refused as not authentic."""
    told = await library.run(
        """
        return [{ version: 1 }, '{"version":1}'].map((body) => {
          try { verifyWebhook(body, {}, "svc_whsec_"); } catch (error) { return [error.name, error.message]; }
        });
        """
    )
    assert {name for name, _ in told} == {"TypeError"}
    assert all("express.raw" in message for _, message in told)


def test_the_types_accept_right_uses_and_reject_wrong_ones(library: Library):
    right = """
        import { Client, type EventBody } from "@svc/client";
        const client = new Client({ baseUrl: "https://id.shop.example", apiKey: "svc_sk_" });
        const action = { origin: null, ip: null, tag: null, isFirstUse: () => true };
        const { problem, event, decision } = await client.check("id", action);
        if (problem === null && event?.suspect_level === "a level of tomorrow") console.log(decision satisfies string);
        for await (const row of client.iterateEvents({ limit: 2 })) {
          if ("error" in row) continue;
          const same: EventBody = row;
          same.visitor_id;
        }
        export {};
    """
    wrong = right.replace("limit: 2", "limt: 2").replace("origin: null, ", "")
    shown = library.type_errors(right=right, wrong=wrong)
    assert "'limt' does not exist" in shown
    assert "'origin' is missing" in shown
    assert re.findall(r"^\S+?\.mts", shown, re.MULTILINE) == ["wrong.mts", "wrong.mts"]


async def test_headers_of_node_http_may_be_lists(library: Library):
    told = await library.run(
        """
        return visitorHeaders({ "Accept-Language": ["de", "en"], cookie: ["a=b"], "sec-fetch-dest": undefined });
        """
    )
    assert json.loads(told) == {"accept-language": "de, en"}


async def test_headers_may_be_of_another_implementation_of_fetch(library: Library):
    given = cases("webhook")[0]["given"]
    told = await library.run(
        """
        class Others { // as those of undici, which are not the global ones
          #map;
          constructor(given) { this.#map = new Map(Object.entries(given).map(([k, v]) => [k.toLowerCase(), v])); }
          get(name) { return this.#map.get(name) ?? null; }
          [Symbol.iterator]() { return this.#map.entries(); }
        }
        const { body, headers, secrets, now_s } = GIVEN;
        const { id } = verifyWebhook(Buffer.from(body, "base64"), new Others(headers), secrets, now_s * 1_000);
        return [id, visitorHeaders(new Others({ "Accept-Language": "de" }))];
        """,
        GIVEN=given,
    )
    assert told == [given["headers"]["X-Svc-Event-ID"], '{"accept-language":"de"}']
