"""The lines of requests that people read: what is in them, where, and that nothing in them moves the cursor."""

from __future__ import annotations

import io
from typing import Any

import pytest
import structlog

from svc.command.logs import LONGEST_PATH, RequestLines
from svc.command.output import has_colors

REQUEST = {
    "event": "request",
    "timestamp": "2026-01-05T10:11:12.345678Z",
    "level": "info",
    "method": "POST",
    "path": "/api/v1/identify",
    "status": 200,
    "duration_ms": 4.1,
    "organization": "org_1",
    "key_id": "key_1",
    "request_id": "019b",
}
VERDICT = {
    "visitor_id": "0qppzPLvL54VURDkQrfS",
    "visitor_is_new": False,
    "visitor_confidence": 97,
    "identifiable": True,
    "suspect_score": 62,
    "suspect_level": "medium",
}


def rendered(*, colors: bool = False, **fields: Any) -> str:
    lines = RequestLines(structlog.dev.ConsoleRenderer(colors=False), colors=colors)
    return lines(None, "info", {**REQUEST, **fields})


def words(**fields: Any) -> list[str]:
    return rendered(**fields).split()


def test_an_identification_is_logged_with_its_visitor_and_score():
    assert words(**VERDICT) == [
        "10:11:12",
        "POST",
        "/api/v1/identify",
        "200",
        "4.1",
        "ms",
        "visitor",
        "0qppzPLvL54VURDkQrfS",
        "97",
        "%",
        "score",
        "62",
        "medium",
        "org_1",
        "key_1",
        "019b",
    ]
    assert "new" in words(**VERDICT | {"visitor_is_new": True})
    assert "not identifiable" in rendered(**VERDICT | {"identifiable": False})
    assert "no score" in rendered(**VERDICT | {"suspect_level": None})


def test_a_refusal_is_logged_with_its_code_its_reason_and_the_fields():
    assert "unauthorized: the origin is not in the list" in rendered(
        status=401, code="unauthorized", reason="the origin is not in the list"
    )
    assert "validation_error: signals: required" in rendered(
        status=422, code="validation_error", fields=["signals: required"]
    )


def test_a_client_disconnect_is_logged_without_a_status():
    line = dict(REQUEST, event="client closed request")
    del line["status"]
    text = RequestLines(structlog.dev.ConsoleRenderer(colors=False), colors=False)(None, "info", line)
    assert text.split()[3] == "gone"


@pytest.mark.parametrize("path", ["/\x1b[2J", "/\u202egnp", "/" + "x" * 5000])
def test_no_path_moves_the_cursor_or_fills_the_screen(path: str):
    text = rendered(path=path)
    assert not set(text) & {"\x1b", "\u202e"}
    assert len(text) < LONGEST_PATH + 120


def test_words_are_colored_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    assert "\x1b[32m200\x1b[0m" in rendered(colors=True)
    assert "\x1b[31m500\x1b[0m" in rendered(colors=True, status=500)
    assert "\x1b" not in rendered()
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert has_colors(terminal)
    monkeypatch.setenv("NO_COLOR", "")
    assert has_colors(terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colors(terminal)
    assert not has_colors(io.StringIO())


def test_every_other_line_is_not_changed():
    others = structlog.dev.ConsoleRenderer(colors=False)
    lines = RequestLines(others, colors=False)
    for fields in ({"event": "serving", "path": "/x"}, {"event": "request", "status": 200}):
        assert lines(None, "info", dict(fields)) == others(None, "info", dict(fields))
