"""Whether a response is what the published document says: status, media type, headers, body, error code.

Hooked into the client of `Live`, so that every response that any test of the service gets is held to the document.
Enumerations are closed here: a response with a value that the document does not list is a mistake of this version.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import httpx
from jsonschema_rs import Draft202012Validator

from svc.features.routes import API
from svc.http.openapi.document import JSON
from tests.support.documents import both, path_in

ERROR = {"$ref": "#/components/schemas/ErrorBody"}


async def check(response: httpx.Response) -> None:
    """Raises `AssertionError` when the answer is not documented."""
    request = response.request
    await response.aread()
    where = f"{request.method} {request.url.path} -> {response.status_code}"
    operation = find(request.method, request.url.path)
    if operation is None:
        check_no_operation(response, where)
        return
    documented = operation["responses"].get(str(response.status_code))
    assert documented is not None, f"{where} is not documented: {response.text}"
    documented = resolved(documented)
    check_headers(response, documented, where)
    if "content" not in documented:
        assert response.content == b"", f"{where} has a body"
        return
    if JSON not in documented["content"]:
        assert response.headers["content-type"].partition(";")[0] in documented["content"], where
        return
    assert response.headers["content-type"] == JSON, where
    body = response.json()
    check_body(body, documented["content"][JSON]["schema"], where)
    if "examples" in documented["content"][JSON]:
        assert body["error"]["code"] in documented["content"][JSON]["examples"], f"{where}: {body['error']['code']}"


def check_no_operation(response: httpx.Response, where: str) -> None:
    """What is not in the document: files, pages for people, preflights, `HEAD`, and what there is nothing at."""
    if "text/html" in response.request.headers.get("accept", "") and response.headers["content-type"].startswith(
        "text/html"
    ):
        return
    if response.status_code >= 400 and response.request.method != "HEAD":
        check_body(response.json(), ERROR, where)


def check_headers(response: httpx.Response, documented: dict[str, Any], where: str) -> None:
    for name, header in documented["headers"].items():
        declared = resolved(header)
        value = response.headers.get(name)
        assert value is not None or not declared["required"], f"{where} lacks {name}"
        if value is not None:
            check_body(int(value) if declared["schema"]["type"] == "integer" else value, declared["schema"], where)


def check_body(body: Any, schema: dict[str, Any], where: str) -> None:
    errors = [f"{list(error.instance_path)}: {error.message}" for error in validator(schema).iter_errors(body)]
    assert not errors, f"{where} is not as documented: {errors}"


@cache
def document() -> dict[str, Any]:
    """Both documents in one, with their enumerations closed."""
    return closed(both(mirrored=True))


@cache
def operations() -> dict[tuple[str, int], list[tuple[re.Pattern[str], dict[str, Any]]]]:
    """By method and number of segments; concrete paths come before those with variables, as in OpenAPI."""
    paths = document()["paths"]
    found: dict[tuple[str, int], list[tuple[re.Pattern[str], dict[str, Any]]]] = {}
    for route in sorted(API, key=lambda route: route.path.count("{")):
        for beginning in route.under:
            path = beginning + route.path
            pattern = re.compile(re.sub(r"{\w+}", "[^/]+", path))
            operation = paths[path_in(route, beginning)][route.method.lower()]
            found.setdefault((route.method, path.count("/")), []).append((pattern, operation))
    return found


def find(method: str, path: str) -> dict[str, Any] | None:
    candidates = operations().get((method, path.count("/")), ())
    return next((operation for pattern, operation in candidates if pattern.fullmatch(path)), None)


_validators: dict[int, tuple[dict[str, Any], Draft202012Validator]] = {}
"""By the identity of the schema, which is kept beside."""


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    """Of a schema within those of the document's components that it needs: to compile all takes some milliseconds."""
    if id(schema) not in _validators:
        whole = {**schema, "components": {"schemas": components_of(schema)}}
        _validators[id(schema)] = schema, Draft202012Validator(whole, validate_formats=True)
    return _validators[id(schema)][1]


def components_of(schema: dict[str, Any]) -> dict[str, Any]:
    """The schemas that one refers to, by itself or through others: name -> schema."""
    found: dict[str, Any] = {}
    left = references(schema)
    while left:
        name = left.pop()
        if name not in found:
            found[name] = document()["components"]["schemas"][name]
            left |= references(found[name])
    return found


def references(part: Any) -> set[str]:
    """The names of the schemas that a part of the document refers to."""
    return set(re.findall(r"'#/components/schemas/(\w+)'", repr(part)))


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    found: Any = document()
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return found


def closed(part: Any) -> Any:
    if isinstance(part, list):
        return [closed(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    return {"enum" if name == "x-extensible-enum" else name: closed(value) for name, value in part.items()}
