"""A display, and one browser on it: started, watched until its report is in, and ended by its own process ids.

What may live here: processes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from bench.measures import family as processes_of

PATIENCE_SECONDS = 3.0
FIRST_DISPLAY = 77
KEPT = ("PATH", "USER", "LOGNAME")


@contextmanager
def display(screen: str, manager: str = "openbox") -> Iterator[Mapping[str, str]]:
    """An X server with a screen such as `1920x1080x24`, and a window manager on it. Its number is the first from
    `FIRST_DISPLAY` on that no other server has.
    """
    number = next(number for number in count(FIRST_DISPLAY) if not Path(f"/tmp/.X{number}-lock").exists())
    name = f":{number}"
    server = _start(("Xvfb", name, "-screen", "0", screen, "-dpi", "96", "-nolisten", "tcp"), dict(os.environ))
    try:
        _until(lambda: Path(f"/tmp/.X11-unix/X{number}").exists())
        environment = {"DISPLAY": name}
        window_manager = _start((manager,), {**os.environ, **environment})
        time.sleep(0.5)
        try:
            yield environment
        finally:
            stop(window_manager)
    finally:
        stop(server)
        Path(f"/tmp/.X{number}-lock").unlink(missing_ok=True)
        Path(f"/tmp/.X11-unix/X{number}").unlink(missing_ok=True)


def environment_of(home: Path, more: Mapping[str, str]) -> dict[str, str]:
    """What a program finds of a person's session: a home of its own and little else."""
    run = home / "run"
    run.mkdir(parents=True, exist_ok=True)
    run.chmod(0o700)
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    homes = {"HOME": str(home), "XDG_RUNTIME_DIR": str(run), "XDG_CONFIG_HOME": str(home / ".config")}
    return {**kept, **homes, "LANG": "en_US.UTF-8", "NO_AT_BRIDGE": "1", **more}


def start(command: Sequence[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """A browser, in a process group of its own, with a message bus where there is one to be had."""
    bus = ("dbus-run-session", "--") if shutil.which("dbus-run-session") else ()
    with log.open("ab") as output:
        return subprocess.Popen(
            (*bus, *command), env=dict(environment), stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that came of it: asked first, as by closing a session, then told."""
    family = processes_of(process.pid)
    _send(family, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and any(_is_running(pid) for pid in family):
        process.poll()
        time.sleep(0.05)
    _send([pid for pid in family if _is_running(pid)], signal.SIGKILL)
    process.wait()


def _start(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, env=dict(environment), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _until(done) -> None:
    for _ in range(100):
        if done():
            return
        time.sleep(0.05)
    raise TimeoutError("the display did not start")


def _send(pids: Sequence[int], what: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            continue


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "Z"
