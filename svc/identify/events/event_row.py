"""The result of an identification, as everybody outside reads it: the response of identify, an event of the server API
and of `svc replay`, and the body of a webhook.

What may live here: the step from the stored record to the words of interface 2.2 and 2.3, so that it is taken once. A
field that all of them show is added to `Verdict` and to `VerdictBody`.
"""

from __future__ import annotations

from typing import Annotated, get_args
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from svc.identify.model import (
    LABEL_REASONS,
    RULE_ACTIONS,
    AnonymityNetwork,
    Decision,
    DeviceKind,
    Label,
    Level,
    Verdict,
    VisitorKind,
)
from svc.identify.records import Event
from svc.identify.scoring.signals import CATALOG, SignalGroup
from svc.identify.velocity.counts import WINDOWS, Counts, Velocity
from svc.kernel.values.fields import (
    SUSPECT_SCORE,
    AccountId,
    Action,
    RequestId,
    State,
    Tag,
    Timestamp,
    VisitorId,
    about,
    open_to,
)
from svc.kernel.values.struct_fields import body_of

Confidence = Annotated[Level, about("How well founded it is; it does not change the weight.", "high")]
EventLabel = Annotated[
    str,
    about("What the event turned out to be; left out where nobody has said.", "fraud", form=open_to(*get_args(Label))),
]
EventLabelReason = Annotated[str, about("Why it has that label.", "chargeback", form=open_to(*LABEL_REASONS))]


class TriggerBody(msgspec.Struct, frozen=True):
    """A signal that fired, as identify shows it (interface 2.2)."""

    signal: Annotated[str, about("The signal. Names are permanent.", "automation", form=open_to(*CATALOG))]
    group: SignalGroup
    weight: Annotated[int, about("What the signal added to the score.", 40)]
    confidence: Confidence


class EventTriggerBody(msgspec.Struct, frozen=True):
    """A group of signals of which at least one fired, as events show it (interface 2.3)."""

    signal: Annotated[SignalGroup, about("The group of signals that fired.")]
    weight: Annotated[int, about("What the group added to the score.", 40)]
    confidence: Confidence


IN_WINDOWS = {"1h": 3, "24h": 9, "30d": 40}
"""An example of a count in the last hour, day and 30 days: exact below 64; 64 or more is 64."""


class VisitorVelocity(msgspec.Struct, frozen=True):
    """Of the visitor."""

    events: Annotated[dict[str, int], about("Events of the visitor.", IN_WINDOWS)]
    accounts: Annotated[
        dict[str, int], about("Accounts that it acted for; each sign-up without an account is one.", IN_WINDOWS)
    ]
    addresses: Annotated[dict[str, int], about("Addresses that it came from; of IPv6, the /64.", IN_WINDOWS)]
    countries: Annotated[dict[str, int], about("Countries of these addresses.", IN_WINDOWS)]


class AccountVelocity(msgspec.Struct, frozen=True):
    """Of the account."""

    events: Annotated[dict[str, int], about("Events of the account.", IN_WINDOWS)]
    visitors: Annotated[dict[str, int], about("Identifiable visitors that acted for it.", IN_WINDOWS)]
    addresses: Annotated[dict[str, int], about("Addresses that they came from.", IN_WINDOWS)]
    countries: Annotated[dict[str, int], about("Countries of these addresses.", IN_WINDOWS)]


class AddressVelocity(msgspec.Struct, frozen=True):
    """Of the IPv4 address, or of the /64 of an IPv6 address."""

    events: Annotated[dict[str, int], about("Events from the address.", IN_WINDOWS)]
    visitors: Annotated[dict[str, int], about("Identifiable visitors that came from it.", IN_WINDOWS)]
    accounts: Annotated[
        dict[str, int], about("Accounts that they acted for; each sign-up without an account is one.", IN_WINDOWS)
    ]


class VelocityBody(msgspec.Struct, frozen=True):
    """Events and distinct others in three windows, of the same kind of environment (decisions 11.4)."""

    visitor: Annotated[VisitorVelocity, about("Of the visitor.")]
    address: Annotated[AddressVelocity, about("Of the address.")]
    account: Annotated[AccountVelocity | UnsetType, about("Of the account; left out without one.")] = UNSET


def velocity_body(velocity: Velocity) -> VelocityBody:
    """Return the counts that an event keeps, by their names."""
    account = UNSET if velocity.account is None else AccountVelocity(*windows(velocity.account))
    return VelocityBody(
        VisitorVelocity(*windows(velocity.visitor)), AddressVelocity(*windows(velocity.address)), account
    )


def windows(counts: Counts) -> list[dict[str, int]]:
    """Return the windows of the events and then of the others, in the order in which they are stored."""
    hour, day, month = WINDOWS
    return [{hour: first, day: second, month: third} for first, second, third in (counts.events, *counts.others)]


class DecisionBody(msgspec.Struct, frozen=True):
    """What the rules decided (decisions 13.2)."""

    action: Annotated[str, about("What to do.", "review", form=open_to(*RULE_ACTIONS))]
    rule_id: Annotated[str, about("Id of the first rule that matched.", "rul_0qppzPLvL54VURDkQrfS")]
    rule: Annotated[str, about("Its name then.", "Fifth account of a browser")]


def decision_body(decision: Decision | None) -> DecisionBody | UnsetType:
    """Return the body of a decision; `UNSET` if no rule matched."""
    return UNSET if decision is None else DecisionBody(decision.action, decision.rule_id, decision.rule)


class VerdictBody(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that the response of identify (interface 2.2) and an event (2.3, decisions 7.1) have in common."""

    request_id: RequestId
    visitor_id: VisitorId
    visitor_is_new: Annotated[bool, about("Whether the organization sees this visitor for the first time.", False)]
    identifiable: Annotated[
        bool,
        about("`false` when the report carried too little to identify anyone. The request is still scored.", True),
    ]
    visitor_confidence: Annotated[
        int,
        about(
            "`90` to `100`: nothing that decided could have been copied. `85` to `89`: the same visitor by all that is "
            "known, not proven. `0`: a new visitor id.",
            100,
            form={"minimum": 0, "maximum": 100},
        ),
    ]
    proven: Annotated[
        bool,
        about(
            "The browser signed the report with the key that its token had before: neither was copied to another one. "
            "`false` on a first visit, before which there is no key.",
            True,
        ),
    ]
    state: Annotated[State, about("`enriched`, or `unavailable` when the network look-up could not run.", "enriched")]
    reason: Annotated[
        str | UnsetType,
        about(
            "Why `state` is `unavailable`.",
            "no_network_data",
            form=open_to("no_network_data", "private_address", "lookup_failed"),
        ),
    ] = UNSET
    suspect_level: Annotated[
        Level | UnsetType,
        about(
            "From the threshold in force: `low` below it, `high` from twice of it. Left out when not scored.",
            "medium",
            form=open_to(*get_args(Level)),
        ),
    ] = UNSET
    decision: Annotated[
        DecisionBody | UnsetType, about("What the rules of the organization decided; left out where none matched.")
    ] = UNSET


class EventBody(VerdictBody, frozen=True, kw_only=True):
    """Interface 2.3 and decisions 7.1: a stored identification, `document` left to the single read."""

    occurred_at: Annotated[Timestamp, about("When the request arrived.")]
    environment: Annotated[str, about("Environment of the key.", "production")]
    platform: Annotated[str, about("Scoring profile.", "web")]
    sdk_platform: Annotated[str, about("Which SDK sent the report, such as `web`, `ios`, `flutter-android`.", "web")]
    sdk_version: Annotated[str, about("Its version; `unknown` when it did not say.", "0.1.0")]
    origin: Annotated[
        str | UnsetType,
        about("Site that the request came from; left out for native apps.", "https://shop.example"),
    ] = UNSET
    tag: Tag | UnsetType = UNSET
    account_id: AccountId | UnsetType = UNSET
    account_verified: Annotated[
        bool | UnsetType, about("Whether a secret key named the account; beside `account_id` alone.", True)
    ] = UNSET
    action: Action | UnsetType = UNSET
    label: EventLabel | UnsetType = UNSET
    label_reason: EventLabelReason | UnsetType = UNSET
    ip_address: Annotated[str, about("The visitor's address.", "81.2.69.160")]
    country_code: Annotated[str | UnsetType, about("ISO 3166-1 alpha-2.", "GB")] = UNSET
    country_name: Annotated[str | UnsetType, about("The country in English.", "United Kingdom")] = UNSET
    asn: Annotated[str | UnsetType, about("Number of the autonomous system.", "20712")] = UNSET
    asn_name: Annotated[str | UnsetType, about("Name of the network.", "Andrews & Arnold Ltd")] = UNSET
    anonymity_network: Annotated[
        str | UnsetType,
        about(
            "The strongest that applies; left out for an ordinary connection.",
            "vpn",
            form=open_to(*get_args(AnonymityNetwork)),
        ),
    ] = UNSET
    agent: Annotated[str | UnsetType, about("Browser or app.", "Firefox")] = UNSET
    agent_version: Annotated[str | UnsetType, about("Its version.", "128.0")] = UNSET
    os: Annotated[str | UnsetType, about("Operating system.", "Linux")] = UNSET
    device_kind: Annotated[
        str | UnsetType, about("What kind of device it is.", "desktop", form=open_to(*get_args(DeviceKind)))
    ] = UNSET
    visitor_kind: Annotated[str | UnsetType, about("Who is at it.", "human", form=open_to(*get_args(VisitorKind)))] = (
        UNSET
    )
    suspect_score: Annotated[int | None, SUSPECT_SCORE]
    triggers: Annotated[tuple[EventTriggerBody, ...], about("What fired, heaviest first.")]
    signals: Annotated[
        tuple[TriggerBody, ...] | UnsetType,
        about(
            "Each signal that fired, heaviest first: the parts of `triggers`. Left out of events stored before 0.2.0."
        ),
    ] = UNSET
    has_document: Annotated[bool, about("Whether the archived submission exists.", True)]
    proof_covers: Annotated[
        tuple[str, ...] | UnsetType,
        about(
            "What the browser signed, beside `proven: true`: whose visit it is, and by a newer SDK also account, "
            "action and tag of the request, or that it had none. What was set of the event later is not covered.",
            ["visitor", "account_id", "action", "tag"],
            form={"type": "array", "items": open_to("visitor", "account_id", "action", "tag")},
        ),
    ] = UNSET
    velocity: Annotated[
        VelocityBody | UnsetType,
        about(
            "How often and with whom the visitor, the account and the address were seen, this event included; without "
            "it if its report was sent before (`replayed`)."
        ),
    ] = UNSET


class UnreadableEventBody(msgspec.Struct, frozen=True):
    """Decisions 17.5: a row of a list or feed whose event cannot be read; the rows around it are as ever."""

    request_id: RequestId
    error: Annotated[
        str,
        about(
            "`unreadable`: the event is corrupt in the store, and its other fields are missing. The operator of "
            "the service can take it out.",
            "unreadable",
            form=open_to("unreadable"),
        ),
    ]


def unreadable_event_row(request_id: UUID) -> UnreadableEventBody:
    """Return the row of an event that cannot be read."""
    return UnreadableEventBody(str(request_id), "unreadable")


def event_row(event: Event, request_id: UUID) -> EventBody:
    """Return an event as interface 2.3 and decisions 7.1 show it, without `document` and what 0.1.0 did not store."""
    verdict = event.verdict
    return body_of(
        EventBody,
        event,
        verdict,
        request_id=str(request_id),
        triggers=tuple(EventTriggerBody(group.signal, group.weight, group.confidence) for group in verdict.triggers),
        signals=UNSET if verdict.signals is None else signal_rows(verdict),
        decision=decision_body(verdict.decision),
        account_verified=UNSET if event.account_id is None else event.account_verified,
        proof_covers=_proof_covers(verdict),
        velocity=UNSET if event.velocity is None else velocity_body(event.velocity),
    )


def _proof_covers(verdict: Verdict) -> tuple[str, ...] | UnsetType:
    """Return what the token's own key signed: only the visitor in an event that 0.3.0 stored."""
    if not verdict.proven:
        return UNSET
    return ("visitor", "account_id", "action", "tag") if verdict.proof_version == 2 else ("visitor",)


def signal_rows(verdict: Verdict) -> tuple[TriggerBody, ...]:
    """Return the signals that fired as in interface 2.2, heaviest first; none for an event of 0.1.0."""
    return tuple(
        TriggerBody(fired.signal, fired.group, fired.weight, fired.confidence) for fired in verdict.signals or ()
    )
