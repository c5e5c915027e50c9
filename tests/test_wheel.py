"""The wheel: built from the sources alone, installed where nothing of the checkout is, and run."""

from __future__ import annotations

import email
import gzip
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import urllib.request
import zipfile
from pathlib import Path

import pytest

import svc
from svc.features.upgrade.release import Program, Release, own_versions, versions_in_wheel
from svc.http.pages import app as pages

pytestmark = pytest.mark.slow(10)

ROOT = Path(__file__).parents[1]
PAGE = "svc/http/page"
SOURCES = (
    *("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "pyproject.toml", "setup.py"),
    *("clients", "docs", "examples", "ops", "svc", "svc_replay", "tools", "web"),
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from those files alone that git has of the folders that a wheel is made of.

    The SDK, the pages and the documentation of this checkout lie beside them: the build takes them only where the
    digests of these sources say that it would make the same, and makes them where they do not.
    """
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"
    tracked = subprocess.run(["git", "ls-files", "--", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in tracked.stdout.splitlines():
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, sources / name)
    for name in ("svc/web_static", "svc/docs_site"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, sources / name)
    if (modules := ROOT / "web" / "node_modules").is_dir():
        (sources / "web" / "node_modules").mkdir()
        for entry in modules.iterdir():
            copy = sources / "web" / "node_modules" / entry.name
            if entry.is_dir():
                copy.symlink_to(entry)
            else:  # which the build may write
                shutil.copy(entry, copy)
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder), str(sources)]
    pip(*build)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`svc` in an environment of its own, beside the libraries of this one."""
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    pip("--python", str(environment / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel))
    (site,) = environment.glob("lib/python*/site-packages")
    # A .pth file adds a folder and does not read those in it, so that this checkout's own is not seen from there.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin" / "svc"


def pip(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SVC_", "PYTHON"))}
    return {**kept, "SVC_METRICS_BIND": "127.0.0.1:0"}


def unhashed(name: str) -> str:
    """The name of a file without the hash of a part of a page, which says where its libraries lay, too."""
    return re.sub(r"-[A-Z0-9]{8}\.js$", ".js", name)


def test_the_wheel_contains_exactly_the_files_that_the_program_reads(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        bundle = gzip.decompress(archive.read(f"{PAGE}/swagger-ui-bundle.js.gz"))
    sources = {
        path.relative_to(ROOT).as_posix()
        for package in ("svc", "svc_replay")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert set(map(unhashed, sources)) <= set(map(unhashed, names))
    information = f"{svc.DISTRIBUTION.replace('-', '_')}-{svc.__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"svc", "svc_replay", information}
    assert len(bundle) > 100_000
    with zipfile.ZipFile(wheel) as archive:
        license_text = archive.read(f"{information}/licenses/LICENSE")
        metadata = email.message_from_bytes(archive.read(f"{information}/METADATA"))
        listed = "".join(archive.read(name).decode() for name in names if name.endswith("/LICENSES.txt"))
    for package in ("swagger-ui-dist", "furo", "sphinx", "preact"):
        assert re.search(rf"^{package} \d[\d.]+ \([\w.-]+\)$", listed, re.MULTILINE), package
    assert license_text == (ROOT / "LICENSE").read_bytes()
    assert (metadata["Name"], metadata["License-Expression"]) == (svc.DISTRIBUTION, "Apache-2.0")
    assert metadata.get_all("Author") is metadata.get_all("Project-URL") is None
    shown = metadata.get_payload()
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "## Identify a visitor" in shown
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", shown) == [], "files of the checkout, which nobody has there"


def test_the_wheel_says_which_stores_its_program_serves(wheel: Path):
    """For `svc upgrade --check` of another release."""
    program = Program(wheel.name, svc.__version__, is_executable=False)
    assert versions_in_wheel(Release(wheel.parent, {}), program) == own_versions()


def test_the_installed_program_is_not_the_checkout(program: Path, tmp_path: Path):
    python = program.with_name("python")
    code = "import svc; print(svc.__file__)"
    where = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert Path(where.strip()).is_relative_to(program.parents[1])
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, env=environment()).stdout
    assert told == f"svc, version {svc.__version__} ({svc.DISTRIBUTION})\n"


def test_the_installed_program_replays_a_report(program: Path, tmp_path: Path):
    """By the package beside `svc`."""
    (tmp_path / "traffic.jsonl").write_text('{"signals": {"userAgent": "curl/8"}}\n')
    command = [program, "replay", "traffic.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment())
    assert done.returncode == 0, done.stderr
    assert '"event":' in done.stdout


def test_the_installed_program_starts_from_nothing_and_serves_requests_and_a_page(program: Path, tmp_path: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        bind = f"127.0.0.1:{probe.getsockname()[1]}"
    process = subprocess.Popen(
        [program, "dev", "--data", str(tmp_path / "data"), "--bind", bind],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    try:
        assert process.stdout is not None
        shown = ""
        for line in process.stdout:
            shown += line
            if "Ctrl-C" in line:
                break
        assert "a new visitor" in shown
        assert "known visitor" in shown
        if pages.sdk_version() is not None:  # built here, and so by the wheel's own build
            assert b"svc.esm.js" in fetched(f"http://{bind}/try")
            assert len(fetched(f"http://{bind}/sdk/v1/svc.esm.js")) > 10_000
        page = fetched(f"http://{bind}/docs/api")
        assert b"swagger-ui-bundle.js" in page
        assert len(fetched(f"http://{bind}/docs/api/swagger-ui-bundle.js")) > 10_000
        if pages.HOME in pages.SITE:  # as for the SDK
            assert b"Documentation" in fetched(f"http://{bind}/docs/")
            assert len(fetched(f"http://{bind}/docs/searchindex.js")) > 10_000
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 0


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=20) as answer:
        assert answer.status == 200
        return answer.read()
