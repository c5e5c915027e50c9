"""Writes what of the client libraries follows from the OpenAPI document: the types of bodies, and a method for each
operation of the server, client and management APIs. `python -m tools.client_code` writes all files.

What may live here: pure functions from the document to source text. What a library does with a call (sending, retries,
errors) is written by hand, in `clients`. `client_go` and `client_java` have what is written for these two languages.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from keyword import iskeyword
from pathlib import Path
from typing import NamedTuple

from tools.client_document import (
    DOCUMENT,
    REFERENCE,
    ROOT,
    Json,
    Operation,
    Parameter,
    alternatives,
    camel,
    header,
    meaning,
    merged,
    operations,
    schemas,
    snake,
    wrapped,
)
from tools.client_go import go_operations, go_types
from tools.client_java import java_operations, java_types
from tools.client_testing import python_testing, typescript_testing

MAX_LINE = 120


# Python

PYTHON_TYPES = '''\
"""Bodies of requests and responses, as the service documents them. Generated from docs/openapi.json: `make reference`.

A response may have more fields than are here, and a field that lists its values may have others: both are added within
version 1.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''

PYTHON_OPERATIONS = '''\
"""The operations of the service, one method each, which {how}. Generated from docs/openapi.json: `make reference`."""

from __future__ import annotations

from typing import Any, Literal

from svc_client.call import UNSET, Call, Unset, given, new_idempotency_key, path
from svc_client.types import {imports}


class {name}:
    """Every operation but those of the console. Each raises `ApiError` where the service refuses, and
    `UnreachableError` where it does not respond.
    """

    {define} _send(self, call: Call) -> Any:
        """The decoded body of the response; `None` without one."""
        raise NotImplementedError

{methods}
'''


def python_type(schema: Json) -> str:
    """The annotation of a schema. Enumerations of responses are open, so that they are `str`."""
    if reference := REFERENCE.search(schema.get("$ref", "")):
        return reference[1]
    if parts := alternatives(schema):
        return " | ".join(map(python_type, parts))
    kind: str = schema.get("type", "any")
    if "enum" in schema:
        return f"Literal[{', '.join(map(json.dumps, schema['enum']))}]"
    if kind == "array":
        return f"list[{python_type(schema['items'])}]"
    if kind == "object":
        values: Json | bool = schema.get("additionalProperties", True)
        return f"dict[str, {'Any' if isinstance(values, bool) else python_type(values)}]"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "any": "Any"}[kind]


def python_types(document: Json) -> str:
    """The text of `svc_client/types.py`: a `TypedDict` for each schema that a response is made of, formatted by ruff.
    Raises as `python_operations`.
    """
    parts = [PYTHON_TYPES]
    every = list(operations(document))
    answered = {name for one in every for name in one.answers}
    of_requests = {one.body for one in every} - answered  # their fields are arguments of the methods
    for name, schema in schemas(document).items():
        if name in of_requests:
            continue
        kinds = {
            field: kind if field in schema.get("required", ()) else f"NotRequired[{kind}]"
            for field, part in schema["properties"].items()
            for kind in (python_type(part),)
        }
        if any(map(iskeyword, kinds)):  # as `from` is, which no class can have
            fields = "".join(f"{json.dumps(field)}: {json.dumps(kind)}, " for field, kind in kinds.items())
            parts.append(f"\n\n{name} = TypedDict({json.dumps(name)}, {{{fields}}})")
            parts.append(_python_text(_described(schema), 0))
            continue
        parts.append(f"\n\nclass {name}(TypedDict):")
        for field, kind in kinds.items():
            parts.append(f"    {field}: {kind}")
            parts.append(_python_text(meaning(schema["properties"][field]), 4))
    return _formatted("\n".join(parts))


def _described(schema: Json) -> str:
    """What each field of a schema means, for one that has no place for it beside its fields."""
    return "\n\n".join(f"{field}: {meaning(part)}" for field, part in schema["properties"].items())


def _python_text(text: str, indent: int) -> str:
    lines = wrapped(text.replace("\\", "\\\\"), 112 - indent)
    closed = [f'"""{lines[0]}', *lines[1:]]
    if len(lines) == 1:
        closed[0] += '"""'
    else:
        closed.append('"""')
    return "\n".join(" " * indent + line if line else "" for line in closed)


class Argument(NamedTuple):
    """A parameter of a Python method."""

    name: str
    sent: str
    annotation: str
    text: str
    required: bool

    @property
    def is_nullable(self) -> bool:
        """Whether `None` is sent, as `null`: what may be left out is `UNSET` then."""
        return self.annotation.endswith("| None")

    @property
    def declared(self) -> str:
        """As the method's signature has it."""
        if self.required:
            return f"{self.name}: {self.annotation}"
        if self.is_nullable:
            return f"{self.name}: {self.annotation.removesuffix('None')}Unset | None = UNSET"
        return f"{self.name}: {self.annotation} | None = None"


def _python_arguments(parameters: Iterable[Parameter], rename: Callable[[str], str] = str) -> list[Argument]:
    return [
        Argument(
            {"from": "from_"}.get(snake(rename(one.name)), snake(rename(one.name))),
            one.name,
            python_type(one.schema),
            one.description,
            one.required,
        )
        for one in parameters
    ]


def _body_parameters(document: Json, name: str) -> list[Parameter]:
    if not name:
        return []
    schema = document["components"]["schemas"][name]
    return [
        Parameter(field, part, part["description"], field in schema.get("required", ()))
        for field, part in schema["properties"].items()
    ]


def python_operations(document: Json, *, is_async: bool) -> str:
    """The text of `svc_client/operations.py`, or with `is_async` of `svc_client/async_operations.py`: a method for each
    operation of the OpenAPI document, formatted by ruff. Raises `KeyError` for a type that has no annotation.
    """
    methods = [_python_method(document, one, is_async=is_async) for one in operations(document)]
    source = "\n\n".join(methods)
    names = [name for name in schemas(document) if re.search(rf"\b{name}\b", source)]
    return _formatted(
        PYTHON_OPERATIONS.format(
            imports=", ".join(names),
            how="awaits" if is_async else "blocks",
            name="AsyncOperations" if is_async else "Operations",
            define="async def" if is_async else "def",
            methods=source,
        )
    )


def _python_method(document: Json, operation: Operation, *, is_async: bool) -> str:
    positional = _python_arguments(operation.in_path)
    query = _python_arguments(operation.in_query)
    body = _python_arguments(_body_parameters(document, operation.body))
    headers = _python_arguments(operation.in_headers, header)
    named = sorted((*query, *body, *headers), key=lambda one: not one.required)
    signature = ["self", *(f"{one.name}: {one.annotation}" for one in positional), *(["*"] if named else [])]
    signature += [one.declared for one in named]
    pattern = re.sub(r"\{\w+\}", "{}", operation.path)
    path = f"path({json.dumps(pattern)}, {', '.join(one.name for one in positional)})" if positional else f'"{pattern}"'
    call = [f'"{operation.method}", {path}']
    for place, arguments in (("query", query), ("headers", headers), ("body", body)):
        if arguments:
            nullable = [one for one in arguments if one.is_nullable]
            parts = [_python_values(one for one in arguments if not one.is_nullable)]
            parts += [_python_values(nullable)] if nullable else []
            call.append(f"{place}=given({', '.join(parts)})")
    if operation.is_repeatable:
        call.append("is_repeatable=True")
    text = operation.text
    if arguments := [*positional, *named]:
        text += "\n\nArgs:"
    text = _python_text(text, 8).removesuffix('"""').rstrip()
    for one in arguments:
        text += "\n" + textwrap.fill(
            f"{one.name}: {one.text}", 112, initial_indent=" " * 12, subsequent_indent=" " * 16, break_on_hyphens=False
        )
    text += '\n        """' if "\n" in text else '"""'
    answer = " | ".join(operation.answers) or "None"
    define, await_ = ("async def", "await ") if is_async else ("def", "")
    returned = f"return {await_}self._send(Call({', '.join(call)}))"
    if answer == "None":
        returned = returned.removeprefix("return ")
    return f"    {define} {snake(operation.name)}({', '.join(signature)}) -> {answer}:\n{text}\n        {returned}"


def _python_values(arguments: Iterable[Argument]) -> str:
    return f"{{{', '.join(f'{json.dumps(one.sent)}: {_python_value(one)}' for one in arguments)}}}"


def _python_value(one: Argument) -> str:
    defaults = {"Idempotency-Key": "new_idempotency_key()", "x-svc-replay": '"full"'}
    return f"{one.name} or {defaults[one.sent]}" if one.sent in defaults else one.name


def _formatted(source: str) -> str:
    ruff = Path(sys.executable).parent / "ruff"
    command = [ruff, "format", "--stdin-filename", "clients/python/svc_client/generated.py", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True, cwd=ROOT).stdout  # noqa: S603  our own


# TypeScript

TYPESCRIPT_TYPES = """// Bodies of requests and responses, as the service documents them.
// Generated from docs/openapi.json: make reference
//
// A response may have more fields than are here: they are added within version 1.

/** The values that there are now. Others may come. */
export type Open<Values extends string> = Values | (string & {});"""

TYPESCRIPT_OPERATIONS = """\
// The operations of the service, one method each. Generated from docs/openapi.json: make reference

import { type Call, segment } from "./call.js";
import type {
  %(imports)s,
} from "./types.js";

/**
 * Every operation but those of the console. Each rejects with `ApiError` where the service refuses, and with
 * `UnreachableError` where it does not respond.
 */
export abstract class Operations {
  protected abstract send<Answer>(call: Call): Promise<Answer>;

%(methods)s
}
"""


def typescript_type(schema: Json) -> str:  # noqa: PLR0911  a case each
    """The type of a schema. An open enumeration names the values that there are now, and accepts others."""
    if reference := REFERENCE.search(schema.get("$ref", "")):
        return reference[1]
    if parts := alternatives(schema):
        return " | ".join(map(typescript_type, parts))
    kind: str = schema.get("type", "any")
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    if "x-extensible-enum" in schema:
        return f"Open<{' | '.join(map(json.dumps, schema['x-extensible-enum']))}>"
    if kind == "array":
        return f"Array<{typescript_type(schema['items'])}>"
    if kind == "object":
        values: Json | bool = schema.get("additionalProperties", True)
        return f"Record<string, {'unknown' if isinstance(values, bool) else typescript_type(values)}>"
    return {
        "string": "string",
        "integer": "number",
        "number": "number",
        "boolean": "boolean",
        "null": "null",
        "any": "unknown",
    }[kind]


def typescript_types(document: Json) -> str:
    """The text of `src/types.ts`: an interface for each schema that an operation of the OpenAPI document uses. Raises
    `KeyError` for a schema of a type that TypeScript has no type for here.
    """
    parts = [TYPESCRIPT_TYPES]
    for name, schema in schemas(document).items():
        parts.append(f"\nexport interface {name} {{")
        for field, part in schema["properties"].items():
            mark = "" if field in schema.get("required", ()) else "?"
            parts += [_typescript_text(part.get("description", ""), 2), _member(f"{field}{mark}", part)]
        parts.append("}")
    for operation in operations(document):
        for kind, parameters in (("Query", operation.in_query), ("Headers", operation.in_headers)):
            if parameters:
                name = operation.name[0].upper() + operation.name[1:] + kind
                parts += [f"\n/** Of `{operation.name}`. */", f"export interface {name} {{"]
                for one in parameters:
                    member = camel(header(one.name)) if kind == "Headers" else one.name
                    mark = "" if one.required else "?"
                    parts += [_typescript_text(one.description, 2), _member(f"{member}{mark}", one.schema)]
                parts.append("}")
    return "\n".join(parts) + "\n"


def _member(name: str, schema: Json) -> str:
    """A member of an interface; a long list of values has a line for each."""
    line = f"  {name}: {typescript_type(schema)};"
    if len(line) <= MAX_LINE:
        return line
    values = re.search(r'"[^<>;]*"', line)
    if values is None:
        return line
    one_each = "".join(f"\n    | {value}" for value in values[0].split(" | "))
    return f"{line[: values.start()].rstrip()}{one_each}{line[values.end() :].replace('>', f'{chr(10)}  >')}"


def _typescript_text(text: str, indent: int) -> str:
    lines, margin = wrapped(text, 114 - indent), " " * indent
    if len(lines) == 1:
        return f"{margin}/** {lines[0]} */"
    return "\n".join([f"{margin}/**", *(f"{margin} * {line}".rstrip() for line in lines), f"{margin} */"])


def typescript_operations(document: Json) -> str:
    """The text of `src/operations.ts`: a method for each operation of the OpenAPI document, with imports of the types
    that these name. Raises as `typescript_types`.
    """
    methods = "\n\n".join(_typescript_method(one) for one in operations(document))
    named = set(re.findall(r"\b[A-Z]\w+\b", re.sub(r"/\*.*?\*/", "", methods, flags=re.DOTALL)))
    imports = sorted(name for name in named if f"interface {name} " in typescript_types(document))
    return TYPESCRIPT_OPERATIONS % {"imports": ",\n  ".join(imports), "methods": methods}


def _typescript_method(operation: Operation) -> str:
    type_of = operation.name[0].upper() + operation.name[1:]
    arguments = [f"{camel(one.name)}: {typescript_type(one.schema)}" for one in operation.in_path]
    path = re.sub(r"\{(\w+)\}", lambda found: f"${{segment({camel(found[1])})}}", operation.path)
    call = [f'method: "{operation.method}"', f"path: `{path}`" if operation.in_path else f'path: "{path}"']
    if operation.body:
        arguments.append(f"body: {operation.body}" + ("" if operation.body_required else " = {}"))
        call.append("body")
    if operation.in_query:
        arguments.append(f"query: {type_of}Query = {{}}")
        call.append("query: { ...query }")
    if operation.in_headers:
        arguments.append(f"headers: {type_of}Headers = {{}}")
        sent = [f'"{one.name}": {_typescript_value(one.name)}' for one in operation.in_headers]
        inner = f"headers: {{ {', '.join(sent)} }}"
        if len(inner) > MAX_LINE:
            inner = "headers: {\n" + "".join(f"        {one},\n" for one in sent) + "      }"
        call.append(inner)
    if operation.is_repeatable:
        call.append("isRepeatable: true")
    answer = " | ".join(operation.answers) or "void"
    returned = f"    return this.send<{answer}>({{ {', '.join(call)} }});"
    long = "".join(f"      {one},\n" for one in call)
    signature = f"  {operation.name}({', '.join(arguments)}): Promise<{answer}> {{"
    apart = "".join(f"    {one},\n" for one in arguments)
    return "\n".join(
        [
            _typescript_text(operation.text, 2),
            signature if len(signature) <= MAX_LINE else f"  {operation.name}(\n{apart}  ): Promise<{answer}> {{",
            returned if len(returned) <= MAX_LINE else f"    return this.send<{answer}>({{\n{long}    }});",
            "  }",
        ]
    )


def _typescript_value(name: str) -> str:
    value = f"headers.{camel(header(name))}"
    defaults = {"Idempotency-Key": "crypto.randomUUID()", "x-svc-replay": '"full"'}
    return f"{value} ?? {defaults[name]}" if name in defaults else value


def files() -> dict[Path, str]:
    """Path below the root -> the text of every generated file of the client libraries."""
    document = json.loads(DOCUMENT.read_text())
    one_type = merged(document)
    python, node, go = Path("clients/python/svc_client"), Path("clients/node/src"), Path("clients/go")
    java = Path("clients/java/src/main/java/svc/visitor/client")
    return {
        python / "types.py": python_types(document),
        python / "operations.py": python_operations(document, is_async=False),
        python / "async_operations.py": python_operations(document, is_async=True),
        python / "testing_data.py": _formatted(python_testing(document, python_type)),
        node / "types.ts": typescript_types(document),
        node / "operations.ts": typescript_operations(document),
        node / "testing-data.ts": typescript_testing(document),
        go / "types.go": go_types(one_type),
        go / "operations.go": go_operations(one_type),
        java / "Types.java": java_types(one_type),
        java / "Operations.java": java_operations(one_type),
    }


if __name__ == "__main__":
    for file, text in files().items():
        (ROOT / file).write_text(text)
