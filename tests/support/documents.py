"""The published OpenAPI documents, that of the API and that of the console, as tests look at them together."""

from __future__ import annotations

from functools import cache
from typing import Any

from svc.features.routes import API
from svc.http.openapi.document import OF_CONSOLE, emit
from svc.http.route import BASE, CONSOLE_ROOT, Route


@cache
def published() -> dict[str, Any]:
    """The document of the API; nobody changes it."""
    return emit(API)


@cache
def of_console() -> dict[str, Any]:
    return emit(API, OF_CONSOLE)


@cache
def both(*, mirrored: bool = False) -> dict[str, Any]:
    """The API's document with the operations of the console's in it, below `/console`: those that the API has too are
    left out unless `mirrored`.
    """
    api, console = published(), of_console()
    shown = {
        CONSOLE_ROOT + path: operations
        for path, operations in console["paths"].items()
        if mirrored or any(operation["tags"] == ["Console"] for operation in operations.values())
    }
    merged = {
        part: {**console["components"][part], **components}
        for part, components in api["components"].items()
    }  # fmt: skip
    tags = {tag["name"]: tag for tag in (*api["tags"], *console["tags"])}
    return {**api, "tags": list(tags.values()), "paths": {**api["paths"], **shown}, "components": merged}


def path_in(route: Route, beginning: str) -> str:
    """Where `both` has a route that is served below `beginning`."""
    is_console = f"{beginning}/".startswith(f"{CONSOLE_ROOT}/") or BASE not in route.under
    return beginning + route.path if is_console else route.path
