"""Interface 2.2, 2.3, 2.11 and decisions 3.7, 3.8, 6: scores, levels and triggers, and whose weights make them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from svc.features.weights.jobs import restore_weights, save_weights
from svc.identify.scoring.score import StoredWeights, WeightsChange
from svc.identify.scoring.signals import default_weights
from svc.identify.tables import WEIGHTS_SNAPSHOTS
from svc.kernel.values.fields import Platform
from svc.kernel.values.refusals import Refusal
from tests.spec.responses import BROWSER, DRIVEN, HEADLESS, PROGRAM, forward, visit
from tests.support.live import ORIGIN, USER_AGENT, Live, report

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
async def test_the_score_is_the_sum_of_its_triggers_and_determines_the_level(
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


async def test_a_trigger_has_a_signal_a_group_a_weight_and_a_confidence(live: Live, key: str):
    """Interface 2.2."""
    answer = (await visit(live, key, report(webdriver=True))).json()
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


async def test_triggers_are_sorted_heaviest_first_and_ties_by_name(live: Live, key: str):
    """Interface 2.2, decisions 3.8; and none of them weighs nothing."""
    answer = (await visit(live, key, HOSTILE, headers={"x-forwarded-for": "185.220.101.1"})).json()
    triggers = answer["triggers"]
    assert len(triggers) > 4
    order = [(-trigger["weight"], trigger["signal"]) for trigger in triggers]
    assert order == sorted(order)
    assert len({trigger["signal"] for trigger in triggers}) == len(triggers)
    assert all(trigger["weight"] > 0 for trigger in triggers)
    assert answer["suspect_score"] == sum(trigger["weight"] for trigger in triggers)
    assert answer["suspect_level"] == "high"


async def test_a_signal_without_weight_is_not_a_trigger(live: Live, key: str):
    """Decisions 3.8: a search crawler is noticed, weighs 0, and is only the kind of the visitor."""
    crawler = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
    headers = {"user-agent": crawler, "x-forwarded-for": "66.249.66.1"}
    answer = (await visit(live, key, {"timezone": "UTC"}, headers=headers)).json()
    assert "search_crawler" not in [trigger["signal"] for trigger in answer.get("triggers", [])]
    ((_, event),) = live.events()
    assert event.visitor_kind == "search_crawler"


async def test_an_event_keeps_its_triggers_by_group(live: Live, key: str):
    """Interface 2.3, decisions 3.8: weights added, the highest confidence, heaviest first; the same sum."""
    answer = (await visit(live, key, HOSTILE, headers={"x-forwarded-for": "185.220.101.1"})).json()
    ranks = ["low", "medium", "high"]
    groups: dict[str, tuple[int, int]] = {}
    for trigger in answer["triggers"]:
        weight, rank = groups.get(trigger["group"], (0, 0))
        groups[trigger["group"]] = weight + trigger["weight"], max(rank, ranks.index(trigger["confidence"]))
    expected = sorted((-weight, group, ranks[rank]) for group, (weight, rank) in groups.items())
    ((_, event),) = live.events()
    assert [(-group.weight, group.signal, group.confidence) for group in event.verdict.triggers] == expected
    assert (
        event.verdict.suspect_score == answer["suspect_score"] == sum(group.weight for group in event.verdict.triggers)
    )
    assert event.verdict.suspect_level == "high"
    assert len(event.verdict.triggers) < len(answer["triggers"])


async def test_the_kind_of_visitor_follows_from_the_fired_signals(live: Live, key: str):
    """Interface 2.3: `human`, `ai_bot`, `automation`."""
    gptbot = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"
    await visit(live, key)
    await visit(live, key, report(webdriver=True))
    await visit(live, key, {"timezone": "UTC"}, headers=PROGRAM)
    await visit(live, key, {"timezone": "UTC"}, headers={"user-agent": gptbot})
    kinds = [event.visitor_kind for _, event in live.events()]
    assert kinds == ["human", "automation", "automation", "ai_bot"]


# The weights in force


def save(
    live: Live, key_id: str | None = None, platform: Platform = "web", **change: Any
) -> StoredWeights | Refusal | Exception:
    job = partial(
        save_weights,
        number=live.organization.number,
        key_id=key_id,
        platform=platform,
        change=WeightsChange(**change),
        now_ms=live.clock.now_ms,
    )
    return live.found.store.write_now([job])[0]


def restore(live: Live, key_id: str | None = None) -> None:
    job = partial(restore_weights, number=live.organization.number, key_id=key_id, platform="web")
    assert live.found.store.write_now([job]) == [None]


async def scored(live: Live, secret: str) -> tuple[int, str, str]:
    """Score and level of a driven visitor, and the scope that its document names."""
    answer = (await visit(live, secret, report(webdriver=True))).json()
    document = live.contents()["documents"][-1][1]
    return answer["suspect_score"], answer["suspect_level"], document.weights_scope


async def test_key_weights_take_precedence_over_organization_weights_and_defaults(live: Live):
    """Decisions 6.2: each from the next request on, and back again when it is restored."""
    key, secret = live.issue()
    _, other = live.issue()
    assert await scored(live, secret) == (40, "medium", "default")
    save(live, weights={"automation": 70})
    assert await scored(live, secret) == (70, "high", "organization")
    save(live, key.id, weights={"automation": 7}, threshold=4)
    assert await scored(live, secret) == (7, "medium", "key")
    assert await scored(live, other) == (70, "high", "organization")
    restore(live, key.id)
    assert await scored(live, secret) == (70, "high", "organization")
    restore(live)
    assert await scored(live, secret) == (40, "medium", "default")


async def test_a_configuration_replaces_its_parent_as_a_whole(live: Live):
    """Decisions 6.2: what changes later in the organization's does not reach a key that has its own."""
    key, secret = live.issue()
    save(live, key.id, threshold=100)
    save(live, weights={"automation": 99})
    assert await scored(live, secret) == (40, "low", "key")


async def test_each_platform_has_its_own_weights(live: Live, key: str):
    save(live, platform="ios", weights={"automation": 1})
    assert await scored(live, key) == (40, "medium", "default")


async def test_weights_belong_to_one_organization(live: Live):
    key, _ = live.issue()
    _, elsewhere = live.issue(organization=live.new_organization().number)
    save(live, weights={"automation": 70})
    assert (await visit(live, elsewhere, report(webdriver=True))).json()["suspect_score"] == 40
    foreign, _ = live.issue(organization=live.new_organization().number)
    proxy, _ = live.issue("proxy")
    for key_id in (foreign.id, proxy.id, "key_nobody", ""):
        assert save(live, key_id, threshold=5) == Refusal("not_found")
    assert isinstance(save(live, key.id, threshold=5), StoredWeights)


async def test_a_forwarded_public_key_uses_its_own_weights(live: Live, proxy: str):
    """Decisions 2.9; a proxy key alone has the organization's."""
    key, public = live.issue()
    save(live, weights={"automation": 50})
    save(live, key.id, weights={"automation": 60})
    details = {"x-svc-visitor-ip": BROWSER["x-forwarded-for"], "x-svc-visitor-user-agent": USER_AGENT}
    driven = report(webdriver=True)
    alone = await forward(live, proxy, details, signals=driven)
    assert alone.json()["suspect_score"] == 50
    named = {"x-svc-public-key": public, "x-svc-visitor-origin": ORIGIN}
    assert (await forward(live, proxy, details | named, signals=driven)).json()["suspect_score"] == 60


async def test_a_weight_of_zero_silences_a_signal(live: Live, key: str):
    """Decisions 3.8."""
    save(live, weights={"automation": 0})
    answer = (await visit(live, key, report(webdriver=True))).json()
    assert (answer["suspect_score"], answer["suspect_level"]) == (0, "low")
    assert "triggers" not in answer


async def test_the_mode_decides_which_signals_of_a_family_count(live: Live, key: str):
    """Signals.md 2: visitors of eight countries behind one address, by method and by confidence."""
    zones = ["Asia/Tokyo", "Africa/Lagos", "Europe/Paris", "America/Lima"] * 2
    for device, zone in enumerate(zones):
        answer = (await visit(live, key, report(device, timezone=zone))).json()
    assert [trigger["signal"] for trigger in answer["triggers"]] == ["residential_proxy_behavior"]
    save(live, residential_proxy_mode="confidence")
    answer = (await visit(live, key, report(0, timezone=zones[0]))).json()
    assert [(trigger["signal"], trigger["weight"]) for trigger in answer["triggers"]] == [("residential_proxy_low", 5)]


async def test_a_save_based_on_an_older_revision_is_refused_and_changes_nothing(live: Live, key: str):
    """Decisions 6.3."""
    first = save(live, threshold=41, revision=0)
    assert isinstance(first, StoredWeights)
    assert (first.revision, first.updated_at_ms) == (1, live.clock.now_ms)
    second = save(live, weights={"tor": 5}, revision=1)
    assert isinstance(second, StoredWeights)
    assert (second.revision, second.threshold) == (2, 41)
    assert save(live, threshold=1, revision=1) == Refusal("revision_conflict")
    assert await scored(live, key) == (40, "low", "organization")
    restore(live)
    third = save(live, threshold=41, revision=0)
    assert isinstance(third, StoredWeights)
    assert third.revision == 1, "nothing was stored"


async def test_a_document_keeps_the_weights_that_scored_it(live: Live, key: str):
    """Interface 2.3, decisions 7.3: also after they changed."""
    save(live, weights={"automation": 70}, threshold=44)
    await visit(live, key, report(webdriver=True))
    save(live, weights={"automation": 1})
    ((_, document),) = live.contents()["documents"]
    assert document.suspect_threshold == 44
    with live.found.store.read() as snapshot:
        kept = snapshot.get(WEIGHTS_SNAPSHOTS, document.weights_digest)
    assert kept is not None
    assert kept.weights == default_weights("web") | {"automation": 70}
