"""The vectors of the libraries for servers: agreed to by the service's own code, and passed by Python and Node.js. Go
and Java run them in their own tests.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from svc_client import (
    ApiError,
    Checked,
    CheckedVerdict,
    Expected,
    Retries,
    SvcError,
    UnreachableError,
    WebhookError,
    verify_webhook,
    visitor_headers,
)
from svc_client.checks import Action, checked, may_count, problems_with
from svc_client.verdicts import KeyRing

from svc.features.webhooks.content.envelope import seal, signed_headers
from tests.clients.conftest import Library
from tests.clients.vectors import cases, reference

WEBHOOKS, VERDICTS = cases("webhook"), cases("verdict")
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
        problems = problems_with(given["event"], action)
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
        const { KeyRing } = await inner("verdicts"), { waitMs } = await inner("retries");
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
              found = problemsWith(event, { ...action(given), now });
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
        };
        return ["webhook", "verdict", "check"].flatMap(read).map(({ kind, given }) => runners[kind](given));
        """,
        FOLDER=str(reference().FOLDER),
    )
    every = [*WEBHOOKS, *VERDICTS, *cases("check")]
    for case, said in zip(every, told, strict=True):
        if case["kind"] == "webhook":
            # `Headers` has no value with spaces around it, and none beyond Latin-1.
            wanted = [case["expect"]] if case["name"] == "a time in a space" else [case["expect"]] * 2
            assert said[: len(wanted)] == wanted, case["name"]
        elif case["kind"] == "visitor_headers":
            assert json.loads(said[0]) == case["expect"], case["name"]
            assert said[0].isascii()
            assert len(said[0]) <= 2_048
        else:
            assert said == case["expect"], case["name"]
