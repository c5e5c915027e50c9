"""The dbt project of `examples/dbt` over files that `svc export events --hourly --changes` wrote.

Its models say what the API says. DuckDB runs them as dbt would; dbt itself, with dbt-duckdb, where it is installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pytest
import trio
import yaml

from svc.features.feed.feed import HOLD_MS
from svc.kernel.values.timestamps import timestamp
from svc.world import World
from tests.spec.commands import run_beside
from tests.spec.responses import DRIVEN, TOO_LITTLE, visit
from tests.spec.test_changes import HOUR_MS, erase, update
from tests.support.live import live_service, report

pytestmark = pytest.mark.slow
PROJECT = Path(__file__).parents[1] / "examples" / "dbt"
ZONES = ("Etc/GMT+12", "Etc/GMT-14")
"""At any moment one of them has another day than UTC."""
MODELS = ("events", "visitors", "accounts_by_day")
COLUMNS = ("visitor_id", "account_id", "tag", "label", "label_reason", "suspect_score", "suspect_level", "ip_address")


class Shop(NamedTuple):
    folder: Path
    rows: dict[str, dict[str, Any]]
    """What `GET /events` has."""


async def populate(directory: Path, folder: Path) -> Shop:
    """Events of two hours, some of which change after their hour was written; one visitor is erased."""
    now_ms = World.real().now_ms()
    hour_ms = now_ms - now_ms % HOUR_MS - 5 * HOUR_MS
    async with live_service(directory, now_ms=hour_ms) as live:
        public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
        made: list[str] = []

        async def exported(hours: int) -> None:
            live.clock.now_ms = hour_ms + hours * HOUR_MS + HOLD_MS
            until = timestamp(hour_ms + hours * HOUR_MS)
            options = ("--format", "parquet", "--hourly", folder, "--changes", "--until", until)
            done = await run_beside("export", "events", live.organization.id, *options, *live.options)
            assert done.status == 0, done.err

        for device in (1, 2, 1, 3):
            response = await visit(live, public, report(device), account_id=f"user-{device % 2}", tag="cart")
            made.append(response.json()["request_id"])
            live.clock.now_ms += 1000
        await visit(live, public, report(4, **DRIVEN))
        await visit(live, public, TOO_LITTLE)
        await exported(1)
        await update(live, secret, made[0], label="fraud", label_reason="chargeback")
        await update(live, secret, made[0], account_id="user-9")
        await update(live, secret, made[2], tag=None)
        gone = (await live.client.get(f"/api/v1/events/{made[3]}", headers={"x-api-key": secret})).json()
        await erase(live, "visitor", gone["visitor_id"])
        await visit(live, public, report(2), account_id="user-0")
        await exported(2)
        page = await live.client.get("/api/v1/events", params={"limit": 200}, headers={"x-api-key": secret})
        rows = {row["request_id"]: row for row in page.json()["rows"]}
        assert made[3] not in rows
        assert len(rows) == 6
        return Shop(folder, rows)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    if not importlib.util.find_spec("pyarrow"):
        pytest.skip("no pyarrow: the extra `parquet`")
    folder = tmp_path_factory.mktemp("dbt")
    made = trio.run(populate, folder / "data", folder / "changes")
    assert len(list(made.folder.glob("changes-*.parquet"))) == 2
    return made


def compiled(name: str, source: str, folder: Path | None = None) -> str:
    """The SQL of a model or a test as dbt makes it, over the files of a folder or over tables."""
    project = yaml.safe_load((PROJECT / "dbt_project.yml").read_text())
    (svc, *_) = yaml.safe_load((PROJECT / "models" / "sources.yml").read_text())["sources"]
    variables = {**project["vars"], "svc_source": source}

    def of(schema: str, table: str) -> str:
        (found,) = [each for each in svc["tables"] if each["name"] == table] if schema == "svc" else [{}]
        location = found.get("config", {}).get("meta", {}).get("external_location")
        made = jinja2.Template(location).render(env_var=lambda *_: str(folder)) if location else None
        return made or f"{schema}.{table}"

    template = jinja2.Template((PROJECT / f"{name}.sql").read_text(), undefined=jinja2.StrictUndefined)
    return template.render(var=variables.__getitem__, ref=lambda model: model, source=of)


def assert_as_the_api_has_it(ask: Any, rows: dict[str, dict[str, Any]]) -> None:
    """`ask(sql)` returns rows of the models."""
    found = {str(row[0]): row[1:] for row in ask(f"select request_id, {', '.join(COLUMNS)} from events")}
    assert found == {name: tuple(row.get(column) for column in COLUMNS) for name, row in rows.items()}
    visits = Counter(row["visitor_id"] for row in rows.values() if row.get("visitor_id"))
    assert dict(ask("select visitor_id, events from visitors")) == visits
    assert ask("select sum(fraud_events), max(accounts) from visitors") == [(1, 2)]
    days = Counter((row["account_id"], row["occurred_at"][:10]) for row in rows.values() if row.get("account_id"))
    assert {(who, str(day)): n for who, day, n in ask("select account_id, day, events from accounts_by_day")} == days


@pytest.mark.parametrize("zone", ZONES)
def test_the_models_say_what_the_api_says_in_any_time_zone(shop: Shop, zone: str):
    duckdb = pytest.importorskip("duckdb")
    database = duckdb.connect()
    database.execute(f"set TimeZone = '{zone}'")
    for name in MODELS:
        database.execute(f"create table {name} as {compiled(f'models/{name}', 'changes', shop.folder)}")
    assert_as_the_api_has_it(lambda sql: database.execute(sql).fetchall(), shop.rows)
    for path in sorted((PROJECT / "tests").glob("*.sql")):
        assert database.execute(compiled(f"tests/{path.stem}", "changes", shop.folder)).fetchall() == []
    database.close()


@pytest.mark.skipif(shutil.which("dbt") is None, reason="dbt is not installed")
def test_dbt_builds_the_models_and_its_tests_pass(shop: Shop, tmp_path: Path):
    duckdb = pytest.importorskip("duckdb")
    project = shutil.copytree(
        PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("target", "logs", "*.duckdb")
    )
    given = {"SVC_CHANGES": str(shop.folder), "SVC_DBT_DATABASE": str(tmp_path / "svc.duckdb"), "TZ": ZONES[0]}
    switched_off = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1"}
    done = subprocess.run(
        ["dbt", "--no-version-check", "build", "--project-dir", str(project), "--profiles-dir", str(project)],
        env={**os.environ, **given, **switched_off}, cwd=project,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    assert {result["status"] for result in results} == {"success", "pass"}
    assert "deprecat" not in done.stdout.lower().replace("this version of dbt is deprecated", "")
    with duckdb.connect(str(tmp_path / "svc.duckdb"), read_only=True) as database:
        database.execute("set TimeZone = 'UTC'")
        assert_as_the_api_has_it(lambda sql: database.execute(sql).fetchall(), shop.rows)
