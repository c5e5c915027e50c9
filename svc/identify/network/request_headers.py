"""What a request says of its browser besides the report: the headers that a verdict depends on, as they are archived.

With these and the report an identification can be run again and gets the same verdict (`svc replay`).
Fetch metadata (`sec-fetch-*`, W3C Fetch Metadata Request Headers) is archived and compared as one short text.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from svc.identify.model import NO_HINTS, RequestFacts, RequestHeaders

_WINDOW_BITS = 12
_DICTIONARY = (
    b'{"connection_os":"","hints":{"model":"","architecture":"","platform_version":"","platform":"Linux",'
    b'"platform":"Android","platform":"macOS","mobile":true,"grease":"Not A;Brand","grease":"Not/A)Brand","brands":[['
    b'"Opera","["Microsoft Edge","Brave","Google Chrome","1["Chromium","13"]],"mobile":false,"platform":"Windows"}}'
    b'"accept_language":"de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7","accept_language":"en-GB,en-US;q=0.9,en;q=0.8",'
    b'{"user_agent":"Mozilla/5.0 (X11; Linux x86_64; rv:14.0) Gecko/20100101 Firefox/14'
    b"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 "
    b"Mobile/15E148 Safari/604.1Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like "
    b"Gecko) Version/18.5 Safari/605.1.15 Edg/13Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like "
    b'Gecko) Chrome/13.0.0.0 Mobile Safari/537.36{"user_agent":"Mozilla/5.0 (Windows NT 10.0; Win64; x64) '
    b'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/13.0.0.0 Safari/537.36","accept_language":"en-US,en;q=0.9",'
    b'"hints":{"brands":[['
)
"""What browsers usually send, so that a browser's headers take about 60 bytes. On disk: never change it."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(RequestHeaders)


def archived_headers(facts: RequestFacts) -> bytes:
    """Return the headers of a request as they are archived, for `read_headers`. About 10 microseconds, for new ones."""
    said = {name: getattr(facts, name) for name in RequestHeaders.__struct_fields__}
    if facts.hints == NO_HINTS:
        said["hints"] = NO_HINTS  # an equal one would be written, and the cache does not tell them apart
    return _archived(RequestHeaders(**said))


@lru_cache(maxsize=2_048)  # most visitors of a site send what others have sent
def _archived(headers: RequestHeaders) -> bytes:
    deflating = zlib.compressobj(1, zlib.DEFLATED, -_WINDOW_BITS, 5, zdict=_DICTIONARY)
    return deflating.compress(_encoder.encode(headers)) + deflating.flush()


def read_headers(archive: bytes) -> RequestHeaders:
    """Return the headers that were archived. Raises `zlib.error` and `msgspec.DecodeError` for other bytes."""
    inflating = zlib.decompressobj(-_WINDOW_BITS, zdict=_DICTIONARY)
    return _decoder.decode(inflating.decompress(archive) + inflating.flush())


def facts_of(ip: str, headers: RequestHeaders) -> RequestFacts:
    """Return what the request showed, put together again. `ip` is the visitor's address."""
    return RequestFacts(ip=ip, **msgspec.structs.asdict(headers))


NAMES = ("sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")
_WORD = re.compile(r"[a-z-]{1,24}\Z")
_ABSENT = "-"


def read_fetch_metadata(headers: Mapping[str, str]) -> str | None:
    """Return site, mode and destination from request headers with lower-case names, in the form of
    `RequestHeaders.fetch`; `None` if none of them was sent. A value that is not a word of letters and dashes is written
    as `?`.
    """
    sent = [headers.get(name) for name in NAMES]
    if sent == [None, None, None]:
        return None
    return " ".join(_ABSENT if value is None else value if _WORD.match(value) else "?" for value in sent)


def is_of_a_script(fetch: str) -> bool:
    """Return whether such a request can be one that a script of a page made with `fetch` or `XMLHttpRequest`, headers
    of its own included: its mode is `cors` or `same-origin`, its destination `empty`. What is missing counts as such.
    """
    _, mode, destination = fetch.split(" ")
    return mode in ("cors", "same-origin", _ABSENT) and destination in ("empty", _ABSENT)
