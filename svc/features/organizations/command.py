"""`svc org`: organizations, their limits and their money. Amounts are shown in dollars, exact to a millionth.

`removal_command.py` has what takes from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from svc.command.changes import Change, commit, operator
from svc.command.data_directory import known_organization, opened
from svc.command.help import examples
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import CommandError, confirmed, data_option, json_option, settings, show, show_table, yes_option
from svc.features.billing.statement_command import statement, usd
from svc.features.organizations import jobs as organizations
from svc.features.organizations.removal_command import drop_documents, remove
from svc.features.webhooks.jobs.endpoints import MAX_OVERLAP_HOURS
from svc.identify.keys.signed_verdict import published_keys, verdict_key
from svc.kernel.config import GIB
from svc.kernel.limits.ratelimit import DEFAULT_LIMIT_PER_S
from svc.kernel.store.directory import Opened
from svc.kernel.store.installation import ServedLimits, served_limits
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants import jobs as ledger
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.billing import (
    BILLING_STATUSES,
    IDENTIFIABLE_MICROS,
    MICROS_PER_USD,
    TRANSITIONS,
    BillingStatus,
    refused_for_money,
)
from svc.kernel.tenants.jobs import holding
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.fields import is_visible
from svc.kernel.values.struct_fields import named
from svc.world import World, twenty_characters

_RATE_LIMIT = click.IntRange(0, 1_000_000)
LARGE_CREDIT_MICROS = 1_000_000 * MICROS_PER_USD
"""From here on an amount may well be a slip of the keyboard."""


NO_LIMIT = "none"
_POSTPAID = (
    "It is postpaid: what production costs is counted, the balance goes below zero, and nothing is refused for money.\n"
    "To make it prepaid: svc org credit-limit {} --usd 0"
)
_PREPAID = (
    "It is prepaid: production traffic is refused (402) when its credit is used up; `svc org credit` adds some.\n"
    "To make it postpaid: svc org credit-limit {} --usd none"
)


F = TypeVar("F", bound=Callable[..., Any])


class Dollars(click.ParamType[int]):
    """A click type: US dollars with at most six decimals, converted to integer micro-dollars."""

    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return integer micro-dollars, at most 10^15 in either direction; an integer is taken as micro-dollars. Fails
        with a usage error.
        """
        if isinstance(value, int):
            return value
        try:
            amount = Decimal(value)
        except InvalidOperation:
            amount = Decimal("Infinity")
        if not amount.is_finite() or abs(amount) > 10**9 or amount != round(amount, 6):
            self.fail(f"{value!r} is not an amount in dollars such as 25 or 0.5", param, ctx)
        return int(amount * MICROS_PER_USD)


LONGEST_NOTE = 500
"""Characters, as of a list entry and a rule."""


def _note_option(about: str) -> Callable[[F], F]:
    def checked(_: click.Context, __: click.Parameter, note: str) -> str:
        if len(note) > LONGEST_NOTE:
            raise click.BadParameter(f"it has {len(note)} characters, and {LONGEST_NOTE} is the most")
        return note

    return click.option("--note", default="", callback=checked, help=f"{about} At most {LONGEST_NOTE} characters.")


class CreditLimit(Dollars):
    """US dollars -> millionths, `none` -> -1. Negative amounts fail."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See `Dollars`."""
        if value == NO_LIMIT:
            return -1
        micros = super().convert(value, param, ctx)
        if micros < 0:
            self.fail(f"a credit limit is not negative; write `{NO_LIMIT}` for no limit", param, ctx)
        return micros


@click.group(cls=OrganizationGroup)
def org() -> None:
    """Manage organizations: create and list them, and set limits, credit and billing status."""


org.add_command(drop_documents)
org.add_command(remove)
org.add_command(statement)


@org.command(
    cls=click.Command,
    epilog=examples(
        "svc org create 'My shop' --data /var/lib/svc", "svc org create Shop --credit-usd 50 --rate-limit 200 --json"
    ),
)
@click.argument("name")
@click.option(
    "--credit-usd",
    "credit",
    type=Dollars(),
    help="Prepaid, with this credit in dollars, 0 too; without it postpaid: nothing is ever refused for money.",
)
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
def create(name: str, credit: int | None, rate_limit: int, sure: bool, directory: Path, as_json: bool) -> None:
    """Create an organization, and the data directory if it is missing."""
    name = check_name(name)
    if credit is not None:
        if credit < 0:
            raise CommandError(
                "an organization begins with credit of 0 or more; `svc org credit` takes some back later"
            )
        _confirm_credit(credit, sure=sure)
    with opened(directory, create=True) as found:
        created = create_organization(found, World.real(), name, credit=credit, rate_limit=rate_limit)
    show(_shown(created, credit or 0), as_json=as_json)
    if not as_json:
        click.echo(f"\n{_PREPAID if credit is not None else _POSTPAID}".format(created.id))


def check_name(name: str) -> str:
    """Return an organization's name without outer spaces. Raises `CommandError` unless it has 1 to 200 characters, and
    one that people see.
    """
    if not is_visible(name) or len(name) > 200:
        raise CommandError("an organization's name has 1 to 200 characters, and not invisible ones alone")
    return name.strip()


def create_organization(
    found: Opened, world: World, name: str, *, credit: int | None, rate_limit: int = DEFAULT_LIMIT_PER_S
) -> Organization:
    """Create an organization and record it, in one transaction: with its first credit (micro-dollars), or postpaid for
    `None`.
    """
    job = creation(world, name, credit=credit, rate_limit=rate_limit)
    return commit(found, world, job, partial(created_change, credit=credit))


def creation(world: World, name: str, *, credit: int | None, rate_limit: int) -> Callable[[Transaction], Organization]:
    """Return the job that creates an organization with its first credit, in micro-dollars: 0 = no line on the ledger,
    `None` = postpaid.
    """
    now_ms = world.now_ms()
    organization_id = "org_" + twenty_characters(world.entropy)
    entry_id = world.request_id(now_ms) if credit else None

    def job(transaction: Transaction) -> Organization:
        created = organizations.create_organization(
            transaction,
            organization_id=organization_id,
            name=name,
            now_ms=now_ms,
            rate_limit_per_s=rate_limit,
            is_postpaid=credit is None,
        )
        if credit is not None and entry_id is not None:
            ledger.add_credit(
                transaction, created.number, entry_id=entry_id, micros=credit, now_ms=now_ms, note="first credit"
            )
        return created

    return job


def created_change(created: Organization, *, credit: int | None) -> Change:
    """Return the audit record of a new organization; `credit` in micro-dollars, `None` = it is postpaid."""
    money = {"credit_limit_usd": NO_LIMIT} if credit is None else {"credit_usd": usd(credit)}
    asked = {"name": created.name, **money, "rate_limit_per_s": created.rate_limit_per_s}
    return Change(created.number, created.id, asked)


@org.command("list", cls=click.Command, epilog=examples("svc org list"))
@data_option
@json_option
def list_(directory: Path, as_json: bool) -> None:
    """List all organizations, oldest first."""
    with opened(directory) as found, found.store.read() as snapshot:
        rows = [_shown(known, lookups.balance(snapshot, known.number)) for known in lookups.all_organizations(snapshot)]
    columns = ("organization_id", "name", "billing_status", "balance_usd", "rate_limit_per_s", "removed_at")
    show_table(rows, columns, "organizations", as_json=as_json)


@org.command("show", epilog=examples("svc org show ORG"))
def show_(operation: Operation) -> None:
    """Show an organization: its balance, what it stores and its share of the store."""
    found = operation.found
    known = known_organization(found.store, operation.organization_id, removed_too=True)
    with found.store.read() as snapshot:
        held, balance_micros = holding(snapshot, known.number), lookups.balance(snapshot, known.number)
        served = served_limits(snapshot) or ServedLimits(found.store.capacity_bytes(), settings().store_share)
        most = lookups.share_in_force(snapshot, served.store_share) * served.capacity_bytes
    share = held.held_bytes / most
    held_share = (
        share if operation.as_json else f"{share:.1%} of the {most / GIB:.1f} GiB that one organization may hold"
    )
    storage = {**named(held, "events", "visitors", "report_bytes", "held_bytes"), "held_share": held_share}
    operation.show({**_shown(known, balance_micros), **storage})


@org.command(
    epilog=examples(
        "svc org credit ORG --usd 25 --note 'invoice 17'", "svc org credit ORG --usd -25 --note 'booked twice'"
    )
)
@click.option("--usd", "micros", type=Dollars(), required=True, help="Dollars; a negative amount takes credit back.")
@_note_option("Reason, stored on the ledger.")
@yes_option
def credit(operation: Operation, micros: int, note: str, sure: bool) -> None:
    """Add credit to an organization's ledger. A negative amount corrects an earlier one. If the balance falls below
    the credit limit, production traffic is refused (402) until there is credit again.
    """
    _confirm_credit(micros, sure=sure)
    who, number = operator().id, operation.number
    job = partial(
        ledger.add_credit,
        number=number,
        entry_id=operation.world.request_id(operation.now_ms),
        micros=micros,
        now_ms=operation.now_ms,
        note=f"{who}: {note}" if note else who,
    )
    operation.change(job, {"credit_usd": usd(micros), "note": note or None})
    known, balance_micros = known_organization(operation.store, operation.organization_id), _balance(operation)
    if micros < 0:
        refused = refused_for_money(
            environment="production",
            status=known.billing_status,
            balance_micros=balance_micros,
            credit_limit_micros=known.credit_limit_micros,
            price=IDENTIFIABLE_MICROS,
        )
        consequence = ": production traffic is refused (402) until there is credit" if refused == "no_credit" else ""
        click.echo(f"took {usd(-micros)} USD back; the balance is {usd(balance_micros)}{consequence}", err=True)
    operation.show(_shown(known, balance_micros))


@org.command(
    "credit-limit", epilog=examples("svc org credit-limit ORG --usd 100", "svc org credit-limit ORG --usd none")
)
@click.option(
    "--usd",
    "micros",
    type=CreditLimit(),
    metavar="N|none",
    required=True,
    help="Dollars the balance may go below zero; none = as far as it goes.",
)
def credit_limit(operation: Operation, micros: int) -> None:
    """Set how far the balance may go below zero. Without a limit the organization is postpaid, and nothing is refused
    for money. The billing status stays.
    """
    limit = None if micros < 0 else micros
    job = partial(organizations.set_credit_limit, micros=limit)
    _change(operation, job, {"credit_limit_usd": _limit(limit) or NO_LIMIT})


@org.command("rate-limit", epilog=examples("svc org rate-limit ORG 500"))
@click.argument("per_second", metavar="N", type=_RATE_LIMIT)
def rate_limit(operation: Operation, per_second: int) -> None:
    """Set the identifications per second; 0 = no limit."""
    job = partial(organizations.set_rate_limit, per_s=per_second)
    _change(operation, job, {"rate_limit_per_s": per_second})


def _balance(operation: Operation) -> int:
    with operation.store.read() as snapshot:
        return lookups.balance(snapshot, operation.number)


def _change(operation: Operation, job: Callable[..., Organization], asked: Mapping[str, Any]) -> None:
    """Change an organization by a job that takes its `number`, record the request, and show the result."""
    balance_micros = _balance(operation)
    changed = operation.change(partial(job, number=operation.number), asked)
    operation.show(_shown(changed, balance_micros))


@org.command(
    "rotate-verdict-key",
    epilog=examples("svc org rotate-verdict-key ORG", "svc org rotate-verdict-key ORG --previous-valid-hours 0"),
)
@click.option(
    "--previous-valid-hours",
    "hours",
    type=click.IntRange(0, MAX_OVERLAP_HOURS),
    default=24,
    show_default=True,
    help="Hours for which verdicts by the previous key stay valid.",
)
def rotate_verdict_key(operation: Operation, hours: int) -> None:
    """Sign verdicts with the next key, from the next identification on."""
    number, now_ms = operation.number, operation.now_ms
    job = partial(organizations.rotate_verdict_key, number=number, overlap_hours=hours, now_ms=now_ms)
    changed = operation.change(job, {"previous_key_valid_hours": hours})
    keys = published_keys(verdict_key(operation.found.pepper), changed, now_ms)
    operation.show({"organization_id": operation.organization_id, "keys": [key.kid for key in keys]})


@org.command(
    "billing-status",
    epilog=examples("svc org billing-status ORG active", "svc org billing-status ORG blocked --note 'unpaid'"),
)
@click.argument("status", type=click.Choice(BILLING_STATUSES))
@_note_option("Reason, stored with the change.")
def billing_status(operation: Operation, status: str, note: str) -> None:
    """Set the billing status: free, active, past_due or blocked."""
    wanted = cast("BillingStatus", status)
    entry_id = operation.world.request_id(operation.now_ms)
    author = organizations.Author(entry_id, operation.now_ms, operator().id, note)

    def job(transaction: Transaction, number: int) -> Organization:
        before = lookups.organization(transaction, number).billing_status
        changed = organizations.set_billing_status(transaction, number, wanted, author)
        if changed == "not_allowed":
            legal = ", ".join(TRANSITIONS[before])
            raise CommandError(f"{before} cannot become {wanted}; from there it may become {legal}")
        return changed

    _change(operation, job, {"billing_status": wanted, "note": note or None})


def _confirm_credit(micros: int, *, sure: bool) -> None:
    if micros >= LARGE_CREDIT_MICROS:
        confirmed(f"This gives {usd(micros)} USD of credit.", sure=sure)


def _limit(micros: int | None) -> str | None:
    return None if micros is None else usd(micros)


def _shown(organization: Organization, balance_micros: int) -> dict[str, Any]:
    return {
        "organization_id": organization.id,
        **named(organization, "name", "created_at", "billing_status", "blocked_reason"),
        "balance_usd": usd(balance_micros),
        "balance_micros": balance_micros,
        "credit_limit_usd": _limit(organization.credit_limit_micros),
        **named(organization, "rate_limit_per_s", "removed_at"),
    }
