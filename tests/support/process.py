"""A real `svc serve` process for tests that end it, one way or another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-c", "import svc.cli; svc.cli.main()"]
ENVIRONMENT = {**os.environ, "SVC_TRUSTED_PROXIES": "127.0.0.1/32", "SVC_DRAIN_LIMIT_S": "3"}


def run(*arguments: str, status: int = 0, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end and insist on its exit status."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**ENVIRONMENT, **settings},
    )
    assert done.returncode == status, f"svc {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def run_json(*arguments: str, **settings: str) -> Any:
    """As `run`, with `--json`: the object it printed."""
    return json.loads(run(*arguments, "--json", **settings).stdout)


class Served:
    """A running server. `port` is where it listens; its log is kept."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self.log: list[str] = []
        self._process = subprocess.Popen(
            [*PROGRAM, "serve", "--data", str(directory), "--bind", "127.0.0.1:0"],
            stderr=subprocess.PIPE,
            text=True,
            env={**ENVIRONMENT, **settings},
        )
        self.port = self._wait_until_serving()

    def kill(self) -> None:
        """As a power cut would: no warning, no clean-up."""
        self._process.send_signal(signal.SIGKILL)
        self._end()

    def terminate(self) -> int:
        """Ask it to end; its exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        _, rest = self._process.communicate(timeout=30)
        self.log.extend(rest.splitlines())
        return self._process.returncode

    def _wait_until_serving(self) -> int:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.log.append(line)
            if '"serving"' in line:
                return int(json.loads(line)["addresses"][0].rsplit(":", 1)[1])
        raise AssertionError(f"the server did not start:\n{''.join(self.log)}")
