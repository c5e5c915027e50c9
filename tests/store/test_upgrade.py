"""Upgrades of a data directory: the copy before, the one transaction, and what refuses them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import svc
from svc.features.backup import snapshots
from svc.features.backup.restore import Restoring, restore
from svc.features.checks.invariants import violations
from svc.features.checks.verification import Verification
from svc.features.lists.tables import LIST_ENTRIES, LISTED, LISTS
from svc.features.schema import SCHEMA
from svc.features.tables import TABLES
from svc.features.upgrade import upgrade as upgrading
from svc.features.upgrade.upgrade import FOLDER, Upgraded, upgrade
from svc.identify.matching import Statistics, StatisticsUpdate
from svc.identify.queries.learned import PRODUCTION, load_class, load_statistics
from svc.identify.tables import STATISTICS
from svc.kernel.store.directory import open_directory
from svc.kernel.store.installation import NewerStoreError, OlderStoreError
from svc.kernel.store.opening import open_store
from svc.kernel.store.reading import read_only
from svc.kernel.store.schema.codec import Key, Opaque
from svc.kernel.store.schema.key_parts import DIGEST_16, U32
from svc.kernel.store.schema.table import FOR_EVER, NOT_PERSONAL, Migration, Table
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import QUIET
from svc.kernel.store.store import StoreFullError
from svc.kernel.store.tables import META
from svc.kernel.tenants.tables import BALANCES, ORGANIZATIONS
from svc.kernel.values.errors import DirectoryError
from svc.world import World
from tests.domain.matching_world import features_of
from tests.store.release import RELEASED, unpack
from tests.support.backup import rows_of
from tests.support.schemas import program_with

MAP_BYTES = 64 << 20
WORLD = World.real()
BEFORE = SCHEMA.version


def mark(transaction: Transaction) -> None:
    transaction.put(STATISTICS, (7, 0, 0), b"migrated")


def breaks(transaction: Transaction) -> None:
    transaction.put(BALANCES, (1,), 1)
    raise RuntimeError("half way")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory of the present release."""
    return unpack(RELEASED / f"{svc.__version__}.tar.xz", tmp_path).directory


def upgraded(data: Path, *migrations: Migration, **options: Any) -> Upgraded | None:
    """With a program that knows these migrations beside its own."""
    return upgrade(
        data,
        WORLD.run_sync,
        program="9.9",
        now_ms=lambda: 99,
        **{"map_bytes": MAP_BYTES, "migrations": (*SCHEMA.migrations, *migrations), **options},
    )


def contents(path: Path, *migrations: Migration) -> dict[str, list[Any]]:
    store = open_store(
        path, WORLD.run_sync, map_bytes=MAP_BYTES, migrations=(*SCHEMA.migrations, *migrations), upgrade=False
    )
    try:
        return rows_of(store)
    finally:
        store.close()


def test_an_older_store_is_copied_and_then_upgraded(data: Path):
    before = contents(data / "store")
    done = upgraded(data, mark, lambda transaction: transaction.delete(BALANCES, 1))
    assert done == Upgraded(BEFORE, BEFORE + 2, data / FOLDER / f"version-{BEFORE}")
    after = contents(data / "store", mark, mark)
    assert after.pop("statistics") == sorted([*before.pop("statistics"), ((7, 0, 0), b"migrated")])
    assert after.pop("balances") == []
    assert before.pop("balances")
    assert dict(after.pop("meta")) == {**dict(before.pop("meta")), ("version",): BEFORE + 2}
    assert after == before


def test_the_copy_is_a_snapshot_that_the_older_program_can_restore(data: Path, tmp_path: Path):
    before = contents(data / "store")
    done = upgraded(data, mark)
    assert done is not None
    assert done.copy is not None
    manifest = snapshots.read(done.copy).manifest
    assert (manifest.program, manifest.store_version, manifest.taken_at_ms) == ("9.9", BEFORE, 99)
    assert manifest.rows["events"] == len(before["events"])
    snapshots.check_file(snapshots.read(done.copy), QUIET)
    again = tmp_path / "again"
    pepper = data / "pepper"
    restored = restore(
        done.copy,
        again,
        Restoring(None, False, Verification.FULL, pepper),
        run_sync=WORLD.run_sync,
        map_bytes=MAP_BYTES,
        steps=QUIET,
    )
    assert restored.pepper == "present"
    after = contents(again / "store")
    ended = {"sessions", "console_links", "invitations"}  # no restore brings them back, nor the keys that they own
    assert all(before[name] and not after[name] for name in ended)
    assert {name for name in before if after[name] != before[name]} == {*ended, "keys", "holdings"}


def test_the_copy_is_readable_by_its_owner_only(data: Path):
    done = upgraded(data, mark)
    assert done is not None
    assert done.copy is not None
    paths = [data / FOLDER, done.copy, *done.copy.iterdir()]
    assert [oct(path.stat().st_mode & 0o077) for path in paths] == ["0o0"] * 4


def test_a_store_of_this_version_and_a_missing_one_are_not_touched(data: Path, tmp_path: Path):
    assert upgraded(data) is None
    assert upgraded(tmp_path / "nowhere", mark) is None
    assert not (data / FOLDER).exists()
    assert not (tmp_path / "nowhere").exists()


def test_the_copy_of_the_previous_upgrade_is_replaced(data: Path):
    upgraded(data, mark)
    upgraded(data, mark, mark)
    assert [path.name for path in (data / FOLDER).iterdir()] == [f"version-{BEFORE + 1}"]


def test_an_upgrade_after_a_downgrade_keeps_the_current_store(data: Path):
    older = data.with_name("older")
    shutil.copytree(data, older)
    upgraded(data, mark)
    shutil.rmtree(data / "store")
    shutil.copytree(older / "store", data / "store")
    store = open_store(data / "store", WORLD.run_sync, map_bytes=MAP_BYTES)
    store.write_now([lambda transaction: transaction.put(BALANCES, (9,), 9)])
    store.close()
    done = upgraded(data, mark)
    assert done is not None
    assert done.copy is not None
    assert snapshots.read(done.copy).manifest.rows["balances"] == 2


def test_a_failed_migration_changes_nothing(data: Path):
    before = contents(data / "store")
    with pytest.raises(RuntimeError, match="half way"):
        upgraded(data, mark, breaks)
    assert contents(data / "store") == before
    done = upgraded(data, mark)
    assert done is not None
    assert done.copy is not None


def test_with_copy_disabled_no_copy_is_kept(data: Path):
    assert upgraded(data, mark, copy=False) == Upgraded(BEFORE, BEFORE + 1, None)
    assert not (data / FOLDER).exists()


def test_too_little_space_for_the_copy_is_reported_before_any_change(data: Path, monkeypatch: pytest.MonkeyPatch):
    usage = namedtuple("usage", "free")  # noqa: PYI024  as the library answers
    monkeypatch.setattr(upgrading.shutil, "disk_usage", lambda _: usage(1000))
    before = contents(data / "store")
    with pytest.raises(DirectoryError, match=r"has 0 MiB left, .* `svc serve --no-snapshot` once"):
        upgraded(data, mark)
    assert contents(data / "store") == before
    assert list((data / FOLDER).iterdir()) == []
    assert upgraded(data, mark, copy=False) is not None


def test_too_little_space_for_the_migration_leaves_the_store_unchanged(data: Path):
    def grows(transaction: Transaction) -> None:
        for number in range(400):
            transaction.put(STATISTICS, (number, 0, 0), b"x" * 100_000)

    before = contents(data / "store")
    with pytest.raises(StoreFullError):
        upgraded(data, grows, map_bytes=8 << 20)
    assert contents(data / "store") == before


def test_a_newer_store_is_rejected_and_no_table_is_created_in_it(data: Path):
    upgraded(data, mark)
    file = data / "store" / "data.mdb"
    before = file.read_bytes()
    for open_it in (upgraded, lambda path: open_directory(path, WORLD.run_sync, WORLD.entropy, map_bytes=MAP_BYTES)):
        with pytest.raises(NewerStoreError, match="run the newer program"):
            open_it(data)
    added = replace(BALANCES, name="later_table")
    with program_with(tables=(META, added)), pytest.raises(NewerStoreError):
        open_directory(data, WORLD.run_sync, WORLD.entropy, map_bytes=MAP_BYTES)
    assert file.read_bytes() == before


def test_commands_reject_an_older_store_and_leave_it_unchanged(data: Path):
    with (
        program_with(migrations=(*SCHEMA.migrations, mark)),
        pytest.raises(OlderStoreError, match="`svc serve` on it, which keeps a copy"),
    ):
        open_directory(data, WORLD.run_sync, WORLD.entropy, map_bytes=MAP_BYTES)
    open_directory(data, WORLD.run_sync, WORLD.entropy, map_bytes=MAP_BYTES).store.close()


def test_a_store_in_use_by_another_process_is_not_upgraded(data: Path):
    before = (data / "store" / "data.mdb").read_bytes()
    program = "import lmdb, sys; kept = lmdb.open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, str(data / "store")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(DirectoryError, match="another process is using it"):
            upgraded(data, mark)
        assert (data / "store" / "data.mdb").read_bytes() == before
        assert not (data / FOLDER).exists()
        other.communicate()
    assert upgraded(data, mark) is not None


def test_statistics_of_version_1_are_kept_by_class_and_belong_to_production(tmp_path: Path):
    """What was learned before counts for production; a row of an even older format is dropped: it is learned again."""
    old = replace(STATISTICS, key=BALANCES.key, value=Opaque())
    learned = Statistics()
    for family in (7, 8):
        features = msgspec.structs.replace(features_of(), family=family)
        learned.learn(StatisticsUpdate(features=features, new_devices=3.0, returned=1.0))
    rows = learned.rows()
    decode = msgspec.msgpack.decode
    shared = decode(rows.shared, strict=False) | {"format": 2}
    shared["classes"] = {family: decode(raw, strict=False) for family, raw in rows.classes.items()}
    del shared["rhythm"]  # of version 2
    version_1 = {1: shared, 2: shared | {"format": 1}}

    def as_before(transaction: Transaction) -> None:
        for organization, state in version_1.items():
            transaction.put(old, (organization,), msgspec.msgpack.encode(state))

    store = open_store(tmp_path, WORLD.run_sync, durable=False, map_bytes=MAP_BYTES, migrations=SCHEMA.migrations[:1])
    assert store.write_now([as_before]) == [None]
    store.close()
    store = open_store(tmp_path, WORLD.run_sync, durable=False, map_bytes=MAP_BYTES)
    with store.read() as snapshot:
        assert {key[:2] for key, _ in snapshot.scan(STATISTICS)} == {(1, PRODUCTION)}
        statistics = load_statistics(snapshot, 1, PRODUCTION)
        for family in (7, 8):
            load_class(snapshot, 1, PRODUCTION, family, statistics)
    store.close()
    later = {
        name: decode(Statistics().shared_bytes(), strict=False)[name] for name in ("rhythm", "newcomers", "visits")
    }
    kept = decode(rows.shared, strict=False) | later
    assert decode(statistics.rows().shared, strict=False) == kept
    assert statistics.rows().classes == rows.classes


def test_the_upgrade_to_version_8_clears_the_second_rows_of_lists(tmp_path: Path):
    """ADR 197; of a store that a program of version 7 has written."""
    directory, known = unpack(RELEASED / "unreleased" / "store-7.tar.xz", tmp_path)
    assert known["rows"]["list_marks"] > 0
    upgrade(directory, WORLD.run_sync, map_bytes=MAP_BYTES, program="test", now_ms=WORLD.now_ms, copy=False)
    marks = Table("list_marks", Key(organization=U32, mark=DIGEST_16), Opaque(), FOR_EVER, NOT_PERSONAL)
    with (
        program_with(tables=(*TABLES, marks)),
        read_only(directory / "store", live=True) as store,
        store.read() as snapshot,
    ):
        assert snapshot.count(marks) == 0
        assert snapshot.count(LIST_ENTRIES) == known["rows"]["list_entries"]


@pytest.mark.parametrize("version", [7, 8])
def test_an_upgrade_tells_rules_of_the_lists_that_have_entries(version: int, tmp_path: Path):
    directory, _ = unpack(RELEASED / "unreleased" / f"store-{version}.tar.xz", tmp_path)
    upgrade(directory, WORLD.run_sync, map_bytes=MAP_BYTES, program="test", now_ms=WORLD.now_ms, copy=False)
    with read_only(directory / "store", live=True) as store, store.read() as snapshot:
        named = [owner.filled_lists for _, owner in snapshot.scan(ORGANIZATIONS)]
        filled = [name for (_, name), found in snapshot.scan(LISTS) if found.entries]
        listed = [value for (_, value), _ in snapshot.scan(LISTED)]
        entries = [value for (_, _, value), _ in snapshot.scan(LIST_ENTRIES)]
        assert list(violations(snapshot)) == []
    assert named == [("blocked_addresses",)]
    assert filled == ["blocked_addresses"]
    assert listed == entries != []
