"""`svc dev`: from nothing to a running development service, with one organization, its keys, and a first answer."""

from __future__ import annotations

import http.client
import json
import os
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
import trio

import svc
from svc.cli.keys import issue_key, revoke_key
from svc.cli.organizations import create_organization
from svc.cli.output import Refused, settings
from svc.cli.upgrade import upgrade_where_needed
from svc.domain.billing import MICROS_PER_USD
from svc.domain.records import Organization
from svc.service import Service, opened_directory, run_until_signalled
from svc.store import views
from svc.store.directory import Opened
from svc.world import World

KEY_NAMES = "svc dev "
"""How the names of the keys start that each start replaces."""
NAME = "development"
"""Of the organization."""
SAMPLE_ADDRESS = "81.2.69.160"
"""A public address for the samples: this machine's own is private, and so has no network facts."""


CERTAIN = 100


class DevelopmentKeys(NamedTuple):
    public: str
    secret: str
    management: str


@click.command()
@click.option("--bind", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT", help="Where to listen.")
@click.option(
    "--metrics-bind",
    metavar="HOST:PORT",
    help="Where GET /metrics is answered, instead of SVC_METRICS_BIND; without both, at a loopback port that is free.",
)
@click.option(
    "--data",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="SVC_DATA",
    default=Path("data"),
    show_default=True,
    show_envvar=True,
    help="The data directory; made when it is not there.",
)
def dev(bind: str, metrics_bind: str | None, directory: Path) -> None:
    """From nothing to a running development service.

    Makes the data directory, an organization and fresh development keys, identifies a sample report and then the same
    device after a browser update, prints both answers, and serves until Ctrl-C.
    """
    config = msgspec.structs.replace(settings(), bind=bind)
    world = World.real()
    upgrade_where_needed(directory, config, world)
    with opened_directory(directory, config, world) as found:
        organization = _organization(found, world)
        issued = _fresh_keys(found, world, organization, config.region)
        service = Service(config, world, found, directory)
        if metrics_bind is None:
            metrics_bind = os.environ.get("SVC_METRICS_BIND", "127.0.0.1:0")
        introduce = partial(_introduce, bind, directory, organization, issued)
        trio.run(run_until_signalled, service, bind, metrics_bind, introduce)


def _organization(found: Opened, world: World) -> Organization:
    with found.store.read() as snapshot:
        known = [account.organization for account in views.accounts(snapshot) if account.organization.name == NAME]
    return known[0] if known else create_organization(found, world, NAME, credit=10 * MICROS_PER_USD)


def _fresh_keys(found: Opened, world: World, organization: Organization, region: str) -> DevelopmentKeys:
    """New keys at every start, since no secret is kept; those of the last start are revoked."""
    with found.store.read() as snapshot:
        known = views.keys_of(snapshot, organization.number)
    old = [key.id for key in known if key.status == "active" and key.name.startswith(KEY_NAMES)]
    for key_id in old:
        revoke_key(found, world, key_id)
    issue = partial(issue_key, found, world, organization=organization.number, region=region)
    _, public = issue(kind="public", name="svc dev public", environment="development", platforms=("web",))
    _, secret = issue(kind="secret", name="svc dev secret", environment="development")
    _, management = issue(kind="management", name="svc dev management", environment=None, role="admin")
    return DevelopmentKeys(public, secret, management)


async def _introduce(
    bind: str, directory: Path, organization: Organization, issued: DevelopmentKeys, metrics: list[str]
) -> None:
    """What a person sees first: two answers, the keys, and a line to paste."""
    url = f"http://{bind}"
    click.echo(f"svc {svc.__version__}: a development service at {url}, data in {directory}\n")
    for title, sample in (
        ("A device sends its report:", "first_visit.json"),
        ("The same device, after its browser was updated and a monitor was plugged in:", "after_an_update.json"),
    ):
        answer = await trio.to_thread.run_sync(_identify, bind, issued.secret, sample)
        click.echo(f"{title}\n{_indented(answer)}\n  -> {_in_words(answer)}\n")
    click.echo(f"Organization {organization.id}; its development keys, new at each start of `svc dev`:")
    click.echo(f"  public      {issued.public}")
    click.echo(f"  secret      {issued.secret}")
    click.echo(f"  management  {issued.management}\n")
    click.echo(f"Identify this terminal, as a page on localhost would:\n\n{_curl(url, issued.public)}\n")
    click.echo(f"Pages: {url}/docs  {url}/healthz  {url}/readyz")
    for address in metrics:
        click.echo(f"Metrics: http://{address}/metrics")
    click.echo("Stop with Ctrl-C.")


def _identify(bind: str, secret: str, sample: str) -> dict[str, Any]:
    """Send a bundled report as a customer's server would, with the visitor's details forwarded."""
    report = json.loads(files("svc.samples").joinpath(sample).read_bytes())
    headers = {
        "content-type": "application/json",
        "x-api-key": secret,
        "x-svc-visitor-ip": SAMPLE_ADDRESS,
        "x-svc-visitor-user-agent": report["user_agent"],
        "x-svc-visitor-origin": "https://shop.example",
    }
    body = json.dumps({"sdk": {"platform": "web", "version": "0.1.0"}, "signals": report["signals"]})
    connection = http.client.HTTPConnection(bind, timeout=10)
    try:
        connection.request("POST", "/api/v1/identify", body, headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        raise Refused(f"the sample report was refused: {answer['error']['message']}")
    return answer


def _in_words(answer: dict[str, Any]) -> str:
    visitor = answer["visitor_id"]
    if answer["visitor_is_new"]:
        return f"a new visitor, {visitor}"
    sure = answer["visitor_confidence"]
    return f"seen before exactly: {visitor}" if sure == CERTAIN else f"the same visitor {visitor}, {sure} % sure"


def _indented(answer: dict[str, Any]) -> str:
    shown = {**answer, "deferred_token": answer["deferred_token"][:12] + "..."}
    return "\n".join("  " + line for line in json.dumps(shown, indent=2).splitlines())


def _curl(url: str, public: str) -> str:
    signals = {
        "userAgent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        "platform": "Linux x86_64",
        "languages": ["en-GB", "en"],
        "timezone": "Europe/London",
        "screen": {"width": 1920, "height": 1080, "colorDepth": 24, "devicePixelRatio": 1},
        "hardwareConcurrency": 8,
        "webgl": {"vendor": "Mesa", "renderer": "Mesa Intel(R) UHD Graphics 620 (KBL GT2)"},
        "canvas": "5d1f0a4c7be2",
    }
    body = json.dumps({"sdk": {"platform": "web"}, "signals": signals}, separators=(",", ":"))
    return (
        f"curl -s {url}/api/v1/identify -H 'x-api-key: {public}' -H 'origin: http://localhost' "
        f"-H 'content-type: application/json' -d '{body}'"
    )
