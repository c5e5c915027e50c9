from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.keys.deferred import issue_token, open_token, report_digest, signing_key

KEY = signing_key(b"p" * 32)
REQUEST = UUID("0198a1b2-c3d4-7000-8000-000000000001")
NOW = 1_767_225_600_000


@given(st.data())
def test_a_token_with_one_character_changed_does_not_open(data: st.DataObject):
    token = issue_token(KEY, REQUEST, "key_a", None, NOW)
    index = data.draw(st.integers(0, len(token) - 2))
    other = data.draw(st.sampled_from("AZaz09-_"))
    if token[index] != other:
        assert open_token(KEY, token[:index] + other + token[index + 1 :], "key_a", None, NOW) is None


@pytest.mark.parametrize("more", ["=", "==", "====", " ", "\n", "A", "AAAA"])
def test_a_token_with_trailing_data_does_not_open(more: str):
    token = issue_token(KEY, REQUEST, "key_a", None, NOW)
    assert open_token(KEY, token, "key_a", None, NOW) is not None
    assert open_token(KEY, token + more, "key_a", None, NOW) is None


@given(st.text())
def test_no_text_raises_an_exception(text: str):
    assert open_token(KEY, text, "key_a", None, NOW) is None


def test_a_token_of_another_installation_does_not_open():
    token = issue_token(KEY, REQUEST, "key_a", None, NOW)
    assert open_token(signing_key(b"q" * 32), token, "key_a", None, NOW) is None


def test_order_spacing_and_spelling_do_not_change_a_report():
    digest = report_digest("web", None, b'{"a":{"x":1,"y":[1.5,"\xc3\xbc"]},"b":100}')
    assert len(digest) == 16
    assert report_digest("web", None, b' {"b":1e2, "a":{"y":[1.50,"\\u00fc"],"x":1.0}}') == digest


@pytest.mark.parametrize(
    ("platform", "version", "signals"),
    [
        ("ios", None, b'{"a":1}'),
        (None, None, b'{"a":1}'),
        ("web", "1", b'{"a":1}'),
        ("web", None, b'{"a":1.5}'),
        ("web", None, b'{"a":"1"}'),
        ("web", None, b'{"a":[1]}'),
        ("web", None, b'{"a":1,"b":null}'),
    ],
)
def test_any_other_difference_makes_another_report(platform: str | None, version: str | None, signals: bytes):
    assert report_digest(platform, version, signals) != report_digest("web", None, b'{"a":1}')


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**64 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    )
)
def test_reformatting_does_not_change_a_report(value: object):
    compact = msgspec.json.encode({"a": value})
    assert report_digest(None, None, msgspec.json.format(compact, indent=2)) == report_digest(None, None, compact)
