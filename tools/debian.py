"""The Debian package, from the folder with the executable: `python -m tools.debian TREE FOLDER` (`make deb`).

What may live here: what the package consists of, and what makes it equal byte by byte whenever it is built. Its scripts
are in `ops/debian`, its units and settings are those of `ops`, changed where a package puts things elsewhere.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from svc.cli import program
from tools import debian_copyright, man_page, packages, reference
from tools.archives import built_at_s
from tools.versions import section_of, version

ROOT = Path(__file__).parents[1]
OPS = ROOT / "ops"
SCRIPTS = OPS / "debian"
NAME = "svc-visitor-id"
"""As everywhere; Debian has another program `svc`."""
MAINTAINER = "The svc project <svc@svc.example>"
"""Stands for an address as `packages.HOMEPAGE` does."""
LIBRARY = "usr/lib/svc"
"""Has the folder of the executable by version, so that an upgrade leaves that of the running service alone."""
CONFFILES = ("/etc/svc.toml",)
UNITS = (
    *("svc.service", "svc.socket", "svc-data-update.service", "svc-data-update.timer"),
    *("svc-backup.service", "svc-backup.timer"),
)
MAINTAINER_SCRIPTS = ("postinst", "prerm", "postrm")
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/svc",
    "fish": "usr/share/fish/vendor_completions.d/svc.fish",
    "zsh": "usr/share/zsh/vendor-completions/_svc",
}
TOOLS = {"dpkg-deb": "dpkg", "objdump": "binutils"}
"""Programs that build a package, and the package of Debian that has each."""
MACHINES = {62: "amd64", 183: "arm64"}
"""`e_machine` of ELF -> what Debian calls it."""
LIBC = frozenset(
    {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libresolv.so.2"}
    | {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
)
"""What `libc6` has. Everything else has to be in the tree."""
WITHOUT_NUMBER = {"ABI_DT_RELR": "2.36"}
"""What else a library may ask of glibc -> the version that has it."""
WAIT = """\
# While an upgrade replaces the files of the program, a connection at svc.socket or the timer may start this.
ExecStartPre=/bin/sh -c 'while [ -e /run/svc.upgrading ]; do sleep 0.2; done'
"""
"""`ops/debian/prerm` makes that file, and `postinst` removes it."""


class DebianError(Exception):
    """No package can be made of this."""


class Needs(NamedTuple):
    """What a tree asks of the machine."""

    architecture: str
    libc: tuple[int, ...]
    """The version of glibc."""


def missing() -> str | None:
    """Why no package can be built here."""
    absent = [f"{tool} (package {package})" for tool, package in TOOLS.items() if shutil.which(tool) is None]
    return f"there is no {' and no '.join(absent)}" if absent else None


def needs(tree: Path) -> Needs:
    """Raises `DebianError` for a tree that is for another machine, or that needs a library it does not have."""
    binaries = [path for path in _regular(tree) if _header(path).startswith(b"\x7fELF")]
    if tree / "svc" not in binaries:
        raise DebianError(f"{tree} has no executable svc")
    (machine,) = struct.unpack_from("<H", _header(tree / "svc"), 18)
    if machine not in MACHINES:
        raise DebianError(f"{tree / 'svc'} is for a machine without a package, ELF {machine}")
    command = ["objdump", "--private-headers", *map(str, binaries)]
    environment = {**os.environ, "LC_ALL": "C"}
    told = subprocess.run(command, check=True, env=environment, capture_output=True, text=True).stdout
    present = {path.name for path in tree.rglob("*")}
    absent = set(re.findall(r"^ +NEEDED +(\S+)$", told, re.MULTILINE)) - present - LIBC
    if absent:
        raise DebianError(f"{tree} lacks {', '.join(sorted(absent))}")
    versions: list[str] = re.findall(r"^ +0x\S+ 0x\S+ \d+ GLIBC_(\S+)$", told, re.MULTILINE)
    numbers = [WITHOUT_NUMBER.get(text, text) for text in versions if text != "PRIVATE"]
    return Needs(MACHINES[machine], max(tuple(map(int, text.split("."))) for text in numbers))


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(20)


def _regular(folder: Path) -> list[Path]:
    """Its files without links, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def control(needed: Needs, size_kib: int, release: str) -> str:
    """What dpkg knows of the package."""
    return textwrap.dedent(f"""\
        Package: {NAME}
        Version: {release}
        Architecture: {needed.architecture}
        Maintainer: {MAINTAINER}
        Installed-Size: {size_kib}
        Depends: libc6 (>= {".".join(map(str, needed.libc))}), passwd
        Recommends: systemd-timesyncd | time-daemon
        Suggests: nginx | haproxy | caddy, postgresql
        Conflicts: daemontools
        Section: web
        Priority: optional
        Homepage: {packages.HOMEPAGE}
        Description: visitor identification that you host yourself
         A page or app sends a report of its device. The service responds with a stable
         visitor id, a confidence, a suspect score and the signals behind it. Use it
         against sign-up abuse, account sharing, credential stuffing and promo abuse.
         .
         The package has everything that the program needs but the C library; Python
         need not be installed. It conflicts with daemontools, whose program has the
         same name.
        """)


def unit(name: str) -> str:
    """A unit of `ops` as the package installs it: the program and the settings are where the package puts them."""
    _, _, text = (OPS / name).read_text().partition("\n")
    text = text.replace("Description=", "Documentation=man:svc(1)\nDescription=", 1)
    text = text.replace("/opt/svc/bin/svc", "/usr/bin/svc")
    text = text.replace("Environment=SVC_DATA=", f"{WAIT}Environment=SVC_CONFIG=/etc/svc.toml\nEnvironment=SVC_DATA=")
    return f"# Of the package {NAME}. `systemctl edit {name}` changes it.\n{text}"


def settings() -> str:
    """`/etc/svc.toml`: every setting, with what is said of the file in the package."""
    _, _, rest = reference.settings_file().partition("\n\n")
    return f"{_SETTINGS}\n{rest}"


def changelog(at_s: int) -> str:
    """The section of this version in Debian's form."""
    section = section_of((ROOT / "CHANGELOG.md").read_text(), version())
    entries = re.findall(r"^- (.*(?:\n  .*)*)", section, re.MULTILINE)
    plain = [re.sub(r"\[([^\]]+)\]\([^)]+\)|`", r"\1", " ".join(entry.split())) for entry in entries]
    lines = [textwrap.fill(f"* {entry}", 78, initial_indent="  ", subsequent_indent="    ") for entry in plain]
    date = format_datetime(datetime.fromtimestamp(at_s, UTC))
    return "\n".join([f"{NAME} ({version()}) unstable; urgency=medium\n", *lines, f"\n -- {MAINTAINER}  {date}\n"])


def _completions() -> Iterator[tuple[str, bytes]]:
    for shell, place in COMPLETIONS.items():
        yield place, CliRunner().invoke(program, ["completion", shell], catch_exceptions=False).output.encode()


def _packed(text: str) -> bytes:
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def contents(tree: Path, at_s: int) -> dict[str, bytes]:
    """The files beside the executable's own, by where they are installed."""
    document = f"usr/share/doc/{NAME}"
    made = {
        "etc/svc.toml": settings().encode(),
        "usr/sbin/svc-admin": (SCRIPTS / "svc-admin").read_bytes(),
        "usr/lib/sysusers.d/svc.conf": (SCRIPTS / "sysusers.conf").read_bytes(),
        f"usr/share/lintian/overrides/{NAME}": (SCRIPTS / "lintian-overrides").read_bytes(),
        f"{document}/changelog.gz": _packed(changelog(at_s)),
        f"{document}/copyright": debian_copyright.page(tree).encode(),
        **dict(_completions()),
    }
    made |= {f"usr/lib/systemd/system/{name}": unit(name).encode() for name in UNITS}
    for name, page in man_page.PAGES.items():
        made[f"usr/share/man/man{name[-1]}/{name}.gz"] = _packed(page(at_s))
    return made


def stage(tree: Path, root: Path, at_s: int, release: str) -> Needs:
    """Lay the package of a release out in an empty folder, as `dpkg-deb` takes it. Raises `DebianError` as `needs`, and
    `UnknownLicenseError`.
    """
    needed = needs(tree)
    shutil.copytree(tree, root / LIBRARY / release, symlinks=True)
    for name, content in contents(tree, at_s).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    (root / "usr/sbin/svc-admin").chmod(0o755)
    (root / "usr/bin").mkdir()
    (root / "usr/bin/svc").symlink_to(f"../lib/svc/{release}/svc")
    installed = {
        "control": control(needed, _size_kib(root), release),
        "conffiles": "".join(f"{name}\n" for name in CONFFILES),
        "md5sums": _sums(root),
        **{name: (SCRIPTS / name).read_text() for name in MAINTAINER_SCRIPTS},
    }
    (root / "DEBIAN").mkdir()
    for name, text in installed.items():
        (root / "DEBIAN" / name).write_text(text)
        (root / "DEBIAN" / name).chmod(0o755 if name in MAINTAINER_SCRIPTS else 0o644)
    _settle(root, at_s)
    return needed


def _size_kib(root: Path) -> int:
    """As dpkg-gencontrol counts: files rounded up, a KiB for anything else."""
    regular = _regular(root)
    others = sum(1 for _ in root.rglob("*")) - len(regular)
    return others + sum(-(-path.stat().st_size // 1024) for path in regular)


def _sums(root: Path) -> str:
    """What `dpkg --verify` compares; dpkg keeps the sums of conffiles itself."""
    named = [(path.relative_to(root).as_posix(), path) for path in _regular(root)]
    return "".join(
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {name}\n"
        for name, path in named
        if f"/{name}" not in CONFFILES
    )


def _settle(root: Path, at_s: int) -> None:
    """One time for all, and two modes, whatever the umask was."""
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
        os.utime(path, (at_s, at_s), follow_symlinks=False)


def build(tree: Path, folder: Path, at_s: int) -> Path:
    """Write the package into a folder, and return its file. Raises as `stage` does."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "root"
        root.mkdir()
        architecture = stage(tree, root, at_s, version()).architecture
        name = f"{NAME}_{version()}_{architecture}.deb"
        # One thread: what xz writes depends on how many there are.
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(at_s), "DPKG_DEB_THREADS_MAX": "1"}
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), place]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        return Path(shutil.move(Path(place) / name, folder / name))


_SETTINGS = """\
# Settings of the service, each with its default and commented out. An upgrade keeps what you change here.
#
# svc.service reads this file, and so do commands that `svc-admin` runs. Variables such as SVC_REGION in
# /etc/svc/environment override it. `systemctl reload svc` applies some settings; the log names those that need
# `systemctl restart svc`. `svc config check /etc/svc.toml` finds mistakes. The data is in /var/lib/svc.
"""


def main(tree: str, folder: str) -> int:
    """Build, or say in one line why not."""
    reason = missing()
    if reason is not None:
        print(f"The Debian package is not built: {reason}.", file=sys.stderr)
        return 1
    try:
        made = build(Path(tree), Path(folder), built_at_s())
    except (DebianError, debian_copyright.UnknownLicenseError) as error:
        print(f"The Debian package is not built: {error}.", file=sys.stderr)
        return 1
    print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
