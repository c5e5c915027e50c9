"""Decisions 17.5: a corrupt row of one organization fails its own request with 500, and nothing else.

The rows of an organization that has something in nearly every table are made unreadable one by one. Another
organization must notice nothing, the first gets what it got before or 500, and the periodic work goes on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from svc.actors.indexer import index
from svc.actors.retention import Progress, sweep
from svc.actors.settler import settle_all
from svc.actors.watch.corruption import CorruptRows
from svc.cli.serve.processes import clock_at_start
from svc.http.routes import API
from svc.store.engine import KeyRange
from svc.store.schema.table import Table
from svc.store.schema.tables import DOCUMENTS, EVENTS, META, STATISTICS, TABLES, WEIGHTS_SNAPSHOTS
from svc.store.store import Store
from tests.spec.responses import assert_error, visit
from tests.store.release import populate
from tests.support.effort import effort
from tests.support.live import Live, live_service
from tests.support.worlds import EPOCH_MS

pytestmark = pytest.mark.usefixtures("engine")

SHARED = {META.name, WEIGHTS_SNAPSHOTS.name}
"""Tables whose rows are of no organization."""
ROWS_A_TABLE = 1
ONE_IN_A_DATABASE = effort(4, 1)
"""In a database one table in so many: what is tried for each is above the engines."""
A_MINUTE_LATER_MS = EPOCH_MS + 60_000


class Row(NamedTuple):
    table: Table[Any]
    key: bytes


def rows_before(live: Live) -> list[Row]:
    """Some rows of each table, of the organization that was there before that of `live`."""
    own = live.organization.number.to_bytes(4), live.organization.id.encode()
    found: list[Row] = []
    with closing(live.found.store.engine.read()) as reader:
        for table in TABLES:
            if table.name not in SHARED:
                keys = [key for key, _ in reader.range(KeyRange(table.name)) if not key.startswith(own)]
                rows = [Row(table, key) for key in keys]
                found += rows[:: max(1, len(rows) // ROWS_A_TABLE)][:ROWS_A_TABLE]
    return found[::-ONE_IN_A_DATABASE] if live.found.store.is_shared else found


@contextmanager
def unreadable(store: Store, row: Row) -> Iterator[None]:
    """The row fails its check in the block; what replaces it meanwhile stays."""
    with closing(store.engine.read()) as reader:
        value = reader.get(row.table.name, row.key)
    if value is None:  # indexed, or expired, since it was listed
        yield
        return
    flipped = value[:-1] + bytes([value[-1] ^ 1])
    store.engine.write(lambda writer: writer.put_many(row.table.name, [(row.key, flipped)]))
    yield
    with closing(store.engine.read()) as reader:
        is_still_there = reader.get(row.table.name, row.key) == flipped
    if is_still_there:
        store.engine.write(lambda writer: writer.put_many(row.table.name, [(row.key, value)]))


class Scene(NamedTuple):
    """Two organizations: that of the rows, and the one that `live` has made."""

    live: Live
    rows: list[Row]
    paths: list[tuple[str, str]]
    """Path and key of each route of the first that reads."""
    public: str
    secret: str


@asynccontextmanager
async def two_organizations(directory: Path) -> AsyncGenerator[Scene]:
    known = await populate(directory)
    async with live_service(directory, now_ms=A_MINUTE_LATER_MS) as live:
        rows = rows_before(live)
        _, public = live.issue(environment="production")
        _, secret = live.issue("secret", environment="production")
        _, management = live.issue("management", organization=1)
        names = {
            "organization_id": known["organization"],
            "request_id": known["events"][0]["request_id"],
            "visitor_id": known["events"][0]["visitor_id"],
            "webhook_id": known["endpoint"],
            "platform": "web",
        }
        keys = {"secret": known["secret_key"], "management": management}
        paths = [
            (f"{route.under[0]}{route.path.format_map(names)}", keys[kind])
            for route in API
            for kind in route.kinds
            if route.method == "GET"
            and kind in keys
            and route.operation_id != "streamEvents"
            and all(part.strip("{}") in names for part in route.path.split("/") if part.startswith("{"))
        ]
        yield Scene(live, rows, paths, public, secret)


async def responses(scene: Scene) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for path, key in scene.paths:
        response = await scene.live.client.get(path, headers={"x-api-key": key})
        found.append((response.status_code, path))
    return found


@pytest.mark.slow(40)
async def test_a_corrupt_row_fails_its_own_request_and_nothing_else(tmp_path: Path):
    async with two_organizations(tmp_path) as scene:
        live, store = scene.live, scene.live.found.store
        before = await responses(scene)
        assert [status for status, _ in before].count(200) > 15, before
        failed: set[str] = set()
        for row in scene.rows:
            with unreadable(store, row):
                after = await responses(scene)
                for (was, path), (status, _) in zip(before, after, strict=True):
                    assert status in (was, 500), (row, path)
                    if status == 500:
                        failed.add(row.table.name)
                identified = await visit(live, scene.public)
                assert identified.status_code == 200, (row, identified.text)
                shown = await live.client.get("/api/v1/events", headers={"x-api-key": scene.secret})
                assert shown.status_code == 200, row
                corrupt = CorruptRows()
                await settle_all(store, live.world, live.service.relay.due, corrupt)
                await sweep(store, live.clock.now_ms, 365, Progress(0, corrupt), with_passes=True)
                await index(store, live.clock.now_ms, corrupt)
                live.service.outbox.poll()
                clock_at_start(store, None, 0.0)  # as the next start of the service
        assert len(failed) > 10 / (ONE_IN_A_DATABASE if store.is_shared else 1), failed


@pytest.mark.parametrize("neighbor", ["report", "index"])
async def test_an_event_that_a_damaged_table_hides_is_an_error_as_long_as_a_neighbor_has_it(live: Live, neighbor: str):
    _, public = live.issue(environment="production")
    _, secret = live.issue("secret", environment="production")
    request_id = (await visit(live, public)).json()["request_id"]
    raw_id = UUID(request_id).bytes
    path = f"/api/v1/events/{request_id}"
    other = live.new_organization()
    _, foreign = live.issue("secret", environment="production", organization=other.number)
    engine = live.found.store.engine
    key = EVENTS.key.pack(live.organization.number, raw_id)
    tables = [EVENTS.name] if neighbor == "report" else [EVENTS.name, DOCUMENTS.name]
    with closing(engine.read()) as reader:
        values = {table: reader.get(table, key) for table in tables}
    for table in tables:
        engine.write(lambda writer, table=table: writer.delete(table, key))
    found = await live.client.get(path, headers={"x-api-key": secret})
    elsewhere = await live.client.get(path, headers={"x-api-key": foreign})
    for table, value in values.items():
        assert value is not None
        engine.write(lambda writer, table=table, value=value: writer.put(table, key, value))
    assert_error(found, 500, "internal_error")
    assert_error(elsewhere, 404, "event_not_found")
    assert (await live.client.get(path, headers={"x-api-key": secret})).status_code == 200


@pytest.mark.parametrize("how", ["a failed check", "a sound row of something else"])
async def test_learned_rows_that_cannot_be_read_are_learned_again(how: str, tmp_path: Path):
    """An organization's statistics are worth less than its identifications."""
    known = await populate(tmp_path)
    async with live_service(tmp_path, now_ms=A_MINUTE_LATER_MS) as live:
        engine = live.found.store.engine
        with closing(engine.read()) as reader:
            rows = list(reader.range(KeyRange(STATISTICS.name)))
        assert rows
        if how == "a failed check":
            rows = [(key, value + b"?") for key, value in rows]
        else:
            rows = [(key, STATISTICS.encode(key, b"\xff" * 7)) for key, _ in rows]
        engine.write(lambda writer: writer.put_many(STATISTICS.name, rows))
        for public in (known["public_key"], live.issue(environment="production")[1]):
            assert (await visit(live, public)).status_code == 200
            assert live.service.services.corrupt.found["statistics"] == 1
