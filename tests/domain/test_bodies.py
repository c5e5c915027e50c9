"""Records made from others: what both call the same is taken over."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from svc.features.exports.lines import COLUMNS
from svc.identify.events.event_row import EventBody
from svc.identify.records import EVENT_FIELDS
from svc.kernel.values.struct_fields import record_of


class Asked(msgspec.Struct, frozen=True):
    """A body as it was decoded."""

    name: str
    note: str | UnsetType = UNSET
    other: int = 1


class Place(msgspec.Struct, frozen=True):
    """Another source, with one field of the same name."""

    city: str

    @property
    def country(self) -> str:
        return "GB"


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A record made of both."""

    name: str
    note: str | None
    city: str
    country: str
    at_ms: int


def test_fields_and_properties_of_the_same_name_are_taken_over_and_what_was_left_out_is_none():
    kept = record_of(Kept, Asked("a"), Place("London"), at_ms=5)
    assert kept == Kept(name="a", note=None, city="London", country="GB", at_ms=5)
    assert record_of(Kept, Asked("a", "b"), Place("London"), at_ms=5).note == "b"


def test_what_is_given_by_name_wins_and_what_nobody_has_is_missing():
    assert record_of(Kept, Asked("a"), Place("London"), at_ms=5, name="c").name == "c"
    with pytest.raises(TypeError, match="at_ms"):
        record_of(Kept, Asked("a"), Place("London"))


def test_every_flat_field_that_an_event_stores_and_shows_is_a_column_of_csv():
    shown = [name for name in EVENT_FIELDS if name in EventBody.__struct_fields__ and name != "velocity"]
    assert set(shown) <= set(COLUMNS)
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert COLUMNS[:4] == ("request_id", "occurred_at", "environment", "visitor_id")
