"""Every setting and every limit, named with its unit. `svc.kernel.config_loading` reads them."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from svc.kernel.limits.quotas import Quotas
from svc.kernel.limits.ratelimit import Allowances, LimitShares
from svc.kernel.net.addresses import unmapped
from svc.kernel.values.errors import OperatorError
from svc.kernel.values.fields import (
    AppleApp,
    Count,
    Days,
    Digest,
    Gib,
    HostName,
    LogFormat,
    Natural,
    Port,
    PublicUrl,
    Seconds,
    Share,
    Text,
    about,
)
from svc.kernel.values.ids import DAY_MS

GIB = 1 << 30
MAX_WORKERS = 60
"""The store has 126 reader slots, and each worker takes two at most."""

Workers = Annotated[int, Meta(ge=1, le=MAX_WORKERS)] | Literal["auto"]


class ConfigError(OperatorError):
    """A setting that cannot be used, in one line that says which and why."""


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one server. One without a default has an example, for the file that `tools.reference` writes."""

    bind: Annotated[str, about("HOST:PORT to listen on; [::1]:8080 for IPv6.")] = "127.0.0.1:8080"
    tls_certfile: Annotated[
        Text | None,
        about(
            "PEM file of the TLS certificate, followed by its chain; plain HTTP if not set.",
            "/etc/svc/fullchain.pem",
        ),
    ] = None
    tls_keyfile: Annotated[
        Text | None,
        about(
            "PEM file of the certificate's key, without a passphrase. SIGHUP reloads both files.",
            "/etc/svc/privkey.pem",
        ),
    ] = None
    hsts_max_age_s: Annotated[
        int,
        Meta(ge=0, le=63_072_000),
        about(
            "Seconds for which browsers use nothing but HTTPS for this host name, on all of its ports "
            "(`Strict-Transport-Security`); 0 = not sent. With `tls_certfile` alone."
        ),
    ] = 0
    region: Annotated[
        str,
        Meta(pattern=r"^[a-z][a-z0-9]{0,15}$(?!\n)"),
        about("Region of this service; keys of other regions are refused."),
    ] = "us"
    trusted_proxies: Annotated[
        tuple[Text, ...],
        about("Networks (CIDR) of reverse proxies whose X-Forwarded-For is trusted.", ["10.0.0.0/8", "fd00::/8"]),
    ] = ()
    connection_os_header: Annotated[
        Annotated[str, Meta(pattern=r"^[a-z0-9-]{1,64}$(?!\n)")] | None,
        about(
            "Header, in lower case, in which a trusted proxy says what operating system made the connection, as "
            "passive fingerprinting of TCP sees it. Another one than the user agent's fires `vpn_os_mismatch`.",
            "x-connection-os",
        ),
    ] = None
    connection_tls_header: Annotated[
        Annotated[str, Meta(pattern=r"^[a-z0-9-]{1,64}$(?!\n)")] | None,
        about(
            "Header, in lower case, in which a trusted proxy says the fingerprint of the TLS handshake, such as a JA4. "
            "One that other browsers of the same engine and version do not have is evidence for `forged_report`.",
            "x-connection-ja4",
        ),
    ] = None
    store: Annotated[
        Text | None,
        about(
            "URL of the PostgreSQL database that keeps the store, without a password; LMDB in the data directory when "
            "not set.",
            "postgresql://svc@db.example/svc?sslmode=verify-full",
        ),
    ] = None
    store_password_file: Annotated[
        Text | None, about("File whose first line is the database's password.", "/run/secrets/svc-store")
    ] = None
    store_connections: Annotated[Count, about("Connections to it for writing, and as many for reading.")] = 4
    organizations_per_transaction: Annotated[
        Count, about("Organizations with few identifications that share one of its transactions; 1 with Citus.")
    ] = 16
    pepper_file: Annotated[
        Text | None, about("File of the pepper; `pepper` in the data directory if not set.", "/etc/svc/pepper")
    ] = None
    network_builtin: Annotated[
        bool,
        about(
            "Look addresses up in the built-in ranges. Without these and without any file in `network_directory` "
            "every identification is `unavailable`, and free."
        ),
    ] = True
    network_directory: Annotated[
        Text | None,
        about(
            "Folder of network databases and lists; `network` in the data directory when not set.",
            "/var/lib/svc-network",
        ),
    ] = None
    network_interval_s: Annotated[Seconds, about("Interval between checks of that folder for changed files.")] = 30
    network_stale_days: Annotated[
        Days, about("Age at which the built-in ranges, or a file of that folder, are reported as stale.")
    ] = 180
    network_vpn_neighbors: Annotated[
        Natural,
        about("Number of listed VPN servers that make a whole /24 count as a VPN; 0 = only the listed addresses."),
    ] = 2
    network_sources: Annotated[
        tuple[Text, ...],
        about(
            "Names of the databases and lists that `svc data update` fetches, beside those that it keeps already "
            "(`svc data sources` shows the names); the recommended ones when not set.",
            ["country", "asn", "tor-exits", "vpn-firstparty"],
        ),
    ] = ()
    attestation_roots_file: Annotated[
        Text | None,
        about(
            "Root certificates of Android key attestation, PEM or JSON as Android publishes them; the built-in ones "
            "when not set.",
            "/etc/svc/attestation-roots.pem",
        ),
    ] = None
    attestation_status_file: Annotated[
        Text | None,
        about(
            "Android's published list of certificates that are revoked or suspended; none are known when not set.",
            "/etc/svc/attestation-status.json",
        ),
    ] = None
    attestation_packages: Annotated[
        tuple[Text, ...], about("Names of the Android apps that may attest; any when empty.", ["com.example.shop"])
    ] = ()
    attestation_digests: Annotated[
        tuple[Digest, ...],
        about(
            "SHA-256, in hexadecimal, of the certificates that these apps are signed with; any when empty.", [64 * "0"]
        ),
    ] = ()
    attestation_apple_apps: Annotated[
        tuple[AppleApp, ...],
        about(
            "Team id and bundle id of the Apple apps that may attest, as in A1B2C3D4E5.com.example.shop; none when "
            "empty.",
            ["A1B2C3D4E5.com.example.shop"],
        ),
    ] = ()
    attestation_apple_roots_file: Annotated[
        Text | None,
        about(
            "Root certificates of App Attest, PEM; Apple's published one when not set.",
            "/etc/svc/attestation-apple-roots.pem",
        ),
    ] = None
    webhook_allow_networks: Annotated[
        tuple[Text, ...],
        about(
            "Networks (CIDR) that webhooks may be sent to besides the public internet. A network that contains a cloud "
            "metadata address is refused.",
            ["10.20.0.0/16"],
        ),
    ] = ()
    webhook_allow_ports: Annotated[
        tuple[Port, ...], about("Ports that webhooks may be sent to besides 443 and those above 1023.", [444])
    ] = ()
    webhook_ca_file: Annotated[
        Text | None,
        about(
            "PEM file of certificate authorities trusted for receivers, besides the public ones.",
            "/etc/svc/authorities.pem",
        ),
    ] = None
    public_url: Annotated[
        PublicUrl | None,
        about(
            "Address at which people reach this service and its console, without a query. Messages of chat webhooks "
            "link to it; they have no link when it is not set.",
            "https://svc.example.com",
        ),
    ] = None
    try_key: Annotated[
        Text | None,
        about(
            "Public development key with which the page `/try` identifies the browser that opens it; there is no such "
            "page when not set. Its allowed origins must name this service's own.",
            "svc_pk_us_development_...",
        ),
    ] = None
    event_retention_days: Annotated[
        int,
        Meta(ge=30, le=400),
        about(
            "Time for which events are readable, with their reports; not longer than `visitor_retention_days`. "
            "Windows, webhook deliveries and redelivery stay at 30 days."
        ),
    ] = 30
    console_oidc_issuer: Annotated[
        Text | None,
        about(
            "Issuer of the OpenID provider by which people sign in to the console. This and the five that follow are "
            "set together or not at all.",
            "https://id.shop.example",
        ),
    ] = None
    console_oidc_client_id: Annotated[Text | None, about("What the provider calls this service.", "svc-console")] = None
    console_oidc_client_secret_file: Annotated[
        Text | None, about("File whose first line is the secret shared with it.", "/run/secrets/svc-oidc")
    ] = None
    console_oidc_organization: Annotated[
        Text | None, about("Id of the organization whose members sign in through it.", "org_Yv3kPq8sT1nB6wDx0hRz")
    ] = None
    console_oidc_role_claim: Annotated[
        Text | None,
        about("Claim of its ID tokens that says the role; dots lead into objects.", "realm_access.roles"),
    ] = None
    console_oidc_roles: Annotated[
        tuple[Text, ...],
        about(
            "Values of that claim, each with the role that it gives; members without one cannot sign in.",
            ["svc-admins=admin", "fraud-team=analyst"],
        ),
    ] = ()
    visitor_retention_days: Annotated[
        Days, about("Time after the last visit until a visitor is deleted; not before its last event.")
    ] = 365
    log_format: Annotated[LogFormat, about("Log format: JSON lines, or text. `auto`: text on a terminal.")] = "auto"
    log_requests: Annotated[
        Literal["all", "refused", "none"],
        about("Requests that are logged; `refused` = those without a 2xx response."),
    ] = "all"
    metrics_bind: Annotated[str, about("HOST:PORT of `GET /metrics`, without a key; empty = disabled.")] = (
        "127.0.0.1:9464"
    )
    metrics_hosts: Annotated[
        tuple[HostName, ...],
        about("Host names it may be asked by, besides `localhost` and addresses.", ["svc-metrics"]),
    ] = ()

    map_gib: Annotated[
        float,
        Meta(ge=0.001, le=131_072),
        about("Largest size of the store in GiB. The file is sparse: it takes what is used."),
    ] = 64
    workers: Annotated[
        Workers,
        about("Worker processes, plus a parent if there are several; auto = one per usable core."),
    ] = 1
    max_connections: Annotated[
        Count, about("Open client connections; fewer where the limit of open files is lower.")
    ] = 1000
    request_timeout_s: Annotated[Seconds, about("Time limit for receiving a whole request.")] = 10
    write_timeout_s: Annotated[Seconds, about("Time limit for the client to read each part of a response.")] = 5
    keep_alive_timeout_s: Annotated[Seconds, about("Time limit for the next request on an idle connection.")] = 60
    drain_limit_s: Annotated[Seconds, about("Time limit for running requests to finish after SIGTERM.")] = 8
    worker_hang_s: Annotated[
        float,
        Meta(ge=5, le=31_536_000),
        about("Time without a sign of life after which a worker is replaced, unless the disk stalls."),
    ] = 30
    takeover_wait_s: Annotated[
        float,
        Meta(ge=0, le=86_400),
        about("Time that `svc serve` waits at its start for another service to release the data directory."),
    ] = 15
    body_budget_mib: Annotated[
        int,
        Meta(ge=5, le=1_000_000_000),
        about(
            "Memory of each worker for request bodies that are still arriving, a quarter of it for one client address; "
            "beyond it they get 503."
        ),
    ] = 64
    admission_capacity: Annotated[
        Count,
        about("Requests that may wait for admission, a quarter of them from one organization; more get 503 at once."),
    ] = 1024
    stage_capacity: Annotated[Count, about("Requests that may wait between two stages.")] = 64
    batch_limit: Annotated[
        Count,
        about("Maximum identifications in one commit. Larger commits cost less each, but delay other organizations."),
    ] = 32

    nonproduction_rate_share: Annotated[
        Share, about("Part of an organization's rate limit that its keys outside production may use.")
    ] = 0.25
    address_rate_share: Annotated[
        Share, about("Part of an organization's rate limit that one address with a public key may use.")
    ] = 0.25
    address_rate_least: Annotated[
        Count,
        about("Identifications a second that one address may always make, within the limit of the organization."),
    ] = 10
    client_rate: Annotated[
        Natural,
        about(
            "Attestation challenges and deferred reports a second, for each organization; as many as its "
            "identifications if it may make more of those. 0 = no limit, as for the two that follow."
        ),
    ] = 100
    read_rate: Annotated[
        Natural, about("Requests with secret keys a second, for each organization, beside identify.")
    ] = 50
    management_rate: Annotated[Natural, about("Requests with management keys a second, for each organization.")] = 20
    work_rate: Annotated[
        Natural,
        about(
            "Units of work a second that management requests and the console may have done, for each organization: an "
            "event of a preview is 1, a list entry added or removed 10, a rule or a filter that is saved or tried 10 "
            "and 1 more for 20 of its characters. A request that needs more is carried out, and the next one waits. "
            "0 = no limit."
        ),
    ] = 4_000
    nonproduction_per_day: Annotated[
        Natural, about("Identifications outside production in a UTC day, for each organization; 0 = all are refused.")
    ] = 100_000
    archive_gib_per_day: Annotated[
        Gib,
        about(
            "Size of the reports archived per organization and UTC day. Above it, events are stored without reports, "
            "and deferred reports get 429."
        ),
    ] = 4
    nonproduction_archive_gib_per_day: Annotated[Gib, about("The same, outside production.")] = 0.25
    store_share: Annotated[
        Share,
        about(
            "Share of the store that one organization may use; above it, its identifications get 503. A single "
            "organization may use all of it."
        ),
    ] = 0.5
    keys_per_day: Annotated[
        Count,
        about(
            "Keys that may be issued in a UTC day, for each organization. Revoked and expired keys stay for 400 days."
        ),
    ] = 1_000

    def worker_count(self, cores: int) -> int:
        """Return `workers` as a number, for a machine with this number of cores."""
        return min(cores, MAX_WORKERS) if self.workers == "auto" else self.workers

    def map_bytes(self) -> int:
        """Return the size of the store's map, in bytes: the largest that it can become."""
        return int(self.map_gib * GIB)

    def pepper_path(self) -> Path | None:
        """Return `pepper_file`; `None` = the pepper is in the data directory."""
        return None if self.pepper_file is None else Path(self.pepper_file)

    def console_at(self) -> str | None:
        """Return `public_url` without a slash at its end."""
        return None if self.public_url is None else self.public_url.rstrip("/")

    def event_retention_ms(self) -> int:
        """Return `event_retention_days` in milliseconds."""
        return self.event_retention_days * DAY_MS

    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Return `trusted_proxies` as networks; each was checked by `load`."""
        return tuple(unmapped(ip_network(text)) for text in self.trusted_proxies)

    def webhook_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Return `webhook_allow_networks` as networks; each was checked by `load`."""
        return tuple(ip_network(text) for text in self.webhook_allow_networks)

    def shares(self) -> LimitShares:
        """Return the parts of an organization's rate limit that some of its traffic may take (decisions 4)."""
        return LimitShares(self.nonproduction_rate_share, self.address_rate_share, self.address_rate_least)

    def allowances(self) -> Allowances:
        """Return the requests per second of everything but identify (decisions 4)."""
        return Allowances(self.client_rate, self.read_rate, self.management_rate, self.work_rate)

    def quotas(self) -> Quotas:
        """Return the quotas of each organization (decisions 4), with sizes in bytes."""
        return Quotas(
            self.nonproduction_per_day,
            self.archive_gib_per_day * GIB,
            self.nonproduction_archive_gib_per_day * GIB,
            self.store_share,
            self.keys_per_day,
        )

    def network_files(self, data: Path | None) -> Path | None:
        """Return `network_directory`, else `network` in the data directory; `None` if neither is known."""
        if self.network_directory is not None:
            return Path(self.network_directory)
        return None if data is None else data / "network"
