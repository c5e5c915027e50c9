"""The public keys of an organization, whole, for snippets: they are not secrets, since pages contain them."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from svc.http.route import Call, Route, Services, console_route
from svc.kernel.access.credentials import public_text
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.fields import A_KEY_ID, about


class PublicKeysBody(msgspec.Struct, frozen=True, kw_only=True):
    """Public keys of an organization."""

    keys: Annotated[
        dict[str, str],
        about(
            "Id -> the whole key, of those that are neither revoked nor expired. Those that were issued before 0.3.0 "
            "are left out: nobody knows more of them than their last four characters.",
            {A_KEY_ID: "svc_pk_us_production_5Jd0..."},
        ),
    ]


async def read_public_keys(services: Services, call: Call) -> PublicKeysBody:
    """`GET /console/api/public-keys`. No text is stored: each follows from the pepper and the key's id."""
    number, pepper = call.organization.number, services.policy.pepper
    return await services.store.query(partial(_public_keys, number=number, pepper=pepper, now_ms=call.at_ms))


def _public_keys(snapshot: Snapshot, number: int, pepper: bytes, now_ms: int) -> PublicKeysBody:
    texts = {key.id: public_text(key, pepper) for key in lookups.keys_of(snapshot, number) if key.usable(now_ms)}
    return PublicKeysBody(keys={key_id: text for key_id, text in texts.items() if text is not None})


ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="getConsolePublicKeys",
        path="/public-keys",
        summary="Read public keys whole",
        description="For the snippets that pages use.",
        handler=read_public_keys,
        response=PublicKeysBody,
    ),
)
