"""The folder of network files: what each file is by its name, and what is in use of it.

What may live here: reading the folder repeatedly, each time into a new immutable `FilesInUse`. A file is read only
when it has changed, at once and whole; one that cannot be used leaves what was read of it before in force.

    *.mmdb                     MaxMind's format: country, city or network (ASN)
    tor*.txt vpn*.txt ...      lists of addresses and networks
    asn-hosting*.txt ...       lists of networks by AS number
    crawler-NAME.txt           the addresses that an operator publishes for its crawler
    *.md, LICENSE*, README*, CREDITS*, SHA256SUMS and names that begin with a dot are left alone
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from svc.identify.network.facts import Range
from svc.identify.network_data import NetworkFileError
from svc.identify.network_data.lists import AddressSet, read_as_numbers, read_list, read_servers
from svc.identify.network_data.mmdb import MAX_BYTES, Database

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
            signatures = {item.name: _signature(item.stat()) for item in found if _is_ours(item)}
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


def _read(path: Path, signature: Signature, known: Entry | None) -> Entry:
    try:
        written = datetime.fromtimestamp(signature.modified_ns / 1e9, UTC).date()
        return Entry(signature, read_source(path.name, _content(path), written))
    except NetworkFileError as error:
        problem = Problem(error.line, str(error))
    except OSError as error:
        problem = Problem(None, f"cannot be read: {error.strerror or error}")
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
