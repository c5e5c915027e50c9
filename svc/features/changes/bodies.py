"""The query and the response of `GET /changes`, and a change as one object of JSON."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.changes.jobs import Change
from svc.identify.events.event_row import EventBody, UnreadableEventBody
from svc.identify.model import Label
from svc.identify.queries.events import listed_row
from svc.kernel.values.fields import Cursor, RequestId, Timestamp, about, open_to, or_else
from svc.kernel.values.timestamps import timestamp


class ListChangesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of the changes of a key's environment (decisions 19)."""

    after: (
        Annotated[Cursor, about("`next_cursor` of the page before; from the oldest that is kept when left out.")]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=200), about("How many per page, at most.", 50)] = 50


class ChangeBody(msgspec.Struct, frozen=True, kw_only=True):
    """An event that was created, updated or erased."""

    type: Annotated[
        str,
        about("What happened.", "event.updated", form=open_to("event.created", "event.updated", "event.erased")),
    ]
    at: Annotated[Timestamp, about("When: of `event.created` the arrival of the event.")]
    request_id: RequestId
    event: (
        Annotated[
            EventBody,
            or_else(UnreadableEventBody),
            about("The event as it is now, a row of `GET /events`; left out once it is erased or too old to be read."),
        ]
        | UnsetType
    ) = UNSET
    label: Annotated[
        Label | UnsetType | None,
        about("Of an updated event that is too old to be read: its label; `null` = it has none.", "fraud"),
    ] = UNSET
    label_reason: Annotated[
        str | UnsetType | None, about("Of an updated event that is too old to be read: why it has it.", "chargeback")
    ] = UNSET


class ChangesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A page of changes, oldest first."""

    changes: Annotated[tuple[ChangeBody, ...], about("Oldest first.")]
    next_cursor: Annotated[Cursor, about("For what follows; every page has one.")]
    has_more: Annotated[bool, about("Whether there is a next page now.", False)]


def change_body(change: Change) -> ChangeBody:
    """Return a change as it is published."""
    labeled = change.labeled
    return ChangeBody(
        type=change.type,
        at=timestamp(change.at_ms),
        request_id=str(change.request_id),
        event=UNSET if change.event is None else listed_row(change.event),  # pyright: ignore[reportArgumentType]  as `or_else` says
        label=UNSET if labeled is None else labeled.label,
        label_reason=UNSET if labeled is None else labeled.reason,
    )
