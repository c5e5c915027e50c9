"""`svc check`: whether a store or a snapshot is whole."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path

import click
from click.core import ParameterSource

from svc.command.data_directory import database_of, reading_snapshot
from svc.command.help import examples
from svc.command.output import (
    CommandError,
    directory_option,
    json_option,
    no_directory,
    progress,
    settings,
    show,
    store_option,
)
from svc.features.backup import copied_up_to, snapshots
from svc.features.backup.move import copied_here
from svc.features.checks.verification import Verification, faults
from svc.kernel.store import operations
from svc.kernel.store.directory import find_pepper, pepper_mark
from svc.kernel.store.files.ending import ended_by_signals
from svc.kernel.store.lmdb import witness
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.reading import ReadOnlyStore, read_only, read_only_database
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.steps import Steps
from svc.kernel.store.tables import META
from svc.kernel.values.errors import OperatorError

SHOWN = 50
"""Violations printed; the rest is counted."""


@click.command(epilog=examples("svc check --data /var/lib/svc", "svc check /var/backups/svc/SNAPSHOT"))
@click.argument("snapshot", metavar="[SNAPSHOT]", required=False, type=click.Path(path_type=Path))
@directory_option("The data directory.")
@store_option
@json_option
@click.pass_context
def check(context: click.Context, snapshot: Path | None, directory: Path | None, as_json: bool) -> None:
    """Check every invariant of a data directory, or of a snapshot that `svc backup` made.

    Nothing is written. Reading the directory of a busy service makes its store grow: check a snapshot instead. The
    rows of a database are copied first, into the folder for temporary files (TMPDIR), which needs space for all of
    them.
    """
    if snapshot is None and directory is None:
        raise no_directory(", or a snapshot")
    named = context.get_parameter_source("directory") is ParameterSource.COMMANDLINE
    if snapshot is not None and named:
        raise click.UsageError("name a snapshot or --data, not both")
    with progress() as steps:
        first, total = _check_snapshot(snapshot, steps) if snapshot else _check_directory(directory or Path(), steps)
    if as_json:
        show({"ok": not total, "violations": total, "first": first}, as_json=True)
    else:
        for sentence in first:
            click.echo(sentence)
    if total:
        raise CommandError(
            f"{total} violation{'s' * (total != 1)}; restore from a backup, and keep this directory to find the cause"
        )
    if not as_json:
        click.echo("every invariant holds")


def _check_directory(directory: Path, steps: Steps) -> tuple[list[str], int]:
    config = settings()
    pepper = find_pepper(directory, config.pepper_path(), with_store=config.store is None)
    database = database_of(config)
    opened = _of_directory(directory) if database is None else _of_database(database, config.map_bytes(), steps)
    with opened as (store, sql_faults), store.read() as state:
        if state.get(META, "pepper_mark") not in (None, pepper_mark(pepper.read_bytes())):
            raise CommandError(f"{pepper} is not the pepper that this store's keys were made with")
        went_back = None if database is not None else witness.went_back(directory / "store")
        witnessed = (problem for problem in (went_back, _not_copied(store, state)) if problem is not None)
        return _shown_of(chain(witnessed, faults(store, state, Verification.FULL, steps), sql_faults))


def _not_copied(store: ReadOnlyStore, state: Snapshot) -> str | None:
    """Return a fault if the follower has copied more than the store has. If its folder cannot be read, nothing is
    known.
    """
    following = operations.recorded(state)
    if following is not None:
        with suppress(OperatorError):
            return copied_up_to.beyond(following, store.read)
    return None


@contextmanager
def _of_directory(directory: Path) -> Generator[tuple[ReadOnlyStore, Iterator[str]]]:
    with read_only(directory / "store", live=True) as store:
        yield store, iter(())


@contextmanager
def _of_database(database: StoreUrl, map_bytes: int, steps: Steps) -> Generator[tuple[ReadOnlyStore, Iterator[str]]]:
    """Yield a copy of the rows, and what is wrong with the table that SQL reads."""
    from svc.features.exports import sql_installation  # noqa: PLC0415  needs the driver, which is an extra
    from svc.kernel.store.postgresql.engine import PostgresqlEngine  # noqa: PLC0415

    with ended_by_signals(), read_only_database(database) as there, copied_here(there, map_bytes, steps) as here:
        assert isinstance(there.engine, PostgresqlEngine)
        yield here, sql_installation.faults(there.engine)


def _check_snapshot(path: Path, steps: Steps) -> tuple[list[str], int]:
    """Check a snapshot's file against its manifest, then its rows. A bare `data.mdb` has no manifest."""
    if not path.exists():
        raise CommandError(f"{path} is not there")
    if path.is_dir():
        if not snapshots.is_snapshot(path):
            raise CommandError(
                f"{path} is not a snapshot; `svc backup` makes folders named snapshot-... with a manifest.json"
            )
        snapshots.check_file(snapshots.read(path), steps)
    with reading_snapshot(path) as store, store.read() as state:
        return _shown_of(faults(store, state, Verification.FULL, steps))


def _shown_of(broken: Iterator[str]) -> tuple[list[str], int]:
    first = list(islice(broken, SHOWN))
    return first, len(first) + sum(1 for _ in broken)
