"""`svc org statement`: the ledger of a month, and how amounts of money are written."""

from __future__ import annotations

from datetime import MAXYEAR, UTC, datetime
from decimal import Decimal
from typing import Any

import click

from svc.command.data_directory import known_organization
from svc.command.help import examples
from svc.command.operation import Operation, OrganizationCommand
from svc.command.output import ShownTable
from svc.features.billing import jobs as settlement
from svc.kernel.tenants.billing import MICROS_PER_USD, BillingChange, LedgerEntry, Usage
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.struct_fields import named
from svc.kernel.values.timestamps import iso_day, timestamp, unix_ms

_DAY_COLUMNS = ("date", "identifiable", "unidentifiable", "free", "charged_usd", "credit_usd", "balance_usd")
_EPOCH_YEAR = 1970


def _in_range(_: click.Context, __: click.Parameter, month: datetime) -> datetime:
    """Return a month that the ledger may have days of, and after which there is another one."""
    if not _EPOCH_YEAR <= month.year < MAXYEAR:
        raise click.BadParameter(f"the year is from {_EPOCH_YEAR} to {MAXYEAR - 1}")
    return month


@click.command(
    cls=OrganizationCommand,
    epilog=examples("svc org statement ORG --month 2026-01", "svc org statement ORG --month 2026-01 --json"),
)
@click.option("--month", type=click.DateTime(["%Y-%m"]), callback=_in_range, required=True, help="YYYY-MM, in UTC.")
def statement(operation: Operation, month: datetime) -> None:
    """Show the ledger of a month: days, credit and changes of the billing status."""
    beyond = month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
    first_day, beyond_day = (unix_ms(day.replace(tzinfo=UTC)) // DAY_MS for day in (month, beyond))
    known = known_organization(operation.store, operation.organization_id, removed_too=True)
    with operation.store.read() as snapshot:
        ledger = settlement.statement(snapshot, known.number, first_day, beyond_day)
    total = sum((row.usage for row in ledger.days), Usage())
    shown: dict[str, Any] = {
        "organization_id": operation.organization_id,
        "month": month.strftime("%Y-%m"),
        "opening_balance_usd": usd(ledger.opening_micros),
        **_usage(total),
        "closing_balance_usd": usd(ledger.opening_micros + total.change_micros),
    }
    changes = [_billing_change(change) for change in ledger.changes]
    operation.show(
        shown,
        ShownTable("days", [_statement_day(row) for row in ledger.days], _DAY_COLUMNS),
        ShownTable("credits", [_credit(entry) for entry in ledger.credits], ("at", "credit_usd", "by")),
        ShownTable("billing_status_changes", changes, ("at", "previous", "current", "by")),
    )


def usd(micros: int) -> str:
    """Return micro-dollars as dollars, exact."""
    return f"{Decimal(micros) / MICROS_PER_USD:f}"


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        **named(usage, "identifications", "identifiable", "unidentifiable", "free"),
        "charged_usd": usd(usage.charged_micros),
        "credit_usd": usd(usage.credited_micros),
    }


def _statement_day(row: settlement.StatementDay) -> dict[str, Any]:
    return {"date": iso_day(row.day), **_usage(row.usage), "balance_usd": usd(row.balance_micros)}


def _credit(entry: LedgerEntry) -> dict[str, Any]:
    return {"at": timestamp(entry.at_ms), "credit_usd": usd(entry.amount_micros), "by": entry.note}


def _billing_change(change: BillingChange) -> dict[str, Any]:
    by = f"{change.by}: {change.note}" if change.note else change.by
    return {**named(change, "at", "previous", "current", "blocked_reason"), "by": by}
