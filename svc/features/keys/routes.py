"""Keys of an organization: SDK keys, proxy keys and the management key that asks, by its own automation; and its public
keys whole, for snippets, since pages contain them.

A management key issues and revokes no management key (interface 5, rule 3): those have no route, and an id is looked
for among the kinds of its route alone. Sources: interface 2.6-2.8, 3 and 4.4, decisions 2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Annotated, Any, NamedTuple, get_args

import msgspec
from msgspec import UNSET, UnsetType

from svc.features.organizations.bodies import (
    IssuedProxyKeyBody,
    IssuedSdkKeyBody,
    IssueProxyKeyBody,
    IssueSdkKeyBody,
    ListKeysQuery,
    ManagementKeyBody,
    ProxyKeyBody,
    ProxyKeysBody,
    ReplaceOriginsBody,
    SdkKeyBody,
    SdkKeysBody,
    proxy_key_row,
    sdk_key_row,
)
from svc.http.change import caller_of, change
from svc.http.listing import encoded, read_behind, read_page
from svc.http.route import ORGANIZATION, Call, Route, Services, console_route
from svc.kernel.access import jobs as keys
from svc.kernel.access.credentials import ApiKey, KeyKind, digest, new_key, public_text
from svc.kernel.net.origins import normalize_pattern
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.encodings import Cursors, List
from svc.kernel.values.fields import A_KEY_ID, PLATFORMS, Platform, about
from svc.kernel.values.refusals import Detail, Refusal, invalid
from svc.kernel.values.struct_fields import body_of
from svc.kernel.values.timestamps import unix_ms
from svc.world import twenty_characters

PAGE = 200
"""Keys of a page whose size is not named."""
_LAST_MS = unix_ms(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
"""The last second that RFC 3339 can write in UTC."""


async def describe_key(_: Services, call: Call) -> ManagementKeyBody | Refusal:
    """`GET /management/key`: the key of the request itself (interface 2.6). `404 not_found` for a member, who has
    none.
    """
    caller = caller_of(call)
    if caller.member is not None:
        return Refusal("not_found")
    key, organization_id = caller.key, caller.organization.id
    return body_of(ManagementKeyBody, key, key_id=key.id, organization_id=organization_id)


class _Family(NamedTuple):
    """Keys that have routes of their own, with the form in which these show them."""

    kinds: tuple[KeyKind, ...]
    cursors: List
    id_in_path: str
    row: Callable[[ApiKey], msgspec.Struct]
    page: Callable[[tuple[Any, ...], str | UnsetType], msgspec.Struct]
    issued: Callable[[Any, str], msgspec.Struct]


_PROXY_KEYS = _Family(("proxy",), "proxy_keys", "proxy_credential_id", proxy_key_row, ProxyKeysBody, IssuedProxyKeyBody)
_SDK_KEYS = _Family(lookups.SDK_KEYS, "sdk_keys", "key_id", sdk_key_row, SdkKeysBody, IssuedSdkKeyBody)


async def list_keys(services: Services, call: Call, family: _Family) -> msgspec.Struct | Refusal:
    """`GET .../proxy-credentials` and `.../sdk-keys`: oldest first, revoked included; all of them, or a page with
    `limit` or `cursor` (decisions 2.5). `422` (`invalid_cursor`). Each slice is read from the newest state, so a key
    issued meanwhile may be among them.
    """
    query: ListKeysQuery = call.query
    number = call.organization.number
    scan = partial(_scan, number=number, is_wanted=lambda key: key.kind in family.kinds)
    cursors = Cursors(services.webhooks.cursors_key, family.cursors, number)
    limit = sys.maxsize if query.cursor is UNSET else PAGE
    page = await read_page(
        services, call.turn, cursors, query, encoded(scan, family.row), limit=limit, most=sys.maxsize
    )
    return page if isinstance(page, Refusal) else family.page(page.rows, page.next_cursor)


async def issue_proxy_key(services: Services, call: Call) -> msgspec.Struct | Refusal:
    """`POST .../proxy-credentials`: `201` with the key and its secret, which is shown only now (interface 4.4). `409
    key_limit`.
    """
    return await _issue(services, call, call.body, "proxy", _PROXY_KEYS)


async def issue_sdk_key(services: Services, call: Call) -> msgspec.Struct | Refusal:
    """`POST .../sdk-keys`: `201` with the key and its secret, which is shown only now (decisions 2.5). `409
    key_limit`.
    """
    body: IssueSdkKeyBody = call.body
    platforms, origins = read_platforms(body), read_origins(body.allowed_origins)
    if isinstance(platforms, Refusal):
        return platforms
    if isinstance(origins, Refusal):
        return origins
    if body.kind != "public" and origins:
        return invalid("allowed_origins", "invalid_value")
    return await _issue(services, call, body, body.kind, _SDK_KEYS, platforms, origins)


async def revoke_key(services: Services, call: Call, family: _Family) -> msgspec.Struct | Refusal:
    """`POST .../proxy-credentials/{proxy_credential_id}/revoke` and `.../sdk-keys/{key_id}/revoke`: for good, from the
    next request on. `404`, `409 proxy_key_revoked` or `sdk_key_revoked`.
    """
    number, key_id = call.organization.number, call.path[family.id_in_path]
    job = partial(
        keys.revoke_key_of,
        number=number,
        kinds=family.kinds,
        key_id=key_id,
        now_ms=call.at_ms,
        by=caller_of(call).member_id,
    )
    revoked = await change(services, call, job, may_use_reserve=True)
    return revoked if isinstance(revoked, Refusal) else family.row(revoked)


async def replace_origins(services: Services, call: Call) -> SdkKeyBody | Refusal:
    """`PUT .../sdk-keys/{key_id}/allowed-origins`: the whole new list, in force from the next request on. `404`, `409
    sdk_key_revoked` (decisions 2.5).
    """
    body: ReplaceOriginsBody = call.body
    origins = read_origins(body.allowed_origins)
    if isinstance(origins, Refusal):
        return origins
    number = call.organization.number
    job = partial(keys.replace_origins, number=number, key_id=call.path["key_id"], allowed_origins=origins)
    replaced = await change(services, call, job)
    return replaced if isinstance(replaced, Refusal) else sdk_key_row(replaced)


def read_platforms(body: IssueSdkKeyBody) -> tuple[Platform, ...] | Refusal:
    """Return the platforms of a new key, without duplicates; `web` if a public key names none. Returns `422`
    (`invalid_value`) for a secret key that names any, since it has none (decisions 2.4, 2.5).
    """
    if body.kind != "public":
        return () if body.platforms is UNSET else invalid("platforms", "invalid_value")
    named: tuple[Platform, ...] = ("web",) if body.platforms is UNSET else body.platforms
    return tuple(sorted(set(named), key=PLATFORMS.index))


def read_origins(texts: Sequence[str]) -> tuple[str, ...] | Refusal:
    """Return the allowed origins in their normal form, without duplicates (decisions 2.6), or `422` (`invalid_origin`)
    with every text that is not an origin.
    """
    origins = [normalize_pattern(text) for text in texts]
    faults = [
        Detail(f"allowed_origins[{index}]", "invalid_origin", "body")
        for index, origin in enumerate(origins)
        if origin is None
    ]
    if faults:
        return Refusal("validation_error", tuple(faults))
    return tuple(dict.fromkeys(origin for origin in origins if origin is not None))


def read_expiry(expires_at: datetime | None, now_ms: int) -> int | Refusal | None:
    """Return an expiry as Unix milliseconds, rounded down; `None` without one. `422` (`out_of_range`) for one that is
    not after `now_ms`.
    """
    if expires_at is None:
        return None
    at_ms = unix_ms(expires_at)
    return at_ms if now_ms < at_ms <= _LAST_MS else invalid("expires_at", "out_of_range")


def _scan(
    snapshot: Snapshot, after: bytes, count: int, *, number: int, is_wanted: Callable[[ApiKey], bool]
) -> Iterator[tuple[bytes, ApiKey | None]]:
    last = lookups.find_key_of(snapshot, number, after.decode(), get_args(KeyKind)) if after else None
    for key in islice(lookups.scan_keys(snapshot, number, last), count):
        yield key.id.encode(), key if is_wanted(key) else None


async def _issue(
    services: Services,
    call: Call,
    body: IssueProxyKeyBody | IssueSdkKeyBody,
    kind: KeyKind,
    family: _Family,
    platforms: tuple[Platform, ...] = (),
    allowed_origins: tuple[str, ...] = (),
) -> msgspec.Struct | Refusal:
    """Return `201` with a new key, once it is on disk, and its secret, of which only the keyed hash is stored
    (interface 5, rule 4).
    """
    expires_at_ms = read_expiry(body.expires_at, call.at_ms)
    if isinstance(expires_at_ms, Refusal):
        return expires_at_ms
    key, secret = new_key(
        key_id="key_" + twenty_characters(services.world.entropy),
        organization=call.organization.number,
        kind=kind,
        name=body.name,
        environment=body.environment,
        region=services.policy.region,
        entropy=services.world.entropy(32),
        now_ms=call.at_ms,
        platforms=platforms,
        allowed_origins=allowed_origins,
        expires_at_ms=expires_at_ms,
        pepper=services.policy.pepper,
    )
    key = msgspec.structs.replace(key, created_by=caller_of(call).member_id)
    hashed = digest(services.policy.pepper, secret)
    job = partial(keys.issue_key, key=key, digest=hashed, keys_per_day=services.quotas.keys_per_day)
    issued = await change(services, call, job)
    return issued if isinstance(issued, Refusal) else family.issued(family.row(issued), secret)


_LISTED = (
    "Oldest first, revoked ones included for 400 days. All of them, or a page where `limit` or `cursor` is given. A "
    "key that has expired stays `active` until it is revoked."
)
_ISSUED = (
    "The secret is shown this once. At most 200 keys of all kinds that are neither revoked nor expired may be in an "
    "organization."
)

_route = partial(Route, tag="Management: keys", kinds=("management",))
_list = partial(_route, description=_LISTED, query=ListKeysQuery)
_new = partial(_route, method="POST", description=_ISSUED, status=201, errors=("key_limit",))
_revoke = partial(
    _route, method="POST", description="For good. It is refused from the next request on, and stays listed."
)


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
    scan = partial(_scan, number=number, is_wanted=lambda key: key.usable(call.at_ms))
    found, _ = await read_behind(services, scan, b"", sys.maxsize, turn=call.turn, most=sys.maxsize)
    texts = {key.id: public_text(key, pepper) for key in found}
    return PublicKeysBody(keys={key_id: text for key_id, text in texts.items() if text is not None})


ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="getManagementKey",
        path="/management/key",
        summary="Describe the management key",
        description="Which organization it acts on, and in which role.",
        handler=describe_key,
        errors=("not_found",),
    ),
    _list(
        operation_id="listProxyKeys",
        path=ORGANIZATION + "/proxy-credentials",
        summary="List proxy keys",
        handler=partial(list_keys, family=_PROXY_KEYS),
        needs="administer",
        response=ProxyKeysBody,
    ),
    _new(
        operation_id="issueProxyKey",
        path=ORGANIZATION + "/proxy-credentials",
        summary="Issue a proxy key",
        handler=issue_proxy_key,
        needs="administer",
        body=IssueProxyKeyBody,
        response=IssuedProxyKeyBody,
    ),
    _revoke(
        operation_id="revokeProxyKey",
        path=ORGANIZATION + "/proxy-credentials/{proxy_credential_id}/revoke",
        variables={"proxy_credential_id": Annotated[str, about("Id of the proxy key.", A_KEY_ID)]},
        summary="Revoke a proxy key",
        handler=partial(revoke_key, family=_PROXY_KEYS),
        needs="administer",
        response=ProxyKeyBody,
        errors=("proxy_key_revoked",),
    ),
    _list(
        operation_id="listSdkKeys",
        path=ORGANIZATION + "/sdk-keys",
        summary="List SDK keys",
        handler=partial(list_keys, family=_SDK_KEYS),
        response=SdkKeysBody,
    ),
    _new(
        operation_id="issueSdkKey",
        path=ORGANIZATION + "/sdk-keys",
        summary="Issue an SDK key",
        handler=issue_sdk_key,
        body=IssueSdkKeyBody,
        response=IssuedSdkKeyBody,
    ),
    _revoke(
        operation_id="revokeSdkKey",
        path=ORGANIZATION + "/sdk-keys/{key_id}/revoke",
        summary="Revoke an SDK key",
        handler=partial(revoke_key, family=_SDK_KEYS),
        response=SdkKeyBody,
        errors=("sdk_key_revoked",),
    ),
    _route(
        operation_id="replaceSdkKeyOrigins",
        method="PUT",
        path=ORGANIZATION + "/sdk-keys/{key_id}/allowed-origins",
        summary="Replace the allowed origins of an SDK key",
        description=(
            "An origin is `scheme://host[:port]`; `https://*.example.com` is any host below it, and not the host "
            "itself. Below a public suffix, such as `https://*.co.uk`, are the sites of strangers: never allow one."
        ),
        handler=replace_origins,
        body=ReplaceOriginsBody,
        errors=("sdk_key_revoked",),
    ),
    console_route(
        operation_id="getConsolePublicKeys",
        path="/public-keys",
        summary="Read public keys whole",
        description="For the snippets that pages use.",
        handler=read_public_keys,
    ),
)
