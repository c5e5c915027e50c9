"""Query strings: every parameter known, at most once, and of its type."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, UnsetType

from svc.http.query import read_query
from svc.kernel.values.refusals import Refusal

NO_INTEGERS = (b"1e2", b"1.0", b"%2B1", b"+1", b"-1", b"1_0", b"0x1", b"%D9%A1", b"true", b"null")
"""Texts that some reader takes for an integer."""


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    page: Annotated[int, Meta(ge=1)] = 1
    limit: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    visitor: str | None = None


def test_a_query_is_read_by_its_type() -> None:
    assert read_query(b"page=3&visitor=a%20b", Page) == Page(3, UNSET, "a b")
    assert read_query(b"limit=12&visitor=1e2", Page) == Page(1, 12, "1e2")
    assert read_query(b"", Page) == Page()
    assert read_query(b"", None) is None


def test_an_integer_is_its_decimal_digits() -> None:
    """Decisions 7.1: leading zeros are some, too."""
    assert read_query(b"page=03&limit=" + b"0" * 30 + b"12", Page) == Page(3, 12)


@pytest.mark.parametrize(
    ("query", "field", "issue"),
    [
        (b"pages=3", "pages", "unknown_field"),
        (b"page=3&page=4", "page", "invalid_value"),
        (b"page=three", "page", "wrong_type"),
        *((b"page=" + text, "page", "wrong_type") for text in NO_INTEGERS),
        *((b"limit=" + text, "limit", "wrong_type") for text in NO_INTEGERS),
        (b"page=0", "page", "out_of_range"),
        (b"page=00", "page", "out_of_range"),
        (b"page=", "page", "wrong_type"),
        (b"visitor=%ff", "", "malformed_encoding"),
        (b"visitor=\xff", "", "malformed_encoding"),
        (b"&".join(b"page=1" for _ in range(40)), "", "out_of_range"),
    ],
)
def test_an_invalid_query_is_refused_by_name(query: bytes, field: str, issue: str) -> None:
    refusal = read_query(query, Page)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "validation_error"
    assert [(detail.field, detail.issue, detail.location) for detail in refusal.details] == [(field, issue, "query")]


def test_the_message_says_the_bound_of_a_parameter() -> None:
    refusal = read_query(b"page=0", Page)
    assert isinstance(refusal, Refusal)
    assert refusal.message == "`page` must be at least 1. Fix it and retry."


def test_a_route_without_a_query_refuses_any() -> None:
    refusal = read_query(b"page=1", None)
    assert isinstance(refusal, Refusal)
    assert refusal.details[0].issue == "unknown_field"


@given(st.binary(max_size=200))
def test_no_query_raises(query: bytes) -> None:
    assert isinstance(read_query(query, Page), Page | Refusal)
    assert isinstance(read_query(query, None), Refusal | None)


def test_an_integer_of_any_length_is_read_and_left_to_the_limits_of_its_route():
    query = read_query(b"page=" + b"9" * 5000, Page)
    assert isinstance(query, Page)
    assert query.page == 10**18 - 1
