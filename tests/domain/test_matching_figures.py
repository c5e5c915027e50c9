"""The figures of matching: what the tables of an organization answer, and what link decisions rest on, to nine digits.

The formulas are those of `statistics`, `chance`, `decision` and `calibration`. Small cases are worked out here by hand.
The large one adds up every figure of a year of visits, each with its own weight, so that none can change unseen; it is
compared within what the arithmetic of another machine may differ by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from svc.domain.matching import Features, Recognition, Statistics, StatisticsUpdate, extract, features, match_visitor
from svc.domain.matching.blocks import EXACT, TOKEN, Block, block_keys, token_key
from svc.domain.matching.chance import Chance
from svc.domain.matching.decision import decide
from svc.domain.matching.learned.statistics import HARDWARE, LOCALE
from svc.domain.matching.parameters import (
    ATTRIBUTE_COUNT,
    CHANGE_DESKTOP,
    CHANGE_FLOOR,
    CHANGE_MOBILE,
    CLASS_VISITS,
    PRIOR_DEVICES,
    PRIOR_FREQUENCY,
    PRIOR_HARDWARE,
    PRIOR_LOCALE,
    RETURN_RATE_MEMORY,
    RETURN_RATE_VISITS,
    RETURN_RATE_WITH_TOKEN,
    RETURN_RATE_WITHOUT_TOKEN,
)
from svc.domain.matching.tokens import STRANGERS
from svc.domain.matching.visitor import Visitor, first_record
from svc.domain.model import Attribute, Report, RequestFacts
from tests.domain.matching_world import (
    CHROME,
    DAY_MS,
    DESKTOP_VALUES,
    PHONE,
    START_MS,
    Organization,
    Seen,
    features_of,
)
from tests.domain.test_matching_pinned import visited

TOKEN_OF_ONE = "t0ken-of-the-first-browser"


def taught(*updates: StatisticsUpdate) -> Statistics:
    statistics = Statistics()
    for update in updates:
        statistics.learn(update)
    return statistics


def device(**fields: Any) -> StatisticsUpdate:
    """The update of one new device."""
    return StatisticsUpdate(features=features_of(**fields), new_devices=1.0)


# ---- frequencies


def test_a_frequency_combines_observed_counts_without_the_visitor_itself_and_the_prior() -> None:
    another = DESKTOP_VALUES | {Attribute.GPU: "another"}
    statistics = taught(*[device()] * 6, *[device(values=another)] * 3)
    logs = statistics.log_frequencies(features_of(values=another))
    assert statistics.devices(features_of().family) == 9.0
    others = 8.0 + PRIOR_DEVICES
    assert logs[Attribute.GPU] == pytest.approx(math.log((2 + PRIOR_DEVICES * PRIOR_FREQUENCY[Attribute.GPU]) / others))
    assert logs[HARDWARE] == pytest.approx(math.log((2 + PRIOR_DEVICES * PRIOR_HARDWARE) / others))
    assert logs[Attribute.CANVAS] == pytest.approx(
        math.log((8 + PRIOR_DEVICES * PRIOR_FREQUENCY[Attribute.CANVAS]) / others)
    )
    assert logs[LOCALE] == pytest.approx(math.log((8 + PRIOR_DEVICES * PRIOR_LOCALE) / others))
    assert logs[Attribute.MODEL] == 0.0, "it was not reported"


def test_an_unseen_value_has_its_prior_frequency() -> None:
    for statistics, others in ((Statistics(), 0.0), (taught(*[device()] * 3), 2.0)):
        unseen = features_of(values=DESKTOP_VALUES | {Attribute.CANVAS: "unseen"})
        believed = PRIOR_DEVICES * PRIOR_FREQUENCY[Attribute.CANVAS]
        logs = statistics.log_frequencies(unseen)
        assert logs[Attribute.CANVAS] == pytest.approx(math.log(believed / (others + PRIOR_DEVICES)))


def test_a_class_has_at_least_one_device() -> None:
    """Else the first visitors of a class would have less than one look-alike among less than one device."""
    for statistics in (Statistics(), taught(StatisticsUpdate(features=features_of(), new_devices=0.25))):
        assert Chance(features_of(), {}, statistics).devices == 1.0
    assert Chance(features_of(), {}, taught(*[device()] * 3)).devices == 3.0


def test_no_frequency_exceeds_one() -> None:
    """Half a device counts as half, and what is left of it beside the visitor is not less than nothing."""
    half = StatisticsUpdate(features=features_of(), new_devices=0.5)
    logs = taught(half).log_frequencies(features_of())
    assert logs[Attribute.PLUGINS] == 0.0
    assert logs[Attribute.TOUCH] == pytest.approx(math.log(PRIOR_FREQUENCY[Attribute.TOUCH]))
    assert max(taught(*[half] * 60).log_frequencies(features_of())) <= 0.0


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


# ---- versions, returns


def test_a_version_is_weighted_by_its_share_of_the_latest_visits() -> None:
    older = msgspec.structs.replace(CHROME, browser_version=1390)
    statistics = taught(
        *[StatisticsUpdate(features=features_of())] * 3, StatisticsUpdate(features=features_of(agent=older))
    )
    assert Statistics().version_share(features_of()) == pytest.approx(0.25)
    assert statistics.version_share(features_of()) == pytest.approx(3.5 / 6)
    assert statistics.version_share(features_of(agent=older)) == pytest.approx(1.5 / 6)
    released = msgspec.structs.replace(CHROME, os_release=1100)
    assert statistics.version_share(features_of(agent=released)) == pytest.approx(0.5 / 6), "another system is another"


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


def test_a_return_rate_starts_as_a_prior_and_follows_observations() -> None:
    fresh = features_of(token=TOKEN_OF_ONE, token_is_new=True)
    usual = RETURN_RATE_WITH_TOKEN[0]
    seen = taught(
        *[StatisticsUpdate(features=fresh, returned=1.0)] * 30, *[StatisticsUpdate(features=fresh, returned=0.5)] * 10
    )
    rate = (usual * RETURN_RATE_VISITS + 35.0) / (RETURN_RATE_VISITS + 40.0)
    rate += (usual - rate) * CLASS_VISITS / (CLASS_VISITS + 40.0)
    assert seen.return_rate(fresh) == pytest.approx(rate)
    other_class = features_of(agent=PHONE, token=TOKEN_OF_ONE, token_is_new=True)
    assert seen.return_rate(other_class) == pytest.approx(usual), "a class that never came is as others usually are"


def test_a_return_rate_has_bounds() -> None:
    _, low, high = RETURN_RATE_WITHOUT_TOKEN
    for returned, bound in ((0.0, low), (1.0, high)):
        assert (
            taught(*[StatisticsUpdate(features=features_of(), returned=returned)] * 1000).return_rate(features_of())
            == bound
        )


def test_a_return_rate_remembers_a_limited_number_of_visits() -> None:
    bare, memory = features_of(), int(RETURN_RATE_MEMORY)
    statistics = taught(*[StatisticsUpdate(features=bare, returned=1.0)] * memory)

    def kept(of: Statistics) -> list[list[float]]:
        return list(msgspec.msgpack.decode(of.rows().shared, strict=False)["returns"].values())

    assert kept(statistics) == [[memory, memory]]
    statistics.learn(StatisticsUpdate(features=bare, returned=0.0))
    assert kept(statistics) == [[memory / 2, (memory + 1) / 2]]


# ---- how often attributes change


def change_of(statistics: Statistics, attribute: Attribute, *, mobile: bool = False) -> float:
    """P(it changed at once), as it is held now."""
    return math.exp(statistics.change_tables[mobile][0][0][1][attribute])


def link(changed: dict[Attribute, str] | None = None, *, agent: Any = CHROME, **fields: Any) -> StatisticsUpdate:
    """A link of a visitor whose record says something else of these attributes."""
    before = first_record(features_of(DESKTOP_VALUES | (changed or {}), agent=agent), START_MS)
    before = msgspec.structs.replace(before, former=fields.pop("former", ()))
    return StatisticsUpdate(features=features_of(agent=agent), before=before, **fields)


@pytest.mark.parametrize(("agent", "mobile", "rates"), [(CHROME, False, CHANGE_DESKTOP), (PHONE, True, CHANGE_MOBILE)])
def test_change_rates_are_scaled_by_observed_against_expected_changes(
    agent: Any, mobile: bool, rates: dict[Attribute, Any]
) -> None:
    moved = link({Attribute.TIMEZONE: "elsewhere"}, agent=agent, proven=True)
    statistics = taught(*[moved] * 20, *[link(agent=agent, proven=True)] * 29)
    base = 1 - (1 - rates[Attribute.TIMEZONE][0])
    believed = max(base, CHANGE_FLOOR)
    assert change_of(statistics, Attribute.TIMEZONE, mobile=mobile) == pytest.approx(believed), "49 links say nothing"
    statistics.learn(link(agent=agent, proven=True))
    scale = 30 / (50 * believed + 10)
    changed = change_of(statistics, Attribute.TIMEZONE, mobile=mobile)
    assert changed == pytest.approx(max(base * scale, CHANGE_FLOOR))
    calm = 10 / (50 * max(rates[Attribute.SCREEN][0], CHANGE_FLOOR) + 10)
    assert change_of(statistics, Attribute.SCREEN, mobile=mobile) == pytest.approx(
        max(rates[Attribute.SCREEN][0] * calm, CHANGE_FLOOR)
    )
    assert Statistics().change_tables[not mobile] == statistics.change_tables[not mobile]
    copy = Statistics.of_rows(statistics.rows())
    assert copy.change_tables == statistics.change_tables


def test_unproven_links_raise_a_change_rate_and_never_lower_it() -> None:
    usual = change_of(Statistics(), Attribute.SCREEN)
    calm = taught(*[link()] * 50)
    assert change_of(calm, Attribute.SCREEN) == pytest.approx(usual)
    lively = taught(*[link({Attribute.SCREEN: "another"})] * 50)
    assert change_of(lively, Attribute.SCREEN) == pytest.approx(usual * 60 / (50 * usual + 10))


@pytest.mark.parametrize(("attribute", "bound"), [(Attribute.TOUCH, 30.0), (Attribute.CANVAS, 0.3)])
def test_a_change_rate_is_corrected_within_bounds(attribute: Attribute, bound: float) -> None:
    update = link({attribute: "another"}, proven=True) if bound > 1 else link(proven=True, days=400)
    statistics = taught(*[update] * 1000)
    scales = msgspec.msgpack.decode(statistics.rows().shared, strict=False)["changes"][0]["scale"]
    assert min(scales) >= 0.3
    assert max(scales) <= 30.0
    assert scales[attribute] == pytest.approx(bound)


def test_a_former_value_and_a_missing_value_are_not_a_change() -> None:
    known = features_of().values[Attribute.SCREEN]
    again = link({Attribute.SCREEN: "docked"}, proven=True, former=((int(Attribute.SCREEN), known),))
    assert taught(*[again] * 50).change_tables == taught(*[link(proven=True)] * 50).change_tables
    untold = link({Attribute.MODEL: "m"}, proven=True)
    without = features_of({name: value for name, value in DESKTOP_VALUES.items() if name != Attribute.SCREEN})
    statistics = taught(*[msgspec.structs.replace(untold, features=without)] * 50)
    for attribute in (Attribute.MODEL, Attribute.SCREEN):
        assert change_of(statistics, attribute) == pytest.approx(change_of(Statistics(), attribute))


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


# ---- what is read


def test_a_token_of_a_deleted_visitor_is_treated_as_unseen() -> None:
    organization = Organization()
    seen = features_of(token=TOKEN_OF_ONE)
    organization.blocks[token_key(seen.token)] = Block(1.0, (7,)).pack()
    answer = organization.visit(seen)
    assert (answer.outcome, answer.number, answer.token_conflict) == ("no_candidate", 1, False)


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


# ---- a year of visits


class Noted(Organization):
    """Keeps every figure."""

    def __init__(self) -> None:
        super().__init__()
        self.recognitions: list[Recognition] = []
        self.decisions: list[Any] = []

    def visit(self, features: Features, now_ms: int = START_MS) -> Seen:
        read = {key[0]: self.block(key) for key in block_keys(features) if key[0] != TOKEN}
        numbers = dict.fromkeys(number for block in read.values() for number in block.numbers)
        candidates: list[tuple[int, Visitor]] = [
            (number, visitor) for number in numbers if (visitor := self.visitor(number)) is not None
        ]
        counts = {kind: block.count for kind, block in read.items()}
        exact = read[EXACT].numbers
        self.decisions.append(decide(features, now_ms, counts, candidates, exact, self.statistics))
        return super().visit(features, now_ms)

    def apply(self, recognition: Recognition) -> int:
        self.recognitions.append(recognition)
        return super().apply(recognition)


def numbers_in(value: Any) -> Iterator[float]:
    """Every number, those of keys by their remainder; of bytes and texts the length."""
    if value is None:
        yield -1.0
    elif isinstance(value, bool | int | float):
        yield float(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield (int(key) if str(key).isdigit() else len(str(key))) % 97
            yield from numbers_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from numbers_in(inner)
    else:
        yield float(len(value))


def added_up(rows: Any) -> float:
    """Each with a weight by its place, so that an exchange shows, too."""
    return math.fsum(number * (1 + place % 11) for place, number in enumerate(numbers_in(rows)))


FIGURES = {
    "probability": 2866.809426531799,
    "probability_new": 1086.337810474587,
    "raw": 2954.25535276071,
    "kinds": 55861.0,
    "confidence": 211868.0,
    "new_devices": 585.4241047387877,
    "returned": 496.8777972514344,
    "links": 77806.0,
    "postings": 10547.179285812412,
    "parents": 303182.0,
    "classes": 216115.19102479648,
    "returns": 4367.876035425102,
    "changes": 8499.148442759442,
}


@pytest.mark.slow
def test_a_year_of_visits_has_pinned_figures() -> None:
    noted = Noted()
    visited(noted, seed=21, persons=45, visits=700)
    updates = [recognition.statistics_update for recognition in noted.recognitions]
    rows = noted.statistics.rows()
    decode = partial(msgspec.msgpack.decode, strict=False)
    classes = {family: decode(raw) for family, raw in rows.classes.items()}
    assert not any(known.pop("handshakes") for known in classes.values()), "no visit showed any"
    state = decode(rows.shared) | {"classes": classes}
    figures = {
        "probability": added_up([judged.probability for judged in noted.decisions]),
        "probability_new": added_up([judged.probability_new for judged in noted.decisions]),
        "raw": added_up([judged.raw for judged in noted.decisions]),
        "kinds": added_up([(judged.kind, judged.distinct, judged.near) for judged in noted.decisions]),
        "confidence": added_up([judged.confidence for judged in noted.decisions]),
        "new_devices": added_up([update.new_devices for update in updates]),
        "returned": added_up([update.returned for update in updates]),
        "links": added_up([(update.days, update.proven, update.before is None) for update in updates]),
        "postings": added_up([[w for _, w in recognition.postings] for recognition in noted.recognitions]),
        "parents": added_up([r.visitor.parent_probability for r in noted.recognitions if r.visitor is not None]),
        **{name: added_up(state[name]) for name in ("classes", "returns", "changes")},
    }
    assert figures == pytest.approx(FIGURES, rel=1e-9)


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


# ---- the edges of rules


ALIKE = [
    {"token": token, "token_is_new": is_new, "forgetful": forgetful, "native": native}
    for token, is_new in ((0, False), (2, True), (2, False))
    for forgetful in (False, True)
    for native in (False, True)
]


@pytest.mark.parametrize("one", ALIKE)
def test_return_rates_are_kept_separately_for_each_kind_of_visit(one: dict[str, Any]) -> None:
    """Alike are those of one token state; a browser that forgets is another one only where there is what to forget."""

    def state(fields: dict[str, Any]) -> tuple[Any, ...]:
        forgets = fields["forgetful"] and bool(fields["token"])
        return fields["token"], fields["token_is_new"], forgets, fields["native"]

    features = msgspec.structs.replace(features_of(), **one)
    statistics = taught(*[StatisticsUpdate(features=features, returned=0.9)] * 30)
    unlearned = taught(*[StatisticsUpdate(features=features)] * 30)
    for other in ALIKE:
        visit = msgspec.structs.replace(features_of(), **other)
        is_learned = statistics.return_rate(visit) != unlearned.return_rate(visit)
        assert is_learned is (state(one) == state(other)), other


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
