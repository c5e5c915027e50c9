"""The bus: messages between the workers of one service, and from commands to them, over Unix datagram sockets.

Each worker has a socket DATA/run/worker-N; the link `LEADER` beside them leads to that of the leader. Sending never
waits: messages gather for a pass of the loop and leave in one datagram for each receiver. While a receiver takes
nothing they are held, `MAX_HELD` for each, and then dropped and counted.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol
from uuid import UUID

import msgspec
import structlog
import trio

from svc.identify.records import Event
from svc.kernel.limits.lasting import LastingFault
from svc.kernel.values.errors import OperatorError, explained
from svc.kernel.values.fields import Environment
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import RefusedRequest
from svc.kernel.work.leader import LEADER
from svc.workers.shared_memory import WorkerSlot
from svc.world import elapsed_s

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


log = structlog.get_logger()

DIRECTORY: Final = "run"
MAX_HELD: Final = 4_096
"""Messages that wait for one receiver."""
DATAGRAM_BYTES: Final = 49_152
"""Of one datagram, about, unless a single message is larger."""
BUFFER_BYTES: Final = 4 << 20
AGAIN_S: Final = 0.005
"""Between two tries to send to a receiver that takes nothing now. Kernels hold as few as ten datagrams."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FULL = frozenset({errno.EAGAIN, errno.ENOBUFS})
_ABSENT = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.ENOTSOCK})

MessageHandler = Callable[[Message], Awaitable[None]]


class Bus(Protocol):
    """Sends messages to the other workers. Only `run` waits, nothing fails, and any message may be lost. The methods of
    this class are right where one leader sends all webhooks.
    """

    index: int | None = None
    """The number of this worker; `None` where it has no bus."""
    is_leader: bool = False
    """Whether this worker is the leader."""

    def keep(self) -> None:
        """Become the leader: receive the messages to the leader from now on."""
        self.is_leader = True

    def resign(self) -> None:
        """Stop being the leader."""
        self.is_leader = False

    def to_leader(self, message: Message) -> None:
        """Send a message to the leader, which may be this worker: its own `run` handles it then."""
        ...

    def partition_of(self, queue: EndpointKey) -> int:  # noqa: ARG002  the leader sends all
        """Return the partition of an endpoint: messages to the sender are sent once for each partition."""
        return 0

    def sends(self, partition: int) -> bool:  # noqa: ARG002  as above
        """Return whether this worker sends the webhooks of a partition."""
        return self.is_leader

    def to_sender(self, partition: int, message: Message) -> None:  # noqa: ARG002  as above
        """Send a message to the worker that sends the webhooks of a partition."""
        self.to_leader(message)

    def to_worker(self, index: int, message: Message) -> None:
        """Send a message to another worker."""
        ...

    def to_others(self, message: Message) -> None:
        """Send a message to all other workers."""
        ...

    async def run(self, handle: MessageHandler) -> None:
        """Send what was handed over, and pass what is received to `handle`, in order, until cancelled."""
        ...


class Alone(Bus):
    """The bus of a worker without others: it is the leader, and receives no messages."""

    is_leader = True

    def resign(self) -> None:
        """Do nothing: the only worker stays the leader."""

    def to_leader(self, message: Message) -> None:
        """Raise `AssertionError`: the only worker is the leader and must not send to itself."""
        raise AssertionError(message)

    def to_worker(self, index: int, message: Message) -> None:
        """Do nothing: there is no other worker."""

    def to_others(self, message: Message) -> None:
        """Do nothing: there are no others."""

    async def run(self, handle: MessageHandler) -> None:  # noqa: ARG002  nothing comes
        """Sleep until cancelled: `handle` is never called."""
        await trio.sleep_forever()


class SocketBus(Bus):
    """A `Bus` over the sockets of a data directory. The link to the last leader stays until the next one replaces it.
    The caller closes it with `close`.
    """

    def __init__(self, directory: Path, slot: WorkerSlot) -> None:
        """Make DATA/run and the socket of this slot in it. Raises `OSError`."""
        self._slot = slot
        self._folder = open_folder(directory)
        self._plain = _bound(self._folder, name_of(slot.index))
        self._socket = trio.socket.from_stdlib_socket(self._plain)
        self._held: dict[str, deque[bytes]] = {}
        self._something = trio.Event()
        self._dropped = 0
        self._unsent = LastingFault(elapsed_s)
        self.index = slot.index if slot.workers > 1 else None

    def close(self) -> None:
        """Close the socket, after `run` has ended; its file stays, and the next worker of the slot takes it over."""
        self._plain.close()
        os.close(self._folder)

    def keep(self) -> None:
        """See `Bus`. Call this only while holding the leader's lock."""
        own, new = name_of(self._slot.index), f"{LEADER}.new"
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=self._folder)
        os.symlink(own, new, dir_fd=self._folder)
        os.replace(new, LEADER, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        super().keep()

    def to_leader(self, message: Message) -> None:
        """See `Bus`."""
        self._hold(LEADER, pack_one(message))

    def to_worker(self, index: int, message: Message) -> None:
        """See `Bus`."""
        self._hold(name_of(index), pack_one(message))

    def to_others(self, message: Message) -> None:
        """See `Bus`."""
        packed = pack_one(message)
        for index in range(self._slot.workers):
            if index != self._slot.index:
                self._hold(name_of(index), packed)

    def dropped(self) -> int:
        """Return the number of messages since the start that could not be sent."""
        return self._dropped

    async def run(self, handle: MessageHandler) -> None:
        """See `Bus`. What is not a message is logged and dropped."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._receive, handle)
            while True:
                await self._something.wait()
                self._something = trio.Event()
                self._send_held()
                if self._held:
                    await trio.sleep(AGAIN_S)
                    self._something.set()

    async def _receive(self, handle: MessageHandler) -> None:
        while True:
            content = await self._socket.recv(BUFFER_BYTES)
            try:
                messages = unpack(content)
            except msgspec.MsgspecError as error:
                log.warning("not a message of a worker", because=str(error))
                continue
            for message in messages:
                await handle(message)

    def _hold(self, name: str, packed: bytes) -> None:
        held = self._held.setdefault(name, deque())
        if len(held) >= MAX_HELD:
            self._dropped += 1
            return
        held.append(packed)
        self._something.set()

    def _send_held(self) -> None:
        for name, held in list(self._held.items()):
            while held:
                parts = _first(held)
                if not self._is_done_with(name, pack_parts(parts), len(parts)):
                    break
                for _ in parts:
                    held.popleft()
            if not held:
                del self._held[name]

    def _is_done_with(self, name: str, content: bytes, messages: int) -> bool:
        """Send one datagram. Return `False` if it is to be sent again: the receiver is busy, or there is no leader now.
        An absent worker has no viewers, and asks for what it needs when it is back.
        """
        try:
            _send(self._plain, self._folder, name, content)
        except OSError as error:
            if error.errno in _FULL or (name == LEADER and error.errno in _ABSENT):
                return False
            self._dropped += messages
            if error.errno not in _ABSENT and (fields := self._unsent.met(name, messages)) is not None:
                log.warning("messages to workers are not sent", because=error.strerror, **fields)
        else:
            if (fields := self._unsent.over()) is not None:
                log.info("messages to workers are sent again", **fields)
        return True


@contextmanager
def reach(directory: Path, slot: WorkerSlot) -> Generator[Bus]:
    """Return the bus of a worker that serves this data directory, for a `with` block. Raises `OperatorError` if several
    workers could not reach each other; a single worker goes on without, and finds what commands commit when it polls.
    """
    try:
        bus = SocketBus(directory, slot)
    except OSError as error:
        problem = explained("cannot make a socket in", directory / DIRECTORY, error)
        if slot.workers > 1:
            raise OperatorError(f"{problem}; several workers need it: set workers to 1, or use another disk") from error
        log.warning(problem, consequence="changes by commands are noticed some seconds later")
        yield Alone()
        return
    with closing(bus):
        yield bus


def announce(directory: Path) -> None:
    """Notify the workers that serve a data directory that another process has committed. Do nothing if no worker serves
    it or can be reached: they also poll.
    """
    with suppress(OSError), ExitStack() as stack:
        folder = os.open(directory / DIRECTORY, _FOLDER)
        stack.callback(os.close, folder)
        content = pack([Committed()])
        sending = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        sending.setblocking(False)
        for name in os.listdir(folder):  # noqa: PTH208  by its descriptor
            if name.startswith(_WORKER):
                with suppress(OSError):
                    _send(sending, folder, name, content)


_WORKER = "worker-"


def name_of(index: int) -> str:
    """Return the file name of a worker's socket."""
    return f"{_WORKER}{index}"


def open_folder(directory: Path) -> int:
    """Return a descriptor of DATA/run, which is created if missing; only its owner may look into it. Raises `OSError`,
    also if it is a link: in a data directory that a group can write to, a link could lead anywhere.
    """
    path = directory / DIRECTORY
    path.mkdir(mode=0o700, exist_ok=True)
    folder = os.open(path, _FOLDER)
    os.fchmod(folder, 0o700)
    return folder


def _bound(folder: int, name: str) -> socket.socket:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    receiving = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        receiving.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
    receiving.bind(_path(folder, name))
    receiving.setblocking(False)
    return receiving


def _path(folder: int, name: str) -> str:
    """Return a path by the folder's descriptor: the name of a socket has 107 bytes at most, and a data directory may
    lie deeper.
    """
    return f"/proc/self/fd/{folder}/{name}"


def _first(held: deque[bytes]) -> list[bytes]:
    """Return the messages of the next datagram."""
    parts: list[bytes] = []
    size = 0
    for packed in held:
        size += len(packed)
        if parts and size > DATAGRAM_BYTES:
            break
        parts.append(packed)
    return parts


def _send(sending: socket.socket, folder: int, name: str, content: bytes) -> None:
    sending.sendto(content, _path(folder, name))
