"""The folder of network files: what each file is by its name, what is in use of it, and how a file is replaced.

What may live here: reading the folder repeatedly, each time into a new immutable `FilesInUse`. A file is read only
when it has changed, at once and whole; one that cannot be used leaves what was read of it before in force.

    *.mmdb                     MaxMind's format: country, city or network (ASN)
    tor*.txt vpn*.txt ...      lists of addresses and networks
    asn-hosting*.txt ...       lists of networks by AS number
    crawler-NAME.txt           the addresses that an operator publishes for its crawler
    *.md, LICENSE*, README*, CREDITS*, SHA256SUMS and names that begin with a dot are left alone
"""

from __future__ import annotations

import hashlib
import os
import re
from array import array
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from svc.identify.network.facts import Range
from svc.identify.network_data import NetworkFileError
from svc.identify.network_data.lists import MAX_BYTES, AddressSet, Database, read_as_numbers, read_list, read_servers
from svc.kernel.store.files.durable_files import Lock
from svc.kernel.values.errors import OperatorError, cause, explained
from svc.kernel.values.text_files import decode_text

LIST_KINDS = {
    "tor": "tor",
    "vpn": "vpn",
    "relay": "relay",
    "proxy": "proxy",
    "residential-proxy": "residential_proxy",
    "hosting": "hosting",
    "attack": "attack",
    "spam": "spam",
}
"""How a list's name begins -> kind of its ranges."""
AS_LIST_KINDS = {"asn-hosting": "hosting", "asn-vpn": "vpn"}
"""How the name of a list of AS numbers begins -> kind of these networks."""
CRAWLER_PREFIX = "crawler-"

MAX_FILES = 256
"""Files in the folder, at most: each list is searched at each look-up."""


class Signature(NamedTuple):
    """Identity, size and modification time of a file: another signature means that it was changed."""

    inode: int
    size: int
    modified_ns: int


class ListFile(NamedTuple):
    """An address list that is in use, and what it says about its addresses."""

    name: str
    kind: str
    found: Range
    """What it says of each of its addresses."""
    addresses: AddressSet
    built_at: date
    """When the file was last written."""
    servers: array[int] | None = None
    """The IPv4 addresses that it names one by one, as numbers; only of lists of VPN servers."""

    @property
    def entries(self) -> int:
        """Disjoint ranges of addresses, which may be fewer than the lines of the file."""
        return len(self.addresses)


class AsList(NamedTuple):
    """A list of AS numbers that is in use, and what it says about the addresses of their networks."""

    name: str
    kind: str
    """`asn-hosting` or `asn-vpn`."""
    says: str
    """`hosting` or `vpn`."""
    numbers: frozenset[int]
    built_at: date
    """When the file was last written."""

    @property
    def entries(self) -> int:
        """AS numbers, which are distinct."""
        return len(self.numbers)


NetworkFile = ListFile | AsList | Database


class Problem(NamedTuple):
    """Why a file, in its present state, is not used. `line`: counted from 1, `None` if it concerns the whole file."""

    line: int | None
    says: str


class Entry(NamedTuple):
    """One file of the folder, and what of it is in use."""

    signature: Signature
    source: NetworkFile | None
    """In use; read from an earlier state of the file where there is a problem. `None` = nothing of it is in use."""
    problem: Problem | None = None


FilesInUse = Mapping[str, Entry]
"""Name of the file -> what is in use of it. Compare with `is`: an unchanged folder gives the same object again."""

NOTHING: FilesInUse = MappingProxyType({})


def read_folder(directory: Path, before: FilesInUse = NOTHING) -> FilesInUse:
    """Return the folder as it is now; only files that changed since `before` are read, and without a change `before`
    itself is returned. A missing folder is empty. Raises `OSError` if it cannot be listed.
    """
    try:
        with os.scandir(directory) as found:
            signatures = signatures_of(found)
    except FileNotFoundError:
        signatures = dict[str, Signature]()
    if {name: entry.signature for name, entry in before.items()} == signatures:
        return before
    after = dict[str, Entry]()
    for index, (name, signature) in enumerate(sorted(signatures.items())):
        known = before.get(name)
        if known is not None and known.signature == signature:
            after[name] = known
        elif index >= MAX_FILES:
            after[name] = Entry(signature, None, Problem(None, f"is one of more than {MAX_FILES} files; join some"))
        else:
            after[name] = _read(directory / name, signature, known)
    return MappingProxyType(after)


def signatures_of(found: Iterable[os.DirEntry[str]]) -> dict[str, Signature]:
    """Return the signature by name of each file that says something of networks; without those that are gone by now,
    such as one that was renamed meanwhile. Raises `OSError`.
    """
    signatures = dict[str, Signature]()
    for item in found:
        with suppress(FileNotFoundError):
            if _is_ours(item):
                signatures[item.name] = _signature(item.stat())
    return signatures


def _read(path: Path, signature: Signature, known: Entry | None) -> Entry:
    try:
        written = datetime.fromtimestamp(signature.modified_ns / 1e9, UTC).date()
        return Entry(signature, read_source(path.name, _content(path), written))
    except NetworkFileError as error:
        problem = Problem(error.line, str(error))
    except OSError as error:
        problem = Problem(None, f"cannot be read: {cause(error)}")
    return Entry(signature, None if known is None else known.source, problem)


def _content(path: Path) -> bytes:
    """Read the whole file. Raises `NetworkFileError` if it was changed meanwhile."""
    with path.open("rb") as file:
        before = _signature(os.fstat(file.fileno()))
        if before.size > MAX_BYTES:
            raise NetworkFileError(f"is larger than {MAX_BYTES >> 30} GiB")
        content = file.read()
        if _signature(os.fstat(file.fileno())) != before:
            raise NetworkFileError(
                "was changed while it was read, and is read again; write files elsewhere and move them here"
            )
    return content


def read_source(name: str, content: bytes, written: date) -> NetworkFile:
    """Return what a file of this name is, read whole. `written`: when, for lists. Raises `NetworkFileError`."""
    lower = name.lower()
    if lower.endswith(".mmdb"):
        return Database(content, name)
    if lower.endswith((".txt", ".csv")):
        for prefix, says in AS_LIST_KINDS.items():
            if lower.startswith(prefix):
                return AsList(name, prefix, says, read_as_numbers(content), written)
    if lower.endswith(".txt"):
        if lower.startswith(CRAWLER_PREFIX):
            operator = name[len(CRAWLER_PREFIX) : -len(".txt")].replace("_", " ")
            return ListFile(name, "crawler", Range("bot", operator, name), read_list(content), written)
        for prefix, kind in LIST_KINDS.items():
            if lower.startswith(prefix):
                addresses, servers = read_servers(content) if kind == "vpn" else (read_list(content), None)
                return ListFile(name, kind, Range(kind, "", name), addresses, written, servers)
    starts = ", ".join(f"{prefix}*.txt" for prefix in (*LIST_KINDS, *AS_LIST_KINDS))
    raise NetworkFileError(
        f"has a name that says no kind; name it *.mmdb, {starts} or crawler-NAME.txt, or move it elsewhere"
    )


def _signature(about: os.stat_result) -> Signature:
    return Signature(about.st_ino, about.st_size, about.st_mtime_ns)


def _is_ours(item: os.DirEntry[str]) -> bool:
    upper = item.name.upper()
    explains = upper.endswith(".MD") or upper.startswith(("LICENSE", "README", "CREDITS", "SHA256SUMS"))
    return not (item.name.startswith(".") or explains) and item.is_file()


CHECKSUMS_FILE = "SHA256SUMS"
CREDITS_FILE = "CREDITS-free.md"
LOCK_FILE = ".update.lock"
MAX_CHECKSUMS_BYTES = 1 << 16

_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *]([A-Za-z0-9][A-Za-z0-9._-]{0,99})", re.ASCII)
_BEFORE_CHECKSUMS = ("country.mmdb", "asn.mmdb")
"""What version 0.1 put there before it wrote checksums."""


class FolderError(OperatorError):
    """The folder cannot be changed; the message says why."""


@contextmanager
def locked_folder(folder: Path) -> Generator[None]:
    """Lock the folder in a `with` block; create it if it is missing. Raises `FolderError` if it cannot be written to,
    or another command is changing it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = Lock(os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise FolderError(explained("cannot write to", folder, error)) from error
    try:
        if not lock.acquire():
            raise FolderError(f"another command is changing {folder}; wait until it has ended")
        yield
    finally:
        lock.close()


def read_checksums(content: bytes) -> dict[str, str]:
    """Return SHA-256 in hexadecimal by file name, as `sha256sum` writes them. Raises `ValueError` for others."""
    if len(content) > MAX_CHECKSUMS_BYTES:
        raise ValueError(f"is larger than {MAX_CHECKSUMS_BYTES:,} bytes")
    checksums: dict[str, str] = {}
    for number, line in enumerate(decode_text(content).splitlines(), 1):
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"line {number} is not a checksum and a file name as `sha256sum` writes them")
        checksums[found[2]] = found[1].lower()
    return checksums


def kept_files(folder: Path) -> dict[str, str]:
    """Return name -> SHA-256 of the files that commands put there. Raises `FolderError` if it cannot be read."""
    try:
        return read_checksums((folder / CHECKSUMS_FILE).read_bytes())
    except FileNotFoundError:
        installed_before = (folder / CREDITS_FILE).exists()
        return dict.fromkeys(_BEFORE_CHECKSUMS, "") if installed_before else {}
    except (OSError, ValueError) as error:
        raise FolderError(
            f"{folder / CHECKSUMS_FILE}: {error}; restore it, or remove it and the files of it"
        ) from error


def put(folder: Path, file: str, content: bytes, credit: str, written: datetime | None = None) -> None:
    """Put a file into the folder in one step, with its checksum and credit. `written` becomes its time of writing.

    The checksum is noted first: an update that ends in between leaves what a later one may replace. Raises `OSError`.
    """
    there = {name: checksum for name, checksum in kept_files(folder).items() if checksum and (folder / name).exists()}
    checksums = {**there, file: hashlib.sha256(content).hexdigest()}
    lines = [f"{checksum}  {name}\n" for name, checksum in sorted(checksums.items())]
    replace(folder / CHECKSUMS_FILE, "".join(lines).encode())
    replace(folder / CREDITS_FILE, _credits({**credits_of(folder), file: credit}).encode())
    replace(folder / file, content, written)


def replace(path: Path, content: bytes, written: datetime | None = None) -> None:
    """Write a file under another name first, so that nobody sees half of it. Raises `OSError`."""
    unfinished = path.with_name(f".{path.name}.part")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        if written is not None:
            os.utime(file.fileno(), (written.timestamp(), written.timestamp()))
        os.fsync(file.fileno())
    unfinished.replace(path)


def credits_of(folder: Path) -> dict[str, str]:
    """Return license and origin by file name, as far as the file of credits exists and names them."""
    try:
        text = (folder / CREDITS_FILE).read_text(errors="replace")
    except OSError:
        return {}
    parts = (part.partition("\n") for part in text.split("\n## ")[1:])
    return {file.strip(): credit.strip() for file, _, credit in parts}


def _credits(by_file: Mapping[str, str]) -> str:
    parts = [f"## {file}\n\n{credit}\n" for file, credit in sorted(by_file.items())]
    return "\n".join(["# Where these files are from\n", *parts])
