"""`svc serve`: the service."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO, cast

import click
import msgspec
import structlog
import trio

from svc.cli.output import settings
from svc.config import Config, as_toml
from svc.service import Service, opened_directory, run_until_signalled
from svc.world import World


@click.command()
@click.option(
    "--data",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="SVC_DATA",
    show_envvar=True,
    help="The data directory; made by `svc org create`.",
)
@click.option("--bind", help="HOST:PORT to listen on, instead of the setting.")
@click.option(
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="SVC_CONFIG",
    show_envvar=True,
    help="TOML file of settings; SVC_* variables go before it.",
)
@click.option("--print-config", is_flag=True, help="Print all settings in force as TOML, and end.")
def serve(directory: Path | None, bind: str | None, file: Path | None, print_config: bool) -> None:
    """Run the service until SIGTERM, which drains and ends with status 0."""
    config = settings(file)
    if bind is not None:
        config = msgspec.structs.replace(config, bind=bind)
    if print_config:
        click.echo(as_toml(config), nl=False)
        return
    if directory is None:
        raise click.UsageError("name the data directory with --data or SVC_DATA")
    set_up_logging(config)
    with opened_directory(directory, config, World.real(), create=False) as found:
        trio.run(run_until_signalled, Service(config, World.real(), found, directory), config.bind)


def set_up_logging(config: Config) -> None:
    """One JSON line per entry on standard error, or coloured text for a person."""
    renderer = (
        structlog.processors.JSONRenderer()
        if config.log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    shared: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if config.log_format == "json":
        shared.append(structlog.processors.format_exc_info)
    structlog.configure(
        processors=[*shared, renderer],
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _Steady(sys.stderr))),
        cache_logger_on_first_use=True,
    )


class _Steady:
    """A stream whose reader may go away: a log that nobody reads any more must not fail a request."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()
