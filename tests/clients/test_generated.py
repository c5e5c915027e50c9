"""What of the client libraries follows from the OpenAPI document is up to date, and leaves no operation out."""

from __future__ import annotations

import json
import re

import pytest
from svc_client import AsyncClient, Client

from svc.features.routes import API
from tools.client_code import files, python_type, typescript_type
from tools.client_document import DOCUMENT, ROOT, operations, snake
from tools.client_go import exported, go_type
from tools.client_java import java_type


@pytest.mark.slow(1.3)
def test_the_generated_sources_are_up_to_date():
    out_of_date = [str(file) for file, text in files().items() if (ROOT / file).read_text() != text]
    assert out_of_date == [], "make reference"


def test_every_operation_except_those_of_the_console_is_a_method_of_each_client():
    named = {one.name for one in operations(json.loads(DOCUMENT.read_text()))}
    assert named == {route.operation_id for route in API if route.tag != "Console"}
    source = (ROOT / "clients" / "node" / "src" / "operations.ts").read_text()
    go = (ROOT / "clients" / "go" / "operations.go").read_text()
    java = (ROOT / "clients/java/src/main/java/svc/visitor/client/Operations.java").read_text()
    for name in named:
        assert callable(getattr(Client, snake(name)))
        assert callable(getattr(AsyncClient, snake(name)))
        assert f"\n  {name}(" in source
        assert f"\nfunc (c *Client) {exported(name)}(" in go
        assert re.search(rf"^  public \w+ {name}\(", java, re.MULTILINE)


def test_only_identify_speaks_of_duplicates():
    java = ROOT / "clients/java/src/main/java/svc/visitor/client/Operations.java"
    for source in (ROOT / "clients" / "go" / "operations.go", java):
        assert source.read_text().count("Of a duplicate") == 1


@pytest.mark.parametrize(
    ("schema", "python", "typescript", "go", "java"),
    [
        ({"type": "string", "enum": ["a", "b"]}, 'Literal["a", "b"]', '"a" | "b"', "string", "String"),
        ({"type": "string", "x-extensible-enum": ["a"]}, "str", 'Open<"a">', "string", "String"),
        ({"type": ["object", "null"], "additionalProperties": True}, "dict[str, Any] | None",
         "Record<string, unknown> | null", "map[string]any", "Map<String, Object>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]", "Record<string, number>",
         "map[string]int64", "Map<String, Long>"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "str | None", "string | null", "*string", "String"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Sdk"}}, "list[Sdk]", "Array<Sdk>", "[]SDK",
         "List<Sdk>"),
    ],
)  # fmt: skip
def test_every_schema_is_a_type_in_each_language(
    schema: dict[str, object], python: str, typescript: str, go: str, java: str
):
    found = (python_type(schema), typescript_type(schema), go_type(schema), java_type(schema))
    assert found == (python, typescript, go, java)
