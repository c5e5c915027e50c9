"""Where log lines go, and what may be in them.

One line per entry on standard error: JSON, or text for a person. Two things hold for every line, from any source. What
has the form of a key or a signing secret is taken out. And nobody waits for the log: a thread writes it, so that a
reader that stops reading, or a slow disk, costs lines, which are counted, and never holds up the loop.
"""

from __future__ import annotations

import atexit
import faulthandler
import json
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from functools import cache
from types import TracebackType
from typing import Any, TextIO, cast

import msgspec
import structlog

from svc.command.output import has_colors
from svc.kernel.access.credentials import redact
from svc.kernel.config import Config, LogFormat

log = structlog.get_logger()

_FAST = msgspec.json.Encoder(enc_hook=repr)
_LENIENT = json.JSONEncoder(default=repr, skipkeys=True)
QUEUE_CAPACITY = 4096
"""Lines that may wait to be written: some seconds of a busy service."""
BATCH_INTERVAL_S = 0.01
"""How long lines gather for one write."""
FLUSH_TIMEOUT_S = 1.0
"""At the end of the process, for what waits to be written."""


def with_log_format(config: Config) -> Config:
    """Return `config` with what `auto` stands for: `console` if standard error is a terminal, else `json`."""
    if config.log_format != "auto":
        return config
    return msgspec.structs.replace(config, log_format="console" if sys.stderr.isatty() else "json")


STANDARD_ERROR = 2
"""The descriptor of standard error, whatever stands in for the stream."""


def set_up_logging(log_format: LogFormat = "console", worker: int | None = None) -> None:
    """Set up, for this process, structlog, what libraries log, and the exception that ends it; all to standard error.

    The program does it once for every command. A service calls it again for the format that its settings name, and one
    of several workers for its number, which is in each of its lines.
    """
    lines = _standard_error()
    structlog.configure(
        processors=_chain(log_format, {} if worker is None else {"worker": worker}),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", lines)),
    )
    logging.lastResort = _Forward(logging.WARNING)
    sys.excepthook = _log_unhandled
    # A store that is cut while it is read ends the process by SIGBUS: then this says so, and where it happened.
    faulthandler.enable(STANDARD_ERROR, all_threads=False)


@cache
def _standard_error() -> AsyncLogWriter:
    """Return a log writer for standard error, which ends with this process."""

    def lost_line(lost: int) -> str:
        chain = structlog.get_config()["processors"]
        return _line(chain, "log lines lost: they were not read in time", lines=lost)

    lines = AsyncLogWriter(sys.stderr, lost_line)
    atexit.register(lines.close)
    os.register_at_fork(after_in_child=lines.restart)
    return lines


def _chain(log_format: LogFormat, always: dict[str, Any]) -> list[structlog.typing.Processor]:
    def add_always(_: Any, __: str, fields: structlog.typing.EventDict) -> structlog.typing.EventDict:
        return {**always, **fields}

    chain: list[structlog.typing.Processor] = [
        add_always,
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if log_format == "json":
        chain += [structlog.processors.format_exc_info, _as_json]
    else:
        # The other formatters show local variables, among which keys are.
        plain, colors = structlog.dev.plain_traceback, has_colors(sys.stderr)
        others = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)
        chain.append(RequestLines(others, colors=colors))
    return [*chain, _redacted]


def _as_json(_: Any, __: str, fields: structlog.typing.EventDict) -> str:
    try:
        return _FAST.encode(fields).decode()
    except (TypeError, UnicodeEncodeError):  # half a surrogate pair, or a key that is not text
        return _LENIENT.encode(fields)


def _redacted(_: Any, __: str, line: Any) -> str:
    """Redact the whole line, last: nothing is nested any more, and nothing comes after."""
    return redact(line)


def _line(chain: list[structlog.typing.Processor], event: str, **fields: object) -> str:
    line: Any = {"event": event, **fields}
    for process in chain:
        line = process(None, "warning", line)
    return line + "\n"


class AsyncLogWriter:
    """A stream that takes whole lines without blocking and writes them from a thread of its own.

    `lost_line` makes the line that says how many were lost. One thread at a time may write, as structlog sees to.
    """

    def __init__(self, stream: TextIO, lost_line: Callable[[int], str], capacity: int = QUEUE_CAPACITY) -> None:
        self._stream = stream
        self._lost_line = lost_line
        self._capacity = capacity
        self.restart()

    def restart(self) -> None:
        """Begin with an empty queue and a thread: at the start, and in a forked process, whose parent writes what was
        queued before. Without a thread, and so without a queue, where the stream has no file descriptor.
        """
        self._queue: deque[str] = deque()
        self._lost = 0
        self._reported = 0
        """How many of the lost ones were reported; the thread's, as `_lost` is the writer's."""
        self._something, self._closing = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        try:
            # Its own: where the stream is closed while lines wait, the number of the other may be another file's.
            self._descriptor = os.dup(self._stream.fileno())
        except OSError:  # not a file, such as what stands in for one in a test
            return
        self._thread = threading.Thread(target=self._write_until_closed, name="log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> int:
        """Queue one line and return its length. Never blocks; where `capacity` lines are queued, the line is lost
        and counted. A stream without a file descriptor is written to directly.
        """
        if self._thread is None:
            self._stream.write(line)
        elif len(self._queue) < self._capacity:
            self._queue.append(line)
            if not self._something.is_set():
                self._something.set()
        else:
            self._lost += 1
        return len(line)

    def flush(self) -> None:
        """Do nothing: the thread writes what is queued."""

    def close(self) -> None:
        """Write what is queued, waiting at most `FLUSH_TIMEOUT_S` for a reader that is slow."""
        self._closing.set()
        self._something.set()
        if self._thread is not None:
            self._thread.join(FLUSH_TIMEOUT_S)

    def _write_until_closed(self) -> None:
        while not self._closing.is_set():
            self._something.wait()
            self._closing.wait(BATCH_INTERVAL_S)
            self._something.clear()  # before they are taken: what comes later sets it again
            self._write_all()
        self._write_all()
        os.close(self._descriptor)

    def _write_all(self) -> None:
        """Write the lines that wait now, and how many found the queue full."""
        taken = [self._queue.popleft() for _ in range(len(self._queue))]
        lost = self._lost - self._reported
        if lost:
            taken.append(self._lost_line(lost))
        data = "".join(taken).encode(errors="backslashreplace")
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:  # the reader has gone, or the disk is full
            return
        self._reported += lost


class _Forward(logging.Handler):
    """A handler that logs what libraries say through `logging`, as lines like all others."""

    def emit(self, record: logging.LogRecord) -> None:
        log.log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info)


def _log_unhandled(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    log.critical("unhandled exception", exc_info=(kind, error, traceback))


RESET, DIM, RED, GREEN, YELLOW, CYAN = "\x1b[0m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"
LEVEL_COLORS = {"low": GREEN, "medium": YELLOW, "high": RED}
LONGEST_PATH = 120
METHOD_WIDTH, PATH_WIDTH = 6, 28


class RequestLines:
    """A structlog processor: renders the lines of requests that have a `path`, and leaves all others to `others`.

    `12:03:55  POST   /api/v1/identify  200  4.1 ms  visitor 0qpp... new  score 12 low  org_... key_... 019b...`
    """

    def __init__(self, others: structlog.dev.ConsoleRenderer, *, colors: bool) -> None:
        self._others = others
        self._colors = colors

    def __call__(self, logger: Any, name: str, fields: structlog.typing.EventDict) -> str:
        """Return the line without its end."""
        if "path" not in fields or fields.get("event") not in ("request", "client closed request"):
            return self._others(logger, name, fields)
        parts = [
            self._in(DIM, str(fields["timestamp"])[11:19]),
            f"{fields['method']:<{METHOD_WIDTH}} {_printable(fields['path']):<{PATH_WIDTH}}",
            self._status(fields.get("status")),
            f"{fields['duration_ms']:>7} ms",
            *self._verdict(fields),
            *self._refusal(fields),
            self._in(
                DIM, " ".join(str(fields[name]) for name in ("organization", "key_id", "request_id") if name in fields)
            ),
        ]
        return "  ".join(part for part in parts if part)

    def _status(self, status: int | None) -> str:
        if status is None:
            return self._in(YELLOW, "gone")
        return self._in(
            GREEN if status < 300 else CYAN if status < 400 else YELLOW if status < 500 else RED, str(status)
        )

    def _verdict(self, fields: structlog.typing.EventDict) -> list[str]:
        if "visitor_id" not in fields:
            return []
        known = "new" if fields["visitor_is_new"] else f"{fields['visitor_confidence']} %"
        if not fields["identifiable"]:
            known = "not identifiable"
        level = fields["suspect_level"]
        score = f"score {fields['suspect_score']} {level}" if level in LEVEL_COLORS else "no score"
        return [f"visitor {fields['visitor_id']} {known}", self._in(LEVEL_COLORS.get(level, DIM), score)]

    def _refusal(self, fields: structlog.typing.EventDict) -> list[str]:
        why = [str(fields[name]) for name in ("code", "reason") if name in fields]
        why += fields.get("fields", [])
        return [self._in(YELLOW, _printable(": ".join(why)))] if why else []

    def _in(self, color: str, text: str) -> str:
        return f"{color}{text}{RESET}" if self._colors and text else text


def _printable(text: str) -> str:
    """Return a text without control characters, which could move the cursor, and not longer than a line."""
    shown = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return shown if len(shown) <= LONGEST_PATH else shown[: LONGEST_PATH - 3] + "..."
