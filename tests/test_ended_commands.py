"""A command that is ended by a signal removes what it made for itself alone: there are personal data in it."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.preloaded import MAIN
from tests.support.process import ENVIRONMENT, PRELOADED, run, run_json, start

pytestmark = pytest.mark.slow(2)

IGNORES_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""As a shell starts a command in the background."""
IGNORES_HANGUPS = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
"""As `nohup` starts a command."""


def hanging_in(module: str, name: str) -> str:
    """Code with which a function of a module only sleeps."""
    return f"import importlib, time; importlib.import_module({module!r}).{name} = lambda *_: time.sleep(60)"


@contextmanager
def hanging(
    folder: Path, *arguments: object, before: str = "", makes: str = "*/store/data.mdb"
) -> Generator[subprocess.Popen[str]]:
    """A command that hangs with its temporary files in `folder`."""
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    env = {**ENVIRONMENT, "TMPDIR": str(folder)}
    with start(*arguments, program=(PRELOADED, f"{before}\n{MAIN}"), env=env, cwd=folder, **quiet) as process:
        assert process.stdin is not None
        process.stdin.write('{"signals": {}}\n')  # a replay waits for a second line
        process.stdin.flush()
        try:
            until(lambda: [*folder.glob(makes)])
            time.sleep(0.1)  # from its file to the place where it hangs
            yield process
        finally:
            process.kill()


def until(reached: Callable[[], Any], limit_s: float = 30) -> None:
    ends = time.monotonic() + limit_s
    while not reached():
        assert time.monotonic() < ends
        time.sleep(0.01)


def assert_removed(
    process: subprocess.Popen[str], number: signal.Signals, folder: Path, stays: frozenset[str] = frozenset()
) -> None:
    process.send_signal(number)
    assert process.wait(timeout=30) == (130 if number is signal.SIGINT else -number)
    assert {each.name for each in folder.iterdir()} == stays
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "temporary"
    made.mkdir()
    return made


ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", ENDING)
def test_an_ended_replay_leaves_neither_its_store_nor_a_part_of_its_output(folder: Path, number: signal.Signals):
    with hanging(folder, "replay", "-", "--output", "lines.jsonl") as process:
        assert len([*folder.iterdir()]) == 2
        assert_removed(process, number, folder)


@pytest.mark.parametrize("number", ENDING)
def test_an_ended_doctor_leaves_no_store(tmp_path: Path, folder: Path, number: signal.Signals):
    run("org", "create", "shop", "--data", str(tmp_path / "data"))
    slow = hanging_in("svc.cli.serve.health_checks", "_identified")
    with hanging(folder, "doctor", "--data", tmp_path / "data", before=slow) as process:
        assert_removed(process, number, folder)


@pytest.mark.parametrize("number", ENDING)
def test_an_ended_restore_can_be_begun_again(tmp_path: Path, folder: Path, number: signal.Signals):
    run("org", "create", "shop", "--data", str(tmp_path / "data"))
    run("backup", str(tmp_path / "backups"), "--data", str(tmp_path / "data"))
    words = ("restore", tmp_path / "backups", "--data", folder / "restored")
    with hanging(folder, *words, before=hanging_in("svc.features.backup.restore", "_verify")) as process:
        assert_removed(process, number, folder)
    assert run_json(*map(str, words))["lost_s"] == 0


@pytest.mark.parametrize("number", ENDING)
def test_an_ended_compaction_leaves_no_copy_of_the_store(tmp_path: Path, number: signal.Signals):
    run("org", "create", "shop", "--data", str(tmp_path))
    store, slow = tmp_path / "store", hanging_in("svc.features.upgrade.compact", "_verify")
    stays = frozenset(each.name for each in store.iterdir())
    words = ("store", "compact", "--data", tmp_path)
    with hanging(store, *words, before=slow, makes=".compact.partial/data.mdb") as process:
        assert_removed(process, number, store, stays)
    assert run_json("check", "--data", str(tmp_path))["ok"]


def test_a_command_in_the_background_of_a_shell_ends_too(folder: Path):
    with hanging(folder, "replay", "-", before=IGNORES_INTERRUPTS) as process:
        assert_removed(process, signal.SIGTERM, folder)


def test_a_command_under_nohup_goes_on_when_its_terminal_is_closed(folder: Path):
    with hanging(folder, "replay", "-", before=IGNORES_HANGUPS) as process:
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        assert_removed(process, signal.SIGTERM, folder)
