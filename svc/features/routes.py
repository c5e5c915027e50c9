"""ROUTES: every route. Registration, authentication, CORS, documents and tests all read this table."""

from __future__ import annotations

import msgspec

from svc.features.registry import FEATURES
from svc.features.try_page import routes as try_page
from svc.http.openapi.document import TAGS
from svc.http.route import BASE, CONSOLE, Paths, Route


def _for_the_console(route: Route) -> Route:
    """Serve a route of the management API to the console too, where a session is a credential for it."""
    if route.kinds == ("management",) and route.under == (BASE,):
        return msgspec.structs.replace(route, under=(BASE, CONSOLE))
    return route


_FOUND = [route for feature in FEATURES for module in feature.modules("routes") for route in module.ROUTES]
API: tuple[Route, ...] = tuple(
    _for_the_console(route) for route in sorted(_FOUND, key=lambda route: [*TAGS].index(route.tag))
)
"""What the reference describes, in its sections."""

ROUTES: tuple[Route, ...] = (*API, *try_page.ROUTES)


PATHS = Paths(ROUTES)
"""Of every route."""
