"""Strict JSON, bounded gzip (decisions 1.4, 1.5, 1.9). The rules over HTTP stand in test_spec.py."""

import base64
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.domain.refusals import Detail, Refusal
from svc.http.body import MAX_BODY_BYTES, decode, decode_object, gunzip, unpack
from svc.http.schema import IdentifyBody
from tests.support.jsonl import read_jsonl


def issue_of(result: object) -> tuple[str, str]:
    assert isinstance(result, Refusal), result
    (detail,) = result.details
    return detail.field, detail.issue


@pytest.mark.parametrize(
    ("body", "field", "issue"),
    [
        ("{}", "sdk", "required"),
        ('{"sdk":{}}', "signals", "required"),
        ('{"sdk":{},"signals":{},"more":1}', "more", "unknown_field"),
        ('{"sdk":{"name":"x"},"signals":{}}', "sdk.name", "unknown_field"),
        ('{"sdk":[],"signals":{}}', "sdk", "wrong_type"),
        ('{"sdk":{"platform":null},"signals":{}}', "sdk.platform", "wrong_type"),
        ('{"sdk":{"platform":1},"signals":{}}', "sdk.platform", "wrong_type"),
        ('{"sdk":{"platform":""},"signals":{}}', "sdk.platform", "invalid_value"),
        ('{"sdk":{"version":"%s"},"signals":{}}' % ("x" * 65), "sdk.version", "too_long"),
        ('{"sdk":{},"signals":{},"tag":"%s"}' % ("x" * 1025), "tag", "too_long"),
        ('{"sdk":{},"signals":{},"tag":null}', "tag", "wrong_type"),
        ("[]", "", "wrong_type"),
        ('"text"', "", "wrong_type"),
        ("", "", "malformed_json"),
        ("{", "", "malformed_json"),
        ('{"sdk":{},"signals":{}} x', "", "malformed_json"),
        ('{"sdk":1,"signals":NaN}', "", "malformed_json"),
        ('{"sdk":{},"signals":{},}', "", "malformed_json"),
        ('{"sdk":{},"signals":{},"sdk":{}}', "sdk", "invalid_value"),
        ('{"sdk":{},"signals":{},"s\\u0064k":{}}', "sdk", "invalid_value"),
        ('{"sdk":{},"signals":{},"tag":"a","tag":"a"}', "tag", "invalid_value"),
    ],
)
def test_each_fault_of_a_body_is_named(body: str, field: str, issue: str):
    assert issue_of(decode(body.encode(), IdentifyBody)) == (field, issue)


@pytest.mark.parametrize(
    "body",
    [
        '{"sdk":{},"signals":{}}',
        ' {"sdk" : {} ,\n"signals" : {"sdk": {"sdk": 1}} , "tag" : "sdk" } ',
        '{"sdk":{},"signals":{},"tag":"\\"sdk\\":"}',
        '{"sdk":{},"signals":{"a":"\\u0041"},"tag":"\\"tag\\":\\u00e9"}',
        '{"sdk":{},"signals":{"tag":"tag","x":{"tag":1,"tag":2}},"tag":"x"}',
    ],
)
def test_a_name_inside_a_value_is_not_taken_for_a_second_field(body: str):
    assert isinstance(decode(body.encode(), IdentifyBody), IdentifyBody)


def test_bytes_that_are_not_utf8_are_malformed():
    assert issue_of(decode(b'{"sdk":{},"signals":{},"tag":"\xff"}', IdentifyBody)) == ("", "malformed_json")
    assert issue_of(decode_object(b'{"a":"\xff"}', "signals")) == ("", "malformed_json")


@pytest.mark.parametrize("raw", ['{"a":NaN}', '{"a":Infinity}', '{"a":"\\ud800"}', '{"a":1e400}', '{"a":01}'])
def test_signals_are_held_to_the_same_strictness(raw: str):
    assert issue_of(decode_object(raw.encode(), "signals")) == ("", "malformed_json")


@pytest.mark.parametrize("raw", ["[]", "null", "1", '"x"', "true"])
def test_signals_are_an_object(raw: str):
    assert issue_of(decode_object(raw.encode(), "signals")) == ("signals", "wrong_type")


def nested(depth: int) -> bytes:
    """An object with `depth` levels in all."""
    return b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1)


def test_a_body_of_32_levels_passes_and_one_of_33_does_not():
    assert isinstance(decode_object(nested(31), "signals"), dict)
    assert issue_of(decode_object(nested(32), "signals")) == ("", "too_deep")
    assert issue_of(decode_object(b'{"a":' + b"[" * 100_000, "signals")) in (("", "too_deep"), ("", "malformed_json"))


def test_a_body_of_20000_values_passes_and_one_more_does_not():
    def signals(count: int) -> bytes:
        return json.dumps({"a": [0] * (count - 3)}).encode()

    assert isinstance(decode_object(signals(20_000), "signals"), dict)
    assert issue_of(decode_object(signals(20_001), "signals")) == ("", "out_of_range")


def test_brackets_and_commas_inside_strings_count_for_nothing():
    signals = {"a": "[{," * 20_000}
    assert decode_object(json.dumps(signals).encode(), "signals") == signals


def test_the_parsing_suite_is_judged_as_it_says(shared_data: Path):
    for case in read_jsonl(shared_data / "json" / "parsing.jsonl.gz"):
        text = base64.b64decode(case["base64"])
        accepted = isinstance(decode_object(b'{"a":' + text + b"}", "signals"), dict)
        if case["expect"] != "either" and not _closes_the_wrapper(case["name"]):
            assert accepted == (case["expect"] == "accept"), case["name"]


def _closes_the_wrapper(name: str) -> bool:
    """Texts that are wrong alone and right, or too deep, inside an object."""
    return name in ("n_structure_trailing_#.json", "n_single_space.json") or "100000" in name


def test_gzip_is_one_member_whole_and_nothing_behind_it():
    body = b'{"sdk":{},"signals":{}}'
    packed = gzip.compress(body)
    assert gunzip(packed) == body
    for wrong in (
        packed[:-1],
        packed + b"x",
        packed + packed,
        b"",
        b"plain",
        packed[:-8] + bytes(8),
        zlib.compress(body),
    ):
        result = gunzip(wrong)
        assert isinstance(result, Refusal)
        assert result.details == (Detail("", "malformed_encoding", "body"),)


def test_a_gzip_bomb_is_stopped_at_the_limit():
    result = gunzip(gzip.compress(bytes(200 << 20)))
    assert isinstance(result, Refusal)
    assert result.code == "payload_too_large"


def test_the_limit_is_one_mebibyte_after_decompression():
    def body(size: int) -> bytes:
        frame = b'{"sdk":{},"signals":{"a":""}}'
        return frame[:-3] + b"x" * (size - len(frame)) + frame[-3:]

    for encoding, pack in ((None, bytes), ("gzip", gzip.compress)):
        fits = unpack(pack(body(MAX_BODY_BYTES)), "application/json", encoding)
        assert isinstance(fits, bytes)
        assert isinstance(decode(fits, IdentifyBody), IdentifyBody)
        over = unpack(pack(body(MAX_BODY_BYTES + 1)), "application/json", encoding)
        assert isinstance(over, Refusal)
        assert over.code == "payload_too_large"


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=25,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=6))
def test_any_object_within_the_bounds_comes_back_as_it_was(signals: dict[str, Any]):
    text = json.dumps(signals, ensure_ascii=False)
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return
    assert decode_object(raw, "signals") == signals


@given(st.binary(max_size=200))
def test_no_bytes_make_the_decoder_raise(raw: bytes):
    decode(raw, IdentifyBody)
    decode(b'{"sdk":{},"signals":' + raw, IdentifyBody)
    decode_object(raw, "signals")
    gunzip(raw)
