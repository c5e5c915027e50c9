"""Tokens have a place and a life: whose a report is when several tokens say several things (ADR 90).

Named after what happens in the world: equal devices, private windows, cleared storage, copied reports and cookies,
keys. The clock is the day and minute of a visit since `START_MS`, 08:13 UTC of its day.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.matching import Block, Statistics, StatisticsUpdate, Visitor, blocks, match_visitor, parameters
from svc.identify.matching import tokens as of_tokens
from svc.identify.matching.blocks import block_keys, exact_key, token_key
from svc.identify.matching.features import Features
from svc.identify.matching.parameters import ATTRIBUTE_COUNT, RECORDS_READ
from svc.identify.matching.tokens import DEVICE, IN_DOUBT, STRANGERS, TOKENS, UNKNOWN_ORIGIN, Token
from svc.identify.matching.visitor import first_record
from svc.identify.model import Attribute
from tests.domain.matching_world import (
    DAY_MS,
    DESKTOP_VALUES,
    MINUTE_MS,
    START_MS,
    Organization,
    Seen,
    features_of,
    other_device,
)
from tests.domain.test_matching_parts import TOKEN_ROWS, visitors

HOME, NEIGHBOR, ELSEWHERE, FAR = "81.2.69.142", "81.2.69.9", "203.0.113.9", "151.101.3.10"
SHOP, FORUM = "https://shop.example", "https://forum.example"
DAY_S = DAY_MS // 1000
START_S = START_MS // 1000


def text_of(name: str) -> str:
    return f"token-of-{name}-0123456789"


def browser(name: str | None, *, new: bool = False, ip: str = HOME, origin: str = SHOP, **more: Any) -> Features:
    """A report of one and the same kind of browser, with the token of this name."""
    token = None if name is None else text_of(name)
    return features_of(more.pop("values", None), token=token, token_is_new=new, ip=ip, origin=origin, **more)


class World(Organization):
    """Browsers that all report the same, unless told otherwise."""

    def comes(self, name: str | None, day: float = 0, **more: Any) -> Seen:
        """A visit on this day; the token of a name that never came is new."""
        new = more.pop("new", name is not None and not self.leads(name))
        replayed, flooding = more.pop("replayed", False), more.pop("flooding", False)
        now_ms = START_MS + int(day * DAY_MS)
        return self.visit(browser(name, new=new, **more), now_ms, replayed=replayed, flooding=flooding)

    def leads(self, name: str) -> tuple[int, ...]:
        return self.block(token_key(browser(name).token)).numbers

    def record(self, number: int = 1) -> Visitor:
        found = self.visitor(number)
        assert found is not None
        return found

    def token(self, name: str, number: int = 1) -> Token:
        found = self.record(number).token(browser(name).token)
        assert found is not None
        return found

    def names(self, number: int = 1) -> set[str]:
        """Of the tokens that the record has, those of one letter."""
        record = self.record(number)
        return {name for name in "abcdefghijklmnopqrstuvwxyz" if record.token(browser(name).token)}

    def is_listed(self, number: int) -> bool:
        listed = self.record(number).listed
        assert (number in self.block(exact_key(browser(None).exact)).numbers) is listed
        return listed

    def knows_nothing_new(self) -> tuple[dict[int, bytes], dict[bytes, bytes]]:
        return dict(self.visitors), dict(self.blocks)


MINUTE = MINUTE_MS / DAY_MS


# ---- twins: two equal devices with a token each, behind one address


@pytest.mark.parametrize("pause", [MINUTE, 1.0], ids=["minutes", "days"])
@pytest.mark.parametrize("first", ["a", "b"])
def test_twins_part_once_both_came_back_and_each_keeps_its_id(first: str, pause: float) -> None:
    """The first visit of the second cannot know. No matter which comes back first, the older token keeps the id."""
    world = World()
    assert world.comes("a").number == 1
    assert world.comes("b", pause).number == 1
    order = ["a", "b"] if first == "a" else ["b", "a", "b"]
    *_, seen = [world.comes(name, visit * pause) for visit, name in enumerate(order, start=2)]
    assert (seen.is_new, seen.number, seen.split_from) == (True, 2, 1)
    for day, ip in enumerate([HOME, ELSEWHERE, HOME, FAR], start=10):
        for name, number in (("a", 1), ("b", 2)):
            again = world.comes(name, day, ip=ip)
            assert (again.number, again.outcome, again.confidence) == (number, "token", 100)
    assert (world.names(1), world.names(2)) == ({"a"}, {"b"})


def test_a_split_takes_the_token_with_its_age_and_leaves_the_rest_of_the_record() -> None:
    world = World()
    world.comes("a")
    world.comes("b", 1)
    world.comes("a", 2)
    before, since_s = world.record(), world.token("b").first_s
    assert world.token("b").probation == STRANGERS
    assert world.comes("b", 3).split_from == 1
    assert world.record() == before.without_token(world.token("b", 2))
    assert (world.token("b", 2).first_s, world.token("b", 2).probation) == (since_s, 0)
    assert since_s == START_S + DAY_S
    assert world.leads("b") == (2, 1), "the newest is whose it is"
    assert world.most_visitor_writes == 2


def test_a_stranger_whose_device_is_known_moves_there_and_makes_no_visitor() -> None:
    """Its report is that of another visitor's, so that there is nothing to split."""
    world = World()
    other = other_device("of the office")
    world.comes("a")
    for day in range(3):
        assert world.comes("c", day, values=other, ip=NEIGHBOR).number == 2
    world.comes("b", 3)
    world.comes("a", 4)
    seen = world.comes("b", 5, values=other, ip=NEIGHBOR)
    assert (seen.number, seen.split_from) == (2, None)


def test_a_third_equal_device_is_new_at_once_while_two_hide_behind_one_visitor() -> None:
    """The second came back and is known to be another; a first visit without a live token is not affected."""
    world = World()
    world.comes("a")
    world.comes("b", 1)
    world.comes("b", 2)
    world.comes("a", 3)
    assert world.record().hidden(START_S + 3 * DAY_S, 0.0) == 1.0
    assert world.comes("c", 4).is_new
    world.comes("b", 5)
    assert world.record().hidden(START_S + 5 * DAY_S, 1.0) == 0.0


def learned(*, waited: int, found: int) -> Statistics:
    statistics = Statistics()
    for visit in range(waited):
        features = browser(None, values=other_device(str(visit)))
        statistics.learn(StatisticsUpdate(features=features, twins_waited=True, twins_found=int(visit < found)))
    return statistics


@pytest.mark.parametrize(("waited", "found", "parts"), [(0, 0, False), (40, 0, False), (40, 6, True), (40, 40, True)])
def test_where_older_tokens_were_twins_the_next_one_is_parted_at_its_first_return(
    waited: int, found: int, parts: bool
) -> None:
    world = World()
    world.statistics = learned(waited=waited, found=found)
    world.comes("a")
    assert world.comes("b", 1).number == 1
    seen = world.comes("b", 2)
    assert (seen.is_new, seen.split_from) == ((True, 1) if parts else (False, None))
    assert world.comes("a", 3).number == 1


def test_an_older_token_that_is_long_silent_was_cleared_however_many_twins_there_were() -> None:
    world = World()
    world.statistics = learned(waited=40, found=6)
    for day in range(10):
        world.comes("a", day)
    world.comes("b", 10)
    assert world.comes("b", 60).number == 1
    assert world.token("b").probation in (0, parameters.JOINED_DAYS)


def test_statistics_count_tokens_that_waited_and_those_that_were_strangers() -> None:
    world = World()

    def update(name: str, day: float) -> tuple[bool, int]:
        features = browser(name, new=not world.leads(name))
        now_ms = START_MS + int(day * DAY_MS)
        told = match_visitor(world, world.statistics, features, now_ms).statistics_update
        world.comes(name, day)
        return told.twins_waited, told.twins_found

    assert update("a", 0) == (False, 0)
    assert update("b", 1) == (False, 0)
    assert update("b", 2) == (True, 0), "it came back first, the older one silent"
    assert update("b", 3) == (False, 0), "once"
    assert update("a", 4) == (False, 1)
    assert update("c", 5)[0] is False
    odds = Statistics().twin_odds()
    assert world.statistics.twin_odds() > odds


@pytest.mark.parametrize("older_one_returns", [False, True], ids=["storage was cleared", "equal devices"])
def test_what_was_parted_at_its_first_return_shows_later_whether_that_was_right(older_one_returns: bool) -> None:
    """One pair in a young organization: else all who clear their storage would be new there, for good."""
    world = World()
    world.statistics = learned(waited=1, found=1)
    parted: list[bool] = []
    for place in range(20):
        values, start = other_device(str(place)), 40 * place
        for day in range(5):
            world.comes(f"a{place}", start + day, values=values)
        world.comes(f"b{place}", start + 5, values=values)
        parted.append(world.comes(f"b{place}", start + 5 + MINUTE, values=values).is_new)
        for day in range(6, 20):
            world.comes(f"b{place}", start + day, values=values)
            if older_one_returns:
                world.comes(f"a{place}", start + day + MINUTE, values=values)
    assert parted[:5] == [True] * 5
    assert parted[-5:] == [older_one_returns] * 5


def test_a_former_visitor_that_is_gone_is_not_asked_for() -> None:
    """A store takes a number that leads nowhere, and is in no list of those that were deleted, for corruption."""
    world = World()
    world.statistics = learned(waited=1, found=1)
    for day, name in enumerate("abb"):
        world.comes(name, day)
    assert world.names(2) == {"b"}
    del world.visitors[1]
    world.blocks = {key: Block.unpack(raw).without(1).pack() for key, raw in world.blocks.items()}
    world.comes("b", 15)
    assert 1 not in world.visitors_read


@pytest.mark.slow(0.2)
def test_the_memory_of_twins_is_bounded() -> None:
    statistics = learned(waited=int(parameters.TWINS_REMEMBERED), found=int(parameters.TWINS_REMEMBERED))
    certain = statistics.twin_odds()
    for _ in range(int(parameters.TWINS_REMEMBERED)):
        statistics.learn(StatisticsUpdate(features=browser(None), twins_waited=True))
    assert statistics.twin_odds() < certain / 100
    assert Statistics.of_rows(statistics.rows()).twin_odds() == statistics.twin_odds()


# ---- private windows


def test_a_private_window_beside_the_ordinary_one_is_no_stranger_while_it_may_be_open() -> None:
    world = World()
    for day in range(3):
        world.comes("a", day)
    assert world.comes("p", 3, private=True).number == 1
    for visit in range(1, 5):
        assert world.comes("a", 3 + visit * MINUTE).number == 1
        assert world.comes("p", 3 + (visit + 0.5) * MINUTE, private=True).number == 1
    assert world.token("p").private
    # The next day it is closed: one that still comes is another browser.
    world.comes("a", 4)
    assert world.token("p").probation == STRANGERS
    seen = world.comes("p", 5, private=True)
    assert (seen.is_new, seen.split_from) == (True, 1)


def test_the_token_of_a_private_window_proves_nothing_elsewhere() -> None:
    """Nor is it taken for a twin's where twins are common."""
    world = World()
    world.statistics = learned(waited=40, found=40)
    for day in range(3):
        world.comes("a", day)
    world.comes("p", 3, private=True)
    before = world.record()
    assert world.comes("p", 3 + MINUTE, private=True).outcome == "token"
    away = world.comes("p", 3 + 2 * MINUTE, private=True, ip=ELSEWHERE)
    assert away.outcome not in ("token", "doubted_token")
    assert world.record().token(browser("a").token) == before.token(browser("a").token)


def test_a_token_that_outlives_its_private_window_proves_its_visitor_as_any_other() -> None:
    world = World()
    for day in range(3):
        world.comes("a", day)
    world.comes("b", 3, private=True)
    confidences = [world.comes("b", day).confidence for day in (4, 5)]
    assert (confidences, world.token("b").private, world.token("b").probation) == ([89, 100], False, 0)
    away = world.comes("b", 6, ip=ELSEWHERE)
    assert (away.number, away.confidence) == (1, 100)


@pytest.mark.parametrize("private", [True, False], ids=["flagged", "unseen"])
@pytest.mark.parametrize("windows", [3, 6, 20])
def test_after_private_windows_the_ordinary_token_proves_its_visitor_elsewhere(windows: int, *, private: bool) -> None:
    """In a row, each with a token that never comes back, whether a collector sees that they are private or not."""
    world = World()
    for day in range(3):
        world.comes("a", day)
    for window in range(windows):
        world.comes(f"window {window}", 3 + window / 4, private=private)
    away = world.comes("a", 4 + windows / 4, ip=ELSEWHERE)
    assert (away.number, away.outcome, away.confidence) == (1, "token", 100)
    assert all(token.probation == 0 for token in world.record().tokens if token.hash == browser("a").token)


def test_a_new_visitor_that_may_be_a_private_window_is_listed_once_it_comes_back_on_another_day() -> None:
    world = World()
    for day in range(3):
        world.comes("a", day)
    *_, seen = [world.comes(name, 3 + visit * MINUTE) for visit, name in enumerate("paq")]
    # The older token outlived the first new one: the second may be a twin's, and counts as a device when it comes back.
    assert (seen.is_new, world.is_listed(seen.number)) == (True, False)
    assert world.comes("q", 3 + 10 * MINUTE).number == seen.number
    assert not world.is_listed(seen.number)
    assert world.comes("q", 4).number == seen.number
    assert world.is_listed(seen.number)
    assert {key for key, raw in world.blocks.items() if seen.number in blocks.Block.unpack(raw).numbers} == {
        *block_keys(browser("q"))
    }


def test_a_browser_that_clears_its_storage_at_exit_does_not_push_out_its_own_past() -> None:
    """Each visit has another token. The visits that are joined are one visitor's, the lists stay bounded."""
    world = World()
    numbers = [world.comes(f"session {day}", day).number for day in range(40)]
    assert numbers.count(1) >= 20
    assert max(len(world.record(number).tokens) for number in set(numbers)) == TOKENS
    assert not any(world.record(number).keeps_tokens for number in set(numbers))


# ---- cleared storage


def owned() -> World:
    """Visitor 1 has the token a, which came back on two days; b joined at home on the fourth, a being silent since."""
    world = World()
    for day in range(3):
        world.comes("a", day)
    assert world.comes("b", 3).confidence == 89
    return world


def test_who_cleared_the_storage_at_home_is_known_at_home_at_once() -> None:
    world = owned()
    for visit in range(1, 5):
        seen = world.comes("b", 3 + visit / 2)
        assert (seen.number, seen.outcome, seen.confidence) == (1, "token", 89 if visit < 4 else 100)


def test_who_cleared_the_storage_and_travels_at_once_is_provisional_and_nothing_is_learned() -> None:
    """A neighbor's first visit leaves the same traces: confidence 85, and the record stays as it is."""
    world = owned()
    before = world.knows_nothing_new()
    away = world.comes("b", 3 + 60 * MINUTE, ip=ELSEWHERE)
    assert (away.number, away.outcome, away.confidence, away.token_conflict) == (1, "doubted_token", 85, False)
    assert world.knows_nothing_new() == before
    assert world.comes("a", 4, ip=FAR).confidence == 100, "the older one proves what it did"
    assert world.token("b").probation == STRANGERS


def test_a_new_token_is_proven_after_it_came_home_on_another_day_and_the_older_one_was_silent_for_days() -> None:
    world = owned()
    standing: list[str] = []
    for day in (4, 5, 6):
        world.comes("b", day)
        world_now = START_MS + day * DAY_MS + MINUTE_MS
        standing.append(match_visitor(world, world.statistics, browser("b", ip=ELSEWHERE), world_now).outcome)
    assert standing == ["doubted_token", "token", "token"], "the older one came last on day 2"
    assert world.token("b").probation == 0
    assert world.comes("b", 7, ip=ELSEWHERE).confidence == 100


def test_a_new_token_is_not_proven_while_the_older_one_comes() -> None:
    world = owned()
    world.comes("b", 4)
    world.comes("a", 4.5)
    assert world.comes("b", 5).split_from == 1


@pytest.mark.parametrize(("silent_days", "outcome"), [(9, "doubted_token"), (10, "token")])
def test_without_a_further_visit_at_home_a_new_token_is_proven_when_the_older_one_was_silent_for_long(
    silent_days: int, outcome: str
) -> None:
    """A visitor that came three times: after ten days; one that comes daily after fewer."""
    world = World()
    world.comes("a")
    world.comes("b", 1)
    assert world.comes("b", 1 + silent_days, ip=ELSEWHERE).outcome == outcome


def test_an_older_token_is_taken_to_be_gone_the_sooner_the_oftener_its_visitor_comes() -> None:
    silent: list[int] = []
    for daily in (1, 5, 30):
        world = World()
        for day in range(daily):
            world.comes("a", day)
        world.comes("b", daily)
        token = world.token("b")
        silent.append(
            next(days for days in range(1, 12) if world.record().has_replaced(token, token.first_s + days * DAY_S))
        )
    assert silent == sorted(silent, reverse=True)
    assert (silent[0], silent[-1]) == (parameters.OPEN_DAYS, parameters.SILENT_DAYS)
    with_one_token = World()
    with_one_token.comes("a")
    alone = with_one_token.token("a")
    assert not with_one_token.record().has_replaced(alone, START_S + 99 * DAY_S), "there is nothing to replace"


def test_a_token_that_joined_in_doubt_proves_nothing_elsewhere_however_old_it_is_alone() -> None:
    token = Token(2, 5, START_S, START_S, IN_DOUBT)
    visitor = msgspec.structs.replace(first_record(browser(None), START_MS), tokens=(token,))
    assert not visitor.has_replaced(token, START_S + 99 * DAY_S)
    for day in range(1, 5):
        came = browser("x", ip=HOME)
        came = msgspec.structs.replace(came, token=token.hash)
        token = of_tokens.come_back(token, came, START_S + day * DAY_S, at_home=True, others=(token,))
    assert token.probation == 0


# ---- copied reports and cookies


def test_a_report_copied_to_the_victims_address_is_never_the_victim_with_certainty_and_takes_nothing() -> None:
    """The thief sends it once from there with a token of his own, and goes on from elsewhere while the victim comes."""
    world = World()
    for day in range(3):
        world.comes("a", day)
    world.comes("t", 3)
    away = [world.comes("t", 3 + hours / 24, ip=ELSEWHERE) for hours in (1, 5)]
    assert all(seen.confidence == 85 for seen in away)
    assert world.comes("a", 4).confidence == 100
    thief = world.comes("t", 5, ip=ELSEWHERE)
    assert thief.number != 1
    for day, ip in ((6, HOME), (7, ELSEWHERE), (8, FAR)):
        assert (world.comes("a", day, ip=ip).number, world.comes("t", day, ip=ip).number) == (1, thief.number)
    assert world.names() == {"a"}


def test_a_planted_cookie_makes_no_other_device_its_visitor() -> None:
    """Cookie tossing: an attacker's token in a victim's browser, from the victim's own address and device."""
    world = World()
    mine, theirs = other_device("the victim"), other_device("the attacker")
    for day in range(3):
        world.comes("t", day, values=theirs, ip=ELSEWHERE)
        world.comes("a", day, values=mine)
    planted = world.comes("t", 3, values=mine)
    assert (planted.number, planted.token_conflict) == (2, True)
    assert world.names(2) == {"a"}, "the planted token does not become the victim's"
    assert world.comes("t", 4, values=theirs, ip=FAR).number == 1
    assert world.comes("a", 5, values=mine, ip=FAR).number == 2


@pytest.mark.parametrize(("origins", "visitors_made"), [((SHOP, FORUM), 1), ((SHOP, SHOP), 2)])
def test_one_browser_on_two_sites_has_a_token_on_each(origins: tuple[str, str], visitors_made: int) -> None:
    world = World()
    for day in range(12):
        place = day % 2
        world.comes("ab"[place], day, origin=origins[place], ip=[HOME, HOME, ELSEWHERE][day % 3] if day > 5 else HOME)
    assert world.last_number == visitors_made
    if visitors_made == 1:
        assert world.names() == {"a", "b"}
        assert len({token.origin for token in world.record().tokens}) == 2


# ---- tokens of unknown origin, which store version 4 kept


def after_an_upgrade(*names: str) -> World:
    """Visitor 1 as 0.2.0 wrote it: its tokens came back, of one site or several."""
    world = World()
    visitor = first_record(browser(names[0]), START_MS)
    kept = of_tokens.of_version_4(
        tuple(browser(name).token | 1 for name in names), (0,) * len(names), START_S, START_S + DAY_S
    )
    visitor = msgspec.structs.replace(visitor, visitor_id="1" * 20, tokens=kept)
    world.visitors[1], world.last_number = visitor.pack(), 1
    for key in {*block_keys(browser(names[0])), *(token_key(browser(name).token) for name in names)}:
        world.blocks[key] = world.block(key).with_posting(1, 1.0).pack()
    return world


def test_old_tokens_get_their_origin_when_they_come_back() -> None:
    world = after_an_upgrade("a", "b")
    assert {token.origin for token in world.record().tokens} == {UNKNOWN_ORIGIN}
    world.comes("a", 2, origin=SHOP)
    assert (world.token("a").origin, world.token("b").origin) == (browser("a").origin, UNKNOWN_ORIGIN)
    assert world.token("a").first_s == START_S


def test_a_browser_on_two_sites_is_one_visitor_after_the_upgrade() -> None:
    world = after_an_upgrade("a", "b")
    for day in range(2, 10):
        seen = world.comes("ab"[day % 2], day, origin=(SHOP, FORUM)[day % 2])
        assert (seen.number, seen.outcome, seen.confidence) == (1, "token", 100)


def test_two_browsers_that_an_earlier_version_joined_part_after_the_upgrade() -> None:
    """Once each came back, and then the one that was there first, which keeps the id."""
    world = after_an_upgrade("b", "a")
    assert [world.comes(name, day).number for day, name in enumerate("baa", start=2)] == [1, 1, 1]
    seen = world.comes("b", 6)
    assert (seen.is_new, seen.split_from) == (True, 1)
    assert world.comes("a", 7, ip=FAR).number == 1


# ---- what is kept


def token_of(place: int, *, live: bool = False, stranger: bool = False, last: int = 0) -> Token:
    return Token(2 * (place + 1), 7, START_S, START_S + last, STRANGERS if stranger else 0, came_back=live)


def test_strangers_are_given_up_first_then_tokens_that_never_came_back_then_the_longest_silent() -> None:
    live = [token_of(place, live=True, last=place) for place in range(4)]
    dead = [token_of(10 + place, last=100 + place) for place in range(4)]
    strangers = [token_of(20 + place, live=place > 1, stranger=True, last=200 + place) for place in range(4)]
    newest = [token_of(40 + place, live=True, last=500) for place in range(TOKENS)]
    left = [newest[0], *dead, *strangers, *live, *newest[1:]]
    gone: list[Token] = []
    while len(left) > TOKENS:
        after = of_tokens.kept(tuple(left[: TOKENS + 1])) + tuple(left[TOKENS + 1 :])
        (lost,) = set(left) - set(after)
        gone.append(lost)
        left = list(after)
    assert gone == [*strangers, *dead, *live]


def test_of_tokens_of_one_second_the_oldest_but_the_first_is_given_up() -> None:
    """The visitor began with the first."""
    equal = tuple(token_of(place) for place in range(TOKENS + 1))
    assert of_tokens.kept(equal) == (*equal[:-2], equal[-1])


def test_a_token_that_came_back_is_never_given_up_for_one_that_did_not() -> None:
    world = World()
    for day in range(3):
        world.comes("a", day)
    for number in range(3 * TOKENS):
        world.comes(f"flood {number}", 3 + number * MINUTE)
    assert "a" in world.names()
    assert len(world.record().tokens) <= TOKENS


@pytest.mark.parametrize("number", [1, 7])
def test_the_token_of_a_wiped_visitor_is_as_good_as_new(number: int) -> None:
    """Erased, or never kept: its block may name it for a while."""
    world = World()
    world.comes("a", values=other_device("another"))
    world.visitors.clear()
    world.blocks[token_key(browser("a").token)] = blocks.Block(1.0, (number,)).pack()
    seen = world.comes("a", 1)
    assert (seen.is_new, seen.outcome, seen.token_conflict, seen.split_from) == (True, "no_candidate", False, None)
    assert world.comes("a", 2, ip=ELSEWHERE).number == seen.number


def test_a_split_from_a_visitor_that_was_erased_meanwhile_is_an_ordinary_new_visitor() -> None:
    world = World()
    world.comes("a")
    world.comes("b", 1)
    world.comes("a", 2)
    del world.visitors[1]
    seen = world.comes("b", 3)
    assert (seen.is_new, seen.split_from) == (True, None)


# ---- keys


MINE, OTHERS = b"public key of the browser", b"another public key"


def signing(days: int, *, since: int = 0) -> World:
    """Visitor 1, whose browser signed its reports on so many days."""
    world = World()
    world.comes("a", 0, **({} if since else {"key": MINE}))
    for day in range(1, days):
        world.comes("a", day, **({"key": MINE} if day >= since else {}))
    return world


def test_the_key_of_the_first_visit_is_kept_and_the_next_ones_are_proven() -> None:
    world = World()
    assert not world.comes("a", key=MINE).proven, "there is nothing to compare it with"
    assert (world.token("a").key, world.token("a").key_s) == (browser("a", key=MINE).key, START_S)
    for ip in (HOME, ELSEWHERE):
        seen = world.comes("a", 1, key=MINE, ip=ip)
        assert (seen.proven, seen.confidence) == (True, 100)
    assert not world.comes("a", 2).proven


def without_keys(days: int = 2) -> World:
    """Visitor 1, whose browser came home unsigned on so many days."""
    world = World()
    for day in range(days):
        world.comes("a", day)
    return world


@pytest.mark.parametrize(("ip", "days"), [(HOME, 3), (NEIGHBOR, 5), (ELSEWHERE, 5)])
def test_a_key_joins_on_three_days_at_the_visitors_address_or_on_five_anywhere(ip: str, days: int) -> None:
    """Decisions 18.2; several visits of a day are one, and unsigned ones between do not count."""
    world = without_keys()
    for day in range(10, 9 + days):
        for moment in (0.0, 0.01):
            assert not world.comes("a", day + moment, key=MINE, ip=ip).proven
        world.comes("a", day + 0.02)
    world.comes("a", 9 + days)
    assert not world.token("a").has_joined_key
    assert not world.comes("a", 9 + days, key=MINE, ip=ip).proven
    assert world.token("a").has_joined_key
    assert [world.comes("a", 20, key=MINE, ip=place).proven for place in (ip, FAR)] == [True, True]


@pytest.mark.parametrize("before", [1, 0])
def test_an_address_that_the_visitor_had_on_one_day_is_not_where_it_lives(before: int) -> None:
    """Decisions 18.2: two days before the key first appeared, and no other address since."""
    world = without_keys(before)
    if not before:  # another address of the same network, on two more days
        world = without_keys()
        world.comes("a", 3, ip=NEIGHBOR)
    for day in range(10, 14):
        world.comes("a", day, key=MINE)
    assert not world.token("a").has_joined_key
    world.comes("a", 14, key=MINE)
    assert world.comes("a", 15, key=MINE).proven


@pytest.mark.parametrize("ip", [HOME, ELSEWHERE])
def test_two_keys_that_claim_a_token_before_either_joined_prove_nothing(ip: str) -> None:
    """Decisions 18.2: a thief's key that came first is never proof, and the owner is no conflict."""
    world = without_keys()
    world.comes("a", 2, key=OTHERS, ip=ip)
    for day in range(3, 20):
        owner, thief = world.comes("a", day, key=MINE), world.comes("a", day + 0.1, key=OTHERS, ip=ip)
        assert (owner.number, owner.proven, owner.token_conflict) == (1, False, False)
        assert not thief.proven
    assert world.token("a").is_disputed
    assert not world.token("a").has_joined_key


@pytest.mark.parametrize("late", [False, True], ids=["with its token", "after probation"])
@pytest.mark.parametrize("ip", [HOME, ELSEWHERE])
def test_another_key_than_the_one_that_joined_is_a_conflict(ip: str, late: bool) -> None:
    """Decisions 18.2: it stays proof. A key that is lost is lost with its token."""
    world = without_keys() if late else signing(2)
    for day in (2, 3, 4):
        world.comes("a", day, key=MINE)
    joined = world.token("a")
    seen = world.comes("a", 5, key=OTHERS, ip=ip)
    assert (seen.proven, seen.token_conflict) == (False, True)
    assert (world.token("a").key, world.token("a").key_s) == (joined.key, joined.key_s)
    assert world.comes("a", 6, key=MINE, ip=FAR).proven


def test_a_key_on_probation_is_not_needed() -> None:
    """A week after it first signed, the browser may still come unsigned: the key may have been a thief's."""
    world = without_keys()
    world.comes("a", 2, key=OTHERS)
    seen = world.comes("a", 12)
    assert (seen.number, seen.outcome, seen.token_conflict) == (1, "token", False)


@pytest.mark.parametrize("key", [None, OTHERS], ids=["unsigned", "another key"])
@pytest.mark.parametrize(("day", "needed"), [(6, False), (7, True), (30, True)])
def test_after_a_week_the_token_is_believed_with_its_signature_only(day: int, needed: bool, key: bytes | None) -> None:
    """Else it is a conflict, and linked by its report at home only: a copy of both is new elsewhere. Another key is one
    at once.
    """
    needed = needed or key is not None
    world = signing(3)
    home = match_visitor(world, world.statistics, browser("a", key=key), START_MS + day * DAY_MS)
    away = match_visitor(world, world.statistics, browser("a", key=key, ip=ELSEWHERE), START_MS + day * DAY_MS)
    assert (home.number, home.outcome, home.token_conflict) == (1, "exact" if needed else "token", needed)
    assert (away.number, away.token_conflict) == ((None, True) if needed else (1, False))
    assert not home.proven
    owner = match_visitor(world, world.statistics, browser("a", key=MINE, ip=FAR), START_MS + day * DAY_MS)
    assert (owner.number, owner.outcome, owner.proven, owner.token_conflict) == (1, "token", True, False)


def test_the_thief_of_token_and_report_gets_an_id_of_his_own_and_the_owner_keeps_everything() -> None:
    world = signing(8)
    before = world.record()
    thief = [world.comes("a", 8 + day, ip=ELSEWHERE) for day in range(3)]
    assert all(seen.number != 1 and seen.token_conflict for seen in thief)
    assert world.record() == before
    assert world.leads("a") == (1,)
    assert world.comes("a", 12, key=MINE, ip=FAR).proven


def test_a_signature_proves_what_an_address_cannot() -> None:
    """Another graphics card, elsewhere: the token alone would be doubted."""
    changed = DESKTOP_VALUES | {Attribute.GPU: "another"}
    outcomes: list[tuple[str, int, bool]] = []
    for key in (MINE, None):
        world = signing(3)
        seen = world.comes("a", 3, key=key, values=changed, ip=ELSEWHERE)
        assert seen.number == 1
        outcomes.append((seen.outcome, seen.confidence, seen.token_conflict))
    assert outcomes == [("token", 98, False), ("doubted_token", 85, True)]


# ---- replayed reports


@pytest.mark.parametrize("ip", [HOME, ELSEWHERE])
@pytest.mark.parametrize("name", ["a", None, "t"], ids=["its token", "without token", "another token"])
def test_a_replayed_report_changes_nothing_and_its_owner_keeps_his_id(name: str | None, ip: str) -> None:
    world = World()
    for day in range(3):
        world.comes("a", day)
    before, learned_before = world.knows_nothing_new(), world.statistics.rows()
    world.comes(name, 3, ip=ip, replayed=True)
    assert world.knows_nothing_new() == before
    assert world.statistics.rows() == learned_before
    for day, place in ((4, HOME), (5, ELSEWHERE), (6, FAR)):
        seen = world.comes("a", day, ip=place)
        assert (seen.number, seen.confidence) == (1, 100)


def test_a_replayed_report_that_nobody_sent_before_makes_no_visitor() -> None:
    world = World()
    seen = world.comes("a", replayed=True)
    assert (seen.is_new, seen.outcome, seen.confidence) == (True, "replayed", 0)
    assert world.knows_nothing_new() == ({}, {})


def test_a_replayed_report_is_proven_by_no_signature() -> None:
    """A signature is copied with the report."""
    world = signing(8)
    seen = world.comes("a", 9, key=MINE, ip=ELSEWHERE, replayed=True)
    assert (seen.is_new, seen.proven, seen.token_conflict) == (True, False, True)
    assert not world.comes("a", 9, key=MINE, replayed=True).proven


def test_a_replay_neither_splits_nor_parts() -> None:
    world = World()
    world.comes("a")
    world.comes("b", 1)
    before = world.knows_nothing_new()
    world.comes("a", 2, replayed=True)
    assert world.knows_nothing_new() == before
    world.comes("a", 3)
    before = world.knows_nothing_new()
    assert world.comes("b", 4, replayed=True).split_from is None
    assert world.knows_nothing_new() == before


# ---- bounds


def test_a_report_with_two_keys_reads_nine_blocks_and_one_record_more_than_others() -> None:
    """A device id that another device contradicts and a token of a third visitor, beside twenty look-alikes."""
    world = World()
    seen = msgspec.structs.replace(browser("a"), device=8, fixed_device=True)
    look_alike = msgspec.structs.replace(first_record(browser(None), START_MS), visitor_id="0" * 20)
    for number in range(1, 31):
        world.visitors[number] = look_alike.pack()
    for key in block_keys(browser(None)):
        world.blocks[key] = blocks.Block(30.0, tuple(range(1, 31))).pack()
    of_device = first_record(browser(None, values=other_device("x"), ip=FAR), START_MS)
    stranger = Token(seen.token, seen.origin, START_S, START_S, STRANGERS, came_back=True)
    world.visitors[31] = msgspec.structs.replace(of_device, tokens=(Token(8, DEVICE, START_S, START_S),)).pack()
    world.visitors[32] = msgspec.structs.replace(look_alike, tokens=(stranger,)).pack()
    for key, number in ((8, 31), (seen.token, 32)):
        world.blocks[token_key(key)] = blocks.Block(1.0, (number,)).pack()
    world.last_number = 32
    world.visit(seen, START_MS + DAY_MS)
    assert len(block_keys(seen)) == world.most_block_reads == 9
    assert world.most_visitor_reads == RECORDS_READ + 1
    assert world.most_block_writes <= 9
    assert world.most_visitor_writes <= 2


# ---- bytes


@given(TOKEN_ROWS)
def test_tokens_survive_serialization(tokens: tuple[Token, ...]) -> None:
    raw = of_tokens.pack(tokens)
    keyed = sum(token.key != 0 for token in tokens)
    waiting = sum(token.key_probation is not None for token in tokens)
    length = len(tokens) * of_tokens.LENGTH + keyed * of_tokens.KEY_LENGTH + waiting * of_tokens.WAIT_LENGTH
    assert len(raw) == length
    assert of_tokens.unpack(b"head" + raw + b"tail", 4, len(tokens)) == (tokens, 4 + len(raw))
    assert of_tokens.end_of(b"head" + raw + b"tail", 4, len(tokens)) == 4 + len(raw)


def packed_by_an_earlier_version(visitor: Visitor, format_: int) -> bytes:
    """The layouts of 0.1.0 (1) and of 0.2.0 (2, and 3 for one that is not listed)."""
    fixed = struct.pack(
        f"<B20sIIIIHHHHIBQQ{ATTRIBUTE_COUNT}I4B",
        format_,
        visitor.visitor_id.encode(),
        visitor.family,
        visitor.collector,
        visitor.first_seen_s,
        visitor.last_seen_s,
        visitor.visits,
        visitor.visits_without_token,
        visitor.browser_version,
        visitor.os_release,
        visitor.parent,
        visitor.parent_probability,
        visitor.font_sketch,
        visitor.rest_sketch,
        *visitor.values,
        len(visitor.former),
        len(visitor.networks),
        len(visitor.tokens),
        len(visitor.exact_hashes),
    )
    longs = [*(token.hash | token.came_back for token in visitor.tokens), *visitor.exact_hashes]
    words = [half for network in visitor.networks for half in network]
    probation = b""
    if format_ > 1:
        words += visitor.addresses
        probation = bytes(token.probation for token in visitor.tokens)
    former = b"".join(struct.pack("<BI", *pair) for pair in visitor.former)
    return fixed + struct.pack(f"<{len(longs)}Q{len(words)}I", *longs, *words) + probation + former


@pytest.mark.slow
@pytest.mark.parametrize("format_", [1, 2, 3])
@given(visitor=visitors)
def test_records_of_earlier_versions_are_read_with_tokens_of_unknown_origin(format_: int, visitor: Visitor) -> None:
    read = Visitor.unpack(packed_by_an_earlier_version(visitor, format_))
    tokens = tuple(
        Token(
            token.hash,
            UNKNOWN_ORIGIN,
            visitor.first_seen_s,
            visitor.last_seen_s,
            token.probation if format_ > 1 else 0,
            came_back=token.came_back,
        )
        for token in visitor.tokens
    )
    addresses = visitor.addresses if format_ > 1 else (0,) * len(visitor.networks)
    assert read == msgspec.structs.replace(visitor, tokens=tokens, addresses=addresses, listed=format_ != 3)
    assert Visitor.unpack(read.pack()) == read, "and written in the form of today"
    assert Visitor.activity_in(packed_by_an_earlier_version(visitor, format_)) == b""


@pytest.mark.slow
@given(visitors)
def test_the_first_byte_of_a_record_says_whether_it_is_listed(visitor: Visitor) -> None:
    assert visitor.pack()[0] == (6 if visitor.listed else 7)
    assert Visitor.unpack(visitor.pack()) == visitor


@pytest.mark.slow
@given(visitors, st.binary(max_size=20))
def test_the_activity_is_read_from_a_record_without_the_rest(visitor: Visitor, activity: bytes) -> None:
    raw = msgspec.structs.replace(visitor, activity=activity).pack()
    assert Visitor.activity_in(raw) == activity
    for of_another_format in (b"", b"\x08" + raw[1:]):
        with pytest.raises(ValueError, match="not a visitor record"):
            Visitor.activity_in(of_another_format)


any_visit = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a", "b", "c", None]),
        "ip": st.sampled_from([HOME, NEIGHBOR, ELSEWHERE]),
        "origin": st.sampled_from([SHOP, SHOP, FORUM]),
        "values": st.sampled_from([DESKTOP_VALUES] * 3 + [other_device("x"), DESKTOP_VALUES | {Attribute.GPU: "y"}]),
        "private": st.booleans(),
        "key": st.sampled_from([None, None, b"one key", b"another"]),
        "replayed": st.sampled_from([False, False, False, True]),
        "flooding": st.sampled_from([False, False, False, True]),
    }
)


@given(st.lists(any_visit, max_size=30), st.sampled_from([MINUTE, 0.4, 1.0, 4.0]))
@pytest.mark.slow(0.1)
def test_however_browsers_come_and_go_a_token_leads_to_its_visitors_and_proves_one(
    visits: list[dict[str, Any]], pause: float
) -> None:
    """As `svc check` says of every store."""
    world = World()
    for place, visit in enumerate(visits):
        world.comes(visit["name"], place * pause, **{name: visit[name] for name in visit if name != "name"})
    proven: dict[int, list[int]] = {}
    for number in world.visitors:
        record = world.record(number)
        assert len({token.hash for token in record.tokens}) == len(record.tokens) <= TOKENS
        for token in record.tokens:
            assert token.origin in (browser("a").origin, browser("a", origin=FORUM).origin)
            assert token.probation == STRANGERS or number in world.block(token_key(token.hash)).numbers
            if token.probation == 0:
                proven.setdefault(token.hash, []).append(number)
    assert all(len(numbers) == 1 for numbers in proven.values())
    assert max(world.most_block_reads, world.most_block_writes) <= 8
    assert world.most_visitor_writes <= 2


@pytest.mark.parametrize("key", [None, OTHERS], ids=["unsigned", "signed"])
def test_a_signature_says_nothing_of_which_of_two_equal_devices_signs(key: bytes | None) -> None:
    """It is the browser of that token again; whether that is the visitor's, other tokens have to show."""
    world = World()
    world.comes("a", 0, key=MINE)
    world.comes("a", 1, key=MINE)
    assert world.comes("b", 2, key=key).number == 1
    for _ in range(40):
        world.statistics.learn(StatisticsUpdate(features=browser("a"), twins_waited=True, twins_found=1))
    seen = world.comes("b", 3, key=key)
    assert (seen.is_new, seen.split_from) == (True, 1)
