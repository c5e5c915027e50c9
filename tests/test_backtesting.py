"""Back-testing as a person does it: export, replay, other weights, and two runs side by side."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from svc.features.exports.lines import COLUMNS, FILE_COLUMNS
from svc.features.lists.jobs import NewEntry, add_entries
from svc.features.lists.lists import first_list_id
from svc.features.rules.jobs import save_rules
from svc.features.rules.ruleset import Rule
from svc.world import World
from tests.spec.responses import BROWSER, DRIVEN, HEADLESS, visit
from tests.spec.test_rules import SET_LATER, Shop, change_later
from tests.support.live import Live, live_service, report, succeeded
from tests.support.process import run
from tests.test_replay import Program, program

PAGE = (Path(__file__).parents[1] / "docs/backtesting.md").read_text()

pytestmark = pytest.mark.slow(5)


async def populate(directory: Path) -> str:
    """Real reports with headers that matter: without them a replay would score less."""
    async with live_service(directory, now_ms=World.real().now_ms() - 3_600_000) as live:
        _, public = live.issue(environment="production")
        accounts = {0: "a", 2: "a", 4: "b"}
        for number, device in enumerate((1, 2, 1, 3, 1)):
            live.clock.now_ms += 60_000
            if number == 3:
                save_rule(live)
            named = {"account_id": accounts[number]} if number in accounts else {}
            assert (await visit(live, public, report(device), **named)).status_code == 200
            if number == 3:
                save_rule(live, revision=1, mode="off")
        for signals, headers in ((report(4, **DRIVEN), BROWSER), (report(5), HEADLESS)):
            live.clock.now_ms += 60_000
            assert (await visit(live, public, signals, headers=headers, tag="bot")).status_code == 200
        return live.organization.id


def save_rule(live: Live, revision: int = 0, **fields: Any) -> None:
    rule = Rule(id="rul_" + "9" * 20, name="Of then", condition="visitor.is_new", action="review", **fields)
    job = partial(save_rules, number=live.organization.number, kind="live", revision=revision, rules=[rule], now_ms=0)
    assert not [one for one in live.found.store.write_now([partial(job, saved_by="")]) if isinstance(one, Exception)]


class Exported:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.organization = trio.run(populate, self.data)
        self.file = folder / "events.jsonl.gz"
        arguments = ("export", "events", self.organization, "--data", str(self.data), "--output")
        run(*arguments, str(self.file), "--documents")
        run(*arguments, str(folder / "bare.jsonl"))

    def weights(self, content: Any) -> str:
        file = self.folder / "weights.json"
        file.write_text(json.dumps(content))
        return str(file)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return Exported(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def svc(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    return program(capsys, monkeypatch, tmp_path)


def test_a_replay_of_an_export_gives_the_same_verdicts(svc: Program, exported: Exported):
    """Headers included: `headless` is seen in the request's user agent alone."""
    found = svc.json("replay", str(exported.file), "--compare", str(exported.file))
    assert found["summary"]["levels"] == {"low": 5, "medium": 2}
    assert found["summary"]["signals"] == {"automation": 1, "headless": 1}
    comparison = found["comparison"]
    assert (comparison["compared"], comparison["changed"], comparison["score_raised"]) == (7, 0, 0)
    assert comparison["visitors"]["before"] == comparison["visitors"]["after"] == 5


def test_weights_are_compared_with_the_defaults(svc: Program, exported: Exported):
    file = exported.weights({"web": {"suspect_threshold": 50, "weights": {"automation": 100}}})
    found = svc.json("replay", str(exported.file), "--weights", file)
    preview = found["preview"]["web"]
    assert [(move["from"], move["to"], move["count"]) for move in preview["moves"]] == [
        ("medium", "high", 1),
        ("medium", "low", 1),
    ]
    assert found["summary"]["levels"] == {"low": 6, "high": 1}
    assert [effect["signal"] for effect in preview["by_signal"]] == ["automation"]
    text = svc("replay", str(exported.file), "--weights", file).out
    assert "medium -> high: 1" in text
    assert "automation 40 -> 100" in text


def test_two_runs_are_compared_with_direction_signal_and_examples(svc: Program, exported: Exported):
    first = exported.folder / "first.jsonl"
    svc("replay", str(exported.file), "--output", str(first))
    assert first.stat().st_mode & 0o777 == 0o600, "it has what an export has"
    file = exported.weights({"platforms": [whole_weights(automation=0)]})
    compared = ("replay", str(exported.file), "--weights", file, "--compare", str(first))
    found = svc.json(*compared, "--examples", "1")["comparison"]
    assert (found["compared"], found["changed"], found["score_lowered"]) == (7, 1, 1)
    assert found["moves"] == [{"from": "medium", "to": "low", "count": 1}]
    assert found["by_signal"] == [
        {"signal": "automation", "appeared": 0, "disappeared": 1, "reweighted": 0, "level_changed": 1}
    ]
    (example,) = found["examples"]
    assert example["because"] == [{"signal": "automation", "before": 40, "after": 0}]
    text = svc(*compared).out
    assert "7 identifications compared, 1 verdicts changed" in text
    assert "automation 40 -> 0" in text


def whole_weights(**weights: int) -> dict[str, Any]:
    """One platform as `GET risk-weights` responds."""
    return {
        "platform": "web",
        "scope": "default",
        "stored": False,
        "revision": 0,
        "suspect_threshold": 30,
        "weights": weights,
        "defaults": {},
        "signals": [],
        "vpn_weights_mode": "method",
        "residential_proxy_weights_mode": "method",
    }


RULES = [
    {"id": "rul_" + "1" * 20, "name": "Driven", "condition": 'in_list("machines")', "action": "block"},
    {"name": "Suspicious", "condition": "score >= 20", "action": "review"},
    {"name": "Second account", "condition": 'velocity.visitor.accounts["30d"] > 1', "action": "challenge"},
    {"name": "Seen", "condition": "!visitor.is_new", "action": "allow", "mode": "shadow"},
    {"name": "Aged", "condition": "account.age_days < 0", "action": "allow"},
]
MACHINES = {"id": "lst_x", "name": "machines", "kind": "tag", "entries": [{"value": "bot", "expires_at": None}]}


def test_rules_of_a_file_are_compared_with_what_was_decided(svc: Program, exported: Exported, tmp_path: Path):
    """With the lists of files, and with the accounts of the events: the export has one decision, by a rule of then."""
    (tmp_path / "rules.json").write_text(json.dumps({"revision": 7, "rules": RULES}))
    (tmp_path / "machines.json").write_text(json.dumps(MACHINES))
    given = ("replay", str(exported.file), "--rules", str(tmp_path / "rules.json"))
    listed = (*given, "--list", str(tmp_path / "machines.json"))
    found = svc.json(*listed, "--examples", "2")["decisions"]
    assert (found["compared"], found["changed"]) == (7, 4)
    assert (found["before"], found["after"]) == ({"none": 6, "review": 1}, {"none": 4, "block": 2, "challenge": 1})
    moves = [(move["from"], move["to"], move["count"]) for move in found["moves"]]
    assert moves == [("none", "block", 2), ("none", "challenge", 1), ("review", "none", 1)]
    counts = [(rule["rule"], rule["mode"], rule["before"], rule["after"], rule["errors"]) for rule in found["by_rule"]]
    assert counts == [
        ("Driven", "active", 0, 2, 0),
        ("Suspicious", "active", 0, 0, 0),
        ("Second account", "active", 0, 1, 0),
        ("Seen", "shadow", 0, 2, 0),
        ("Aged", "active", 0, 0, 2),
        ("Of then", "gone", 1, 0, 0),
    ]
    assert [(one.get("before"), one["after"]["rule"]) for one in found["examples"][1:]] == [(None, "Second account")]
    assert "after" not in found["examples"][0], "one of each kind, the oldest first"
    text = svc(*listed).out
    assert "7 identifications compared, 4 decisions changed" in text
    assert "none 6, review 1 -> none 4, block 2, challenge 1" in text
    assert "  rule Of then (gone): 1 -> 0" in text
    assert "none -> challenge by Second account" in text
    run_before = tmp_path / "before.jsonl"
    svc(*listed, "--output", str(run_before))
    (tmp_path / "rules.json").write_text(json.dumps({"revision": 7, "rules": RULES[1:]}))
    found = svc.json(*given, "--compare", str(run_before))["decisions"]
    assert [(move["from"], move["to"], move["count"]) for move in found["moves"]] == [("block", "review", 2)]


OTHERS = 'environment == "production" || platform == "web" || address.country == "GB"'
OF_THEN = [
    {"name": "Blocked", "condition": 'in_list("blocked_visitors")', "action": "block"},
    {"name": "Named", "condition": 'present("account.id") || tag == "later"', "action": "allow"},
    {"name": "Labeled", "condition": '"fraud" in labels.visitor', "action": "block"},
    {"name": "Others", "condition": OTHERS, "action": "review"},
]


async def populate_with_lists(directory: Path) -> str:
    """Two visits each of a visitor on a list, of one that names an account, and of one whose backend does so later."""
    async with live_service(directory, now_ms=World.real().now_ms() - 3_600_000) as live:
        _, public = live.issue(environment="production")
        _, secret = live.issue(kind="secret", environment="production")
        number = live.organization.number
        rules = [Rule(id=f"rul_{at:020}", **one) for at, one in enumerate(OF_THEN)]
        listed = NewEntry(succeeded(await visit(live, public, report(1)))["visitor_id"], "", None)
        list_id = first_list_id(number, "blocked_visitors")
        done = live.found.store.write_now(
            [
                partial(add_entries, number=number, list_id=list_id, entries=[listed], now_ms=0),
                partial(save_rules, number=number, kind="live", revision=0, rules=rules, now_ms=0, saved_by=""),
            ]
        )
        assert not [one for one in done if isinstance(one, Exception)]
        for device in (1, 2, 2, 3, 3):
            live.clock.now_ms += 60_000
            named = {"account_id": "a"} if device == 2 else {}
            seen = succeeded(await visit(live, public, report(device), **named))
            if device == 3:
                path, key = f"/api/v1/events/{seen['request_id']}", {"x-api-key": secret}
                set_later = {"account_id": "b", "tag": "later"}
                assert (await live.client.patch(path, json=set_later, headers=key)).status_code == 200
        return live.organization.id


def test_a_replay_with_the_rules_of_then_decides_as_they_did(svc: Program, tmp_path: Path):
    """A list has visitors by their ids, and a backend may set account and tag of an event after its response."""
    organization, data = trio.run(populate_with_lists, tmp_path / "data"), str(tmp_path / "data")
    file, rules, blocked = tmp_path / "events.jsonl", tmp_path / "rules.json", tmp_path / "blocked.json"
    rules.write_text(json.dumps({"revision": 0, "rules": OF_THEN}))
    blocked.write_text(run("list", "export", organization, "blocked_visitors", "--json", "--data", data).stdout)
    run("export", "events", organization, "--documents", "--output", str(file), "--data", data)
    given = ("replay", str(file), "--rules", str(rules), "--list", str(blocked))
    found = svc.json(*given)["decisions"]
    assert found["before"] == {"allow": 2, "review": 2, "block": 1, "none": 1}
    assert found["after"] == {"block": 2, "allow": 2, "review": 2}
    assert [(move["from"], move["to"], move["count"]) for move in found["moves"]] == [("none", "block", 1)]
    assert found["warnings"] == [
        "rules[2] reads labels.visitor: a replay has no labels",
        "rules[3] reads environment: it is development in a replay",
        "rules[3] reads address.country: the built-in data have none: give --network",
    ]
    text = svc(*given, "--network", str(tmp_path)).out
    assert "Warning: rules[2] reads labels.visitor: a replay has no labels." in text
    assert "--network" not in text


WITHOUT_LISTS = [one for one in SET_LATER if "in_list" not in one["condition"]]


async def populate_with_changes(directory: Path) -> str:
    """What a backend sets later of events of a page and of a server."""
    async with live_service(directory, now_ms=World.real().now_ms() - 3_600_000) as live:
        shop = Shop(live, live.issue(environment="production")[1], live.issue("secret", "production")[1], "")
        shop.keep(*[Rule(id=f"rul_{at:020}", **one) for at, one in enumerate(WITHOUT_LISTS)])
        await change_later(shop)
        return live.organization.id


def test_a_replay_decides_by_what_requests_said(svc: Program, tmp_path: Path):
    """What a backend set later is set later again."""
    organization = trio.run(populate_with_changes, tmp_path / "data")
    file, rules = tmp_path / "events.jsonl", tmp_path / "rules.json"
    run("export", "events", organization, "--documents", "--output", str(file), "--data", str(tmp_path / "data"))
    rules.write_text(json.dumps({"revision": 0, "rules": WITHOUT_LISTS}))
    found = svc.json("replay", str(file), "--rules", str(rules))["decisions"]
    assert found["before"] == found["after"] == {"review": 6, "allow": 6, "block": 2, "none": 2}
    assert found["changed"] == 0, found["examples"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"revision": 0,\n "rules": [}', "line 2, column 12: "),
        ("[]", "Expected `object`, got `array`"),
        ('{"revision": 0, "rules": [{"name": "a", "condition": "true"}]}', "$.rules[0]"),
        ({"condition": "score >"}, "rules[0].condition: line 1, column 8: "),
        ({"condition": 'in_list("vip")'}, "rules[0].condition: line 1, column 9: there is no list 'vip'"),
        ({"name": ""}, "rules[0].name: invalid_value"),
        (b"\xff", "rules.json is not UTF-8 text (line 1)"),
    ],
)
def test_a_file_of_rules_that_cannot_be_used_is_refused_with_the_place(
    svc: Program, exported: Exported, tmp_path: Path, content: Any, says: str
):
    file = tmp_path / "rules.json"
    if isinstance(content, dict):
        content = json.dumps({"revision": 0, "rules": [RULES[1] | content]})
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    ran = svc("replay", str(exported.file), "--rules", str(file), status=1)
    assert says in ran.err
    assert "rules.json" in ran.err
    assert ran.out == ""


def test_a_list_of_another_form_is_refused_and_options_that_do_not_go_together(
    svc: Program, exported: Exported, tmp_path: Path
):
    rules, file = tmp_path / "rules.json", tmp_path / "list.json"
    rules.write_text(json.dumps({"revision": 0, "rules": RULES[1:]}))
    given = ("replay", str(exported.file), "--rules", str(rules), "--list", str(file))
    for change, says in (
        ({"kind": "agent"}, "$.kind"),
        ({"name": "trusted_visitors"}, "'trusted_visitors' is not a name for a list of kind tag"),
        ({"kind": "address"}, "entries[0] is not an entry of kind address: bot"),
        ({"entries": [{"value": "a", "expires_at": "soon"}]}, "entries[0]"),
    ):
        file.write_text(json.dumps(MACHINES | change))
        assert says in svc(*given, status=1).err
    assert "--list goes with --rules" in svc("replay", str(exported.file), "--list", str(file), status=2).err
    refused = svc(*given[:4], "--data", str(tmp_path / "data"), status=2)
    assert "--rules goes without --data" in refused.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "suspect_threshold"),
        ({"desktop": {}}, "desktop"),
        ({"web": {"threshold": 5}}, "threshold"),
        ({"web": {"weights": {"color": 5}}}, "weights.color (unknown_signal)"),
        ({"web": {"suspect_threshold": 0}}, "suspect_threshold (out_of_range)"),
    ],
)
def test_invalid_weights_are_rejected_with_the_reason(svc: Program, exported: Exported, content: Any, says: str):
    ran = svc("replay", str(exported.file), "--weights", exported.weights(content), status=1)
    assert says in ran.err
    assert ran.out == ""


def test_an_event_that_could_not_be_exported_is_skipped(svc: Program, exported: Exported, tmp_path: Path):
    """Decisions 17.5: an export has a row for it."""
    file, (first, *others) = tmp_path / "events.jsonl", lines_of(exported.file)
    unreadable = json.dumps({"request_id": json.loads(first)["request_id"], "error": "unreadable"})
    file.write_text("\n".join((unreadable, *others)))
    found = svc.json("replay", str(file), "--compare", str(file))
    summary = found["summary"]
    assert (summary["reports"], summary["without_report"], summary["refused_lines"]) == (6, 1, [])
    assert (found["comparison"]["compared"], found["comparison"]["only_before"]) == (6, 0)


def lines_of(file: Path) -> list[str]:
    return gzip.decompress(file.read_bytes()).decode().splitlines()


def test_an_impossible_comparison_or_replay_is_reported(svc: Program, exported: Exported, tmp_path: Path):
    other, bare = tmp_path / "other.jsonl", exported.folder / "bare.jsonl"
    other.write_text("nonsense\n")
    assert "svc export events" in svc("replay", str(exported.file), "--compare", str(other), status=1).err
    other.write_text(bare.read_text().replace('"request_id":"0', '"request_id":"1'))
    assert "none of these" in svc("replay", str(exported.file), "--compare", str(other), status=1).err
    assert "--documents" in svc("replay", str(bare), status=1).err
    weights = exported.weights({"web": {}})
    refused = svc("replay", str(exported.file), "--weights", weights, "--data", str(tmp_path / "data"), status=2)
    assert "--weights" in refused.err
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes(exported.file.read_bytes()[:-20])
    assert "torn.jsonl.gz" in svc("replay", str(torn), status=1).err


def test_custom_reports_are_compared_line_by_line(svc: Program, tmp_path: Path):
    reports, first = tmp_path / "reports.jsonl", tmp_path / "first.jsonl"
    lines = [{"signals": report(1)}, {"signals": report(2, **DRIVEN)}, {"signals": []}, {"signals": report(1)}]
    reports.write_text("".join(json.dumps(line) + "\n" for line in lines))
    svc("replay", str(reports), "--output", str(first), status=1)
    lines[3] = {"signals": report(3)}
    reports.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = svc("replay", str(reports), "--compare", str(first), "--json", status=1)
    found = json.loads(ran.out)["comparison"]
    assert (found["compared"], found["changed"]) == (3, 1)
    assert found["visitors"] | {"before": 2, "after": 3, "known_to_new": 1, "separated": 1} == found["visitors"]
    assert found["examples"][0]["link"] == "separated"


def test_the_commands_of_the_back_testing_page_run(exported: Exported, tmp_path: Path):
    (weights,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "weights.json").write_text(weights)
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    script = "".join(blocks).replace("ORG", exported.organization).replace("account 4711", "bot")
    outside = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    programs = {"PATH": f"{Path(sys.executable).parent}:{outside['PATH']}", "SVC_DATA": str(exported.data)}
    done = subprocess.run(
        ["bash", "-eu", "-c", script],
        cwd=tmp_path,
        env={**outside, **programs},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "medium -> high: 1" not in done.stdout
    assert "medium -> low: 1" in done.stdout, "`headless` weighs less than the threshold of the page"
    assert (tmp_path / "events.csv").read_text().startswith(",".join(COLUMNS[:3]))


def test_the_page_names_the_csv_columns_in_their_order():
    listed = PAGE[PAGE.index("The columns of CSV") :].partition("\n\n")[0]
    assert tuple(re.findall(r"`(\w+)`", listed)) == FILE_COLUMNS
