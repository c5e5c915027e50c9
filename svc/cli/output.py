"""How commands speak: options that many share, and one way to print for people and for programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from svc.config import Config, load
from svc.domain.timestamps import timestamp
from svc.service import opened_directory
from svc.store import views
from svc.store.directory import Opened
from svc.store.snapshot import Transaction
from svc.store.views import Account
from svc.world import World

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Refused(Exception):  # noqa: N818  what the program says, not what went wrong in it
    """An expected "no": one clear line, exit status 1."""


def data_option(command: F) -> F:
    """`--data DIR`, or SVC_DATA."""
    return click.option(
        "--data",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        envvar="SVC_DATA",
        required=True,
        show_envvar=True,
        help="The data directory.",
    )(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")(command)


def settings(file: Path | None = None) -> Config:
    """The settings in force for a command."""
    return load(file, os.environ)


@contextmanager
def opened(directory: Path, *, create: bool = False) -> Generator[Opened]:
    """The data directory, also while a service runs on it."""
    with opened_directory(directory, settings(), World.real(), create=create) as found:
        yield found


def commit(found: Opened, job: Callable[[Transaction], T]) -> T:
    """One administrative change, on disk when this returns."""
    outcome = found.store.write_now([job])[0]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def account(found: Opened, organization_id: str) -> Account:
    with found.store.read() as snapshot:
        known = views.find_account(snapshot, organization_id)
    if known is None:
        raise Refused(f"there is no organization {organization_id!r}; `svc org list` shows them")
    return known


def show(values: Mapping[str, Any], *, as_json: bool) -> None:
    """A record: aligned lines for people, one object for programs."""
    if as_json:
        click.echo(msgspec.json.encode(values).decode())
        return
    width = max(len(name) for name in values)
    for name, value in values.items():
        click.echo(f"{name:<{width}}  {_readable(value)}")


def show_table(rows: list[dict[str, Any]], columns: tuple[str, ...], name: str, *, as_json: bool) -> None:
    """Records: a table of some columns for people, `{name: [...]}` for programs."""
    if as_json:
        click.echo(msgspec.json.encode({name: rows}).decode())
        return
    if not rows:
        click.echo(f"no {name}")
        return
    cells = [columns, *[tuple(_readable(row.get(column)) for column in columns) for row in rows]]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    for line in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def optional_timestamp(at_ms: int | None) -> str | None:
    return None if at_ms is None else timestamp(at_ms)


def _readable(value: Any) -> str:
    if value is None or value in ((), []):
        return "-"
    if isinstance(value, list | tuple):
        return ", ".join(str(part) for part in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  shown as text whatever it is
    return str(value)
