"""What the published documents say of each operation, beside what the table of routes knows of it.

What may live here: sentences as data, one entry per operation of the reference. A route without an entry fails a test.
Sources: interface 4, decisions 2 to 9.
"""

from __future__ import annotations

from typing import NamedTuple


class Operation(NamedTuple):
    tag: str
    summary: str
    description: str = ""
    request_headers: tuple[str, ...] = ()
    """Of the glossary, beside the key."""
    answer_headers: tuple[str, ...] = ()
    """On every answer that reached admission."""


INTRODUCTION = """\
Identifies the visitors of sites and apps, and scores how suspicious each identification is.

**Keys** go into `x-api-key`. A public key (`svc_pk_`) is for SDKs, a secret key (`svc_sk_`) for your servers, a proxy
key (`svc_px_`) for a first-party proxy that forwards identify requests, and a management key (`svc_mk_`) for
automation. Each belongs to one region, and all but management keys to one environment. A platform is a claim that only
attestation proves.

**Bodies** are JSON. A field of a request that is not known is refused, and so is a query parameter. Within version 1
fields, operations and values are added, never removed or renamed: clients ignore fields that they do not know, and
accept new values wherever `x-extensible-enum` lists those there are. A member name that comes twice at the top of a
body is `invalid_value`. A body that an operation does not ask for is ignored up to 1 MiB. The character set is always
UTF-8, whatever `Content-Type` says.

**Caches** keep nothing: answers to requests with a key are `Cache-Control: no-store`.

**Paths** are compared as they are sent: an escape such as `%6d` is decoded only where an identifier stands. `HEAD` is
taken wherever `GET` is.

**Errors** all have the body `ErrorBody`: `error.code` is for programs, `error.message` says what to do. Quote the
`request_id` to the operator.
"""

TAGS = {
    "Client API": "What SDKs and first-party proxies send.",
    "Server API": "What your servers read. Needs a secret key; never send one from a browser.",
    "Management: keys": "Keys of the organization. Needs a management key.",
    "Management: webhooks": "Endpoints of yours that are told what happens. Needs a management key.",
    "Management: weights": "What each signal weighs. Needs a management key; changes need the role `admin`.",
    "Management: visitors": "The rights of visitors. Needs a management key with the role `admin`.",
    "Health": "Open to all.",
}

_WEIGHTS_SAVED = (
    "What is not named keeps its value in force. Send the `revision` that you read to make sure that nobody has saved "
    "since: another one is `409 revision_conflict`."
)

_KEYS_LISTED = (
    "Oldest first, revoked ones included for 400 days. All of them, or a page where `limit` or `cursor` is given. A "
    "key that has expired stays `active` until it is revoked."
)
_KEY_ISSUED = "The secret is shown this once. At most 200 keys of all kinds may be `active` in an organization."

OPERATIONS: dict[str, Operation] = {
    "identify": Operation(
        "Client API",
        "Identify a visitor",
        "Answered once everything that it changes is stored. Retry with the same `Idempotency-Key`: a request that was "
        "answered is not identified or charged again. A body may be compressed (`Content-Encoding: gzip`), up to 1 MiB "
        "after decompression. Proxy keys go into `x-api-key` as the others do.",
        request_headers=(
            "Idempotency-Key",
            "x-svc-sdk-platform",
            "x-svc-visitor-ip",
            "x-svc-visitor-origin",
            "x-svc-visitor-user-agent",
            "x-svc-public-key",
        ),
        answer_headers=("Svc-Balance-Micros", "RateLimit-Limit", "RateLimit-Remaining"),
    ),
    "issueAttestationChallenge": Operation(
        "Client API",
        "Issue an attestation challenge",
        "For an app that proves its device: the challenge goes into the next report, within five minutes, once.",
        request_headers=("x-svc-sdk-platform",),
    ),
    "supplementEvent": Operation(
        "Client API",
        "Send the deferred report of an identification",
        "What takes long to collect may follow within 24 hours, from the same key and origin. It is kept with the "
        "event and changes nothing else. The same report again is answered as a duplicate. A secret or proxy key that "
        "identified sends it with the same forwarded origin, and a proxy key with `x-svc-visitor-ip` again. An app, "
        "which has no origin, names its platform again in `sdk.platform` or `x-svc-sdk-platform`.",
        request_headers=(
            "x-svc-sdk-platform",
            "x-svc-visitor-ip",
            "x-svc-visitor-origin",
            "x-svc-visitor-user-agent",
            "x-svc-public-key",
        ),
    ),
    "listEvents": Operation(
        "Server API",
        "List events",
        "Newest first, of the organization and environment of the key, at most 30 days back. Without `from` the window "
        "begins 24 hours before its end, but not more than 30 days ago. Each row has the verdict of identify, with the "
        "signals by name under `signals` and their groups under `triggers`. A page with fewer rows than the answer's "
        "`page_size`, which is the `limit` of the request, is the last one.",
    ),
    "getEvent": Operation(
        "Server API",
        "Read one event",
        "With the archived submission under `document`, and the deferred report when one arrived. The document also "
        "says why the verdict is what it is: `evidence` of each signal, `linkage` (how the visitor was found and how "
        "sure that is) and `changes` since the visitor's last report. Its contents are not a public contract.",
    ),
    "getManagementKey": Operation(
        "Management: keys", "Describe the management key", "Which organization it acts on, and in which role."
    ),
    "listProxyKeys": Operation("Management: keys", "List proxy keys", _KEYS_LISTED),
    "issueProxyKey": Operation("Management: keys", "Issue a proxy key", _KEY_ISSUED),
    "revokeProxyKey": Operation(
        "Management: keys", "Revoke a proxy key", "For good. It is refused from the next request on, and stays listed."
    ),
    "listSdkKeys": Operation("Management: keys", "List SDK keys", _KEYS_LISTED),
    "issueSdkKey": Operation("Management: keys", "Issue an SDK key", _KEY_ISSUED),
    "revokeSdkKey": Operation(
        "Management: keys", "Revoke an SDK key", "For good. It is refused from the next request on, and stays listed."
    ),
    "replaceSdkKeyOrigins": Operation(
        "Management: keys",
        "Replace the allowed origins of an SDK key",
        "An origin is `scheme://host[:port]`; `https://*.example.com` is any host below it, and not the host itself. "
        "Below a public suffix, such as `https://*.co.uk`, are the sites of strangers: never allow one.",
    ),
    "getOrganizationRiskWeights": Operation("Management: weights", "Read the organization's risk weights"),
    "saveOrganizationRiskWeights": Operation(
        "Management: weights", "Save the organization's risk weights for a platform", _WEIGHTS_SAVED
    ),
    "restoreOrganizationRiskWeights": Operation(
        "Management: weights", "Restore the organization's risk weights for a platform", "Back to the defaults."
    ),
    "getSdkKeyRiskWeights": Operation("Management: weights", "Read the risk weights of an SDK key"),
    "saveSdkKeyRiskWeights": Operation(
        "Management: weights", "Save the risk weights of an SDK key for a platform", _WEIGHTS_SAVED
    ),
    "restoreSdkKeyRiskWeights": Operation(
        "Management: weights",
        "Restore the risk weights of an SDK key for a platform",
        "Back to those of the organization.",
    ),
    "listRiskSignals": Operation("Management: weights", "List the signals that can fire"),
    "listWebhooks": Operation("Management: webhooks", "List webhook endpoints", "Newest first, without secrets."),
    "createWebhook": Operation(
        "Management: webhooks",
        "Register a webhook endpoint",
        "At most ten per organization. The signing secret is shown this once. The URL must be `https`, and every "
        "address of its host public and none of this service's own; it is judged again at every attempt, and redirects "
        "are not followed. Ports are 443 and those above 1023, unless the operator allows others. `live` endpoints "
        " hear of production traffic, `test` ones of all other; `billing.status_changed` needs `live`.",
    ),
    "updateWebhook": Operation(
        "Management: webhooks",
        "Change a webhook endpoint",
        "Send only what changes. While it is paused nothing new is queued for it, and what was queued waits until it "
        "is resumed. A changed URL, or `paused: false`, gives a failing endpoint a new start.",
    ),
    "deleteWebhook": Operation("Management: webhooks", "Delete a webhook endpoint", "Deliveries to it stop at once."),
    "rotateWebhookSecret": Operation(
        "Management: webhooks",
        "Rotate the signing secret of a webhook endpoint",
        "The new secret is shown this once. The previous one signs along for so many hours, `0` = not at all; an older "
        "one no more.",
    ),
    "testWebhook": Operation(
        "Management: webhooks",
        "Send a test event",
        "One signed `webhook.test`, whether or not the endpoint subscribes to it. It is tried once, and its failure "
        "does not make the endpoint `failing`.",
    ),
    "redeliverWebhook": Operation(
        "Management: webhooks",
        "Deliver an event again",
        "An event that was sent to this endpoint in the last 30 days, answered or not, with the same `id`. It is tried "
        "once, and its failure does not make the endpoint `failing`.",
    ),
    "listWebhookDeliveries": Operation(
        "Management: webhooks",
        "List delivery attempts",
        "Of the last 30 days, newest first. The last page has no `next_cursor`.",
    ),
    "eraseVisitor": Operation(
        "Management: visitors",
        "Erase a visitor",
        "With its events, their submissions and deferred reports, for good.",
    ),
    "getHealth": Operation("Health", "Is the process up?"),
    "getReadiness": Operation("Health", "Can it serve?"),
}
