"""The databases that are free to use: which they are, how they are fetched with npm, checked, converted, installed.

What may live here: the table of pinned packages, and the steps from a package to a file of the folder. This is the only
module of the service that runs another program: the operator's own npm, when the operator asks.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import NamedTuple

from svc.domain.errors import OperatorError
from svc.network_data.kept import locked_folder, put
from svc.network_data.mmdb import MAX_BYTES, Database
from svc.network_data.refused import NetworkFileError
from svc.network_data.writer import Tree

FETCH_LIMIT_S = 300.0
"""For npm to fetch one package of up to 20 MB."""

_VERSION, _BUILT_ON = "2.3.2026061719", date(2026, 6, 17)
"""Of both packages: the version has the day in it."""


class NotInstalledError(OperatorError):
    """Nothing was installed; the message says why and what to do by hand."""


class Package(NamedTuple):
    """One pinned package and the file that is made of it."""

    name: str
    version: str
    integrity: str
    """As npm writes it (Subresource Integrity): `sha512-` and the digest of the tarball in base64."""
    file: str
    """Its name in the folder."""
    convert: Callable[[Mapping[str, bytes]], bytes]
    """From the package's files to the database. Raises `KeyError` or `ValueError` where they are not as expected."""
    credit: str


class Installed(NamedTuple):
    """A package whose database is in the folder now."""

    package: Package
    database: Database


def install(directory: Path, npm: str, packages: Iterable[Package]) -> list[Installed]:
    """Fetch all packages with the `npm` command, then put their databases and the credits into the folder, each file in
    one step.

    A running service takes them up by itself. Raises `NotInstalledError` before anything was changed, and
    `FolderError`.
    """
    made = [_made(package, npm) for package in packages]
    with locked_folder(directory):
        try:
            for package, content, _ in made:
                put(directory, package.file, content, package.credit)
        except OSError as error:
            raise NotInstalledError(f"cannot write to {directory}: {error.strerror or error}") from error
    return [Installed(package, database) for package, _, database in made]


def _made(package: Package, npm: str) -> tuple[Package, bytes, Database]:
    tarball = _fetched(package, npm)
    digest = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    if digest != package.integrity:
        raise NotInstalledError(
            f"{package.name}@{package.version} is not the file that this version of the service knows ({digest} "
            f"instead of {package.integrity}): do not use it; ask where your npm registry has it from"
        )
    try:
        content = package.convert(_unpacked(tarball))
        return package, content, Database(content, package.file)
    except (KeyError, ValueError, tarfile.TarError, OSError, NetworkFileError) as error:
        raise NotInstalledError(f"{package.name}@{package.version} is not as expected: {error}") from error


def _fetched(package: Package, npm: str) -> bytes:
    """The tarball, as the registry of the operator's npm has it."""
    wanted = f"{package.name}@{package.version}"
    by_hand = f"fetch {wanted} where there is a network, and see docs/network.md for what to put into the folder"
    with tempfile.TemporaryDirectory(prefix="svc-npm-") as place:
        command = [npm, "pack", wanted, "--ignore-scripts", "--loglevel", "error"]
        try:
            done = subprocess.run(  # noqa: S603  the operator's npm with a pinned name
                command, cwd=place, capture_output=True, text=True, timeout=FETCH_LIMIT_S, check=False
            )
        except OSError as error:
            raise NotInstalledError(f"cannot run {npm}: {error.strerror or error}; {by_hand}") from error
        except subprocess.TimeoutExpired as error:
            raise NotInstalledError(f"npm did not fetch {wanted} within {FETCH_LIMIT_S:.0f} s; {by_hand}") from error
        tarballs = list(Path(place).glob("*.tgz"))
        if done.returncode != 0 or len(tarballs) != 1:
            said = next((line for line in done.stderr.splitlines() if line.strip()), f"status {done.returncode}")
            raise NotInstalledError(f"npm could not fetch {wanted} ({said.strip()}); {by_hand}")
        return tarballs[0].read_bytes()


def _unpacked(tarball: bytes) -> dict[str, bytes]:
    """Name -> content of the package's regular files. Nothing is written, so no name can lead anywhere."""
    files = dict[str, bytes]()
    with tarfile.open(fileobj=io.BytesIO(tarball), mode="r:gz") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() and member.size <= MAX_BYTES else None
            if content is not None:
                files[member.name.removeprefix("package/")] = content.read()
    return files


def country_database(files: Mapping[str, bytes]) -> bytes:
    """The database of countries, which the package holds ready-made. Raises `KeyError` where it does not."""
    return files["geo-whois-asn-country.mmdb"]


def asn_database(files: Mapping[str, bytes]) -> bytes:
    """A database of networks, made of the package's table of ranges, numbers and names. Raises `KeyError` or
    `ValueError`.

    The table overlaps itself here and there; an address in two ranges gets the one that begins first.
    """
    tree = Tree()
    for name in ("asn-ipv4-num.csv", "asn-ipv6-num.csv"):
        taken = -1
        for first, last, number, holder in csv.reader(io.StringIO(files[name].decode())):
            start, end = max(int(first), taken + 1), int(last)
            if start <= end:
                tree.add(
                    start,
                    end,
                    {"autonomous_system_number": int(number), "autonomous_system_organization": holder},
                )
                taken = end
    built_at_s = (_BUILT_ON - date(1970, 1, 1)).days * 86_400
    return tree.content("ip-location-db-asn", built_at_s)


FREE = (
    Package(
        name="@ip-location-db/geo-whois-asn-country-mmdb",
        version=_VERSION,
        integrity="sha512-xemBDNQl4mCYDuVbqe3jKGKsVDykZGkfvebhtOh/3VGLadq8vsp7t7ontpMUt3hH7sAGT0eLDyJ99SV+0waxZg==",
        file="country.mmdb",
        convert=country_database,
        credit=(
            f"Package @ip-location-db/geo-whois-asn-country-mmdb {_VERSION}, unchanged. CC0 1.0. It contains "
            "statistics of the Number Resource Organization (https://www.nro.net), CC BY 4.0."
        ),
    ),
    Package(
        name="@ip-location-db/asn",
        version=_VERSION,
        integrity="sha512-PpqYi7wyEyWwunXBtl+y3Vi403SvNywotWwvmiYCOUtE0SVol/Sf492Ee+eErEznmGapxEQB2SAfrpXuZ9a+vQ==",
        file="asn.mmdb",
        convert=asn_database,
        credit=(
            f"Package @ip-location-db/asn {_VERSION}, converted to MaxMind's format. CC BY 4.0: data of Route Views "
            "(https://www.routeviews.org), of the Number Resource Organization (https://www.nro.net), and of DB-IP "
            "(IP Geolocation by DB-IP, https://db-ip.com); merged by ip-location-db. Pages that show results of it "
            "must link to DB-IP."
        ),
    ),
)
"""Integrity as the public registry states it for these versions."""
