"""What a service does before it can serve: it responds 503, says why, and checks again (decisions 17.3).

A clock that is far behind the last write would charge for events that vanish; a database that is still starting and a
disk that takes no write are no reason to end. Whatever waits here is mended from outside, and then the service goes on
by itself.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal, NamedTuple

import msgspec
import structlog
import trio

import svc
from svc.http.responses import edge_refusal
from svc.http.route import BASE
from svc.http.schema import HealthBody, ReadinessBody, ReadinessChecks
from svc.http.server.capacity import EdgeLimits
from svc.http.server.listening import Certificate
from svc.http.server.messages import Reply, Request
from svc.http.server.server import open_listeners, serve
from svc.kernel.limits.lasting import SAY_S
from svc.workers.pulse import notify
from svc.world import World

log = structlog.get_logger()

LOOK_S = 1.0
"""Between two looks at what is waited for."""
_ENDING = (signal.SIGTERM, signal.SIGINT)


class Obstructed(NamedTuple):
    """Why the service cannot serve yet."""

    because: str
    """One line that says what to do."""
    store: Literal["unreachable", "failing"] = "unreachable"
    """What `readyz` says of the store."""


Obstacle = Callable[[], Awaitable[Obstructed | None]]
"""`None` = it can serve."""


async def can_serve(
    obstacle: Obstacle,
    sockets: list[socket.socket],
    certificate: Certificate | None,
    world: World,
    lifeline: int | None = None,
) -> bool:
    """Wait until the service can serve; false where SIGTERM or SIGINT came first, or the end of the file `lifeline`,
    which says that the parent of this worker has died. Meanwhile every request on the sockets gets 503, but for
    `/healthz`; they go on listening afterwards.
    """
    why = await obstacle()
    if why is None:
        return True
    listeners = open_listeners([one.dup() for one in sockets], ssl_context=certificate and certificate.context)
    shutdown = trio.Event()
    signaled = False
    with trio.open_signal_receiver(*_ENDING) as signals:
        before = signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)  # a worker is born with them blocked
        async with trio.open_nursery() as nursery:

            async def end_after(happens: Callable[[], Awaitable[object]]) -> None:
                nonlocal signaled
                await happens()
                signaled = True
                nursery.cancel_scope.cancel()

            def respond(request: Request, reply: Reply) -> Awaitable[None]:
                return _respond(world, why, request, reply)

            served = partial(serve, respond, listeners, EdgeLimits(), now_ms=world.now_ms)
            nursery.start_soon(end_after, partial(anext, signals))
            nursery.start_soon(partial(served, refuse=partial(edge_refusal, world), shutdown=shutdown))
            said_s = -SAY_S
            if lifeline is None:
                notify("READY=1")  # it answers: a start that takes too long would be ended
            else:
                nursery.start_soon(end_after, partial(trio.lowlevel.wait_readable, lifeline))
            while why is not None:
                if lifeline is None:
                    notify("WATCHDOG=1")
                if trio.current_time() - said_s >= SAY_S:
                    log.error("cannot serve yet, every request gets 503", because=why.because)
                    said_s = trio.current_time()
                await trio.sleep(LOOK_S)
                why = await obstacle()
            log.info("ready: the service can now serve")
            nursery.cancel_scope.cancel()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # what comes from now on is for who serves
    return not signaled


async def _respond(world: World, why: Obstructed | None, request: Request, reply: Reply) -> None:
    path = request.path.decode("latin-1").removeprefix(BASE)
    status, (body, headers) = 503, edge_refusal(world, 503)
    if path == "/healthz":
        status, body = 200, msgspec.json.encode(HealthBody(status="ok", version=svc.__version__))
    elif path == "/readyz":
        store = "unreachable" if why is None else why.store
        checks = ReadinessChecks(store=store, webhooks="stopped", network_data="missing")
        body = msgspec.json.encode(ReadinessBody("unavailable", checks))
    await reply.respond(status, [*headers, (b"content-length", b"%d" % len(body))], body)
