"""The error catalogue as data: what the service refuses, with which status, and what it tells the caller to do.

What may live here: codes, statuses, messages and the value that carries a refusal. An expected "no" is a value that
functions return, never an exception. Sources: interface 7 and decisions 1.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Issue = Literal[
    "required", "unknown_field", "wrong_type", "malformed_json", "malformed_encoding", "out_of_range", "too_long",
    "too_deep", "invalid_url", "not_public_address", "unknown_event_type", "requires_live", "invalid_origin",
    "unknown_signal", "invalid_cursor", "invalid_value",
]  # fmt: skip
Location = Literal["body", "query", "header", "path"]

CATALOGUE: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The request is not well-formed HTTP. Send one Content-Length or chunked body, and one Host."),
    "unauthorized": (401, "The key is missing, or not valid for this request. Check the key, its region, and its allowed origins and platforms."),
    "billing_blocked": (402, "This organization's traffic is blocked. Contact the operator of this service."),
    "no_credit": (402, "The organization's credit is used up. Ask the operator of this service for more."),
    "insufficient_role": (403, "The key's role does not allow this. Use a management key with the admin role."),
    "not_found": (404, "There is nothing at this path. Check the path and the identifiers in it."),
    "method_not_allowed": (405, "This path does not take this method. The Allow header names those it takes."),
    "request_timeout": (408, "The request did not arrive in time. Send it again, without pauses."),
    "payload_too_large": (413, "The body is over 1 MiB, measured after decompression. Send less."),
    "unsupported_media_type": (415, "Send JSON as application/json, plain or with Content-Encoding: gzip."),
    "revision_conflict": (409, "Somebody else has saved since the revision you sent. Read the weights again and repeat your change."),
    "idempotency_key_too_long": (422, "The Idempotency-Key is over 255 characters. Send a shorter one."),
    "invalid_visitor_metadata": (422, "The forwarded visitor details are missing or malformed. Send x-svc-visitor-ip with one IPv4 or IPv6 address, and well-formed x-svc-visitor-origin and x-svc-visitor-user-agent if any."),
    "validation_error": (422, "The request is not valid. Mend what the details name and send it again."),
    "rate_limited": (429, "The organization is over its rate limit. Wait for the seconds in Retry-After."),
    "header_fields_too_large": (431, "The header fields are too large. Send fewer or shorter ones."),
    "internal_error": (500, "The service failed on this request. Quote the request id to its operator."),
    "service_unavailable": (503, "The service cannot take this request now. Send it again soon, with the same Idempotency-Key if it had one."),
}  # fmt: skip
"""code -> (status, message)."""


class Detail(msgspec.Struct, frozen=True):
    """One fault in a request (decisions 1.5)."""

    field: str
    """A path such as `sdk.version`; empty for the whole body."""
    issue: Issue
    location: Location


class Refusal(msgspec.Struct, frozen=True):
    """An expected "no"."""

    code: str
    details: tuple[Detail, ...] = ()
    retry_after_s: int | None = None
    reason: str = ""
    """For the log only; never told to the caller."""

    @property
    def status(self) -> int:
        return CATALOGUE[self.code][0]

    @property
    def message(self) -> str:
        return CATALOGUE[self.code][1]


def invalid(field: str, issue: Issue, location: Location = "body") -> Refusal:
    """`422 validation_error` with one detail."""
    return Refusal("validation_error", (Detail(field, issue, location),))
