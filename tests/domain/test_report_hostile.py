"""Whatever arrives as a report gives a `Report`: reports come from machines that nobody vouches for."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.domain.model import Report, RequestFacts
from svc.domain.report import read_report
from svc.domain.report.fingerprintjs import KNOWN
from svc.domain.report.plain import READ_HERE

FACTS = RequestFacts(ip="192.0.2.1", user_agent="Mozilla/5.0")
CAPTURES = Path(__file__).parents[3] / "shared" / "data"

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 2**63, 1e308, -0.0, 5e-324])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["\ud800", "\x00", "a" * 5_000, "skipped", "Brave", "ANGLE (" * 40, "(" * 300, "Not;A=Brand"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["value", "duration", "state", "\ud800"]), inner, max_size=6
        )
    ),
    max_leaves=25,
)
names = st.sampled_from(sorted(KNOWN | READ_HERE | {"components", "botd", "extra", "client_token", "nonce", "tier"}))


def check(signals: dict[str, Any]) -> None:
    report = read_report(signals, FACTS)
    assert isinstance(report, Report)
    assert report == read_report(signals, FACTS)
    assert len(report.rest) <= 128
    assert list(report.rest) == sorted(report.rest)
    assert report.masked.isdisjoint(report.attributes)
    for value in report.attributes.values():
        assert value.split(":")[0] in report.collectors
        assert len(value) < 128
    # Everything in it can be written, so it can be stored.
    msgspec.json.encode((list(report.attributes.values()), report.rest, report.fonts, report.claims, report.botd))


@pytest.mark.slow
@given(st.dictionaries(names | st.text(max_size=8), values, max_size=12))
def test_any_object_is_read(signals: dict[str, Any]):
    check(signals)


@pytest.mark.slow
@given(st.dictionaries(names, values.map(lambda value: {"value": value, "duration": 1}), max_size=12), st.booleans())
def test_components_of_any_type_are_read(entries: dict[str, Any], nested: bool):
    check({"components": entries} if nested else entries)


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=8), values.map(lambda value: {"value": value, "state": 0}), max_size=12))
def test_botd_components_of_any_type_are_read(entries: dict[str, Any]):
    check({"botd": entries})


def captures() -> list[dict[str, Any]]:
    """One report of each shape."""
    if not CAPTURES.is_dir():
        return []
    with gzip.open(CAPTURES / "bots" / "captures.jsonl.gz", "rt") as lines:
        capture = json.loads(next(lines))
    with gzip.open(CAPTURES / "linkage" / "small" / "fps.jsonl.gz", "rt") as lines:
        flat = json.loads(next(lines))["signals"]
    return [{"components": capture["components"], "botd": capture["botComponents"]}, capture["components"], flat]


REAL = captures()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value[:3]):
            found += places(inner, (*path, index))
    return found


def replaced(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    if not path:
        return change
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], change)
    return copy


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="needs the captures in shared/data, which are not here")
@given(st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_real_capture_is_read_whatever_of_it_is_replaced(data: st.DataObject):
    signals = data.draw(st.sampled_from(REAL))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(places(signals)[1:]))
        signals = replaced(signals, path, data.draw(values))
        if len(places(signals)) < 2:
            break
    check(signals)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize(
    "signals",
    [
        {"userAgent": "x", "more": deep(15)},
        {"userAgent": "x", "fonts": ["f"] * 20_000},
        {"userAgent": "x" * 1_000_000, "platform": "p" * 1_000_000, "languages": ["l" * 1_000_000] * 10},
        {"userAgent": "x", "canvas": "c" * 1_000_000},
        {"userAgent": "x", **{f"key{number}": number for number in range(20_000)}},
        {"userAgent": "x", "k" * 1_000_000: {"k" * 1_000_000: 1}},
        {"components": {"fonts": {"value": 1}} | {f"key{number}": {"value": number} for number in range(9_000)}},
        {"components": {"webGlExtensions": {"value": {"parameters": ["A=1=2"] * 19_000}}}},
        {"components": {"plugins": {"value": [{"name": "n"}] * 9_000}, "languages": {"value": [["x"] * 9] * 900}}},
        {"components": {"webGlBasics": {"value": {"rendererUnmasked": "ANGLE (" + "(,)" * 80}}}},
        {"botd": {f"c{number}": {"state": 0, "value": [number] * 30} for number in range(600)}},
    ],
    ids=lambda signals: ",".join(sorted(signals)[:3])[:40],
)  # fmt: skip
def test_very_large_and_deep_reports_are_read(signals: dict[str, Any]):
    check(signals)
