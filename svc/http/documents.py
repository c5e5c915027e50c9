"""The documents that the service publishes of itself, and the page that shows them (decisions 9.2).

What may live here: endpoint functions that answer with files. The page is Swagger UI (docs/adr/0010), whose files are
laid beside the page's own when the package is built; nothing comes from another host.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from svc.domain.refusals import Refusal
from svc.http import collection, openapi
from svc.http.endpoint import Call, Endpoint, File, Outcome, Services
from svc.http.json_schema import Json
from svc.http.route import Route

_FOLDER = files("svc.http").joinpath("page")

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Nothing inline, nothing evaluated, nothing from or to another host. Swagger UI's icons are `data:` images."""


class Asset(NamedTuple):
    """One file of the page."""

    file: str
    """In the folder of the page; `.gz` = kept compressed."""
    media_type: str


PAGE = Asset("index.html", "text/html; charset=utf-8")
ASSETS: dict[str, Asset] = {
    "reference.js": Asset("reference.js", "text/javascript; charset=utf-8"),
    "reference.css": Asset("reference.css", "text/css; charset=utf-8"),
    "swagger-ui-bundle.js": Asset("swagger-ui-bundle.js.gz", "text/javascript; charset=utf-8"),
    "swagger-ui.css": Asset("swagger-ui.css.gz", "text/css; charset=utf-8"),
}
"""By the last segment of their path. A file that is not here is not served."""


def routes(described: Sequence[Route]) -> tuple[Route, ...]:
    """The rows of the page and of the documents of these routes; each is made once, when it is first asked for."""

    @cache
    def document() -> Json:
        return openapi.emit(described)

    of_openapi = _fixed(lambda: File(openapi.encode(document()), openapi.JSON))
    of_collection = _fixed(lambda: File(openapi.encode(collection.collection(document())), openapi.JSON))
    return (
        Route(operation_id="getOpenApi", method="GET", path="/openapi.json", endpoint=of_openapi, answer=None),
        Route(operation_id="getCollection", method="GET", path="/collection.json", endpoint=of_collection, answer=None),
        Route(operation_id="getPage", method="GET", path="/docs", under=("",), endpoint=page, answer=None),
        Route(operation_id="getAsset", method="GET", path="/docs/{asset}", under=("",), endpoint=asset, answer=None),
    )


async def page(_: Services, call: Call) -> Outcome:
    """`GET /docs`: the reference, with a panel to try it."""
    return _served(PAGE, call)


async def asset(_: Services, call: Call) -> Outcome:
    """`GET /docs/{asset}`: what the page is made of."""
    known = ASSETS.get(call.path["asset"])
    return Outcome(Refusal("not_found")) if known is None else _served(known, call)


def _fixed(make: Callable[[], File]) -> Endpoint:
    made = cache(make)

    async def answer(_: Services, call: Call) -> Outcome:
        file = made()
        return _unless_known(file, _tag(file.content), call, {})

    return answer


def _served(asset: Asset, call: Call) -> Outcome:
    """Compressed files as they are to whom takes them so, which is every browser."""
    content = _read(asset.file)
    headers = {**SECURITY_HEADERS}
    if asset.file.endswith(".gz"):
        headers["Vary"] = "Accept-Encoding"
        if takes_gzip(call.headers.get("accept-encoding", "")):
            headers["Content-Encoding"] = "gzip"
        else:
            content = _unpacked(asset.file)
    return _unless_known(File(content, asset.media_type), _tag(content), call, headers)


def _unless_known(file: File, tag: str, call: Call, headers: dict[str, str]) -> Outcome:
    """`304` where the client has it already (RFC 9110, 13.1.2): it asks every time, and fetches once a version."""
    headers |= {"ETag": tag, "Cache-Control": "no-cache"}
    known = call.headers.get("if-none-match", "")
    if tag in (candidate.strip() for candidate in known.split(",")):
        return Outcome(None, status=304, headers=headers)
    return Outcome(file, headers=headers)


def takes_gzip(accepted: str) -> bool:
    """Of an `Accept-Encoding` (RFC 9110, 12.5.3); `gzip;q=0` refuses it."""
    for choice in accepted.lower().split(","):
        name, _, weight = choice.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


@cache
def _read(name: str) -> bytes:
    return _FOLDER.joinpath(name).read_bytes()


@cache
def _unpacked(name: str) -> bytes:
    return gzip.decompress(_read(name))


@cache
def _tag(content: bytes) -> str:
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
