"""`svc account`: what is known of an account of a customer's site, and its erasure (decisions 11.6)."""

from __future__ import annotations

from typing import Any

import click

from svc.command.help import examples
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import ShownTable, confirmed, show_json, yes_option
from svc.features.erasure.texts import remaining
from svc.features.events.source import environment_option
from svc.features.exports.command import export_account
from svc.identify.velocity.counts import WINDOWS
from svc.kernel.values.fields import Environment

_OF_LIST = ("account_id", "first_seen_at", "last_seen_at", "level", "events_24h", "visitors_30d")
_SPAN = ("first_seen_at", "last_seen_at")


@click.group(cls=OrganizationGroup)
def account() -> None:
    """Show, list, export and erase accounts of an organization's own customers."""


account.add_command(export_account, "export")


@account.command(reads=True, epilog=examples("svc account show ORG user-8271 --environment staging"))
@click.argument("account_id", metavar="ACCOUNT")
@environment_option
def show(operation: Operation, account_id: str, environment: Environment) -> None:
    """Show an account: velocity, visitors, addresses, countries and labels.

    Staging and development are counted together. What it was seen with comes from its newest 2,000 events.
    """
    shown = operation.call(
        "accounts.routes.getAccount",
        account_id=account_id,
        environment=environment,
        missing=f"{operation.organization_id} has no account {account_id!r} with events in {environment}; "
        "`svc account list` shows them",
    )
    if operation.as_json:
        show_json(shown)
        return
    velocity = [{"of": name, **counts} for name, counts in shown["velocity"].items()]
    operation.show(
        {
            "account_id": account_id,
            **{name: shown[name] for name in (*_SPAN, "counted_since") if name in shown},
            "labels": ", ".join(f"{count} {name}" for name, count in shown["labels"].items()),
            "notes": shown["notes_count"],
        },
        ShownTable("velocity", velocity, ("of", *WINDOWS)),
        ShownTable("visitors", shown["visitors"], ("visitor_id", "confidence", *_SPAN)),
        ShownTable("addresses", shown["addresses"], ("ip_address", "country_code", *_SPAN)),
        ShownTable("countries", shown["countries"], ("country_code", *_SPAN)),
    )


@account.command(
    "list", reads=True, epilog=examples("svc account list ORG", "svc account list ORG --environment development")
)
@environment_option
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Maximum number.")
def list_accounts(operation: Operation, environment: Environment, limit: int) -> None:
    """List accounts with events that are kept, the one that was seen last first, also while the service runs.

    Staging and development are listed together.
    """
    found = operation.rows("accounts.routes.listAccounts", "accounts", limit, {}, environment=environment)
    since = found.others.get("counted_since")
    if operation.as_json:
        counted = {} if since is None else {"counted_since": since}
        operation.show({"accounts": found.rows, "more": found.more, **counted})
        return
    operation.show_rows([_listed(row) for row in found.rows], "accounts", _OF_LIST)
    if since is not None:
        click.echo(f"Counts are being rebuilt after an upgrade: so far of events since {since}.", err=True)
    if found.more:
        click.echo("There are more: raise --limit.", err=True)


def _listed(row: dict[str, Any]) -> dict[str, Any]:
    velocity = row["velocity"]
    return {**row, "events_24h": velocity["events"]["24h"], "visitors_30d": velocity["visitors"]["30d"]}


@account.command(epilog=examples("svc account erase ORG ACCOUNT", "svc account erase ORG ACCOUNT --yes --json"))
@click.argument("account_id", metavar="ACCOUNT")
@yes_option
def erase(operation: Operation, account_id: str, sure: bool) -> None:
    """Erase an account permanently from events, counts, lists, notes and queued webhooks. The events stay.

    Rules, webhooks and names of lists stay as they are, and so do corrupt rows: those that name the account are
    shown.
    """
    of, number = operation.organization_id, operation.number
    confirmed(f"This takes account {account_id} of {of} out of its events, for good.", sure=sure)
    missing = f"{of} has no account {account_id!r}; `svc account list` shows them"
    operation.call("visitors.routes.eraseAccount", account_id=account_id, missing=missing)
    with operation.store.read() as snapshot:
        left = [*remaining(snapshot, number, account_id), *sorted(operation.corrupt)]
    ended_as = {"organization_id": of, "account_id": account_id, "status": "erased"}
    operation.show(ended_as | ({"remains_in": left} if left else {}))
