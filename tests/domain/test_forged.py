"""`forged_report` on captures of real browsers: silent on what they sent, and on archives that say too little."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest

from svc.identify.detection import detect
from svc.identify.model import HeaderContext, Network, RequestFacts
from svc.identify.network.request_headers import (
    archived_headers,
    facts_of,
    is_of_a_script,
    read_fetch_metadata,
    read_headers,
)
from svc.identify.report import read_report
from svc.identify.useragent import read_agent, read_hints

CAPTURES = Path(__file__).parents[1] / "captures"
DATA = Path(__file__).parents[3] / "shared/data"
FILES = (
    CAPTURES / "real-browsers.jsonl.gz",
    CAPTURES / "automation.jsonl.gz",
    CAPTURES / "sdk-upgrades.jsonl.gz",
    DATA / "bots/captures.jsonl.gz",
    DATA / "browsers/ladder.jsonl.gz",
)
OF_A_SCRIPT = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
NOW_MS = 1_767_268_800_000


def rows(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        pytest.skip(f"{file} is not here")
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def signals_of(row: dict[str, Any]) -> dict[str, Any]:
    found = row.get("report") or row.get("signals")
    return found or {"components": row["components"], "botd": row["botComponents"]}


def headers_of(row: dict[str, Any]) -> dict[str, str]:
    """Those of the request that brought the report. Some were kept of the page's own request, or without what all of
    these engines send: then with what a script's request has.
    """
    headers = {name.lower(): value for name, value in row["headers"].items()}
    of_a_script = headers.get("sec-fetch-mode") == "cors" or "browser" in row
    return headers if of_a_script else headers | OF_A_SCRIPT


def fired(signals: dict[str, Any], headers: dict[str, str], context: HeaderContext | None) -> tuple[str, ...]:
    facts = RequestFacts(
        ip="81.2.69.142",
        user_agent=headers.get("user-agent"),
        accept_language=headers.get("accept-language"),
        hints=read_hints(headers),
        context=context,
        fetch=read_fetch_metadata(headers),
    )
    return evidence(signals, facts_of(facts.ip, read_headers(archived_headers(facts))))


def evidence(signals: dict[str, Any], facts: RequestFacts) -> tuple[str, ...]:
    report = read_report(signals, facts)
    seen = detect(report, facts, read_agent(facts, report), Network(state="enriched"), "web", NOW_MS)
    return next((one.evidence for one in seen if one.signal == "forged_report"), ())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
@pytest.mark.slow(0.3)
def test_no_browser_that_is_what_it_calls_itself_is_called_forged(file: Path):
    """From a secure page, and from another one, where hints and fetch metadata are not sent."""
    for row in rows(file):
        if row.get("kind") in ("spoofed", "headless"):
            continue
        headers, signals = headers_of(row), signals_of(row)
        plain = {name: value for name, value in headers.items() if not name.startswith("sec-")}
        assert fired(signals, headers, "secure") == (), row.get("tag")
        assert fired(signals, headers, "forwarded") == (), row.get("tag")
        assert fired(signals, plain, "plain") == (), row.get("tag")


@pytest.mark.slow(0.2)
def test_browsers_in_disguise_are_called_forged_only_where_their_headers_give_them_away():
    """Chromium that calls itself Firefox or Safari sends client hints; a headless shell that calls itself Chrome, no
    languages.
    """
    found = Counter[tuple[str, ...]]()
    for row in rows(FILES[0]):
        if row["kind"] in ("spoofed", "headless"):
            found[fired(signals_of(row), headers_of(row), "secure")] += 1
    assert found == {(): 112, ("sent_hints_of_another_engine",): 12, ("accept_language_missing",): 11}


@pytest.mark.parametrize("file", FILES[:3], ids=lambda file: file.name)
@pytest.mark.slow(0.3)
def test_archives_of_earlier_versions_and_headers_that_a_server_did_not_forward_show_nothing(file: Path):
    for row in rows(file):
        assert fired(signals_of(row), {"user-agent": row["headers"]["user-agent"]}, None) == ()


@pytest.mark.parametrize("file", FILES[:3], ids=lambda file: file.name)
@pytest.mark.slow(0.3)
def test_a_copied_report_with_its_user_agent_alone_is_called_forged(file: Path):
    """But for browsers of which it is not known what they send: WebKit outside Apple's systems."""
    found = Counter[bool]()
    for row in rows(file):
        if row.get("kind") in (None, "normal"):
            agent = row["headers"]["user-agent"]
            is_known = "Chrome/" in agent or "Firefox/" in agent or "Mac OS X" in agent
            found[is_known == bool(fired(signals_of(row), {"user-agent": agent}, "secure"))] += 1
    assert found[False] == 0
    assert found[True] >= 46


def test_every_context_is_read_back():
    for context in (None, *get_args(HeaderContext)):
        facts = RequestFacts(ip="192.0.2.1", user_agent="x", context=context, fetch="- cors ?", connection_tls="t13d")
        assert facts_of(facts.ip, read_headers(archived_headers(facts))) == facts


@pytest.mark.parametrize(
    ("headers", "text", "of_a_script"),
    [
        ({}, None, None),
        (OF_A_SCRIPT, "same-origin cors empty", True),
        ({"sec-fetch-mode": "cors"}, "- cors -", True),
        (OF_A_SCRIPT | {"sec-fetch-dest": "document"}, "same-origin cors document", False),
        (OF_A_SCRIPT | {"sec-fetch-mode": "no-cors"}, "same-origin no-cors empty", False),
        (OF_A_SCRIPT | {"sec-fetch-mode": "x" * 99}, "same-origin ? empty", False),
        ({"sec-fetch-site": "\x00 a"}, "? - -", True),
    ],
)
def test_fetch_metadata_is_kept_in_three_words(headers: dict[str, str], text: str | None, of_a_script: bool | None):
    assert read_fetch_metadata(headers) == text
    if text is not None:
        assert is_of_a_script(text) == of_a_script
