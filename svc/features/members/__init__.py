"""Members: invited and changed, and how they sign in by a password, an invitation or an OpenID provider.

What may live here: endpoints and what they need to tell who somebody is. Sessions on the wire are in `sessions`.
"""

from svc.features.feature import Command, Feature

FEATURE = Feature(
    __name__,
    retention=("retention",),
    routes=("routes", "sign_in.session_routes", "sign_in.openid_routes", "code_routes"),
    checks=("checks",),
    commands={
        "member": Command("Manage access", "Invite and manage people who sign in to the console."),
        "console": Command("Manage access", "Sign in to the console.", "command"),
    },
)
