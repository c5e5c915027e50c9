"""The executable of one file: how it unpacks and starts, and that the service in it needs nothing but a C library."""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.store.release import RELEASED, unpack
from tests.support import postgresql
from tests.support.chromium import browser
from tests.support.ports import free_port
from tests.support.run_folder import run_folder
from tests.test_wheel import wheel as wheel  # noqa: PLC0414  a fixture
from tools import executable
from tools.versions import version

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(executable.missing() is not None, reason=f"no executable: {executable.missing()}"),
]

PROGRAM = """\
#!/bin/sh
printf "%s\\n" "$@"
[ "$3" != wait ] || exec sleep 60
for stream in 0 1 2; do [ -c /proc/$$/fd/$stream ] || [ "$3" != closed ] || exit 9; done
exit 7
"""
ENVIRONMENT = {"PATH": os.environ["PATH"]}
SAMPLES = Path(__file__).parents[1] / "svc" / "identify" / "samples"


@pytest.fixture(scope="module", autouse=True)
def quickly() -> Iterator[None]:
    """Executables are made in a fifth of the CPU, and are somewhat larger than those of a release."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable, "COMPRESSION", 1)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Executables `1.0`, `2.0` of a script in place of the interpreter, with 20 MB beside it."""
    place = tmp_path_factory.mktemp("made")
    folder = place / "folder"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "svc").write_text(PROGRAM)
    (folder / "bin" / "svc").chmod(0o755)
    deep = folder / "lib" / ("deep" * 20) / ("er" * 30)
    deep.mkdir(parents=True)
    (deep / "content").write_bytes(random.Random(1).randbytes(20_000_123))
    (deep / "empty").touch()
    for name in ("1.0", "2.0"):
        executable.executable_of(folder, place / name, name)
    return place


def start(
    program: Path, *arguments: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT | environment,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def test_the_executable_is_written_to_a_folder_below_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As `make release` names it."""
    (tmp_path / "folder" / "bin").mkdir(parents=True)
    (tmp_path / "folder" / "bin" / "svc").write_text("#!/bin/sh\nexit 7\n")
    (tmp_path / "folder" / "bin" / "svc").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    executable.executable_of(Path("folder"), Path("dist/release/svc"), "1.0")
    assert start(tmp_path / "dist" / "release" / "svc", SVC_UNPACK_DIR=str(tmp_path / "cache")).returncode == 7


def unpacked(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir())


def test_the_executable_unpacks_once_and_becomes_the_program(made: Path, tmp_path: Path):
    cache = tmp_path / "a cache" / "of mine"
    first = start(made / "1.0", "serve", "--bind", "a b", SVC_UNPACK_DIR=str(cache))
    assert (first.returncode, first.stdout.split("\n"), first.stderr) == (
        7,
        ["-ISm", "svc", "serve", "--bind", "a b", ""],
        "",
    )
    (name,) = unpacked(cache)
    assert name.startswith("1.0-")
    source, copy = made / "folder", cache / name
    files = [path.relative_to(source) for path in sorted(source.rglob("*"))]
    assert files == [path.relative_to(copy) for path in sorted(copy.rglob("*"))]
    assert all(
        (copy / file).read_bytes() == (source / file).read_bytes() for file in files if (source / file).is_file()
    )
    content = next(copy.rglob("content"))
    written = content.stat().st_ino
    (tmp_path / "link").symlink_to(made / "1.0")
    assert start(tmp_path / "link", SVC_UNPACK_DIR=str(cache)).returncode == 7
    assert content.stat().st_ino == written


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"CACHE_DIRECTORY": "{}/a:{}/b", "XDG_DATA_HOME": "{}/c", "HOME": "{}/d"}, "a"),
        ({"XDG_DATA_HOME": "{}/c", "HOME": "{}/d"}, "c/svc"),
        ({"XDG_DATA_HOME": "relative", "HOME": "{}/d"}, "d/.local/share/svc"),
        ({"SVC_UNPACK_DIR": "{}/e", "CACHE_DIRECTORY": "{}/a", "HOME": "{}/d"}, "e"),
    ],
)
def test_the_executable_unpacks_where_the_variables_say(
    variables: dict[str, str], place: str, made: Path, tmp_path: Path
):
    given = {name: value.replace("{}", str(tmp_path)) for name, value in variables.items()}
    assert start(made / "1.0", **given).returncode == 7
    assert len(unpacked(tmp_path / place)) == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_was_closed_is_not_the_folder_of_the_program(closed: str, made: Path, tmp_path: Path):
    """The interpreter ends where standard input is one, and what is printed goes nowhere."""
    script = f"exec </dev/null >/dev/null 2>/dev/null; exec {made}/1.0 closed {closed}"
    for _ in range(2):  # it unpacks, and then not
        assert start(Path("/bin/sh"), "-c", script, SVC_UNPACK_DIR=str(tmp_path / "cache")).returncode == 7


def test_no_test_of_a_library_is_part_of_the_executable():
    found = [file for library in executable.pinned() for file in executable.used_of(library)]
    assert [file for file in found if any(re.fullmatch(r"_?tests|test_.*", part) for part in file.parts)] == []
    assert "trio/_core/_run.py" in map(str, found)


def test_starts_at_the_same_time_unpack_one_folder(made: Path, tmp_path: Path):
    starts = [
        subprocess.Popen(
            [made / "1.0"], env=ENVIRONMENT | {"SVC_UNPACK_DIR": str(tmp_path / "cache")}, stdout=subprocess.DEVNULL
        )
        for _ in range(8)
    ]
    assert [each.wait(60) for each in starts] == [7] * 8
    assert len(unpacked(tmp_path / "cache")) == 1


def test_a_start_that_is_killed_leaves_nothing_that_is_used(made: Path, tmp_path: Path):
    cache = tmp_path / "cache"
    for attempt in range(50):
        place = cache / str(attempt)
        with subprocess.Popen([made / "1.0"], env=ENVIRONMENT | {"SVC_UNPACK_DIR": str(place)}) as process:
            while process.poll() is None and not list(place.glob(".unpacking-*")):
                time.sleep(0.001)
            process.kill()
        if process.returncode == -signal.SIGKILL and list(place.glob(".unpacking-*")):
            break
    else:
        raise AssertionError("no start was killed while it unpacked")
    assert start(made / "1.0", SVC_UNPACK_DIR=str(place)).returncode == 7
    (name,) = unpacked(place)
    assert next((place / name).rglob("content")).stat().st_size == 20_000_123


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda content: content[:-1000], "download it again"),
        (lambda content: content[: len(content) // 2], "download it again"),
        (lambda content: content[:-9_000_000] + b"\0\0" + content[-8_999_998:], "damaged: download it again"),
        (lambda content: content[:-3] + b"\0\0\0", "damaged: download it again"),
    ],
)
def test_a_damaged_file_is_refused(damage: Any, word: str, made: Path, tmp_path: Path):
    (tmp_path / "svc").write_bytes(damage((made / "1.0").read_bytes()))
    (tmp_path / "svc").chmod(0o755)
    cache = tmp_path / "cache"
    refused = start(tmp_path / "svc", SVC_UNPACK_DIR=str(cache))
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert word in refused.stderr
    assert not [name for name in unpacked(cache) if not name.startswith(".")]


def test_versions_live_side_by_side_until_one_is_not_used_for_a_month(made: Path, tmp_path: Path):
    cache = tmp_path / "cache"
    where = {"SVC_UNPACK_DIR": str(cache)}
    running = subprocess.Popen([made / "1.0", "wait"], env=ENVIRONMENT | where, stdout=subprocess.PIPE)
    try:
        assert running.stdout is not None
        assert running.stdout.readline()
        (first,) = unpacked(cache)
        long_ago = time.time() - 31 * 86400
        os.utime(cache / first, (long_ago, long_ago))
        start(made / "2.0", **where)
        assert [name[:3] for name in unpacked(cache)] == ["1.0", "2.0"], "it runs"
    finally:
        running.kill()
        running.communicate()
    shutil.rmtree(cache / unpacked(cache)[1])
    start(made / "2.0", **where)
    assert [name[:3] for name in unpacked(cache)] == ["2.0"], "nobody runs it, and it was not started for a month"
    start(made / "1.0", **where)
    assert [name[:3] for name in unpacked(cache)] == ["1.0", "2.0"]


def test_a_folder_that_others_may_change_is_not_used(made: Path, tmp_path: Path):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    refused = start(made / "1.0", SVC_UNPACK_DIR=str(cache))
    assert refused.returncode == 1
    assert f"{cache}: other users may change it\nSet SVC_UNPACK_DIR" in refused.stderr
    cache.chmod(0o755)
    start(made / "1.0", SVC_UNPACK_DIR=str(cache))
    (name,) = unpacked(cache)
    (cache / name).chmod(0o777)
    refused = start(made / "1.0", SVC_UNPACK_DIR=str(cache))
    assert refused.returncode == 1, "nor one that it has unpacked"
    assert refused.stderr.count(f"{cache / name}: other users may change it\n") == 1


def test_a_folder_that_was_removed_in_part_is_unpacked_again(made: Path, tmp_path: Path):
    start(made / "1.0", SVC_UNPACK_DIR="here", cwd=tmp_path)
    (name,) = unpacked(tmp_path / "here")
    shutil.rmtree(tmp_path / "here" / name / "bin")
    assert start(made / "1.0", SVC_UNPACK_DIR="here", cwd=tmp_path).returncode == 7
    assert unpacked(tmp_path / "here") == [name]


def as_root(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script with mounts of its own."""
    if os.geteuid() or shutil.which("unshare") is None:
        pytest.skip("mounts need the superuser, and unshare")
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT | environment,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [("noexec", "it is mounted noexec"), ("ro", "Read-only file system"), ("size=10m", "it has no room for 21 MB")],
)
def test_a_folder_that_cannot_be_used_is_named_with_the_reason(options: str, reason: str, made: Path, tmp_path: Path):
    """And the next one is taken."""
    (tmp_path / "bad").mkdir()
    script = f"mount -t tmpfs -o mode=755,{options} tmpfs {tmp_path}/bad && {made}/1.0"
    refused = as_root(script, SVC_UNPACK_DIR=f"{tmp_path}/bad")
    assert refused.returncode == 1, refused.stderr
    assert f"{tmp_path}/bad: {reason}\n" in refused.stderr
    other = as_root(script, CACHE_DIRECTORY=f"{tmp_path}/bad", HOME=f"{tmp_path}/home")
    assert (other.returncode, other.stderr) == (7, "")
    assert len(unpacked(tmp_path / "home" / ".local" / "share" / "svc")) == 1


def test_a_folder_that_was_unpacked_before_serves_a_system_that_cannot_be_written(made: Path, tmp_path: Path):
    where = {"SVC_UNPACK_DIR": f"{tmp_path}/cache"}
    start(made / "1.0", **where)
    script = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path} && {made}/1.0"
    assert as_root(script, **where).returncode == 7


def test_files_of_the_package_that_were_loaded_survive_their_folder(tmp_path: Path):
    from svc.http.pages.files import Folder

    (tmp_path / "pages" / "below").mkdir(parents=True)
    (tmp_path / "pages" / "below" / "one.html").write_text("one")
    folder = Folder(tmp_path / "pages")
    folder.load()
    shutil.rmtree(tmp_path / "pages")
    assert folder.read("below/one.html") == b"one"


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest) -> Path:
    """The executable of this checkout, made once in a test run: builds share a folder."""
    made = run_folder() / "executable"
    with (run_folder() / "executable.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            executable.build(made, request.getfixturevalue("wheel"))
    return made


@pytest.fixture(scope="module")
def root(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root with the executable, /proc, and nothing else but the C library."""
    if os.geteuid():
        pytest.skip("another root needs the superuser")
    place = tmp_path_factory.mktemp("root")
    for name in ("proc", "tmp", "root", "dev", "etc"):
        (place / name).mkdir()
    for library in (*Path("/lib64").glob("ld-linux-*"), *Path("/lib").glob("ld-linux-*")):
        (place / library.parent.name).mkdir(exist_ok=True)
        shutil.copy(library, place / library.relative_to("/"))
    listed = subprocess.run(["ldd", sys.executable], capture_output=True, text=True, check=True).stdout
    libc = next(Path(word) for word in listed.split() if "/libc.so" in word)
    folder = place / str(libc.parent)[1:]
    folder.mkdir(parents=True)
    for library in libc.parent.glob("lib*.so*"):
        if library.name.startswith(executable.OF_GLIBC):
            shutil.copy(library, folder)
    subprocess.run(["mknod", str(place / "dev" / "null"), "c", "1", "3"], check=True)
    subprocess.run(["mknod", str(place / "dev" / "urandom"), "c", "1", "9"], check=True)
    (place / "dev" / "null").chmod(0o666)
    shutil.copy(program, place / "svc")
    subprocess.run(["mount", "--bind", "/proc", str(place / "proc")], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place / "proc")], check=True)


class Bare:
    """The program in a root of the C library alone."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def command(self, *arguments: str) -> list[str]:
        return ["chroot", str(self.root), "/svc", *arguments]

    def run(self, *arguments: str, **environment: str) -> str:
        done = subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            check=False,
            env=ENVIRONMENT | {"HOME": "/root", "SVC_DATA": "/data"} | environment,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def served(self, *arguments: str, **environment: str) -> Iterator[str]:
        """`svc ARGUMENTS`, from when it is ready: its address."""
        address = f"127.0.0.1:{free_port()}"
        with (self.root / "log").open("w") as log:
            process = subprocess.Popen(
                self.command(*arguments, "--bind", address, "--metrics-bind", "127.0.0.1:0"),
                env=ENVIRONMENT | {"HOME": "/root", "SVC_DATA": "/data"} | environment,
                stdout=log,
                stderr=log,
            )
        try:
            deadline = time.monotonic() + 30
            while not _is_ready(address):
                assert process.poll() is None, (self.root / "log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield address
        finally:
            process.terminate()
            assert process.wait(20) == 0, (self.root / "log").read_text()


def _is_ready(address: str) -> bool:
    try:
        return urllib.request.urlopen(f"http://{address}/readyz", timeout=5).status == 200
    except OSError:
        return False


def identify(address: str, keys: dict[str, str], report: dict[str, Any]) -> dict[str, Any]:
    headers = {
        "content-type": "application/json",
        "x-api-key": keys["secret"],
        "x-svc-visitor-ip": "81.2.69.160",
        "x-svc-visitor-user-agent": report["user_agent"],
        "x-svc-visitor-origin": "https://shop.example",
    }
    body = {"sdk": {"platform": "web", "version": "0.1.0"}, "signals": report["signals"]}
    asked = urllib.request.Request(f"http://{address}/api/v1/identify", json.dumps(body).encode(), headers)
    return json.loads(urllib.request.urlopen(asked, timeout=10).read())


PAGES = ("/try", "/docs/", "/docs/api", "/console", "/sdk/v1/svc.js")


def test_the_whole_service_runs_where_there_is_only_a_c_library(root: Path):
    """No Python, no shell, no other library, no network: from `svc dev` to a restored backup that two workers serve."""
    bare = Bare(root)
    assert bare.run("--version") == f"svc, version {version()} (svc-visitor-id)\n"
    (licenses,) = (root / "root" / ".local" / "share" / "svc").glob("*/copyright")
    assert re.findall(r"^  (?:glibc|openssl|zlib) .*\((.*)\)", licenses.read_text(), re.MULTILINE) == [
        "libc.a",
        "libcrypto.so.3, libssl.so.3",
        "libz.a, libz.so.1",
    ]
    report = json.loads((SAMPLES / "first_visit.json").read_text())
    with bare.served("dev") as address:
        keys = json.loads((root / "data" / "dev-keys.json").read_text())
        seen = identify(address, keys, report)["visitor_id"]
        for page in PAGES:
            assert urllib.request.urlopen(f"http://{address}{page}", timeout=10).status == 200, page
    assert "0 violations" in bare.run("check") or json.loads(bare.run("check", "--json"))["ok"]
    bare.run("backup", "/backup")
    bare.run("restore", "/backup", "--data", "/restored")
    shutil.copy(root / "data" / "pepper", root / "restored" / "pepper")
    (root / "restored" / "pepper").chmod(0o600)
    with bare.served("serve", "--workers", "2", SVC_DATA="/restored") as address:
        assert identify(address, keys, report)["visitor_id"] == seen
        shutil.rmtree(root / "root" / ".local")
        for page in ("/console", "/sdk/v1/svc.js"):
            assert urllib.request.urlopen(f"http://{address}{page}", timeout=10).status == 200, page
    assert bare.run("serve", "--print-config", SVC_UNPACK_DIR="/unpacked"), "which is no setting; it unpacks again"


@pytest.mark.one_case("a service that is one file")
def test_a_browser_is_recognized_by_a_service_that_is_one_file(root: Path):
    opened = browser()
    with Bare(root).served("dev", SVC_DATA="/tried") as address:
        seen = json.loads(opened.run("try.mjs", f"http://{address}"))
    assert seen["first"] == seen["reloaded"]


@pytest.mark.one_case("a service that is one file")
def test_a_store_of_an_earlier_release_is_upgraded_and_served(root: Path):
    """Its events are of January 2026, so that retention may have deleted them; its keys stay."""
    bare = Bare(root)
    (former := root / "former").mkdir()
    _, known = unpack(RELEASED / "0.2.0.tar.xz", former)
    with bare.served("serve", SVC_DATA="/former/data") as address:
        asked = urllib.request.Request(f"http://{address}/api/v1/events", headers={"x-api-key": known["secret_key"]})
        with urllib.request.urlopen(asked, timeout=10) as response:
            assert response.status == 200
    assert json.loads(bare.run("check", "--json", SVC_DATA="/former/data"))["ok"]


@pytest.mark.skipif(postgresql.programs() is None, reason=postgresql.MISSING)
@pytest.mark.one_case("a service that is one file")
def test_a_database_is_served_by_one_file(root: Path):
    bare, cluster = Bare(root), postgresql.Cluster()
    try:
        with cluster.database() as name:
            store = {
                "SVC_STORE": f"postgresql://{postgresql.USER}@127.0.0.1:{cluster.port}/{name}",
                "SVC_DATA": "/node",
            }
            organization = json.loads(bare.run("org", "create", "Shop", "--json", **store))["organization_id"]
            key = bare.run(
                "key", "issue", organization, "--kind", "secret", "--environment", "production", "--json", **store
            )
            with bare.served("serve", **store) as address:
                keys = {"secret": json.loads(key)["secret"]}
                report = json.loads((SAMPLES / "first_visit.json").read_text())
                seen = [identify(address, keys, report)["visitor_id"] for _ in range(2)]
            assert seen[0] == seen[1]
            assert json.loads(bare.run("check", "--json", **store))["ok"]
    finally:
        cluster.close()


@pytest.mark.long
def test_two_builds_of_a_commit_are_equal_byte_by_byte(tmp_path: Path):
    """In another folder, another time zone and with another umask."""
    made: list[bytes] = []
    for zone, mask in (("UTC", 0o022), ("Pacific/Auckland", 0o077)):
        copy = tmp_path / zone
        subprocess.run(["git", "clone", "--quiet", str(executable.ROOT), str(copy)], check=True)
        (copy / ".venv").symlink_to(executable.ROOT / ".venv")
        for built in ("svc/web_static", "svc/docs_site"):
            shutil.copytree(executable.ROOT / built, copy / built)
        subprocess.run(
            [copy / ".venv" / "bin" / "python", "-m", "tools.executable", "dist"],
            cwd=copy,
            env={**os.environ, "TZ": zone, "PYTHONPATH": str(copy)},
            umask=mask,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        made.append((copy / "dist" / "svc").read_bytes())
    assert made[0] == made[1]
