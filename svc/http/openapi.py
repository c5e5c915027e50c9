"""The OpenAPI 3.1 document, from the table of routes: paths, parameters, bodies, answers and every error.

What may live here: pure functions from rows and words to JSON. Source: interface 4.4 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import NamedTuple

import msgspec

import svc
from svc.domain.credentials import KeyKind
from svc.domain.refusals import CATALOGUE
from svc.http import json_schema
from svc.http.glossary import ANSWER_HEADERS, REQUEST_HEADERS, TERMS, Json, Term
from svc.http.json_schema import reference
from svc.http.reference import INTRODUCTION, OPERATIONS, TAGS
from svc.http.route import BASE, EVERY_ROUTE, Route
from svc.http.schema import ErrorBody

JSON = "application/json"
TITLE = "svc"
EVERYWHERE = "X-Request-Id"
"""The header of every answer."""


class Scheme(NamedTuple):
    """One security scheme."""

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


def emit(routes: Sequence[Route]) -> Json:
    """The whole document. Raises `KeyError` with the operation or the field that nothing is said of."""
    paths: dict[str, Json] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    used = {OPERATIONS[route.operation_id].tag for route in routes}
    codes = sorted({code for route in routes for code in _codes(route)})
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": svc.__version__, "description": INTRODUCTION},
        "servers": [{"url": BASE, "description": "The service that serves this document."}],
        "tags": [{"name": tag, "description": means} for tag, means in TAGS.items() if tag in used],
        "paths": paths,
        "components": {
            "schemas": _schemas(routes),
            "responses": {code: _refusals([code], ()) for code in codes},
            "headers": {
                name: {"required": name == EVERYWHERE, **_header(term)} for name, term in ANSWER_HEADERS.items()
            },
            "securitySchemes": {
                scheme.name: {"type": "apiKey", "in": "header", "name": "x-api-key", "description": scheme.means}
                for scheme in SCHEMES.values()
            },
        },
    }


def encode(document: Json) -> bytes:
    """As it is published: indented, with a line end, and the same bytes every time."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _schemas(routes: Sequence[Route]) -> dict[str, Json]:
    bodies = [route.body for route in routes if route.body is not None]
    answers = [kind for route in routes for kinds in _answers(route).values() for kind in kinds]
    return json_schema.components(bodies, [*answers, ErrorBody])


def _operation(route: Route) -> Json:
    words = OPERATIONS[route.operation_id]
    role = "" if route.role is None else f"Needs the role `{route.role}`."
    description = " ".join(filter(None, (words.description, role)))
    operation: Json = {"operationId": route.operation_id, "tags": [words.tag], "summary": words.summary}
    if description:
        operation["description"] = description
    operation["security"] = [{SCHEMES[kind].name: []} for kind in route.kinds if kind in SCHEMES]
    parameters = [*_path_parameters(route), *_query_parameters(route), *map(_header_parameter, words.request_headers)]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"required": route.body_required, "content": _content([route.body])}
    operation["responses"] = _responses(route, words.answer_headers)
    return operation


def _path_parameters(route: Route) -> Iterator[Json]:
    for name in re.findall(r"{(\w+)}", route.path):
        term = TERMS.get(f"path.{name}") or TERMS[name]
        yield {"name": name, "in": "path", "required": True, **_header(term, {"type": "string"})}


def _query_parameters(route: Route) -> Iterator[Json]:
    return iter(()) if route.query is None else json_schema.parameters(route.query)


def _header_parameter(name: str) -> Json:
    return {"name": name, "in": "header", "required": False, **_header(REQUEST_HEADERS[name])}


def _header(term: Term, form: Json | None = None) -> Json:
    """A parameter or a header but for its name."""
    return {"description": term.means, "schema": {**(form or {}), **term.form, "examples": [term.example]}}


def _answers(route: Route) -> dict[int, list[type[msgspec.Struct]]]:
    """Bodies by status, errors aside."""
    answers = {route.status: [] if route.answer is None else [route.answer]}
    for status, kind in route.other_answers:
        answers.setdefault(status, []).append(kind)
    return answers


def _codes(route: Route) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*route.errors, *EVERY_ROUTE)))


def _responses(route: Route, headers: tuple[str, ...]) -> Json:
    """Every status the operation may answer with. `headers`: those of answers that reached admission."""
    answers = _answers(route)
    refusals: dict[int, list[str]] = {}
    for code in _codes(route):
        refusals.setdefault(CATALOGUE[code][0], []).append(code)
    responses: dict[int, Json] = {}
    for status, codes in refusals.items():
        admitted = headers if status in _AFTER_ADMISSION else ()
        alone = len(codes) == 1 and not admitted
        responses[status] = {"$ref": f"#/components/responses/{codes[0]}"} if alone else _refusals(codes, admitted)
    for status, kinds in answers.items():
        responses[status] = _answer(status, kinds, refusals.get(status, []), headers)
    return {str(status): responses[status] for status in sorted(responses)}


_AFTER_ADMISSION = (402, 429, 503)
"""Statuses of the errors that a request which was admitted may end in (decisions 3.10)."""


def _answer(status: int, kinds: list[type[msgspec.Struct]], codes: list[str], headers: tuple[str, ...]) -> Json:
    answer: Json = {"description": HTTPStatus(status).phrase, "headers": _headers(headers)}
    if kinds:
        answer["content"] = _content([*kinds, ErrorBody] if codes else kinds)
    return answer


def _refusals(codes: Sequence[str], headers: tuple[str, ...]) -> Json:
    """Errors that share a status."""
    waiting = ("Retry-After",) if "rate_limited" in codes else ()
    examples = {code: {"value": _error(code)} for code in codes}
    return {
        "description": "\n".join(f"- `{code}`: {CATALOGUE[code][1]}" for code in codes),
        "headers": _headers((*headers, *waiting)),
        "content": {JSON: {"schema": reference(ErrorBody), "examples": examples}},
    }


def _error(code: str) -> Json:
    status, message = CATALOGUE[code]
    error: Json = {"code": code, "message": message, "status": status}
    if code == "validation_error":
        error["details"] = [{name: TERMS[name].example for name in ("field", "issue", "location")}]
    return {"error": error, "request_id": TERMS["request_id"].example}


def _headers(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (EVERYWHERE, *names)}


def _content(kinds: Sequence[type[msgspec.Struct]]) -> Json:
    schemas = [reference(kind) for kind in kinds]
    return {JSON: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}}
