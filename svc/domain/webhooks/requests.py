"""What one attempt sends: body and headers, by the format of the endpoint as it is now.

What may live here: the choice between the signed envelope and a message for people.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from svc.domain.webhooks.chat_bodies import chat_body
from svc.domain.webhooks.envelope import USER_AGENT, secrets_in_force, signed_headers
from svc.domain.webhooks.records import Endpoint, WebhookEvent


class AttemptRequest(NamedTuple):
    """Body and headers of one POST."""

    body: bytes
    headers: dict[str, str]


UNSIGNED = {"Content-Type": "application/json", "User-Agent": USER_AGENT}


def attempt_request(
    endpoint: Endpoint, event_id: bytes, event: WebhookEvent, secrets_key: bytes, public_url: str | None, now_ms: int
) -> AttemptRequest:
    """For a JSON endpoint the stored envelope, signed for this second; for a chat its message, unsigned. `event_id` has
    16 bytes, `secrets_key` is that of `envelope.secrets_key`. Either has the trace of the request that caused it.
    """
    trace = {} if event.trace is None else event.trace.headers
    if endpoint.format == "json":
        secrets = secrets_in_force(secrets_key, endpoint, now_ms)
        signed = signed_headers(UUID(bytes=event_id), event, secrets, now_ms // 1000)
        return AttemptRequest(event.body, signed | trace)
    return AttemptRequest(chat_body(endpoint.format, event.body, public_url), UNSIGNED | trace)
