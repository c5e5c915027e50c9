"""The structs of bodies and queries as JSON Schema (draft 2020-12), with what each field means.

What may live here: pure functions from types to schemas. Forms and texts both come from the types, so that what is
published is what is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta

from svc.kernel.values.fields import (
    A_REPORT,
    A_REQUEST_ID,
    OR_ELSE,
    PLATFORMS,
    UUID_FORM,
    AccountId,
    KeyId,
    OrganizationId,
    RequestId,
    VisitorId,
    about,
)

Json = dict[str, Any]

COMPONENTS = "#/components/schemas/"

_REFERENCE = re.compile(COMPONENTS + r"(\w+)")


def components(bodies: Iterable[type[msgspec.Struct]], responses: Iterable[type[msgspec.Struct]]) -> dict[str, Json]:
    """Return the schema of every struct that requests and responses are made of, by its name.

    A struct that is in `responses` alone has open enumerations: their values are listed, and others are not forbidden
    (decisions 1.10). Raises `KeyError`, naming the field, for a field without a description.
    """
    bodies, responses = list(bodies), list(responses)
    requested = {kind.__name__ for kind in _within(bodies)}
    kinds = {kind.__name__: kind for kind in _within([*bodies, *responses])}
    _, schemas = msgspec.json.schema_components(kinds.values(), ref_template=COMPONENTS + "{name}")
    described: dict[str, Json] = {}
    awaited = [kind.__name__ for kind in (*bodies, *responses)]
    while awaited:
        name = awaited.pop()
        if name not in described:
            described[name] = _described(kinds[name], schemas[name], is_open=name not in requested)
            awaited += _REFERENCE.findall(msgspec.json.encode(described[name]).decode())
    return dict(sorted(described.items()))


def parameters(query: type[msgspec.Struct]) -> Iterator[Json]:
    """Yield one OpenAPI parameter object for each field of a query. Raises `KeyError` for a field without a
    description.
    """
    _, schemas = msgspec.json.schema_components([query], ref_template=COMPONENTS + "{name}")
    described = _described(query, schemas[query.__name__], is_open=False, is_query=True)
    for name, schema in described["properties"].items():
        required = name in described.get("required", ())
        description = schema.pop("description")
        yield {"name": name, "in": "query", "required": required, "description": description, "schema": schema}


def reference(kind: type[msgspec.Struct]) -> Json:
    """Return `{"$ref": ...}` to the component of a struct."""
    return {"$ref": COMPONENTS + kind.__name__}


def example(schemas: Mapping[str, Json], schema: Json) -> Any:
    """Return a value of the schema, put together from the examples of its parts. `schemas` are the components that it
    refers to; raises `KeyError` if a part has neither an example nor parts.
    """
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return example(schemas, schemas[schema["$ref"].removeprefix(COMPONENTS)])
    if "anyOf" in schema:
        return example(schemas, schema["anyOf"][0])
    if schema.get("type") == "array":
        return [example(schemas, schema["items"])]
    return {name: example(schemas, part) for name, part in schema["properties"].items()}


def of(annotated: Any) -> Json:
    """Return the schema of an annotated type that is not a struct, such as that of a header."""
    return _arranged(msgspec.json.schema(annotated))


def _described(kind: type[msgspec.Struct], schema: Json, *, is_open: bool, is_query: bool = False) -> Json:
    described: Json = msgspec.json.decode(msgspec.json.encode(schema))  # defaults that are tuples become arrays
    for for_developers in ("title", "description"):
        described.pop(for_developers, None)
    for name, part in described["properties"].items():
        if "description" not in part:
            raise KeyError(f"{kind.__name__}.{name} has no description")
        if not is_query:  # of a body, a generated client would require what has a default
            default = part.pop("default", None)
            if default is not None and not is_open:
                part["description"] += f" Default: `{msgspec.json.encode(default).decode()}`."
        described["properties"][name] = _arranged(_opened(part) if is_open else part)
    if not described["required"]:
        del described["required"]
    return described


_FIRST, _LAST = ("description", "type"), ("examples",)


def _arranged(part: Any) -> Any:
    """Return a schema in reading order: what it means, what it is, examples."""
    match part:
        case list():
            return [_arranged(inner) for inner in cast("list[Any]", part)]
        case dict():
            schema = cast("Json", part)
            middle = [name for name in schema if name not in (*_FIRST, *_LAST)]
            return {
                name: schema[name] if name in _LAST else _arranged(schema[name])
                for name in (*_FIRST, *middle, *_LAST)
                if name in schema
            }
        case _:
            return part


def _opened(part: Any) -> Any:
    """Make enumerations lists of present values, and a part with another possible form one of two. Keep constants."""
    match part:
        case list():
            return [_opened(inner) for inner in cast("list[Any]", part)]
        case {"$ref": str(own), "or_else": str(other), **described}:
            return {"anyOf": [{"$ref": own}, {"$ref": COMPONENTS + other}], **described}
        case {"enum": [*values], **others} if all(isinstance(value, str) for value in values):
            return {"type": "string", "x-extensible-enum": values} | _opened(others)
        case dict():
            return {key: _opened(value) for key, value in cast("Json", part).items()}
        case _:
            return part


def _within(kinds: Iterable[type[msgspec.Struct]]) -> list[type[msgspec.Struct]]:
    """Return the structs and those that they consist of."""
    return list(dict.fromkeys(found for kind in kinds for found in _structs(msgspec.inspect.type_info(kind))))


def _structs(part: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(part, msgspec.inspect.StructType):
        yield part.cls
    if isinstance(part, msgspec.inspect.Metadata):
        extra = cast("dict[str, type[msgspec.Struct]] | None", part.extra)  # pyright: ignore[reportUnknownMemberType]
        if extra is not None and OR_ELSE in extra:
            yield from _structs(msgspec.inspect.type_info(extra[OR_ELSE]))
    if isinstance(part, msgspec.Struct):
        for name in part.__struct_fields__:
            yield from _structs(getattr(part, name))
    elif isinstance(part, tuple):
        for inner in cast("tuple[Any, ...]", part):
            yield from _structs(inner)


PATH: dict[str, Any] = {
    "organization_id": OrganizationId,
    "request_id": RequestId,
    "visitor_id": VisitorId,
    "account_id": Annotated[AccountId, about("Id of the account, percent-encoded: `/` is `%2F`.", "user-8271")],
    "key_id": KeyId,
    "platform": Annotated[str, about("Platform whose weights are meant.", "web", form={"enum": [*PLATFORMS]})],
}
"""Variables of paths that several features have; a route declares its others (`Route.variables`)."""

REQUEST_HEADERS: dict[str, Any] = {
    "Idempotency-Key": Annotated[
        str,
        Meta(min_length=1, max_length=255),
        about(
            "Makes a retry safe: a request whose key was used in the last 24 hours is a duplicate and costs nothing. "
            "Its scope is the organization with all its environments: use random keys, or keys unique across "
            "environments.",
            "3f6b0f0e-checkout",
        ),
    ],
    "x-svc-replay": Annotated[
        str,
        about(
            "`full`: a duplicate within a minute of its original, by the same key and from the same origin, gets the "
            "original's whole response and `duplicate: true`, if it comes from the same address or has the same "
            "`signals`. For a retry whose first response was lost or late.",
            "full",
        ),
    ],
    "x-svc-sdk-platform": Annotated[
        str, Meta(min_length=1, max_length=64), about("Platform of the SDK, where the body does not say.", "android")
    ],
    "x-svc-visitor-ip": Annotated[
        str,
        about(
            "From a proxy key (required) or a secret key: the visitor's IPv4 or IPv6 address. With any other key it is "
            "ignored, and so are the other `x-svc-visitor-` headers.",
            "81.2.69.160",
        ),
    ],
    "x-svc-visitor-origin": Annotated[
        str, Meta(max_length=300), about("The site that the visitor is at.", "https://shop.example")
    ],
    "x-svc-visitor-user-agent": Annotated[
        str, Meta(max_length=1024), about("The visitor's user agent.", A_REPORT["userAgent"])
    ],
    "x-svc-visitor-headers": Annotated[
        str,
        Meta(max_length=2048),
        about(
            "The visitor's `accept-language`, `sec-ch-ua...` and `sec-fetch-...` headers as a JSON object of texts. "
            "Without them `forged_report` stays silent.",
            '{"accept-language":"en-GB,en;q=0.9","sec-fetch-site":"same-origin"}',
        ),
    ],
    "Last-Event-ID": Annotated[
        str,
        about("The id of the last event that was received. Browsers send it when they reconnect.", A_REQUEST_ID),
    ],
    "x-svc-public-key": Annotated[
        str,
        about(
            "From a proxy key: the visitor's public key, whose origins, platforms and weights then apply.",
            "svc_pk_us_production_...",
        ),
    ],
}
"""Beside the key."""

RESPONSE_HEADERS: dict[str, Any] = {
    "X-Request-Id": Annotated[str, about("UUIDv7 of the request.", A_REQUEST_ID, form=UUID_FORM)],
    "Svc-Balance-Micros": Annotated[
        int, about("Remaining balance in millionths of a US dollar; it reflects production traffic.", 24997000)
    ],
    "RateLimit-Limit": Annotated[
        int, about("The organization's rate limit, per second; left out where it has none.", 100)
    ],
    "RateLimit-Remaining": Annotated[
        int, about("What remained of it when the request was admitted; left out where there is none.", 99)
    ],
    "Retry-After": Annotated[int, Meta(ge=1), about("Seconds to wait.", 1)],
    "Server-Timing": Annotated[
        str, about("With a development key: the milliseconds that it took, for browsers' tools.", "svc;dur=1.7")
    ],
}
EVERYWHERE = "X-Request-Id"
"""The header of every response."""

FORWARDED = (
    "x-svc-sdk-platform",
    "x-svc-visitor-ip",
    "x-svc-visitor-origin",
    "x-svc-visitor-user-agent",
    "x-svc-visitor-headers",
    "x-svc-public-key",
)
"""Request headers of routes that servers and proxies call for a visitor."""
ADMITTED = ("Svc-Balance-Micros", "RateLimit-Limit", "RateLimit-Remaining")
"""Response headers of every response to a request that reached admission."""
