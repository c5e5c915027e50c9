"""What matching keeps, at its bounds: records of visitors, blocks, sketches, and calibrated probabilities."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from svc.identify.matching import Block, Features, StatisticsUpdate, features
from svc.identify.matching.blocks import EXACT, token_key
from svc.identify.matching.changes import releases_between
from svc.identify.matching.decision import by_token, rank
from svc.identify.matching.features import hash32, hash64, networks, sketch
from svc.identify.matching.likelihood import ALL_AGREE, BIT, FAR, NEAR, SURROUNDINGS, WIDE, Chance, calibrated, kind_of
from svc.identify.matching.parameters import (
    AGREEMENT_WEIGHT,
    CALIBRATION,
    LIKENESS_WITHIN,
    RARE_TOGETHER,
    RECORDS_SCORED,
    UNSEEN_TWINS,
)
from svc.identify.matching.statistics import HARDWARE, LOCALE, Statistics
from svc.identify.matching.tokens import CAME_BACK
from svc.identify.matching.visitor import NOWHERE, Visitor, first_record
from svc.identify.model import Attribute
from tests.domain.matching_world import START_MS, features_of, other_device

TOKEN = "t0ken-of-the-first-browser"


def record(**fields: Any) -> Visitor:
    return msgspec.structs.replace(first_record(features_of(), START_MS), **fields)


# ---- records of visitors


def test_a_record_keeps_twelve_values_four_networks_twelve_tokens_and_four_reports() -> None:
    visitor = record()
    for visit in range(30):
        seen = features_of(other_device(str(visit)), ip=f"20.{visit}.7.7", token=f"token-{visit:012d}")
        visitor = visitor.updated(seen, START_MS + visit)
    kept = (len(visitor.former), len(visitor.networks), len(visitor.tokens), len(visitor.exact_hashes))
    assert kept == (12, 4, 12, 4)
    newest = features_of(other_device("29"), ip="20.29.7.7", token="token-000000000029")
    assert (visitor.networks[0], visitor.exact_hashes[0]) == ((newest.near_network, newest.wide_network), newest.exact)
    assert (visitor.tokens[0].hash, visitor.tokens[0].came_back) == (newest.token, True)


@pytest.mark.parametrize("visits", [65_533, 65_534, 65_535])
def test_visit_counts_stop_at_65535(visits: int) -> None:
    visitor = record(visits=visits, visits_without_token=visits)
    for after in (visitor.counted(features_of(), START_MS), visitor.updated(features_of(), START_MS)):
        assert after.visits == after.visits_without_token == min(visits + 1, 65_535)
        assert Visitor.unpack(after.pack()) == after


@pytest.mark.parametrize(("token", "is_new", "without"), [(None, False, 1), (TOKEN, True, 1), (TOKEN, False, 0)])
def test_a_visit_without_a_stored_token_is_counted_as_such(token: str | None, is_new: bool, without: int) -> None:
    seen = features_of(token=token, token_is_new=is_new)
    visitor = record()
    for after in (visitor.counted(seen, START_MS), visitor.updated(seen, START_MS)):
        assert (after.visits, after.visits_without_token) == (2, without)


def test_a_token_that_was_sent_again_is_marked_as_returned() -> None:
    fresh, back = features_of(token=TOKEN, token_is_new=True), features_of(token=TOKEN)

    def known(visitor: Visitor) -> list[tuple[int, bool]]:
        return [(token.hash, token.came_back) for token in visitor.tokens]

    assert known(first_record(fresh, START_MS)) == [(fresh.token, False)]
    assert known(first_record(back, START_MS)) == [(fresh.token, True)]
    visitor = record().updated(fresh, START_MS)
    assert known(visitor) == [(fresh.token, False)]
    assert known(visitor.updated(fresh, START_MS)) == [(fresh.token, False)]
    stored = visitor.updated(back, START_MS)
    assert known(stored) == [(fresh.token, True)]
    assert stored.updated(fresh, START_MS).tokens == stored.tokens
    assert stored.updated(features_of(), START_MS).tokens == stored.tokens


def test_a_record_is_updated_by_a_visit_and_keeps_attributes_that_the_visit_lacks() -> None:
    visitor = record(os_release=1100, font_sketch=5, rest_sketch=6, parent=3, parent_probability=7)
    untold = msgspec.structs.replace(features_of(ip=""), browser_version=0, os_release=0, font_sketch=0, rest_sketch=0)
    same = visitor.updated(untold, START_MS - 5_000)
    networks, addresses = (NOWHERE, *visitor.networks), (0, *visitor.addresses)
    assert same == msgspec.structs.replace(
        visitor, visits=2, visits_without_token=1, networks=networks, addresses=addresses
    )
    told = msgspec.structs.replace(
        features_of(), browser_version=1500, os_release=1200, font_sketch=8, rest_sketch=9, family=77
    )
    after = visitor.updated(told, START_MS + 5_999)
    assert (after.browser_version, after.os_release, after.font_sketch, after.rest_sketch) == (1500, 1200, 8, 9)
    assert (after.family, after.parent, after.parent_probability) == (77, 3, 7)
    assert (after.first_seen_s, after.last_seen_s) == (START_MS // 1000, START_MS // 1000 + 5)


def test_a_hidden_network_is_remembered_but_matches_no_network() -> None:
    assert not record().was_hidden
    hidden = record().updated(features_of(ip=""), START_MS)
    assert hidden.was_hidden
    assert not hidden.has_near_network(0)
    assert hidden.has_near_network(features_of().near_network)
    assert Visitor.unpack(msgspec.structs.replace(hidden, visitor_id="v" * 20).pack()).was_hidden
    assert (record().was_seen, hidden.was_seen) == (True, True)
    only_hidden = first_record(features_of(ip=""), START_MS)
    from_an_earlier_version = msgspec.structs.replace(only_hidden, networks=(), addresses=())
    assert [(one.was_hidden, one.was_seen) for one in (only_hidden, from_an_earlier_version)] == [(True, False)] * 2


def test_values_of_another_collector_replace_all_values_and_former_values() -> None:
    visitor = record(former=((1, 2),))
    other = features_of({Attribute.GPU: "g"}, collector="fingerprintjs")
    after = visitor.updated(other, START_MS)
    assert (after.collector, after.values, after.former) == (other.collector, other.values, ())


def test_a_first_record_contains_its_features_and_the_probability_of_its_parent() -> None:
    seen = features_of(token=TOKEN)
    one = first_record(seen, START_MS + 999, parent=4, parent_probability=0.5)
    assert (one.parent, one.parent_probability, one.visits, one.visits_without_token) == (4, 127, 1, 0)
    assert (one.first_seen_s, one.last_seen_s) == (START_MS // 1000,) * 2
    assert (one.networks, one.exact_hashes) == (((seen.near_network, seen.wide_network),), (seen.exact,))
    assert first_record(features_of(ip=""), START_MS).networks == (NOWHERE,)
    assert first_record(seen, START_MS, parent=4, parent_probability=1.0).parent_probability == 255


@pytest.mark.parametrize(("version", "releases"), [(1401, 1), (1419, 1), (1420, 2), (1389, 1), (1380, 2), (0, 0)])
def test_ten_tenths_are_a_release(version: int, releases: int) -> None:
    seen = msgspec.structs.replace(features_of(), browser_version=version)
    assert releases_between(seen, record(browser_version=1400)) == releases


# ---- blocks and hashes


def test_a_block_counts_in_sixteenths_up_to_its_maximum() -> None:
    block = Block().with_posting(1, 0.4).with_posting(2, 1.0)
    assert block == Block(6 / 16 + 1.0, (2, 1))
    assert Block(1e12, (1,)).pack() == b"\xff\xff\xff\xff\x01\0\0\0"
    assert Block(0.3, (1, 2)).without(1) == Block(0.0, (2,))
    assert Block(2.25, (1, 2)).without(2) == Block(1.25, (1,))


def test_a_block_lists_the_newest_32() -> None:
    block = Block()
    for number in range(1, 41):
        block = block.with_posting(number, 1.0)
    assert block == Block(40.0, tuple(range(40, 8, -1)))


def test_a_token_has_one_key_whether_it_returned_or_not() -> None:
    token = features_of(token=TOKEN).token
    assert token_key(token) == token_key(token | CAME_BACK) != token_key(token ^ 2)


def test_a_sketch_covers_1024_members() -> None:
    assert sketch(["a"] * 1024 + ["b"]) == sketch(["a"])
    assert sketch(["a"] * 1023 + ["b"]) == sketch(["a", "b"]) != sketch(["a"])
    assert sketch([]) == 0


@pytest.mark.parametrize(("length", "kept"), [(64, 1), (65, 0)])
def test_long_members_are_not_kept_as_bits(length: int, kept: int) -> None:
    """Strangers choose the members: what is kept of them is bounded."""
    before = features._bit_of_short.cache_info().misses
    member = "member of a sketch ".ljust(length, "x")
    assert sketch([member]).bit_count() == 1
    assert features._bit_of_short.cache_info().misses - before == kept


def test_hashes_are_pinned() -> None:
    """They are on disk: another hash would make everybody a stranger."""
    assert (hash32(b"x"), hash64(b"x")) == (98101050, 7249239548261623610)
    four, six = b"4\x51\x02\x45\x8e", b"6\x2a\x02\x80\x71\x00\x01\x00\x02"
    assert networks("81.2.69.142") == (hash32(four[:4]), hash32(four[:3]), hash32(four))
    assert networks("2a02:8071:1:2::1") == (hash32(six[:7]), hash32(six[:5]), hash32(six))


# ---- likeness


def test_at_most_twelve_comparable_visitors_near_the_likeliest_are_scored() -> None:
    seen = features_of()
    stranger, foreign = record(family=1), record(collector=1)
    assert rank(seen, [(1, stranger), (2, foreign)]) == []
    assert [number for number, _ in rank(seen, [(1, stranger), (2, record())])] == [2]
    values = list(record().values)
    changed: list[tuple[int, Visitor]] = []
    for number in range(LIKENESS_WITHIN + 3):
        changed.append((number, record(values=tuple(values), exact_hashes=(), networks=())))
        values[list(seen.values).index(next(value for value in values if value > 1))] = 1
    assert [number for number, _ in rank(seen, changed[::-1])] == list(range(LIKENESS_WITHIN + 1))
    assert [number for number, _ in rank(seen, [(number, record()) for number in range(20)])] == list(
        range(RECORDS_SCORED)
    )
    here, there = record(exact_hashes=(), networks=((seen.near_network, 5),)), record(exact_hashes=(), networks=())
    same = record(exact_hashes=(seen.exact,), networks=())
    assert [number for number, _ in rank(seen, [(1, there), (2, here), (3, same)])] == [3, 2, 1]


@pytest.mark.parametrize(("changed", "confidence"), [(0, 99), (1, 98), (9, 90), (10, 90), (20, 90)])
def test_a_token_has_confidence_99_less_one_for_each_change_and_at_least_90(changed: int, confidence: int) -> None:
    """Decisions 3.5."""
    judged = by_token(5, changed, exact=False)
    assert (judged.number, judged.linked, judged.confidence, judged.outcome) == (5, True, confidence, "token")
    assert (judged.probability, judged.probability_new) == (1.0, 0.0)
    assert by_token(5, changed, exact=True).confidence == 100


# ---- look-alikes


def chance(devices: int, counts: dict[int, float]) -> tuple[Chance, Statistics, Features]:
    statistics = Statistics()
    for _ in range(devices):
        statistics.learn(StatisticsUpdate(features=features_of(), new_devices=1.0))
    return Chance(features_of(), counts, statistics), statistics, features_of()


def test_coincidental_matches_are_expected_by_the_frequencies_of_matching_values() -> None:
    found, statistics, seen = chance(9, {})
    logs = statistics.log_frequencies(seen)
    agreement = BIT[Attribute.CANVAS] | BIT[Attribute.AUDIO]
    weights = AGREEMENT_WEIGHT
    singly = weights[Attribute.CANVAS] * logs[Attribute.CANVAS] + weights[Attribute.AUDIO] * logs[Attribute.AUDIO]
    log_twins = math.log(9) + singly
    assert log_twins > 0.0
    assert found.log_twins(agreement, same_version=False, exact=False) == pytest.approx(log_twins)
    versions = math.log(statistics.version_share(seen))
    assert found.log_twins(agreement, same_version=True, exact=False) == pytest.approx(log_twins + versions)
    jointly = math.log(9) + logs[HARDWARE] + logs[LOCALE]
    counted = {Attribute.MODEL, Attribute.GPU, Attribute.SCREEN, Attribute.HARDWARE, Attribute.TOUCH}
    counted |= {Attribute.LANGUAGES, Attribute.TIMEZONE, Attribute.FIRST_LANGUAGE}
    jointly += sum(weights[one] * logs[one] for one in Attribute if one not in counted)
    raised = jointly + (min(RARE_TOGETHER, -0.5 * jointly) if jointly < 0.0 else 0.0)
    assert found.log_twins(ALL_AGREE, same_version=False, exact=False) == pytest.approx(raised)


@pytest.mark.parametrize("others", [0.0, 1.0, 40.0])
def test_coincidental_matches_are_bounded_by_the_count_of_the_block(others: float) -> None:
    found, _, _ = chance(500, {EXACT: 1.0 + others})
    shown = found.log_twins(ALL_AGREE, same_version=True, exact=True)
    least = math.log(others) if others else -math.inf
    assert least - 1e-9 <= shown <= math.log(others + UNSEEN_TWINS) + 1e-9
    assert found.log_twins(ALL_AGREE, same_version=True, exact=False) > shown or others


# ---- calibration


@pytest.mark.parametrize("kind", [kind_of(NEAR, exact=True, token=False), kind_of(FAR, exact=False, token=True)])
def test_a_probability_is_a_logistic_curve_of_evidence_and_prior(kind: int) -> None:
    intercept, slope = CALIBRATION[kind]
    log_prior, log_raw = math.log(0.3 / 0.7), math.log(0.9 / 0.1)
    log_right = log_prior + intercept + slope * (log_raw - log_prior)
    log_right -= 0.4 if kind % SURROUNDINGS >= WIDE else 0
    assert calibrated(kind, 0.9, 0.3, 0.4) == pytest.approx(1 / (1 + math.exp(-log_right)))
    nearly, sure = (calibrated(kind, 1 - rest, 0.3, 0.4) for rest in (1e-5, 1e-6))
    assert nearly < sure == calibrated(kind, 1.0, 0.3, 0.4)
    hardly, never = (calibrated(kind, raw, 0.3, 0.4) for raw in (1e-5, 1e-6))
    assert hardly > never == calibrated(kind, 0.0, 0.3, 0.4)


def test_a_link_to_a_visitor_that_is_elsewhere_is_cautious() -> None:
    for network_context in range(SURROUNDINGS):
        kind = kind_of(network_context, exact=True, token=True)
        intercept, slope = CALIBRATION[kind]
        log_prior, log_raw = math.log(0.3 / 0.7), math.log(0.9 / 0.1)
        caution = 0.4 if network_context >= WIDE else 0
        log_right = log_prior + intercept + slope * (log_raw - log_prior) - caution
        assert calibrated(kind, 0.9, 0.3, 0.4) == pytest.approx(1 / (1 + math.exp(-log_right)))
