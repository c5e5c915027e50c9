"""`svc visitor`: what the operator does for a visitor."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from svc.cli.output import Refused, account, commit, data_option, json_option, opened, show
from svc.domain.refusals import Refusal
from svc.store.transactions.erasure import erase_visitor, go_on_erasing
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
        now_ms = World.real().now_ms()
        ended = commit(found, partial(erase_visitor, number=number, visitor_id=visitor_id, now_ms=now_ms))
        if isinstance(ended, Refusal):
            raise Refused(f"{organization_id} has no visitor {visitor_id!r}")
        while not ended:
            ended = commit(found, partial(go_on_erasing, number=number, raw_id=visitor_id.encode()))
    show({"organization_id": organization_id, "visitor_id": visitor_id, "status": "erased"}, as_json=as_json)
