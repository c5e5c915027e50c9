"""What a backend says of an event afterwards: its account, action and tag (decisions 11.2)."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import msgspec

from svc.domain.model import Environment
from svc.domain.records import Event
from svc.domain.refusals import Refusal
from svc.store.schema.tables import VISITOR_IDS
from svc.store.snapshot import Transaction
from svc.store.transactions.velocity import move_event
from svc.store.views.events import event_by_request, rewrite_event
from svc.store.views.velocity import party_of


def change_event(
    transaction: Transaction,
    number: int,
    environment: Environment,
    request_id: UUID,
    fields: Mapping[str, str | None],
    now_ms: int,
) -> Event | Refusal:
    """Give an event these values of `account_id`, `action` and `tag`; `None` removes one. `404 event_not_found`.

    The event keeps its visitor, score and velocity; the counts of accounts, visitors and addresses follow.
    """
    before = event_by_request(transaction, number, environment, request_id, now_ms)
    if before is None:
        return Refusal("event_not_found")
    after = msgspec.structs.replace(before, **fields)
    if "account_id" in fields:
        after = msgspec.structs.replace(after, account_verified=after.account_id is not None)
    if after == before:
        return before
    rewrite_event(transaction, number, request_id, before, after)
    if after.account_id != before.account_id and before.velocity is not None:
        visitor = transaction.get(VISITOR_IDS, number, before.verdict.visitor_id.encode())
        move_event(transaction, before, party_of(number, before, visitor), party_of(number, after, visitor), now_ms)
    return after
