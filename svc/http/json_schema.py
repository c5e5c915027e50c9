"""The structs of bodies and queries as JSON Schema (draft 2020-12), with what each field means.

What may live here: pure functions from struct types to schemas. The forms come from the structs, so that what is
published is what is checked; the words come from the glossary and from the sentences under the fields.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import UNSET

from svc.http.glossary import TERMS, Json, Term

COMPONENTS = "#/components/schemas/"

_REFERENCE = re.compile(COMPONENTS + r"(\w+)")
_OF_THE_SPECIFICATION = re.compile(r"\s*\((?:interface|decisions|signals\.md)\b[^)]*\)")
"""Says where a rule comes from, which readers of the document do not have before them."""


def components(bodies: Iterable[type[msgspec.Struct]], answers: Iterable[type[msgspec.Struct]]) -> dict[str, Json]:
    """Every struct that requests and answers are made of, by name.

    What is in answers alone has open enumerations: their values are listed, and others are not forbidden (decisions
    1.10). Raises `KeyError` with the field that nothing is said of.
    """
    bodies, answers = list(bodies), list(answers)
    requested = {kind.__name__ for kind in _within(bodies)}
    kinds = {kind.__name__: kind for kind in _within([*bodies, *answers])}
    _, schemas = msgspec.json.schema_components(kinds.values(), ref_template=COMPONENTS + "{name}")
    described: dict[str, Json] = {}
    awaited = [kind.__name__ for kind in (*bodies, *answers)]
    while awaited:
        name = awaited.pop()
        if name not in described:
            described[name] = _described(kinds[name], schemas[name], is_open=name not in requested)
            awaited += _REFERENCE.findall(msgspec.json.encode(described[name]).decode())
    return dict(sorted(described.items()))


def parameters(query: type[msgspec.Struct]) -> Iterator[Json]:
    """The fields of a query as OpenAPI parameters."""
    _, schemas = msgspec.json.schema_components([query], ref_template=COMPONENTS + "{name}")
    described = _described(query, schemas[query.__name__], is_open=False)
    for name, schema in described["properties"].items():
        required = name in described.get("required", ())
        description = schema.pop("description")
        yield {"name": name, "in": "query", "required": required, "description": description, "schema": schema}


def reference(kind: type[msgspec.Struct]) -> Json:
    return {"$ref": COMPONENTS + kind.__name__}


def example(schemas: Mapping[str, Json], schema: Json) -> Any:
    """A value of the schema, put together from the examples of its parts."""
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return example(schemas, schemas[schema["$ref"].removeprefix(COMPONENTS)])
    if "anyOf" in schema:
        return example(schemas, schema["anyOf"][0])
    if schema.get("type") == "array":
        return [example(schemas, schema["items"])]
    return {name: example(schemas, part) for name, part in schema["properties"].items()}


def _described(kind: type[msgspec.Struct], schema: Json, *, is_open: bool) -> Json:
    sentences = _sentences(kind)
    fields = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    described: Json = msgspec.json.decode(msgspec.json.encode(schema))  # defaults that are tuples become arrays
    for for_developers in ("title", "description"):
        described.pop(for_developers, None)
    described["properties"] = {
        name: _property(part, _term(kind, name, sentences.get(fields[name])), is_open=is_open)
        for name, part in described["properties"].items()
    }
    if not described["required"]:
        del described["required"]
    return described


def _property(part: Json, term: Term, *, is_open: bool) -> Json:
    formed = _formed(_opened(part) if is_open else part, term.form)
    shown: Json = {} if term.example is UNSET else {"examples": [term.example]}
    return {"description": term.means, **formed, **shown}


def _formed(part: Json, form: Json) -> Json:
    """What the glossary knows of the form goes to the value itself, not to the `null` beside it; with a `type` it is
    the whole form, such as that of what is no public contract.
    """
    if "type" in form:
        return form
    if "anyOf" not in part:
        return part | form
    return part | {"anyOf": [branch if branch == {"type": "null"} else branch | form for branch in part["anyOf"]]}


def _opened(part: Any) -> Any:
    """Enumerations as lists of what there is now. A constant stays one."""
    if isinstance(part, list):
        return [_opened(inner) for inner in part]  # pyright: ignore[reportUnknownVariableType]  JSON
    if not isinstance(part, dict):
        return part
    opened: Json = {key: _opened(value) for key, value in part.items()}  # pyright: ignore[reportUnknownVariableType]
    values = opened.get("enum")
    if values is not None and all(isinstance(value, str) for value in values):
        del opened["enum"]
        opened |= {"type": "string", "x-extensible-enum": values}
    return opened


def _term(kind: type[msgspec.Struct], name: str, sentence: str | None) -> Term:
    for ancestor in kind.__mro__:
        own = TERMS.get(f"{ancestor.__name__}.{name}")
        if own is not None:
            return own
    if sentence is None:
        if name not in TERMS:
            raise KeyError(f"{kind.__name__}.{name}")
        return TERMS[name]
    shared = TERMS.get(name, Term("", UNSET))
    return Term(_OF_THE_SPECIFICATION.sub("", sentence), shared.example, shared.form)


def _sentences(kind: type[msgspec.Struct]) -> dict[str, str]:
    """What stands under each field in the source, those of the structs it extends included."""
    found: dict[str, str] = {}
    for ancestor in reversed(kind.__mro__):
        if issubclass(ancestor, msgspec.Struct) and ancestor is not msgspec.Struct:
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(ancestor))).body
            assert isinstance(definition, ast.ClassDef)
            found |= {
                field.target.id: " ".join(below.value.value.split())
                for field, below in pairwise(definition.body)
                if isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            }
    return found


def _within(kinds: Iterable[type[msgspec.Struct]]) -> list[type[msgspec.Struct]]:
    """The structs, and those that they are made of."""
    return list(dict.fromkeys(found for kind in kinds for found in _structs(msgspec.inspect.type_info(kind))))


def _structs(part: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(part, msgspec.inspect.StructType):
        yield part.cls
    if isinstance(part, msgspec.Struct):
        for name in part.__struct_fields__:
            yield from _structs(getattr(part, name))
    elif isinstance(part, tuple):
        for inner in part:  # pyright: ignore[reportUnknownVariableType]
            yield from _structs(inner)
