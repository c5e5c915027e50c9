"""The documentation site that the service serves below `/docs/` (docs/adr/0054).

What may live here: which files of the site are served, and with which headers. `make docs` makes them in
`svc/docs_site`; without them the service runs all the same, and says how to make them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

import msgspec

from svc.http.pages.static import IMMUTABLE, REVALIDATED, SECURITY_HEADERS, Folder, not_found
from svc.http.route import Call, Outcome, Route, Services, page_route

SITE = Folder(files("svc").joinpath("docs_site"))
HOME = "index.html"
NOT_BUILT = "The documentation is not part of this installation. Build it with `make docs`, then restart the service."
NO_PAGE = "The documentation has no such page. Begin at its first page, or search there."
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


class SiteQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the site's own links and its search add to a path; the scripts of the page read it."""

    v: str = ""
    """The version of a script or a style."""
    q: str = ""
    highlight: str = ""
    check_keywords: str = ""
    area: str = ""


async def site(_: Services, call: Call) -> Outcome:
    """`GET /docs/{page...}`: a page of the documentation, or a file of one."""
    return served(call)


def served(call: Call) -> Outcome:
    """A file of the site; `404` with the way to the first page for any other name, or with what to do where the site is
    not built.
    """
    name = call.path["page"]
    if not name or name.endswith("/"):
        name += HOME
    if name not in SITE:
        return _notice(call, NO_PAGE if HOME in SITE else NOT_BUILT)
    has_version = isinstance(call.query, SiteQuery) and call.query.v and name.startswith("_static/")
    return SITE.served(name, call, _headers(), cache_control=IMMUTABLE if has_version else REVALIDATED)


@cache
def _headers() -> dict[str, str]:
    """Those of every page, but for the one script that the theme has in its pages, by its hash, and for the styles that
    diagrams bring.
    """
    inline = set(_INLINE_SCRIPT.findall(SITE.read(HOME).decode()))
    hashes = sorted(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in inline)
    allowed = " ".join(["script-src 'self'", *(f"'sha256-{one}'" for one in hashes)])
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    policy = policy.replace("script-src 'self'", allowed).replace(
        "style-src 'self'", "style-src 'self' 'unsafe-inline'"
    )
    policy = policy.replace("form-action 'none'", "form-action 'self'")
    return {**SECURITY_HEADERS, "Content-Security-Policy": policy}


def _notice(call: Call, text: str) -> Outcome:
    root = "../" * (call.path["page"].count("/") + 1)
    link = f'<li><a href="{root}docs/">Documentation</a></li>' if HOME in SITE else ""
    return not_found(call, text, root, link)


ROUTES: tuple[Route, ...] = (page_route("getDocs", "/docs/{page...}", site, query=SiteQuery),)
