"""What the words of the interface mean: every field, parameter and header, for the published documents.

What may live here: sentences, forms and examples, as data. A field is looked up as `Struct.field`, then by the
sentence that stands under it in its struct, then as `field`. Sources: interface 2 and 4, decisions 1 to 9.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec
from msgspec import UNSET

from svc.domain.model import PLATFORMS, AnonymityNetwork, DeviceKind, Level, VisitorKind
from svc.domain.refusals import CATALOGUE, Issue, Location
from svc.domain.signals import CATALOGUE as SIGNALS

Json = dict[str, Any]

_A_TIME = "2026-01-05T10:00:00.000Z"
_A_REQUEST = "019b8d2f-3c40-7a51-9d0e-6f1b2c3d4e5f"
_A_VISITOR = "0qppzPLvL54VURDkQrfS"
_AN_EVENT = "019b8d2f-3c40-7f03-8a11-52d7c0e94b6a"
_AN_ENDPOINT = "whk_9sD2kLm4Qp7Rt1VwXz5B"
_A_CURSOR = "AZuNLzxAfFGdDm8bLD1OX1OKp9pTEb2H"
_REPORT = {
    "userAgent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "platform": "Linux x86_64",
    "languages": ["en-GB", "en"],
    "timezone": "Europe/London",
    "screen": {"width": 1920, "height": 1080, "colorDepth": 24, "devicePixelRatio": 1},
    "hardwareConcurrency": 8,
    "canvas": "5d1f0a4c7be2",
}


class Term(msgspec.Struct, frozen=True):
    """One word: what it means, an example, and what JSON Schema can say of its form."""

    means: str
    example: Any = UNSET
    """`UNSET` = put together from its parts."""
    form: Json = {}


def _open(*values: str) -> Json:
    """Values of an answer, to which others may be added."""
    return {"x-extensible-enum": list(values)}


_TIME: Json = {"format": "date-time"}
_UUID: Json = {"format": "uuid"}
_SIGNAL_GROUPS = tuple(dict.fromkeys(signal.group for signal in SIGNALS.values()))


_LIVE_OR_TEST = Term("`live`: production traffic; `test`: staging and development.", "live")


def _id(prefix: str) -> Json:
    return {"pattern": f"^{prefix}[0-9A-Za-z]{{20}}$"}


TERMS: dict[str, Term] = {
    # identification
    "sdk": Term("The SDK that collected the report.", {"platform": "web", "version": "0.1.0"}),
    "Sdk.platform": Term(
        "`web`, `ios`, `android`, or a bridge such as `react-native-ios`; `web` when left out.", "web"
    ),
    "Sdk.version": Term("Version of the SDK.", "0.1.0"),
    "signals": Term(
        "The report that an SDK collected. What is in it is not a public contract.",
        _REPORT,
        {"type": "object", "additionalProperties": True},
    ),
    "SupplementBody.signals": Term(
        "The deferred report that an SDK collected. What is in it is not a public contract.",
        {"tier": "deferred", "audio": "124.04347527516074"},
        {"type": "object", "additionalProperties": True},
    ),
    "tag": Term("The caller's own reference, shown again on the event and in webhooks.", "order 1234"),
    "request_id": Term("UUIDv7 of the request; it sorts by time.", _A_REQUEST, _UUID),
    "deferred_token": Term(
        "Allows the deferred report of this request to be sent, for 24 hours.", "AQGbjS88QHpRnQ5vGyw9"
    ),
    "duplicate": Term("The same was accepted before, and nothing changed.", True, {"type": "boolean"}),
    "visitor_id": Term("Stable id of the visitor, within the organization.", _A_VISITOR, _id("")),
    "visitor_is_new": Term("Whether the organization sees this visitor for the first time.", False),
    "identifiable": Term(
        "`false` when the report carried too little to identify anyone. The request is still scored.", True
    ),
    "visitor_confidence": Term(
        "`100` seen before exactly; `85` to `99` recognised after the device changed; `0` a new visitor id.",
        100,
        {"minimum": 0, "maximum": 100},
    ),
    "state": Term("`enriched`, or `unavailable` when the network look-up could not run.", "enriched"),
    "reason": Term(
        "Why `state` is `unavailable`.",
        "no_network_data",
        _open("no_network_data", "private_address", "lookup_failed"),
    ),
    "suspect_score": Term("Sum of the weights of the signals that fired. Absent or `null` when not scored.", 40),
    "suspect_level": Term("From the threshold in force: `low` below it, `high` from twice of it.", "medium"),
    "triggers": Term("What fired, heaviest first."),
    "TriggerBody.signal": Term("The signal. Names are permanent.", "automation", _open(*SIGNALS)),
    "group": Term("The group that the signal belongs to.", "bot", _open(*_SIGNAL_GROUPS)),
    "TriggerBody.weight": Term("What the signal added to the score.", 40),
    "confidence": Term("How well founded it is; it does not change the weight.", "high"),
    # events
    "EventBody.signals": Term(
        "Each signal that fired, heaviest first: the parts of `triggers`. Left out of events stored before 0.2.0."
    ),
    "EventTriggerBody.signal": Term("The group of signals that fired.", "bot", _open(*_SIGNAL_GROUPS)),
    "EventTriggerBody.weight": Term("What the group added to the score.", 40),
    "occurred_at": Term("When the request arrived.", _A_TIME, _TIME),
    "environment": Term("Environment of the key.", "production"),
    "platform": Term("Scoring profile.", "web"),
    "sdk_platform": Term("Which SDK sent the report, such as `web`, `ios`, `flutter-android`.", "web"),
    "sdk_version": Term("Its version; `unknown` when it did not say.", "0.1.0"),
    "origin": Term("Site that the request came from; left out for native apps.", "https://shop.example"),
    "ip_address": Term("The visitor's address.", "81.2.69.160"),
    "country_code": Term("ISO 3166-1 alpha-2.", "GB"),
    "country_name": Term("The country in English.", "United Kingdom"),
    "asn": Term("Number of the autonomous system.", "20712"),
    "asn_name": Term("Name of the network.", "Andrews & Arnold Ltd"),
    "anonymity_network": Term(
        "The strongest that applies; left out for an ordinary connection.", "vpn", _open(*get_args(AnonymityNetwork))
    ),
    "agent": Term("Browser or app.", "Firefox"),
    "agent_version": Term("Its version.", "128.0"),
    "os": Term("Operating system.", "Linux"),
    "device_kind": Term("What kind of device it is.", "desktop", _open(*get_args(DeviceKind))),
    "visitor_kind": Term("Who is at it.", "human", _open(*get_args(VisitorKind))),
    "EventBody.suspect_level": Term("As it was answered; left out when not scored.", "medium", _open(*get_args(Level))),
    "has_document": Term("Whether the archived submission exists.", True),
    "EventDetailBody.document": Term(
        "The archived submission and what scored it; `null` when it could not be read. Its contents are not a public "
        "contract.",
        {"signals": _REPORT},
        {"type": ["object", "null"], "additionalProperties": True},
    ),
    "EventDetailBody.deferred_signals": Term(
        "The deferred report, when one arrived. Its contents are not a public contract.",
        {"tier": "deferred"},
        {"type": "object", "additionalProperties": True},
    ),
    "rows": Term("Newest first."),
    "page": Term("Which page, from 1.", 1),
    "page_size": Term("Events per page: a page with fewer rows is the last one.", 10),
    "limit": Term("How many per page, at most.", 10),
    "from": Term(
        "Start of the window, inclusive; 24 hours before its end when left out.", "2026-01-05T09:00:00Z", _TIME
    ),
    "to": Term("End of the window, exclusive; now when left out.", "2026-01-05T10:00:00Z", _TIME),
    "visitor": Term("Only events of this visitor.", _A_VISITOR, _id("")),
    "level": Term("Only events of this suspect level.", "high", {"enum": list(get_args(Level))}),
    "token": Term("The `deferred_token` of the identification.", "AQGbjS88QHpRnQ5vGyw9"),
    # attestation
    "challenge": Term("32 random bytes in base64, for one use.", "3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs="),
    "ChallengeAnswer.expires_at": Term("Five minutes after issue.", _A_TIME, _TIME),
    # keys
    "key_id": Term("Id of the key.", "key_4fzZ0aQbX7Lr2WmKc9Tn", _id("key_")),
    "id": Term("Its id.", "key_4fzZ0aQbX7Lr2WmKc9Tn"),
    "proxy_credential_id": Term("Id of the proxy key.", "key_4fzZ0aQbX7Lr2WmKc9Tn"),
    "organization_id": Term("The organization that the key acts on.", "org_Yv3kPq8sT1nB6wDx0hRz", _id("org_")),
    "name": Term("A name for people.", "checkout"),
    "role": Term("What the key may do.", "admin"),
    "region": Term("Region of the key.", "us"),
    "kind": Term("`public` for SDKs, `secret` for servers.", "public"),
    "platforms": Term("Platforms that it is for.", ["web"]),
    "SignalBody.platforms": Term("Platforms on which it exists.", ["web"]),
    "RiskWeightsBody.platforms": Term("Each platform once."),
    "allowed_origins": Term("Sites that may use the key.", ["https://shop.example", "https://*.shop.example"]),
    "prefix": Term("Start of the secret.", "svc_pk_us_production"),
    "last4": Term("Last four characters of the secret.", "x7Qe"),
    "status": Term("`active` until it is revoked, also when it has expired.", "active"),
    "last_used_at": Term("When it was last used, to the minute.", _A_TIME),
    "expires_at": Term("When it stops working.", None, _TIME),
    "created_at": Term("When it was made.", _A_TIME),
    "revoked_at": Term("When it was revoked.", None),
    "created_by": Term("The member who made it.", "user_1"),
    "revoked_by": Term("The member who revoked it.", "user_1"),
    "credential": Term("The proxy key."),
    "credentials": Term("The proxy keys."),
    "key": Term("The SDK key."),
    "keys": Term("The SDK keys."),
    "secret": Term("The whole secret, shown this once.", "svc_pk_us_production_..."),
    # weights
    "scope": Term("Whose weights they are.", "organization"),
    "sdk_key_id": Term("The SDK key; left out for those of the organization.", "key_4fzZ0aQbX7Lr2WmKc9Tn"),
    "max_weight": Term("The largest weight that may be given.", 100),
    "stored": Term("Whether this scope has its own saved configuration.", True),
    "revision": Term("Grows by one at each save; 0 when nothing is stored.", 3),
    "suspect_threshold": Term("Score from which a visitor is suspect.", 30),
    "weights": Term("Signal name to weight.", {"automation": 40, "tor": 30}),
    "defaults": Term("Signal name to default weight.", {"automation": 40, "tor": 30}),
    "PlatformWeightsBody.signals": Term("Every signal of the platform.", ["automation", "tor"]),
    "vpn_weights_mode": Term("Which half of the VPN signals counts.", "method"),
    "residential_proxy_weights_mode": Term("Which half of the residential-proxy signals counts.", "method"),
    "updated_at": Term("When it was last saved.", _A_TIME),
    "updated_by_user_id": Term("The member who saved it.", "user_1"),
    "SignalsBody.signals": Term("Every signal."),
    "SignalBody.name": Term("Permanent name of the signal.", "automation"),
    "SignalBody.description": Term("What it means.", "The browser is driven by a program."),
    "default_weights": Term("Platform to default weight.", {"web": 40}),
    "mode": Term("The mode in which it fires.", "method"),
    "since": Term("Version that introduced it.", "1"),
    "path.platform": Term("Platform whose weights are meant.", "web", {"enum": list(PLATFORMS)}),
    # webhooks
    "url": Term(
        "Where deliveries go: `https`, without user info or fragment, port 443 or one above 1023, and every address of "
        "its host public.",
        "https://shop.example/hooks/svc",
    ),
    "description": Term("A note for people.", "orders"),
    "CreateWebhookBody.environment": _LIVE_OR_TEST,
    "UpdateWebhookBody.environment": _LIVE_OR_TEST,
    "CreateWebhookBody.events": Term("Types of events to be told of.", ["identification.completed", "visitor.suspect"]),
    "events": Term("Types of events that it is told of.", ["identification.completed", "visitor.suspect"]),
    "paused": Term("`true` holds deliveries back, `false` lets them go on.", False),
    "previous_secret_valid_hours": Term("For how long the previous secret signs along.", 24),
    "event_id": Term("Id of the event.", _AN_EVENT, _UUID),
    "WebhookBody.id": Term("Id of the endpoint.", _AN_ENDPOINT, _id("whk_")),
    "webhook_id": Term("Id of the endpoint.", _AN_ENDPOINT),
    "endpoint_id": Term("Id of the endpoint.", _AN_ENDPOINT, _id("whk_")),
    "endpoint_url": Term("Where it was sent.", "https://shop.example/hooks/svc"),
    "WebhookBody.environment": _LIVE_OR_TEST,
    "secret_last4": Term("Last four characters of the signing secret.", "x7Qe"),
    "previous_secret_expires_at": Term("When the previous secret stops signing.", _A_TIME),
    "delivered_24h": Term("Attempts in the last 24 hours that succeeded.", 1250),
    "failed_24h": Term("Attempts in the last 24 hours that failed.", 3),
    "last_delivery_at": Term("When it was last sent to.", _A_TIME),
    "endpoints": Term("The endpoints."),
    "endpoint": Term("The endpoint."),
    "IssuedWebhookBody.secret": Term("The whole signing secret, shown this once.", "svc_whsec_..."),
    "ListWebhookDeliveriesQuery.environment": Term("Only attempts of these endpoints.", "all"),
    "cursor": Term("`next_cursor` of the page before; the first page when left out.", _A_CURSOR),
    "deliveries": Term("The attempts."),
    "next_cursor": Term("For the next page; left out on the last one.", _A_CURSOR),
    "WebhookDeliveryBody.id": Term("UUIDv7 of the attempt; it sorts by time.", _A_REQUEST, _UUID),
    "event": Term("Type of the event.", "identification.completed"),
    "WebhookDeliveryBody.environment": Term("Environment of the endpoint when the event happened.", "live"),
    "WebhookDeliveryBody.status": Term(
        "`delivered`; `retrying`: failed, and another attempt will follow; `failed`: failed, and none will.", "retrying"
    ),
    "response_code": Term("The receiver's status.", 503),
    "duration_ms": Term("How long the attempt took, in milliseconds.", 87),
    "attempt": Term("Which attempt of its delivery it was, from 1.", 1, {"minimum": 1}),
    "WebhookDeliveryBody.error": Term("Why it failed; left out on success.", "http_status"),
    # health
    "HealthBody.status": Term("The process is up.", "ok"),
    "version": Term("Version of the service.", "0.1.0"),
    "ReadinessBody.status": Term("Whether it can serve.", "ready"),
    "checks": Term("What that depends on, part by part."),
    "store": Term("`full` when writes find no room.", "ok"),
    "webhooks": Term(
        "`behind` while a delivery to an endpoint that answers is over a minute late; it never fails readiness.", "ok"
    ),
    "network_data": Term("State of the network databases; it never fails readiness.", "ok"),
    # errors
    "error": Term("What was refused."),
    "code": Term("For programs.", "validation_error", _open(*CATALOGUE)),
    "message": Term("For people: what to do about it.", CATALOGUE["validation_error"][1]),
    "Fault.status": Term("The HTTP status.", CATALOGUE["validation_error"][0]),
    "details": Term("Each fault in the request."),
    "field": Term("A path such as `sdk.version`; empty for the whole body.", "sdk.version"),
    "issue": Term("What is the matter with it.", "too_long", _open(*get_args(Issue))),
    "location": Term("Where it is.", "body", _open(*get_args(Location))),
}

REQUEST_HEADERS: dict[str, Term] = {
    "Idempotency-Key": Term(
        "Makes a retry safe: a key that was answered within 24 hours is answered as a duplicate and costs nothing. Its "
        "scope is the organization with all its environments: use random keys, or keys unique across environments.",
        "3f6b0f0e-checkout",
        {"type": "string", "minLength": 1, "maxLength": 255},
    ),
    "x-svc-sdk-platform": Term(
        "Platform of the SDK, where the body does not say.",
        "android",
        {"type": "string", "minLength": 1, "maxLength": 64},
    ),
    "x-svc-visitor-ip": Term(
        "From a proxy key (required) or a secret key: the visitor's IPv4 or IPv6 address. With any other key it is "
        "ignored, and so are the other `x-svc-visitor-` headers.",
        "81.2.69.160",
        {"type": "string"},
    ),
    "x-svc-visitor-origin": Term(
        "The site that the visitor is at.", "https://shop.example", {"type": "string", "maxLength": 300}
    ),
    "x-svc-visitor-user-agent": Term(
        "The visitor's user agent.", _REPORT["userAgent"], {"type": "string", "maxLength": 1024}
    ),
    "x-svc-public-key": Term(
        "From a proxy key: the visitor's public key, whose origins, platforms and weights then apply.",
        "svc_pk_us_production_...",
        {"type": "string"},
    ),
}

ANSWER_HEADERS: dict[str, Term] = {
    "X-Request-Id": Term("UUIDv7 of the request.", _A_REQUEST, {"type": "string", **_UUID}),
    "Svc-Balance-Micros": Term(
        "Remaining balance in millionths of a US dollar; it reflects production traffic.", 24997000, {"type": "integer"}
    ),
    "RateLimit-Limit": Term(
        "The organization's rate limit, per second; left out where it has none.", 100, {"type": "integer"}
    ),
    "RateLimit-Remaining": Term(
        "What remained of it when the request was admitted; left out where there is none.", 99, {"type": "integer"}
    ),
    "Retry-After": Term("Seconds to wait.", 1, {"type": "integer", "minimum": 1}),
}
