"""How an outcome becomes a response: status, headers for caches and for CORS (decisions 3.11), and the body as JSON.

What may live here: bytes of responses. What an endpoint responds with is an `Outcome` (`route.py`).
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import msgspec

from svc.http.openapi.json_schema import ADMITTED, EVERYWHERE
from svc.http.route import Outcome, Resource, Stream
from svc.http.schema import error_body
from svc.kernel.values.refusals import Refusal, catalog
from svc.world import World

EXPOSED_HEADERS = ", ".join((*ADMITTED, "Retry-After", EVERYWHERE))
"""What scripts of other origins may read."""
PREFLIGHT_HEADERS = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": "x-api-key, idempotency-key, content-type, content-encoding, x-svc-sdk-platform, "
    "x-svc-replay, traceparent, tracestate, baggage, sentry-trace",  # tools that trace add the last four to requests
    "Access-Control-Max-Age": "7200",
}
NEVER_CACHED = "no-store"
_encoder = msgspec.json.Encoder()


class Response(NamedTuple):
    """A response: status, encoded headers in their order, and either the whole body or a stream."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    stream: Stream | None = None
    """The receiver of one closes it: until then the request is in progress."""


def edge_refusal(world: World, status: int) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return body and headers of a response with this status that the edge makes by itself, with a request id of its
    own (decisions 1.7). Raises `StopIteration` for a status without an error code.
    """
    code = next(code for code, (known, _) in catalog().items() if known == status)
    request_id = str(world.request_id(world.now_ms()))
    body = _encoder.encode(error_body(Refusal(code), request_id))
    return body, [
        (b"content-type", b"application/json"),
        (b"x-request-id", request_id.encode()),
        (b"cache-control", NEVER_CACHED.encode()),
    ]


def preflight(request_id: UUID, origin: str | None, resource: Resource) -> Response:
    """Return the response to a CORS preflight, for any origin and without a key (decisions 3.11)."""
    headers = {"X-Request-Id": str(request_id), "Vary": "Origin", "Allow": resource.allow}
    if origin is not None:
        headers |= {"Access-Control-Allow-Origin": origin, **PREFLIGHT_HEADERS}
    return Response(204, encode_headers(headers), b"")


def render(request_id: UUID, outcome: Outcome, origin: str | None, *, has_key: bool = False) -> Response:
    """Encode an outcome. `origin`: echoed for CORS if browsers may read the response, `None` if they may not (decisions
    3.11). The response is not cacheable unless the endpoint says otherwise and the request had no key (decisions 9.3):
    the key is in a header that shared caches ignore.
    """
    headers = {"X-Request-Id": str(request_id), "Cache-Control": NEVER_CACHED, **outcome.headers}
    if has_key:
        headers["Cache-Control"] = NEVER_CACHED
    body = outcome.body
    status = outcome.status
    if isinstance(body, Refusal):
        status = body.status
        if body.retry_after_s is not None:
            headers["Retry-After"] = str(body.retry_after_s)
        body = error_body(body, str(request_id))
    if origin is not None:
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
        headers["Vary"] = "Origin"
    if body is None:
        return Response(status, encode_headers(headers), b"")
    if isinstance(body, Stream):
        headers["Content-Type"] = body.media_type
        return Response(status, encode_headers(headers), b"", body)
    encoded, headers["Content-Type"] = _encoder.encode(body), "application/json"
    headers["Content-Length"] = str(len(encoded))
    return Response(status, encode_headers(headers), encoded)


def encode_headers(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """Return the headers as the server takes them: names and values in Latin-1, in their order."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
