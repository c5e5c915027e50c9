"""ROUTES: every route. Registration, authentication, CORS, documents and tests all read this table.

What may live here: the modules of endpoints in the order of the reference. Each has the rows of its own endpoints.
"""

from __future__ import annotations

import msgspec

from svc.http.api import attestation, events, health
from svc.http.api import identify as client_api
from svc.http.console import accounts, preview, sign_in, statistics, stream
from svc.http.console import events as console_events
from svc.http.console import visitors as console_visitors
from svc.http.management import keys, verdict_keys, visitors, webhooks, weights
from svc.http.pages import try_page
from svc.http.route import BASE, CONSOLE, Route


def _for_the_console(route: Route) -> Route:
    """A route of the management API is served to the console too, where a session is a credential for it."""
    if route.kinds == ("management",) and route.under == (BASE,):
        return msgspec.structs.replace(route, under=(BASE, CONSOLE))
    return route


_CONSOLE = (sign_in, stream, console_events, console_visitors, statistics, preview, accounts)

API: tuple[Route, ...] = tuple(
    _for_the_console(route)
    for module in (client_api, attestation, events, verdict_keys, keys, weights, webhooks, visitors, *_CONSOLE, health)
    for route in module.ROUTES
)
"""What the reference describes."""

ROUTES: tuple[Route, ...] = (*API, *try_page.ROUTES)
