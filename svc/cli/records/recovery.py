"""`svc webhook recover`: what an outage of a receiver has failed is sent after all."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from svc.cli.data_directory import opened
from svc.cli.examples import examples
from svc.cli.output import CommandError, data_option, json_option, show
from svc.cli.records.changes import Change, apply, commit
from svc.cli.times import TimestampType
from svc.domain.ids import first_id, made_at_ms
from svc.domain.timestamps import timestamp
from svc.store.directory import Opened
from svc.store.transactions.webhooks.recovery import recover_deliveries
from svc.store.views.webhooks import Registered, endpoint_anywhere, failed_in
from svc.world import World

ROWS_A_STEP = 128
"""Rows of the log that one step reads, so that one commit holds the service up for some milliseconds at most."""


@click.command(
    epilog=examples(
        "svc webhook recover ENDPOINT --since 6h",
        "svc webhook recover ENDPOINT --since 2026-01-05T10:00:00Z --until 2026-01-05T12:00:00Z",
    )
)
@click.argument("endpoint_id", metavar="ENDPOINT")
@click.option(
    "--since", "since_ms", type=TimestampType(), required=True, metavar="T", help="Deliveries that failed since then."
)
@click.option("--until", "until_ms", type=TimestampType(), metavar="T", help="And before this time; now if not given.")
@data_option
@json_option
def recover(endpoint_id: str, since_ms: int, until_ms: int | None, directory: Path, as_json: bool) -> None:
    """Queue again every delivery to an endpoint that ended `failed` and has not arrived since.

    Events keep their ids and bytes, and get nine new attempts. A running service begins at once. Running it twice
    queues nothing twice. Times are RFC 3339 (2026-01-05T10:00:00Z), or how long ago: 30m, 24h, 7d, 2w.
    """
    world = World.real()
    now_ms = world.now_ms()
    if since_ms >= now_ms:
        raise click.UsageError(f"--since is in the future; it is {timestamp(now_ms)} now")
    window = range(max(since_ms, 0), now_ms if until_ms is None else min(until_ms, now_ms))
    if not window:
        raise click.UsageError("--until is not after --since")
    with opened(directory) as found:
        with found.store.read() as snapshot:
            registered = endpoint_anywhere(snapshot, endpoint_id)
        if registered is None:
            raise CommandError(f"there is no webhook endpoint {endpoint_id!r}")
        recovered = _recover(found, world, registered, window, now_ms)
    shown = {"endpoint_id": endpoint_id, "url": registered.endpoint.url, "status": registered.endpoint.status}
    times = {"since": timestamp(window.start), "until": timestamp(window.stop)}
    show({**shown, **times, "recovered": recovered}, as_json=as_json)
    if recovered and registered.endpoint.status == "paused" and not as_json:
        click.echo("the endpoint is paused: they are sent when it is resumed")


def _recover(found: Opened, world: World, registered: Registered, window: range, now_ms: int) -> int:
    """Step by step, with a progress bar on a terminal by the share of the window."""
    recovered, place, start = 0, window.start, first_id(window.start)
    asked = {"since": timestamp(window.start), "until": timestamp(window.stop)}
    change = Change(registered.queue.organization, registered.endpoint.id, asked)
    with click.progressbar(length=now_ms - place, label="recovering", file=sys.stderr) as bar:
        while start is not None:
            with found.store.read() as snapshot:
                failed = failed_in(snapshot, registered.queue, window, start, ROWS_A_STEP)
            if failed.event_ids:
                job = partial(recover_deliveries, queue=registered.queue, event_ids=failed.event_ids, now_ms=now_ms)
                if recovered:
                    recovered += apply(found, job)
                else:  # the record goes with the first step that recovers anything
                    recovered = commit(found, world, job, lambda count: change if count else None)
            start = failed.resume
            reached = now_ms if start is None else min(made_at_ms(start), now_ms)
            bar.update(reached - place)
            place = reached
    return recovered
