"""The error catalog: what the service refuses, with which status, and what it tells the caller to do.

What may live here: the general codes, of `svc/kernel/data/refusals.toml`, where those of features are found, and the
values that carry a refusal, to the caller and to other processes. An expected "no" is a value that functions return;
what ends a command is an exception (`OperatorError`). Sources: interface 7 and decisions 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Literal, cast

import msgspec

from svc.kernel.access.credentials import ApiKey
from svc.kernel.data import read_tables
from svc.kernel.limits.ratelimit import Bound, Use
from svc.kernel.net.trace_context import TraceContext
from svc.kernel.values.errors import ErrorCode
from svc.kernel.values.fields import Environment

Issue = Literal[
    "required", "unknown_field", "wrong_type", "malformed_json", "malformed_encoding", "out_of_range", "too_long",
    "too_deep", "invalid_url", "not_public_address", "unknown_event_type", "requires_live", "invalid_origin",
    "unknown_signal", "invalid_cursor", "not_with_order", "invalid_value", "invalid_condition", "too_expensive",
]  # fmt: skip
Location = Literal["body", "query", "header", "path"]


GENERAL = {code: ErrorCode(*means) for code, means in read_tables("refusals", dict[str, tuple[int, str]]).items()}
"""The codes that no feature has alone."""
OF_THE_PROGRAM = "svc.features.refusals"
"""The module that has the `CATALOG` of this program, where features add theirs."""


@cache
def catalog() -> Mapping[str, ErrorCode]:
    """Return every code of this program."""
    return cast("Mapping[str, ErrorCode]", import_module(OF_THE_PROGRAM).CATALOG)


class Detail(msgspec.Struct, frozen=True):
    """One fault in a request (decisions 1.5)."""

    field: str
    """A path such as `sdk.version`; empty for the whole body."""
    issue: Issue
    location: Location


class Refusal(msgspec.Struct, frozen=True):
    """An expected refusal: a code of `catalog`, and the details for the error body (interface 2.12)."""

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
    """Shown to the caller instead of the catalog's message, where the caller may know more."""

    @property
    def status(self) -> int:
        """The HTTP status of the code. Raises `KeyError` for a code that is not in the catalog."""
        return catalog()[self.code].status

    @property
    def message(self) -> str:
        """The text for the caller: `explanation`, else that of the catalog."""
        return self.explanation or catalog()[self.code].message


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
    """Return `429 rate_limited` for the limit that was `reached`; `use`: `None` = identifications (decisions 4)."""
    explanation = f"{_REACHED[reached]}{_USES[use]}. Wait for the seconds in Retry-After."
    return Refusal("rate_limited", retry_after_s=retry_after_s, explanation=explanation)


def over_day(what: str, retry_after_s: int, reason: str = "") -> Refusal:
    """Return `429 rate_limited` until midnight UTC for `what`, which the message says; `reason` is for the log."""
    explanation = f"The organization has used up {what} (until midnight UTC). Wait for the seconds in Retry-After."
    return Refusal("rate_limited", retry_after_s=retry_after_s, reason=reason, explanation=explanation)


def over_share() -> Refusal:
    """Return `503 service_unavailable` for an organization that holds its share of the store (decisions 4). The message
    says that repeating the request does not help, and what does.
    """
    return Refusal(
        "service_unavailable",
        reason="the organization holds its share of the store",
        explanation="The organization holds its share of the store, and nothing more is stored for it. Sending again "
        "does not help: ask the operator of this service to delete archived reports with `svc org drop-documents`, or "
        "to raise `store_share` or `map_gib`.",
    )


def invalid(field: str, issue: Issue, location: Location = "body", explanation: str = "") -> Refusal:
    """Return `422 validation_error` with one detail: `field` as a path such as `sdk.version`, empty for the whole
    (decisions 1.5).
    """
    return Refusal("validation_error", (Detail(field, issue, location),), explanation=explanation)


NOTIFIABLE = frozenset({401, 402, 413, 422, 429})
"""Statuses of refusals that make an event, where the key was recognized."""


class RefusedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One refused request of a recognized key, or the latest of `count` similar ones."""

    organization: int
    key_id: str
    code: str
    status: int
    environment: Environment
    request_id: bytes
    occurred_at_ms: int
    origin: str | None
    ip_address: str | None
    reason: str | None = None
    count: int = 1
    trace: TraceContext | None = None

    @property
    def name(self) -> str:
        """`key_id/code`: the kind of refusal within the organization; refusals of one kind are counted together."""
        return f"{self.key_id}/{self.code}"
