"""Which events a list shows (interface 4.2, decisions 7.1): timestamps and windows, read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.events.listing import (
    Asked,
    CursorScope,
    Filters,
    Listing,
    Position,
    Resume,
    next_cursor,
    read_listing,
    read_window,
)
from svc.identify.records import RETENTION_MS
from svc.kernel.values.ids import MAX_LEAD_MS
from svc.kernel.values.refusals import Detail, Refusal
from svc.kernel.values.timestamps import read_timestamp, unix_ms
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
def test_a_timestamp_of_any_offset_becomes_its_millisecond_rounded_up(moment: datetime):
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
        ("2025-12-31T18:30:00-0530", 0),
        ("0001-01-01T00:00:00+23:59", -62_135_596_800_000 - (DAY - 60_000) - NOW),
    ],
)
def test_timestamps_are_read_as_rfc_3339_writes_them(text: str, after_ms: int):
    assert read_timestamp(text) == NOW + after_ms


@pytest.mark.parametrize(
    "text",
    ["", "now", "1767225600", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00Z", "2026-01-01T00:00:00.Z",
     "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+02",
     "2026-01-01T00:00:00Z ", "\uff12026-01-01T00:00:00Z", "2026-W01-1T00:00:00Z", "0000-01-01T00:00:00Z"],
)  # fmt: skip
def test_text_that_is_not_a_timestamp_is_rejected(text: str):
    assert read_timestamp(text) is None


@given(st.text(max_size=40))
def test_no_text_raises_an_exception(text: str):
    assert read_timestamp(text) is None or text[:4].isdecimal()


def iso(at_ms: int) -> str:
    return (EPOCH + timedelta(milliseconds=at_ms)).isoformat()


def test_the_default_window_is_the_last_day_including_this_millisecond_by_any_clock():
    assert read_window(None, None, NOW, RETENTION_MS) == (NOW - DAY, NOW + MAX_LEAD_MS + 1)
    assert read_window(None, iso(NOW - DAY), NOW, RETENTION_MS) == (NOW - 2 * DAY, NOW - DAY)
    assert read_window(iso(NOW - 3), None, NOW, RETENTION_MS) == (NOW - 3, NOW + MAX_LEAD_MS + 1)
    assert read_window(iso(NOW - 3), iso(NOW + 5), NOW, RETENTION_MS) == (NOW - 3, NOW + 5)


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
def test_a_window_lies_within_30_days_and_starts_before_its_end(
    start_ms: int | None, end_ms: int | None, wrong: str | None
):
    start, end = (None if at_ms is None else iso(NOW + at_ms) for at_ms in (start_ms, end_ms))
    window = read_window(start, end, NOW, RETENTION_MS)
    if wrong is None:
        assert not isinstance(window, Refusal)
    else:
        assert window == Refusal("invalid_window", (Detail(wrong, "out_of_range", "query"),))


def test_the_offset_follows_from_the_page_number_and_size():
    window = (NOW - DAY, NOW + MAX_LEAD_MS + 1)
    assert read_listing(Asked(), NOW, SCOPE, RETENTION_MS) == Listing(*window, Filters(), 0, 10)
    asked = Asked(page=51, limit=200, visitor="0123456789abcdefGHIJ", level="high")
    filters = Filters(visitor_id="0123456789abcdefGHIJ", level="high")
    assert read_listing(asked, NOW, SCOPE, RETENTION_MS) == Listing(*window, filters, 10_000, 200)


FILTERS = {"tag": "order 1", "ip_address": "81.2.69.160", "country": "GB", "signal": "headless", "kind": "ai_bot"}


def test_every_filter_is_read_in_the_format_of_events():
    asked = Asked(**FILTERS, level="low", visitor="0123456789abcdefGHIJ")
    listing = read_listing(asked, NOW, SCOPE, RETENTION_MS)
    assert isinstance(listing, Listing)
    assert listing.filters == Filters(**FILTERS, level="low", visitor_id="0123456789abcdefGHIJ")
    for sent, read in (
        ({"country": "gb"}, {"country": "GB"}),
        ({"ip_address": "2001:DB8:0::1"}, {"ip_address": "2001:db8::1"}),
        ({"ip_address": "::ffff:81.2.69.160"}, {"ip_address": "81.2.69.160"}),
        ({"tag": ""}, {"tag": ""}),
        ({"tag": "é" * 1024}, {"tag": "é" * 1024}),
    ):
        listing = read_listing(Asked(**sent), NOW, SCOPE, RETENTION_MS)
        assert isinstance(listing, Listing)
        assert listing.filters == Filters(**read)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tag", "x" * 1025), ("ip_address", ""), ("ip_address", "81.2.69.0/24"), ("ip_address", "fe80::1%eth0"),
        ("ip_address", "localhost"), ("country", ""), ("country", "GBR"), ("country", "G1"), ("country", "\u00e9e"),
        ("country", "\u00df"), ("signal", ""), ("signal", "Headless"), ("signal", "bot"), ("kind", ""), ("kind", "bot"),
    ],
)  # fmt: skip
def test_a_filter_with_an_impossible_value_is_refused(name: str, value: str):
    refusal = read_listing(Asked(**{name: value}), NOW, SCOPE, RETENTION_MS)
    assert refusal == Refusal("validation_error", (Detail(name, "invalid_value", "query"),))


AFTER = Resume(Position(NOW - 5000, b"i" * 16), 3)


def continued(asked: Asked, now_ms: int = NOW, scope: CursorScope = SCOPE) -> Listing | Refusal:
    """With the cursor of a first page that was asked for with `tag=cart`, an hour before."""
    first = Asked(tag="cart", start="2025-12-31T20:00:00Z")
    listing = read_listing(first, NOW, SCOPE, RETENTION_MS)
    assert isinstance(listing, Listing)
    return read_listing(asked._replace(cursor=next_cursor(first, listing, AFTER, SCOPE)), now_ms, scope, RETENTION_MS)


def test_a_cursor_continues_in_the_window_of_its_first_page():
    asked = Asked(tag="cart", start="2025-12-31T20:00:00Z", limit=50)
    start = NOW - 4 * 3600 * 1000
    expected = Listing(start, NOW - 4999, Filters(tag="cart"), 3, 50, AFTER.after)
    assert continued(asked) == expected
    assert continued(asked, NOW + DAY) == expected, "however late it is sent"
    late = NOW + RETENTION_MS
    assert continued(asked, late) == expected._replace(from_ms=late - RETENTION_MS, to_ms=NOW), "not beyond retention"


@pytest.mark.parametrize(
    ("asked", "scope"),
    [
        (Asked(start="2025-12-31T20:00:00Z"), SCOPE),
        (Asked(tag="cart"), SCOPE),
        (Asked(tag="cart", start="2025-12-31T20:00:00Z", end="2026-01-01T00:00:00Z"), SCOPE),
        (Asked(tag="cart", start="2025-12-31T20:00:00Z", kind="human"), SCOPE),
        (Asked(tag="cart", start="2025-12-31T20:00:00Z"), SCOPE._replace(organization=8)),
        (Asked(tag="cart", start="2025-12-31T20:00:00Z"), SCOPE._replace(environment="staging")),
        (Asked(tag="cart", start="2025-12-31T20:00:00Z"), SCOPE._replace(key=b"j" * 32)),
    ],
)
def test_a_cursor_is_valid_only_for_its_organization_environment_window_and_filters(asked: Asked, scope: CursorScope):
    assert continued(asked, scope=scope) == Refusal("validation_error", (Detail("cursor", "invalid_cursor", "query"),))


def test_a_forged_cursor_is_refused_and_so_is_a_cursor_with_a_page():
    for cursor in ("", "AAAA", "A" * 86, "é"):
        assert read_listing(Asked(cursor=cursor), NOW, SCOPE, RETENTION_MS) == Refusal(
            "validation_error", (Detail("cursor", "invalid_cursor", "query"),)
        )
    refusal = continued(Asked(tag="cart", start="2025-12-31T20:00:00Z", page=1))
    assert refusal == Refusal("validation_error", (Detail("page", "invalid_value", "query"),))


@pytest.mark.parametrize(
    "offset", ["Z", "z", "+02:00", "-0530", "+23:59", "+02", "+24:00", "+0260", "+2:00", "", "GMT"]
)
def test_1_2_a_body_takes_the_offsets_that_a_query_takes(offset: str):
    text = f"2026-01-01T00:00:00{offset}"
    try:
        of_body = unix_ms(msgspec.convert(text, Annotated[datetime, msgspec.Meta(tz=True)]))
    except msgspec.ValidationError:
        of_body = None
    assert read_timestamp(text) == of_body
