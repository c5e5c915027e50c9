"""`repeated_report`, places and handshakes: what is remembered, and what it shows (docs/signals.md)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.history.evidence import (
    DAY_S,
    ENOUGH_DEVICES,
    PLACES,
    VisitorPlaces,
    came_from,
    new_place,
    with_unusual_handshake,
)
from svc.identify.history.newcomers import CAME_BACK_S, WINDOW_S, alike_key, repeated_report
from svc.identify.matching import Features, Statistics, StatisticsUpdate, Visitor
from svc.identify.matching.blocks import block_keys, exact_key
from svc.identify.matching.lessons import (
    ENOUGH,
    FADING,
    FINGERPRINTS,
    VERSIONS,
    Handshakes,
    is_unusual,
    learn_handshake,
)
from svc.identify.matching.visitor import first_record
from svc.identify.model import Attribute, Observation
from tests.domain.matching_world import DESKTOP_VALUES, features_of, other_device

NOW_S = 1_767_268_800


def other(network: int, after_s: float = 0, *, stays_s: int = 0, token: str | None = None, **given: bool) -> Visitor:
    features = features_of(ip=f"81.{network}.7.9", token=token, token_is_new=given.get("token_is_new", True))
    first_s = NOW_S + int(after_s)
    return msgspec.structs.replace(first_record(features, first_s * 1000), last_seen_s=first_s + stays_s)


def found(*others: Visitor, features: Features | None = None, statistics: Statistics | None = None) -> list[str]:
    mine = features or features_of(ip="82.1.2.3")
    return [one.signal for one in repeated_report(mine, NOW_S, others, statistics or Statistics())]


def test_two_fresh_visitors_from_elsewhere_fire():
    assert found(other(1), other(2)) == ["repeated_report"]
    assert found(other(1)) == []
    assert found(other(1), other(1)) == [], "one network"
    assert found(other(1), other(2), features=features_of(ip="81.2.7.200")) == [], "its own network is no other"


def test_what_is_a_week_old_or_came_back_is_not_fresh():
    assert found(other(1), other(2, -WINDOW_S)) == ["repeated_report"]
    assert found(other(1), other(2, -WINDOW_S - 1)) == []
    assert found(other(1), other(2, stays_s=CAME_BACK_S)) == ["repeated_report"]
    assert found(other(1), other(2, stays_s=CAME_BACK_S + 1)) == []
    stored = other(2, token="a token that came back", token_is_new=False)
    assert found(other(1), stored) == []


def test_devices_of_the_model_that_come_back_explain_twice_as_many():
    living = other(9, stays_s=DAY_S)
    assert found(other(1), other(2), living) == []
    assert found(other(1), other(2), other(3), living) == ["repeated_report"]
    assert found(*(other(network) for network in range(1, 5)), living, living) == []


def known(devices: int, features: Features) -> Statistics:
    """Statistics of so many other devices of its class, none of which is like it in any part."""
    statistics = Statistics()
    for number in range(devices):
        of_another = features_of(other_device(str(number)))
        shared = msgspec.structs.replace(of_another, family=features.family)
        statistics.learn(StatisticsUpdate(features=shared, new_devices=1.0))
    return statistics


@pytest.mark.parametrize("changes", [{"mobile": True}, {"forgetful": True}, {"native": True}])
def test_classes_of_few_models_are_judged_once_they_are_known(changes: dict[str, bool]):
    features = msgspec.structs.replace(features_of(ip="82.1.2.3"), **changes)
    assert found(other(1), other(2), features=features) == []
    assert "repeated_report" in found(other(1), other(2), features=features, statistics=known(ENOUGH_DEVICES, features))


def test_a_rare_device_weighs_more_however_often_its_report_was_repeated():
    features = features_of(ip="82.1.2.3")
    statistics = known(ENOUGH_DEVICES, features)
    for _ in range(3):
        statistics.learn(StatisticsUpdate(features=features, new_devices=1.0))
    others = [other(network) for network in (1, 2, 3)]
    assert found(*others, statistics=statistics) == ["repeated_report", "repeated_rare_report"]
    for _ in range(40):
        statistics.learn(StatisticsUpdate(features=features, new_devices=1.0))
    assert found(*others, statistics=statistics) == ["repeated_report"], "so many do have this hardware"


def test_look_alikes_are_found_on_any_release():
    features = features_of()
    newer = features_of(DESKTOP_VALUES | {Attribute.CANVAS: "canvas-2"})
    assert alike_key(features) == alike_key(newer)
    assert alike_key(features) in block_keys(features)
    poor = features_of({Attribute.CANVAS: "canvas-1"})
    assert alike_key(poor) == exact_key(poor.exact)


# Places


def test_a_country_and_a_network_must_both_be_new():
    before = came_from(VisitorPlaces(), ("GB", 20712))
    assert before == VisitorPlaces(("GB",), (20712,))
    shown = Observation("network_new_for_visitor", "low", ("country_and_network_never_seen",))
    assert new_place(before, ("JP", 2497)) == shown
    assert new_place(before, ("GB", 2497)) is None, "its own country"
    assert new_place(before, ("JP", 20712)) is None, "its own network"
    assert new_place(VisitorPlaces(), ("JP", 2497)) is None, "nothing is known of it"


@given(st.lists(st.tuples(st.sampled_from("ABCDEFGHIJKLM"), st.integers(1, 14)), max_size=60))
def test_places_are_few_and_hold_the_latest(visits: list[tuple[str, int]]):
    places = VisitorPlaces()
    for place in visits:
        before, places = places, came_from(places, place)
        assert (places == before) == (places is before)
        assert place[0] in places.countries
        assert place[1] in places.networks
        for kept in (places.countries, places.networks):
            assert len(kept) == len(set(kept)) <= PLACES


# Handshakes


def test_a_handshake_is_unusual_only_among_enough():
    learned: Handshakes = {}
    for _ in range(ENOUGH - 1):
        learn_handshake(learned, 137, 1)
    assert not is_unusual(learned, 137, 2)
    learn_handshake(learned, 137, 1)
    assert is_unusual(learned, 137, 2)
    assert not is_unusual(learned, 137, 1)
    assert not is_unusual(learned, 138, 2), "nothing is known of that version"
    learn_handshake(learned, 137, 2)
    assert not is_unusual(learned, 137, 2)


def test_handshakes_are_bounded_and_keep_the_common_ones():
    learned: Handshakes = {}
    for _ in range(round(FADING) + 10):
        learn_handshake(learned, 137, 1)
    for fingerprint in range(2, 100):
        learn_handshake(learned, 137, fingerprint)
    for version in range(200):
        learn_handshake(learned, version, 1)
    assert 1 in learned[137]
    assert len(learned[137]) <= FINGERPRINTS
    assert len(learned) == VERSIONS
    assert sum(learned[137].values()) <= FADING


def test_handshakes_are_stored_with_their_class():
    features, statistics = features_of(), Statistics()
    for _ in range(ENOUGH):
        statistics.learn(StatisticsUpdate(features=features, handshake=7))
    read = Statistics.of_rows(statistics.rows())
    for each in (statistics, read):
        assert each.is_unusual_handshake(features, 8)
        assert not each.is_unusual_handshake(features, 7)


def test_an_unusual_handshake_joins_what_was_found_before():
    alone = with_unusual_handshake(())
    assert alone == (Observation("forged_report", "medium", ("unusual_handshake",)),)
    found_before = (Observation("forged_report", "medium", ("hints_missing",)), Observation("tor", "high"))
    assert with_unusual_handshake(found_before) == (
        Observation("tor", "high"),
        Observation("forged_report", "high", ("hints_missing", "unusual_handshake")),
    )
