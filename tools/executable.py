"""The service as one executable that needs no Python: `python -m tools.executable FOLDER` (`make executable`).

What may live here: what the folder of the program consists of, what makes it equal byte by byte whenever it is built,
and how it becomes one file (docs/adr/0210). The program that unpacks and starts it is tools/launcher.c.
"""

from __future__ import annotations

import compileall
import gzip
import hashlib
import io
import json
import os
import platform
import py_compile
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from fnmatch import fnmatch
from importlib.metadata import Distribution, PackagePath, distribution
from pathlib import Path
from typing import NamedTuple

from tools import debian_copyright
from tools.archives import built_at_s, wheel
from tools.versions import version

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "ops" / "requirements.lock"
LAUNCHER = ROOT / "tools" / "launcher.c"
TREE = ROOT / "build" / "executable"
"""The folder of the program: `svc`, which starts it, `bin/svc`, the interpreter, and `lib`. Packages of Debian and
images take it as it is."""
LIB = TREE / "lib"
MODULES = LIB / f"python3.{sys.version_info.minor}"
COMPRESSION = 9
"""The level of gzip: of the smallest file."""
INVENTORY = "inventory.json"
"""In the folder: what is inside, for the bill of materials and for packages of systems."""
LICENSES = "copyright"
"""In the folder: what of others is inside, with the texts of its licenses."""
UNUSED = {
    *("config-*", "dist-packages", "site-packages", "__pycache__", "EXTERNALLY-MANAGED", "sitecustomize.py"),
    *("ensurepip", "idlelib", "lib2to3", "pydoc_data", "test", "tkinter", "turtledemo", "turtle.py", "venv"),
    *("_tkinter*", "_test*", "xx*", "_xx*", "_ctypes_test*", "ossaudiodev*", "nis*", "_crypt*"),
    *("readline*", "_curses*", "curses", "_dbm*", "_gdbm*", "_sqlite3*", "sqlite3"),
}
"""What of the standard library is left out: tests, tools, and what would bring libraries of the system that the service
does not use. readline and gdbm are under the GPL."""
UNUSED_OF_LIBRARIES = {
    *(
        "..",
        "INSTALLER",
        "RECORD",
        "REQUESTED",
        "tests",
        "_tests",
        "test_*.py",
        "*.pyi",
        "*.pxd",
        "*.pyx",
        "*.h",
        "*.c",
        "__pycache__",
    ),
    "ext_*.so",  # of cel_expr_python: functions that conditions do not have, 27 MB
}
"""What of the locked libraries is left out: programs, tests, what compilers read and what installing them noted."""
OF_GLIBC = (
    "ld-linux",
    "libBrokenLocale.",
    "libanl.",
    "libc.",
    "libdl.",
    "libm.",
    "libnsl.",
    "libpthread.",
    "libresolv.",
    "librt.",
    "libthread_db.",
    "libutil.",
)
"""Shared libraries that belong to the kernel's loader, and come from the system that runs the program."""
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)
_ELF = b"\x7fELF"
_ASK = """
import json, sys, sysconfig
print(json.dumps([sys.version.split()[0], sys.version_info[:2] == tuple(map(int, sys.argv[1:])),
                  sysconfig.get_path("stdlib"), sysconfig.get_config_var("DESTSHARED")]))
"""


class ExecutableError(Exception):
    """What is installed is not what the lock says."""


class Interpreter(NamedTuple):
    """A Python that the executable can carry."""

    path: Path
    version: str
    stdlib: Path
    extensions: Path


def missing() -> str | None:
    """Why no executable can be built here, or `None`."""
    if sys.platform != "linux":
        return "it is built on Linux"
    for tool in ("gcc", "strip", "objdump", "ldd"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (Debian: gcc)"
    source = "#include <zlib.h>\nint main(void) { return !zlibVersion(); }\n"
    command = ["gcc", "-static", "-x", "c", "-", "-o", "/dev/null", "-lz"]
    if subprocess.run(command, input=source, text=True, capture_output=True, check=False).returncode:
        return "zlib cannot be linked statically (Debian: zlib1g-dev)"
    return None


def interpreter() -> Interpreter:
    """The one of the system, which is faster, if it is of the same minor version, else that of the virtual
    environment.
    """
    minor = sys.version_info.minor
    for path in (Path(f"/usr/bin/python3.{minor}"), Path(sys.executable).resolve()):
        if not path.exists():
            continue
        command = [str(path), "-I", "-c", _ASK, "3", str(minor)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            full, is_same, stdlib, extensions = json.loads(answer.stdout)
            if is_same and Path(stdlib, "os.py").exists():
                return Interpreter(path.resolve(), full, Path(stdlib), Path(extensions))
    raise AssertionError("the interpreter of this program answers")


def build(target: Path, program: Path) -> None:
    """Build the folder and, from it, the executable at `target`. `program` is the wheel of the service. Raises
    `ExecutableError`, or `CalledProcessError` with the output shown.
    """
    python = interpreter()
    shutil.rmtree(TREE, ignore_errors=True)
    libraries = pinned()
    _copy_modules(python, libraries, program)
    shared = _copy_programs(python)
    _compile_modules()
    inventory = _inventory(python, libraries, shared | _linked())
    (TREE / INVENTORY).write_text(json.dumps(inventory, indent=1) + "\n")
    try:
        (TREE / LICENSES).write_text(debian_copyright.page(TREE))
    except debian_copyright.UnknownLicenseError as error:
        print(f"The licenses of what is inside are left out: {error}.")
    _compile_launcher(TREE / "svc", {})
    for path in sorted(TREE.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.name == "svc" else 0o644)
    executable_of(TREE, target, version())


def pinned() -> list[Distribution]:
    """The libraries of `LOCK` as they are installed here. Raises `ExecutableError` for another version."""
    found = [(distribution(name), wanted) for name, wanted in PINNED.findall(LOCK.read_text())]
    for each, wanted in found:
        if each.version != wanted:
            raise ExecutableError(f"{each.name} is installed in version {each.version}, not {wanted}: make venv")
    return [each for each, _ in found]


def _copy_modules(python: Interpreter, libraries: Iterable[Distribution], program: Path) -> None:
    """The standard library, the locked libraries and what the wheel of the service installs, in one folder."""
    unused = shutil.ignore_patterns(*UNUSED)
    shutil.copytree(python.stdlib, MODULES, ignore=unused)
    shutil.copytree(python.extensions, MODULES / "lib-dynload", ignore=unused, dirs_exist_ok=True)
    for library in libraries:
        for file in used_of(library):
            (MODULES / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), MODULES / file)
    shutil.unpack_archive(program, MODULES, "zip")


def used_of(library: Distribution) -> list[PackagePath]:
    """The files of a locked library that the program has."""
    return [
        file
        for file in library.files or ()
        if not any(fnmatch(part, pattern) for part in file.parts for pattern in UNUSED_OF_LIBRARIES)
    ]


def _copy_programs(python: Interpreter) -> dict[str, Path]:
    """The interpreter, and the shared libraries of the system that it and the modules need: name -> where it is
    installed. Symbols are taken out.
    """
    (TREE / "bin").mkdir()
    shutil.copy(python.path, TREE / "bin" / "svc")
    own = {path.name for path in TREE.rglob("*.so*")}
    shared: dict[str, Path] = {}
    for path in _programs():
        listed = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout
        for name, place in re.findall(r"^\t(\S+) => (\S+) \(", listed, re.MULTILINE):
            if name not in own and not name.startswith(OF_GLIBC):
                shared[name] = Path(place)
    for name, place in shared.items():
        shutil.copy(place, LIB / name)
    for path in _programs():
        _strip(path)
    return shared


def _linked() -> dict[str, Path]:
    """What of the system is part of the launcher: name -> where it is installed."""
    asked = {name: ["gcc", f"-print-file-name={name}"] for name in ("libc.a", "libz.a")}
    return {
        name: Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
        for name, command in asked.items()
    }


def _programs() -> list[Path]:
    return [path for path in sorted(TREE.rglob("*")) if path.is_file() and _is_program(path)]


def _is_program(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF


def _strip(path: Path) -> None:
    """Take out symbols. A library whose segments were moved when its wheel was repaired does not load after that, and
    keeps them.
    """
    stripped = path.with_name(f"{path.name}.stripped")
    subprocess.run(["strip", "--strip-unneeded", "-o", str(stripped), str(path)], check=True)
    if _is_loadable(stripped.read_bytes()):
        stripped.replace(path)
    else:
        stripped.unlink()


def _is_loadable(program: bytes) -> bool:
    """Whether each segment that is loaded begins at the same place of a page in the file and in memory."""
    offset, size, count = *struct.unpack_from("<Q", program, 0x20), *struct.unpack_from("<HH", program, 0x36)
    for at in range(offset, offset + size * count, size):
        kind, _, place, address, _, _, _, alignment = struct.unpack_from("<IIQQQQQQ", program, at)
        if kind == 1 and (place - address) % alignment:
            return False
    return True


def _compile_modules() -> None:
    """Compile every module beside its source, which goes, with paths below the folder and no times."""
    compileall.compile_dir(
        MODULES,
        maxlevels=20,
        quiet=2,
        force=True,
        legacy=True,
        stripdir=str(MODULES),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    for source in MODULES.rglob("*.py"):
        if source.with_suffix(".pyc").exists():
            source.unlink()


def _inventory(python: Interpreter, libraries: Iterable[Distribution], shared: dict[str, Path]) -> dict[str, object]:
    """`python` and `shared`, the interpreter and libraries of the system with the source package that has them,
    `libraries` of the lock, and `glibc`, the oldest one that all of it runs with.
    """
    newest = (0,)
    for path in _programs():
        symbols = subprocess.run(["objdump", "-T", str(path)], capture_output=True, text=True, check=False).stdout
        newest = max(
            [newest, *(tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", symbols))]
        )
    return {
        "python": {"version": python.version, "package": _package_of(python.path)},
        "libraries": {each.name: each.version for each in libraries},
        "shared": {name: _package_of(place) for name, place in sorted(shared.items())},
        "glibc": ".".join(map(str, newest)),
    }


def _package_of(path: Path) -> str:
    """`package=version` of Debian's source package with a file, or nothing where that is not known."""
    if shutil.which("dpkg-query") is None:
        return ""
    for each in (path, path.resolve(), Path(str(path).removeprefix("/usr"))):
        search = ["dpkg-query", "--search", str(each)]
        owner = subprocess.run(search, capture_output=True, text=True, check=False).stdout.split(": ")[0]
        if owner:
            show = ["dpkg-query", "--show", "--showformat", "${source:Package}=${source:Version}", owner.split(", ")[0]]
            return subprocess.run(show, capture_output=True, text=True, check=False).stdout
    return ""


def executable_of(folder: Path, target: Path, wanted: str) -> None:
    """Write the executable of a version whose folder this is: the launcher with the compressed folder behind it."""
    archive, size = _archive(folder)
    content = hashlib.sha256(archive).hexdigest()[:12]
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    defined = {"VERSION": f'"{wanted}"', "CONTENT": f'"{content}"', "PACKED": f"{len(archive)}LL"}
    _compile_launcher(unfinished, {**defined, "UNPACKED": f"{size}ULL"})
    with unfinished.open("ab") as file:
        file.write(archive)
    unfinished.replace(target)


def _archive(folder: Path) -> tuple[bytes, int]:
    """The folder as a .tar.gz, names in order, without times and owners, and the size of its files."""
    made, size = io.BytesIO(), 0
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=made, mtime=0, compresslevel=COMPRESSION) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as out,
    ):
        for path in sorted(folder.rglob("*")):
            entry = tarfile.TarInfo(str(path.relative_to(folder)))
            entry.mode = path.stat().st_mode & 0o777
            if path.is_dir():
                entry.type = tarfile.DIRTYPE
                out.addfile(entry)
            else:
                entry.size = path.stat().st_size
                size += entry.size
                with path.open("rb") as content:
                    out.addfile(entry, content)
    return made.getvalue(), size


def _compile_launcher(target: Path, defined: dict[str, str]) -> None:
    compiler = ["gcc", "-O2", "-static", "-s", "-Wall", "-Wextra", "-Werror", "-Wl,--build-id=none"]
    options = [f"-D{name}={value}" for name, value in defined.items()]
    command = [*compiler, *options, "-o", str(target.absolute()), LAUNCHER.name, "-lz"]
    subprocess.run(command, cwd=LAUNCHER.parent, check=True)
    target.chmod(0o755)


def file_name() -> str:
    """The name of the executable in a release, such as `svc-0.3.0-linux-x86_64`."""
    return f"svc-{version()}-linux-{platform.machine()}"


def main(folder: str) -> int:
    """Build `FOLDER/svc`, and say what it is; status 1 with the reason where it cannot be built."""
    reason = missing()
    if reason is not None:
        print(f"The executable cannot be built: {reason}.", file=sys.stderr)
        return 1
    made = Path(folder).absolute() / "svc"
    with tempfile.TemporaryDirectory() as place:
        build(made, wheel(ROOT, Path(place), built_at_s()))
    python = interpreter()
    kind = "of this system" if python.path.parent == Path("/usr/bin") else "of the virtual environment"
    glibc = json.loads((TREE / INVENTORY).read_text())["glibc"]
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB, SHA-256 {hashlib.sha256(made.read_bytes()).hexdigest()}")
    print(f"Python {python.version} {kind}; runs on Linux with glibc {glibc} or later")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
