"""Running `svc` as an operator does, for the tests of its command line."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import structlog
import trio

from svc.cli import main
from svc.command import logs
from tests.support.live import settings_of
from tests.support.process import finish

ROOT = Path(__file__).parents[2]


class Ran(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What was printed: one JSON object and nothing else."""
        assert self.status == 0, self.err
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    def assert_refused(self, *says: str) -> None:
        """Exit status 1, one clear line, and nothing where a program would read."""
        assert (self.status, self.out) == (1, "")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1
        for text in says:
            assert text in self.err

    def assert_usage(self) -> None:
        assert (self.status, self.out) == (2, "")
        assert self.err


Run = Callable[..., Ran]


@contextmanager
def logging_as_before() -> Iterator[None]:
    """A command sets logging up for its process, and here the process goes on: its standard error is a test's."""
    structlog_was, last_resort, hook = structlog.get_config(), logging.lastResort, sys.excepthook
    try:
        yield
    finally:
        structlog.configure(**structlog_was)
        logging.lastResort, sys.excepthook = last_resort, hook
        logs._standard_error.cache_clear()


def runner(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the program inside this process: `run("org", "list")`. Each data directory has its store on the engine of
    the test.
    """

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["svc", *map(str, arguments)])
        for name, value in store_of(arguments).items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        status: object = 0
        try:
            with logging_as_before():
                main()
        except SystemExit as ended:
            status = ended.code or 0
        assert isinstance(status, int)
        out, err = capsys.readouterr()
        return Ran(status, out, err)

    return run


def store_of(arguments: Sequence[object]) -> dict[str, str]:
    """The setting that names the store of a command's data directory, unless the command does."""
    directory = dict(pairwise(arguments)).get("--data") or os.environ.get("SVC_DATA")
    return {} if directory is None or "--store" in arguments else settings_of(Path(str(directory)))


def place_of(directory: Path) -> str:
    """What a message calls the store of a data directory."""
    return settings_of(directory).get("SVC_STORE", str(directory))


async def run_beside(*arguments: object) -> Ran:
    """Runs the program as a process of its own, beside the service of the test."""
    done = await trio.to_thread.run_sync(partial(finish, *arguments, cwd=ROOT))
    return Ran(done.returncode, done.stdout, done.stderr)
