"""What other weights would make of stored identifications: the counts are those of scoring each of them twice."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from svc.features.weights.preview import (
    MAX_EXAMPLES,
    LevelCounts,
    Preview,
    ScoredAs,
    WeightDifference,
    WeightsPreview,
    observed,
)
from svc.identify.model import EventSignal, Observation, Verdict
from svc.identify.records import Document, Event
from svc.identify.scoring.score import Score, Weights, default_profile, score
from svc.identify.scoring.signals import MAX_WEIGHT, signal_names

NOW = default_profile("web")
SIGNALS = signal_names("web")


def event(at_ms: int = 0, signals: tuple[EventSignal, ...] | None = (), **verdict: Any) -> Event:
    said = {"suspect_score": 0, "suspect_level": "low", **verdict}
    return Event(
        verdict=Verdict(
            visitor_id="v" * 20,
            state="enriched",
            reason=None,
            triggers=(),
            identifiable=True,
            visitor_is_new=True,
            visitor_confidence=0,
            linkage="no_candidate",
            signals=signals,
            **said,
        ),
        environment="production",
        occurred_at_ms=at_ms,
        platform="web",
        sdk_platform="web",
        sdk_version="1",
        origin=None,
        tag=None,
        ip_address="81.2.69.160",
        country_code=None,
        country_name=None,
        asn=None,
        asn_name=None,
        anonymity_network=None,
        agent=None,
        agent_version=None,
        os=None,
        device_kind=None,
        visitor_kind="human",
        key_id="key_x",
        price_micros=0,
    )


def document(*signals: str) -> Document:
    return Document(
        signals=b"",
        sdk_platform=None,
        sdk_version=None,
        tag=None,
        suspect_threshold=30,
        weights_scope="default",
        weights_digest=b"",
        evidence=dict.fromkeys(signals, ("seen",)),
    )


def compared(after: Weights, *noticed: tuple[str, ...], before: Weights = NOW) -> WeightsPreview:
    """A preview of one identification for each of these sets of signals, each a second older than the one before."""
    preview = Preview("web", before, after)
    for age, signals in enumerate(noticed):
        preview.note(UUID(int=len(noticed) - age), event(1000 * (len(noticed) - age)), document(*signals))
    return preview.summary()


profiles = st.builds(
    Weights,
    threshold=st.integers(1, 120),
    weights=st.dictionaries(st.sampled_from(SIGNALS), st.integers(0, MAX_WEIGHT), max_size=12),
    vpn_mode=st.sampled_from(["method", "confidence"]),
    residential_proxy_mode=st.sampled_from(["method", "confidence"]),
)
noticed = st.lists(st.lists(st.sampled_from(SIGNALS), unique=True, max_size=6).map(tuple), max_size=40)


@given(profiles, profiles, noticed)
def test_preview_counts_equal_scoring_each_identification_twice(
    before: Weights, after: Weights, sets: list[tuple[str, ...]]
):
    """Modes, silencing and thresholds are those of `scoring`, in whatever order the signals were noticed."""
    found = compared(after, *sets, before=before)
    both = [[score([Observation(name, "high") for name in names], w, "web") for w in (before, after)] for names in sets]
    levels = [(one.level, other.level) for one, other in both]
    assert found.events == len(sets)
    assert found.before == LevelCounts(**Counter(one for one, _ in levels))
    assert found.after == LevelCounts(**Counter(other for _, other in levels))
    moves = Counter(pair for pair in levels if pair[0] != pair[1])
    assert {(move.before, move.after): move.count for move in found.moves} == moves
    assert found.changed == moves.total()
    assert [move.count for move in found.moves] == sorted(moves.values(), reverse=True)
    differing = Counter(name for one, other in both for name in _differing(one, other))
    assert {effect.signal: effect.count for effect in found.by_signal} == differing
    assert len(found.examples) == min(moves.total(), MAX_EXAMPLES)
    assert {(each.before.level, each.after.level) for each in found.examples} == set(moves)
    assert sorted(found.examples, key=lambda each: each.occurred_at, reverse=True) == list(found.examples)


def _differing(one: Score, other: Score) -> set[str]:
    pairs = {(trigger.signal, trigger.weight) for trigger in one.triggers}
    return {signal for signal, _ in pairs ^ {(trigger.signal, trigger.weight) for trigger in other.triggers}}


@given(profiles, noticed)
def test_the_same_weights_change_nothing(profile: Weights, sets: list[tuple[str, ...]]):
    found = compared(profile, *sets, before=profile)
    assert (found.changed, found.moves, found.by_signal, found.examples) == (0, (), (), ())
    assert found.before == found.after


def test_an_example_names_the_signals_that_made_the_difference():
    lighter = msgspec.structs.replace(NOW, weights=NOW.weights | {"automation": 5, "tor": 30, "hosting": 0})
    (example,) = compared(lighter, ("automation", "hosting", "tor"), ("hosting",)).examples
    assert (example.before, example.after) == (ScoredAs(80, "high"), ScoredAs(35, "medium"))
    assert example.because == (
        WeightDifference("automation", 40, 5),
        WeightDifference("hosting", 15, 0),
        WeightDifference("tor", 25, 30),
    )


def test_no_signal_is_named_where_only_the_threshold_differs():
    (example,) = compared(msgspec.structs.replace(NOW, threshold=20), ("tor",)).examples
    assert (example.before.level, example.after.level, example.because) == ("low", "medium", ())


def test_a_signal_that_had_no_weight_is_known_only_from_the_document():
    now = msgspec.structs.replace(NOW, weights=NOW.weights | {"developer_tools": 0})
    heavier = msgspec.structs.replace(NOW, weights=NOW.weights | {"developer_tools": 50})
    preview = Preview("web", now, heavier)
    tor = EventSignal("tor", "tor", 25, "high")
    preview.note(UUID(int=1), event(signals=(tor,)), document("tor", "developer_tools"))
    preview.note(UUID(int=2), event(signals=(tor,)), None)
    found = preview.summary()
    assert (found.events, found.compared_without_document, found.not_comparable) == (2, 1, 0)
    assert (found.before, found.after) == (LevelCounts(low=2), LevelCounts(low=1, high=1))


def test_unscored_events_stay_unscored_and_unknown_signals_are_not_compared():
    preview = Preview("web", NOW, msgspec.structs.replace(NOW, threshold=1))
    preview.note(UUID(int=1), event(suspect_score=None, suspect_level=None), document())
    preview.note(UUID(int=2), event(signals=None), None)
    preview.note(UUID(int=3), event(signals=None), document("tor"))
    found = preview.summary()
    assert (found.events, found.not_comparable, found.changed) == (2, 1, 1)
    assert (found.before, found.after) == (LevelCounts(not_scored=1, low=1), LevelCounts(not_scored=1, high=1))
    assert observed(event(signals=None), None) is None


def test_examples_include_rare_moves():
    lighter = msgspec.structs.replace(NOW, weights=NOW.weights | {"automation": 0, "tor": 100})
    many = [("automation",)] * (3 * MAX_EXAMPLES)
    found = compared(lighter, *many, ("tor",))
    assert len(found.examples) == MAX_EXAMPLES
    assert found.examples[-1].after.level == "high"
    assert [(move.before, move.after, move.count) for move in found.moves] == [
        ("medium", "low", 3 * MAX_EXAMPLES),
        ("low", "high", 1),
    ]
