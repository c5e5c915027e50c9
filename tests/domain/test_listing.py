"""Which events a list shows (interface 4.2, decisions 7.1): timestamps and windows, read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.domain.listing import Asked, CursorScope, Filters, Listing, read_listing, read_timestamp, read_window
from svc.domain.records import RETENTION_MS
from svc.domain.refusals import Detail, Refusal
from tests.support.worlds import EPOCH_MS

NOW = EPOCH_MS
SCOPE = CursorScope(b"k" * 32, 7, "production")
DAY = 24 * 3600 * 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

moments = st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001  hypothesis puts the zone on
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


@given(moments)
def test_a_timestamp_of_any_offset_is_its_millisecond_rounded_up(moment: datetime):
    expected = -((EPOCH - moment) // timedelta(milliseconds=1))
    assert read_timestamp(moment.isoformat()) == expected
    assert read_timestamp(moment.isoformat().replace("+", " ").replace("T", "t")) == expected


@pytest.mark.parametrize(
    ("text", "after_ms"),
    [
        ("2026-01-01T00:00:00Z", 0),
        ("2026-01-01T00:00:00z", 0),
        ("2026-01-01 00:00:00.1Z", 100),
        ("2026-01-01T00:00:00.001000000Z", 1),
        ("2026-01-01T00:00:00.0000000001Z", 1),
        ("2025-12-31T18:30:00-05:30", 0),
        ("2026-01-01T23:59:00+23:59", 0),
        ("0001-01-01T00:00:00+23:59", -62_135_596_800_000 - (DAY - 60_000) - NOW),
    ],
)
def test_timestamps_are_read_as_rfc_3339_writes_them(text: str, after_ms: int):
    assert read_timestamp(text) == NOW + after_ms


@pytest.mark.parametrize(
    "text",
    ["", "now", "1767225600", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00Z", "2026-01-01T00:00:00.Z",
     "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+0200",
     "2026-01-01T00:00:00Z ", "\uff12026-01-01T00:00:00Z", "2026-W01-1T00:00:00Z", "0000-01-01T00:00:00Z"],
)  # fmt: skip
def test_what_is_no_timestamp_is_none(text: str):
    assert read_timestamp(text) is None


@given(st.text(max_size=40))
def test_no_text_makes_it_raise(text: str):
    assert read_timestamp(text) is None or text[:4].isdecimal()


def iso(at_ms: int) -> str:
    return (EPOCH + timedelta(milliseconds=at_ms)).isoformat()


def test_a_window_is_the_last_day_up_to_this_very_millisecond_unless_told_otherwise():
    assert read_window(None, None, NOW) == (NOW - DAY, NOW + 1)
    assert read_window(None, iso(NOW - DAY), NOW) == (NOW - 2 * DAY, NOW - DAY)
    assert read_window(iso(NOW - 3), None, NOW) == (NOW - 3, NOW + 1)
    assert read_window(iso(NOW - 3), iso(NOW + 5), NOW) == (NOW - 3, NOW + 5)


@pytest.mark.parametrize(
    ("start_ms", "end_ms", "wrong"),
    [
        (-RETENTION_MS, None, None),
        (-RETENTION_MS, 0, None),
        (-RETENTION_MS - 1, None, "from"),
        (-RETENTION_MS, 1, "to"),
        (-1, -1, "from"),
        (0, None, "from"),
        (5, 3, "from"),
        (5, 6, None),
        (0, RETENTION_MS, None),
        (None, DAY - RETENTION_MS, None),
        (None, DAY - RETENTION_MS - 1, None),
        (None, 1 - RETENTION_MS, None),
        (None, -RETENTION_MS, "to"),
    ],
)
def test_a_window_lies_within_30_days_and_its_start_before_its_end(
    start_ms: int | None, end_ms: int | None, wrong: str | None
):
    start, end = (None if at_ms is None else iso(NOW + at_ms) for at_ms in (start_ms, end_ms))
    window = read_window(start, end, NOW)
    if wrong is None:
        assert not isinstance(window, Refusal)
    else:
        assert window == Refusal("invalid_window", (Detail(wrong, "out_of_range", "query"),))


def test_the_page_follows_from_its_number_and_size():
    window = (NOW - DAY, NOW + 1)
    assert read_listing(Asked(), NOW, SCOPE) == Listing(*window, Filters(), 0, 10)
    asked = Asked(page=51, limit=200, visitor="0123456789abcdefGHIJ", level="high")
    filters = Filters(visitor_id="0123456789abcdefGHIJ", level="high")
    assert read_listing(asked, NOW, SCOPE) == Listing(*window, filters, 10_000, 200)
