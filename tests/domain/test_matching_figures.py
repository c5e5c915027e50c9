"""The bounds of what matching learns and reads, which the year of `test_matching_pinned` does not reach."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from svc.identify.matching import Features, Statistics, StatisticsUpdate, extract, features, match_visitor
from svc.identify.matching.blocks import Block, block_keys, token_key
from svc.identify.matching.decision import decide
from svc.identify.matching.parameters import (
    ATTRIBUTE_COUNT,
    PRIOR_DEVICES,
    PRIOR_FREQUENCY,
    PRIOR_HARDWARE,
    RETURN_RATE_MEMORY,
)
from svc.identify.matching.statistics import HARDWARE
from svc.identify.matching.tokens import STRANGERS
from svc.identify.matching.visitor import first_record
from svc.identify.model import Agent, Attribute, Report, RequestFacts
from tests.domain.matching_world import (
    CHROME,
    DAY_MS,
    DESKTOP_VALUES,
    START_MS,
    Organization,
    features_of,
)
from tests.domain.test_matching_pinned import SAFARI, Noted, visited

TOKEN_OF_ONE = "t0ken-of-the-first-browser"


def taught(*updates: StatisticsUpdate) -> Statistics:
    statistics = Statistics()
    for update in updates:
        statistics.learn(update)
    return statistics


def hardware_seen(statistics: Statistics, place: int) -> set[int]:
    (known,) = statistics.rows().classes.values()
    return set(map(int, msgspec.msgpack.decode(known, strict=False)["tables"][place]))


@pytest.mark.parametrize(
    ("place", "attribute", "most"),
    [(int(Attribute.CANVAS), Attribute.CANVAS, 64), (HARDWARE, Attribute.GPU, 256)],
)
def test_a_full_table_keeps_common_values_and_halves_the_frequency_of_the_others(
    place: int, attribute: Attribute, most: int
) -> None:
    """Lossy counting: the table is cut as soon as it has more than twice its size, to at most its size."""

    def seen(value: int) -> Features:
        return features_of(DESKTOP_VALUES | {attribute: str(value)})

    statistics = Statistics()
    for value in range(2 * most):
        statistics.learn(StatisticsUpdate(features=seen(value), new_devices=4.0 if value < 9 else 3.0))
    assert len(hardware_seen(statistics, place)) == 2 * most
    statistics.learn(StatisticsUpdate(features=seen(2 * most), new_devices=1.0))
    kept = hardware_seen(statistics, place)
    assert len(kept) == 9 + 1, "those above the bar, and the height of the bar"
    of = statistics.log_frequencies
    scale = statistics.devices(features_of().family) - 1 + PRIOR_DEVICES
    prior = PRIOR_DEVICES * (PRIOR_HARDWARE if place == HARDWARE else PRIOR_FREQUENCY[attribute])
    assert of(seen(0))[place] == pytest.approx(math.log((3 + prior) / scale))
    assert of(seen(20))[place] == pytest.approx(math.log((0.5 + prior) / scale)), "half of three, less itself"
    # A bar that was higher once stays: a later cut at one does not make the dropped look rarer.
    for value in range(3 * most, 6 * most):
        statistics.learn(StatisticsUpdate(features=seen(value), new_devices=1.0))
    scale = statistics.devices(features_of().family) - 1 + PRIOR_DEVICES
    assert of(seen(20))[place] == pytest.approx(math.log((0.5 + prior) / scale))


def test_the_least_visited_class_is_evicted_for_a_new_one() -> None:
    statistics = Statistics()

    def of_class(number: int) -> Features:
        return msgspec.structs.replace(features_of(), family=number)

    for number in range(1, 49):
        for _ in range(1 if number == 7 else 2):
            statistics.learn(StatisticsUpdate(features=of_class(number), new_devices=1.0))
    assert all(statistics.devices(number) for number in range(1, 49))
    statistics.learn(StatisticsUpdate(features=of_class(999), new_devices=1.0))
    there = [number for number in (*range(1, 49), 999) if statistics.devices(number)]
    assert there == [*range(1, 7), *range(8, 49), 999]


def test_version_counts_decay_and_versions_seen_once_are_forgotten() -> None:
    older = features_of(agent=msgspec.structs.replace(CHROME, browser_version=1390))
    rare = features_of(agent=msgspec.structs.replace(CHROME, browser_version=1380))
    many = 600
    updates = [StatisticsUpdate(features=rare), *[StatisticsUpdate(features=older)] * 3]
    statistics = taught(*updates, *[StatisticsUpdate(features=features_of())] * (many - 4))
    assert statistics.version_share(rare) == pytest.approx(1.5 / (many + 2))
    statistics.learn(StatisticsUpdate(features=features_of()))
    left = (many + 1) / 2
    assert statistics.version_share(rare) == pytest.approx(1.0 / (left + 2))
    assert statistics.version_share(older) == pytest.approx(2.0 / (left + 2))
    assert statistics.version_share(features_of()) == pytest.approx(((many - 3) / 2 + 0.5) / (left + 2))
    for _ in range(many // 2):
        statistics.learn(StatisticsUpdate(features=features_of()))
    left = (left + many // 2) / 2
    assert statistics.version_share(rare) == pytest.approx(0.5 / (left + 2)), "as one that never came"
    assert statistics.version_share(older) == pytest.approx((0.75 + 0.5) / (left + 2))


def test_a_return_rate_remembers_a_limited_number_of_visits() -> None:
    bare, memory = features_of(), int(RETURN_RATE_MEMORY)
    statistics = taught(*[StatisticsUpdate(features=bare, returned=1.0)] * memory)

    def kept(of: Statistics) -> list[list[float]]:
        return list(msgspec.msgpack.decode(of.rows().shared, strict=False)["returns"].values())

    assert kept(statistics) == [[memory, memory]]
    statistics.learn(StatisticsUpdate(features=bare, returned=0.0))
    assert kept(statistics) == [[memory / 2, (memory + 1) / 2]]


def link(changed: dict[Attribute, str] | None = None, *, agent: Any = CHROME, **fields: Any) -> StatisticsUpdate:
    """A link of a visitor whose record says something else of these attributes."""
    before = first_record(features_of(DESKTOP_VALUES | (changed or {}), agent=agent), START_MS)
    before = msgspec.structs.replace(before, former=fields.pop("former", ()))
    return StatisticsUpdate(features=features_of(agent=agent), before=before, **fields)


@pytest.mark.parametrize(("attribute", "bound"), [(Attribute.TOUCH, 30.0), (Attribute.CANVAS, 0.3)])
def test_a_change_rate_is_corrected_within_bounds(attribute: Attribute, bound: float) -> None:
    update = link({attribute: "another"}, proven=True) if bound > 1 else link(proven=True, days=400)
    statistics = taught(*[update] * 1000)
    scales = msgspec.msgpack.decode(statistics.rows().shared, strict=False)["changes"][0]["scale"]
    assert min(scales) >= 0.3
    assert max(scales) <= 30.0
    assert scales[attribute] == pytest.approx(bound)


def test_link_counts_are_bounded_and_old_ones_decay() -> None:
    statistics = taught(*[link({Attribute.SCREEN: "another"}, proven=True)] * 1000)

    def changes() -> dict[str, Any]:
        return msgspec.msgpack.decode(statistics.rows().shared, strict=False)["changes"][0]

    assert changes()["links"] == 1000
    assert changes()["proven_observed"][Attribute.SCREEN] == 1000.0
    state = msgspec.msgpack.decode(statistics.rows().shared, strict=False)
    state["changes"][0]["links"] = 19_999
    statistics = Statistics(msgspec.msgpack.encode(state))
    statistics.learn(link(proven=True))
    assert (changes()["links"], changes()["proven_observed"][Attribute.SCREEN]) == (20_000, 1000.0)
    state["changes"][0]["links"] = 20_999
    statistics = Statistics(msgspec.msgpack.encode(state))
    statistics.learn(link(proven=True))
    assert (changes()["links"], changes()["proven_observed"][Attribute.SCREEN]) == (10_000, 500.0)


def test_long_values_are_not_kept_as_hashes() -> None:
    """Strangers choose the values: what is kept of them is bounded."""
    for length, kept in ((256, 1), (257, 0)):
        before = features._hash_of_short.cache_info().misses
        features_of({Attribute.GPU: "x" * (length - len("plain:"))})
        assert features._hash_of_short.cache_info().misses - before == kept


def test_values_are_compared_with_those_of_the_first_collector_of_a_report() -> None:
    def collector(*names: str) -> int:
        return extract(Report(collectors=names, attributes=DESKTOP_VALUES), CHROME, RequestFacts(ip="")).collector

    assert collector("fingerprintjs", "botd") == collector("fingerprintjs") != collector("botd")
    assert collector() == 0


def test_a_known_token_with_a_recent_report_reads_one_block_and_one_visitor() -> None:
    """With one that was sent before them, or never, the block of the report beside it."""
    organization = Organization()
    reports = [features_of(DESKTOP_VALUES | {Attribute.REST: str(place)}, token=TOKEN_OF_ONE) for place in range(6)]
    for visit, seen in enumerate(reports):
        organization.visit(seen, START_MS + visit * DAY_MS)

    def read(seen: Features) -> tuple[int, int, int]:
        now_ms = START_MS + 9 * DAY_MS
        organization.forget_reads()
        confidence = match_visitor(organization, organization.statistics, seen, now_ms).confidence
        return len(organization.blocks_read), len(organization.visitors_read), confidence

    assert read(reports[-1]) == (1, 1, 100)
    assert read(reports[0]) == (2, 1, 100)
    assert read(features_of(token=TOKEN_OF_ONE)) == (2, 1, 98)


def test_most_returns_read_two_blocks_and_one_visitor() -> None:
    """The bound that recognition promises: a report that one visitor alone has sent, from its own network."""
    organization = Organization()
    first = organization.visit(features_of())
    organization.visit(features_of(DESKTOP_VALUES | {Attribute.CANVAS: "another"}))
    second_ms = START_MS + DAY_MS
    organization.forget_reads()
    recognition = match_visitor(organization, organization.statistics, features_of(), second_ms)
    assert (recognition.number, recognition.outcome) == (first.number, "exact")
    assert (len(organization.blocks_read), len(organization.visitors_read)) == (2, 1)
    assert len(block_keys(features_of())) > 2
    assert features_of().values.count(0) == ATTRIBUTE_COUNT - len(DESKTOP_VALUES)


def test_a_change_of_network_within_one_day_lowers_the_probability() -> None:
    """To the second: from one day on it is no haste any more."""

    def raw(gap_s: int) -> float:
        seen = features_of(DESKTOP_VALUES | {Attribute.CANVAS: "new"}, ip="203.0.113.9")
        candidates = [(1, first_record(features_of(), START_MS))]
        return decide(seen, START_MS + gap_s * 1000, {}, candidates, (), Statistics()).raw

    day_s = 86_400
    assert raw(day_s - 2) == pytest.approx(raw(day_s - 1), rel=1e-4)
    assert raw(day_s) == pytest.approx(raw(day_s + 1), rel=1e-4)
    assert raw(day_s) > 2 * raw(day_s - 1)


@pytest.mark.parametrize(
    ("agent", "days", "is_usual"), [(SAFARI, 7.1, True), (SAFARI, 7.0, False), (CHROME, 7.1, False)]
)
def test_webkit_comes_without_its_token_as_a_rule_once_it_was_away_for_seven_days(
    agent: Agent, days: float, is_usual: bool
) -> None:
    """The more usual that is, the less a habit of it tells a visitor apart."""

    def odds(without_token: int) -> float:
        features = features_of(agent=agent, token=TOKEN_OF_ONE, token_is_new=True)
        known = msgspec.structs.replace(first_record(features, START_MS), tokens=(), visits=9)
        visitor = msgspec.structs.replace(known, visits_without_token=without_token)
        now_ms = START_MS + round(days * DAY_MS)
        raw = decide(features, now_ms, {}, [(1, visitor)], (1,), Statistics()).raw
        return raw / (1.0 - raw)

    assert (odds(9) / odds(0) < 5.0) is is_usual


def test_nineteen_look_alikes_and_the_visitor_of_the_token_are_read() -> None:
    organization = Organization()
    seen = features_of(token=TOKEN_OF_ONE)
    for number in range(1, 31):
        visitor = first_record(features_of(), START_MS)
        organization.visitors[number] = msgspec.structs.replace(visitor, visitor_id=f"{number:020d}").pack()
    for key in block_keys(features_of()):
        organization.blocks[key] = Block(30.0, tuple(range(1, 31))).pack()
    match_visitor(organization, organization.statistics, features_of(), START_MS)
    assert organization.visitors_read == set(range(1, 20))
    organization.visitors[31] = organization.visitors[30]
    organization.blocks[token_key(seen.token)] = Block(1.0, (31,)).pack()
    organization.forget_reads()
    recognition = match_visitor(organization, organization.statistics, seen, START_MS)
    assert recognition.number == 31
    assert organization.visitors_read == {31}


def test_a_visitor_is_not_posted_again_to_blocks_that_list_it() -> None:
    organization = Organization()
    organization.visit(features_of(token=TOKEN_OF_ONE))
    seen = features_of(DESKTOP_VALUES | {Attribute.FONTS: "another"}, token=TOKEN_OF_ONE)
    recognition = match_visitor(organization, organization.statistics, seen, START_MS + DAY_MS)
    standing = set(block_keys(features_of(token=TOKEN_OF_ONE)))
    assert {key for key, _ in recognition.postings} == set(block_keys(seen)) - standing
    assert {weight for _, weight in recognition.postings} == {1.0}
    again = match_visitor(organization, organization.statistics, features_of(token=TOKEN_OF_ONE), START_MS + DAY_MS)
    assert again.postings == ()


@pytest.mark.parametrize(
    ("known_ip", "ip", "changed"),
    [
        ("81.2.69.142", "81.2.69.142", False),
        ("81.2.69.142", "", False),
        ("", "81.2.69.142", False),
        ("", "", False),
        ("81.2.69.142", "203.0.113.9", False),
        ("81.2.69.142", "81.2.69.142", True),
        ("", "", True),
    ],
)
@pytest.mark.parametrize(("origin", "shared"), [("https://shop.example", True), ("https://other.example", False)])
def test_two_tokens_of_one_site_are_two_devices_when_the_older_comes_back(
    known_ip: str, ip: str, changed: bool, origin: str, shared: bool
) -> None:
    """Wherever it comes from, and whatever it reports. Two tokens of two sites are one browser on both."""
    other_token = "another-token-of-it"
    organization = Organization()
    organization.visit(features_of(token=other_token, ip=known_ip, origin="https://shop.example"))
    known = organization.visitor(1)
    assert known is not None
    first = features_of(token=TOKEN_OF_ONE, ip=known_ip, origin=origin)
    organization.visitors[1] = known.updated(first, START_MS).pack()
    values = DESKTOP_VALUES | ({Attribute.CANVAS: "another"} if changed else {})
    seen = features_of(values, token=other_token, ip=ip, origin="https://shop.example")
    recognition = match_visitor(organization, organization.statistics, seen, START_MS + DAY_MS)
    assert recognition.number == 1
    assert recognition.visitor is not None
    joined = recognition.visitor.token(first.token)
    assert joined is not None
    assert (joined.probation == STRANGERS) is shared


def test_the_probabilities_of_known_and_new_add_up_to_at_most_one() -> None:
    noted = Noted()
    visited(noted, seed=22, persons=30, visits=150)
    for judged in noted.decisions:
        assert 0.0 <= judged.probability_new <= 1.0
        assert judged.probability + judged.probability_new <= 1.0 + 1e-12
        assert judged.linked is (judged.confidence > 0)
        assert judged.confidence in (0, *range(85, 101))
        assert judged.confidence < 100 or judged.outcome == "exact"
