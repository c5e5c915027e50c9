"""`promtool` for the tests of alerts: that of the machine, or from Debian's package, which is only unpacked."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

UNPACKED = Path(__file__).parents[2] / ".venv" / "prometheus"
"""Where the package is unpacked, once for all tests."""


@cache
def promtool() -> str:
    """The program. Where it cannot be had the test is skipped; where `PROMTOOL` is `required`, as in the workflow, it
    fails.
    """
    found = shutil.which("promtool") or _unpacked()
    if found is None and os.environ.get("PROMTOOL") == "required":
        pytest.fail("there is no promtool, and apt-get has no `prometheus`")
    return found or pytest.skip("needs promtool: Debian's `prometheus`")


def _unpacked() -> str | None:
    program = UNPACKED / "usr" / "bin" / "promtool"
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return None
    UNPACKED.mkdir(parents=True, exist_ok=True)
    with (UNPACKED / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists() and _ran("apt-get", "download", "-qq", "prometheus"):
            (package,) = UNPACKED.glob("*.deb")
            _ran("dpkg-deb", "--extract", package.name, ".")
            package.unlink()
    return str(program) if program.exists() else None


def _ran(*command: str) -> bool:
    try:
        return subprocess.run(command, cwd=UNPACKED, capture_output=True, check=False, timeout=60).returncode == 0
    except subprocess.TimeoutExpired:
        return False
