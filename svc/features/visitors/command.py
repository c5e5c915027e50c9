"""`svc visitor`: what is known of a visitor, and what the operator does for one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from svc.command import output
from svc.command.changes import Change, apply, commit
from svc.command.data_directory import account, opened, reading
from svc.command.help import CommandGroup, examples
from svc.command.output import CommandError, confirmed, data_option, json_option, show_table, yes_option
from svc.features.browser_keys.command import revoke_browser_keys
from svc.features.erasure.texts import remaining_texts
from svc.features.erasure.visitors import continue_erasure, erase_visitor
from svc.features.events import text as event_text
from svc.features.events.console_bodies import address_rows, seen, tag_rows
from svc.features.events.source import (
    Wanted,
    activity_of,
    address_option,
    environment_option,
    newest_readable,
    number_of,
    oldest_ms,
    say_nothing_found,
    tag_option,
)
from svc.features.exports.command import export_visitor
from svc.identify.events.event_row import event_row
from svc.identify.events.listing import Filters
from svc.identify.matching import Visitor
from svc.identify.queries.visitors import Activity, find_visitor, visitors, visitors_with
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.environments import Environment
from svc.kernel.values.ids import is_visitor_id
from svc.kernel.values.refusals import Refusal
from svc.world import World

EVENTS_OF_A_VISITOR = 200
"""Its newest ones, of which tags and addresses are shown."""
_Found = list[tuple[str, Visitor | None, dict[str, int]]]
_OF_TAGS = ("tag", "first_seen", "last_seen", "events")
_OF_ADDRESSES = ("ip_address", "country_code", "asn", "anonymity_network", "first_seen", "last_seen", "events")


@click.group(cls=CommandGroup)
def visitor() -> None:
    """Show, list, export and erase visitors; revoke browser keys."""


visitor.add_command(export_visitor, "export")
visitor.add_command(revoke_browser_keys)


@visitor.command(epilog=examples("svc visitor show ORG VISITOR --environment development"))
@click.argument("organization_id", metavar="ORG")
@click.argument("visitor_id", metavar="VISITOR")
@environment_option
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Newest events to show.")
@data_option
@json_option
def show(
    organization_id: str, visitor_id: str, environment: Environment, limit: int, directory: Path, as_json: bool
) -> None:
    """Show a visitor: first visit, tags, addresses and newest events of an environment.

    Tags and addresses come from its newest 200 events.
    """
    now_ms = World.real().now_ms()
    wanted = Wanted(environment, oldest_ms(now_ms), now_ms + 1, Filters(visitor_id=visitor_id))
    with reading(directory) as store:
        number = number_of(store, organization_id)
        with store.read() as snapshot:
            record = find_visitor(snapshot, number, visitor_id)
        counted = activity_of(store, number, visitor_id, record, now_ms) if is_visitor_id(visitor_id) else Activity()
        found = newest_readable(store, number, wanted, EVENTS_OF_A_VISITOR) if is_visitor_id(visitor_id) else []
    if record is None and not found:
        raise CommandError(
            f"{organization_id} has no visitor {visitor_id!r} with events in {environment}; "
            "`svc visitor list` shows them"
        )
    described = {
        "visitor_id": visitor_id,
        "identifiable": record is not None,
        **seen(record, counted),
        "event_count": counted.events,
    }
    tags, addresses = msgspec.to_builtins(tag_rows(found)), msgspec.to_builtins(address_rows(found))
    if as_json:
        rows = [event_row(event, request_id) for request_id, event in found[:limit]]
        output.show({**described, "tags": tags, "addresses": addresses, "events": rows}, as_json=True)
        return
    output.show(described, as_json=False)
    for name, kept, columns in (("tags", tags, _OF_TAGS), ("addresses", addresses, _OF_ADDRESSES)):
        if kept:
            click.echo(f"\n{name} in {environment}")
            show_table(kept, columns, name, as_json=False)
    if found:
        click.echo(f"\n{event_text.head(ids=False)}")
        for request_id, event in found[:limit]:
            click.echo(event_text.line(event, request_id, ids=False))


@visitor.command("list", epilog=examples("svc visitor list ORG", "svc visitor list ORG --ip 203.0.113.7"))
@click.argument("organization_id", metavar="ORG")
@tag_option
@address_option
@environment_option
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Maximum number.")
@data_option
@json_option
def list_visitors(
    organization_id: str,
    tag: str | None,
    ip_address: str | None,
    environment: Environment,
    limit: int,
    directory: Path,
    as_json: bool,
) -> None:
    """List visitors of an organization, the most recently created first, also while the service runs.

    Events are those that are kept, in all environments. With --tag or --ip, visitors seen with it in the
    environment, among its newest 500 events; a column of its own counts those.
    """
    if tag is not None and ip_address is not None:
        raise click.UsageError("--tag or --ip, not both")
    now_ms = World.real().now_ms()
    with reading(directory) as store:
        number = number_of(store, organization_id)
        with store.read() as snapshot:
            if tag is None and ip_address is None:
                found: _Found = [(each.visitor_id, each, {}) for _, each in visitors(snapshot, number, None, limit + 1)]
            else:
                filters = Filters(tag=tag, ip_address=ip_address)
                found = [
                    (each.visitor_id, find_visitor(snapshot, number, each.visitor_id), {"matching_events": each.events})
                    for each in visitors_with(snapshot, number, environment, filters, None, limit + 1)
                ]
        rows: list[dict[str, Any]] = []
        for visitor_id, record, matching in found[:limit]:
            counted = activity_of(store, number, visitor_id, record, now_ms)
            rows.append({"visitor_id": visitor_id, **seen(record, counted), "events": counted.events, **matching})
    more = len(found) > limit
    if as_json:
        output.show({"visitors": rows, "more": more}, as_json=True)
        return
    columns = tuple(rows[0]) if rows else ()
    show_table(rows, columns, "visitors", as_json=False)
    if not rows and (tag is not None or ip_address is not None):
        say_nothing_found(environment)
    if more:
        click.echo("There are more: raise --limit.", err=True)


@visitor.command(epilog=examples("svc visitor erase ORG VISITOR", "svc visitor erase ORG VISITOR --yes --json"))
@click.argument("organization_id", metavar="ORG")
@click.argument("visitor_id", metavar="VISITOR")
@yes_option
@data_option
@json_option
def erase(organization_id: str, visitor_id: str, sure: bool, directory: Path, as_json: bool) -> None:
    """Erase a visitor permanently, with its events, reports and deferred reports."""
    with opened(directory) as found:
        number = account(found.store, organization_id).organization.number
        confirmed(f"This erases visitor {visitor_id} of {organization_id} with its events, for good.", sure=sure)
        world = World.real()
        now_ms = world.now_ms()

        def begin(transaction: Transaction) -> bool:
            ended = erase_visitor(transaction, number, visitor_id, now_ms)
            if isinstance(ended, Refusal):
                raise CommandError(f"{organization_id} has no visitor {visitor_id!r}; `svc visitor list` shows them")
            return ended

        ended = commit(found, world, begin, lambda _: Change(number, visitor_id))
        while not ended:
            ended = apply(found, partial(continue_erasure, number=number, raw_id=visitor_id.encode()))
        with found.store.read() as snapshot:
            remaining = remaining_texts(snapshot, number, visitor_id)
    ended_as = {"organization_id": organization_id, "visitor_id": visitor_id, "status": "erased"}
    output.show(ended_as | ({"remains_in": remaining} if remaining else {}), as_json=as_json)
