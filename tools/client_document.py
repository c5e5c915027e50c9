"""What of the OpenAPI document the client libraries are made of: operations, the schemas that these use, and names.

What may live here: pure functions from the document to values, for the generators of every language.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "openapi.json"
METHODS = ("get", "post", "put", "patch", "delete")
REPEATABLE = frozenset({"identify", "supplementEvent"})
"""Operations that are no `GET` and whose repetition the service recognizes: it never does them twice."""
REFERENCE = re.compile(r"#/components/schemas/(\w+)")
"""A schema by its name."""


class Parameter(NamedTuple):
    """What a caller passes beside the body."""

    name: str
    """As it is sent."""
    schema: Json
    description: str
    required: bool

    @property
    def meaning(self) -> str:
        """As of `meaning`."""
        return meaning({**self.schema, "description": self.description})


class Operation(NamedTuple):
    """One operation of the document."""

    name: str
    method: str
    path: str
    text: str
    """Summary and description."""
    in_path: list[Parameter]
    in_query: list[Parameter]
    in_headers: list[Parameter]
    body: str
    """Name of the body's schema; empty without a body."""
    body_required: bool
    answers: list[str]
    """Names of the schemas of its responses, errors aside; none = no body."""

    @property
    def is_repeatable(self) -> bool:
        """Whether sending it twice does no more than sending it once."""
        return self.method == "GET" or self.name in REPEATABLE


def operations(document: Json) -> Iterator[Operation]:
    """Every operation, in the order of the document."""
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                yield _operation(path, method, methods[method])


def _operation(path: str, method: str, described: Json) -> Operation:
    places: dict[str, list[Parameter]] = {"path": [], "query": [], "header": []}
    for one in described.get("parameters", ()):
        required = one.get("required", False)
        places[one["in"]].append(Parameter(one["name"], one["schema"], one.get("description", ""), required))
    body = described.get("requestBody", {})
    answers: list[str] = []
    for status, response in described["responses"].items():
        if status.startswith("2"):
            schema = response.get("content", {}).get("application/json", {}).get("schema", {})
            answers += REFERENCE.findall(json.dumps(schema))
    return Operation(
        name=described["operationId"],
        method=method.upper(),
        path=path,
        text=f"{described['summary']}.\n\n{described.get('description', '')}".strip(),
        in_path=places["path"],
        in_query=places["query"],
        in_headers=places["header"],
        body="".join(REFERENCE.findall(json.dumps(body))),
        body_required=body.get("required", False),
        answers=[*dict.fromkeys(answers)],
    )


def schemas(document: Json) -> dict[str, Json]:
    """The schemas that the operations are made of, errors included, sorted by name."""
    used = [name for one in operations(document) for name in (one.body, *one.answers) if name]
    return {name: document["components"]["schemas"][name] for name in sorted(_parts(document, ["ErrorBody", *used]))}


def bodies(document: Json) -> set[str]:
    """Names of the schemas that requests are made of."""
    return _parts(document, [one.body for one in operations(document) if one.body])


def _parts(document: Json, names: list[str]) -> set[str]:
    """The names of these schemas and of those that they consist of."""
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            names += REFERENCE.findall(json.dumps(document["components"]["schemas"][name]))
    return found


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text whose paragraphs have an empty line between them, each at most so wide, with one between."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += [*textwrap.wrap(paragraph, width, break_on_hyphens=False, break_long_words=False), ""]
    return lines[:-1]


def snake(name: str) -> str:
    """`listEvents` and `Idempotency-Key` as Python says them."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", name).lower()


def camel(name: str) -> str:
    """`organization_id` and `x-y` as TypeScript says them."""
    first, *others = re.split(r"[-_]", name[0].lower() + name[1:])
    return first + "".join(word[0].upper() + word[1:] for word in others)


def header(name: str) -> str:
    """A header without the prefix that all of them share."""
    return name.lower().removeprefix("x-svc-")


def meaning(schema: Json) -> str:
    """The description, with the values that there are now where the enumeration is open."""
    text = schema.get("description", "")
    values = schema.get("x-extensible-enum") or schema.get("items", {}).get("x-extensible-enum")
    if values and not all(f"`{value}`" in text for value in values):
        text += f" Now one of {', '.join(f'`{value}`' for value in values)}."
    return text


def words(name: str) -> list[str]:
    """The words of a name in small letters: of `request_id`, `Idempotency-Key` and `listSdkKeys`."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)]


def result(document: Json, operation: Operation) -> str:
    """The schema that has every field of an operation's responses, for languages that have one type for a result; empty
    without a body. Raises `ValueError` where none of them has all.
    """
    if not operation.answers:
        return ""
    known: dict[str, Json] = document["components"]["schemas"]
    fields = {name: set(known[name]["properties"]) for name in operation.answers}
    for name, own in fields.items():
        if all(own >= other for other in fields.values()):
            return name
    raise ValueError(f"{operation.name} has several responses, and none has the fields of all")


def alternatives(schema: Json) -> list[Json]:
    """The schemas of which a value has one, as of a text or `null`; empty where the schema says it by itself."""
    kinds: list[str] | str = schema.get("type", "")
    return [{**schema, "type": kind} for kind in kinds] if isinstance(kinds, list) else schema.get("anyOf", [])


def own(parts: list[Json]) -> Json:
    """The schema of a value that may be `null`, or have one of several forms: the first of them, which `merged` gives
    the fields of all.
    """
    return next(part for part in parts if part.get("type") != "null")


def merged(document: Json) -> Json:
    """The document for languages that have one type for a value: where it has one of several schemas, the first has the
    fields of all, and those of the others are optional.
    """
    document = json.loads(json.dumps(document))
    known: dict[str, Json] = document["components"]["schemas"]
    for schema in list(known.values()):
        for field in schema.get("properties", {}).values():
            first, *others = REFERENCE.findall(json.dumps(field.get("items", {}).get("anyOf", []))) or [""]
            for name in others:
                known[first]["properties"] |= {
                    added: part
                    for added, part in known[name]["properties"].items()
                    if added not in known[first]["properties"]
                }
    return document
