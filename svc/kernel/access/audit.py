"""The audit log: what is kept of each change that a management key, a member or the command line makes (docs/audit.md).

What may live here: the record, how long it is kept, and what of a request may stand in it. A record says who changed
what, when and from where, and never holds a secret: of what was asked for, only values of known names are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from svc.kernel.access.roles import Role
from svc.kernel.values.ids import DAY_MS

AUDIT_MS = 400 * DAY_MS
"""How long a record is kept: the twelve months that PCI DSS 4.0 asks for (10.5.1), and one to look back in."""

LONGEST_TEXT = 1000
"""Characters of a text that are written; what follows is cut off."""

RECORDED = frozenset(
    {
        # HTTP: what the bodies of the management API name
        "name", "environment", "kind", "platforms", "allowed_origins", "expires_at", "platform", "suspect_threshold",
        "weights", "vpn_weights_mode", "residential_proxy_weights_mode", "revision", "description", "events", "paused",
        "previous_secret_valid_hours", "previous_key_valid_hours", "event_id", "decision_in_response",
        "account_thresholds", "entries", "values", "rules", "format", "request_id", "label", "label_reason", "assignee",
        "email", "role", "status", "from", "to",
        # The command line, beside the same words
        "credit_usd", "credit_limit_usd", "rate_limit_per_s", "billing_status", "since", "until", "labels",
    }
)  # fmt: skip
"""Names whose values are written as asked for. All else is withheld: a new name that holds a secret cannot slip in."""
COUNTED = frozenset({"entries", "values", "rules", "labels"})
"""Of these the number alone is written: they name who may be erased. The text of rules is in their history."""
WITHHELD = "(withheld)"


class Audited(NamedTuple):
    """What the audit record of an operation needs beside its path and body."""

    made: str = "id"
    """Path in its outcome of the id of what it made or changed, such as `review.id`, where its URL names nothing."""
    records: frozenset[str] = frozenset()
    """Names of its body whose values are written, beside `RECORDED`."""
    withholds: frozenset[str] = frozenset()
    """Names among `RECORDED` whose values are a person's own words about a visitor."""
    names_people: bool = False
    """Whether it names the visitor or account of its path: an erasure. Any other record could outlive them."""

    outcome: str | None = None
    """Attribute, a `dict`, of what its transaction returns that is written beside what was asked for."""

    @property
    def left_out(self) -> frozenset[str]:
        """The variables of a path that the record does not name."""
        return _ORGANIZATION if self.names_people else _ORGANIZATION | {"visitor_id", "account_id"}

    def made_of(self, outcome: object) -> str | None:
        """Return the id of what was created, from the result of a transaction; `None` if there is none."""
        for name in self.made.split("."):
            outcome = getattr(outcome, name, None)
        return outcome if isinstance(outcome, str) else None

    def seen_of(self, result: object) -> dict[str, Any]:
        """Return what the record says of the result of a transaction, beside what was asked for."""
        return {} if self.outcome is None else getattr(result, self.outcome, {})


ActorKind = Literal["management_key", "member", "command_line"]


class Actor(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The author of a change. Append fields with defaults, never move them."""

    kind: ActorKind
    id: str
    """Id of the key or the member, or the user's name on the machine."""
    name: str | None
    """Name of the key or the member then, or of the user who ran sudo, as sudo reports it."""
    role: Role | None
    """Role of the key or the member then."""
    place: str
    """From where: the client's address (decisions 2.10), or the machine and its terminal or process."""


class AuditRecord(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One change, under its request id over HTTP, else a UUIDv7 of its own. Append fields with defaults, never move."""

    at_ms: int
    actor: Actor
    action: str
    """The operation id, such as `issueSdkKey`, or the command, such as `svc key issue`."""
    organization: int
    """The organization's number, as in the key."""
    subject: str | None
    """The id of what was changed: a key, an endpoint, a visitor, an organization; or a platform."""
    change: dict[str, Any]
    """What was asked for, by name, and what else came of it."""


_ORGANIZATION = frozenset({"organization_id"})


def asked(values: Mapping[str, Any], how: Audited = Audited()) -> dict[str, Any]:  # noqa: B008  immutable
    """Return the values of a change as they may be recorded, by name: a URL becomes its origin, a long text its
    beginning, a list loses its repeats or is counted (`COUNTED`). A field that is neither in `RECORDED` nor recorded by
    the operation, or that the operation withholds, becomes `WITHHELD`; `None`, which removes something, stays.
    """
    recorded = ((RECORDED | how.records) - how.withholds) | {"url"}
    return {
        name: _written(name, value) if name in recorded or value is None else WITHHELD for name, value in values.items()
    }


def _written(name: str, value: Any) -> Any:
    if name == "url" and value is not None:
        return _origin(value)
    if name in COUNTED and isinstance(value, list | tuple):
        return len(value)  # pyright: ignore[reportUnknownArgumentType]  of anything
    if isinstance(value, list | tuple):
        return type(value)(dict.fromkeys(value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  of texts
    return value[:LONGEST_TEXT] + "…" if isinstance(value, str) and len(value) > LONGEST_TEXT else value


def _origin(url: str) -> str:
    """Return the origin of a URL, without path and query, which often are the secret that gives access."""
    scheme, _, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    origin = f"{scheme}://{authority.rpartition('@')[2]}"[:LONGEST_TEXT]
    return origin if rest in (authority, authority + "/") else origin + "/…"
