"""Which requests begin, and in which order (decisions 4)."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from svc.http.rows import ROWS_AT_ONCE, encoded
from svc.http.turnstile import AT_ONCE, KEYS_REMEMBERED, KnownKeys, Turnstile

KEY = "svc_pk_us_production_" + "a" * 49
HEAD = b"POST /api/v1/identify HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\n\r\n"


async def test_few_begin_in_a_pass_and_another_owner_is_next():
    turnstile, began = Turnstile(), []

    async def ask(owner: str, number: int) -> None:
        await turnstile.enter(owner)
        began.append((owner, number))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(ask, "busy", number)
        await wait_all_tasks_blocked()
        assert len(began) == AT_ONCE, "nobody else begins before the next pass"
        nursery.start_soon(ask, "quiet", 0)
        await wait_all_tasks_blocked()
        async with trio.open_nursery() as regulating:
            regulating.start_soon(turnstile.run)
            await wait_all_tasks_blocked()
            regulating.cancel_scope.cancel()
    assert began.index(("quiet", 0)) < 2 * AT_ONCE
    assert len(began) == 21


async def test_whoever_leaves_while_it_waits_takes_no_turn():
    turnstile = Turnstile()
    for _ in range(AT_ONCE):
        await turnstile.enter("a")
    with trio.move_on_after(0) as scope:
        await turnstile.enter("a")
    assert scope.cancelled_caught
    async with trio.open_nursery() as regulating:
        regulating.start_soon(turnstile.run)
        for _ in range(3 * AT_ONCE):
            await turnstile.enter("b")
        regulating.cancel_scope.cancel()


def test_a_request_belongs_to_the_organization_of_a_key_that_was_valid_and_else_to_its_address():
    keys = KnownKeys()
    assert keys.owner(HEAD % KEY.encode(), "81.2.69.1") == "81.2.69.1"
    keys.note(KEY, 7)
    assert keys.owner(HEAD % KEY.encode(), "81.2.69.1") == 7
    assert keys.owner(HEAD % (KEY[:-1] + "b").encode(), "81.2.69.1") == "81.2.69.1"
    assert keys.owner(b"GET / HTTP/1.1\r\n\r\n" + HEAD[:20], "81.2.69.1") == "81.2.69.1"
    for number in range(KEYS_REMEMBERED):
        keys.note(f"other {number}", 8)
    assert keys.owner(HEAD % KEY.encode(), "81.2.69.1") == "81.2.69.1", "memory is bounded"


async def test_rows_are_encoded_in_parts_with_others_in_between():
    others = 0

    async def count() -> None:
        nonlocal others
        while True:
            await trio.lowlevel.checkpoint()
            others += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        rows = await encoded(range(5 * ROWS_AT_ONCE), lambda part: [{"number": number} for number in part])  # pyright: ignore[reportArgumentType]  any JSON will do
        nursery.cancel_scope.cancel()
    assert b"".join(map(bytes, rows)) == b"".join(b'{"number":%d}' % number for number in range(5 * ROWS_AT_ONCE))
    assert others >= 2
