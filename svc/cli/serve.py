"""`svc serve`: the service."""

from __future__ import annotations

import gc
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
import msgspec
import structlog
import trio

from svc.actors.network_watch import NetworkWatch
from svc.cli.changes import go_on
from svc.cli.data_directory import opened_directory
from svc.cli.initialize import initialize
from svc.cli.logs import set_up_logging
from svc.cli.output import directory_option, settings
from svc.cli.upgrade import alone_in, opened_to_serve
from svc.config import MAX_WORKERS, Config, as_toml
from svc.domain.errors import OperatorError
from svc.parent import Parent, ignore_signals
from svc.seat import Seat
from svc.service import DRAIN_MARGIN_S, Service, network_watch
from svc.serving import Sockets, read_tls, run_until_signalled, sockets_for, warm_up
from svc.siblings.bus import reach
from svc.siblings.counts import Shared
from svc.store.backup import files
from svc.store.directory import NotInitializedError, has_store
from svc.store.region import claim_region
from svc.store.served_limits import ServedLimits, record_limits
from svc.world import World

log = structlog.get_logger()

KEEPER_LOCK = "keeper.lock"
"""In the data directory: held by the worker that does what only one of them may do."""
PARENT_MARGIN_S = 3.0
"""After the limits of the workers' own drain, before the parent ends those that still run."""
GEN2_THRESHOLD = 100
"""Full searches for garbage are this many times rarer than those of the middle generation; Python's own is 10."""


class WorkerCount(click.ParamType[int | Literal["auto"]]):
    """A number of workers, or `auto`."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal["auto"]:
        """As of the setting `workers`. Fails with click's usage error."""
        if value == "auto":
            return "auto"
        return click.IntRange(1, MAX_WORKERS).convert(value, param, ctx)


@click.command()
@directory_option("The data directory; made by --init or `svc org create`.")
@click.option("--bind", help="HOST:PORT to listen on, instead of the setting.")
@click.option(
    "--certfile",
    "tls_certfile",
    metavar="FILE",
    help="PEM certificate to answer with over TLS, instead of the setting.",
)
@click.option("--keyfile", "tls_keyfile", metavar="FILE", help="PEM key of that certificate, instead of the setting.")
@click.option("--metrics-bind", help="HOST:PORT of GET /metrics, instead of the setting; '' for nowhere.")
@click.option(
    "--workers", type=WorkerCount(), help="Processes that serve, instead of the setting; auto = as many as cores."
)
@click.option(
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="SVC_CONFIG",
    show_envvar=True,
    help="TOML file of settings; SVC_* variables go before it.",
)
@click.option("--print-config", is_flag=True, help="Print all settings in force as TOML, and end.")
@click.option("--no-snapshot", is_flag=True, help="Upgrade an older store without keeping a copy of it before.")
@click.option(
    "--init",
    is_flag=True,
    help="On an empty data directory, create the first organization and its keys as SVC_INIT_* say, and print the keys "
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

    SIGHUP reads the certificate again, and nothing else: every other setting needs a restart. A data directory without
    data ends it with status 2, unless --init is given.
    """
    given = {name: value for name, value in instead.items() if value is not None}
    config = msgspec.structs.replace(settings(file), **given)
    if print_config:
        click.echo(as_toml(config), nl=False)
        return
    if directory is None:
        raise click.UsageError("name the data directory with --data or SVC_DATA")
    if as_json and not init:
        raise click.UsageError("--json is for the keys of --init")
    if not init and not has_store(directory):
        raise NotInitializedError(directory)
    set_up_logging(config.log_format)
    world = World.real()
    wait_s = config.takeover_wait_s
    with alone_in(directory, config, world, "svc serve", create=init, copy=not no_snapshot, wait_s=wait_s):
        workers = config.worker_count(len(os.sched_getaffinity(0)))
        with (
            opened_to_serve(directory, config, world, create=init) as found,
            reach(directory, Seat()) as siblings,
        ):
            found.store.check_pages()
            if init:
                initialize(found, world, config.region, as_json=as_json)
            go_on(found, partial(claim_region, region=config.region))
            limits = ServedLimits(found.store.capacity_bytes(), config.store_share)
            go_on(found, partial(record_limits, limits=limits))
            service = Service(config, world, found, directory, siblings=siblings)
            if workers == 1:
                tls = partial(read_tls, config)
                sockets = sockets_for(config.bind, config.metrics_bind)
                _tune_garbage_collection()
                trio.run(run_until_signalled, service, sockets, None, tls)
                return
        del (
            found,
            service,
            siblings,
        )  # made once here, so that what the settings get wrong ends the program, and no worker
        sys.exit(_serve_with(workers, directory, config))


def _serve_with(workers: int, directory: Path, config: Config) -> int:
    """Run the parent of several workers to its end, or a worker to its own; returns the exit status."""
    read_tls(config)
    network = network_watch(config, directory)
    warm_up()
    sockets = sockets_for(config.bind, config.metrics_bind)
    shared = Shared(workers, World.real().entropy)
    parent = Parent(workers, config.drain_limit_s + DRAIN_MARGIN_S + PARENT_MARGIN_S, sockets.close)
    _tune_garbage_collection()
    seat = parent.run()
    if isinstance(seat, int):
        return seat
    set_up_logging(config.log_format, seat.index)
    try:
        _work(seat, parent, shared, sockets, directory, config, network)
    except OperatorError as error:
        log.error("worker cannot serve", because=error.line)  # noqa: TRY400  said in full
        return error.exit_status
    finally:
        ignore_signals()
    return 0


def _work(
    seat: Seat, parent: Parent, shared: Shared, sockets: Sockets, directory: Path, config: Config, network: NetworkWatch
) -> None:
    """Serve in this process, one of several workers, until it is to end."""
    world = World.real()
    with (
        opened_directory(directory, config, world, create=False) as found,
        files.locked(directory / KEEPER_LOCK) as keeping,
        reach(directory, seat) as siblings,
    ):
        service = Service(
            config,
            world,
            found,
            directory,
            seat=seat,
            siblings=siblings,
            buckets=shared.buckets,
            counts=shared.counts,
            network=network,
            acquire_keeping=keeping.acquire,
            worker_restarts=parent.board.restarts,
        )

        async def mark(_: list[str]) -> None:
            parent.board.mark_serving(seat.index)

        trio.run(run_until_signalled, service, sockets, mark, partial(read_tls, config), parent.lifeline)


def _tune_garbage_collection() -> None:
    """Have garbage looked for where some may be, and seldom: each search holds up all requests.

    What the program is made of is no garbage. Nor do requests and connections leave circles behind, so that a search
    through everything that lives (a thousand connections: 40 ms) is for the few that faults leave.
    """
    gc.collect()
    gc.freeze()
    newest, newer, _ = gc.get_threshold()
    gc.set_threshold(newest, newer, GEN2_THRESHOLD)
