"""Recognition: the rules of decisions 3.5 and 3.6, and the bounds of one identification."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.identify.matching import Features, Statistics, StatisticsUpdate, blocks, match_visitor, parameters
from svc.identify.matching.blocks import block_keys, keys_to_add, token_key
from svc.identify.matching.decision import LinkDecision, decide, reported_probability
from svc.identify.matching.likelihood import FAR, HIDDEN, NEAR, UNKNOWN, WIDE, kind_of
from svc.identify.matching.parameters import ATTRIBUTE_COUNT, BLOCK_LENGTH, RECORDS_READ
from svc.identify.matching.visitor import Visitor, first_record
from svc.identify.model import Attribute
from tests.domain.matching_world import (
    CHROME,
    DAY_MS,
    DESKTOP_VALUES,
    MINUTE_MS,
    PHONE,
    START_MS,
    Organization,
    features_of,
    other_device,
)

TOKEN = "t0ken-of-the-first-browser"


def changed(**values: str) -> dict[Attribute, str]:
    return DESKTOP_VALUES | {Attribute[name]: value for name, value in values.items()}


# ---- tokens


def test_a_known_token_with_the_same_report_is_that_visitor_at_confidence_100() -> None:
    organization = Organization()
    first = organization.visit(features_of(token=TOKEN, token_is_new=True))
    again = organization.visit(features_of(token=TOKEN), START_MS + DAY_MS)
    assert first.is_new
    assert (again.number, again.is_new, again.confidence, again.outcome) == (first.number, False, 100, "token")


def test_a_known_token_loses_one_point_of_confidence_for_each_changed_attribute() -> None:
    organization = Organization()
    first = organization.visit(features_of(token=TOKEN, token_is_new=True))
    moved = organization.visit(features_of(changed(TIMEZONE="Asia/Tokyo"), token=TOKEN), START_MS + DAY_MS)
    both = organization.visit(features_of(changed(SCREEN="800x600", CANVAS="c"), token=TOKEN), START_MS + 2 * DAY_MS)
    assert (moved.number, moved.confidence) == (first.number, 98)
    assert (both.number, both.confidence) == (first.number, 97)


def test_a_former_report_with_the_known_token_is_confidence_100_again() -> None:
    organization = Organization()
    organization.visit(features_of(token=TOKEN))
    for day in range(1, 8):
        organization.visit(features_of(changed(SCREEN=f"screen {day}"), token=TOKEN), START_MS + day * DAY_MS)
    assert organization.visit(features_of(token=TOKEN), START_MS + 9 * DAY_MS).confidence == 100


def test_a_device_that_differs_in_three_hard_attributes_is_a_token_conflict() -> None:
    organization = Organization()
    owner = organization.visit(features_of(token=TOKEN))
    thief_values = changed(GPU="other", HARDWARE="other", TOUCH="other", CANVAS="other", SCREEN="other")
    thief = organization.visit(features_of(thief_values, token=TOKEN, ip="9.9.9.9"), START_MS + MINUTE_MS)
    assert thief.token_conflict
    assert (thief.is_new, thief.confidence) == (True, 0)
    assert thief.number != owner.number


def test_a_token_conflict_takes_over_neither_the_visitor_nor_its_token() -> None:
    organization = Organization()
    owner = organization.visit(features_of(token=TOKEN))
    record = organization.visitor(owner.number)
    thief_values = changed(GPU="other", HARDWARE="other", TOUCH="other", CANVAS="other", SCREEN="other")
    thief = organization.visit(features_of(thief_values, token=TOKEN, ip="9.9.9.9"), START_MS + MINUTE_MS)
    again = organization.visit(features_of(thief_values, token=TOKEN, ip="9.9.9.9"), START_MS + 2 * MINUTE_MS)
    assert organization.visitor(owner.number) == record
    assert (again.number, again.token_conflict) == (thief.number, True)
    stolen = organization.visitor(thief.number)
    assert stolen is not None
    assert stolen.tokens == ()
    back = organization.visit(features_of(token=TOKEN), START_MS + 3 * MINUTE_MS)
    assert (back.number, back.confidence, back.token_conflict) == (owner.number, 100, False)


def test_at_home_two_differing_hard_attributes_are_not_a_conflict() -> None:
    organization = Organization()
    owner = organization.visit(features_of(token=TOKEN))
    seen = organization.visit(features_of(changed(GPU="new card", HARDWARE="more memory"), token=TOKEN))
    assert (seen.number, seen.token_conflict) == (owner.number, False)


ELSEWHERE = "9.9.9.9"


@pytest.mark.parametrize("name", ["GPU", "HARDWARE", "TOUCH"])
@pytest.mark.parametrize("value", ["other", None])
def test_elsewhere_other_or_missing_hardware_is_a_conflict_but_the_owner_is_recognized(
    name: str, value: str | None
) -> None:
    """The token is believed, since everything else agrees; the record keeps its hardware."""
    organization = Organization()
    owner = organization.visit(features_of(token=TOKEN))
    report = {key: text for key, text in (DESKTOP_VALUES | {Attribute[name]: value}).items() if text is not None}
    seen = organization.visit(features_of(report, token=TOKEN, ip=ELSEWHERE), START_MS + DAY_MS)
    assert (seen.number, seen.token_conflict, seen.confidence, seen.outcome) == (
        owner.number,
        True,
        85,
        "doubted_token",
    )
    record = organization.visitor(owner.number)
    assert record is not None
    assert record.values == features_of().values


def test_elsewhere_another_collector_is_a_conflict() -> None:
    organization = Organization()
    owner = organization.visit(features_of(token=TOKEN))
    seen = organization.visit(features_of(token=TOKEN, ip=ELSEWHERE, collector="thumbmark"), START_MS + DAY_MS)
    assert (seen.number == owner.number, seen.token_conflict) == (False, True)


def test_elsewhere_another_browser_is_a_conflict() -> None:
    organization = Organization()
    organization.visit(features_of(token=TOKEN))
    seen = organization.visit(features_of(token=TOKEN, ip=ELSEWHERE, agent=PHONE), START_MS + DAY_MS)
    assert seen.token_conflict


@pytest.mark.parametrize("ip", [ELSEWHERE, ""])
def test_elsewhere_a_device_of_the_same_kind_is_trusted_no_more_than_its_report(ip: str) -> None:
    """No hardware contradicts, and yet it is another device. An address that says nothing is elsewhere, too."""
    organization = Organization()
    owner = organization.visit(features_of(token=TOKEN))
    thief = changed(SCREEN="other", LANGUAGES="other", TIMEZONE="other", FONTS="other", CANVAS="other", AUDIO="other")
    seen = organization.visit(features_of(thief, token=TOKEN, ip=ip, fonts=("Ubuntu",)), START_MS + DAY_MS)
    assert (seen.number == owner.number, seen.token_conflict) == (False, True)


def test_elsewhere_an_owner_with_changed_settings_is_recognized() -> None:
    organization = Organization()
    owner = organization.visit(features_of(token=TOKEN))
    docked = changed(SCREEN="another monitor", TIMEZONE="America/New_York")
    seen = organization.visit(features_of(docked, token=TOKEN, ip=ELSEWHERE), START_MS + DAY_MS)
    assert (seen.number, seen.token_conflict) == (owner.number, False)


def test_on_phones_the_screen_is_a_hard_attribute_too() -> None:
    for agent, conflict in ((PHONE, True), (CHROME, False)):
        organization = Organization()
        organization.visit(features_of(token=TOKEN, agent=agent))
        seen = organization.visit(features_of(changed(SCREEN="other"), token=TOKEN, agent=agent, ip=ELSEWHERE))
        assert seen.token_conflict is conflict


OWN_TOKEN = "token-of-the-neighbor-0123456789"


def test_a_token_that_joined_by_similarity_is_on_probation_for_three_more_days() -> None:
    """A copied report from the victim's /24 brings a token of its own, and moves away with it. On the third of the days
    it is as good as one that joined at the victim's own address: believed with doubt, and nothing is learned.
    """
    organization = Organization()
    victim = organization.visit(features_of(ip="81.2.69.161"))
    joins = features_of(ip="81.2.69.201", token=OWN_TOKEN, token_is_new=True)
    assert organization.visit(joins, START_MS + MINUTE_MS).number == victim.number
    copied = features_of(ip="81.2.69.201", token=OWN_TOKEN)
    for day, found in enumerate([(None, "doubtful"), (None, "doubtful"), (victim.number, "doubted_token")]):
        away = match_visitor(
            organization, organization.statistics, features_of(ip=ELSEWHERE, token=OWN_TOKEN), START_MS + day * DAY_MS
        )
        assert (away.number, away.outcome, away.token_conflict) == (*found, False)
        assert organization.visit(copied, START_MS + (day + 1) * DAY_MS).number == victim.number
    away = match_visitor(
        organization, organization.statistics, features_of(ip=ELSEWHERE, token=OWN_TOKEN), START_MS + 5 * DAY_MS
    )
    assert (away.number, away.outcome) == (victim.number, "token")


def test_several_visits_on_one_day_do_not_end_probation() -> None:
    organization = Organization()
    victim = organization.visit(features_of(ip="81.2.69.161"))
    organization.visit(features_of(ip="81.2.69.201", token=OWN_TOKEN, token_is_new=True), START_MS + MINUTE_MS)
    for visit in range(9):
        organization.visit(features_of(ip="81.2.69.201", token=OWN_TOKEN), START_MS + visit * MINUTE_MS)
    away = organization.visit(features_of(ip=ELSEWHERE, token=OWN_TOKEN), START_MS + DAY_MS)
    assert away.number != victim.number


def test_a_new_token_from_the_address_of_the_last_visit_needs_no_probation() -> None:
    """Who cleared the storage at home is the same on the road."""
    organization = Organization()
    owner = organization.visit(features_of(token=TOKEN))
    assert organization.visit(features_of(token=OWN_TOKEN, token_is_new=True), START_MS + DAY_MS).number == owner.number
    away = organization.visit(features_of(ip=ELSEWHERE, token=OWN_TOKEN), START_MS + 2 * DAY_MS)
    assert (away.number, away.token_conflict) == (owner.number, False)


def test_another_device_with_a_token_on_probation_is_a_conflict_and_the_owner_keeps_it() -> None:
    organization = Organization()
    owner = organization.visit(features_of(ip="81.2.69.161"))
    organization.visit(features_of(ip="81.2.69.201", token=OWN_TOKEN, token_is_new=True), START_MS + MINUTE_MS)
    thief = features_of(other_device("a thief"), ip=ELSEWHERE, token=OWN_TOKEN, fonts=("Ubuntu",))
    seen = organization.visit(thief, START_MS + DAY_MS)
    assert (seen.number == owner.number, seen.token_conflict) == (False, True)
    back = organization.visit(features_of(ip="81.2.69.201", token=OWN_TOKEN), START_MS + 2 * DAY_MS)
    assert (back.number, back.token_conflict) == (owner.number, False)


def test_a_second_new_token_from_where_the_first_one_joined_is_also_on_probation() -> None:
    organization = Organization()
    victim = organization.visit(features_of(ip="81.2.69.161"))
    for minute, token in enumerate(("first-token-of-the-neighbor", OWN_TOKEN), start=1):
        joins = features_of(ip="81.2.69.201", token=token, token_is_new=True)
        assert organization.visit(joins, START_MS + minute * MINUTE_MS).number == victim.number
    away = organization.visit(features_of(ip=ELSEWHERE, token=OWN_TOKEN), START_MS + DAY_MS)
    assert away.number != victim.number


def test_a_token_without_proof_stays_with_the_device_that_sends_it() -> None:
    organization = Organization()
    victim = organization.visit(features_of(ip="81.2.69.161"))
    organization.visit(features_of(ip="81.2.69.201", token=OWN_TOKEN, token_is_new=True), START_MS + MINUTE_MS)
    away = organization.visit(features_of(ip=ELSEWHERE, token=OWN_TOKEN), START_MS + DAY_MS)
    again = organization.visit(features_of(ip="8.8.8.8", token=OWN_TOKEN), START_MS + 2 * DAY_MS)
    assert away.number != victim.number
    assert again.number == away.number


def test_a_site_that_changes_its_collector_keeps_visitors_with_tokens() -> None:
    organization = Organization()
    first = organization.visit(features_of(token=TOKEN, collector="plain"))
    seen = organization.visit(features_of(token=TOKEN, collector="thumbmark"))
    assert (seen.number, seen.token_conflict, seen.confidence) == (first.number, False, 90)


@pytest.mark.parametrize("sites", [2, 1])
def test_one_browser_with_a_token_for_each_of_two_sites_stays_one_visitor(sites: int) -> None:
    """Two tokens that alternate on one site are two browsers."""
    organization = Organization()
    numbers: list[int] = []
    for visit in range(10):
        place = visit % 2
        seen = features_of(
            token=f"token-of-browser-or-site-{place}",
            token_is_new=visit < 2,
            origin=f"https://shop-{place % sites}.example",
        )
        numbers.append(organization.visit(seen, START_MS + visit * MINUTE_MS).number)
    assert numbers == [1] * 10 if sites == 2 else [1, 1, 1] + [2, 1] * 3 + [2]


# ---- the same report again


def test_an_identical_report_is_the_same_visitor_at_confidence_100() -> None:
    organization = Organization()
    first = organization.visit(features_of())
    again = organization.visit(features_of(), START_MS + MINUTE_MS)
    assert (again.number, again.confidence, again.outcome) == (first.number, 100, "exact")


def test_the_same_report_of_several_devices_is_linked_below_confidence_100() -> None:
    """Decisions 3.5: it is 100 only where the report can belong to one device only, however probable the visitor is."""
    organization, report = Organization(), other_device("sold a thousand times")
    for place in range(30):
        for day in (0, 1):
            organization.visit(features_of(other_device(str(place)), ip=f"20.{place}.7.7"), START_MS + day * DAY_MS)
    homes = [features_of(report, ip=ip) for ip in ("81.2.69.142", "203.0.1.9", "151.101.3.10")]
    numbers = [organization.visit(home, START_MS + day * DAY_MS).number for day, home in enumerate(homes, start=1)]
    assert len(set(numbers)) == 3
    for day in (4, 5):
        seen = [organization.visit(home, START_MS + day * DAY_MS) for home in homes]
        assert [(one.number, one.confidence, one.outcome) for one in seen] == [
            (number, 99, "exact") for number in numbers
        ]


def test_a_weakly_linked_report_gets_the_same_result_when_it_is_repeated() -> None:
    organization = Organization()
    organization.visit(features_of())
    for changes in ({"SCREEN": "1"}, {"FONTS": "2"}, {"TIMEZONE": "3"}, {"CANVAS": "4", "SCREEN": "4"}):
        report = features_of(changed(**changes))
        once = organization.visit(report, START_MS + DAY_MS)
        again = organization.visit(report, START_MS + DAY_MS + MINUTE_MS)
        assert (again.number, again.confidence) == (once.number, 100)


def test_identical_devices_with_their_own_tokens_stay_distinct() -> None:
    organization = Organization()
    numbers: dict[int, int] = {}
    for round_ in range(3):
        for device in range(40):
            features = features_of(token=f"token-of-device-{device:03d}", ip=f"20.{device}.7.7")
            seen = organization.visit(features, START_MS + round_ * DAY_MS + device * MINUTE_MS)
            assert seen.is_new == (round_ == 0)
            assert numbers.setdefault(device, seen.number) == seen.number
    assert len(set(numbers.values())) == 40


def test_a_report_shared_by_many_devices_is_not_linked_by_its_attributes_alone() -> None:
    organization = Organization()
    for device in range(40):
        organization.visit(features_of(token=f"token-of-device-{device:03d}", ip=f"20.{device}.7.7"))
    seen = organization.visit(features_of(ip="203.0.113.9"), START_MS + DAY_MS)
    assert (seen.is_new, seen.confidence) == (True, 0)


# ---- changed reports


@pytest.mark.parametrize(
    "changes",
    [
        {"CANVAS": "canvas-2"},
        {"TIMEZONE": "Europe/Paris"},
        {"SCREEN": "2560x1440", "PIXEL_RATIO": "2"},
        {"LANGUAGES": "de-DE,de,en,fr"},
    ],
)
def test_a_device_is_recognized_after_a_change(changes: dict[str, str]) -> None:
    organization = Organization()
    for neighbor in range(5):
        organization.visit(features_of(other_device(str(neighbor)), ip=f"20.{neighbor}.7.7"))
    first = organization.visit(features_of())
    seen = organization.visit(features_of(changed(**changes)), START_MS + DAY_MS)
    assert seen.number == first.number
    assert 85 <= seen.confidence <= 99


def test_a_browser_upgrade_is_recognized() -> None:
    organization = Organization()
    first = organization.visit(features_of())
    upgraded = msgspec.structs.replace(CHROME, browser_version=1410)
    report = features_of(changed(CANVAS="canvas-2", WEBGL="webgl-2"), agent=upgraded)
    seen = organization.visit(report, START_MS + DAY_MS)
    assert seen.number == first.number
    assert 85 <= seen.confidence <= 99


def test_another_device_behind_the_same_address_is_new() -> None:
    organization = Organization()
    first = organization.visit(features_of())
    seen = organization.visit(features_of(other_device("the neighbor")), START_MS + MINUTE_MS)
    assert seen.number != first.number
    assert (seen.is_new, seen.confidence) == (True, 0)


def test_visitors_of_another_class_are_not_compared() -> None:
    organization = Organization()
    organization.visit(features_of())
    seen = organization.visit(features_of(agent=PHONE))
    assert (seen.is_new, seen.outcome) == (True, "no_candidate")


def test_a_link_below_92_percent_does_not_update_the_template() -> None:
    organization = Organization()
    first = organization.visit(features_of())
    template = organization.visitor(first.number)
    assert template is not None
    weak = 0
    rng = random.Random(5)
    for _ in range(200):
        names = rng.sample([attribute.name for attribute in DESKTOP_VALUES], rng.randint(1, 4))
        organization = Organization()
        organization.visit(features_of())
        report = features_of(changed(**dict.fromkeys(names, "changed")), ip="81.2.99.3", token=TOKEN, token_is_new=True)
        counts = {key[0]: organization.block(key).count for key in block_keys(report)}
        decision = decide(report, START_MS + 2 * DAY_MS, counts, [(1, template)], (), organization.statistics)
        seen = organization.visit(report, START_MS + 2 * DAY_MS)
        record = organization.visitor(1)
        assert record is not None
        if seen.number == 1 and decision.probability < 0.92:
            weak += 1
            assert record.values == template.values
            assert record.networks == template.networks
            assert record.visits == 2
    assert weak


def test_a_doubtful_private_window_leaves_no_report_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its report would count in full the next time, even with the token of a stranger."""
    organization = Organization()
    for day in range(2):
        organization.visit(features_of(token=TOKEN, token_is_new=day == 0), START_MS + day * DAY_MS)
    before = organization.visitor(1)

    def calibrated(*_: object) -> float:
        return 0.95

    monkeypatch.setattr("svc.identify.matching.decision.calibrated", calibrated)
    private = features_of(changed(CANVAS="another"), ip="203.0.113.9")
    seen = [organization.visit(private, START_MS + day * DAY_MS) for day in (3, 4)]
    assert [(one.number, one.outcome) for one in seen] == [(1, "match"), (1, "match")]
    after = organization.visitor(1)
    assert before is not None
    assert after is not None
    assert after.exact_hashes == before.exact_hashes
    assert organization.block(blocks.exact_key(private.exact)).numbers == ()


@pytest.mark.parametrize(
    ("ip", "token", "keeps_tokens", "alike", "least"),
    [
        ("81.2.69.142", None, False, 1.0, parameters.LINK_AT_HOME),
        ("81.2.69.142", None, False, 4.0, parameters.LINK_AT_HOME),
        ("81.2.69.9", None, False, 1.0, parameters.LINK_ELSEWHERE),
        ("81.2.99.3", None, False, 1.0, parameters.LINK_ELSEWHERE),
        ("203.0.113.9", None, False, 1.0, parameters.LINK_ELSEWHERE),
        ("81.2.69.142", "another-token-0123456789", False, 1.0, parameters.LINK_WITH_TOKEN_NEARBY),
        ("81.2.99.3", "another-token-0123456789", True, 1.0, parameters.LINK_WITH_TOKEN_NEARBY),
        ("81.2.99.3", "another-token-0123456789", True, 4.0, parameters.LINK_WITH_TOKEN[1]),
        ("203.0.113.9", "another-token-0123456789", False, 1.0, parameters.LINK_WITH_TOKEN[0]),
        ("203.0.113.9", "another-token-0123456789", True, 4.0, parameters.LINK_WITH_TOKEN[1]),
        ("203.0.113.9", None, True, 1.0, parameters.LINK_PRIVATE[0]),
        ("203.0.113.9", None, True, 4.0, parameters.LINK_PRIVATE[1]),
    ],
)
def test_the_link_threshold_depends_on_the_network_and_on_tokens(
    ip: str, token: str | None, keeps_tokens: bool, alike: float, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization = Organization()
    if keeps_tokens:
        organization.visit(features_of(token=TOKEN, token_is_new=True))
        organization.visit(features_of(token=TOKEN), START_MS + DAY_MS)
    else:
        organization.visit(features_of())
    known = organization.visitor(1)
    assert known is not None
    assert known.keeps_tokens is keeps_tokens
    report = features_of(changed(CANVAS="another"), ip=ip, token=token, token_is_new=token is not None)
    for _ in range(round(parameters.YOUNG_VISITS)):
        organization.statistics.learn(StatisticsUpdate(features=report))
    counts = {blocks.EXACT: 0.0, blocks.EVERYTHING: alike}
    for probability, linked in ((least - 0.001, False), (least, True)):

        def calibrated(*_: object, given: float = probability) -> float:
            return given

        monkeypatch.setattr("svc.identify.matching.decision.calibrated", calibrated)
        decision = decide(report, START_MS + 2 * DAY_MS, counts, [(1, known)], (), organization.statistics)
        assert (decision.number, decision.linked, decision.probability) == (1, linked, probability)


def test_a_report_was_seen_exactly_before_if_the_index_says_so_or_the_record() -> None:
    """Neither keeps all reports. One that the record has no more proves less, but where the visitor lives."""
    organization = Organization()
    organization.visit(features_of())
    organization.visit(features_of(changed(CANVAS="another")), START_MS + DAY_MS)
    remembers = organization.visitor(1)
    assert remembers is not None
    forgot = msgspec.structs.replace(remembers, exact_hashes=())

    def decided(known: Visitor, exact_numbers: tuple[int, ...], ip: str = "81.2.69.142") -> LinkDecision:
        report, statistics = features_of(ip=ip), organization.statistics
        return decide(report, START_MS + 2 * DAY_MS, {}, [(1, known)], exact_numbers, statistics)

    by_likeness, by_index, by_record = decided(forgot, ()), decided(forgot, (1,)), decided(remembers, ())
    assert (by_likeness.outcome, by_likeness.confidence) == ("match", 99)
    assert [(each.outcome, each.confidence) for each in (by_index, by_record)] == [("exact", 100)] * 2
    assert by_index.raw == by_record.raw
    assert 100 * decided(forgot, (1,), ip="203.0.113.5").raw < decided(remembers, (), ip="203.0.113.5").raw


def test_a_young_class_takes_a_new_token_for_no_reason_to_link_a_changed_report() -> None:
    """Who else lives there has not been seen yet; a known report is linked as ever."""
    report, statistics = features_of(token="another-token-0123456789", token_is_new=True), Statistics()
    bars: list[float] = []
    for _ in range(round(parameters.YOUNG_VISITS) + 1):
        bars.append(statistics.link_nearby(report))
        statistics.learn(StatisticsUpdate(features=report))
    assert bars[0] == parameters.LINK_AT_HOME
    assert bars[-1] == parameters.LINK_WITH_TOKEN_NEARBY
    assert bars == sorted(bars, reverse=True)


def test_a_link_to_a_visitor_elsewhere_is_reported_with_lower_probability() -> None:
    for token in (False, True):
        assert reported_probability(kind_of(NEAR, exact=True, token=token), 0.97) == 0.97
        for network_context in (WIDE, UNKNOWN, HIDDEN, FAR):
            assert reported_probability(kind_of(network_context, exact=False, token=token), 0.97) < 0.95


# ---- poor and hostile reports


def test_an_unidentifiable_report_reads_and_writes_nothing_even_with_a_known_token() -> None:
    organization = Organization()
    organization.visit(features_of(token=TOKEN))
    poor = features_of({Attribute.SCREEN: "1920x1080", Attribute.TIMEZONE: "UTC"}, token=TOKEN)
    organization.forget_reads()
    recognition = match_visitor(organization, organization.statistics, poor, START_MS)
    before = organization.statistics.rows()
    organization.statistics.learn(recognition.statistics_update)
    assert not poor.identifiable
    assert (recognition.number, recognition.confidence, recognition.outcome) == (None, 0, "unidentifiable")
    assert (recognition.visitor, recognition.postings, recognition.left) == (None, (), None)
    assert not organization.blocks_read
    assert not organization.visitors_read
    assert organization.statistics.rows() == before


@pytest.mark.slow
def test_a_thousand_random_variations_of_a_report_take_over_no_visitor() -> None:
    organization = Organization()
    people = {
        name: organization.visit(features_of(other_device(name), ip=f"20.{n}.7.7"), START_MS).number
        for n, name in enumerate("abcdefgh")
    }
    victim = features_of()
    victims_number = organization.visit(victim).number
    rng = random.Random(7)
    for attempt in range(1000):
        names = rng.sample([attribute.name for attribute in DESKTOP_VALUES], rng.randint(1, 10))
        forged = features_of(
            changed(**{name: f"forged {rng.random()}" for name in names}), ip=f"{rng.randint(11, 99)}.1.1.1"
        )
        seen = organization.visit(forged, START_MS + attempt * MINUTE_MS)
        assert seen.number not in people.values()
    assert all(len(raw) <= 4 * (BLOCK_LENGTH + 1) for raw in organization.blocks.values())
    assert all(len(raw) <= 400 for raw in organization.visitors.values())
    assert organization.statistics.rows().size < 200_000
    later = START_MS + 2 * DAY_MS
    assert organization.visit(victim, later).number == victims_number
    for n, (name, number) in enumerate(people.items()):
        assert organization.visit(features_of(other_device(name), ip=f"20.{n}.7.7"), later).number == number


@pytest.mark.slow
def test_a_thousand_variations_with_stored_tokens_do_not_distort_the_statistics() -> None:
    organization = Organization()
    people = {name: f"20.{n}.7.7" for n, name in enumerate("abcdefgh")}
    numbers = {
        name: organization.visit(features_of(other_device(name), ip=ip, token=f"token-of-{name}-is-long")).number
        for name, ip in people.items()
    }
    rng = random.Random(11)
    for attempt in range(1000):
        changed_names = rng.sample([attribute.name for attribute in DESKTOP_VALUES], rng.randint(1, 10))
        forged = features_of(
            changed(**{name: f"forged {rng.randint(0, 9)}" for name in changed_names}),
            ip=f"{rng.randint(31, 99)}.1.1.1",
            token=f"token-of-the-bot-{rng.randint(0, 40)}",
        )
        assert organization.visit(forged, START_MS + attempt * MINUTE_MS).number not in numbers.values()
    assert organization.most_block_reads <= 8
    assert organization.most_visitor_reads <= RECORDS_READ
    assert all(len(raw) <= 4 * (BLOCK_LENGTH + 1) for raw in organization.blocks.values())
    assert all(len(raw) <= 400 for raw in organization.visitors.values())
    later = START_MS + 2 * DAY_MS
    for name, ip in people.items():
        with_token = features_of(other_device(name), ip=ip, token=f"token-of-{name}-is-long")
        without = features_of(other_device(name) | {Attribute.CANVAS: f"new canvas of {name}"}, ip=ip)
        assert organization.visit(with_token, later).number == numbers[name]
        assert organization.visit(without, later + DAY_MS).number == numbers[name]


def populate(organization: Organization, size: int, seed: int) -> None:
    rng = random.Random(seed)
    for visit in range(size):
        names = rng.sample([attribute.name for attribute in DESKTOP_VALUES], rng.randint(0, 6))
        values = changed(**{name: str(rng.randint(0, 5)) for name in names})
        token = rng.choice([None, f"token-{rng.randint(0, size):012d}"])
        ip = f"10.0.{rng.randint(0, 9)}.1"
        organization.visit(features_of(values, token=token, ip=ip), START_MS + visit * MINUTE_MS)


def test_the_only_sender_of_a_report_is_recognized_at_home_with_two_blocks_and_one_record() -> None:
    organization = Organization()
    populate(organization, 100, seed=2)
    mine, neighbor = features_of(other_device("mine")), features_of(other_device("neighbor"))
    number = organization.visit(mine).number
    organization.visit(neighbor)
    reads: list[tuple[int, int]] = []
    for day in range(1, 40):
        seen = organization.visit(mine, START_MS + day * DAY_MS)
        assert (seen.number, seen.confidence, seen.outcome) == (number, 100, "exact")
        reads.append((len(organization.blocks_read), len(organization.visitors_read)))
    assert Counter(reads).most_common(1)[0][0] == (2, 1)
    assert all(blocks <= 8 for blocks, _ in reads)


@pytest.mark.parametrize("attribute", ["TIMEZONE", "SCREEN", "CANVAS", "FONTS", "LANGUAGES", "GPU"])
def test_copies_from_elsewhere_do_not_crowd_a_visitor_out_of_its_own_network(attribute: str) -> None:
    """More copies than blocks list, and than are read; none of them was ever where the visitor is."""
    organization = Organization()
    owner = organization.visit(features_of(ip="81.2.69.9")).number
    for copy in range(3 * BLOCK_LENGTH):
        token = f"token-of-a-stranger-{copy:04d}"
        report = features_of(ip=f"203.0.{copy}.9", token=token, token_is_new=True)
        organization.visit(report, START_MS + DAY_MS + copy * 1000)
    assert owner not in organization.block(blocks.exact_key(features_of().exact)).numbers
    seen = organization.visit(features_of(changed(**{attribute: "another"}), ip="81.2.69.9"), START_MS + 2 * DAY_MS)
    assert (seen.number, seen.outcome) == (owner, "match")


def test_a_report_sent_by_two_visitors_is_never_matched_to_the_first_sender_alone() -> None:
    organization = Organization()
    for ip in ("81.2.69.142", "151.101.3.10"):
        for day in range(3):
            organization.visit(
                features_of(other_device("twin"), ip=ip, token=f"token-of-{ip}"), START_MS + day * DAY_MS
            )
    organization.visit(features_of(other_device("twin")), START_MS + 4 * DAY_MS)
    assert len(organization.blocks_read) > 2, "whose counts tell of the second, who was never here"
    assert len(organization.visitors_read) == 1


@pytest.mark.slow
def test_one_identification_stays_within_its_read_and_write_limits() -> None:
    organization = Organization()
    populate(organization, 1500, seed=1)
    assert organization.most_block_reads == 8
    assert 12 < organization.most_visitor_reads <= RECORDS_READ
    assert 6 <= organization.most_block_writes <= 8
    assert max(len(raw) for raw in organization.blocks.values()) == 4 * (BLOCK_LENGTH + 1)


@pytest.mark.slow
def test_the_same_visits_give_the_same_results_and_the_same_bytes() -> None:
    one, two = Organization(), Organization()
    populate(one, 400, seed=3)
    populate(two, 400, seed=3)
    assert one.visitors == two.visitors
    assert one.blocks == two.blocks
    assert one.statistics.rows() == two.statistics.rows()


def test_a_decision_changes_nothing_until_it_is_applied_and_learned() -> None:
    organization = Organization()
    populate(organization, 30, seed=4)
    before = (dict(organization.blocks), dict(organization.visitors), organization.statistics.rows())
    features = features_of(changed(SCREEN="new"), token=TOKEN)
    first = match_visitor(organization, organization.statistics, features, START_MS + DAY_MS)
    second = match_visitor(organization, organization.statistics, features, START_MS + DAY_MS)
    assert first == second
    assert before == (organization.blocks, organization.visitors, organization.statistics.rows())


u16, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
few_values = st.integers(0, 3)
any_features = st.builds(
    Features,
    values=st.tuples(*[st.one_of(few_values, u32)] * ATTRIBUTE_COUNT),
    family=st.integers(1, 3),
    collector=st.integers(0, 2),
    mobile=st.booleans(),
    native=st.booleans(),
    forgetful=st.booleans(),
    browser_version=u16,
    os_release=u16,
    font_sketch=u64,
    rest_sketch=u64,
    hardware=few_values,
    locale=few_values,
    token=st.integers(0, 5).map(lambda token: token * 2),
    token_is_new=st.booleans(),
    near_network=few_values,
    wide_network=few_values,
    address=few_values,
    exact=st.integers(1, 5),
    identifiable=st.just(True),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(any_features, st.integers(0, 800 * DAY_MS)), max_size=20))
def test_any_features_at_any_time_get_a_valid_result(visits: list[tuple[Features, int]]) -> None:
    organization = Organization()
    for features, offset_ms in visits:
        seen = organization.visit(features, START_MS + offset_ms)
        assert seen.confidence == 0 if seen.is_new else 85 <= seen.confidence <= 100
        assert len(block_keys(features)) <= 8
    assert organization.most_block_reads <= 8
    assert organization.most_visitor_reads <= RECORDS_READ
    assert organization.most_block_writes <= 8
    assert organization.most_visitor_writes <= 2


@settings(deadline=None, max_examples=60)
@given(st.lists(any_features, min_size=2, max_size=6), st.booleans())
@pytest.mark.slow(0.5)
def test_a_visitor_is_added_under_every_key_where_its_record_does_not_show_it(reports: list[Features], listed: bool):
    """`keys_to_add` computes no hash that it does not need; here all are, and those that stand are left out."""
    visitor = first_record(reports[0], START_MS, listed=listed)
    for report in reports[1:]:
        after = visitor.updated(report, START_MS)
        same_class = visitor.family == report.family
        standing: set[int] = set()
        if visitor.listed and report.exact in visitor.exact_hashes:
            standing.add(blocks.EXACT)
        if visitor.listed and same_class and visitor.collector == report.collector:
            standing |= blocks.same_attribute_keys(report.values, visitor.values)
        if same_class and any(near == report.near_network for near, _ in visitor.networks):
            standing.add(blocks.NETWORK)
        known = {token_key(key) for key in report.keys if visitor.token(key) or after.token(key) is None}
        wanted = [key for key in block_keys(report) if key[0] not in standing and key not in known]
        assert keys_to_add(report, visitor, after) == wanted
        visitor = after
