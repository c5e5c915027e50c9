"""`svc serve`: the service."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from svc.cli.store.early_integrity_check import EarlyIntegrityCheck
from svc.command.data_directory import database_of
from svc.command.help import examples
from svc.command.logs import set_up_logging, with_log_format
from svc.command.output import config_option, directory_option, no_directory, settings
from svc.kernel.config import MAX_WORKERS, Config
from svc.kernel.config_loading import as_toml
from svc.kernel.store.directory import NotInitializedError, has_store
from svc.workers import hangups


class WorkerCount(click.ParamType[int | Literal["auto"]]):
    """A number of workers, or `auto`."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal["auto"]:
        """Convert as the setting `workers` does. Fails with click's usage error."""
        if value == "auto":
            return "auto"
        if not str(value).isdecimal():
            self.fail(f"{value!r} is neither a number of processes nor `auto`.", param, ctx)
        return click.IntRange(1, MAX_WORKERS).convert(value, param, ctx)


@click.command(
    epilog=examples(
        "svc serve --data /var/lib/svc --config /etc/svc.toml",
        "svc serve --data /var/lib/svc --workers auto",
        "svc serve --data /var/lib/svc --store postgresql://svc@db.example/svc?sslmode=verify-full",
        "svc serve --data /var/lib/svc --bind 0.0.0.0:8443 --certfile fullchain.pem --keyfile privkey.pem",
        "svc serve --print-config",
    )
)
@directory_option("The data directory; made by --init or `svc org create`.")
@click.option("--bind", help="HOST:PORT to listen on, instead of the setting.")
@click.option(
    "--certfile",
    "tls_certfile",
    metavar="FILE",
    help="PEM certificate for TLS, instead of the setting.",
)
@click.option("--keyfile", "tls_keyfile", metavar="FILE", help="PEM key of that certificate, instead of the setting.")
@click.option("--metrics-bind", help="HOST:PORT of GET /metrics, instead of the setting; '' to disable.")
@click.option(
    "--store",
    metavar="URL",
    help="The database to serve, postgresql://USER@HOST/DATABASE, instead of the setting: this process is then one of "
    "its nodes.",
)
@click.option(
    "--workers", type=WorkerCount(), help="Processes that serve, instead of the setting; auto = as many as cores."
)
@config_option("TOML file of settings; SVC_* variables override it.")
@click.option("--print-config", is_flag=True, help="Print all settings in force as TOML, and end.")
@click.option("--no-snapshot", is_flag=True, help="Upgrade an older store without copying it first.")
@click.option(
    "--init",
    is_flag=True,
    help="Create the first organization and its keys in an empty data directory, as SVC_INIT_* say, and print the keys "
    "once; do nothing on any other.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the keys of --init as one JSON object.")
def serve(
    directory: Path | None,
    file: Path | None,
    print_config: bool,
    no_snapshot: bool,
    init: bool,
    as_json: bool,
    **instead: str | int | None,
) -> None:
    """Run the service until SIGTERM, which drains and ends with status 0.

    SIGHUP reads the settings, the certificate and the network files again. It applies the log format, which
    requests are logged, the rates of requests other than identify, and the certificate paths; it logs which other
    settings have changed and need a restart. Without --init, an empty data directory ends it with status 2.
    """
    hangups.hold()
    given = {name: value for name, value in instead.items() if value is not None}

    def wanted() -> Config:
        return msgspec.structs.replace(settings(file), **given)

    def read() -> Config:
        return with_log_format(wanted())

    config = read()
    database = database_of(config)
    if print_config:
        click.echo(as_toml(wanted()), nl=False)
        return
    if directory is None:
        raise no_directory()
    if as_json and not init:
        raise click.UsageError("--json is for the keys of --init")
    if database is not None:
        set_up_logging(config.log_format)
        from svc.cli.serve.node import serve_node  # noqa: PLC0415  as below

        sys.exit(serve_node(directory, config, database, read, init=init, as_json=as_json))
    if not init and not has_store(directory):
        raise NotInitializedError(directory)
    set_up_logging(config.log_format)
    check = EarlyIntegrityCheck.begin(directory) if has_store(directory) else None
    # Most of the time that a start takes, and the check goes on meanwhile.
    from svc.cli.serve.processes import serve_directory  # noqa: PLC0415

    sys.exit(serve_directory(directory, config, read, check, init=init, as_json=as_json, copy=not no_snapshot))
