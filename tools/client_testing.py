"""What the fake services of the client libraries know of the service: operations, errors, signals, fields of an event.
`tools.client_code` writes it.

What may live here: pure functions from the OpenAPI document and the catalog of signals to source text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from svc.identify.scoring.signals import CATALOG
from tools.client_document import Json, operations

SAID_OTHERWISE = frozenset({"request_id", "visitor_id", "decision", "signals"})
"""Fields of an event that a test sets by other names, or by other values."""
PYTHON = '''"""What the service has: operations, errors, signals, fields of an event.

Generated from docs/openapi.json and the catalog of signals: `make reference`.
"""

from __future__ import annotations

from typing import Any, TypedDict

from svc_client.types import %(types)s

OPERATIONS: dict[str, tuple[str, str, int]] = {%(operations)s}
"""Operation -> its method, its path, and the status of its success."""
ERRORS: dict[str, tuple[int, str]] = {%(errors)s}
"""Code -> its status, and the message for people."""
SIGNALS: dict[str, tuple[str, dict[str, int]]] = {%(signals)s}
"""Signal -> its group, and its weight on each platform."""
EVENT_FIELDS: dict[str, bool] = {%(names)s}
"""Field of an event that a test may set -> whether an event may be without it."""


class EventFields(TypedDict, total=False):
    """Fields of an event, as `get_event` has them. `None` leaves one out."""

%(fields)s
'''
TYPESCRIPT = """// What the service has: operations, errors, signals, fields of an event.
// Generated from docs/openapi.json and the catalog of signals: make reference

/** Operation -> its method, its path, and the status of its success. */
export const OPERATIONS: Readonly<Record<string, readonly [method: string, path: string, status: number]>> = {
%(operations)s
};

/** Code -> its status, and the message for people. */
export const ERRORS: Readonly<Record<string, readonly [status: number, message: string]>> = {
%(errors)s
};

/** Signal -> its group, and its weight on each platform. */
export const SIGNALS: Readonly<Record<string, readonly [group: string, weights: Readonly<Record<string, number>>]>> = {
%(signals)s
};

/** Field of an event that a test may set -> whether an event may be without it. */
export const EVENT_FIELDS: Readonly<Record<string, boolean>> = {
%(names)s
};
"""


def python_testing(document: Json, annotation: Callable[[Json], str]) -> str:
    """The text of `svc_client/testing_data.py`, not formatted. `annotation`: of a schema."""
    tables = {
        name: "".join(f"{json.dumps(key)}: {value!r},\n" for key, value in rows.items())
        for name, rows in _tables(document).items()
    }
    known, optional = _fields(document)
    names = "".join(f"{json.dumps(name)}: {name in optional},\n" for name in known)
    kinds = {name: annotation(schema) for name, schema in known.items()}
    fields = "\n".join(f"    {name}: {kind}{' | None' * (name in optional)}" for name, kind in kinds.items())
    types = ", ".join(sorted(set(re.findall(r"[A-Z]\w+Body", fields))))
    return PYTHON % {**tables, "names": names, "fields": fields, "types": types}


def typescript_testing(document: Json) -> str:
    """The text of `src/testing-data.ts`."""
    tables = {
        name: "\n".join(f"  {key}: {json.dumps(value)}," for key, value in rows.items())
        for name, rows in _tables(document).items()
    }
    known, optional = _fields(document)
    names = "\n".join(f"  {name}: {json.dumps(name in optional)}," for name in known)
    return TYPESCRIPT % {**tables, "names": names}


def _tables(document: Json) -> dict[str, Mapping[str, tuple[Any, ...]]]:
    errors: dict[str, tuple[Any, ...]] = {}
    done: dict[str, tuple[Any, ...]] = {}
    for operation in operations(document):
        responses = document["paths"][operation.path][operation.method.lower()]["responses"]
        done[operation.name] = (operation.method, operation.path, min(map(int, responses)))
        for response in responses.values():
            errors |= _errors(document, response)
    signals = {name: (signal.group, dict(signal.weights)) for name, signal in CATALOG.items()}
    return {"operations": done, "errors": errors, "signals": signals}


def _errors(document: Json, response: Json) -> dict[str, tuple[Any, ...]]:
    """Code -> status and message, of the examples of a response."""
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    examples = response.get("content", {}).get("application/json", {}).get("examples", {})
    faults = [one["value"]["error"] for one in examples.values() if "error" in one.get("value", {})]
    return {fault["code"]: (fault["status"], fault["message"]) for fault in faults}


def _fields(document: Json) -> tuple[dict[str, Json], set[str]]:
    """The schemas of the fields, and which of them an event may be without."""
    event = document["components"]["schemas"]["EventDetailBody"]
    known = {name: schema for name, schema in event["properties"].items() if name not in SAID_OTHERWISE}
    return known, set(known) - set(event["required"])
