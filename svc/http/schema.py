"""Request and response bodies as structs: what the interface's tables say, as types, and what the documents say of each
field (`svc.kernel.values.fields.about`).

Unknown fields are refused in requests. A field that may be left out is `UNSET`, which is not `null`. Responses leave
out what does not apply.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.identify.events.event_row import (
    EventBody,
    TriggerBody,
    UnreadableEventBody,
    VerdictBody,
    decision_body,
    signal_rows,
)
from svc.identify.events.listing import KINDS, MAX_TAG_LENGTH, Asked
from svc.identify.model import LABELS, RULE_ACTIONS, Label, LabelReason, Level, Verdict
from svc.identify.scoring.signals import CATALOG as SIGNALS
from svc.identify.scoring.signals import GROUPS
from svc.identify.velocity.counts import ACCOUNT_ID_FORM, ACTION_FORM, EnvironmentKind
from svc.kernel.access.credentials import redact
from svc.kernel.values.fields import (
    A_REPORT,
    OBJECT_FORM,
    SUSPECT_SCORE,
    TIME_FORM,
    AccountId,
    Action,
    Cursor,
    PageCursor,
    RequestId,
    Tag,
    Timestamp,
    VisitorId,
    about,
    id_form,
    open_to,
    or_else,
)
from svc.kernel.values.refusals import Issue, Location, Refusal, catalog
from svc.kernel.values.struct_fields import body_of

Name64 = Annotated[str, Meta(min_length=1, max_length=64)]
PageNumber = Annotated[int, about("Which page, from 1.", 1)]
WindowEnd = Annotated[
    str | UnsetType,
    about("End of the window, exclusive; now when left out.", "2026-01-05T10:00:00Z", form=TIME_FORM),
]
Limit = Annotated[int, Meta(ge=1, le=200), about("How many per page, at most.", 10)]
"""The size of a page in a query."""
CursorOn = Annotated[Cursor, about("Of the next page, which may be empty; left out on the last one.")]
InKind = Annotated[EnvironmentKind, about("`live` is production, `test` staging and development.", "live")]


class Sdk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The collecting SDK (interface 2.1)."""

    platform: Annotated[
        Name64 | UnsetType,
        about("`web`, `ios`, `android`, or a bridge such as `react-native-ios`; `web` when left out.", "web"),
    ] = UNSET
    version: Annotated[Name64 | UnsetType, about("Version of the SDK.", "0.1.0")] = UNSET


SdkField = Annotated[Sdk, about("The SDK that collected the report.", {"platform": "web", "version": "0.1.0"})]
DuplicateFlag = Annotated[bool, about("The same was accepted before, and nothing changed.", True)]
DeferredTokenText = Annotated[str, Meta(examples=["AQGbjS88QHpRnQ5vGyw9"])]


class IdentifyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of identify (interface 2.1). `signals` stays as it was sent, so that it can be archived byte for byte."""

    sdk: SdkField
    signals: Annotated[
        msgspec.Raw,
        about("The report that an SDK collected. What is in it is not a public contract.", A_REPORT, form=OBJECT_FORM),
    ]
    tag: Annotated[Tag, Meta(max_length=1024)] | UnsetType = UNSET
    account_id: Annotated[AccountId, Meta(pattern=ACCOUNT_ID_FORM)] | UnsetType = UNSET
    action: Annotated[Action, Meta(pattern=ACTION_FORM)] | UnsetType = UNSET
    verdict: Annotated[bool, about("Whether to respond with a signed `verdict`, too.", True)] = False


class IdentifyAnswer(VerdictBody, frozen=True, kw_only=True):
    """Response of identify to a new identification (interface 2.2), or that response again (decisions 3.2)."""

    deferred_token: Annotated[
        DeferredTokenText, about("Allows the deferred report of this request to be sent, for 24 hours.")
    ]
    duplicate: Annotated[
        bool | UnsetType,
        about("This is the response of an earlier request with the same `Idempotency-Key`; nothing changed.", True),
    ] = UNSET
    client_token_renew: Annotated[
        bool | UnsetType, about("The web SDK renews its token and key. Only to a public key, and only `true`.", True)
    ] = UNSET
    suspect_score: Annotated[int | UnsetType, SUSPECT_SCORE] = UNSET
    triggers: Annotated[tuple[TriggerBody, ...] | UnsetType, about("What fired, heaviest first.")] = UNSET
    verdict: Annotated[
        str | UnsetType,
        about(
            "The verdict as a JWS, for a backend that verifies it by the organization's keys (`getVerdictKeys`). "
            "Only where the request asked for it.",
            "eyJhbGciOiJFZERTQSIs...",
        ),
    ] = UNSET


def identify_response(
    verdict: Verdict, request_id: UUID, deferred_token: str, signed: str | UnsetType = UNSET
) -> IdentifyAnswer:
    """Return a verdict, which must be durable, in the form of interface 2.2. `signed`: see `signed_verdict`."""
    return body_of(
        IdentifyAnswer,
        verdict,
        request_id=str(request_id),
        deferred_token=deferred_token,
        triggers=signal_rows(verdict) or UNSET,
        decision=decision_body(verdict.decision),
        verdict=signed,
    )


class DuplicateAnswer(msgspec.Struct, frozen=True):
    """Response of identify to an `Idempotency-Key` that had a response before: nothing else is in it (interface 2.2,
    4.1), unless the request may have the original's whole response and asks for it (decisions 3.2).
    """

    request_id: RequestId
    duplicate: DuplicateFlag = True


class FiltersQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The part of a query that says which events are meant (decisions 7.1). Values are checked by
    `svc.identify.events.listing`.
    """

    visitor: Annotated[VisitorId, about("Only events of this visitor.")] | UnsetType = UNSET
    level: Annotated[
        str | UnsetType, about("Only events of this suspect level.", "high", form={"enum": [*get_args(Level)]})
    ] = UNSET
    tag: Annotated[
        str | UnsetType, about("Only events with this tag.", "order 1234", form={"maxLength": MAX_TAG_LENGTH})
    ] = UNSET
    ip_address: Annotated[str, about("Only events from this IPv4 or IPv6 address.", "81.2.69.160")] | UnsetType = UNSET
    country: Annotated[str, about("Only events from this country: two letters.", "GB")] | UnsetType = UNSET
    signal: Annotated[
        str | UnsetType, about("Only events in which this signal fired.", "headless", form={"enum": [*SIGNALS]})
    ] = UNSET
    kind: Annotated[
        str | UnsetType, about("Only events of this kind of visitor.", "human", form={"enum": [*KINDS]})
    ] = UNSET
    account_id: Annotated[str, about("Only events of this account.", "user-8271")] | UnsetType = UNSET
    action: Annotated[str, about("Only events with this action.", "log_in")] | UnsetType = UNSET
    asn: Annotated[str, about("Only events from this autonomous system.", "20712")] | UnsetType = UNSET
    decision: Annotated[
        str | UnsetType, about("Only events with this decision.", "review", form={"enum": [*RULE_ACTIONS]})
    ] = UNSET
    label: Annotated[str, about("Only events with this label.", "fraud", form={"enum": [*LABELS]})] | UnsetType = UNSET
    rule: Annotated[
        str | UnsetType,
        about(
            "Only events that the rule with this id decided, also where it was deleted since.",
            "rul_Yv3kPq8sT1nB6wDx0hRz",
            form=id_form("rul_"),
        ),
    ] = UNSET
    shadow: Annotated[
        bool | UnsetType, about("With `rule`: only events that the rule matched in shadow mode instead.", False)
    ] = UNSET
    group: Annotated[
        str | UnsetType, about("Only events in which any signal of this group fired.", "vpn", form={"enum": [*GROUPS]})
    ] = UNSET

    def asked(self) -> Asked:
        """Return the parameters as they were sent."""
        return Asked(**{name: value for name in Asked._fields if (value := getattr(self, name, UNSET)) is not UNSET})


class EventsWindowQuery(FiltersQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of a list of events, newest first (interface 4.2). Values of window, filters and offset are checked by
    `svc.identify.events.listing`.
    """

    start: Annotated[
        str | UnsetType,
        about(
            "Start of the window, inclusive; 24 hours before its end when left out.",
            "2026-01-05T09:00:00Z",
            form=TIME_FORM,
        ),
    ] = msgspec.field(default=UNSET, name="from")
    end: WindowEnd = msgspec.field(default=UNSET, name="to")
    page: Annotated[PageNumber, Meta(ge=1), about("The first page when it and `cursor` are left out.")] | UnsetType = (
        UNSET
    )
    cursor: PageCursor | UnsetType = UNSET
    limit: Limit = 10


class ListEventsQuery(EventsWindowQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the list of events of a key, which with `order=oldest` is the feed (`svc.features.feed.feed`)."""

    order: Annotated[
        str | UnsetType,
        about("`oldest` reads the feed; `newest` when left out.", "newest", form={"enum": ["newest", "oldest"]}),
    ] = UNSET
    after: (
        Annotated[
            Cursor, about("With `order=oldest`: `next_cursor` of the page before; from the oldest when left out.")
        ]
        | UnsetType
    ) = UNSET


class TotalBody(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows a list has, on all of its pages."""

    count: Annotated[int, about("Those that all filters leave, at most 10,000.", 540)]
    is_exact: Annotated[bool, about("`false` where there may be more.", True)]


class EventsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A page of events, newest first; one without `next_cursor` is the last (interface 4.2, decisions 7.1). Or a page
    of the feed, oldest first, always with a `next_cursor`.
    """

    rows: Annotated[
        tuple[Annotated[EventBody, or_else(UnreadableEventBody)], ...],
        about(
            "Newest first, unless the `order` was another. An event that is corrupt in the store has a row with "
            "`request_id` and `error` alone: look for `error` before other fields."
        ),
    ]
    page: Annotated[PageNumber, about("As asked for; 1 where a cursor asked for it.", 1)]
    page_size: Annotated[int, about("The most events that a page has: the `limit` of the request.", 10)]
    next_cursor: (
        Annotated[Cursor, about("For the next page; left out on the last one, of which the feed has none.")] | UnsetType
    ) = UNSET
    has_more: Annotated[bool, about("Of the feed: whether there is a next page now.", False)] | UnsetType = UNSET


_AccountIdText = Annotated[str, Meta(pattern=ACCOUNT_ID_FORM)]
_ActionText = Annotated[str, Meta(pattern=ACTION_FORM)]
_TagText = Annotated[str, Meta(max_length=1024)]


class UpdateEventBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a change of an event (decisions 11.2): what is left out stays, and `null` removes."""

    account_id: Annotated[_AccountIdText | UnsetType | None, about("The account; `null` removes it.", "user-8271")] = (
        UNSET
    )
    action: Annotated[_ActionText | UnsetType | None, about("The action; `null` removes it.", "sign_up")] = UNSET
    tag: Annotated[_TagText | UnsetType | None, about("The tag; `null` removes it.", "order 1234")] = UNSET
    label: Annotated[
        Label | UnsetType | None,
        about("What the event turned out to be, for 400 days; `null` removes it, and the reason with it.", "fraud"),
    ] = UNSET
    label_reason: Annotated[
        LabelReason | UnsetType | None, about("Why it has that label; only with a label.", "chargeback")
    ] = UNSET


class LabelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Response of a change of the label of an event that is not readable any more (decisions 14.1)."""

    request_id: RequestId
    label: Annotated[Label | None, about("What the event turned out to be.", "fraud")]
    label_reason: Annotated[str | None, about("Why it has that label.", "chargeback")]


class SupplementBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a deferred report (interface 2.4). `signals` stays as it was sent, as in identify."""

    token: Annotated[DeferredTokenText, about("The `deferred_token` of the identification.")]
    sdk: SdkField
    signals: Annotated[
        msgspec.Raw,
        about(
            "The deferred report that an SDK collected. What is in it is not a public contract.",
            {"tier": "deferred", "audio": "124.04347527516074"},
            form=OBJECT_FORM,
        ),
    ]


class SupplementAnswer(msgspec.Struct, frozen=True):
    """Response of a deferred report (interface 4.1)."""

    request_id: RequestId
    duplicate: DuplicateFlag | UnsetType = UNSET


class HealthBody(msgspec.Struct, frozen=True):
    """Response of `healthz` (decisions 9.1)."""

    status: Annotated[Literal["ok"], about("The process is up.", "ok")]
    version: Annotated[str, about("Version of the service.", "0.1.0")]


class ReadinessChecks(msgspec.Struct, frozen=True):
    """What `readyz` looked at (decisions 9.1)."""

    store: Annotated[
        Literal["ok", "full", "unreachable", "stalled", "failing", "lost"],
        about(
            "`full` when there is no space for writes, `unreachable` while the database does not respond or the "
            "service waits to start, `stalled` while a commit takes over 10 s, `failing` when writes were tried for "
            "10 s and none was stored, `lost` when the store's file was replaced, removed, cut or overwritten.",
            "ok",
        ),
    ]
    webhooks: Annotated[
        Literal["ok", "behind", "stopped"],
        about(
            "`behind` while a delivery to an endpoint that responds is over a minute late, `stopped` while nobody "
            "sends; it never fails readiness.",
            "ok",
        ),
    ]
    network_data: Annotated[
        Literal["ok", "missing", "stale"], about("State of the network databases; it never fails readiness.", "ok")
    ]


class ReadinessBody(msgspec.Struct, frozen=True):
    """Response of `readyz`, `200` or `503` (decisions 9.1). Only `store` fails readiness."""

    status: Annotated[Literal["ready", "unavailable"], about("Whether it can serve.", "ready")]
    checks: Annotated[ReadinessChecks, about("What that depends on, part by part.")]


class DetailBody(msgspec.Struct, frozen=True):
    """One fault of a request (interface 2.12, decisions 1.5)."""

    field: Annotated[str, about("A path such as `sdk.version`; empty for the whole body.", "sdk.version")]
    issue: Annotated[str, about("What is the matter with it.", "too_long", form=open_to(*get_args(Issue)))]
    location: Annotated[str, about("Where it is.", "body", form=open_to(*get_args(Location)))]


class Fault(msgspec.Struct, frozen=True):
    """The member `error` of the error body (interface 2.12)."""

    code: Annotated[str, about("For programs.", "validation_error", form=open_to(*catalog()))]
    message: Annotated[str, about("For people: what to do about it.", catalog()["validation_error"].message)]
    status: Annotated[int, about("The HTTP status.", catalog()["validation_error"].status)]
    details: Annotated[tuple[DetailBody, ...] | UnsetType, about("Each fault in the request.")] = UNSET


class ErrorBody(msgspec.Struct, frozen=True):
    """Body of every error (interface 2.12)."""

    error: Annotated[Fault, about("What was refused.")]
    request_id: RequestId


def error_body(refusal: Refusal, request_id: str) -> ErrorBody:
    """Return the error body of a refusal (interface 2.12). A field's name is the caller's own text and may end up in
    logs, so anything in it that has the form of a key is redacted.
    """
    details = tuple(DetailBody(redact(detail.field), detail.issue, detail.location) for detail in refusal.details)
    return ErrorBody(Fault(refusal.code, refusal.message, refusal.status, details or UNSET), request_id)


class ChallengeAnswer(msgspec.Struct, frozen=True):
    """Response of `POST /attestation/challenge` (interface 2.5)."""

    challenge: Annotated[
        str, about("32 random bytes in base64, for one use.", "3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs=")
    ]
    expires_at: Annotated[Timestamp, about("Five minutes after issue.")]
