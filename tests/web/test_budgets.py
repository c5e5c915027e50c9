"""What a browser loads of the console: its screens one by one, within their budgets (web.md 4), and nothing from
elsewhere.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from tests.support.chromium import built

PAGES = Path(__file__).parents[2] / "svc" / "web_static" / "pages"
MAX_IN_TOTAL = 101_000
MAX_AT_FIRST = 45_000
"""Bytes after gzip."""
_STATIC = re.compile(r'(?:\bfrom|\bimport)\s?"\./([^"]+)"')


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    built()
    return {path.name: path.read_bytes() for path in PAGES.iterdir() if path.name.startswith("console.")}


def packed(content: bytes) -> int:
    return len(gzip.compress(content, 9))


def loaded_with(name: str, files: dict[str, bytes]) -> set[str]:
    """The script and those that it cannot begin without."""
    found, open_names = set[str](), {name}
    while open_names:
        found |= open_names
        open_names = {one for each in open_names for one in _STATIC.findall(files[each].decode())} - found
    return found


def test_the_console_is_small_in_total(files: dict[str, bytes]):
    assert sum(map(packed, files.values())) <= MAX_IN_TOTAL


def test_the_first_screen_loads_half_of_the_console_at_most(files: dict[str, bytes]):
    (live,) = (name for name in files if name.startswith("console.live-"))
    scripts = loaded_with("console.js", files) | loaded_with(live, files)
    assert sum(packed(files[name]) for name in (*scripts, "console.html", "console.css")) <= MAX_AT_FIRST


def test_a_screen_is_a_script_of_its_own_named_by_its_content(files: dict[str, bytes]):
    screens = set(re.findall(r'import\("\./([^"]+)"\)', files["console.js"].decode()))
    assert len(screens) > 10
    assert screens <= files.keys()
    assert all(re.fullmatch(r"console\.\w+-[A-Z0-9]{8}\.js", name) for name in screens)
