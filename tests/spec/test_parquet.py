"""`svc export events` as Parquet and by the hour: beside the API, event by event; recipes; runs that are killed."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from svc.features.exports.hourly import HOLD_MS, HOUR_MS
from svc.features.exports.lines import FILE_KINDS
from svc.kernel.values.timestamps import timestamp
from svc.world import World
from tests.spec.commands import ROOT, Run, run_beside
from tests.spec.responses import DRIVEN, PROGRAM, TOO_LITTLE, visit
from tests.spec.test_clocks import set_back
from tests.spec.test_erasure import marked
from tests.support.event_columns import as_columns
from tests.support.live import live_service, options_of, report
from tests.support.process import start

pytestmark = pytest.mark.slow
needs_pyarrow = pytest.mark.skipif(not importlib.util.find_spec("pyarrow"), reason="no pyarrow: the extra `parquet`")
HOURS = 5
STEP_S = 0.03
"""Between the ages at which runs are killed: one that is not takes some tenths of a second."""


class Shop:
    """An organization whose service has ended, with events of some hours."""

    def __init__(self, directory: Path, organization: str, rows: dict[str, dict[str, Any]]) -> None:
        self.directory, self.organization, self.rows = directory, organization, rows

    def export(self, run: Run, *options: object) -> Any:
        return run("export", "events", self.organization, *options, *options_of(self.directory))


async def populate(directory: Path) -> Shop:
    now_ms = World.real().now_ms()
    start_ms = now_ms - now_ms % HOUR_MS - (HOURS + 1) * HOUR_MS
    async with live_service(directory, now_ms=start_ms) as live:
        public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
        for hour in range(HOURS):
            for signals, given in (
                (marked("a"), {"tag": "cart\0\x1b", "account_id": "user-7"}),
                (report(2, **DRIVEN), {"tag": "=1"}),
                (report(3), {"headers": PROGRAM}),
                (TOO_LITTLE, {}),
            ):
                if hour != 2:  # one without events
                    assert (await visit(live, public, signals, **given)).status_code == 200
                live.clock.now_ms += HOUR_MS // 4
        page = await live.client.get("/api/v1/events", params={"limit": 200}, headers={"x-api-key": secret})
        rows = {row["request_id"]: row for row in page.json()["rows"]}
        assert len(rows) == 4 * (HOURS - 1)
        return Shop(directory, live.organization.id, rows)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, engine: str) -> Shop:
    return trio.run(populate, tmp_path_factory.mktemp("shop") / "data")


def parquet_rows(*paths: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    rows = [row for path in paths for row in parquet.read_table(path).to_pylist()]
    for row in rows:
        row["occurred_at"] = row["occurred_at"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return rows


@needs_pyarrow
def test_parquet_has_what_the_api_has_event_by_event(shop: Shop, run: Run, tmp_path: Path):
    path = tmp_path / "events.parquet"
    assert shop.export(run, "--format", "parquet", "--output", path).status == 0
    assert path.stat().st_mode & 0o777 == 0o600
    rows = parquet_rows(path)
    assert {row["request_id"]: row for row in rows} == {
        name: as_columns(row) | {"error": None} for name, row in shop.rows.items()
    }
    assert len(rows) == len(shop.rows)
    assert list(rows[0]) == list(FILE_KINDS)


@needs_pyarrow
def test_an_hour_is_a_file_and_runs_that_were_killed_go_on(shop: Shop, run: Run, tmp_path: Path):
    """Whenever a run is killed: each event is once in the files, and an hour is not written twice."""
    folder = tmp_path / "hours"
    command = ("export", "events", shop.organization, "--format", "parquet", "--hourly", folder)
    killed = 0
    for attempt in range(12):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = start(*command, *options_of(shop.directory), **quiet)
        try:
            process.wait(STEP_S * (1 + attempt))
        except subprocess.TimeoutExpired:
            process.kill()
            killed += 1
            process.wait()
    assert killed
    assert shop.export(run, "--format", "parquet", "--hourly", folder).status == 0
    paths = sorted(folder.glob("*.parquet"))
    assert len(paths) == HOURS - 1, "none for an hour without events"
    rows = parquet_rows(*paths)
    assert sorted(row["request_id"] for row in rows) == sorted(shop.rows)
    for path in paths:
        assert {row["occurred_at"][:13] for row in parquet_rows(path)} == {path.name[7:20]}
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".partial") == []
    for path in paths:
        path.unlink()  # as one that uploads them does
    again = shop.export(run, "--format", "parquet", "--hourly", folder)
    assert (again.status, again.out) == (0, "")


def test_hours_are_lines_of_json_as_well_and_none_is_written_before_it_is_over(shop: Shop, run: Run, tmp_path: Path):
    folder = tmp_path / "hours"
    assert shop.export(run, "--hourly", folder).status == 0
    lines = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    assert [line["request_id"] for line in lines] == [
        row["request_id"] for row in sorted(shop.rows.values(), key=lambda row: row["occurred_at"])
    ]
    next_ms = json.loads((folder / ".svc-export.json").read_text())["next_hour_ms"]
    assert next_ms <= World.real().now_ms() - HOLD_MS


async def test_an_event_that_is_stored_after_its_hour_was_written_is_in_a_later_file_once(directory: Path):
    """Beside the service, whose clock goes back: as on a node that is behind, or for a request that hung."""
    now_ms, folder = World.real().now_ms(), directory / "hours"
    hour_ms = now_ms - now_ms % HOUR_MS - 4 * HOUR_MS
    behind_ms = hour_ms + HOUR_MS // 2  # by more than an hour nothing is stored (17.3)
    async with live_service(directory / "data", now_ms=hour_ms) as live:
        _, public = live.issue(environment="production")

        async def visited() -> str:
            return (await visit(live, public)).json()["request_id"]

        async def exported(*options: str) -> None:
            command = ("export", "events", live.organization.id, "--hourly", folder, *options)
            assert (await run_beside(*command, *live.options)).status == 0

        first = await visited()
        live.clock.now_ms = hour_ms + HOUR_MS + 1
        second = await visited()
        await exported("--until", timestamp(hour_ms + HOUR_MS))
        live.clock.now_ms = behind_ms
        late = await visited()
        await exported()
        live.clock.now_ms = behind_ms
        await visited()  # which is in the file of the hour that is now
        await exported()
    files = {
        path.name[7:20]: [json.loads(line)["request_id"] for line in path.read_text().splitlines()]
        for path in folder.glob("*.jsonl")
    }
    assert files == {timestamp(hour_ms)[:13]: [first], timestamp(hour_ms + HOUR_MS)[:13]: [late, second]}


async def test_events_behind_a_clock_that_was_ahead_wait_for_the_next_file_alone(directory: Path):
    now_ms, folder = World.real().now_ms(), directory / "hours"
    async with live_service(directory / "data", now_ms=now_ms) as live:
        public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
        live.clock.now_ms = now_ms + 5 * HOUR_MS
        made = [(await visit(live, public)).json()["request_id"]]
        await set_back(live, now_ms)
        query = {"order": "oldest"}
        page = await live.client.get("/api/v1/events", params=query, headers={"x-api-key": secret})
        assert len(page.json()["rows"]) == 1, "the feed is closed up to that clock"
        made.append((await visit(live, public)).json()["request_id"])
        for _ in range(2):
            command = ("export", "events", live.organization.id, "--hourly", folder)
            assert (await run_beside(*command, *live.options)).status == 0
    (path,) = folder.glob("*.jsonl")
    assert [json.loads(line)["request_id"] for line in path.read_text().splitlines()] == made


def test_a_folder_of_a_program_with_fewer_filters_goes_on(shop: Shop, run: Run, tmp_path: Path):
    state = tmp_path / ".svc-export.json"
    assert shop.export(run, "--hourly", tmp_path, "--level", "low").status == 0
    before = json.loads(state.read_text())
    assert before["filters"][-2:] == [None, None]
    state.write_text(json.dumps(before | {"filters": before["filters"][:-2]}))
    assert shop.export(run, "--hourly", tmp_path, "--level", "low").status == 0
    shop.export(run, "--hourly", tmp_path).assert_refused("has other events")


def test_what_cannot_be_exported_is_said(shop: Shop, run: Run, tmp_path: Path):
    folder = tmp_path / "hours"
    assert shop.export(run, "--hourly", folder).status == 0
    lock = folder / ".svc-export.lock"
    assert lock.stat().st_mode & 0o777 == 0o600, "nobody else can hold it"
    lock.unlink()
    lock.symlink_to(tmp_path / "of-somebody")
    shop.export(run, "--hourly", folder).assert_refused("symbolic link")
    assert not (tmp_path / "of-somebody").exists()
    lock.unlink()
    shop.export(run, "--hourly", folder, "--format", "csv").assert_refused("has other events")
    shop.export(run, "--hourly", folder, "--level", "high").assert_refused("has other events")
    for wrong in (
        ("--follow",),
        ("--hourly", folder, "--label", "fraud"),
        ("--hourly", folder, "--rule", "rul_" + "0" * 20),
        ("--hourly", folder, "--output", "x"),
        ("--hourly", folder, "--documents"),
    ):
        shop.export(run, *wrong).assert_usage()
    shop.export(run, "--format", "parquet", "--output", "x.parquet.gz").assert_usage()
    (folder / ".svc-export.json").write_text("?")
    shop.export(run, "--hourly", folder).assert_refused("cannot be read")


def test_without_pyarrow_parquet_is_refused_with_what_to_install(
    shop: Shop, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "events.parquet"
    shop.export(run, "--format", "parquet", "--output", path).assert_refused("svc-visitor-id[parquet]")
    assert not path.exists()


@needs_pyarrow
@pytest.mark.parametrize("library", ["duckdb", "pandas", "polars", "chdb"])
def test_the_recipes_of_the_documentation_run(shop: Shop, run: Run, tmp_path: Path, library: str):
    """As they stand on the page, in a process of their own; also where the last hour is by a version that has another
    column.
    """
    if not importlib.util.find_spec(library):
        pytest.skip(f"no {library}")
    assert shop.export(run, "--format", "parquet", "--hourly", tmp_path / "hours").status == 0
    pyarrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    newest = parquet.read_table(max((tmp_path / "hours").glob("*.parquet")))
    later = newest.append_column("later", pyarrow.array(["x"] * len(newest)))
    parquet.write_table(later, tmp_path / "hours" / "events-9999-01-01T00Z.parquet")
    page = (ROOT / "docs/warehouse.md").read_text()
    (recipe,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if f"import {library}" in block)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    program = recipe.replace("/srv/events", str(tmp_path / "hours"))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert str(len(shop.rows) + len(newest)) in done.stdout, done.stdout
