"""What counts, what it adds up to, and how it is shown (decisions 3.7, 3.8, 6; docs/signals.md)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.model import EventSignal, EventTrigger, Level, Observation
from svc.identify.scoring.score import Score, Weights, default_profile, group_triggers, in_force, level_of, score
from svc.identify.scoring.signals import CATALOG, default_weights
from svc.kernel.values.fields import PLATFORMS, Platform


def seen(*signals: str, confidence: Level = "medium") -> list[Observation]:
    return [Observation(signal, confidence) for signal in signals]


def fired(*signals: str, profile: Weights | None = None, platform: Platform = "web") -> list[str]:
    return [trigger.signal for trigger in in_force(seen(*signals), profile or default_profile(platform), platform)]


def test_nothing_observed_scores_zero_and_low() -> None:
    assert score([], default_profile("web"), "web") == Score(0, "low", ())


def test_the_score_is_the_plain_sum_heaviest_first_ties_by_name() -> None:
    result = score(seen("vpn_public", "hosting", "browser_tampering", "tor"), default_profile("web"), "web")
    assert [(trigger.signal, trigger.weight) for trigger in result.triggers] == [
        ("tor", 25),
        ("browser_tampering", 15),
        ("hosting", 15),
    ]
    assert result.score == 55
    assert result.level == "medium"


def test_a_trigger_has_its_group_weight_and_confidence() -> None:
    profile = Weights(weights={"tor": 7})
    assert in_force(seen("tor", confidence="high"), profile, "web") == [EventSignal("tor", "tor", 7, "high")]


@pytest.mark.parametrize(
    ("total", "threshold", "level"),
    [
        (0, 30, "low"),
        (29, 30, "low"),
        (30, 30, "medium"),
        (59, 30, "medium"),
        (60, 30, "high"),
        (0, 1, "low"),
        (1, 1, "medium"),
        (2, 1, "high"),
    ],
)
def test_levels_change_at_the_threshold_and_at_twice_the_threshold(total: int, threshold: int, level: Level) -> None:
    assert level_of(total, threshold) == level


def test_the_level_follows_the_threshold_of_the_profile() -> None:
    profile = Weights(threshold=100, weights=default_weights("web"))
    assert score(seen("automation"), profile, "web").level == "low"


def test_a_signal_of_weight_zero_does_not_trigger() -> None:
    assert fired("search_crawler") == []
    assert fired("tor", profile=Weights(weights={"tor": 0})) == []


def test_a_signal_missing_from_a_stored_profile_counts_zero() -> None:
    assert fired("tor", "hosting", profile=Weights(weights={"hosting": 15})) == ["hosting"]


def test_a_signal_counts_only_on_the_platforms_that_have_it() -> None:
    assert fired("headless", platform="web") == ["headless"]
    assert fired("headless", platform="ios", profile=default_profile("web")) == []
    assert fired("emulator", platform="web", profile=default_profile("android")) == []


def test_a_name_outside_the_catalog_counts_nothing() -> None:
    assert fired("phase_of_the_moon", profile=Weights(weights={"phase_of_the_moon": 40})) == []


def test_only_the_active_mode_of_the_vpn_family_fires() -> None:
    both = ("vpn_public", "vpn_timezone_mismatch", "vpn_high")
    assert fired(*both) == ["vpn_public", "vpn_timezone_mismatch"]
    profile = Weights(weights=default_weights("web"), vpn_mode="confidence")
    assert fired(*both, profile=profile) == ["vpn_high"]


def test_only_the_active_mode_of_the_residential_proxy_family_fires() -> None:
    both = ("residential_proxy_listed", "residential_proxy_medium", "vpn_public", "vpn_low")
    assert fired(*both) == ["residential_proxy_listed", "vpn_public"]
    profile = Weights(weights=default_weights("web"), residential_proxy_mode="confidence")
    assert fired(*both, profile=profile) == ["residential_proxy_medium", "vpn_public"]


def test_tor_silences_relay_and_vpn_in_either_mode() -> None:
    network = ("tor", "vpn_public", "vpn_timezone_mismatch", "vpn_relay", "vpn_high", "hosting")
    assert fired(*network) == ["tor", "hosting"]
    profile = Weights(weights=default_weights("web"), vpn_mode="confidence")
    assert fired(*network, profile=profile) == ["tor", "hosting"]


def test_tor_silences_vpn_even_where_tor_has_weight_zero() -> None:
    profile = Weights(weights={"tor": 0, "vpn_public": 8})
    assert fired("tor", "vpn_public", profile=profile) == []


def test_relay_silences_only_the_public_vpn() -> None:
    assert fired("vpn_public", "vpn_timezone_mismatch", "vpn_relay") == ["vpn_timezone_mismatch", "vpn_relay"]
    profile = Weights(weights={"vpn_relay": 0, "vpn_public": 8})
    assert fired("vpn_public", "vpn_relay", profile=profile) == [], "whatever the relay weighs"


def test_in_confidence_mode_a_relay_neither_counts_nor_silences():
    profile = Weights(weights=default_weights("web"), vpn_mode="confidence")
    assert fired("vpn_public", "vpn_relay", "vpn_low", profile=profile) == ["vpn_low"]


@pytest.mark.parametrize("level", ["low", "medium", "high"])
def test_each_confidence_of_both_families_has_the_weight_of_the_catalog(level: Level):
    profile = Weights(weights=default_weights("web"), vpn_mode="confidence", residential_proxy_mode="confidence")
    names = (f"vpn_{level}", f"residential_proxy_{level}")
    weights = {"low": (4, 5), "medium": (9, 10), "high": (15, 18)}[level]
    assert score(seen(*names), profile, "web").score == sum(weights)
    assert score(seen(*names), default_profile("web"), "web").score == 0


def test_the_methods_of_a_residential_proxy_add_up():
    both = seen("residential_proxy_listed", "residential_proxy_behavior", "residential_proxy_high")
    assert score(both, default_profile("web"), "web").score == 15 + 10
    profile = Weights(weights=default_weights("web"), residential_proxy_mode="confidence")
    assert score(both, profile, "web").score == 18


@pytest.mark.parametrize(
    ("weight", "observation", "counted"),
    [
        (15, Observation("new_visitor_burst", "medium"), 15),
        (15, Observation("new_visitor_burst", "high"), 30),
        (15, Observation("new_visitor_burst", "medium", ("twice_as_many_new_visitors_of_address",)), 30),
        (60, Observation("new_visitor_burst", "high"), 100),
        (60, Observation("tor", "high"), 60),
        (1, Observation("tor", "high"), 1),
    ],
)
def test_a_burst_of_twice_as_many_weighs_twice_and_at_most_a_hundred(
    weight: int, observation: Observation, counted: int
) -> None:
    """The confidence of a stored observation, or its evidence, is enough to count as a burst."""
    assert score([observation], Weights(weights={observation.signal: weight}), "web").score == counted


def test_groups_add_weights_and_keep_the_highest_confidence() -> None:
    triggers = [
        EventSignal("automation", "bot", 40, "medium"),
        EventSignal("headless", "bot", 30, "high"),
        EventSignal("hosting", "proxy", 15, "low"),
        EventSignal("browser_tampering", "tampering", 15, "low"),
    ]
    assert group_triggers(triggers) == (
        EventTrigger("bot", 70, "high"),
        EventTrigger("proxy", 15, "low"),
        EventTrigger("tampering", 15, "low"),
    )


def test_no_triggers_make_no_groups() -> None:
    assert group_triggers([]) == ()


def test_the_default_profile_has_the_weights_of_the_catalog() -> None:
    for platform in PLATFORMS:
        profile = default_profile(platform)
        assert profile.threshold == 30
        assert profile.weights == default_weights(platform)
        assert (profile.vpn_mode, profile.residential_proxy_mode, profile.scope) == ("method", "method", "default")


@given(
    names=st.lists(st.sampled_from(sorted(CATALOG)), unique=True),
    weights=st.dictionaries(st.sampled_from(sorted(CATALOG)), st.integers(0, 100)),
    threshold=st.integers(1, 1000),
    platform=st.sampled_from(PLATFORMS),
)
def test_the_score_equals_the_sum_of_its_triggers_and_of_its_groups(
    names: list[str], weights: dict[str, int], threshold: int, platform: Platform
) -> None:
    result = score(seen(*names), Weights(threshold=threshold, weights=weights), platform)
    groups = group_triggers(result.triggers)
    assert result.score == sum(trigger.weight for trigger in result.triggers) == sum(group.weight for group in groups)
    assert all(trigger.weight > 0 for trigger in result.triggers)
    assert result.level == level_of(result.score, threshold)
