import threading
import time
import weakref
from contextlib import suppress
from ipaddress import ip_address
from itertools import pairwise
from uuid import UUID

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.values.ids import is_visitor_id
from svc.world import (
    LETTERS_AND_DIGITS,
    LONGEST_LEAD_MS,
    RequestIds,
    Undisturbed,
    World,
    numbers_from,
    twenty_characters,
    visitor_id,
)
from tests.support.worlds import EPOCH_MS, seeded_entropy


@given(st.lists(st.integers(0, 2**47), min_size=1, max_size=200), st.integers())
def test_no_request_id_is_more_than_an_hour_ahead_of_the_clock_and_all_differ(moments: list[int], seed: int):
    """Decisions 17.1."""
    make = RequestIds(seeded_entropy(seed))
    ids = [make(moment) for moment in moments]
    assert all(0 <= (one.int >> 80) - moment <= LONGEST_LEAD_MS for one, moment in zip(ids, moments, strict=True))
    assert len(set(ids)) == len(ids)


@given(st.lists(st.integers(2**40, 2**40 + LONGEST_LEAD_MS), min_size=1, max_size=200), st.integers())
def test_request_ids_are_monotonic_while_the_clock_is_set_by_less_than_an_hour(moments: list[int], seed: int):
    make = RequestIds(seeded_entropy(seed))
    ids = [make(moment) for moment in moments]
    assert all(earlier < later for earlier, later in pairwise(ids))
    assert [str(one) for one in ids] == sorted(str(one) for one in ids)


def test_ten_thousand_ids_of_one_millisecond_are_distinct_and_sorted():
    make = RequestIds(seeded_entropy(1))
    ids = [make(1_700_000_000_000) for _ in range(10_000)]
    assert ids == sorted(set(ids))


@given(st.integers(0, 2**47), st.integers())
def test_a_request_id_is_a_version_7_uuid_with_its_time(now_ms: int, seed: int):
    made = RequestIds(seeded_entropy(seed))(now_ms)
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert made.int >> 80 == now_ms
    assert UUID(str(made)) == made


def test_visitor_ids_are_in_the_order_of_their_seconds():
    """Also of years; those of one second differ, and have the form of a visitor id."""
    entropy = seeded_entropy(1)
    times_ms = [0, 999, 1000, 61_999, 62_000, EPOCH_MS, EPOCH_MS + 1000, EPOCH_MS + 10**12, 10**3 * 365 * 86_400_000]
    made = [visitor_id(entropy, at_ms) for at_ms in times_ms]
    assert all(is_visitor_id(one) for one in (*made, visitor_id(entropy, -1)))
    assert sorted(made[1:]) == made[1:]
    assert made[0][:6] == made[1][:6] < made[2][:6]
    assert len({visitor_id(entropy, EPOCH_MS)[6:] for _ in range(1000)}) == 1000


def test_twenty_characters_are_letters_and_digits():
    entropy = seeded_entropy(2)
    made = [twenty_characters(entropy) for _ in range(1000)]
    assert len(set(made)) == 1000
    assert all(len(text) == 20 and set(text) <= set(LETTERS_AND_DIGITS) for text in made)


async def test_the_real_world_runs_blocking_work_outside_the_event_loop():
    here = threading.get_ident()
    assert await World.real().run_sync(threading.get_ident) != here


async def test_an_exception_in_a_thread_reaches_the_caller():
    def fail() -> None:
        raise OSError("no such device")

    with pytest.raises(OSError, match="no such device"):
        await World.real().run_sync(fail)


class Passes:
    """Counts the passes of the loop, for ever."""

    def __init__(self) -> None:
        self.count = 0
        self.reached = threading.Event()
        """Set by the second pass."""

    async def run(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.count += 1
            if self.count == 2:
                self.reached.set()


async def test_the_loop_stands_still_while_a_thread_is_undisturbed():
    passes, pause = Passes(), Undisturbed(begin_s=60, pause_s=60)

    def work() -> tuple[int, int]:
        with pause:
            before = passes.count
            time.sleep(0.05)
            return before, passes.count

    async with trio.open_nursery() as nursery:
        nursery.start_soon(passes.run)
        before, after = await World.real().run_sync(work, undisturbed=pause)
        nursery.cancel_scope.cancel()
    assert before == after


async def test_the_loop_goes_on_when_a_failure_ends_an_undisturbed_block():
    pause = Undisturbed(begin_s=60, pause_s=60)

    def fail() -> None:
        with pause:
            raise OSError("no such device")

    with pytest.raises(OSError, match="no such device"):
        await World.real().run_sync(fail, undisturbed=pause)


class Kept:
    """Something that can be asked whether it is still there."""


@pytest.mark.usefixtures("no_garbage_collection")
async def test_a_failure_on_a_thread_leaves_no_reference_cycle():
    """What its traceback refers to is gone with it, and not when the garbage collector comes."""
    pause = Undisturbed(begin_s=60, pause_s=60)
    seen: list[weakref.ref[Kept]] = []

    def fail() -> None:
        kept = Kept()
        seen.append(weakref.ref(kept))
        with pause:
            raise OSError("no such device")

    with suppress(OSError):
        await World.real().run_sync(fail, undisturbed=pause)
    assert [one() for one in seen] == [None]


@pytest.mark.parametrize("is_begun", [False, True], ids=["not begun", "too long"])
async def test_the_loop_waits_for_an_undisturbed_block_no_longer_than_it_may(is_begun: bool):
    passes, pause = Passes(), Undisturbed(begin_s=60 if is_begun else 0, pause_s=0)

    def work() -> bool:
        if is_begun:
            with pause:
                return passes.reached.wait(60)
        return passes.reached.wait(60)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(passes.run)
        assert await World.real().run_sync(work, undisturbed=pause)
        nursery.cancel_scope.cancel()


def test_the_addresses_of_this_machine_are_known_and_others_are_not():
    is_own = World.real().is_own_address
    assert is_own(ip_address("127.0.0.1"))
    assert not any(is_own(ip_address(text)) for text in ("192.0.2.1", "81.2.69.160", "2001:db8::1"))


def test_a_seed_gives_the_same_numbers_on_every_machine():
    draw = numbers_from(7)
    assert [draw() for _ in range(3)] == [0.32383276483316237, 0.15084917392450192, 0.6509344730398537]
