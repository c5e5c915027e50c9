"""`svc store move`: from a data directory to a database, and back."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import click

from svc.cli.data_directory import database_at
from svc.cli.examples import examples
from svc.cli.output import CommandError, json_option, settings, show
from svc.cli.progress import progress
from svc.config import Config
from svc.store.backup.move import Moved
from svc.store.backup.move import move as move_rows
from svc.store.directory import refuse_without_data
from svc.store.engine import Engine
from svc.store.inspection.reading import read_only, read_only_database
from svc.store.opening import engine_at
from svc.store.postgresql.connection.url import StoreUrl, is_store_url
from svc.store.serve_lock import sole_process
from svc.world import World, elapsed_s

_REASON = "what another process commits meanwhile would not be moved"


@click.command(
    epilog=examples(
        "svc store move --from /var/lib/svc --to postgresql://svc@db.example/svc",
        "svc store move --from postgresql://svc@db.example/svc --to /var/lib/svc",
    )
)
@click.option("--from", "source", required=True, metavar="DIR|URL", help="The data directory or database to read.")
@click.option("--to", "target", required=True, metavar="DIR|URL", help="The empty one to fill.")
@json_option
def move(source: str, target: str, as_json: bool) -> None:
    """Copy a store from a data directory to a database, or back. Stop every service on it before.

    Each row is verified as it is read; at the end both sides are compared, table by table, by count and checksum. The
    source is not changed. Interrupted at any moment, the same command goes on where it stopped, and nothing can open
    the target until it is whole. The pepper is not moved: it stays in the data directory, or where SVC_PEPPER_FILE
    says. What a follower of the store (`svc backup --follow`) has not copied yet is not moved.
    """
    config = settings()
    if source == target:
        raise CommandError("the store is there already: name two places")
    began_at = elapsed_s()
    with (
        _source(_place(source, config)) as reading,
        _target(_place(target, config), config) as writing,
        progress() as steps,
    ):
        moved = move_rows(reading, writing, steps)
    show(_shown(moved, elapsed_s() - began_at), as_json=as_json)
    if not as_json:
        _show_next_step(target, config)


def _place(text: str, config: Config) -> Path | StoreUrl:
    return database_at(text, config) if is_store_url(text) else Path(text)


@contextmanager
def _source(place: Path | StoreUrl) -> Generator[Engine]:
    if not isinstance(place, Path):
        with read_only_database(place) as store:
            yield store.engine
        return
    refuse_without_data(place)
    with (
        sole_process(place, "svc store move", World.real().now_ms, reason=_REASON),
        read_only(place / "store", live=True) as store,
    ):
        yield store.engine


@contextmanager
def _target(place: Path | StoreUrl, config: Config) -> Generator[Engine]:
    if not isinstance(place, Path):
        with closing(engine_at(place)) as engine:
            yield engine
        return
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (
        sole_process(place, "svc store move", World.real().now_ms, reason=_REASON),
        closing(engine_at(place / "store", map_bytes=config.map_bytes())) as engine,
    ):
        yield engine


def _shown(moved: Moved, seconds: float) -> dict[str, int | float]:
    """For people and programs. Rows that an earlier run had brought count for no speed."""
    return {
        "tables": sum(1 for rows in moved.tables.values() if rows),
        "rows": moved.rows,
        "bytes": moved.bytes,
        "resumed_rows": moved.resumed_rows,
        "seconds": round(seconds, 1),
        "rows_per_s": round((moved.rows - moved.resumed_rows) / max(seconds, 0.001)),
    }


def _show_next_step(target: str, config: Config) -> None:
    click.echo("\nboth sides have the same rows, by count and checksum of every table")
    if is_store_url(target):
        click.echo(f"start the service with SVC_STORE={target}, and with the same pepper on every node")
    elif config.pepper_file is None and not (Path(target) / "pepper").exists():
        click.echo(f"put the pepper into {target}/pepper before you start the service on it")
