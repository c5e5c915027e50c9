"""`svc account`: what is known of an account of a customer's site, and its erasure (decisions 11.6)."""

from __future__ import annotations

from functools import partial
from itertools import islice
from pathlib import Path

import click
import msgspec
from msgspec import UNSET

from svc.command import output
from svc.command.changes import Change, apply, commit
from svc.command.data_directory import account as organization_account
from svc.command.data_directory import opened, read_through, reading
from svc.command.help import CommandGroup, examples
from svc.command.output import CommandError, ShownTable, confirmed, data_option, json_option, show_table, yes_option
from svc.features.accounts import queries as subjects
from svc.features.accounts.bodies import AccountRow, account_body, account_row, shown_since
from svc.features.accounts.queries import NEWEST, Sought
from svc.features.erasure.accounts import continue_account_erasure, erase_account
from svc.features.erasure.texts import remaining_texts
from svc.features.events.source import Wanted, environment_option, newest_readable, number_of, oldest_ms
from svc.features.reviews.queries import judged
from svc.identify.events.listing import Position
from svc.identify.queries.events import EventMatch
from svc.identify.queries.velocity import counted_since, shown_row
from svc.identify.velocity.counts import WINDOWS, account_digest, kind_of
from svc.identify.velocity.names import ACCOUNT_ID
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.environments import Environment
from svc.kernel.values.refusals import Refusal
from svc.world import World

EVENTS_LOOKED_AT = 2000
"""The newest of an account."""
_OF_LIST = ("account_id", "first_seen_at", "last_seen_at", "level", "events_24h", "visitors_30d")
_SPAN = ("first_seen_at", "last_seen_at")


@click.group(cls=CommandGroup)
def account() -> None:
    """Show, list and erase accounts of an organization's own customers."""


@account.command(epilog=examples("svc account show ORG user-8271 --environment staging"))
@click.argument("organization_id", metavar="ORG")
@click.argument("account_id", metavar="ACCOUNT")
@environment_option
@data_option
@json_option
def show(organization_id: str, account_id: str, environment: Environment, directory: Path, as_json: bool) -> None:
    """Show an account: velocity, visitors, addresses, countries and labels.

    Staging and development are counted together. What it was seen with comes from its newest 2,000 events.
    """
    now_ms, kind = World.real().now_ms(), kind_of(environment)
    with reading(directory) as store:
        number, found = number_of(store, organization_id), list[EventMatch]()
        for name in subjects.environments_of(kind) if ACCOUNT_ID.fullmatch(account_id) else ():
            filters = subjects.filters_of("account", account_id)
            wanted = Wanted(name, oldest_ms(now_ms), now_ms + 1, filters)
            found += newest_readable(store, number, wanted, EVENTS_LOOKED_AT)
        with store.read() as snapshot:
            digest = account_digest(number, account_id)
            row = shown_row(snapshot, number, kind, "account", digest, now_ms // 1000)
            said = judged(snapshot, number, kind, "account", account_id, ())
            since = counted_since(snapshot, number)
    if not found:
        raise CommandError(
            f"{organization_id} has no account {account_id!r} with events in {environment}; "
            "`svc account list` shows them"
        )
    found.sort(key=lambda match: (match.event.occurred_at_ms, match.request_id), reverse=True)
    body = account_body(account_id, row, said, found[:EVENTS_LOOKED_AT], now_ms // 1000, since)
    shown = msgspec.to_builtins(body)
    if as_json:
        output.show_json(shown)
        return
    velocity = [{"of": name, **counts} for name, counts in shown["velocity"].items()]
    output.show(
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
        as_json=False,
    )


@account.command("list", epilog=examples("svc account list ORG", "svc account list ORG --environment development"))
@click.argument("organization_id", metavar="ORG")
@environment_option
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Maximum number.")
@data_option
@json_option
def list_accounts(organization_id: str, environment: Environment, limit: int, directory: Path, as_json: bool) -> None:
    """List accounts with events that are kept, the one that was seen last first, also while the service runs.

    Staging and development are listed together.
    """
    now_ms = World.real().now_ms()
    with reading(directory) as store:
        sought = Sought("account", number_of(store, organization_id), kind_of(environment), now_ms, oldest_ms(now_ms))
        scan = partial(subjects.scan_subjects, sought=sought, looked_at=dict[str, Position](), is_first=True)
        with store.read() as snapshot:
            since = shown_since(counted_since(snapshot, sought.number))
        seen = (each for _, each in read_through(store, scan, NEWEST) if each is not None)
        found = list(islice(seen, limit + 1))
    rows, more = [account_row(each, now_ms // 1000) for each in found[:limit]], len(found) > limit
    if as_json:
        counted = {} if since is UNSET else {"counted_since": since}
        output.show({"accounts": msgspec.to_builtins(rows), "more": more, **counted}, as_json=True)
        return
    show_table([_listed(row) for row in rows], _OF_LIST, "accounts", as_json=False)
    if since is not UNSET:
        click.echo(f"Counts are being rebuilt after an upgrade: so far of events since {since}.", err=True)
    if more:
        click.echo("There are more: raise --limit.", err=True)


def _listed(row: AccountRow) -> dict[str, object]:
    counted = {"events_24h": row.velocity.events["24h"], "visitors_30d": row.velocity.visitors["30d"]}
    return {**msgspec.to_builtins(row), **counted}


@account.command(epilog=examples("svc account erase ORG ACCOUNT", "svc account erase ORG ACCOUNT --yes --json"))
@click.argument("organization_id", metavar="ORG")
@click.argument("account_id", metavar="ACCOUNT")
@yes_option
@data_option
@json_option
def erase(organization_id: str, account_id: str, sure: bool, directory: Path, as_json: bool) -> None:
    """Erase an account permanently from events, counts, lists, notes and queued webhooks. The events stay.

    Rules and names of lists stay as they are: those that name the account are shown.
    """
    with opened(directory) as found:
        number = organization_account(found.store, organization_id).organization.number
        confirmed(f"This takes account {account_id} of {organization_id} out of its events, for good.", sure=sure)

        def begin(transaction: Transaction) -> bool:
            ended = erase_account(transaction, number, account_id)
            if isinstance(ended, Refusal):
                raise CommandError(f"{organization_id} has no account {account_id!r}; `svc account list` shows them")
            return ended

        ended = commit(found, World.real(), begin, lambda _: Change(number, account_id))
        digest = account_digest(number, account_id)
        while not ended:
            ended = apply(found, partial(continue_account_erasure, number=number, digest=digest))
        with found.store.read() as snapshot:
            remaining = remaining_texts(snapshot, number, account_id)
    ended_as = {"organization_id": organization_id, "account_id": account_id, "status": "erased"}
    output.show(ended_as | ({"remains_in": remaining} if remaining else {}), as_json=as_json)
