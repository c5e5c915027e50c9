"""The vectors of the libraries for servers: agreed to by the service's own code, and passed by Python and Node.js. Go
and Java run them in their own tests.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import UUID

import httpx
import pytest
from svc_client import (
    ApiError,
    Checked,
    CheckedVerdict,
    Client,
    Expected,
    Retries,
    SvcError,
    UnreachableError,
    WebhookError,
    verify_webhook,
    visitor_headers,
)
from svc_client.checks import Action, checked, may_count, problems_with
from svc_client.transport import retry_after_s
from svc_client.verdicts import KeyRing

from svc.features.webhooks.content.envelope import seal, signed_headers
from tests.clients.conftest import Library
from tests.clients.vectors import cases, reference

REQUEST_ID = reference("cases_for_servers").REQUEST_ID

WEBHOOKS, VERDICTS, RESPONSES = cases("webhook"), cases("verdict"), cases("responses")
CHECKS, MESSAGES, WAITS, HEADERS = (
    [case for case in cases("check") if case["kind"] == kind]
    for kind in ("check", "message", "wait", "visitor_headers")
)


def test_the_service_signs_a_delivery_as_the_first_case_has_it():
    made = reference("cases_for_servers")
    event = seal(
        UUID(made.REQUEST_ID), "webhook.test", "live", made.ORGANIZATION, {"message": made.MESSAGE}, made.NOW_MS
    )
    given = WEBHOOKS[0]["given"]
    assert event.body == base64.b64decode(given["body"])
    headers = signed_headers(UUID(made.REQUEST_ID), event, (made.SECRET, made.PREVIOUS), made.NOW_S)
    assert {name: headers[name] for name in given["headers"]} == given["headers"]


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def received(given: dict[str, Any]) -> str | None:
    try:
        body = base64.b64decode(given["body"])
        return verify_webhook(body, given["headers"], given["secrets"], now=given["now_s"])["data"]["message"]
    except WebhookError:
        return None


def said(found: Checked | CheckedVerdict) -> dict[str, Any]:
    return {"problem": found.problem, "decision": found.decision, "reasons": found.reasons}


def told(given: dict[str, Any]) -> dict[str, Any]:
    ring = KeyRing()
    ring.put(given["keys"], 0)
    return said(ring.check(given["token"], Expected(**given["expected"], now=moment(given["now_ms"]))))


def concluded(given: dict[str, Any]) -> dict[str, Any]:
    action = Action(**given["action"], now=moment(given["now_ms"]))
    try:
        problems = problems_with(given["event"], action, REQUEST_ID)
    except ApiError as refused:
        return {"error": refused.code}
    if may_count(problems) and not given["is_first"]:
        problems = ("used_before",)
    return said(checked(problems, given["event"], allow_unknown=action.allow_unknown))


def waited(given: dict[str, Any]) -> float | None:
    failure: SvcError = UnreachableError("lost", was_sent=given["failure"] == "lost")
    if isinstance(given["failure"], int):
        failure = ApiError(given["failure"], "code", "message", retry_after_s=given.get("retry_after_s"))
    found = Retries(attempts=given["attempts"]).wait_s(
        failure, attempt=given["attempt"], is_repeatable=given["is_repeatable"], random=given["random"]
    )
    return None if found is None else round(found * 1000, 6)


def answering(status: int, given: dict[str, Any]) -> Client:
    """A client whose service has one response."""

    def respond(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, content=base64.b64decode(given["body"]), headers=given.get("headers", {}))

    http = httpx.Client(transport=httpx.MockTransport(respond))
    return Client("http://127.0.0.1:9", "svc_sk_key", http=http, retries=Retries(attempts=1))


def made_of(kind: str, given: dict[str, Any]) -> Any:  # noqa: PLR0911  one for each kind
    """What the library makes of a response."""
    if kind == "retry_after":
        return retry_after_s(given["value"], given["now_ms"] / 1000)
    client = answering(given.get("status", 200), given)
    try:
        if kind == "event":
            asked: dict[str, Any] = {**given["action"], "now": moment(given["now_ms"])}
            return said(client.check(REQUEST_ID, **asked, is_first_use=lambda _: True))
        if kind == "keys":
            expected = Expected(**given["expected"], now=moment(given["now_ms"]))
            return said(client.check_verdict(given["token"], expected, is_first_use=lambda _: True))
        if kind == "page":
            return [row["request_id"] for row in islice(client.iterate_events(), 9)]
        client.get_health()
    except ApiError as refused:
        if kind == "refusal":
            return {"code": refused.code, "retry_after_s": refused.retry_after_s}
        return {"error": refused.code}
    except ValueError:
        return {"error": "argument"}


@pytest.mark.parametrize("kind", ["event", "refusal", "retry_after", "keys", "page"])
def test_python_makes_the_same_of_a_response(kind: str):
    some = [case for case in RESPONSES if case["kind"] == kind]
    assert some
    found = {case["name"]: made_of(kind, case["given"]) for case in some}
    assert found == {case["name"]: case["expect"] for case in some}


@pytest.mark.parametrize("case", WEBHOOKS, ids=lambda case: case["name"])
def test_python_takes_authentic_deliveries_alone(case: dict[str, Any]):
    assert received(case["given"]) == case["expect"]


@pytest.mark.parametrize("case", VERDICTS, ids=lambda case: case["name"])
def test_python_takes_verdicts_of_this_action_alone(case: dict[str, Any]):
    assert told(case["given"]) == case["expect"]


@pytest.mark.parametrize("case", CHECKS, ids=lambda case: case["name"])
def test_python_takes_events_of_this_action_alone(case: dict[str, Any]):
    assert concluded(case["given"]) == case["expect"]


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: case["name"])
def test_the_text_of_an_error_in_python_names_each_field(case: dict[str, Any]):
    """Decisions 20."""
    assert str(ApiError(**case["given"])) == case["expect"]


@pytest.mark.parametrize("case", WAITS, ids=lambda case: case["name"])
def test_python_waits_as_long(case: dict[str, Any]):
    assert waited(case["given"]) == case["expect"]


@pytest.mark.parametrize("case", HEADERS, ids=lambda case: case["name"])
def test_python_passes_the_headers_of_a_visitor_on(case: dict[str, Any]):
    """Decisions 2.9: in ASCII, at most 2,048 bytes, and nothing else of the request."""
    text = visitor_headers(case["given"])
    assert json.loads(text) == case["expect"]
    assert text.isascii()
    assert len(text) <= 2_048


@pytest.mark.slow(5)
async def test_node_passes_every_case(library: Library):
    told = await library.run(
        """
        const { readFileSync } = await import("node:fs");
        const read = (name) => JSON.parse(readFileSync(`${FOLDER}/${name}.json`, "utf8")).cases;
        const inner = (name) => import(`file://${process.cwd()}/node_modules/@svc/client/dist/esm/${name}.js`);
        const { KeyRing } = await inner("verdicts"), { waitMs, retryAfterS } = await inner("retries");
        const { concluded, mayCount, problemsWith } = await inner("checks");
        const action = ({ account_id: accountId, same_network: sameNetwork, allow_unknown: allowUnknown, ...others }) =>
          ({ ...others, accountId, sameNetwork, allowUnknown });
        const received = ({ body, headers, secrets, now_s }) => [headers, new Headers(ascii(headers))].map((sent) => {
          try {
            return verifyWebhook(Buffer.from(body, "base64"), sent, secrets, now_s * 1000).data.message;
          } catch (error) {
            return error instanceof WebhookError ? null : String(error);
          }
        });
        const ascii = (headers) => Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, value.replace(/[^\\x20-\\xff]/g, "?").trim()]),
        );
        const runners = {
          webhook: received,
          verdict({ keys, token, now_ms: now, expected: { organization_id: organizationId, ...others } }) {
            const ring = new KeyRing();
            ring.put(keys);
            const { verdict, problems } = ring.check(token, { organizationId, ...action(others), now });
            return concluded(problems, verdict, action(others));
          },
          check({ event, action: given, now_ms: now, is_first }) {
            let found;
            try {
              found = problemsWith(event, { ...action(given), now }, ID);
            } catch (refused) {
              return { error: refused.code };
            }
            return concluded(mayCount(found) && !is_first ? ["used_before"] : found, event, action(given));
          },
          message: ({ status, code, message, details }) => new ApiError(status, code, message, { details }).message,
          wait({ attempts, attempt, is_repeatable: isRepeatable, random, failure, retry_after_s: retryAfterS }) {
            const fault = typeof failure === "number"
              ? new ApiError(failure, "code", "message", { retryAfterS })
              : new UnreachableError("lost", failure === "lost", null);
            return waitMs({ attempts }, fault, { attempt, isRepeatable, random }) ?? null;
          },
          visitor_headers: (headers) => [visitorHeaders(headers)],
          retry_after: ({ value, now_ms }) => retryAfterS(value, now_ms) ?? null,
          async refusal(given) {
            const error = await answering(given).getHealth().catch((error) => error);
            return { code: error.code, retry_after_s: error.retryAfterS ?? null };
          },
          event: (given) => told(async () => {
            const asked = { ...action(given.action), now: given.now_ms, isFirstUse: () => true };
            return answering(given).check(ID, asked);
          }),
          keys: (given) => told(async () => {
            const { organization_id: organizationId, ...others } = given.expected;
            const asked = { organizationId, ...action(others), now: given.now_ms, isFirstUse: () => true };
            return answering(given).checkVerdict(given.token, asked);
          }),
          page: (given) => told(async () => {
            const ids = [];
            for await (const row of answering(given).iterateEvents()) ids.push(row.request_id);
            return ids;
          }),
        };
        const answering = ({ status = 200, headers = {}, body }) => new Client({
          baseUrl: "http://127.0.0.1:9", apiKey: "svc_sk_key", retries: { attempts: 1 },
          fetch: async () => new Response(Buffer.from(body, "base64"), { status, headers }),
        });
        const told = async (call) => {
          try {
            const found = await call();
            if (Array.isArray(found)) return found;
            const { problem, decision, reasons } = found;
            return { problem, decision, reasons };
          } catch (error) {
            if (error instanceof ApiError) return { error: error.code };
            if (error instanceof TypeError && /address/.test(error.message)) return { error: "argument" };
            return String(error.stack);
          }
        };
        const every = ["webhook", "verdict", "check", "responses"].flatMap(read);
        return Promise.all(every.map(({ kind, given }) => runners[kind](given)));
        """,
        FOLDER=str(reference().FOLDER), ID=REQUEST_ID,
    )  # fmt: skip
    every = [*WEBHOOKS, *VERDICTS, *cases("check"), *RESPONSES]
    wrong: dict[str, Any] = {}
    for case, said in zip(every, told, strict=True):
        if case["kind"] == "webhook":
            # `Headers` has no value with spaces around it, and none beyond Latin-1.
            wanted = [case["expect"]] if case["name"] == "a time in a space" else [case["expect"]] * 2
            if said[: len(wanted)] != wanted:
                wrong[case["name"]] = said
        elif case["kind"] == "visitor_headers":
            assert json.loads(said[0]) == case["expect"], case["name"]
            assert said[0].isascii()
            assert len(said[0]) <= 2_048
        elif said != case["expect"]:
            wrong[case["name"]] = said
    assert wrong == {}
