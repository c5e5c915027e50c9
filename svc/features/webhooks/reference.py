"""The document that the API reference page shows: the OpenAPI document, and the webhooks beside it.

What may live here: what the page has beyond the published document, in which there are no webhooks (interface 4.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from svc.features.webhooks.content.envelope import Envelope
from svc.features.webhooks.content.payloads import DATA
from svc.http.openapi import document as openapi
from svc.http.openapi import json_schema
from svc.http.openapi.json_schema import Json, reference
from svc.http.route import Route
from svc.kernel.values.fields import AN_EVENT_ID, about

TAG = "Webhooks"
HEADERS: dict[str, Any] = {
    "X-Svc-Event-ID": Annotated[str, about("The `id` of the body.", AN_EVENT_ID)],
    "X-Svc-Event-Type": Annotated[str, about("The `type` of the body.", "webhook.test")],
    "X-Svc-Timestamp": Annotated[str, about("When it was sent, in Unix seconds.", "1767607200")],
    "X-Svc-Signature": Annotated[
        str,
        about(
            "`sha256=` and the HMAC-SHA256 of timestamp, a full stop and the raw body. The key is the endpoint's "
            "secret.",
            "sha256=5f2b...",
        ),
    ],
}


def document(routes: Sequence[Route]) -> Json:
    """Return the OpenAPI 3.1 document of these routes, with `webhooks`."""
    made = openapi.emit(routes)
    schemas = json_schema.components([], [Envelope, *(kind for kind, _ in DATA.values())])
    known = {**made["components"]["schemas"], **schemas}
    examples = {route.operation_id: msgspec.json.decode(route.example) for route in routes if route.example}
    for operations in made["paths"].values():
        for operation in operations.values():
            content = operation.get("requestBody", {}).get("content", {}).get(openapi.JSON)
            if content is not None:
                whole = json_schema.example(known, content["schema"])
                content["example"] = examples.get(operation["operationId"], whole)
    return {
        **made,
        "components": {**made["components"], "schemas": known},
        "webhooks": {
            name: {"post": _webhook(name, reference(kind), when, known)} for name, (kind, when) in DATA.items()
        },
    }


def _webhook(name: str, data: Json, when: str, schemas: dict[str, Json]) -> Json:
    envelope = json_schema.example(schemas, reference(Envelope))
    body = {**envelope, "type": name, "data": json_schema.example(schemas, data)}
    parameters = [
        {"name": header, "in": "header", "required": True, **openapi.parameter(of)} for header, of in HEADERS.items()
    ]
    schema = {"allOf": [reference(Envelope), {"type": "object", "properties": {"data": data}}]}
    return {
        "operationId": name,
        "tags": [TAG],
        "summary": when,
        "parameters": parameters,
        "requestBody": {"required": True, "content": {openapi.JSON: {"schema": schema, "example": body}}},
        "responses": {"2XX": {"description": "Accepted. Anything else, or nothing in 10 seconds, is tried again."}},
    }
