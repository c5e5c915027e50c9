"""Fetch metadata: the `sec-fetch-*` headers (W3C Fetch Metadata Request Headers), as they are archived and compared.

What may live here: their syntax, in one short text, and which browsers send them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NAMES = ("sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")
_WORD = re.compile(r"[a-z-]{1,24}\Z")
_ABSENT = "-"


def read_fetch_metadata(headers: Mapping[str, str]) -> str | None:
    """Site, mode and destination in request headers with lower-case names, as in `RequestHeaders.fetch`; `None` where
    none of them was sent. What is no word of letters and dashes is written as `?`.
    """
    sent = [headers.get(name) for name in NAMES]
    if sent == [None, None, None]:
        return None
    return " ".join(_ABSENT if value is None else value if _WORD.match(value) else "?" for value in sent)


def is_of_a_script(fetch: str) -> bool:
    """Whether such a request can be one that a script of a page made with `fetch` or `XMLHttpRequest`, headers of its
    own included: its mode is `cors` or `same-origin` and its destination `empty`. What is missing contradicts nothing.
    """
    _, mode, destination = fetch.split(" ")
    return mode in ("cors", "same-origin", _ABSENT) and destination in ("empty", _ABSENT)
