"""The package `@svc/fingerprint-compat`, compiled once for all processes that test, and what its README shows."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
from pathlib import Path

import pytest
import trio

from tests.support.chromium import built
from tools.node_client import FINGERPRINT_COMPAT as PACKAGE
from tools.node_client import compile_to, compiler
from tools.web import Node

README = (PACKAGE / "README.md").read_text()


def shown(kind: str, containing: str) -> str:
    """One code block of the README."""
    found = re.findall(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (block,) = [block for block in found if containing in block]
    return block


def changed(containing: str) -> tuple[list[str], list[str], str]:
    """A program of the README that was changed: the lines that went, those that came, and what it is then."""
    lines = shown("diff", containing).splitlines()
    went, came = ([line[1:] for line in lines if line.startswith(mark)] for mark in "-+")
    return went, came, "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))


class Compatible:
    """The package in the `node_modules` of a folder, where programs import it."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node, self.folder = node, folder

    @property
    def package(self) -> Path:
        return self.folder / "node_modules" / "@svc" / "fingerprint-compat"

    async def run(self, program: str, name: str = "program.mjs") -> object:
        """What a program prints as JSON."""
        (self.folder / name).write_text(program)
        command = [str(self.node.node), str(self.folder / name)]
        environment = self.node.environment
        done = await trio.run_process(command, env=environment, capture_stdout=True, capture_stderr=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)


def installed(folders: pytest.TempPathFactory, worker_id: str) -> Compatible:
    """Compiled, or the test is skipped."""
    built()
    node = compiler()
    if isinstance(node, str):
        pytest.skip(f"@svc/fingerprint-compat can't be compiled: {node}")
    own = folders.getbasetemp()
    found = Compatible(node, (own if worker_id == "master" else own.parent) / "fingerprint")
    with found.folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (found.package / "package.json").exists():
            compile_to(node, found.package / "dist", PACKAGE)
            for name in ("README.md", "LICENSE", "package.json"):
                shutil.copy(PACKAGE / name, found.package)
    return found
