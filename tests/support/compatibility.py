"""What a client of an older OpenAPI document would miss in a newer one (interface 9.2 and 9.3).

Within a version things are added, never removed or renamed. The rules are about what the documents say; that the
meaning of a field stays is for people to see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

Json = dict[str, Any]
ENUMERATIONS = ("enum", "x-extensible-enum")


def breaks(old: Json, new: Json) -> list[str]:
    """One line for each thing that `old` promised and `new` does not keep; empty = compatible."""
    return [*_paths(_whole(old), _whole(new)), *_components(old, new)]


def _whole(document: Json) -> Json:
    """The paths, with the responses that they only refer to in their places."""
    paths = deepcopy(document["paths"])
    for operations in paths.values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if "$ref" in response:
                    name = response["$ref"].rpartition("/")[2]
                    operation["responses"][status] = document["components"]["responses"][name]
    return paths


def _paths(old: Json, new: Json) -> Iterator[str]:
    for path, operations in old.items():
        for method, operation in operations.items():
            where = f"{method.upper()} {path}"
            if method in new.get(path, {}):
                yield from _operation(operation, new[path][method], where)
            else:
                yield f"{where} is gone"


def _operation(old: Json, new: Json, where: str) -> Iterator[str]:
    if old["operationId"] != new["operationId"]:
        yield f"{where} is no longer {old['operationId']}"
    yield from (f"{where} refuses {next(iter(kind))}" for kind in old["security"] if kind not in new["security"])
    yield from _parameters(_by_name(old), _by_name(new), where)
    for status, response in old["responses"].items():
        if status not in new["responses"]:
            yield f"{where}: status {status} is gone"
        else:
            yield from _contents(response, new["responses"][status], f"{where} {status}")
    if "requestBody" in new and "requestBody" not in old:
        yield f"{where} needs a body now"
    yield from _contents(old.get("requestBody", {}), new.get("requestBody", {}), where)


def _parameters(old: dict[str, Json], new: dict[str, Json], where: str) -> Iterator[str]:
    for name, parameter in old.items():
        if name not in new:
            yield f"{where}: parameter {name} is gone"
        else:
            yield from _schema(parameter["schema"], new[name]["schema"], f"{where}: {name}")
    for name, parameter in new.items():
        if parameter["required"] and not old.get(name, {"required": False})["required"]:
            yield f"{where}: parameter {name} is required now"


def _contents(old: Json, new: Json, where: str) -> Iterator[str]:
    for media_type, content in old.get("content", {}).items():
        now = new.get("content", {}).get(media_type, {"schema": {}})
        yield from _schema(content["schema"], now["schema"], where)
    gone = old.get("headers", {}).keys() - new.get("headers", {}).keys()
    yield from (f"{where}: header {name} is gone" for name in sorted(gone))


def _by_name(operation: Json) -> dict[str, Json]:
    return {f"{parameter['name']} ({parameter['in']})": parameter for parameter in operation.get("parameters", [])}


def _components(old: Json, new: Json) -> Iterator[str]:
    sent = _sent(old)
    for name, schema in old["components"]["schemas"].items():
        now = new["components"]["schemas"].get(name)
        if now is None:
            yield f"{name} is gone"
            continue
        yield from _schema(schema, now, name)
        before, after = set(schema.get("required", ())), set(now.get("required", ()))
        if name in sent:
            yield from (f"{name}.{field} is required now" for field in sorted(after - before))
        else:
            yield from (f"{name}.{field} is not always there any more" for field in sorted(before - after))


def _schema(old: Json, new: Json, where: str) -> Iterator[str]:
    if "$ref" in old and {"$ref": old["$ref"]} in new.get("anyOf", ()):
        return  # one more form, as of an event that cannot be read (decisions 17.5)
    for word in ("$ref", "type", "format"):
        if old.get(word) != new.get(word):
            yield f"{where} is no longer {old.get(word)} but {new.get(word)}"
    for word in ENUMERATIONS:
        gone = [value for value in old.get(word, ()) if value not in new.get(word, ())]
        yield from (f"{where} lost the value {value}" for value in gone)
    for name, part in old.get("properties", {}).items():
        if name in new.get("properties", {}):
            yield from _schema(part, new["properties"][name], f"{where}.{name}")
        else:
            yield f"{where}.{name} is gone"
    for word in ("items", "additionalProperties"):
        if isinstance(old.get(word), dict):
            yield from _schema(old[word], new.get(word) or {}, f"{where}[]")
    for index, branch in enumerate(old.get("anyOf", ())):
        now = new.get("anyOf", ())
        yield from _schema(branch, now[index] if index < len(now) else {}, where)


def _sent(document: Json) -> set[str]:
    """Components that requests are made of."""
    bodies = [
        operation["requestBody"]
        for operations in document["paths"].values()
        for operation in operations.values()
        if "requestBody" in operation
    ]
    found: set[str] = set()
    awaited = _referred(bodies)
    while awaited:
        found |= awaited
        awaited = _referred([document["components"]["schemas"][name] for name in awaited]) - found
    return found


def _referred(part: Any) -> set[str]:
    return set(re.findall(r"#/components/schemas/(\w+)", json.dumps(part)))
