"""`svc visitor`: what the operator does for a visitor."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from svc.cli.changes import Change, commit, go_on
from svc.cli.output import CommandError, account, data_option, json_option, opened, show
from svc.domain.refusals import Refusal
from svc.store.snapshot import Transaction
from svc.store.transactions.erasure import continue_erasure, erase_visitor
from svc.world import World


@click.group()
def visitor() -> None:
    """Visitors: erase one."""


@visitor.command()
@click.argument("organization_id", metavar="ORG")
@click.argument("visitor_id", metavar="VISITOR")
@data_option
@json_option
def erase(organization_id: str, visitor_id: str, directory: Path, as_json: bool) -> None:
    """Erase a visitor with its events, their submissions and deferred reports, for good."""
    with opened(directory) as found:
        number = account(found, organization_id).organization.number
        world = World.real()
        now_ms = world.now_ms()

        def begin(transaction: Transaction) -> bool:
            ended = erase_visitor(transaction, number, visitor_id, now_ms)
            if isinstance(ended, Refusal):
                raise CommandError(f"{organization_id} has no visitor {visitor_id!r}")
            return ended

        ended = commit(found, world, begin, lambda _: Change(number, visitor_id))
        while not ended:
            ended = go_on(found, partial(continue_erasure, number=number, raw_id=visitor_id.encode()))
    show({"organization_id": organization_id, "visitor_id": visitor_id, "status": "erased"}, as_json=as_json)
