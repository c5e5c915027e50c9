"""Parameters of paths and headers, as annotated types: what the published documents say of them.

What may live here: tables of name -> type. Queries and bodies are structs of `svc.http.schema`.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from svc.kernel.values.environments import PLATFORMS
from svc.kernel.values.fields import (
    A_KEY_ID,
    A_LIST_ID,
    A_MEMBER_ID,
    A_REPORT,
    A_REQUEST_ID,
    A_REVIEW_ID,
    A_WEBHOOK_ID,
    UUID_FORM,
    AccountId,
    KeyId,
    OrganizationId,
    RequestId,
    VisitorId,
    about,
)

PATH: dict[str, Any] = {
    "organization_id": OrganizationId,
    "request_id": RequestId,
    "visitor_id": VisitorId,
    "account_id": Annotated[AccountId, about("Id of the account, percent-encoded: `/` is `%2F`.", "user-8271")],
    "key_id": KeyId,
    "proxy_credential_id": Annotated[str, about("Id of the proxy key.", A_KEY_ID)],
    "list_id": Annotated[str, about("Id of the list.", A_LIST_ID)],
    "review_id": Annotated[str, about("Id of the review.", A_REVIEW_ID)],
    "note_id": Annotated[str, about("Id of the note.", "note_0qppzPLvL54VURDkQrfS")],
    "member_id": Annotated[str, about("Id of the member.", A_MEMBER_ID)],
    "webhook_id": Annotated[str, about("Id of the endpoint.", A_WEBHOOK_ID)],
    "platform": Annotated[str, about("Platform whose weights are meant.", "web", form={"enum": [*PLATFORMS]})],
}

REQUEST_HEADERS: dict[str, Any] = {
    "Idempotency-Key": Annotated[
        str,
        Meta(min_length=1, max_length=255),
        about(
            "Makes a retry safe: a request whose key was used in the last 24 hours is a duplicate and costs nothing. "
            "Its scope is the organization with all its environments: use random keys, or keys unique across "
            "environments.",
            "3f6b0f0e-checkout",
        ),
    ],
    "x-svc-replay": Annotated[
        str,
        about(
            "`full`: a duplicate within a minute of its original, by the same key and from the same origin, gets the "
            "original's whole response and `duplicate: true`, if it comes from the same address or has the same "
            "`signals`. For a retry whose first response was lost or late.",
            "full",
        ),
    ],
    "x-svc-sdk-platform": Annotated[
        str, Meta(min_length=1, max_length=64), about("Platform of the SDK, where the body does not say.", "android")
    ],
    "x-svc-visitor-ip": Annotated[
        str,
        about(
            "From a proxy key (required) or a secret key: the visitor's IPv4 or IPv6 address. With any other key it is "
            "ignored, and so are the other `x-svc-visitor-` headers.",
            "81.2.69.160",
        ),
    ],
    "x-svc-visitor-origin": Annotated[
        str, Meta(max_length=300), about("The site that the visitor is at.", "https://shop.example")
    ],
    "x-svc-visitor-user-agent": Annotated[
        str, Meta(max_length=1024), about("The visitor's user agent.", A_REPORT["userAgent"])
    ],
    "x-svc-visitor-headers": Annotated[
        str,
        Meta(max_length=2048),
        about(
            "The visitor's `accept-language`, `sec-ch-ua...` and `sec-fetch-...` headers as a JSON object of texts. "
            "Without them `forged_report` stays silent.",
            '{"accept-language":"en-GB,en;q=0.9","sec-fetch-site":"same-origin"}',
        ),
    ],
    "Last-Event-ID": Annotated[
        str,
        about("The id of the last event that was received. Browsers send it when they reconnect.", A_REQUEST_ID),
    ],
    "x-svc-public-key": Annotated[
        str,
        about(
            "From a proxy key: the visitor's public key, whose origins, platforms and weights then apply.",
            "svc_pk_us_production_...",
        ),
    ],
}
"""Beside the key."""

RESPONSE_HEADERS: dict[str, Any] = {
    "X-Request-Id": Annotated[str, about("UUIDv7 of the request.", A_REQUEST_ID, form=UUID_FORM)],
    "Svc-Balance-Micros": Annotated[
        int, about("Remaining balance in millionths of a US dollar; it reflects production traffic.", 24997000)
    ],
    "RateLimit-Limit": Annotated[
        int, about("The organization's rate limit, per second; left out where it has none.", 100)
    ],
    "RateLimit-Remaining": Annotated[
        int, about("What remained of it when the request was admitted; left out where there is none.", 99)
    ],
    "Retry-After": Annotated[int, Meta(ge=1), about("Seconds to wait.", 1)],
    "Server-Timing": Annotated[
        str, about("With a development key: the milliseconds that it took, for browsers' tools.", "svc;dur=1.7")
    ],
}
EVERYWHERE = "X-Request-Id"
"""The header of every response."""

FORWARDED = (
    "x-svc-sdk-platform",
    "x-svc-visitor-ip",
    "x-svc-visitor-origin",
    "x-svc-visitor-user-agent",
    "x-svc-visitor-headers",
    "x-svc-public-key",
)
"""Request headers of routes that servers and proxies call for a visitor."""
ADMITTED = ("Svc-Balance-Micros", "RateLimit-Limit", "RateLimit-Remaining")
"""Response headers of every response to a request that reached admission."""
