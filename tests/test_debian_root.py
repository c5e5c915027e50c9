"""The Debian package in a root of Debian where nothing but the smallest system is: installed, used, upgraded, removed.

`debootstrap` makes the root, once, from Debian's mirror; what happens inside has no network. There is no systemd: where
it matters, a script in its place notes what it is asked for.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.live import report
from tests.support.ports import free_port
from tools import debian, executable, versions

SUITE = "bookworm"
NEWER = f"{versions.version()}+later"
SBIN = os.pathsep.join((os.environ["PATH"], "/usr/sbin", "/sbin"))
AT_S = 1_767_225_600
SETTINGS = "etc/svc.toml"
DATA = "var/lib/svc"
SYSTEMCTL = """\
#!/bin/sh
case "$*" in
*"start "* | *"stop "*)
    waiting=$(echo $(cat /run/svc.upgrading 2> /dev/null)) files=$(echo $(ls /usr/lib/svc 2> /dev/null))
    echo "$*; waiting: $waiting; files: $files" >> /systemctl.log
    ;;
"show --property=ActiveState --value svc.service") echo active ;;
"show --property=ActiveState"*) echo inactive ;;
*is-enabled*svc.service) echo enabled ;;
*is-enabled*) echo disabled; exit 1 ;;
esac
"""
"""In place of systemd's: the service runs and is enabled, and nothing else is."""


def missing() -> str | None:
    if os.geteuid() != 0:
        return "only the superuser makes a root"
    for tool in ("debootstrap", "chroot", "unshare", "ip"):
        if shutil.which(tool, path=SBIN) is None:
            return f"{tool} is not installed"
    return debian.missing() or executable.missing()


REASON = missing()
pytestmark = [
    pytest.mark.long,
    pytest.mark.slow(600),
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]


class Root:
    """A root of Debian in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, *arguments: str, network: bool = False) -> list[str]:
        """What runs a program inside, in the same process, without network unless it serves."""
        loopback = "" if network else "ip link set lo up && "
        script = f'{loopback}mount --bind /proc "$0/proc" && exec chroot "$0" "$@"'
        return ["unshare", "--mount", *([] if network else ["--net"]), "sh", "-c", script, str(self.folder), *arguments]

    def run(self, *arguments: str, status: int = 0, text: str = "") -> str:
        """What a program inside prints, on both outputs. Insists on its exit status."""
        environment = {"PATH": SBIN, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            self.command(*arguments),
            env=environment,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def install(self, package: Path, *options: str, text: str = "") -> str:
        shutil.copy(package, self.folder / "package.deb")
        return self.run("dpkg", "--force-unsafe-io", *options, "--install", "/package.deb", text=text)

    def state(self) -> str:
        """`ii`, `rc` or nothing: whether the package is there, or only its settings."""
        told = self.run("dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Abbrev}\n")
        return dict(line.split(" ", 1) for line in told.splitlines()).get(debian.NAME, "").strip()

    def path(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture(scope="module")
def pristine() -> Iterator[Path]:
    """On a disk: in memory there may be no room for devices and programs."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        made = Path(place) / "root"
        command = ["debootstrap", "--variant=minbase", SUITE, str(made)]
        done = subprocess.run(command, env={**os.environ, "PATH": SBIN}, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"debootstrap made no root: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
        yield made


@pytest.fixture
def root(pristine: Path) -> Iterator[Root]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        subprocess.run(["cp", "-a", pristine, place], check=True)
        yield Root(Path(place) / "root")


@pytest.fixture(scope="module")
def packages(pristine: Path) -> tuple[Path, Path]:
    """Of this version and of a newer one, which has other settings as well. Uncompressed: that takes a second and not a
    minute.
    """
    folder = pristine.parent
    tree = folder / "tree"
    with pytest.MonkeyPatch.context() as patched:  # another test may build at the same time
        shared = executable.TREE
        for name in ("TREE", "LIB", "MODULES"):
            patched.setattr(executable, name, tree / getattr(executable, name).relative_to(shared))
        assert executable.main(str(folder)) == 0
    made: list[Path] = []
    for release in (versions.version(), NEWER):
        staged = folder / release
        staged.mkdir()
        debian.stage(tree, staged, AT_S, release)
        if release == NEWER:
            with (staged / SETTINGS).open("a") as settings:
                settings.write("\n# A setting that this version adds.\n#added = 1\n")
        made.append(folder / f"{release}.deb")
        command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(staged), str(made[-1])]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(staged)
    return made[0], made[1]


@contextmanager
def serving(root: Root, port: int) -> Iterator[None]:
    """The service, started as the unit starts it, from when it is ready; it drains at the end."""
    with subprocess.Popen(
        root.command("svc-admin", "serve", network=True),
        env={"PATH": SBIN},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            ready = next((line for line in process.stderr if '"serving"' in line), "")
            assert f"127.0.0.1:{port}" in ready
            yield
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
            assert process.returncode == 0
        finally:
            process.kill()


def asked(port: int, path: str, key: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    headers = {"x-api-key": key, "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def organization(root: Root) -> str:
    """Its id, as somebody creates it after the installation."""
    return json.loads(root.run("svc-admin", "org", "create", "My shop", "--json"))["organization_id"]


def test_the_service_runs_from_the_package_and_an_upgrade_keeps_its_data_and_its_settings(
    root: Root, packages: tuple[Path, Path]
):
    this, newer = packages
    said = root.install(this)
    assert 'svc-admin org create "My shop"' in said
    assert root.run("svc", "--version").startswith(f"svc, version {versions.version()} ")
    assert root.run("dpkg", "--verify", debian.NAME) == ""
    assert root.run("sh", "-c", "command -v python3", status=127) == ""
    assert root.run("stat", "--format=%U:%G %a", f"/{DATA}") == "svc:svc 700\n"

    port = free_port()
    settings = root.path(SETTINGS)
    edited = settings.read_text().replace('#bind = "127.0.0.1:8080"', f'bind = "127.0.0.1:{port}"')
    edited = edited.replace('#metrics_bind = "127.0.0.1:9464"', 'metrics_bind = "127.0.0.1:0"')
    settings.write_text(edited)
    root.path("etc/svc").mkdir()
    root.path("etc/svc/environment").write_text('# Of the unit.\nSVC_REGION="eu"\n')
    issued = ("--kind", "secret", "--environment", "production", "--json")
    key = json.loads(root.run("svc-admin", "key", "issue", organization(root), *issued))["secret"]
    assert key.startswith("svc_sk_eu_"), "the settings of the service hold for its commands"
    assert set(root.run("find", f"/{DATA}", "-printf", "%u\n").split()) == {"svc"}
    with serving(root, port):
        first = asked(port, "/api/v1/identify", key, {"sdk": {"platform": "web"}, "signals": report()})

    said = root.install(newer, "--force-confold")
    assert "svc-admin" not in said, "what comes first was done"
    assert settings.read_text() == edited
    assert "#added = 1" in settings.with_name("svc.toml.dpkg-dist").read_text()
    with serving(root, port):
        event = asked(port, f"/api/v1/events/{first['request_id']}", key)
    assert event["visitor_id"] == first["visitor_id"]
    root.run("svc-admin", "check")


def test_removing_keeps_settings_and_data_and_purging_the_data(root: Root, packages: tuple[Path, Path]):
    wanted = root.path("etc/systemd/system/multi-user.target.wants/svc.service")
    settings = root.path(SETTINGS)
    root.install(packages[0])
    assert wanted.is_symlink()
    assert not list(root.path("etc/systemd/system").rglob("svc.socket"))
    assert not list(root.path("etc/systemd/system").rglob("svc-*.timer"))
    settings.write_text(settings.read_text().replace('#region = "us"', 'region = "eu"'))
    first = organization(root)

    root.run("dpkg", "--remove", debian.NAME)
    assert root.state() == "rc"
    assert not root.path("usr/lib/svc").exists()
    assert not root.path("usr/bin/svc").is_symlink()
    said = root.install(packages[0])
    assert "svc-admin" not in said
    assert '\nregion = "eu"\n' in settings.read_text()
    assert first in root.run("svc-admin", "org", "list")

    said = root.run("dpkg", "--purge", debian.NAME)
    assert f"/{DATA} keeps the data and the pepper" in said
    assert root.state() == ""
    assert not settings.exists()
    assert not wanted.is_symlink()
    assert root.path(f"{DATA}/pepper").exists()
    assert root.run("getent", "passwd", "svc").startswith("svc:")


def test_settings_that_somebody_deleted_stay_deleted_and_unchanged_ones_follow_the_package(
    root: Root, packages: tuple[Path, Path]
):
    this, newer = packages
    settings = root.path(SETTINGS)
    root.install(this)
    root.install(newer)
    assert "#added = 1" in settings.read_text()
    said = root.install(this)
    assert "downgrading" in said
    assert "#added = 1" not in settings.read_text()
    settings.unlink()
    said = root.install(newer, text="\n")
    assert "The default action is to keep your current version" in said
    assert not settings.exists()
    said = root.run("svc-admin", "org", "create", "My shop", status=1)
    assert "cannot read the settings in /etc/svc.toml" in said
    root.run("dpkg", "--purge", debian.NAME)
    assert not root.path(DATA).exists(), "there was nothing in it"


def test_an_installation_by_hand_is_taken_over(root: Root, packages: tuple[Path, Path]):
    root.run("useradd", "--uid", "1234", "--create-home", "svc")
    root.run("install", "-d", "-o", "svc", "-g", "svc", "-m", "0700", f"/{DATA}")
    root.path("etc/systemd/system").mkdir(exist_ok=True)
    root.path("etc/systemd/system/svc.service").write_text("[Service]\n")
    root.path("usr/local/sbin/svc-admin").write_text("exec /opt/svc/bin/svc\n")
    said = root.install(packages[0])
    assert "the account svc that is there (user 1234, not a system user)" in said
    for left in ("/etc/systemd/system/svc.service", "/usr/local/sbin/svc-admin"):
        assert f"{left} has precedence over that of the package: remove it" in said
    root.path("usr/local/sbin/svc-admin").unlink()
    root.run("svc-admin", "org", "create", "My shop")
    assert set(root.run("find", f"/{DATA}", "-printf", "%U\n").split()) == {"1234"}
    assert "run it as root" in root.run(
        "setpriv", "--reuid=65534", "--clear-groups", "svc-admin", "--version", status=1
    )


def test_what_ran_is_stopped_when_the_new_files_are_there_and_before_the_old_ones_go(
    root: Root, packages: tuple[Path, Path]
):
    this, newer = packages
    (root.path("run/systemd/system")).mkdir(parents=True)
    systemctl, log = root.path("usr/bin/systemctl"), root.path("systemctl.log")
    systemctl.write_text(SYSTEMCTL)
    systemctl.chmod(0o755)

    def told() -> list[str]:
        """What systemd was asked to start and to stop, and which units wait at that moment."""
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line.replace("--quiet --system ", "") for line in lines]

    both, new = f"files: {versions.version()} {NEWER}", f"files: {NEWER}"
    root.install(this)
    assert told() == [], "it has no organization yet"
    organization(root)
    root.install(newer)
    assert told() == [
        f"stop svc.service; waiting: svc.service; {both}",
        f"stop svc-data-update.service; waiting: svc.service; {both}",
        f"stop svc-backup.service; waiting: svc.service; {both}",
        f"start svc.service; waiting: ; {new}",
    ]
    assert not root.path("run/svc.upgrading").exists()
    root.install(newer)
    assert [line.partition(";")[0] for line in told()][-1] == "start svc.service"
    root.run("dpkg", "--remove", debian.NAME)
    timers = ["svc-data-update.timer", "svc-backup.timer"]
    units = ["svc.socket", *timers, "svc.service", "svc-data-update.service", "svc-backup.service"]
    assert told() == [f"stop {unit}; waiting: ; {new}" for unit in units]
    root.install(newer)
    assert told() == [f"start svc.service; waiting: ; {new}"], "its data is there"
