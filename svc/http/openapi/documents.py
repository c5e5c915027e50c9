"""The documents that the service publishes of itself, and the page that shows them (decisions 9.2).

What may live here: endpoint functions that respond with files. The page is Swagger UI (docs/adr/0010), whose files are
laid beside the page's own when the package is built; nothing comes from another host. It shows the OpenAPI document
with the webhooks beside it, which the published document does not have (interface 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

import msgspec

from svc.domain.fields import AN_EVENT_ID, about
from svc.domain.refusals import Refusal
from svc.domain.webhooks.envelope import Envelope
from svc.domain.webhooks.payloads import DATA
from svc.http.openapi import collection, json_schema
from svc.http.openapi import document as openapi
from svc.http.openapi.json_schema import Json, reference
from svc.http.pages.static import MEDIA_TYPES, SECURITY_HEADERS, Folder, filled, unless_known
from svc.http.route import CONSOLE_ROOT, Call, File, Handler, Outcome, Route, Services, page_route

ASSETS = frozenset({"reference.js", "reference.css", "samples.js", "swagger-ui-bundle.js", "swagger-ui.css"})
"""By the last segment of their path. A file that is not here is not served."""
_ASSETS = Folder(files("svc.http").joinpath("page"), ASSETS)


def routes(described: Sequence[Route]) -> tuple[Route, ...]:
    """The routes of the page, and of the OpenAPI documents and the collection of `described`; each document is made
    once, when it is first requested.
    """

    @cache
    def document() -> Json:
        return openapi.emit(described)

    of_reference = _fixed(lambda: File(openapi.encode(reference_document(described)), openapi.JSON))
    of_openapi = _fixed(lambda: File(openapi.encode(document()), openapi.JSON))
    of_console = _fixed(lambda: File(openapi.encode(openapi.emit(described, openapi.OF_CONSOLE)), openapi.JSON))
    of_collection = _fixed(lambda: File(openapi.encode(collection.collection(document())), openapi.JSON))
    return (
        Route(operation_id="getOpenApi", path="/openapi.json", handler=of_openapi),
        Route(operation_id="getConsoleOpenApi", path="/openapi.json", under=(CONSOLE_ROOT,), handler=of_console),
        Route(operation_id="getCollection", path="/collection.json", handler=of_collection),
        page_route("getPage", "/docs", page),
        page_route("getReference", "/docs/api", reference_page),
        page_route("getReferenceDocument", "/docs/api/reference.json", of_reference),
        page_route("getAsset", "/docs/api/{asset}", asset),
    )


async def page(_: Services, call: Call) -> Outcome:
    """`GET /docs`: the reference with a try-it panel, served without any outside host (decisions 9.2)."""
    return unless_known(_page(""), call, SECURITY_HEADERS)


async def reference_page(_: Services, call: Call) -> Outcome:
    """`GET /docs/api`: the same page, beside the other documentation."""
    return unless_known(_page("../"), call, SECURITY_HEADERS)


async def asset(_: Services, call: Call) -> Outcome:
    """`GET /docs/api/{asset}`: a script or style of the page; `404 not_found` for any other name."""
    name = call.path["asset"]
    return _ASSETS.served(name, call, SECURITY_HEADERS) if name in _ASSETS else Outcome(Refusal("not_found"))


@cache
def _page(root: str) -> File:
    """The page, with the way from its address to the root of the service."""
    return File(filled("reference.html", {"root": root}), MEDIA_TYPES[".html"])


def _fixed(make: Callable[[], File]) -> Handler:
    made = cache(make)

    async def respond(_: Services, call: Call) -> Outcome:
        return unless_known(made(), call, {})

    return respond


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


def reference_document(routes: Sequence[Route]) -> Json:
    """The OpenAPI 3.1 document of these routes, with `webhooks`."""
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
