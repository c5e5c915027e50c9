"""`svc upgrade`: an upgrade without serving, and a downloaded release that is tried on a copy."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import svc
from svc.features.schema import SCHEMA
from svc.features.upgrade.release import SUMS, VERSIONS_FILE, ReleaseError, read_release, verify
from svc.features.upgrade.trial import PREFIX
from svc.kernel.store.opening import open_store, version_of
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.world import World
from tests.store.release import RELEASED, unpack
from tests.support.acknowledged import shop
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, USER_AGENT, report
from tests.support.postgresql import Cluster
from tests.support.process import ENVIRONMENT, MAIN, PRELOADED, Served, finish, run, run_json, start

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
KNOWN = SCHEMA.version
MACHINE = os.uname().machine
EXECUTABLE = f"svc-{svc.__version__}-linux-{MACHINE}"
WHEEL = f"svc_visitor_id-{svc.__version__}-py3-none-any.whl"
NEWER = (
    f"import svc.features.upgrade.migrations as known; known.MIGRATIONS[{KNOWN + 1}] = lambda transaction: None; "
    "import svc.cli; svc.cli.main()"
)
"""A program with one version of the store more."""


class Download(NamedTuple):
    """A folder with a release, and another one for copies."""

    folder: Path
    scratch: Path

    def add(self, name: str, content: bytes) -> None:
        """A file and its line in the sums."""
        (self.folder / name).write_bytes(content)
        with (self.folder / SUMS).open("a") as sums:
            sums.write(f"{hashlib.sha256(content).hexdigest()}  {name}\n")

    def add_executable(self, code: str = MAIN, before: str = "") -> None:
        """The program of this checkout, without the right to be executed, as a browser saves it."""
        command = [f"PYTHONPATH={ROOT}", "exec", shlex.quote(sys.executable), "-c", shlex.quote(code), '"$@"']
        self.add(EXECUTABLE, "\n".join(["#!/bin/sh", before, " ".join(command), ""]).encode())

    def add_wheel(self, store_version: int, oldest: int) -> None:
        """One that has nothing but what is read of it."""
        with zipfile.ZipFile(self.folder / WHEEL, "w") as wheel:
            versions = {"store_version": store_version, "oldest_store_version": oldest}
            wheel.writestr(f"svc/features/upgrade/{VERSIONS_FILE}", json.dumps(versions))
        self.add(WHEEL, (self.folder / WHEEL).read_bytes())

    def words(self, data: Path) -> list[str]:
        return ["upgrade", "--check", str(self.folder), "--scratch", str(self.scratch), "--data", str(data)]

    def refused(self, data: Path, *says: str, **settings: str) -> None:
        """With status 1 and a line; no program was started, and nothing is left."""
        done = run(*self.words(data), status=1, **settings)
        for text in says:
            assert text in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1
        assert list(self.scratch.iterdir()) == []


@pytest.fixture
def download(tmp_path: Path) -> Download:
    for name in ("download", "scratch"):
        (tmp_path / name).mkdir()
    return Download(tmp_path / "download", tmp_path / "scratch")


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A data directory of store version 6."""
    return unpack(RELEASED / "unreleased" / "store-6.tar.xz", tmp_path / "older").directory


@pytest.fixture
def present(tmp_path: Path) -> Path:
    """A data directory of this program."""
    return unpack(RELEASED / f"{svc.__version__}.tar.xz", tmp_path / "present").directory


def contents(data: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in sorted(data.rglob("*"))
        if path.is_file() and path.name != "lock.mdb"
    }


@pytest.mark.slow(3)
def test_a_release_that_upgrades_this_store_is_tried_on_a_copy(download: Download, older: Path):
    download.add_executable()
    with (download.folder / SUMS).open("a") as sums:
        sums.write(f"{'0' * 64} *{WHEEL}\n")
    before = contents(older)
    shown = run_json(*download.words(older))
    times = {name: shown.pop(name) for name in ("copy_seconds", "upgrade_seconds", "check_seconds")}
    assert all(seconds >= 0 for seconds in times.values())
    assert shown.pop("copy_bytes") > 100_000
    assert shown == {
        "release": svc.__version__,
        "verified": [EXECUTABLE],
        "not_downloaded": [WHEEL],
        "program": EXECUTABLE,
        "executed": True,
        "left_behind": [],
        "store_version": 6,
        "release_store_version": KNOWN,
        "release_oldest_store_version": 1,
        "upgrade": "needed",
        "can_serve": True,
        "reason": None,
    }
    assert contents(older) == before
    assert list(download.scratch.iterdir()) == []
    last = run(*download.words(older)).stdout.splitlines()[-1]
    assert last.startswith(f"{svc.__version__} can serve this store. Its upgrade took ")


def test_a_store_of_the_same_version_is_not_copied(download: Download, present: Path):
    download.add_executable()
    shown = run_json(*download.words(present))
    assert (shown["can_serve"], shown["upgrade"], shown["copy_bytes"]) == (True, "not needed", None)


def identify(port: int, key: str) -> int:
    """The status."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/identify",
        data=json.dumps({"sdk": {"platform": "web", "version": "1"}, "signals": report(1)}).encode(),
        headers={
            "x-api-key": key,
            "origin": ORIGIN,
            "user-agent": USER_AGENT,
            "x-forwarded-for": PUBLIC_ADDRESS,
            "content-type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        return response.status


@pytest.mark.slow(2)
def test_a_service_goes_on_while_a_release_is_tried_beside_it(download: Download, tmp_path: Path):
    data = tmp_path / "data"
    key = shop(data)
    download.add_executable(NEWER)
    server = Served(data)
    statuses: list[int] = []
    tried = threading.Event()

    def visit() -> None:
        while not tried.wait(0.02):
            statuses.append(identify(server.port, key))

    visits = threading.Thread(target=visit)
    visits.start()
    try:
        shown = run_json(*download.words(data))
        tried.set()
        visits.join()
        assert (shown["store_version"], shown["release_store_version"]) == (KNOWN, KNOWN + 1)
        assert shown["can_serve"]
        assert server.runs()
        assert not server.said("the store was upgraded")
    finally:
        tried.set()
        visits.join()
        assert server.terminate() == 0
    assert set(statuses) == {200}
    assert not (data / "before-upgrade").exists()
    run("check", "--data", str(data))


def test_a_newer_store_is_a_downgrade_and_is_refused(download: Download, present: Path):
    done = finish("upgrade", "--data", present, "--json", program=(PRELOADED, NEWER), stderr=subprocess.PIPE)
    assert json.loads(done.stdout)["store_version"] == KNOWN + 1
    download.add_executable()
    refused = run(*download.words(present), "--json", status=1)
    shown = json.loads(refused.stdout)
    assert (shown["can_serve"], shown["copy_bytes"]) == (False, None)
    assert f"{svc.__version__} cannot serve this store: the store has version {KNOWN + 1}" in refused.stderr
    assert list(download.scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("store_version", "oldest", "says"),
    [
        (9, 1, "can serve this store after an upgrade. How long that takes is not known: a wheel is only read"),
        (6, 1, "can serve this store as it is"),
        (5, 1, "the store has version 6 and {} knows 5"),
        (9, 7, "upgrades from version 7 on"),
    ],
)
def test_a_wheel_alone_says_which_stores_it_serves(
    download: Download, older: Path, store_version: int, oldest: int, says: str
):
    download.add_wheel(store_version, oldest)
    can_serve = store_version >= 6 >= oldest
    done = run(*download.words(older), status=0 if can_serve else 1)
    assert says.format(svc.__version__) in (done.stdout if can_serve else done.stderr)
    assert "executed" not in done.stdout


def test_a_wheel_of_before_that_does_not_say_it_is_refused(download: Download, older: Path):
    with zipfile.ZipFile(download.folder / WHEEL, "w") as wheel:
        wheel.writestr("svc/__init__.py", "")
    download.add(WHEEL, (download.folder / WHEEL).read_bytes())
    download.refused(older, "does not say which stores it serves")


def test_a_file_that_differs_from_its_sum_is_refused_and_nothing_is_run(download: Download, older: Path):
    ran = download.folder.parent / "ran"
    download.add_executable(before=f"touch {shlex.quote(str(ran))}")
    download.add_wheel(9, 1)
    with (download.folder / WHEEL).open("ab") as wheel:
        wheel.write(b"x")
    download.refused(older, f"{WHEEL} does not have the sum in {SUMS}: download it again")
    assert not ran.exists()


def test_a_symbolic_link_and_what_is_no_file_are_refused(download: Download, older: Path):
    download.add_executable()
    outside = download.folder.parent / "outside"
    (download.folder / EXECUTABLE).rename(outside)
    (download.folder / EXECUTABLE).symlink_to(outside)
    download.refused(older, "it is a symbolic link")
    (download.folder / EXECUTABLE).unlink()
    os.mkfifo(download.folder / EXECUTABLE)
    download.refused(older, "it is not a regular file")
    (download.folder / EXECUTABLE).unlink()
    download.refused(older, f"has none of the files that {SUMS} names")


def test_without_a_program_for_this_machine_it_says_what_to_download(download: Download, older: Path):
    download.add(f"svc-{svc.__version__}-linux-vax", b"#!/bin/false\n")
    download.refused(older, f"download svc-VERSION-linux-{MACHINE}, or the wheel")


def test_too_little_space_is_said_before_anything_is_copied(download: Download, older: Path):
    download.add_executable()
    full = (
        "import shutil; from collections import namedtuple; "
        "shutil.disk_usage = lambda _: namedtuple('usage', 'free')(1 << 20); " + MAIN
    )
    done = finish(*download.words(older), program=(PRELOADED, full), env=ENVIRONMENT)
    assert done.returncode == 1
    assert "has 1 MiB left, and starting" in done.stderr
    assert "name a folder on another disk with --scratch" in done.stderr
    assert list(download.scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ("echo 'svc: what is wrong' >&2; exit 3", "the new program's `svc upgrade` failed: what is wrong"),
        ("kill -9 $$", "the new program's `svc upgrade` was ended by SIGKILL"),
        ("echo '{}'; exit 0", "the new program's `svc upgrade` failed: exit status 0"),
    ],
)
def test_a_program_that_fails_is_refused_with_what_it_says(download: Download, older: Path, before: str, says: str):
    download.add_executable(before=before)
    download.refused(older, says)


def test_a_program_of_another_version_than_its_name_is_refused(download: Download, older: Path):
    said = {"program": "9.9.9", "store_version": 9, "oldest_store_version": 1}
    download.add_executable(before=f"echo {shlex.quote(json.dumps(said))}; exit 0")
    download.refused(older, f"{EXECUTABLE} says that it is 9.9.9")


@pytest.mark.slow(2)
def test_an_upgrade_that_fails_is_a_refusal_with_its_reason(download: Download, older: Path):
    fails = NEWER.replace("lambda transaction: None", "lambda transaction: 1 / 0")
    download.add_executable(fails)
    done = run(*download.words(older), "--json", status=1)
    shown = json.loads(done.stdout)
    assert not shown["can_serve"]
    assert shown["reason"] == "the new program's `svc upgrade` failed: ZeroDivisionError: division by zero"
    assert list(download.scratch.iterdir()) == []


@pytest.mark.slow(2)
def test_the_new_program_sees_no_settings_and_no_pepper_of_the_service(download: Download, older: Path):
    seen = download.folder.parent / "seen"
    download.add_executable(before=f"env >> {seen}; find .. >> {seen}")
    run(*download.words(older), SVC_DRAIN_LIMIT_S="4", SVC_PEPPER_FILE=str(older / "pepper"))
    lines = seen.read_text().splitlines()
    variables = {line.partition("=")[0] for line in lines if "=" in line}
    allowed = {"PATH", "LANG", "HOME", "TMPDIR", "XDG_CACHE_HOME", "SVC_DATA", "SVC_MAP_GIB", "PWD", "OLDPWD", "_"}
    assert variables <= allowed | {"SHLVL"}
    assert not [line for line in lines if line.endswith("pepper")]


@pytest.fixture
def hanging(download: Download, older: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A trial whose program hangs when it is to upgrade the copy. Its parameter runs before the trial."""
    download.add_executable(before='[ "$2" = --data ] && { echo $$ > hangs; exec sleep 60; }')
    program = (PRELOADED, f"{getattr(request, 'param', '')}\n{MAIN}")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with start(*download.words(older), program=program, env=ENVIRONMENT, **quiet) as process:
        wait_for(lambda: list(download.scratch.glob("*/home/hangs")))
        yield process
        process.kill()


def wait_for(reached: Any, limit_s: float = 30) -> None:
    until = time.monotonic() + limit_s
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.slow(2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_trial_that_is_ended_removes_its_copy_and_ends_its_program(
    download: Download, hanging: subprocess.Popen[str], number: signal.Signals
):
    program = int(next(download.scratch.glob("*/home/hangs")).read_text())
    hanging.send_signal(number)
    assert hanging.wait(timeout=30) == (130 if number is signal.SIGINT else -number)
    assert list(download.scratch.iterdir()) == []
    wait_for(lambda: not Path(f"/proc/{program}").exists() or state_of(program) == "Z")


STARTS_SLOWLY = """
import subprocess, time
begin = subprocess.Popen.__init__
def slowly(*arguments, **named):
    begin(*arguments, **named)
    time.sleep(0.5)
subprocess.Popen.__init__ = slowly
"""


@pytest.mark.slow
@pytest.mark.parametrize("hanging", [STARTS_SLOWLY], indirect=True, ids=["starting"])
def test_a_trial_that_is_ended_while_its_program_starts_ends_it(download: Download, hanging: subprocess.Popen[str]):
    test_a_trial_that_is_ended_removes_its_copy_and_ends_its_program(download, hanging, signal.SIGINT)


@pytest.mark.slow(2)
def test_what_the_program_left_behind_ends_with_the_trial(download: Download, older: Path):
    """It has ended, and one that it started still holds what the trial reads."""
    download.add_executable(before='[ "$2" = --data ] && { sleep 60 & echo $! > hangs; exit 0; }')
    with start(
        *download.words(older), env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_for(lambda: [path for path in download.scratch.glob("*/home/hangs") if path.read_text()])
        test_a_trial_that_is_ended_removes_its_copy_and_ends_its_program(download, process, signal.SIGINT)


@pytest.mark.slow(2)
@pytest.mark.parametrize("hanging", ["import signal; signal.signal(1, signal.SIG_IGN)"], indirect=True, ids=["nohup"])
def test_a_trial_under_nohup_goes_on_when_its_terminal_is_closed(download: Download, hanging: subprocess.Popen[str]):
    hanging.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        hanging.wait(timeout=0.5)
    test_a_trial_that_is_ended_removes_its_copy_and_ends_its_program(download, hanging, signal.SIGTERM)


@pytest.mark.slow(4)
def test_what_a_killed_trial_left_is_removed_by_the_next_one(
    download: Download, older: Path, hanging: subprocess.Popen[str]
):
    (left,) = download.scratch.glob(f"{PREFIX}*")
    (download.scratch / f"{PREFIX}link").symlink_to(older)
    program = int((left / "home" / "hangs").read_text())
    hanging.kill()
    hanging.wait()
    beside = download._replace(folder=download.folder.with_name("beside"))
    beside.folder.mkdir()
    beside.add_executable()
    assert run_json(*beside.words(older))["left_behind"] == [], "its program still runs in it"
    assert left.exists()
    os.kill(program, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{program}").exists() or state_of(program) == "Z")
    assert run_json(*beside.words(older))["left_behind"] == [str(left)]
    assert [path.name for path in download.scratch.iterdir()] == [f"{PREFIX}link"]
    assert (older / "store").exists()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_the_folder_for_the_copy_is_not_in_the_data_directory(download: Download, older: Path):
    download.add_executable()
    inside = download._replace(scratch=older / "store")
    done = run(*inside.words(older), status=1)
    assert "is inside the data directory" in done.stderr


def test_a_database_is_compared_by_its_version_and_upgraded_without_being_served(
    download: Download, cluster: Cluster, database: str, tmp_path: Path
):
    url: StoreUrl = cluster.url(database)
    open_store(url, World.real().run_sync, migrations=SCHEMA.migrations[:-1]).close()
    download.add_executable()
    words = [*download.words(tmp_path)[:-2], "--store", str(url)]
    shown = run_json(*words)
    assert (shown["store_version"], shown["can_serve"], shown["copy_bytes"]) == (KNOWN - 1, True, None)
    assert "a database is not copied" in run(*words).stdout
    engine = PostgresqlEngine.open(url)
    assert version_of(engine) == KNOWN - 1
    engine.close()
    done = run_json("upgrade", "--store", str(url))
    assert (done["store_version_before"], done["store_version"], done["kept"]) == (KNOWN - 1, KNOWN, None)
    assert run_json(*words)["upgrade"] == "not needed"


def test_a_store_is_upgraded_without_being_served(older: Path):
    done = run_json("upgrade", "--data", str(older))
    kept = older / "before-upgrade" / "version-6"
    assert (done["store_version_before"], done["store_version"], done["kept"]) == (6, KNOWN, str(kept))
    assert kept.is_dir()
    run("check", "--data", str(older))
    assert run("upgrade", "--data", str(older)).stdout.endswith("nothing was upgraded\n")


def test_a_store_that_is_served_is_not_upgraded(present: Path):
    server = Served(present)
    try:
        done = finish("upgrade", "--data", present, program=(PRELOADED, NEWER), env=ENVIRONMENT)
        assert done.returncode == 1
        assert "is in use by `svc serve`" in done.stderr
    finally:
        server.terminate()


def test_options_that_do_not_go_together_are_wrong_usage(older: Path):
    for words in (
        ["--check", str(older), "--versions"],
        ["--versions", "--no-snapshot"],
        ["--scratch", str(older)],
    ):
        run("upgrade", "--data", str(older), *words, status=2)
    run("upgrade", status=2)
    done = run("upgrade", "--data", str(older / "nothing"), status=1)
    assert "holds no data of this service" in done.stderr


def test_a_program_says_which_stores_it_serves():
    expected = {"program": svc.__version__, "store_version": KNOWN, "oldest_store_version": 1}
    assert run_json("upgrade", "--versions") == expected


SUM = "0" * 64


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "names no file"),
        (f"{SUM}  ../svc\n", "line 1: not a SHA-256 and the name"),
        (f"{SUM}  a\n{SUM}  /etc/passwd\n", "line 2: not a SHA-256"),
        (f"\\{SUM}  a\\nb\n", "line 1"),
        (f"{SUM}  ..\n", "line 1"),
        (f"{SUM[:-1]}  a\n", "line 1"),
        (f"{SUM} a\n", "line 1"),
        ("\x7fELF\x00\x01", "line 1"),
        (f"{SUM}  a\n{'1' * 64}  a\n", "line 2: a has two sums"),
        (f"{SUM}  a\n" * 20_000, "too large"),
    ],
)
def test_sums_of_another_form_are_refused(tmp_path: Path, content: str, says: str):
    (tmp_path / SUMS).write_text(content)
    with pytest.raises(ReleaseError, match=says):
        read_release(tmp_path)


def test_a_folder_without_sums_is_refused(tmp_path: Path):
    with pytest.raises(ReleaseError, match=r"cannot read .*No such file"):
        read_release(tmp_path)


def test_sums_in_capitals_and_of_binary_mode_are_read(tmp_path: Path):
    digest = hashlib.sha256(b"x").hexdigest().upper()
    (tmp_path / SUMS).write_text(f"{digest} *a\n{SUM}  b\n")
    (tmp_path / "a").write_bytes(b"x")
    assert verify(read_release(tmp_path / SUMS)) == (("a",), ("b",))
