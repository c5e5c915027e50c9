"""`svc org`: organizations, their limits and their money. Amounts are shown in dollars, exact to a millionth.

`removal.py` has what takes from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any, cast

import click

from svc.cli.changes import Change, commit, operator
from svc.cli.data_directory import account, opened
from svc.cli.examples import examples
from svc.cli.mistakes import CommandGroup
from svc.cli.output import (
    CommandError,
    ShownTable,
    confirmed,
    data_option,
    json_option,
    settings,
    show,
    show_table,
    yes_option,
)
from svc.cli.removal import drop_documents, remove
from svc.config import GIB
from svc.domain.billing import (
    BILLING_STATUSES,
    MICROS_PER_USD,
    TRANSITIONS,
    BillingChange,
    BillingStatus,
    LedgerEntry,
    Usage,
)
from svc.domain.bodies import named
from svc.domain.ids import DAY_MS
from svc.domain.ratelimit import DEFAULT_LIMIT_PER_S
from svc.domain.records import Organization
from svc.domain.signed_verdict import published_keys, verdict_key
from svc.domain.timestamps import iso_day, timestamp, unix_ms
from svc.store import views
from svc.store.directory import Opened
from svc.store.served_limits import ServedLimits, served_limits
from svc.store.snapshot import Transaction
from svc.store.transactions import accounts, settlement
from svc.store.transactions.holdings import holding
from svc.store.transactions.webhook_endpoints import MAX_OVERLAP_HOURS
from svc.world import World, twenty_characters

_RATE_LIMIT = click.IntRange(0, 1_000_000)
LARGE_CREDIT_MICROS = 1_000_000 * MICROS_PER_USD
"""From here on an amount may well be a slip of the keyboard."""


class Dollars(click.ParamType[int]):
    """US dollars with at most six decimals -> millionths."""

    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Integer micro-dollars, at most 10^15 either way; an integer is taken as micro-dollars already. Fails with a
        usage error.
        """
        if isinstance(value, int):
            return value
        try:
            micros = Decimal(value) * MICROS_PER_USD
        except InvalidOperation:
            micros = Decimal("NaN")
        if not micros.is_finite() or micros != micros.to_integral_value() or abs(micros) > 10**15:
            self.fail(f"{value!r} is not an amount in dollars such as 25 or 0.5", param, ctx)
        return int(micros)


@click.group(cls=CommandGroup)
def org() -> None:
    """Manage organizations: create, list, limits, credit, billing status."""


org.add_command(drop_documents)
org.add_command(remove)


@org.command(
    epilog=examples(
        "svc org create 'My shop' --data /var/lib/svc", "svc org create Shop --credit-usd 50 --rate-limit 200 --json"
    )
)
@click.argument("name")
@click.option("--credit-usd", "credit", type=Dollars(), default=0, help="Credit to start with, in dollars.")
@click.option(
    "--rate-limit",
    type=_RATE_LIMIT,
    default=DEFAULT_LIMIT_PER_S,
    show_default=True,
    help="Identifications per second; 0 = no limit.",
)
@yes_option
@data_option
@json_option
def create(name: str, credit: int, rate_limit: int, sure: bool, directory: Path, as_json: bool) -> None:
    """Create an organization, and the data directory if it is missing."""
    name = check_name(name)
    if credit < 0:
        raise CommandError("an organization begins with credit of 0 or more; `svc org credit` takes credit back later")
    _confirm_credit(credit, sure=sure)
    with opened(directory, create=True) as found:
        created = create_organization(found, World.real(), name, credit=credit, rate_limit=rate_limit)
        show(_shown(created, credit), as_json=as_json)


def check_name(name: str) -> str:
    """An organization's name without spaces around it. Raises `CommandError` unless it has 1 to 200 characters."""
    if not name.strip() or len(name) > 200:
        raise CommandError("an organization's name has 1 to 200 characters")
    return name.strip()


def create_organization(
    found: Opened, world: World, name: str, *, credit: int, rate_limit: int = DEFAULT_LIMIT_PER_S
) -> Organization:
    """Create an organization with its first credit (micro-dollars) and record it, in one transaction."""
    job = creation(world, name, credit=credit, rate_limit=rate_limit)
    return commit(found, world, job, partial(created_change, credit=credit))


def creation(world: World, name: str, *, credit: int, rate_limit: int) -> Callable[[Transaction], Organization]:
    """The job that creates an organization with its first credit, in micro-dollars; 0 = no line on the ledger."""
    now_ms = world.now_ms()
    organization_id = "org_" + twenty_characters(world.entropy)
    entry_id = world.request_id(now_ms) if credit else None

    def job(transaction: Transaction) -> Organization:
        created = accounts.create_organization(
            transaction, organization_id=organization_id, name=name, now_ms=now_ms, rate_limit_per_s=rate_limit
        )
        if entry_id is not None:
            accounts.add_credit(
                transaction, created.number, entry_id=entry_id, micros=credit, now_ms=now_ms, note="first credit"
            )
        return created

    return job


def created_change(created: Organization, *, credit: int) -> Change:
    """The audit record of a new organization; `credit` in micro-dollars."""
    asked = {"name": created.name, "credit_usd": _usd(credit), "rate_limit_per_s": created.rate_limit_per_s}
    return Change(created.number, created.id, asked)


@org.command("list", epilog=examples("svc org list"))
@data_option
@json_option
def list_(directory: Path, as_json: bool) -> None:
    """All organizations, oldest first."""
    with opened(directory) as found, found.store.read() as snapshot:
        rows = [_shown(known.organization, known.balance_micros) for known in views.accounts(snapshot)]
    columns = ("organization_id", "name", "billing_status", "balance_usd", "rate_limit_per_s")
    show_table(rows, columns, "organizations", as_json=as_json)


@org.command("show", epilog=examples("svc org show ORG"))
@click.argument("organization_id", metavar="ORG")
@data_option
@json_option
def show_(organization_id: str, directory: Path, as_json: bool) -> None:
    """Show an organization: its balance, what it stores and its share of the store."""
    with opened(directory) as found:
        known = account(found.store, organization_id, removed_too=True)
        with found.store.read() as snapshot:
            held = holding(snapshot, known.organization.number)
            served = served_limits(snapshot) or ServedLimits(found.store.capacity_bytes(), settings().store_share)
        most = served.store_share * served.capacity_bytes
    share = held.held_bytes / most
    held_share = share if as_json else f"{share:.1%} of the {most / GIB:.1f} GiB that one organization may hold"
    storage = {**named(held, "events", "visitors", "report_bytes", "held_bytes"), "held_share": held_share}
    show({**_shown(known.organization, known.balance_micros), **storage}, as_json=as_json)


@org.command(
    epilog=examples(
        "svc org credit ORG --usd 25 --note 'invoice 17'", "svc org credit ORG --usd -25 --note 'booked twice'"
    )
)
@click.argument("organization_id", metavar="ORG")
@click.option("--usd", "micros", type=Dollars(), required=True, help="Dollars; a negative amount takes credit back.")
@click.option("--note", default="", help="Reason, stored on the ledger.")
@yes_option
@data_option
@json_option
def credit(organization_id: str, micros: int, note: str, sure: bool, directory: Path, as_json: bool) -> None:
    """Add credit to an organization's ledger. A negative amount corrects an earlier one. A balance below zero stops
    production traffic (402) until there is credit again.
    """
    _confirm_credit(micros, sure=sure)
    world = World.real()
    now_ms = world.now_ms()
    who = operator().id
    by = f"{who}: {note}" if note else who
    with opened(directory) as found:
        number = account(found.store, organization_id).organization.number
        entry_id = world.request_id(now_ms)
        job = partial(accounts.add_credit, number=number, entry_id=entry_id, micros=micros, now_ms=now_ms, note=by)
        asked = {"credit_usd": _usd(micros), "note": note or None}
        commit(found, world, job, lambda _: Change(number, organization_id, asked))
        known = account(found.store, organization_id)
    if micros < 0:
        consequence = "" if known.balance_micros > 0 else ": production traffic is refused (402) until there is credit"
        click.echo(f"took {_usd(-micros)} USD back; the balance is {_usd(known.balance_micros)}{consequence}", err=True)
    show(_shown(known.organization, known.balance_micros), as_json=as_json)


@org.command("credit-limit", epilog=examples("svc org credit-limit ORG --usd 100"))
@click.argument("organization_id", metavar="ORG")
@click.option("--usd", "micros", type=Dollars(), required=True, help="Dollars the balance may go below zero.")
@data_option
@json_option
def credit_limit(organization_id: str, micros: int, directory: Path, as_json: bool) -> None:
    """Set how far the balance may go below zero."""
    if micros < 0:
        raise click.UsageError("a credit limit is not negative")
    job = partial(accounts.set_credit_limit, micros=micros)
    _change(directory, organization_id, job, {"credit_limit_usd": _usd(micros)}, as_json=as_json)


@org.command("rate-limit", epilog=examples("svc org rate-limit ORG 500"))
@click.argument("organization_id", metavar="ORG")
@click.argument("per_second", metavar="N", type=_RATE_LIMIT)
@data_option
@json_option
def rate_limit(organization_id: str, per_second: int, directory: Path, as_json: bool) -> None:
    """Set the identifications per second; 0 = no limit."""
    job = partial(accounts.set_rate_limit, per_s=per_second)
    _change(directory, organization_id, job, {"rate_limit_per_s": per_second}, as_json=as_json)


def _change(
    directory: Path,
    organization_id: str,
    job: Callable[..., Organization],
    asked: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Change an organization by a job that takes its `number`, record what was asked for, and show it as it is then."""
    with opened(directory) as found:
        known = account(found.store, organization_id)
        number = known.organization.number
        numbered = partial(job, number=number)
        changed = commit(found, World.real(), numbered, lambda _: Change(number, organization_id, asked))
    show(_shown(changed, known.balance_micros), as_json=as_json)


@org.command(
    "rotate-verdict-key",
    epilog=examples("svc org rotate-verdict-key ORG", "svc org rotate-verdict-key ORG --previous-valid-hours 0"),
)
@click.argument("organization_id", metavar="ORG")
@click.option(
    "--previous-valid-hours",
    "hours",
    type=click.IntRange(0, MAX_OVERLAP_HOURS),
    default=24,
    show_default=True,
    help="Hours for which verdicts by the previous key stay valid.",
)
@data_option
@json_option
def rotate_verdict_key(organization_id: str, hours: int, directory: Path, as_json: bool) -> None:
    """Sign verdicts with the next key, from the next identification on."""
    world = World.real()
    now_ms = world.now_ms()
    with opened(directory) as found:
        number = account(found.store, organization_id).organization.number
        job = partial(accounts.rotate_verdict_key, number=number, overlap_hours=hours, now_ms=now_ms)
        asked = {"previous_key_valid_hours": hours}
        changed = commit(found, world, job, lambda _: Change(number, organization_id, asked))
        keys = published_keys(verdict_key(found.pepper), changed, now_ms)
    show({"organization_id": organization_id, "keys": [key.kid for key in keys]}, as_json=as_json)


@org.command(
    "billing-status",
    epilog=examples("svc org billing-status ORG active", "svc org billing-status ORG blocked --note 'unpaid'"),
)
@click.argument("organization_id", metavar="ORG")
@click.argument("status", type=click.Choice(BILLING_STATUSES))
@click.option("--note", default="", help="Reason, stored with the change.")
@data_option
@json_option
def billing_status(organization_id: str, status: str, note: str, directory: Path, as_json: bool) -> None:
    """Set the billing status: free, active, past_due or blocked."""
    wanted = cast("BillingStatus", status)
    world = World.real()
    now_ms = world.now_ms()
    author = accounts.Author(world.request_id(now_ms), now_ms, operator().id, note)

    def job(transaction: Transaction, number: int) -> Organization:
        before = views.organization(transaction, number).billing_status
        changed = accounts.set_billing_status(transaction, number, wanted, author)
        if changed == "not_allowed":
            legal = ", ".join(TRANSITIONS[before])
            raise CommandError(f"{before} cannot become {wanted}; from there it may become {legal}")
        return changed

    asked = {"billing_status": wanted, "note": note or None}
    _change(directory, organization_id, job, asked, as_json=as_json)


@org.command(epilog=examples("svc org statement ORG --month 2026-01", "svc org statement ORG --month 2026-01 --json"))
@click.argument("organization_id", metavar="ORG")
@click.option("--month", type=click.DateTime(["%Y-%m"]), required=True, help="YYYY-MM, in UTC.")
@data_option
@json_option
def statement(organization_id: str, month: datetime, directory: Path, as_json: bool) -> None:
    """Show the ledger of a month: days, credit and changes of the billing status."""
    beyond = month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
    first_day, beyond_day = (unix_ms(day.replace(tzinfo=UTC)) // DAY_MS for day in (month, beyond))
    with opened(directory) as found:
        known = account(found.store, organization_id, removed_too=True)
        with found.store.read() as snapshot:
            ledger = settlement.statement(snapshot, known.organization.number, first_day, beyond_day)
    total = sum((row.usage for row in ledger.days), Usage())
    shown: dict[str, Any] = {
        "organization_id": organization_id,
        "month": month.strftime("%Y-%m"),
        "opening_balance_usd": _usd(ledger.opening_micros),
        **_usage(total),
        "closing_balance_usd": _usd(ledger.opening_micros + total.change_micros),
    }
    changes = [_billing_change(change) for change in ledger.changes]
    show(
        shown,
        ShownTable("days", [_statement_day(row) for row in ledger.days], _DAY_COLUMNS),
        ShownTable("credits", [_credit(entry) for entry in ledger.credits], ("at", "credit_usd", "by")),
        ShownTable("billing_status_changes", changes, ("at", "previous", "current", "by")),
        as_json=as_json,
    )


_DAY_COLUMNS = ("date", "identifiable", "unidentifiable", "free", "charged_usd", "credit_usd", "balance_usd")


def _confirm_credit(micros: int, *, sure: bool) -> None:
    if micros >= LARGE_CREDIT_MICROS:
        confirmed(f"This gives {_usd(micros)} USD of credit.", sure=sure)


def _usd(micros: int) -> str:
    return f"{Decimal(micros) / MICROS_PER_USD:f}"


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        **named(usage, "identifications", "identifiable", "unidentifiable", "free"),
        "charged_usd": _usd(usage.charged_micros),
        "credit_usd": _usd(usage.credited_micros),
    }


def _statement_day(row: settlement.StatementDay) -> dict[str, Any]:
    return {"date": iso_day(row.day), **_usage(row.usage), "balance_usd": _usd(row.balance_micros)}


def _credit(entry: LedgerEntry) -> dict[str, Any]:
    return {"at": timestamp(entry.at_ms), "credit_usd": _usd(entry.amount_micros), "by": entry.note}


def _billing_change(change: BillingChange) -> dict[str, Any]:
    by = f"{change.by}: {change.note}" if change.note else change.by
    return {**named(change, "at", "previous", "current", "blocked_reason"), "by": by}


def _shown(organization: Organization, balance_micros: int) -> dict[str, Any]:
    return {
        "organization_id": organization.id,
        **named(organization, "name", "created_at", "billing_status", "blocked_reason"),
        "balance_usd": _usd(balance_micros),
        "balance_micros": balance_micros,
        "credit_limit_usd": _usd(organization.credit_limit_micros),
        **named(organization, "rate_limit_per_s", "removed_at"),
    }
