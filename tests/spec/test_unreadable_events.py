"""Decisions 17.5: an event that cannot be read is a row that says so, for every reader, until it is taken out."""

from __future__ import annotations

import csv
import io
import json
from base64 import b64decode
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from svc.features.feed.feed import HOLD_MS
from svc.features.retention.sweeper import Progress, finish_interrupted, sweep
from svc.identify.indexing import indexer
from svc.identify.tables import (
    ACCOUNT_ERASURES,
    ACCOUNTS,
    DEFERRED_REPORTS,
    DOCUMENTS,
    ERASURES,
    EVENT_TAIL,
    EVENTS,
    IDEMPOTENCY,
    VISITORS,
)
from svc.identify.velocity.counts import account_digest
from svc.kernel.access.tables import AUDIT
from svc.kernel.store.engine import KeyRange
from svc.kernel.store.schema.table import Table
from svc.kernel.values.ids import DAY_MS, made_at_ms
from svc.kernel.values.timestamps import timestamp
from svc.world import World
from tests.spec.automation import Automation
from tests.spec.commands import Ran, run_beside
from tests.spec.console import Console
from tests.spec.responses import BROWSER, assert_error, visit
from tests.spec.test_events import EVENTS as EVENTS_PATH
from tests.spec.test_events import get, secret_key, visits
from tests.spec.test_supplement import send
from tests.support.live import Live, live_service, report, succeeded

HOUR_MS = 3_600_000
HERE = "production"


@pytest.fixture(autouse=True)
def only_asked_indexing(monkeypatch: pytest.MonkeyPatch):
    """The service's own indexer would move rows of the tail while a test damages them."""
    monkeypatch.setattr(indexer, "SHORTEST_REST_S", 3600.0)


def place(live: Live, table: Table[Any], request_id: str) -> bytes:
    """The key of the row of an event."""
    number, raw_id = live.organization.number, UUID(request_id).bytes
    if table is not EVENT_TAIL:
        return table.key.pack(number, raw_id)
    with live.found.store.read() as snapshot:
        return next(
            table.key.pack(*key) for key in snapshot.scan_keys(table, (number,), (number + 1,)) if key[-1] == raw_id
        )


def stored(live: Live, table: Table[Any], key: bytes) -> bytes | None:
    with closing(live.found.store.engine.read()) as reader:
        return reader.get(table.name, key)


def flipped(raw: bytes) -> bytes:
    return raw[:6] + bytes([raw[6] ^ 1]) + raw[7:]


@contextmanager
def corrupt(live: Live, table: Table[Any], *request_ids: str) -> Generator[list[bytes]]:
    """One bit of the value of the row of each event is another one in the block, unless it is written again."""
    engine, keys = live.found.store.engine, [place(live, table, each) for each in request_ids]
    rows = [raw for key in keys if (raw := stored(live, table, key)) is not None]
    assert len(rows) == len(keys)
    engine.write(lambda writer: writer.put_many(table.name, sorted(zip(keys, map(flipped, rows), strict=True))))
    yield rows
    left = [(key, raw) for key, raw in zip(keys, rows, strict=True) if stored(live, table, key) == flipped(raw)]
    engine.write(lambda writer: writer.put_many(table.name, sorted(left)))


@pytest.mark.parametrize("subject", ["visitor", "account"])
@pytest.mark.slow
async def test_the_export_of_a_subject_goes_on_past_a_corrupt_event(directory: Path, subject: str):
    async with live_service(directory / "data") as live:
        public = live.issue(environment=HERE)[1]
        given = {"account_id": "mallory"}
        sent = [(await visit(live, public, report(1), tag=f"visit-{at}", **given)).json() for at in range(3)]
        subject_id = sent[0]["visitor_id"] if subject == "visitor" else "mallory"
        command = (subject, "export", live.organization.id, subject_id, *live.options)
        whole = (await run_beside(*command)).json
        for table in (EVENTS, DOCUMENTS):
            with corrupt(live, table, sent[1]["request_id"]):
                ran = await run_beside(*command)
            assert ran.err == "1 corrupt rows, which the document names; `svc check` says what to do.\n"
            assert ran.json[subject] == whole[subject]
            first, damaged, last = ran.json["events"]
            assert [first, last] == [whole["events"][0], whole["events"][2]]
            assert damaged["request_id"] == sent[1]["request_id"]
            (row,) = damaged["rows"][table.name]
            assert set(row) == {"key_bytes", "corrupt"}
            (other,) = {"events", "documents"} - {table.name}
            assert damaged["rows"][other] == whole["events"][1]["rows"][other]


def unreadable(request_id: str) -> dict[str, str]:
    return {"request_id": request_id, "error": "unreadable"}


async def pages(live: Live, secret: str, **query: Any) -> list[dict[str, Any]]:
    """All rows of a list or feed, page by page; each page but the last is full."""
    rows: list[dict[str, Any]] = []
    while True:
        body = succeeded(await get(live, secret, **query))
        rows += body["rows"]
        is_feed = query.get("order") == "oldest"
        if not body.get("has_more") if is_feed else "next_cursor" not in body:
            return rows
        assert len(body["rows"]) == query["limit"]
        query["after" if is_feed else "cursor"] = body["next_cursor"]


async def indexed(live: Live) -> None:
    live.clock.now_ms += 5 * 60_000
    while await indexer.index(live.found.store, live.clock.now_ms):
        pass


@pytest.mark.parametrize("where", ["tail", "segment"])
@pytest.mark.slow(0.5)
async def test_lists_and_the_feed_go_on_past_an_event_that_cannot_be_read(live: Live, where: str):
    made, secret = await visits(live, 70 if where == "segment" else 7), secret_key(live)
    live.clock.now_ms += HOLD_MS
    before = await pages(live, secret, limit=50)
    if where == "segment":
        await indexed(live)
    lost = made[3]
    expected = [unreadable(lost) if row["request_id"] == lost else row for row in before]
    visitor_id = next(row["visitor_id"] for row in before if row["request_id"] == lost)
    with corrupt(live, EVENTS, lost):
        for limit in (1, 3, 200):
            assert await pages(live, secret, limit=limit) == expected
            assert await pages(live, secret, limit=limit, order="oldest") == expected[::-1]
        assert unreadable(lost) in await pages(live, secret, limit=200, visitor=visitor_id), "the index names it"
        assert unreadable(lost) not in await pages(live, secret, limit=200, country="ZZ")
        one = await live.client.get(f"{EVENTS_PATH}/{lost}", headers={"x-api-key": secret})
        assert_error(one, 500, "internal_error")
    assert live.service.services.corrupt.found["listEvents"]


async def test_a_late_event_that_cannot_be_read_is_in_the_feed_once(live: Live):
    first, secret = await visits(live, 2), secret_key(live)
    live.clock.now_ms += HOLD_MS
    assert len(await pages(live, secret, limit=10, order="oldest")) == 2
    live.clock.now_ms -= HOUR_MS
    late = await visits(live, 2)
    live.clock.now_ms += HOUR_MS + HOLD_MS
    with corrupt(live, EVENTS, late[0]):
        for limit in (1, 10):
            rows = await pages(live, secret, limit=limit, order="oldest")
            assert [row["request_id"] for row in rows] == first + late
            assert rows[2] == unreadable(late[0])


@pytest.mark.slow(0.7)
async def test_a_damaged_row_of_the_index_hides_no_event_and_is_written_again(live: Live):
    made, secret = await visits(live, 70), secret_key(live)
    live.clock.now_ms += HOLD_MS
    before = await pages(live, secret, limit=50)
    lost = made[30]
    expected = [unreadable(lost) if row["request_id"] == lost else row for row in before]
    visitor_id = before[0]["visitor_id"]
    of_visitor = [row for row in expected if row.get("visitor_id") == visitor_id]
    with corrupt(live, EVENTS, lost), corrupt(live, EVENT_TAIL, made[0], lost, made[69]):
        for _ in ("before", "after"):
            assert await pages(live, secret, limit=7) == expected
            assert await pages(live, secret, limit=7, order="oldest") == expected[::-1]
            found = await pages(live, secret, limit=200, visitor=visitor_id)
            assert [row for row in found if "error" not in row] == of_visitor
            await indexed(live)
        with live.found.store.read() as snapshot:
            assert len(list(snapshot.scan_keys(EVENT_TAIL, (1,), (2,)))) < 64, "indexing went on"
    assert (await svc(live, "store", "rebuild-indexes")).status == 0, "the corrupt event has no values in the index"


async def test_files_have_a_row_for_an_event_that_cannot_be_read(live: Live, console: Console):
    made = await visits(live, 3)
    with corrupt(live, EVENTS, made[1]):
        lines = (await console.get("/events/export", format="jsonl", environment="development")).text.splitlines()
        table = (await console.get("/events/export", format="csv", environment="development")).text
    assert [json.loads(line)["request_id"] for line in lines] == made[::-1]
    assert json.loads(lines[1]) == unreadable(made[1])
    rows = list(csv.DictReader(io.StringIO(table)))
    assert list(rows[0])[-1] == "error"
    errors = ("", "unreadable", "")
    assert [(row["request_id"], row["error"]) for row in rows] == list(zip(made[::-1], errors, strict=True))
    assert not any(value for name, value in rows[1].items() if name not in ("request_id", "error"))
    assert live.service.services.corrupt.found["exportConsoleEvents"]


@pytest.fixture
async def recent(directory: Path):
    """A service whose clock is that of the commands, three hours ago."""
    async with live_service(directory / "data", now_ms=World.real().now_ms() - 3 * HOUR_MS) as live:
        yield live


async def svc(live: Live, *command: object) -> Ran:
    return await run_beside(*command, *live.options)


async def populated(live: Live) -> list[str]:
    _, public = live.issue(environment=HERE)
    made: list[str] = []
    for device in (1, 2, 3, 4, 5):
        live.clock.now_ms += 60_000
        made.append((await visit(live, public, account_id=f"user-{device}")).json()["request_id"])
    return made


@pytest.mark.slow
async def test_commands_go_on_past_an_event_that_cannot_be_read(recent: Live, tmp_path: Path):
    made, organization = await populated(recent), recent.organization.id
    tailing = ("events", "tail", organization, "--since", "1d", "--no-follow", "--json")
    with corrupt(recent, EVENTS, made[2]):
        tail = await svc(recent, *tailing)
        rows = [json.loads(line) for line in tail.out.splitlines()]
        assert (tail.status, [row["request_id"] for row in rows]) == (0, made)
        assert rows[2] == {**unreadable(made[2]), "cursor": rows[2]["cursor"]}
        on = await svc(recent, *tailing, "--from", rows[2]["cursor"])
        assert [json.loads(line)["request_id"] for line in on.out.splitlines()] == made[3:]
        listed = await svc(recent, "events", "list", organization, "--json")
        assert json.loads(listed.out)["events"][2] == unreadable(made[2])
        assert made[2] in (await svc(recent, "events", "list", organization)).out
        for form in ("jsonl", "csv"):
            exported = (await svc(recent, "export", "events", organization, "--format", form)).out
            assert [request_id in exported for request_id in made] == [True] * 5
            assert exported.count("unreadable") == 1
        documents = await svc(recent, "export", "events", organization, "--documents")
        assert [json.loads(line)["request_id"] for line in documents.out.splitlines()] == made
        hours = tmp_path / "hours"
        assert (await svc(recent, "export", "events", organization, "--hourly", hours, "--since", "1d")).status == 0
    written = await trio.to_thread.run_sync(lambda: "".join(each.read_text() for each in sorted(hours.glob("e*"))))
    assert [json.loads(line)["request_id"] for line in written.splitlines()] == made


async def label_some(live: Live, secret: str, request_ids: list[str]) -> None:
    change = {"label": "fraud", "label_reason": "chargeback"}
    for request_id in request_ids:
        path = f"{EVENTS_PATH}/{request_id}"
        assert (await live.client.patch(path, headers={"x-api-key": secret}, json=change)).status_code == 200


async def made_in(live: Live, state: str, secret: str) -> tuple[str, str]:
    """An event in this state, and another one."""
    made = await populated(live)
    if state == "labeled":
        await label_some(live, secret, made[1:4])
    if state == "alone in its hour":
        live.clock.now_ms += HOUR_MS
        return (await visits(live, 1, environment=HERE))[0], made[0]
    if state == "in a segment":
        await visits(live, 70, apart_ms=1, environment=HERE)
        await indexed(live)
    return made[2], made[0]


@pytest.mark.slow(3)
@pytest.mark.parametrize("state", ["in the tail", "in a segment", "labeled", "alone in its hour"])
async def test_quarantine_takes_a_damaged_event_out_for_every_reader(recent: Live, state: str):
    live = recent
    _, secret = live.issue("secret", environment=HERE)
    lost, other = await made_in(live, state, secret)
    before = await pages(live, secret, limit=200)
    with corrupt(live, EVENTS, lost) as (raw,):
        checked = await svc(live, "check", "--json")
        (named,) = json.loads(checked.out)["first"]
        assert (checked.status, f"svc store quarantine {lost}" in named) == (1, True)
        for refused, because in ((other, "can be read"), (str(UUID(int=7 << 76)), "there is no event")):
            (await svc(live, "store", "quarantine", lost, refused)).assert_refused(because)
        assert unreadable(lost) in await pages(live, secret, limit=200), "a refusal changes nothing"
        done = await svc(live, "store", "quarantine", lost, "--json")
        assert done.status == 0, done.err
        await assert_recorded(live, json.loads(done.out)["quarantined"], lost, raw)
        left = [row for row in before if row["request_id"] != lost]
        for limit in (3, 200):
            assert await pages(live, secret, limit=limit) == left
        one = await live.client.get(f"{EVENTS_PATH}/{lost}", headers={"x-api-key": secret})
        assert_error(one, 404, "event_not_found")
        arrived_ms = made_at_ms(UUID(lost).bytes)
        hour_ms = arrived_ms - arrived_ms % HOUR_MS
        window = {"from_": timestamp(hour_ms), "to": timestamp(hour_ms + HOUR_MS)}
        assert (await get(live, secret, **window)).status_code == 200, "no counter says that there are events"
        again = await svc(live, "check", "--json")
        assert json.loads(again.out)["ok"], again.out
        (await svc(live, "store", "quarantine", lost)).assert_refused("there is no event")
        with live.found.store.read() as snapshot:
            *_, (_, audited) = snapshot.scan(AUDIT, live.organization.number)
        assert (audited.action, audited.subject) == ("svc store quarantine", lost)


async def assert_recorded(live: Live, rows: list[dict[str, Any]], lost: str, raw: bytes) -> None:
    """The file of the event has what was stored, and is for its owner alone."""
    path = trio.Path(rows[0]["file"])
    assert len(rows) == 1
    assert (path.parent.name, (await path.stat()).st_mode & 0o777) == ("quarantine", 0o600)
    record = json.loads(await path.read_text())
    said = (record["request_id"], record["organization_id"], record["environment"])
    assert said == (lost, live.organization.id, HERE)
    kept = next(each for each in record["rows"] if each["table"] == "events")
    assert b64decode(kept["stored_bytes"]) == flipped(raw)
    assert bytes.fromhex(kept["key"])[4:] == UUID(lost).bytes
    assert "fails its check" in kept["because"]
    assert record["quarantined_at"] > record["arrived_at"]


@pytest.mark.slow(2)
async def test_of_a_readable_event_the_damaged_reports_alone_are_taken_out(recent: Live):
    live = recent
    _, public = live.issue(environment=HERE)
    _, secret = live.issue("secret", environment=HERE)
    identified = (await visit(live, public)).json()
    request_id = identified["request_id"]
    assert (await send(live, public, request_id, identified["deferred_token"])).status_code == 202
    path, headers = f"{EVENTS_PATH}/{request_id}", {"x-api-key": secret}
    for table in (DOCUMENTS, DEFERRED_REPORTS):
        with corrupt(live, table, request_id):
            assert_error(await live.client.get(path, headers=headers), 500, "internal_error")
            named = json.loads((await svc(live, "check", "--json")).out)["first"]
            assert any(f"svc store quarantine {request_id}" in each for each in named)
            assert (await svc(live, "store", "quarantine", request_id)).status == 0
            assert (await live.client.get(path, headers=headers)).status_code == 200
            assert json.loads((await svc(live, "check", "--json")).out)["ok"]
    body = (await live.client.get(path, headers=headers)).json()
    assert body["has_document"] is False
    assert "deferred_signals" not in body


@pytest.mark.slow(0.2)
async def test_what_the_index_says_of_an_event_that_is_gone_is_taken_out(recent: Live):
    live, made = recent, await populated(recent)
    _, secret = live.issue("secret", environment=HERE)
    before, engine = await pages(live, secret, limit=200), live.found.store.engine
    key = place(live, EVENTS, made[1])
    engine.write(lambda writer: writer.delete(EVENTS.name, key))
    assert unreadable(made[1]) in await pages(live, secret, limit=200)
    done = await svc(live, "store", "quarantine", made[1], "--json")
    assert json.loads(done.out)["quarantined"][0]["tables"] == ["index"]
    assert await pages(live, secret, limit=200) == [row for row in before if row["request_id"] != made[1]]
    assert json.loads((await svc(live, "check", "--json")).out)["ok"]


@pytest.mark.slow(0.4)
async def test_retention_goes_on_past_events_that_cannot_be_read(live: Live):
    made = await visits(live, 70)
    live.clock.now_ms += 31 * DAY_MS
    progress = Progress(live.clock.now_ms)
    with corrupt(live, EVENTS, *made[10:50]):
        await sweep(live.found.store, live.clock.now_ms, 365, progress, with_passes=False)
        with live.found.store.read() as snapshot:
            left = [str(UUID(bytes=key[1])) for key, _ in snapshot.scan_past_corruption(EVENTS, (1,), (2,))]
    assert left == made[10:50]
    assert progress.statistics().deleted["events"] == 30
    assert progress.statistics().failed == {"events": 1}


async def assert_resumed(live: Live, table: Table[Any], subject: object, value: object):
    """Retention ends an erasure that was interrupted just before its end, and reports one event."""
    store, number, progress = live.found.store, live.organization.number, Progress(live.clock.now_ms)
    store.write_one_now(lambda transaction: transaction.put(table, (number, subject), value))
    await finish_interrupted(store, progress, live.clock.now_ms)
    with store.read() as snapshot:
        assert snapshot.count(table) == 0
    assert progress.corrupt.found == {"retention of erasure": 1}


@pytest.mark.slow
async def test_erasures_end_and_name_the_events_that_cannot_be_read(recent: Live):
    live, admin = recent, Automation(recent)
    _, public = live.issue(environment=HERE)
    _, secret = live.issue("secret", environment=HERE)
    org = live.organization.id
    sent = [(await visit(live, public, report(1), account_id="mallory")).json() for _ in range(3)]
    lost, visitor_id = sent[1]["request_id"], sent[0]["visitor_id"]
    where = f"event {lost}, which cannot be read: `svc store quarantine`"
    with corrupt(live, EVENTS, lost):
        moved = await live.client.patch(
            f"{EVENTS_PATH}/{sent[0]['request_id']}", json={"account_id": "alice"}, headers={"x-api-key": secret}
        )
        assert moved.status_code == 200, "another event of its account is nothing to it"
        erased = json.loads((await svc(live, "account", "erase", org, "mallory", "--yes", "--json")).out)
        assert erased["remains_in"] == [where]
        rows = await pages(live, secret, limit=10)
        assert [row.get("account_id") for row in rows] == [None, None, "alice"]
        assert (await admin("DELETE", f"/visitors/{visitor_id}")).status_code == 204
        assert await pages(live, secret, limit=10) == [unreadable(lost)]
        erased = json.loads((await svc(live, "visitor", "erase", org, visitor_id, "--yes", "--json")).out)
        assert erased["remains_in"] == [where]
        assert live.service.services.corrupt.found["eraseVisitor"] == 1
        await assert_resumed(live, ACCOUNT_ERASURES, account_digest(live.organization.number, "mallory"), b"mallory")
        await assert_resumed(live, ERASURES, visitor_id.encode(), 0)
        await svc(live, "store", "quarantine", lost)
    assert await pages(live, secret, limit=10) == []
    assert (await admin("DELETE", f"/visitors/{visitor_id}")).status_code == 404
    assert json.loads((await svc(live, "check", "--json")).out)["ok"]


@pytest.mark.slow(0.3)
async def test_reports_are_dropped_past_an_event_that_cannot_be_read(recent: Live):
    live, made = recent, await populated(recent)
    with corrupt(live, EVENTS, made[1]):
        await svc(live, "org", "drop-documents", live.organization.id, "--yes")
        assert live.count(DOCUMENTS) == 0
        await svc(live, "store", "quarantine", made[1])
    assert json.loads((await svc(live, "check", "--json")).out)["ok"]


@pytest.mark.parametrize("table", [VISITORS, IDEMPOTENCY, ACCOUNTS], ids=lambda table: table.name)
@pytest.mark.slow(0.5)
async def test_retention_goes_on_past_other_rows_that_cannot_be_read(live: Live, table: Table[Any]):
    """Decisions 17.5: one visitor's record would keep all visitors of its organization for good."""
    public, store = live.issue(environment=HERE)[1], live.found.store
    for device in range(6):
        await live.identify(
            public, report(device), headers=BROWSER | {"idempotency-key": str(device)}, account_id=f"account-{device}"
        )
    with closing(store.engine.read()) as reader:
        rows = list(reader.range(KeyRange(table.name)))
    key, raw = rows[2]
    assert len(rows) == 6
    store.engine.write(lambda writer: writer.put(table.name, key, flipped(raw)))
    live.clock.now_ms += 500 * DAY_MS
    progress = Progress(live.clock.now_ms)
    for _ in range(2):  # visitors go in the pass after that of their events
        await sweep(store, live.clock.now_ms, 365, progress, with_passes=True)
        live.clock.now_ms += 100 * DAY_MS
    with store.read() as snapshot:
        assert [table.key.pack(*left) for left, _ in snapshot.scan_past_corruption(table, (1,), (2,))] == [key]
    assert table.name in progress.statistics().failed
    assert progress.corrupt.found[f"retention of {table.name}"] > 0
    store.engine.write(lambda writer: writer.put(table.name, key, raw))
    live.clock.now_ms += 100 * DAY_MS
    await sweep(store, live.clock.now_ms, 365, progress, with_passes=True)
    with store.read() as snapshot:
        assert snapshot.count(table) == 0, "once it is mended, it goes too"
