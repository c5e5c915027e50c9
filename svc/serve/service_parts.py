"""Parts of a service that its settings describe: network data, the OpenID provider, where webhooks may go, whom an
attestation is trusted by.

What may live here: functions from the settings to one part. The service that they make up is in `service.py`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import structlog

from svc.command.data_directory import Readable
from svc.features.members.sign_in.openid import Provider
from svc.features.webhooks.addresses import TargetPolicy
from svc.features.webhooks.transport.connections import tls_context, usual_tls_context
from svc.features.webhooks.transport.resolver import Resolver
from svc.features.webhooks.transport.transport import WebhookTransport
from svc.identify.attestation.trust import (
    AppleTrust,
    Trust,
    apps_by_digest,
    published_trust,
    read_apple_roots,
    read_revoked,
    read_roots,
)
from svc.identify.network_data.lookup import BuiltInRanges
from svc.identify.network_data.watch import NetworkWatch
from svc.kernel.config import Config, ConfigError
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.errors import explained
from svc.kernel.values.text_files import MARK
from svc.world import World

T = TypeVar("T")

log = structlog.get_logger()


def network_watch(config: Config, directory: Path | None) -> NetworkWatch:
    """Return a watch over the network data that the settings name, read once on the calling thread."""
    built_in = BuiltInRanges() if config.network_builtin else None
    watch = NetworkWatch(config.network_files(directory), built_in, config.network_vpn_neighbors)
    watch.read_now()
    return watch


def openid_provider(config: Config, store: Readable) -> Provider | None:
    """Return the OpenID provider through which members can sign in, if the settings name one whose organization was not
    removed since. Raises `ConfigError`.
    """
    if config.console_oidc_issuer is None:
        return None
    from svc.features.members.sign_in.provider import provider_of  # noqa: PLC0415  its libraries take 0.1 s, and few have a provider

    with store.read() as snapshot:
        known = lookups.find_organization(snapshot, config.console_oidc_organization or "")
    if known is not None and known.removed_at_ms is not None:
        log.warning("the organization of the OpenID provider was removed", organization_id=known.id)
        return None
    return provider_of(config, trusted_authorities(config), is_known=known is not None)


def trusted_authorities(config: Config) -> ssl.SSLContext:
    """Return the public authorities, and those of `webhook_ca_file`. Raises `OSError` if that cannot be read."""
    return usual_tls_context() if config.webhook_ca_file is None else tls_context(Path(config.webhook_ca_file))


def webhook_transport(config: Config, world: World, resolver: Resolver) -> WebhookTransport:
    """Return the transport of webhooks, with the policy and certificate authorities of the settings. Raises `OSError`
    for a CA file that cannot be read.
    """
    return WebhookTransport(resolver, webhook_targets(config, world), trusted_authorities(config), world.now_ms)


def webhook_targets(config: Config, world: World) -> TargetPolicy:
    """Return where webhooks may be sent, by the settings and this machine's own addresses (decisions 8.7)."""
    return TargetPolicy(config.webhook_networks(), frozenset(config.webhook_allow_ports), world.is_own_address)


def read_trust(config: Config) -> Trust:
    """Return the roots by which attestations are verified: from files that the settings name, else the published ones.
    Raises `ConfigError`.
    """
    published = published_trust()
    return Trust(
        roots=_read_file(config, "attestation_roots_file", read_roots, published.roots),
        revoked=_read_file(config, "attestation_status_file", read_revoked, frozenset()),
        packages=frozenset(config.attestation_packages),
        signing_digests=frozenset(map(bytes.fromhex, config.attestation_digests)),
        apple=AppleTrust(
            roots=_read_file(config, "attestation_apple_roots_file", read_apple_roots, published.apple.roots),
            apps=apps_by_digest(config.attestation_apple_apps),
        ),
    )


def _read_file(config: Config, setting: str, read: Callable[[bytes], T], default: T) -> T:
    """Return what `read` makes of the file that a setting names, `default` if it names none. Raises `ConfigError`."""
    file: str | None = getattr(config, setting)
    if file is None:
        return default
    try:
        return read(Path(file).read_bytes().removeprefix(MARK))
    except OSError as error:
        raise ConfigError(explained(f"{setting}: cannot read", file, error)) from error
    except ValueError as error:
        raise ConfigError(f"{setting}: {file}: {error}") from error
