"""Between calls and HTTP: pure functions around the two clients of httpx."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypedDict, cast

import httpx

from svc_client.call import Call
from svc_client.errors import ApiError, UnreachableError, unexpected
from svc_client.types import DetailBody

BASE = "/api/v1"
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def _user_agent() -> str:
    try:
        return f"svc-client-python/{version('svc-client')}"
    except PackageNotFoundError:  # not installed, but run from its sources
        return "svc-client-python"


USER_AGENT = _user_agent()
NO_CONTENT = 204


class Request(TypedDict):
    """Arguments of httpx."""

    method: str
    url: str
    params: dict[str, Any]
    headers: dict[str, str]
    json: Any


def address_of(base_url: str) -> str:
    """Where the service is, without /api/v1 and a slash at the end. Raises `ValueError` for what is no HTTP address."""
    if not base_url.startswith(("https://", "http://")):
        raise ValueError(f"base_url is the address of the service, such as https://id.shop.example, not {base_url!r}")
    return base_url.rstrip("/").removesuffix(BASE)


def key_of(api_key: str) -> str:
    """The key without the line break that a file ends with. Raises `ValueError`, which does not repeat the key."""
    key = (api_key or "").strip()
    if not re.fullmatch("[!-~]+", key):
        raise ValueError("api_key is empty, or has characters that no key has: svc_sk_... as it was issued")
    return key


def request(base_url: str, api_key: str, call: Call) -> Request:
    """The request of a call."""
    return {
        "method": call.method,
        "url": f"{base_url}{BASE}{call.path}",
        "params": dict(call.query),
        "headers": {"x-api-key": api_key, "User-Agent": USER_AGENT, **call.headers},
        "json": call.body,
    }


def read(response: httpx.Response) -> Any:
    """The body of a response, `None` where it has none; raises `ApiError` for any but a success."""
    if response.status_code == NO_CONTENT:
        return None
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = None
    if response.is_success and body is not None:
        return body
    raise _error(response, body)


def _error(response: httpx.Response, body: Any) -> ApiError:
    retry_after = response.headers.get("retry-after", "")
    retry_after_s = int(retry_after) if re.fullmatch("[0-9]{1,9}", retry_after) else None
    request_id = response.headers.get("x-request-id")
    try:
        fault = body["error"]
        code, message = str(fault["code"]), str(fault["message"])
        details = [cast("DetailBody", detail) for detail in fault.get("details", ()) if isinstance(detail, dict)]
    except (TypeError, KeyError, AttributeError):
        return unexpected(response.status_code, request_id=request_id, retry_after_s=retry_after_s)
    return ApiError(
        response.status_code, code, message, details=details, request_id=request_id, retry_after_s=retry_after_s
    )


def failure_of(error: httpx.RequestError) -> UnreachableError:
    """What an error of the transport means for a call."""
    url = error.request.url
    message = f"no response from {url.scheme}://{url.netloc.decode()}: {type(error).__name__}: {error}".rstrip(": ")
    return UnreachableError(message, was_sent=not isinstance(error, NOT_SENT))
