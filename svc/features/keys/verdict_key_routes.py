"""The keys by which an organization's signed verdicts are verified: published to everybody, rotated by its automation
(docs/adr/0046).
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from svc.features.organizations import jobs as organizations
from svc.features.webhooks.jobs.endpoints import MAX_OVERLAP_HOURS
from svc.http.change import change
from svc.http.route import ORGANIZATION, Call, Outcome, Route, Services
from svc.identify.keys.signed_verdict import published_keys
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.fields import about
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.struct_fields import body_of

CACHED = "public, max-age=3600"
"""The next key is published beside the one in force, so that a list of an hour ago knows the key after a rotation."""


class JwkBody(msgspec.Struct, frozen=True):
    """A public key (RFC 8037)."""

    kty: Annotated[str, about("Always `OKP`.", "OKP")]
    crv: Annotated[str, about("Always `Ed25519`.", "Ed25519")]
    x: Annotated[str, about("The key, base64url.", "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")]
    kid: Annotated[str, about("Its thumbprint (RFC 7638).", "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")]
    use: Annotated[str, about("Always `sig`.", "sig")]
    alg: Annotated[str, about("Always `EdDSA`.", "EdDSA")]


class VerdictKeysBody(msgspec.Struct, frozen=True):
    """The keys by which an organization's verdicts are verified (RFC 7517)."""

    keys: Annotated[
        tuple[JwkBody, ...],
        about("The key in force first, then the next one, then the previous one until it expires."),
    ]


class RotateVerdictKeyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a rotation; an empty request body counts as `{}`."""

    previous_key_valid_hours: Annotated[
        int, Meta(ge=0, le=MAX_OVERLAP_HOURS), about("For how long verdicts by the previous key are accepted.", 24)
    ] = 24


async def get_verdict_keys(services: Services, call: Call) -> VerdictKeysBody | Refusal | Outcome:
    """`GET /organizations/{organization_id}/verdict-keys`: a JWK set, without a key. `404 not_found`, and `429
    rate_limited` by address.
    """
    known = await services.store.query(partial(lookups.find_organization, organization_id=call.path["organization_id"]))
    if known is None or known.removed_at_ms is not None:
        return Refusal("not_found")
    return Outcome(_rows(services, known, call.at_ms), headers={"Cache-Control": CACHED})


async def rotate_verdict_key(services: Services, call: Call) -> VerdictKeysBody | Refusal:
    """`POST .../verdict-keys/rotate`: the next key signs from the next request on; the keys that are published then."""
    body: RotateVerdictKeyBody = call.body
    job = partial(
        organizations.rotate_verdict_key,
        number=call.organization.number,
        overlap_hours=body.previous_key_valid_hours,
        now_ms=call.at_ms,
    )
    changed = await change(services, call, job)
    return changed if isinstance(changed, Refusal) else _rows(services, changed, call.at_ms)


def _rows(services: Services, organization: Organization, now_ms: int) -> VerdictKeysBody:
    keys = published_keys(services.verdict_key, organization, now_ms)
    return VerdictKeysBody(tuple(body_of(JwkBody, key) for key in keys))


ROUTES: tuple[Route, ...] = (
    Route(
        operation_id="getVerdictKeys",
        path="/organizations/{organization_id}/verdict-keys",
        tag="Server API",
        summary="Read the public keys of signed verdicts",
        description="A JWK set, open to all. Keep it for an hour, and read it again for a `kid` that is not in it.",
        handler=get_verdict_keys,
        errors=("not_found", "rate_limited"),
        reads_for_all=True,
    ),
    Route(
        operation_id="rotateVerdictKey",
        method="POST",
        path=ORGANIZATION + "/verdict-keys/rotate",
        tag="Management: keys",
        summary="Rotate the key of signed verdicts",
        description=(
            "The next key, which is published already, signs from the next request on. Verdicts by the previous one "
            "are accepted for this many hours, `0` = no longer."
        ),
        handler=rotate_verdict_key,
        kinds=("management",),
        needs="administer",
        body=RotateVerdictKeyBody,
        body_required=False,
    ),
)
