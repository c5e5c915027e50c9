"""Requests in the log as people read them: one aligned line each, colored on a terminal."""

from __future__ import annotations

from typing import Any

import structlog

RESET, DIM, RED, GREEN, YELLOW, CYAN = "\x1b[0m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"
LEVEL_COLORS = {"low": GREEN, "medium": YELLOW, "high": RED}
LONGEST_PATH = 120
METHOD_WIDTH, PATH_WIDTH = 6, 28


class RequestLines:
    """A structlog processor: renders the lines of requests that have a `path`, and leaves all others to `others`.

    `12:03:55  POST   /api/v1/identify  200  4.1 ms  visitor 0qpp... new  score 12 low  org_... key_... 019b...`
    """

    def __init__(self, others: structlog.dev.ConsoleRenderer, *, colors: bool) -> None:
        self._others = others
        self._colors = colors

    def __call__(self, logger: Any, name: str, fields: structlog.typing.EventDict) -> str:
        """The line, without its end."""
        if "path" not in fields or fields.get("event") not in ("request", "client closed request"):
            return self._others(logger, name, fields)
        parts = [
            self._in(DIM, str(fields["timestamp"])[11:19]),
            f"{fields['method']:<{METHOD_WIDTH}} {_printable(fields['path']):<{PATH_WIDTH}}",
            self._status(fields.get("status")),
            f"{fields['duration_ms']:>7} ms",
            *self._verdict(fields),
            *self._refusal(fields),
            self._in(
                DIM, " ".join(str(fields[name]) for name in ("organization", "key_id", "request_id") if name in fields)
            ),
        ]
        return "  ".join(part for part in parts if part)

    def _status(self, status: int | None) -> str:
        if status is None:
            return self._in(YELLOW, "gone")
        return self._in(
            GREEN if status < 300 else CYAN if status < 400 else YELLOW if status < 500 else RED, str(status)
        )

    def _verdict(self, fields: structlog.typing.EventDict) -> list[str]:
        if "visitor_id" not in fields:
            return []
        known = "new" if fields["visitor_is_new"] else f"{fields['visitor_confidence']} %"
        if not fields["identifiable"]:
            known = "not identifiable"
        level = fields["suspect_level"]
        score = f"score {fields['suspect_score']} {level}" if level in LEVEL_COLORS else "no score"
        return [f"visitor {fields['visitor_id']} {known}", self._in(LEVEL_COLORS.get(level, DIM), score)]

    def _refusal(self, fields: structlog.typing.EventDict) -> list[str]:
        why = [str(fields[name]) for name in ("code", "reason") if name in fields]
        why += fields.get("fields", [])
        return [self._in(YELLOW, _printable(": ".join(why)))] if why else []

    def _in(self, color: str, text: str) -> str:
        return f"{color}{text}{RESET}" if self._colors and text else text


def _printable(text: str) -> str:
    """Without control characters, which could move the cursor, and not longer than a line."""
    shown = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return shown if len(shown) <= LONGEST_PATH else shown[: LONGEST_PATH - 3] + "..."
