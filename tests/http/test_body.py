"""Strict JSON, bounded gzip (decisions 1.4, 1.5, 1.9)."""

import base64
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.features.organizations.bodies import IssueSdkKeyBody
from svc.features.organizations.routes import UpdateSettingsBody
from svc.http import body
from svc.http.body import MAX_BODY_BYTES, MAX_DIGITS, beyond_bounds, decode, decode_signals, gunzip, unpack
from svc.http.schema import IdentifyBody
from svc.kernel.values.refusals import Detail, Refusal
from tests.support.jsonl import read_jsonl


def issue_of(result: object) -> tuple[str, str]:
    assert isinstance(result, Refusal), result
    (detail,) = result.details
    return detail.field, detail.issue


@pytest.mark.parametrize(
    ("content", "field", "issue"),
    [
        ("{}", "sdk", "required"),
        ('{"signals":{}}', "sdk", "required"),
        ('{"sdk":{}}', "signals", "required"),
        ('{"sdk":{},"signals":{},"more":1}', "more", "unknown_field"),
        ('{"sdk":{"name":"x"},"signals":{}}', "sdk.name", "unknown_field"),
        ('{"sdk":{},"signals":{},"Tag":"a"}', "Tag", "unknown_field"),
        ('{"sdk":[],"signals":{}}', "sdk", "wrong_type"),
        ('{"sdk":null,"signals":{}}', "sdk", "wrong_type"),
        ('{"sdk":"web","signals":{}}', "sdk", "wrong_type"),
        ('{"sdk":{"version":1},"signals":{}}', "sdk.version", "wrong_type"),
        ('{"sdk":{"platform":["web"]},"signals":{}}', "sdk.platform", "wrong_type"),
        ('{"sdk":{},"signals":{},"tag":5}', "tag", "wrong_type"),
        ('{"sdk":{"platform":null},"signals":{}}', "sdk.platform", "wrong_type"),
        ('{"sdk":{"platform":1},"signals":{}}', "sdk.platform", "wrong_type"),
        ('{"sdk":{"platform":""},"signals":{}}', "sdk.platform", "invalid_value"),
        ('{"sdk":{"version":"%s"},"signals":{}}' % ("x" * 65), "sdk.version", "too_long"),
        ('{"sdk":{},"signals":{},"tag":"%s"}' % ("x" * 1025), "tag", "too_long"),
        ('{"sdk":{},"signals":{},"tag":null}', "tag", "wrong_type"),
        ("[]", "", "wrong_type"),
        ("null", "", "wrong_type"),
        ('"text"', "", "wrong_type"),
        ("", "", "malformed_json"),
        (" ", "", "malformed_json"),
        ("{", "", "malformed_json"),
        ("nonsense", "", "malformed_json"),
        (b"\xff\xfe{}", "", "malformed_json"),
        (b'\xef\xbb\xbf{"sdk":{},"signals":{}}', "", "malformed_json"),
        ("{'sdk':{},'signals':{}}", "", "malformed_json"),
        ('{"sdk":{},"signals":{}} x', "", "malformed_json"),
        ('{"sdk":{},"signals":{}} {"sdk":{},"signals":{}}', "", "malformed_json"),
        ('{"sdk":{},"signals":{}} // comment', "", "malformed_json"),
        ('{"sdk":5,"signals":{}', "", "malformed_json"),
        ('{"sdk":{},"signals":{"a" 1}}', "", "malformed_json"),
        ('{"sdk":{},"signals":{"a":-Infinity}}', "", "malformed_json"),
        ('{"sdk":{},"signals":{"a":"\n"}}', "", "malformed_json"),
        (b'{"sdk":{"version":"\xff"},"signals":{}}', "", "malformed_json"),
        (b'{"sdk":{},"signals":{},"tag":"\xff"}', "", "malformed_json"),
        ('{"sdk":1,"signals":NaN}', "", "malformed_json"),
        ('{"sdk":{},"signals":{},}', "", "malformed_json"),
        ('{"sdk":{},"signals":{},"sdk":{}}', "sdk", "invalid_value"),
        ('{"sdk":{},"signals":{},"s\\u0064k":{}}', "sdk", "invalid_value"),
        ('{"sdk":{},"signals":{},"tag":"a","tag":"a"}', "tag", "invalid_value"),
        ('{"sdk":{},"sdk":{"platform":"x"},"signals":{"platform":"x"}}', "sdk", "invalid_value"),
        ('{"sdk":{},"signals":{"a":1},"signals":{"a":1}}', "signals", "invalid_value"),
        ('{"sdk":{},"signals":{"a":1},"sdk":{"a":1}}', "sdk.a", "unknown_field"),
    ],
)
def test_each_error_of_a_body_is_named(content: str | bytes, field: str, issue: str):
    raw = content if isinstance(content, bytes) else content.encode()
    assert issue_of(decode(raw, IdentifyBody)) == (field, issue)


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (
            '{"account_thresholds":{"multi_account":0}}',
            UpdateSettingsBody,
            "`account_thresholds.multi_account` must be at least 1.",
        ),
        (
            '{"account_thresholds":{"multi_account":65}}',
            UpdateSettingsBody,
            "`account_thresholds.multi_account` must be at most 64.",
        ),
        (
            '{"name":"x","environment":"staging","platforms":[]}',
            IssueSdkKeyBody,
            "`platforms` must have a length of at least 1.",
        ),
        (
            '{"name":"%s","environment":"staging"}' % ("x" * 201),
            IssueSdkKeyBody,
            "`name` must have a length of at most 200.",
        ),
    ],
)
def test_the_message_says_the_bound_that_a_value_is_beyond(body: str, kind: type[msgspec.Struct], says: str):
    """Interface 7: the message of a change that is refused says what to fix."""
    refusal = decode(body.encode(), kind)
    assert isinstance(refusal, Refusal)
    assert refusal.message == f"{says} Fix it and retry."


@pytest.mark.parametrize(
    "body",
    [
        '{"sdk":{},"signals":{}}',
        '\n {"sdk" \t:\r\n {} ,\n"signals" : {"sdk": {"sdk": 1}, "s\\u0064k": ":"} , "tag" : "sdk" } \n',
        '{"sdk":{},"signals":{},"tag":"\\"sdk\\":"}',
        '{"sdk":{},"signals":{"a":"\\u0041"},"tag":"\\"tag\\":\\u00e9"}',
        '{"sdk":{},"signals":{"tag":"tag","x":{"tag":1,"tag":2}},"tag":"x"}',
        '{"sdk":{},"tag":"x","signals":{"tag":"tag","\\u0061":{"sdk":1,"sdk":2}}}',
    ],
)
def test_a_name_inside_a_value_is_not_a_second_field(body: str):
    assert isinstance(decode(body.encode(), IdentifyBody), IdentifyBody)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":"\\ud800"}',
        b'{"a":1e400}',
        b'{"a":01}',
        b'{"a":"\xff"}',
        b'{"\xc0\x80":1}',
        b'{"a":"\xed\xa0\x80"}',
    ],
)
def test_signals_are_parsed_with_the_same_strictness(raw: bytes):
    assert issue_of(decode_signals(raw)) == ("", "malformed_json")


@pytest.mark.parametrize("raw", ["[]", "null", "1", '"x"', "true"])
def test_signals_are_an_object(raw: str):
    assert issue_of(decode_signals(raw.encode())) == ("signals", "wrong_type")


def nested(depth: int) -> bytes:
    """An object with `depth` levels in all."""
    return b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1)


def test_a_text_of_32_levels_is_accepted_and_one_of_33_is_rejected():
    assert beyond_bounds(nested(32)) is None
    for levels in (33, 34, 5_000):
        assert issue_of(beyond_bounds(nested(levels))) == ("", "too_deep")
    assert issue_of(beyond_bounds(b"[" * 400_000 + b"]" * 400_000)) == ("", "too_deep")
    for opened, closed in ((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]"), (b"[ ", b" ]"), (b'["]",', b"]")):
        levels = 16 if len(opened) == 6 else 32
        full = opened * levels + b"1" + closed * levels
        assert beyond_bounds(full) is None
        assert issue_of(beyond_bounds(b"[" + full + b"]")) == ("", "too_deep")


@pytest.mark.parametrize("piece", ["]", "}]", "][", '"]', "\\", '\\"]', ""])
def test_brackets_inside_strings_do_not_affect_the_depth(piece: str):
    """Reports have many containers, so that their number alone settles nothing."""
    for levels, fits in ((32, True), (33, False)):
        value: Any = [piece]
        for _ in range(levels - 1):
            value = [piece, {}, value, "["]
        assert (beyond_bounds(json.dumps(value).encode()) is None) is fits


def test_a_text_of_20000_values_is_accepted_and_one_more_is_rejected():
    def shapes(count: int) -> Iterator[Any]:
        """Each of so many values."""
        yield [0] * (count - 1)
        yield {f"{number}": 0 for number in range(count - 1)}
        yield [[]] * (count - 1)
        yield {"a": [""] * (count - 2)}
        yield [[0]] * ((count - 1) // 2) + [0] * ((count - 1) % 2)
        yield [{"a": {}}] * ((count - 1) // 2) + [{}] * ((count - 1) % 2)

    for separators in ((",", ":"), (" ,\n", "\t:\r")):
        for fits, over in zip(shapes(20_000), shapes(20_001), strict=True):
            assert beyond_bounds(json.dumps(fits, separators=separators).encode()) is None
            assert issue_of(beyond_bounds(json.dumps(over, separators=separators).encode())) == ("", "out_of_range")


def test_a_duplicate_name_counts_twice():
    assert issue_of(beyond_bounds(b"{" + b",".join([b'"a":1'] * 20_000) + b"}")) == ("", "out_of_range")


def test_a_number_of_512_digits_is_accepted_and_one_more_is_rejected():
    assert beyond_bounds(b"[" + b"1" * MAX_DIGITS + b',"' + b"1" * 9_999 + b'"]') is None
    assert issue_of(beyond_bounds(b"[" + b"1" * (MAX_DIGITS + 1) + b"]")) == ("", "out_of_range")
    for offset in range(70):
        assert issue_of(beyond_bounds(b" " * offset + b"1" * (MAX_DIGITS + 1))) == ("", "out_of_range")
    assert issue_of(beyond_bounds(b"[0." + b"1" * (MAX_DIGITS + 1) + b"]")) == ("", "out_of_range")


@pytest.mark.parametrize("piece", ["[{,", '"[{,', "\\", '\\"[', "1" * 999, "é["])
@pytest.mark.slow(0.4)
def test_content_of_strings_does_not_count(piece: str):
    signals = {"a": piece * 20_000, "b" + piece * 100: [piece] * 50, "c": ["\\", "[", "\\\\", ","]}
    for is_ascii in (True, False):
        text = json.dumps(signals, ensure_ascii=is_ascii).encode()
        assert beyond_bounds(text) is None
        assert decode_signals(text) == signals


@pytest.mark.parametrize("place", range(4))
def test_a_name_twice_is_refused_wherever_the_signals_stand(place: int):
    """And names within the signals are theirs, also where the tag has what they begin with."""
    signals = '{"tag":"a","action":"b","sdk":{},"signals":{"tag":1,"tag":2}}'
    members = ['"sdk":{"platform":"web"}', '"tag":"{"', '"action":"log_in"']
    members.insert(place, f'"signals":{signals}')
    body = decode(f"{{{','.join(members)}}}".encode(), IdentifyBody)
    assert isinstance(body, IdentifyBody)
    assert (body.tag, bytes(body.signals).decode()) == ("{", signals)
    for again in members:
        text = f"{{{','.join([*members, again])}}}".encode()
        assert issue_of(decode(text, IdentifyBody)) == (again.split('"')[1], "invalid_value")


def test_invalid_json_is_left_to_the_decoder():
    for text in (b"]" * 40 + b"[" * 30 + b"]" * 9, b'["' + b"[" * 600, b"[}{" * 600):
        assert beyond_bounds(text) is None
        assert issue_of(decode(text, IdentifyBody)) in (("", "malformed_json"), ("", "too_deep"))


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=25,
)


def size_of(value: Any) -> tuple[int, int]:
    """(number of values, levels)"""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    sizes = [size_of(member) for member in members]
    return 1 + sum(count for count, _ in sizes), isinstance(value, dict | list) + max(
        (deep for _, deep in sizes), default=0
    )


@given(json_values, st.integers(1, 12), st.integers(0, 40), st.sampled_from([None, 1]))
def test_the_limits_equal_those_of_the_decoded_values(value: Any, times: int, around: int, indent: int | None):
    value = [value] * times
    for _ in range(around):
        value = {"a": value}
    text = json.dumps(value, indent=indent).encode()
    count, levels = size_of(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body, "MAX_VALUES", 100)
        refusal = beyond_bounds(text)
    assert (refusal is None) == (count <= 100 and levels <= 32)


def test_the_parsing_suite_gives_its_expected_verdicts(shared_data: Path):
    for case in read_jsonl(shared_data / "json" / "parsing.jsonl.gz"):
        text = base64.b64decode(case["base64"])
        accepted = isinstance(decode_signals(b'{"a":' + text + b"}"), dict)
        if case["expect"] != "either" and not _closes_the_wrapper(case["name"]):
            assert accepted == (case["expect"] == "accept"), case["name"]


def _closes_the_wrapper(name: str) -> bool:
    """Texts that are wrong alone and right, or too deep, inside an object."""
    return name in ("n_structure_trailing_#.json", "n_single_space.json") or "100000" in name


def test_gzip_is_one_complete_member_without_trailing_data():
    body = b'{"sdk":{},"signals":{}}'
    packed = gzip.compress(body)
    assert gunzip(packed) == body
    for wrong in (
        packed[:-1],
        packed[:-8],
        packed + b"x",
        packed + b"\x00",
        packed + packed,
        packed + gzip.compress(b""),
        gzip.compress(body[:9]) + gzip.compress(body[9:]),
        b"",
        b"\x1f\x8b",
        b"plain",
        packed[:-8] + bytes(8),
        zlib.compress(body),
    ):
        result = gunzip(wrong)
        assert isinstance(result, Refusal)
        assert result.details == (Detail("", "malformed_encoding", "body"),)


@pytest.mark.slow
def test_a_gzip_bomb_is_stopped_at_the_limit():
    """Decisions 1.9: what follows is never looked at."""
    bomb = gzip.compress(bytes(200 << 20))
    for content in (bomb, bomb[: len(bomb) // 2], bomb + b"garbage"):
        result = gunzip(content)
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


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=6))
@pytest.mark.slow(0.2)
def test_any_object_within_the_limits_is_decoded_unchanged(signals: dict[str, Any]):
    text = json.dumps(signals, ensure_ascii=False)
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return
    assert decode_signals(raw) == signals


@given(st.binary(max_size=200))
def test_no_bytes_make_the_decoder_raise(raw: bytes):
    decode(raw, IdentifyBody)
    decode(b'{"sdk":{},"signals":' + raw, IdentifyBody)
    decode_signals(raw)
    gunzip(raw)
