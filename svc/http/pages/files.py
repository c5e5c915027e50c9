"""Files of the package as browsers get them: which there are, their types, and compressed.

What may live here: bytes and headers, no requests. Which file has which address is said by `app.py`.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from string import Template
from types import MappingProxyType

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
"""By the end of a file's name. Tables of the machine are not asked: they differ from machine to machine."""


def media_type(name: str) -> str:
    """Return the media type of a file, by the end of its name; that of plain text for any other ending."""
    return MEDIA_TYPES.get(PurePosixPath(name).suffix, MEDIA_TYPES[".txt"])


class Folder:
    """Files of the package that may be served, each read once, by their path in the folder. One kept as `NAME.gz` is
    served as `NAME`.
    """

    def __init__(self, root: Traversable, names: frozenset[str] | None = None) -> None:
        """Offer the files in `names`, or all of the folder if it is `None`."""
        self._root = root
        self._names = names
        self.read = cache(self._read)
        """Name -> bytes, decompressed. Raises `FileNotFoundError`."""
        self.compressed = cache(self._compress)
        """Name -> bytes, compressed with gzip. Raises `FileNotFoundError`."""

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the names of all files that may be served."""
        if self._names is not None:
            return self._names
        return frozenset(name.removesuffix(".gz") for name in _below(self._root))

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def load(self) -> None:
        """Read every file, so that they are served as they are now although another version is installed, or the
        folder is removed, while the service runs.
        """
        for name in self.names:
            with suppress(FileNotFoundError):  # what only a built package has
                self._stored(name)

    @cache  # noqa: B019  the folders live as long as the program
    def _stored(self, name: str) -> tuple[bytes, bool]:
        """Return the bytes of a file and whether they are compressed. Raises `FileNotFoundError`."""
        compressed = self._root.joinpath(f"{name}.gz")
        if compressed.is_file():
            return compressed.read_bytes(), True
        return self._root.joinpath(name).read_bytes(), False

    def _read(self, name: str) -> bytes:
        content, is_compressed = self._stored(name)
        return gzip.decompress(content) if is_compressed else content

    def _compress(self, name: str) -> bytes:
        content, is_compressed = self._stored(name)
        return content if is_compressed else gzip.compress(content, mtime=0)


def _below(folder: Traversable) -> Iterator[str]:
    """Yield the paths of the files in a folder and below it; none if there is no folder."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.is_file():
            yield entry.name
        else:
            yield from (f"{entry.name}/{name}" for name in _below(entry))


PAGE = Folder(files("svc.http").joinpath("page"))
"""What the pages have that are there without any build."""


def filled(name: str, values: dict[str, str]) -> bytes:
    """Return a page of `PAGE` with its `$name` variables filled."""
    return Template(PAGE.read(name).decode()).substitute(values).encode()


def notice(explanation: str, root: str, links: str = "") -> bytes:
    """Return a small page that explains why nothing is at an address. `root` is the way from the page to the root of
    the service, `links` are list items (HTML).
    """
    return filled("notice.html", {"text": escape(explanation), "root": root, "links": links})


@cache
def entity_tag(content: bytes) -> str:
    """Return the strong `ETag` of these bytes, without quotes: equal on every node that serves equal bytes."""
    return hashlib.blake2b(content, digest_size=12).hexdigest()
