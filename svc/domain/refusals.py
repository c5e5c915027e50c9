"""The error catalogue as data: what the service refuses, with which status, and what it tells the caller to do.

What may live here: codes, statuses, messages and the value that carries a refusal. An expected "no" is a value that
functions return, never an exception. Sources: interface 7 and decisions 1.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from svc.domain.credentials import ApiKey
from svc.domain.ratelimit import Bound, Use

Issue = Literal[
    "required", "unknown_field", "wrong_type", "malformed_json", "malformed_encoding", "out_of_range", "too_long",
    "too_deep", "invalid_url", "not_public_address", "unknown_event_type", "requires_live", "invalid_origin",
    "unknown_signal", "invalid_cursor", "invalid_value",
]  # fmt: skip
Location = Literal["body", "query", "header", "path"]

CATALOGUE: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The request is not well-formed HTTP. Send one Content-Length or chunked body, and one Host."),
    "unauthorized": (401, "The key is not valid for this request: it is unknown, revoked or expired, or does not allow this origin or platform (secret and management keys allow no origin). The log of the service has the reason, under this request id."),
    "billing_blocked": (402, "This organization's traffic is blocked. Contact the operator of this service."),
    "no_credit": (402, "The organization's credit is used up. Ask the operator of this service for more."),
    "insufficient_role": (403, "The key's role does not allow this. Use a management key with the admin role."),
    "cross_origin_request": (403, "A request with a session must come from a page of the console on this very host. Open /console here; behind a reverse proxy, let it pass Host and X-Forwarded-Proto on."),
    "secure_connection_required": (403, "Signing in needs HTTPS, or plain HTTP on this machine itself (http://localhost). Set tls_certfile and tls_keyfile; or name the reverse proxy that ends TLS in trusted_proxies, and have it send X-Forwarded-Proto: https and the browser's Host."),
    "not_found": (404, "There is nothing at this path. Check the path and the identifiers in it."),
    "event_not_found": (404, "There is no such event in the key's environment, or it is older than 30 days."),
    "method_not_allowed": (405, "This path does not take this method. The Allow header names those it takes."),
    "request_timeout": (408, "The request did not arrive in time. Send it again, without pauses."),
    "payload_too_large": (413, "The body is over 1 MiB, measured after decompression. Send less."),
    "unsupported_media_type": (415, "Send JSON as application/json, plain or with Content-Encoding: gzip."),
    "webhook_limit": (409, "The organization has ten webhook endpoints, and may not have more. Delete one first."),
    "webhook_busy": (409, "A test or redelivery is on its way to this endpoint. Wait until it has ended."),
    "webhook_paused": (409, "The endpoint is paused. Resume it first."),
    "revision_conflict": (409, "Somebody else has saved since the revision you sent. Read the weights again and repeat your change."),
    "sdk_key_revoked": (409, "This SDK key was revoked, which is for good. Issue a new key."),
    "proxy_key_revoked": (409, "This proxy key was revoked before. There is nothing left to do."),
    "key_limit": (409, "The organization has 200 active keys, and may not have more. Revoke one first."),
    "supplement_conflict": (409, "Another deferred report was accepted for this request, and stays."),
    "idempotency_key_too_long": (422, "The Idempotency-Key is over 255 characters. Send a shorter one."),
    "invalid_visitor_metadata": (422, "The forwarded visitor details are missing or malformed. Send x-svc-visitor-ip with one IPv4 or IPv6 address, and well-formed x-svc-visitor-origin and x-svc-visitor-user-agent if any."),
    "invalid_supplement": (422, "The token does not hold for this request, key and origin, or is over 24 hours old, or signals.tier is not 'deferred'."),
    "invalid_request_id": (422, "The path names no request id. Request ids are UUIDs such as 019b76da-a800-7000-8000-000000000000."),
    "invalid_window": (422, "The window, page or filter is not valid. The window lies within the last 30 days, its start before its end, both RFC 3339 with + sent as %2B; at most 10,000 events come before a page; level is low, medium or high; visitor is a visitor id."),
    "validation_error": (422, "The request is not valid. Fix the fields listed in `details` and retry."),
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
    """An expected "no": a code of `CATALOGUE`, and what goes into the error body (interface 2.12)."""

    code: str
    details: tuple[Detail, ...] = ()
    retry_after_s: int | None = None
    reason: str = ""
    """For the log, and for the owner of `key`; never shown to the caller."""
    key: ApiKey | None = None
    """The recognized key that was refused before there was a caller: its owner may be notified (decisions 8.9)."""
    origin: str | None = None
    """The origin that was refused, as it was sent."""
    explanation: str = ""
    """Shown to the caller instead of the catalogue's message, where the caller may know more."""

    @property
    def status(self) -> int:
        """The HTTP status of the code. Raises `KeyError` for a code that is not in the catalogue."""
        return CATALOGUE[self.code][0]

    @property
    def message(self) -> str:
        """The text for the caller: `explanation`, else that of the catalogue."""
        return self.explanation or CATALOGUE[self.code][1]


_REACHED: dict[Bound, str] = {
    "organization": "The organization is over its rate limit",
    "nonproduction": "The organization's keys outside production are over their part of its rate limit",
    "address": "This visitor address is over its part of the organization's rate limit",
}
_USES: dict[Use | None, str] = {
    None: "",
    "client": " for challenges and deferred reports",
    "read": " for requests with secret keys",
    "management": " for requests with management keys",
}


def over_rate(reached: Bound, retry_after_s: int, use: Use | None = None) -> Refusal:
    """`429 rate_limited` whose message says which limit was `reached`; `use` is `None` for identifications (decisions
    4).
    """
    explanation = f"{_REACHED[reached]}{_USES[use]}. Wait for the seconds in Retry-After."
    return Refusal("rate_limited", retry_after_s=retry_after_s, explanation=explanation)


def over_day(what: str, retry_after_s: int, reason: str = "") -> Refusal:
    """`429 rate_limited` until midnight UTC; `what` names in the message what the organization has used up today,
    `reason` is for the log.
    """
    explanation = f"The organization has used up {what} (until midnight UTC). Wait for the seconds in Retry-After."
    return Refusal("rate_limited", retry_after_s=retry_after_s, reason=reason, explanation=explanation)


def over_share() -> Refusal:
    """`503 service_unavailable` of an organization that holds its share of the store (decisions 4). The message says
    that sending again does not help, and what does.
    """
    return Refusal(
        "service_unavailable",
        reason="the organization holds its share of the store",
        explanation="The organization holds its share of the store, and nothing more is stored for it. Sending again "
        "does not help: ask the operator of this service to delete archived reports with `svc org drop-documents`, or "
        "to raise `store_share` or `map_gib`.",
    )


def invalid(field: str, issue: Issue, location: Location = "body") -> Refusal:
    """`422 validation_error` with one detail: `field` as a path such as `sdk.version`, empty for the whole (decisions
    1.5).
    """
    return Refusal("validation_error", (Detail(field, issue, location),))
