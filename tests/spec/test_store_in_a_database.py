"""The command line on a store in PostgreSQL: `--store URL`, `SVC_STORE`, and `svc store move` there and back."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svc.kernel.store.tables import META
from svc.world import elapsed_s, pause
from tests.spec.commands import ROOT, Ran, Run
from tests.store.release import unpack
from tests.store.test_move import NEWEST
from tests.support.postgresql import Cluster
from tests.support.process import start

pytestmark = pytest.mark.only_on(None, "its commands name their stores")


class Database:
    """A database that may hold a store, and how to name it."""

    def __init__(self, cluster: Cluster, name: str, run: Run, data: Path) -> None:
        self.cluster, self.name, self._run, self.data = cluster, name, run, data
        self.url = str(cluster.url(name))

    def svc(self, *arguments: object) -> Ran:
        return self._run(*arguments, "--data", self.data, "--store", self.url)


@pytest.fixture
def there(cluster: Cluster, database: str, run: Run, tmp_path: Path) -> Database:
    """An empty one."""
    return Database(cluster, database, run, tmp_path / "data")


@pytest.fixture
def moved(there: Database, run: Run, tmp_path: Path) -> Database:
    """One with something of everything, and the pepper that belongs to it."""
    released = unpack(NEWEST, tmp_path / "released").directory
    run("store", "move", "--from", released, "--to", there.url, "--json").json  # noqa: B018  it succeeded
    there.data.mkdir()
    (released / "pepper").rename(there.data / "pepper")
    return there


def test_organizations_and_keys_are_created_in_a_database(there: Database):
    organization = there.svc("org", "create", "Shop", "--credit-usd", "5", "--json").json["organization_id"]
    issued = there.svc("key", "issue", organization, "--kind", "secret", "--environment", "production", "--json").json
    listed = there.svc("key", "list", organization, "--json").json["keys"]
    assert [row["id"] for row in listed] == [issued["key"]["id"]]
    assert there.svc("org", "show", organization, "--json").json["balance_usd"] == "5"
    assert there.svc("audit", "--org", organization, "--json").status == 0
    assert there.svc("check", "--json").json["ok"]
    assert not (there.data / "store").exists()
    assert (there.data / "pepper").stat().st_mode & 0o777 == 0o600


def test_a_development_service_never_uses_the_database_of_a_setting(
    there: Database, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Its organization, keys and samples belong in a directory of its own."""
    monkeypatch.setenv("SVC_STORE", there.url)
    refused = run("dev", "--data", tmp_path / "dev")
    assert refused.status == 1
    assert "`svc dev` keeps its store in a data directory: unset SVC_STORE" in refused.err
    assert not (tmp_path / "dev").exists()
    assert "holds no store" in there.svc("inspect", "rows", "organizations").err


def test_the_store_setting_also_names_the_database(there: Database, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SVC_STORE", there.url)
    created = run("org", "create", "Shop", "--data", there.data, "--json").json
    monkeypatch.setenv("SVC_STORE", "postgresql://nobody@127.0.0.1:1/none")
    listed = there.svc("org", "list", "--json").json["organizations"]
    assert listed[0]["organization_id"] == created["organization_id"], "the option is stronger"
    run("org", "list", "--data", there.data).assert_refused("127.0.0.1", "refused")


def test_a_store_in_a_database_can_be_inspected_and_exported(moved: Database):
    assert moved.svc("check", "--json").json == {"ok": True, "violations": 0, "first": []}
    organization = moved.svc("org", "list", "--json").json["organizations"][0]["organization_id"]
    rows = moved.svc("inspect", "rows", "organizations", "--json")
    assert rows.status == 0, rows.err
    assert json.loads(rows.out.splitlines()[0])["table"] == "organizations"
    tables = moved.svc("inspect", "tables", "--json").json
    assert tables["database_bytes"] > 0
    assert {row["table"]: row["rows"] for row in tables["tables"]}["events"] > 0
    assert "pages" not in tables["tables"][0]
    visitor = json.loads(moved.svc("inspect", "rows", "visitor_ids", "--json").out.splitlines()[0])["key"]["visitor_id"]
    assert visitor in moved.svc("export", "visitor", organization, visitor).out
    events = moved.svc("export", "events", organization)
    assert (events.status, events.out) == (0, ""), "they are older than events are kept"
    moved.svc("inspect", "readers").assert_refused("pg_stat_activity")


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("delete from svc.documents", "request "),
        ("update svc.visitors set value = value || '\\x00'", "fails its check"),
    ],
)
def test_a_corrupt_row_and_a_violated_rule_are_found_in_a_database(moved: Database, sql: str, found: str):
    moved.cluster.execute(sql, moved.name)
    checked = moved.svc("check", "--json")
    assert checked.status == 1
    assert any(found in sentence for sentence in json.loads(checked.out)["first"])


def test_indexes_are_rebuilt_in_a_database(moved: Database):
    moved.cluster.execute("delete from svc.event_tail", moved.name)
    assert moved.svc("check").status == 1
    assert moved.svc("store", "rebuild-indexes", "--json").json["events"] > 0
    assert moved.svc("check", "--json").json["ok"]


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (("backup", "copies"), "pg_dump"),
        (("restore", "copies"), "its own tools"),
        (("store", "compact"), "VACUUM"),
    ],
)
def test_commands_for_files_name_the_alternative_for_databases(
    there: Database, run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], instead: str
):
    monkeypatch.setenv("SVC_STORE", there.url)
    run(*command, "--data", there.data).assert_refused("names a database", instead)
    assert not there.data.exists()


def test_a_database_without_a_store_is_rejected(there: Database, cluster: Cluster, run: Run):
    there.svc("org", "list").assert_refused("holds no store", "svc org create")
    there.data.mkdir()
    (there.data / "pepper").write_bytes(bytes(32))
    there.svc("check").assert_refused("holds no store")
    run("org", "list", "--data", there.data, "--store", cluster.url("missing")).assert_refused("create the database")


def test_a_database_of_another_program_is_rejected(there: Database):
    there.cluster.execute("create schema svc; create table svc.customers (id int)", there.name)
    there.svc("org", "create", "Shop").assert_refused("another program")
    assert there.cluster.execute("select tablename from pg_tables where schemaname = 'svc'", there.name) == [
        ("customers",)
    ]


@pytest.mark.parametrize(("version", "says"), [(99, "run the newer program"), (1, "start `svc serve`")])
def test_a_store_of_another_version_is_rejected(moved: Database, version: int, says: str):
    key = META.key.pack("version")
    value = META.encode(key, version).hex()
    moved.cluster.execute(f"update svc.meta set value = '\\x{value}' where key = '\\x{key.hex()}'", moved.name)
    moved.svc("org", "list").assert_refused(says)
    assert moved.svc("check").status == 1


def test_a_store_with_a_missing_table_is_rejected(moved: Database):
    moved.cluster.execute("drop table svc.ledger", moved.name)
    moved.svc("org", "list").assert_refused("lost the table ledger")
    moved.svc("check").assert_refused("lost a table")


def test_the_pepper_of_another_store_is_rejected(moved: Database):
    pepper = moved.data / "pepper"
    pepper.write_bytes(bytes(32))
    moved.svc("org", "list").assert_refused("is not the pepper")
    moved.svc("check").assert_refused("is not the pepper")
    pepper.unlink()
    moved.svc("org", "list").assert_refused("is missing")
    assert not pepper.exists(), "a new one would end every key"


def test_a_password_is_read_from_a_file_and_rejected_in_the_url(
    there: Database, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    secret = there.url.replace("//svc@", "//svc:hunter2@")
    refused = run("org", "create", "Shop", "--data", there.data, "--store", secret)
    refused.assert_refused("SVC_STORE_PASSWORD_FILE")
    assert "hunter2" not in refused.err
    monkeypatch.setenv("SVC_STORE_PASSWORD_FILE", str(tmp_path / "password"))
    there.svc("org", "create", "Shop").assert_refused("cannot be read")
    (tmp_path / "password").write_text("hunter2\n")
    assert there.svc("org", "create", "Shop").status == 0


def test_settings_with_a_password_in_the_url_are_rejected_before_they_are_shown(run: Run, tmp_path: Path):
    file = tmp_path / "svc.toml"
    file.write_text('store = "postgresql://svc:hunter2@db/svc"\n')
    for command in (("config", "check", file), ("serve", "--print-config", "--config", file)):
        refused = run(*command)
        assert refused.status == 1
        assert "SVC_STORE_PASSWORD_FILE" in refused.out + refused.err
        assert "hunter2" not in refused.out + refused.err
    file.write_text('store = "mysql://db/svc"\n')
    assert "postgresql://USER@HOST" in run("config", "check", file).out


def test_the_doctor_checks_the_database(moved: Database, run: Run, monkeypatch: pytest.MonkeyPatch):
    def found() -> dict[str, str]:
        checks = json.loads(run("doctor", "--data", moved.data, "--json").out)["checks"]
        return next(check for check in checks if check["check"] == "store")

    monkeypatch.setenv("SVC_STORE", moved.url)
    assert found()["status"] == "ok"
    assert moved.url in found()["says"]
    (moved.data / "pepper").write_bytes(bytes(32))
    assert "another store" in found()["says"]
    monkeypatch.setenv("SVC_STORE", "postgresql://svc@127.0.0.1:1/svc")
    assert found()["status"] == "problem"
    assert "docs/postgresql.md" in found()["do"]


def test_a_standby_can_be_read_and_not_written(there: Database):
    there.svc("org", "create", "Shop")
    there.cluster.execute(f"alter database {there.name} set default_transaction_read_only = on")
    there.svc("org", "create", "Shop").assert_refused("read-only standby")
    assert there.svc("check").status == 0


def test_a_move_reports_its_result_and_the_next_step(moved: Database, run: Run, tmp_path: Path):
    back = tmp_path / "back"
    done = run("store", "move", "--from", moved.url, "--to", back)
    assert done.status == 0, done.err
    assert "rows_per_s" in done.out
    assert f"put the pepper into {back}/pepper" in done.out
    run("org", "list", "--data", back).assert_refused("pepper")
    (back / "pepper").write_bytes((moved.data / "pepper").read_bytes())
    assert run("check", "--data", back, "--json").json["ok"]
    run("store", "move", "--from", moved.url, "--to", back).assert_refused("holds a store already")
    run("store", "move", "--from", tmp_path / "none", "--to", moved.url).assert_refused("holds no data")
    run("store", "move", "--from", back, "--to", back).assert_refused("two places")
    run("store", "move", "--from", back, "--to", "mysql://db/x").assert_refused("mysql")


@pytest.mark.slow
def test_a_killed_move_continues_where_it_stopped(there: Database, run: Run, tmp_path: Path):
    """Killed while the database makes it wait, so that it is in the middle whatever the machine does."""
    released = unpack(NEWEST, tmp_path / "released").directory
    there.cluster.execute(
        "create schema svc; create table svc.writers (organization int4 primary key, turn int8 not null);"
        "insert into svc.writers values (0, 0);"
        "create function svc.slow() returns trigger language plpgsql as $$ begin"
        " if new.turn = 12 then perform pg_sleep(600); end if; return new; end $$;"
        "create trigger slow before update on svc.writers for each row execute function svc.slow()",
        there.name,
    )
    arguments = ("store", "move", "--from", released, "--to", there.url, "--json")
    process = start(*arguments, cwd=ROOT)
    try:
        wait_until(lambda: there.cluster.execute("select 1 from pg_stat_activity where wait_event = 'PgSleep'") != [])
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    there.cluster.execute(
        f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '{there.name}' "
        "and pid <> pg_backend_pid()"
    )
    there.cluster.execute("drop trigger slow on svc.writers", there.name)
    there.svc("org", "create", "Shop").assert_refused("nothing says of which version")
    done: Any = run(*arguments).json
    assert 0 < done["resumed_rows"] < done["rows"]


def wait_until(condition: Callable[[], bool]) -> None:
    ends_at = elapsed_s() + 60
    while not condition():
        assert elapsed_s() < ends_at
        pause(0.02)
