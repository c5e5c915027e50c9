"""Query strings: strict, so that a mistyped filter never returns everything (decisions 1.6).

What may live here: the raw query in, a typed value or a `Refusal` out. Nothing here raises on any input.
"""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from svc.domain.refusals import Refusal, invalid
from svc.http.body import explain

T = TypeVar("T", bound=msgspec.Struct)

MOST_PARAMETERS = 32


def read_query(query_string: bytes, kind: type[T] | None) -> T | Refusal | None:
    """The query as the route's type; `None` where the route takes none.

    Every parameter at most once, percent-encoded UTF-8; numbers and booleans are read from their text.
    """
    if kind is None and not query_string:
        return None
    parameters = _parameters(query_string)
    if isinstance(parameters, Refusal):
        return parameters
    if kind is None:
        return invalid(next(iter(parameters), ""), "unknown_field", "query")
    try:
        return msgspec.convert(parameters, kind, strict=False)
    except msgspec.ValidationError as error:
        return explain(str(error), "query")


def _parameters(query_string: bytes) -> dict[str, str] | Refusal:
    try:
        text = query_string.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except UnicodeDecodeError:
        return invalid("", "malformed_encoding", "query")
    except ValueError:
        return invalid("", "out_of_range", "query")
    parameters: dict[str, str] = {}
    for name, value in pairs:
        if name in parameters:
            return invalid(name, "invalid_value", "query")
        parameters[name] = value
    return parameters
