"""The form in which each chat takes a message (decisions 16.2).

What may live here: the documented shapes and limits of receivers. Texts of users stand only where a receiver reads no
formatting, or are escaped; so nobody who is identified can put a link, a mention or a heading into a chat.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from svc.features.webhooks.content.chat import Message, Tone, message_of

ChatFormat = Literal["slack", "discord", "teams"]
OPEN = "Open in the console"
COLORS: Final[dict[Tone, int]] = {"calm": 0x2E90FA, "warning": 0xF79009, "alarm": 0xD92D20}
CARD_COLORS: Final[dict[Tone, str]] = {"calm": "Default", "warning": "Warning", "alarm": "Attention"}


def chat_body(chat: ChatFormat, envelope: bytes, public_url: str | None) -> bytes:
    """Return the request body that sends an envelope to a chat. `public_url`: the setting."""
    return msgspec.json.encode(_SHAPES[chat](message_of(envelope, public_url)))


def _slack(message: Message) -> dict[str, Any]:
    """Incoming webhooks: `text` for notifications, in which `&`, `<` and `>` are escaped, and blocks. The texts of
    `rich_text` have no marks: formats and links are elements of their own.
    """
    line: list[dict[str, Any]] = []
    for label, value in message.facts:
        line += [
            {"type": "text", "text": f"{label}: ", "style": {"bold": True}},
            {"type": "text", "text": f"{value}\n"},
        ]
    if message.link is not None:
        line.append({"type": "link", "url": message.link, "text": OPEN})
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": message.title, "emoji": False}}
    ]
    if line:
        blocks.append({"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": line}]})
    return {"text": _slack_escaped(message.title), "blocks": blocks}


def _slack_escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_MARKS = re.compile(r"[\\*_~`|<>\[\]()#:@-]")


def _discord(message: Message) -> dict[str, Any]:
    """Execute Webhook: one embed of at most 6,000 characters, and nobody is mentioned. Discord takes a backslash before
    any mark as that mark; a colon that has one begins no link.
    """
    embed: dict[str, Any] = {
        "title": _discord_escaped(message.title),
        "color": COLORS[message.tone],
        "timestamp": message.created_at,
        "fields": [
            {"name": label, "value": _discord_escaped(value), "inline": len(value) <= 40}
            for label, value in message.facts
        ],
    }
    if message.link is not None:
        embed["description"] = f"[{OPEN}]({message.link})"
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def _discord_escaped(text: str) -> str:
    return _MARKS.sub(r"\\\g<0>", text)


def _teams(message: Message) -> dict[str, Any]:
    """A workflow that begins "when a Teams webhook request is received": one Adaptive Card of at most 28 KB. Text runs
    are read without Markdown, which text blocks and fact sets are not.
    """
    title = {"type": "TextRun", "text": message.title, "size": "Large", "weight": "Bolder"}
    body = [{"type": "RichTextBlock", "inlines": [{**title, "color": CARD_COLORS[message.tone]}]}]
    for label, value in message.facts:
        runs = [{"type": "TextRun", "text": f"{label}: ", "weight": "Bolder"}, {"type": "TextRun", "text": value}]
        body.append({"type": "RichTextBlock", "spacing": "Small", "inlines": runs})
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    if message.link is not None:
        card["actions"] = [{"type": "Action.OpenUrl", "title": OPEN, "url": message.link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


_SHAPES: Final[dict[ChatFormat, Callable[[Message], dict[str, Any]]]] = {
    "slack": _slack,
    "discord": _discord,
    "teams": _teams,
}
