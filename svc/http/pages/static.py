"""Files that are served as they stand: their headers, their `ETag`, and compressed for clients that take them so.

What may live here: how a file goes onto the wire. Which files there are is said by the modules with their routes.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from string import Template
from types import MappingProxyType

from svc.domain.refusals import Refusal
from svc.http.route import Call, File, Outcome

SECURITY_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
)
"""Of every page: nothing inline, nothing evaluated, nothing from or to another host. Icons may be `data:` images."""

REVALIDATED = "no-cache"
"""`Cache-Control` of a file that a client asks for every time, and fetches once a version."""
IMMUTABLE = "public, max-age=31536000, immutable"
"""`Cache-Control` of a file whose address names its version."""

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ts": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
"""By the end of a file's name."""


def media_type(name: str) -> str:
    """The media type of a file, by the end of its name; that of plain text for any other ending."""
    return MEDIA_TYPES.get(PurePosixPath(name).suffix, MEDIA_TYPES[".txt"])


class Folder:
    """Files of the package that may be served, each read once, by their path in the folder. One kept as `NAME.gz` is
    served as `NAME`.
    """

    def __init__(self, place: Traversable, names: frozenset[str] | None = None) -> None:
        """`names` are the files that may be served; all of the folder where it is `None`."""
        self._place = place
        self._names = names
        self._found = cache(self._files)
        self._plain = cache(self._read)
        self._gzipped = cache(self._compress)

    def __contains__(self, name: str) -> bool:
        allowed = self._found() if self._names is None else self._names
        return name in allowed

    def read(self, name: str) -> bytes:
        """The bytes of a file, decompressed. Raises `FileNotFoundError`."""
        return self._plain(name)

    def served(self, name: str, call: Call, headers: Mapping[str, str], *, cache_control: str = REVALIDATED) -> Outcome:
        """A file as a response, with `ETag` and the type of its name, compressed for clients that accept gzip. Raises
        `FileNotFoundError`.
        """
        content = self._plain(name)
        added = {**headers, "Vary": "Accept-Encoding"}
        if takes_gzip(call.headers.get("accept-encoding", "")):
            content = self._gzipped(name)
            added["Content-Encoding"] = "gzip"
        return unless_known(File(content, media_type(name)), call, added, cache_control=cache_control)

    def _files(self) -> frozenset[str]:
        return frozenset(name.removesuffix(".gz") for name in _below(self._place))

    def _read(self, name: str) -> bytes:
        compressed = self._place.joinpath(f"{name}.gz")
        if compressed.is_file():
            return gzip.decompress(compressed.read_bytes())
        return self._place.joinpath(name).read_bytes()

    def _compress(self, name: str) -> bytes:
        compressed = self._place.joinpath(f"{name}.gz")
        return compressed.read_bytes() if compressed.is_file() else gzip.compress(self._plain(name), mtime=0)


def _below(folder: Traversable) -> Iterator[str]:
    """Paths of the files in a folder and in those below it; none where there is no folder."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.is_file():
            yield entry.name
        else:
            yield from (f"{entry.name}/{name}" for name in _below(entry))


PAGE = Folder(files("svc.http").joinpath("page"))
"""What the pages have that are there without any build."""


def filled(name: str, values: dict[str, str]) -> bytes:
    """A page of `PAGE` with its `$name` places filled."""
    return Template(PAGE.read(name).decode()).substitute(values).encode()


NO_PAGE = "There is no page at this address. Check it, or go on from one of these:"


def not_found(call: Call, explanation: str, root: str = "", links: str = "") -> Outcome:
    """`404` as a page for people, and as an error like every other for programs. `root` is the way from the page to the
    root of the service, `links` are list items (HTML).
    """
    if not is_for_people(call.headers):
        return Outcome(Refusal("not_found", explanation=explanation))
    return _notice(explanation, root, links)


def nothing_at(path: str) -> Outcome:
    """`404` as a page for people: nothing is served at this path, or not to everybody."""
    root = "../" * (path.count("/") - 1)
    others = {"console": "Console", "docs/": "Documentation"}
    return _notice(NO_PAGE, root, "".join(f'<li><a href="{root}{at}">{name}</a></li>' for at, name in others.items()))


def is_for_people(headers: Mapping[str, str]) -> bool:
    """Whether a browser shows the response. Some libraries accept HTML, too; with a key it is a program that asks."""
    return "text/html" in headers.get("accept", "") and "x-api-key" not in headers


def _notice(explanation: str, root: str, links: str) -> Outcome:
    page = filled("notice.html", {"text": escape(explanation), "root": root, "links": links})
    return Outcome(File(page, MEDIA_TYPES[".html"]), status=404, headers=dict(SECURITY_HEADERS))


def unless_known(file: File, call: Call, headers: Mapping[str, str], *, cache_control: str = REVALIDATED) -> Outcome:
    """The file, or `304` where `If-None-Match` has its `ETag` (RFC 9110, 13.1.2)."""
    tag = entity_tag(file.content)
    added = {**headers, "ETag": tag, "Cache-Control": cache_control}
    known = call.headers.get("if-none-match", "")
    if tag in (candidate.strip() for candidate in known.split(",")):
        return Outcome(None, status=304, headers=added)
    return Outcome(file, headers=added)


def takes_gzip(accepted: str) -> bool:
    """Whether an `Accept-Encoding` accepts gzip (RFC 9110, 12.5.3); `gzip;q=0` does not."""
    for choice in accepted.lower().split(","):
        name, _, weight = choice.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


@cache
def entity_tag(content: bytes) -> str:
    """The strong `ETag` of these bytes, in quotes (RFC 9110, 8.8.3)."""
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
