import pytest
import trio
from trio.testing import assert_checkpoints, assert_no_checkpoints, wait_all_tasks_blocked

from svc.kernel.work import mailbox
from svc.kernel.work.mailbox import GATHER_S, SLICE_S, Mailbox, OverloadedError, Reply


async def test_an_offer_to_a_full_mailbox_is_rejected_at_once():
    box = Mailbox[int](2)
    box.offer(1)
    box.offer(2)
    with pytest.raises(OverloadedError):
        box.offer(3)
    assert box.statistics().waiting == 2
    assert (box.statistics().accepted, box.statistics().refused) == (2, 1)


async def test_put_waits_for_capacity_so_that_backpressure_propagates():
    box = Mailbox[int](1)
    box.offer(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.put, 2)
        await wait_all_tasks_blocked()
        assert box.statistics().waiting == 1
        assert await box.batch(1) == [1]
    assert await box.batch(9) == [2]


async def test_a_reader_runs_for_one_time_slice_and_then_yields_to_other_tasks(mock_clock):
    box = Mailbox[int](4)
    with assert_no_checkpoints():
        for number in range(4):
            await box.put(number)
        assert await box.batch(1) == [0]
        assert await box.batch(1) == [1]
    mock_clock.jump(SLICE_S)
    with assert_checkpoints():
        assert await box.batch(1) == [2]
    with assert_no_checkpoints():
        assert await box.batch(1) == [3]


@pytest.mark.parametrize("capacity", [2, 8])
async def test_a_batch_includes_what_is_queued_in_the_preceding_stages(capacity: int, mock_clock, monkeypatch):
    monkeypatch.setattr(mailbox, "GATHER_S", 1.0)  # more than the stages need, in whichever order their tasks run
    first = Mailbox[int](8)
    second = Mailbox[int](8, source=first)
    third = Mailbox[int](capacity, source=second)

    async def pass_on(inbox: Mailbox[int], following: Mailbox[int]) -> None:
        for _ in range(5):
            for number in await inbox.batch(1):
                await following.put(number)
            mock_clock.jump(SLICE_S)  # so that each message is a pass of its own
        following.close()

    for number in range(5):
        first.offer(number)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pass_on, first, second)
        nursery.start_soon(pass_on, second, third)
        taken = await third.batch(4)
        assert taken == list(range(4))[:capacity], "a full box is not waited for"
        rest = [number for _ in range(0, 5 - len(taken), 2) for number in await third.batch(2)]
        assert taken + rest == [0, 1, 2, 3, 4]


async def test_a_batch_waits_for_the_preceding_stages_for_a_limited_time(mock_clock):
    stuck = Mailbox[int](8)
    box = Mailbox[int](8, source=stuck)
    stuck.offer(1)
    box.offer(2)

    async def pass_time() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            mock_clock.jump(GATHER_S / 8)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pass_time)
        began_at = trio.current_time()
        assert await box.batch(8) == [2]
        assert trio.current_time() - began_at == pytest.approx(GATHER_S, rel=0.3)
        nursery.cancel_scope.cancel()


async def test_a_batch_takes_the_oldest_messages_first_up_to_its_limit():
    box = Mailbox[int](10)
    for number in range(5):
        box.offer(number)
    assert await box.batch(3) == [0, 1, 2]
    assert await box.batch(3) == [3, 4]
    assert box.statistics().batches == 2


async def test_a_closed_mailbox_is_drained_and_accepts_no_more_messages():
    box = Mailbox[int](3)
    box.offer(1)
    box.close()
    with pytest.raises(OverloadedError):
        box.offer(2)
    assert await box.batch(9) == [1]
    with pytest.raises(trio.EndOfChannel):
        await box.batch(9)


async def test_a_reply_reaches_its_requester_and_tolerates_one_that_is_gone():
    reply = Reply[str]()
    with trio.move_on_after(0):
        await reply.wait()
    reply.set("late")
    assert await reply.wait() == "late"


async def test_setting_a_reply_twice_raises_an_error():
    reply = Reply[str]()
    reply.set("once")
    with pytest.raises(AssertionError, match="once"):
        reply.set("twice")


async def test_the_wait_of_a_message_is_measured_from_when_it_was_put(autojump_clock):
    box = Mailbox[int](1)
    box.offer(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(box.put, 2)
        await trio.sleep(0.2)
        assert await box.batch(1) == [1]
        await trio.sleep(0.2)
        assert await box.batch(1) == [2]
    waits = box.statistics().waits_s
    assert sum(waits.counts) == 2
    assert waits.total == pytest.approx(0.2 + 0.4)
