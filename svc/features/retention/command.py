"""`svc retention`: what retention waits for."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from svc.command.changes import apply
from svc.command.data_directory import opened
from svc.command.help import CommandGroup, examples
from svc.command.output import data_option, json_option, show
from svc.kernel.store.installation import confirm_clock
from svc.kernel.values.timestamps import timestamp
from svc.world import World


@click.group(cls=CommandGroup)
def retention() -> None:
    """Say whether the clock is right, on which retention depends."""


@retention.command(epilog=examples("svc retention confirm --data /var/lib/svc"))
@data_option
@json_option
def confirm(directory: Path, as_json: bool) -> None:
    """Confirm that this machine's clock is right.

    A service deletes nothing for an hour after its clock has jumped ahead, and does not start with a clock that is
    behind the last write to its store. Check `date -u` first: then retention goes on within a minute, and a service
    that waits starts.
    """
    now_ms = World.real().now_ms()
    with opened(directory) as found:
        apply(found, partial(confirm_clock, now_ms=now_ms))
    show({"clock": timestamp(now_ms)}, as_json=as_json)
