"""What it costs to check an identification by a signed verdict, and by reading the event: `python -m bench.verdicts`.

A whole service and the Python library in one process, over loopback: CPU of both sides together, and the time that the
backend waits. The figures are in docs/adr/0046.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import trio
from svc_client import AsyncClient, Expected

from tests.support.live import ORIGIN, live_service

TIMES = 300


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with live_service(Path(directory)) as live:
            key, secret = live.issue()[1], live.issue("secret")[1]
            plain = await live.identify(key, tag="t")
            signed = await live.identify(key, tag="t", verdict=True)
            request_id, token = plain.json()["request_id"], signed.json()["verdict"]
            now = datetime.fromtimestamp(live.clock.now_ms / 1000, UTC)
            expected = Expected(live.organization.id, "development", ORIGIN, "127.0.0.1", "t", now)
            async with AsyncClient(live.url, secret) as client:

                async def by_event() -> None:
                    checked = await client.check(
                        request_id, origin=ORIGIN, ip="127.0.0.1", tag="t", is_first_use=lambda _: True, now=now
                    )
                    assert checked.problem is None

                async def by_verdict() -> None:
                    checked = await client.check_verdict(token, expected, is_first_use=lambda _: True)
                    assert checked.problem is None

                for check in (by_event, by_verdict):
                    await check()
                    waits: list[float] = []
                    began = time.process_time()
                    for _ in range(TIMES):
                        at = time.perf_counter()
                        await check()
                        waits.append(time.perf_counter() - at)
                    cpu = (time.process_time() - began) / TIMES
                    print(f"{check.__name__}: CPU {cpu * 1e6:.0f} µs, median {statistics.median(waits) * 1e6:.0f} µs")
            print(f"a verdict has {len(token)} bytes; a response has {len(plain.content)} without it")


if __name__ == "__main__":
    trio.run(main)
