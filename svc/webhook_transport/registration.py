"""What is asked of a target before an endpoint with it is stored (decisions 8.7)."""

from __future__ import annotations

from msgspec.structs import replace

from svc.domain.refusals import Issue, Refusal, invalid
from svc.domain.webhooks.addresses import MAX_URL_LENGTH, TargetPolicy, addresses_to_dial, may_use, read_target
from svc.webhook_transport.resolver import Resolver

_NOT_HTTPS = (
    "A webhook URL begins with https://. To receive webhooks on your own machine, run `svc webhook listen --forward-to "
    "http://localhost:3000/hook` beside `svc dev`."
)
_NO_TARGET = (
    f"The URL is not valid. Send https://host[:port]/path of at most {MAX_URL_LENGTH} characters, without user "
    "information, fragment and spaces."
)
_UNRESOLVED = "The host of the URL does not resolve. Check its spelling and its DNS records."
_PORT = (
    "The port of the URL is not allowed. Use 443 or one above 1023, or ask the operator for another one "
    "(webhook_allow_ports)."
)
_NOT_PUBLIC = (
    "The host of the URL resolves to an address that is not public, or is this service's own. The operator can open "
    "private networks (webhook_allow_networks)."
)


async def check_target(url: str, resolver: Resolver, reach: TargetPolicy) -> Refusal | None:
    """Why the URL cannot be a webhook's target, and what to do; `None` when it can.

    `invalid_url`: not https, user info, a fragment, over 2,048 characters, a port that is not allowed, or a host that
    does not resolve. `not_public_address`: the host leads, with any of its addresses, to where webhooks may not go.
    """
    target = read_target(url)
    if target is None:
        return _refused("invalid_url", _NO_TARGET if url[:8].lower() == "https://" else _NOT_HTTPS)
    if not may_use(target.port, reach):
        return _refused("invalid_url", _PORT)
    answers = await resolver(target.host)
    if not answers:
        return _refused("invalid_url", _UNRESOLVED)
    return None if addresses_to_dial(answers, reach) else _refused("not_public_address", _NOT_PUBLIC)


def _refused(issue: Issue, explanation: str) -> Refusal:
    return replace(invalid("url", issue), explanation=explanation)
