"""The client library for Node.js, compiled once for all processes that test."""

from __future__ import annotations

import fcntl
import json
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

    def type_errors(self, **programs: str) -> str:
        """What the compiler says of programs that use the library, each in a file of its name."""
        for name, source in programs.items():
            (self.folder / f"{name}.mts").write_text(source)
        options = {"strict": True, "noEmit": True, "module": "NodeNext", "target": "ES2022", "types": []}
        described = {"compilerOptions": options, "files": [f"{name}.mts" for name in programs]}
        (self.folder / "tsconfig.json").write_text(json.dumps(described))
        command = [str(self._node.node), str(COMPILER), "-p", "."]
        return subprocess.run(
            command, cwd=self.folder, env=self._node.environment, capture_output=True, text=True, check=False
        ).stdout


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
            (package / "package.json").write_text((PACKAGE / "package.json").read_text())
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
