"""The fake services of the libraries, `svc_client.testing` and `@svc/client/testing`: the cases that they share, and
each of their answers beside the OpenAPI document.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from jsonschema import Draft202012Validator
from svc_client import ApiError, AsyncClient, Client, Expected, Retries, UnreachableError, WebhookError, verify_webhook
from svc_client.call import Call
from svc_client.testing import FakeService
from svc_client.testing_data import OPERATIONS

from tests.clients.conftest import Library
from tests.clients.vectors import cases
from tests.support.live import live_service

CASES = cases("testing")
DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text())
PROGRAM = Path(__file__).parent / "programs" / "node_fake" / "run.mjs"
BUILT_IN = {
    "identify", "getEvent", "updateEvent", "labelEvent", "listEvents", "listChanges", "getVerdictKeys",
    "getManagementKey", "getHealth", "getReadiness",
}  # fmt: skip
Answered = tuple[str, int, Any]


class Run:
    """One case: a fake, a client of it, and what the client saw."""

    def __init__(self, defaults: dict[str, Any], answers: list[Answered]) -> None:
        self.fake, self.answers = FakeService(**defaults), answers
        self.client = self.client_of(None)

    def client_of(self, key: str | None) -> Client:
        keys = {None: self.fake.secret_key, "management": self.fake.management_key, "nobody": "nobody"}
        http = httpx.Client(transport=Seen(self.fake, self.answers))
        return Client(self.fake.url, keys[key], http=http, retries=Retries(first_wait_s=0, longest_retry_after_s=0))

    def step(self, do: str, given: dict[str, Any]) -> Any:  # noqa: C901, PLR0911, PLR0912  a case each
        fake, client = self.fake, self.client

        def is_first(_: str) -> bool:
            return given["is_first"]

        match do:
            case "visitor":
                return fake.visitor(given["name"], **given["fields"])
            case "answer":
                return fake.answer(given["id"], **given["fields"])
            case "client":
                self.client = self.client_of(given["key"])
            case "fail" | "time_out" | "disconnect" | "recover" | "respond":
                return getattr(fake, do)(**given)
            case "calls":
                return [[call.operation, call.status] for call in fake.calls]
            case "check":
                return concluded(client.check(given["id"], **given["action"], is_first_use=is_first))
            case "check_verdict" | "check_forged":
                other = FakeService()
                signer = fake if do == "check_verdict" else other
                other.answer(given["id"])
                said = {"environment": "production", "origin": None, **given.get("expected", {})}
                expected = Expected(fake.organization_id, **said)
                return concluded(client.check_verdict(signer.verdict(given["id"]), expected, is_first_use=is_first))
            case "get_event":
                event: Any = client.get_event(given["id"])
                return {name: event.get(name) for name in given["fields"]}
            case "update_event":
                event = client.update_event(given["id"], **given["change"])
                return [event["request_id"], *(event.get(name) for name in ("account_id", "label", "label_reason"))]
            case "label_event":
                body = {name: value for name, value in given.items() if name != "id"}
                return [*client.label_event(fake.organization_id, given["id"], **body).values()]
            case "get_management_key":
                found = client.get_management_key()["organization_id"]
                return "organization" if found == fake.organization_id else found
            case "get_visitor":
                return client.get_visitor(given["visitor_id"])
            case "get_health" | "get_readiness":
                return getattr(client, do)()["status"]
            case "identify":
                key = given.pop("key", None)
                made: Any = self.client_of(key).identify(
                    sdk={"platform": "web"}, signals={}, visitor_ip="203.0.113.7", **given
                )
                names = ("visitor_id", "visitor_is_new", "suspect_level")
                return "duplicate" if made.get("duplicate") else [made[name] for name in names]
            case "list_events":
                rows: Any = client.list_events(**given["query"])["rows"]
                fields = given.get("fields")
                return [row["request_id"] if fields is None else [row.get(name) for name in fields] for row in rows]
            case "iterate_events":
                return [row["request_id"] for row in client.iterate_events(**given["query"])]
            case "iterate_feed":
                pages = client.iterate_feed(follow=False, **given["query"])
                return [[row["request_id"] for row in page["rows"]] for page in pages]
            case "list_changes":
                return [[change["type"], change["request_id"]] for change in client.list_changes()["changes"]]
            case "webhook":
                envelope = {name: given[name] for name in ("type",) if name in given}
                body, headers = fake.webhook({**envelope, "data": fake.event(given["id"])}, "a")
                event = verify_webhook(body, headers, given["secrets"])
                return [event["type"], event["data"].get("tag")]
            case _:
                raise AssertionError(do)
        return None

    def told(self, step: dict[str, Any]) -> Any:
        given = {name: deepcopy(value) for name, value in step.items() if name != "do"}
        try:
            return self.step(step["do"], given)
        except ApiError as error:
            found = {"status": error.status, "code": error.code, "retry_after_s": error.retry_after_s}
            return {"error": {**found, "details": list(error.details)}}
        except UnreachableError as error:
            return {"unreachable": error.was_sent}
        except WebhookError:
            return "not authentic"
        except (ValueError, NotImplementedError):
            return {"mistake": True}


def concluded(found: Any) -> dict[str, Any]:
    return {"problem": found.problem, "decision": found.decision, "reasons": found.reasons}


class Seen(httpx.BaseTransport):
    """A fake, whose answers are kept."""

    def __init__(self, fake: FakeService, answers: list[Answered]) -> None:
        self._fake, self._answers, self._inner = fake, answers, fake.transport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._inner.handle_request(request)
        body = json.loads(response.content) if response.content else None
        self._answers.append((self._fake.calls[-1].operation, response.status_code, body))
        return response


def strict(schema: Any) -> Any:
    """A schema that takes no other fields and no other values than those that are documented."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(part) for name, part in schema.items() if name not in ("examples", "description")}
    if "properties" in made:
        made["additionalProperties"] = False
        made["properties"] = {name: strict(part) for name, part in schema["properties"].items()}
    if "x-extensible-enum" in made:
        made["enum"] = made["x-extensible-enum"]
    return made


SCHEMAS = strict(DOCUMENT["components"]["schemas"])
PATHS = {
    one["operationId"]: one
    for methods in DOCUMENT["paths"].values()
    for one in methods.values()
    if isinstance(one, dict)
}


def invalid(answered: Answered) -> list[str]:
    """What of an answer is not as documented."""
    operation, status, body = answered
    response = PATHS[operation]["responses"].get(str(status))
    if response is None:
        return [f"{operation} has no {status}"]
    if "$ref" in response:
        response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
    schema = strict(response["content"]["application/json"]["schema"])
    validator = Draft202012Validator({**schema, "components": {"schemas": SCHEMAS}})
    return [f"{operation} {status} {error.json_path}: {error.message}"[:300] for error in validator.iter_errors(body)]


def faults(answers: list[Answered]) -> list[str]:
    """Of all answers but those that a case gave by itself; every operation must have been answered."""
    own = [one for one in answers if one[0] in BUILT_IN]
    assert {operation for operation, status, _ in own if status < 300} == BUILT_IN
    return [fault for one in own for fault in invalid(one)]


def test_python_passes_every_case_by_documented_answers():
    answers: list[Answered] = []
    for case in CASES:
        run = Run(case["given"]["defaults"], answers)
        told = [run.told(step) for step in case["given"]["steps"]]
        assert told == case["expect"], case["name"]
    assert faults(answers) == []


@pytest.mark.slow(5)
def test_node_passes_every_case_by_documented_answers(library: Library):
    told = json.loads(library.program("fake.mjs", PROGRAM.read_text(), given=json.dumps(CASES)))
    for case, found in zip(CASES, told["told"], strict=True):
        assert found == case["expect"], case["name"]
    assert faults(told["answers"]) == []


def test_an_answer_that_is_not_documented_is_found():
    assert invalid(("getHealth", 200, {"status": "ok", "version": "1"})) == []
    assert invalid(("getHealth", 200, {"status": "ok"})) != []
    assert invalid(("getHealth", 200, {"status": "fine", "version": "1"})) != []
    assert invalid(("getHealth", 200, {"status": "ok", "version": "1", "at": 0})) != []
    assert invalid(("getHealth", 418, {})) == ["getHealth has no 418"]


async def test_an_asynchronous_client_reads_the_same_fake():
    fake = FakeService(tag="t")
    request_id = fake.answer(signals=["tor", "automation"])
    async with fake.async_client() as svc:
        checked = await svc.check(request_id, origin="https://shop.example", tag="t", is_first_use=lambda _: True)
    assert checked.reasons == ["level:high"]
    http = httpx.AsyncClient(transport=fake.transport())
    async with AsyncClient(fake.url, fake.secret_key, http=http) as own:
        assert (await own.get_event(request_id))["suspect_score"] == 65
    assert [(call.operation, call.path) for call in fake.calls] == [("getEvent", f"/events/{request_id}")] * 2


def test_every_operation_can_be_answered_by_a_test():
    fake = FakeService()
    for operation in OPERATIONS:
        fake.respond(operation, {})
    with fake.client(api_key=fake.management_key) as svc:
        assert svc.list_members(fake.organization_id) == {}
    assert fake.calls[0].status == 200


def seen(client: Client, management: Client, ids: list[str], later: Callable[[], None]) -> list[Any]:
    """What two clients see of three events: `a` of an account, `b` with a tag, and `c`. Ids are these letters. `later`
    is called before feeds are read, which wait for what is being written.
    """
    a, b, _ = ids
    letters = dict(zip(ids, "abc", strict=True))
    names = ("account_id", "account_verified", "action", "tag", "label", "label_reason")
    organization = management.get_management_key()["organization_id"]

    def listed(**query: Any) -> list[str]:
        return [letters[row["request_id"]] for row in client.iterate_events(**query)]

    def told(call: Any) -> Any:
        try:
            found = call()
        except ApiError as error:
            return [error.status, error.code, list(error.details)]
        return [found.get(name) for name in names] if isinstance(found, dict) else found

    changes: list[dict[str, Any]] = [
        {"account_id": "z", "label": "fraud", "label_reason": "bot"},
        {},
        {"label": "fraud"},
        {"label": "legitimate"},
        {"label_reason": "other"},
        {"label": None},
        {"label_reason": "bot"},
        {"account_id": None, "action": "log_in", "tag": None},
    ]
    updates = [
        *(told(lambda change=change: client.update_event(b, **change)) for change in changes),
        told(lambda: client._send(Call("PATCH", f"/events/{a}", body={"name": "x"}))),
        told(lambda: client._send(Call("PATCH", f"/events/{a}", body={"label": "good"}))),
        told(lambda: client.update_event("019b76da-a800-7000-8000-000000000000", label="fraud")),
        told(lambda: client.get_event("r1")),
        told(lambda: client.get_event(a.upper())),
        told(lambda: client.label_event(organization, a, label="fraud")),
        told(lambda: management.get_event(a)),
        told(lambda: management.label_event(f"org_{'0' * 20}", a, label="fraud")),
        told(lambda: management.label_event(organization, a, label="fraud", label_reason="spam")),
        told(lambda: management.label_event(organization, a, label=None)),
    ]
    later()
    return [
        *updates,
        listed(),
        listed(limit=2),
        listed(account_id="y"),
        listed(action="log_in"),
        listed(visitor=client.get_event(a)["visitor_id"], limit=1),
        told(lambda: client.list_events(order="oldest", tag="t")),
        [[letters[row["request_id"]] for row in page["rows"]] for page in client.iterate_feed(follow=False, limit=2)],
        [sorted(page) for page in client.iterate_feed(follow=False, limit=2)],
        [
            sorted(client.list_events(limit=2)),
            client.list_events(page=2, limit=2)["page"],
            sorted(client.list_events()),
        ],
        [(one["type"], letters[one["request_id"]]) for one in client.list_changes()["changes"]],
        [page["has_more"] for page in client.iterate_changes(follow=False, limit=4)],
    ]


async def test_clients_see_the_same_of_a_service(tmp_path: Path):
    about = ({"account_id": "y"}, {"tag": "t"}, {})
    async with live_service(tmp_path) as live:
        key, ids = live.issue()[1], list[str]()
        for one in about:
            ids.append((await live.identify(key, **one)).json()["request_id"])
            live.clock.now_ms += 1_000

        def later() -> None:
            live.clock.now_ms += 3_000

        with (
            Client(live.url, live.issue("secret")[1]) as client,
            Client(live.url, live.issue("management")[1]) as other,
        ):
            service = await trio.to_thread.run_sync(seen, client, other, ids, later)
    fake = FakeService()
    about = ({"account_id": "y", "account_verified": False}, {"tag": "t"}, {})  # a page named it, and no server
    made = [fake.answer(age_s=3 - number, **one) for number, one in enumerate(about)]
    with fake.client() as client, fake.client(api_key=fake.management_key) as other:
        assert seen(client, other, made, lambda: None) == service
