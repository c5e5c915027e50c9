"""Tokens that succeed each other are one browser; tokens that return in turn are two; and how sure either is."""

from __future__ import annotations

import pytest

from svc.identify.matching import Recognition, Statistics, StatisticsUpdate
from svc.identify.matching.tokens import STRANGERS, TOKENS
from svc.identify.model import Attribute
from svc.identify.useragent.agent import Agent
from tests.domain.matching_world import CHROME, DAY_MS, DESKTOP_VALUES, MINUTE_MS, other_device
from tests.domain.test_matching_tokens import ELSEWHERE, FORUM, HOME, NEIGHBOR, SHOP, World, browser

SAFARI = Agent(browser_family="safari", browser_version=1700, os_family="macos", os_release=1400)
KEY, ANOTHER_KEY = b"a key", b"another key"


@pytest.mark.parametrize("pause", [MINUTE_MS / DAY_MS, 3 / 24, 26 / 24, 7.0], ids=["minutes", "hours", "days", "weeks"])
def test_a_browser_that_clears_its_storage_eight_times_stays_one_visitor(pause: float) -> None:
    world = World()
    seen = [world.comes(name, place * pause) for place, name in enumerate("abcdefgh")]
    assert {one.number for one in seen} == {1}
    assert all(85 <= one.confidence <= 89 for one in seen[1:])


def test_a_browser_known_by_its_token_for_days_stays_one_visitor_when_it_clears_its_storage() -> None:
    world = World()
    for day in range(10):
        world.comes("a", day)
    seen = [world.comes(name, 10 + day) for day, name in enumerate("bcdef")]
    assert {one.number for one in seen} == {1}


@pytest.mark.parametrize("key", [None, KEY], ids=["never signed", "signs"])
@pytest.mark.parametrize("sites", [(SHOP,), (SHOP, FORUM)], ids=["one site", "two sites"])
@pytest.mark.parametrize("tabs", ["earlier page", "first tab is late"])
def test_a_token_that_the_service_never_saw_is_new_though_the_page_read_it_back(
    tabs: str, sites: tuple[str, ...], key: bytes | None
) -> None:
    """It was made by an earlier page that sent nothing, or by a tab beside this one whose report comes later."""
    world = World()
    for day in range(10):
        for origin in sites:
            world.comes(origin, day, origin=origin, key=key)
    for place in range(8):
        for origin in sites:
            name, day, own_key = f"{place} of {origin}", 10 + 3 * place, key and key + f"{place} {origin}".encode()
            seen = world.comes(name, day, origin=origin, key=own_key, new=False)
            assert (seen.number, 85 <= seen.confidence <= 89) == (1, True)
            assert not world.token(name).came_back
            again = world.comes(name, day + MINUTE_MS / DAY_MS, origin=origin, key=own_key, new=tabs != "earlier page")
            assert again.number == 1


@pytest.mark.parametrize("key", [None, KEY], ids=["never signed", "signs"])
@pytest.mark.parametrize("sites", [(SHOP,), (SHOP, FORUM)], ids=["one site", "two sites"])
@pytest.mark.parametrize("pause", [3 / 24, 1.0, 7.0], ids=["hours", "days", "weeks"])
def test_a_browser_that_clears_its_storage_after_each_session_stays_one_visitor(
    pause: float, sites: tuple[str, ...], key: bytes | None
) -> None:
    """Each token comes back in its session, so that the record is full of such ones when the next one joins."""
    world = World()
    for session in range(3 * TOKENS):
        names = [f"session {session} of {origin}" for origin in sites]
        for visit, (name, origin) in enumerate(2 * [*zip(names, sites, strict=True)]):
            day = session * pause + visit * MINUTE_MS / DAY_MS
            seen = world.comes(name, day, origin=origin, key=key and key + name.encode())
            assert (seen.number, seen.split_from) == (1, None)
        assert all(world.token(name).came_back for name in names), "who is forgotten at once is a stranger at the next"
    assert len(world.record().tokens) == TOKENS


def test_a_browser_that_was_parted_on_the_road_is_known_when_it_clears_its_storage_at_home_again() -> None:
    """Who clears the storage and travels at once is new there. Who was before is no equal of who is now: decisions
    18.4. The confidence says that the other one may be it nevertheless.
    """
    world = World()
    for day in range(5):
        world.comes("a", day)
    assert world.comes("b", 5, ip=ELSEWHERE).is_new
    for day in range(6, 13):
        assert world.comes("b", day).number == 2
    for day, name in enumerate("cdefg", start=13):
        seen = world.comes(name, day)
        assert (seen.number, 85 <= seen.confidence <= 86) == (2, True)
        assert world.comes(name, day + 0.1).number == 2


def test_a_private_window_elsewhere_that_never_came_back_is_no_equal_device() -> None:
    world = World()
    for day in range(5):
        world.comes("a", day)
    assert world.comes("p", 5, ip=ELSEWHERE).is_new
    for day in range(6, 18):
        assert world.comes("a", day, ip=ELSEWHERE).number == 1
    for day, name in enumerate("bcde", start=18):
        assert world.comes(name, day, ip=ELSEWHERE).number == 1


def test_a_browser_that_clears_its_storage_stays_one_visitor_though_an_equal_device_lives_elsewhere() -> None:
    """Until something returned, a new token weighs as much as none (decisions 18.4)."""
    world = World()
    assert world.comes("elsewhere", ip=ELSEWHERE).number == 1
    assert [world.comes(name, day).number for day, name in enumerate("abcdef", start=1)] == [2] * 6


@pytest.mark.slow(0.3)
@pytest.mark.parametrize("days", [1, 10], ids=["from the start", "after ten days of one token"])
def test_a_browser_that_clears_its_storage_stays_one_visitor_though_many_equal_devices_live_elsewhere(
    days: int,
) -> None:
    """As phones of a common model do: without a token it is one visitor, too (decisions 18.4)."""
    world = World()
    for other in range(150):
        world.comes(f"other {other}", other / 50, ip=f"90.{other}.1.9", values=other_device(str(other)))
    for place in range(60):
        for day in (3, 5):
            world.comes(f"equal {place}", day + place / 60, ip=f"91.{place}.1.9")
    first = {world.comes("a", 7 + day).number for day in range(days)}
    assert first | {world.comes(name, 8 + days + 3 * place).number for place, name in enumerate("bcdefghi")} == first


def test_visitors_that_were_parted_from_a_succession_are_no_equals_of_it() -> None:
    """Decisions 18.4: two were, and one of them never came back."""
    world = World()
    before = [world.comes("a", 3, ip=ELSEWHERE), world.comes("b", 4), world.comes("a", 5), world.comes("c", 8)]
    assert [one.number for one in before] == [1, 2, 1, 3]
    assert [world.comes(name, day).number for day, name in enumerate("def", start=9)] == [3] * 3


def test_who_fell_silent_before_another_came_is_no_equal_of_it() -> None:
    world = World()
    before = [world.comes("a", 0, ip=NEIGHBOR), world.comes("a", 3)]
    before += [world.comes("b", 6, ip=ELSEWHERE), world.comes("b", 9, ip=ELSEWHERE), world.comes("b", 10)]
    assert [one.number for one in before] == [1, 1, 2, 2, 2]
    assert [world.comes(name, day).number for day, name in enumerate("cd", start=18)] == [2] * 2


def test_an_equal_device_that_came_back_is_an_equal_as_before() -> None:
    world = World()
    for day, name in enumerate("abab" * 3):
        world.comes(name, day)
    assert (world.leads("a"), world.leads("b")[0]) == ((1,), 2)
    assert world.comes("c", 12).is_new


def test_an_older_token_that_returns_after_a_newer_one_shows_two_browsers_and_the_next_is_new() -> None:
    world = World()
    for day, name in enumerate("abc"):
        assert world.comes(name, day).number == 1
    world.comes("a", 3)
    assert [world.token(name).probation for name in "bc"] == [STRANGERS] * 2
    parted = [world.comes(name, 4).number for name in "bc"]
    assert len({1, *parted}) == 3
    assert world.comes("d", 5).is_new


def test_a_neighbor_at_another_address_is_no_succession() -> None:
    world = World()
    for day in range(3):
        world.comes("a", day)
    world.comes("b", 3, ip=NEIGHBOR)
    assert world.comes("c", 3.1, ip=NEIGHBOR.rpartition(".")[0] + ".77").is_new


def test_how_often_tokens_that_joined_are_other_devices_is_learned_by_class_and_stored() -> None:
    statistics, features = Statistics(), browser(None)
    usual = statistics.share_apart(features)
    for _ in range(100):
        statistics.learn(StatisticsUpdate(features=features, joined=True, parted=1.0))
    high = statistics.share_apart(features)
    assert (usual < 0.5, high > 0.9) == (True, True)
    assert Statistics.of_rows(statistics.rows()).share_apart(features) == high
    for _ in range(400):
        statistics.learn(StatisticsUpdate(features=features, joined=True))
    assert statistics.share_apart(features) < 0.3


def test_a_signed_token_that_was_parted_stays_a_visitor_of_its_own() -> None:
    world = World()
    world.comes("a", 0, key=KEY)
    world.comes("b", 1, key=ANOTHER_KEY)
    world.comes("a", 2, key=KEY)
    world.comes("p", 2.5)
    number = world.comes("b", 3, key=ANOTHER_KEY).number
    assert number not in (1, world.leads("p")[0])
    for day, ip in enumerate([HOME, ELSEWHERE, HOME, ELSEWHERE], start=4):
        assert world.comes("b", day, ip=ip, key=ANOTHER_KEY).number == number


# ---- 18.1: 90 or more only where nothing that decided could have been copied


@pytest.mark.parametrize("name", [None, "x"], ids=["no token", "a fresh token"])
@pytest.mark.parametrize("key", [None, KEY], ids=["never signed", "signs"])
def test_18_1_a_report_without_the_living_token_is_at_most_89(name: str | None, key: bytes | None) -> None:
    world = World()
    for day in range(9):
        world.comes("a", day, key=key)
    for place in range(2):
        seen = world.comes(name, 9 + place / 100)
        assert (seen.number, 85 <= seen.confidence <= 89) == (1, True)


def test_18_1_a_visitor_whose_living_token_has_a_key_needs_its_proof() -> None:
    for days in (2, 9):
        world = World()
        for day in range(days):
            assert world.comes("a", day, key=KEY).confidence in (0, 100)
        for ip in (HOME, ELSEWHERE):
            for key in (None, ANOTHER_KEY):
                seen = world.comes("a", days, ip=ip, key=key)
                assert seen.number != 1 or 85 <= seen.confidence <= 89
        assert world.comes("a", days + 1, ip=ELSEWHERE, key=KEY).confidence == 100


@pytest.mark.parametrize(("days", "conflict"), [(6.99, False), (7.0, True)])
def test_who_signed_for_seven_days_is_expected_to_sign(days: float, conflict: bool) -> None:
    """A browser that began to sign lately may have tabs that do not yet; later, who does not is another one."""
    world = World()
    for day in range(6):
        world.comes("a", day, key=KEY)
    seen = world.comes("a", days, ip=ELSEWHERE)
    assert (seen.number, seen.token_conflict) == ((2, True) if conflict else (1, False))


def test_18_1_a_token_is_living_for_thirty_days() -> None:
    for days, confidence in ((29.9, 89), (30.1, 100)):
        world = World()
        for day in range(9):
            world.comes("a", day)
        seen = world.comes(None, 8 + days)
        assert (seen.number, seen.confidence) == (1, confidence)


def test_18_1_a_key_that_has_not_joined_yet_proves_nothing() -> None:
    """The first report that it signs is the known token's, which never signed; the third day at home makes it join."""
    world = World()
    for day in range(6):
        world.comes("a", day)
    assert [world.comes("a", day, key=KEY).confidence for day in range(6, 11)] == [100, 89, 89, 100, 100]


@pytest.mark.parametrize(
    ("days", "confidences"),
    [
        ((3, 3.1, 4, 5), [89, 89, 89, 100]),
        ((12, 12.1, 13), [89, 89, 100]),
        ((40, 40.1), [99, 100]),
    ],
    ids=["at once", "after days", "once the older one lives no more"],
)
def test_18_1_a_token_that_joined_is_certain_on_another_day_once_the_older_one_was_silent_for_three(
    days: tuple[float, ...], confidences: list[int]
) -> None:
    world = World()
    for day in range(3):
        world.comes("a", day)
    assert [world.comes("b", day).confidence for day in days] == confidences


def test_18_1_a_token_that_never_signed_is_no_proof_beside_a_living_one_that_does() -> None:
    """Of another site of the organization."""
    world = World()
    for day in range(9):
        world.comes("a", day, key=KEY)
    seen = [world.comes("b", day, origin=FORUM) for day in range(9, 15)]
    assert [(one.number, one.confidence) for one in seen] == [(1, 89)] * 6
    assert world.comes("b", 39, origin=FORUM).confidence == 100


def test_fifteen_equal_laptops_that_start_in_one_morning_are_fifteen_visitors_from_the_third_on() -> None:
    """More than a record keeps tokens: whose token was dropped is a stranger when it comes back."""
    world = World()
    names = "abcdefghijklmno"
    assert len(names) > TOKENS
    order = list(names)
    seen: dict[str, Recognition] = {}
    for morning in range(5):
        seen = {name: world.comes(name, morning + place * MINUTE_MS / DAY_MS) for place, name in enumerate(order)}
        if morning in (0, 1):
            joined = {name for name, one in seen.items() if one.number == 1 and name != "a"}
            assert all(seen[name].confidence <= 89 for name in joined)
        order = order[1:] + order[:1]
    assert seen["a"].number == 1
    assert len({one.number for one in seen.values()}) == len(names)
    assert all(one.confidence == 100 for one in seen.values())


def test_a_token_that_was_dropped_is_still_its_visitors_where_the_others_are_of_other_sites() -> None:
    world = World()
    world.comes("a", 0)
    world.comes("first", 1, origin=FORUM)
    for place in range(2 * TOKENS):
        world.comes(f"site {place}", 2 + place * MINUTE_MS / DAY_MS, origin=f"https://{place}.example")
    assert world.record().token(browser("first").token) is None
    assert world.comes("first", 3, origin=FORUM).number == 1


def test_18_1_a_visitor_without_tokens_is_known_by_report_and_network() -> None:
    world = World()
    world.comes(None)
    assert world.comes(None, 1).confidence >= 90


def test_18_1_a_token_that_was_not_seen_for_thirty_days_bounds_nothing() -> None:
    world = World()
    for day in range(3):
        world.comes("a", day)
    assert world.comes(None, 2 + 29).confidence <= 89
    world = World()
    for day in range(3):
        world.comes("a", day)
    assert world.comes(None, 2 + 31).confidence >= 90


@pytest.mark.parametrize(("agent", "gap", "is_new"), [(SAFARI, 6.9, False), (SAFARI, 7.1, True), (CHROME, 7.1, False)])
def test_after_seven_days_a_lost_token_is_no_habit_of_one_visitor_where_browsers_erase_it(
    agent: Agent, gap: float, is_new: bool
) -> None:
    """Who comes without a token again and again is likelier to be who does so now, unless all would by then."""
    world = World()
    for day in range(6):
        world.comes(None, day, agent=agent)
    changed = DESKTOP_VALUES | {Attribute.GPU: "another"}
    assert world.comes("a", 5 + gap, agent=agent, values=changed, ip=NEIGHBOR).is_new is is_new
