"""`svc org drop-documents` and `svc org remove`: what the operator takes from an organization, in small steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click

from svc.command.changes import Change, apply, commit
from svc.command.data_directory import known_organization
from svc.command.help import examples
from svc.command.operation import Operation, OrganizationCommand
from svc.command.output import confirmed, progress, yes_option
from svc.kernel.store.directory import Opened
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import Steps
from svc.kernel.tenants.jobs import holding
from svc.kernel.values.ids import first_id
from svc.world import elapsed_s, pause


@click.command("drop-documents", cls=OrganizationCommand, epilog=examples("svc org drop-documents ORG"))
@yes_option
def drop_documents(operation: Operation, sure: bool) -> None:
    """Delete an organization's archived reports permanently. Its events stay; later reports are archived again.

    It may be interrupted and run again, also while the service runs.
    """
    from svc.features.erasure import organizations as removal  # noqa: PLC0415  loads much

    of, number, store = operation.organization_id, operation.number, operation.store
    confirmed(f"This deletes the archived reports of {of} for good.", sure=sure)
    with store.read() as snapshot:
        before = holding(snapshot, number)
    step = partial(removal.drop_documents, number=number, beyond=first_id(operation.now_ms + 1))
    with progress() as steps:
        steps.stage("dropping documents", before.events)
        dropped = operation.change(step, {})
        dropped += _until_done(operation.found, step, steps, dropped)
    with store.read() as snapshot:
        after = holding(snapshot, number)
    freed = before.report_bytes - after.report_bytes
    operation.show({"organization_id": of, "dropped": dropped, "freed_bytes": freed})


@click.command(cls=OrganizationCommand, epilog=examples("svc org remove ORG"))
@yes_option
def remove(operation: Operation, sure: bool) -> None:
    """Remove an organization: its keys are refused from the next request on, and its data is erased permanently.

    Its ledger, settlements and changes of billing status stay, and its audit log for 400 days.
    After an interruption, the service erases the rest, or the same command does.
    """
    from svc.features.erasure import organizations as removal  # noqa: PLC0415  loads much
    from svc.features.erasure.unreadable import UnreadableRows  # noqa: PLC0415  as above

    of, found = operation.organization_id, operation.found
    known = known_organization(found.store, of, removed_too=True)
    if known.removed_at_ms is None:
        confirmed(f"This removes {of} ({known.name}) and erases all it has, for good.", sure=sure)
    left = UnreadableRows()

    def begin(transaction: Transaction) -> bool:
        return removal.remove_organization(left.past(transaction), known.number, operation.now_ms)

    def go_on(transaction: Transaction) -> int:
        return removal.continue_removal(left.past(transaction), known.number)

    commit(found, operation.world, begin, lambda is_new: Change(known.number, of) if is_new else None)
    with found.store.read() as snapshot:
        events = holding(snapshot, known.number).events
    with progress() as steps:
        steps.stage("erasing", events)
        erased = _until_done(found, go_on, steps, 1)
    ended_as = {"organization_id": of, "status": "removed", "rows_erased": erased}
    operation.show(ended_as | ({"remains_in": list(map(str, left.left()))} if left.left() else {}))


def _until_done(found: Opened, step: Callable[[Transaction], int], steps: Steps, last: int) -> int:
    """Repeat the step until it does nothing; return the sum. Pauses leave a running service half of the time."""
    done = 0
    while last:
        began = elapsed_s()
        last = apply(found, step)
        done += last
        steps.step(last)
        pause(elapsed_s() - began)
    return done
