"""Members: invited and changed, and how they sign in by a password, an invitation or an OpenID provider.

What may live here: endpoints and what they need to tell who somebody is. Sessions on the wire are in `sessions`.
"""

from svc.features.feature import Command, Feature
from svc.kernel.values.errors import ErrorCode

FEATURE = Feature(
    __name__,
    retention=("jobs",),
    routes=("routes", "sign_in.session_routes", "sign_in.openid_routes", "code_routes"),
    invariants=("invariants",),
    refusals={
        "member_exists": ErrorCode(
            409, "The organization has a member with this address. Give it a new link, change it, or remove it first."
        ),
        "member_limit": ErrorCode(409, "The organization has 500 members, and may not have more. Remove one first."),
        "member_invited": ErrorCode(
            409,
            "This member has not accepted the invitation yet. Remove it to take the invitation back.",
        ),
        "member_suspended": ErrorCode(409, "This member is suspended. Set its status to active first."),
        "last_admin": ErrorCode(
            409,
            "It is the organization's last active admin. Make somebody else an admin first, or use a management key "
            "or the command line.",
        ),
    },
    commands={
        "member": Command("Manage access", "Invite and manage people who sign in to the console."),
        "console": Command("Manage access", "Sign in to the console.", "command"),
    },
)
