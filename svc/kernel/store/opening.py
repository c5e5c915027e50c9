"""Opening the store in a directory or a database: its version, its tables, and the upgrade of an older one."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from svc.kernel.store.engine import Engine, EngineError, MissingTableError, OpenEngine, StoreFullError
from svc.kernel.store.installation import OlderStoreError, migrate, refuse_newer
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.lmdb.environment import DEFAULT_MAP_BYTES, FILE
from svc.kernel.store.local import LocalStore
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Migration, installed
from svc.kernel.store.steps import QUIET, Steps
from svc.kernel.store.store import ReadTransaction, Store, trial_write
from svc.kernel.store.tables import META
from svc.world import RunSync, wall_clock_ms


def open_store(  # noqa: PLR0913  each is a choice of its own
    location: Path | StoreUrl,
    run_sync: RunSync,
    *,
    map_bytes: int = DEFAULT_MAP_BYTES,
    durable: bool = True,
    migrations: Sequence[Migration] | None = None,
    upgrade: bool = True,
    now_ms: Callable[[], int] = wall_clock_ms,
    open_engine: OpenEngine | None = None,
    steps: Steps = QUIET,
) -> Store:
    """Open or create the store in a directory or a database; upgrade an older one, as `steps` shows, unless `upgrade`
    is false. `durable=False` skips the fsync, for stores that are thrown away. `now_ms` dates commits for a follower.
    Raises `NewerStoreError`, `OlderStoreError`, `EngineError` and `CorruptionError`.
    """
    engine = engine_at(location, map_bytes=map_bytes, durable=durable, open_engine=open_engine)
    schema = installed()
    migrations = schema.migrations if migrations is None else migrations
    try:
        version = version_of(engine)
        _refuse_other_versions(version, len(migrations), upgrade=upgrade)
        _refuse_missing_tables(engine, version, len(migrations))
        engine.open_tables(schema.names, create=True)
        if version < len(migrations):
            engine.open_tables(engine.tables().intersection(schema.former_tables))
        store = LocalStore(engine, run_sync, now_ms)
        _migrate(store, migrations, steps)
    except BaseException:
        engine.close()
        raise
    return store


def _migrate(store: Store, migrations: Sequence[Migration], steps: Steps) -> None:
    """Migrate in place, since a migration may change every row; through memory if a follower needs the changes."""
    job = partial(migrate, migrations=migrations, steps=steps)
    if store.is_recorded():
        store.write_one_now(job, may_use_reserve=True)
    else:
        store.change_log(job)


def write_problem(directory: Path, map_bytes: int = DEFAULT_MAP_BYTES) -> str | None:
    """Return why nothing can be written to the store in a directory, by a write that leaves nothing behind; `None` if
    it was stored, or something else is wrong, which opening the store says. Nothing may have the store open here: a
    process whose sync has failed cannot go on with it (ADR 183).
    """
    if not (directory / FILE).exists():
        return None
    try:
        with closing(LmdbEngine.open(directory, map_bytes=map_bytes, check_row=installed().check_row)) as engine:
            engine.open_tables([META.name])
            engine.write(trial_write, may_use_reserve=True)
    except (MissingTableError, StoreFullError, CorruptionError):
        return None
    except EngineError as error:
        return str(error) if getattr(error.__cause__, "code", None) in _OF_THE_DISK else None
    return None


_OF_THE_DISK = (errno.EIO, errno.EROFS)


def engine_at(
    location: Path | StoreUrl,
    *,
    map_bytes: int = DEFAULT_MAP_BYTES,
    durable: bool = True,
    open_engine: OpenEngine | None = None,
) -> Engine:
    """Open the engine of the store in a directory, with `open_engine` if given, or a database. Raises as those do."""
    if isinstance(location, Path):
        return (open_engine or LmdbEngine.open)(
            location, map_bytes=map_bytes, durable=durable, check_row=installed().check_row
        )
    from svc.kernel.store.postgresql.engine import PostgresqlEngine  # noqa: PLC0415  commands start faster without

    return PostgresqlEngine.open(location, map_bytes=map_bytes, durable=durable, check_row=installed().check_row)


def version_of(engine: Engine) -> int:
    """Return the store's version, 0 if nothing was ever committed. Raises `EngineError` and `CorruptionError`."""
    try:
        engine.open_tables([META.name])
    except MissingTableError:
        return 0
    with ReadTransaction(engine) as snapshot:
        return snapshot.get(META, "version") or 0


def _refuse_other_versions(version: int, known: int, *, upgrade: bool) -> None:
    """Refuse other versions before a table is opened, which would make it in a store that has none of that name."""
    refuse_newer(version, known)
    if 0 < version < known and not upgrade:
        raise OlderStoreError(
            f"the store has version {version} and this program writes {known}: stop what is using it and start "
            "`svc serve` on it, which keeps a copy and upgrades it"
        )


def _refuse_missing_tables(engine: Engine, version: int, known: int) -> None:
    """Refuse to open a store without its tables: one whose name is corrupt would be made again, empty."""
    names = engine.tables()
    if not version:  # new, or interrupted while its tables were made
        engine.open_tables(names)
        with ReadTransaction(engine) as snapshot:
            made_meanwhile = META.name in names and snapshot.has(META, "version")
            if not made_meanwhile and any(snapshot.reader.count(name) for name in names):
                raise CorruptionError("the store has rows, and nothing says of which version they are")
    if version == known:
        missing = sorted({*installed().names} - names)
        if missing:
            raise CorruptionError(f"the store has lost the table {missing[0]}")
