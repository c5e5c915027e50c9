"""AI crawlers and assistants are found by name, in the three forms in which programs name themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from svc.domain.useragent.crawlers import find_program

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


def test_every_ai_agent_with_a_distinct_name_is_detected(shared_data: Path):
    listed: list[dict[str, Any]] = json.loads((shared_data / "useragents" / "ai-agents.json").read_bytes())["agents"]
    sent = [
        agent["token"]
        for agent in listed
        if agent["in_user_agent"] and agent["purpose"] in OF_AI and not agent.get("generic_word")
    ]
    missed = {token for token in sent for text in forms(token) if kind_of(text) != "ai_bot"}
    assert len(sent) > 120
    assert missed == set(NOT_HERE)


def kind_of(text: str) -> str | None:
    found = find_program(text)
    return None if found is None else found.crawler
