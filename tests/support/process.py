"""A real `svc serve` process for tests that end it, one way or another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.preloaded import MAIN, Preloaded

PROGRAM = [sys.executable, "-c", MAIN]
PRELOADED = "preloaded"
"""In the place of the interpreter: the code behind it runs where `svc` is loaded, and changes modules before `main`."""
ENVIRONMENT = {
    **os.environ,
    "SVC_TRUSTED_PROXIES": "127.0.0.1/32",
    "SVC_DRAIN_LIMIT_S": "3",
    "SVC_METRICS_BIND": "127.0.0.1:0",  # servers of other tests run at the same time
}


def start(*arguments: object, program: Sequence[str] = PROGRAM, **how: Any) -> subprocess.Popen[str]:
    """Start the program, forked from one that has loaded it: unless it is another one, or the loader has to load more.
    `how` is as of `Popen`.
    """
    if "LD_PRELOAD" not in (how.get("env") or os.environ):
        if program == PROGRAM:
            return Preloaded(arguments, **how)
        if program[0] == PRELOADED:
            return Preloaded(arguments, code=program[1], **how)
    if program[0] == PRELOADED:
        program = [*PROGRAM[:2], program[1]]
    return subprocess.Popen([*program, *map(str, arguments)], text=True, **how)


def finish(*arguments: object, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    with start(*arguments, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}) as process:
        try:
            printed, said = process.communicate(timeout=60)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, printed, said)


def run(*arguments: str, status: int = 0, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the program to its end and insist on its exit status."""
    done = finish(*arguments, env={**ENVIRONMENT, **settings})
    assert done.returncode == status, f"svc {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def run_json(*arguments: str, **settings: str) -> Any:
    """As `run`, with `--json`: the object it printed."""
    return json.loads(run(*arguments, "--json", **settings).stdout)


def read_until(process: subprocess.Popen[str], word: str) -> str:
    """What it says on its standard output, up to the line with this word."""
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if word in line:
            return seen
    raise AssertionError(f"it ended without {word!r}:\n{seen}")


class Started:
    """`svc serve` with further options, also where it prints; `with` ends it and insists on status 0."""

    def __init__(self, directory: Path, *options: str, program: Sequence[str] = PROGRAM, **settings: str) -> None:
        self.log: list[str] = []
        with tempfile.TemporaryFile("w+") as printed:
            self._process = start(
                *("serve", "--data", directory, "--bind", "127.0.0.1:0", *options),
                program=program,
                stdout=printed,
                stderr=subprocess.PIPE,
                env={**ENVIRONMENT, **settings},
            )
            self.port = _port(self._process, self.log)
            printed.seek(0)
            self.printed = printed.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        _, rest = self._process.communicate(timeout=30)
        self.log += rest.splitlines(keepends=True)
        assert kind is not None or self._process.returncode == 0, "".join(self.log)


def _port(process: subprocess.Popen[str], log: list[str]) -> int:
    """Where it serves, once it does; its log up to there is kept."""
    assert process.stderr is not None
    for line in process.stderr:
        log.append(line)
        if '"serving"' in line:
            return int(json.loads(line)["addresses"][0].rsplit(":", 1)[1])
    raise AssertionError(f"the server did not start:\n{''.join(log)}")


class Served:
    """A running server. `port` is where it listens; its log is kept. One that is told its port may wait to serve."""

    def __init__(
        self,
        directory: Path,
        *,
        program: Sequence[str] = PROGRAM,
        inherited: Sequence[int] = (),
        port: int = 0,
        **settings: str,
    ) -> None:
        self.log: list[str] = []
        self._process = start(
            *("serve", "--data", directory, "--bind", f"127.0.0.1:{port}"),
            program=program,
            stderr=subprocess.PIPE,
            env={**ENVIRONMENT, **settings},
            pass_fds=inherited,
        )
        self._said = threading.Condition()
        self.port = port or _port(self._process, self.log)
        self._reader = threading.Thread(target=self._read_on, daemon=True)
        self._reader.start()  # a log that nobody reads stops the server when the pipe is full

    @property
    def pid(self) -> int:
        return self._process.pid

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def workers(self) -> list[int]:
        """The pids of its workers, while it has several."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(child) for child in children.split()]

    def said(self, event: str) -> list[dict[str, Any]]:
        """The lines of its log so far that tell of this."""
        with self._said:
            return [line for line in self._lines() if line["event"] == event]

    def _lines(self) -> list[dict[str, Any]]:
        """What it logged: not the stacks of a process that was stopped for long."""
        return [json.loads(line) for line in self.log if line.startswith("{")]

    def wait_until_said(self, event: str, times: int = 1) -> list[dict[str, Any]]:
        """As `said`, when there are so many of them."""
        with self._said:
            assert self._said.wait_for(lambda: len(self.said(event)) >= times, timeout=60), "".join(self.log)
            return self.said(event)

    def wait_for_workers(self, count: int) -> None:
        """Until so many of its workers serve that have not died."""
        with self._said:
            assert self._said.wait_for(lambda: self._serving() == count, timeout=60), "".join(self.log)

    def _serving(self) -> int:
        serving: set[int] = set()
        for line in self._lines():
            if line["event"] == "serving":
                serving.add(line["worker"])
            elif line["event"] == "worker died, restarting":
                serving.discard(line["worker"])
        return len(serving)

    def kill_worker(self, directory: Path, *, leader: bool) -> None:
        """The worker that is the leader, or one that is not, and wait until it is known to have died."""
        holder = leader_of(directory)
        victim = next(pid for pid in self.workers() if (pid == holder) == leader)
        before = len(self.said("worker died, restarting"))
        os.kill(victim, signal.SIGKILL)
        self.wait_until_said("worker died, restarting", before + 1)

    def hang_up(self) -> None:
        """SIGHUP."""
        self._process.send_signal(signal.SIGHUP)

    def kill(self) -> None:
        """As a power cut would: no warning, no clean-up."""
        self._process.send_signal(signal.SIGKILL)
        self._end()

    def terminate(self) -> int:
        """Ask it to end; its exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self._end()

    def wait(self) -> int:
        """Until it ends; its exit status."""
        return self._end()

    def kill_all(self, workers: Sequence[int]) -> None:
        """Whatever still runs of it and of these children, which it has not reaped."""
        if self._process.poll() is None:
            for pid in {*workers, *self.workers()} & set(self.workers()):
                os.kill(pid, signal.SIGKILL)
            self.kill()
        else:
            self._end()

    def _end(self) -> int:
        status = self._process.wait(timeout=30)
        self._reader.join()
        assert self._process.stderr is not None
        self._process.stderr.close()
        return status

    def _read_on(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._said:
                self.log.append(line)
                self._said.notify_all()


def leader_of(directory: Path) -> int:
    """The pid of the worker that holds the lock of the leader; waits for one where the last has just died."""
    inode = (directory / "keeper.lock").stat().st_ino
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for fields in map(str.split, Path("/proc/locks").read_text().splitlines()):
            if fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):
                return int(fields[4])
        time.sleep(0.01)
    raise AssertionError("no worker is the leader")
