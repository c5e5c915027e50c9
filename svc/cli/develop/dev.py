"""`svc dev`: from nothing to a running development service, with one organization, its keys, and a first answer."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
import trio

import svc
from svc.cli.store.data import network_in_use
from svc.cli.store.upgrade import keep_settings, locked_directory, opened_to_serve
from svc.command.changes import Change, commit
from svc.command.help import examples
from svc.command.local_service import KEYS_FILE, NAME, DevelopmentKeys, identify_sample, reachable, read_keys
from svc.command.output import CommandError, directory_option, settings
from svc.features.keys.command import issue_key, key_of_secret, read_origins, revoke_key
from svc.features.members.command import link_for
from svc.features.organizations.command import create_organization
from svc.features.webhooks.commands.forwarding import FOLDER, loopback_certificate
from svc.kernel.access import jobs as keys
from svc.kernel.access.credentials import ApiKey
from svc.kernel.access.sessions import console_url
from svc.kernel.config import Config, ConfigError
from svc.kernel.net.addresses import read_bind
from svc.kernel.store.directory import Opened
from svc.kernel.store.files import durable_files
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.fields import A_REPORT
from svc.kernel.values.refusals import Refusal
from svc.serve.service import Service
from svc.serve.serving import run_until_signaled, sockets_for
from svc.workers.bus import reach
from svc.workers.shared_memory import WorkerSlot
from svc.world import World

KEY_NAME = "svc dev {}"
"""Of the key of each kind."""
_KINDS: dict[str, dict[str, Any]] = {
    "public": {"environment": "development", "platforms": ("web",)},
    "secret": {"environment": "development"},
    "management": {"environment": None, "role": "admin"},
}


def development_keys(
    directory: Path,
    found: Opened,
    world: World,
    owner: Organization,
    region: str,
    url: str,
    origins: tuple[str, ...] = (),
) -> DevelopmentKeys:
    """Return the development keys in the file; a key that the store does not accept any more is issued again. The file
    is written where anything in it changes: programs find the service at `url` by it.

    `origins` are added to those of the public key. Raises `CommandError` for one that is not an origin.
    """
    organization = owner.number
    added = read_origins(origins)
    kept = read_keys(directory)
    secrets: dict[str, str] = {}
    for kind, fields in _KINDS.items():
        known = getattr(kept, kind)
        if not _is_usable(found, world, known, kind, organization, region):
            _revoke_lost(found, world, organization, KEY_NAME.format(kind))
            _, known = issue_key(
                found, world, organization=organization, region=region, kind=kind, name=KEY_NAME.format(kind), **fields
            )
        secrets[kind] = known
    development = DevelopmentKeys(url=url, organization_id=owner.id, **secrets)
    if development != kept:
        content = msgspec.json.format(msgspec.json.encode(development), indent=2)
        durable_files.replace(directory / KEYS_FILE, content + b"\n")
    _allow(found, world, development.public, added)
    return development


def _is_usable(found: Opened, world: World, secret: str, kind: str, organization: int, region: str) -> bool:
    key = key_of_secret(found, secret)
    return (
        key is not None
        and key.usable(world.now_ms())
        and (key.kind, key.organization, key.region) == (kind, organization, region)
    )


def _revoke_lost(found: Opened, world: World, organization: int, name: str) -> None:
    """Revoke keys of this name whose secret is not in the file: nobody can use them, and they must not pile up."""
    with found.store.read() as snapshot:
        known = lookups.keys_of(snapshot, organization)
    for key in known:
        if key.status == "active" and key.name == name:
            revoke_key(found, world, key.id)


def _allow(found: Opened, world: World, public: str, added: tuple[str, ...]) -> None:
    key = key_of_secret(found, public)
    assert key is not None, "it was made or checked just now"
    origins = tuple(dict.fromkeys((*key.allowed_origins, *added)))
    if origins == key.allowed_origins:
        return

    def job(transaction: Transaction) -> ApiKey:
        changed = keys.replace_origins(transaction, key.organization, key.id, origins)
        if isinstance(changed, Refusal):
            raise CommandError(f"{len(origins)} origins are too many for a key")
        return changed

    commit(found, world, job, lambda changed: Change(changed.organization, changed.id, {"allowed_origins": origins}))


LOOPBACK = ("127.0.0.0/8", "::1/128")
LINK_MINUTES = 12 * 60
"""How long the printed link to the console may be used."""


@click.command(epilog=examples("svc dev", "svc dev --bind 0.0.0.0:8080 --origin http://192.168.1.20:3000"))
@click.option("--bind", metavar="HOST:PORT", help="Where to listen, instead of the setting (127.0.0.1:8080).")
@click.option(
    "--metrics-bind",
    metavar="HOST:PORT",
    help="Where to serve GET /metrics, instead of the setting; without both, at a loopback port that is free.",
)
@directory_option("The data directory; made when it is not there.", default=Path("data"), show_default=True)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Add an allowed origin to the public key, such as http://192.168.1.20:3000; repeat for more.",
)
def dev(bind: str | None, metrics_bind: str | None, directory: Path, origins: tuple[str, ...]) -> None:
    """Start a development service from nothing.

    Makes the data directory, an organization and development keys, identifies a sample report and then the same device
    after a browser update, and serves until Ctrl-C. The page /try identifies the browser that opens it. The keys are
    kept in dev-keys.json in the data directory, with the address of the service, and are the same at the next start.
    `svc webhook listen --forward-to URL` forwards its webhooks to an application on this machine.
    """
    config = msgspec.structs.replace(settings(), log_format="console", workers=1)
    if config.store is not None:
        raise ConfigError(
            "the setting `store` names a database, and `svc dev` keeps its store in a data directory: unset SVC_STORE, "
            "or serve the database with `svc serve`"
        )
    tls = next((name for name in ("tls_certfile", "tls_keyfile", "hsts_max_age_s") if getattr(config, name)), None)
    if tls is not None:
        raise ConfigError(
            f"the setting `{tls}` is for HTTPS, and `svc dev` serves plain HTTP: unset SVC_{tls.upper()}, or serve "
            "with `svc serve`"
        )
    bind = bind or config.bind
    try:
        _, port = read_bind(bind)
    except ValueError as error:
        raise ConfigError(f"--bind: {error}") from error
    if not port:
        raise ConfigError(f"--bind: {bind!r} is any port, and the keys and links of `svc dev` name one")
    config = msgspec.structs.replace(config, bind=bind)
    world = World.real()
    with (
        locked_directory(directory, config, world, "svc dev", create=True),
        opened_to_serve(directory, config, world, create=True) as found,
        reach(directory, WorkerSlot()) as bus,
    ):
        keep_settings(found, config)
        organization = _organization(found, world)
        here, elsewhere = reachable(bind)
        own = () if elsewhere is None else (f"http://{elsewhere}",)
        added = (*own, *origins)
        issued = development_keys(directory, found, world, organization, config.region, f"http://{here}", added)
        config = msgspec.structs.replace(config, try_key=issued.public, **_local_webhooks(config, directory, world))
        service = Service(config, world, found, directory, bus=bus)
        if metrics_bind is None:
            metrics_bind = metrics_at(config, os.environ)
        token = link_for(found, world, organization, issued.management, LINK_MINUTES)
        introduce = partial(_introduce, elsewhere, directory, issued, token)
        trio.run(run_until_signaled, service, sockets_for(bind, metrics_bind), introduce)


def metrics_at(config: Config, environment: Mapping[str, str]) -> str:
    """Return the HOST:PORT of metrics that the settings say, or a loopback port that is free where they say nothing."""
    is_set = "SVC_METRICS_BIND" in environment or config.metrics_bind != Config().metrics_bind
    return config.metrics_bind if is_set else "127.0.0.1:0"


def _local_webhooks(config: Config, directory: Path, world: World) -> dict[str, Any]:
    """Return settings with which `svc webhook listen --forward-to` receives deliveries. They allow loopback addresses,
    and trust the certificate of such a session beside what the settings trust.
    """
    certificate, _ = loopback_certificate(directory / FOLDER, "localhost", world.now_ms())
    trusted = certificate
    if config.webhook_ca_file is not None:
        trusted = directory / FOLDER / "authorities.pem"
        trusted.write_bytes(certificate.read_bytes() + Path(config.webhook_ca_file).read_bytes())
    networks = dict.fromkeys((*config.webhook_allow_networks, *LOOPBACK))
    return {"webhook_allow_networks": tuple(networks), "webhook_ca_file": str(trusted)}


def _organization(found: Opened, world: World) -> Organization:
    with found.store.read() as snapshot:
        known = [each for each in lookups.all_organizations(snapshot) if each.name == NAME]
    return known[0] if known else create_organization(found, world, NAME, credit=None)


async def _introduce(
    elsewhere: str | None, directory: Path, issued: DevelopmentKeys, token: str, metrics: list[str]
) -> None:
    """Print what a person sees first: where to look, two identifications, the keys, and a line to paste."""
    url = issued.url
    try:
        samples = [
            await trio.to_thread.run_sync(identify_sample, url.removeprefix("http://"), issued.secret, sample)
            for sample in ("first_visit", "after_an_update")
        ]
    except OSError as error:
        raise CommandError(f"this service serves at {url}, and cannot be reached there: {error.strerror}") from error
    click.echo(f"\nsvc {svc.__version__} is running. Open one of these in a browser:\n")
    click.echo(f"  {url}/try    see your own browser identified, and why")
    click.echo(f"  {console_url(url, token)}")
    click.echo("         watch visits arrive, and manage keys, weights and webhooks; the link signs in once")
    click.echo(f"  {url}/docs/  the documentation, and at {url}/docs/api the reference with a panel to send requests\n")
    _show_samples(*samples)
    click.echo(f"Keys of the development organization {issued.organization_id}, kept in {directory / KEYS_FILE}:")
    click.echo(f"  public      {issued.public}")
    click.echo(f"  secret      {issued.secret}")
    click.echo(f"  management  {issued.management}\n")
    click.echo(f"Receive its webhooks: {_listen(directory)}\n")
    click.echo(f"Identify this terminal, as a page on localhost would:\n\n{_curl(url, issued.public)}\n")
    if elsewhere is not None:
        click.echo(f"From other devices: http://{elsewhere}/try (--origin ORIGIN admits other pages that they open)")
    if not network_in_use(settings(), directory).files:
        update = shlex.join([_program(), "data", "update", "--data", str(directory)])
        click.echo(f"No network databases: events have no country and no network. To fetch free ones: {update}")
    for address in metrics:
        click.echo(f"Metrics: http://{address}/metrics")
    click.echo(f"Data: {directory}. Stop with Ctrl-C.")


def _show_samples(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Print two reports of one laptop, the second after its browser was updated and a monitor was plugged in."""
    click.echo("Two sample reports of one laptop were sent:")
    visit = "on its first visit" if first["visitor_is_new"] else "it was here before, at an earlier start"
    click.echo(f"  {visit:<43} {_in_words(first)}")
    click.echo(f"  {'after a browser update, with a new monitor':<43} {_in_words(second)}\n")
    click.echo(f"The whole response to the second one:\n\n{_indented(second)}\n")


def _in_words(response: dict[str, Any]) -> str:
    visitor, score = response["visitor_id"], f"suspect score {response['suspect_score']} ({response['suspect_level']})"
    if response["visitor_is_new"]:
        return f"a new visitor, {visitor}; {score}"
    return f"known visitor {visitor}, {response['visitor_confidence']} % sure; {score}"


def _indented(response: dict[str, Any]) -> str:
    shown = {**response, "deferred_token": response["deferred_token"][:12] + "..."}
    return "\n".join("  " + line for line in json.dumps(shown, indent=2).splitlines())


def _listen(directory: Path) -> str:
    """Return the command that forwards webhooks from another terminal in this folder."""
    words = [_program(), "webhook", "listen", "--forward-to", "http://localhost:3000/hook"]
    if directory != Path("data"):
        words += ["--data", str(directory)]
    return shlex.join(words)


def _program() -> str:
    """Return the program as a shell finds it: by its path if `svc` alone is not found, such as after `make run`."""
    program, found = Path(sys.argv[0]), shutil.which("svc")
    is_found = found is not None and program.exists() and program.samefile(found)
    return "svc" if is_found or program.name != "svc" else str(program)


def _curl(url: str, public: str) -> str:
    signals = {**A_REPORT, "webgl": {"vendor": "Mesa", "renderer": "Mesa Intel(R) UHD Graphics 620 (KBL GT2)"}}
    body = json.dumps({"sdk": {"platform": "web"}, "signals": signals}, separators=(",", ":"))
    return (
        f"curl -s {url}/api/v1/identify -H 'x-api-key: {public}' -H 'origin: http://localhost' "
        f"-H 'content-type: application/json' -d '{body}'"
    )
