"""Decisions 17.5: a corrupt row of one organization fails its own request with 500, and nothing else.

The rows of an organization that has something in nearly every table are made unreadable one by one: a bit of them is
flipped wherever it may be, or they are zeroed or cut. Another organization must notice nothing: it gets every response
as before, byte by byte. The first gets what it got before or 500, and the periodic work goes on.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import pytest

from svc.cli.serve.processes import clock_at_start
from svc.features.billing.settler import settle_all
from svc.features.retention.sweeper import Progress, sweep
from svc.features.routes import API
from svc.features.tables import TABLES
from svc.identify.indexing.indexer import index
from svc.identify.tables import DOCUMENTS, EVENTS, STATISTICS, WEIGHTS_SNAPSHOTS
from svc.kernel.store.engine import KeyRange
from svc.kernel.store.schema.table import Table
from svc.kernel.store.store import Store
from svc.kernel.store.tables import META
from svc.kernel.work.store_watch import CorruptRows
from tests.spec.automation import Automation
from tests.spec.responses import assert_error, visit
from tests.spec.subscriber import COMPLETED, URL
from tests.spec.test_supplement import send
from tests.store.release import populate
from tests.support.effort import effort
from tests.support.live import Live, live_service
from tests.support.worlds import EPOCH_MS

SHARED = {META.name, WEIGHTS_SNAPSHOTS.name}
"""Tables whose rows are of no organization."""
ROWS_A_TABLE = 1
DAMAGES_A_ROW = effort(1, 3)
"""Each row is damaged so often, at other places; once in a database, since what is read of a row is above the engines.
"""
ONE_IN = effort(4, 1)
"""Of the tables one in so many is tried at a commit."""
ONE_IN_A_DATABASE = effort(6, 1)
"""In a database fewer: what is tried for each is above the engines."""
QUIET_IN_TURN = effort(3, 1)
"""Of what the quiet organization reads, one part in so many is compared at each row, the next part at the next."""
A_MINUTE_LATER_MS = EPOCH_MS + 60_000


class Row(NamedTuple):
    table: Table[Any]
    key: bytes


def rows_before(live: Live, seed: int) -> list[Row]:
    """Some rows of each table that is drawn, of the organization that was there before that of `live`."""
    own = live.organization.number.to_bytes(4), live.organization.id.encode()
    found: list[Row] = []
    with closing(live.found.store.engine.read()) as reader:
        for table in TABLES:
            if table.name not in SHARED:
                keys = [key for key, _ in reader.range(KeyRange(table.name)) if not key.startswith(own)]
                rows = [Row(table, key) for key in keys]
                found += rows[:: max(1, len(rows) // ROWS_A_TABLE)][:ROWS_A_TABLE]
    one_in = share_of(live.found.store)
    return found[seed % one_in :: one_in]


def share_of(store: Store) -> int:
    return ONE_IN_A_DATABASE if store.is_shared else ONE_IN


def damaged(value: bytes, chance: random.Random) -> bytes:
    """A stored value of which one bit is another one, in the checksum or behind it; or zeros, or a part of it."""
    match chance.choice(("bit", "bit", "bit", "zeros", "part")):
        case "zeros" if any(value):
            return bytes(len(value))
        case "part":
            return value[: chance.randrange(len(value))]
        case _:
            place = chance.randrange(len(value))
            return value[:place] + bytes([value[place] ^ 1 << chance.randrange(8)]) + value[place + 1 :]


@contextmanager
def unreadable(store: Store, row: Row, chance: random.Random) -> Generator[None]:
    """The row fails its check in the block; what replaces it meanwhile stays."""
    with closing(store.engine.read()) as reader:
        value = reader.get(row.table.name, row.key)
    if value is None:  # indexed, or expired, since it was listed
        yield
        return
    corrupt = damaged(value, chance)
    store.engine.write(lambda writer: writer.put_many(row.table.name, [(row.key, corrupt)]))
    yield
    with closing(store.engine.read()) as reader:
        is_still_there = reader.get(row.table.name, row.key) == corrupt
    if is_still_there:
        store.engine.write(lambda writer: writer.put_many(row.table.name, [(row.key, value)]))


class Scene(NamedTuple):
    """Three organizations: that of the rows, the one that `live` has made, which is identified for, and a quiet one."""

    live: Live
    rows: list[Row]
    paths: list[tuple[str, str]]
    """Path and key of each route of the first that reads."""
    quiet: list[tuple[str, str]]
    """Those of the third, for which nothing happens any more: what they give stays as it is."""
    public: str
    secret: str


@asynccontextmanager
async def two_organizations(directory: Path, seed: int) -> AsyncGenerator[Scene]:
    known = await populate(directory)
    async with live_service(directory, now_ms=A_MINUTE_LATER_MS) as live:
        rows = rows_before(live, seed)
        _, public = live.issue(environment="production")
        _, secret = live.issue("secret", environment="production")
        _, management = live.issue("management", organization=1)
        names = {
            "organization_id": known["organization"],
            "request_id": known["events"][0]["request_id"],
            "visitor_id": known["events"][0]["visitor_id"],
            "webhook_id": known["endpoint"],
        }
        quiet = await quiet_organization(live)
        yield Scene(live, rows, reads(names, known["secret_key"], management), quiet, public, secret)


async def quiet_organization(live: Live) -> list[tuple[str, str]]:
    """One with an event, its report, a visitor and an endpoint; what there is to read of it."""
    organization = live.new_organization()
    admin = Automation(live, organization=organization)
    number = organization.number
    _, public = live.issue(environment="production", organization=number)
    _, secret = live.issue("secret", environment="production", organization=number)
    identified = (await visit(live, public)).json()
    supplemented = await send(live, public, identified["request_id"], identified["deferred_token"])
    assert supplemented.status_code == 202, supplemented.text
    endpoint = {"url": URL, "environment": "live", "events": [COMPLETED], "description": "paused"}
    made = await admin("POST", "/webhooks", endpoint)
    assert made.status_code == 201, made.text
    names = {
        "organization_id": organization.id,
        "request_id": identified["request_id"],
        "visitor_id": identified["visitor_id"],
        "webhook_id": made.json()["endpoint"]["id"],
    }
    return reads(names, secret, admin.secret)


def reads(names: dict[str, str], secret: str, management: str) -> list[tuple[str, str]]:
    """Path and key of each route that reads something of these names."""
    keys = {"secret": secret, "management": management}
    names = {**names, "platform": "web"}
    return [
        (f"{route.under[0]}{route.path.format_map(names)}", keys[kind])
        for route in API
        for kind in route.kinds
        if route.method == "GET"
        and kind in keys
        and route.operation_id != "streamEvents"
        and all(part.strip("{}") in names for part in route.path.split("/") if part.startswith("{"))
    ]


class Seen(NamedTuple):
    """A response, without what names the request."""

    path: str
    status: int
    headers: dict[str, str]
    body: bytes
    """That of an error, too, but for the request id."""


OF_THE_REQUEST = {"x-request-id", "date"}


async def responses(live: Live, paths: list[tuple[str, str]]) -> list[Seen]:
    """Each of them; a file that has no end counts as 500."""
    found: list[Seen] = []
    for path, key in paths:
        try:
            response = await live.client.get(path, headers={"x-api-key": key})
        except httpx.RemoteProtocolError:
            found.append(Seen(path, 500, {}, b""))
            continue
        headers = {name: value for name, value in response.headers.items() if name not in OF_THE_REQUEST}
        body = response.content.replace(response.headers["x-request-id"].encode(), b"")
        found.append(Seen(path, response.status_code, headers, body))
    return found


@pytest.mark.slow(4)
async def test_a_corrupt_row_fails_its_own_request_and_nothing_else(directory: Path, crash_seed: int):
    async with two_organizations(directory, crash_seed) as scene:
        live, store = scene.live, scene.live.found.store
        before, quiet = await responses(live, scene.paths), await responses(live, scene.quiet)
        for found in (before, quiet):
            assert [each.status for each in found].count(200) > 15, found
        visitor_id = (await visit(live, scene.public)).json()["visitor_id"]
        failed: set[str] = set()
        chance = random.Random(crash_seed)
        damages = 1 if store.is_shared else DAMAGES_A_ROW
        for turn, row in enumerate(row for row in scene.rows for _ in range(damages)):
            with unreadable(store, row, chance):
                for was, now in zip(before, await responses(live, scene.paths), strict=True):
                    assert now.status in (was.status, 500), (row, now)
                    if now.status == 500:
                        failed.add(row.table.name)
                identified = await visit(live, scene.public)
                assert identified.status_code == 200, (row, identified.text)
                assert identified.json()["visitor_id"] == visitor_id, row
                shown = await live.client.get("/api/v1/events", headers={"x-api-key": scene.secret})
                assert shown.status_code == 200, row
                corrupt = CorruptRows()
                await settle_all(store, live.world, live.service.relay.due, corrupt)
                await sweep(store, live.clock.now_ms, 365, Progress(0, corrupt), with_passes=True)
                await index(store, live.clock.now_ms, corrupt)
                live.service.outbox.poll()
                clock_at_start(store, None, 0.0)  # as the next start of the service
                part = slice(turn % QUIET_IN_TURN, None, QUIET_IN_TURN)
                assert await responses(live, scene.quiet[part]) == quiet[part], row
        assert len(failed) > 8 // share_of(store), failed


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
@pytest.mark.slow(0.2)
async def test_learned_rows_that_cannot_be_read_are_learned_again(how: str, directory: Path):
    """An organization's statistics are worth less than its identifications."""
    known = await populate(directory)
    async with live_service(directory, now_ms=A_MINUTE_LATER_MS) as live:
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
