"""`svc sql`: events as a table of plain columns in the database."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import click

from svc.command.data_directory import database_of
from svc.command.help import CommandGroup, examples
from svc.command.output import CommandError, confirmed, data_option, json_option, settings, show, yes_option
from svc.command.terminal import progress
from svc.kernel.store.engine import Engine
from svc.kernel.store.reading import read_only_database


@click.group(cls=CommandGroup)
def sql() -> None:
    """Keep events in a table of plain columns, for SQL on PostgreSQL."""


@sql.command(epilog=examples("svc sql install --reader grafana --store postgresql://svc@db.example/svc"))
@click.option("--reader", metavar="ROLE", help="A role that may read it, and no other table of the store.")
@data_option
@json_option
def install(reader: str | None, directory: Path, as_json: bool) -> None:
    """Make the table svc.sql_events, fill it and keep it. Nodes may go on serving.

    From then on the transaction that writes, changes or deletes an event does the same in the table. Run it again after
    an upgrade, for new columns; to let another role read it; or if svc check reports missing rows.
    """
    with _database(directory) as (tables, engine), progress() as steps:
        done = tables.install(engine, reader, steps)
    show(done._asdict(), as_json=as_json)


@sql.command("show", epilog=examples("svc sql show --store postgresql://svc@db.example/svc"))
@data_option
@json_option
def show_(directory: Path, as_json: bool) -> None:
    """Show whether the table is installed, its rows and bytes, and who may read it."""
    with _database(directory) as (tables, engine):
        show(tables.installation(engine)._asdict(), as_json=as_json)


@sql.command(epilog=examples("svc sql remove --store postgresql://svc@db.example/svc"))
@yes_option
@data_option
def remove(sure: bool, directory: Path) -> None:
    """Drop the table. Events stay in the store."""
    with _database(directory) as (tables, engine):
        confirmed("This drops svc.sql_events, which dashboards may read.", sure=sure)
        tables.remove(engine)
    click.echo("svc.sql_events is gone")


@contextmanager
def _database(directory: Path) -> Generator[tuple[ModuleType, Engine]]:
    """`sql_installation`, and the engine of the store, which has to be in a database and of this program's version."""
    del directory  # which holds the pepper, and what is done here needs no key
    database = database_of(settings())
    if database is None:
        raise CommandError(
            "the store is in a data directory: name a database with --store, or export events with "
            "`svc export events --format parquet`"
        )
    with read_only_database(database) as store:
        from svc.features.exports import sql_installation  # noqa: PLC0415  needs the driver, which is an extra

        yield sql_installation, store.engine
