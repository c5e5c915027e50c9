"""Keeping the files of the folder fresh: fetched, checked against what is there, and replaced only by what reads well.

What may live here: the steps from a source to its file, what is reported of each, and the request: one GET over TLS,
bounded in size and time. It is sent because an operator runs `svc data update`; nothing that serves visitors imports
this module. A file that cannot be fetched, does not read, or has shrunk changes nothing: the one before stays in use.
"""

from __future__ import annotations

import hashlib
import os
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import trio

import svc
from svc.identify.network_data import NetworkFileError
from svc.identify.network_data import folder as reading
from svc.identify.network_data.folder import (
    CHECKSUMS_FILE,
    MAX_CHECKSUMS_BYTES,
    ListFile,
    credits_of,
    kept_files,
    put,
    read_checksums,
)
from svc.identify.network_data.lists import Database
from svc.identify.network_data.sources import BY_NAME, SOURCES, Source
from svc.kernel.values.errors import OperatorError, cause

LIMIT_S = 300.0
"""Time for one file: connections, redirects and all of its bytes."""
IDLE_LIMIT_S = 30.0
"""Time without a byte."""
MAX_REDIRECTS = 5

_REDIRECTS = (301, 302, 303, 307, 308)
_GONE = (404, 410)
_FAILURES = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.ProxyError,
)


class FetchError(OperatorError):
    """The file could not be fetched; the message names the URL and why."""

    def __init__(self, url: str, why: str, *, gone: bool = False) -> None:
        super().__init__(f"{url}: {why}")
        self.gone = gone
        """The server says that there is no such file."""


class Fetched(NamedTuple):
    """A file as a server has it."""

    content: bytes
    modified: datetime | None
    """By its `Last-Modified`."""


def check_url(url: str) -> str:
    """Return the URL, if it may be fetched from. Raises `FetchError`."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # reading it raises `ValueError` if it is wrong
    except ValueError as error:
        raise FetchError(url, f"is not a URL: {error}") from error
    if not url.isascii():
        raise FetchError(url, "is not a URL: it has characters that are not ASCII")
    if parts.scheme != "https" or not parts.hostname:
        raise FetchError(url, "is not an https:// URL; this data decides who is flagged, so it must come over TLS")
    if parts.username is not None or parts.password is not None:
        raise FetchError(f"https://{parts.hostname}", "leave user name and password out of the URL")
    return url


def fetch(url: str, tls: ssl.SSLContext, most_bytes: int, limit_s: float = LIMIT_S) -> Fetched:
    """Return the file at an https URL, of at most `most_bytes` bytes. Redirects are followed to https only, and the
    proxy of the variable HTTPS_PROXY is used. Raises `FetchError`.
    """
    try:
        return trio.run(_within, url, tls, most_bytes, limit_s)
    except trio.TooSlowError as error:
        raise FetchError(url, f"not fetched within {limit_s:g} s") from error
    except _FAILURES as error:
        raise FetchError(url, f"cannot be fetched: {_cause(error)}") from error


async def _within(url: str, tls: ssl.SSLContext, most_bytes: int, limit_s: float) -> Fetched:
    with trio.fail_after(limit_s):
        asked = url
        for _ in range(MAX_REDIRECTS + 1):
            found = await _get(asked, tls, most_bytes)
            if isinstance(found, Fetched):
                return found
            asked = check_url(urljoin(asked, found))
    raise FetchError(url, f"redirects more than {MAX_REDIRECTS} times")


async def _get(url: str, tls: ssl.SSLContext, most_bytes: int) -> Fetched | str:
    """Return the file, or the URL to which the response redirects."""
    headers = [("User-Agent", f"svc/{svc.__version__}"), ("Accept-Encoding", "identity")]
    limits = dict.fromkeys(("connect", "read", "write", "pool"), IDLE_LIMIT_S)
    async with (
        _pool(check_url(url), tls) as pool,
        pool.stream("GET", url, headers=headers, extensions={"timeout": limits}) as response,
    ):
        fields = {name.lower(): value.decode("latin-1") for name, value in response.headers}
        if response.status in _REDIRECTS and b"location" in fields:
            return fields[b"location"]
        if response.status != 200:
            raise FetchError(url, f"the server said {response.status}", gone=response.status in _GONE)
        if fields.get(b"content-encoding", "identity") != "identity":
            raise FetchError(url, "the server compressed what was asked for uncompressed")
        content = await bounded_content(response, most_bytes)
        if content is None:
            raise FetchError(url, f"is larger than {most_bytes:,} bytes")
        return Fetched(content, _last_modified(fields.get(b"last-modified")))


async def bounded_content(response: httpcore.Response, most_bytes: int) -> bytes | None:
    """Return the content of a response; `None` if it has more than `most_bytes`."""
    content = bytearray()
    with trio.CancelScope() as reading:  # leaving the loop would leave the generators of httpcore unfinished
        async for block in response.aiter_stream():
            content += block
            if len(content) > most_bytes:
                reading.cancel()
    return bytes(content) if len(content) <= most_bytes else None


def _pool(url: str, tls: ssl.SSLContext) -> httpcore.AsyncConnectionPool:
    proxy = getproxies().get("https")
    if proxy is None or proxy_bypass(urlsplit(url).hostname or ""):
        return httpcore.AsyncConnectionPool(ssl_context=tls)
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        raise FetchError(url, "HTTPS_PROXY names no http:// or https:// proxy")
    return httpcore.AsyncHTTPProxy(proxy_url=proxy, ssl_context=tls)


def _cause(error: BaseException) -> str:
    """Return the text of the deepest error that has one: httpcore's own are often empty."""
    said = type(error).__name__
    found: BaseException | None = error
    while found is not None:
        said = (found.message if isinstance(found, BaseExceptionGroup) else str(found)) or said
        found = found.__cause__ or found.__context__
    return said


def _last_modified(header: str | None) -> datetime | None:
    if header is None:
        return None
    try:
        found = parsedate_to_datetime(header)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


Get = Callable[[str, int], Fetched]
"""(URL, most bytes) -> the file. Raises `FetchError`."""


class UpdateError(OperatorError):
    """A source of which nothing can be used; the message says why and what to do."""


class Delivered(NamedTuple):
    """What an origin has of a source, as a file of the folder."""

    content: bytes
    written: datetime | None
    """When it was made, where the origin says so."""
    missing: tuple[str, ...] = ()
    """URLs of parts that are no longer published; the rest was joined."""


class Origin(Protocol):
    """Where files are fetched from: their publishers, or a mirror."""

    def has(self, source: Source) -> bool:
        """Return whether the source can be asked for there."""
        ...

    def deliver(self, source: Source) -> Delivered:
        """Return the file. Raises `UpdateError`, `FetchError`, `NetworkFileError` or `ValueError`."""
        ...


class UpdateOutcome(NamedTuple):
    """The result of updating one source."""

    source: Source
    result: Literal["installed", "updated", "unchanged", "older", "failed"]
    problem: str | None = None
    """Set where it failed, and where a part of it is no longer published."""
    before: reading.NetworkFile | None = None
    after: reading.NetworkFile | None = None


class Publishers:
    """Each source at its own URLs."""

    def __init__(self, get: Get) -> None:
        self._get = get

    def has(self, source: Source) -> bool:
        """Return `True`: every publisher is asked."""
        return bool(source.urls)

    def deliver(self, source: Source) -> Delivered:
        """Return all parts, joined. A part that is no longer published is left out, and named."""
        parts: list[Fetched] = []
        missing: list[FetchError] = []
        for url in source.urls:
            try:
                parts.append(self._get(url, source.most_bytes))
            except FetchError as error:
                if not error.gone or len(source.urls) == 1:
                    raise
                missing.append(error)
        if not parts:
            raise missing[0]
        if source.checksum_url is not None:
            published = self._get(source.checksum_url, MAX_CHECKSUMS_BYTES).content.decode("ascii", "replace").split()
            _check_sum(parts[0].content, published[0] if published else "", source.checksum_url)
        moments = [part.modified for part in parts]
        known = [moment for moment in moments if moment is not None]
        return Delivered(
            source.convert(source, [part.content for part in parts]),
            max(known) if len(known) == len(moments) else None,
            tuple(str(error) for error in missing),
        )


class Mirror:
    """A folder that another `svc data update` keeps, or a copy of it: files beside their SHA256SUMS."""

    def __init__(self, where: str, get: Callable[[str, int], Fetched]) -> None:
        """Read the checksums with `get`, which takes names of files. Raises `UpdateError` if they cannot be read."""
        self._where = where
        self._get = get
        try:
            self._checksums: Mapping[str, str] = read_checksums(get(CHECKSUMS_FILE, MAX_CHECKSUMS_BYTES).content)
        except (UpdateError, FetchError, OSError, ValueError) as error:
            raise UpdateError(
                f"{where} is not a mirror: {error}; it needs the file {CHECKSUMS_FILE}, which `svc data update` writes "
                "into the folder that it keeps"
            ) from error

    def has(self, source: Source) -> bool:
        """Return whether its SHA256SUMS names the file."""
        return source.file in self._checksums

    def deliver(self, source: Source) -> Delivered:
        """Return the file. Raises `UpdateError` for another SHA-256 than in SHA256SUMS, `FetchError`, `OSError`."""
        expected = self._checksums.get(source.file)
        if expected is None:
            raise UpdateError(f"{self._where} has no {source.file} in its {CHECKSUMS_FILE}")
        found = self._get(source.file, source.most_bytes)
        _check_sum(found.content, expected, f"{CHECKSUMS_FILE} of {self._where}")
        return Delivered(found.content, found.modified)


def origin_of(mirror: str | None, tls: Callable[[], ssl.SSLContext]) -> Origin:
    """Return the publishers for `None`, else the mirror at an https URL or in a folder. `tls` is asked for where
    something is fetched. Raises `UpdateError` or `FetchError`.
    """
    if mirror is None:
        context = tls()
        return Publishers(lambda url, most: fetch(url, context, most))
    if "://" not in mirror:
        return Mirror(mirror, partial(_from_folder, Path(mirror)))
    base, context = check_url(mirror.rstrip("/")), tls()
    return Mirror(mirror, lambda file, most: fetch(f"{base}/{file}", context, most))


def wanted(folder: Path, asked: Sequence[str], origin: Origin) -> list[Source]:
    """Return the sources to update: those asked for (the recommended ones where none is), and those whose files a
    command put into the folder and are still there. Of the recommended ones a mirror need not have all. Raises
    `UpdateError` for a name that is none.
    """
    unknown = [name for name in asked if name not in BY_NAME]
    if unknown:
        raise UpdateError(f"network_sources: there is no source {unknown[0]!r}; `svc data sources` shows their names")
    kept = kept_files(folder)

    def is_wanted(source: Source) -> bool:
        if source.name in asked or (source.file in kept and (folder / source.file).exists()):
            return True
        return not asked and source.recommended and origin.has(source)

    return [source for source in SOURCES if is_wanted(source)]


def update(folder: Path, sources: Iterable[Source], origin: Origin, now: datetime) -> Iterator[UpdateOutcome]:
    """Update one source after another; hold the folder meanwhile (`folder.locked_folder`)."""
    for source in sources:
        try:
            yield _updated(folder, source, origin, now)
        except (UpdateError, FetchError) as error:
            yield UpdateOutcome(source, "failed", str(error))
        except NetworkFileError as error:
            line = "" if error.line is None else f"line {error.line} "
            yield UpdateOutcome(source, "failed", f"what was fetched is not used: {line}{error}")
        except ValueError as error:
            yield UpdateOutcome(source, "failed", f"what was fetched is not as expected: it {error}")
        except OSError as error:
            yield UpdateOutcome(source, "failed", f"cannot be read or written: {cause(error)}")


def _updated(folder: Path, source: Source, origin: Origin, now: datetime) -> UpdateOutcome:
    path = folder / source.file
    if path.exists() and source.file not in kept_files(folder):
        raise UpdateError(f"{path} was not put there by `svc`, and is not replaced; give it another name, or remove it")
    delivered = origin.deliver(source)
    problem = f"no longer published: {'; '.join(delivered.missing)}" if delivered.missing else None
    written = min(delivered.written or now, now)
    after = reading.read_source(source.file, delivered.content, written.astimezone(UTC).date())
    _check(source, after)
    held = path.read_bytes() if path.exists() else None
    before = None if held is None else _before(source, held, path)
    if held == delivered.content:
        if (source.slow or delivered.written is not None) and written.timestamp() > path.stat().st_mtime:
            os.utime(path, (written.timestamp(), written.timestamp()))
            return UpdateOutcome(source, "unchanged", problem, before, after)
        return UpdateOutcome(source, "unchanged", problem, before, before)
    if before is not None:
        if after.built_at < before.built_at:
            return UpdateOutcome(source, "older", problem, before, before)
        if credits_of(folder).get(source.file, source.credit) == source.credit:  # else it came from another source
            _check_growth(path, before.entries, after.entries)
    put(folder, source.file, delivered.content, source.credit, written)
    return UpdateOutcome(source, "installed" if held is None else "updated", problem, before, after)


def _check(source: Source, after: reading.NetworkFile) -> None:
    """Raise `UpdateError` if a file that can be read is of another kind or size than its source."""
    if isinstance(after, Database) and source.name not in after.kind:
        raise UpdateError(f"what was fetched is a database of the kind {after.kind}, not {source.name}")
    if after.entries < source.at_least:
        raise UpdateError(
            f"what was fetched has {after.entries:,} entries; fewer than {source.at_least:,} are not used"
        )
    if isinstance(after, ListFile) and after.addresses.addresses4 > source.most_addresses:
        raise UpdateError(
            f"what was fetched covers {after.addresses.addresses4:,} addresses; more than {source.most_addresses:,} "
            "are not used"
        )


def _check_growth(path: Path, before: int, after: int) -> None:
    """Raise `UpdateError` if a file has become less than half, or more than ten times, as large."""
    if 2 * after < before or after > 10 * before:
        raise UpdateError(
            f"what was fetched has {after:,} entries, and {path} has {before:,}: the source may be broken; if it is "
            "right, remove the file and update again"
        )


def _check_sum(content: bytes, expected: str, by: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != expected.lower():
        raise UpdateError(f"its SHA-256 is {found}, and not {expected[:64]!r} as {by} says; try again later")


def _before(source: Source, held: bytes, path: Path) -> reading.NetworkFile | None:
    """Read the file that is to be replaced; `None` if it cannot be read: any other is better."""
    try:
        return reading.read_source(source.file, held, datetime.fromtimestamp(path.stat().st_mtime, UTC).date())
    except NetworkFileError:
        return None


def _from_folder(folder: Path, file: str, most_bytes: int) -> Fetched:
    path = folder / file
    with path.open("rb") as opened:
        content = opened.read(most_bytes + 1)
        modified = os.fstat(opened.fileno()).st_mtime
    if len(content) > most_bytes:
        raise UpdateError(f"{path} is larger than {most_bytes:,} bytes")
    return Fetched(content, datetime.fromtimestamp(modified, UTC))
