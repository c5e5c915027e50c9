"""A fake service for the unit tests of what you build: the clients are the real ones, and no port is opened.

    fake = FakeService(origin="https://shop.example")
    svc = fake.client()
    request_id = fake.answer(tag="form-1", decision="block", rule="Third account")
    assert svc.check(request_id, origin="https://shop.example", tag="form-1", is_first_use=...).decision == "refuse"

It decides nothing: events are as a test says, and honest where it says nothing. A request id that it was not told of is
not known to it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Unpack, cast
from urllib.parse import unquote

import httpx

from svc_client.checks import is_request_id
from svc_client.client import AsyncClient, Client
from svc_client.retries import Retries
from svc_client.testing_data import ERRORS, OPERATIONS
from svc_client.testing_events import (
    DETAILS,
    NULLABLE,
    Answer,
    Delivery,
    VerdictKey,
    checked,
    delivery_of,
    event_of,
    made_id,
    moment,
    new_request_id,
)

__all__ = ["Answer", "Delivery", "FakeCall", "FakeService"]

URL = "https://svc.test"
"""Nobody's: `.test` is for tests (RFC 2606)."""
WITHOUT_A_KEY = frozenset({"getVerdictKeys", "getHealth", "getReadiness"})
CODES = {400: "bad_request", 402: "no_credit", 404: "not_found", 409: "revision_conflict", 422: "validation_error"}
"""Status -> its code, where several have it."""
SETTABLE = ("account_id", "action", "tag", "label", "label_reason")
LABELS = ("fraud", "legitimate", None)
FILTERS = {
    "visitor": "visitor_id",
    "level": "suspect_level",
    "country": "country_code",
    "kind": "visitor_kind",
    **{name: name for name in ("tag", "ip_address", "account_id", "action", "asn", "label")},
}
"""Filter of a list -> the field that it compares."""
NOT_WITH_ORDER = ("account_id", "action", "tag", "label", "rule")
REQUEST_ID = re.compile("[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


@dataclass(frozen=True)
class FakeCall:
    """One request that arrived."""

    operation: str
    """As the API names it, such as `getEvent`; empty for what is none."""
    path: str
    """Below `/api/v1`."""
    query: dict[str, str]
    body: Any
    status: int | None
    """Of the response; `None` where there was none."""


@dataclass
class _Override:
    """What is answered in place of what would be."""

    operation: str | None
    """`None` = any."""
    left: int | None
    """How many times more; `None` = always."""
    response: httpx.Response | None = None
    failure: type[httpx.RequestError] = httpx.ReadTimeout
    """Without a response."""
    is_failure: bool = True


class FakeService:
    """Answers as a test says.

    `defaults` is what holds for every event that says nothing else: see `answer`. Read `calls` for what arrived.
    """

    organization_id = f"org_{made_id('organization')}"
    url = URL
    secret_key = "svc_sk_us_production_fake"  # noqa: S105  opens nothing
    management_key = "svc_mk_us_fake"

    def __init__(self, **defaults: Unpack[Answer]) -> None:
        self.calls: list[FakeCall] = []
        self._defaults = checked(cast("Mapping[str, Any]", defaults))
        self._visitors: dict[str, dict[str, Any]] = {}
        self._events: dict[str, dict[str, Any]] = {}
        self._changes: list[dict[str, Any]] = []
        self._sent: dict[str, dict[str, Any]] = {}
        self._overrides: list[_Override] = []
        self._key: VerdictKey | None = None

    def client(self, *, api_key: str | None = None, retries: Retries | None = None) -> Client:
        """A client of this service, with its secret key. It tries again without waiting, unless `retries` says
        otherwise.
        """
        return Client(
            self.url,
            api_key or self.secret_key,
            retries=retries or _AT_ONCE,
            http=httpx.Client(transport=self.transport()),
        )

    def async_client(self, *, api_key: str | None = None, retries: Retries | None = None) -> AsyncClient:
        """As `client`, for asyncio and trio."""
        http = httpx.AsyncClient(transport=self.transport())
        return AsyncClient(self.url, api_key or self.secret_key, retries=retries or _AT_ONCE, http=http)

    def transport(self) -> httpx.MockTransport:
        """For an `httpx.Client` or `httpx.AsyncClient` of your own, which a client takes as `http`."""
        return httpx.MockTransport(self._respond)

    # What a test says

    def visitor(self, name: str, **fields: Unpack[Answer]) -> str:
        """Say what holds for events of a visitor; returns the visitor id. Raises as `answer`."""
        self._visitors[name] = checked(cast("Mapping[str, Any]", fields))
        return made_id(name)

    def answer(self, request_id: str | None = None, **fields: Unpack[Answer]) -> str:
        """Say what the event of a request id is; returns the id, a new one if it is left out. Fields are those of
        `get_event`, and those of `Answer`. Raises `ValueError` for what no event can have.
        """
        if request_id is not None and not is_request_id(request_id):
            raise ValueError(f"{request_id!r} is not a request id: leave it out for a new one")
        named = request_id or new_request_id(_now_ms())
        self._put(named, self._event(named, cast("Mapping[str, Any]", fields)))
        return named

    def event(self, request_id: str) -> dict[str, Any]:
        """An event as lists and webhooks have it, as it is now. Raises `KeyError`."""
        return {name: value for name, value in self._events[request_id].items() if name not in DETAILS}

    def verdict(self, request_id: str) -> str:
        """The signed verdict of an event, which `check_verdict` of its clients verifies. Raises `KeyError`."""
        return self._verdict_key.signed(self._events[request_id], self.organization_id)

    def webhook(self, event: Mapping[str, Any], secret: str) -> Delivery:
        """A delivery, signed now. Of the event, an envelope, what is left out is as in a delivery of the type
        `identification.completed`: `fake.webhook({"data": fake.event(request_id)}, secret)`.
        """
        return delivery_of(event, secret, self.organization_id, _now_ms())

    def fail(
        self,
        status: int = 503,
        *,
        code: str | None = None,
        retry_after_s: int | None = None,
        times: int | None = 1,
        operation: str | None = None,
    ) -> None:
        """Fail the next requests, of one operation if it is named. `times`: how many, `None` = all. Raises `ValueError`
        for a status, a code or an operation that the service has not.
        """
        found = code or CODES.get(status) or next((one for one, (its, _) in ERRORS.items() if its == status), None)
        if found is None or ERRORS.get(found, (0, ""))[0] != status:
            raise ValueError(f"the service has no error {status} {code or ''}".rstrip())
        self._override(operation, times, _error(found, retry_after_s=retry_after_s))

    def time_out(self, *, times: int | None = 1, operation: str | None = None) -> None:
        """Leave the next requests without a response, as after the time limit, at once."""
        self._override(operation, times, failure=httpx.ReadTimeout)

    def disconnect(self, *, times: int | None = 1, operation: str | None = None) -> None:
        """Take no connection for the next requests."""
        self._override(operation, times, failure=httpx.ConnectError)

    def recover(self) -> None:
        """Fail no more."""
        self._overrides = [one for one in self._overrides if not one.is_failure]

    def respond(self, operation: str, body: Mapping[str, Any] | None = None, *, times: int | None = None) -> None:
        """Answer an operation, such as `getVisitor`, with this body; without one, with none. For those that the fake
        does not know, and for what it says otherwise. Raises `ValueError` for no operation.
        """
        made = httpx.Response(204) if body is None else _json(OPERATIONS[_known(operation)][2], body)
        self._override(operation, times, made, is_failure=False)

    def _override(
        self,
        operation: str | None,
        times: int | None,
        response: httpx.Response | None = None,
        failure: type[httpx.RequestError] = httpx.ReadTimeout,
        *,
        is_failure: bool = True,
    ) -> None:
        named = None if operation is None else _known(operation)
        self._overrides.append(_Override(named, times, response, failure, is_failure))

    # What arrives

    def _respond(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.partition(b"?")[0].decode().removeprefix("/api/v1")
        operation, names = _found(request.method, path)
        body = json.loads(request.content) if request.content else None
        query = dict(request.url.params)
        try:
            response = self._answered(operation, names, query, body, request)
        except httpx.RequestError:
            self.calls.append(FakeCall(operation, path, query, body, None))
            raise
        self.calls.append(FakeCall(operation, path, query, body, response.status_code))
        return response

    def _answered(
        self, operation: str, names: dict[str, str], query: dict[str, str], body: Any, request: httpx.Request
    ) -> httpx.Response:
        failure = self._next(operation, is_failure=True)
        if failure is not None and failure.response is None:
            raise failure.failure("as the test said", request=request)
        if failure is not None and failure.response is not None:
            return _copy(failure.response)
        key = self.management_key if "organization_id" in names or operation == "getManagementKey" else self.secret_key
        if operation not in WITHOUT_A_KEY and request.headers.get("x-api-key") != key:
            return _error("unauthorized")
        said = self._next(operation, is_failure=False)
        if said is not None and said.response is not None:
            return _copy(said.response)
        if operation == "":
            return _error("not_found")
        return self._operation(operation, names, query, body, request.headers.get("idempotency-key"))

    def _next(self, operation: str, *, is_failure: bool) -> _Override | None:
        """What a test said of this request; that counts as one of its times."""
        for one in self._overrides:
            if one.is_failure == is_failure and one.operation in (None, operation) and one.left != 0:
                one.left = None if one.left is None else one.left - 1
                return one
        return None

    def _operation(  # noqa: PLR0911  a case each
        self, operation: str, names: dict[str, str], query: dict[str, str], body: Any, idempotency_key: str | None
    ) -> httpx.Response:
        match operation:
            case "getHealth":
                return _json(200, {"status": "ok", "version": "0.0.0"})
            case "getReadiness":
                checks = {"store": "ok", "webhooks": "ok", "network_data": "ok"}
                return _json(200, {"status": "ready", "checks": checks})
            case "getManagementKey":
                key = {"key_id": f"key_{made_id('key')}", "name": "fake", "role": "admin", "region": "us"}
                return _json(200, {**key, "organization_id": self.organization_id})
            case "getVerdictKeys":
                return self._of_organization(names) or _json(200, {"keys": [self._verdict_key.jwk]})
            case "identify":
                return self._identified(body, idempotency_key)
            case "getEvent":
                return self._no_event(names) or _json(200, self._events[names["request_id"].lower()])
            case "updateEvent" | "labelEvent":
                return self._of_organization(names) or self._no_event(names) or self._updated(names, body)
            case "listEvents":
                return self._listed(query)
            case "listChanges":
                rows, start = self._changes, int(query.get("after", "0"))
                end = min(len(rows), start + int(query.get("limit", "50")))
                page = {"changes": [self._change(one) for one in rows[start:end]], "next_cursor": str(end)}
                return _json(200, {**page, "has_more": end < len(rows)})
            case _:
                raise NotImplementedError(f'say what {operation} returns: fake.respond("{operation}", ...)')

    def _identified(self, body: Mapping[str, Any], idempotency_key: str | None) -> httpx.Response:
        if idempotency_key in self._sent:
            return _json(200, {**self._sent[idempotency_key], "duplicate": True})
        request_id = new_request_id(_now_ms())
        sent = {name: body[name] for name in ("tag", "account_id", "action") if name in body}
        sdk = body["sdk"]["platform"]
        event = self._event(request_id, {"platform": sdk.rpartition("-")[2], "sdk_platform": sdk, **sent})
        self._put(request_id, event)
        names = (
            "request_id", "visitor_id", "visitor_is_new", "identifiable", "visitor_confidence", "proven", "state",
            "suspect_level", "suspect_score", "decision",
        )  # fmt: skip
        found = {name: event[name] for name in names if event.get(name) is not None}
        verdict = {"verdict": self.verdict(request_id)} if body.get("verdict") else {}
        answer = {**found, "triggers": event["signals"], "deferred_token": made_id(request_id), **verdict}
        if idempotency_key is not None:
            self._sent[idempotency_key] = answer
        return _json(200, answer)

    def _updated(self, names: dict[str, str], body: Mapping[str, Any]) -> httpx.Response:
        event = self._events[names["request_id"].lower()]
        unknown = [name for name in body if name not in SETTABLE]
        if unknown:
            return _invalid(unknown[0], "unknown_field")
        if body.get("label") not in LABELS:
            return _invalid("label", "invalid_value")
        after = {**event, **body}
        if after.get("label") != event.get("label"):
            after["label_reason"] = body.get("label_reason")
        if after.get("label_reason") is not None and after.get("label") is None:
            return _invalid("label_reason", "invalid_value")
        if "account_id" in body:
            after["account_verified"] = None if body["account_id"] is None else True
        after = {name: value for name, value in after.items() if value is not None or name in NULLABLE}
        self._put(event["request_id"], after)
        if "organization_id" not in names:
            return _json(200, after)
        label = {"label": after.get("label"), "label_reason": after.get("label_reason")}
        return _json(200, {"request_id": event["request_id"], **label})

    def _listed(self, query: dict[str, str]) -> httpx.Response:
        is_oldest, limit = query.get("order") == "oldest", int(query.get("limit", "10"))
        for name in NOT_WITH_ORDER if is_oldest else ():
            if name in query:
                return _invalid(name, "not_with_order", "query")
        found = [event for event in self._events.values() if _matches(event, query)]
        page = int(query.get("page", "1"))
        start = int(query.get("after" if is_oldest else "cursor", str((page - 1) * limit)))
        if not is_oldest:
            found = sorted(found, key=lambda event: event["occurred_at"])[::-1]
        end = min(len(found), start + limit)
        rows = [self.event(event["request_id"]) for event in found[start:end]]
        listed: dict[str, Any] = {"rows": rows, "page": page, "page_size": limit}
        if is_oldest or end < len(found):
            listed["next_cursor"] = str(end)
        return _json(200, {**listed, "has_more": end < len(found)} if is_oldest else listed)

    def _no_event(self, names: dict[str, str]) -> httpx.Response | None:
        if not REQUEST_ID.fullmatch(names["request_id"]):
            return _error("invalid_request_id", ("request_id", "invalid_value", "path"))
        return None if names["request_id"].lower() in self._events else _error("event_not_found")

    def _of_organization(self, names: dict[str, str]) -> httpx.Response | None:
        return (
            None if names.get("organization_id", self.organization_id) == self.organization_id else _error("not_found")
        )

    def _event(self, request_id: str, said: Mapping[str, Any]) -> dict[str, Any]:
        merged = {**self._defaults, **said}
        visitor = self._visitors.get(merged.get("visitor", "honest"), {})
        return event_of(request_id, {**self._defaults, **visitor, **said}, _now_ms())

    def _put(self, request_id: str, event: dict[str, Any]) -> None:
        before = self._events.get(request_id)
        self._events[request_id] = event
        if event != before:
            kind = "event.created" if before is None else "event.updated"
            self._changes.append({"type": kind, "at": moment(_now_ms()), "request_id": request_id})

    def _change(self, change: dict[str, Any]) -> dict[str, Any]:
        return {**change, "event": self.event(change["request_id"])}

    @property
    def _verdict_key(self) -> VerdictKey:
        if self._key is None:
            self._key = VerdictKey()
        return self._key


_AT_ONCE = Retries(first_wait_s=0, longest_retry_after_s=0)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _known(operation: str) -> str:
    if operation in OPERATIONS:
        return operation
    raise ValueError(f"{operation} is not an operation: they are named as in the API, such as getEvent")


def _found(method: str, path: str) -> tuple[str, dict[str, str]]:
    """The operation, and what its path names; an empty one for none."""
    for operation, (its, pattern, _) in OPERATIONS.items():
        match = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern), path) if its == method else None
        if match is not None:
            return operation, {name: unquote(value) for name, value in match.groupdict().items()}
    return "", {}


def _matches(event: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    at = datetime.fromisoformat(event["occurred_at"])
    decision = event.get("decision", {})
    wanted = {FILTERS[name]: value for name, value in query.items() if name in FILTERS}
    return (
        all(event.get(name) == value for name, value in wanted.items())
        and query.get("decision") in (None, decision.get("action"))
        and query.get("rule") in (None, decision.get("rule_id"))
        and _fires(event, query)
        and ("from" not in query or at >= datetime.fromisoformat(query["from"]))
        and ("to" not in query or at < datetime.fromisoformat(query["to"]))
    )


def _fires(event: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    signals, groups = ({one[name] for one in event["signals"]} for name in ("signal", "group"))
    return query.get("signal") in {None, *signals} and query.get("group") in {None, *groups}


def _json(status: int, body: Mapping[str, Any]) -> httpx.Response:
    return httpx.Response(status, json=body, headers={"x-request-id": new_request_id(_now_ms())})


def _copy(response: httpx.Response) -> httpx.Response:
    """One that no client has read."""
    return httpx.Response(response.status_code, headers=response.headers, content=response.content)


def _invalid(field: str, issue: str, location: str = "body") -> httpx.Response:
    return _error("validation_error", (field, issue, location))


def _error(
    code: str, detail: tuple[str, str, str] | None = None, *, retry_after_s: int | None = None
) -> httpx.Response:
    status, message = ERRORS[code]
    fault: dict[str, Any] = {"code": code, "message": message, "status": status}
    if detail is not None:
        fault["details"] = [dict(zip(("field", "issue", "location"), detail, strict=True))]
    request_id = new_request_id(_now_ms())
    waits = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
    headers = {"x-request-id": request_id, **waits}
    return httpx.Response(status, json={"error": fault, "request_id": request_id}, headers=headers)
