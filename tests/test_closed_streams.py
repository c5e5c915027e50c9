"""Each command works as usual where the process that starts it has closed standard input, output or error.

Each start is a whole one, so a commit gets one of the five ways of closing.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.support.ports import free_port
from tests.support.process import ENVIRONMENT, PROGRAM, run_json

pytestmark = [pytest.mark.slow(2), pytest.mark.one_case]

CLOSED = ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"]


def shell(arguments: tuple[object, ...], closed: str) -> list[str]:
    return ["sh", "-c", f"exec {shlex.join([*PROGRAM, *map(str, arguments)])} {closed}"]


def ended(*arguments: object, closed: str) -> subprocess.CompletedProcess[str]:
    """The program itself, as no process that has loaded it before closes these descriptors."""
    return subprocess.run(
        shell(arguments, closed), capture_output=True, text=True, timeout=60, check=False, env=ENVIRONMENT
    )


@pytest.mark.parametrize("closed", CLOSED)
def test_a_command_is_done_and_prints_where_it_can(tmp_path: Path, closed: str):
    created = ended("org", "create", "shop", "--data", tmp_path, "--json", closed=closed)
    assert (created.returncode, created.stderr) == (0, "")
    assert [each["name"] for each in run_json("org", "list", "--data", str(tmp_path))["organizations"]] == ["shop"]
    listed = ended("org", "list", "--data", tmp_path, closed=closed)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert ("shop" in listed.stdout) is (">&-" not in closed.replace("2>&-", ""))


@pytest.mark.parametrize("closed", CLOSED)
def test_a_command_that_is_refused_ends_with_its_status_and_its_line_where_it_can(tmp_path: Path, closed: str):
    refused = ended("key", "revoke", "key_unknown", "--data", tmp_path / "nowhere", closed=closed)
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.count("\n") == (0 if "2>&-" in closed else 1)
    assert ended("key", "nonsense", closed=closed).returncode == 2


@pytest.mark.parametrize("closed", CLOSED)
def test_the_service_serves_and_gives_none_of_the_three_to_a_file_of_its_own(tmp_path: Path, closed: str):
    run_json("org", "create", "shop", "--data", str(tmp_path))
    port = free_port()
    command = shell(("serve", "--data", tmp_path, "--bind", f"127.0.0.1:{port}"), closed)
    null = subprocess.DEVNULL
    with subprocess.Popen(command, env=ENVIRONMENT, stdin=null, stdout=null, stderr=null) as process:
        try:
            until = time.monotonic() + 30
            while not _answers(port):
                assert process.poll() is None, "it ended"
                assert time.monotonic() < until
                time.sleep(0.1)
            named = [Path(f"/proc/{process.pid}/fd/{number}").resolve() for number in range(3)]
            assert named == [Path("/dev/null")] * 3
        finally:
            process.terminate()
        assert process.wait(timeout=30) == 0


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    except httpx.TransportError:
        return False
