"""The bus over real sockets: what is sent comes, in order and in time; what is lost or false harms nobody."""

from __future__ import annotations

import errno
import socket
from collections.abc import Generator
from contextlib import ExitStack, closing
from pathlib import Path
from uuid import UUID

import pytest
import trio
from structlog.testing import capture_logs

from svc.kernel.limits.lasting import LastingFault
from svc.kernel.values.errors import OperatorError
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import RefusedRequest
from svc.workers import bus as bus_module
from svc.workers.bus import (
    Alone,
    Committed,
    Due,
    Ended,
    IdentifiedMessage,
    Message,
    RefusedMessage,
    Removed,
    SocketBus,
    WorkerViewers,
    announce,
    name_of,
    pack,
    reach,
    unpack,
)
from svc.workers.shared_memory import WorkerSlot
from tests.http.test_console_stream import an_event

Pair = tuple[SocketBus, SocketBus]
QUEUE = EndpointKey(1, 2)
REFUSED = RefusedRequest(
    organization=1,
    key_id="key_x",
    code="rate_limited",
    status=429,
    environment="production",
    request_id=bytes(16),
    occurred_at_ms=5,
    origin=None,
    ip_address="192.0.2.1",
    count=3,
)


@pytest.fixture
def pair(tmp_path: Path) -> Generator[Pair]:
    with ExitStack() as stack:
        one, other = (stack.enter_context(closing(SocketBus(tmp_path, WorkerSlot(index, 2)))) for index in range(2))
        yield one, other


class Heard:
    """What a worker was sent."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._changed = trio.Event()

    async def __call__(self, message: Message) -> None:
        self.messages.append(message)
        self._changed.set()

    async def wait_for(self, count: int) -> list[Message]:
        with trio.fail_after(60):
            while len(self.messages) < count:
                self._changed = trio.Event()
                await self._changed.wait()
        return self.messages


async def some_passes() -> None:
    for _ in range(50):
        await trio.lowlevel.checkpoint()


async def test_every_message_arrives_as_it_was_sent(pair: Pair):
    sender, receiver = pair
    receiver.keep()
    messages: list[Message] = [
        Due((QUEUE, EndpointKey(3, 4))),
        Removed(QUEUE),
        RefusedMessage(REFUSED),
        IdentifiedMessage(1, UUID(int=7), an_event()),
        Ended(b"credential"),
        Committed(),
        WorkerViewers(0, (((1, "production"), 3),), is_new=True),
    ]
    assert unpack(pack(messages)) == messages
    heard = Heard()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receiver.run, heard)
        nursery.start_soon(sender.run, Heard())
        for message in messages:
            sender.to_leader(message)
        assert await heard.wait_for(len(messages)) == messages
        nursery.cancel_scope.cancel()


async def test_a_burst_waits_for_a_busy_receiver_and_stays_in_order(pair: Pair):
    """Kernels hold ten datagrams of a socket: all but those are sent again."""
    sender, receiver = pair
    heard, count = Heard(), 2_000
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender.run, Heard())
        for number in range(count):
            sender.to_worker(1, Ended(b"%d" % number + bytes(2_000)))
        await some_passes()
        nursery.start_soon(receiver.run, heard)
        found = await heard.wait_for(count)
        nursery.cancel_scope.cancel()
    assert [one.credential.rstrip(b"\0") for one in found if isinstance(one, Ended)] == [
        b"%d" % number for number in range(count)
    ]
    assert sender.dropped() == 0


async def test_messages_for_a_stuck_receiver_are_bounded_and_counted(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    sender, _ = pair
    monkeypatch.setattr(bus_module, "MAX_HELD", 10)
    for number in range(25):
        sender.to_others(Ended(b"%d" % number))
    assert sender.dropped() == 15


async def test_messages_that_the_system_refuses_are_one_line_and_not_one_each(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
):
    sender, _ = pair
    now_s = iter(range(1_000))
    monkeypatch.setattr(sender, "_unsent", LastingFault(lambda: float(next(now_s))))

    def refuse(*_: object) -> None:
        raise OSError(errno.EMSGSIZE, "Message too long")

    with monkeypatch.context() as refusing, capture_logs() as lines:
        refusing.setattr(bus_module, "_send", refuse)
        for _ in range(50):
            sender.to_worker(1, Committed())
            sender._send_held()
    assert lines == [
        {
            "event": "messages to workers are not sent",
            "log_level": "warning",
            "because": "Message too long",
            "doing": "worker-1",
        }
    ]
    assert sender.dropped() == 50
    with capture_logs() as lines:
        for _ in range(20):
            sender.to_worker(1, Committed())
            sender._send_held()
    assert [line["event"] for line in lines] == ["messages to workers are sent again"]


async def test_a_dead_worker_does_not_block_others_and_its_successor_is_reached(pair: Pair, tmp_path: Path):
    sender, receiver = pair
    receiver._plain.close()  # as the kernel does when its process dies
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender.run, Heard())
        sender.to_worker(1, Committed())
        await some_passes()
        assert sender.dropped() == 1
        with closing(SocketBus(tmp_path, WorkerSlot(1, 2))) as successor:
            heard = Heard()
            nursery.start_soon(successor.run, heard)
            sender.to_worker(1, Ended(b"x"))
            assert await heard.wait_for(1) == [Ended(b"x")]
            nursery.cancel_scope.cancel()


async def test_messages_for_the_leader_wait_for_the_next_keeper(pair: Pair):
    sender, receiver = pair
    heard, own = Heard(), Heard()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender.run, own)
        nursery.start_soon(receiver.run, heard)
        sender.to_leader(Due((QUEUE,)))
        await some_passes()
        assert heard.messages == []
        receiver.keep()
        assert await heard.wait_for(1) == [Due((QUEUE,))]
        sender.keep()
        receiver.to_leader(Removed(QUEUE))
        assert await own.wait_for(1) == [Removed(QUEUE)], "the link leads to the leader of now"
        nursery.cancel_scope.cancel()


async def test_a_command_reaches_every_worker_and_works_without_any(pair: Pair, tmp_path: Path):
    announce(tmp_path / "nowhere")
    heard = [Heard(), Heard()]
    async with trio.open_nursery() as nursery:
        for worker, listening in zip(pair, heard, strict=True):
            nursery.start_soon(worker.run, listening)
        announce(tmp_path)
        for listening in heard:
            assert await listening.wait_for(1) == [Committed()]
        nursery.cancel_scope.cancel()


async def test_garbage_is_dropped(pair: Pair, tmp_path: Path):
    _, receiver = pair
    heard = Heard()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receiver.run, heard)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
            for content in (b"", b"\xff", b"\x91\x91\xa3who", pack([Ended(b"x")])[:-1], pack([Ended(b"after")])):
                stranger.sendto(content, str(tmp_path / "run" / name_of(1)))
        assert await heard.wait_for(1) == [Ended(b"after")]
        nursery.cancel_scope.cancel()


def test_the_folder_is_readable_by_its_owner_only(tmp_path: Path):
    (tmp_path / "run").mkdir(mode=0o755)
    with reach(tmp_path, WorkerSlot()):
        assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_is_a_symbolic_link_is_rejected(tmp_path: Path):
    """Its target would lose its mode, and sockets would be made in it."""
    (elsewhere := tmp_path / "elsewhere").mkdir(mode=0o755)
    (data := tmp_path / "data").mkdir()
    (data / bus_module.DIRECTORY).symlink_to(elsewhere)
    with reach(data, WorkerSlot(0, 1)) as bus:
        assert isinstance(bus, Alone)
    with pytest.raises(OperatorError, match="Not a directory"), reach(data, WorkerSlot(0, 2)):
        pass
    announce(data)
    assert (elsewhere.stat().st_mode & 0o777, list(elsewhere.iterdir())) == (0o755, [])


def test_a_deep_data_directory_is_supported(tmp_path: Path):
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    with reach(deep, WorkerSlot()) as bus:
        assert isinstance(bus, SocketBus)


def test_without_sockets_one_worker_continues_and_several_do_not(tmp_path: Path):
    (tmp_path / "run").write_text("no folder")
    with reach(tmp_path, WorkerSlot()) as bus:
        assert isinstance(bus, Alone)
    with pytest.raises(OperatorError, match="set workers to 1"), reach(tmp_path, WorkerSlot(0, 2)):
        pass
