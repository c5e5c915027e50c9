"""`svc audit`: who changed what, when and from where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from svc.command.data_directory import known_organization, opened
from svc.command.help import examples
from svc.command.output import TimestampType, data_option, json_option, show, show_table
from svc.features.audit.queries import BEYOND_MS, AuditMatch, Sought, newest
from svc.kernel.access.audit import Actor
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.ids import made_at_ms
from svc.kernel.values.timestamps import timestamp

_COLUMNS = ("at", "organization", "actor", "from", "action", "subject", "change")


@click.command(epilog=examples("svc audit --since 24h", "svc audit --org ORG --action 'svc key revoke' --json"))
@click.option("--org", "organization_id", metavar="ORG", help="Changes of this organization.")
@click.option("--since", "since_ms", type=TimestampType(), default=0, metavar="T", help="From this time on.")
@click.option("--until", "until_ms", type=TimestampType(), default=BEYOND_MS, metavar="T", help="Before this time.")
@click.option("--action", metavar="A", help="An operation id or a command: issueSdkKey, 'svc key issue'.")
@click.option("--actor", metavar="WHO", help="Id or name of a member, key or user of this machine.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Maximum number.")
@data_option
@json_option
def audit(
    organization_id: str | None,
    since_ms: int,
    until_ms: int,
    action: str | None,
    actor: str | None,
    limit: int,
    directory: Path,
    as_json: bool,
) -> None:
    """Show who changed what, when and from where, newest first, also while the service runs.

    Every change by a member, management key or command of this program is here for 400 days. Refused requests and
    secrets are not recorded. Times are RFC 3339 (2026-01-05T10:00:00Z), or how long ago: 30m, 24h, 7d, 2w.
    """
    if since_ms >= until_ms:
        raise click.UsageError("--until is not after --since")
    with opened(directory) as found:
        number = (
            None
            if organization_id is None
            else known_organization(found.store, organization_id, removed_too=True).number
        )
        sought = Sought(number, since_ms, until_ms, action, actor)
        with found.store.read() as snapshot:
            records = newest(snapshot, sought, limit + 1)
            rows = [_row(snapshot, record) for record in records[:limit]]
    more = len(records) > limit
    if as_json:
        show({"records": rows, "more": more}, as_json=True)
        return
    show_table([_line(row) for row in rows], _COLUMNS, "records", as_json=False)
    if more:
        reached_ms = made_at_ms(records[limit - 1].id.bytes) + 1  # others of that millisecond come again
        click.echo(f"\nThere are older ones: add --until {timestamp(reached_ms)}, or raise --limit.")


def _row(snapshot: Snapshot, found: AuditMatch) -> dict[str, Any]:
    record = found.record
    over_http = record.actor.kind != "command_line"
    return {
        "id": str(found.id),
        "at": timestamp(record.at_ms),
        "organization_id": lookups.organization(snapshot, record.organization).id,
        "actor": _actor(record.actor),
        "from": record.actor.place,
        "action": record.action,
        "subject": record.subject,
        "change": record.change,
        "request_id": str(found.id) if over_http else None,
    }


def _actor(actor: Actor) -> dict[str, Any]:
    if actor.kind == "command_line":
        return {"kind": actor.kind, "id": actor.id, "sudo_user": actor.name}
    return {"kind": actor.kind, "id": actor.id, "name": actor.name, "role": actor.role}


def _line(row: dict[str, Any]) -> dict[str, Any]:
    """Return the record with actor and change as single cells of a table."""
    actor = row["actor"]
    name = actor.get("name") or actor.get("sudo_user")
    return {
        **row,
        "organization": row["organization_id"],
        "actor": f"{actor['id']} ({name})" if name else actor["id"],
        "change": msgspec.json.encode(row["change"]).decode() if row["change"] else None,
    }
