"""The SDK and the pages that the service serves to browsers (decisions 9.3).

What may live here: which files of the web build are served where. `make web` makes them in `svc/web_static`; without
them the service runs all the same, and says how to make them.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

import msgspec

from svc.domain.refusals import Refusal
from svc.domain.scoring.explanations import CHANGES, EVIDENCE, LINKAGE, PROOF, REASONS
from svc.domain.scoring.signals import CATALOGUE
from svc.http.pages.static import (
    IMMUTABLE,
    MEDIA_TYPES,
    PAGE,
    SECURITY_HEADERS,
    Folder,
    filled,
    not_found,
    unless_known,
)
from svc.http.route import Call, File, Outcome, Route, Services, page_route

_BUILT = files("svc").joinpath("web_static")
SDK = Folder(_BUILT.joinpath("sdk"))
PAGES = Folder(_BUILT.joinpath("pages"))

FULL_VERSION = re.compile(r"\d{1,4}\.\d{1,4}\.\d{1,4}", re.ASCII)
CURRENT = "v1"
"""Stands for the newest version of the SDK whose interface is version 1."""
SDK_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}
"""Pages of any origin may load the SDK: it holds no secret, and a module script is fetched with CORS."""
FRESH_FOR_AN_HOUR = "public, max-age=3600"

NOT_BUILT = "The web pages are not part of this installation. Build them with `make web`, then restart the service."
TRY_IS_OFF = "This page is turned off. The operator turns it on with the setting try_key, a public development key."


@cache
def sdk_version() -> str | None:
    """Version of the SDK in the web build, such as `0.1.0`; `None` without one."""
    return SDK.read("version.txt").decode().strip() if "version.txt" in SDK else None


async def sdk(_: Services, call: Call) -> Outcome:
    """`GET /sdk/{version}/{file}`: `v1` is asked for again after an hour, a full version never changes.

    A full version that this service does not have leads to `v1`: pages that name one go on when the service is upgraded
    or rolled back, since nothing that a page uses breaks within version 1.
    """
    version, name = call.path["version"], call.path["file"]
    if sdk_version() is None:
        return Outcome(Refusal("not_found", explanation=NOT_BUILT))
    if name not in SDK or not (version == CURRENT or FULL_VERSION.fullmatch(version)):
        return Outcome(Refusal("not_found"))
    if version == CURRENT:
        return SDK.served(name, call, SDK_HEADERS, cache_control=FRESH_FOR_AN_HOUR)
    if version == sdk_version():
        return SDK.served(name, call, SDK_HEADERS, cache_control=IMMUTABLE)
    elsewhere = {**SDK_HEADERS, "Location": f"../{CURRENT}/{name}", "Cache-Control": "no-cache"}
    return Outcome(None, status=307, headers=elsewhere)


async def home(services: Services, call: Call) -> Outcome:
    """`GET /`: a small page that links to the others (decisions 9.3)."""
    page = _home(has_try=services.try_key is not None and "try.html" in PAGES)
    return unless_known(File(page, MEDIA_TYPES[".html"]), call, SECURITY_HEADERS)


async def try_page(services: Services, call: Call) -> Outcome:
    """`GET /try`: the page on which a browser is identified; `404` with what to do where it is turned off or not
    built.
    """
    return not_found(call, TRY_IS_OFF) if services.try_key is None else _page("try.html", call)


async def console_page(_: Services, call: Call) -> Outcome:
    """`GET /console`: the page of the console, open to all: what it shows it reads with a session. `404` with what to
    do where it is not built.
    """
    return _page("console.html", call)


def _page(name: str, call: Call) -> Outcome:
    return PAGES.served(name, call, SECURITY_HEADERS) if name in PAGES else not_found(call, NOT_BUILT)


async def texts(_: Services, call: Call) -> Outcome:
    """`GET /pages/texts.json`: what the pages say of signals, evidence, changes, linkage, proofs and reasons, by
    name.
    """
    return unless_known(File(_texts(), MEDIA_TYPES[".json"]), call, SECURITY_HEADERS)


@cache
def _texts() -> bytes:
    signals = {name: {"group": signal.group, "description": signal.description} for name, signal in CATALOGUE.items()}
    phrases = {"changes": CHANGES, "linkage": LINKAGE, "proof": PROOF, "reasons": REASONS}
    return msgspec.json.encode({"signals": signals, "evidence": EVIDENCE, **phrases})


async def page_file(_: Services, call: Call) -> Outcome:
    """`GET /pages/{file}`: scripts and styles of the pages; `404 not_found` for any other name."""
    name = call.path["file"]
    if name in _OWN_FILES:
        return PAGE.served(name, call, SECURITY_HEADERS)
    if name.endswith(".html") or name not in PAGES:
        return Outcome(Refusal("not_found"))
    return PAGES.served(name, call, SECURITY_HEADERS)


_OWN_FILES = frozenset({"home.css"})
"""Of the pages that are there without the web build."""


@cache
def _home(*, has_try: bool) -> bytes:
    link = '<li><a href="try">Try it</a> <span>See your own browser identified, and why.</span></li>\n'
    return filled("home.html", {"try_link": link if has_try else ""})


ROUTES: tuple[Route, ...] = (
    page_route("getHome", "/", home),
    page_route("getSdk", "/sdk/{version}/{file}", sdk),
    page_route("getPageTexts", "/pages/texts.json", texts),
    page_route("getPageFile", "/pages/{file}", page_file),
    page_route("getTryPage", "/try", try_page),
    page_route("getConsolePage", "/console", console_page),
)
