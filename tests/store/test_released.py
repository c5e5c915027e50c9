"""Stores of every released version under this program, and the rule that a change of the tables is a new version."""

from __future__ import annotations

import json
import re
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest

import svc
from svc.command.data_directory import opened_directory
from svc.features.checks.invariants import violations
from svc.features.schema import SCHEMA
from svc.features.tables import TABLES
from svc.features.upgrade.migrations import MIGRATIONS
from svc.features.upgrade.upgrade import upgrade
from svc.features.webhooks.records import EVENT_TYPES, TransportError
from svc.identify.records import EVENT_FIELDS, Document
from svc.kernel.access.jobs import counted_keys
from svc.kernel.config import Config
from svc.kernel.store.opening import open_store
from svc.kernel.store.schema.codec import Key, Opaque
from svc.kernel.store.schema.key_parts import U32
from svc.kernel.store.schema.table import FOR_EVER, NOT_PERSONAL, PolicyError, Schema, Table
from svc.kernel.store.tables import META
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.jobs import holding
from svc.world import World
from tests.spec.responses import BROWSER
from tests.store.release import RELEASED, TOKEN, VERSIONS, schema_file, unpack, versions, written
from tests.store.schema import schema
from tests.support.live import live_service, report, succeeded
from tests.support.schemas import program_with
from tests.support.worlds import EPOCH_MS

CHANGED = (
    "the tables are not those of {file}. Is that store version released? Then a new table is `since` the next one, and "
    "another change has a migration to it, even one that has nothing to do: an older program must not open the new "
    "rows. Else keep the file. Both ways: python -m tests.store.release"
)
PASSING = {
    "departed",
    "account_erasures",
    "text_erasures",
    "erasures",
    "event_segments",
    "following",
    "operations",
    "recounts",
    "settlements",
    "webhook_due",
    "webhook_manual",
    "webhook_refusals",
    "webhook_removed_endpoints",
}
"""Tables of what is under way, of a day's end, of more events than these stores have, and of an upgrade."""
STORES = sorted((*RELEASED.glob("*.tar.xz"), *RELEASED.glob("unreleased/*.tar.xz")))
"""Of every release, and of versions of the store that no release has written."""


def test_a_change_of_the_tables_requires_a_new_store_version():
    file = schema_file(SCHEMA.version)
    assert file.exists(), f"run `python -m tests.store.release` to keep what store version {SCHEMA.version} is"
    assert json.loads(written(schema())) == json.loads(file.read_text()), CHANGED.format(file=file.name)


def test_a_wheel_has_the_versions_of_the_store_that_its_program_serves():
    assert VERSIONS.read_bytes() == versions(), "run `python -m tests.store.release`"


def test_a_table_says_which_version_of_the_store_has_it_first():
    """It is in every version from then on, and none of its name was in one before."""
    versions = [json.loads(schema_file(version).read_text())["tables"] for version in range(1, SCHEMA.version + 1)]
    for table in TABLES:
        held = [version for version, tables in enumerate(versions, start=1) if table.name in tables]
        assert held == [*range(table.since, SCHEMA.version + 1)], table.name


def test_a_version_that_only_adds_tables_needs_no_migration(tmp_path: Path):
    later = Table("later", Key(organization=U32), Opaque(), FOR_EVER, NOT_PERSONAL, since=SCHEMA.version + 1)
    with program_with(tables=(*TABLES, later)) as program:
        assert program.version == SCHEMA.version + 1
        with closing(open_store(tmp_path, World.real().run_sync, durable=False, map_bytes=16 << 20)) as store:
            store.write_one_now(lambda change: change.put(later, (1,), b""))
            with store.read() as snapshot:
                assert snapshot.get(META, "version") == program.version
                assert snapshot.count(later) == 1


def test_a_version_that_neither_adds_a_table_nor_has_a_migration_is_an_error():
    with pytest.raises(PolicyError, match=f"store version {SCHEMA.version + 1} has no migration"):
        Schema(TABLES, {**MIGRATIONS, SCHEMA.version + 2: lambda _: None})


def test_the_release_notes_name_the_store_version_of_each_release():
    release = (Path(__file__).parents[2] / "CHANGELOG.md").read_text().partition("\n## ")[2].partition("\n## ")[0]
    assert release.startswith(svc.__version__)
    assert f"tore version {SCHEMA.version}." in release


def test_the_schema_contains_every_field_and_its_default():
    lines = schema()["records"]
    assert [line.partition(":")[0] for line in lines["Event"]] == list(EVENT_FIELDS)
    assert [line.partition(":")[0] for line in lines["Document"]] == list(Document.__struct_fields__)
    assert set(schema()["tables"]) == {table.name for table in TABLES}


def test_a_new_webhook_event_type_or_attempt_error_is_not_a_change_of_the_tables():
    names = {name for line in schema()["records"].values() for field in line for name in re.findall("'(.*?)'", field)}
    assert names
    assert names.isdisjoint(EVENT_TYPES)
    assert names.isdisjoint(get_args(TransportError))


def test_every_version_of_the_store_has_its_schema_and_this_release_its_store():
    assert {file.name for file in RELEASED.glob("schema-*.json")} == {
        schema_file(version).name for version in range(1, SCHEMA.version + 1)
    }
    assert RELEASED / f"{svc.__version__}.tar.xz" in STORES


@pytest.mark.slow
@pytest.mark.parametrize("file", STORES, ids=lambda file: file.name.removesuffix(".tar.xz"))
async def test_a_released_store_is_upgraded_with_all_its_data_and_stays_usable(file: Path, tmp_path: Path):
    directory, known = unpack(file, tmp_path)
    world = World.real()
    upgrade(directory, world.run_sync, map_bytes=64 << 20, program=svc.__version__, now_ms=world.now_ms)
    with (
        opened_directory(directory, Config(map_gib=0.0625), world, create=False) as found,
        found.store.read() as snapshot,
    ):
        assert list(violations(snapshot)) == []
        organization = lookups.find_organization(snapshot, known["organization"])
        assert organization is not None
        if file.stem.startswith("0.1.0"):
            number = organization.number
            assert holding(snapshot, number).active_keys == counted_keys(snapshot, number)
        assert lookups.balance(snapshot, organization.number) == known["balance"]
    async with live_service(directory, now_ms=EPOCH_MS + 60_000) as live:
        for event in known["events"]:
            shown = await get(live.client, event["request_id"], known["secret_key"])
            assert_shows(event, shown)
            assert {"visitor_confidence", "visitor_is_new", "identifiable"} <= set(shown)
            if file.stem.startswith("0.1.0"):
                assert "signals" not in shown, "0.1.0 did not store which signals fired, only their groups"
                assert {"changes", "probability"}.isdisjoint({*shown["document"], *shown["document"]["linkage"]})
        later = partial(live.identify, known["public_key"])
        again = (await later(report(1, client_token=TOKEN), headers=BROWSER)).json()
        assert again["visitor_id"] == known["events"][0]["visitor_id"]
        assert again["visitor_confidence"] == 100
        stranger = (await later(report(4))).json()
        assert stranger["visitor_is_new"]


async def test_events_of_an_older_store_are_found_by_their_rule(tmp_path: Path):
    """Version 6 stored what decided an event, and did not index it."""
    directory, known = unpack(RELEASED / "unreleased" / "store-6.tar.xz", tmp_path)
    world = World.real()
    upgrade(directory, world.run_sync, map_bytes=64 << 20, program=svc.__version__, now_ms=world.now_ms)
    async with live_service(directory, now_ms=EPOCH_MS + 60_000) as live:
        asked = partial(live.client.get, "/api/v1/events", headers={"x-api-key": known["secret_key"]})
        (reviewed,) = (await asked(params={"account_id": "user-8271"})).json()["rows"]
        found = await asked(params={"rule": reviewed["decision"]["rule_id"]})
        assert [row["request_id"] for row in found.json()["rows"]] == [reviewed["request_id"]]


async def get(client: Any, request_id: str, key: str) -> dict[str, Any]:
    return succeeded(await client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": key}))


def assert_shows(known: dict[str, Any], shown: dict[str, Any]) -> None:
    """Later versions may add to an answer and to a document, and change nothing of them."""
    document, shown_document = known["document"], shown["document"]
    assert {name: shown.get(name) for name in known} == {**known, "document": shown_document}
    assert {name: shown_document.get(name) for name in document} == document


def test_the_store_of_this_release_has_rows_in_every_table_that_keeps_any(tmp_path: Path):
    """So that a migration which forgets a table is noticed."""
    rows = unpack(RELEASED / f"{svc.__version__}.tar.xz", tmp_path).known["rows"]
    empty = {name for name, count in rows.items() if not count} - PASSING
    assert empty == set(), "have no row: tests/store/release.py"
