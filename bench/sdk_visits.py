"""Visits as the web SDK sends them, over HTTP: reports after gzip, each under a nonce of its own.

What differs between two visits of a device stands first in the body, in a block that gzip only stores; the rest is
compressed once, so that a load costs little beside what it measures.
"""

from __future__ import annotations

import json
import random
import time
import zlib
from collections.abc import Callable, Sequence
from itertools import count

from bench.load import own_address, senders
from bench.reports import Kind, sdk_report

_GZIP = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_FRESH = b'{"sdk":{"platform":"web","version":"0.1.0"},"signals":{"nonce":"%032x","collected_at":%013d,'


class SdkVisits:
    """Requests of so many devices, each with its client token and from a network of its own. Those of one device go
    to one of the organizations, whose keys are given when they are made.
    """

    def __init__(self, devices: int, kind: Kind = "large", *, token: bool = True) -> None:
        reports = [sdk_report(number, kind) for number in range(devices)]
        self._rests = [_rest(number if token else None, signals) for number, (signals, _) in enumerate(reports)]
        self._packed = [_packed(rest) for rest in self._rests]
        self._agents = [headers["user-agent"] for _, headers in reports]

    def __len__(self) -> int:
        return len(self._rests)

    def in_order(self, api_keys: Sequence[str], seed: int) -> Callable[[], bytes]:
        """The devices one after the other."""
        numbers = count()
        return self._maker(api_keys, seed, lambda: next(numbers) % len(self))

    def by_chance(self, api_keys: Sequence[str], seed: int) -> Callable[[], bytes]:
        """Any of the devices, each time."""
        chance = random.Random(seed)
        return self._maker(api_keys, seed, lambda: chance.randrange(len(self)))

    def returning(self, api_key: str, seed: int, share: float) -> Callable[[], bytes]:
        """As of `bench.load.requests`: this share of devices that came before."""
        return self._maker([api_key], seed, senders(random.Random(seed), len(self), share))

    @property
    def body_bytes(self) -> tuple[float, float]:
        """Of the bodies on average, as they are sent and as they are read."""
        fresh = len(_FRESH % (0, 0))
        sent, read = (sum(map(len, parts)) / len(self) for parts in (self._packed, self._rests))
        return sent + len(_GZIP) + len(_stored(b"")) + fresh + 8, read + fresh

    def _maker(self, api_keys: Sequence[str], seed: int, choose: Callable[[], int]) -> Callable[[], bytes]:
        chance = random.Random(f"ids {seed}")
        heads = [self._head(number, api_keys[number % len(api_keys)]) for number in range(len(self))]

        def make() -> bytes:
            number = choose()
            fresh = _FRESH % (chance.getrandbits(128), time.time_ns() // 1_000_000)
            rest = self._rests[number]
            end = zlib.crc32(rest, zlib.crc32(fresh)).to_bytes(4, "little")
            size = (len(fresh) + len(rest)).to_bytes(4, "little")
            body = b"".join((_GZIP, _stored(fresh), self._packed[number], end, size))
            return heads[number] % (chance.getrandbits(128), len(body)) + body

        return make

    def _head(self, number: int, api_key: str) -> bytes:
        return (
            "POST /api/v1/identify HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate, br\r\n"
            "Accept-Language: en-GB,en;q=0.9\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
            f"Origin: https://shop.example\r\nUser-Agent: {self._agents[number]}\r\n"
            f"X-Forwarded-For: {own_address(number)}\r\nX-Api-Key: {api_key}\r\n"
            "Idempotency-Key: %032x\r\nContent-Length: %d\r\n\r\n"
        ).encode()


def _rest(token: int | None, signals: dict[str, object]) -> bytes:
    fixed = {name: value for name, value in signals.items() if name not in ("nonce", "collected_at")}
    if token is not None:
        fixed["client_token"] = f"{token:032x}"
    return json.dumps(fixed, separators=(",", ":")).encode()[1:] + b"}"


def _packed(rest: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(rest) + packer.flush()


def _stored(data: bytes) -> bytes:
    """A block of a gzip body that is not the last one."""
    return b"\0" + len(data).to_bytes(2, "little") + (len(data) ^ 0xFFFF).to_bytes(2, "little") + data
