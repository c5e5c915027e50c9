"""Bodies of the management API about webhooks: what interface 2.9 and 2.10, and decisions 8, say as types.

As in `svc.features.organizations.bodies`. What an endpoint subscribes to and where it is are judged by the rules of the
domain, which know more than a type; their forms stand here for the published documents.
"""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.rules.language.language import MAX_LENGTH
from svc.features.webhooks.addresses import MAX_URL_LENGTH
from svc.features.webhooks.jobs.endpoints import MAX_OVERLAP_HOURS
from svc.features.webhooks.queries import Registered
from svc.features.webhooks.records import (
    EVENT_TYPES,
    Attempt,
    AttemptCount,
    AttemptError,
    AttemptStatus,
    EndpointStatus,
    EventType,
    Health,
    WebhookEnvironment,
    WebhookFormat,
)
from svc.http.schema import CursorOn, Limit
from svc.kernel.values.fields import (
    AN_EVENT_ID,
    UUID_FORM,
    CreatedAt,
    PageCursor,
    RequestId,
    Timestamp,
    WebhookId,
    about,
)
from svc.kernel.values.struct_fields import body_of
from svc.kernel.values.timestamps import timestamp

Url = Annotated[
    str,
    about(
        "Where deliveries go: `https`, without user info or fragment, port 443 or one above 1023, and every address of "
        "its host public.",
        "https://shop.example/hooks/svc",
    ),
]
TargetUrl = Annotated[Url, Meta(extra_json_schema={"pattern": "^[Hh][Tt][Tt][Pp][Ss]://", "maxLength": MAX_URL_LENGTH})]
LiveOrTest = Annotated[
    WebhookEnvironment, about("`live`: production traffic; `test`: staging and development.", "live")
]
SOME_EVENTS = Meta(examples=[["identification.completed", "visitor.suspect"]])
EventName = Annotated[str, Meta(extra_json_schema={"enum": list(EVENT_TYPES)})]
Note = Annotated[str, about("A note for people.", "orders")]
Description = Annotated[Note, Meta(max_length=500)]
Hours = Annotated[int, Meta(ge=0, le=MAX_OVERLAP_HOURS), about("For how long the previous secret signs along.", 24)]
EventId = Annotated[str, Meta(examples=[AN_EVENT_ID], extra_json_schema=UUID_FORM)]


Format = Annotated[
    WebhookFormat,
    about(
        "`json` is the signed envelope. `slack`, `discord` and `teams` (an Adaptive Card) are messages for people, "
        "unsigned, and one for an identification, whichever events it causes.",
        "json",
    ),
]
Filter = Annotated[
    str,
    about(
        "Condition in CEL, as of a rule. Events of identifications and reviews are sent only where it is true; all "
        "others whatever it says.",
        "score >= 60",
    ),
]
NewFilter = Annotated[Filter, Meta(max_length=MAX_LENGTH)]


class CreateWebhookBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `createWebhook` (interface 4.4). What a type cannot say is checked by the endpoint: the URL and the
    events.
    """

    url: TargetUrl
    environment: LiveOrTest
    events: Annotated[tuple[EventName, ...], SOME_EVENTS, about("Event types to subscribe to.")]
    description: Annotated[Description, about("May be empty.")]
    format: Format = "json"
    filter: Annotated[NewFilter | None, about("Which events are sent; `null` or left out for all.")] = None


class UpdateWebhookBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of the `PATCH` of an endpoint (interface 4.4). What is left out stays as it is."""

    url: TargetUrl | UnsetType = UNSET
    environment: LiveOrTest | UnsetType = UNSET
    events: Annotated[tuple[EventName, ...] | UnsetType, SOME_EVENTS, about("The whole new list.")] = UNSET
    description: Description | UnsetType = UNSET
    paused: Annotated[bool | UnsetType, about("`true` holds deliveries back, `false` lets them go on.", False)] = UNSET
    format: Format | UnsetType = UNSET
    filter: Annotated[NewFilter | UnsetType | None, about("`null` removes it.")] = UNSET


class RotateWebhookSecretBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a rotation; an empty request body counts as `{}` (interface 4.4)."""

    previous_secret_valid_hours: Hours = 24


class RedeliverWebhookBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a redelivery (interface 4.4)."""

    event_id: Annotated[UUID, about("An event that was sent to this endpoint in the last 30 days.", AN_EVENT_ID)]


class WebhookBody(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint (interface 2.9)."""

    id: WebhookId
    url: Url
    description: Note
    environment: LiveOrTest
    events: Annotated[tuple[EventType, ...], SOME_EVENTS, about("Types of events that it subscribes to.")]
    status: Annotated[
        EndpointStatus,
        about(
            "`failing` after five failed attempts in a row over at least ten minutes, a delivery that failed for good, "
            "or a `410`. It is never switched off: the first `2xx` makes it `active` again.",
            "active",
        ),
    ]
    failing_since: (
        Annotated[
            Timestamp,
            about(
                "When the first of its failed attempts in a row began, whatever its status; left out where the last "
                "attempt succeeded. After five of them an endpoint for which more than 100 deliveries wait is tried "
                "after a twelfth of the time since then, between 5 seconds and 5 minutes; the first success sends "
                "all that wait."
            ),
        ]
        | UnsetType
    ) = UNSET
    format: Format
    filter: Filter | UnsetType = UNSET
    filter_errors_24h: (
        Annotated[
            int,
            about(
                "Identifications of the last 24 hours that were held back because the evaluation of the filter failed; "
                "with a filter alone. Whole hours: those that the window touches.",
                0,
            ),
        ]
        | UnsetType
    ) = UNSET
    secret_last4: Annotated[str, about("Last four characters of the signing secret; empty for a chat format.", "x7Qe")]
    previous_secret_expires_at: (
        Annotated[Timestamp, about("During a rotation: when the previous secret stops signing.")] | UnsetType
    ) = UNSET
    delivered_24h: Annotated[int, about("Attempts in the last 24 hours that succeeded.", 1250)]
    failed_24h: Annotated[int, about("Attempts in the last 24 hours that failed.", 3)]
    last_delivery_at: Annotated[Timestamp, about("When it was last sent to, whatever came of it.")] | UnsetType = UNSET
    created_at: CreatedAt


class WebhooksBody(msgspec.Struct, frozen=True):
    """All endpoints of an organization, which are at most ten (interface 4.4)."""

    endpoints: Annotated[tuple[WebhookBody, ...], about("Newest first.")]


class IssuedWebhookBody(msgspec.Struct, frozen=True):
    """An endpoint with its new signing secret: the response to a creation and to a rotation (interface 2.9). A chat
    format has none.
    """

    endpoint: Annotated[WebhookBody, about("The endpoint.")]
    secret: Annotated[
        str, about("The whole signing secret, shown this once; empty for a chat format.", "svc_whsec_...")
    ]
    standard_secret: Annotated[
        str,
        about(
            "The same for a library of Standard Webhooks: `whsec_` and base64. Empty for a chat format.",
            "whsec_c3ZjX3doc2VjXy4uLg==",
        ),
    ]


class QueuedDeliveryBody(msgspec.Struct, frozen=True):
    """Response `202` to a test and to a redelivery (interface 4.4, decisions 8.5)."""

    event_id: Annotated[EventId, about("Of the delivery that is on its way.")]


class ListWebhookDeliveriesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of the log of attempts (interface 4.4, decisions 8.6)."""

    environment: Annotated[Literal["live", "test", "all"], about("Only attempts of these endpoints.", "all")] = "all"
    endpoint_id: Annotated[WebhookId, about("Only attempts to the endpoint of this id.")] | UnsetType = UNSET
    limit: Limit = 50
    cursor: PageCursor | UnsetType = UNSET


class WebhookDeliveryBody(msgspec.Struct, frozen=True, kw_only=True):
    """One delivery attempt (interface 2.10, decisions 8.3)."""

    id: Annotated[RequestId, about("UUIDv7 of the attempt; it sorts by time.")]
    endpoint_id: WebhookId
    endpoint_url: Annotated[str, about("As it was when this was sent.", "https://shop.example/hooks/svc")]
    event_id: Annotated[EventId, about("The same on every attempt, and on a redelivery.")]
    event: Annotated[EventType, about("Type of the event.", "identification.completed")]
    environment: Annotated[WebhookEnvironment, about("Environment of the endpoint when the event happened.", "live")]
    status: Annotated[
        AttemptStatus,
        about(
            "`delivered`; `retrying`: failed, and another attempt will follow; `failed`: failed, and none will.",
            "retrying",
        ),
    ]
    response_code: Annotated[int | UnsetType, about("The receiver's status. Left out without one.", 503)] = UNSET
    duration_ms: Annotated[int, about("How long the attempt took, in milliseconds.", 87)]
    attempt: Annotated[int, about("Which attempt of its delivery it was, from 1.", 1, form={"minimum": 1})]
    error: Annotated[AttemptError | UnsetType, about("Why it failed; left out on success.", "http_status")] = UNSET
    occurred_at: Annotated[Timestamp, about("When the attempt began.")]


class WebhookDeliveriesBody(msgspec.Struct, frozen=True):
    """A page of the log of attempts (interface 4.4)."""

    deliveries: Annotated[tuple[WebhookDeliveryBody, ...], about("Newest first.")]
    next_cursor: CursorOn | UnsetType = UNSET


def webhook_row(
    registered: Registered, day: AttemptCount, known: Health, filter_errors: int, now_ms: int
) -> WebhookBody:
    """Return a stored endpoint in the form of interface 2.9. `day`: its attempts in the last 24 hours; `known`: how it
    has responded; `filter_errors`: for how many events its filter failed.
    """
    endpoint = registered.endpoint
    until_ms = None if endpoint.is_chat else endpoint.previous_secret_expires_at_ms
    return body_of(
        WebhookBody,
        endpoint,
        known,
        previous_secret_expires_at=UNSET if until_ms is None or now_ms >= until_ms else timestamp(until_ms),
        delivered_24h=day.delivered,
        failed_24h=day.failed,
        secret_last4="" if endpoint.is_chat else endpoint.secret_last4,
        filter_errors_24h=UNSET if endpoint.filter is None else filter_errors,
        last_delivery_at=UNSET if known.last_attempt_at_ms is None else timestamp(known.last_attempt_at_ms),
    )


def delivery_row(attempt_id: bytes, attempt: Attempt) -> WebhookDeliveryBody:
    """Return a line of the attempt log (its id as 16 bytes) in the form of interface 2.10."""
    event_id = str(UUID(bytes=attempt.event_id))
    return body_of(WebhookDeliveryBody, attempt, id=str(UUID(bytes=attempt_id)), event_id=event_id)
