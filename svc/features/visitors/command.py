"""`svc visitor`: what is known of a visitor, and what the operator does for one."""

from __future__ import annotations

from functools import partial
from typing import Any

import click
import msgspec

from svc.command.changes import apply
from svc.command.data_directory import read_through
from svc.command.help import examples
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import CommandError, TimestampType, confirmed, progress, show_table, yes_option
from svc.features.browser_keys.jobs import REVOKED_AT_ONCE, Signed, keys_behind, revoke_keys
from svc.features.erasure.texts import remaining
from svc.features.events import text as event_text
from svc.features.events.console_bodies import address_rows, seen, tag_rows
from svc.features.events.source import (
    Wanted,
    activity_of,
    address_option,
    environment_option,
    newest_readable,
    oldest_ms,
    say_nothing_found,
    tag_option,
)
from svc.features.exports.command import export_visitor
from svc.identify.events.event_row import event_row
from svc.identify.events.listing import Filters
from svc.identify.queries.visitors import Activity, find_visitor
from svc.kernel.values.fields import Environment
from svc.kernel.values.ids import end_of_now, is_visitor_id
from svc.kernel.values.timestamps import timestamp

EVENTS_OF_A_VISITOR = 200
"""Its newest ones, of which tags and addresses are shown."""
_OF_TAGS = ("tag", "first_seen", "last_seen", "events")
_OF_ADDRESSES = ("ip_address", "country_code", "asn", "anonymity_network", "first_seen", "last_seen", "events")


@click.group(cls=OrganizationGroup)
def visitor() -> None:
    """Show, list, export and erase visitors; revoke browser keys."""


visitor.add_command(export_visitor, "export")


@visitor.command(reads=True, epilog=examples("svc visitor show ORG VISITOR --environment development"))
@click.argument("visitor_id", metavar="VISITOR")
@environment_option
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Newest events to show.")
def show(operation: Operation, visitor_id: str, environment: Environment, limit: int) -> None:
    """Show a visitor: first visit, tags, addresses and newest events of an environment.

    Tags and addresses come from its newest 200 events.
    """
    now_ms, number, store = operation.now_ms, operation.number, operation.store
    wanted = Wanted(environment, oldest_ms(now_ms), end_of_now(now_ms), Filters(visitor_id=visitor_id))
    with store.read() as snapshot:
        record = find_visitor(snapshot, number, visitor_id)
    counted = activity_of(store, number, visitor_id, record, now_ms) if is_visitor_id(visitor_id) else Activity()
    found = newest_readable(store, number, wanted, EVENTS_OF_A_VISITOR) if is_visitor_id(visitor_id) else []
    if record is None and not found:
        raise CommandError(
            f"{operation.organization_id} has no visitor {visitor_id!r} with events in {environment}; "
            "`svc visitor list` shows them"
        )
    described = {
        "visitor_id": visitor_id,
        "identifiable": record is not None,
        **seen(record, counted),
        "event_count": counted.events,
    }
    tags, addresses = msgspec.to_builtins(tag_rows(found)), msgspec.to_builtins(address_rows(found))
    if operation.as_json:
        rows = [event_row(event, request_id) for request_id, event in found[:limit]]
        seen_with = {"tags": list(map(_as_the_api, tags)), "addresses": list(map(_as_the_api, addresses))}
        operation.show({**_as_the_api(described), **seen_with, "events": rows})
        return
    operation.show(described)
    for name, kept, columns in (("tags", tags, _OF_TAGS), ("addresses", addresses, _OF_ADDRESSES)):
        if kept:
            click.echo(f"\n{name} in {environment}")
            show_table(kept, columns, name, as_json=False)
    if found:
        click.echo(f"\n{event_text.head(ids=False)}")
        for request_id, event in found[:limit]:
            click.echo(event_text.line(event, request_id, ids=False))


@visitor.command("list", reads=True, epilog=examples("svc visitor list ORG", "svc visitor list ORG --ip 203.0.113.7"))
@tag_option
@address_option
@environment_option
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Maximum number.")
def list_visitors(
    operation: Operation, tag: str | None, ip_address: str | None, environment: Environment, limit: int
) -> None:
    """List visitors of an organization, the most recently created first, also while the service runs.

    Events are those that are kept, in all environments. With --tag or --ip, visitors seen with it in the
    environment, among its newest 500 events; a column of its own counts those.
    """
    if tag is not None and ip_address is not None:
        raise click.UsageError("--tag or --ip, not both")
    filters = {"tag": tag, "ip_address": ip_address}
    has_filter = any(filters.values())
    query = filters | ({"environment": environment} if has_filter else {})
    rows, more, _ = operation.rows("visitors.routes.listConsoleVisitors", "visitors", limit, query)
    if operation.as_json:
        operation.show({"visitors": list(map(_as_the_api, rows)), "more": more})
        return
    operation.show_rows(rows, "visitors", tuple(rows[0]) if rows else ())
    if not rows and has_filter:
        say_nothing_found(environment)
    if more:
        click.echo("There are more: raise --limit.", err=True)


def _as_the_api(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the names that the API has for when something was seen, beside those of version 0.2.0."""
    return row | {f"{name}_at": row[name] for name in ("first_seen", "last_seen") if name in row}


@visitor.command(epilog=examples("svc visitor erase ORG VISITOR", "svc visitor erase ORG VISITOR --yes --json"))
@click.argument("visitor_id", metavar="VISITOR")
@yes_option
def erase(operation: Operation, visitor_id: str, sure: bool) -> None:
    """Erase a visitor permanently, with its events, reports and deferred reports.

    What still names the visitor is shown: rules, webhooks, names of lists, and corrupt rows.
    """
    of, number = operation.organization_id, operation.number
    confirmed(f"This erases visitor {visitor_id} of {of} with its events, for good.", sure=sure)
    missing = f"{of} has no visitor {visitor_id!r}; `svc visitor list` shows them"
    operation.call("visitors.routes.eraseVisitor", visitor_id=visitor_id, missing=missing)
    with operation.store.read() as snapshot:
        left = [*remaining(snapshot, number, visitor_id), *sorted(operation.corrupt)]
    ended_as = {"organization_id": of, "visitor_id": visitor_id, "status": "erased"}
    operation.show(ended_as | ({"remains_in": left} if left else {}))


@visitor.command(
    "revoke-keys",
    epilog=examples(
        "svc visitor revoke-keys ORG --since 2026-03-01T10:00:00Z",
        "svc visitor revoke-keys ORG --since 7d --yes --json",
    ),
)
@click.option(
    "--since", "since_ms", type=TimestampType(), required=True, metavar="T", help="First signed since: 24h, RFC 3339."
)
@click.option(
    "--until", "until_ms", type=TimestampType(), metavar="T", help="First signed before this time; now if left out."
)
@yes_option
def revoke_browser_keys(operation: Operation, since_ms: int, until_ms: int | None, sure: bool) -> None:
    """Revoke the keys of browsers that first signed in a window of time, of all visitors of an organization.

    Use it after a script that was not yours ran on your pages: it may have planted a key. The visitors stay, unproven
    until the web SDK has renewed their keys. A planted key may first sign on a later visit: leave out --until.
    """
    of, number, now_ms = operation.organization_id, operation.number, operation.now_ms
    signed = Signed(since_ms, end_of_now(now_ms) if until_ms is None else until_ms)
    if since_ms > now_ms or signed.from_ms >= signed.to_ms:
        raise click.UsageError("--since is a time that has passed, and before --until")
    with progress() as steps:
        steps.stage("looking through visitors", 0)
        counted = read_through(operation.store, partial(keys_behind, number=number, signed=signed), 0)
        keys_of = {visitor: keys for visitor, keys in counted if keys}
    visitors = list(keys_of)
    if visitors:
        keys = sum(keys_of.values())
        confirmed(f"This revokes {keys} keys of {len(visitors)} visitors of {of}, for good.", sure=sure)
    asked = {"since": timestamp(signed.from_ms), "until": timestamp(signed.to_ms)}
    revoked = 0
    with progress() as steps:
        steps.stage("revoking", len(visitors))
        for begin in range(0, len(visitors) or 1, REVOKED_AT_ONCE):
            some = visitors[begin : begin + REVOKED_AT_ONCE]
            job = partial(revoke_keys, number=number, signed=signed, visitors=some, now_ms=now_ms)
            revoked += apply(operation.found, job) if begin else operation.change(job, asked)
            steps.step(len(some))
    operation.show({"organization_id": of, **asked, "visitors": len(visitors), "revoked": revoked})
