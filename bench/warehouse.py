"""Events beside the API, event by event, and what keeping them in SQL costs.

    python -m bench.warehouse compare [--events 100000]
    python -m bench.warehouse cost [--rounds 15]

`compare` fills a store with events, moves it to a database, installs `svc.sql_events`, and compares GET /events with
the feed, with every row of the table and with hourly Parquet files, for which it takes the extra `parquet`. `cost`
writes events in groups, as a node does, into a database without the table and into one with it, in turn, and prints
what an event takes of the node and of the database: everything but what comes before its transaction.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import trio

from bench.events import DAY_MS, event, fill, record
from bench.identify import ENVIRONMENT
from bench.nodes import DATABASE, server_cpu_of
from bench.reports import device_report
from svc.features.exports.hourly import HOLD_MS, HOUR_MS
from svc.features.exports.sql_installation import install
from svc.features.tables import TABLES
from svc.features.upgrade.migrations import MIGRATIONS
from svc.identify.events.archive import deflate
from svc.identify.records import Event
from svc.kernel.store.engine import Writer
from svc.kernel.store.group import Write
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.postgresql.store import PostgresqlStore
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.versions import migrate
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.tables import ORGANIZATIONS
from svc.kernel.values.timestamps import read_timestamp, timestamp
from svc.world import World, twenty_characters
from tests.support.event_columns import as_columns
from tests.support.postgresql import Cluster
from tests.support.process import Served

PAGE = 200
Rows = dict[str, dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("compare", "cost"))
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if options.what == "compare":
        compare(options.events)
    else:
        cost(options.rounds, options.events // 50)


def cost(rounds: int, events: int) -> None:
    """Groups of jobs on two databases of one server, in turn: one has the table."""
    cluster = Cluster(*DATABASE, durable=True)
    try:
        print("microseconds of CPU an event: node, database\n")
        print("| jobs a group | node | database | node, with the table | database | more: node | database |")
        print("|---:|---:|---:|---:|---:|---:|---:|", flush=True)
        for size in (16, 4, 1):
            with cluster.database() as without, cluster.database() as having:
                trio.run(_pairs, cluster, (without, having), size, rounds, max(1, events // size))
    finally:
        cluster.close()


async def _pairs(cluster: Cluster, databases: tuple[str, str], size: int, rounds: int, groups: int) -> None:
    chance, world = random.Random(5), World.real()
    visitors = [twenty_characters(chance.randbytes) for _ in range(1000)]
    archives = [deflate(json.dumps(device_report(number)).encode()) for number in range(100)]
    stores: list[PostgresqlStore] = []
    for place, database in enumerate(databases):
        engine = PostgresqlEngine.open(cluster.url(database))
        engine.open_tables([table.name for table in TABLES], create=True)
        engine.write(partial(_number_one, place=place))
        if place:
            install(engine)
        stores.append(PostgresqlStore(engine, cluster.url(database), world))
    found: list[list[tuple[float, float]]] = [[], []]
    for turn in range(2 * rounds + 2):
        place = (turn + turn // 2) % 2
        batches = [list(_made(world, chance, visitors, size)) for _ in range(groups)]
        node, server = time.process_time(), server_cpu_of(cluster)
        for batch in batches:
            jobs = [partial(record, number=1, batch=[one], archives=archives) for one in batch]
            done = await stores[place].write([Write(job, organization=1) for job in jobs])
            assert not [outcome for outcome in done if isinstance(outcome, Exception)]
        each = 1e6 / (size * groups)
        used = each * (time.process_time() - node), each * (server_cpu_of(cluster) - server)
        if turn > 1:  # the first two prepare their statements
            found[place].append(used)
    for store in stores:
        store.close()
    shown = [statistics.median(column) for of_one in found for column in zip(*of_one, strict=True)]
    more = [
        statistics.median(having[side] - without[side] for without, having in zip(*found, strict=True))
        for side in (0, 1)
    ]
    print(f"| {size} | " + " | ".join(f"{us:.0f}" for us in (*shown, *more)) + " |", flush=True)


def _made(world: World, chance: random.Random, visitors: list[str], count: int) -> Iterator[tuple[UUID, Event]]:
    for _ in range(count):
        at_ms = world.now_ms()
        yield world.request_id(at_ms), event(chance, at_ms, chance.choice(visitors))


def _number_one(writer: Writer, place: int) -> None:
    """An organization, whose fence the groups take, in a store of this version."""
    transaction = Transaction(writer)
    migrate(transaction, MIGRATIONS)
    made = Organization(id=f"org_{place:020}", number=1, name="bench", created_at_ms=0)
    transaction.put(ORGANIZATIONS, (1,), made)


def compare(count: int) -> None:
    """Raises `AssertionError` where an event differs, is missing, or is there that the API does not have."""
    ENVIRONMENT["SVC_READ_RATE"] = "0"
    cluster = Cluster(*DATABASE, durable=True)
    try:
        with cluster.database() as database, tempfile.TemporaryDirectory(prefix="svc-bench-") as name:
            directory, url = Path(name), cluster.url(database)
            made = fill(directory, count)
            svc("store", "move", "--from", str(directory), "--to", str(url))
            began, cpu = time.perf_counter(), time.process_time()
            with closing(PostgresqlEngine.open(url)) as engine:
                done = install(engine)
            print(
                f"installed in {time.perf_counter() - began:.1f} s ({time.process_time() - cpu:.1f} s of CPU of the "
                f"command): {done.rows:,} rows, {done.bytes / done.rows:.0f} bytes a row with indexes"
            )
            read = partial(cluster.execute, database=database)
            server = Served(directory, SVC_STORE=str(url), SVC_LOG_REQUESTS="none", SVC_READ_RATE="0")
            try:
                of_api = once((row["request_id"], row) for row in api_rows(server.port, made.secret))
                began = time.perf_counter()
                of_feed = once((row["request_id"], row) for row in feed_rows(server.port, made.secret))
                print(f"the feed was read in {time.perf_counter() - began:.1f} s")
                assert_equal(of_api, of_feed)
                assert list(of_feed) == sorted(of_api, key=lambda each: (of_api[each]["occurred_at"], each))
                folder = directory / "hours"
                command = ("export", "events", made.organization_id, "--format", "parquet", "--hourly", str(folder))
                began, until_ms = time.perf_counter(), World.real().now_ms() - HOLD_MS
                svc(*command, "--data", str(directory), "--store", str(url))
                print(f"Parquet was written in {time.perf_counter() - began:.1f} s")
            finally:
                server.kill_all(())
            columns = {request_id: as_columns(row) for request_id, row in of_api.items()}
            of_sql = once(sql_rows(read))
            assert_equal(columns, of_sql)
            hours_end = timestamp(until_ms - until_ms % HOUR_MS)
            of_files = once(parquet_rows(folder))
            assert_equal({name: row for name, row in columns.items() if row["occurred_at"] < hours_end}, of_files)
            print(
                f"compared: {len(of_api):,} events of the API, {len(of_feed):,} of the feed, {len(of_sql):,} rows of "
                f"SQL, {len(of_files):,} of Parquet; equal, value by value"
            )
    finally:
        cluster.close()


def api_rows(port: int, secret: str) -> Iterator[dict[str, Any]]:
    """Every event of production by GET /events, an hour of them at a time."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    now_ms = World.real().now_ms()
    start_ms, step_ms = now_ms - 29 * DAY_MS - DAY_MS // 2, DAY_MS // 24
    for at_ms in range(start_ms, now_ms, step_ms):
        page = 1
        while True:
            query = {
                "from": timestamp(at_ms),
                "to": timestamp(min(at_ms + step_ms, now_ms)),
                "limit": PAGE,
                "page": page,
            }
            connection.request("GET", "/api/v1/events?" + urlencode(query), headers={"x-api-key": secret})
            response = connection.getresponse()
            body = json.loads(response.read())
            assert response.status == 200, body
            yield from body["rows"]
            if len(body["rows"]) < PAGE:
                break
            page += 1


def feed_rows(port: int, secret: str) -> Iterator[dict[str, Any]]:
    """Every event of production by the feed."""
    connection, query = http.client.HTTPConnection("127.0.0.1", port), {"order": "oldest", "limit": PAGE}
    while True:
        connection.request("GET", "/api/v1/events?" + urlencode(query), headers={"x-api-key": secret})
        response = connection.getresponse()
        body = json.loads(response.read())
        assert response.status == 200, body
        yield from body["rows"]
        query["after"] = body["next_cursor"]
        if not body["has_more"]:
            return


def parquet_rows(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    parquet: Any = import_module("pyarrow.parquet")
    for path in sorted(folder.glob("*.parquet")):
        for row in parquet.read_table(path).to_pylist():
            yield row["request_id"], {**row, "occurred_at": timestamp(round(row["occurred_at"].timestamp() * 1000))}


def once(rows: Iterator[tuple[str, dict[str, Any]]]) -> Rows:
    """By request id. Raises `AssertionError` where one is there twice."""
    listed = list(rows)
    found = dict(listed)
    assert len(found) == len(listed), "an event is there twice"
    return found


def sql_rows(read: Callable[[str], list[tuple[str | None, ...]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for (text,) in read("select row_to_json(s) from svc.sql_events s where environment = 'production'"):
        row = json.loads(text or "")
        row.pop("organization")
        yield row["request_id"], {**row, "occurred_at": timestamp(read_timestamp(row["occurred_at"]) or 0)}


def assert_equal(of_api: Rows, others: Rows) -> None:
    assert of_api
    assert of_api.keys() == others.keys(), f"{len(of_api.keys() ^ others.keys())} events are in one of them alone"
    for request_id, row in of_api.items():
        assert others[request_id] == row, (others[request_id], row)


def svc(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "svc", *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
