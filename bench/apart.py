"""Functions run in processes of their own, with an end to their time: for stores that crash or hang who reads them.

A server that has imported one module forks for each call, so that one costs milliseconds and no thread is forked with
it. What the function returns or raises comes back; so does how its process died.
"""

from __future__ import annotations

import importlib
import os
import pickle
import resource
import select
import signal
import subprocess
import sys
from typing import Any, BinaryIO, NamedTuple, Self, cast

MEMORY_BYTES = 4 << 30
"""Address space: a damaged length cannot take the machine along."""


class Ended(NamedTuple):
    """How a call went."""

    how: str
    """`returned`; the name of an exception; `SIGBUS` and the like; `hung`."""
    value: Any
    """What was returned, or the exception's message."""


class Apart:
    """Calls functions of one module. `with` ends the server."""

    def __init__(self, module: str, *, limit_s: float = 20.0) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-c", f"from bench.apart import serve; serve({module!r}, {limit_s!r})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate(timeout=60)

    def call(self, function: str, *arguments: Any) -> Ended:
        """Arguments and what is returned are plain values: the server may know the module by another name."""
        server_in, server_out = cast("BinaryIO", self._server.stdin), cast("BinaryIO", self._server.stdout)
        pickle.dump((function, arguments), server_in)
        server_in.flush()
        return pickle.load(server_out)


def serve(name: str, limit_s: float) -> None:
    """Answer calls on standard input until it is closed."""
    module = importlib.import_module(name)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a function prints is no answer
    while True:
        try:
            function, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_forked(getattr(module, function), arguments, limit_s), answers)
        answers.flush()


def _forked(function: Any, arguments: tuple[Any, ...], limit_s: float) -> Ended:
    ours, theirs = os.pipe()
    process = os.fork()
    if not process:
        _tell(theirs, function, arguments)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        is_in_time = bool(select.select([pipe], [], [], limit_s)[0])
        if not is_in_time:
            os.kill(process, signal.SIGKILL)
        told = pipe.read()
    _, status = os.waitpid(process, 0)
    if not is_in_time:
        return Ended("hung", None)
    if told:
        return pickle.loads(told)
    code = os.waitstatus_to_exitcode(status)
    return Ended(signal.Signals(-code).name if code < 0 else f"exit status {code}", None)


def _tell(pipe: int, function: Any, arguments: tuple[Any, ...]) -> None:
    """In the forked process, which ends here."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        ended = Ended("returned", function(*arguments))
    except Exception as error:  # noqa: BLE001  whatever it is, it is the answer
        ended = Ended(type(error).__name__, str(error))
    with os.fdopen(pipe, "wb") as file:
        pickle.dump(ended, file)
    os._exit(0)
