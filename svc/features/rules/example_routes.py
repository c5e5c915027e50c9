"""The examples of a preview of rules in the console: the management API names them by their ids (decisions 13.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, get_args
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.events.routes import read_request_id
from svc.features.rules.routes import EXAMPLES
from svc.features.rules.ruleset import MAX_RULES
from svc.http.route import Call, Route, Services, console_route
from svc.identify.model import Level
from svc.identify.queries.events import event_if_readable
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import SUSPECT_SCORE, AccountId, Action, RequestId, Timestamp, about, open_to
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import body_of
from svc.kernel.work.slices import all_in_slices

MAX_EXAMPLES = MAX_RULES * EXAMPLES


class ExamplesBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which events are shown: the examples of a preview."""

    request_ids: Annotated[tuple[RequestId, ...], Meta(max_length=MAX_EXAMPLES), about("Ids of the events.")]


class ExampleBody(msgspec.Struct, frozen=True, kw_only=True):
    """What an example of a preview is known by."""

    request_id: RequestId
    occurred_at: Annotated[Timestamp, about("When the request arrived.")]
    suspect_score: Annotated[int | None, SUSPECT_SCORE]
    suspect_level: Annotated[
        Level | UnsetType, about("Left out when not scored.", "medium", form=open_to(*get_args(Level)))
    ] = UNSET
    account_id: AccountId | UnsetType = UNSET
    action: Action | UnsetType = UNSET


class ExamplesAnswer(msgspec.Struct, frozen=True):
    """Examples of a preview."""

    rows: Annotated[tuple[ExampleBody, ...], about("In the order of the ids, without events that are gone.")]


async def read_examples(services: Services, call: Call) -> ExamplesAnswer | Refusal:
    """`POST /console/api/rules/examples`: what the examples of a preview are known by, of any environment of the
    organization; those that it does not have are left out. `422 validation_error`.
    """
    body: ExamplesBody = call.body
    request_ids: list[UUID] = []
    for at, text in enumerate(body.request_ids):
        request_id = read_request_id(text)
        if isinstance(request_id, Refusal):
            return invalid(f"request_ids[{at}]", "invalid_value")
        request_ids.append(request_id)
    number = call.organization.number
    oldest_ms = call.at_ms - services.event_retention_ms

    def read(snapshot: Snapshot, some: Sequence[UUID]) -> Iterator[ExampleBody | None]:
        for request_id in some:
            event = event_if_readable(snapshot, number, request_id.bytes)
            if event is None or event.occurred_at_ms < oldest_ms:
                yield None
            else:
                yield body_of(ExampleBody, event, event.verdict, request_id=str(request_id))

    found = await all_in_slices(services.world, services.store, request_ids, read)
    return ExamplesAnswer(tuple(each for each in found if each is not None))


ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="readConsoleExamples",
        method="POST",
        path="/rules/examples",
        summary="Read the examples of a preview",
        description=f"Of up to {MAX_EXAMPLES} events; those that the organization does not have are left out.",
        handler=read_examples,
        needs="read",
        body=ExamplesBody,
    ),
)
