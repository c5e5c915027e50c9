"""`POST /console/api/weights/preview`: what other weights would make of the newest events; it changes nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from svc.features.erasure import organizations as removal
from svc.features.weights import routes as preview
from svc.kernel.values.ids import first_id
from svc.kernel.work import slices
from tests.spec.automation import Automation
from tests.spec.console import Console
from tests.spec.responses import DRIVEN, HEADLESS, PROGRAM, assert_error, assert_invalid, nothing_stored, visit
from tests.support.live import Live, report, succeeded


async def traffic(live: Live, public: str, first: int = 1, **given: Any) -> list[dict[str, Any]]:
    """Devices of several kinds, each once; the answers, oldest first."""
    kinds: list[dict[str, Any]] = [
        {},
        {"changes": DRIVEN},
        {"headers": HEADLESS},
        {"headers": PROGRAM},
        {"changes": DRIVEN, "headers": HEADLESS},
        {},
    ]
    answers: list[dict[str, Any]] = []
    for device, kind in enumerate(kinds, start=first):
        response = await visit(
            live, public, report(device, **kind.get("changes", {})), headers=kind.get("headers", {}), **given
        )
        answers.append(response.json())
        live.clock.advance(hours=25)  # beyond what histories remember
    return answers


def levels(answers: list[dict[str, Any]]) -> dict[str, int]:
    found = [answer["suspect_level"] for answer in answers]
    return {level: found.count(level) for level in ("low", "medium", "high")} | {"not_scored": 0}


async def asked(console: Console, **body: Any) -> dict[str, Any]:
    return succeeded(await console.post("/weights/preview", {"platform": "web", "environment": "development", **body}))


CHANGES = [
    {"weights": {"automation": 5, "headless": 90}},
    {"suspect_threshold": 15},
    {"weights": {"bot_user_agent": 100}, "suspect_threshold": 70, "vpn_weights_mode": "confidence"},
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.slow(0.2)
async def test_saved_weights_give_exactly_what_was_previewed(live: Live, console: Console, change: dict[str, Any]):
    """Preview, save, and identify the same reports again as other organizations would: the same levels."""
    admin = Automation(live)
    _, public = live.issue()
    before = await traffic(live, public)
    found = await asked(console, **change)
    assert (found["events"], found["before"]) == (6, levels(before))
    assert (await admin("PUT", "/risk-weights/web", change)).status_code == 200

    again = live.new_organization()
    there = Automation(live, organization=again)
    assert (await there("PUT", "/risk-weights/web", change)).status_code == 200
    _, theirs = live.issue(organization=again.number)
    after = await traffic(live, theirs)
    assert found["after"] == levels(after)
    moved = [
        (one, other) for one, other in zip(before, after, strict=True) if one["suspect_level"] != other["suspect_level"]
    ]
    assert found["changed"] == len(moved) == sum(move["count"] for move in found["moves"]) > 0
    examples = {example["request_id"]: example for example in found["examples"]}
    assert set(examples) == {one["request_id"] for one, _ in moved}
    for one, other in moved:
        example = examples[one["request_id"]]
        assert example["before"] == {"score": one["suspect_score"], "level": one["suspect_level"]}
        assert example["after"] == {"score": other["suspect_score"], "level": other["suspect_level"]}
        weights = [
            {fired["signal"]: fired["weight"] for fired in answer.get("triggers", ())} for answer in (one, other)
        ]
        expected = {
            (name, weights[0].get(name, 0), weights[1].get(name, 0)) for name in weights[0].keys() | weights[1].keys()
        }
        assert {(each["signal"], each["before"], each["after"]) for each in example["because"]} == {
            each for each in expected if each[1] != each[2]
        }
    assert await asked(console) | {"examples": []} == {
        **found,
        "before": found["after"],
        "changed": 0,
        "moves": [],
        "by_signal": [],
        "examples": [],
    }


async def test_a_preview_changes_nothing(live: Live, key: str, console: Console):
    await traffic(live, key)
    await console.seen("/audit")  # notes the use of the key
    with nothing_stored(live):
        await asked(console, weights={"automation": 0})


async def test_without_documents_the_fired_signals_are_compared_and_counted(live: Live, key: str, console: Console):
    await traffic(live, key)
    full = await asked(console, weights={"automation": 0})
    beyond = first_id(live.clock.now_ms + 2)
    live.found.store.write_now([partial(removal.drop_documents, number=live.organization.number, beyond=beyond)])
    found = await asked(console, weights={"automation": 0})
    assert (full["compared_without_document"], found["compared_without_document"]) == (0, 6)
    assert found | {"compared_without_document": 0} == full


@pytest.mark.slow(0.2)
async def test_a_scope_contains_the_events_that_its_weights_would_score(live: Live, console: Console):
    """An SDK key's own; of the organization those of all keys that have no weights of their own."""
    admin = Automation(live)
    (one, public), (_, other) = live.issue(environment="staging"), live.issue(environment="staging")
    await traffic(live, public)
    await traffic(live, other, 20)
    change = {"weights": {"automation": 0}}
    assert (await asked(console, environment="staging", **change))["events"] == 12
    of_key = {"platform": "web", "key_id": one.id}
    seen = (await console.post("/weights/preview", of_key | change)).json()
    assert (seen["events"], seen["changed"]) == (6, 2)
    saved = await admin("PUT", f"/sdk-keys/{one.id}/risk-weights/web", change)
    assert saved.status_code == 200
    assert (await asked(console, environment="staging", **change))["events"] == 6
    assert (await console.post("/weights/preview", of_key)).json()["before"] == seen["after"]
    for nothing in ({"environment": "production"}, {"environment": "staging", "platform": "ios"}):
        empty = await asked(console, **nothing, **change)
        assert (empty["events"], empty["changed"], empty["examples"]) == (0, 0, [])
    assert (await console.post("/weights/preview", of_key | {"environment": "production"})).json()["events"] == 0
    response = await console.post("/weights/preview", {"platform": "web"})
    assert response.json()["events"] == 0, "production, where nothing is said"


async def test_the_newest_events_are_compared_and_the_number_scanned_is_bounded(
    live: Live, key: str, console: Console, monkeypatch: pytest.MonkeyPatch
):
    ids = [answer["request_id"] for answer in await traffic(live, key)]
    monkeypatch.setattr(slices, "MAX_AT_ONCE", 2)
    monkeypatch.setattr(preview, "MAX_EVENTS", 3)
    found = await asked(console, weights={"automation": 0, "headless": 0})
    assert found["events"] == 3
    assert [example["request_id"] for example in found["examples"]] == [ids[4]]
    monkeypatch.setattr(preview, "MAX_LOOKED_AT", 4)
    monkeypatch.setattr(preview, "MAX_EVENTS", 10_000)
    assert (await asked(console))["events"] == 4


async def test_a_body_is_refused_like_a_save_with_every_error_named(live: Live, console: Console, admin: Automation):
    key, _ = live.issue()
    await console.seen("/audit")  # notes the use of the key
    for body in (
        {"weights": {"charm": 3, "tor": 101}, "suspect_threshold": 0},
        {"weights": {"tor": "heavy"}},
        {"vpn_weights_mode": "luck"},
        {"color": "red"},
    ):
        refused = await admin("PUT", "/risk-weights/web", body)
        with nothing_stored(live):
            response = await console.post("/weights/preview", body | {"platform": "web"})
        assert response.status_code == refused.status_code == 422
        assert response.json()["error"]["details"] == refused.json()["error"]["details"]
    three = await console.post(
        "/weights/preview", {"platform": "web", "weights": {"charm": 3, "tor": 101}, "suspect_threshold": 0}
    )
    assert len(three.json()["error"]["details"]) == 3
    assert_invalid(await console.post("/weights/preview", {"platform": "toaster"}), "platform", "invalid_value")
    assert_invalid(await console.post("/weights/preview", {}), "platform", "required")
    revision = await console.post("/weights/preview", {"platform": "web", "revision": 0})
    assert_invalid(revision, "revision", "unknown_field")
    stranger = Console(live, "admin", live.new_organization())
    of_key = {"platform": "web", "key_id": key.id}
    assert_error(await stranger.post("/weights/preview", of_key), 404, "not_found")
    live.revoke(key)
    assert_error(await console.post("/weights/preview", of_key), 409, "sdk_key_revoked")


async def test_one_organization_has_one_preview_at_a_time(live: Live, key: str, console: Console):
    """Others are answered meanwhile; what runs ends, and the next is let in."""
    await traffic(live, key)
    stranger = Console(live, organization=live.new_organization())
    answers: list[tuple[str, int]] = []

    async def ask(name: str, who: Console) -> None:
        response = await who.post("/weights/preview", {"platform": "web", "environment": "development"})
        answers.append((name, response.status_code))
        if response.status_code == 429:
            assert response.headers["retry-after"] == "1"
            assert "preview" in response.json()["error"]["message"]

    reads = live.service.services.limits.long_reads
    with reads.turn(live.organization.number).exclusive():
        await ask("other", stranger)
        await ask("refused", console)
    await ask("again", console)
    assert sorted(answers) == [("again", 200), ("other", 200), ("refused", 429)]
