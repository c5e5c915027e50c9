"""Where log lines go: whole and redacted, from every writer; and nobody waits for their reader."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from svc.command.logs import AsyncLogWriter

SECRET = "svc_sk_us_production_" + "aB3" * 16 + "c"


class Pipe:
    """A pipe whose reader does nothing unless it is told to."""

    def __init__(self, capacity: int) -> None:
        reader, writer = os.pipe()
        self.reader, self.writer = os.fdopen(reader), os.fdopen(writer, "w")
        self.lines = AsyncLogWriter(self.writer, lambda lost: f"lost {lost}\n", capacity)

    def read_on(self) -> list[str]:
        """Everything to the end."""
        threading.Thread(target=self.end).start()
        return self.reader.read().splitlines()

    def end(self) -> None:
        self.lines.close()
        self.writer.close()


@pytest.fixture
def pipe() -> Generator[Pipe]:
    """For ten lines. A write that waits for the reader would wait for ever: the alarm makes it a failure."""

    def hangs(*_: Any) -> None:
        raise TimeoutError("a line waited for its reader")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(30)
    made = Pipe(capacity=10)
    yield made
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    made.reader.close()
    made.end()


def test_lines_arrive_complete_and_in_order(pipe: Pipe):
    for number in range(3):
        pipe.lines.write(f"line {number}\n")
    assert pipe.read_on() == ["line 0", "line 1", "line 2"]


def test_a_stalled_reader_loses_lines_and_gets_their_count(pipe: Pipe):
    """The pipe is full after its first lines, the queue for others after ten more; the writer notices nothing."""
    for number in range(2000):
        pipe.lines.write(f"{number:05}{'x' * 9000}\n")
    got = pipe.read_on()
    lost = sum(int(line.removeprefix("lost ")) for line in got if line.startswith("lost "))
    numbers = [int(line[:5]) for line in got if not line.startswith("lost ")]
    assert 10 <= len(numbers) < 2000
    assert len(numbers) + lost == 2000
    assert numbers == sorted(numbers)


def test_a_reader_that_has_gone_causes_no_error(pipe: Pipe):
    pipe.reader.close()
    for _ in range(99):
        pipe.lines.write("nobody\n")
    pipe.lines.close()


def test_text_that_cannot_be_encoded_is_escaped(pipe: Pipe):
    pipe.lines.write("a \ud800 surrogate\n")
    assert pipe.read_on() == ["a \\ud800 surrogate"]


def test_a_line_never_goes_to_another_file_that_reuses_the_descriptor_of_a_closed_stream(tmp_path: Path):
    """It once went into a store."""
    stream, store = (tmp_path / "log").open("w"), tmp_path / "store"
    lines, number = AsyncLogWriter(stream, str), stream.fileno()
    stream.close()
    with store.open("w") as other:
        assert other.fileno() == number
        lines.write("line\n")
        lines.close()
    assert (store.read_text(), (tmp_path / "log").read_text()) == ("", "line\n")


def test_a_stream_that_is_not_a_file_accepts_lines_too():
    stream = io.StringIO()
    AsyncLogWriter(stream, str).write("line\n")
    assert stream.getvalue() == "line\n"


PREPARE = """
import logging, sys
import structlog
from svc.command.logs import set_up_logging
set_up_logging(sys.argv[1])
secret = sys.argv[2]
log = structlog.get_logger()
"""


@contextmanager
def said(code: str, log_format: str, status: int = 0) -> Generator[str]:
    """What a program says on standard error, in its own process since it is the process that is set up."""
    command = [sys.executable, "-c", PREPARE + code, log_format, SECRET]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert SECRET not in done.stderr
    assert SECRET[-20:] not in done.stderr
    yield done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["json", "console"])
def test_no_log_path_bypasses_the_redaction(log_format: str):
    code = """
log.info(secret, x={"a": [secret, {secret: secret.encode()}]})
logging.getLogger("a.library").warning("it has %s", secret)
def deep(key): raise ValueError(f"no {key}") from KeyError(key)
try: deep(secret)
except ValueError: log.exception("failed", key_id="key_1")
try: deep(secret)
except ValueError: logging.getLogger("another").exception("broke")
raise ExceptionGroup(secret, [RuntimeError(secret)])
"""
    with said(code, log_format, status=1) as text:
        assert text.count("svc_sk_us_production_[redacted]") >= 8
        if log_format == "json":
            lines = [json.loads(line) for line in text.splitlines()]
            assert [line["event"] for line in lines][1:] == [
                "it has svc_sk_us_production_[redacted]", "failed", "broke", "unhandled exception",
            ]  # fmt: skip
            assert [line["level"] for line in lines] == ["info", "warning", "error", "error", "critical"]
            assert lines[1]["logger"] == "a.library"
            assert "ValueError: no svc_sk_us_production_[redacted]" in lines[2]["exception"]


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_traceback_shows_no_local_variables(log_format: str):
    """They hold what is not in the form of a key: a pepper, a report, an address."""
    code = """
def deep(pepper):
    local = pepper * 2
    raise ValueError("broken")
try: deep("PEPPER" + "RPEPPE")
except ValueError: log.exception("failed")
"""
    with said(code, log_format) as text:
        assert "ValueError: broken" in text
        assert "PEPPERRPEPPE" not in text


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["json", "console"])
def test_what_a_request_binds_is_in_each_of_its_lines(log_format: str):
    code = """
with structlog.contextvars.bound_contextvars(trace_id="4bf92f35"): log.info("inside", span_id="00f067aa")
log.info("outside")
"""
    with said(code, log_format) as text:
        inside, outside = text.splitlines()
        assert "4bf92f35" in inside
        assert "00f067aa" in inside
        assert "trace_id" not in outside


@pytest.mark.slow
def test_every_logged_value_becomes_a_line():
    code = """
log.info("odd", a=object(), b="half \\ud800 a pair", c=float("nan"), d=2**80, e={(1, 2): 3, "f": {4}}, g=b"bytes")
log.info("next")
"""
    with said(code, "json") as text:
        odd, following = (json.loads(line) for line in text.splitlines())
        assert odd["a"].startswith("<object object at")
        assert (odd["b"], odd["d"], following["event"]) == ("half \ud800 a pair", 2**80, "next")
