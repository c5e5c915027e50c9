"""Tokens that are renewed: whose key another one claimed, or was revoked (decisions 18.2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from svc.identify.matching import tokens as of_tokens
from svc.identify.matching.blocks import token_key
from svc.identify.matching.tokens import RENEWED
from tests.domain.matching_world import Seen, other_device
from tests.domain.test_matching_tokens import (
    ELSEWHERE,
    FAR,
    FORUM,
    HOME,
    MINE,
    NEIGHBOR,
    OTHERS,
    START_S,
    World,
    browser,
    signing,
    text_of,
    without_keys,
)

NEXT, THIRD = b"the key after it", b"a third key"
Before = tuple[str, bytes]
OLD: Before = (text_of("a"), MINE)


def claimed(days: int = 9, ip: str = ELSEWHERE) -> World:
    """Visitor 1, with whose token another key signed, too."""
    world = signing(days)
    world.comes("a", days, key=OTHERS, ip=ip)
    return world


def rivals() -> World:
    """Visitor 1, whose token had no key until two claimed it."""
    world = without_keys(5)
    world.comes("a", 5, key=OTHERS, ip=NEIGHBOR)
    world.comes("a", 6, key=MINE)
    return world


def renews(world: World, day: float, name: str = "n", before: Before = OLD, **more: Any) -> Seen:
    return world.comes(name, day, **{"key": NEXT, "new": True, "before": before} | more)


def revoke(world: World, name: str, day: int, number: int = 1) -> None:
    record, token = world.record(number), world.token(name, number)
    revoked = of_tokens.revoked(token, START_S + day * 86_400)
    world.visitors[number] = msgspec.structs.replace(record, tokens=of_tokens.replaced(record.tokens, revoked)).pack()


@pytest.mark.parametrize("ip", [HOME, NEIGHBOR, ELSEWHERE])
def test_the_owner_is_asked_to_renew_once_another_key_signed_with_the_token(ip: str) -> None:
    world = signing(9)
    assert not world.comes("a", 9, key=MINE).to_renew
    thief = world.comes("a", 9.1, key=OTHERS, ip=ip)
    assert (thief.token_conflict, thief.to_renew) == (True, False)
    for place in (HOME, FAR):
        owner = world.comes("a", 10, key=MINE, ip=place)
        assert (owner.number, owner.proven, owner.to_renew) == (1, True, True)
    assert world.most_visitor_writes <= 2


def test_an_unsigned_copy_asks_nobody_to_renew() -> None:
    world = signing(9)
    world.comes("a", 9, ip=ELSEWHERE)
    assert not world.comes("a", 10, key=MINE).to_renew


def test_a_replayed_report_asks_nobody_and_renews_nothing() -> None:
    world = claimed()
    assert not world.comes("a", 10, key=MINE, replayed=True).to_renew
    before = world.knows_nothing_new()
    assert not renews(world, 10, replayed=True).proven
    assert world.knows_nothing_new() == before


@pytest.mark.parametrize("ip", [HOME, ELSEWHERE])
def test_the_visitor_goes_along_with_a_token_whose_former_key_signed_too(ip: str) -> None:
    """The visit itself is proven, and every later one, from anywhere."""
    world = claimed()
    seen = renews(world, 10, ip=ip)
    assert (seen.number, seen.proven, seen.to_renew, seen.confidence) == (1, True, False, 100)
    for day, place in ((10.5, HOME), (11, FAR), (20, ELSEWHERE)):
        again = world.comes("n", day, key=NEXT, ip=place)
        assert (again.number, again.proven, again.to_renew, again.confidence) == (1, True, False, 100)
    assert world.leads("n") == (1,)


@pytest.mark.parametrize("day", [10.01, 12, 40])
@pytest.mark.parametrize("key", [None, OTHERS, THIRD], ids=["unsigned", "the thief's", "a third"])
def test_the_former_token_is_worth_nothing_without_its_key(day: float, key: bytes | None) -> None:
    world = claimed()
    renews(world, 10)
    seen = world.comes("a", day, key=key, ip=ELSEWHERE)
    assert (seen.number != 1, seen.token_conflict, seen.proven, seen.to_renew) == (True, True, False, False)
    assert world.comes("n", day + 0.1, key=NEXT).proven


def test_a_page_that_was_open_meanwhile_brings_the_former_token_once_more() -> None:
    """Two tabs: the other one had its report ready. Neither token is taken for another browser's, then or later."""
    world = claimed()
    renews(world, 10)
    for day in (10.01, 10.02, 11):
        late = world.comes("a", day, key=MINE)
        assert (late.number, late.proven, late.to_renew) == (1, True, False)
        own = world.comes("n", day + 0.001, key=NEXT)
        assert (own.number, own.proven) == (1, True)
    assert world.token("a").probation == RENEWED
    assert world.record().hidden(START_S + 12 * 86_400, 1.0) == 0.0


def test_a_renewal_that_is_sent_twice_is_one() -> None:
    """Its response was lost, or two tabs sent it: the new token is known and speaks for itself."""
    world = claimed()
    renews(world, 10)
    tokens = {token.hash for token in world.record().tokens}
    for day in (10.01, 11):
        again = renews(world, day)
        assert (again.number, again.proven) == (1, True)
    assert {token.hash for token in world.record().tokens} == tokens


def test_a_token_may_be_renewed_again() -> None:
    world = claimed()
    renews(world, 10)
    world.comes("n", 11, key=THIRD, ip=ELSEWHERE)
    assert world.comes("n", 12, key=NEXT).to_renew
    seen = renews(world, 13, "m", (text_of("n"), NEXT), key=b"the next one")
    assert (seen.number, seen.proven) == (1, True)
    assert world.comes("m", 14, key=b"the next one", ip=FAR).proven


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ((text_of("a"), OTHERS), {}),
        ((text_of("a"), NEXT), {}),
        ((text_of("z"), MINE), {}),
        (OLD, {"origin": FORUM}),
        (OLD, {"values": other_device("z")}),
    ],
    ids=["the thief's key", "the new key", "an unknown token", "another site", "another device"],
)
def test_nobody_goes_along_without_the_key_of_the_former_token(before: Before, more: dict[str, Any]) -> None:
    world = claimed()
    seen = renews(world, 10, before=before, ip=ELSEWHERE, **more)
    assert (seen.number != 1, seen.proven) == (True, False)
    assert world.comes("a", 11, key=MINE).proven


def test_a_former_token_cannot_be_renewed_twice() -> None:
    """Somebody restored the browser's storage: the second new token is a new one like any other."""
    world = claimed()
    renews(world, 10)
    seen = renews(world, 20, "m", key=THIRD, ip=ELSEWHERE)
    assert (seen.number != 1, seen.proven) == (True, False)


def test_an_owner_whose_key_was_overwritten_gets_a_token_that_is_proven() -> None:
    """A script put another key beside the old token. Its own is gone, so that report and network tell who it is."""
    world = signing(9)
    for day in (9, 10):
        seen = world.comes("a", day, key=OTHERS)
        assert (seen.number, seen.proven, seen.token_conflict, seen.to_renew) == (1, False, True, day == 10)
    renewed = renews(world, 11, before=(text_of("a"), OTHERS))
    assert (renewed.number, renewed.proven, renewed.token_conflict) == (1, False, False)
    days = [world.comes("n", day, key=NEXT) for day in range(12, 16)]
    assert [(day.number, day.proven, day.token_conflict) for day in days] == [(1, True, False)] * 4


# ---- a profile that was copied with its key, as to a new machine


def test_a_copied_profile_is_asked_to_renew_once_its_device_is_known_by_itself() -> None:
    """Not at once: a browser that adds noise may look like another device for a session."""
    world = signing(9)
    copy: dict[str, Any] = {"values": other_device("z"), "ip": ELSEWHERE}
    seen = [world.comes("a", day, key=MINE, **copy) for day in (9, 9.01, 9.3, 10)]
    assert [(each.number, each.token_conflict, each.to_renew) for each in seen] == [
        (2, True, False),
        (2, True, False),
        (2, True, False),
        (2, True, True),
    ]
    own = renews(world, 10.01, **copy)
    assert (own.number, own.token_conflict, own.to_renew) == (2, False, False)
    for day in range(11, 20):
        own = world.comes("n", day, key=NEXT, **copy)
        assert (own.number, own.token_conflict, own.to_renew) == (2, False, False)
        owner = world.comes("a", day + 0.1, key=MINE)
        assert (owner.number, owner.proven, owner.to_renew) == (1, True, False)
    assert world.comes("n", 20, key=NEXT, values=other_device("z"), ip=FAR).number == 2, "it has a token by now"


@pytest.mark.parametrize("key", [None, OTHERS], ids=["unsigned", "the thief's key"])
def test_a_token_that_was_copied_without_its_key_asks_no_thief_to_renew(key: bytes | None) -> None:
    world = signing(9)
    for day in (9, 10, 11):
        seen = world.comes("a", day, key=key, values=other_device("z"), ip=ELSEWHERE)
        assert (seen.number, seen.token_conflict, seen.to_renew) == (2, True, False)


# ---- rival keys, and keys that were revoked: nothing proves who it is, so report and network do


def test_the_one_at_home_is_asked_to_renew_a_token_that_two_keys_claim() -> None:
    world = rivals()
    for ip, asked in ((HOME, True), (ELSEWHERE, False)):
        seen = world.comes("a", 7, key=MINE, ip=ip)
        assert (seen.proven, seen.to_renew) == (False, asked)
    assert not world.comes("a", 7).to_renew, "it doesn't sign: it could not"


def test_a_visit_that_claims_such_a_token_is_at_most_89() -> None:
    """Decisions 18.1: a thief with token, report and a key of his own, and the owner, wherever they are."""
    world = rivals()
    for key, ip in ((OTHERS, ELSEWHERE), (OTHERS, NEIGHBOR), (MINE, HOME), (None, HOME), (MINE, FAR)):
        assert world.comes("a", 7, key=key, ip=ip).confidence <= 89


def test_rival_keys_do_not_go_along_and_the_owner_is_proven_again_by_its_new_token() -> None:
    world = rivals()
    seen = renews(world, 7)
    assert (seen.number, seen.proven, seen.to_renew) == (1, False, False)
    assert seen.confidence <= 89
    days = [world.comes("n", day, key=NEXT) for day in range(8, 14)]
    assert {day.number for day in days} == {1}
    assert all(day.proven for day in days)
    assert world.comes("n", 14, key=NEXT, ip=FAR).proven


@pytest.mark.parametrize("ip", [NEIGHBOR, ELSEWHERE])
def test_a_thief_who_goes_on_with_the_claimed_token_does_not_part_the_owner(ip: str) -> None:
    world = rivals()
    renews(world, 7)
    for day in range(8, 20):
        owner = world.comes("n", day, key=NEXT)
        thief = world.comes("a", day + 0.1, key=OTHERS, ip=ip)
        assert (owner.number, owner.proven) == (1, True)
        assert (thief.proven, thief.token_conflict) == (False, True)
        assert thief.number != 1 or (ip == NEIGHBOR and thief.confidence <= 89)


def test_a_revoked_key_proves_nothing_and_its_browser_is_asked_to_renew() -> None:
    world = signing(9)
    revoke(world, "a", 9)
    owner = world.comes("a", 9, key=MINE)
    assert (owner.number, owner.proven, owner.to_renew, owner.token_conflict) == (1, False, True, False)
    assert owner.confidence <= 89
    for _ in range(2):  # the first one makes no home of the place
        thief = world.comes("a", 9, key=MINE, ip=ELSEWHERE)
        assert (thief.proven, thief.to_renew) == (False, False)
        assert thief.confidence <= 89
    renewed = renews(world, 10)
    assert (renewed.number, renewed.proven) == (1, False)
    assert [world.comes("n", day, key=NEXT).proven for day in (11, 12)] == [True, True]
    gone = world.comes("a", 13, key=MINE, ip=ELSEWHERE)
    assert (gone.number != 1, gone.proven, gone.token_conflict) == (True, False, True)


@pytest.mark.parametrize("key", [MINE, OTHERS])
def test_a_revoked_key_does_not_join_again(key: bytes) -> None:
    world = signing(9)
    revoke(world, "a", 9)
    assert not any(world.comes("a", day, key=key).proven for day in range(9, 30))


def test_a_renewal_reads_a_block_and_a_record_more_than_others() -> None:
    world = claimed()
    world.most_block_reads = world.most_visitor_reads = world.most_visitor_writes = 0
    renews(world, 10)
    assert (world.most_block_reads, world.most_visitor_reads, world.most_visitor_writes) == (2, 1, 1)
    assert world.block(token_key(browser("a").token)).numbers == (1,)
