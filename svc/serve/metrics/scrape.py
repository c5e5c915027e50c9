"""`GET /metrics`, an application of its own: it runs under an edge of its own, at an address of its own.

No key is asked. A page of any site could have its own name resolved to this address and read the response, so that the
name in `Host` must be one that is expected here. An address needs no check: a page has it as its origin only where it
was loaded from there.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Sequence

from svc.http.server.messages import Reply, Request
from svc.kernel.net.addresses import parse_ip, read_bind
from svc.serve.metrics.samples import Format, negotiated

PATH = b"/metrics"

_HOST = re.compile(r"(?:\[(?P<ipv6>[^\]]*)\]|(?P<host>[^:]+))(?::[0-9]*)?")
_MISDIRECTED = (
    b"no metrics for this Host: ask for localhost or an address, or add the name to the setting metrics_hosts\n"
)

Expose = Callable[[Format], Awaitable[bytes]]
"""All values now, in a format."""


def expected_hosts(bind: str, others: Sequence[str]) -> list[str]:
    """Return the host names with which the metrics may be requested: that of `bind` (`HOST:PORT` or empty) and the
    others.
    """
    own = read_bind(bind)[0] if bind else None
    return [*others, *([own] if own else [])]


class Scrape:
    """Serves `GET` and `HEAD` of one path; any other path is 404, any other method 405, and a request for a host name
    that is neither `localhost` nor in `hosts` 421.
    """

    def __init__(self, expose: Expose, hosts: Collection[str]) -> None:
        self._expose = expose
        self._hosts = frozenset(host.lower().removesuffix(".") for host in hosts)

    async def __call__(self, request: Request, reply: Reply) -> None:
        """Respond to one request. Collect the values only for a `GET` or `HEAD` of `PATH`."""
        status, headers, body = 200, [(b"cache-control", b"no-store")], b""
        host = next((value for name, value in request.headers if name == b"host"), None)
        if host is not None and not self._is_expected(host.decode("latin-1")):  # browsers always send one
            status, body = 421, _MISDIRECTED
            headers.append((b"content-type", b"text/plain; charset=utf-8"))
        elif request.path != PATH:
            status = 404
        elif request.method not in ("GET", "HEAD"):
            status = 405
            headers.append((b"allow", b"GET, HEAD"))
        else:
            accept = b",".join(value for name, value in request.headers if name == b"accept")
            form = negotiated(accept.decode("latin-1"))
            body = await self._expose(form)
            headers += [(b"content-type", form.media_type), (b"vary", b"Accept")]
        headers.append((b"content-length", b"%d" % len(body)))
        await reply.respond(status, headers, body)

    def _is_expected(self, host: str) -> bool:
        found = _HOST.fullmatch(host.strip())
        if found is None:
            return False
        name = (found["ipv6"] or found["host"] or "").lower().removesuffix(".")
        return name in self._hosts or name == "localhost" or name.endswith(".localhost") or parse_ip(name) is not None
