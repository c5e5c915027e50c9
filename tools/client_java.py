"""The generated sources of the client library for Java: a class for each schema, and a method for each operation.

What may live here: pure functions from the OpenAPI document to text. What the library does with a call is written by
hand, in `clients/java`.
"""

from __future__ import annotations

import html
import re
import textwrap

from tools.client_document import (
    REFERENCE,
    Json,
    Operation,
    alternatives,
    bodies,
    camel,
    header,
    meaning,
    operations,
    own,
    result,
    schemas,
)

HEAD = "// Generated from docs/openapi.json: make reference\npackage svc.visitor.client;\n\n"
TYPES = """import java.util.List;
import java.util.Map;

/**
 * Bodies of requests and responses, as the service documents them.
 *
 * <p>A response may have more fields than are here, which {@link Body#get} returns, and a field that lists its values
 * may have others: both are added within version 1. A method returns {@code null} where its field was left out.
 */
public final class Types {
  private Types() {}
"""
OPERATIONS = """import svc.visitor.client.Types.*;

/**
 * Every operation but those of the console. Each throws {@link ApiException} where the service refuses, and {@link
 * UnreachableException} where it does not respond.
 */
public abstract class Operations {
  Operations() {}

  /** The decoded body of the response; {@code null} without one. */
  abstract java.util.Map<String, Object> send(Call call);
"""
KINDS = {"string": "String", "integer": "Long", "number": "Double", "boolean": "Boolean"}
READERS = {"String": "text", "Long": "integer", "Double": "number", "Boolean": "flag"}
TAKEN = {"get", "fields", "toString", "hashCode", "notify", "wait"}
"""Methods that every body has."""
PRIMITIVES = {"Long": "long", "Double": "double", "Boolean": "boolean"}
"""Of arguments, so that a literal is one."""
MAX_LINE = 118


def java_type(schema: Json) -> str:
    """The type of a schema. Raises `KeyError` for one that has no type here."""
    if reference := REFERENCE.search(schema.get("$ref", "")):
        return reference[1]
    if parts := alternatives(schema):
        return java_type(own(parts))
    kind: str = schema.get("type", "string" if "enum" in schema else "any")
    if kind == "array":
        return f"List<{java_type(schema['items'])}>"
    if kind == "object":
        values: Json | bool = schema.get("additionalProperties", True)
        return f"Map<String, {'Object' if isinstance(values, bool) else java_type(values)}>"
    return "Object" if kind == "any" else KINDS[kind]


def _reader(kind: str, name: str) -> str:
    """What reads a field of a type."""
    if kind in READERS:
        return f'{READERS[kind]}At("{name}")'
    if kind == "Object":
        return f'get("{name}")'
    if found := re.fullmatch(r"List<(\w+)>", kind):
        return f'listAt("{name}", {_element(found[1])})'
    if found := re.fullmatch(r"Map<String, (\w+)>", kind):
        return f'mapAt("{name}", {_element(found[1])})'
    return f'bodyAt("{name}", {kind}::new)'


def _element(kind: str) -> str:
    if kind in READERS:
        return f"Body::{READERS[kind]}Of"
    return "value -> value" if kind == "Object" else f"value -> new {kind}(Body.fieldsOf(value))"


def _comment(text: str, indent: str) -> str:
    room = MAX_LINE - len(indent) - len(" * ")
    text = re.sub(r"`([^`]*)`", lambda found: "{@code " + found[1].replace("{", "(").replace("}", ")") + "}", text)
    text = "".join(
        part if part.startswith("{@code") else html.escape(part, quote=False).replace("@", "&#64;")
        for part in re.split(r"(\{@code [^}]*\})", text)
    )
    paragraphs = [
        textwrap.wrap(("<p>" if number else "") + part, room, break_on_hyphens=False, break_long_words=False)
        for number, part in enumerate(text.split("\n\n"))
    ]
    lines = [line for part in paragraphs for line in [*part, ""]][:-1]
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"


def java_types(document: Json) -> str:
    """The text of `Types.java`."""
    asked = bodies(document)
    parts = [HEAD, TYPES]
    for name, schema in schemas(document).items():
        fields = [
            (field, java_type(part), meaning(part) or f"As of {part['$ref'].rpartition('/')[2]}.")
            for field, part in schema["properties"].items()
        ]
        parts.append(
            _class(
                name,
                fields,
                f"Part of a {'request' if name in asked else 'response'}.",
                reads=True,
                writes=name in asked,
            )
        )
    for operation in operations(document):
        for kind, given in (("Query", operation.in_query), ("Headers", operation.in_headers)):
            if given:
                fields = [(one.name, java_type(one.schema), one.meaning) for one in given]
                name = operation.name[0].upper() + operation.name[1:] + kind
                parts.append(
                    _class(name, fields, f"Of {{@link Operations#{operation.name}}}.", reads=False, writes=True)
                )
    return "".join(parts) + "}\n"


def _class(name: str, fields: list[tuple[str, str, str]], about: str, *, reads: bool, writes: bool) -> str:
    parts = [f"\n  /** {about} */\n  public static final class {name} extends Body {{\n"]
    if writes:
        parts.append(f"    /** Without any field. */\n    public {name}() {{}}\n")
    if not reads:
        parts.append(f"\n    /** With the fields of another one. */\n    public {name}({name} other) {{\n")
        parts.append("      super(other.fields());\n    }\n")
    if reads:
        made = f"public {name}(Map<String, Object> fields) {{\n      super(fields);\n    }}"
        parts.append(f"    /** With the fields of an object of JSON. */\n    {made}\n")
    for field, kind, text in fields:
        method = camel(header(field))
        if method in TAKEN:
            raise ValueError(f"{name}.{field} needs a name of its own in Java")
        if reads:
            read = f"public {kind} {method}() {{\n      return {_reader(kind, field)};\n    }}"
            parts.append(f"\n{_comment(text, '    ')}    {read}\n")
        if writes:
            told = f"    /** Sets what {{@link #{method}()}} returns. */\n" if reads else _comment(text, "    ")
            argument = PRIMITIVES.get(kind, kind)
            write = f"public {name} {method}({argument} value) {{\n"
            write += f'      setField("{field}", value);\n      return this;\n    }}'
            parts.append(f"\n{told}    {write}\n")
    return "".join(parts) + "  }\n"


def java_operations(document: Json) -> str:
    """The text of `Operations.java`."""
    return HEAD + OPERATIONS + "".join(_method(document, one) for one in operations(document)) + "}\n"


def _method(document: Json, operation: Operation) -> str:
    name = operation.name[0].upper() + operation.name[1:]
    given = [(f"String {camel(one.name)}", False) for one in operation.in_path]
    pattern = re.sub(r"\{\w+\}", "{}", operation.path)
    call = [f'new Call("{operation.method}", "{pattern}"']
    call[0] += "".join(f", {camel(one.name)}" for one in operation.in_path) + ")"
    if operation.body:
        given.append((f"{operation.body} body", not operation.body_required))
        call.append(".body(body)")
    if operation.in_query:
        given.append((f"{name}Query query", True))
        call.append(".query(query)")
    if operation.in_headers:
        given.append((f"{name}Headers headers", True))
        call.append(".headers(headers)")
        if any(one.name == "Idempotency-Key" for one in operation.in_headers):
            call.append(".idempotent()")
    if operation.is_repeatable:
        call.append(".repeatable()")
    answer, text = result(document, operation), operation.text
    if "DuplicateAnswer" in operation.answers:
        text += "\n\nOf a duplicate, the request id and `duplicate` may be all that is set."
    sent = f"send({''.join(call)})"
    body = f"return new {answer}({sent});" if answer else f"{sent};"
    declared = f"  public {answer or 'void'} {operation.name}"
    signature = f"{declared}({', '.join(one for one, _ in given)}) {{"
    made = f"\n{_comment(text, '  ')}{signature}\n    {body}\n  }}\n"
    if any(is_optional for _, is_optional in given):
        short = [one for one, is_optional in given if not is_optional]
        passed = [one.split()[1] if not is_optional else f"new {one.split()[0]}()" for one, is_optional in given]
        back = "return " if answer else ""
        made += f"\n{_comment(operation.text.split(chr(10))[0], '  ')}{declared}({', '.join(short)}) {{\n"
        made += f"    {back}{operation.name}({', '.join(passed)});\n  }}\n"
    return made
