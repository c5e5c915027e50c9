"""What the visitors of one origin send, and what that makes of a request without client hints."""

from __future__ import annotations

from typing import Any

import pytest

from svc.identify.history.origins import (
    EXPECTED_FROM,
    REMEMBERED,
    OriginHistory,
    carries_hints,
    expects_hints,
    needs_origin,
    visited,
    without_missing_hints,
)
from svc.identify.model import Claims, ClientHints, Observation, Report, RequestFacts

BRANDS = ClientHints(brands=(("Chromium", "137"),))
NONE = ClientHints()


def after(*visits: bool) -> OriginHistory:
    history = OriginHistory()
    for carried in visits:
        history = visited(history, carried=carried)
    return history


def test_hints_are_expected_once_nearly_all_remembered_visits_had_them():
    missing = REMEMBERED - EXPECTED_FROM
    assert not expects_hints(after(*[True] * (REMEMBERED - 1))), "too few are known"
    assert expects_hints(after(*[True] * REMEMBERED))
    assert expects_hints(after(*[True] * EXPECTED_FROM, *[False] * missing))
    assert not expects_hints(after(*[True] * EXPECTED_FROM, *[False] * (missing + 1)))
    assert expects_hints(after(*[False] * 50, *[True] * REMEMBERED)), "only the latest count"


def test_a_history_whose_visits_are_alike_stays_as_it_is():
    for carried in (True, False):
        full = after(*[carried] * REMEMBERED)
        assert visited(full, carried=carried) == full


@pytest.mark.parametrize(
    ("hints", "sent", "context", "expected"),
    [
        (BRANDS, BRANDS, "secure", True),
        (BRANDS, NONE, "secure", False),
        (BRANDS, NONE, "plain", None),
        (BRANDS, NONE, None, None),
        (NONE, NONE, "secure", None),
    ],
)
def test_a_visit_tells_something_only_where_its_page_knows_hints(
    hints: ClientHints, sent: ClientHints, context: Any, expected: bool | None
):
    report = Report(claims=Claims(hints=hints))
    assert carries_hints(report, RequestFacts(ip="81.2.69.142", hints=sent, context=context)) is expected


def test_missing_hints_need_no_comparison_beside_headers_that_no_policy_takes_away():
    seen = (Observation("forged_report", "high", ("hints_missing", "fetch_metadata_missing")),)
    assert not needs_origin(seen)
    assert not needs_origin((Observation("tor", "high", ("listed",)),))
    assert needs_origin((Observation("forged_report", "high", ("accept_language_missing", "hints_missing")),))


def test_without_missing_hints_the_other_findings_stay():
    tor = Observation("tor", "high", ("listed",))
    alone = Observation("forged_report", "medium", ("hints_missing",))
    assert without_missing_hints((alone, tor)) == (tor,)
    two = Observation("forged_report", "high", ("accept_language_missing", "hints_missing"))
    assert without_missing_hints((two,)) == (Observation("forged_report", "medium", ("accept_language_missing",)),)
    three = Observation("forged_report", "high", ("accept_language_missing", "hints_missing", "probes_missing"))
    (left,) = without_missing_hints((three,))
    assert (left.confidence, left.evidence) == ("high", ("accept_language_missing", "probes_missing"))
