"""The provider that the settings name."""

from __future__ import annotations

import ssl
from pathlib import Path

from svc.features.members.provider.provider import Client, OpenIdProvider
from svc.kernel.access.members import read_roles
from svc.kernel.config import Config, ConfigError
from svc.kernel.tenants.organization import Organization


def provider_of(config: Config, tls: ssl.SSLContext, organization: Organization | None) -> OpenIdProvider:
    """Return the provider of settings that name one; `organization` is that of the settings, as the store has it.
    Raises `ConfigError`.
    """
    file, organization_id = config.console_oidc_client_secret_file, config.console_oidc_organization
    assert config.console_oidc_issuer, "settings without a provider"
    assert file, "they are set together"
    assert config.console_oidc_client_id, "they are set together"
    assert config.console_oidc_role_claim, "they are set together"
    assert organization_id, "they are set together"
    if organization is None or organization.removed_at_ms is not None:
        raise ConfigError(f"console_oidc_organization: the store has no organization {organization_id}")
    try:
        secret = next(iter(Path(file).read_text().splitlines()), "").strip()
    except OSError as error:
        raise ConfigError(f"console_oidc_client_secret_file: cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"console_oidc_client_secret_file: {file} is not text") from error
    if not secret:
        raise ConfigError(f"console_oidc_client_secret_file: the first line of {file} is empty")
    client = Client(
        config.console_oidc_issuer,
        config.console_oidc_client_id,
        secret,
        organization_id,
        config.console_oidc_role_claim,
        read_roles(config.console_oidc_roles),
    )
    return OpenIdProvider(client, tls)
