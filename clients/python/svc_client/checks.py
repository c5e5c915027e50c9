"""The checks of the backend guide: whether an identification belongs to the action that is being served, and what
to do about its verdict. Pure functions; `Client.check` reads the event and calls them.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NotRequired, TypedDict

from svc_client.types import DecisionBody, EventDetailBody

Problem = Literal[
    "not_found",
    "invalid",
    "too_old",
    "other_origin",
    "other_address",
    "other_tag",
    "other_account",
    "other_action",
    "other_platform",
    "unproven",
    "used_before",
]
"""Why an identification does not belong to this action. Others may be added."""
Decision = Literal["accept", "verify", "refuse"]

MAX_AGE = timedelta(minutes=5)
CLOCK_SKEW = timedelta(seconds=30)
KNOWN_CONFIDENCE = 90
_REQUEST_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Verdict(TypedDict):
    """What a signed verdict says, beside the claims of RFC 7519 (`iss`, `aud`, `sub`, `jti`, `iat`, `exp`)."""

    aud: str
    """The organization."""
    sub: str
    """The visitor id."""
    jti: str
    """The request id."""
    iat: int
    exp: int
    environment: str
    platform: str
    ip_address: str
    origin: NotRequired[str]
    tag: NotRequired[str]
    account_id: NotRequired[str]
    """As the identify request named it, and so is the action. Left out by services before 0.3.0."""
    action: NotRequired[str]
    visitor_is_new: bool
    identifiable: bool
    visitor_confidence: int
    proven: NotRequired[bool]
    """Left out by services before 0.3.0."""
    suspect_score: NotRequired[int]
    """Left out when not scored, and so is the level."""
    suspect_level: NotRequired[str]
    decision: NotRequired[DecisionBody]
    """What the rules of the organization decided. Left out where none matched, and by services before 0.3.0."""


@dataclass(frozen=True)
class CheckedVerdict:
    """What came of the checks of a signed verdict."""

    problem: Problem | None
    """`None` = it belongs to this action. Then, and only then, rely on `verdict`."""
    verdict: Verdict | None
    """`None` where the signature does not hold."""

    @property
    def decision(self) -> Decision:
        """As of `Checked`."""
        return "refuse" if self.problem or self.verdict is None else decide(self.verdict)


@dataclass(frozen=True)
class Checked:
    """What came of the checks: an event that belongs to this action, or a problem."""

    problem: Problem | None
    """`None` = it belongs to this action. Then, and only then, rely on `event`."""
    event: EventDetailBody | None
    """As it was read, also beside a problem, for the log; `None` where there is no such event."""

    @property
    def decision(self) -> Decision:
        """What the backend guide does with it at a log-in; an identification with a problem is refused."""
        return "refuse" if self.problem or self.event is None else decide(self.event)


def is_request_id(value: object) -> bool:
    """Whether a value that a client sent has the form of a request id."""
    return isinstance(value, str) and _REQUEST_ID.fullmatch(value) is not None


def problem_with(  # noqa: PLR0913  all by name: what the action is
    event: EventDetailBody,
    *,
    origin: str | None,
    ip: str | None,
    tag: str | None,
    account_id: str | None = None,
    action: str | None = None,
    platform: str | None = None,
    proven: bool = False,
    now: datetime | None = None,
) -> Problem | None:
    """The first check that fails, but for the first use, which only a memory can tell.

    `origin` is the page's, `None` for an app; `ip` is the address that is talking to you, `None` not to compare it;
    `tag` is that of this action, `None` for none; `account_id` is that of your session, and `action` is what you serve,
    `None` not to compare them; `platform` is that by which it must have been scored, `None` not to
    compare it; `proven` demands a visit that its browser proved. Raises `ValueError` where `ip` is no address.
    """
    age = (now or datetime.now(UTC)) - datetime.fromisoformat(event["occurred_at"])
    if not -CLOCK_SKEW < age < MAX_AGE:
        return "too_old"
    return difference(
        event,
        origin=origin,
        ip=ip,
        tag=tag,
        account_id=account_id,
        action=action,
        platform=platform,
        proven=proven,
    )


def difference(  # noqa: PLR0911  a check each
    event: EventDetailBody | Verdict,
    *,
    origin: str | None,
    ip: str | None,
    tag: str | None,
    account_id: str | None = None,
    action: str | None = None,
    platform: str | None = None,
    proven: bool = False,
) -> Problem | None:
    """What of an event or a verdict is of another action than this one, as of `problem_with`."""
    if event.get("origin") != origin:
        return "other_origin"
    if ip is not None and _address(event["ip_address"]) != _address(ip):
        return "other_address"
    if event.get("tag") != tag:
        return "other_tag"
    if account_id is not None and event.get("account_id") != account_id:
        return "other_account"
    if action is not None and event.get("action") != action:
        return "other_action"
    if platform is not None and event["platform"] != platform:
        return "other_platform"
    return "unproven" if proven and event.get("proven") is not True else None


def decide(event: EventDetailBody | Verdict) -> Decision:
    """For a log-in, with an event that belongs to it: `accept`, `verify` (a second factor) or `refuse`."""
    level = event.get("suspect_level", "medium")  # absent: the report could not be scored
    if level == "high":
        return "refuse"
    is_known = event["identifiable"] and event["visitor_confidence"] >= KNOWN_CONFIDENCE
    return "accept" if level == "low" and is_known else "verify"


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address in one form, whatever the notation; IPv4 inside IPv6 is IPv4."""
    address = ipaddress.ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address
