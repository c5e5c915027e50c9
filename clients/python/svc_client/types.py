"""Bodies of requests and responses, as the service documents them. Generated from docs/openapi.json: `make reference`.

A response may have more fields than are here, and a field that lists its values may have others: both are added within
version 1.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AccountAnswer(TypedDict):
    first_seen_at: str
    """When it was seen first, to the second."""
    last_seen_at: str
    """When it was seen last."""
    addresses: list[SeenAddress]
    """The newest 100, the one seen last first."""
    countries: list[SeenCountry]
    """The newest 100, the one seen last first."""
    labels: LabelCounts
    """Its labeled events of the last 400 days."""
    notes_count: int
    """Notes about it."""
    counted_since: NotRequired[str]
    """While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent."""
    account_id: str
    """The customer's id of the account that the visitor acts for. Opaque: no e-mail address."""
    velocity: AccountVelocity
    """Of the account, now."""
    visitors: list[VisitorOfAccount]
    """The newest 100 identifiable visitors that acted for it, the one seen last first."""


class AccountOfVisitor(TypedDict):
    account_id: str
    """The customer's id of the account that the visitor acts for. Opaque: no e-mail address."""
    confidence: int
    """`visitor_confidence` of the visitor's last event for it."""
    first_seen_at: str
    """When it was seen first."""
    last_seen_at: str
    """When it was seen last."""


class AccountRow(TypedDict):
    account_id: str
    """The customer's id of the account that the visitor acts for. Opaque: no e-mail address."""
    first_seen_at: str
    """When it was seen first, to the second."""
    last_seen_at: str
    """When it was seen last."""
    level: NotRequired[str]
    """The highest suspect level of its events in the last 24 hours; left out where none was scored. Now one of
    `low`, `medium`, `high`.
    """
    velocity: AccountVelocity
    """Of the account, now."""


class AccountThresholdsBody(TypedDict):
    multi_account: int
    """Accounts of a visitor in 30 days from which `multi_account` fires."""
    account_testing_visitor: int
    """Accounts of a visitor within an hour from which `account_testing` fires."""
    account_testing_address: int
    """Accounts of an address within an hour from which `account_testing` fires."""
    account_sharing: int
    """Visitors of an account in 30 days from which `account_sharing` fires."""


class AccountVelocity(TypedDict):
    events: dict[str, int]
    """Events of the account."""
    visitors: dict[str, int]
    """Identifiable visitors that acted for it."""
    addresses: dict[str, int]
    """Addresses that they came from."""
    countries: dict[str, int]
    """Countries of these addresses."""


class AccountsAnswer(TypedDict):
    accounts: list[AccountRow]
    """The one that was seen last first."""
    next_cursor: NotRequired[str]
    """Of the next page, which may be empty; left out on the last one."""
    counted_since: NotRequired[str]
    """While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent."""


class AddedBody(TypedDict):
    added: int
    """Values that were not in the list."""
    replaced: int
    """Values that were."""


class AddressVelocity(TypedDict):
    events: dict[str, int]
    """Events from the address."""
    visitors: dict[str, int]
    """Identifiable visitors that came from it."""
    accounts: dict[str, int]
    """Accounts that they acted for; each sign-up without an account is one."""


BrowserKeysBody = TypedDict(
    "BrowserKeysBody",
    {
        "from": "str",
        "to": "str",
        "visitors": "int",
        "keys": "int",
    },
)
"""from: Start of the window.

to: End of the window, exclusive.

visitors: Visitors who have such keys.

keys: The keys themselves: a browser has one on each site.
"""


class ChallengeAnswer(TypedDict):
    challenge: str
    """32 random bytes in base64, for one use."""
    expires_at: str
    """Five minutes after issue."""


class ChangeBody(TypedDict):
    type: str
    """What happened. Now one of `event.created`, `event.updated`, `event.erased`."""
    at: str
    """When: of `event.created` the arrival of the event."""
    request_id: str
    """UUIDv7 of the request; it sorts by time."""
    event: NotRequired[EventBody | UnreadableEventBody]
    """The event as it is now, a row of `GET /events`; left out once it is erased or too old to be read."""
    label: NotRequired[str | None]
    """Of an updated event that is too old to be read: its label; `null` = it has none."""
    label_reason: NotRequired[str | None]
    """Of an updated event that is too old to be read: why it has it."""


class ChangesAnswer(TypedDict):
    changes: list[ChangeBody]
    """Oldest first."""
    next_cursor: str
    """For what follows; every page has one."""
    has_more: bool
    """Whether there is a next page now."""


class DecisionBody(TypedDict):
    action: str
    """What to do. Now one of `allow`, `review`, `challenge`, `block`."""
    rule_id: str
    """Id of the first rule that matched."""
    rule: str
    """Its name then."""


class DetailBody(TypedDict):
    field: str
    """A path such as `sdk.version`; empty for the whole body."""
    issue: str
    """What is the matter with it. Now one of `required`, `unknown_field`, `wrong_type`, `malformed_json`,
    `malformed_encoding`, `out_of_range`, `too_long`, `too_deep`, `invalid_url`, `not_public_address`,
    `unknown_event_type`, `requires_live`, `invalid_origin`, `unknown_signal`, `invalid_cursor`,
    `not_with_order`, `invalid_value`, `invalid_condition`, `too_expensive`.
    """
    location: str
    """Where it is. Now one of `body`, `query`, `header`, `path`."""


class DuplicateAnswer(TypedDict):
    request_id: str
    """UUIDv7 of the request; it sorts by time."""
    duplicate: NotRequired[bool]
    """The same was accepted before, and nothing changed."""


class EntriesBody(TypedDict):
    entries: list[EntryBody]
    """In the order of their values."""
    next_cursor: NotRequired[str]
    """Of the next page; left out on the last one."""


class EntryBody(TypedDict):
    value: str
    """In its one spelling: networks without host bits, lower-case origins, upper-case countries."""
    note: str
    """Why it is there."""
    expires_at: str | None
    """When the entry expires."""
    created_at: str
    """When it was added."""
    created_by: NotRequired[str]
    """The member who added it; left out where a management key did."""


class ErrorBody(TypedDict):
    error: Fault
    """What was refused."""
    request_id: str
    """UUIDv7 of the request; it sorts by time."""


class EventBody(TypedDict):
    request_id: str
    """UUIDv7 of the request; it sorts by time."""
    visitor_id: str
    """Stable id of the visitor, within the organization."""
    visitor_is_new: bool
    """Whether the organization sees this visitor for the first time."""
    identifiable: bool
    """`false` when the report carried too little to identify anyone. The request is still scored."""
    visitor_confidence: int
    """`90` to `100`: nothing that decided could have been copied. `85` to `89`: the same visitor by all that is
    known, not proven. `0`: a new visitor id.
    """
    proven: bool
    """The browser signed the report with the key that its token had before: neither was copied to another one.
    `false` on a first visit, before which there is no key.
    """
    state: str
    """`enriched`, or `unavailable` when the network look-up could not run."""
    reason: NotRequired[str]
    """Why `state` is `unavailable`. Now one of `no_network_data`, `private_address`, `lookup_failed`."""
    suspect_level: NotRequired[str]
    """From the threshold in force: `low` below it, `high` from twice of it. Left out when not scored. Now one of
    `low`, `medium`, `high`.
    """
    decision: NotRequired[DecisionBody]
    """What the rules of the organization decided; left out where none matched."""
    occurred_at: str
    """When the request arrived."""
    environment: str
    """Environment of the key."""
    platform: str
    """Scoring profile."""
    sdk_platform: str
    """Which SDK sent the report, such as `web`, `ios`, `flutter-android`."""
    sdk_version: str
    """Its version; `unknown` when it did not say."""
    origin: NotRequired[str]
    """Site that the request came from; left out for native apps."""
    tag: NotRequired[str]
    """The caller's own reference, shown again on the event and in webhooks."""
    account_id: NotRequired[str]
    """The customer's id of the account that the visitor acts for. Opaque: no e-mail address."""
    account_verified: NotRequired[bool]
    """Whether a secret key named the account; beside `account_id` alone."""
    action: NotRequired[str]
    """What the visitor does, such as `sign_up`, `log_in` or `checkout`."""
    label: NotRequired[str]
    """What the event turned out to be; left out where nobody has said. Now one of `fraud`, `legitimate`."""
    label_reason: NotRequired[str]
    """Why it has that label. Now one of `chargeback`, `account_takeover`, `multi_account`, `promo_abuse`, `bot`,
    `scraping`, `spam`, `other`.
    """
    ip_address: str
    """The visitor's address."""
    country_code: NotRequired[str]
    """ISO 3166-1 alpha-2."""
    country_name: NotRequired[str]
    """The country in English."""
    asn: NotRequired[str]
    """Number of the autonomous system."""
    asn_name: NotRequired[str]
    """Name of the network."""
    anonymity_network: NotRequired[str]
    """The strongest that applies; left out for an ordinary connection. Now one of `tor`, `vpn`, `proxy`,
    `hosting`.
    """
    agent: NotRequired[str]
    """Browser or app."""
    agent_version: NotRequired[str]
    """Its version."""
    os: NotRequired[str]
    """Operating system."""
    device_kind: NotRequired[str]
    """What kind of device it is. Now one of `desktop`, `mobile`, `tablet`, `server`."""
    visitor_kind: NotRequired[str]
    """Who is at it. Now one of `human`, `ai_bot`, `automation`, `search_crawler`."""
    suspect_score: int | None
    """Sum of the weights of the signals that fired. Absent or `null` when not scored."""
    triggers: list[EventTriggerBody]
    """What fired, heaviest first."""
    signals: NotRequired[list[TriggerBody]]
    """Each signal that fired, heaviest first: the parts of `triggers`. Left out of events stored before 0.2.0."""
    has_document: bool
    """Whether the archived submission exists."""
    proof_covers: NotRequired[list[str]]
    """What the browser signed, beside `proven: true`: whose visit it is, and by a newer SDK also account, action
    and tag of the request, or that it had none. What was set of the event later is not covered.
    """
    velocity: NotRequired[VelocityBody]
    """How often and with whom the visitor, the account and the address were seen, this event included; without it
    if its report was sent before (`replayed`).
    """


class EventDetailBody(TypedDict):
    request_id: str
    """UUIDv7 of the request; it sorts by time."""
    visitor_id: str
    """Stable id of the visitor, within the organization."""
    visitor_is_new: bool
    """Whether the organization sees this visitor for the first time."""
    identifiable: bool
    """`false` when the report carried too little to identify anyone. The request is still scored."""
    visitor_confidence: int
    """`90` to `100`: nothing that decided could have been copied. `85` to `89`: the same visitor by all that is
    known, not proven. `0`: a new visitor id.
    """
    proven: bool
    """The browser signed the report with the key that its token had before: neither was copied to another one.
    `false` on a first visit, before which there is no key.
    """
    state: str
    """`enriched`, or `unavailable` when the network look-up could not run."""
    reason: NotRequired[str]
    """Why `state` is `unavailable`. Now one of `no_network_data`, `private_address`, `lookup_failed`."""
    suspect_level: NotRequired[str]
    """From the threshold in force: `low` below it, `high` from twice of it. Left out when not scored. Now one of
    `low`, `medium`, `high`.
    """
    decision: NotRequired[DecisionBody]
    """What the rules of the organization decided; left out where none matched."""
    occurred_at: str
    """When the request arrived."""
    environment: str
    """Environment of the key."""
    platform: str
    """Scoring profile."""
    sdk_platform: str
    """Which SDK sent the report, such as `web`, `ios`, `flutter-android`."""
    sdk_version: str
    """Its version; `unknown` when it did not say."""
    origin: NotRequired[str]
    """Site that the request came from; left out for native apps."""
    tag: NotRequired[str]
    """The caller's own reference, shown again on the event and in webhooks."""
    account_id: NotRequired[str]
    """The customer's id of the account that the visitor acts for. Opaque: no e-mail address."""
    account_verified: NotRequired[bool]
    """Whether a secret key named the account; beside `account_id` alone."""
    action: NotRequired[str]
    """What the visitor does, such as `sign_up`, `log_in` or `checkout`."""
    label: NotRequired[str]
    """What the event turned out to be; left out where nobody has said. Now one of `fraud`, `legitimate`."""
    label_reason: NotRequired[str]
    """Why it has that label. Now one of `chargeback`, `account_takeover`, `multi_account`, `promo_abuse`, `bot`,
    `scraping`, `spam`, `other`.
    """
    ip_address: str
    """The visitor's address."""
    country_code: NotRequired[str]
    """ISO 3166-1 alpha-2."""
    country_name: NotRequired[str]
    """The country in English."""
    asn: NotRequired[str]
    """Number of the autonomous system."""
    asn_name: NotRequired[str]
    """Name of the network."""
    anonymity_network: NotRequired[str]
    """The strongest that applies; left out for an ordinary connection. Now one of `tor`, `vpn`, `proxy`,
    `hosting`.
    """
    agent: NotRequired[str]
    """Browser or app."""
    agent_version: NotRequired[str]
    """Its version."""
    os: NotRequired[str]
    """Operating system."""
    device_kind: NotRequired[str]
    """What kind of device it is. Now one of `desktop`, `mobile`, `tablet`, `server`."""
    visitor_kind: NotRequired[str]
    """Who is at it. Now one of `human`, `ai_bot`, `automation`, `search_crawler`."""
    suspect_score: int | None
    """Sum of the weights of the signals that fired. Absent or `null` when not scored."""
    triggers: list[EventTriggerBody]
    """What fired, heaviest first."""
    signals: NotRequired[list[TriggerBody]]
    """Each signal that fired, heaviest first: the parts of `triggers`. Left out of events stored before 0.2.0."""
    has_document: bool
    """Whether the archived submission exists."""
    proof_covers: NotRequired[list[str]]
    """What the browser signed, beside `proven: true`: whose visit it is, and by a newer SDK also account, action
    and tag of the request, or that it had none. What was set of the event later is not covered.
    """
    velocity: NotRequired[VelocityBody]
    """How often and with whom the visitor, the account and the address were seen, this event included; without it
    if its report was sent before (`replayed`).
    """
    document: dict[str, Any] | None
    """The archived submission and what scored it; `null` where none was kept. Its contents are not a public
    contract.
    """
    shadow: NotRequired[list[ShadowBody]]
    """Rules in shadow mode that matched; left out where none did."""
    deferred_signals: NotRequired[dict[str, Any]]
    """The deferred report, when one arrived. Its contents are not a public contract."""


class EventTriggerBody(TypedDict):
    signal: str
    """The group of signals that fired. Now one of `bot`, `tampering`, `tor`, `vpn`, `proxy`, `residential_proxy`,
    `ip_reputation`, `environment`, `integrity`, `location`, `privacy`, `velocity`, `replay`, `rarity`,
    `account`.
    """
    weight: int
    """What the group added to the score."""
    confidence: str
    """How well founded it is; it does not change the weight. Now one of `high`, `low`, `medium`."""


class EventsAnswer(TypedDict):
    rows: list[EventBody | UnreadableEventBody]
    """Newest first, unless the `order` was another. An event that is corrupt in the store has a row with
    `request_id` and `error` alone: look for `error` before other fields.
    """
    page: int
    """As asked for; 1 where a cursor asked for it."""
    page_size: int
    """The most events that a page has: the `limit` of the request."""
    next_cursor: NotRequired[str]
    """For the next page; left out on the last one, of which the feed has none."""
    has_more: NotRequired[bool]
    """Of the feed: whether there is a next page now."""


class Fault(TypedDict):
    code: str
    """For programs. Now one of `bad_request`, `unauthorized`, `billing_blocked`, `no_credit`, `insufficient_role`,
    `cross_origin_request`, `secure_connection_required`, `not_found`, `event_not_found`, `method_not_allowed`,
    `request_timeout`, `revision_conflict`, `sdk_key_revoked`, `proxy_key_revoked`, `key_limit`,
    `supplement_conflict`, `list_exists`, `list_limit`, `list_permanent`, `list_in_use`, `proposal_limit`,
    `review_closed`, `review_open`, `note_limit`, `member_exists`, `member_limit`, `member_invited`,
    `member_suspended`, `last_admin`, `webhook_limit`, `webhook_busy`, `webhook_paused`, `webhook_unsigned`,
    `view_exists`, `view_limit`, `payload_too_large`, `unsupported_media_type`, `invalid_visitor_metadata`,
    `invalid_request_id`, `invalid_window`, `validation_error`, `idempotency_key_too_long`,
    `invalid_supplement`, `rate_limited`, `header_fields_too_large`, `internal_error`, `service_unavailable`.
    """
    message: str
    """For people: what to do about it."""
    status: int
    """The HTTP status."""
    details: NotRequired[list[DetailBody]]
    """Each fault in the request."""


class HealthBody(TypedDict):
    status: str
    """The process is up. Now one of `ok`."""
    version: str
    """Version of the service."""


class IdentifyAnswer(TypedDict):
    request_id: str
    """UUIDv7 of the request; it sorts by time."""
    visitor_id: str
    """Stable id of the visitor, within the organization."""
    visitor_is_new: bool
    """Whether the organization sees this visitor for the first time."""
    identifiable: bool
    """`false` when the report carried too little to identify anyone. The request is still scored."""
    visitor_confidence: int
    """`90` to `100`: nothing that decided could have been copied. `85` to `89`: the same visitor by all that is
    known, not proven. `0`: a new visitor id.
    """
    proven: bool
    """The browser signed the report with the key that its token had before: neither was copied to another one.
    `false` on a first visit, before which there is no key.
    """
    state: str
    """`enriched`, or `unavailable` when the network look-up could not run."""
    reason: NotRequired[str]
    """Why `state` is `unavailable`. Now one of `no_network_data`, `private_address`, `lookup_failed`."""
    suspect_level: NotRequired[str]
    """From the threshold in force: `low` below it, `high` from twice of it. Left out when not scored. Now one of
    `low`, `medium`, `high`.
    """
    decision: NotRequired[DecisionBody]
    """What the rules of the organization decided; left out where none matched."""
    deferred_token: str
    """Allows the deferred report of this request to be sent, for 24 hours."""
    duplicate: NotRequired[bool]
    """This is the response of an earlier request with the same `Idempotency-Key`; nothing changed."""
    client_token_renew: NotRequired[bool]
    """The web SDK renews its token and key. Only to a public key, and only `true`."""
    suspect_score: NotRequired[int]
    """Sum of the weights of the signals that fired. Absent or `null` when not scored."""
    triggers: NotRequired[list[TriggerBody]]
    """What fired, heaviest first."""
    verdict: NotRequired[str]
    """The verdict as a JWS, for a backend that verifies it by the organization's keys (`getVerdictKeys`). Only
    where the request asked for it.
    """


class InvitedMemberBody(TypedDict):
    member: MemberBody
    """The member."""
    invitation_url: str
    """Hand it to the member; it works once. Shown this once."""
    expires_at: str
    """Until when it works, seven days from now."""


class IssuedProxyKeyBody(TypedDict):
    credential: ProxyKeyBody
    """The proxy key."""
    secret: str
    """Shown this once."""


class IssuedSdkKeyBody(TypedDict):
    key: SdkKeyBody
    """The SDK key."""
    secret: str
    """Shown this once."""


class IssuedWebhookBody(TypedDict):
    endpoint: WebhookBody
    """The endpoint."""
    secret: str
    """The whole signing secret, shown this once; empty for a chat format."""
    standard_secret: str
    """The same for a library of Standard Webhooks: `whsec_` and base64. Empty for a chat format."""


class JwkBody(TypedDict):
    kty: str
    """Always `OKP`."""
    crv: str
    """Always `Ed25519`."""
    x: str
    """The key, base64url."""
    kid: str
    """Its thumbprint (RFC 7638)."""
    use: str
    """Always `sig`."""
    alg: str
    """Always `EdDSA`."""


class LabelAnswer(TypedDict):
    request_id: str
    """UUIDv7 of the request; it sorts by time."""
    label: str | None
    """What the event turned out to be."""
    label_reason: str | None
    """Why it has that label."""


class LabelCounts(TypedDict):
    fraud: int
    """Labeled `fraud`."""
    legitimate: int
    """Labeled `legitimate`."""


class ListBody(TypedDict):
    id: str
    """Its id."""
    name: str
    """Unique in the organization: `[a-z][a-z0-9_]{0,47}`. Rules name the list by it."""
    kind: str
    """What its entries are, which never changes. A list of kind `address` has addresses and networks. Now one of
    `account`, `address`, `asn`, `country`, `origin`, `tag`, `visitor`.
    """
    entries: int
    """How many entries it has."""
    created_at: str
    """When it was made."""
    updated_at: str
    """When its name or its entries were changed last."""


class ListsBody(TypedDict):
    lists: list[ListBody]
    """In the order of their names."""


class ManagementKeyBody(TypedDict):
    key_id: str
    """Id of the key."""
    organization_id: str
    """The organization every management route acts on."""
    name: str
    """A name for people."""
    role: str
    """What the key may do. Now one of `admin`, `developer`."""
    region: str
    """Region of the key."""


class MemberBody(TypedDict):
    id: str
    """Its id."""
    email: str
    """E-mail address, in lower case. Nothing is sent there."""
    name: str
    """For people."""
    role: str
    """What the member may do. Now one of `admin`, `developer`, `analyst`, `viewer`."""
    status: str
    """`invited` until it comes in for the first time. Now one of `invited`, `active`, `suspended`."""
    has_totp: bool
    """Whether it needs a one-time code beside its password."""
    has_password: bool
    """Whether it can sign in by a password."""
    has_provider: bool
    """Whether it has signed in by the OpenID provider."""
    created_at: str
    """When it was made."""
    created_by: NotRequired[str]
    """The member who invited it; left out where nobody did."""
    last_signed_in_at: str | None
    """When it signed in last."""


class MembersBody(TypedDict):
    members: list[MemberBody]
    """Oldest first."""


class NewAccountThresholds(TypedDict):
    multi_account: NotRequired[int]
    """Accounts of a visitor in 30 days from which `multi_account` fires."""
    account_testing_visitor: NotRequired[int]
    """Accounts of a visitor within an hour from which `account_testing` fires."""
    account_testing_address: NotRequired[int]
    """Accounts of an address within an hour from which `account_testing` fires."""
    account_sharing: NotRequired[int]
    """Visitors of an account in 30 days from which `account_sharing` fires."""


class NewEntryBody(TypedDict):
    value: str
    """A visitor id, an account id, an address or network, a country code, an AS number, an origin or a tag, as the
    kind of the list is.
    """
    note: NotRequired[str]
    """Why it is there. Default: `""`."""
    expires_at: NotRequired[str | None]
    """When the entry expires; `null` = never."""


class NoteBody(TypedDict):
    id: str
    """Id of the note."""
    text: str
    """What was written."""
    created_at: str
    """When it was written."""
    author: NotRequired[str]
    """The member who wrote it; left out where a management key did."""


class NotesBody(TypedDict):
    notes: list[NoteBody]
    """Newest first: at most 100."""


PerformanceBody = TypedDict(
    "PerformanceBody",
    {
        "from": "str",
        "to": "str",
        "total": "PerformanceTotal",
        "signals": "list[PerformanceLine]",
        "groups": "list[PerformanceLine]",
        "rules": "list[PerformanceLine]",
        "levels": "list[PerformanceLine]",
        "scores": "list[PerformanceScores]",
    },
)
"""from: Start of the first UTC day.

to: End of the last UTC day.

total: Of the whole window.

signals: Most events first.

groups: Groups of signals, most events first.

rules: Those in force in their order, then former ones. An event counts for the rule that decided and shadows.

levels: `low`, `medium` and `high`, each by itself.

scores: Labeled events by score, lowest first.
"""


class PerformanceLine(TypedDict):
    name: str
    """Of the signal, group, rule or level."""
    rule_id: NotRequired[str]
    """Id of the rule."""
    events: int
    """Events in which it fired, matched, or that have this level."""
    labelled: int
    """Of these, labeled ones."""
    fraud: int
    """Of these, fraud."""
    legitimate: int
    """Of the labeled ones, legitimate."""
    precision: float | None
    """`fraud` of `labelled`."""
    precision_low: float | None
    """Lower end of its 95 % interval (Wilson)."""
    precision_high: float | None
    """Upper end."""
    recall: float | None
    """`fraud` of all fraud in the window."""


PerformanceScores = TypedDict(
    "PerformanceScores",
    {
        "from": "int",
        "to": "int | None",
        "fraud": "int",
        "legitimate": "int",
    },
)
"""from: Lowest score.

to: The score where the next line begins; `null` = there is none.

fraud: Of the labeled ones, fraud.

legitimate: Of the labeled ones, legitimate.
"""


class PerformanceTotal(TypedDict):
    events: int
    """Events."""
    labelled: int
    """Labeled events."""
    fraud: int
    """Of these, fraud."""
    legitimate: int
    """Of these, legitimate."""


class PlatformWeightsBody(TypedDict):
    platform: str
    """Scoring profile. Now one of `android`, `ios`, `web`."""
    scope: str
    """Whose configuration is in force. Now one of `default`, `key`, `organization`."""
    stored: bool
    """Whether this scope has its own saved configuration."""
    revision: int
    """Of the scope's own configuration; 0 when nothing is stored."""
    suspect_threshold: int
    """Score from which a visitor is suspect."""
    weights: dict[str, int]
    """Signal -> weight in force."""
    defaults: dict[str, int]
    """Signal name to default weight."""
    signals: list[str]
    """Every signal of the platform."""
    vpn_weights_mode: str
    """Which half of the VPN signals counts. Now one of `confidence`, `method`."""
    residential_proxy_weights_mode: str
    """Which half of the residential-proxy signals counts. Now one of `confidence`, `method`."""
    updated_at: NotRequired[str]
    """Of the scope's own configuration."""
    updated_by_user_id: NotRequired[str]
    """The member who saved it; left out where a management key did."""


class PreviewedRule(TypedDict):
    rule_id: NotRequired[str]
    """Id of the rule."""
    name: str
    """Its name: unique, up to 80 characters."""
    matches: int
    """Events that it would have decided, or matched in shadow mode."""
    examples: list[str]
    """The newest of them."""
    errors: int
    """Events on which its evaluation failed: it does not match then."""
    error: NotRequired[str]
    """Why, on the newest of them."""


class ProposalBody(TypedDict):
    id: str
    """Id of the proposal."""
    revision: int
    """Of the ruleset that it was made from."""
    rules: list[ProposedRule]
    """In their order."""
    note: str
    """Why, for admins."""
    created_at: str
    """When it was made."""
    author: NotRequired[str]
    """The member who made it; left out where a management key did."""


class ProposalsBody(TypedDict):
    proposals: list[ProposalBody]
    """Oldest first: at most 20."""


class ProposedRule(TypedDict):
    id: NotRequired[str]
    """Left out of a rule that is not in force: a save of these rules makes it."""
    name: str
    """Its name: unique, up to 80 characters."""
    condition: str
    """When it matches, in CEL (the Common Expression Language)."""
    action: str
    """What it decides. Now one of `allow`, `block`, `challenge`, `review`."""
    mode: str
    """`shadow`: it is evaluated and counted, and decides nothing. `off`: neither. Now one of `active`, `off`,
    `shadow`.
    """
    note: str
    """For people."""


class ProxyKeyBody(TypedDict):
    id: str
    """Its id."""
    name: str
    """A name for people."""
    environment: str
    """Environment of the key. Now one of `development`, `production`, `staging`."""
    region: str
    """Region of the key."""
    prefix: str
    """Start of the secret."""
    last4: str
    """Last four characters of the secret."""
    status: str
    """`active` until it is revoked, also when it has expired. Now one of `active`, `revoked`."""
    last_used_at: str | None
    """When it was last used, to the minute."""
    expires_at: str | None
    """When it stops working."""
    created_at: str
    """When it was made."""
    revoked_at: str | None
    """When it was revoked."""


class ProxyKeysBody(TypedDict):
    credentials: list[ProxyKeyBody]
    """Oldest first, revoked included."""
    next_cursor: NotRequired[str]
    """Of the next page; left out on the last one, and where no page was asked for."""


class QualityBody(TypedDict):
    precision: float | None
    """Of the labeled events that reach it, fraud; `null` = none does."""
    recall: float | None
    """Of the fraud, that which reaches it."""


class QueuedDeliveryBody(TypedDict):
    event_id: str
    """Of the delivery that is on its way."""


class ReadinessBody(TypedDict):
    status: str
    """Whether it can serve. Now one of `ready`, `unavailable`."""
    checks: ReadinessChecks
    """What that depends on, part by part."""


class ReadinessChecks(TypedDict):
    store: str
    """`full` when there is no space for writes, `unreachable` while the database does not respond or the service
    waits to start, `stalled` while a commit takes over 10 s, `failing` when writes were tried for 10 s and none
    was stored, `lost` when the store's file was replaced, removed, cut or overwritten. Now one of `failing`,
    `full`, `lost`, `ok`, `stalled`, `unreachable`.
    """
    webhooks: str
    """`behind` while a delivery to an endpoint that responds is over a minute late, `stopped` while nobody sends;
    it never fails readiness. Now one of `behind`, `ok`, `stopped`.
    """
    network_data: str
    """State of the network databases; it never fails readiness. Now one of `missing`, `ok`, `stale`."""


class ReviewAnswer(TypedDict):
    review: ReviewBody
    """The review."""


class ReviewBody(TypedDict):
    id: str
    """Id of the review; it sorts by time."""
    state: str
    """`open` or `closed`."""
    environment: str
    """Of its event."""
    request_id: str
    """UUIDv7 of the request; it sorts by time."""
    visitor_id: str
    """Stable id of the visitor, within the organization."""
    account_id: NotRequired[str]
    """The customer's id of the account that the visitor acts for. Opaque: no e-mail address."""
    suspect_score: int | None
    """Sum of the weights of the signals that fired. Absent or `null` when not scored."""
    suspect_level: NotRequired[str]
    """Of its event; left out when not scored."""
    rule_id: NotRequired[str]
    """Id of the rule that opened it; left out where a person did."""
    rule: NotRequired[str]
    """Name of that rule then."""
    opened_at: str
    """When it was opened."""
    opened_by: NotRequired[str]
    """The member who opened it by hand."""
    reopened_at: NotRequired[str]
    """When it was last opened again after it was closed; left out if never."""
    reopened_by: NotRequired[str]
    """The member who opened it again."""
    assignee: str | None
    """The member who takes care of it; `null` = nobody."""
    closed_at: NotRequired[str]
    """When it was closed; left out while it is open."""
    closed_by: NotRequired[str]
    """The member who closed it."""
    label: NotRequired[str]
    """What the event turned out to be; left out where nobody has said. Now one of `fraud`, `legitimate`."""
    label_reason: NotRequired[str]
    """Why it has that label. Now one of `chargeback`, `account_takeover`, `multi_account`, `promo_abuse`, `bot`,
    `scraping`, `spam`, `other`.
    """
    note: NotRequired[str]
    """What the person who closed it wrote."""


class ReviewsBody(TypedDict):
    reviews: list[ReviewBody]
    """The one that was opened last first."""
    next_cursor: NotRequired[str]
    """Of the next page, which may be empty; left out on the last one."""


class RiskWeightsBody(TypedDict):
    organization_id: str
    """The organization that the key acts on."""
    scope: str
    """Whose weights they are. Now one of `key`, `organization`."""
    sdk_key_id: NotRequired[str]
    """The SDK key; left out for those of the organization."""
    max_weight: int
    """The largest weight that may be given."""
    platforms: list[PlatformWeightsBody]
    """Each platform once."""


class RuleCounts(TypedDict):
    matched_24h: int
    """Events of the last 24 hours, from a full hour on, that it decided or matched in shadow mode."""
    matched_30d: int
    """The same of the last 30 days."""
    errors_24h: int
    """Events of the last 24 hours for which its evaluation failed."""


class RuleFields(TypedDict):
    id: NotRequired[str]
    """Id of the rule."""
    name: str
    """Its name: unique, up to 80 characters."""
    condition: str
    """When it matches, in CEL (the Common Expression Language)."""
    action: Literal["allow", "block", "challenge", "review"]
    """What it decides."""
    mode: NotRequired[Literal["active", "off", "shadow"]]
    """`shadow`: it is evaluated and counted, and decides nothing. `off`: neither. Default: `"active"`."""
    note: NotRequired[str]
    """For people. Default: `""`."""
    counts: NotRequired[Any]
    """Ignored, so that a rule can be sent as it was read."""


class RuleRow(TypedDict):
    id: str
    """Id of the rule."""
    name: str
    """Its name: unique, up to 80 characters."""
    condition: str
    """When it matches, in CEL (the Common Expression Language)."""
    action: str
    """What it decides. Now one of `allow`, `block`, `challenge`, `review`."""
    mode: str
    """`shadow`: it is evaluated and counted, and decides nothing. `off`: neither. Now one of `active`, `off`,
    `shadow`.
    """
    note: str
    """For people."""
    counts: RuleCounts
    """Whole hours: those that the window touches."""


class RulesAnswer(TypedDict):
    environment: str
    """`live` is production, `test` staging and development."""
    revision: int
    """Grows by one at each save; 0 = the initial ruleset."""
    rules: list[RuleRow]
    """In their order: the first active one that matches decides."""
    warnings: NotRequired[list[str]]
    """What may not be meant: see previews."""


class RulesPreview(TypedDict):
    events: int
    """Events that were looked at."""
    rules: list[PreviewedRule]
    """In the order in which they were sent."""
    before: dict[str, int]
    """Action -> events as they were decided; `none` = by no rule."""
    after: dict[str, int]
    """The same by these rules."""
    warnings: NotRequired[list[str]]
    """In words: rules that match every event or read labels, literals that no event can have."""


class Sdk(TypedDict):
    platform: NotRequired[str]
    """`web`, `ios`, `android`, or a bridge such as `react-native-ios`; `web` when left out."""
    version: NotRequired[str]
    """Version of the SDK."""


class SdkKeyBody(TypedDict):
    id: str
    """Its id."""
    name: str
    """A name for people."""
    environment: str
    """Environment of the key. Now one of `development`, `production`, `staging`."""
    region: str
    """Region of the key."""
    prefix: str
    """Start of the secret."""
    last4: str
    """Last four characters of the secret."""
    status: str
    """`active` until it is revoked, also when it has expired. Now one of `active`, `revoked`."""
    last_used_at: str | None
    """When it was last used, to the minute."""
    expires_at: str | None
    """When it stops working."""
    created_at: str
    """When it was made."""
    revoked_at: str | None
    """When it was revoked."""
    kind: str
    """`public` for SDKs, `secret` for servers."""
    platforms: NotRequired[list[str]]
    """Public keys only. Now one of `android`, `ios`, `web`."""
    allowed_origins: NotRequired[list[str]]
    """Public keys only."""
    created_by: NotRequired[str]
    """The member who did it; left out where a management key did."""
    revoked_by: NotRequired[str]
    """The member who revoked it."""


class SdkKeysBody(TypedDict):
    keys: list[SdkKeyBody]
    """Oldest first, revoked included."""
    next_cursor: NotRequired[str]
    """Of the next page; left out on the last one, and where no page was asked for."""


class SeenAddress(TypedDict):
    ip_address: str
    """The address."""
    country_code: NotRequired[str]
    """ISO 3166-1 alpha-2."""
    first_seen_at: str
    """When it was seen first."""
    last_seen_at: str
    """When it was seen last."""


class SeenCountry(TypedDict):
    country_code: str
    """ISO 3166-1 alpha-2."""
    first_seen_at: str
    """When it was seen first."""
    last_seen_at: str
    """When it was seen last."""


class SeenVisitorAnswer(TypedDict):
    first_seen_at: str
    """When it was seen first, to the second."""
    last_seen_at: str
    """When it was seen last."""
    addresses: list[SeenAddress]
    """The newest 100, the one seen last first."""
    countries: list[SeenCountry]
    """The newest 100, the one seen last first."""
    labels: LabelCounts
    """Its labeled events of the last 400 days."""
    notes_count: int
    """Notes about it."""
    counted_since: NotRequired[str]
    """While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent."""
    visitor_id: str
    """Stable id of the visitor, within the organization."""
    velocity: VisitorVelocity
    """Of the visitor, now."""
    accounts: list[AccountOfVisitor]
    """The newest 100 accounts that it acted for, the one seen last first."""


class SeenVisitorRow(TypedDict):
    visitor_id: str
    """Stable id of the visitor, within the organization."""
    first_seen_at: str
    """When it was seen first, to the second."""
    last_seen_at: str
    """When it was seen last."""
    level: NotRequired[str]
    """The highest suspect level of its events in the last 24 hours; left out where none was scored. Now one of
    `low`, `medium`, `high`.
    """
    velocity: VisitorVelocity
    """Of the visitor, now."""


class SeenVisitorsAnswer(TypedDict):
    visitors: list[SeenVisitorRow]
    """The one that was seen last first."""
    next_cursor: NotRequired[str]
    """Of the next page, which may be empty; left out on the last one."""
    counted_since: NotRequired[str]
    """While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent."""


class SettingsBody(TypedDict):
    decision_in_response: bool
    """Whether responses and signed verdicts for public keys have the decision of the rules."""
    account_thresholds: AccountThresholdsBody
    """Of the signals of the group `account`."""
    rate_limit_per_s: int
    """Identifications that it may send in a second; 0 = any number. Its operator sets it: `svc org rate-limit`."""
    event_retention_days: int
    """For how many days its events are readable. The operator's setting of the service."""


class ShadowBody(TypedDict):
    rule_id: str
    """Id of the rule."""
    rule: str
    """Its name then."""
    action: str
    """What it would have decided."""


class SignalBody(TypedDict):
    name: str
    """Permanent name of the signal."""
    group: str
    """The group that the signal belongs to. Now one of `bot`, `tampering`, `tor`, `vpn`, `proxy`,
    `residential_proxy`, `ip_reputation`, `environment`, `integrity`, `location`, `privacy`, `velocity`,
    `replay`, `rarity`, `account`.
    """
    description: str
    """What it means."""
    platforms: list[str]
    """Platforms on which it exists. Now one of `android`, `ios`, `web`."""
    default_weights: dict[str, int]
    """Platform to default weight."""
    mode: NotRequired[str]
    """Of the VPN and residential-proxy families: the mode in which the signal fires. Now one of `confidence`,
    `method`.
    """
    since: str
    """Version of the catalog that introduced it."""


class SignalsBody(TypedDict):
    signals: list[SignalBody]
    """Every signal."""
    max_weight: int
    """The largest weight that may be given."""


class SuggestedWeightBody(TypedDict):
    signal: str
    """Name of the signal."""
    before: int
    """Its weight in force."""
    after: int
    """The suggested one."""
    events: int
    """Labeled events in which it fired: at least 10."""
    fraud: int
    """Of these, fraud."""


class SuggestionBody(TypedDict):
    platform: str
    """Platform whose weights they are."""
    fraud: int
    """Events labeled as fraud."""
    legitimate: int
    """Events labeled as legitimate."""
    suspect_threshold: int
    """The threshold in force, which keeps its meaning."""
    needed: NotRequired[int]
    """Events of each label without which nothing is suggested."""
    is_complete: NotRequired[bool]
    """Whether every label was looked at; `false` = older ones were left out. `svc weights suggest` takes all."""
    before: NotRequired[QualityBody]
    """By the weights in force; left out while there are too few labels."""
    after: NotRequired[QualityBody]
    """By the suggested weights; left out then, too."""
    weights: list[SuggestedWeightBody]
    """Signals that fired in at least 10 labeled events. All others keep theirs."""


class SupplementAnswer(TypedDict):
    request_id: str
    """UUIDv7 of the request; it sorts by time."""
    duplicate: NotRequired[bool]
    """The same was accepted before, and nothing changed."""


class TriggerBody(TypedDict):
    signal: str
    """The signal. Names are permanent. Now one of `automation`, `headless`, `bot_user_agent`, `spoofed_crawler`,
    `ai_agent`, `search_crawler`, `anti_detect_browser`, `browser_tampering`, `os_mismatch`, `engine_mismatch`,
    `gpu_mismatch`, `developer_tools`, `app_tampering`, `forged_report`, `proof_failed`, `tor`, `vpn_public`,
    `vpn_timezone_mismatch`, `vpn_os_mismatch`, `vpn_auxiliary_mobile`, `vpn_relay`, `vpn_low`, `vpn_medium`,
    `vpn_high`, `public_proxy`, `hosting`, `residential_proxy_listed`, `residential_proxy_behavior`,
    `residential_proxy_low`, `residential_proxy_medium`, `residential_proxy_high`, `ip_attack_source`,
    `ip_email_spam`, `virtual_machine`, `emulator`, `simulator`, `cloned_app`, `rooted`, `jailbroken`, `frida`,
    `hooked`, `debugger`, `developer_options`, `unofficial_store`, `mitm_attack`, `attestation_failed`,
    `attestation_missing`, `factory_reset`, `clock_tampered`, `location_spoofing`, `incognito`,
    `privacy_settings`, `high_activity`, `velocity_ip`, `velocity_country`, `storage_renewed`,
    `new_visitor_burst`, `token_conflict`, `network_new_for_visitor`, `replayed`, `repeated_report`,
    `repeated_rare_report`, `key_shared`, `rare_device`, `unseen_rendering`, `multi_account`, `account_testing`,
    `account_sharing`, `account_new_device`.
    """
    group: str
    """The group that the signal belongs to. Now one of `bot`, `tampering`, `tor`, `vpn`, `proxy`,
    `residential_proxy`, `ip_reputation`, `environment`, `integrity`, `location`, `privacy`, `velocity`,
    `replay`, `rarity`, `account`.
    """
    weight: int
    """What the signal added to the score."""
    confidence: str
    """How well founded it is; it does not change the weight. Now one of `high`, `low`, `medium`."""


class UnreadableEventBody(TypedDict):
    request_id: str
    """UUIDv7 of the request; it sorts by time."""
    error: str
    """`unreadable`: the event is corrupt in the store, and its other fields are missing. The operator of the
    service can take it out.
    """


class VelocityBody(TypedDict):
    visitor: VisitorVelocity
    """Of the visitor."""
    address: AddressVelocity
    """Of the address."""
    account: NotRequired[AccountVelocity]
    """Of the account; left out without one."""


class VerdictKeysBody(TypedDict):
    keys: list[JwkBody]
    """The key in force first, then the next one, then the previous one until it expires."""


class VisitorOfAccount(TypedDict):
    visitor_id: str
    """Stable id of the visitor, within the organization."""
    confidence: int
    """`visitor_confidence` of its last event for the account."""
    first_seen_at: str
    """When it was seen first."""
    last_seen_at: str
    """When it was seen last."""


class VisitorVelocity(TypedDict):
    events: dict[str, int]
    """Events of the visitor."""
    accounts: dict[str, int]
    """Accounts that it acted for; each sign-up without an account is one."""
    addresses: dict[str, int]
    """Addresses that it came from; of IPv6, the /64."""
    countries: dict[str, int]
    """Countries of these addresses."""


class WebhookBody(TypedDict):
    id: str
    """Id of the endpoint."""
    url: str
    """Where deliveries go: `https`, without user info or fragment, port 443 or one above 1023, and every address
    of its host public.
    """
    description: str
    """A note for people."""
    environment: str
    """`live`: production traffic; `test`: staging and development."""
    events: list[str]
    """Types of events that it subscribes to. Now one of `billing.status_changed`, `identification.completed`,
    `identification.refused`, `review.closed`, `review.opened`, `usage.daily_settled`, `visitor.suspect`,
    `webhook.test`.
    """
    status: str
    """`failing` after five failed attempts in a row over at least ten minutes, a delivery that failed for good, or
    a `410`. It is never switched off: the first `2xx` makes it `active` again. Now one of `active`, `failing`,
    `paused`.
    """
    failing_since: NotRequired[str]
    """When the first of its failed attempts in a row began, whatever its status; left out where the last attempt
    succeeded. After five of them an endpoint for which more than 100 deliveries wait is tried after a twelfth
    of the time since then, between 5 seconds and 5 minutes; the first success sends all that wait.
    """
    format: str
    """`json` is the signed envelope. `slack`, `discord` and `teams` (an Adaptive Card) are messages for people,
    unsigned, and one for an identification, whichever events it causes.
    """
    filter: NotRequired[str]
    """Condition in CEL, as of a rule. Events of identifications and reviews are sent only where it is true; all
    others whatever it says.
    """
    filter_errors_24h: NotRequired[int]
    """Identifications of the last 24 hours that were held back because the evaluation of the filter failed; with a
    filter alone. Whole hours: those that the window touches.
    """
    secret_last4: str
    """Last four characters of the signing secret; empty for a chat format."""
    previous_secret_expires_at: NotRequired[str]
    """During a rotation: when the previous secret stops signing."""
    delivered_24h: int
    """Attempts in the last 24 hours that succeeded."""
    failed_24h: int
    """Attempts in the last 24 hours that failed."""
    last_delivery_at: NotRequired[str]
    """When it was last sent to, whatever came of it."""
    created_at: str
    """When it was made."""


class WebhookDeliveriesBody(TypedDict):
    deliveries: list[WebhookDeliveryBody]
    """Newest first."""
    next_cursor: NotRequired[str]
    """Of the next page, which may be empty; left out on the last one."""


class WebhookDeliveryBody(TypedDict):
    id: str
    """UUIDv7 of the attempt; it sorts by time."""
    endpoint_id: str
    """Id of the endpoint."""
    endpoint_url: str
    """As it was when this was sent."""
    event_id: str
    """The same on every attempt, and on a redelivery."""
    event: str
    """Type of the event. Now one of `billing.status_changed`, `identification.completed`,
    `identification.refused`, `review.closed`, `review.opened`, `usage.daily_settled`, `visitor.suspect`,
    `webhook.test`.
    """
    environment: str
    """Environment of the endpoint when the event happened. Now one of `live`, `test`."""
    status: str
    """`delivered`; `retrying`: failed, and another attempt will follow; `failed`: failed, and none will."""
    response_code: NotRequired[int]
    """The receiver's status. Left out without one."""
    duration_ms: int
    """How long the attempt took, in milliseconds."""
    attempt: int
    """Which attempt of its delivery it was, from 1."""
    error: NotRequired[str]
    """Why it failed; left out on success. Now one of `blocked_address`, `connect_error`, `connection_reset`,
    `dns_error`, `http_status`, `paused`, `redirect`, `removed`, `response_too_large`, `timeout`, `tls_error`.
    """
    occurred_at: str
    """When the attempt began."""


class WebhooksBody(TypedDict):
    endpoints: list[WebhookBody]
    """Newest first."""
