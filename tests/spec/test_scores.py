"""Interface 2.2, 2.3 and decisions 3.7, 3.8: scores, levels and triggers of the default weights."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.answers import DRIVEN, HEADLESS, PROGRAM, visit
from tests.support.live import Live, report

TRIGGERS_OF = [
    ("an ordinary visitor", {}, {}, [], 0, "low"),
    ("a program", {}, PROGRAM, ["bot_user_agent"], 20, "low"),
    ("headless", {}, HEADLESS, ["headless"], 30, "medium"),
    ("driven", DRIVEN, {}, ["automation"], 40, "medium"),
    ("a driven program", DRIVEN, PROGRAM, ["automation", "bot_user_agent"], 60, "high"),
    ("driven and headless", DRIVEN, HEADLESS, ["automation", "headless"], 70, "high"),
]


@pytest.mark.parametrize(
    ("changes", "headers", "signals", "score", "level"),
    [row[1:] for row in TRIGGERS_OF],
    ids=[row[0] for row in TRIGGERS_OF],
)
async def test_the_score_is_the_sum_of_its_triggers_and_the_level_follows(
    live: Live, changes: dict[str, Any], headers: dict[str, str], signals: list[str], score: int, level: str
):
    """Interface 2.2, 9.6; decisions 3.7 with the default threshold of 30: `low` below 30, `high` from 60."""
    _, secret = live.issue()
    flat = {key: value for key, value in report().items() if key != "userAgent"} if headers else report()
    answer = (await visit(live, secret, flat | changes, headers=headers)).json()
    triggers = answer.get("triggers", [])
    assert [trigger["signal"] for trigger in triggers] == signals
    assert answer["suspect_score"] == sum(trigger["weight"] for trigger in triggers) == score
    assert answer["suspect_level"] == level
    assert ("triggers" in answer) is bool(signals)


async def test_a_trigger_has_a_signal_a_group_a_weight_and_a_confidence(live: Live):
    """Interface 2.2."""
    _, secret = live.issue()
    answer = (await visit(live, secret, report(webdriver=True))).json()
    (trigger,) = answer["triggers"]
    assert set(trigger) == {"signal", "group", "weight", "confidence"}
    assert (trigger["signal"], trigger["group"], trigger["weight"]) == ("automation", "bot", 40)
    assert trigger["confidence"] in ("low", "medium", "high")


HOSTILE: dict[str, Any] = {
    **report(),
    "webdriver": True,
    "platform": "Linux x86_64",
    "plugins": [],
    "outerWidth": 0,
    "outerHeight": 0,
    "timezone": "Asia/Tokyo",
    "incognito": True,
    "developer_tools": True,
    "webgl": {"vendor": "Google Inc. (Google)", "renderer": "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device))"},
}


async def test_triggers_stand_heaviest_first_and_ties_by_name(live: Live):
    """Interface 2.2, decisions 3.8; and none of them weighs nothing."""
    _, secret = live.issue()
    answer = (await visit(live, secret, HOSTILE, headers={"x-forwarded-for": "185.220.101.1"})).json()
    triggers = answer["triggers"]
    assert len(triggers) > 4
    order = [(-trigger["weight"], trigger["signal"]) for trigger in triggers]
    assert order == sorted(order)
    assert len({trigger["signal"] for trigger in triggers}) == len(triggers)
    assert all(trigger["weight"] > 0 for trigger in triggers)
    assert answer["suspect_score"] == sum(trigger["weight"] for trigger in triggers)
    assert answer["suspect_level"] == "high"


async def test_a_signal_that_weighs_nothing_is_no_trigger(live: Live):
    """Decisions 3.8: a search crawler is noticed, weighs 0, and is only the kind of the visitor."""
    _, secret = live.issue()
    crawler = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
    headers = {"user-agent": crawler, "x-forwarded-for": "66.249.66.1"}
    answer = (await visit(live, secret, {"timezone": "UTC"}, headers=headers)).json()
    assert "search_crawler" not in [trigger["signal"] for trigger in answer.get("triggers", [])]
    ((_, event),) = live.events()
    assert event.visitor_kind == "search_crawler"


async def test_an_event_keeps_its_triggers_by_group(live: Live):
    """Interface 2.3, decisions 3.8: weights added, the highest confidence, heaviest first; the same sum."""
    _, secret = live.issue()
    answer = (await visit(live, secret, HOSTILE, headers={"x-forwarded-for": "185.220.101.1"})).json()
    ranks = ["low", "medium", "high"]
    groups: dict[str, tuple[int, int]] = {}
    for trigger in answer["triggers"]:
        weight, rank = groups.get(trigger["group"], (0, 0))
        groups[trigger["group"]] = weight + trigger["weight"], max(rank, ranks.index(trigger["confidence"]))
    expected = sorted((-weight, group, ranks[rank]) for group, (weight, rank) in groups.items())
    ((_, event),) = live.events()
    assert [(-group.weight, group.signal, group.confidence) for group in event.triggers] == expected
    assert event.suspect_score == answer["suspect_score"] == sum(group.weight for group in event.triggers)
    assert event.suspect_level == "high"
    assert len(event.triggers) < len(answer["triggers"])


async def test_the_kind_of_visitor_follows_from_what_fired(live: Live):
    """Interface 2.3: `human`, `ai_bot`, `automation`."""
    _, secret = live.issue()
    gptbot = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"
    await visit(live, secret)
    await visit(live, secret, report(webdriver=True))
    await visit(live, secret, {"timezone": "UTC"}, headers=PROGRAM)
    await visit(live, secret, {"timezone": "UTC"}, headers={"user-agent": gptbot})
    kinds = [event.visitor_kind for _, event in live.events()]
    assert kinds == ["human", "automation", "automation", "ai_bot"]
