"""An event as a chat message: a title, some facts and a link to the console, in the form of each chat (decisions 16.2).

What may live here: the words for each type of event, and the documented shapes and limits of receivers. Texts of users
stand only where a receiver reads no formatting, or are escaped: nobody who is identified can put a link, a mention or a
heading into a chat.

A message is made of the stored envelope whenever it is sent, so that what was erased from that is in no message. Fields
are asked for as open data: an event that was stored by another version is described as far as it is known.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import msgspec

from svc.kernel.tenants.billing import MICROS_PER_USD

MAX_TITLE: Final = 120
"""Characters."""
MAX_VALUE: Final = 200
"""Characters of the value of a fact; what is longer is cut."""
MAX_FACTS: Final = 12
SIGNALS_NAMED: Final = 8

Tone = Literal["calm", "warning", "alarm"]


class Message(NamedTuple):
    """One message, in plain text: without line breaks, control characters or marks of any formatting."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """(label, value), neither empty."""
    link: str | None
    """Of the console; `None` where it is not known at which address people reach that."""
    created_at: str
    """When it happened, RFC 3339."""
    tone: Tone = "calm"


class _Said(NamedTuple):
    title: str
    facts: Iterable[tuple[str, Any]]
    place: str
    """Fragment of the console's address."""
    tone: Tone = "calm"


Data = dict[str, Any]


def message_of(body: bytes, public_url: str | None) -> Message:
    """Return the chat message for an envelope. `public_url`: the setting, without a slash at its end."""
    envelope: Data = msgspec.json.decode(body)
    event_type, data = envelope["type"], envelope["data"]
    said = _SAID.get(event_type, _unknown)(data)
    title = said.title or event_type
    facts = ((_plain(label, MAX_TITLE), _plain(value, MAX_VALUE)) for label, value in said.facts if value is not None)
    return Message(
        title=_plain(title, MAX_TITLE) + (" (test traffic)" if envelope.get("environment") == "test" else ""),
        facts=tuple(fact for fact in facts if all(fact))[:MAX_FACTS],
        link=None if public_url is None else f"{public_url}/console#/{said.place}",
        created_at=envelope["created_at"],
        tone=said.tone,
    )


def _plain(value: Any, most: int) -> str:
    """Return one line of at most `most` characters, all printable."""
    text = value if isinstance(value, str) else str(value)
    seen = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return seen if len(seen) <= most else seen[: most - 1] + "…"


def _completed(data: Data) -> _Said:
    who = "New visitor" if data.get("visitor_is_new") else "Visitor"
    return _Said(f"{who} identified{_for_review(data)}", _of_event(data), _event(data), _tone(data))


def _suspect(data: Data) -> _Said:
    return _Said(f"Suspicious visitor{_for_review(data)}", _of_event(data), _event(data), _tone(data))


def _for_review(data: Data) -> str:
    """Return the words for an event whose decision has a review open: its opening has no message of its own."""
    decision: Data = data.get("decision") or {}
    return ", for review" if decision.get("action") == "review" else ""


def _event(data: Data) -> str:
    return f"events/{data.get('request_id', '')}"


def _tone(data: Data) -> Tone:
    decision: Data = data.get("decision") or {}
    action = decision.get("action")
    if action == "block" or data.get("suspect_level") == "high":
        return "alarm"
    return "warning" if action in ("review", "challenge") or data.get("suspect_level") == "medium" else "calm"


def _of_event(data: Data) -> Iterator[tuple[str, Any]]:
    score = data.get("suspect_score")
    threshold = f", threshold {data['suspect_threshold']}" if "suspect_threshold" in data else ""
    yield "Score", "not scored" if score is None else f"{score} ({data.get('suspect_level')}{threshold})"
    decision = data.get("decision")
    yield "Decision", None if decision is None else f"{decision.get('action')} by rule: {decision.get('rule')}"
    fired = [signal["signal"] for signal in data.get("signals") or data.get("triggers") or ()]
    more = f" and {len(fired) - SIGNALS_NAMED} more" if len(fired) > SIGNALS_NAMED else ""
    yield "Signals", ", ".join(fired[:SIGNALS_NAMED]) + more
    yield "Visitor", data.get("visitor_id")
    yield "Account", data.get("account_id")
    yield "Action", data.get("action")
    yield "Address", _with(data.get("ip_address"), data.get("country_name") or data.get("country_code"))
    yield "Network", _with(data.get("asn_name"), data.get("anonymity_network"))
    yield "Client", _with(_words(data.get("agent"), data.get("agent_version")), data.get("os"))
    yield "Site", data.get("origin")
    yield "Environment", data.get("environment")
    yield "Tag", data.get("tag")


def _words(*parts: str | None) -> str | None:
    return " ".join(filter(None, parts)) or None


def _with(what: str | None, more: str | None) -> str | None:
    return _words(what, None if more is None else f"({more})")


def _refused(data: Data) -> _Said:
    facts = (
        ("Error", _words(str(data.get("status", "")), data.get("code"))),
        ("Count", data.get("count")),
        ("Reason", data.get("reason")),
        ("Key", data.get("key_id")),
        ("Site", data.get("origin")),
        ("Address", data.get("ip_address")),
        ("Environment", data.get("environment")),
    )
    return _Said("Identifications are refused", facts, "keys", "warning")


def _billing(data: Data) -> _Said:
    accepted = data.get("accepting_traffic", True)
    facts = (
        ("Before", data.get("previous_status")),
        ("Now", data.get("current_status")),
        ("Traffic", "accepted" if accepted else "refused (402)"),
        ("Reason", data.get("blocked_reason")),
    )
    return _Said("The billing status has changed", facts, "billing", "calm" if accepted else "alarm")


def _settled(data: Data) -> _Said:
    facts = (
        ("Day", data.get("date")),
        ("Identifications", _count(data.get("identifications"))),
        ("Identifiable", _count(data.get("identifiable"))),
        ("Not identifiable", _count(data.get("unidentifiable"))),
        ("Free", _count(data.get("free"))),
        ("Charge", _dollars(data.get("amount_micros"))),
        ("Balance", _dollars(data.get("balance_micros"))),
    )
    return _Said("A day was settled", facts, "billing")


def _count(number: int | None) -> str | None:
    return None if number is None else f"{number:,}"


def _dollars(micros: int | None) -> str | None:
    """Return the exact amount, with two decimals or more."""
    if micros is None:
        return None
    whole, rest = divmod(abs(micros), MICROS_PER_USD)
    return f"{'-' if micros < 0 else ''}${whole:,}.{f'{rest:06}'.rstrip('0').ljust(2, '0')}"


def _test(data: Data) -> _Said:
    return _Said("This is a test delivery", (("Endpoint", data.get("endpoint_id")),), "webhooks")


def _review(title: str, tone: Tone, data: Data) -> _Said:
    return _Said(title, _of_review(data), _event(data), tone)


def _of_review(data: Data) -> Iterator[tuple[str, Any]]:
    yield "Rule", data.get("rule")
    yield "Label", _with(data.get("label"), data.get("label_reason"))
    yield "Note", data.get("note")
    score = data.get("suspect_score")
    yield "Score", None if score is None else f"{score} ({data.get('suspect_level')})"
    yield "Visitor", data.get("visitor_id")
    yield "Account", data.get("account_id")
    yield "Assignee", data.get("assignee")
    yield "Environment", data.get("environment")
    yield "Review", data.get("id")


def _unknown(data: Data) -> _Said:
    return _Said("", _simple(data), "webhooks")


def _simple(data: Data) -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, str | int | float):
            yield name.replace("_", " ").capitalize(), value


_SAID: Final[dict[str, Callable[[Data], _Said]]] = {
    "identification.completed": _completed,
    "visitor.suspect": _suspect,
    "identification.refused": _refused,
    "billing.status_changed": _billing,
    "usage.daily_settled": _settled,
    "webhook.test": _test,
    "review.opened": partial(_review, "A review was opened", "warning"),
    "review.closed": partial(_review, "A review was closed", "calm"),
}
DESCRIBED: Final = frozenset(_SAID)
"""Types of events that have words of their own; any other is shown as its fields."""


ChatFormat = Literal["slack", "discord", "teams"]
OPEN = "Open in the console"
COLORS: Final[dict[Tone, int]] = {"calm": 0x2E90FA, "warning": 0xF79009, "alarm": 0xD92D20}
CARD_COLORS: Final[dict[Tone, str]] = {"calm": "Default", "warning": "Warning", "alarm": "Attention"}


def chat_body(chat: ChatFormat, envelope: bytes, public_url: str | None) -> bytes:
    """Return the request body that sends an envelope to a chat. `public_url`: the setting."""
    return msgspec.json.encode(_SHAPES[chat](message_of(envelope, public_url)))


def _slack(message: Message) -> dict[str, Any]:
    """Return a message for incoming webhooks: `text` for notifications, in which `&`, `<` and `>` are escaped, and
    blocks. Texts of `rich_text` need no escaping: formats and links are elements of their own.
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
    return {"text": html.escape(message.title, quote=False), "blocks": blocks}


_MARKS = re.compile(r"[\\*_~`|<>\[\]()#:@-]")


def _discord(message: Message) -> dict[str, Any]:
    """Return a message for Execute Webhook: one embed of at most 6,000 characters that mentions nobody. Discord reads a
    backslash before any mark as that mark; an escaped colon begins no link.
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
    """Return a message for a workflow that begins "when a Teams webhook request is received": one Adaptive Card of at
    most 28 KB. Text runs are read without Markdown, unlike text blocks and fact sets.
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
