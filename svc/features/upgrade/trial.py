"""An upgrade tried on a copy of the store, by the program of a downloaded release.

SCRATCH/svc-upgrade-check-XXXXXXXX/     removed at the end, however that comes; else by the next trial
    program     the executable, copied while its sum was compared
    data/       a data directory with the copy of the store and no pepper
    home/       what the program takes for its user's folder, its cache and the one for temporary files

The program runs without the settings of the service and without its pepper, so that it can neither serve nor send
anything. The folder is locked by the process that tries an upgrade, and by the programs that it has started: a folder
without a lock was left by a trial that was killed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import msgspec

from svc.features.backup.snapshots import copied
from svc.features.upgrade.release import Program, Release, StoreVersions, copy_verified
from svc.features.upgrade.upgrade import open_as_it_is
from svc.kernel.store.engine import CheckDepth, EngineError
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.files.ending import ending_signals
from svc.kernel.store.steps import Steps
from svc.kernel.values.errors import DirectoryError, OperatorError
from svc.world import World, elapsed_s

PREFIX = "svc-upgrade-check-"
COPIES = 3
"""Of the store, at most: the one that is tried, the one that an upgrade keeps, and the pages that it rewrites."""
UNPACKED = 4
"""How many times its own size an executable takes, with what it unpacks."""
LEFT_BYTES = 256 << 20
"""That stay free on the disk, which may be that of a running service."""
FIRST_START_S = 120
"""For a program that unpacks itself when it is started for the first time."""

T = TypeVar("T")


class TrialError(OperatorError):
    """The program of the release failed, or could not be started."""


class Upgrading(msgspec.Struct, frozen=True):
    """What `svc upgrade --json` prints."""

    store_version_before: int
    store_version: int
    kept: str | None
    """The folder with the copy of the store before; `None` where none was kept."""
    seconds: float
    """Without the start of the program."""


class ProgramVersions(StoreVersions, frozen=True, kw_only=True):
    """What `svc upgrade --versions --json` prints."""

    program: str


class _Checked(msgspec.Struct, frozen=True):
    """What `svc check --json` prints; here only what is needed."""

    violations: int
    first: list[str]


class Timing(NamedTuple):
    """What was measured on a copy."""

    bytes: int
    """Of the copy, which has no free pages."""
    copy_s: float
    upgrade_s: float
    check_s: float


class Trial:
    """The program of a release in a folder of its own, until the end of the block of `trial`."""

    def __init__(self, folder: Path, descriptor: int, map_gib: float, left_behind: list[str]) -> None:
        self.left_behind = left_behind
        """Folders of trials that were killed, which were removed."""
        self._folder = folder
        self._descriptor = descriptor
        self._map_gib = map_gib

    def install(self, release: Release, program: Program) -> ProgramVersions:
        """Copy the executable here and ask it for its versions. Raises `TrialError`, `DirectoryError`, and
        `ReleaseError` if its sum is not that of the release.
        """
        size = (release.folder / program.file).stat().st_size
        files.require_space(UNPACKED * size + LEFT_BYTES, self._folder.parent, f"starting {program.file}", _NO_SPACE)
        with files.reporting("cannot write", self._folder):
            copy_verified(release, program.file, self._folder / "program")
        found = self._asked(ProgramVersions, "upgrade", "--versions", within_s=FIRST_START_S)
        if found.program != program.version:
            raise TrialError(f"{program.file} says that it is {found.program}: it is not what its name says")
        return found

    def upgrade(self, store: Path, versions: StoreVersions, steps: Steps) -> Timing:
        """Copy the store in a folder, which a service may be writing to, and upgrade and check the copy. Raises
        `TrialError` with what the program says, `DirectoryError` and `CorruptionError`.
        """
        data = self._folder / "data"
        began_at = elapsed_s()
        file = self._copy(store, data / "store", steps)
        copied_at, size = elapsed_s(), file.stat().st_size
        steps.stage("upgrading the copy", 1)
        done = self._asked(Upgrading, "upgrade", "--data", str(data))
        upgraded_at = elapsed_s()
        if done.store_version != versions.store_version:
            raise TrialError(
                f"the copy has version {done.store_version} after the upgrade, and the program serves "
                f"{versions.store_version}"
            )
        steps.stage("checking the copy", 1)
        checked = self._asked(_Checked, "check", str(file), statuses=(0, 1))
        if checked.violations:
            raise TrialError(
                f"after the upgrade the copy has {checked.violations} violations: {checked.first[0]}. `svc check` says "
                "whether the store has them now"
            )
        return Timing(size, copied_at - began_at, done.seconds, elapsed_s() - upgraded_at)

    def _copy(self, store: Path, target: Path, steps: Steps) -> Path:
        target.mkdir(parents=True, mode=0o700)
        try:
            with closing(open_as_it_is(store)) as engine, files.reporting("cannot write", target):
                used_bytes = engine.space().used_bytes
                files.require_space(COPIES * used_bytes + LEFT_BYTES, self._folder.parent, _THE_TRIAL, _NO_SPACE)
                engine.check_file()
                engine.check(CheckDepth.BRANCHES)
                steps.stage("copying the store", 1)
                return copied(engine.copy, target, World.real().now_ms)[0]
        except EngineError as error:
            raise DirectoryError(f"cannot copy {store} to {target}: {error}") from error

    def _asked(self, form: type[T], *words: str, within_s: float | None = None, statuses: tuple[int, ...] = (0,)) -> T:
        """Run a command of the program with `--json` and return what it prints. Raises `TrialError`."""
        said = f"the new program's `svc {words[0]}`"
        try:
            done = self._run(*words, "--json", within_s=within_s)
        except subprocess.TimeoutExpired:
            raise TrialError(f"{said} has not ended after {within_s:.0f} s") from None
        except OSError as error:
            hint = "; name a folder whose file system is not mounted with noexec with --scratch"
            raise TrialError(
                f"the new program cannot be started in {self._folder}: {error.strerror}"
                f"{hint if isinstance(error, PermissionError) else ''}"
            ) from error
        if done.returncode < 0:
            raise TrialError(f"{said} was ended by {signal.Signals(-done.returncode).name}")
        try:
            if done.returncode in statuses:
                return msgspec.json.decode(done.stdout, type=form)
        except msgspec.DecodeError:
            pass
        because = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1].removeprefix("svc: ")
        raise TrialError(f"{said} failed: {because}")

    def _run(self, *words: str, within_s: float | None) -> subprocess.CompletedProcess[str]:
        home = self._folder / "home"
        home.mkdir(mode=0o700, exist_ok=True)
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(home),
            "TMPDIR": str(home),
            "XDG_CACHE_HOME": str(home),
            "SVC_DATA": str(self._folder / "data"),
            "SVC_MAP_GIB": str(self._map_gib),
        }
        with _killed_by_signals() as start:
            process = start(
                [str(self._folder / "program"), *words],
                env=environment,
                cwd=home,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(self._descriptor,),
            )
            printed, said = process.communicate(timeout=within_s)
        return subprocess.CompletedProcess(words, process.returncode, printed, said)


@contextmanager
def _killed_by_signals() -> Generator[Callable[..., subprocess.Popen[str]]]:
    """Return how to start a program in a session of its own. It is killed by an exception in the block, and by a signal
    to end, with all that it has started, also where it has ended itself. The signal takes its usual effect after the
    block, so that it cannot come between the start of the program and the moment when somebody knows of it.
    """
    process: subprocess.Popen[str] | None = None
    received: list[int] = []

    def start(words: Sequence[str], **how: Any) -> subprocess.Popen[str]:
        nonlocal process
        process = subprocess.Popen(words, start_new_session=True, **how)  # noqa: S603  its sum was compared
        if received:
            kill()
        return process

    def kill() -> None:
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def receive(number: int, _: FrameType | None) -> None:
        received.append(number)
        kill()

    former = {each: signal.signal(each, receive) for each in ending_signals()}
    try:
        yield start
    except BaseException:
        kill()
        raise
    finally:
        if process is not None:
            process.wait()
        for each, handler in former.items():
            signal.signal(each, handler)
        if received:
            signal.raise_signal(received[0])


_THE_TRIAL = "trying the upgrade on a copy"
_NO_SPACE = "name a folder on another disk with --scratch"


@contextmanager
def trial(scratch: Path, map_gib: float) -> Generator[Trial]:
    """Remove what killed trials left, make a folder in `scratch` to try a release in, and remove it at the end of the
    block. `map_gib`: how large the store may become, as the setting. Raises `DirectoryError`.
    """
    with files.reporting("cannot write", scratch):
        left_behind = _remove_left_behind(scratch)
        folder, descriptor = _make(scratch)
    try:
        yield Trial(folder, descriptor, map_gib, left_behind)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _make(scratch: Path) -> tuple[Path, int]:
    while True:
        folder = Path(mkdtemp(prefix=PREFIX, dir=scratch))
        descriptor = _locked(folder)
        if descriptor is not None:
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)  # another trial took it for one that was left


def _locked(folder: Path) -> int | None:
    """Return a descriptor that holds the lock of a folder of this user; `None` while another process holds it, or if
    there is no such folder.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    except BlockingIOError:
        pass
    os.close(descriptor)
    return None


def _remove_left_behind(scratch: Path) -> list[str]:
    removed: list[str] = []
    for folder in sorted(scratch.glob(f"{PREFIX}*")):
        descriptor = _locked(folder)
        if descriptor is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)
            removed.append(str(folder))
    return removed
