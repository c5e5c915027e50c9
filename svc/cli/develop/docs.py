"""`svc docs`: the documentation site on this machine, without a store or a running service."""

from __future__ import annotations

import signal
from typing import Any, cast

import click
import hypercorn.trio
import trio
from hypercorn.config import Config
from quart import Response, redirect
from quart_trio import QuartTrio
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response as Redirect

from svc.command.help import examples
from svc.command.output import CommandError
from svc.http.pages import app as pages
from svc.http.server.listening import open_sockets

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

        serve = cast("Any", hypercorn.trio.serve)  # pyright: ignore[reportUnknownMemberType]  its types are of WSGI too
        await serve(_app(), config, shutdown_trigger=signaled)


def _app() -> QuartTrio:
    """The documentation below `/docs/`, and from the root the way to it."""
    app = pages.create_app(pages.documentation)

    async def to_site() -> Redirect:
        return redirect(ROOT, 307)

    async def left_out(_: NotFound) -> Response:
        return Response(f"{LEFT_OUT}\n", 404, content_type="text/plain; charset=utf-8")

    app.add_url_rule("/", "toSite", to_site)
    app.add_url_rule("/docs", "toSite", to_site)
    app.register_error_handler(NotFound, left_out)
    return app
