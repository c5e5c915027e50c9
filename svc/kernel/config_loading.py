"""Reads the settings: a TOML file, then `SVC_*` variables; an unknown name is refused.

region = "us"                     SVC_REGION=us
trusted_proxies = ["10.0.0.0/8"]  SVC_TRUSTED_PROXIES=10.0.0.0/8,fd00::/8
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from svc.kernel.access.members import is_provider_url, read_roles
from svc.kernel.config import Config, ConfigError
from svc.kernel.net.addresses import metadata_opened, read_bind
from svc.kernel.values.errors import cause
from svc.kernel.values.fields import NO_NEWLINE, bare, fields_of, url_problem
from svc.kernel.values.ids import is_id
from svc.kernel.values.text_files import NotTextError, decode_toml

PREFIX = "SVC_"
INIT_VARIABLES = frozenset({"SVC_INIT_ORGANIZATION", "SVC_INIT_ORIGINS", "SVC_INIT_CREDIT_USD", "SVC_INIT_KEYS_FILE"})
"""What `svc serve --init` creates on an empty volume; read by that command alone (docs/containers.md)."""
NOT_SETTINGS = frozenset({"SVC_DATA", "SVC_CONFIG", "SVC_UNPACK_DIR"}) | INIT_VARIABLES
"""Variables that are read by the command line, or by the executable that unpacks itself, and are no settings."""
SERVICE_LINK = re.compile(
    r"SVC_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|SVC_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?", re.ASCII
)
"""Names of the variables that Kubernetes and Docker's legacy links set in containers beside a Service named `svc`. They
are ignored; no setting may have a name of these shapes."""

LISTS = frozenset(field.name for field in msgspec.structs.fields(Config) if isinstance(field.default, tuple))
"""Settings that hold several values, with commas between them in the environment."""


def load(file: Path | None, environment: Mapping[str, str]) -> Config:
    """Return the settings. Raises `ConfigError`, which names a wrong value by its variable, or its setting and file."""
    settings: dict[str, Any] = {}
    if file is not None:
        try:
            settings.update(decode_toml(file.read_bytes()))
        except OSError as error:
            raise ConfigError(
                f"cannot read the settings in {file}: {error.strerror}; name another file with --config or SVC_CONFIG"
            ) from error
        except NotTextError as error:
            raise ConfigError(f"{file} {error}") from error
        _refuse_unknown(settings, str(file))
    variables = read_variables(environment)
    _refuse_unknown(variables, "the environment", upper=True)
    settings.update(variables)

    def named(setting: str) -> str:
        if setting in variables:
            return PREFIX + setting.upper()
        return f"{setting} in {file}" if setting in settings else setting

    config = checked(settings, named)
    for refuse in CONFLICTS:
        refuse(config, settings, named)
    return config


def _refuse_long_retention(config: Config, settings: Mapping[str, Any], named: Callable[[str], str]) -> None:
    """Refuse events that are kept for longer than visitors. `visitor_retention_days` may be below 30 if the retention
    of events is not set: a visitor is not deleted before its last event.
    """
    events, visitors = config.event_retention_days, config.visitor_retention_days
    if "event_retention_days" in settings and events > visitors:
        raise ConfigError(
            f"{named('event_retention_days')}: {events} days are more than visitor_retention_days, which is {visitors};"
            " lower it, or raise visitor_retention_days"
        )


def checked(settings: Mapping[str, Any], named: Callable[[str], str]) -> Config:
    """Return settings as a `Config`: those of a TOML file and of variables, lists taken apart. `named(setting)` is how
    a message names one. Raises `ConfigError` for the first value that cannot be used.
    """
    try:
        config = msgspec.convert(settings, Config, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(_one_line(error, named)) from error
    try:
        config.networks()
    except ValueError as error:
        problem = f"{named('trusted_proxies')}: {error}; name addresses or networks, such as 10.0.0.0/8"
        raise ConfigError(problem) from error
    if config.store is not None and (problem := url_problem(config.store)):
        raise ConfigError(f"{named('store')}: {problem}")
    for name, address in (("bind", config.bind), ("metrics_bind", config.metrics_bind or ":0")):
        try:
            read_bind(address)
        except ValueError as error:
            raise ConfigError(f"{named(name)}: {error}") from error
    if config.public_url is not None and not _has_host(config.public_url):
        raise ConfigError(f"{named('public_url')}: {config.public_url!r} has no host and port that anybody could reach")
    _refuse_unsafe_webhooks(config, named)
    return config


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _refuse_half_a_provider(config: Config, _: Mapping[str, Any], named: Callable[[str], str]) -> None:
    """Refuse an OpenID provider of which a setting is missing or wrong."""
    names = [name for name in Config.__struct_fields__ if name.startswith("console_oidc_")]
    missing = [name for name in names if not getattr(config, name)]
    if len(missing) == len(names):
        return
    if missing:
        there = next(name for name in names if name not in missing)
        raise ConfigError(f"{named(there)}: {', '.join(missing)} is not set, and they belong together")
    issuer = config.console_oidc_issuer or ""
    if not is_provider_url(issuer, loopback=True):
        raise ConfigError(
            f"{named('console_oidc_issuer')}: {issuer!r} is not an https:// URL (plain http is for this machine alone)"
        )
    if not is_id("org_", config.console_oidc_organization or ""):
        raise ConfigError(f"{named('console_oidc_organization')} is not an organization id; `svc org list` has them")
    try:
        read_roles(config.console_oidc_roles)
    except ValueError as error:
        raise ConfigError(f"{named('console_oidc_roles')}: {error}") from error


def _refuse_workers_on_a_database(config: Config, _: Mapping[str, Any], named: Callable[[str], str]) -> None:
    """Refuse several processes on a database."""
    if config.store is not None and config.workers != 1:
        raise ConfigError(f"{named('workers')}: {ONE_PROCESS}")


def _refuse_headers_of_nobody(config: Config, _: Mapping[str, Any], named: Callable[[str], str]) -> None:
    """Refuse headers that nobody could send: only a trusted proxy is believed."""
    for name in ("connection_os_header", "connection_tls_header"):
        if getattr(config, name) is not None and not config.trusted_proxies:
            raise ConfigError(f"{named(name)}: it and trusted_proxies go together, and trusted_proxies is not set")


ONE_PROCESS = (
    "on a database each node is one process; start `svc serve` once for each core or machine, with a --bind of its "
    "own, and put a load balancer in front (docs/postgresql.md)"
)
CONFLICTS = (
    _refuse_long_retention,
    _refuse_half_a_provider,
    _refuse_workers_on_a_database,
    _refuse_headers_of_nobody,
)
"""(config, given settings, how a message names one): raises `ConfigError` for one that another excludes or needs."""


def _refuse_unsafe_webhooks(config: Config, named: Callable[[str], str]) -> None:
    """Refuse webhook networks and a CA file that cannot be right, at the start: deliveries would leak or fail later."""
    networks, authorities = named("webhook_allow_networks"), named("webhook_ca_file")
    try:
        opened = metadata_opened(config.webhook_networks())
    except ValueError as error:
        raise ConfigError(f"{networks}: {error}") from error
    if opened is not None:
        raise ConfigError(
            f"{networks} would open {opened}, where a cloud gives a machine's credentials to anybody who asks "
            "from it; name smaller networks, without that address"
        )
    if config.webhook_ca_file is not None:
        try:
            ssl.create_default_context(cafile=config.webhook_ca_file)
        except OSError as error:  # ssl.SSLError is one
            raise ConfigError(f"{authorities}: {config.webhook_ca_file}: {cause(error)}") from error


def read_variables(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that variables name, known or not, in the order of their names; lists are taken apart."""
    settings: dict[str, Any] = {
        name.removeprefix(PREFIX).lower(): text
        for name, text in sorted(environment.items())
        if name.startswith(PREFIX) and name not in NOT_SETTINGS and SERVICE_LINK.fullmatch(name) is None
    }
    for name in settings.keys() & LISTS:
        settings[name] = [part.strip() for part in settings[name].split(",") if part.strip()]
    return settings


def _refuse_unknown(settings: Mapping[str, Any], where: str, *, upper: bool = False) -> None:
    unknown = [name for name in settings if name not in Config.__struct_fields__]
    if unknown:
        shown = [PREFIX + name.upper() if upper else name for name in unknown]
        similar = get_close_matches(unknown[0], Config.__struct_fields__, n=1)
        meant = [PREFIX + name.upper() if upper else name for name in similar]
        hint = f"did you mean {meant[0]}? " if meant else ""
        raise ConfigError(f"unknown setting in {where}: {', '.join(shown)}; {hint}`svc serve --print-config` lists all")


def _one_line(error: msgspec.ValidationError, named: Callable[[str], str]) -> str:
    message, _, path = str(error).partition(" - at `$.")
    setting = re.split(r"[`\[.]", path, maxsplit=1)[0]
    message = re.sub(r"^Invalid enum value (.*)$", rf"\1 is not {_choices(setting)}", message)
    message = re.sub(r"`([a-z]+(?: [|] [a-z]+)*)`", lambda found: _in_words(found[1]), message)
    message = re.sub(r"matching regex '(.*)'$", lambda found: f"like {_pattern(found[1])}", message)
    return f"{named(setting)}: {message}" if setting else message


def _choices(setting: str) -> str:
    """List the allowed values of a setting, of which some have names."""
    kind = bare(next(field.type for field in fields_of(Config) if field.name == setting))
    kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    named = [repr(value) for one in kinds if isinstance(one, msgspec.inspect.LiteralType) for value in one.values]
    numbers = ["a whole number"] if any(isinstance(one, msgspec.inspect.IntType) for one in kinds) else []
    return " or ".join([*named, *numbers])


def _pattern(quoted: str) -> str:
    return quoted.replace("\\\\", "\\").removesuffix(NO_NEWLINE)


_TYPES = {"float": "a number", "int": "a whole number", "bool": "true or false", "str": "a text", "array": "a list"}
"""How a message names the types of settings."""


def _in_words(types: str) -> str:
    return " or ".join(_TYPES.get(name, name) for name in types.split(" | "))


def as_toml(config: Config) -> str:
    """Return the settings as TOML, which `load` reads back; one that is not set becomes a comment."""
    lines: list[str] = []
    for name in config.__struct_fields__:
        value = getattr(config, name)
        if name == "event_retention_days" and value > config.visitor_retention_days:
            value = None  # its default, which may be so as long as it is not set
        lines.append(f"# {name} is not set" if value is None else f"{name} = {msgspec.json.encode(value).decode()}")
    return "\n".join(lines) + "\n"
