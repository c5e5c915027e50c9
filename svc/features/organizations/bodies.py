"""Bodies of the management API: what interface 2.6-2.8 and 2.11, and decisions 2.4-2.6 and 6.3, say as types.

As in `svc.http.schema`: unknown fields are refused in requests; a field that may be left out is `UNSET`, which
is not `null`; a secret is in the one response that issues it and in no other.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.http.schema import Limit
from svc.identify.queries.weights import ScopeWeights
from svc.identify.scoring.score import LARGEST_THRESHOLD, SMALLEST_THRESHOLD, WeightsScope
from svc.identify.scoring.signals import MAX_WEIGHT, Mode, SignalGroup, default_weights, signal_names
from svc.kernel.access.credentials import LONGEST_NAME, ApiKey
from svc.kernel.access.roles import KeyRole
from svc.kernel.net.origins import MAX_ORIGINS
from svc.kernel.values.fields import (
    A_KEY_ID,
    A_MEMBER_ID,
    A_TIME,
    VISIBLE,
    CreatedAt,
    Cursor,
    Environment,
    KeyId,
    OrganizationId,
    PageCursor,
    Platform,
    Time,
    Timestamp,
    about,
    id_form,
)
from svc.kernel.values.struct_fields import body_of, present
from svc.kernel.values.timestamps import timestamp

NameText = Annotated[str, about("A name for people.", "checkout")]
Name = Annotated[NameText, Meta(max_length=LONGEST_NAME, pattern=VISIBLE)]
KeyEnvironment = Annotated[Environment, about("Environment of the key.", "production")]
Region = Annotated[str, about("Region of the key.", "us")]
SdkKeyKind = Annotated[Literal["public", "secret"], about("`public` for SDKs, `secret` for servers.", "public")]
Platforms = Annotated[tuple[Platform, ...], Meta(examples=[["web"]])]
AllowedOrigins = Annotated[tuple[str, ...], Meta(examples=[["https://shop.example", "https://*.shop.example"]])]
NewOrigins = Annotated[AllowedOrigins, Meta(max_length=MAX_ORIGINS)]
NewExpiry = Annotated[
    Annotated[datetime, Meta(tz=True)] | None, about("When the key stops working; `null` = never.", None)
]
Prefix = Annotated[str, about("Start of the secret.", "svc_pk_us_production")]
KeyStatus = Annotated[
    Literal["active", "revoked"], about("`active` until it is revoked, also when it has expired.", "active")
]
Secret = Annotated[str, about("Shown this once.", "svc_pk_us_production_...")]
NextCursor = Annotated[Cursor, about("Of the next page; left out on the last one, and where no page was asked for.")]
MemberId = Annotated[str, Meta(examples=[A_MEMBER_ID], extra_json_schema=id_form("mem_"))]
"""Left out where a management key did it (interface 5, rule 8)."""
# The bounds of a threshold and of a weight are judged by `svc.identify.scoring.score`, which names every fault.
ThresholdText = Annotated[int, about("Score from which a visitor is suspect.", 30)]
Threshold = Annotated[
    ThresholdText, Meta(extra_json_schema={"minimum": SMALLEST_THRESHOLD, "maximum": LARGEST_THRESHOLD})
]
SOME_WEIGHTS = Meta(examples=[{"automation": 40, "tor": 30}])
VpnMode = Annotated[Mode, about("Which half of the VPN signals counts.", "method")]
ResidentialProxyMode = Annotated[Mode, about("Which half of the residential-proxy signals counts.", "method")]
MaxWeight = Annotated[int, about("The largest weight that may be given.", MAX_WEIGHT)]
Weight = Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": MAX_WEIGHT})]


class ManagementKeyBody(msgspec.Struct, frozen=True, kw_only=True):
    """Response of `GET /management/key` (interface 2.6)."""

    key_id: KeyId
    organization_id: Annotated[OrganizationId, about("The organization every management route acts on.")]
    name: NameText
    role: Annotated[KeyRole, about("What the key may do.", "admin")]
    region: Region


class IssueProxyKeyBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `issueProxyKey` (interface 4.4, decisions 2.5)."""

    name: Name
    environment: KeyEnvironment
    expires_at: NewExpiry = None


class ListKeysQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of the lists of keys: without either field all keys are listed (decisions 2.5)."""

    limit: Limit | UnsetType = UNSET
    cursor: PageCursor | UnsetType = UNSET


class ProxyKeyBody(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy key (interface 2.7)."""

    id: Annotated[str, about("Its id.", A_KEY_ID)]
    name: NameText
    environment: KeyEnvironment
    region: Region
    prefix: Prefix
    last4: Annotated[str, about("Last four characters of the secret.", "x7Qe")]
    status: KeyStatus
    last_used_at: Annotated[Time | None, about("When it was last used, to the minute.", A_TIME)]
    expires_at: Annotated[Time | None, about("When it stops working.", None)]
    created_at: CreatedAt
    revoked_at: Annotated[Time | None, about("When it was revoked.", None)]


class ProxyKeysBody(msgspec.Struct, frozen=True):
    """A list of proxy keys, or a page of it (interface 4.4)."""

    credentials: Annotated[tuple[ProxyKeyBody, ...], about("Oldest first, revoked included.")]
    next_cursor: NextCursor | UnsetType = UNSET


class IssuedProxyKeyBody(msgspec.Struct, frozen=True):
    """A new proxy key with its secret, which is in this response and in no other (interface 2.7)."""

    credential: Annotated[ProxyKeyBody, about("The proxy key.")]
    secret: Secret


class IssueSdkKeyBody(IssueProxyKeyBody, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `issueSdkKey` (decisions 2.5). Only public keys have platforms and origins."""

    kind: SdkKeyKind = "public"
    platforms: Annotated[Platforms, Meta(min_length=1), about('`["web"]` when left out.')] | UnsetType = UNSET
    allowed_origins: Annotated[NewOrigins, about("Sites that may use the key.")] = ()


class ReplaceOriginsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `replaceSdkKeyOrigins`: it replaces the list, it does not add to it (decisions 2.5)."""

    allowed_origins: Annotated[
        NewOrigins, about("The whole new list, such as `https://shop.example` or `https://*.shop.example`.")
    ]


class SdkKeyBody(ProxyKeyBody, frozen=True, kw_only=True):
    """One SDK key (decisions 2.4)."""

    kind: SdkKeyKind
    platforms: Annotated[Platforms, about("Public keys only.")] | UnsetType = UNSET
    allowed_origins: Annotated[AllowedOrigins, about("Public keys only.")] | UnsetType = UNSET
    created_by: (
        Annotated[MemberId, about("The member who did it; left out where a management key did.")] | UnsetType
    ) = UNSET
    revoked_by: Annotated[MemberId, about("The member who revoked it.")] | UnsetType = UNSET


class SdkKeysBody(msgspec.Struct, frozen=True):
    """A list of SDK keys, or a page of it (decisions 2.5)."""

    keys: Annotated[tuple[SdkKeyBody, ...], about("Oldest first, revoked included.")]
    next_cursor: NextCursor | UnsetType = UNSET


class IssuedSdkKeyBody(msgspec.Struct, frozen=True):
    """A new SDK key with its secret, which is in this response and in no other (interface 2.8)."""

    key: Annotated[SdkKeyBody, about("The SDK key.")]
    secret: Secret


class WeightsFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a change of weights may name (decisions 6.3): what it does not keeps its value in force."""

    suspect_threshold: Threshold | UnsetType = UNSET
    weights: Annotated[dict[str, Weight], SOME_WEIGHTS, about("Signal name to weight.")] = {}
    vpn_weights_mode: VpnMode | UnsetType = UNSET
    residential_proxy_weights_mode: ResidentialProxyMode | UnsetType = UNSET


class SaveWeightsBody(WeightsFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of the `PUT` of risk weights (decisions 6.3)."""

    revision: Annotated[
        int | UnsetType, about("The stored revision that the change was made upon; left out = whatever it is.", 3)
    ] = UNSET


class PlatformWeightsBody(msgspec.Struct, frozen=True, kw_only=True):
    """The weights of one platform (interface 2.11)."""

    platform: Annotated[Platform, about("Scoring profile.", "web")]
    scope: Annotated[WeightsScope, about("Whose configuration is in force.", "organization")]
    stored: Annotated[bool, about("Whether this scope has its own saved configuration.", True)]
    revision: Annotated[int, about("Of the scope's own configuration; 0 when nothing is stored.", 3)]
    suspect_threshold: ThresholdText
    weights: Annotated[dict[str, int], SOME_WEIGHTS, about("Signal -> weight in force.")]
    defaults: Annotated[dict[str, int], SOME_WEIGHTS, about("Signal name to default weight.")]
    signals: Annotated[tuple[str, ...], about("Every signal of the platform.", ["automation", "tor"])]
    vpn_weights_mode: VpnMode
    residential_proxy_weights_mode: ResidentialProxyMode
    updated_at: Annotated[Timestamp, about("Of the scope's own configuration.")] | UnsetType = UNSET
    updated_by_user_id: (
        Annotated[MemberId, about("The member who saved it; left out where a management key did.")] | UnsetType
    ) = UNSET


class RiskWeightsBody(msgspec.Struct, frozen=True, kw_only=True):
    """The weights of a scope, always with all three platforms (interface 2.11, decisions 6.3)."""

    organization_id: OrganizationId
    scope: Annotated[Literal["organization", "key"], about("Whose weights they are.", "organization")]
    sdk_key_id: Annotated[str | UnsetType, about("The SDK key; left out for those of the organization.", A_KEY_ID)] = (
        UNSET
    )
    max_weight: MaxWeight
    platforms: Annotated[tuple[PlatformWeightsBody, ...], about("Each platform once.")]


class SignalBody(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the catalog of signals (decisions 6.3)."""

    name: Annotated[str, about("Permanent name of the signal.", "automation")]
    group: SignalGroup
    description: Annotated[str, about("What it means.", "The browser is driven by a program.")]
    platforms: Annotated[Platforms, about("Platforms on which it exists.")]
    default_weights: Annotated[dict[Platform, int], about("Platform to default weight.", {"web": 40})]
    mode: Annotated[
        Mode | UnsetType,
        about("Of the VPN and residential-proxy families: the mode in which the signal fires.", "method"),
    ] = UNSET
    since: Annotated[str, about("Version of the catalog that introduced it.", "1")]


class SignalsBody(msgspec.Struct, frozen=True):
    """Response of `listRiskSignals` (decisions 6.3)."""

    signals: Annotated[tuple[SignalBody, ...], about("Every signal.")]
    max_weight: MaxWeight


def proxy_key_row(key: ApiKey) -> ProxyKeyBody:
    """Return a stored proxy key in the form of interface 2.7; the secret is in neither."""
    return body_of(ProxyKeyBody, key)


def sdk_key_row(key: ApiKey) -> SdkKeyBody:
    """Return a stored SDK key in the form of decisions 2.4: platforms and origins only of a public key."""
    if key.kind == "public":
        return body_of(SdkKeyBody, key)
    return body_of(SdkKeyBody, key, platforms=UNSET, allowed_origins=UNSET)


def risk_weights(organization_id: str, key_id: str | None, platforms: tuple[ScopeWeights, ...]) -> RiskWeightsBody:
    """Return the weights of a scope in the form of interface 2.11; `key_id=None` is the organization's own scope."""
    return RiskWeightsBody(
        organization_id=organization_id,
        scope="organization" if key_id is None else "key",
        sdk_key_id=present(key_id),
        max_weight=MAX_WEIGHT,
        platforms=tuple(_platform_weights(seen) for seen in platforms),
    )


def _platform_weights(seen: ScopeWeights) -> PlatformWeightsBody:
    """Return the weights of a platform. A signal newer than the configuration weighs 0 in it (decisions 6.2)."""
    platform, stored, in_force = seen
    names = signal_names(platform)
    return PlatformWeightsBody(
        platform=platform,
        scope=in_force.scope,
        stored=stored is not None,
        revision=0 if stored is None else stored.revision,
        suspect_threshold=in_force.threshold,
        weights={name: in_force.weights.get(name, 0) for name in names},
        defaults=default_weights(platform),
        signals=names,
        vpn_weights_mode=in_force.vpn_mode,
        residential_proxy_weights_mode=in_force.residential_proxy_mode,
        updated_at=UNSET if stored is None else timestamp(stored.updated_at_ms),
        updated_by_user_id=present(None if stored is None else stored.updated_by_user_id),
    )
