"""Decisions 13: rules, decisions, previews, and what a rule came to."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from svc.features.lists.lists import first_list_id
from svc.features.rules.jobs import decide_event, save_rules
from svc.features.rules.language.conditions import known
from svc.features.rules.ruleset import FIRST, Rule
from svc.kernel.values.timestamps import timestamp
from tests.spec.commands import Run
from tests.spec.responses import act, assert_error, assert_invalid, forward, visit
from tests.spec.test_accounts import event_of
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, report, succeeded

FIFTH = {"name": "Fifth account", "condition": 'velocity.visitor.accounts["30d"] >= 5', "action": "review"}


BLOCKED = {"id": "rul_BlockedLists00000000"}
"""Of a rule that every organization starts with."""


class Shop(NamedTuple):
    """An organization with the keys of production, and the admin's."""

    live: Live
    public: str
    secret: str
    management: str

    @property
    def path(self) -> str:
        return f"/api/v1/management/organizations/{self.live.organization.id}"

    async def rules(self, environment: str = "live") -> dict[str, Any]:
        return succeeded(await self.ask("GET", "/rules", params={"environment": environment}))

    async def ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        headers = {"x-api-key": self.management}
        return await self.live.client.request(method, self.path + path, headers=headers, **request)

    async def save(
        self, *rules: dict[str, Any], environment: str = "live", revision: int | None = None
    ) -> httpx.Response:
        if revision is None:
            revision = (await self.rules(environment))["revision"]
        body = {"revision": revision, "rules": rules}
        return await self.ask("PUT", "/rules", params={"environment": environment}, json=body)

    def keep(self, *rules: Rule) -> None:
        """Store rules without asking whether they can be saved, as an earlier version may have."""
        number = self.live.organization.number
        job = partial(save_rules, number=number, kind="live", revision=0, rules=rules, saved_by="", now_ms=0)
        self.live.found.store.write_now([job])

    async def event(self, answer: dict[str, Any]) -> dict[str, Any]:
        return await event_of(self.live, self.secret, answer)

    async def explained(self, request_id: str) -> list[bool | None]:
        """Which rules match an event, as the console says it."""
        path, headers = f"/console/api/events/{request_id}/rules", {"x-api-key": self.management}
        return [rule["matches"] for rule in succeeded(await self.live.client.get(path, headers=headers))["rules"]]


@pytest.fixture
async def shop(live: Live) -> Shop:
    return Shop(
        live,
        live.issue(environment="production")[1],
        live.issue("secret", "production")[1],
        live.issue("management")[1],
    )


# 13.1: a ruleset


async def test_every_organization_starts_with_two_rules_in_both_rulesets(shop: Shop):
    """Decisions 13.3."""
    for environment in ("live", "test"):
        found = await shop.rules(environment)
        assert (found["environment"], found["revision"]) == (environment, 0)
        assert [(rule["name"], rule["action"], rule["mode"]) for rule in found["rules"]] == [
            ("Blocked", "block", "active"),
            ("Trusted", "allow", "active"),
        ]
        assert found["rules"][0]["counts"] == {"matched_24h": 0, "matched_30d": 0, "errors_24h": 0}


async def test_a_ruleset_is_saved_as_a_whole_and_rules_keep_their_ids(shop: Shop):
    first = (await shop.rules())["rules"]
    kept = {name: first[0][name] for name in ("id", "name", "condition", "action")}
    answer = succeeded(await shop.save(FIFTH | {"note": "by the payments team"}, kept))
    assert answer == await shop.rules()
    assert answer["revision"] == 1
    assert [rule["name"] for rule in answer["rules"]] == ["Fifth account", "Blocked"]
    assert answer["rules"][0]["note"] == "by the payments team"
    assert answer["rules"][1]["id"] == first[0]["id"]
    assert (await shop.rules("test"))["revision"] == 0, "the other ruleset is another one"


async def test_a_save_upon_another_revision_is_a_conflict(shop: Shop):
    assert (await shop.save(FIFTH)).status_code == 200
    before = shop.live.contents()
    for revision in (0, 2):
        assert_error(await shop.save(FIFTH, revision=revision), 409, "revision_conflict")
    assert_invalid(await shop.ask("PUT", "/rules", json={"rules": []}), "revision", "required")
    assert shop.live.contents() == before


async def test_rules_saved_as_they_are_make_no_revision(shop: Shop):
    """So nobody's unsaved work is a conflict, and the history has changes alone."""
    for rules in ([], [FIFTH]):
        read = succeeded(await shop.save(*rules)) if rules else await shop.rules()
        before = shop.live.contents()
        assert succeeded(await shop.save(*read["rules"], revision=read["revision"]))["revision"] == read["revision"]
        assert shop.live.contents() | {"audit": before["audit"]} == before


async def test_a_ruleset_that_cannot_be_used_is_refused_and_changes_nothing(shop: Shop):
    before = shop.live.contents()
    for rules, fault in (
        ([FIFTH, FIFTH], ("rules[1].name", "invalid_value")),
        ([FIFTH | {"name": ""}], ("rules[0].name", "invalid_value")),
        ([FIFTH | {"name": "x" * 81}], ("rules[0].name", "too_long")),
        ([FIFTH | {"id": "rul_" + "0" * 20}], ("rules[0].id", "invalid_value")),
        ([FIFTH | BLOCKED, FIFTH | BLOCKED | {"name": "Again"}], ("rules[1].id", "invalid_value")),
        ([FIFTH | {"name": " "}], ("rules[0].name", "invalid_value")),
        ([FIFTH | {"condition": "x" * 2001}], ("rules[0].condition", "too_long")),
        ([FIFTH | {"condition": "score >"}], ("rules[0].condition", "invalid_condition")),
        ([FIFTH | {"condition": "score"}], ("rules[0].condition", "invalid_condition")),
        ([FIFTH | {"condition": "scores > 1"}], ("rules[0].condition", "invalid_condition")),
        ([FIFTH | {"condition": 'in_list("nobody")'}], ("rules[0].condition", "invalid_condition")),
        ([FIFTH | {"action": "explode"}], ("rules[0].action", "invalid_value")),
        ([FIFTH | {"mode": "on"}], ("rules[0].mode", "invalid_value")),
        ([FIFTH | {"when": "x"}], ("rules[0].when", "unknown_field")),
        ([FIFTH | {"name": f"rule {number}"} for number in range(101)], ("rules", "too_long")),
    ):
        body = {"revision": 0, "rules": rules}
        for method, path in (("PUT", "/rules"), ("POST", "/rules/preview")):
            sent = body if method == "PUT" else {"rules": rules}
            assert_error(await shop.ask(method, path, json=sent), 422, "validation_error", (*fault, "body"))
        assert shop.live.contents() == before


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("score > 1 &&\n  visitor.idd == 'a'", "line 2, column 10: there is no variable or function 'visitor.idd'"),
        (
            'in_list("blocked_visitors") ||\n  in_list("vip") || in_list("a")',
            "line 2, column 11: there is no list 'vip'",
        ),
        ("score >", "line 1, column 8: "),
        ("score + 1", "line 1, column 1: the condition is not true or false"),
    ],
)
async def test_the_message_has_line_and_column_of_the_error(shop: Shop, condition: str, said: str):
    message = assert_error(
        await shop.save(FIFTH, FIFTH | {"name": "b", "condition": condition}),
        422, "validation_error", ("rules[1].condition", "invalid_condition", "body"),
    )  # fmt: skip
    assert f"rules[1].condition: {said}" in message


# 13.2: decisions


async def test_the_first_rule_that_matches_decides_and_nothing_else_changes(shop: Shop):
    plain = (await visit(shop.live, shop.public, report(9))).json()
    assert "decision" not in plain
    second = {"name": "Second", "condition": "true", "action": "challenge"}
    saved = (await shop.save({"name": "Never", "condition": "score > 500", "action": "block"}, FIFTH, second)).json()
    answer = await act(shop.live, shop.public, "a")
    ids = {rule["name"]: rule["id"] for rule in saved["rules"]}
    assert answer["decision"] == {"action": "challenge", "rule_id": ids["Second"], "rule": "Second"}
    event = await shop.event(answer)
    assert event["decision"] == answer["decision"]
    for name in "bcde":
        answer = await act(shop.live, shop.public, name)
    assert answer["decision"] == {"action": "review", "rule_id": ids["Fifth account"], "rule": "Fifth account"}
    counts = {rule["name"]: rule["counts"] for rule in (await shop.rules())["rules"]}
    assert counts["Second"] == {"matched_24h": 4, "matched_30d": 4, "errors_24h": 0}
    assert counts["Fifth account"]["matched_24h"] == 1


async def test_a_rule_that_asks_a_list_or_something_else_decides_where_the_list_holds_nothing(shop: Shop):
    """One that asks lists alone is not evaluated there."""
    lists = {"name": "Lists", "condition": 'in_list("blocked_visitors") || in_list("blocked_addresses")'}
    either = {"name": "Either", "condition": 'in_list("blocked_visitors") || visitor.is_new'}
    await shop.save(lists | {"action": "block"}, either | {"action": "review"})
    assert (await act(shop.live, shop.public))["decision"]["rule"] == "Either"


async def test_shadow_rules_decide_nothing_and_are_counted_and_listed(shop: Shop):
    shadow = FIFTH | {"condition": "true", "mode": "shadow", "action": "block"}
    off = {"name": "Off", "condition": "true", "action": "block", "mode": "off"}
    saved = (await shop.save(off, shadow)).json()
    answer = await act(shop.live, shop.public, "a")
    assert "decision" not in answer
    event = await shop.event(answer)
    assert event["shadow"] == [{"rule_id": saved["rules"][1]["id"], "rule": "Fifth account", "action": "block"}]
    listed = await shop.live.client.get("/api/v1/events", headers={"x-api-key": shop.secret})
    assert "shadow" not in listed.json()["rows"][0]
    assert [rule["counts"]["matched_24h"] for rule in (await shop.rules())["rules"]] == [0, 1]


async def test_a_rule_whose_evaluation_fails_does_not_match_and_is_counted(shop: Shop):
    fails = {"name": "Fails", "condition": 'account.id == "a"', "action": "block"}
    careful = {"name": "Careful", "condition": 'present("account.id") && account.id == "a"', "action": "review"}
    await shop.save(fails, careful)
    assert "decision" not in await act(shop.live, shop.public)
    assert (await act(shop.live, shop.public, "a"))["decision"]["rule"] == "Fails"
    counts = [rule["counts"] for rule in (await shop.rules())["rules"]]
    assert counts[0] == {"matched_24h": 1, "matched_30d": 1, "errors_24h": 1}
    assert counts[1]["errors_24h"] == 0, "&& absorbs an error where its other side is false"


async def test_live_rules_are_for_production_and_test_rules_for_the_rest(shop: Shop):
    await shop.save({"name": "Live", "condition": "true", "action": "block"})
    await shop.save({"name": "Test", "condition": "true", "action": "review"}, environment="test")
    assert (await act(shop.live, shop.public))["decision"]["rule"] == "Live"
    for environment in ("staging", "development"):
        _, key = shop.live.issue(environment=environment)
        assert (await act(shop.live, key))["decision"]["rule"] == "Test"


async def test_the_signed_verdict_and_a_repeated_response_have_the_decision(shop: Shop):
    await shop.save({"name": "All", "condition": "true", "action": "review"})
    answer = await act(shop.live, shop.public, verdict=True)
    claims = json.loads(urlsafe_b64decode(answer["verdict"].split(".")[1] + "=="))
    assert claims["decision"] == answer["decision"]


async def test_public_keys_get_no_decision_where_the_organization_says_so(shop: Shop):
    """Decisions 13.2: neither in the response nor in the verdict; the event has it."""
    await shop.save({"name": "All", "condition": "true", "action": "review"})
    changed = await shop.ask("PATCH", "/settings", json={"decision_in_response": False})
    assert changed.status_code == 200, changed.text
    answer = await act(shop.live, shop.public, verdict=True)
    assert "decision" not in answer
    assert "decision" not in json.loads(urlsafe_b64decode(answer["verdict"].split(".")[1] + "=="))
    assert (await shop.event(answer))["decision"]["rule"] == "All"
    place = {"x-svc-visitor-ip": PUBLIC_ADDRESS}
    assert succeeded(await forward(shop.live, shop.secret, place))["decision"]["rule"] == "All"
    _, proxy = shop.live.issue("proxy", "production")
    assert succeeded(await forward(shop.live, proxy, place))["decision"]["rule"] == "All"
    sent = {**place, "x-svc-public-key": shop.public, "x-svc-visitor-origin": ORIGIN}
    forwarded = succeeded(await forward(shop.live, proxy, sent, verdict=True))
    assert "decision" not in forwarded
    assert "decision" not in json.loads(urlsafe_b64decode(forwarded["verdict"].split(".")[1] + "=="))


async def test_events_are_listed_by_their_decision(shop: Shop):
    await shop.save({"name": "Of a", "condition": 'account.id == "a"', "action": "review"})
    answer = await act(shop.live, shop.public, "a")
    await act(shop.live, shop.public, "b")
    for decision, expected in (("review", [answer["request_id"]]), ("block", [])):
        found = await shop.live.client.get(
            "/api/v1/events", params={"decision": decision}, headers={"x-api-key": shop.secret}
        )
        assert [row["request_id"] for row in found.json()["rows"]] == expected
    wrong = await shop.live.client.get("/api/v1/events?decision=none", headers={"x-api-key": shop.secret})
    assert_invalid(wrong, "decision", "invalid_value", "query")


async def test_rules_see_ages_lists_networks_and_the_time(shop: Shop):
    old = {"name": "Old", "condition": "visitor.age_days >= 2 && account.age_days >= 2", "action": "allow"}
    now = {"name": "Now", "condition": 'now < timestamp("2000-01-01T00:00:00Z")', "action": "block"}
    local = {"name": "Net", "condition": 'cidr(address.ip, "81.2.0.0/16")', "action": "review"}
    await shop.save(old, now, local)
    assert (await act(shop.live, shop.public, "a"))["decision"]["rule"] == "Net"
    shop.live.clock.advance(hours=49)
    assert (await act(shop.live, shop.public, "a"))["decision"]["rule"] == "Old"


# Preview


async def test_a_preview_says_what_the_newest_events_would_have_come_to(shop: Shop):
    for number in range(6):
        answer = await act(shop.live, shop.public, f"a{number}")
    every = {"name": "All", "condition": "true", "action": "allow", "mode": "shadow"}
    before = shop.live.contents()
    found = (await shop.ask("POST", "/rules/preview", json={"rules": [FIFTH, every]})).json()
    assert found["events"] == 6
    assert [(rule["name"], rule["matches"]) for rule in found["rules"]] == [("Fifth account", 2), ("All", 6)]
    assert found["rules"][0]["examples"][0] == answer["request_id"]
    assert (found["before"], found["after"]) == ({"none": 6}, {"review": 2, "none": 4})
    assert found["warnings"][0] == "rules[1] matches every event"
    assert shop.live.contents() == before
    await shop.save(FIFTH | {"condition": "true"})
    await act(shop.live, shop.public, "a")
    never = {**(await shop.rules())["rules"][0], "condition": "score > 500"}
    del never["counts"]
    found = (await shop.ask("POST", "/rules/preview", json={"rules": [never]})).json()
    assert (found["rules"][0]["matches"], found["before"]["review"]) == (0, 1), "what was decided is not what would be"
    empty = (await shop.ask("POST", "/rules/preview", params={"environment": "test"}, json={"rules": [FIFTH]})).json()
    assert (empty["events"], empty["rules"][0]["matches"]) == (0, 0)


async def test_a_preview_does_not_take_the_label_of_an_event_for_what_was_known_of_it(shop: Shop):
    """A rule that reads labels sees those of others, and the preview says that these may have come later."""
    rule = {"name": "Known", "condition": '"fraud" in labels.visitor || "fraud" in labels.account', "action": "block"}
    assert (await shop.save(rule | {"mode": "off"})).status_code == 200
    first, other, second = [
        (await act(shop.live, shop.public, account, device))["request_id"]
        for account, device in (("a", 1), ("b", 2), ("a", 1))
    ]
    for labeled, expected in (([], []), ([first, other], [second]), ([second], [second, first])):
        for request_id in labeled:
            assert (await shop.ask("PUT", f"/events/{request_id}/label", json={"label": "fraud"})).status_code == 200
        preview = succeeded(await shop.ask("POST", "/rules/preview", json={"rules": [rule]}))
        assert preview["rules"][0]["examples"] == expected
        for request_id in (first, other, second):
            assert await shop.explained(request_id) == [request_id in expected]
    assert preview["warnings"][0].startswith("rules[0] reads labels as they are now")


async def test_a_preview_knows_no_account_that_a_backend_set_later(shop: Shop):
    """Decisions 11.2: what rules decided without the account, they decide without it in a preview, too."""
    rule = {"name": "Named", "condition": 'present("account.id")', "action": "review"}
    assert (await shop.save(rule)).status_code == 200
    answers = [await act(shop.live, shop.public, account, 1, action="log_in") for account in ("a", None)]
    for answer in answers:
        path, headers = f"/api/v1/events/{answer['request_id']}", {"x-api-key": shop.secret}
        succeeded(await shop.live.client.patch(path, json={"account_id": "b"}, headers=headers))
    preview = succeeded(await shop.ask("POST", "/rules/preview", json={"rules": [rule]}))
    assert preview["before"] == preview["after"] == {"review": 1, "none": 1}
    assert [await shop.explained(answer["request_id"]) for answer in answers] == [[True], [False]]


SET_LATER = [
    {"name": "Failed", "condition": 'action == "log_in.failed"', "action": "block"},
    {"name": "Verified", "condition": 'present("account.id") && account.verified', "action": "allow"},
    {"name": "Trusted", "condition": 'in_list("trusted_accounts")', "action": "allow"},
    {"name": "Tagged", "condition": 'present("tag") && tag == "late"', "action": "block"},
    {"name": "Account b", "condition": 'present("account.id") && account.id == "b"', "action": "block"},
    {"name": "Named", "condition": 'present("account.id")', "action": "review"},
    {"name": "Log-in", "condition": 'action == "log_in"', "action": "review"},
]
"""Rules over all that a backend may set of an event."""
NAMED: dict[str, str] = {"account_id": "a", "action": "log_in", "tag": "early"}
CHANGED: list[tuple[dict[str, str], list[dict[str, str | None]]]] = [
    (NAMED, []),
    (NAMED, [{"account_id": "a"}]),
    (NAMED, [{"action": "log_in.failed"}, {"tag": "late"}]),
    (NAMED, [{"account_id": "b", "action": None}]),
    (NAMED, [{"account_id": None}, {"tag": None}]),
    ({}, [NAMED]),
    ({"action": "log_in.failed", "tag": "late"}, [{"action": "log_in", "tag": "early", "account_id": "b"}]),
    (NAMED, [{"action": "log_in.failed", "account_id": "b"}, {"action": "log_in", "account_id": "a"}]),
]
"""What a request says, and what a backend sets later."""


async def change_later(shop: Shop) -> list[dict[str, Any]]:
    """The identifications of `CHANGED`, first of the page, then of the server; each has a device of its own."""
    server, answers = {"x-api-key": shop.secret}, list[dict[str, Any]]()
    for at, (said, changes) in enumerate(CHANGED * 2):
        by = {"key": shop.public} if at < len(CHANGED) else {"key": shop.secret, "origin": None}
        answer = await act(shop.live, device=at, **by, **said)
        for change in changes:
            path = f"/api/v1/events/{answer['request_id']}"
            succeeded(await shop.live.client.patch(path, json=change, headers=server))
        answers.append(answer)
    return answers


async def test_a_preview_and_an_explanation_know_what_the_request_said(shop: Shop):
    """Decisions 11.2: what a backend set later, no rule had when it decided."""
    list_id = first_list_id(shop.live.organization.number, "trusted_accounts")
    listed = await shop.ask("POST", f"/lists/{list_id}/entries", json={"entries": [{"value": "a"}]})
    assert listed.status_code == 200, listed.text
    assert (await shop.save(*SET_LATER)).status_code == 200
    names, answers = [rule["name"] for rule in SET_LATER], await change_later(shop)
    decided = [answer["decision"]["rule"] if "decision" in answer else None for answer in answers]
    assert decided[:8] == ["Named"] * 5 + [None, "Failed", "Named"]
    assert decided[8:] == ["Verified"] * 5 + [None, "Failed", "Verified"]
    for answer, name in zip(answers, decided, strict=True):
        matched = [
            rule for rule, is_true in zip(names, await shop.explained(answer["request_id"]), strict=True) if is_true
        ]
        assert matched[:1] == ([] if name is None else [name]), answer["request_id"]
        assert "Account b" not in matched
    preview = succeeded(await shop.ask("POST", "/rules/preview", json={"rules": SET_LATER}))
    assert preview["before"] == preview["after"]
    assert {rule["name"]: rule["matches"] for rule in preview["rules"]} == {name: decided.count(name) for name in names}


async def test_an_event_has_its_account_where_a_backend_set_something_else(shop: Shop):
    rule = {"name": "Account a", "condition": 'present("account.id") && account.id == "a"', "action": "review"}
    assert (await shop.save(rule)).status_code == 200
    answer = await act(shop.live, shop.public, **NAMED)
    path, headers = f"/api/v1/events/{answer['request_id']}", {"x-api-key": shop.secret}
    succeeded(await shop.live.client.patch(path, json={"action": "log_in.failed"}, headers=headers))
    assert await shop.explained(answer["request_id"]) == [True]
    preview = succeeded(await shop.ask("POST", "/rules/preview", json={"rules": [rule]}))
    assert preview["before"] == preview["after"] == {"review": 1}


async def test_what_a_request_said_is_gone_once_the_event_has_it_again(shop: Shop):
    """The archived document names it, and not the account: its erasure would not find it there."""
    answer = await act(shop.live, shop.public, **NAMED)
    path, key = f"/api/v1/events/{answer['request_id']}", {"x-api-key": shop.secret}
    said: list[object] = []
    for change in ({"action": "log_in.failed"}, {"action": "log_in"}, {"account_id": "b"}):
        succeeded(await shop.live.client.patch(path, json=change, headers=key))
        said.append((await shop.event(answer))["document"].get("as_sent"))
    unnamed = {"account_verified": False, "action": "log_in"}
    assert said == [unnamed | {"account_id": "a"}, None, unnamed]


async def test_a_preview_reads_lists_without_what_has_expired(shop: Shop):
    """Whether or not retention has deleted it yet: it is in no list that anybody is shown."""
    answer = await act(shop.live, shop.public)
    lists = {each["name"]: each["id"] for each in (await shop.ask("GET", "/lists")).json()["lists"]}
    until = timestamp(shop.live.clock.now_ms + 3_600_000)
    entry = {"value": answer["visitor_id"], "expires_at": until}
    await shop.ask("POST", f"/lists/{lists['blocked_visitors']}/entries", json={"entries": [entry]})
    rules = (await shop.rules())["rules"]
    for hours, matches in ((0, 1), (2, 0)):
        shop.live.clock.advance(hours=hours)
        preview = succeeded(await shop.ask("POST", "/rules/preview", json={"rules": rules}))
        assert [rule["matches"] for rule in preview["rules"]] == [matches, 0]
        assert await shop.explained(answer["request_id"]) == [bool(matches), False]


# On the command line


@pytest.mark.only_on("lmdb", "commands work on a directory that no service has open in this process")
def test_rules_are_listed_exported_imported_and_restored(run: Run, tmp_path: Path):
    org, file = run("org", "create", "Shop", "--json").json["organization_id"], tmp_path / "rules.json"

    def put(revision: int, **rule: Any):
        file.write_text(json.dumps({"revision": revision, "rules": [FIFTH | rule]}))
        return run("rule", "set", org, str(file))

    assert [rule["name"] for rule in run("rule", "show", org, "--json").json["rules"]] == ["Blocked", "Trusted"]
    assert put(0).out == "Revision 1 is in force, with 1 rules.\n"
    assert put(1, name="All", condition="true").status == 0
    assert [rule["name"] for rule in run("rule", "show", org, "--json").json["rules"]] == ["All"]
    assert "All" in run("rule", "show", org).out
    assert [rule["name"] for rule in run("rule", "show", org, "--environment", "test", "--json").json["rules"]] == [
        "Blocked",
        "Trusted",
    ]
    history = run("rule", "history", org, "--json").json["revisions"]
    assert [(row["revision"], row["rules"]) for row in history] == [(2, 1), (1, 1), (0, 2)]
    assert history[0]["saved_by"]
    assert history[0]["saved_at"].endswith("Z")
    file.write_text(run("rule", "export", org, "--revision", "1").out)
    saved = run("rule", "set", org, str(file), "--json").json
    assert saved["revision"] == 3
    assert [rule["name"] for rule in saved["rules"]] == ["Fifth account"]
    assert [rule["name"] for rule in run("rule", "show", org, "--json").json["rules"]] == ["Fifth account"]
    run("rule", "set", org, str(file)).assert_refused("Somebody else has saved")
    run("rule", "export", org, "--revision", "9").assert_refused("no revision 9")
    put(3, condition="scores > 1").assert_refused("rules[0].condition: line 1, column 1")
    put(3, action="explode").assert_refused("explode")
    put(3, when="now").assert_refused("$.rules[0]", "when")
    file.write_text('{"revision": 3,\n "rules": [}')
    run("rule", "set", org, str(file)).assert_refused("rules.json: line 2, column 12")
    assert run("rule", "export", org).json["revision"] == 3


# 13.5: test verdicts


async def test_a_development_key_asks_for_signals_and_accounts(shop: Shop):
    _, key = shop.live.issue()
    _, secret = shop.live.issue("secret")
    await shop.save(FIFTH, environment="test")
    signals = report() | {"test": {"signals": ["tor", "headless"], "account_velocity": 5}}
    answer = (await visit(shop.live, key, signals, account_id="a")).json()
    assert answer["decision"]["rule"] == "Fifth account"
    event = await event_of(shop.live, secret, answer)
    assert {"tor", "headless", "multi_account"} <= {signal["signal"] for signal in event["signals"]}
    assert event["document"]["evidence"]["tor"] == ["test_verdict"]
    assert event["velocity"]["visitor"]["accounts"] == {"1h": 5, "24h": 5, "30d": 5}
    later = (await visit(shop.live, key, report(), account_id="a")).json()
    assert (await event_of(shop.live, secret, later))["velocity"]["visitor"]["accounts"]["30d"] == 1


async def test_with_any_other_key_the_field_is_ignored(shop: Shop):
    _, staging = shop.live.issue(environment="staging")
    _, proxy = shop.live.issue("proxy")
    place = {"x-svc-visitor-ip": PUBLIC_ADDRESS}
    for key, headers in ((shop.public, {}), (staging, {}), (proxy, place)):
        for asked in ({"signals": ["tor"]}, {"signals": ["nothing"]}, 7):
            answer = succeeded(await visit(shop.live, key, report() | {"test": asked}, headers=headers))
            assert "triggers" not in answer or "tor" not in {one["signal"] for one in answer["triggers"]}


async def test_a_test_verdict_of_another_shape_is_refused(live: Live, key: str):
    before = live.contents()
    for asked, field, issue in (
        (7, "signals.test", "wrong_type"),
        ({"signals": "tor"}, "signals.test.signals", "wrong_type"),
        ({"signals": [1]}, "signals.test.signals", "wrong_type"),
        ({"signals": ["tor", "nothing"]}, "signals.test.signals", "unknown_signal"),
        ({"account_velocity": "5"}, "signals.test.account_velocity", "wrong_type"),
        ({"account_velocity": True}, "signals.test.account_velocity", "wrong_type"),
        ({"account_velocity": 65}, "signals.test.account_velocity", "invalid_value"),
        ({"account_velocity": -1}, "signals.test.account_velocity", "invalid_value"),
        ({"score": 5}, "signals.test.score", "unknown_field"),
    ):
        assert_invalid(await visit(live, key, report() | {"test": asked}), field, issue)
        assert live.contents() == before


# 13.4: literals, cost, warnings


async def test_a_ruleset_that_could_take_too_long_is_refused_at_the_first_rule_that_goes_beyond(shop: Shop):
    """Seven searches of a long tag are within 2 ms, and sixty are not; rules that are off cost nothing."""
    rules = [
        {"name": f"rule {number}", "condition": f'tag.matches("^a{number}.*z$")', "action": "review"}
        for number in range(60)
    ]
    before = shop.live.contents()
    refused = await shop.save(*rules)
    message = refused.json()["error"]["message"]
    (detail,) = refused.json()["error"]["details"]
    assert (refused.status_code, detail["issue"]) == (422, "too_expensive")
    assert detail["field"].endswith(".condition")
    position = int(detail["field"][6:-11])
    assert 2 < position < 60
    assert f"rules[{position}].condition: with this rule the ruleset could take 2." in message
    assert "line" not in message
    assert shop.live.contents() == before
    assert_invalid(await shop.ask("POST", "/rules/preview", json={"rules": rules}), detail["field"], "too_expensive")
    assert (await shop.save(*rules[:position])).status_code == 200
    assert (
        await shop.save(*rules[:position], *(rule | {"mode": "off"} for rule in rules[position:]))
    ).status_code == 200


@pytest.mark.parametrize(
    "condition",
    ['tag.matches("((a{0,30}){0,30})b")', "signals.all(a, signals.all(b, signals.all(c, a == b || b == c)))"],
)
async def test_a_condition_that_alone_is_too_expensive_is_refused_everywhere(shop: Shop, condition: str):
    assert_invalid(await shop.save(FIFTH | {"condition": condition}), "rules[0].condition", "too_expensive")
    shadow = await shop.save(FIFTH | {"condition": condition, "mode": "shadow"})
    assert_invalid(shadow, "rules[0].condition", "too_expensive")


async def test_a_rule_that_was_saved_before_there_was_a_budget_is_bounded_when_it_runs(shop: Shop):
    """Decisions 13.4: it stays in force, does not match beyond its share, and is counted as an error."""
    dear = Rule(id="rul_" + "d" * 20, name="Dear", condition='tag.matches("((a{0,30}){0,30})b")', action="block")
    cheap = Rule(id="rul_" + "c" * 20, name="Cheap", condition='tag.endsWith("a")', action="review")
    shop.keep(dear, cheap)
    answer = await act(shop.live, shop.public, tag="a" * 1024)
    assert answer["decision"]["rule"] == "Cheap"
    rows = (await shop.rules())["rules"]
    assert [(row["counts"]["matched_24h"], row["counts"]["errors_24h"]) for row in rows] == [(0, 1), (1, 0)]
    found = (await shop.rules())["rules"]
    assert_invalid(await shop.save(*found), "rules[0].condition", "too_expensive")


async def test_what_an_earlier_version_saved_and_this_one_cannot_read_fails_alone(shop: Shop):
    saved = [
        Rule(id=f"rul_{number:020}", name=text, condition=text, action="block")
        for number, text in enumerate(
            ("tag.matches(tag)", 'cidr(address.ip, "office")', 'velocity.visitor.accounts["7d"] > 1', "dyn(1) == 1")
        )
    ]
    shop.keep(*saved, Rule(id="rul_" + "c" * 20, name="All", condition="true", action="review"))
    answer = await act(shop.live, shop.public, tag="a")
    assert answer["decision"]["rule"] == "All"
    assert [row["counts"]["errors_24h"] for row in (await shop.rules())["rules"]] == [1, 1, 1, 1, 0]


async def test_a_rule_that_matches_every_event_is_saved_and_warned_of(shop: Shop):
    for condition, mode, is_warned_of in (
        ("true", "active", True),
        ("1 < 2 || score >= 90", "active", True),
        ('action == "log_in" || !false', "shadow", True),
        ("true", "off", False),
        ("false || 1 / 0 > 1", "active", False),
        ('!present("account.id")', "active", False),
        ('!in_list("blocked_visitors")', "active", False),
        ("score >= 90 && true", "active", False),
    ):
        rule = FIFTH | {"condition": condition, "mode": mode}
        preview = await shop.ask("POST", "/rules/preview", json={"rules": [rule]})
        for answer in (preview, await shop.save(rule)):
            assert succeeded(answer).get("warnings", []).count("rules[0] matches every event") == is_warned_of, (
                "without any event"
            )


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ('level == "hihg"', "no event has 'hihg' there, since it is not a level"),
        ('"vpn" in signals', 'it is a group of signals: write "vpn" in groups'),
        ('signals.exists(name, name == "vpn")', 'write "vpn" in groups'),
        ('visitor_kind in ["bot", "human"]', "no event has 'bot' there"),
        ('address.country == "UK"', "it is not a country by ISO 3166-1"),
        ('environment == "staging"', 'write "production"'),
        ('action == "Sign Up"', "it is not an action"),
        ('origin == "https://shop.example/"', "without a path"),
        ('velocity.visitor.accounts["30d"] > 64', "a count of velocity is 0 to 64"),
        ('velocity.visitor.accounts["30d"] in [3, 70]', "a count of velocity is 0 to 64"),
        ("now.getMonth() == 12", "getMonth() is 0 to 11, and January is 0"),
        ('now.getDayOfWeek("Europe/Paris") in [6, 7]', "getDayOfWeek() is 0 to 6, and Sunday is 0"),
        ("24 <= now.getHours()", "getHours() is 0 to 23, so that a comparison with 24 is the same for every event"),
        ("now.getDate() < 1", "getDate() is 1 to 31"),
        ('os == "windows"', "no event has 'windows' there: write \"Windows\""),
        ('os in ["Mac OS X", "Windows"]', 'write "macOS"'),
    ],
)
async def test_a_literal_that_no_event_can_have_is_saved_and_warned_of(shop: Shop, condition: str, says: str):
    rules = [FIFTH, FIFTH | {"name": "b", "condition": condition}]
    preview = await shop.ask("POST", "/rules/preview", json={"rules": rules})
    saved = await shop.save(*rules)
    for answer in (preview, saved):
        assert answer.status_code == 200, answer.text
        told = [each for each in answer.json()["warnings"] if each.startswith("rules[1]: line 1, column ")]
        assert len(told) == 1
        assert says in told[0]
    assert "warnings" not in (await shop.rules()), "they are about what is being saved"


async def test_what_was_read_can_be_sent_as_it_is(shop: Shop):
    """Decisions 13.1: `counts` is accepted and ignored."""
    read = (await shop.rules())["rules"]
    assert (await shop.ask("POST", "/rules/preview", json={"rules": read})).status_code == 200
    assert (await shop.save(*read)).status_code == 200


async def test_a_preview_counts_errors_and_says_why(shop: Shop):
    for tag in ("a", None, "b"):
        await act(shop.live, shop.public, **({} if tag is None else {"tag": tag}))
    rules = [{"name": "Tagged", "condition": 'tag == "a"', "action": "review"}]
    answer = (await shop.ask("POST", "/rules/preview", json={"rules": rules})).json()
    (row,) = answer["rules"]
    assert (row["matches"], row["errors"], row["error"]) == (1, 1, "the event has no tag")


async def test_a_preview_is_over_the_newest_events_of_all_environments_of_its_kind(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
):
    """Events of staging, which are older, do not take the place of those of development."""
    monkeypatch.setattr("svc.features.rules.routes.MAX_PREVIEWED", 4)
    keys = {name: shop.live.issue(environment=name)[1] for name in ("staging", "development")}
    for name in ("staging", "staging", "staging", "development", "staging", "development"):
        await act(shop.live, keys[name])
        shop.live.clock.advance(seconds=1)
    rules = [{"name": name, "condition": f'environment == "{name}"', "action": "review"} for name in keys]
    answer = (await shop.ask("POST", "/rules/preview?environment=test", json={"rules": rules})).json()
    assert (answer["events"], [row["matches"] for row in answer["rules"]]) == (4, [2, 2])


@pytest.mark.served(work_rate=4_000)
async def test_much_work_of_one_organization_is_limited_and_refused_before_it_is_done(live: Live):
    """Decisions 4 and 13.4: a price per rule, entry and previewed event in the organization's own bucket."""
    shop = Shop(live, live.issue()[1], "", live.issue("management")[1])
    neighbor = live.new_organization()
    _, key = live.issue("management", organization=neighbor.number)
    rules = [FIFTH | {"name": str(number)} for number in range(100)]
    statuses = [(await shop.ask("POST", "/rules/preview", json={"rules": rules})).status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 200, 429]
    refused = await shop.save(*rules)
    assert_error(refused, 429, "rate_limited")
    assert int(refused.headers["retry-after"]) >= 1
    lists = (await shop.ask("GET", "/lists")).json()["lists"]
    entries = {"entries": [{"value": "10.0.0.1"}]}
    (addresses,) = (each["id"] for each in lists if each["name"] == "blocked_addresses")
    assert (await shop.ask("POST", f"/lists/{addresses}/entries", json=entries)).status_code == 429
    gone = {"values": ["10.0.0.1"]}
    assert (await shop.ask("DELETE", f"/lists/{addresses}/entries", json=gone)).status_code == 429
    assert (await shop.ask("GET", "/rules")).status_code == 200, "what takes no time is not limited by it"
    path = f"/api/v1/management/organizations/{neighbor.id}/rules/preview"
    asked = await live.client.post(path, json={"rules": rules}, headers={"x-api-key": key})
    assert asked.status_code == 200, "another organization has its own"
    live.clock.advance(seconds=2)
    assert (await shop.save(*rules)).status_code == 200


async def test_rules_are_compiled_before_the_transaction_that_others_share(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    """The first identification after a save finds them compiled where it is recorded."""
    rules = [FIFTH | {"name": str(number), "condition": f"score > {number}"} for number in range(20)]
    assert (await shop.save(*rules)).status_code == 200
    known.cache_clear()
    found: list[bool] = []

    def noted(transaction: Any, owner: Any, facts: Any) -> Any:
        found.append(known.cache_info().currsize >= len(rules))
        return decide_event(transaction, owner, facts)

    monkeypatch.setattr("svc.features.identification.transaction.decide_event", noted)
    await act(shop.live, shop.public)
    assert found
    assert all(found)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/console/api/events/{event}/rules"),
        ("GET", "/console/api/standing"),
        ("PATCH", "/api/v1/management/organizations/{organization}/lists/{list}"),
        ("DELETE", "/api/v1/management/organizations/{organization}/lists/{list}"),
    ],
)
async def test_conditions_are_compiled_one_by_one_before_what_reads_all_of_them(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, method: str, path: str
):
    """A hundred long ones take the loop a second, which a process does for each revision that an analyst looks at."""
    rules = [FIFTH | {"name": str(number), "condition": f"score > {number} + 1000"} for number in range(20)]
    assert (await shop.save(*rules)).status_code == 200
    made = (await shop.ask("POST", "/lists", json={"name": "mine", "kind": "account"})).json()
    event = (await act(shop.live, shop.public))["request_id"]
    shop.live.clock.advance(seconds=1)
    if "events" in path:
        assert (await shop.save(FIFTH, revision=1)).status_code == 200
    store, within = shop.live.service.services.store, list[int]()

    def counting(job: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(snapshot: Any) -> Any:
            before = known.cache_info().misses
            outcome = job(snapshot)
            within.append(known.cache_info().misses - before)
            return outcome

        return run

    query, write_one = store.query, store.write_one
    monkeypatch.setattr(store, "query", lambda read, **how: query(counting(read), **how))
    monkeypatch.setattr(store, "write_one", lambda job, *to, **how: write_one(counting(job), *to, **how))
    known.cache_clear()
    for rule in FIRST.rules:  # which are in force where the row of others is not fetched yet
        known(rule.condition)
    response = await shop.live.client.request(
        method,
        path.format(event=event, organization=shop.live.organization.id, list=made["id"]),
        headers={"x-api-key": shop.management},
        json={"name": "yours"} if method == "PATCH" else None,
    )
    assert response.is_success, response.text
    assert known.cache_info().currsize >= len(rules)
    assert set(within) == {0}
