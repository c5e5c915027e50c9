"""Notices between nodes through a real database, and what a node does while none come."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from svc.kernel.store.postgresql.cluster import notices
from svc.kernel.store.postgresql.cluster.nodes import Connect
from svc.kernel.store.postgresql.cluster.notices import GATHER_S, MAX_HELD, NOTICE_BYTES, POLL_INTERVAL_S, Notices
from svc.kernel.store.postgresql.connection.errors import SqlError
from svc.kernel.store.postgresql.connection.url import StoreUrl, store_url
from svc.kernel.store.postgresql.connection.wire import Timeouts, Wire
from tests.store.postgresql.nodes import connecting, running, until
from tests.support.postgresql import Cluster


class Heard:
    """The notices of one node, what has come to it, and how often it has looked by itself."""

    def __init__(self, connect: Connect, *, has_others: bool = True) -> None:
        self.notices = Notices(connect, jitter=lambda: 0.5, has_others=lambda: has_others)
        self.came: list[tuple[str, bytes]] = []
        self.looks = 0

    async def run(self) -> None:
        await self.notices.run(self._hear, self._look)

    async def _hear(self, channel: str, content: bytes) -> None:
        self.came.append((channel, content))

    async def _look(self) -> None:
        self.looks += 1


async def test_notices_reach_the_listeners_of_a_channel_in_order_and_not_the_sender(url: StoreUrl):
    sender, listener, other = (Heard(connecting(url)) for _ in range(3))
    for each in (sender, listener):
        each.notices.listen("ours")
    other.notices.listen("theirs")
    contents = [bytes([number]) * 100 for number in range(20)]
    async with running(sender, listener, other):
        for content in contents:
            sender.notices.send("ours", content)
        await until(lambda: len(listener.came) == 20)
        assert listener.came == [("ours", content) for content in contents]
        assert sender.came == other.came == []
        assert listener.notices.statistics().received == 20
        await until(lambda: sender.notices.statistics().sent == 20)  # it may be told after the listener


async def test_every_byte_and_the_longest_content_are_sent_and_a_longer_one_is_dropped(url: StoreUrl):
    sender, listener = (Heard(connecting(url)) for _ in range(2))
    listener.notices.listen("ours")
    longest = bytes(range(256)) * (NOTICE_BYTES // 256) + bytes(NOTICE_BYTES % 256)
    async with running(sender, listener):
        sender.notices.send("ours", longest + b"x")
        sender.notices.send("ours", longest)
        await until(lambda: listener.came)
    assert listener.came == [("ours", longest)]
    assert sender.notices.statistics().dropped == 1


async def test_notices_are_batched_and_sent_together(url: StoreUrl):
    made: list[Wire] = []

    async def connect(timeouts: Timeouts) -> Wire:
        made.append(await Wire.connect(url, timeouts))
        return made[-1]

    sender = Heard(connect)
    async with running(sender):
        (wire,) = made
        before = wire.round_trips
        began_s = trio.current_time()
        while trio.current_time() - began_s < 4 * GATHER_S or wire.round_trips - before < 2:
            sender.notices.send("ours", b"a word")
            await trio.sleep(0.001)
        assert 2 <= wire.round_trips - before <= 1 + (trio.current_time() - began_s) / GATHER_S


async def test_channels_can_be_joined_and_left_at_any_time(url: StoreUrl):
    sender, listener = (Heard(connecting(url)) for _ in range(2))
    listener.notices.listen("ours")
    async with running(sender, listener):

        async def is_heard(channel: str) -> None:
            with trio.fail_after(60):
                while (channel, b"now?") not in listener.came:
                    sender.notices.send(channel, b"now?")
                    await trio.sleep(0.02)

        listener.notices.listen("keeper")
        await is_heard("keeper")
        listener.notices.unlisten("keeper")
        await trio.sleep(0.1)
        listener.came.clear()
        sender.notices.send("keeper", b"gone")
        await is_heard("ours")
        assert ("keeper", b"gone") not in listener.came


async def test_a_cut_connection_is_replaced_and_the_node_has_polled_in_between(
    cluster: Cluster, database: str, url: StoreUrl
):
    sender, listener = (Heard(connecting(url)) for _ in range(2))
    listener.notices.listen("ours")
    async with running(sender, listener):
        looks = listener.looks
        cluster.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid != pg_backend_pid() "
            f"and datname = '{database}'"
        )
        await until(lambda: listener.looks > looks and listener.notices.statistics().listening)
        await until(lambda: sender.notices.statistics().listening)
        with trio.fail_after(60):
            while not listener.came:
                sender.notices.send("ours", b"back")
                await trio.sleep(0.05)


async def failing(_: Timeouts) -> Wire:
    raise SqlError("42601", 'at or near "listen": syntax error')


async def test_a_database_without_notices_is_polled_every_second(autojump_clock: MockClock):
    node = Heard(failing)
    with trio.move_on_after(30.5):
        await node.run()
    assert node.looks == pytest.approx(30 / POLL_INTERVAL_S, abs=1)
    assert not node.notices.statistics().listening


async def test_notices_sent_without_a_connection_are_dropped_and_do_not_accumulate(autojump_clock: MockClock):
    node = Heard(failing)
    for _ in range(MAX_HELD + 10):
        node.notices.send("ours", b"x")
    with trio.move_on_after(2):
        await node.run()
    assert node.notices.statistics().dropped == MAX_HELD + 10


async def test_silence_while_other_nodes_live_is_treated_as_missing_notices(
    url: StoreUrl, monkeypatch: pytest.MonkeyPatch
):
    """As behind a pooler that shares sessions: LISTEN is answered, and nothing ever comes."""
    monkeypatch.setattr(notices, "SILENT_S", 0.2)
    monkeypatch.setattr(notices, "POLL_INTERVAL_S", 0.05)
    deaf, alone, speaker = Heard(connecting(url)), Heard(connecting(url), has_others=False), Heard(connecting(url))
    for each in (deaf, alone):
        each.notices.listen("ours")
    async with running(deaf, alone, speaker):
        await until(lambda: deaf.looks > 4)
        assert not deaf.notices.statistics().listening
        assert alone.looks == 1
        assert alone.notices.statistics().listening
        speaker.notices.send("ours", b"here")
        await until(lambda: deaf.came)
        assert deaf.notices.statistics().listening


@pytest.mark.slow(0.5)
async def test_while_the_database_is_unreachable_a_node_retries_and_polls():
    node = Heard(connecting(store_url("postgresql://nobody@127.0.0.1:1/none")))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.run)
        await until(lambda: node.looks > 2)
        nursery.cancel_scope.cancel()


async def test_malformed_notices_are_ignored(cluster: Cluster, database: str, url: StoreUrl):
    sender, listener = (Heard(connecting(url)) for _ in range(2))
    listener.notices.listen("ours")
    async with running(sender, listener):
        cluster.execute("select pg_notify('ours', 'no base64!')", database)
        sender.notices.send("ours", b"sane")
        await until(lambda: listener.came)
    assert listener.came == [("ours", b"sane")]
