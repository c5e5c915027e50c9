"""Query strings: strict, so that a mistyped filter never returns everything (decisions 1.6).

What may live here: the raw query in, a typed value or a `Refusal` out. Nothing here raises on any input.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from svc.http.body import explain
from svc.kernel.values.fields import bare, fields_of
from svc.kernel.values.refusals import Refusal, invalid

T = TypeVar("T", bound=msgspec.Struct)

MAX_PARAMETERS = 32
MAX_DIGITS = 18
"""Of an integer: what has more is beyond every limit here, and is read as the largest number with this many digits."""
_DIGITS = re.compile(r"[0-9]+")


def read_query(query_string: bytes, kind: type[T] | None) -> T | Refusal | None:
    """Decode a query string as the route's type; `None` for `kind=None`, with which any parameter is refused. `422
    validation_error` with the parameter (decisions 1.6).

    Every parameter at most once, percent-encoded UTF-8; numbers and booleans are read from their text.
    """
    if kind is None and not query_string:
        return None
    parameters = _parameters(query_string)
    if isinstance(parameters, Refusal):
        return parameters
    if kind is None:
        return invalid(next(iter(parameters), ""), "unknown_field", "query")
    for name in _integers(kind) & parameters.keys():
        if not _DIGITS.fullmatch(parameters[name]):  # decisions 7.1; the conversion also takes `1e2` and `1.0`
            return invalid(name, "wrong_type", "query")
        digits = parameters[name].lstrip("0") or "0"  # which the conversion does not take before others
        parameters[name] = digits if len(digits) <= MAX_DIGITS else "9" * MAX_DIGITS
    try:
        return msgspec.convert(parameters, kind, strict=False)
    except msgspec.ValidationError as error:
        return explain(str(error), "query")


@cache
def _integers(kind: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(
        field.encode_name for field in fields_of(kind) if isinstance(bare(field.type), msgspec.inspect.IntType)
    )


def _parameters(query_string: bytes) -> dict[str, str] | Refusal:
    try:
        text = query_string.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
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
