"""`svc data` and `svc check`: what is known of addresses, and whether a store is whole."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import click
import msgspec

from svc.cli.output import Refused, data_option, json_option, opened, settings, show
from svc.domain.addresses import parse_ip
from svc.domain.network import read_network
from svc.ranges import BuiltInRanges
from svc.store.invariants import violations

SHOWN = 50
"""Violations printed; the rest is counted."""


@click.group()
def data() -> None:
    """Network data: what is in use, and what it says of an address."""


@data.command()
@json_option
def status(as_json: bool) -> None:
    """The network databases in use."""
    if not settings().network_builtin:
        show({"built_in_ranges": "off", "identifications": "unavailable, and free"}, as_json=as_json)
        return
    ranges = BuiltInRanges()
    show({"built_in_ranges": "on", "built_at": ranges.built_at.isoformat(), "ranges": len(ranges)}, as_json=as_json)


@data.command("check")
@click.argument("ip")
@json_option
def check_address(ip: str, as_json: bool) -> None:
    """What the databases say of an IP address."""
    address = parse_ip(ip)
    if address is None:
        raise Refused(f"{ip!r} is not an IPv4 or IPv6 address")
    network = read_network(address, BuiltInRanges() if settings().network_builtin else None)
    known = {name: value for name, value in msgspec.to_builtins(network).items() if value not in (None, False)}
    if network.anonymity_network is not None:
        known["anonymity_network"] = network.anonymity_network
    show({"ip": address, **known}, as_json=as_json)


@click.command()
@data_option
@json_option
def check(directory: Path, as_json: bool) -> None:
    """Check every invariant of a store, also while the service runs on it."""
    with opened(directory) as found, found.store.read() as snapshot:
        broken = violations(snapshot)
        first = list(islice(broken, SHOWN))
        total = len(first) + sum(1 for _ in broken)
    if as_json:
        show({"ok": not total, "violations": total, "first": first}, as_json=True)
    else:
        for sentence in first:
            click.echo(sentence)
    if total:
        raise Refused(f"{total} violations; restore from a backup, and keep this directory to find the cause")
    if not as_json:
        click.echo("every invariant holds")
