"""A start that is a fork of the loaded program (tests/support/preloaded.py) is as one that was made by itself."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from svc.kernel.store.directory import open_directory
from svc.world import World
from tests.support.ports import free_port
from tests.support.process import ENVIRONMENT, PRELOADED, PROGRAM, Served, finish, read_until, start

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "arguments", [("--version",), ("serve", "--print-config"), ("org", "list"), ("org", "--nothing")]
)
def test_a_forked_start_has_the_same_output_and_status(arguments: tuple[str, ...], tmp_path: Path):
    """With the environment and the folder that are given."""
    (tmp_path / "settings.toml").write_text("workers = 3\n")
    environment = {"PATH": os.environ["PATH"], "SVC_CONFIG": "settings.toml", "SVC_DATA": "nowhere"}
    forked = finish(*arguments, env=environment, cwd=tmp_path)
    itself = subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (itself.returncode, itself.stdout, itself.stderr)


ENDS = """
import atexit, sys, threading, time
atexit.register(print, "at exit")
threading.Thread(target=lambda: [time.sleep(0.1), print("a thread")]).start()
print("the program")
sys.exit({status!r})
"""


@pytest.mark.parametrize(("status", "code", "said"), [(3, 3, ""), (None, 0, ""), ("a word", 1, "a word\n")])
def test_threads_exit_functions_and_output_are_awaited(status: object, code: int, said: str):
    program = (PRELOADED, ENDS.format(status=status))
    with start(program=program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.communicate(timeout=60) == ("the program\na thread\nat exit\n", said)
    assert process.returncode == code


def test_output_without_a_reader_ends_it_quietly():
    ours, theirs = os.pipe()
    os.close(ours)
    done = finish("--help", stdout=theirs)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_terminal_is_one_for_a_forked_start_too():
    terminal, of_process = pty.openpty()
    done = finish("signals", stdout=of_process, env={**ENVIRONMENT, "TERM": "xterm"})
    os.close(of_process)
    assert done.returncode == 0
    assert "automation" in os.read(terminal, 1 << 16).decode()
    os.close(terminal)


def test_signals_reach_a_forked_start_alone_and_its_end_is_known(tmp_path: Path):
    bind = f"127.0.0.1:{free_port()}"
    process = start("dev", "--data", tmp_path / "dev", "--bind", bind, stdout=subprocess.PIPE, env=ENVIRONMENT)
    read_until(process, "Ctrl-C")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    world = World.real()
    open_directory(tmp_path / "data", world.run_sync, world.entropy).store.close()
    one, other = Served(tmp_path / "data"), start("docs", "--port", "0", stdout=subprocess.PIPE)
    one.kill()
    assert one._process.returncode == -signal.SIGKILL
    read_until(other, "Ctrl-C")
    other.terminate()
    other.communicate(timeout=60)


def test_a_forked_start_has_no_open_files_of_others(tmp_path: Path):
    world = World.real()
    open_directory(tmp_path, world.run_sync, world.entropy).store.close()
    with (tmp_path / "own").open("w") as own:
        served = Served(tmp_path)
        opened = {str(path.resolve()) for path in Path(f"/proc/{served.pid}/fd").iterdir()}
        assert str(Path(own.name).resolve()) not in opened
        assert f"/proc/{os.getpid()}" not in opened
        assert served.terminate() == 0
