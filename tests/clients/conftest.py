"""The client library for Node.js, compiled once for all processes that test."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.clients.vectors import FOLDER
from tools.node_client import COMPILER, PACKAGE, compile_to, compiler
from tools.web import Node


class Library:
    """The compiled library in `folder`, and programs that import it."""

    def __init__(self, node: Node, folder: Path) -> None:
        self._node, self.folder = node, folder

    async def run(self, script: str, **values: Any) -> Any:
        """What `return` gives in a script, where `values` are constants."""
        constants = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items())
        program = f"""
            import {{
              ApiError, Client, UnreachableError, WebhookError, decide, verifyWebhook, visitorHeaders,
            }} from "@svc/client";
            {constants}
            async function main() {{ {script} }}
            console.log(JSON.stringify(await main() ?? null));
        """
        done = await trio.run_process(
            [str(self._node.node), "--input-type=module", "-e", program],
            cwd=self.folder,
            env=self._node.environment,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    def program(self, name: str, source: str | None = None, given: str = "") -> str:
        """What a program prints, with `given` as its input; `source`: written into the file of this name first."""
        if source is not None:
            (self.folder / name).write_text(source)
        command = [str(self._node.node), name]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._node.environment,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def type_errors(self, **programs: str) -> str:
        """What the compiler says of programs that use the library, each in a file of its name."""
        return self.faults({f"{name}.mts": source for name, source in programs.items()})

    def faults(self, programs: dict[str, str], **options: str | bool) -> str:
        """What the compiler says of these files, with these options of its own."""
        for name, source in programs.items():
            (self.folder / name).write_text(source)
        given = {"strict": True, "noEmit": True, "module": "NodeNext", "target": "ES2022", "types": [], **options}
        described = self.folder / f"tsconfig-{'-'.join(programs)}.json"  # other tests compile in this folder, too
        described.write_text(json.dumps({"compilerOptions": given, "files": list(programs)}))
        command = [str(self._node.node), str(COMPILER), "-p", described.name]
        return subprocess.run(
            command, cwd=self.folder, env=self._node.environment, capture_output=True, text=True, check=False
        ).stdout

    def packed(self) -> set[str]:
        """The files that npm puts into the package."""
        command = [*self._node.npm, "pack", "--dry-run", "--json", "--ignore-scripts"]
        place = self.folder / "node_modules" / "@svc" / "client"
        done = subprocess.run(
            command, cwd=place, env=self._node.environment, check=True, capture_output=True, text=True
        )
        (packed,) = json.loads(done.stdout)
        return {file["path"] for file in packed["files"]}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Library:
    node = compiler()
    if isinstance(node, str):
        pytest.skip(f"the library for Node.js can't be compiled: {node}")
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "node"
    package = folder / "node_modules" / "@svc/client"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (package / "package.json").exists():
            compile_to(node, package / "dist")
            for name in ("README.md", "LICENSE", "package.json"):
                shutil.copy(PACKAGE / name, package)
    return Library(node, folder)


@pytest.fixture(scope="session")
def hostile_service() -> Iterator[str]:
    """The address of a service that misbehaves."""
    program = [sys.executable, str(FOLDER / "hostile.py")]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        assert process.stdin is not None
        process.stdin.close()
