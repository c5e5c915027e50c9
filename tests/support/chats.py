"""Chats that take webhooks, in memory: each checks what it is sent as its documentation says, responds as it does, and
keeps what people would read.

Sources: Slack, "Sending messages using incoming webhooks", "Rich text block" and "Formatting text"; Discord, "Execute
Webhook", "Embed Limits" and "Rate Limits"; Microsoft, "Create incoming webhooks with Workflows" and the Adaptive Cards
schema 1.4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from svc.features.webhooks.records import Attempted
from tests.support.receivers import Post

HTTP_URL = re.compile(r"https?://[^\s<>|]+")


class ShownMessage(NamedTuple):
    """What people see."""

    lines: list[str]
    """The title, and then each fact."""
    links: list[str]


class FakeChat:
    """A script for `Receivers`: `401` for what is signed, `refused` for what it would not take."""

    def __init__(self, read: Callable[[Any, int], ShownMessage], well: Attempted, refused: Attempted) -> None:
        self._read, self._well, self._refused = read, well, refused
        self.shown: list[ShownMessage] = []
        self.faults: list[str] = []
        self.answers: list[Attempted] = []
        """What it says to the next ones, before it looks at them."""

    def __call__(self, post: Post) -> tuple[float, Attempted]:
        if self.answers:
            return 0, self.answers.pop(0)
        try:
            _check(set(post.headers) == {"Content-Type", "User-Agent"}, f"headers {sorted(post.headers)}")
            _check(post.headers["Content-Type"] == "application/json", "no JSON")
            self.shown.append(self._read(json.loads(post.body), len(post.body)))
        except (_FaultError, KeyError, TypeError, ValueError) as fault:
            self.faults.append(repr(fault))
            return 0, self._refused
        return 0, self._well


class _FaultError(Exception):
    """What a chat would not take."""


def _check(holds: object, fault: str) -> None:
    if not holds:
        raise _FaultError(fault)


def _only(value: dict[str, Any], *names: str) -> None:
    _check(set(value) <= set(names), f"unknown fields: {sorted(set(value) - set(names))}")


def _text(value: Any, most: int, what: str) -> str:
    """Most characters are counted as JavaScript counts them, which is the strictest."""
    _check(isinstance(value, str) and value, f"{what} is empty")
    _check(len(value.encode("utf-16-le")) // 2 <= most, f"{what} is too long: {len(value)}")
    return value


def _url(value: Any) -> str:
    _check(HTTP_URL.fullmatch(_text(value, 3000, "a URL")), f"no URL: {value}")
    return value


# Slack: 200 with the text `ok`; 400 `invalid_payload` or `invalid_blocks`, 404 `no_service`, 410 `channel_is_archived`


def slack() -> FakeChat:
    return FakeChat(_read_slack, Attempted(200, None, 20, None), Attempted(400, "http_status", 20, None))


def _read_slack(sent: dict[str, Any], _: int) -> ShownMessage:
    _only(sent, "text", "blocks")
    summary = _text(sent["text"], 4000, "text")
    _check(not re.search(r"[<>]|&(?!(amp|lt|gt);)", summary), "the text has control characters")
    _check(0 < len(sent["blocks"]) <= 50, "blocks")
    lines: list[str] = []
    links: list[str] = []
    for block in sent["blocks"]:
        if block["type"] == "header":
            _only(block["text"], "type", "text", "emoji")
            _check(block["text"]["type"] == "plain_text", "headers are plain text")
            lines.append(_text(block["text"]["text"], 150, "a header"))
            continue
        _check(block["type"] == "rich_text", f"a block of type {block['type']}")
        for section in block["elements"]:
            _check(section["type"] == "rich_text_section", f"a section of type {section['type']}")
            lines += _slack_lines(section["elements"], links)
    return ShownMessage(lines, links)


def _slack_lines(elements: list[dict[str, Any]], links: list[str]) -> list[str]:
    shown = ""
    for element in elements:
        if element["type"] == "link":
            links.append(_url(element["url"]))
        else:
            _only(element, "type", "text", "style")
            _check(element["type"] == "text", f"an element of type {element['type']}")
            shown += _text(element["text"], 3000, "a text")
    return shown.splitlines()


# Discord: 204 without `?wait=true`; 400 with code 50035, 404 code 10015, 429 with Retry-After


def discord() -> FakeChat:
    return FakeChat(_read_discord, Attempted(204, None, 20, None), Attempted(400, "http_status", 20, None))


ESCAPED = re.compile(r"\\([^0-9A-Za-z\s])")
ACTIVE = re.compile(r"[*_~`|<>\[\]]|https?://|@(everyone|here)")


def _read_discord(sent: dict[str, Any], _: int) -> ShownMessage:
    _only(sent, "embeds", "allowed_mentions")
    _check(sent["allowed_mentions"] == {"parse": []}, "somebody may be mentioned")
    (embed,) = sent["embeds"]
    _only(embed, "title", "description", "color", "timestamp", "fields")
    _check(0 <= embed["color"] <= 0xFFFFFF, "color")
    _check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", embed["timestamp"]), "timestamp")
    _check(len(embed["fields"]) <= 25, "fields")
    parts = [_text(embed["title"], 256, "a title"), _text(embed.get("description", "-"), 4096, "a description")]
    lines, links = [_discord_shown(parts[0])], []
    for field in embed["fields"]:
        _only(field, "name", "value", "inline")
        name, value = _text(field["name"], 256, "a name"), _text(field["value"], 1024, "a value")
        parts += [name, value]
        lines.append(f"{name}: {_discord_shown(value)}")
    _check(sum(len(part.encode("utf-16-le")) // 2 for part in parts) <= 6000, "6,000 characters")
    if "description" in embed:
        link = re.fullmatch(r"\[[^\]]+\]\(([^()\s]+)\)", embed["description"])
        _check(link, "the description is no link")
        links = [_url(link and link[1])]
    return ShownMessage(lines, links)


def _discord_shown(text: str) -> str:
    """Text without its escapes, in which no formatting is left."""
    found = ACTIVE.search(ESCAPED.sub("", text))
    _check(found is None, f"formatting: {text}")
    return ESCAPED.sub(r"\1", text)


# Teams: a workflow responds 202; 400 for what it cannot read, 413 beyond 28 KB


def teams() -> FakeChat:
    return FakeChat(_read_teams, Attempted(202, None, 20, None), Attempted(400, "http_status", 20, None))


def _read_teams(sent: dict[str, Any], size: int) -> ShownMessage:
    _check(size <= 28 * 1024, f"{size} bytes")
    _only(sent, "type", "attachments")
    _check(sent["type"] == "message", "type")
    (attachment,) = sent["attachments"]
    _check(attachment["contentType"] == "application/vnd.microsoft.card.adaptive", "content type")
    card = attachment["content"]
    _only(card, "$schema", "type", "version", "body", "actions")
    _check((card["type"], card["version"]) == ("AdaptiveCard", "1.4"), "card")
    lines: list[str] = []
    for element in card["body"]:
        _only(element, "type", "inlines", "spacing")
        _check(element["type"] == "RichTextBlock", f"{element['type']} is read as Markdown")
        _check(element.get("spacing", "Default") in ("Default", "Small", "None"), "spacing")
        lines.append("".join(_teams_run(run) for run in element["inlines"]))
    for action in card.get("actions", ()):
        _only(action, "type", "title", "url")
        _check(action["type"] == "Action.OpenUrl" and action["title"], "action")
    return ShownMessage(lines, [_url(action["url"]) for action in card.get("actions", ())])


def _teams_run(run: dict[str, Any]) -> str:
    _only(run, "type", "text", "size", "weight", "color")
    _check(run["type"] == "TextRun", "run")
    _check(run.get("color", "Default") in ("Default", "Warning", "Attention"), "color")
    return _text(run["text"], 3000, "a run")


CHATS: dict[str, Callable[[], FakeChat]] = {"slack": slack, "discord": discord, "teams": teams}
