"""Outgoing webhooks against real TLS receivers on loopback: deliveries a second, and that every attempt ends.

    python -m bench.webhook_transport [--deliveries N] [--skip-hostile]

Receivers run in this same process and on its one core, so the rates hold both sides. The hostile ones get the whole ten
seconds that an attempt has, twenty attempts each at once.
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import partial
from statistics import quantiles

import trio

from svc.webhook_transport.transport import DEADLINE_S, WebhookTransport
from tests.support.receivers import HOSTILE, THANKS, Responder, receiver, response
from tests.webhook_transport.loopback import NAME, Authority, Dialed, Names, sending

BODY = b'{"padding":"' + b"p" * 1200 + b'"}'
CLOSING = response("200 OK", "Connection: close")
AT_ONCE = 20


async def rate(authority: Authority, play: Responder, title: str, deliveries: int) -> None:
    """Eight senders, as many as one endpoint may have."""
    backend, left, took = Dialed(), iter(range(deliveries)), []

    async def send(sender: WebhookTransport, url: str) -> None:
        for _ in left:
            begun = time.perf_counter()
            attempted = await sender.post(url, BODY, {"Content-Type": "application/json"})
            assert attempted.error is None, attempted
            took.append(time.perf_counter() - begun)

    async with (
        receiver(play, authority.server(NAME)) as port,
        sending(authority, Names(), backend) as sender,
    ):
        begun = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(send, sender, f"https://{NAME}:{port}/")
        whole = time.perf_counter() - begun
    cuts = quantiles(took, n=100)
    print(
        f"{title:<28} {deliveries / whole:7.0f}/s   p50 {cuts[49] * 1000:.1f} ms  p99 {cuts[98] * 1000:.1f} ms"
        f"   {len(backend.dials)} dials for {deliveries}"
    )


async def hostile(authority: Authority, title: str) -> None:
    """All attempts of one kind at once; how long the longest took and what memory grew by."""
    outcomes = []
    tls = None if title == "stalls TLS" else authority.server(NAME)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def attempt(sender: WebhookTransport, url: str) -> None:
        outcomes.append(await sender.post(url, BODY, {}))

    async with (
        receiver(HOSTILE[title], tls) as port,
        sending(authority, Names(), deadline_s=DEADLINE_S) as sender,
        trio.open_nursery() as nursery,
    ):
        for number in range(AT_ONCE):
            nursery.start_soon(attempt, sender, f"https://{NAME}:{port}/{number}")
    longest = max(outcome.duration_ms for outcome in outcomes)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    said = sorted({str(outcome.error) for outcome in outcomes})
    print(f"{title:<28} {', '.join(said):<20} longest {longest / 1000:6.2f} s   peak memory +{grown / 1024:.1f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--deliveries", type=int, default=4000)
    parser.add_argument("--skip-hostile", action="store_true")
    options = parser.parse_args()
    authority = Authority()
    trio.run(rate, authority, Responder(THANKS), "keep-alive", options.deliveries)
    trio.run(rate, authority, Responder(CLOSING), "a connection each", options.deliveries // 4)
    for title in () if options.skip_hostile else HOSTILE:
        trio.run(partial(hostile, authority, title))


if __name__ == "__main__":
    main()
