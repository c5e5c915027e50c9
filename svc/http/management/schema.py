"""Bodies of the management API: what interface 2.6-2.8 and 2.11, and decisions 2.4-2.6 and 6.3, say as types.

As in `svc.http.schema`: unknown fields are refused in requests; a field that may be left out is `UNSET`, which is not
`null`; a secret is in the one answer that issues it and in no other.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.domain.credentials import Key, Role
from svc.domain.model import Environment, Platform
from svc.domain.origins import MAX_ORIGINS
from svc.domain.scoring import WeightsScope
from svc.domain.signals import MAX_WEIGHT, Mode, default_weights, signal_names
from svc.domain.timestamps import timestamp
from svc.domain.weights import LARGEST_THRESHOLD, SMALLEST_THRESHOLD
from svc.store.views import ScopeWeights

Name = Annotated[str, Meta(max_length=200, pattern=r"\S")]
"""For people; not blank."""
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Moment = Annotated[datetime, Meta(tz=True)]
Origins = Annotated[tuple[str, ...], Meta(max_length=MAX_ORIGINS)]
Threshold = Annotated[
    int, Meta(extra_json_schema={"minimum": SMALLEST_THRESHOLD, "maximum": LARGEST_THRESHOLD})
]  # its bounds, and those of a weight, are judged by `svc.domain.weights`, which names every fault at once
Weight = Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": MAX_WEIGHT})]


class ManagementKeyBody(msgspec.Struct, frozen=True, kw_only=True):
    """Interface 2.6."""

    key_id: str
    organization_id: str
    """The organization every management route acts on."""
    name: str
    role: Role
    region: str


class IssueProxyKeyBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    environment: Environment
    expires_at: Moment | None = None
    """When the key stops working; `null` = never."""


class ListKeysQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Decisions 2.5: all keys without either."""

    limit: Annotated[int, Meta(ge=1, le=200)] | UnsetType = UNSET
    cursor: str | UnsetType = UNSET


class ProxyKeyBody(msgspec.Struct, frozen=True, kw_only=True):
    """Interface 2.7."""

    id: str
    name: str
    environment: Environment
    region: str
    prefix: str
    """Start of the secret."""
    last4: str
    """Last four characters of the secret."""
    status: Literal["active", "revoked"]
    last_used_at: Timestamp | None
    expires_at: Timestamp | None
    created_at: Timestamp
    revoked_at: Timestamp | None


class ProxyKeysBody(msgspec.Struct, frozen=True):
    credentials: tuple[ProxyKeyBody, ...]
    """Oldest first, revoked included."""
    next_cursor: str | UnsetType = UNSET
    """Of the next page; left out on the last one, and where no page was asked for."""


class IssuedProxyKeyBody(msgspec.Struct, frozen=True):
    credential: ProxyKeyBody
    secret: str
    """Shown this once."""


class IssueSdkKeyBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Decisions 2.5. Only public keys have platforms and origins."""

    name: Name
    environment: Environment
    kind: Literal["public", "secret"] = "public"
    platforms: Annotated[tuple[Platform, ...], Meta(min_length=1)] | UnsetType = UNSET
    """`["web"]` when left out."""
    allowed_origins: Origins = ()
    expires_at: Moment | None = None
    """When the key stops working; `null` = never."""


class ReplaceOriginsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allowed_origins: Origins
    """The whole new list, such as `https://shop.example` or `https://*.shop.example`."""


class SdkKeyBody(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions 2.4."""

    id: str
    name: str
    kind: Literal["public", "secret"]
    environment: Environment
    region: str
    platforms: tuple[Platform, ...] | UnsetType = UNSET
    """Public keys only."""
    allowed_origins: tuple[str, ...] | UnsetType = UNSET
    """Public keys only."""
    prefix: str
    """Start of the secret."""
    last4: str
    """Last four characters of the secret."""
    status: Literal["active", "revoked"]
    last_used_at: Timestamp | None
    expires_at: Timestamp | None
    created_at: Timestamp
    revoked_at: Timestamp | None
    created_by: str | UnsetType = UNSET
    """The member who did it; left out where a management key did (interface 5, rule 8)."""
    revoked_by: str | UnsetType = UNSET


class SdkKeysBody(msgspec.Struct, frozen=True):
    keys: tuple[SdkKeyBody, ...]
    """Oldest first, revoked included."""
    next_cursor: str | UnsetType = UNSET
    """Of the next page; left out on the last one, and where no page was asked for."""


class IssuedSdkKeyBody(msgspec.Struct, frozen=True):
    key: SdkKeyBody
    secret: str
    """Shown this once."""


class SaveWeightsBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Decisions 6.3: what is not named keeps its value in force."""

    suspect_threshold: Threshold | UnsetType = UNSET
    weights: dict[str, Weight] = {}
    vpn_weights_mode: Mode | UnsetType = UNSET
    residential_proxy_weights_mode: Mode | UnsetType = UNSET
    revision: int | UnsetType = UNSET
    """The stored revision that the change was made upon; left out = whatever it is."""


class PlatformWeightsBody(msgspec.Struct, frozen=True, kw_only=True):
    """One platform of interface 2.11."""

    platform: Platform
    scope: WeightsScope
    """Whose configuration is in force."""
    stored: bool
    """Whether this scope has its own saved configuration."""
    revision: int
    """Of the scope's own configuration; 0 when nothing is stored."""
    suspect_threshold: int
    weights: dict[str, int]
    """Signal -> weight in force."""
    defaults: dict[str, int]
    signals: tuple[str, ...]
    vpn_weights_mode: Mode
    residential_proxy_weights_mode: Mode
    updated_at: Timestamp | UnsetType = UNSET
    """Of the scope's own configuration."""
    updated_by_user_id: str | UnsetType = UNSET
    """The member who saved it; left out where a management key did (interface 5, rule 8)."""


class RiskWeightsBody(msgspec.Struct, frozen=True, kw_only=True):
    """Interface 2.11, always with all three platforms."""

    organization_id: str
    scope: Literal["organization", "key"]
    sdk_key_id: str | UnsetType = UNSET
    max_weight: int
    platforms: tuple[PlatformWeightsBody, ...]


class SignalBody(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    group: str
    description: str
    platforms: tuple[Platform, ...]
    default_weights: dict[Platform, int]
    mode: Mode | UnsetType = UNSET
    """Of the VPN and residential-proxy families: the mode in which the signal fires."""
    since: str
    """Version of the catalogue that introduced it."""


class SignalsBody(msgspec.Struct, frozen=True):
    """Decisions 6.3."""

    signals: tuple[SignalBody, ...]
    max_weight: int


def proxy_key_row(key: Key) -> ProxyKeyBody:
    """A stored proxy key as a row of the interface."""
    assert key.environment is not None
    return ProxyKeyBody(
        id=key.id,
        name=key.name,
        environment=key.environment,
        region=key.region,
        prefix=key.prefix,
        last4=key.last4,
        status=key.status,
        last_used_at=_moment(key.last_used_at_ms),
        expires_at=_moment(key.expires_at_ms),
        created_at=timestamp(key.created_at_ms),
        revoked_at=_moment(key.revoked_at_ms),
    )


def sdk_key_row(key: Key) -> SdkKeyBody:
    """A stored SDK key as a row of the interface."""
    assert key.environment is not None
    assert key.kind in ("public", "secret")
    public = key.kind == "public"
    return SdkKeyBody(
        id=key.id,
        name=key.name,
        kind=key.kind,
        environment=key.environment,
        region=key.region,
        platforms=key.platforms if public else UNSET,
        allowed_origins=key.allowed_origins if public else UNSET,
        prefix=key.prefix,
        last4=key.last4,
        status=key.status,
        last_used_at=_moment(key.last_used_at_ms),
        expires_at=_moment(key.expires_at_ms),
        created_at=timestamp(key.created_at_ms),
        revoked_at=_moment(key.revoked_at_ms),
    )


def risk_weights(organization_id: str, key_id: str | None, platforms: tuple[ScopeWeights, ...]) -> RiskWeightsBody:
    """The weights of a scope; `key_id=None` is the organization's own."""
    return RiskWeightsBody(
        organization_id=organization_id,
        scope="organization" if key_id is None else "key",
        sdk_key_id=UNSET if key_id is None else key_id,
        max_weight=MAX_WEIGHT,
        platforms=tuple(_platform_weights(seen) for seen in platforms),
    )


def _platform_weights(seen: ScopeWeights) -> PlatformWeightsBody:
    """A signal that came after the configuration was saved weighs 0 in it (decisions 6.2)."""
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
    )


def _moment(at_ms: int | None) -> str | None:
    return None if at_ms is None else timestamp(at_ms)
