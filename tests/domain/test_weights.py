"""Whose weights are in force, and what a save may change (decisions 6, interface 2.11)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.domain.model import PLATFORMS, Observation, Platform
from svc.domain.refusals import Detail, Refusal
from svc.domain.scoring.score import Weights, default_profile, score
from svc.domain.scoring.signals import default_weights, signal_names
from svc.domain.scoring.weights import StoredWeights, WeightsChange, changed, resolve


def saved(change: WeightsChange, stored: StoredWeights | None = None, platform: Platform = "web") -> StoredWeights:
    result = changed(stored, resolve(None, stored, platform), change, platform, 5)
    assert isinstance(result, StoredWeights)
    return result


def faults(change: WeightsChange, platform: Platform = "web") -> list[tuple[str, str]]:
    result = changed(None, default_profile(platform), change, platform, 5)
    assert isinstance(result, Refusal)
    assert result.code == "validation_error"
    assert all(detail.location == "body" for detail in result.details)
    return [(detail.field, detail.issue) for detail in result.details]


def test_key_configuration_takes_precedence_over_organization_configuration_and_default():
    of_key, of_organization = saved(WeightsChange(threshold=10)), saved(WeightsChange(threshold=20))
    assert (resolve(of_key, of_organization, "web").threshold, resolve(of_key, None, "web").scope) == (10, "key")
    organization = resolve(None, of_organization, "web")
    assert (organization.threshold, organization.scope) == (20, "organization")
    assert resolve(None, None, "ios") == default_profile("ios")


def test_a_configuration_applies_as_a_whole():
    of_organization = saved(WeightsChange(weights={"tor": 90}, vpn_mode="confidence"))
    of_key = saved(WeightsChange(weights={"hosting": 1}))
    in_force = resolve(of_key, of_organization, "web")
    assert (in_force.weights["tor"], in_force.weights["hosting"], in_force.vpn_mode) == (25, 1, "method")


def test_values_missing_from_a_save_keep_their_current_value():
    first = saved(WeightsChange(threshold=50, weights={"tor": 1}, residential_proxy_mode="confidence"))
    assert first == StoredWeights(
        revision=1,
        threshold=50,
        weights=default_weights("web") | {"tor": 1},
        vpn_mode="method",
        residential_proxy_mode="confidence",
        updated_at_ms=5,
    )
    second = saved(WeightsChange(vpn_mode="confidence", weights={"hosting": 0}), first)
    assert (second.revision, second.threshold, second.vpn_mode) == (2, 50, "confidence")
    assert (second.residential_proxy_mode, second.weights["tor"], second.weights["hosting"]) == ("confidence", 1, 0)


def test_the_first_configuration_of_a_key_starts_from_its_effective_values():
    of_organization = saved(WeightsChange(threshold=77, weights={"tor": 3}))
    first = changed(None, resolve(None, of_organization, "web"), WeightsChange(weights={"hosting": 2}), "web", 5)
    assert isinstance(first, StoredWeights)
    assert (first.revision, first.threshold, first.weights["tor"], first.weights["hosting"]) == (1, 77, 3, 2)


def test_a_signal_newer_than_the_configuration_counts_zero_also_after_the_next_save():
    older = msgspec.structs.replace(
        saved(WeightsChange()), weights={name: 9 for name in default_weights("web") if name != "replayed"}
    )
    seen = [Observation("replayed", "high"), Observation("tor", "high")]
    assert score(seen, resolve(older, None, "web"), "web").score == 9
    assert saved(WeightsChange(threshold=31), older).weights["replayed"] == 0
    assert saved(WeightsChange(weights={"replayed": 40}), older).weights["replayed"] == 40


def test_a_configuration_names_every_signal_of_its_platform():
    for platform in PLATFORMS:
        assert tuple(saved(WeightsChange(), platform=platform).weights) == signal_names(platform)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (WeightsChange(threshold=0), [("suspect_threshold", "out_of_range")]),
        (WeightsChange(threshold=1001), [("suspect_threshold", "out_of_range")]),
        (WeightsChange(weights={"tor": -1}), [("weights.tor", "out_of_range")]),
        (WeightsChange(weights={"tor": 101}), [("weights.tor", "out_of_range")]),
        (WeightsChange(weights={"moon": 5}), [("weights.moon", "unknown_signal")]),
        (WeightsChange(weights={"emulator": 5}), [("weights.emulator", "unknown_signal")]),
        (
            WeightsChange(threshold=-3, weights={"moon": 500, "tor": 500}),
            [
                ("suspect_threshold", "out_of_range"),
                ("weights.moon", "unknown_signal"),
                ("weights.tor", "out_of_range"),
            ],
        ),
    ],
)
def test_every_error_of_a_change_is_named(change: WeightsChange, found: list[tuple[str, str]]):
    assert faults(change) == found


def test_a_signal_is_known_on_its_own_platforms():
    assert saved(WeightsChange(weights={"emulator": 5}), platform="android").weights["emulator"] == 5
    assert faults(WeightsChange(weights={"headless": 5}), "android") == [("weights.headless", "unknown_signal")]


@pytest.mark.parametrize("threshold", [1, 1000])
def test_the_bounds_are_inclusive(threshold: int):
    stored = saved(WeightsChange(threshold=threshold, weights={"tor": 0, "hosting": 100}))
    assert (stored.threshold, stored.weights["tor"], stored.weights["hosting"]) == (threshold, 0, 100)


def test_a_save_based_on_another_revision_is_a_conflict():
    stored = saved(WeightsChange())
    for revision in (0, 2):
        change = WeightsChange(revision=revision, threshold=40)
        assert changed(stored, resolve(stored, None, "web"), change, "web", 6) == Refusal("revision_conflict")
    assert saved(WeightsChange(revision=1, threshold=40), stored).revision == 2
    assert saved(WeightsChange(revision=0)).revision == 1


def test_an_invalid_change_is_reported_before_a_conflict():
    change = WeightsChange(revision=9, weights={"moon": 1})
    refusal = changed(None, default_profile("web"), change, "web", 6)
    assert refusal == Refusal("validation_error", (Detail("weights.moon", "unknown_signal", "body"),))


@given(
    st.lists(
        st.tuples(st.integers(1, 1000), st.dictionaries(st.sampled_from(signal_names("web")), st.integers(0, 100))),
        max_size=6,
    )
)
def test_any_sequence_of_saves_ends_with_the_latest_value_of_each_weight(saves: list[tuple[int, dict[str, int]]]):
    stored, expected = None, default_weights("web")
    for threshold, weights in saves:
        expected |= weights
        stored = saved(WeightsChange(threshold=threshold, weights=weights), stored)
        assert stored.threshold == threshold
    in_force = resolve(stored, None, "web")
    assert in_force.weights == expected
    assert isinstance(in_force, Weights)
    assert stored is None or stored.revision == len(saves)
