"""ReturnIntervals: what an organization's proven returns say about when a visitor is expected."""

from __future__ import annotations

import msgspec
import pytest

from svc.identify.matching.lessons import ReturnIntervals, usual_recency
from svc.identify.matching.parameters import CHANGE_DAYS, RETURN_INTERVALS_BOUNDS, RETURN_INTERVALS_MEMORY
from svc.identify.matching.recognition import likeliest_visitor
from svc.identify.matching.statistics import Statistics, StatisticsRows
from svc.identify.model import Attribute
from tests.domain.matching_world import DAY_MS, START_MS, Organization, features_of, other_device

DAY_S = 86_400
PEOPLE = 30
WEEKS = 12


def rhythm_of(days: int, returns: int = 600) -> ReturnIntervals:
    """Nine in ten come back after so many days, for twenty weeks."""
    rhythm = ReturnIntervals()
    for number in range(returns):
        rhythm.learn(days, 1, 1 + (1 + number * 140 // returns) * DAY_S)
        if number % 10 == 0:
            rhythm.learn(None, 0, 0)
    return rhythm


def organization_of(days: int, weeks: int = WEEKS) -> Organization:
    """Devices that share nothing, each on its own network, that come every so many days."""
    organization = Organization()
    for visit in range(7 * weeks // days):
        for number in range(PEOPLE):
            features = features_of(other_device(f"device {number}"), ip=f"81.{number}.69.142")
            organization.visit(features, START_MS + visit * days * DAY_MS + number * 1000)
    return organization


@pytest.mark.parametrize("gap_days", [0.0, 0.5, 3.0, 7.0, 1000.0])
def test_without_proven_returns_recency_has_its_default(gap_days: float):
    rhythm = ReturnIntervals()
    for _ in range(1000):
        rhythm.learn(None, 0, 0)
    assert rhythm.recency(gap_days) == usual_recency(gap_days)


def test_a_weekly_visitor_is_expected_after_a_week_and_no_less_likely_in_between():
    rhythm = rhythm_of(7)
    assert rhythm.recency(7.2) > 2 * usual_recency(7.2)
    for gap_days in (1.0, 3.0, 5.9, 30.0):
        assert rhythm.recency(gap_days) == usual_recency(gap_days)


def test_a_daily_habit_says_little_about_absences_longer_than_the_data():
    """After twenty weeks nobody can have been away for a year."""
    rhythm = rhythm_of(1)
    assert rhythm.recency(CHANGE_DAYS[-1]) == usual_recency(CHANGE_DAYS[-1])
    assert rhythm.recency(1.5) > usual_recency(1.5)


def test_recency_is_corrected_within_bounds():
    low, high = RETURN_INTERVALS_BOUNDS
    for days in CHANGE_DAYS:
        rhythm = rhythm_of(days, returns=3000)
        assert min(rhythm.factors) >= low
        assert max(rhythm.factors) <= high


def test_old_returns_decay():
    rhythm = rhythm_of(7)
    before = rhythm.recency(7.2)
    for _ in range(3 * int(RETURN_INTERVALS_MEMORY)):
        rhythm.learn(2, 1, 300 * DAY_S)
    assert rhythm.recency(2.5) > usual_recency(2.5)
    assert rhythm.recency(7.2) < before / 2
    assert sum(rhythm.returns) < RETURN_INTERVALS_MEMORY


def without_rhythm(statistics: Statistics) -> Statistics:
    """The same statistics as an earlier version stored them."""
    rows = statistics.rows()
    shared = msgspec.msgpack.decode(rows.shared, strict=False)
    del shared["rhythm"]
    return Statistics.of_rows(StatisticsRows(msgspec.msgpack.encode(shared), rows.classes))


def test_an_organization_learns_its_rhythm_from_visits_and_stores_it():
    statistics = organization_of(7).statistics
    assert statistics.recency(7.1) > usual_recency(7.1)
    assert statistics.recency(3.0) == usual_recency(3.0)
    again = Statistics.of_rows(statistics.rows())
    assert [again.recency(gap) for gap in range(40)] == [statistics.recency(gap) for gap in range(40)]


def test_a_shared_row_of_an_earlier_version_starts_with_the_default_recency():
    assert without_rhythm(organization_of(7).statistics).recency(7.1) == usual_recency(7.1)


def test_a_return_by_similarity_alone_teaches_no_rhythm():
    organization = Organization()
    for visit in range(300):
        organization.visit(features_of(ip=f"{20 + visit % 200}.{visit % 7}.69.142"), START_MS + visit * 3 * DAY_MS)
    assert [organization.statistics.recency(gap) for gap in range(40)] == [usual_recency(gap) for gap in range(40)]


def test_a_visitor_is_also_expected_elsewhere_when_the_rhythm_fits():
    """The same device with another canvas, from elsewhere: after a week, and after three days."""
    organization = organization_of(7)
    features = features_of(other_device("device 3") | {Attribute.CANVAS: "another canvas"}, ip="24.5.6.7")
    last_ms = START_MS + (WEEKS - 1) * 7 * DAY_MS + DAY_MS // 24
    usual = without_rhythm(organization.statistics)

    def odds(statistics: Statistics, days: int) -> float:
        raw = likeliest_visitor(organization, statistics, features, last_ms + days * DAY_MS).decision.raw
        return raw / (1.0 - raw)

    assert odds(organization.statistics, 7) > odds(usual, 7)
    assert odds(organization.statistics, 3) == odds(usual, 3)
