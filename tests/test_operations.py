"""What operators are given to watch the service with: the page of metrics, the alert rules and the dashboards.

Each names only what a real scrape exports, so that none of them watches something that is not there.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from svc.features.routes import ROUTES
from svc.features.schema import SCHEMA
from svc.http.pages.app import SITE
from svc.identify.model import RULE_ACTIONS, Level
from svc.identify.scoring.signals import CATALOG
from svc.kernel.work.store_watch import StoreState
from svc.serve.metrics.registry import METRICS
from tests.spec.automation import Automation
from tests.support.live import Live, live_service, report
from tests.support.promtool import promtool
from tests.test_docs import block

ROOT = Path(__file__).parents[1]
RULES = [
    rule
    for group in yaml.safe_load((ROOT / "ops" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]  # fmt: skip
DASHBOARDS = {path.name: json.loads(path.read_text()) for path in sorted((ROOT / "ops").glob("grafana-*.json"))}
DECISIONS = DASHBOARDS["grafana-decisions.json"]


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


PANELS = [panel for dashboard in DASHBOARDS.values() for panel in panels(dashboard)]
RUNBOOK = ROOT / "docs" / "runbook.md"
RUNBOOK_PAGE = "/docs/runbook.html"

PROMETHEUS_OWN = {"up"}
"""What Prometheus itself makes of a scrape."""
NAME = re.compile(r"\b(?:svc|process)_[a-z0-9_]+\b|\bup\b")
LABEL = re.compile(r"([a-z_]+)\s*(?:=~|!~|!=|=)\s*\"")


def expressions() -> Iterator[tuple[str, str]]:
    """(where it stands, the expression) of every rule and panel."""
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for dashboard in DASHBOARDS.values():
        for note in dashboard["annotations"]["list"]:
            yield note["name"], note["expr"]
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield variable["name"], variable["query"]["query"]


async def scraped(live: Live) -> dict[str, set[str]]:
    """Sample name -> its labels, of all that is exported; families without a value yet are there by name."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families((await live.service.metrics.expose()).decode()):
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}.get(family.type, [""])
        for suffix in suffixes:
            found.setdefault(family.name + suffix, set())
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


async def test_every_metric_in_an_alert_or_a_panel_is_exported(tmp_path: Path):
    async with live_service(tmp_path) as live:
        exported = await scraped(live)
    unknown = {
        (where, name)
        for where, expression in expressions()
        for name in NAME.findall(expression)
        if name not in exported and name not in PROMETHEUS_OWN
    }
    assert unknown == set()


def test_every_label_in_an_alert_or_a_panel_is_one_of_the_metric():
    labels = {metric.name: set(metric.labels) for metric in METRICS}
    wrong: list[tuple[str, str, str]] = []
    for where, expression in expressions():
        for name, selector in re.findall(r"\b(svc_[a-z0-9_]+)\{([^}]*)\}", expression):
            family = re.sub(r"_(total|bucket|count|sum)$", "", name)
            known = labels[family] | {"job", "instance", "le"}
            wrong += [(where, name, label) for label in LABEL.findall(selector) if label not in known]
    assert wrong == []


VALUES: dict[str, set[str]] = {
    "signal": set(CATALOG),
    "action": {*RULE_ACTIONS, "none"},
    "level": {*get_args(Level), "none"},
    "route": {route.operation_id for route in ROUTES} | {"unknown", "preflight"},
    "table": {table.name for table in SCHEMA.tables},
}
"""Label -> the values that it may have."""


def test_every_value_that_an_alert_or_a_panel_asks_for_is_one_that_the_label_may_have():
    wrong = [
        (where, label, asked)
        for where, expression in expressions()
        for label, operator, asked in re.findall(r"([a-z_]+)\s*(=~|!~|!=|=)\s*\"([^\"$]*)\"", expression)
        if label in VALUES
        and not any(re.fullmatch(asked if "~" in operator else re.escape(asked), value) for value in VALUES[label])
    ]
    alternatives = [
        (where, label, one)
        for where, expression in expressions()
        for label, asked in re.findall(r"([a-z_]+)\s*=~\s*\"([^\"$]*\|[^\"$]*)\"", expression)
        for one in asked.split("|")
        if label in VALUES and not any(re.fullmatch(one, value) for value in VALUES[label])
    ]
    assert wrong + alternatives == []


def test_every_metric_of_the_service_is_in_a_panel():
    """Otherwise nobody would see it."""
    shown = " ".join(target["expr"] for panel in PANELS for target in panel["targets"])
    unseen = {metric.name for metric in METRICS if not re.search(rf"\b{metric.name}(_total|_bucket)?\b", shown)}
    assert unseen == set()


async def test_the_listed_metrics_are_those_exported_each_once_with_a_description(tmp_path: Path):
    async with live_service(tmp_path) as live:
        families = [
            family
            for family in text_string_to_metric_families((await live.service.metrics.expose()).decode())
            if not family.name.startswith("process_")
        ]
    listed = [(metric.name, metric.kind, metric.help) for metric in METRICS]
    assert sorted(listed) == sorted((family.name, family.type, family.documentation) for family in families)
    assert len({metric.name for metric in METRICS}) == len(METRICS)


async def test_a_counter_of_which_each_rise_is_an_alert_is_there_before_the_first(tmp_path: Path):
    """Of a series that begins with 1 Prometheus sees no rise, unless the rule asks whether it is new."""
    async with live_service(tmp_path) as live:
        text = (await live.service.metrics.expose()).decode()
    there = {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
    unseen = [
        (rule["alert"], name)
        for rule in RULES
        for name in re.findall(r"increase\((svc_\w+)(?:\{[^}]*\})?\[\w+\]\)\)? > 0", rule["expr"])
        if name not in there and f"unless {name} offset" not in rule["expr"]
    ]
    assert unseen == []


def test_an_alert_has_a_severity_a_summary_and_instructions():
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in ("page", "ticket"), rule["alert"]
        assert rule["annotations"]["summary"]
        page, _, section = rule["annotations"]["runbook_url"].partition("#")
        assert (page, section) == ("{{ $externalLabels.svc_url }}" + RUNBOOK_PAGE, rule["alert"].lower())


@pytest.mark.skipif("runbook.html" not in SITE, reason="the documentation is not built: make docs")
async def test_the_link_of_every_alert_leads_to_its_section_of_the_page_that_the_service_shows(tmp_path: Path):
    async with live_service(tmp_path) as live:
        response = await live.client.get(RUNBOOK_PAGE, headers={"accept": "text/html"})
    assert response.status_code == 200
    assert [rule["alert"] for rule in RULES if f'id="{rule["alert"].lower()}"' not in response.text] == []


@pytest.mark.skipif(not RUNBOOK.exists(), reason="there is no runbook yet")
def test_every_alert_has_its_page_in_the_runbook():
    headings = re.findall(r"^#+ (.+)$", RUNBOOK.read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    assert {rule["alert"].lower() for rule in RULES} <= anchors


def test_the_runbook_leads_on_from_every_state_of_the_store_in_readyz():
    table = RUNBOOK.read_text().partition("| `readyz`")[2].partition("\n\n")[0]
    assert [state for state in ("full", *get_args(StoreState)) if f'"{state}"' not in table] == ["ok"]


def test_the_first_dashboard_begins_with_rate_errors_and_duration():
    first = panels(DASHBOARDS["grafana-dashboard.json"])
    assert [panel["title"] for panel in first[:3]] == [
        "Rate by route",
        "Errors by status and code",
        "Duration of identify",
    ]
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == len(DASHBOARDS)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_no_panels_of_a_dashboard_and_no_queries_of_a_panel_take_the_place_of_others(name: str):
    dashboard = DASHBOARDS[name]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in panels(dashboard):
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]), panel["title"]
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells


@pytest.mark.slow(4)
def test_every_rule_fires_when_its_trouble_is_there_and_none_on_a_good_day():
    check("test", "rules", ROOT / "ops" / "alerts-test.yml")


@pytest.mark.slow
async def test_promtool_accepts_the_rules_the_expressions_and_a_scrape(tmp_path: Path):
    rules = [
        {"record": f"r{number}", "expr": told(text)}
        for number, (_, text) in enumerate(expressions())
        if "label_" not in text
    ]
    panels = tmp_path / "panels.yml"
    panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    check("check", "rules", ROOT / "ops" / "alerts.yml", panels)
    (tmp_path / "prometheus.yml").write_text(block("monitoring.md", "yaml", "# prometheus.yml"))
    (tmp_path / "alerts.yml").write_bytes((ROOT / "ops" / "alerts.yml").read_bytes())
    check("check", "config", tmp_path / "prometheus.yml")
    async with live_service(tmp_path / "data") as live:
        text = await live.service.metrics.expose()
    check("check", "metrics", given=text)


QUIET = {"Reports that repeat, are forged or emulated", "Hidden networks", "Floods from one address", "Labels, an hour"}
"""Panels that show zeros after the traffic of `judge`."""


@pytest.mark.slow
async def test_every_panel_of_decisions_reviews_and_farms_shows_something_after_traffic(tmp_path: Path):
    """What a live service exports after such traffic grows for ten minutes; then each panel asks as Grafana does."""
    async with live_service(tmp_path / "data") as live:
        await judge(live)
        text = (await live.service.metrics.expose()).decode()
    series = [
        {"series": f"{sample.name}{{{labels(sample.labels)}}}", "values": grown(sample.name, sample.value)}
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]
    tests = [
        {"expr": expression, "eval_time": "10m", "exp_samples": [{"labels": "{}", "value": 1}]}
        for panel in panels(DECISIONS)
        for target in panel["targets"]
        for shown in [told(target["expr"])]
        for expression in [f"count({shown}) > bool 0" if panel["title"] in QUIET else f"sum({shown}) > bool 0"]
    ]
    file = tmp_path / "panels-test.yml"
    file.write_text(yaml.safe_dump({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}]}))
    check("test", "rules", file)


def labels(of: dict[str, str]) -> str:
    return ", ".join(
        f"{name}={json.dumps(value)}" for name, value in {**of, "instance": "svc:9464", "job": "svc"}.items()
    )


def grown(name: str, value: float) -> str:
    """Samples of ten minutes: those of counters rise by what they are, each minute."""
    rises = name.endswith(("_total", "_bucket", "_count", "_sum"))
    return f"0+{value:g}x10" if rises else f"{value:g}x10"


async def judge(live: Live) -> None:
    """Traffic of what analysts look at: rules of each action, in shadow mode and failing; reviews, labels, a bot."""
    admin = Automation(live)
    _, public = live.issue(environment="production")
    rules = [{"name": "Failing", "condition": 'account.id == "x"', "action": "block"}]
    rules += [{"name": "Shadow", "condition": "true", "action": "challenge", "mode": "shadow"}]
    rules += [{"name": each, "condition": f'action == "{each}"', "action": each} for each in RULE_ACTIONS]
    answer = await admin("PUT", "/rules", {"revision": 0, "rules": rules})
    assert answer.status_code == 200, answer.text
    first = (await live.identify(public, {**report(), "webdriver": True})).json()
    for account, action in enumerate(RULE_ACTIONS):
        live.clock.advance(seconds=1)
        assert (await live.identify(public, account_id=f"user-{account}", action=action)).status_code == 200
    opened = await admin("POST", "/reviews", {"request_id": first["request_id"]})
    assert opened.status_code == 201, opened.text
    closed = await admin("POST", f"/reviews/{opened.json()['review']['id']}/close", {"label": "fraud"})
    assert closed.status_code == 200, closed.text
    await admin("PUT", f"/events/{first['request_id']}/label", {"label": "fraud"})
    live.clock.advance(seconds=60)


def told(expression: str) -> str:
    """A panel's expression as Grafana sends it."""
    return expression.replace("$__rate_interval", "5m").replace("$instance", ".*")


def check(*arguments: Any, given: bytes = b"") -> None:
    """What promtool says of it is nothing."""
    done = subprocess.run(
        [promtool(), *map(str, arguments)], input=given, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
