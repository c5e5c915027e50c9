"""`svc store compact`: what it leaves out of the file, whom it keeps away, and what a failure leaves behind."""

from __future__ import annotations

import os
import random
from collections import namedtuple
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from svc.features.upgrade import compact as compacting
from svc.features.upgrade.compact import PARTIAL, Compacted, compact
from svc.identify.tables import DOCUMENTS, STATISTICS
from svc.kernel.store.directory import open_directory
from svc.kernel.store.engine import CheckDepth
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.opening import open_store
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.steps import QUIET, Steps
from svc.kernel.store.store import Store
from svc.kernel.tenants.tables import BALANCES
from svc.kernel.values.errors import DirectoryError
from svc.world import World
from tests.spec.automation import Automation
from tests.spec.test_erasure import identified, marked, tell_later
from tests.support.live import live_service
from tests.support.process import run_json

MAP_BYTES = 64 << 20
SECRET = b"what was deleted and must be gone"


def opened(directory: Path) -> Store:
    return open_store(directory, World.real().run_sync, map_bytes=MAP_BYTES, durable=False)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with rows of all sizes, and with deleted ones in its free pages."""
    path, chance = tmp_path / "store", random.Random(1)
    store = opened(path)
    put = [
        lambda transaction, number=number: transaction.put(
            STATISTICS, (number, 0, 0), SECRET + chance.randbytes(chance.choice((5, 900, 9_000)))
        )
        for number in range(300)
    ]
    store.write_now(put)
    store.write_now([lambda transaction: [transaction.delete(STATISTICS, number, 0, 0) for number in range(300)]])
    store.write_now([lambda transaction: [transaction.put(BALANCES, (number,), number) for number in range(50)]])
    store.close()
    (path / "data.mdb").chmod(0o640)
    return path


def assert_good(path: Path) -> None:
    store = opened(path)
    store.engine.check(CheckDepth.EVERYTHING)
    with store.read() as snapshot:
        assert [key for key, _ in snapshot.scan(BALANCES)] == [(number,) for number in range(50)]
    store.write_now([lambda transaction: transaction.put(BALANCES, (99,), 1)])
    store.write_now([lambda transaction: transaction.delete(BALANCES, 99)])
    store.close()


async def test_bytes_of_an_erased_visitor_are_in_the_file_before_and_not_after(tmp_path: Path):
    file = tmp_path / "data" / "store" / "data.mdb"
    async with live_service(tmp_path / "data") as live:
        admin, (_, public) = Automation(live), live.issue()
        for device in range(2, 6):
            await identified(live, public, marked(f"other-{device}", device))
        given = {"tag": "tag-of-a", "headers": {"x-forwarded-for": "81.2.69.77"}}
        first = await identified(live, public, marked("of-a"), **given)
        large = await identified(live, public, {**marked("of-a"), "padding": "x" * 9000}, tag="tag-of-a")
        await tell_later(live, public, first, "of-a")
        with live.found.store.read() as snapshot:
            archives = [
                snapshot.get(DOCUMENTS, live.organization.number, UUID(answer["request_id"]).bytes).signals
                for answer in (first, large)
            ]
        visitor_id = first["visitor_id"]
        assert (await admin("DELETE", f"/visitors/{visitor_id}")).status_code == 204
    marks = [b"tag-of-a", b"81.2.69.77", visitor_id.encode()]
    marks += [archive[-end:][:24] for archive in archives for end in (64, 44, 24)]
    before = file.read_bytes()
    assert [mark for mark in marks if mark not in before] == [], "free pages still hold them"
    done = compact(file.parent, QUIET)
    after = file.read_bytes()
    assert [mark for mark in marks if mark in after] == [visitor_id.encode()]
    assert after.count(visitor_id.encode()) == 1, "its id, on record as erased"
    assert (done.bytes_before, done.bytes_after) == (len(before), len(after))
    async with live_service(tmp_path / "data", now_ms=live.clock.now_ms) as live:
        assert (await identified(live, public, marked("other-2", 2)))["visitor_is_new"] is False


def test_the_compacted_store_has_all_rows_and_its_mode(store: Path):
    before = (store / "data.mdb").read_bytes()
    assert SECRET in before
    done = compact(store, QUIET)
    after = (store / "data.mdb").read_bytes()
    assert done == Compacted(len(before), len(after), 51)  # with the version
    assert SECRET not in after
    assert (store / "data.mdb").stat().st_mode & 0o777 == 0o640
    assert not (store / PARTIAL).exists()
    assert_good(store)


class Stop(Steps):
    """Fails when a stage begins."""

    def __init__(self, at: int) -> None:
        self._left = at

    def stage(self, label: str, length: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise OSError(28, "No space left on device", label)


@pytest.mark.parametrize("stage", range(3))
def test_a_failure_at_any_stage_leaves_the_store_unchanged(store: Path, stage: int):
    before = (store / "data.mdb").read_bytes()
    with pytest.raises(DirectoryError, match=r"which is as it was: .*No space left on device; free some space"):
        compact(store, Stop(stage))
    assert (store / "data.mdb").read_bytes() == before
    assert not (store / PARTIAL).exists()
    assert_good(store)


def test_a_crash_while_copying_or_before_the_rename_leaves_a_valid_store_and_is_completed(store: Path):
    whole = (store / "data.mdb").read_bytes()
    for left in (whole[:9000], whole):
        (store / PARTIAL).mkdir()
        (store / PARTIAL / "data.mdb").write_bytes(left)
        assert_good(store)
        assert compact(store, QUIET).rows == 51
        assert not (store / PARTIAL).exists()
        assert_good(store)


def test_nothing_is_left_of_a_value_that_a_smaller_one_replaced_in_the_same_transaction(tmp_path: Path):
    """LMDB leaves the smaller one all pages of the larger, as in a store that was restored."""
    path, key, raw = tmp_path / "store", STATISTICS.key.pack(1, 0, 0), list[bytes]()
    store = opened(path)
    for value in (bytes(20_000) + SECRET, b"x" * 5_000):
        store.write_now([lambda transaction, value=value: transaction.put(STATISTICS, (1, 0, 0), value)])
        with store.read() as snapshot:
            raw.append(snapshot.reader.get(STATISTICS.name, key) or b"")
    store.close()
    with closing(LmdbEngine.open(path, map_bytes=MAP_BYTES, durable=False)) as engine:
        engine.open_tables([STATISTICS.name])
        engine.write(lambda writer: [writer.put(STATISTICS.name, key, value) for value in raw])
    compact(path, QUIET)
    assert SECRET not in (path / "data.mdb").read_bytes()
    store = opened(path)
    store.engine.check(CheckDepth.EVERYTHING)
    store.close()


def test_compaction_requires_exclusive_access(store: Path):
    inside, leave = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:  # locks of one process don't keep it from itself
        held = opened(store)  # noqa: F841  closed when it is forgotten
        os.write(inside[1], b"x")
        os.read(leave[0], 1)
        os._exit(0)
    os.read(inside[0], 1)
    try:
        with pytest.raises(DirectoryError, match="is in use by another process"):
            compact(store, QUIET)
    finally:
        os.write(leave[1], b"x")
        os.waitpid(child, 0)
        for descriptor in (*inside, *leave):
            os.close(descriptor)
    assert compact(store, QUIET).rows == 51


def test_too_little_space_is_reported_with_the_required_amount(store: Path, monkeypatch: pytest.MonkeyPatch):
    usage = namedtuple("usage", "free")  # noqa: PYI024  as the library answers
    monkeypatch.setattr(compacting.shutil, "disk_usage", lambda _: usage(1000))
    with pytest.raises(DirectoryError, match=r"has 0 MiB left, and the copy beside the store may take \d+ MiB"):
        compact(store, QUIET)
    assert_good(store)


@pytest.mark.slow(0.6)
def test_a_corrupt_store_is_not_compacted(store: Path):
    file = store / "data.mdb"
    image = bytearray(file.read_bytes())
    image[144] ^= 64  # the number of a commit
    file.write_bytes(image)
    with pytest.raises(CorruptionError):
        compact(store, QUIET)
    assert file.read_bytes() == bytes(image)


@pytest.mark.slow
def test_the_command_reports_its_result(tmp_path: Path):
    world = World.real()
    open_directory(tmp_path, world.run_sync, world.entropy).store.close()
    done = run_json("store", "compact", "--data", str(tmp_path))
    assert done["rows"] == 2, "its version and the mark of its pepper"
    assert done["bytes_after"] == (tmp_path / "store" / "data.mdb").stat().st_size
