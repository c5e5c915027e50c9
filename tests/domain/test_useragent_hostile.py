"""Any text and any hints are read, quickly, and nothing that is kept of them grows without bound."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.model import Agent, Claims, ClientHints, Report, RequestFacts
from svc.identify.useragent import read_agent, read_hints
from svc.identify.useragent.agent import CACHED_AGENTS, _read

SLOWEST_S = 0.02
NO_HINTS = ClientHints()
PARTS = (
    "Mozilla/5.0 (", "Opera/9.80 (", "Android ", "Linux", "Darwin/", "Mac OS X", ";", "; K)", ")", "(", " ", "/", "9",
    "compatible; ", "bot", "cubot", "-AI", "GPT", "Browser/1", "Some App/1.2", "Chrome/1", "Version/4.0", "HbbTV/1.1",
    "FBAN/EMA;", "FBAV/1.2", "\ud800", "@", "https://", "\x00", "İ",
)  # fmt: skip


def read(user_agent: str, hints: ClientHints = NO_HINTS) -> Agent:
    facts = RequestFacts(ip="192.0.2.1", user_agent=user_agent, hints=hints)
    return read_agent(facts, Report(claims=Claims(touch_points=5)))


text_or_nothing = st.one_of(st.none(), st.text())


@given(
    st.text(),
    st.lists(st.tuples(st.text(), st.text()), max_size=3),
    st.one_of(st.none(), st.sampled_from(["Windows", "Android", "macOS", "Linux"]), st.text()),
    text_or_nothing,
    text_or_nothing,
    st.one_of(st.none(), st.booleans()),
)
def test_any_text_and_any_hints_are_read(
    text: str,
    brands: list[tuple[str, str]],
    platform: str | None,
    version: str | None,
    model: str | None,
    mobile: bool | None,
):
    hints = ClientHints(brands=tuple(brands), mobile=mobile, platform=platform, platform_version=version, model=model)
    assert isinstance(read(text, hints), Agent)
    assert isinstance(read(f"Mozilla/5.0 (Linux; Android 10; K) {text}", hints), Agent)


@given(st.lists(st.sampled_from(PARTS), max_size=60))
def test_texts_assembled_from_user_agent_parts_are_read(parts: list[str]):
    found = read("".join(parts))
    assert (found.program is None) is (found.device_kind != "server")


@given(
    st.dictionaries(
        st.sampled_from([f"sec-ch-ua{end}" for end in ("", "-mobile", "-platform", "-platform-version", "-model")]),
        st.one_of(st.text(), st.text('",;v=\\ ?01aB')),
    )
)
def test_any_client_hint_headers_are_read(headers: dict[str, str]):
    assert len(read_hints(headers).brands) <= 12


@pytest.mark.parametrize("part", [*PARTS, "Mac OS", "Darwin/x86_6", "compatible;(", "(Android;", "a.a-", "x-", "aI-"])
def test_a_long_repetition_costs_little(part: str):
    for text in (part * 100_000, "Mozilla/5.0 (" + part * 100_000, "x" + part * 100_000 + ")"):
        assert any(cost_s(text) < SLOWEST_S for _ in range(5)), "each time, so that it is not a search for garbage"


def cost_s(text: str) -> float:
    """CPU of reading it for the first time."""
    _read.cache_clear()
    started = time.process_time()
    read(text)
    return time.process_time() - started


def test_long_texts_are_truncated():
    assert len(read("x" * 100_000).program or "") <= 80
    assert len(read("Some App" + "p" * 100_000 + "/1").agent or "") <= 80
    assert read_hints({"sec-ch-ua": '"' * 100_000, "sec-ch-ua-model": "x" * 100_000}).brands == ()


def test_the_agent_cache_is_bounded():
    assert _read.cache_info().maxsize == CACHED_AGENTS
    for number in range(50):
        read(f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) number {number}")
    before = _read.cache_info()
    read("Mozilla/5.0 (Windows NT 10.0; Win64; x64) number 49")
    after = _read.cache_info()
    assert after.hits == before.hits + 1
    assert after.currsize == before.currsize <= CACHED_AGENTS
