"""Interface 4.4 (end) and 9, decisions 1.10 and 9.2: the published document, and that it breaks no client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
import trio
from jsonschema_rs import Draft202012Validator
from msgspec import Meta, UnsetType, inspect

from svc.features.refusals import CATALOG
from svc.features.routes import API, ROUTES
from svc.http.openapi import json_schema
from svc.http.openapi.document import JSON, SCHEMES, TAGS, encode
from svc.http.route import CONSOLE_ROOT, EVERY_ROUTE, Route
from svc.identify.scoring.signals import CATALOG as SIGNALS
from svc.kernel.values.fields import VisitorId
from tests.support.compatibility import breaks
from tests.support.documents import both, of_console, published
from tests.support.live import Live

DOCS = Path(__file__).parents[2] / "docs"


def schemas() -> dict[str, Any]:
    return both()["components"]["schemas"]


def operation_of(route: Route) -> Any:
    return both()["paths"][route.documented_path][route.method.lower()]


def response_of(route: Route, status: int) -> Any:
    response = operation_of(route)["responses"][str(status)]
    name = response.get("$ref", "").rpartition("/")[2]
    return both()["components"]["responses"][name] if name else response


def properties() -> Iterator[tuple[str, Any]]:
    for name, schema in schemas().items():
        for field, part in schema["properties"].items():
            yield f"{name}.{field}", part


@pytest.mark.slow
def test_the_document_is_valid_openapi_3_1():
    """Interface 4.4, 9.4."""
    from openapi_spec_validator import OpenAPIV31SpecValidator  # takes long to import, in each process

    assert both()["openapi"].startswith("3.1.")
    OpenAPIV31SpecValidator(published()).validate()
    OpenAPIV31SpecValidator(of_console()).validate()


def test_the_document_equals_the_one_in_the_repository():
    """Anybody who changes it on purpose generates it again: `make reference`."""
    assert encode(published()) == (DOCS / "openapi.json").read_bytes()


def test_every_way_to_send_a_key_is_a_security_scheme():
    keys = published()["components"]["securitySchemes"]
    assert set(keys) == {"publicKey", "secretKey", "managementKey"}
    assert {(scheme["type"], scheme["in"], scheme["name"]) for scheme in keys.values()} == {
        ("apiKey", "header", "x-api-key")
    }


def test_the_console_has_a_document_of_its_own_that_a_session_or_a_management_key_opens():
    """Decisions 9.2. No operation has a server of its own, which generated clients read as another host or ignore."""
    assert [path for path in published()["paths"] if "console" in path] == []
    assert "Console" not in {tag["name"] for tag in published()["tags"]}
    schemes = of_console()["components"]["securitySchemes"]
    session = schemes["session"]
    assert (session["type"], session["in"], session["name"]) == ("apiKey", "cookie", "__Host-svc")
    assert set(schemes) == {"managementKey", "session"}
    assert [server["url"] for server in of_console()["servers"]] == [CONSOLE_ROOT]
    served = {
        (route.method.lower(), (under + route.path).removeprefix(CONSOLE_ROOT))
        for route in API
        for under in route.under
        if under.startswith(CONSOLE_ROOT)
    }
    told = {(method, path) for path, operations in of_console()["paths"].items() for method in operations}
    assert told == served
    assert ("get", "/api/management/key") in told, "what the console shares with the management API"
    for document in (published(), of_console()):
        operations = [one for operations in document["paths"].values() for one in operations.values()]
        assert [one["operationId"] for one in operations if "servers" in one] == []


@pytest.mark.slow(0.3)
def test_each_operation_names_its_accepted_keys_and_its_errors():
    for route in API:
        assert_keys_and_errors(route)


def assert_keys_and_errors(route: Route) -> None:
    operation = operation_of(route)
    assert operation["operationId"] == route.operation_id
    with_session = [{"session": []}] if route.tag == "Console" and route.kinds else []
    keys = [{SCHEMES[kind].name: []} for kind in route.kinds if kind != "proxy"]
    assert operation["security"] == with_session + keys
    assert ("proxy" in operation.get("description", "").lower()) == ("proxy" in route.kinds)
    for code in (*route.errors, *EVERY_ROUTE):
        content = response_of(route, CATALOG[code][0])["content"][JSON]
        assert "ErrorBody" in json.dumps(content["schema"])
        if "anyOf" not in content["schema"]:
            assert content["examples"][code]["value"]["error"]["code"] == code


@cache
def validator_of(schema: str) -> Draft202012Validator:
    """Of a schema within the document's components; most responses are the one error body."""
    return Draft202012Validator({**json.loads(schema), "components": both()["components"]}, validate_formats=True)


@pytest.mark.slow
def test_every_example_matches_its_schema():
    for route in API:
        assert_examples_match(route)


def assert_examples_match(route: Route) -> None:
    operation = operation_of(route)
    contents = [
        response.get("content") for response in map(response_of, [route] * 99, map(int, operation["responses"]))
    ]
    for content in [operation.get("requestBody", {}).get("content"), *contents]:
        if content is not None and set(content) != {*route.media_type.split(", ")}:
            schema = content[JSON]["schema"]
            validator = validator_of(json.dumps(schema))
            validator.validate(json_schema.example(schemas(), schema))
            for example in content[JSON].get("examples", {}).values():
                validator.validate(example["value"])
    for parameter in operation.get("parameters", []):
        Draft202012Validator(parameter["schema"], validate_formats=True).validate(parameter["schema"]["examples"][0])


def test_everything_has_a_description():
    assert [where for where, part in properties() if not part["description"]] == []
    for route in API:
        operation = operation_of(route)
        assert operation["summary"]
        assert all(parameter["description"] for parameter in operation.get("parameters", []))


def test_bodies_have_no_defaults_and_requests_say_them_in_words():
    """Generators for TypeScript require a field that has one, also of a request."""
    assert [where for where, part in properties() if "default" in part] == []
    told = {where: part["description"] for where, part in properties()}
    assert told["IdentifyBody.verdict"].endswith("Default: `false`.")
    assert told["RotateWebhookSecretBody.previous_secret_valid_hours"].endswith("Default: `24`.")
    assert "Default" not in told["IssueSdkKeyBody.expires_at"], "`null` is said with its meaning"
    told_by_queries = [one for one in operation_of_id("listEvents")["parameters"] if "default" in one["schema"]]
    assert [one["name"] for one in told_by_queries] == ["limit"]


def operation_of_id(operation_id: str) -> Any:
    return operation_of(next(route for route in API if route.operation_id == operation_id))


def test_descriptions_do_not_refer_to_unpublished_pages():
    assert [where for where, part in properties() if "decisions " in part["description"].lower()] == []
    assert [where for where, part in properties() if "interface " in part["description"].lower()] == []


def test_no_unused_description_is_kept():
    assert set(TAGS) == {route.tag for route in API}
    used = {place: set[str]() for place in ("path", "query", "header")}
    for route in API:
        for parameter in operation_of(route).get("parameters", []):
            used[parameter["in"]].add(parameter["name"])
    declared = {name: of for route in API for name, of in route.variables.items()}
    assert {*json_schema.PATH, *declared} == used["path"]
    assert json_schema.PATH.keys().isdisjoint(declared)
    assert set(json_schema.REQUEST_HEADERS) == used["header"]
    headers = {name for route in API for status in operation_of(route)["responses"] for name in told_by(route, status)}
    assert set(json_schema.RESPONSE_HEADERS) == headers


def told_by(route: Route, status: str) -> set[str]:
    return set(response_of(route, int(status))["headers"])


def test_a_route_names_only_the_body_that_its_handler_does_not():
    for route in ROUTES:
        unsaid = msgspec.structs.replace(route, response=None)
        assert route.response is None or unsaid.answer is not route.response, route.operation_id


def test_no_description_hides_another():
    """Msgspec merges what is said around a union and inside of it, and the inner one wins."""

    def merged(part: Any, where: str) -> Iterator[str]:
        if isinstance(part, inspect.Metadata) and isinstance(part.type, inspect.Metadata):
            yield where
        if isinstance(part, msgspec.Struct):
            for name in part.__struct_fields__:
                yield from merged(getattr(part, name), f"{where}.{getattr(part, 'name', '')}")
        elif isinstance(part, tuple):
            for inner in part:
                yield from merged(inner, where)

    kinds = {kind for route in API for kind in (route.query, route.body, route.answer) if kind is not None}
    assert [where for kind in kinds for where in merged(inspect.type_info(kind), kind.__name__)] == []
    around = Annotated[VisitorId | UnsetType, Meta(description="hidden")]
    assert list(merged(inspect.type_info(around), "around")) == ["around"]


def test_a_field_without_a_description_is_an_error():
    class Silent(msgspec.Struct):
        field: int

    with pytest.raises(KeyError, match=r"Silent\.field"):
        json_schema.components([Silent], [])


def test_enumerations_of_responses_are_open_and_those_of_requests_are_closed():
    """Decisions 1.10: clients accept new values, and the service refuses those it does not know."""
    assert "x-extensible-enum" in both()["info"]["description"]
    assert schemas()["IssueSdkKeyBody"]["properties"]["environment"]["enum"]
    assert [where for where, part in properties() if "enum" in part and where.startswith(tuple(response_names()))] == []
    assert schemas()["TriggerBody"]["properties"]["signal"]["x-extensible-enum"] == list(SIGNALS)


def response_names() -> list[str]:
    return [
        kind.__name__ for route in API for kind in (route.answer, *(kind for _, kind in route.other_responses)) if kind
    ]


async def test_the_identify_response_has_the_fields_the_interface_requires(live: Live):
    """Interface 2.2: required in the schema, and a duplicate is another answer."""
    assert {"identifiable", "request_id", "state", "visitor_confidence", "visitor_id", "visitor_is_new"} <= set(
        schemas()["IdentifyAnswer"]["required"]
    )
    assert schemas()["DuplicateAnswer"]["required"] == ["request_id"]


def test_the_headers_of_identify_are_documented():
    route = next(route for route in API if route.operation_id == "identify")
    told = {"X-Request-Id", "Svc-Balance-Micros", "RateLimit-Limit", "RateLimit-Remaining", "Server-Timing"}
    assert set(response_of(route, 200)["headers"]) == told
    assert set(response_of(route, 402)["headers"]) == told
    assert set(response_of(route, 429)["headers"]) == told | {"Retry-After"}


# Compatibility (interface 9.2, 9.3)


def test_nothing_released_was_removed():
    """A release copies `docs/openapi.json` to `docs/openapi-released.json`; within version 1 nothing of it goes. The
    routes of the console went into their own document.
    """
    assert breaks(json.loads((DOCS / "openapi-released.json").read_bytes()), both()) == []


def without(*path: str) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for name in path[:-1]:
            document = document[name]
        document.pop(path[-1]) if isinstance(document, dict) else document.remove(path[-1])

    return change


def with_(value: Any, *path: str) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for name in path[:-1]:
            document = document[name]
        document[path[-1]] = value

    return change


IDENTIFY = ("paths", "/identify", "post")
COMPONENTS = ("components", "schemas")
TRIGGER = (*COMPONENTS, "TriggerBody", "properties")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (without("paths", "/events"), "GET /events is gone"),
        (with_("identifyVisitor", *IDENTIFY, "operationId"), "POST /identify is no longer identify"),
        (with_([{"publicKey": []}], *IDENTIFY, "security"), "POST /identify refuses secretKey"),
        (with_([], *IDENTIFY, "parameters"), "POST /identify: parameter Idempotency-Key (header) is gone"),
        (without(*IDENTIFY, "responses", "402"), "POST /identify: status 402 is gone"),
        (without(*IDENTIFY, "responses", "200", "headers", "RateLimit-Limit"), "header RateLimit-Limit is gone"),
        (without(*COMPONENTS, "EventBody", "properties", "asn"), "EventBody.asn is gone"),
        (without(*COMPONENTS, "EventBody", "required", "state"), "EventBody.state is not always there any more"),
        (with_(["sdk", "signals", "tag"], *COMPONENTS, "IdentifyBody", "required"), "IdentifyBody.tag is required now"),
        (with_("string", *TRIGGER, "weight", "type"), "TriggerBody.weight is no longer integer but string"),
        (without(*TRIGGER, "signal", "x-extensible-enum", "tor"), "TriggerBody.signal lost the value tor"),
        (
            without(*COMPONENTS, "IssueSdkKeyBody", "properties", "environment", "enum", "staging"),
            "IssueSdkKeyBody.environment lost the value staging",
        ),
        (without(*COMPONENTS, "SignalsBody"), "SignalsBody is gone"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_breaking_change_is_detected(change: Callable[[Any], None], told: str):
    changed = deepcopy(both())
    change(changed)
    assert any(line.endswith(told) for line in breaks(both(), changed)), breaks(both(), changed)


def test_an_addition_is_not_a_breaking_change():
    grown = deepcopy(both())
    grown["paths"]["/new"] = grown["paths"]["/events"]
    grown["components"]["schemas"]["EventBody"]["properties"]["new"] = {"type": "string"}
    grown["components"]["schemas"]["TriggerBody"]["properties"]["signal"]["x-extensible-enum"].append("new")
    grown["components"]["schemas"]["EventsAnswer"]["properties"]["rows"]["items"]["anyOf"].append({"type": "null"})
    assert breaks(both(), grown) == []


# A generated client


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a client that a stock generator makes from the document alone."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(encode(published()))
    (folder / "settings.yaml").write_text("post_hooks: []")  # nobody reads it: no formatting
    for program in (("openapi_python_client", "generate", *GENERATE), ("compileall", "-q", "client")):
        done = subprocess.run([sys.executable, "-m", *program], capture_output=True, check=False, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
async def test_a_generated_client_compiles_and_lists_events(live: Live, server_key: str, key: str, generated: Path):
    identified = (await live.identify(key)).json()
    command = [sys.executable, "-c", LISTS_EVENTS, live.url + "/api/v1", server_key]
    listed = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False, cwd=generated)
    assert listed.stdout.decode().split() == [identified["request_id"]], listed.stderr.decode()


GENERATE = (
    *("--path", "openapi.json", "--config", "settings.yaml"),
    *("--meta", "none", "--output-path", "client", "--fail-on-warning"),
)
LISTS_EVENTS = """
import sys
from client.api.server_api import list_events
from client.client import AuthenticatedClient

client = AuthenticatedClient(sys.argv[1], sys.argv[2], prefix="", auth_header_name="x-api-key")
for row in list_events.sync(client=client).rows:
    print(row.request_id)
"""
