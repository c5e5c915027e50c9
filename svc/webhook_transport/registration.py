"""What is asked of a target before an endpoint with it is stored (decisions 8.7)."""

from __future__ import annotations

from typing import Literal

from svc.domain.webhooks.addresses import Networks, judged, read_target
from svc.webhook_transport.resolver import Resolver

TargetIssue = Literal["invalid_url", "not_public_address"]


async def check_target(url: str, resolver: Resolver, networks: Networks) -> TargetIssue | None:
    """Why the URL cannot be a webhook's target, or `None` when it can.

    `invalid_url`: not https, user info, a fragment, over 2,048 characters, or a host that does not resolve.
    `not_public_address`: the host leads, with any of its addresses, to where webhooks may not go.
    """
    target = read_target(url)
    if target is None:
        return "invalid_url"
    answers = await resolver(target.host)
    if not answers:
        return "invalid_url"
    return None if judged(answers, networks) else "not_public_address"
