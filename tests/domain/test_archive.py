"""Archived reports (ADR 72): what is written can be read, of this version, of earlier ones, and by zlib alone."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import archive_dictionary
from svc.identify.events import archive
from svc.identify.events.archive import DICTIONARIES, LONG, LONG_BYTES, SHORT, deflate, inflate
from tests.domain.test_report_native import ANDROID_ID, VENDOR_ID


def judged() -> dict[str, list[bytes]]:
    """What -> documents that no dictionary was made of, each with what belongs to the visit."""
    chance = random.Random(1)

    def visit(report: dict[str, Any]) -> dict[str, Any]:
        own = {"client_token": chance.randbytes(16).hex(), "nonce": chance.randbytes(16).hex()}
        return report | own | {"collected_at": 1_790_000_000_000 + chance.randrange(10**9)}

    def timed(report: dict[str, Any]) -> dict[str, Any]:
        parts = {name: part | {"duration": round(chance.random(), 4)} for name, part in report["components"].items()}
        return report | {"components": parts}

    web = {
        key: report for key, report in archive_dictionary.captured().items() if key not in archive_dictionary.MADE_OF
    }
    kinds: dict[str, Callable[[str, str], bool]] = {
        "web, the same engine": lambda name, major: bool(major) and name not in ("office", "office-twin"),
        "web, driven": lambda name, major: not major and "firefox" not in name,
    }
    found = {kind: [visit(one) for key, one in web.items() if wanted(*key)] for kind, wanted in kinds.items()}
    found["web, with durations"] = [timed(one) for one in found["web, the same engine"]]
    found["made-up"] = [visit(archive_dictionary.device_report(number)) for number in range(200)]
    return {kind: [msgspec.json.encode(report) for report in reports] for kind, reports in found.items()}


REPORTS = judged()


@given(st.binary(max_size=3 * LONG_BYTES) | st.text(max_size=300).map(str.encode))
def test_what_was_archived_is_read_back(document: bytes):
    assert inflate(deflate(document)) == document


@pytest.mark.parametrize("document", [b"", b"{}", json.dumps({"a": "b" * 10}).encode(), b"x" * (1 << 20)])
def test_archives_of_earlier_versions_are_read(document: bytes):
    assert inflate(zlib.compress(document, 1)) == document


@pytest.mark.parametrize(("length", "adler"), [(LONG_BYTES - 1, SHORT), (LONG_BYTES, LONG)])
def test_an_archive_names_its_dictionary_by_the_adler_32(length: int, adler: int):
    """As RFC 1950 says, so that any reader of the format can be given the file."""
    raw = deflate(b"a" * length)
    assert int.from_bytes(raw[2:6]) == adler == zlib.adler32(DICTIONARIES[adler])
    assert zlib.decompressobj(zdict=DICTIONARIES[adler]).decompress(raw) == b"a" * length


def test_dictionaries_are_kept_for_ever():
    """Those that a version compressed with: never remove one from this list."""
    assert {0x9EBDB4AE, 0xBCD61DE1} <= set(DICTIONARIES)
    assert all(zlib.adler32(dictionary) == adler for adler, dictionary in DICTIONARIES.items())


def test_an_unknown_dictionary_is_named(monkeypatch: pytest.MonkeyPatch):
    raw = deflate(b"{}")
    monkeypatch.delitem(archive.DICTIONARIES, SHORT)
    with pytest.raises(zlib.error, match=f"{SHORT:08x}"):
        inflate(raw)


@given(st.data())
def test_a_damaged_archive_is_an_error(data: st.DataObject):
    """The checksum of the document is in the archive."""
    document = REPORTS["made-up"][0]
    raw = deflate(document)
    place = data.draw(st.integers(0, len(raw) - 1))
    flipped = bytes((*raw[:place], raw[place] ^ 1 << data.draw(st.integers(0, 7)), *raw[place + 1 :]))
    for damaged in (raw[:place], raw + b"x", flipped):
        try:
            assert inflate(damaged) == document
            assert damaged is flipped  # such as the level in the header, which nothing follows from
        except zlib.error:
            pass


@pytest.mark.parametrize(
    ("kind", "part"), [("web, the same engine", 6), ("web, driven", 4), ("web, with durations", 5), ("made-up", 2.8)]
)
def test_reports_that_no_dictionary_was_made_of_become_shorter(kind: str, part: float):
    """Than without one, by this factor."""
    documents = REPORTS[kind]
    assert documents
    without = sum(len(zlib.compress(document, 1)) for document in documents)
    assert sum(len(deflate(document)) for document in documents) < without / part


@pytest.mark.slow(0.2)
def test_the_dictionaries_can_be_made_again():
    assert tuple(zlib.adler32(made) for made in archive_dictionary.made()) == (SHORT, LONG)


def test_a_device_s_own_values_are_in_no_dictionary():
    captured = archive_dictionary.captured()
    own = {VENDOR_ID, ANDROID_ID, archive_dictionary.device_report(archive_dictionary.TEMPLATE)["canvas"]}
    for key in archive_dictionary.MADE_OF:
        canvas = captured[key]["components"]["canvas"]["value"]
        own |= {value for value in canvas.values() if isinstance(value, str) and len(value) > 20}
    assert len(own) >= 5
    for dictionary in DICTIONARIES.values():
        assert [value for value in own if value.encode() in dictionary] == []
