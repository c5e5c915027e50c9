"""The way a request beside identify changes anything: one job of the store's one writer, on disk before the answer.

Several changes at once are each made upon what the one before left, since the store commits one group at a time; a
caller that walks away while its change is on the way to the disk leaves a whole change behind or none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog

from svc.domain.refusals import Refusal
from svc.http.authentication import Caller
from svc.http.endpoint import Call, Services
from svc.store.snapshot import Transaction
from svc.store.store import StoreFull
from svc.store.transactions.keys import note_use, use_is_due

log = structlog.get_logger()

T = TypeVar("T")


async def change(services: Services, call: Call, job: Callable[[Transaction], T]) -> T | Refusal:
    """What the job returned, once it is durable; `503 service_unavailable` where the store has no room.

    The use of the key is noted with it, at most once a minute (decisions 2.3). Raises what the job raised.
    """
    caller = caller_of(call)
    use = use_is_due(caller.key, call.at_ms)

    def noted_job(transaction: Transaction) -> T:
        if use:
            note_use(transaction, caller.digest, call.at_ms)
        return job(transaction)

    try:
        (outcome,) = await services.store.write([noted_job])
    except StoreFull as error:
        log.warning("nothing can be stored", request_id=str(call.request_id), reason=str(error))
        return Refusal("service_unavailable")
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def noted(services: Services, call: Call) -> Caller:
    """The caller of a route that only reads, its use noted, which costs a key one commit a minute."""
    caller = caller_of(call)
    if use_is_due(caller.key, call.at_ms):
        await change(services, call, lambda _: None)  # where there is no room for it, the read goes on without
    return caller


def caller_of(call: Call) -> Caller:
    """The caller of a route that takes a key."""
    assert call.caller is not None
    return call.caller
