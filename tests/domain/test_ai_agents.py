"""AI crawlers and assistants are found by name, in the three forms in which programs name themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from svc.identify.useragent.crawlers import find_program

OF_AI = {"training", "search", "assistant", "agent", "coding", "data"}
NOT_HERE = {
    "Applebot": "a search crawler: docs/internals/useragents.md",
    "AddSearchBot": "a search crawler",
    "Bravebot": "a search crawler",
    "PetalBot": "a search crawler",
    "Linguee Bot": "the crawler of a dictionary",
    "Awario": "of brands that watch what is said of them",
    "GoogleOther": "of all of Google's products",
    "GoogleOther-Image": "of all of Google's products",
    "GoogleOther-Video": "of all of Google's products",
}


def forms(token: str) -> tuple[str, ...]:
    return (
        f"{token}/1.0 (+https://bot.example)",
        f"Mozilla/5.0 (compatible; {token}/1.0; +https://bot.example)",
        f"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; {token}/1.0; +https://bot.example) Chrome",
    )


NAMED_OTHERWISE = {
    "Brightbot 1.0": "Brightbot",  # the number is its version
}
"""Tokens that differ from the name shown in more than the case of letters."""


def read_agents(shared_data: Path) -> list[dict[str, Any]]:
    return json.loads((shared_data / "useragents" / "ai-agents.json").read_bytes())["agents"]


def test_every_token_that_is_sent_is_shown_as_the_name_of_the_program(shared_data: Path):
    sent: list[str] = [agent["token"] for agent in read_agents(shared_data) if agent["in_user_agent"]]
    shown = {(token, name_of(text)) for token in sent for text in forms(token)}
    assert len(sent) > 150
    assert {
        (token, name) for token, name in shown if NAMED_OTHERWISE.get(token, token).lower() != name.lower()
    } == set()


def test_every_ai_agent_with_a_distinct_name_is_detected(shared_data: Path):
    listed = read_agents(shared_data)
    sent = [
        agent["token"]
        for agent in listed
        if agent["in_user_agent"] and agent["purpose"] in OF_AI and not agent.get("generic_word")
    ]
    missed = {token for token in sent for text in forms(token) if kind_of(text) != "ai_bot"}
    assert len(sent) > 120
    assert missed == set(NOT_HERE)


def name_of(text: str) -> str:
    found = find_program(text)
    return "" if found is None else found.name


def kind_of(text: str) -> str | None:
    found = find_program(text)
    return None if found is None else found.crawler
