"""`svc visitor revoke-keys`: the keys of browsers that first signed in a window of time prove nothing any more."""

from __future__ import annotations

from functools import partial

import click

from svc.command.changes import apply
from svc.command.data_directory import Readable
from svc.command.help import examples
from svc.command.operation import Operation, OrganizationCommand
from svc.command.output import TimestampType, confirmed, progress, yes_option
from svc.features.browser_keys.jobs import REVOKED_AT_ONCE, Signed, keys_behind, revoke_keys
from svc.kernel.store.steps import Steps
from svc.kernel.values.ids import end_of_now
from svc.kernel.values.timestamps import timestamp
from svc.world import elapsed_s, pause

READ_AT_ONCE = 250
"""Visitors of one snapshot."""


@click.command(
    "revoke-keys",
    cls=OrganizationCommand,
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
        visitors, keys = _all_keys(operation.store, number, signed, steps)
    if visitors:
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


def _all_keys(store: Readable, number: int, signed: Signed, steps: Steps) -> tuple[list[int], int]:
    """Return the numbers of visitors with such keys, and how many keys. Between steps others can use the store."""
    visitors: list[int] = []
    keys = 0
    after: int | None = 0
    steps.stage("looking through visitors", 0)
    while after is not None:
        began = elapsed_s()
        with store.read() as snapshot:
            some = list(keys_behind(snapshot, after, READ_AT_ONCE, number=number, signed=signed))
        visitors += [visitor for visitor, count in some if count]
        keys += sum(count for _, count in some)
        after = some[-1][0] if len(some) == READ_AT_ONCE else None
        pause(elapsed_s() - began)
    return visitors, keys
