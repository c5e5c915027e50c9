"""`svc sql`: the table `svc.sql_events` beside the API, event by event; erasure, retention, readers, repair."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from psycopg import pq

from svc.features.retention.sweeper import sweep
from svc.features.rules.jobs import save_rules
from svc.features.rules.ruleset import Rule
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.timestamps import read_timestamp, timestamp
from tests.spec.automation import Automation
from tests.spec.commands import ROOT, Ran, run_beside
from tests.spec.responses import BROWSER, DRIVEN, PROGRAM, TOO_LITTLE, visit
from tests.spec.test_erasure import marked
from tests.support.effort import effort
from tests.support.event_columns import as_columns
from tests.support.live import Live, live_service, report, succeeded
from tests.support.pgbouncer import pgbouncer, program
from tests.support.postgresql import Cluster, shared_cluster
from tests.support.serving_postgresql import open_served, url_of
from tests.test_dbt import compiled

pytestmark = [pytest.mark.slow(4), pytest.mark.only_on("postgresql", "SQL reads a database")]

READER = "dashboard"
HOUR_MS = 3_600_000
HOSTILE = "=1\0\\u0000 'quoted\" 🙂 \x1b[A"


class Database:
    """That of a running service, as a person at psql sees it."""

    def __init__(self, live: Live) -> None:
        cluster = shared_cluster()
        assert cluster is not None
        assert live.found.directory is not None
        self._live, self._cluster = live, cluster
        self.name = url_of(live.found.directory).parameters["dbname"]

    def __call__(self, sql: str) -> list[tuple[str | None, ...]]:
        return self._cluster.execute(sql, self.name)

    def rows(self) -> dict[str, dict[str, Any]]:
        """By request id."""
        found = [json.loads(text or "") for (text,) in self("select row_to_json(s) from svc.sql_events s")]
        return {row["request_id"]: row for row in found}

    async def svc(self, *arguments: object) -> Ran:
        return await run_beside(*arguments, *self._live.options)

    def as_reader(self, sql: str) -> str:
        """What the role's own session is told: the first value, or the error."""
        conninfo = self._cluster.conninfo(self.name).replace(b"user=svc", b"user=" + READER.encode())
        connection = pq.PGconn.connect(conninfo)
        try:
            result = connection.exec_(sql.encode())
            failed = result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
            return (result.get_error_message() if failed else (result.get_value(0, 0) or b"").decode()).strip()
        finally:
            connection.finish()


@pytest.fixture
async def there(live: Live) -> Database:
    return Database(live)


@pytest.fixture
def reader(cluster: Cluster, there: Database) -> Iterator[str]:
    cluster.execute(f"create role {READER} login")
    yield READER
    there(f"drop owned by {READER}")
    cluster.execute(f"drop role {READER}")


async def listed(live: Live, *secrets: str) -> dict[str, dict[str, Any]]:
    """Every event by GET /events, with the keys of these environments."""
    found: dict[str, dict[str, Any]] = {}
    query = {"limit": 200, "from": timestamp(live.clock.now_ms - 29 * DAY_MS)}
    for secret in secrets:
        page = await live.client.get("/api/v1/events", params=query, headers={"x-api-key": secret})
        found |= {row["request_id"]: row for row in page.json()["rows"]}
    return found


def in_table(row: dict[str, Any]) -> dict[str, Any]:
    """An event of the API as it stands in the table, whose texts have no zero character."""
    found = as_columns(row)
    return found | {"tag": found["tag"] and found["tag"].replace("\0", "\\x00")}


def plain(row: dict[str, Any], organization: int) -> dict[str, Any]:
    """A row of the table, of that organization."""
    assert row.pop("organization") == organization
    return {**row, "occurred_at": timestamp(read_timestamp(row["occurred_at"]) or 0)}


async def assert_equal(live: Live, there: Database, *secrets: str) -> int:
    """The table has the events of the API and no other, value by value; and `svc check` finds nothing wrong."""
    events = {request_id: in_table(row) for request_id, row in (await listed(live, *secrets)).items()}
    assert {request_id: plain(row, live.organization.number) for request_id, row in there.rows().items()} == events
    assert (await there.svc("check", "--json")).json["ok"]
    return len(events)


async def populate(live: Live, public: str) -> list[dict[str, Any]]:
    """Events that differ in every column that a test can reach."""
    answers: list[dict[str, Any]] = []
    for signals, given in (
        (marked("a"), {"tag": "cart", "account_id": "user-7", "action": "log_in"}),
        (report(2, **DRIVEN), {"tag": HOSTILE}),
        (report(3), {"headers": PROGRAM}),
        (TOO_LITTLE, {"headers": {**BROWSER, "x-forwarded-for": "2001:db8::7"}}),
        (report(4, languages=["fr"]), {"account_id": "Ünïcode 账户", "action": "sign_up"}),
    ):
        live.clock.now_ms += 1
        answers.append(succeeded(await visit(live, public, signals, **given)))
    return answers


async def label(live: Live, secret: str, answer: dict[str, Any], **fields: Any) -> None:
    path = f"/api/v1/events/{answer['request_id']}"
    changed = await live.client.patch(path, json=fields, headers={"x-api-key": secret})
    assert changed.status_code == 200, changed.text


async def test_the_table_has_what_the_api_has_event_by_event(live: Live, there: Database, reader: str):
    """Events from before and from after the installation, of two environments, and one that is labeled later; what the
    reader sees, and that it sees nothing else.
    """
    public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
    staging, staging_secret = live.issue(environment="staging")[1], live.issue("secret", "staging")[1]
    rule = Rule(id="rul_" + "0" * 20, name="Known user", condition='present("account.id")', action="review")
    job = partial(
        save_rules, number=live.organization.number, kind="live", revision=0, rules=[rule], saved_by="", now_ms=0
    )
    assert not [outcome for outcome in live.found.store.write_now([job]) if isinstance(outcome, Exception)]
    assert (await there.svc("sql", "show", "--json")).json["installed"] is False

    before = await populate(live, public)
    installed = (await there.svc("sql", "install", "--reader", reader, "--json")).json
    assert (installed["events"], installed["rows"], installed["readers"]) == (len(before), len(before), [reader])
    after = await populate(live, public)
    await visit(live, staging, marked("s"))
    await label(live, secret, before[0], label="fraud", label_reason="chargeback")
    await label(live, secret, after[1], label="legitimate", account_id="late", action="pay")
    assert await assert_equal(live, there, secret, staging_secret) == len(before) + len(after) + 1
    assert {row["decision"] for row in there.rows().values()} == {None, "review"}, "both were compared"

    assert there.as_reader("select count(*) from svc.sql_events where label = 'fraud'") == "1"
    named = "select organization_id || name from svc.sql_organizations where organization = {}"
    assert there.as_reader(named.format(live.organization.number)) == live.organization.id + live.organization.name
    for refused in ("table svc.events", "table svc.keys", "table svc.organizations", "delete from svc.sql_events"):
        assert "permission denied" in there.as_reader(refused)


async def test_the_queries_of_the_documentation_run_as_the_reader(live: Live, there: Database, reader: str):
    """With the variables of Grafana replaced as it does; and the types are those that the page names."""
    page = (ROOT / "docs/warehouse.md").read_text()
    public = live.issue(environment="production")[1]
    await there.svc("sql", "install", "--reader", reader)
    await populate(live, public)
    at_ms = live.clock.now_ms
    window = {"${__from:date:iso}": timestamp(at_ms - HOUR_MS), "${__to:date:iso}": timestamp(at_ms + 1)}
    queries = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    models = f"with events as ({compiled('models/events', 'sql')})"
    copied = [f"{models} {compiled(f'models/{name}', 'sql')}" for name in ("visitors", "accounts_by_day")]
    for query in (*queries, *copied):
        for name, text in {**window, "My shop": live.organization.name}.items():
            query = query.replace(name, text)  # noqa: PLW2901
        query = query.replace("now()", f"'{timestamp(at_ms)}'::timestamptz")  # noqa: PLW2901
        counted = there.as_reader(f"select sum(events) from ({query}) as found")
        assert int(counted) > 0, query
    assert len(queries) == 2

    (table,) = re.findall(r"\| columns \| type \|\n\|---\|---\|\n((?:\|.*\n)+)", page)
    named = {
        column: re.sub(r"`|[,:].*", "", kind)
        for columns, kind in (line.strip("|").split("|") for line in table.splitlines())
        for column in re.findall("`(.*?)`", columns)
    }
    types = dict(
        there(
            "select attname, format_type(atttypid, atttypmod) from pg_attribute"
            " where attrelid = 'svc.sql_events'::regclass and attnum > 0"
        )
    )
    words = {"integer": "int4", "timestamp with time zone": "timestamptz"}
    assert {name: words.get(kind or "", kind) for name, kind in types.items() if kind != "text"} == {
        name: kind.strip() for name, kind in named.items()
    }


async def test_what_is_erased_is_erased_in_the_same_transaction(live: Live, there: Database):
    """Decisions 7.6, interface 8: a visitor, by the API and by the command line, an account, what is too old, an
    organization.
    """
    admin, public = Automation(live), live.issue(environment="production")[1]
    secret = live.issue("secret", "production")[1]
    await there.svc("sql", "install")
    answers = await populate(live, public)

    def gone(column: str, value: str) -> bool:
        assert there("select count(*) from svc.sql_events") != [("0",)]
        return there(f"select 1 from svc.sql_events where {column} = '{value}'") == []

    assert (await admin("DELETE", f"/visitors/{answers[1]['visitor_id']}")).status_code == 204
    assert gone("visitor_id", answers[1]["visitor_id"])
    erased = await there.svc("visitor", "erase", live.organization.id, answers[2]["visitor_id"], "--yes")
    assert erased.status == 0, erased.err
    assert gone("visitor_id", answers[2]["visitor_id"])
    assert (await admin("DELETE", "/accounts/user-7")).status_code == 204
    assert gone("account_id", "user-7")
    await assert_equal(live, there, secret)

    kept = (await visit(live, public, marked("late"), headers={"x-forwarded-for": "81.2.69.161"})).json()
    there_before = len(there.rows())
    live.clock.advance(hours=24 * 29)
    await visit(live, public, marked("later", 9))
    live.clock.advance(hours=24 * 2)
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    assert there_before > 1
    assert kept["request_id"] not in there.rows()
    assert await assert_equal(live, there, secret) == 1

    removed = await there.svc("org", "remove", live.organization.id, "--yes")
    assert removed.status == 0, removed.err
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    assert there.rows() == {}


class Copy:
    """What a consumer of changes has."""

    def __init__(self, live: Live, secret: str) -> None:
        self.live, self.secret = live, secret
        self.events: dict[str, dict[str, Any]] = {}
        self._query: dict[str, Any] = {}

    async def follow(self, limit: int) -> None:
        """Read on to the end."""
        more = True
        while more:
            query, headers = {**self._query, "limit": limit}, {"x-api-key": self.secret}
            page = (await self.live.client.get("/api/v1/changes", params=query, headers=headers)).json()
            for change in page["changes"]:
                if change["type"] == "event.erased":
                    self.events.pop(change["request_id"], None)
                elif "event" in change:
                    self.events[change["request_id"]] = change["event"]
            self._query["after"], more = page["next_cursor"], page["has_more"]


@pytest.mark.parametrize("seed", range(effort(2, 12)))
async def test_a_copy_that_follows_changes_is_equal_to_the_table_after_any_history(
    live: Live, there: Database, seed: int
):
    """Decisions 19: of events that come, are updated, labeled and erased, by clocks that go back and forth, while the
    copy is read.
    """
    chance = random.Random(seed)
    public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
    copy, admin, made = Copy(live, secret), Automation(live), list[dict[str, Any]]()
    await there.svc("sql", "install")
    for _ in range(60):
        live.clock.now_ms += chance.choice((0, 1, 700, 3_000, -1_500, 20_000, -9_000))
        answer = chance.choice(made) if made else {}
        account = chance.choice(("user-1", "user-2"))
        match chance.randrange(7) if made else 0:
            case 0:
                made.append((await visit(live, public, report(1 + chance.randrange(9)))).json())
            case 1:
                made.append((await visit(live, public, report(1 + chance.randrange(9)), account_id=account)).json())
            case 2:
                tag = chance.choice((None, "a", HOSTILE))
                await label(live, secret, answer, account_id=chance.choice((None, account)), tag=tag)
            case 3:
                await label(live, secret, answer, label=chance.choice((None, "fraud", "legitimate")))
            case 4:
                await copy.follow(chance.choice((1, 3, 200)))
            case 5:
                assert (await admin("DELETE", f"/accounts/{account}")).status_code in (204, 404)
            case _:
                assert (await admin("DELETE", f"/visitors/{answer['visitor_id']}")).status_code == 204
                made = [one for one in made if one["visitor_id"] != answer["visitor_id"]]
    live.clock.now_ms += 60_000
    await copy.follow(50)
    expected = {request_id: in_table(row) for request_id, row in copy.events.items()}
    assert {request_id: plain(row, live.organization.number) for request_id, row in there.rows().items()} == expected
    assert len(expected) == len(made)


async def test_an_event_that_another_program_changes_or_deletes_leaves_no_stale_row(live: Live, there: Database):
    """As one of an older version, which knows nothing of the table."""
    public = live.issue(environment="production")[1]
    await there.svc("sql", "install")
    answers = await populate(live, public)
    ids = [answer["request_id"] for answer in answers]
    key = "substring(key from 5) = decode(replace('{}', '-', ''), 'hex')"
    there("create table public.deleted as select * from svc.events where " + key.format(ids[0]))
    there("delete from svc.events where " + key.format(ids[0]))
    there("update svc.events set value = value || '' where " + key.format(ids[1]))
    assert sorted(there.rows()) == sorted(ids[2:])
    there("insert into svc.events table public.deleted; drop table public.deleted")


async def test_wrong_rows_are_found_and_put_right(live: Live, there: Database):
    public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
    await there.svc("sql", "install")
    answers = await populate(live, public)
    there(f"delete from svc.sql_events where request_id = '{answers[0]['request_id']}'")
    there(f"update svc.sql_events set tag = 'x' where request_id = '{answers[1]['request_id']}'")
    there("insert into svc.sql_events (organization, request_id, occurred_at) values (1, gen_random_uuid(), now())")
    checked = await there.svc("check", "--json")
    assert json.loads(checked.out)["first"] == [
        "sql_events: 2 events are missing or different; `svc sql install` puts them right",
        "sql_events: 1 rows are of no event; `svc sql install` deletes them",
    ]
    assert (await there.svc("sql", "install")).status == 0
    assert await assert_equal(live, there, secret) == len(answers)


async def test_a_table_of_an_earlier_version_goes_on_and_gets_the_new_columns(live: Live, there: Database):
    public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
    await there.svc("sql", "install")
    await populate(live, public)
    there("alter table svc.sql_events drop column label_reason, drop column os")
    answers = await populate(live, public)
    await label(live, secret, answers[0], label="fraud", label_reason="spam")
    assert len(there.rows()) == 2 * len(answers)
    assert (await there.svc("sql", "install")).status == 0
    assert await assert_equal(live, there, secret) == 2 * len(answers)
    assert (await there.svc("sql", "remove", "--yes")).status == 0
    await populate(live, public)
    assert there("select to_regclass('svc.sql_events'), to_regproc('svc.sql_text')") == [(None, None)]
    assert (await there.svc("check", "--json")).json["ok"]


async def test_the_table_is_installed_while_events_arrive(live: Live, there: Database):
    """Nothing is missing, whichever moment the table is made at, and no identification fails."""
    public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
    done = trio.Event()

    async def arrive(first: int) -> None:
        number = first
        while not done.is_set():
            response = await visit(live, public, report(1 + number % 9))
            assert response.status_code == 200, response.text
            number += 1

    async with trio.open_nursery() as nursery:
        for first in range(4):
            nursery.start_soon(arrive, first)
        for _ in range(3):
            assert (await there.svc("sql", "install")).status == 0
            assert (await there.svc("sql", "remove", "--yes")).status == 0
        assert (await there.svc("sql", "install")).status == 0
        done.set()
    rows, events = there.rows(), live.events()
    assert sorted(rows) == sorted(request_id for request_id, _ in events)
    assert secret
    assert (await there.svc("check", "--json")).json["ok"]


async def test_what_cannot_be_done_is_said_and_changes_nothing(there: Database, tmp_path: Path):
    nobody = await there.svc("sql", "install", "--reader", "nobody")
    nobody.assert_refused("there is no role 'nobody'", "create role nobody login")
    assert there("select to_regclass('svc.sql_events')") == [(None,)]
    assert (await there.svc("sql", "remove")).status == 1, "it asks first"
    assert (await there.svc("sql", "remove", "--yes", "--json")).json == {"installed": False}, "nothing was there"
    await there.svc("sql", "install")
    cluster = shared_cluster()
    assert cluster is not None
    reading = pq.PGconn.connect(cluster.conninfo(there.name))
    reading.exec_(b"begin; select * from svc.sql_events")
    (await there.svc("sql", "remove", "--yes")).assert_refused("a query is using svc.sql_events")
    reading.finish()
    assert (await there.svc("sql", "show", "--json")).json["installed"]
    there("create view public.mine as select tag from svc.sql_events")
    (await there.svc("sql", "remove", "--yes")).assert_refused("depend")
    there("drop view public.mine")
    in_file = await run_beside("sql", "install", "--data", tmp_path / "other")
    in_file.assert_refused("the store is in a data directory", "svc export events")


@pytest.mark.skipif(program() is None, reason="no pgbouncer: install the system's package pgbouncer")
async def test_the_table_follows_behind_a_pooler_of_transactions(directory: Path):
    cluster = shared_cluster()
    assert cluster is not None
    with pgbouncer(cluster, "transaction", 4) as port:
        through = partial(open_served, serve=url_of(directory / "data", port))
        async with live_service(directory / "data", open_store=through) as live:
            there = Database(live)
            public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
            await populate(live, public)
            url = str(url_of(directory / "data", port))
            pooled = ("--data", directory / "data", "--store", url)
            assert (await run_beside("sql", "install", *pooled)).status == 0
            await populate(live, public)
            assert await assert_equal(live, there, secret) == 10
            assert (await run_beside("sql", "remove", "--yes", *pooled)).status == 0
