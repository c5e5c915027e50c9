"""What issuing and listing keys costs an organization that has revoked many.

A store gets so many keys, revoked at once. Then keys are issued in transactions of their own, and lists are asked for
over HTTP while every step of the event loop is timed.

    python -m bench.keys [--keys 36000] [--rounds 20]
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import tempfile
import time
from functools import partial
from itertools import count
from pathlib import Path

import trio

from bench.bodies import Steps
from svc.domain.credentials import ApiKey, digest, new_key
from svc.domain.refusals import Refusal
from svc.store.snapshot import Transaction
from svc.store.transactions import keys
from tests.support.live import Live, live_service

A_COMMIT = 500
NO_LIMIT = 1 << 60
ORIGINS = tuple(f"https://shop{number}.example" for number in range(3))
_numbers = count(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keys", type=int, default=36_000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    steps = Steps()
    trio.run(measure, options.keys, options.rounds, steps, instruments=[steps])


async def measure(many: int, rounds: int, steps: Steps) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        async with live_service(Path(directory), map_bytes=1 << 30) as live:
            _, management = live.issue("management")
            for start in range(0, many, A_COMMIT):
                live.found.store.write_one_now(partial(revoked, live, min(A_COMMIT, many - start)))
            print(f"{many:,} revoked keys")
            taken = sorted(issued_in_ms(live) for _ in range(rounds))
            print(f"issue: transaction p50 {statistics.median(taken):.2f} ms, longest {taken[-1]:.2f} ms")
            for what, path in (
                ("all SDK keys", "sdk-keys"),
                ("a page of 10 SDK keys", "sdk-keys?limit=10"),
                ("a page of 10 proxy keys, of which there are none", "proxy-credentials?limit=10"),
            ):
                url = f"/api/v1/management/organizations/{live.organization.id}/{path}"
                await trio.lowlevel.checkpoint()  # ends the step in which the store was filled
                steps.longest_ms = 0.0
                began = time.perf_counter()
                size = await trio.to_thread.run_sync(asked, live.port, url, management)
                seconds = time.perf_counter() - began
                print(f"{what}: {size:,} bytes in {seconds * 1000:.0f} ms, the loop held {steps.longest_ms:.1f} ms")


def revoked(live: Live, many: int, transaction: Transaction) -> None:
    """Store so many keys and revoke them."""
    for _ in range(many):
        key, key_digest = fresh(live)
        keys.store_key(transaction, key, key_digest)
        keys.revoke_key(transaction, key.id, live.clock.now_ms)


def issued_in_ms(live: Live) -> float:
    """Milliseconds that issuing one key takes inside its transaction."""
    key, key_digest = fresh(live)

    def job(transaction: Transaction) -> float:
        began = time.perf_counter()
        outcome = keys.issue_key(transaction, key, key_digest, keys_per_day=NO_LIMIT)
        assert not isinstance(outcome, Refusal), outcome
        return (time.perf_counter() - began) * 1000

    return live.found.store.write_one_now(job)


def fresh(live: Live) -> tuple[ApiKey, bytes]:
    """A new public key and the digest of its secret."""
    number = next(_numbers)
    key, secret = new_key(
        key_id=f"key_{number:020}",
        organization=live.organization.number,
        kind="public",
        name=f"key {number}",
        environment="production",
        region="us",
        entropy=live.world.entropy(32),
        now_ms=live.clock.now_ms + number,
        platforms=("web",),
        allowed_origins=ORIGINS,
    )
    return key, digest(live.found.pepper, secret)


def asked(port: int, path: str, key: str) -> int:
    """Bytes of the response to one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path, headers={"x-api-key": key})
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, body
    connection.close()
    return len(body)


if __name__ == "__main__":
    main()
