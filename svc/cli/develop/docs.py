"""`svc docs`: the documentation site on this machine, without a store or a running service."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import UUID

import click

from svc.cli.help import examples
from svc.cli.output import CommandError
from svc.domain.refusals import Refusal
from svc.http.pages import site, web
from svc.http.route import Call, File, Outcome

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
    if site.HOME not in site.SITE:
        raise CommandError(site.NOT_BUILT.replace(", then restart the service", ""))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    except OSError as error:
        raise CommandError(f"port {port} cannot be used ({error.strerror}): choose another one with --port") from None
    with server:
        click.echo(f"The documentation is at http://127.0.0.1:{server.server_port}{ROOT}\nStop with Ctrl-C.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo()


class _Handler(BaseHTTPRequestHandler):
    """Answers as the service does below `/docs/`, and leads there from its root."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Send a page or a file of one."""
        self._send(self._found())

    do_HEAD = do_GET  # noqa: N815  http.server's name for it

    def _found(self) -> Outcome:
        path, query = urlsplit(self.path)[2:4]
        headers = {name.lower(): value for name, value in self.headers.items()}
        if path in ("/", ROOT.rstrip("/")):
            return Outcome(None, status=307, headers={"Location": ROOT})
        if path == "/pages/home.css":
            return web.PAGE.served("home.css", self._call("", "", headers), {})
        if not path.startswith(ROOT):
            return Outcome(Refusal("not_found", explanation=LEFT_OUT))
        return site.served(self._call(unquote(path.removeprefix(ROOT)), query, headers))

    def _call(self, page: str, query: str, headers: dict[str, str]) -> Call:
        return Call(
            request_id=UUID(int=0),
            operation_id="getDocs",
            at_ms=0,
            headers=headers,
            caller=None,
            platform=None,
            path={"page": page},
            query=site.SiteQuery(v="".join(parse_qs(query).get("v", []))),
            body=None,
        )

    def _send(self, outcome: Outcome) -> None:
        content, media_type, status = b"", "text/plain; charset=utf-8", outcome.status
        if isinstance(outcome.body, File):
            content, media_type = outcome.body
        elif isinstance(outcome.body, Refusal):
            content, status = f"{outcome.body.message}\n".encode(), outcome.body.status
        self.send_response(status)
        for name, value in outcome.headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  http.server's name for it
        """Say nothing of requests."""
