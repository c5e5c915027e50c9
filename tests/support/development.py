"""A real `svc dev`, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from svc.command.local_service import KEYS_FILE
from tests.support.ports import free_port
from tests.support.process import PROGRAM, start

ROOT = Path(__file__).parents[2]
PATIENCE_S = 30


@contextmanager
def running(
    *arguments: object, until: str, program: Sequence[str] = PROGRAM, **settings: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program, and what it printed up to the line with these words."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")} | settings
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = start(*arguments, program=program, **pipes, env=environment, cwd=ROOT)
    assert process.stdout is not None
    try:
        seen = ""
        for line in process.stdout:
            seen += line
            if until in line:
                break
        assert until in seen, seen
        yield process, seen
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)


class Dev(NamedTuple):
    data: Path
    url: str

    def options(self) -> tuple[object, ...]:
        """Of commands beside it: where it listens is in its file of keys."""
        return ("--data", self.data)

    @property
    def keys(self) -> dict[str, str]:
        """Kind -> the key that it printed."""
        written = json.loads((self.data / KEYS_FILE).read_text())
        return {kind: written[kind] for kind in ("public", "secret", "management")}


@contextmanager
def development_service(data: Path, program: Sequence[str] = PROGRAM, **settings: str) -> Iterator[Dev]:
    """`svc dev` in this data directory, until the block ends."""
    bind = f"127.0.0.1:{free_port()}"
    with running("dev", "--data", data, "--bind", bind, until="Ctrl-C", program=program, **settings):
        yield Dev(data, f"http://{bind}")
