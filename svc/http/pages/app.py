"""What browsers open without a key: pages, their files, the web SDK, the documentation and the documents of the API.

What may live here: ordinary Quart routes that respond with files (decisions 9.2, 9.3). The service asks this
application for every path that no route of the API has; `svc docs` gives it to a stock server. `make web` and `make
docs` make what it serves; without them the service runs all the same, and says how to make them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

import msgspec
from quart import Blueprint, Response, current_app, request
from quart_trio import QuartTrio
from werkzeug.datastructures import Headers
from werkzeug.exceptions import MethodNotAllowed, NotFound

from svc.http.openapi import collection
from svc.http.openapi import document as openapi
from svc.http.pages.files import MEDIA_TYPES, PAGE, SECURITY_HEADERS, Folder, entity_tag, filled, media_type, notice
from svc.http.query import read_query
from svc.http.responses import NEVER_CACHED
from svc.http.route import BASE, CONSOLE_ROOT, Route
from svc.http.schema import error_body
from svc.http.server import messages
from svc.identify.scoring.signals import CATALOG, EVIDENCE, PHRASES
from svc.kernel.net.origins import normalize_origin
from svc.kernel.values.refusals import Refusal

_BUILT = files("svc").joinpath("web_static")
SDK = Folder(_BUILT.joinpath("sdk"))
PAGES = Folder(_BUILT.joinpath("pages"))
SITE = Folder(files("svc").joinpath("docs_site"))
ASSETS = Folder(
    files("svc.http").joinpath("page"),
    frozenset({"reference.js", "reference.css", "samples.js", "swagger-ui-bundle.js", "swagger-ui.css"}),
)
"""Of the page of the API reference: Swagger UI (docs/adr/0010), beside the page's own once the package is built."""

HOME = "index.html"
UNKNOWN_ADDRESS = "http://address-of-the-service.invalid"
"""Stands in the request collection until the address that a client has reached takes its place."""
FULL_VERSION = re.compile(r"\d{1,4}\.\d{1,4}\.\d{1,4}", re.ASCII)
CURRENT = "v1"
"""Stands for the newest version of the SDK whose interface is version 1."""
SDK_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "X-Content-Type-Options": "nosniff",
}
"""Pages of any origin may load the SDK: it holds no secret, and a module script is fetched with CORS. A page that is
isolated from other origins starts the worker, which a proxy serves from its own, only where its script is, too.
"""

REVALIDATED = "no-cache"
"""`Cache-Control` of a file that a client asks for every time, and fetches once a version."""
OF_ONE = "private, no-cache"
"""`Cache-Control` of a file that depends on how a client reached the service."""
FRESH_FOR_AN_HOUR = "public, max-age=3600"
IMMUTABLE = "public, max-age=31536000, immutable"
"""`Cache-Control` of a file whose address names its version."""

PAGES_NOT_BUILT = (
    "The web pages are not part of this installation. Build them with `make web`, then restart the service."
)
SITE_NOT_BUILT = (
    "The documentation is not part of this installation. Build it with `make docs`, then restart the service."
)
TRY_IS_OFF = "This page is turned off. The operator turns it on with the setting try_key, a public development key."
NO_SITE_PAGE = "The documentation has no such page. Begin at its first page, or search there."
NO_PAGE = "There is no page at this address. Check it, or go on from one of these:"
ELSEWHERE = {"console": "Console", "docs/": "Documentation"}
"""What a page that is not there leads to, from the root of the service on."""
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)

site = Blueprint("site", __name__)
"""Of the service alone."""
documentation = Blueprint("documentation", __name__)
"""Of the service and of `svc docs`."""


class PageResponse(Response):
    """A response that knows its refusal, for the line and the counter of its request."""

    refusal: Refusal | None = None


class SiteQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the site's own links and its search add to a path; the scripts of the page read it."""

    v: str = ""
    """The version of a script or a style."""
    q: str = ""
    highlight: str = ""
    check_keywords: str = ""
    area: str = ""


_QUERIES: dict[str, type[msgspec.Struct]] = {"getDocs": SiteQuery}
"""By operation id. No other route takes a query (decisions 1.6)."""


def create_app(
    *blueprints: Blueprint,
    has_try: bool = False,
    api: Sequence[Route] = (),
    reference: Callable[[Sequence[Route]], openapi.Json] = openapi.emit,
) -> QuartTrio:
    """Return the application with these routes. `has_try` turns `/try` on, `api` is what the documents describe, and
    `reference` makes the one that the page of the reference shows.

    Every response is whole; an exception of a route is raised, for the server to log.
    """
    app = QuartTrio(__name__, static_folder=None)
    app.config |= {"PROVIDE_AUTOMATIC_OPTIONS": False, "PROPAGATE_EXCEPTIONS": True, "HAS_TRY": has_try}
    app.response_class = PageResponse
    app.url_map.merge_slashes = False
    app.before_request(_refused_query)
    app.register_error_handler(NotFound, _no_route)
    app.register_error_handler(MethodNotAllowed, _wrong_method)
    for blueprint in blueprints:
        app.register_blueprint(blueprint)
    if api:
        _add_documents(app, api, reference)
    return app


def loaded_app(*blueprints: Blueprint, **of_app: Any) -> QuartTrio:
    """Return `create_app` with what browsers need of the service read, 1 MB: an upgrade or a cleaned cache takes
    nothing from one that runs.
    """
    for folder in (PAGE, SDK, PAGES, ASSETS):
        folder.load()
    return create_app(*blueprints, **of_app)


class Page(NamedTuple):
    """A whole response of a page, and what its request was."""

    operation_id: str | None
    """`None` where no route has the path."""
    refusal: Refusal | None
    status: int
    headers: dict[str, str]
    body: bytes


Pages = Callable[[messages.Request, str], Awaitable[Page]]
"""Responds to a request with this id."""


_NO_METHOD = "NONE"
"""No route has it. Werkzeug would take `get` for `GET`, and methods are case-sensitive (RFC 9110, 9.1)."""


async def respond(app: QuartTrio, asking: messages.Request, request_id: str) -> Page:
    """Return what the application responds to a request of our own server. The path is compared as it was sent.

    Quart's documented entry for a server that has parsed a request is `handle_request`; no ASGI messages are in
    between. Raises what a route raises.
    """
    headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in asking.headers])
    headers["X-Request-Id"] = request_id
    asked = app.request_class(
        asking.method if asking.method.isupper() else _NO_METHOD,
        asking.scheme,
        asking.path.decode("latin-1"),
        asking.query,
        headers,
        "",
        asking.http_version,
        scope=cast("Any", {"type": "http", "asgi": {"version": "3.0"}}),
        send_push_promise=_never_pushed,
    )
    found = await app.handle_request(asked)
    body = await cast("Response", found).get_data(as_text=False)
    refusal = found.refusal if isinstance(found, PageResponse) else None
    return Page(operation_id(asked.endpoint), refusal, found.status_code, dict(found.headers), body)


async def _never_pushed(_: str, __: Headers) -> None:
    """Do nothing: HTTP/1.1 has no server push."""


def operation_id(endpoint: str | None) -> str | None:
    """Return the name that metrics and logs have for a route of this application; `None` for no route."""
    return endpoint and endpoint.rpartition(".")[2]


def paths(app: QuartTrio) -> Iterator[str]:
    """Yield every path of the application, variable segments in braces."""
    for rule in app.url_map.iter_rules():
        yield re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


async def _file(folder: Folder, name: str, headers: Mapping[str, str], cache_control: str = REVALIDATED) -> Response:
    """Respond with a file of a folder, compressed for clients that accept gzip. Raises `FileNotFoundError`."""
    if request.accept_encodings.quality("gzip") > 0:
        added = {**headers, "Vary": "Accept-Encoding", "Content-Encoding": "gzip"}
        return await _bytes(folder.compressed(name), media_type(name), added, cache_control)
    return await _bytes(folder.read(name), media_type(name), {**headers, "Vary": "Accept-Encoding"}, cache_control)


async def _bytes(
    content: bytes, kind: str, headers: Mapping[str, str] = SECURITY_HEADERS, cache_control: str = REVALIDATED
) -> Response:
    """Respond with bytes and their `ETag`, or with `304` to a client that has them (RFC 9110, 13.1.2)."""
    response = PageResponse(content, headers={**headers, "Cache-Control": cache_control}, content_type=kind)
    response.set_etag(entity_tag(content))
    return await response.make_conditional(request)


@site.get("/", endpoint="getHome")
async def home() -> Response:
    """Return a small page that links to the others."""
    has_try = cast("bool", current_app.config["HAS_TRY"]) and "try.html" in PAGES
    link = '<li><a href="try">Try it</a> <span>See your own browser identified, and why.</span></li>\n'
    return await _bytes(filled("home.html", {"try_link": link if has_try else ""}), MEDIA_TYPES[".html"])


@site.get("/try", endpoint="getTryPage")
async def try_page() -> Response:
    """Return the page on which a browser is identified; `404` with what to do if it is turned off or not built."""
    return await _page("try.html") if current_app.config["HAS_TRY"] else _missing(TRY_IS_OFF)


@site.get("/console", endpoint="getConsolePage")
async def console() -> Response:
    """Return the page of the console. It is public: what it shows is read with a session."""
    return await _page("console.html")


async def _page(name: str) -> Response:
    return await _file(PAGES, name, SECURITY_HEADERS) if name in PAGES else _missing(PAGES_NOT_BUILT)


@site.get("/pages/texts.json", endpoint="getPageTexts")
async def texts() -> Response:
    """Return the texts that the pages show, by name: about signals, evidence, changes, linkage, proofs, certainty and
    reasons.
    """
    return await _bytes(_texts(), MEDIA_TYPES[".json"])


@cache
def _texts() -> bytes:
    signals = {name: {"group": signal.group, "description": signal.description} for name, signal in CATALOG.items()}
    return msgspec.json.encode({"signals": signals, "evidence": EVIDENCE, **msgspec.structs.asdict(PHRASES)})


@documentation.get("/pages/home.css", endpoint="getPageStyle")
async def page_style() -> Response:
    """Return the style sheet of the pages that exist without the web build."""
    return await _file(PAGE, "home.css", SECURITY_HEADERS)


@site.get("/pages/<file>", endpoint="getPageFile")
async def page_file(file: str) -> Response:
    """Return a script or style sheet of the pages."""
    if file.endswith(".html") or file not in PAGES:
        raise NotFound
    return await _file(PAGES, file, SECURITY_HEADERS)


def sdk_version() -> str | None:
    """Return the version of the SDK in the web build, such as `0.1.0`; `None` if there is no build."""
    return SDK.read("version.txt").decode().strip() if "version.txt" in SDK else None


@site.get("/sdk/<version>/<file>", endpoint="getSdk")
async def sdk(version: str, file: str) -> Response:
    """Return a file of the SDK. Browsers revalidate `v1` after an hour; a full version never changes. A full version
    that this service does not have leads to `v1`: pages that name it keep working when the service is upgraded or
    rolled back, since nothing that a page uses breaks within version 1.
    """
    if sdk_version() is None:
        return _missing(PAGES_NOT_BUILT)
    if file not in SDK or not (version == CURRENT or FULL_VERSION.fullmatch(version)):
        raise NotFound
    if version == CURRENT:
        return await _file(SDK, file, SDK_HEADERS, FRESH_FOR_AN_HOUR)
    if version == sdk_version():
        return await _file(SDK, file, SDK_HEADERS, IMMUTABLE)
    headers = {**SDK_HEADERS, "Location": f"../{CURRENT}/{file}", "Cache-Control": "no-cache"}
    return PageResponse(b"", 307, headers)


@documentation.get("/docs/", endpoint="getDocs", defaults={"page": ""})
@documentation.get("/docs/<path:page>", endpoint="getDocs")
async def site_page(page: str) -> Response:
    """Return a page of the documentation site (docs/adr/0054), or a file of one."""
    name = page + HOME if not page or page.endswith("/") else page
    if name in SITE:
        is_versioned = "v" in request.args and name.startswith("_static/")
        return await _file(SITE, name, _site_headers(), IMMUTABLE if is_versioned else REVALIDATED)
    if HOME not in SITE:
        return _missing(SITE_NOT_BUILT)
    return _missing(NO_SITE_PAGE, {"docs/": "Documentation"})


@cache
def _site_headers() -> dict[str, str]:
    """Return the headers of every page, but allow the one script in the theme's pages, by its hash, and the styles of
    diagrams.
    """
    inline = set(_INLINE_SCRIPT.findall(SITE.read(HOME).decode()))
    hashes = sorted(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in inline)
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    for before, after in (
        ("script-src 'self'", " ".join(["script-src 'self'", *(f"'sha256-{one}'" for one in hashes)])),
        ("style-src 'self'", "style-src 'self' 'unsafe-inline'"),
        ("form-action 'none'", "form-action 'self'"),
    ):
        policy = policy.replace(before, after)
    return {**SECURITY_HEADERS, "Content-Security-Policy": policy}


def _add_documents(app: QuartTrio, api: Sequence[Route], reference: Callable[[Sequence[Route]], openapi.Json]) -> None:
    """Add the documents that describe the API, and the page that shows them, each made when it is first requested."""

    @cache
    def document() -> openapi.Json:
        return openapi.emit(api)

    def add(operation: str, path: str, make: Callable[[], openapi.Json], cache_control: str = REVALIDATED) -> None:
        encoded = cache(lambda: openapi.encode(make()))

        async def respond() -> Response:
            return await _bytes(encoded(), openapi.JSON, {}, cache_control)

        app.add_url_rule(path, operation, respond, methods=["GET"])

    def add_page(operation: str, path: str, root: str) -> None:
        async def respond() -> Response:
            return await _bytes(filled("reference.html", {"root": root}), MEDIA_TYPES[".html"])

        app.add_url_rule(path, operation, respond, methods=["GET"])

    add("getOpenApi", f"{BASE}/openapi.json", document)

    @cache
    def requests() -> bytes:
        return openapi.encode(collection.collection(document(), UNKNOWN_ADDRESS))

    async def respond_with_requests() -> Response:
        return await _bytes(requests().replace(UNKNOWN_ADDRESS.encode(), _address().encode()), openapi.JSON, {}, OF_ONE)

    app.add_url_rule(f"{BASE}/collection.json", "getCollection", respond_with_requests, methods=["GET"])
    add(
        "getConsoleOpenApi", f"{CONSOLE_ROOT}/openapi.json", lambda: openapi.emit(api, openapi.OF_CONSOLE), NEVER_CACHED
    )
    add("getReferenceDocument", "/docs/api/reference.json", lambda: reference(api))
    add_page("getPage", "/docs", "")
    add_page("getReference", "/docs/api", "../")

    async def asset(asset: str) -> Response:
        if asset not in ASSETS:
            raise NotFound
        return await _file(ASSETS, asset, SECURITY_HEADERS)

    app.add_url_rule("/docs/api/<asset>", "getAsset", asset, methods=["GET"])


def _address() -> str:
    """Return the address at which the request reached the service, by what it says of itself: a caller that forges it
    misleads nobody else, since no shared cache keeps the response.
    """
    is_https = request.scheme == "https" or request.headers.get("X-Forwarded-Proto", "").strip().lower() == "https"
    found = normalize_origin(f"{'https' if is_https else 'http'}://{request.headers.get('Host', '')}")
    return found or collection.BASE_URL


async def _refused_query() -> Response | None:
    """Respond `422` to a query that the route does not take (decisions 1.6)."""
    if request.url_rule is None:
        return None
    found = read_query(request.query_string, _QUERIES.get(operation_id(request.endpoint) or ""))
    return _refused(found) if isinstance(found, Refusal) else None


async def _no_route(_: NotFound) -> Response:
    return _missing()


async def _wrong_method(error: MethodNotAllowed) -> Response:
    response = _refused(Refusal("method_not_allowed"))
    response.headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
    return response


def _missing(explanation: str = "", links: Mapping[str, str] = ELSEWHERE) -> Response:
    """Respond `404`: with a page for people, with an error for programs, and below the base of the API for all
    (interface 7).

    Some libraries accept HTML too, so a request with a key counts as that of a program.
    """
    refusal = Refusal("not_found", explanation=explanation)
    is_for_people = "text/html" in request.headers.get("Accept", "") and "X-Api-Key" not in request.headers
    if not is_for_people or request.path.startswith(f"{BASE}/"):
        return _refused(refusal)
    root = "../" * (unquote(request.path).count("/") - 1)
    items = "".join(f'<li><a href="{root}{to}">{name}</a></li>' for to, name in links.items())
    content = notice(explanation or NO_PAGE, root, items)
    response = PageResponse(content, 404, dict(SECURITY_HEADERS), content_type=MEDIA_TYPES[".html"])
    response.refusal = refusal
    return response


def _refused(refusal: Refusal) -> PageResponse:
    """Respond with the error body of the API, with the id that the server gave the request."""
    body = error_body(refusal, request.headers.get("X-Request-Id", ""))
    response = PageResponse(msgspec.json.encode(body), refusal.status, content_type=MEDIA_TYPES[".json"])
    response.refusal = refusal
    return response
