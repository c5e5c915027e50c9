"""The databases that the published figures were measured with, from the npm packages of ip-location-db.

    python -m bench.detection.npm_databases DIR

Two packages of 17 June 2026, 26 MB, by the `npm` command: countries as MMDB, networks as CSV, which becomes MMDB here.
Their README says that they contain errors; a service is given corrected data by `svc data update`. CC BY 4.0: Route
Views (routeviews.org), Number Resource Organization (nro.net), IP Geolocation by DB-IP (https://db-ip.com).
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.mmdb import Tree

_VERSION = "2.3.2026061719"
_BUILT_AT_S = 1_781_654_400
_COUNTRIES = "@ip-location-db/geo-whois-asn-country-mmdb"
_NETWORKS = "@ip-location-db/asn"
_INTEGRITY = {
    _COUNTRIES: "xemBDNQl4mCYDuVbqe3jKGKsVDykZGkfvebhtOh/3VGLadq8vsp7t7ontpMUt3hH7sAGT0eLDyJ99SV+0waxZg==",
    _NETWORKS: "PpqYi7wyEyWwunXBtl+y3Vi403SvNywotWwvmiYCOUtE0SVol/Sf492Ee+eErEznmGapxEQB2SAfrpXuZ9a+vQ==",
}
"""Package -> SHA-512 of its tarball in base64."""


def packed(package: str) -> dict[str, bytes]:
    """Name -> content of the files of a package, fetched by npm. Raises `SystemExit` where it is another one."""
    with tempfile.TemporaryDirectory() as place:
        command = ["npm", "pack", f"{package}@{_VERSION}", "--ignore-scripts", "--silent"]
        subprocess.run(command, cwd=place, check=True)
        (path,) = Path(place).glob("*.tgz")
        tarball = path.read_bytes()
    if base64.b64encode(hashlib.sha512(tarball).digest()).decode() != _INTEGRITY[package]:
        raise SystemExit(f"{package} is not the package that the figures are of")
    with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
        files = ((member.name, archive.extractfile(member)) for member in archive)
        return {name.removeprefix("package/"): file.read() for name, file in files if file is not None}


def networks_database(files: Mapping[str, bytes]) -> bytes:
    """From CSV of first address, last address, AS number, holder to MMDB.

    Ranges overlap here and there; an address in two of them gets the one that begins first.
    """
    tree = Tree()
    for name in ("asn-ipv4-num.csv", "asn-ipv6-num.csv"):
        taken = -1
        for first, last, number, holder in csv.reader(io.StringIO(files[name].decode())):
            start, end = max(int(first), taken + 1), int(last)
            if start <= end:
                record = {"autonomous_system_number": int(number), "autonomous_system_organization": holder}
                tree.add(start, end, record)
                taken = end
    return tree.content("ip-location-db-asn", _BUILT_AT_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR", help="where country.mmdb and asn.mmdb are written")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "country.mmdb").write_bytes(packed(_COUNTRIES)["geo-whois-asn-country.mmdb"])
    (folder / "asn.mmdb").write_bytes(networks_database(packed(_NETWORKS)))


if __name__ == "__main__":
    main()
