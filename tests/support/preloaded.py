"""Starts of `svc` that are forks of a process which has loaded it: most of the CPU of a start is imports.

    with Preloaded(["serve", "--data", directory], stderr=subprocess.PIPE) as process: ...

The process is as one that was started by itself: a child of this one with arguments, environment, folder and standard
streams of its own, which ends as the interpreter ends: only its memory is not taken apart, which would copy all of it,
and take ten times as long as a command. `code` takes the place of a call of `svc.cli.main`, to change
modules before: they are loaded, so one that has copied a name at its import keeps what it has. What is under test
before that, or needs other descriptors, is started from `tests.support.process.PROGRAM` itself.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

STREAMS = ("stdin", "stdout", "stderr")
LONGEST = 1 << 17
"""Bytes of arguments and environment."""
MAIN = "import svc.cli; svc.cli.main()"
_CODE = "from tests.support.preloaded import run; run()"
_PR_SET_CHILD_SUBREAPER = 36


class Preloaded(subprocess.Popen[str]):
    """`svc` with these arguments. The rest is as of `subprocess.Popen`, without what concerns the start itself."""

    def __init__(self, arguments: Sequence[object], *, code: str = MAIN, **how: Any) -> None:
        self._code = code
        super().__init__(["svc", *map(str, arguments)], text=True, **how)

    def _execute_child(self, *how: Any) -> None:
        given = signature(super()._execute_child).bind(*how).arguments
        assert not given["pass_fds"]
        assert given["preexec_fn"] is None
        ends = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        streams = [own if end == -1 else end for own, end in enumerate(ends)]
        environment = dict(os.environ if given["env"] is None else given["env"])
        self.pid = _parent().bear(self._code, given["args"], environment, str(given["cwd"] or Path.cwd()), streams)
        self._child_created = True
        names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in names))


class _Parent:
    """The process that has loaded the program, seen from here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._socket = ours
            self._process = subprocess.Popen([sys.executable, "-c", _CODE], stdin=theirs)
        # A child of its child, whose parent has ended, becomes a child of this process.
        assert ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0

    def bear(
        self, code: str, arguments: Sequence[str], environment: dict[str, str], folder: str, streams: Sequence[int]
    ) -> int:
        """The process id of a new one."""
        message = json.dumps([code, list(arguments), environment, folder]).encode()
        assert len(message) <= LONGEST
        with self._lock:
            socket.send_fds(self._socket, [message], streams)
            return int(self._socket.recv(64))

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


@cache
def _parent() -> _Parent:
    parent = _Parent()
    atexit.register(parent.close)
    return parent


def run() -> None:
    """Load the program, and run it in each process that is to be it."""
    code = _born()
    status: object = 0
    try:
        exec(code, {"__name__": "__main__"})
    except SystemExit as ended:
        status = ended.code or 0
    if not isinstance(status, int):
        sys.exit(status)  # pyright: ignore[reportArgumentType]  a message, which the interpreter writes
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]  waits for threads
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(status)  # the interpreter says what is wrong with the stream
    os._exit(status & 0xFF)


def _born() -> str:
    """Load the program, and return in each process that is to run it, with its code."""
    control = socket.socket(fileno=os.dup(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the tests
    _load()
    while True:
        message, streams, _, _ = socket.recv_fds(control, LONGEST, len(STREAMS))
        if not message:
            os._exit(0)
        told, tell = os.pipe()
        child = os.fork()
        if not child:
            code = _become(message, streams, tell)
            os.closerange(3, 1 + max(control.detach(), told, tell, *streams))
            return code
        os.waitpid(child, 0)
        control.send(os.read(told, 64))
        for descriptor in (told, tell, *streams):
            os.close(descriptor)


def _load() -> None:
    for unused in ("rich", "yaml"):  # as `main` does
        sys.modules.setdefault(unused, None)  # pyright: ignore[reportArgumentType]
    import iporigin

    import svc.cli
    import svc.cli.serve.node
    import svc.cli.serve.processes
    from svc.identify.useragent.agent import load_patterns

    for location in svc.cli.COMMANDS.values():
        importlib.import_module(location.full_name)
    load_patterns()  # as each `serve` does, in half of the CPU of its start
    iporigin.dataset_info()
    gc.collect()
    gc.freeze()


def _become(message: bytes, streams: Sequence[int], tell: int) -> str:
    """Become the process that was asked for, and return its code; the one between it and its parent ends."""
    if child := os.fork():
        os.write(tell, str(child).encode())
        os._exit(0)
    code, arguments, environment, folder = json.loads(message)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = arguments
    for number, name in enumerate(STREAMS):
        _open_stream(number, name)
    return code


def _open_stream(number: int, name: str) -> None:
    """As the interpreter does at its start."""
    was: io.TextIOWrapper = getattr(sys, name)
    raw = open(number, "wb" if number else "rb", closefd=False)  # noqa: SIM115  open until the process ends
    buffering = name == "stderr" or raw.isatty()
    stream = io.TextIOWrapper(raw, was.encoding, was.errors, line_buffering=buffering)
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)
