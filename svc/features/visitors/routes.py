"""The rights of visitors and of account holders, exercised by the organization's own automation (decisions
7.6, 11.6).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from svc.features.erasure.accounts import continue_account_erasure, erase_account
from svc.features.erasure.visitors import continue_erasure, erase_visitor
from svc.http.change import change
from svc.http.route import ORGANIZATION, Call, Route, Services
from svc.identify.velocity.counts import account_digest
from svc.kernel.access.audit import Audited
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.refusals import Refusal


async def erase(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../visitors/{visitor_id}`: `204` when nothing of the visitor is left to read (decisions 7.6). `404
    not_found`.

    Where the caller does not wait, or the store is full in between, retention completes the erasure.
    """
    return await erase_wholly(services, call, call.path["visitor_id"])


async def erase_wholly(
    services: Services, call: Call, visitor_id: str, *, unless: Callable[[Snapshot], Refusal | None] = lambda _: None
) -> Refusal | None:
    """Erase a visitor of the caller's organization, step by step; `204` when nothing of it is left to read (decisions
    7.6), `404 not_found` for an unknown one. `unless` may refuse it, in the transaction that begins.
    """
    number = call.organization.number

    def begin(transaction: Transaction) -> Refusal | bool:
        return unless(transaction) or erase_visitor(transaction, number, visitor_id, call.at_ms)

    ended = await change(services, call, begin, may_use_reserve=True)
    while ended is False:
        go_on = partial(continue_erasure, number=number, raw_id=visitor_id.encode())
        ended = await change(services, call, go_on, may_use_reserve=True)
    return ended if isinstance(ended, Refusal) else None


async def erase_an_account(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../accounts/{account_id}`: `204` when nothing names the account any more (decisions 11.6). `404
    not_found`.

    Where the caller does not wait, or the store is full in between, retention completes the erasure.
    """
    number, account_id = call.organization.number, call.path["account_id"]
    begin = partial(erase_account, number=number, account_id=account_id)
    ended = await change(services, call, begin, may_use_reserve=True)
    while ended is False:
        go_on = partial(continue_account_erasure, number=number, digest=account_digest(number, account_id))
        ended = await change(services, call, go_on, may_use_reserve=True)
    return ended if isinstance(ended, Refusal) else None


ROUTES: tuple[Route, ...] = (
    Route(
        operation_id="eraseVisitor",
        audited=Audited(names_people=True),
        method="DELETE",
        path=ORGANIZATION + "/visitors/{visitor_id}",
        tag="Management: visitors",
        summary="Erase a visitor",
        description="With its events, their submissions and deferred reports, for good.",
        handler=erase,
        kinds=("management",),
        needs="administer",
        status=204,
    ),
    Route(
        operation_id="eraseAccount",
        audited=Audited(names_people=True),
        method="DELETE",
        path=ORGANIZATION + "/accounts/{account_id}",
        tag="Management: visitors",
        summary="Erase an account",
        description="Its id leaves events, counts, lists, notes and queued webhooks, for good. The events stay.",
        handler=erase_an_account,
        kinds=("management",),
        needs="administer",
        status=204,
    ),
)
