"""Decisions 10: `svc inspect` shows what lies in a store, and changes nothing of it (docs/inspection.md)."""

from __future__ import annotations

import json
import os
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zlib import crc32

import pytest
import trio

import svc
from svc.features.backup import snapshots
from svc.features.checks.verification import Verification
from svc.features.erasure.tables import TEXT_ERASURES
from svc.features.inspection import inspection
from svc.features.inspection.inspection import read_key
from svc.features.inspection.showing import WRITTEN
from svc.features.tables import TABLES
from svc.features.webhooks.records import DeliveryKey, Refusals, WebhookEvent
from svc.features.webhooks.tables import DUE, MANUAL, REFUSALS, REMOVED_ENDPOINTS, WEBHOOK_EVENTS
from svc.identify.records import TextErasure
from svc.identify.tables import (
    ACCOUNT_ERASURES,
    BLOCKS,
    CHALLENGES,
    DELETED_VISITORS,
    ERASURES,
    RECOUNTS,
    VISITOR_IDS,
    VISITORS,
)
from svc.identify.velocity.counts import Recount
from svc.kernel.access.tables import KEYS
from svc.kernel.store import operations
from svc.kernel.store.reading import ReadOnlyStore, read_only
from svc.kernel.store.schema.operation_log import Following
from svc.kernel.store.schema.table import Table
from svc.kernel.store.steps import QUIET
from svc.kernel.store.store import Store
from svc.kernel.store.tables import META
from svc.kernel.tenants.billing import Settlement
from svc.kernel.tenants.tables import SETTLEMENTS
from svc.world import World
from tests.features.test_erasure import PERSONAL
from tests.spec.commands import Ran, Run, run_beside
from tests.store.release import RELEASED, populate, unpack
from tests.support.backup import put
from tests.support.live import ORIGIN, Live, live_service, opened, report

NOBODY = UUID(int=7 << 76 | 2 << 62)
REFUSED = UUID("019b76da-a800-7000-8000-000000000001")
NOTIFIABLE = UUID("019b76da-a802-7000-8000-000000000002")
SECRET_TABLES = ("keys", "sessions", "invitations", "console_links", "challenges")
SENT = ("Segoe UI Light", "cart", "81.2.69.160/hook")


class Toured(NamedTuple):
    directory: Path
    known: dict[str, Any]
    snapshot: Path

    @property
    def request(self) -> str:
        """The first identification, which was sent with an idempotency key; the second brought a deferred report."""
        return self.known["events"][0]["request_id"]


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory, engine: str) -> Toured:
    """A store in which a service has done something of everything; a snapshot of it; and, in the store, a row of
    each kind that does not last.
    """
    folder = tmp_path_factory.mktemp("toured")
    directory = folder / "data"
    known = trio.run(populate, directory)
    snapshot = folder / "none"
    if engine == "lmdb":
        taking = snapshots.Taking("test", World.real().now_ms, None, Verification.FULL)
        snapshot = snapshots.take(directory, folder / "backup", taking, QUIET).path
    found = opened(directory)
    found.store.change_log(lambda txn: operations.begin(txn, Following(bytes(16), 1, "/backup", 1 << 20)))
    refusals = Refusals(told_at_ms=1, count=2, request_id=REFUSED.bytes, occurred_at_ms=3, status=422,
                        environment="production", ip_address="81.2.69.161")  # fmt: skip
    told = json.dumps({"request_id": str(REFUSED)}).encode()
    jobs = [
        put(SETTLEMENTS, 1, 20454, value=Settlement(1, 2, 3, 4, 5, 6)),
        put(ERASURES, 1, b"A" * 20, value=0),
        put(ACCOUNT_ERASURES, 1, 7, value=b"user-8271"),
        put(RECOUNTS, 1, value=Recount(bytes(16))),
        put(TEXT_ERASURES, 1, 1, 7, value=TextErasure("user-8271")),
        put(REMOVED_ENDPOINTS, 1, 2, value=b""),
        put(DELETED_VISITORS, 1, 9, value=1_767_225_600_000),
        put(DUE, 1, 2, 1_767_225_600_000, NOBODY.bytes, 2, value=b""),
        put(MANUAL, 1, 2, value=DeliveryKey(NOBODY.bytes, "test")),
        put(REFUSALS, 1, "key_x/invalid_signals", value=refusals),
        put(WEBHOOK_EVENTS, 1, NOTIFIABLE.bytes, value=WebhookEvent("identification.refused", "live", 4, told)),
    ]
    assert not [outcome for outcome in found.store.write_now(jobs) if isinstance(outcome, Exception)]
    found.store.close()
    return Toured(directory, known, snapshot)


def keys_in(directory: Path, table: Table[Any]) -> list[bytes]:
    with closing(opened(directory).store) as store:
        return keys_in_store(store, table)


def keys_in_store(store: Store | ReadOnlyStore, table: Table[Any]) -> list[bytes]:
    with store.read() as snapshot:
        return [key for key, _ in snapshot.unchecked(table, b"")]


MADE_AT_ONCE = [table for table in TABLES if table.name != "event_segments"]
"""But for what is made of more events (`tests/store/test_event_index.py`)."""


def lines(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def tables_of(ran: Ran) -> list[str]:
    assert ran.status == 0, ran.err
    return [line["table"] for line in lines(ran)]


@pytest.mark.slow
def test_every_row_of_every_table_is_shown_and_found_by_its_shown_key(run: Run, toured: Toured):
    """What is shown of a key leads back to its bytes; but for a secret, of which not all is shown."""
    with closing(opened(toured.directory).store) as store:
        kept = {table: keys_in_store(store, table) for table in MADE_AT_ONCE}
    assert [table.name for table, keys in kept.items() if not keys] == [], "the tour left nothing in them"
    for table, keys in kept.items():
        command = ("inspect", "rows", table.name, "--data", toured.directory)
        ran = run(*command, "--json", "--payload", "--limit", 1000)
        shown = lines(ran)
        assert (ran.status, ran.err, len(shown)) == (0, "", len(keys)), table.name
        assert all(set(line) == {"table", "key", "value"} for line in shown), table.name
        if table.name not in SECRET_TABLES:
            found = [read_key(table, [str(part) for part in line["key"].values()]) for line in shown]
            assert found == keys, table.name
        text = run(*command, "--limit", 1000)
        assert (text.status, text.err) == (0, ""), table.name
        named = [line.startswith(f"{table.name}  ") for line in text.out.splitlines() if line[:1].strip()]
        assert named == [True] * len(keys), table.name


@pytest.mark.slow
def test_no_secret_is_shown_and_submitted_data_only_on_request(run: Run, toured: Toured):
    """Interface 5, rule 4; decisions 2.2."""
    secrets = [key.hex() for key in keys_in(toured.directory, KEYS)]
    secrets += [key[-32:].hex() for key in keys_in(toured.directory, CHALLENGES)]
    plain = asked = ""
    for table in TABLES:
        command = ("inspect", "rows", table.name, "--data", toured.directory, "--json")
        plain, asked = plain + run(*command).out, asked + run(*command, "--payload").out
    assert [secret for secret in secrets if secret in asked + plain] == []
    assert all(secret[:8] in plain for secret in secrets)
    assert [word for word in SENT if word in plain] == []
    assert [word for word in SENT if word not in asked] == []
    assert "81.2.69.161" in asked
    assert "81.2.69.161" not in plain
    assert {name for name, _ in written(asked)} == WRITTEN
    assert {value for _, value in written(plain)} == {"(withheld)"}


def written(out: str) -> list[tuple[str, Any]]:
    """Fields and parts of keys with something that people wrote, as they are shown."""
    found: list[tuple[str, Any]] = []
    for line in map(json.loads, out.splitlines()):
        for fields in (line["key"], line["value"], line["value"].get("actor") or {}):
            found += [(name, value) for name, value in fields.items() if name in WRITTEN and value]
    return found


@pytest.mark.slow
def test_a_request_is_traced_through_every_table_in_order_of_time(run: Run, toured: Toured):
    data = ("--data", toured.directory, "--json")
    first, second = (event["request_id"] for event in toured.known["events"][:2])
    assert tables_of(run("inspect", "request", first, *data)) == ["events", "documents", "ledger", "idempotency"]
    ran = run("inspect", "request", second, *data)
    found = tables_of(ran)
    assert found[:4] == ["events", "documents", "deferred_reports", "ledger"]
    assert found[4:] == ["webhook_events", "webhook_deliveries", "webhook_attempts"]
    attempt = lines(ran)[-1]["value"]
    assert (attempt["event_id"], attempt["status"]) == (lines(ran)[4]["key"]["event_id"], "delivered")
    (changed, *_) = lines(run("inspect", "rows", "audit", *data))
    assert tables_of(run("inspect", "request", changed["key"]["id"], *data)) == ["audit"]
    assert tables_of(run("inspect", "request", REFUSED, *data)) == ["webhook_refusals", "webhook_events"]
    run("inspect", "request", NOBODY, "--data", toured.directory).assert_refused(str(NOBODY))
    run("inspect", "request", "019b", "--data", toured.directory).assert_usage()


@pytest.mark.slow
def test_a_request_is_shown_with_the_meaning_of_its_evidence(run: Run, tmp_path: Path):
    """Decisions 7.3; docs/inspection.md. For programs the names alone."""
    sent = report(1, webdriver=True, client_token="T" * 20)
    requests: list[str] = []

    async def visits() -> None:
        async with live_service(tmp_path / "data") as live:
            _, key = live.issue(allowed_origins=(ORIGIN,))
            for signals in (sent, sent | {"audio": "35.7"}):
                answer = await live.identify(key, signals, headers={"x-forwarded-for": "10.0.0.1"})
                requests.append(answer.json()["request_id"])

    trio.run(visits)
    ran = run("inspect", "request", requests[1])
    assert (ran.status, ran.err) == (0, "")
    shown = [line.split(maxsplit=1) for line in ran.out.splitlines()]
    for name, meaning in (
        ("webdriver", "The browser or the app reports that a program controls it."),
        ("audio", "audio computed by the browser"),
        ("token", "recognized by its client token"),
        ("private_address", "the address is not public"),
    ):
        assert shown.count([f"{name}:", meaning]) == 1, ran.out
    event, document, *_ = (line["value"] for line in lines(run("inspect", "request", requests[1], "--json")))
    assert (event["verdict"]["linkage"], event["verdict"]["reason"]) == ("token", "private_address")
    assert [fired["signal"] for fired in event["verdict"]["signals"]] == ["automation", "bot_user_agent"]
    assert document["signals"] == "(withheld)"
    assert document["evidence"]["automation"] == ["webdriver"]
    assert document["changes"] == ["audio"]


@pytest.mark.slow
def test_a_visitor_is_shown_with_its_events_until_it_is_erased(run: Run, toured: Toured):
    """Decisions 7.6: of an erased visitor nothing is left."""
    organization, events = toured.known["organization"], toured.known["events"]
    visitor_id = events[0]["visitor_id"]
    ran = run("inspect", "visitor", organization, visitor_id, "--data", toured.directory, "--json")
    found = tables_of(ran)
    assert found[0] == "visitor_ids"
    assert found[-2:] == 2 * ["events"]
    assert {"visitors", "visitor_places", "blocks", "subject_notes"} <= {*found[1:-2]} <= PERSONAL
    assert [line["key"]["request_id"] for line in lines(ran)[-2:]] == [event["request_id"] for event in events[:2]]
    ran = run("inspect", "visitor", organization, toured.known["attested"], "--data", toured.directory, "--json")
    assert [name for name in tables_of(ran) if "keys" in name] == ["visitor_keys", "attested_keys"]
    for number, gone in ((organization, toured.known["erased"]), (1, "B" * 20), (1, "no id")):
        run("inspect", "visitor", number, gone, "--data", toured.directory).assert_refused("nothing is kept", gone)
    run("inspect", "visitor", 2, visitor_id, "--data", toured.directory).assert_refused("organization '2'")


@pytest.mark.slow
def test_rows_are_selected_by_organization_key_and_prefix(run: Run, toured: Toured, monkeypatch: pytest.MonkeyPatch):
    """However few are read at a time."""
    monkeypatch.setattr(inspection, "ROWS_A_READ", 2)
    data = ("--data", toured.directory, "--json")

    def count(*arguments: object) -> int:
        ran = run("inspect", "rows", *arguments, *data)
        assert ran.status == 0, ran.err
        return len(lines(ran))

    everything, keys = (
        len(keys_in(toured.directory, next(table for table in TABLES if table.name == name)))
        for name in ("blocks", "key_ids")
    )
    assert everything > 5
    assert keys > 5
    assert count("blocks") == count("blocks", "--org", toured.known["organization"]) == everything
    assert count("blocks", "--prefix", "00000001") == count("blocks", "--key", 1) == everything
    assert count("blocks", "--prefix", "00000002") == count("settlements", "--org", 1, "--key", "2026-01-02") == 0
    assert count("settlements", "--org", 1, "--key", "2026-01-01") == 1
    assert count("events", "--org", 1, "--key", toured.request) == 1
    assert count("key_ids", "--prefix", "key_") == keys
    assert count("event_tail", "--org", 1, "--key", "production") == 8
    ran = run("inspect", "rows", "blocks", "--limit", 5, *data)
    assert (ran.status, len(lines(ran))) == (0, 5)
    assert "There are more" in ran.err


@pytest.mark.slow
def test_an_invalid_selection_is_rejected(run: Run, toured: Toured, tmp_path: Path):
    """Decisions 10: one clear line, status 1; a wrong use, status 2."""
    data = ("--data", toured.directory)
    run("inspect", "rows", "event", *data).assert_refused("no table 'event'", "event_segments")
    run("inspect", "rows", "events", "--limit", 10**20, *data).assert_usage()
    for arguments, says in (
        (("events", "--key", 1, "--key", "x"), "request_id of events"),
        (("events", "--key", 2**40), "number"),
        (("events", "--key", "first"), "'first' is not a whole number"),
        (("balances", "--key", 1, "--key", 2), "has 1 parts: organization"),
        (("settlements", "--org", 1, "--key", "yesterday"), "day of settlements"),
        (("keys", "--key", "abcd"), "32 bytes"),
        (("event_tail", "--org", 1, "--key", "live"), "production, staging, development"),
        (("keys", "--org", 1), "not kept by organization"),
        (("events", "--org", "org_none"), "org_none"),
        (("events", "--prefix", "xyz"), "hexadecimal"),
    ):
        run("inspect", "rows", *arguments, *data).assert_refused(says)
    run("inspect", "rows", "events", "--org", 1, "--prefix", "00", *data).assert_usage()
    run("inspect", "tables", *data, "--snapshot", tmp_path).assert_usage()
    run("inspect", "tables", "--snapshot", tmp_path).assert_refused("data.mdb is not there")


def test_an_organization_is_shown_with_its_name(run: Run, tmp_path: Path):
    """And without one where its row cannot be read."""
    run("org", "create", "Shop")
    ran = run("inspect", "rows", "balances")
    assert ran.out.splitlines()[0] == "balances  organization 1 (Shop)"
    with closing(opened(tmp_path / "data").store) as store:
        store.engine.write(lambda writer: writer.delete("organizations", (1).to_bytes(4)))
    assert run("inspect", "rows", "balances").out.splitlines()[0] == "balances  organization 1"


def test_a_store_of_a_newer_program_is_not_read(run: Run, tmp_path: Path):
    run("org", "create", "Shop")
    found = opened(tmp_path / "data")
    found.store.write_now([put(META, "version", value=99)])
    found.store.close()
    run("inspect", "tables").assert_refused("version 99")


def raw_of(directory: Path, table: Table[Any], key: bytes) -> bytes:
    with closing(opened(directory).store) as store, store.read() as snapshot:
        return dict(snapshot.unchecked(table, b""))[key]


def corrupt(directory: Path, table: str, key: bytes, value: bytes) -> None:
    with closing(opened(directory).store) as store:
        store.engine.write(lambda writer: writer.put(table, key, value))


@pytest.mark.slow
def test_a_corrupt_row_is_shown_with_its_key_and_the_rest_follows(run: Run, tmp_path: Path):
    """One that fails its check, one in the place of another, and one that is sound and of another type."""
    organization = run("org", "create", "Shop", "--credit-usd", 1, "--json").json["organization_id"]
    for _ in range(3):
        run("org", "credit", organization, "--usd", 1)
    ledger = next(table for table in TABLES if table.name == "ledger")
    first, second, *_ = keys_in(tmp_path / "data", ledger)
    corrupt(tmp_path / "data", "ledger", second, b"\0\0\0\0nothing")
    stray, typed = b"\0\0\0\1" + bytes(16), b"\0\0\0\1" + bytes(15) + b"\1"
    corrupt(tmp_path / "data", "ledger", stray, raw_of(tmp_path / "data", ledger, first))
    corrupt(tmp_path / "data", "ledger", typed, typed_row(ledger, typed))
    ran = run("inspect", "rows", "ledger", "--org", organization, "--json")
    assert ran.status == 1
    assert "3 corrupt rows" in ran.err
    shown = lines(ran)
    assert [line.get("key_bytes") for line in shown] == [stray.hex(), typed.hex(), None, second.hex(), None, None]
    assert shown[0]["corrupt"] == shown[3]["corrupt"] == "fails its check"
    assert "LedgerEntry" in shown[1]["corrupt"]
    assert "corrupt fails its check" in run("inspect", "rows", "ledger").out


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "it looks at a data directory of the release")
def test_of_a_visitor_with_a_corrupt_record_everything_else_is_shown(run: Run, tmp_path: Path):
    """What a feature finds by the record says that it could not."""
    directory, known = unpack(RELEASED / f"{svc.__version__}.tar.xz", tmp_path / "made")
    (key, *_) = keys_in(directory, VISITORS)
    corrupt(directory, "visitors", key, b"\0\0\0\0nothing")
    with closing(opened(directory).store) as store, store.read() as snapshot:
        visitor_id = next(raw for (_, raw), number in snapshot.scan(VISITOR_IDS) if number == int.from_bytes(key[4:]))
    ran = run("inspect", "visitor", known["organization"], visitor_id.decode(), "--data", directory, "--json")
    assert ran.status == 1
    assert "corrupt rows" in ran.err
    shown = lines(ran)
    problems = {line["table"] for line in shown if "corrupt" in line}
    assert problems == {"visitors", "blocks", "browser_keys"}
    assert {"visitor_ids", "events"} <= {line["table"] for line in shown if "corrupt" not in line}


def typed_row(table: Table[Any], key: bytes) -> bytes:
    """What vouches for itself and is no record of this table."""
    body = b"\x01"
    return crc32(body, crc32(key, crc32(table.name.encode()))).to_bytes(4) + body


def digests(folder: Path) -> dict[str, str]:
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "its file and its snapshots")
def test_inspection_changes_no_byte_of_a_snapshot_or_a_store(run: Run, toured: Toured):
    file, snapshot = toured.directory / "store" / "data.mdb", toured.snapshot

    def everything() -> tuple[dict[str, str], bytes]:
        return digests(snapshot), file.read_bytes()

    before = everything()
    for where in (("--snapshot", snapshot), ("--snapshot", snapshot / "data.mdb"), ("--data", toured.directory)):
        assert run("inspect", "tables", *where).status == 0
        assert run("inspect", "readers", *where, "--json").json == {"readers": []}
        assert run("inspect", "request", toured.request, *where).status == 0
        assert run("inspect", "visitor", 1, toured.known["events"][0]["visitor_id"], *where).status == 0
        for table in ("blocks", "documents"):
            assert run("inspect", "rows", table, *where).status == 0
    assert everything() == before


def views_held(store: ReadOnlyStore) -> list[int]:
    return [slot.commit for slot in store.engine.reader_slots() if slot.commit is not None]


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "a view that is held makes its file grow")
def test_no_view_is_held_while_a_row_is_printed(toured: Toured, monkeypatch: pytest.MonkeyPatch):
    """Else the file of a running service would grow for as long as a pager is open."""
    monkeypatch.setattr(inspection, "ROWS_A_READ", 2)
    with read_only(toured.directory / "store", live=True) as store:
        listing = inspection.rows(store, BLOCKS)
        shown = [next(listing) for _ in range(5)]
        assert not views_held(store)
        with store.read():
            assert views_held(store), "they are looked for in vain"
        assert [row.key for row in (*shown, *listing)] == keys_in_store(store, BLOCKS)


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "it compares with a snapshot; tables of a database: test_store_in_a_database.py")
def test_tables_are_counted_and_compared_with_an_older_snapshot(run: Run, tmp_path: Path):
    organization = run("org", "create", "Shop", "--json").json["organization_id"]
    made = run("backup", tmp_path / "backup", "--json").json
    run("org", "credit", organization, "--usd", 1)
    answer = run("inspect", "tables", "--growth", made["snapshot"], "--json").json
    assert answer["growth_since"] == made["taken_at"]
    tables = {row["table"]: row for row in answer["tables"]}
    assert list(tables) == [table.name for table in TABLES]
    assert (tables["ledger"]["rows"], tables["ledger"]["rows_growth"], tables["events"]["rows_growth"]) == (1, 1, 0)
    assert tables["ledger"]["bytes"] == tables["ledger"]["bytes_growth"] == answer["page_bytes"]
    in_tables = sum(row["bytes"] for row in answer["tables"])
    assert in_tables < answer["file_bytes"] - answer["free_bytes"] < in_tables + 8 * answer["page_bytes"]
    assert (tmp_path / "data" / "store" / "data.mdb").stat().st_size >= answer["file_bytes"]
    text = run("inspect", "tables", "--growth", made["snapshot"]).out
    assert "rows_growth" in text


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "`svc inspect readers` is about LMDB's file; test_store_in_a_database.py has its refusal")
async def test_inspection_works_while_the_service_writes_and_shows_active_readers(live: Live, key: str, tmp_path: Path):
    first = (await live.identify(key)).json()["request_id"]
    with live.found.store.read():
        live.new_organization()
        shown: list[Ran] = []

        async def look(*arguments: object) -> None:
            shown.append(await run_beside("inspect", *arguments, *live.options, "--json"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look, "rows", "events")
            for _ in range(5):
                assert (await live.identify(key)).is_success
        assert shown[0].status == 0, shown[0].err
        assert first in shown[0].out
        await look("readers")
    (reader,) = [found for found in shown[1].json["readers"] if found["commit"] is not None]
    assert reader["process"] == os.getpid()
    assert reader["behind"] >= 1
