"""The request collection for API tools (Postman v2.1 format), made from the OpenAPI document.

What may live here: a pure function from JSON to JSON. One request per operation, filled in with the examples of the
document, in folders by tag: a run from the first to the last passes. Address, keys and ids are variables; scripts fill
the ids from the responses (decisions 9.2).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from svc.http.openapi import json_schema
from svc.http.openapi.document import JSON
from svc.http.openapi.json_schema import Json

FORMAT = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
"""How a collection names its format; nothing is fetched from there."""
BASE_URL = "http://127.0.0.1:8080"
"""Where a service listens that was started without settings."""
HOST = "{{baseUrl}}"
ORIGIN = "http://localhost"
"""From which any public development key is accepted (decisions 2.7)."""

FOLDERS = {
    "Start": ("The id of the organization, which later requests need.", ("getManagementKey",)),
    "End": (
        "Revokes, removes and erases what the requests before have made.",
        (
            "removeMember",
            "deleteList",
            "deleteWebhook",
            "revokeSdkKey",
            "revokeProxyKey",
            "eraseAccount",
            "eraseVisitor",
        ),
    ),
}
"""The first folder and the last: what it is for, and its operations. The others are in between, by tag."""

FROM_RESPONSES = {
    "getManagementKey": {"organizationId": "organization_id"},
    "identify": {"requestId": "request_id", "visitorId": "visitor_id", "deferredToken": "deferred_token"},
    "getEvent": {"accountId": "account_id"},
    "getRules": {"rulesRevision": "revision"},
    "testWebhook": {"eventId": "event_id"},
}
"""Operation -> variable -> where in its response the value is, beside the ids of what an operation makes."""

IN_BODIES: dict[str, Json] = {
    "supplementEvent": {"token": "{{deferredToken}}"},
    "createWebhook": {"url": "{{webhookUrl}}", "filter": None},
    "updateWebhook": {"url": "{{webhookUrl}}"},
    "redeliverWebhook": {"event_id": "{{eventId}}"},
    "openReview": {"request_id": "{{requestId}}"},
    "saveRules": {"revision": "{{rulesRevision}}"},
    "updateMember": {"status": None},
    "saveOrganizationRiskWeights": {"revision": None},
    "saveSdkKeyRiskWeights": {"revision": None},
}
"""Operation -> field -> what stands there instead of its example; `None` = the field is left out."""

_NUMBERS = re.compile(r'"({{rulesRevision}})"')
"""Variables that stand for a number."""

WAITS_MS = {"redeliverWebhook": 3000}
"""How long a run waits before an operation: for the delivery that a test has queued."""
PAUSE_MS = 1000
PAUSES_EACH = 12
"""Operations after which a run pauses, in the order of the document: management keys have an allowance of 20 a second,
and the last folder has seven of them.
"""

GIVEN = {
    "webhookUrl": ("https://localhost:8443/hooks/svc", "Your endpoint; `svc dev` accepts addresses of its machine."),
}
"""Variables with a value from the start."""
QUERIES = {"visitor": "{{visitorId}}", "endpoint_id": "{{webhookId}}"}
"""Query parameter -> its value, where that is an id."""


def collection(document: Json, address: str = BASE_URL) -> Json:
    """Return a Postman v2.1 collection with a request for every operation of an OpenAPI document (decisions 9.2).
    `address`: where its requests go, without a slash at its end.
    """
    variables = from_responses(document)
    each = [(path, *of) for path, operations in document["paths"].items() for of in operations.items()]
    requests: dict[str, tuple[str, Json]] = {}
    for at, (path, method, operation) in enumerate(each):
        name = operation["operationId"]
        wait_ms = WAITS_MS.get(name, 0 if at % PAUSES_EACH else PAUSE_MS)
        item = _item(document, method, path, operation, variables.get(name, {}), wait_ms)
        requests[name] = operation["tags"][0], item
    apart = {name for _, names in FOLDERS.values() for name in names}
    start, end = (
        {"name": title, "description": text, "item": [requests[name][1] for name in names]}
        for title, (text, names) in FOLDERS.items()
    )
    by_tag = [
        {
            "name": tag["name"],
            "description": tag["description"],
            "item": [item for name, (of, item) in requests.items() if of == tag["name"] and name not in apart],
        }
        for tag in document["tags"]
    ]
    return {
        "info": {
            "name": document["info"]["title"],
            "description": document["info"]["description"],
            "version": document["info"]["version"],
            "schema": FORMAT,
        },
        "item": [start, *(folder for folder in by_tag if folder["item"]), end],
        "variable": [
            {"key": "baseUrl", "value": address + document["servers"][0]["url"]},
            *(
                {"key": name, "value": "", "description": scheme["description"]}
                for name, scheme in document["components"]["securitySchemes"].items()
            ),
            *({"key": name, "value": value, "description": text} for name, (value, text) in GIVEN.items()),
            *(
                {"key": name, "value": "", "description": f"Filled in by the response to `{operation}`."}
                for operation, filled in variables.items()
                for name in filled
            ),
        ],
    }


def from_responses(document: Json) -> dict[str, dict[str, str]]:
    """Return, by operation, the variables that its response fills in, each with the place of its value: those of
    `FROM_RESPONSES`, and the id of what a `POST` makes if paths go on with it.
    """
    paths, found = document["paths"], dict(FROM_RESPONSES)
    for path, operations in paths.items():
        made = operations.get("post", {}).get("responses", {}).get("201")
        named = {name for other in paths for name in re.findall(f"^{re.escape(path)}/{{(\\w+)}}", other)}
        if made is not None and named:
            shown = json_schema.example(document["components"]["schemas"], made["content"][JSON]["schema"])
            holders = (name for name, value in shown.items() if isinstance(value, dict) and "id" in value)
            location = "id" if "id" in shown else f"{next(holders)}.id"
            found[operations["post"]["operationId"]] = {_variable(name): location for name in named}
    return found


def _item(document: Json, method: str, path: str, operation: Json, filled: dict[str, str], wait_ms: int) -> Json:
    name, parameters = operation["operationId"], operation.get("parameters", [])
    headers = [_pair(parameter) | {"disabled": True} for parameter in parameters if parameter["in"] == "header"]
    if {"publicKey": []} in operation["security"]:
        headers.insert(0, {"key": "Origin", "value": ORIGIN, "description": "The site that the SDK is on."})
    request: Json = {
        "method": method.upper(),
        "description": operation.get("description", operation["summary"]),
        "auth": _auth(operation["security"]),
        "header": headers,
        "url": _url(path, parameters),
    }
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"][JSON]["schema"]
        sent = {**json_schema.example(document["components"]["schemas"], schema), **IN_BODIES.get(name, {})}
        for field in [field for field, value in IN_BODIES.get(name, {}).items() if value is None]:
            del sent[field]
        request["header"] = [{"key": "Content-Type", "value": JSON}, *headers]
        request["body"] = {
            "mode": "raw",
            "raw": _NUMBERS.sub(r"\1", msgspec.json.format(msgspec.json.encode(sent), indent=2).decode()),
            "options": {"raw": {"language": "json"}},
        }
    return {"name": operation["summary"], "event": _events(wait_ms, filled), "request": request, "response": []}


def _events(wait_ms: int, filled: dict[str, str]) -> list[Json]:
    """Return the scripts before the request, a wait for some, and after it: the check, then the variables."""
    before = [f"setTimeout(function () {{}}, {wait_ms});"] if wait_ms else []
    after = ['pm.test("succeeds", function () { pm.expect(pm.response.code).to.be.within(200, 299); });']
    after += [
        f'pm.collectionVariables.set("{variable}", pm.response.json().{location});'
        for variable, location in filled.items()
    ]
    return [
        {"listen": moment, "script": {"type": "text/javascript", "exec": lines}}
        for moment, lines in (("prerequest", before), ("test", after))
        if lines
    ]


def _auth(security: list[Json]) -> Json:
    """Return the first kind of key that the operation accepts."""
    if not security:
        return {"type": "noauth"}
    said = {"key": "x-api-key", "value": f"{{{{{next(iter(security[0]))}}}}}", "in": "header"}
    return {"type": "apikey", "apikey": [{"key": key, "value": value, "type": "string"} for key, value in said.items()]}


def _url(path: str, parameters: list[Json]) -> Json:
    """Return the URL with path variables as `:name`, as this format has them, and with disabled filters."""
    segments = re.sub(r"{(\w+)}", r":\1", path).strip("/").split("/")
    query = [_pair(parameter) | {"disabled": True} for parameter in parameters if parameter["in"] == "query"]
    return {
        "raw": "/".join([HOST, *segments]),
        "host": [HOST],
        "path": segments,
        "query": query,
        "variable": [_pair(parameter) for parameter in parameters if parameter["in"] == "path"],
    }


def _pair(parameter: Json) -> Json:
    name, schema = parameter["name"], parameter["schema"]
    return {"key": name, "value": _value(name, parameter["in"], schema), "description": parameter["description"]}


def _value(name: str, location: str, schema: Any) -> str:
    """Return the variable named after an id of the path, or an example of anything else."""
    if location == "path" and name.endswith("_id"):
        return "{{" + _variable(name) + "}}"
    return QUERIES.get(name) or str(schema["examples"][0])


def _variable(name: str) -> str:
    """Return the name of the variable for an id of a path."""
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)
