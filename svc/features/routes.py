"""ROUTES: every route. Registration, authentication, CORS, documents and tests all read this table.

What may live here: the modules of endpoints in the order of the reference, each of which has the rows of its own
endpoints; and the table arranged for finding which resource a path leads to, and which methods it takes there.
"""

from __future__ import annotations

import msgspec

from svc.features.accounts import console_routes as subjects
from svc.features.accounts import link_routes as links
from svc.features.accounts import routes as api_accounts
from svc.features.billing import console_routes as accounts
from svc.features.browser_keys import routes as browser_keys
from svc.features.events import console_routes as console_events
from svc.features.events import routes as events
from svc.features.events import stream_routes as stream
from svc.features.exports import console_routes as export
from svc.features.identification import health_routes as health
from svc.features.identification import routes as client_api
from svc.features.keys import console_routes as public_keys
from svc.features.keys import routes as keys
from svc.features.keys import verdict_key_routes as verdict_keys
from svc.features.labels import routes as labels
from svc.features.labels import suggestion_routes as suggestion
from svc.features.lists import routes as lists
from svc.features.lists import standing_routes as console_standing
from svc.features.members import code_routes as codes
from svc.features.members import invitation_routes as invitations
from svc.features.members import people_routes as people
from svc.features.members import routes as members
from svc.features.members.sign_in import openid_routes as by_openid
from svc.features.members.sign_in import session_routes as sign_in
from svc.features.organizations import routes as settings
from svc.features.reviews import note_routes as notes
from svc.features.reviews import routes as reviews
from svc.features.rules import console_routes as console_rules
from svc.features.rules import example_routes as rule_examples
from svc.features.rules import routes as rules
from svc.features.statistics import routes as statistics
from svc.features.try_page import routes as try_page
from svc.features.visitors import console_routes as console_visitors
from svc.features.visitors import routes as visitors
from svc.features.webhooks import routes as webhooks
from svc.features.weights import preview_routes as preview
from svc.features.weights import routes as weights
from svc.http.paths import Paths
from svc.http.route import BASE, CONSOLE, Route


def _for_the_console(route: Route) -> Route:
    """A route of the management API is served to the console too, where a session is a credential for it."""
    if route.kinds == ("management",) and route.under == (BASE,):
        return msgspec.structs.replace(route, under=(BASE, CONSOLE))
    return route


_CONSOLE = (
    sign_in,
    invitations,
    by_openid,
    codes,
    stream,
    export,
    console_events,
    console_rules,
    console_standing,
    rule_examples,
    console_visitors,
    subjects,
    links,
    statistics,
    preview,
    public_keys,
    people,
    accounts,
)

API: tuple[Route, ...] = tuple(
    _for_the_console(route)
    for module in (
        client_api,
        events,
        api_accounts,
        verdict_keys,
        keys,
        browser_keys,
        weights,
        suggestion,
        rules,
        lists,
        labels,
        reviews,
        notes,
        settings,
        members,
        webhooks,
        visitors,
        *_CONSOLE,
        health,
    )
    for route in module.ROUTES
)
"""What the reference describes."""

ROUTES: tuple[Route, ...] = (*API, *try_page.ROUTES)


PATHS = Paths(ROUTES)
"""Of every route."""
