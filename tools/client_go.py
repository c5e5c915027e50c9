"""The generated sources of the client library for Go: a struct for each schema, and a method for each operation.

What may live here: pure functions from the OpenAPI document to text, formatted as gofmt does. What the library does
with a call is written by hand, in `clients/go`.
"""

from __future__ import annotations

import json
import re

from tools.client_document import (
    REFERENCE,
    Json,
    Operation,
    Parameter,
    alternatives,
    bodies,
    header,
    meaning,
    operations,
    own,
    result,
    schemas,
    words,
    wrapped,
)

INITIALISMS = {"api", "asn", "id", "ids", "ip", "os", "sdk", "tls", "url", "vpn"}
HEAD = "// Code generated from docs/openapi.json by make reference. DO NOT EDIT.\n\npackage svc\n"
TYPES = """
// A response may have more fields than are here, and a field that lists its values may have others: both are
// added within version 1.
"""
OPERATIONS = '\nimport (\n\t"cmp"\n\t"context"\n\t"net/http"\n)\n'
KINDS = {"string": "string", "integer": "int64", "number": "float64", "boolean": "bool"}
BY_REFERENCE = ("[]", "map[", "any", "*")
"""How a type begins that has a value for `nothing`."""


def exported(name: str) -> str:
    """`request_id` and `listSdkKeys` as Go says them."""
    return "".join(
        {"ids": "IDs"}.get(word, word.upper()) if word in INITIALISMS else word.capitalize() for word in words(name)
    )


def unexported(name: str) -> str:
    """`organization_id` as Go names an argument."""
    first, *others = words(name)
    return first + "".join(exported(word) for word in others)


def go_type(schema: Json) -> str:
    """The type of a schema; a pointer, where it may be `null`. Raises `KeyError` for one that has no type here."""
    if reference := REFERENCE.search(schema.get("$ref", "")):
        return exported(reference[1])
    if parts := alternatives(schema):
        kind = go_type(own(parts))
        return _optional(kind) if any(part.get("type") == "null" for part in parts) else kind
    kind: str = schema.get("type", "string" if "enum" in schema else "any")
    if kind == "array":
        return f"[]{go_type(schema['items'])}"
    if kind == "object":
        values: Json | bool = schema.get("additionalProperties", True)
        return f"map[string]{'any' if isinstance(values, bool) else go_type(values)}"
    return "any" if kind == "any" else KINDS[kind]


def _optional(kind: str) -> str:
    return kind if kind.startswith(BY_REFERENCE) else f"*{kind}"


def _comment(text: str, indent: str = "") -> str:
    return "".join(f"{indent}// {line}".rstrip() + "\n" for line in wrapped(text, 112))


def go_types(document: Json) -> str:
    """The text of `types.go`."""
    asked = bodies(document)
    parts = [HEAD, TYPES]
    for name, schema in schemas(document).items():
        parts.append(f"\n// {exported(name)} is {'part of a request' if name in asked else 'part of a response'}.\n")
        parts.append(f"type {exported(name)} struct {{\n")
        for field, part in schema["properties"].items():
            parts.append(_field(field, part, required=field in schema.get("required", ()), asked=name in asked))
        parts.append("}\n")
    for operation in operations(document):
        for kind, given in (("Query", operation.in_query), ("Headers", operation.in_headers)):
            if given:
                parts.append(f"\n// {exported(operation.name)}{kind} is of {exported(operation.name)}.")
                parts.append(" What is zero is left out.\n")
                parts.append(f"type {exported(operation.name)}{kind} struct {{\n")
                parts += [_member(one, header(one.name) if kind == "Headers" else one.name) for one in given]
                parts.append("}\n")
    return "".join(parts)


def _member(one: Parameter, name: str) -> str:
    return f"{_comment(one.meaning, '	')}\t{exported(name)} {go_type(one.schema)}\n"


def _field(name: str, schema: Json, *, required: bool, asked: bool) -> str:
    kind, tag = go_type(schema), name
    if not required:
        tag += ",omitzero"
        is_scalar = not kind.startswith(BY_REFERENCE) or kind.startswith("*")
        kind = f"Optional[{kind.removeprefix('*')}]" if asked and is_scalar else _optional(kind)
    text = meaning(schema) or f"As of {exported(name)}."
    return f'{_comment(text, "	")}\t{exported(name)} {kind} `json:"{tag}"`\n'


def go_operations(document: Json) -> str:
    """The text of `operations.go`."""
    return HEAD + OPERATIONS + "".join(_method(document, one) for one in operations(document))


def _method(document: Json, operation: Operation) -> str:
    name = exported(operation.name)
    given = ["ctx context.Context", *(f"{unexported(one.name)} string" for one in operation.in_path)]
    call = [f"Method: http.Method{operation.method.capitalize()}"]
    pattern = re.sub(r"\{\w+\}", "{}", operation.path)
    call.append(f'Path: "{pattern}"')
    if operation.in_path:
        call.append(f"Segments: []string{{{', '.join(unexported(one.name) for one in operation.in_path)}}}")
    if operation.body:
        given.append(f"body {exported(operation.body)}")
        call.append("Body: body")
    for kind, parameters in (("query", operation.in_query), ("headers", operation.in_headers)):
        if parameters:
            given.append(f"{kind} {name}{kind.capitalize()}")
            call.append(f"{kind.capitalize()}: given({', '.join(_given(one, kind) for one in parameters)})")
    if operation.is_repeatable:
        call.append("IsRepeatable: true")
    text, answer = operation.text, result(document, operation)
    if "DuplicateAnswer" in operation.answers:
        text += "\n\nOf a duplicate, the request id and Duplicate may be all that is set."
    about = _comment(f"{name}: {text[0].lower()}{text[1:]}")
    together = "".join(f"\t\t{one},\n" for one in _aligned(call))
    head = f"\n{about}func (c *Client) {name}({', '.join(given)})"
    if not answer:
        return f"{head} error {{\n\treturn c.Send(ctx, Call{{\n{together}\t}}, nil)\n}}\n"
    sent = f"if err := c.Send(ctx, Call{{\n{together}\t}}, &into); err != nil {{\n\t\treturn nil, err\n\t}}"
    made = f"\tvar into {exported(answer)}\n\t{sent}\n\treturn &into, nil\n"
    return f"{head} (*{exported(answer)}, error) {{\n{made}}}\n"


def _aligned(members: list[str]) -> list[str]:
    """Members of a literal with their values in one column, as gofmt has them."""
    longest = max(member.index(": ") for member in members)
    return [
        f"{name}:{' ' * (longest - len(name))} {value}"
        for name, _, value in (member.partition(": ") for member in members)
    ]


def _given(one: Parameter, kind: str) -> str:
    member = f"{kind}.{exported(header(one.name) if kind == 'headers' else one.name)}"
    defaults = {"Idempotency-Key": f"orNewKey({member})", "x-svc-replay": f'cmp.Or({member}, "full")'}
    return f"{json.dumps(one.name)}, {defaults.get(one.name, member)}"
