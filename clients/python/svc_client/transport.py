"""Between calls and HTTP: pure functions around the two clients of httpx."""

from __future__ import annotations

import json
import math
import re
import ssl
import time
import zlib
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypedDict, cast

import httpx

from svc_client.call import Call
from svc_client.errors import ApiError, UnreachableError, unexpected
from svc_client.json_text import parsed
from svc_client.types import DetailBody

BASE = "/api/v1"
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


def _user_agent() -> str:
    try:
        return f"svc-client-python/{version('svc-client')}"
    except PackageNotFoundError:  # not installed, but run from its sources
        return "svc-client-python"


USER_AGENT = _user_agent()
NO_CONTENT = 204
PRINTABLE = range(0x20, 0x7F)
MAX_BYTES = 16 * 2**20
"""Of the body of a response, unpacked."""
LONGEST_RETRY_AFTER_S = 999_999_999
"""What a longer `Retry-After` is read as: nobody waits for either."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = re.compile(
    rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{{2}}) ({'|'.join(_MONTHS)}) ([1-9][0-9]{{3}}) "
    r"([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)


class Request(TypedDict):
    """Arguments of httpx."""

    method: str
    url: str
    params: dict[str, Any]
    headers: dict[str, str]
    content: bytes | None


def address_of(base_url: str) -> str:
    """Where the service is, without /api/v1 and a slash at the end. Raises `ValueError` for what is no HTTP address."""
    if not _is_address(base_url):
        raise ValueError(f"base_url is the address of the service, such as https://id.shop.example, not {base_url!r}")
    return base_url.rstrip("/").removesuffix(BASE)


def _is_address(base_url: str) -> bool:
    """Whether a connection can be tried: the look-up of a name raises `UnicodeError` for one that cannot be."""
    try:
        url = httpx.URL(base_url)
        url.raw_host.decode().encode("idna")
    except (httpx.InvalidURL, UnicodeError):
        return False
    return url.scheme in ("https", "http") and url.host != "" and (url.port or 0) <= 65_535


def key_of(api_key: str) -> str:
    """The key without the line break that a file ends with. Raises `ValueError`, which does not repeat the key."""
    key = (api_key or "").strip()
    if not re.fullmatch("[!-~]+", key):
        raise ValueError("api_key is empty, or has characters that no key has: svc_sk_... as it was issued")
    return key


def request(base_url: str, api_key: str, call: Call) -> Request:
    """The request of a call. What a visitor may have sent, and is no JSON, the service refuses."""
    headers = {"x-api-key": api_key, "User-Agent": USER_AGENT, "Accept-Encoding": "gzip"}
    content = None
    if call.body is not None:
        headers["Content-Type"] = "application/json"
        content = json.dumps(call.body, separators=(",", ":")).encode()
    return {
        "method": call.method,
        "url": f"{base_url}{BASE}{call.path}",
        "params": dict(call.query),
        "headers": headers | {name: printable(value) for name, value in call.headers.items()},
        "content": content,
    }


def printable(value: str) -> str:
    """A value of a header with what is not of ASCII percent-encoded, so that each text has a value of its own."""
    content = value.strip().encode(errors="surrogatepass")
    return "".join(chr(one) if one in PRINTABLE else f"%{one:02X}" for one in content)


class Body:
    """The body of a response, as it arrives: unpacked, and no more of it than `MAX_BYTES`."""

    def __init__(self, response: httpx.Response) -> None:
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16) if packed == "gzip" else None
        self._is_readable = packed in ("gzip", "identity")
        self._content = bytearray()

    def add(self, chunk: bytes) -> bool:
        """Take what arrived next; returns whether more may be of use."""
        if not self._is_readable:
            return False
        try:
            left = MAX_BYTES + 1 - len(self._content)
            self._content += chunk[:left] if self._unpacker is None else self._unpacker.decompress(chunk, left)
        except zlib.error:
            self._is_readable = False
        self._is_readable = self._is_readable and len(self._content) <= MAX_BYTES
        return self._is_readable

    def content(self) -> bytes | None:
        """All of it; `None` where that is too long or cannot be unpacked."""
        is_whole = self._unpacker is None or self._unpacker.eof
        return bytes(self._content) if self._is_readable and is_whole else None


def read(response: httpx.Response, content: bytes | None) -> Any:
    """The object in the body of a response, `None` where it has none; raises `ApiError` for any but a success."""
    if response.status_code == NO_CONTENT:
        return None
    try:
        body = parsed(content or b"")
    except ValueError:
        body = None
    if response.is_success and isinstance(body, dict):
        return cast("Any", body)
    raise _error(response, body)


def retry_after_s(value: str, now_s: float) -> int | None:
    """The seconds of a `Retry-After`, which is a number of them or a date (RFC 9110, section 10.2.3); `None` for any
    other text.
    """
    if re.fullmatch("[0-9]+", value):
        digits = value.lstrip("0")
        return int(digits or "0") if len(digits) <= len(str(LONGEST_RETRY_AFTER_S)) else LONGEST_RETRY_AFTER_S
    found = _DATE.fullmatch(value)
    if found is None:
        return None
    day, month, *others = found.groups()
    year, hour, minute, second = map(int, others)
    try:
        moment = datetime(year, _MONTHS.index(month) + 1, int(day), hour, minute, second, tzinfo=UTC)
    except ValueError:  # a day that its month has not
        return None
    return min(max(0, math.ceil(moment.timestamp() - now_s)), LONGEST_RETRY_AFTER_S)


def _error(response: httpx.Response, body: Any) -> ApiError:
    seconds = retry_after_s(response.headers.get("retry-after", ""), time.time())
    request_id = response.headers.get("x-request-id")
    fault = _fault(body)
    if fault is None or response.is_success:
        return unexpected(response.status_code, request_id=request_id, retry_after_s=seconds)
    code, message, details = fault
    return ApiError(response.status_code, code, message, details=details, request_id=request_id, retry_after_s=seconds)


def _fault(body: Any) -> tuple[str, str, list[DetailBody]] | None:
    """Code, message and details of a body that has the form of an error."""
    fault = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
    if not isinstance(fault, dict):
        return None
    fields = cast("dict[str, Any]", fault)
    code, message = fields.get("code"), fields.get("message")
    details: Any = [] if fields.get("details") is None else fields["details"]
    if not isinstance(code, str) or code == "" or not isinstance(message, str) or not isinstance(details, list):
        return None
    given = cast("list[Any]", details)
    return (code, message, given) if all(_is_detail(detail) for detail in given) else None


def _is_detail(detail: Any) -> bool:
    names = ("field", "issue", "location")
    return isinstance(detail, dict) and all(
        isinstance(cast("dict[str, Any]", detail).get(name), str | None) for name in names
    )


def failure_of(error: httpx.RequestError | ssl.SSLError, url: httpx.URL) -> UnreachableError:
    """What an error of the transport means for a call."""
    said: BaseException = error
    while str(said) == "" and (cause := said.__cause__ or said.__context__) is not None:
        said = cause  # under trio, of TLS, the only one that says why
    return unreachable(url, f"{type(error).__name__}: {said}", was_sent=not isinstance(error, NOT_SENT))


def unreachable(url: httpx.URL, reason: str, *, was_sent: bool) -> UnreachableError:
    """The error for a response that did not arrive."""
    address = f"{url.scheme}://{url.netloc.decode()}"
    return UnreachableError(f"no response from {address}: {reason}".rstrip(": "), was_sent=was_sent)
