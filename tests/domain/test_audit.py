"""What of a change may stand in the audit log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.access.audit import AUDIT_MS, LONGEST_TEXT, RECORDED, WITHHELD, asked
from svc.kernel.values.ids import DAY_MS


def test_known_names_are_recorded_with_their_values():
    values = {"name": "shop", "weights": {"tor": 25}, "platforms": ("web",), "paused": False, "revision": 0}
    assert asked(values) == values


def test_what_removes_something_is_recorded():
    """`null`, also of what is withheld otherwise, and an empty list."""
    values = {"assignee": None, "url": None, "filter": None, "allowed_origins": ()}
    assert asked(values) == values


@given(st.text(min_size=1).filter(lambda name: name not in RECORDED | {"url"}), st.text(min_size=20))
def test_the_value_of_an_unknown_name_is_withheld(name: str, value: str):
    assert asked({name: value}) == {name: WITHHELD}


def test_no_recorded_name_is_that_of_a_secret():
    of_secrets = {"secret", "key", "token", "pepper", "password", "signature", "digest"}
    assert {name for name in RECORDED if of_secrets & set(name.split("_"))} == {
        "previous_secret_valid_hours",
        "previous_key_valid_hours",
    }


def test_a_long_text_is_truncated():
    written = asked({"name": "x" * (LONGEST_TEXT + 1), "description": "y" * LONGEST_TEXT})
    assert written == {"name": "x" * LONGEST_TEXT + "…", "description": "y" * LONGEST_TEXT}


def test_repeated_list_entries_are_recorded_once():
    """A body of 1 MiB may repeat one word 20,000 times, and the log keeps it for 400 days."""
    written = asked({"events": ["webhook.test", "visitor.suspect"] * 9_000, "platforms": ("ios", "web", "ios")})
    assert written == {"events": ["webhook.test", "visitor.suspect"], "platforms": ("ios", "web")}


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("https://hooks.example", "https://hooks.example"),
        ("https://hooks.example/", "https://hooks.example"),
        ("https://hooks.example:8443/", "https://hooks.example:8443"),
        ("https://[2001:db8::1]:8443/x", "https://[2001:db8::1]:8443/…"),
        ("https://hooks.example/services/T0/B0/hidden", "https://hooks.example/…"),
        ("https://hooks.example?token=hidden", "https://hooks.example/…"),
        ("https://hooks.example/?token=hidden", "https://hooks.example/…"),
        ("https://hooks.example#hidden", "https://hooks.example/…"),
        ("https://user:hidden@hooks.example/", "https://hooks.example"),
    ],
)
def test_of_a_url_only_its_host_is_recorded(url: str, written: str):
    assert asked({"url": url}) == {"url": written}


def test_records_are_kept_for_400_days():
    assert AUDIT_MS == 400 * DAY_MS
