"""`svc openapi`, `svc collection`, `svc docs` and `svc signals`: what is published, without a running service.

What may live here: commands that print or serve a document as the service does.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

import click
import hypercorn.trio
import trio
from hypercorn.config import Config
from quart import Response, redirect
from quart_trio import QuartTrio
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as Redirect

from svc.command.help import examples
from svc.command.output import CommandError, json_option, show_table
from svc.features.routes import API
from svc.http.openapi.collection import collection as request_collection
from svc.http.openapi.document import OF_API, OF_CONSOLE, emit, encode
from svc.http.pages import app as pages
from svc.http.server.listening import open_sockets
from svc.identify.scoring.signals import CATALOGUE, Signal
from svc.kernel.values.fields import PLATFORMS
from svc.kernel.values.struct_fields import named


@click.command(epilog=examples("svc openapi > openapi.json"))
@click.option("--console", is_flag=True, help="Print the document of what the console reads instead.")
def openapi(*, console: bool) -> None:
    """Print the OpenAPI 3.1 document of the API."""
    click.echo(encode(emit(API, OF_CONSOLE if console else OF_API)), nl=False)


@click.command(epilog=examples("svc collection > collection.json"))
def collection() -> None:
    """Print the request collection for API tools, in Postman's v2.1 format."""
    click.echo(encode(request_collection(emit(API))), nl=False)


ROOT = "/docs/"
LEFT_OUT = "There is no service here. Start one with `svc dev`: it serves this documentation too."


@click.command(epilog=examples("svc docs", "svc docs --port 9000"))
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="Where to listen; 0 = free."
)
def docs(port: int) -> None:
    """Serve the documentation on this machine.

    Prints its address and listens on the loopback interface alone until Ctrl-C. A running service has the same pages at
    /docs/, and beside them the API reference with a panel to send requests.
    """
    if pages.HOME not in pages.SITE:
        raise CommandError(pages.SITE_NOT_BUILT.replace(", then restart the service", ""))
    try:
        (listening,) = open_sockets(f"127.0.0.1:{port}", backlog=100)
    except OSError as error:
        raise CommandError(f"port {port} cannot be used ({error.strerror}): choose another one with --port") from None
    click.echo(f"The documentation is at http://127.0.0.1:{listening.getsockname()[1]}{ROOT}\nStop with Ctrl-C.")
    trio.run(_serve, listening.detach())
    click.echo()


class _StockServer(Protocol):
    """The part of hypercorn that is used; its own types are of WSGI too."""

    async def __call__(
        self, app: QuartTrio, config: Config, *, shutdown_trigger: Callable[..., Awaitable[None]]
    ) -> None:
        """Serve until the trigger returns."""
        ...


async def _serve(listening: int) -> None:
    """Serve on this descriptor until Ctrl-C; the server closes it."""
    config = Config()
    config.bind = [f"fd://{listening}"]
    config.errorlog = None
    config.include_server_header = False
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:

        async def signaled() -> None:
            async for _ in signals:
                return

        serve = cast("_StockServer", hypercorn.trio.serve)  # pyright: ignore[reportUnknownMemberType]
        await serve(_app(), config, shutdown_trigger=signaled)


def _app() -> QuartTrio:
    """Return an application with the documentation below `/docs/`, and with a redirect to it from the root."""
    app = pages.create_app(pages.documentation)

    async def to_site() -> Redirect:
        return redirect(ROOT, 307)

    async def left_out(_: NotFound) -> Response:
        return Response(f"{LEFT_OUT}\n", 404, content_type="text/plain; charset=utf-8")

    app.add_url_rule("/", "toSite", to_site)
    app.add_url_rule("/docs", "toSite", to_site)
    app.register_error_handler(NotFound, left_out)
    return app


@click.command(epilog=examples("svc signals", "svc signals --json"))
@json_option
def signals(as_json: bool) -> None:
    """List every signal with its platforms and default weights."""
    if as_json:
        show_table([_record(signal) for signal in CATALOGUE.values()], (), "signals", as_json=True)
        return
    rows = [
        {"signal": signal.name, "group": signal.group, **_weights(signal), "means": signal.description}
        for signal in CATALOGUE.values()
    ]
    show_table(rows, ("signal", "group", *PLATFORMS, "means"), "signals", as_json=False)


def _weights(signal: Signal) -> dict[str, str]:
    """Return the default weight per platform as text, empty if the platform does not know the signal."""
    return {platform: str(signal.weights.get(platform, "")) for platform in PLATFORMS}


def _record(signal: Signal) -> dict[str, Any]:
    return {
        **named(signal, "name", "group", "description"),
        "fires_on": signal.fires_on or None,
        "platforms": list(signal.weights),
        "default_weights": signal.weights,
        **named(signal, "mode", "since"),
    }
