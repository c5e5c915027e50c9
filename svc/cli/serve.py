"""`svc serve`: the service."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path

import click
import msgspec
import trio

from svc.cli.changes import go_on
from svc.cli.early_walk import EarlyWalk
from svc.cli.examples import examples
from svc.cli.initialize import initialize
from svc.cli.logs import set_up_logging
from svc.cli.output import directory_option, settings
from svc.cli.upgrade import opened_alone
from svc.config import Config, as_toml
from svc.store.directory import NotInitializedError, has_store
from svc.store.region import claim_region
from svc.store.served_limits import ServedLimits, record_limits
from svc.world import World

GEN2_THRESHOLD = 100
"""Full searches for garbage are this many times rarer than those of the middle generation; Python's own is 10."""


@click.command(
    epilog=examples(
        "svc serve --data /var/lib/svc --config /etc/svc.toml",
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
    **instead: str | None,
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
    from svc.cli.reload import Reload  # noqa: PLC0415
    from svc.domain.useragent import load_patterns  # noqa: PLC0415
    from svc.service import Service, read_tls, run_until_signalled  # noqa: PLC0415

    load_patterns()
    world = World.real()
    wait_s = config.takeover_wait_s
    keep = not no_snapshot
    with opened_alone(directory, config, world, "svc serve", create=init, copy=keep, wait_s=wait_s) as found:
        if walk is None:
            found.store.check_pages()
        else:
            walk.finish(found.store)
        if init:
            initialize(found, world, config.region, as_json=as_json)
        go_on(found, partial(claim_region, region=config.region))
        limits = ServedLimits(found.store.capacity_bytes(), config.store_share)
        go_on(found, partial(record_limits, limits=limits))
        service = Service(config, world, found, directory)
        tls = partial(read_tls, config)
        _tune_garbage_collection()
        reload = Reload(service, config, read, lambda changed: set_up_logging(changed.log_format))
        trio.run(run_until_signalled, service, config.bind, config.metrics_bind, None, tls, reload)


def _tune_garbage_collection() -> None:
    """Have garbage looked for where some may be, and seldom: each search holds up all requests.

    What the program is made of is no garbage. Nor do requests and connections leave circles behind, so that a search
    through everything that lives (a thousand connections: 40 ms) is for the few that faults leave.
    """
    gc.collect()
    gc.freeze()
    newest, newer, _ = gc.get_threshold()
    gc.set_threshold(newest, newer, GEN2_THRESHOLD)
