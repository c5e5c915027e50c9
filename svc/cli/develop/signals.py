"""`svc signals`: the catalog of signals, for people and for programs."""

from __future__ import annotations

from typing import Any

import click

from svc.command.help import examples
from svc.command.output import json_option, show_table
from svc.identify.scoring.signals import CATALOG, Signal
from svc.kernel.values.fields import PLATFORMS
from svc.kernel.values.struct_fields import named


@click.command(epilog=examples("svc signals", "svc signals --json"))
@json_option
def signals(as_json: bool) -> None:
    """List every signal with its platforms and default weights."""
    if as_json:
        show_table([_record(signal) for signal in CATALOG.values()], (), "signals", as_json=True)
        return
    rows = [
        {"signal": signal.name, "group": signal.group, **_weights(signal), "means": signal.description}
        for signal in CATALOG.values()
    ]
    show_table(rows, ("signal", "group", *PLATFORMS, "means"), "signals", as_json=False)


def _weights(signal: Signal) -> dict[str, str]:
    """Default weight per platform as text; empty where the platform does not know the signal."""
    return {platform: str(signal.weights.get(platform, "")) for platform in PLATFORMS}


def _record(signal: Signal) -> dict[str, Any]:
    return {
        **named(signal, "name", "group", "description"),
        "fires_on": signal.fires_on or None,
        "platforms": list(signal.weights),
        "default_weights": signal.weights,
        **named(signal, "mode", "since"),
    }
