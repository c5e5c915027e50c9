"""The OpenAPI 3.1 documents of the API and of the console, from the table of routes: paths, parameters, bodies,
responses and every error.

What may live here: pure functions from rows and types to JSON, and what the documents say of themselves. Source:
interface 4.4 and 9, decisions 9.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

import svc
from svc.http.callers.sessions import COOKIES
from svc.http.openapi import json_schema
from svc.http.openapi.json_schema import EVERYWHERE, PATH, REQUEST_HEADERS, RESPONSE_HEADERS, Json, reference
from svc.http.route import BASE, CONSOLE, CONSOLE_ROOT, Route
from svc.http.schema import DetailBody, ErrorBody
from svc.kernel.access.credentials import KeyKind
from svc.kernel.access.roles import named_roles
from svc.kernel.values.refusals import catalog

JSON = "application/json"
TITLE = "svc"

INTRODUCTION = """\
Identifies the visitors of sites and apps, and scores how suspicious each identification is.

**Keys** go into `x-api-key`. A public key (`svc_pk_`) is for SDKs, a secret key (`svc_sk_`) for your servers, a proxy
key (`svc_px_`) for a first-party proxy that forwards identify requests, and a management key (`svc_mk_`) for
automation. Each belongs to one region, and all but management keys to one environment. A platform is a claim that only
attestation proves.

**Bodies** are JSON. Unknown fields and unknown query parameters are refused. Within version 1
fields, operations and values are added, never removed or renamed: clients ignore fields that they do not know, and
accept new values wherever `x-extensible-enum` lists those there are. A member name that comes twice at the top of a
body is `invalid_value`. A body that an operation does not ask for is ignored up to 1 MiB. The character set is always
UTF-8, whatever `Content-Type` says.

**Caches** keep nothing: responses to requests with a key are `Cache-Control: no-store`.

**Paths** are compared as they are sent: an escape such as `%6d` is decoded only where an identifier stands. `HEAD` is
taken wherever `GET` is.

**Errors** all have the body `ErrorBody`: `error.code` is for programs, `error.message` says what to do. Quote the
`request_id` to the operator.
"""

CONSOLE_INTRODUCTION = f"""\
What the pages of the console read and send, all of it about the organization of the credential: a session or, without
one, a management key in `x-api-key`. Every operation of the API below `/management` is served under `{CONSOLE}` too.
What the document of the API, `{BASE}/openapi.json`, says of bodies, caches, paths and errors holds here as well.
"""

TAGS = {
    "Client API": "What SDKs and first-party proxies send.",
    "Server API": "What your servers read. Needs a secret key; never send one from a browser.",
    "Management: keys": "Keys of the organization. Needs a management key.",
    "Management: webhooks": "Endpoints of yours that events are sent to. Needs a management key.",
    "Management: rules": "What is decided of a visit. Needs a management key; active ones need the role `admin`.",
    "Management: weights": "What each signal weighs. Needs a management key; changes need the role `admin`.",
    "Management: lists": "Lists of visitors, accounts, addresses and more. Needs a management key.",
    "Management: labels": "What events turned out to be, and how signals and rules did. Needs a management key.",
    "Management: reviews": "Cases that a person decides. Needs a management key.",
    "Management: notes": "What people write about visitors and accounts. Needs a management key.",
    "Management: settings": "What holds for the whole organization. Needs a management key; changes need `admin`.",
    "Management: members": "People who sign in to the console. Needs a management key with the role `admin`.",
    "Management: visitors": "The rights of visitors and account holders. Needs a management key with the role `admin`.",
    "Console": (
        f"What the pages of the console read, of the credential's own organization, under `{CONSOLE}`. Needs a session "
        "or, without one, a management key. Every operation under `/management` is served there too, "
        f"as `{CONSOLE}/management/...`, for both; with a session it may be refused with `cross_origin_request` too. "
        f"These operations are in a document of their own, `GET {CONSOLE_ROOT}/openapi.json`."
    ),
    "Health": "Open to all.",
}


class Scheme(NamedTuple):
    """A security scheme of the document: its name and what kind of key it means (interface 5)."""

    name: str
    means: str


SCHEMES: dict[KeyKind, Scheme] = {
    "public": Scheme("publicKey", "`svc_pk_...`: for SDKs, from the origins and platforms of the key."),
    "secret": Scheme(
        "secretKey",
        "`svc_sk_...`: for servers. From a browser it is refused, but for development keys on the page `/docs`.",
    ),
    "management": Scheme("managementKey", "`svc_mk_...`: for automation. From a browser it is refused."),
}
"""Proxy keys go into the same header; they are described with the one operation that takes them."""

SESSION = Scheme(
    "session",
    "The cookie that `signIn` gives to a browser; it holds below `/console` alone. Over plain HTTP, on the machine "
    "itself, its name is `svc-console`. A request that changes anything needs `Sec-Fetch-Site: same-origin` and the "
    "`Origin` of this service too, as browsers send them from its own pages.",
)


class Published(NamedTuple):
    """One OpenAPI document: the routes that it describes, and its title and description."""

    title: str
    introduction: str
    root: str
    """It describes the routes that are served below; its paths begin there."""
    has_sessions: bool = False
    """Whether a session is a credential beside the keys."""


OF_API = Published(TITLE, INTRODUCTION, BASE)
OF_CONSOLE = Published(f"{TITLE} console", CONSOLE_INTRODUCTION, CONSOLE_ROOT, has_sessions=True)


def emit(routes: Sequence[Route], published: Published = OF_API) -> Json:
    """Return the OpenAPI 3.1 document of those of the routes that are served below its root. Raises `KeyError`, naming
    the field, for a field without a description.
    """
    routes = [served for route in routes if (served := below(route, published.root)) is not None]
    paths: dict[str, Json] = {}
    for route in routes:
        paths.setdefault(path_of(route, published.root), {})[route.method.lower()] = _operation(route, published)
    used = {route.tag for route in routes}
    codes = sorted({code for route in routes for code in route.codes})
    return {
        "openapi": "3.1.0",
        "info": {"title": published.title, "version": svc.__version__, "description": published.introduction},
        "servers": [{"url": published.root, "description": "The service that serves this document."}],
        "tags": [{"name": tag, "description": means} for tag, means in TAGS.items() if tag in used],
        "paths": paths,
        "components": {
            "schemas": _schemas(routes),
            "responses": {code: _refusals([code], ()) for code in codes},
            "headers": {
                name: {"required": name == EVERYWHERE, **parameter(of)} for name, of in RESPONSE_HEADERS.items()
            },
            "securitySchemes": _schemes(routes, published),
        },
    }


def below(route: Route, root: str) -> Route | None:
    """Return the route as it is served below this root alone; `None` if it is not."""
    under = tuple(under for under in route.under if f"{under}/".startswith(f"{root}/"))
    return structs.replace(route, under=under) if under else None


def path_of(route: Route, root: str) -> str:
    """Return how the document with this root names the path of a route of `below`."""
    return route.under[0].removeprefix(root) + route.path


def _schemes(routes: Sequence[Route], published: Published) -> Json:
    used = {kind for route in routes for kind in route.kinds}
    schemes: Json = {
        scheme.name: {"type": "apiKey", "in": "header", "name": "x-api-key", "description": scheme.means}
        for kind, scheme in SCHEMES.items()
        if kind in used
    }
    if published.has_sessions:
        cookie = {"type": "apiKey", "in": "cookie", "name": COOKIES["https"], "description": SESSION.means}
        schemes[SESSION.name] = cookie
    return schemes


def encode(document: Json) -> bytes:
    """Return a document as indented JSON with a final newline; the same bytes for equal documents."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _schemas(routes: Sequence[Route]) -> dict[str, Json]:
    bodies = [route.body for route in routes if route.body is not None]
    responses = [kind for route in routes for kinds in _response_bodies(route).values() for kind in kinds]
    return json_schema.components(bodies, [*responses, ErrorBody])


def _operation(route: Route, published: Published) -> Json:
    roles = named_roles(route.permission)
    role = f"Needs the role {roles}." if roles else ""
    description = " ".join(filter(None, (route.description, role)))
    operation: Json = {"operationId": route.operation_id, "tags": [route.tag], "summary": route.summary}
    if description:
        operation["description"] = description
    operation["security"] = _security(route, published)
    of_query = () if route.query is None else json_schema.parameters(route.query)
    parameters = [*_path_parameters(route), *of_query, *map(_header_parameter, route.request_headers)]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"required": route.body_required, "content": _content([route.body])}
    operation["responses"] = _responses(route)
    return operation


def _security(route: Route, published: Published) -> list[Json]:
    """Return the schemes of a route, of which each alone suffices; none if the route is open to all."""
    keys: list[Json] = [{SCHEMES[kind].name: []} for kind in route.kinds if kind in SCHEMES]
    return [{SESSION.name: []}, *keys] if published.has_sessions and keys else keys


def _path_parameters(route: Route) -> Iterator[Json]:
    for name in re.findall(r"{(\w+)}", route.path):
        yield {"name": name, "in": "path", "required": True, **parameter({**PATH, **route.variables}[name])}


def _header_parameter(name: str) -> Json:
    return {"name": name, "in": "header", "required": False, **parameter(REQUEST_HEADERS[name])}


def parameter(annotated: Any) -> Json:
    """Return the description and the schema of a parameter or header, from its annotated type."""
    schema = json_schema.of(annotated)
    return {"description": schema.pop("description"), "schema": schema}


def _response_bodies(route: Route) -> dict[int, list[type[msgspec.Struct]]]:
    """Return the bodies by status, without errors."""
    bodies = {route.status: [] if route.answer is None else [route.answer]}
    for status, kind in route.other_responses:
        bodies.setdefault(status, []).append(kind)
    return bodies


def _responses(route: Route) -> Json:
    """Return every status the operation may respond with."""
    headers = route.response_headers
    refusals: dict[int, list[str]] = {}
    for code in route.codes:
        refusals.setdefault(catalog()[code].status, []).append(code)
    responses: dict[int, Json] = {}
    for status, codes in refusals.items():
        admitted = headers if status in _AFTER_ADMISSION else ()
        alone = len(codes) == 1 and not admitted
        responses[status] = {"$ref": f"#/components/responses/{codes[0]}"} if alone else _refusals(codes, admitted)
    for status, kinds in _response_bodies(route).items():
        responses[status] = _response(status, kinds, refusals.get(status, []), headers)
    if route.media_type:
        kinds = route.media_type.split(", ")
        responses[route.status]["content"] = {kind: {"schema": {"type": "string"}} for kind in kinds}
    return {str(status): responses[status] for status in sorted(responses)}


_AFTER_ADMISSION = (402, 429, 503)
"""Statuses of the errors that a request which was admitted may end in (decisions 3.10)."""


def _response(status: int, kinds: list[type[msgspec.Struct]], codes: list[str], headers: tuple[str, ...]) -> Json:
    response: Json = {"description": HTTPStatus(status).phrase, "headers": _headers(headers)}
    if kinds:
        response["content"] = _content([*kinds, ErrorBody] if codes else kinds)
    return response


def _refusals(codes: Sequence[str], headers: tuple[str, ...]) -> Json:
    """Return one response for the errors that share a status."""
    waiting = ("Retry-After",) if "rate_limited" in codes else ()
    examples = {code: {"value": _error(code)} for code in codes}
    return {
        "description": "\n".join(f"- `{code}`: {catalog()[code].message}" for code in codes),
        "headers": _headers((*headers, *waiting)),
        "content": {JSON: {"schema": reference(ErrorBody), "examples": examples}},
    }


def _error(code: str) -> Json:
    schemas = _error_schemas()
    status, message = catalog()[code]
    example = json_schema.example(schemas, reference(ErrorBody))
    example["error"] = {"code": code, "message": message, "status": status}
    if code == "validation_error":
        example["error"]["details"] = [json_schema.example(schemas, reference(DetailBody))]
    return example


@cache
def _error_schemas() -> dict[str, Json]:
    return json_schema.components([], [ErrorBody])


def _headers(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (EVERYWHERE, *names)}


def _content(kinds: Sequence[type[msgspec.Struct]]) -> Json:
    schemas = [reference(kind) for kind in kinds]
    return {JSON: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}}
