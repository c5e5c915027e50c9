"""The checks of the backend guide: whether an identification belongs to the action that is being served, and what
to do about its verdict. Pure functions; `Client.check` reads the event and calls them.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NotRequired, TypedDict, cast

from svc_client.errors import unexpected
from svc_client.json_text import whole
from svc_client.types import DecisionBody, EventDetailBody

Problem = Literal[
    "not_found",
    "invalid",
    "too_old",
    "other_origin",
    "other_address",
    "other_network",
    "other_tag",
    "other_account",
    "other_action",
    "other_platform",
    "unproven",
    "used_before",
]
"""Why an identification does not belong to this action. Others may be added."""
WEAK: frozenset[Problem] = frozenset(("other_address", "other_network", "unproven"))
"""Problems that honest visitors have, too: they ask for a second factor. With any other one, the event is refused."""
Decision = Literal["accept", "verify", "refuse"]

MAX_AGE = timedelta(minutes=5)
CLOCK_SKEW = timedelta(seconds=30)
KNOWN_CONFIDENCE = 90
NETWORK_BITS = {4: 24, 6: 48}
"""What is compared of an address where its network is enough: what a provider gives one site."""
_OPTIONAL = ("origin", "tag", "account_id", "action", "suspect_level")
_REQUEST_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(
    r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:\.[0-9]{1,9})?"
    r"(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])"
)


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
class _Findings:
    """What is known of an event or a verdict beside what it says itself."""

    problem: Problem | None
    """`None` = it belongs to this action, and may be relied on. So it may, after a second factor, where `decision` is
    `verify`.
    """

    problems: tuple[Problem, ...] = field(default=(), kw_only=True)
    """All of them, where there is more than `problem`: each asks for a second factor."""
    allow_unknown: bool = field(default=False, kw_only=True)

    @property
    def decision(self) -> Decision:
        """What to do: `accept`, `verify` (ask for a second factor) or `refuse`; the stricter of what the checks and the
        level say and of what a rule decided. `refuse` where the identification is of another action.
        """
        return _strictest(self._against())

    @property
    def reasons(self) -> list[str]:
        """Why it is not `accept`, what decided first; empty if it is. `rule:` and the name of the rule that blocked or
        challenged; `level:` and the level; a problem; `not_scored`, `not_identifiable`, `not_known`. Others may follow.
        """
        return [reason for _, reason in self._against()]

    def _against(self) -> list[tuple[Decision, str]]:
        problems = self.problems or (() if self.problem is None else (self.problem,))
        return against(self._seen(), problems, allow_unknown=self.allow_unknown)

    def _seen(self) -> EventDetailBody | Verdict | None:
        raise NotImplementedError


@dataclass(frozen=True)
class CheckedVerdict(_Findings):
    """What came of the checks of a signed verdict."""

    verdict: Verdict | None
    """`None` where the signature does not hold."""

    def _seen(self) -> Verdict | None:
        return self.verdict


@dataclass(frozen=True)
class Checked(_Findings):
    """What came of the checks: an event that belongs to this action, or a problem."""

    event: EventDetailBody | None
    """As it was read, also beside a problem, for the log; `None` where there is no such event."""

    def _seen(self) -> EventDetailBody | None:
        return self.event


def checked(problems: tuple[Problem, ...], event: EventDetailBody | None, *, allow_unknown: bool) -> Checked:
    """What `Client.check` returns."""
    return Checked(problems[0] if problems else None, event, problems=problems, allow_unknown=allow_unknown)


def is_request_id(value: object) -> bool:
    """Whether a value that a client sent has the form of a request id."""
    return isinstance(value, str) and _REQUEST_ID.fullmatch(value) is not None


@dataclass(frozen=True, kw_only=True)
class Action:
    """The action that is being served; its fields are the arguments of `Client.check`."""

    origin: str | None
    tag: str | None
    ip: str | None = None
    account_id: str | None = None
    action: str | None = None
    platform: str | None = None
    proven: bool = False
    same_network: bool = False
    allow_unknown: bool = False
    now: datetime | None = None


def problems_with(event: EventDetailBody, action: Action, request_id: str) -> tuple[Problem, ...]:
    """The first strong problem alone, else every weak one; the first use is left out, which only a memory can tell.
    Raises `ValueError` where `ip` is no address, and `ApiError` where what was read has not the form of an event, or is
    another one than `request_id`.
    """
    if not has_form(event, texts=("request_id", "occurred_at")) or event["request_id"] != request_id:
        raise unexpected(200)
    occurred = _time(event["occurred_at"])
    if occurred is None:
        raise unexpected(200)
    if not -CLOCK_SKEW < (action.now or datetime.now(UTC)) - occurred < MAX_AGE:
        return ("too_old",)
    return differences(event, action)


def differences(event: EventDetailBody | Verdict, action: Action) -> tuple[Problem, ...]:
    """What of an event or a verdict is of another action than this one, as of `problems_with`."""
    distance = _distance(event["ip_address"], action)
    strong = _other(event, action)
    if strong is not None:
        return (strong,)
    unproven: tuple[Problem, ...] = ("unproven",) if action.proven and event.get("proven") is not True else ()
    return (() if distance is None else (distance,)) + unproven


def has_form(seen: object, *, texts: tuple[str, ...], integers: tuple[str, ...] = ()) -> bool:
    """Whether what the checks read of an event or a verdict is there and of its kind, and so are more fields."""
    if not isinstance(seen, dict):
        return False
    fields = cast("dict[str, Any]", seen)
    rule = fields.get("decision")
    rule = {"action": "", "rule": ""} if rule is None else rule
    return (
        all(_is_text(fields.get(name)) for name in ("ip_address", "platform", *texts))
        and all(whole(fields.get(name)) is not None for name in ("visitor_confidence", *integers))
        and isinstance(fields.get("identifiable"), bool)
        and all(isinstance(fields.get(name), str | None) for name in _OPTIONAL)
        and isinstance(rule, dict)
        and all(isinstance(cast("dict[str, Any]", rule).get(name), str) for name in ("action", "rule"))
        and _is_address(fields["ip_address"])
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _time(text: str) -> datetime | None:
    """A time of RFC 3339, to a millisecond; `None` for any other text."""
    if not _TIME.fullmatch(text):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:  # a day that its month has not
        return None
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def _is_address(text: str) -> bool:
    try:
        return bool(_address(text))
    except ValueError:
        return False


def may_count(problems: tuple[Problem, ...]) -> bool:
    """Whether an identification counts for its action, at once or after a second factor: then it is used."""
    return WEAK.issuperset(problems)


def _other(event: EventDetailBody | Verdict, action: Action) -> Problem | None:
    if (event.get("origin") or None) != (action.origin or None):  # an empty one is none
        return "other_origin"
    if (event.get("tag") or None) != (action.tag or None):
        return "other_tag"
    if action.account_id is not None and event.get("account_id") != action.account_id:
        return "other_account"
    if action.action is not None and event.get("action") != action.action:
        return "other_action"
    if action.platform is not None and event["platform"] != action.platform:
        return "other_platform"
    return None


def decide(event: EventDetailBody | Verdict, *, allow_unknown: bool = False) -> Decision:
    """What to do with an event that belongs to its action, as of `Checked.decision`."""
    return _strictest(against(event, (), allow_unknown=allow_unknown))


def against(
    seen: EventDetailBody | Verdict | None, problems: tuple[Problem, ...], *, allow_unknown: bool
) -> list[tuple[Decision, str]]:
    """What speaks against accepting an event or a verdict, with its name, the strictest first."""
    if seen is None or not may_count(problems):
        return [("refuse", problems[0] if problems else "not_found")]
    found: list[tuple[Decision, str]] = []
    rule = seen.get("decision")
    if rule and rule["action"] not in ("allow", "review"):  # an action of tomorrow is no reason to accept
        found.append(("refuse" if rule["action"] == "block" else "verify", f"rule:{rule['rule']}"))
    level = seen.get("suspect_level")
    if level is None:
        found.append(("verify", "not_scored"))
    elif level != "low":
        found.append(("refuse" if level == "high" else "verify", f"level:{level}"))
    for problem in problems:
        found.append(("verify", problem))  # noqa: PERF401  a list of them is one of texts
    if not seen["identifiable"]:
        found.append(("verify", "not_identifiable"))
    if not allow_unknown and seen["visitor_confidence"] < KNOWN_CONFIDENCE:
        found.append(("verify", "not_known"))
    return [one for one in found if one[0] == "refuse"] + [one for one in found if one[0] != "refuse"]


def _strictest(found: list[tuple[Decision, str]]) -> Decision:
    return found[0][0] if found else "accept"


def _distance(seen: str, action: Action) -> Problem | None:
    """What differs of the two addresses, where one is to be compared."""
    if action.ip is None:
        return None
    one, other = _address(seen), _address(action.ip)
    if not action.same_network:
        return None if one == other else "other_address"
    bits = NETWORK_BITS[one.version]
    is_same = one.version == other.version and other in ipaddress.ip_network(f"{one}/{bits}", strict=False)
    return None if is_same else "other_network"


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address in one form, whatever the notation; IPv4 inside IPv6 is IPv4, and a zone is of one machine."""
    plain, percent, zone = text.partition("%")
    if percent and (":" not in plain or zone == "" or "%" in zone):
        raise ValueError(f"{text!r} is not an address")
    address = ipaddress.ip_address(plain)
    return getattr(address, "ipv4_mapped", None) or address
