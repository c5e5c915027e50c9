"""`svc serve`: the service."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec
import trio

from svc.cli.changes import go_on
from svc.cli.data_directory import opened_directory
from svc.cli.early_walk import EarlyWalk
from svc.cli.examples import examples
from svc.cli.initialize import initialize
from svc.cli.logs import set_up_logging
from svc.cli.output import directory_option, settings
from svc.cli.upgrade import alone_in, opened_to_serve
from svc.config import MAX_WORKERS, Config, as_toml
from svc.parent import Parent
from svc.seat import Seat
from svc.store.backup import files
from svc.store.directory import NotInitializedError, has_store
from svc.store.region import claim_region
from svc.store.served_limits import ServedLimits, record_limits
from svc.world import World

if TYPE_CHECKING:
    from svc.cli.reload import Reload
    from svc.service import Service

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


@click.command(
    epilog=examples(
        "svc serve --data /var/lib/svc --config /etc/svc.toml",
        "svc serve --data /var/lib/svc --workers auto",
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

    SIGHUP reads the settings, the certificate and the network files again. It takes over the format of the log, which
    requests are logged, the rates of requests beside identify, and the paths of the certificate; it logs which other
    settings have changed and need a restart. A data directory without data ends it with status 2, unless --init is
    given.
    """
    given = {name: value for name, value in instead.items() if value is not None}

    def read() -> Config:
        return msgspec.structs.replace(settings(file), **given)

    config = read()
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
    walk = EarlyWalk.begin(directory) if has_store(directory) else None
    # Most of the time that a start takes, and the walk goes on meanwhile.
    from svc.service import Service  # noqa: PLC0415
    from svc.serving import read_tls, run_until_signalled, sockets_for, warm_up  # noqa: PLC0415
    from svc.siblings.bus import reach  # noqa: PLC0415

    warm_up()
    world = World.real()
    wait_s = config.takeover_wait_s
    with alone_in(directory, config, world, "svc serve", create=init, copy=not no_snapshot, wait_s=wait_s):
        workers = config.worker_count(len(os.sched_getaffinity(0)))
        with (
            opened_to_serve(directory, config, world, create=init) as found,
            reach(directory, Seat()) as siblings,
        ):
            if walk is None:
                found.store.check_pages()
            else:
                walk.finish(found.store)
            if init:
                initialize(found, world, config.region, as_json=as_json)
            go_on(found, partial(claim_region, region=config.region))
            limits = ServedLimits(found.store.capacity_bytes(), config.store_share)
            go_on(found, partial(record_limits, limits=limits))
            service = Service(config, world, found, directory, siblings=siblings)
            if workers == 1:
                sockets = sockets_for(config.bind, config.metrics_bind)
                _tune_garbage_collection()
                reload = _reload(service, config, read)
                trio.run(run_until_signalled, service, sockets, None, partial(read_tls, config), reload)
                return
        del found, service, siblings  # made here so that what the settings get wrong ends the program, and no worker
        sys.exit(_serve_with(workers, directory, config, read))


def _reload(service: Service, config: Config, read: Callable[[], Config], worker: int | None = None) -> Reload:
    from svc.cli.reload import Reload  # noqa: PLC0415  it needs the service

    return Reload(service, config, read, lambda changed: set_up_logging(changed.log_format, worker))


def _serve_with(workers: int, directory: Path, config: Config, read: Callable[[], Config]) -> int:
    """Run the parent of several workers to its end, or a worker to its own; returns the exit status."""
    from svc.service import DRAIN_MARGIN_S, Service, network_watch  # noqa: PLC0415
    from svc.serving import read_tls, run_until_signalled, sockets_for  # noqa: PLC0415
    from svc.siblings.buckets import SharedBuckets  # noqa: PLC0415
    from svc.siblings.bus import reach  # noqa: PLC0415

    read_tls(config)
    network = network_watch(config, directory)
    sockets = sockets_for(config.bind, config.metrics_bind)
    buckets = SharedBuckets(World.real().entropy)
    parent = Parent(workers, config.drain_limit_s + DRAIN_MARGIN_S + PARENT_MARGIN_S, sockets.close)
    _tune_garbage_collection()
    seat = parent.run()
    if isinstance(seat, int):
        return seat
    set_up_logging(config.log_format, seat.index)
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
            buckets=buckets,
            network=network,
            acquire_keeping=keeping.acquire,
        )

        async def mark(_: list[str]) -> None:
            parent.board.mark_serving(seat.index)

        tls, reload = partial(read_tls, config), _reload(service, config, read, seat.index)
        trio.run(run_until_signalled, service, sockets, mark, tls, reload, parent.lifeline)
    return 0


def _tune_garbage_collection() -> None:
    """Have garbage looked for where some may be, and seldom: each search holds up all requests.

    What the program is made of is no garbage. Nor do requests and connections leave circles behind, so that a search
    through everything that lives (a thousand connections: 40 ms) is for the few that faults leave.
    """
    gc.collect()
    gc.freeze()
    newest, newer, _ = gc.get_threshold()
    gc.set_threshold(newest, newer, GEN2_THRESHOLD)
