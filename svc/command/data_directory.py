"""How a command opens a data directory. Nothing of the service that answers requests is imported here: most commands
start without it, in half the time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

import click

from svc.command.help import OPENED
from svc.command.output import CommandError, settings
from svc.kernel.config import Config
from svc.kernel.store.directory import Opened, open_directory, refuse_without_data
from svc.kernel.store.postgresql.connection.url import StoreUrl, StoreUrlError, store_url
from svc.kernel.store.reading import ReadOnlyStore, read_only, read_only_database
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.store import ReadTransaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work.slices import MAX_AT_ONCE, Scan
from svc.world import World

P = TypeVar("P")
R = TypeVar("R")


def database_of(config: Config) -> StoreUrl | None:
    """Return where the store is; `None` = in the data directory. Raises `StoreUrlError`."""
    if config.store is None:
        return None
    try:
        return database_at(config.store, config)
    except StoreUrlError as error:
        raise StoreUrlError(f"store: {error.line}") from error


def database_at(url: str, config: Config) -> StoreUrl:
    """Return the database at a URL, with the password that the settings name. Raises `StoreUrlError`."""
    return store_url(url, None if config.store_password_file is None else Path(config.store_password_file))


def reading_directory(directory: Path | None, config: Config) -> AbstractContextManager[ReadOnlyStore]:
    """Open for reading, in a `with` block, the store of a data directory or of the database that the settings name; a
    service may run on it. `directory` may be `None` if the settings name a database. Raises `DirectoryError` if the
    directory has no store.
    """
    database = database_of(config)
    if database is not None:
        return read_only_database(database)
    assert directory is not None
    refuse_without_data(directory)
    return read_only(directory / "store", live=True)


def reading_snapshot(path: Path) -> AbstractContextManager[ReadOnlyStore]:
    """Open for reading, in a `with` block, the store in a snapshot folder, or a bare `data.mdb`. A lock file beside it
    means that another process may be writing. Raises `DirectoryError` if there is no store, `NewerStoreError`, and
    `CorruptionError`.
    """
    file = path / "data.mdb" if path.is_dir() else path
    return read_only(file, live=file.with_name("lock.mdb").exists())


@contextmanager
def opened_directory(directory: Path, config: Config, world: World, *, create: bool = True) -> Generator[Opened]:
    """Open a data directory with these settings, and close its store at the end, which the setting `store` may place
    elsewhere. Raises as `open_directory` does.
    """
    opened = open_directory(
        directory,
        world.run_sync,
        world.entropy,
        pepper_file=config.pepper_path(),
        map_bytes=config.map_bytes(),
        create=create,
        now_ms=world.now_ms,
        database=database_of(config),
    )
    try:
        yield opened
    finally:
        opened.store.close()


@contextmanager
def opened(directory: Path, *, create: bool = False) -> Generator[Opened]:
    """Open a data directory, also while a service runs on it; closed at the end of the block. `create`: where there is
    none yet.
    """
    with opened_directory(directory, settings(), World.real(), create=create) as found:
        context = click.get_current_context(silent=True)
        if context is not None:
            context.meta[OPENED] = found
        yield found


class Readable(Protocol):
    """A store to read: that of a service, or one that is open for reading only."""

    def read(self) -> ReadTransaction:
        """Return a snapshot of the last commit, for a `with` block: it holds pages of the store until that ends."""
        ...


def read_through(store: Readable, scan: Scan[P, R], start: P) -> Iterator[tuple[P, R]]:
    """Yield what a scan finds, to its end; each part is read in a state of its own, so that no old one is held."""
    while True:
        with store.read() as snapshot:
            found = snapshot.evaluate(partial(_scanned, scan, start))
        yield from found
        if len(found) < MAX_AT_ONCE:
            return
        start = found[-1][0]


def _scanned(scan: Scan[P, R], start: P, snapshot: Snapshot) -> list[tuple[P, R]]:
    return list(islice(scan(snapshot, start, MAX_AT_ONCE), MAX_AT_ONCE))


def known_organization(
    store: Readable,
    organization_id: str,
    *,
    removed_too: bool = False,
    after_removal: str = "; `svc org show` has what is left",
) -> Organization:
    """Return an organization by its id. Raises `CommandError` if there is none, or, without `removed_too`, where it was
    removed: `after_removal` ends the message.
    """
    with store.read() as snapshot:
        known = lookups.find_organization(snapshot, organization_id)
    if known is None:
        raise CommandError(f"there is no organization {organization_id!r}; `svc org list` shows them")
    removed_at_ms = known.removed_at_ms
    if removed_at_ms is not None and not removed_too:
        raise CommandError(f"{organization_id} was removed at {timestamp(removed_at_ms)}{after_removal}")
    return known


def reading(directory: Path) -> AbstractContextManager[ReadOnlyStore]:
    """Open the store for reading as `reading_directory` does, with the settings in force, in a `with` block. Raises
    `DirectoryError`.
    """
    return reading_directory(directory, settings())
