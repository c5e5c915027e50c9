"""Interface 2.11 and 4.4, decisions 6: risk weights as an organization's own automation reads and changes them."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from svc.identify.queries.weights import weights_key
from svc.identify.scoring.score import StoredWeights
from svc.identify.scoring.signals import CATALOG, default_weights
from svc.identify.tables import WEIGHTS
from svc.kernel.values.fields import PLATFORMS
from tests.spec.automation import Automation
from tests.spec.responses import DRIVEN, assert_error, assert_invalid, nothing_stored, visit
from tests.support.live import ORIGIN, Live, report, succeeded

WEIGHTS_PATH = "/risk-weights"
SAVED = "2026-01-01T00:00:05.000Z"


def platform_of(answer: dict[str, Any], platform: str) -> dict[str, Any]:
    """One platform's entry; every answer has all three, in one order."""
    assert [entry["platform"] for entry in answer["platforms"]] == list(PLATFORMS)
    return next(entry for entry in answer["platforms"] if entry["platform"] == platform)


def untouched(platform: str) -> dict[str, Any]:
    """The entry of a platform for which nobody has saved anything."""
    defaults = {signal.name: signal.weights[platform] for signal in CATALOG.values() if platform in signal.weights}
    return {
        "platform": platform,
        "scope": "default",
        "stored": False,
        "revision": 0,
        "suspect_threshold": 30,
        "weights": defaults,
        "defaults": defaults,
        "signals": list(defaults),
        "vpn_weights_mode": "method",
        "residential_proxy_weights_mode": "method",
    }


async def read(automation: Automation, scope: str = "") -> dict[str, Any]:
    return succeeded(await automation("GET", scope + WEIGHTS_PATH))


async def save(automation: Automation, scope: str = "", platform: str = "web", **body: Any) -> dict[str, Any]:
    """A save that is accepted; its answer is what the next read says."""
    answer = succeeded(await automation("PUT", f"{scope}{WEIGHTS_PATH}/{platform}", body))
    assert answer == await read(automation, scope)
    return answer


async def score(live: Live, secret: str) -> int:
    """Of a driven visitor: 40 by default, the weight of `automation`."""
    return (await visit(live, secret, report(**DRIVEN))).json()["suspect_score"]


@pytest.mark.parametrize("role", ["admin", "developer"])
async def test_the_defaults_apply_where_nothing_was_saved(live: Live, role: str):
    """Interface 2.11, decisions 6.3: always all three platforms."""
    automation = Automation(live, role)
    key, _ = await automation.issue()
    entries = [untouched(platform) for platform in PLATFORMS]
    top = {"organization_id": live.organization.id, "max_weight": 100, "platforms": entries}
    assert await read(automation) == {"scope": "organization", **top}
    assert await read(automation, f"/sdk-keys/{key['id']}") == {"scope": "key", "sdk_key_id": key["id"], **top}


async def test_a_save_changes_only_the_named_values(live: Live, admin: Automation):
    """Decisions 6.3; attributed to no member (interface 5, rule 8)."""
    live.clock.advance(seconds=5)
    answer = await save(admin, suspect_threshold=50, weights={"tor": 1, "automation": 100})
    expected = untouched("web")
    expected |= {"scope": "organization", "stored": True, "revision": 1, "updated_at": SAVED, "suspect_threshold": 50}
    expected["weights"] = expected["weights"] | {"tor": 1, "automation": 100}
    assert platform_of(answer, "web") == expected
    assert [platform_of(answer, platform) for platform in ("android", "ios")] == [
        untouched("android"),
        untouched("ios"),
    ]
    live.clock.advance(seconds=60)
    answer = await save(admin, weights={"tor": 2}, vpn_weights_mode="confidence")
    expected |= {"revision": 2, "updated_at": "2026-01-01T00:01:05.000Z", "vpn_weights_mode": "confidence"}
    expected["weights"] = expected["weights"] | {"tor": 2}
    assert platform_of(answer, "web") == expected
    answer = await save(admin, residential_proxy_weights_mode="confidence")
    expected |= {"revision": 3, "residential_proxy_weights_mode": "confidence"}
    assert platform_of(answer, "web") == expected


@pytest.mark.slow(0.2)
async def test_an_empty_save_stores_the_effective_values(admin: Automation):
    """Decisions 6.2, 6.3: from now on the scope has its own configuration, which its parent no longer changes."""
    key, _ = await admin.issue()
    await save(admin, suspect_threshold=70)
    await save(admin, f"/sdk-keys/{key['id']}")
    await save(admin, suspect_threshold=80)
    entry = platform_of(await read(admin, f"/sdk-keys/{key['id']}"), "web")
    assert (entry["scope"], entry["stored"], entry["revision"], entry["suspect_threshold"]) == ("key", True, 1, 70)


@pytest.mark.slow(0.2)
async def test_the_key_takes_precedence_over_the_organization_and_that_over_the_default(live: Live, admin: Automation):
    """Decisions 6.2; what is saved and what is restored scores the very next identification."""
    key, secret = await admin.issue(allowed_origins=[ORIGIN])
    _, sibling = await admin.issue(allowed_origins=[ORIGIN])
    scope = f"/sdk-keys/{key['id']}"

    async def seen() -> tuple[str, bool, int, int, int]:
        entry = platform_of(await read(admin, scope), "web")
        weight = entry["weights"]["automation"]
        return entry["scope"], entry["stored"], weight, await score(live, secret), await score(live, sibling)

    assert await seen() == ("default", False, 40, 40, 40)
    await save(admin, weights={"automation": 70})
    assert await seen() == ("organization", False, 70, 70, 70)
    await save(admin, scope, weights={"automation": 7})
    assert await seen() == ("key", True, 7, 7, 70)
    response = await admin("DELETE", f"{scope}{WEIGHTS_PATH}/web")
    assert (response.status_code, response.json()) == (200, await read(admin, scope))
    assert await seen() == ("organization", False, 70, 70, 70)
    response = await admin("DELETE", f"{WEIGHTS_PATH}/web")
    assert (response.status_code, response.json()) == (200, await read(admin))
    assert await seen() == ("default", False, 40, 40, 40)


async def test_restoring_unsaved_weights_changes_nothing(admin: Automation):
    """Decisions 6.3."""
    await save(admin, platform="ios", suspect_threshold=9)
    before = await read(admin)
    for platform in ("web", "android", "web"):
        response = await admin("DELETE", f"{WEIGHTS_PATH}/{platform}")
        assert (response.status_code, response.json()) == (200, before)


async def test_a_save_based_on_another_revision_is_a_conflict(admin: Automation):
    """Decisions 6.3: `409 revision_conflict`; the revision is 0 when nothing is stored, also after a restore."""
    path = f"{WEIGHTS_PATH}/web"
    await save(admin, revision=0, suspect_threshold=31)
    for stale in (0, 2, -1, 10**30):
        assert_error(await admin("PUT", path, {"revision": stale, "suspect_threshold": 99}), 409, "revision_conflict")
    await save(admin, revision=1, suspect_threshold=32)
    await save(admin, platform="ios", revision=0)
    await admin("DELETE", path)
    assert_error(await admin("PUT", path, {"revision": 2}), 409, "revision_conflict")
    assert platform_of(await save(admin, revision=0), "web")["suspect_threshold"] == 30


async def test_of_concurrent_saves_based_on_one_revision_one_is_stored(admin: Automation):
    """The one writer decides between them: no change is lost unseen."""
    statuses: dict[int, int] = {}

    async def try_save(threshold: int) -> None:
        body = {"revision": 0, "suspect_threshold": threshold}
        statuses[threshold] = (await admin("PUT", f"{WEIGHTS_PATH}/web", body)).status_code

    async with trio.open_nursery() as nursery:
        for threshold in range(100, 112):
            nursery.start_soon(try_save, threshold)
    (winner,) = [threshold for threshold, status in statuses.items() if status == 200]
    assert sorted(statuses.values()) == [200] + [409] * 11
    assert platform_of(await read(admin), "web")["suspect_threshold"] == winner


async def test_an_invalid_change_is_refused_by_name_and_stores_nothing(live: Live, admin: Automation):
    """Decisions 1.4, 6.1, 6.3; `rooted` exists on Android alone."""
    key, _ = await admin.issue()
    with nothing_stored(live):
        for body, field, issue in (
            ({"weights": {"torr": 1}}, "weights.torr", "unknown_signal"),
            ({"weights": {"rooted": 1}}, "weights.rooted", "unknown_signal"),
            ({"weights": {"": 1}}, "weights.", "unknown_signal"),
            ({"weights": {"tor": 101}}, "weights.tor", "out_of_range"),
            ({"weights": {"tor": -1}}, "weights.tor", "out_of_range"),
            ({"weights": {"tor": 10**30}}, "weights.tor", "out_of_range"),
            ({"weights": {"hosting": 3, "tor": 1.5}}, "weights.tor", "wrong_type"),
            ({"weights": {"tor": True}}, "weights.tor", "wrong_type"),
            ({"weights": {"tor`": "1"}}, "weights.tor`", "wrong_type"),
            ({"weights": {"tor\n": None}}, "weights.tor\n", "wrong_type"),
            ({"weights": None}, "weights", "wrong_type"),
            ({"weights": []}, "weights", "wrong_type"),
            ({"suspect_threshold": 0}, "suspect_threshold", "out_of_range"),
            ({"suspect_threshold": 1001}, "suspect_threshold", "out_of_range"),
            ({"suspect_threshold": None}, "suspect_threshold", "wrong_type"),
            ({"suspect_threshold": "30"}, "suspect_threshold", "wrong_type"),
            ({"vpn_weights_mode": "both"}, "vpn_weights_mode", "invalid_value"),
            ({"residential_proxy_weights_mode": 1}, "residential_proxy_weights_mode", "wrong_type"),
            ({"revision": "1"}, "revision", "wrong_type"),
            ({"threshold": 5}, "threshold", "unknown_field"),
            ({"platform": "web"}, "platform", "unknown_field"),
            ([], "", "wrong_type"),
        ):
            for scope in ("", f"/sdk-keys/{key['id']}"):
                assert_invalid(await admin("PUT", f"{scope}{WEIGHTS_PATH}/web", body), field, issue)


async def test_every_error_of_a_change_is_named_at_once(admin: Automation):
    """Decisions 1.5, before its revision is looked at (decisions 1.8)."""
    body = {"suspect_threshold": 5000, "weights": {"tor": 200, "torr": 1, "hosting": 3}, "revision": 7}
    faults = [
        ("suspect_threshold", "out_of_range", "body"),
        ("weights.tor", "out_of_range", "body"),
        ("weights.torr", "unknown_signal", "body"),
    ]
    refused = await admin("PUT", f"{WEIGHTS_PATH}/web", body)
    assert_error(refused, 422, "validation_error", *faults)
    assert refused.json()["error"]["message"].startswith("Weights must be 0 to 100, and suspect_threshold 1 to 1000.")


@pytest.mark.parametrize(("threshold", "weight"), [(1, 0), (1000, 100)])
async def test_the_bounds_of_the_ranges_are_inclusive(live: Live, threshold: int, weight: int):
    """Decisions 6.1."""
    entry = platform_of(await save(Automation(live), suspect_threshold=threshold, weights={"tor": weight}), "web")
    assert (entry["suspect_threshold"], entry["weights"]["tor"]) == (threshold, weight)


async def test_an_unknown_platform_is_not_found(live: Live, admin: Automation):
    """Decisions 6.3."""
    key, _ = await admin.issue()
    with nothing_stored(live):
        for platform in ("windows", "Web", "flutter-ios", "%00", "x" * 600):
            for scope in ("", f"/sdk-keys/{key['id']}"):
                path = f"{scope}{WEIGHTS_PATH}/{platform}"
                assert_error(await admin("PUT", path, {}), 404, "not_found")
                assert_error(await admin("DELETE", path), 404, "not_found")


async def test_only_sdk_keys_of_the_organization_have_weights(live: Live):
    """Interface 4.4: `404` for a foreign key, one of another kind, and none at all."""
    admin, stranger = Automation(live), Automation(live, organization=live.new_organization())
    foreign, _ = await stranger.issue()
    proxy, _ = live.issue("proxy")
    await read(admin)  # notes the use of its key
    with nothing_stored(live):
        for key_id in (foreign["id"], proxy.id, admin.key.id, "key_00000000000000000000", "x", "x" * 600):
            path = f"/sdk-keys/{key_id}{WEIGHTS_PATH}"
            assert_error(await admin("GET", path), 404, "not_found")
            assert_error(await admin("PUT", f"{path}/web", {"suspect_threshold": 5}), 404, "not_found")
            assert_error(await admin("DELETE", f"{path}/web"), 404, "not_found")


async def test_weights_belong_to_one_organization(live: Live):
    """Interface 4.4."""
    mine, theirs = Automation(live), Automation(live, organization=live.new_organization())
    await save(mine, suspect_threshold=77)
    assert [platform_of(await read(one), "web")["suspect_threshold"] for one in (mine, theirs)] == [77, 30]


async def test_the_weights_of_a_revoked_key_are_readable_and_cannot_be_changed(admin: Automation):
    """Interface 3: a revoked SDK key refuses every change with `409`."""
    key, _ = await admin.issue()
    scope = f"/sdk-keys/{key['id']}"
    before = await save(admin, scope, suspect_threshold=12)
    await admin("POST", f"{scope}/revoke")
    assert_error(await admin("PUT", f"{scope}{WEIGHTS_PATH}/web", {"revision": 0}), 409, "sdk_key_revoked")
    assert_error(await admin("DELETE", f"{scope}{WEIGHTS_PATH}/web"), 409, "sdk_key_revoked")
    wrong = await admin("PUT", f"{scope}{WEIGHTS_PATH}/web", {"suspect_threshold": 0})
    assert_invalid(wrong, "suspect_threshold", "out_of_range")
    assert await read(admin, scope) == before


async def test_a_signal_added_after_a_save_has_no_weight_until_one_is_set(live: Live, admin: Automation):
    """Decisions 6.2."""
    known = {name: weight for name, weight in default_weights("web").items() if name != "tor"}
    older = StoredWeights(
        revision=4, threshold=33, weights=known, vpn_mode="method", residential_proxy_mode="method", updated_at_ms=5
    )
    place = weights_key(live.organization.number, None, "web")
    live.found.store.write_now([lambda transaction: transaction.put(WEIGHTS, place, older)])
    entry = platform_of(await read(admin), "web")
    assert (entry["weights"]["tor"], entry["defaults"]["tor"], entry["signals"]) == (
        0,
        25,
        list(default_weights("web")),
    )
    asked = report() | {"test": {"signals": ["tor", "automation"]}}
    answer = succeeded(await visit(live, live.issue()[1], asked))
    assert [fired["signal"] for fired in answer["triggers"]] == ["automation"]
    entry = platform_of(await save(admin, weights={"tor": 6}, revision=4), "web")
    assert (entry["weights"], entry["revision"]) == (known | {"tor": 6}, 5)


@pytest.mark.parametrize("role", ["admin", "developer"])
async def test_the_signals_are_the_catalog(live: Live, role: str):
    """Decisions 6.3."""
    answer = succeeded(await Automation(live, role)("GET", "/risk-signals"))
    assert set(answer) == {"signals", "max_weight"}
    assert answer["max_weight"] == 100
    signals = {signal["name"]: signal for signal in answer["signals"]}
    assert list(signals) == list(CATALOG)
    assert signals["tor"] == {
        "name": "tor",
        "group": CATALOG["tor"].group,
        "description": CATALOG["tor"].description,
        "platforms": ["web", "android", "ios"],
        "default_weights": {"web": 25, "android": 25, "ios": 25},
        "since": "1",
    }
    assert signals["rooted"]["platforms"] == list(signals["rooted"]["default_weights"]) == ["android"]
    modes = {name: signal["mode"] for name, signal in signals.items() if "mode" in signal}
    assert {signals[name]["group"] for name in modes} == {"vpn", "residential_proxy"}
    assert set(modes.values()) == {"method", "confidence"}


async def test_the_signals_of_a_platform_equal_those_in_its_weights(admin: Automation):
    """Decisions 6.3: the list and the weights tell the same of every platform."""
    signals = (await admin("GET", "/risk-signals")).json()["signals"]
    answer = await read(admin)
    for platform in PLATFORMS:
        entry = platform_of(answer, platform)
        told = {
            signal["name"]: signal["default_weights"][platform] for signal in signals if platform in signal["platforms"]
        }
        assert (entry["defaults"], entry["signals"]) == (told, list(told))


async def test_the_routes_of_weights_accept_only_their_methods_and_parameters(admin: Automation):
    """Decisions 1.6, 1.7."""
    for path in (f"{WEIGHTS_PATH}?platform=web", "/risk-signals?platform=web"):
        assert_invalid(await admin("GET", path), "platform", "unknown_field", "query")
    response = await admin("PATCH", f"{WEIGHTS_PATH}/web", {})
    assert_error(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "DELETE, PUT"
    assert_invalid(await admin("PUT", f"{WEIGHTS_PATH}/web"), "", "malformed_json")
