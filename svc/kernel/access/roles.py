"""Roles of members and management keys, and the one table of what each may do (interface 5, rule 5; decisions 15.1).

Every route of the management API and of the console names the permission that it needs (`svc.http.route`), and
`ROLES_WITH` says who has it. No other place decides by roles.
"""

from __future__ import annotations

from typing import Literal, get_args

Role = Literal["admin", "developer", "analyst", "viewer"]
ROLES: tuple[Role, ...] = get_args(Role)
KeyRole = Literal["admin", "developer"]
"""Of management keys: analyst and viewer are roles of people."""
KEY_ROLES: tuple[KeyRole, ...] = get_args(KeyRole)

Permission = Literal["own", "read", "judge", "list", "draft", "develop", "administer"]
"""`own`: one's own session and sign-in. `read`: everything that is not a secret, previews included. `judge`: labels,
reviews and notes. `list`: entries of lists. `draft`: rules that decide nothing, and proposals of others. `develop`: SDK
keys, webhooks, lists. `administer`: proxy keys, members, rules, weights, settings, erasure.
"""

_EVERYBODY = frozenset(ROLES)
_JUDGES: frozenset[Role] = frozenset(("admin", "developer", "analyst"))

ROLES_WITH: dict[Permission, frozenset[Role]] = {
    "own": _EVERYBODY,
    "read": _EVERYBODY,
    "judge": _JUDGES,
    "list": _JUDGES,
    "draft": _JUDGES,
    "develop": frozenset(("admin", "developer")),
    "administer": frozenset(("admin",)),
}


def named_roles(permission: Permission | None) -> str:
    """Return the roles that have a permission, for documents; empty if all have it, or none is needed."""
    granted = ROLES_WITH["read" if permission is None else permission]
    if len(granted) == len(ROLES):
        return ""
    *others, last = (f"`{role}`" for role in ROLES if role in granted)
    return " or ".join(filter(None, (", ".join(others), last)))


def may(role: Role | None, permission: Permission) -> bool:
    """Return whether a role has a permission; no role has none."""
    return role in ROLES_WITH[permission]
