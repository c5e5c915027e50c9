"""What workers say to each other, and commands to them. Each message is one that may be lost.

Queues that were not named are found by the outbox's own look, a viewer whose session has ended by its own, and a live
event that was lost is missed by its viewers alone.
"""

from __future__ import annotations

from uuid import UUID

import msgspec

from svc.identify.records import Event
from svc.kernel.values.environments import Environment
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refused_requests import RefusedRequest

WatchKey = tuple[int, Environment]
"""What viewers watch: an organization, by number, and an environment."""


class Due(msgspec.Struct, frozen=True, array_like=True, tag="due"):
    """To the sender: a commit has made deliveries due in these queues, which are of one partition."""

    queues: tuple[EndpointKey, ...]


class Removed(msgspec.Struct, frozen=True, array_like=True, tag="removed"):
    """To the sender: an endpoint was removed."""

    queue: EndpointKey


class RefusedMessage(msgspec.Struct, frozen=True, array_like=True, tag="refused"):
    """To the leader: a request to count for `identification.refused`."""

    request: RefusedRequest


class IdentifiedMessage(msgspec.Struct, frozen=True, array_like=True, tag="identified"):
    """To a worker with viewers: an identification was committed."""

    organization: int
    request_id: UUID
    event: Event


class Ended(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    """To the others: a session or key is no longer valid."""

    credential: bytes
    """As of `LiveHub.watch`."""


class Committed(msgspec.Struct, frozen=True, array_like=True, tag="committed"):
    """To all, from a command: another process has changed the store."""


class WorkerViewers(msgspec.Struct, frozen=True, array_like=True, tag="standing"):
    """To the others, at the start, at each change of its viewers, and every few seconds."""

    worker: int
    viewers: tuple[tuple[WatchKey, int], ...]
    is_new: bool
    """Whether the worker has just begun, and asks the others for theirs."""


Message = Due | Removed | RefusedMessage | IdentifiedMessage | Ended | Committed | WorkerViewers

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[list[Message]] = msgspec.msgpack.Decoder(list[Message])


def pack(messages: list[Message]) -> bytes:
    """Return the content of one datagram with these messages, as MessagePack."""
    return _encoder.encode(messages)


def pack_one(message: Message) -> bytes:
    """Return one packed message, for `pack_parts`."""
    return _encoder.encode(message)


def pack_parts(parts: list[bytes]) -> bytes:
    """Return the content of one datagram with messages that `pack_one` packed."""
    return _encoder.encode([msgspec.Raw(part) for part in parts])


def unpack(content: bytes) -> list[Message]:
    """Return the messages of a datagram. Raises `msgspec.MsgspecError` for anything else."""
    return _decoder.decode(content)
