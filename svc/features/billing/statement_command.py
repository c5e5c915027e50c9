"""`svc org statement`: the ledger of a month, and how amounts of money are written."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from svc.command.data_directory import account, opened
from svc.command.help import examples
from svc.command.output import ShownTable, data_option, json_option, show
from svc.features.billing import jobs as settlement
from svc.kernel.tenants.billing import MICROS_PER_USD, BillingChange, LedgerEntry, Usage
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.struct_fields import named
from svc.kernel.values.timestamps import iso_day, timestamp, unix_ms

_DAY_COLUMNS = ("date", "identifiable", "unidentifiable", "free", "charged_usd", "credit_usd", "balance_usd")


@click.command(epilog=examples("svc org statement ORG --month 2026-01", "svc org statement ORG --month 2026-01 --json"))
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
        "opening_balance_usd": usd(ledger.opening_micros),
        **_usage(total),
        "closing_balance_usd": usd(ledger.opening_micros + total.change_micros),
    }
    changes = [_billing_change(change) for change in ledger.changes]
    show(
        shown,
        ShownTable("days", [_statement_day(row) for row in ledger.days], _DAY_COLUMNS),
        ShownTable("credits", [_credit(entry) for entry in ledger.credits], ("at", "credit_usd", "by")),
        ShownTable("billing_status_changes", changes, ("at", "previous", "current", "by")),
        as_json=as_json,
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
