"""What repeats, roams and crowds: each signal of history with the nearest innocent case (docs/signals.md)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.history.activity import AddressHistory, VisitorHistory
from svc.identify.history.evidence import (
    DAY_S,
    ENOUGH_DEVICES,
    HOUR_S,
    LOOKALIKES,
    MANY_ADDRESSES,
    MANY_COUNTRIES,
    MANY_IDENTIFICATIONS,
    MANY_TIMEZONE_COUNTRIES,
    MANY_VISITORS,
    REPLAY_MEMORY_S,
    SAMPLED_VISITORS,
    SLOTS,
    HistoryEvidence,
    ReportFingerprint,
    address_id,
    history_evidence,
    is_flooding,
    is_remembered,
    is_shared_address,
    met,
    rare_device,
    replay,
    velocity,
    visited,
    with_lookalike,
    with_shared_address,
)
from svc.identify.matching import Statistics, StatisticsUpdate
from svc.identify.model import Attribute, Claims, Network, Observation, Report
from svc.identify.network.timezones import country_of_zone
from tests.domain.matching_world import DESKTOP_VALUES, features_of

NOW_MS = 1_767_268_800_000
"""Noon, UTC."""
HOME = "81.2.69.160"
ORDINARY = Network(state="enriched", country_code="GB")


def seen(
    after_s: float = 0,
    ip: str = HOME,
    *,
    network: Network = ORDINARY,
    signals: bytes = b"{}",
    zone: str | None = "Europe/London",
    masked: frozenset[Attribute] = frozenset(),
    **said: Any,
) -> HistoryEvidence:
    report = Report(claims=Claims(timezone=zone), masked=masked, **said)
    return history_evidence(report, network, ip, signals, NOW_MS + round(after_s * 1000))


def after(*visits: HistoryEvidence) -> VisitorHistory:
    history = VisitorHistory()
    for visit in visits:
        history = visited(history, visit)
    return history


def shown(*visits: HistoryEvidence) -> list[str]:
    return [observation.signal for observation in velocity(after(*visits))]


def test_a_first_visit_fires_nothing():
    assert shown(seen()) == []


# High activity


def test_one_identification_a_minute_for_an_hour_is_high_activity():
    every_minute = [seen(minute * 50) for minute in range(MANY_IDENTIFICATIONS)]
    assert shown(*every_minute[:-1]) == []
    assert shown(*every_minute) == ["high_activity"]


def test_a_burst_counts_like_a_steady_stream():
    assert shown(*[seen() for _ in range(MANY_IDENTIFICATIONS)]) == ["high_activity"]


def test_a_long_day_of_browsing_is_not_high_activity():
    assert shown(*[seen(minute * 75) for minute in range(500)]) == []


def test_activity_ends_after_an_hour():
    burst = [seen() for _ in range(MANY_IDENTIFICATIONS)]
    assert shown(*burst, seen(49 * 60)) == ["high_activity"]
    assert shown(*burst, seen(HOUR_S)) == []


# Distinct addresses


def test_many_addresses_within_an_hour_are_velocity():
    travels = [seen(60 * number, f"81.2.{number}.7") for number in range(MANY_ADDRESSES)]
    assert shown(*travels[:-1]) == []
    assert shown(*travels) == ["velocity_ip"]
    assert shown(*travels, seen(60 * MANY_ADDRESSES)) == ["velocity_ip"]


def test_a_phone_that_switches_between_wifi_and_mobile_data_is_not_velocity():
    """Two Wi-Fi networks and mobile data by IPv4, two of them by IPv6 too, all day long, the device part changing."""
    chance = random.Random(3)
    v4 = (HOME, "82.132.1.9", "195.99.1.1")
    v6 = ("2a00:23c6:1:2:", "2a01:4c8:5:6:")
    visits = [
        seen(number * 90, chance.choice((*v4, *[f"{prefix}:{chance.randrange(1, 9999)}" for prefix in v6])))
        for number in range(300)
    ]
    assert all(velocity(after(*visits[:end])) == [] for end in (40, 150, 300))


def test_addresses_of_an_hour_ago_are_forgotten():
    travels = [seen(number, f"81.2.{number}.7") for number in range(MANY_ADDRESSES)]
    assert shown(*travels, seen(HOUR_S - 1, "81.2.5.7")) == ["velocity_ip"]
    assert shown(*travels, seen(HOUR_S + 1, "81.2.5.7")) == []


@pytest.mark.parametrize("wandering", [{"tor": True}, {"relay": True}])
def test_automatically_rotating_exits_are_not_velocity(wandering: dict[str, bool]):
    network = Network(state="enriched", country_code="DE", **wandering)
    assert shown(*[seen(number, f"81.2.{number}.7", network=network) for number in range(20)]) == []


def test_an_address_counts_once_however_it_is_written():
    assert address_id("2001:470:1:2::1") == address_id("2001:0470:0001:0002:ffff::9") != address_id("2001:470:1:3::1")
    assert address_id("::ffff:81.2.69.160") == address_id("81.2.69.160") != address_id("81.2.69.161")
    assert address_id("no address") != address_id("")


# Distinct countries


def countries(*codes: str, step_s: float = HOUR_S, **network: bool) -> list[HistoryEvidence]:
    return [
        seen(number * step_s, network=Network(state="enriched", country_code=code, **network))
        for number, code in enumerate(codes)
    ]


def test_three_countries_in_a_day_are_velocity():
    assert shown(*countries("GB", "BR", "JP")) == ["velocity_country"]


def test_a_border_crossed_many_times_a_day_is_not_velocity():
    assert shown(*countries(*["DE", "FR"] * 10)) == []


def test_a_journey_of_several_days_is_not_velocity():
    assert shown(*countries("GB", "FR", "IT", "GR", "TR", step_s=DAY_S / 2)) == []


@pytest.mark.parametrize("lent", ["tor", "relay", "vpn"])
def test_countries_of_shared_addresses_are_not_velocity(lent: str):
    assert "velocity_country" not in shown(*countries("GB", "BR", "JP", "US", **{lent: True}))


def test_an_unknown_country_does_not_count():
    nowhere = Network(state="unavailable", reason="no_network_data")
    assert shown(*[seen(number, network=nowhere) for number in range(5)]) == []


# Windows, bounds, clocks


@given(
    st.lists(
        st.tuples(
            st.integers(-40 * DAY_S, 40 * DAY_S), st.integers(0, 255), st.sampled_from(["GB", "BR", "JP", "US", None])
        ),
        max_size=80,
    )
)
def test_a_history_is_short_and_contains_only_its_time_windows(visits: list[tuple[int, int, str | None]]):
    history = VisitorHistory()
    for moment, host, country in visits:
        here = seen(moment, f"81.2.69.{host}", network=Network(state="enriched", country_code=country))
        history = visited(history, here)
        assert len(history.activity) <= SLOTS
        assert len(history.addresses) <= MANY_ADDRESSES
        assert len(history.countries) <= MANY_COUNTRIES
        assert history.addresses[0] == (here.address, here.at_s)
        assert all(abs(here.at_s - at_s) < HOUR_S for _, at_s in history.addresses)
        assert all(abs(here.at_s - at_s) < DAY_S for _, at_s in history.countries)
        assert all(abs(here.at_s - slot * 600) < HOUR_S + 600 for slot, _ in history.activity)
        assert all(0 < count <= MANY_IDENTIFICATIONS for _, count in history.activity)


def test_a_clock_that_was_a_year_ahead_leaves_no_trace():
    ahead = [seen(365 * DAY_S + number, f"81.2.{number}.7") for number in range(MANY_IDENTIFICATIONS)]
    assert set(shown(*ahead)) == {"high_activity", "velocity_ip"}
    assert after(*ahead, seen()) == after(seen())


# Replay


def test_a_repeated_nonce_is_a_replay_whatever_else_differs():
    first = seen(nonce="0123456789abcdef", signals=b'{"a": 1}')
    again = seen(5, nonce="0123456789abcdef", signals=b'{"b": 2}')
    assert first.replay_key is not None
    assert again.replay_key is not None
    assert first.replay_key.digest == again.replay_key.digest
    assert replay(ReportFingerprint(first.at_s, first.address), again) == Observation(
        "replayed", "high", ("nonce_again",)
    )


def test_the_digest_of_a_version_7_uuid_begins_with_its_time():
    one, other = "01981a2b-3c4d-7abc-8def-0123456789ab", "01981a2b-3c4d-7abc-8def-0123456789ac"
    digests = {nonce: seen(nonce=nonce).replay_key for nonce in (one, other)}
    assert {mark.digest[:6].hex() for mark in digests.values() if mark is not None} == {"01981a2b3c4d"}
    assert len({mark.digest for mark in digests.values() if mark is not None and len(mark.digest) == 16}) == 2


@pytest.mark.parametrize(
    "nonce",
    [
        "01981a2b-3c4d-4abc-8def-0123456789ab",  # version 4
        "01981a2b-3c4d-7abc-cdef-0123456789ab",  # another variant
        "01981A2B-3C4D-7ABC-8DEF-0123456789AB",
        "01981a2b3c4d7abc8def0123456789ab",
        "01981a2b-3c4d-7abc-8def-0123456789ab ",
        "01981a2b-3c4d-7abc-8def-01234567890٣",
    ],
)
def test_the_digest_of_any_other_nonce_is_a_hash(nonce: str):
    mark = seen(nonce=nonce).replay_key
    assert mark is not None
    assert mark.digest == blake3(b"nonce " + nonce.encode()).digest(16)


def test_different_nonces_are_different_reports():
    one, other = seen(nonce="0123456789abcdef"), seen(nonce="0123456789abcdeg")
    assert one.replay_key != other.replay_key


@pytest.mark.parametrize(
    ("age_s", "ip", "replayed"),
    [(601, "5.6.7.8", True), (600, "5.6.7.8", False), (601, HOME, False), (86_400, HOME, False)],
)
def test_an_old_report_from_elsewhere_is_a_replay(age_s: float, ip: str, replayed: bool):
    first = seen(collected_at_ms=NOW_MS)
    again = seen(age_s, ip, collected_at_ms=NOW_MS)
    observation = replay(ReportFingerprint(first.at_s, first.address), again)
    assert (observation is not None) is replayed
    if observation is not None:
        assert observation == Observation("replayed", "medium", ("report_again",))


def test_reports_that_differ_by_a_byte_are_different_reports():
    one, other = seen(collected_at_ms=NOW_MS, signals=b"{}"), seen(collected_at_ms=NOW_MS, signals=b"{ }")
    assert one.replay_key != other.replay_key


def test_a_report_without_nonce_and_time_is_never_recognized_as_a_replay():
    assert seen(signals=b"{}").replay_key is None


def test_a_nonce_never_equals_a_report():
    assert seen(nonce="{}{}{}{}").replay_key != seen(signals=b"nonce {}{}{}{}", collected_at_ms=NOW_MS).replay_key


@pytest.mark.parametrize(
    ("after_s", "remembered"),
    [(0, True), (REPLAY_MEMORY_S - 1, True), (REPLAY_MEMORY_S, False), (-REPLAY_MEMORY_S, False)],
)
def test_a_replay_is_recognized_for_thirty_days(after_s: int, remembered: bool):
    first = seen()
    assert is_remembered(ReportFingerprint(first.at_s, first.address), first.at_s + after_s) is remembered


# Addresses


def day_of(*zones: str | None) -> AddressHistory:
    """One visitor a zone behind one address."""
    history = AddressHistory()
    for visitor, zone in enumerate(zones):
        homeland = seen(zone=zone).timezone_country
        if homeland is not None:
            history = met(history, visitor, homeland)
    return history


WORLD = [
    "Europe/London", "America/Sao_Paulo", "Asia/Tokyo", "America/New_York", "Asia/Kolkata", "Africa/Lagos",
    "Europe/Berlin", "Australia/Sydney",
]  # fmt: skip


def test_many_visitors_from_many_countries_indicate_a_proxy():
    assert not is_shared_address(day_of(*WORLD[: MANY_VISITORS - 1]))
    assert is_shared_address(day_of(*WORLD))
    assert is_shared_address(day_of(*WORLD[:MANY_TIMEZONE_COUNTRIES] * 2))
    assert not is_shared_address(day_of(*WORLD[: MANY_TIMEZONE_COUNTRIES - 1] * 5))


def test_an_office_of_one_country_does_not_indicate_a_proxy():
    assert not is_shared_address(day_of(*["Europe/London"] * 500))


def test_visitors_from_all_time_zones_of_a_large_country_are_of_one_country():
    zones = [
        "America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Phoenix",
        "America/Detroit", "America/Indiana/Indianapolis", "America/Kentucky/Louisville", "Pacific/Honolulu",
        "America/Anchorage",
    ]  # fmt: skip
    assert not is_shared_address(day_of(*zones))


def test_a_carrier_with_some_travelers_does_not_indicate_a_proxy():
    chance = random.Random(11)
    for _ in range(50):
        abroad = chance.sample(range(300), 30)
        zones = ["Europe/London" if person not in abroad else chance.choice(WORLD) for person in range(300)]
        assert not is_shared_address(day_of(*zones))


def test_a_proxy_is_indicated_only_if_at_most_half_of_the_visitors_are_from_one_country():
    assert is_shared_address(day_of(*["Europe/London"] * 4, *WORLD[1:5]))
    assert not is_shared_address(day_of(*["Europe/London"] * 5, *WORLD[1:5]))


def test_a_frequent_visitor_counts_once():
    history = AddressHistory()
    for zone in WORLD * 3:
        homeland = country_of_zone(zone)
        assert homeland is not None
        history = met(history, 7, homeland)
    assert len(history.visitors) == 1


def test_an_address_with_a_complete_sample_no_longer_changes():
    full = day_of(*WORLD * 2)
    assert len(full.visitors) == SAMPLED_VISITORS
    assert met(full, 999, "FR") is full


def test_an_address_floods_after_so_many_lookalikes_and_then_no_longer_changes():
    history = day_of(*WORLD)
    for _ in range(LOOKALIKES):
        assert not is_flooding(history)
        history = with_lookalike(history, seen())
    assert is_flooding(history)
    assert with_lookalike(history, seen()) is history
    assert history.visitors == day_of(*WORLD).visitors


def test_an_address_that_may_stand_for_everybody_never_floods():
    hidden = seen(network=Network(state="unavailable", reason="private_address"))
    history = AddressHistory()
    assert with_lookalike(history, hidden) is history
    tor = seen(network=Network(state="enriched", tor=True))
    assert with_lookalike(history, tor).lookalikes == 1


@pytest.mark.parametrize("kind", ["tor", "vpn", "relay", "proxy", "hosting"])
def test_addresses_shared_by_design_are_not_watched(kind: str):
    assert seen().timezone_country == "GB"
    assert seen(network=Network(state="enriched", **{kind: True})).timezone_country is None


def test_addresses_without_network_facts_are_not_watched():
    assert seen(network=Network(state="unavailable", reason="private_address")).timezone_country is None
    assert seen(network=Network(state="enriched", crawlers_of=("Google",))).timezone_country is None


def test_a_time_zone_without_a_place_counts_for_no_country():
    for zone in ("UTC", "Etc/GMT+5", "Mars/Olympus", "Antarctica/Troll", "/", "", None):
        assert seen(zone=zone).timezone_country is None
    assert seen(masked=frozenset({Attribute.TIMEZONE})).timezone_country is None


def test_time_zones_of_one_country_have_one_name_and_others_their_own():
    assert {country_of_zone(zone) for zone in ("Europe/Moscow", "Asia/Vladivostok", "Asia/Omsk")} == {"RU"}
    assert {country_of_zone(zone) for zone in ("Australia/Perth", "Australia/Lord_Howe")} == {"AU"}
    assert {country_of_zone(zone) for zone in ("America/Argentina/Salta", "America/Buenos_Aires")} == {"AR"}
    assert country_of_zone("Europe/Paris") == "Europe/Paris" != country_of_zone("Europe/Vienna")


NOT_LISTED = (Observation("hosting", "medium"),)
LISTED = (
    Observation("residential_proxy_listed", "medium", ("residential_proxy_list",)),
    Observation("residential_proxy_medium", "medium", ("residential_proxy_list",)),
)


def test_behavior_alone_is_low_confidence_and_behavior_of_a_listed_address_high():
    alone = {seen.signal: seen.confidence for seen in with_shared_address(NOT_LISTED)}
    assert alone == {"hosting": "medium", "residential_proxy_behavior": "low", "residential_proxy_low": "low"}
    both = {seen.signal: (seen.confidence, seen.evidence) for seen in with_shared_address(LISTED)}
    assert both == {
        "residential_proxy_listed": ("medium", ("residential_proxy_list",)),
        "residential_proxy_behavior": ("low", ("many_countries",)),
        "residential_proxy_high": ("high", ("residential_proxy_list", "many_countries")),
    }


# Rare devices


def population(devices: int) -> Statistics:
    """A class of so many devices that come with a few kinds of hardware."""
    statistics = Statistics()
    for number in range(devices):
        kind = {Attribute.GPU: f"card {number % 5}", Attribute.SCREEN: f"{1000 + number % 7}x800"}
        statistics.learn(StatisticsUpdate(features=features_of(DESKTOP_VALUES | kind), new_devices=1.0))
    return statistics


def test_a_device_with_parts_unseen_in_its_class_is_rare():
    statistics = population(ENOUGH_DEVICES)
    odd = features_of(DESKTOP_VALUES | {Attribute.GPU: "card of a laboratory", Attribute.SCREEN: "1234x567"})
    assert rare_device(statistics, odd) == Observation("rare_device", "low", ("gpu", "screen"))
    statistics.learn(StatisticsUpdate(features=odd, new_devices=1.0))
    assert rare_device(statistics, odd) is not None, "it is no evidence for itself"
    statistics.learn(StatisticsUpdate(features=odd, new_devices=1.0))
    assert rare_device(statistics, odd) is None, "there are two of them now"


def test_one_uncommon_part_is_ordinary():
    statistics = population(ENOUGH_DEVICES)
    common = DESKTOP_VALUES | {Attribute.GPU: "card 1", Attribute.SCREEN: "1001x800"}
    for part in (Attribute.GPU, Attribute.SCREEN, Attribute.HARDWARE):
        assert rare_device(statistics, features_of(common | {part: "of nobody else"})) is None


def test_an_ordinary_device_is_not_rare_even_in_a_unique_combination():
    statistics = population(ENOUGH_DEVICES)
    mixed = features_of(DESKTOP_VALUES | {Attribute.GPU: "card 1", Attribute.SCREEN: "1006x800"})
    assert rare_device(statistics, mixed) is None


def test_nothing_is_rare_before_enough_devices_were_seen():
    odd = features_of(DESKTOP_VALUES | {Attribute.GPU: "card of a laboratory", Attribute.SCREEN: "1234x567"})
    assert rare_device(population(ENOUGH_DEVICES - 1), odd) is None
    assert rare_device(Statistics(), odd) is None


def test_a_missing_attribute_is_not_rare():
    bare = features_of({Attribute.CANVAS: "canvas of nobody else", Attribute.TIMEZONE: "Pacific/Niue"})
    assert rare_device(population(ENOUGH_DEVICES), bare) is None
