"""What a server passes on of a visitor's request, when it identifies with a secret or proxy key."""

from __future__ import annotations

import json
from collections.abc import Mapping

MAX_BYTES = 2_048


def visitor_headers(headers: Mapping[str, str]) -> str:
    """The value of `x-svc-visitor-headers` (`visitor_headers` of `identify`), from the headers of a visitor's request,
    in any case: its `accept-language`, `sec-ch-ua...` and `sec-fetch-...`. A header with which it would be longer than
    the service takes is left out; no browser sends such.

    Without it the service cannot tell a browser from a program that copied a report.
    """
    found: dict[str, str] = {}
    for name, value in headers.items():
        lowered = name.lower()
        if lowered != "accept-language" and not lowered.startswith(("sec-ch-ua", "sec-fetch-")):
            continue
        if len(_text({**found, lowered: value})) <= MAX_BYTES:
            found[lowered] = value
    return _text(found)


def _text(headers: Mapping[str, str]) -> str:
    """In ASCII, as headers are."""
    return json.dumps(headers, separators=(",", ":"))
