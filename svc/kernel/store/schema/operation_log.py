"""The operation log: what a commit changed, in bytes, and the follower.

What may live here: the form of a batch, and the record of a follower. A batch is what one commit left of the rows that
it touched, with the commit's moment; applied in order to a copy of the store, batches make it what the store became.

A batch in bytes: 16 bytes of the BLAKE3 of what follows; the moment in Unix milliseconds (8, big-endian); and a map of
the tables' names to maps of keys to values, in MessagePack. For a row that was deleted, nil stands for its value.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from blake3 import blake3

DIGEST_BYTES = 16
TIMELINE_BYTES = 16
_BODY = DIGEST_BYTES + 8

Changes = dict[str, dict[bytes, bytes | None]]
"""table -> key -> its value; `None` = the row is gone."""

_decoder = msgspec.msgpack.Decoder(Changes)


class Batch(NamedTuple):
    """The changes of one commit, and when it was made (Unix milliseconds)."""

    at_ms: int
    changes: Changes


class Following(msgspec.Struct, frozen=True, array_like=True):
    """The follower for which a store keeps its operation log."""

    timeline: bytes
    """16 random bytes, new whenever following begins again: batches of two timelines never continue one another."""
    since_ms: int
    destination: str
    """The folder that it copies to."""
    limit_bytes: int
    """What the log may take in the store before it is dropped."""
    lost_at_ms: int | None = None
    """When it was dropped. Since then nothing is written down, and the follower has to begin again."""
    lost_because: str = ""


def pack_batch(batch: Batch) -> bytes:
    """Return a batch as bytes: BLAKE3 digest, time, and the changes as MessagePack."""
    body = batch.at_ms.to_bytes(8) + msgspec.msgpack.encode(batch.changes)
    return blake3(body).digest(DIGEST_BYTES) + body


def batch_time_ms(raw: bytes) -> int:
    """Return the time (Unix ms) of a packed batch from its first bytes; nothing is verified."""
    return int.from_bytes(raw[DIGEST_BYTES:_BODY])


def unpack_batch(raw: bytes) -> Batch:
    """Read the bytes of `pack_batch`. Raises `ValueError` for bytes that are not a whole batch."""
    if blake3(raw[DIGEST_BYTES:]).digest(DIGEST_BYTES) != raw[:DIGEST_BYTES]:
        raise ValueError("the batch fails its check")
    return Batch(batch_time_ms(raw), _decoder.decode(raw[_BODY:]))  # both of its errors are ValueErrors
