"""`svc webhook`: the receiver's side, for development. A local receiver that shows deliveries, and the check by hand.

What may live here: the commands, and the receiver that prints deliveries.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import click
from click.core import ParameterSource

from svc.command.changes import Change, apply, commit
from svc.command.data_directory import opened
from svc.command.help import CommandGroup, examples
from svc.command.local_service import dev_data_option, service_option
from svc.command.operation import Operation, OrganizationCommand
from svc.command.output import (
    CommandError,
    TimestampType,
    data_option,
    json_option,
    readable,
    show,
    terminal_safe_json,
)
from svc.features.webhooks.commands.forwarding import (
    DeliveryHandler,
    SignatureVerdict,
    WebhookReceiver,
    forward,
    is_count,
    loopback_certificate,
    verify_delivery,
)
from svc.features.webhooks.commands.trigger import trigger
from svc.features.webhooks.jobs.deliveries import recover_deliveries
from svc.features.webhooks.queries import endpoint_anywhere, endpoints_of, failed_in, health
from svc.kernel.access.audit import asked
from svc.kernel.store.directory import Opened
from svc.kernel.store.steps import items_of_step
from svc.kernel.values.ids import first_id, made_at_ms
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.timestamps import timestamp
from svc.world import World

ROWS_OF_A_DELIVERY = 4


@click.command(
    epilog=examples(
        "svc webhook recover ENDPOINT --since 6h",
        "svc webhook recover ENDPOINT --since 2026-01-05T10:00:00Z --until 2026-01-05T12:00:00Z",
    )
)
@click.argument("endpoint_id", metavar="ENDPOINT")
@click.option(
    "--since", "since_ms", type=TimestampType(), required=True, metavar="T", help="Deliveries that failed since then."
)
@click.option("--until", "until_ms", type=TimestampType(), metavar="T", help="And before this time; now if not given.")
@data_option
@json_option
def recover(endpoint_id: str, since_ms: int, until_ms: int | None, directory: Path, as_json: bool) -> None:
    """Queue again every delivery to an endpoint that ended `failed` and has not arrived since.

    Events keep their ids and bytes, and get nine new attempts. A running service begins at once. Running it twice
    queues nothing twice. Times are RFC 3339 (2026-01-05T10:00:00Z), or how long ago: 30m, 24h, 7d, 2w.
    """
    world = World.real()
    now_ms = world.now_ms()
    if since_ms >= now_ms:
        raise click.UsageError(f"--since is in the future; it is {timestamp(now_ms)} now")
    window = range(max(since_ms, 0), now_ms if until_ms is None else min(until_ms, now_ms))
    if not window:
        raise click.UsageError("--until is not after --since")
    with opened(directory) as found:
        with found.store.read() as snapshot:
            registered = endpoint_anywhere(snapshot, endpoint_id)
        if registered is None:
            raise CommandError(f"there is no webhook endpoint {endpoint_id!r}")
        times = {"since": timestamp(window.start), "until": timestamp(window.stop)}
        change = Change(registered.queue.organization, endpoint_id, times)
        recovered = _recover(found, world, registered.queue, window, now_ms, change)
    shown = {"endpoint_id": endpoint_id, "url": registered.endpoint.url, "status": registered.endpoint.status}
    show({**shown, **times, "recovered": recovered}, as_json=as_json)
    if recovered and registered.endpoint.status == "paused" and not as_json:
        click.echo("the endpoint is paused: they are sent when it is resumed")


def _recover(found: Opened, world: World, queue: EndpointKey, window: range, now_ms: int, change: Change) -> int:
    """Recover in steps. The progress bar on a terminal shows the share of the window."""
    recovered, reported, start = 0, window.start, first_id(window.start)
    with click.progressbar(length=now_ms - reported, label="recovering", file=sys.stderr) as bar:
        while start is not None:
            with found.store.read() as snapshot:
                failed = failed_in(snapshot, queue, window, start, items_of_step(ROWS_OF_A_DELIVERY))
            if failed.event_ids:
                job = partial(recover_deliveries, queue=queue, event_ids=failed.event_ids, now_ms=now_ms)
                if recovered:
                    recovered += apply(found, job)
                else:  # the record goes with the first step that recovers anything
                    recovered = commit(found, world, job, lambda count: change if count else None)
            start = failed.resume
            reached = now_ms if start is None else min(made_at_ms(start), now_ms)
            bar.update(reached - reported)
            reported = reached
    return recovered


secret_option = click.option(
    "--secret",
    "secrets",
    multiple=True,
    envvar="WEBHOOK_SECRET",
    show_envvar=True,
    help="Signing secret of the endpoint; twice during a rotation.",
)


_ALONE = ("bind", "secrets", "tls_folder", "plain", "answer")
"""Options of a receiver that forwards nothing."""


@click.group(cls=CommandGroup)
def webhook() -> None:
    """List endpoints, recover failed deliveries, and receive and verify webhooks during development."""


@webhook.command(
    "list",
    cls=OrganizationCommand,
    reads=True,
    epilog=examples("svc webhook list ORG", "svc webhook list ORG --json"),
)
def list_endpoints(operation: Operation) -> None:
    """List the webhook endpoints of an organization, with format, filter and status, also while the service runs.

    "failing_since" is when the first of its failed attempts in a row began: while it is empty, the last one succeeded.
    Leave out the path of an address: anybody who knows that of a chat can write there.
    """
    number = operation.number
    with operation.store.read() as snapshot:
        found = endpoints_of(snapshot, number)
        since = [health(snapshot, queue).failing_since_ms for queue, _ in found]
    rows = [
        {
            "id": endpoint.id,
            "environment": endpoint.environment,
            "status": endpoint.status,
            "failing_since": None if since_ms is None else timestamp(since_ms),
            "format": endpoint.format,
            **asked({"url": endpoint.url}),
            "events": ", ".join(endpoint.events) if not operation.as_json else endpoint.events,
            "filter": endpoint.filter,
        }
        for (_, endpoint), since_ms in zip(found, since, strict=True)
    ]
    operation.show_rows(rows, "endpoints", tuple(rows[0]) if rows else ())


webhook.add_command(recover)
webhook.add_command(trigger)


@webhook.command(
    epilog=examples(
        "svc webhook listen --forward-to http://localhost:3000/hook      # beside `svc dev`",
        "WEBHOOK_SECRET=svc_whsec_... svc webhook listen                 # a receiver without an application",
    )
)
@click.option("--forward-to", "target", metavar="URL", help="Forward the webhooks of a running `svc dev` there.")
@service_option
@dev_data_option
@click.option("--bind", default="127.0.0.1:8443", show_default=True, metavar="HOST:PORT", help="Where to listen.")
@secret_option
@click.option(
    "--tls",
    "tls_folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("webhook-listen"),
    show_default=True,
    help="Folder of certificate.pem and key.pem; created if missing.",
)
@click.option("--plain", is_flag=True, help="Serve HTTP without TLS, for behind a proxy or tunnel that ends TLS.")
@click.option(
    "--answer",
    type=click.IntRange(200, 599),
    default=200,
    show_default=True,
    help="Status of the response to valid deliveries.",
)
@json_option
@click.pass_context
def listen(  # noqa: PLR0913, PLR0917  one parameter per option
    context: click.Context,
    target: str | None,
    service: str | None,
    directory: Path,
    bind: str,
    secrets: tuple[str, ...],
    tls_folder: Path,
    plain: bool,
    answer: int,
    as_json: bool,
) -> None:
    """Receive webhooks on this machine: forward them to your application, or print them.

    With --forward-to, beside a running `svc dev`: registers an endpoint for the session, forwards each delivery as it
    came, with its signature, and prints its status and duration. The application's status goes back to the service,
    which retries as usual. The signing secret is printed first and is the same at each start. No other setting is
    needed.

    Without it: print deliveries and check their signatures. With a secret, invalid deliveries get 401.
    """
    if target is not None:
        others = [name for name in _ALONE if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        if others:
            raise click.UsageError("--forward-to goes without --bind, --secret, --tls, --plain and --answer")
        forward(target, directory, service, as_json=as_json)
        return
    host, _, port = bind.rpartition(":")
    if not host or not port.isdecimal():
        raise click.UsageError(f"--bind: {bind} is not HOST:PORT")
    try:
        server = _Receiver((host, int(port)), secrets, answer, as_json=as_json)
    except (OSError, OverflowError) as error:
        raise CommandError(f"cannot listen on {bind}: {error}; choose another with --bind") from error
    with server, suppress(KeyboardInterrupt):
        certificate = None
        if not plain:
            certificate, key = loopback_certificate(tls_folder, host, server.world.now_ms())
            server.secure(certificate, key)
        click.echo(_introduction(server.server_port, certificate, verifying=bool(secrets)), err=as_json)
        server.serve_forever()


@webhook.command(
    epilog=examples(
        "WEBHOOK_SECRET=svc_whsec_... svc webhook verify --timestamp 1767225600 --signature sha256=5f... body.json"
    )
)
@secret_option
@click.option("--timestamp", "at", required=True, metavar="SECONDS", help="The header X-Svc-Timestamp.")
@click.option("--signature", required=True, metavar="SHA256=HEX", help="The header X-Svc-Signature.")
@click.argument("file", type=click.File("rb"), default="-")
@json_option
def verify(secrets: tuple[str, ...], at: str, signature: str, file: BinaryIO, as_json: bool) -> None:
    """Verify the signature of a saved delivery: its exact body in FILE, or on standard input.

    Its age is shown but not checked.
    """
    if not secrets:
        raise click.UsageError("name the signing secret with --secret or WEBHOOK_SECRET")
    if not is_count(at) or verify_delivery(secrets, signature, at, file.read(), int(at)) != "valid":
        raise CommandError("the signature is not that of this body, timestamp and secret")
    show({"signature": "valid", "age_s": World.real().now_ms() // 1000 - int(at)}, as_json=as_json)


def _introduction(port: int, certificate: Path | None, *, verifying: bool) -> str:
    lines = [
        f"Listening at {'http' if certificate is None else 'https'}://localhost:{port}/ until Ctrl-C.",
        "Signatures are checked." if verifying else "Signatures are not checked: no --secret.",
    ]
    if certificate is None:
        lines.append("The service sends to https only: put a proxy or tunnel that ends TLS before this.")
    else:
        settings = f"SVC_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8,::1/128 SVC_WEBHOOK_CA_FILE={certificate.absolute()}"
        lines.append(f"The service reaches it when it is started with\n  {settings}")
    return "\n".join(lines)


class _Receiver(WebhookReceiver):
    def __init__(self, address: tuple[str, int], secrets: Sequence[str], answer: int, *, as_json: bool) -> None:
        super().__init__(address, _Handler, secrets)
        self.answer = answer
        self.as_json = as_json
        self.seen: set[str] = set()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  socketserver's form
        """Print no traceback for a client that breaks off or does not trust the certificate."""
        click.echo(f"a connection from {client_address} broke off", err=True)


class ReceivedDelivery(NamedTuple):
    """One received delivery, as `svc webhook listen` shows it."""

    received_at: str
    verdict: SignatureVerdict | Literal["not checked"]
    again: bool
    """Whether the same event id came before: deliveries arrive at least once."""
    headers: dict[str, str]
    body: Any
    """The envelope, or text where it is not JSON."""


class _Handler(DeliveryHandler):
    server: _Receiver  # pyright: ignore[reportIncompatibleVariableOverride]  made for no other

    def receive(self, headers: dict[str, str], body: bytes, now_ms: int) -> int:
        """Show the delivery; 401 where its signature is wrong."""
        verdict = self.verdict(headers, body, now_ms) if self.server.secrets else "not checked"
        event_id = headers.get("x-svc-event-id", "")
        again = event_id in self.server.seen
        self.server.seen.add(event_id)
        try:
            shown = json.loads(body)
        except ValueError:
            shown = body.decode(errors="replace")
        delivery = ReceivedDelivery(timestamp(now_ms), verdict, again, headers, shown)
        click.echo(json.dumps(delivery._asdict()) if self.server.as_json else _shown(delivery))
        return self.server.answer if verdict in ("valid", "not checked") else HTTPStatus.UNAUTHORIZED


def _shown(delivery: ReceivedDelivery) -> str:
    again = ", seen before" if delivery.again else ""
    kind, event_id = (readable(delivery.headers.get(name)) for name in ("x-svc-event-type", "x-svc-event-id"))
    if isinstance(delivery.body, str):
        body = "\n".join(map(readable, delivery.body.splitlines()))
    else:
        body = terminal_safe_json(json.dumps(delivery.body, indent=2, ensure_ascii=False))
    indented = "\n".join("  " + line for line in body.split("\n"))
    return f"{delivery.received_at}  {kind}  {event_id}  {delivery.verdict}{again}\n{indented}"
