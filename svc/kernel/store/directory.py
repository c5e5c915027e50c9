"""The data directory: what lies where in it, how it is made, and how it is opened.

DATA/store/    the LMDB environment
DATA/pepper    32 random bytes, mode 0600: without it no key can be checked and none forged
DATA/serve.lock     held by `svc serve`, and whatever else must be alone (`serve_lock`)
DATA/keeper.lock    held by one of several workers, which does what must be done once
DATA/follower.lock  held by `svc backup --follow`
DATA/run/      sockets of the workers that serve it (`svc/workers/bus.py`)

A store may be in a database instead of DATA/store: then the directory has the pepper and what belongs to this node.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from svc.kernel.store.engine import EngineError, OpenEngine
from svc.kernel.store.files import durable_files
from svc.kernel.store.installation import PEPPER_BYTES, pepper_mark
from svc.kernel.store.lmdb.environment import DEFAULT_MAP_BYTES
from svc.kernel.store.opening import engine_at, open_store, version_of
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.kernel.store.tables import META
from svc.kernel.values.errors import DirectoryError, explained
from svc.world import RunSync, wall_clock_ms

NO_STORE = "{} holds no store of this service; `svc org create` makes one, and `svc store move` fills one"
EMPTY = "{} is empty: restore a backup, or delete the file if nothing was ever stored there"
_NO_DATA = "{} holds no data of this service; `svc org create` makes it, or name another --data"
STORE_LOST = "{} has the pepper of a store, and the store is gone or in a database"
AFTER_LOSS = (
    "restore a backup (docs/backup.md), name the database with the setting `store`, or delete the pepper if nothing "
    "was ever stored here"
)
_WRITABLE = "{0} can be written by everybody, who could put other data or another pepper in its place: chmod o-w {0}"
_PEPPER_MISSING = "the pepper {} is missing, so no key could be checked: put it back, or name it with SVC_PEPPER_FILE"


class NotInitializedError(DirectoryError):
    """The service was started on a directory without data. The exit status is 2, since another start would fail too."""

    exit_status = 2

    def __init__(self, directory: Path) -> None:
        super().__init__(
            _without_store(
                directory,
                f"{directory} holds no data of this service: create the first organization with `svc serve --init` or "
                "`svc org create`, or name another --data",
            )
        )


class Opened(NamedTuple):
    """An open data directory: its path, its pepper, and its store, which the caller closes."""

    store: Store
    pepper: bytes
    directory: Path | None = None
    """`None` for a store alone."""
    database: StoreUrl | None = None
    """Where the store is; `None` = in the directory."""


def open_directory(  # noqa: PLR0913  where it is, and how it is opened
    directory: Path,
    run_sync: RunSync,
    entropy: Callable[[int], bytes],
    *,
    pepper_file: Path | None = None,
    map_bytes: int = DEFAULT_MAP_BYTES,
    durable: bool = True,
    create: bool = True,
    now_ms: Callable[[], int] = wall_clock_ms,
    open_engine: OpenEngine | None = None,
    database: StoreUrl | None = None,
) -> Opened:
    """Open a data directory, with the store in it or in a `database`; create it first if it is missing and `create` is
    set. `durable=False` skips the fsync of each commit, for stores that are thrown away. Raises `DirectoryError`,
    `codec.CorruptionError`, `installation.NewerStoreError`, and `installation.OlderStoreError` for a store that
    `features/upgrade/upgrade.py` has to upgrade first.
    """
    location = directory / "store" if database is None else database
    exists = has_store(directory) if database is None else is_initialized(database)
    if not exists and not create:
        says = NO_STORE.format(database) if database else _without_store(directory, _NO_DATA.format(directory))
        raise DirectoryError(says)
    if exists and not create and database is None and not _file(directory).stat().st_size:
        raise DirectoryError(EMPTY.format(_file(directory)))
    pepper_path = pepper_file or directory / "pepper"
    if exists and not pepper_path.exists():
        raise DirectoryError(_PEPPER_MISSING.format(pepper_path))
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if writable := _permitting(stat.S_IWOTH, directory, directory / "store"):
            raise DirectoryError(_WRITABLE.format(writable[0]))
        pepper = _read_or_make(pepper_path, entropy, follow_links=pepper_file is not None)
        store = open_store(
            location,
            run_sync,
            map_bytes=map_bytes,
            durable=durable,
            upgrade=False,
            now_ms=now_ms,
            open_engine=open_engine,
        )
        if durable and not exists:
            folders = (directory, directory.parent, pepper_path.parent)
            for folder in (location, *folders) if isinstance(location, Path) else folders:
                durable_files.sync(folder)
    except OSError as error:
        raise DirectoryError(explained("cannot use", error.filename or directory, error)) from error
    except EngineError as error:
        raise DirectoryError(f"{location} cannot be opened as a store: {error}") from error
    try:
        store.write_one_now(partial(_note_pepper, pepper=pepper, path=pepper_path), may_use_reserve=True)
    except BaseException:
        store.close()
        raise
    return Opened(store, pepper, directory, database)


def _file(directory: Path) -> Path:
    return directory / "store" / "data.mdb"


def last_write_ms(directory: Path) -> int | None:
    """Return when the store was last written to, in Unix ms by the clock of that moment; `None` if there is none."""
    try:
        return _file(directory).stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None


def date_last_write(directory: Path, at_ms: int) -> None:
    """Let `last_write_ms` say no later time: a clock that is not believed made the last write, if there was any."""
    file = _file(directory)
    if (written_ms := last_write_ms(directory)) is not None and written_ms > at_ms:
        with suppress(OSError):
            os.utime(file, ns=(file.stat().st_atime_ns, at_ms * 1_000_000))


def has_store(directory: Path) -> bool:
    """Return whether the data directory has a store file, in any state."""
    return _file(directory).exists()


def has_lost_store(directory: Path) -> bool:
    """Return whether a data directory without a store has a pepper of its own. A pepper is created together with its
    store, so that the store was lost, or is in a database. A pepper that a setting names may exist before any store.
    """
    return (directory / "pepper").exists() and not has_store(directory)


def is_initialized(database: StoreUrl) -> bool:
    """Return whether a database holds a store of any version. Raises `EngineError`."""
    with closing(engine_at(database)) as engine:
        return version_of(engine) > 0


def refuse_without_data(directory: Path) -> None:
    """Raise `DirectoryError`, which says what to do, if the directory has no store."""
    if not has_store(directory):
        raise DirectoryError(_without_store(directory, _NO_DATA.format(directory)))


def _without_store(directory: Path, if_new: str) -> str:
    """Return what to say of a directory that has lost its store; `if_new` if it never had one."""
    return f"{STORE_LOST.format(directory)}: {AFTER_LOSS}" if has_lost_store(directory) else if_new


def find_pepper(directory: Path, pepper_file: Path | None, *, with_store: bool = True) -> Path:
    """Return the path of the pepper. Raises `DirectoryError` if it or, where asked for, the store is missing."""
    if with_store:
        refuse_without_data(directory)
    path = pepper_file or directory / "pepper"
    if not path.exists():
        raise DirectoryError(_PEPPER_MISSING.format(path))
    return path


def _read_or_make(path: Path, entropy: Callable[[int], bytes], *, follow_links: bool) -> bytes:
    if not path.exists():
        _make_pepper(path, entropy(PEPPER_BYTES))

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | (0 if follow_links else os.O_NOFOLLOW))

    try:
        with open(path, "rb", opener=opener) as file:
            if os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
                raise DirectoryError(_WRITABLE.format(path))
            pepper = file.read()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DirectoryError(
                f"{path} is a symbolic link: put the file itself there, or name it with SVC_PEPPER_FILE"
            ) from error
        raise
    if len(pepper) < PEPPER_BYTES:
        raise DirectoryError(
            f"{path} is shorter than {PEPPER_BYTES} bytes: it is not a pepper of this service. Put the right one "
            "there, or delete it if this data directory never had a store"
        )
    return pepper


def _make_pepper(path: Path, pepper: bytes) -> None:
    """Write the pepper before it has its name: a process that is killed half-way leaves no pepper, not a short one."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        durable_files.write(partial, pepper)
        with suppress(FileExistsError):  # another process was faster, and its pepper is the one
            os.link(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _permitting(mode: int, *paths: Path) -> list[Path]:
    return [path for path in paths if path.exists() and path.stat().st_mode & mode]


def refused_modes(directory: Path, pepper_file: Path | None = None) -> list[str]:
    """Return a sentence for each file mode with which a directory is not opened."""
    paths = (directory, directory / "store", pepper_file or directory / "pepper")
    return [_WRITABLE.format(path) for path in _permitting(stat.S_IWOTH, *paths)]


def risky_modes(directory: Path, pepper_file: Path | None = None) -> list[str]:
    """Return a sentence for each file mode that permits more than is needed, but may be given by a volume or a secret.
    A pepper that `pepper_file` names may be readable by all, as an orchestrator mounts secrets.
    """
    pepper = directory / "pepper"
    paths = (directory, directory / "store", pepper_file or pepper)
    found = [f"{path} can be written by its group: chmod g-w {path}" for path in _permitting(stat.S_IWGRP, *paths)]
    if pepper_file is None and _permitting(stat.S_IROTH, pepper):
        found.append(f"{pepper} can be read by everybody, who can then forge keys: chmod 600 {pepper}")
    return found


def _note_pepper(transaction: Transaction, pepper: bytes, path: Path) -> None:
    """Record the pepper's mark. Raises `DirectoryError` if the store has another one."""
    mark = pepper_mark(pepper)
    known = transaction.get(META, "pepper_mark")
    if known is None:
        transaction.put(META, ("pepper_mark",), mark)
    elif known != mark:
        raise DirectoryError(f"{path} is not the pepper that this store's keys were made with")
