"""Snapshots, segments, the follower and restore: what is written, what of it comes back, and what is refused."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from svc.features.backup import segments, snapshots
from svc.features.backup.follower import Follower, NotResumed, resume
from svc.features.backup.restore import LossError
from svc.features.backup.segments import (
    CorruptBackupError,
    SegmentFile,
    SegmentRecord,
    SegmentWriter,
    Torn,
    listed,
    records,
)
from svc.features.checks.verification import Verification
from svc.features.keys.command import fresh_key
from svc.features.organizations.jobs import create_organization
from svc.features.schema import SCHEMA
from svc.identify.tables import STATISTICS
from svc.kernel.access.credentials import digest
from svc.kernel.access.jobs import begin_session, put_link, store_key
from svc.kernel.access.sessions import ConsoleLink, new_session
from svc.kernel.store import operations
from svc.kernel.store.engine import KeyRange
from svc.kernel.store.engine import Writer as EngineWriter
from svc.kernel.store.files.durable_files import exclusive
from svc.kernel.store.installation import NewerStoreError, put_new_pepper
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.operation_log import Batch, pack_batch
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import Steps
from svc.kernel.store.store import Store
from svc.kernel.store.tables import META
from svc.kernel.tenants.tables import BALANCES, LEDGER, ORGANIZATIONS
from svc.kernel.values.errors import DirectoryError
from svc.kernel.values.timestamps import timestamp
from tests.support.backup import BackedUp, put, recorded, recorded_batches, rows_of
from tests.support.schemas import program_with

TIMELINE = b"t" * 16
HOUR_MS = 3_600_000


@pytest.fixture
def world(tmp_path: Path) -> BackedUp:
    return BackedUp(tmp_path)


def batch(at_ms: int, value: bytes = b"value") -> bytes:
    return pack_batch(Batch(at_ms, {"balances": {b"key": value}}))


def written(folder: Path, count: int = 4, *, apart_ms: int = 1) -> list[SegmentFile]:
    folder.mkdir(exist_ok=True)
    writer = SegmentWriter(folder, TIMELINE, 0)
    for sequence in range(1, count + 1):
        writer.append(sequence, batch(sequence * apart_ms, b"%d" % sequence))
    writer.close()
    return listed(folder, TIMELINE)


def read(segment: SegmentFile) -> tuple[list[int], Torn | None]:
    """(sequences, what is torn) of a last segment."""
    found = list(records(segment, last=True))
    torn = found.pop() if found and isinstance(found[-1], Torn) else None
    return [record.sequence for record in found if isinstance(record, SegmentRecord)], torn


# Segments


def test_a_segment_returns_its_batches(tmp_path: Path):
    (segment,) = written(tmp_path)
    assert segment.path.name == f"operations-{TIMELINE.hex()}-0000000000000001.log"
    assert stat.S_IMODE(segment.path.stat().st_mode) == 0o600
    found = [record for record in records(segment, last=False) if isinstance(record, SegmentRecord)]
    assert [(record.sequence, record.batch.changes["balances"][b"key"]) for record in found] == [
        (1, b"1"), (2, b"2"), (3, b"3"), (4, b"4"),
    ]  # fmt: skip
    assert found[-1].end == segment.path.stat().st_size


def test_the_bytes_of_a_segment_are_pinned(tmp_path: Path):
    (segment,) = written(tmp_path, 1)
    head = b"svc log 1" + TIMELINE + (1).to_bytes(8)
    raw = batch(1, b"1")
    numbers = (1).to_bytes(8) + len(raw).to_bytes(4)
    assert segment.path.read_bytes() == head + numbers + crc32(TIMELINE + numbers).to_bytes(4) + raw


@pytest.mark.slow
def test_a_torn_last_record_is_skipped_and_following_continues(tmp_path: Path):
    (segment,) = written(tmp_path / "whole")
    whole = segment.path.read_bytes()
    begins = [record.end for record in records(segment, last=True)][-2]
    for length in range(begins + 1, len(whole)):
        torn = tmp_path / "torn"
        torn.mkdir()
        copy = segment._replace(path=torn / segment.path.name)
        copy.path.write_bytes(whole[:length])
        assert read(copy) == ([1, 2, 3], Torn(copy.path, begins, length - begins))
        writer, raw = segments.resume(torn, TIMELINE)
        assert (writer.copied, raw) == (3, batch(3, b"3"))
        writer.append(4, batch(4, b"4"))
        writer.close()
        assert copy.path.read_bytes() == whole
        copy.path.unlink()
        torn.rmdir()


def test_zeros_left_by_a_power_cut_are_torn_too(tmp_path: Path):
    (segment,) = written(tmp_path)
    size = segment.path.stat().st_size
    with segment.path.open("ab") as file:
        file.write(bytes(5000))
    assert read(segment) == ([1, 2, 3, 4], Torn(segment.path, size, 5000))


def test_an_incomplete_segment_header_is_replaced(tmp_path: Path):
    (segment,) = written(tmp_path, 1)
    segment.path.write_bytes(segment.path.read_bytes()[:20])
    assert read(segment) == ([], Torn(segment.path, 0, 20))
    writer, raw = segments.resume(tmp_path, TIMELINE)
    assert (writer.copied, raw) == (0, None)
    writer.append(1, batch(1, b"1"))
    writer.close()
    assert read(segment) == ([1], None)


@pytest.mark.slow
def test_a_bit_flip_before_the_last_record_is_reported_with_file_and_position(tmp_path: Path):
    (segment,) = written(tmp_path)
    whole = segment.path.read_bytes()
    ends = [0, 33, *(record.end for record in records(segment, last=True))]
    for place in range(ends[-2]):
        segment.path.write_bytes(whole[:place] + bytes((whole[place] ^ 4,)) + whole[place + 1 :])
        with pytest.raises(CorruptBackupError) as refused:
            read(segment)
        assert str(segment.path) in str(refused.value)
        begins = max(end for end in ends if end <= place)
        assert place < 33 or f"at byte {begins}:" in str(refused.value)


def test_only_the_last_segment_of_a_timeline_may_be_torn(tmp_path: Path):
    first, _ = written(tmp_path, 4, apart_ms=HOUR_MS // 2)
    first.path.write_bytes(first.path.read_bytes()[:-1])
    with pytest.raises(CorruptBackupError, match="another segment follows"):
        list(records(first, last=False))


def test_a_new_segment_is_started_each_hour(tmp_path: Path):
    found = written(tmp_path, 5, apart_ms=HOUR_MS // 2)
    assert [segment.first for segment in found] == [1, 3, 5]
    writer, _ = segments.resume(tmp_path, TIMELINE)
    assert writer.copied == 5
    writer.close()


# The follower


def test_a_follower_copies_committed_batches_and_the_log_is_truncated(world: BackedUp):
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        world.commit(store, 3)
        assert follower.step()
        assert recorded(store) == [0, 1, 2, 3], "each cut is a commit; it waits for some more"
        (segment,) = listed(world.folder)
        assert read(segment) == ([1, 2, 3], None)
        for _ in range(4):
            assert follower.step()
        assert recorded(store) == [3]
        assert (follower.batches, follower.bytes > 100) == (3, True)


def test_a_killed_follower_continues_where_its_segments_end(world: BackedUp):
    world.follow()
    with world.opened() as store:
        world.commit(store, 2)
        resumed = resume(store, world.folder)
        assert isinstance(resumed, SegmentWriter)
        assert Follower(store, resumed, lambda: world.clock.now_ms).step()
        resumed.close()  # the file alone: nothing was cut off
        (segment,) = listed(world.folder)
        segment.path.write_bytes(segment.path.read_bytes()[:-3])  # the batch is in the log still: it was never cut off
        world.commit(store, 2)
        assert recorded(store)[-1] == 4
        with world.following(store) as follower:
            assert follower.step()
    assert read(segment) == ([1, 2, 3, 4], None)
    assert world.restore(world.data.with_name("new")).batches == 4


def test_a_new_timeline_begins_where_following_cannot_continue(world: BackedUp, tmp_path: Path):
    def reason(folder: Path = world.folder) -> str:
        with world.opened() as store:
            resumed = resume(store, folder)
            if not isinstance(resumed, NotResumed):
                resumed.close()
                return "goes on"
            return resumed.because

    world.folder.mkdir()
    assert reason() == "nobody has followed this store"
    world.follow()
    assert reason() == "goes on"
    (tmp_path / "other").mkdir()
    assert "has no snapshot that the log continues" in reason(tmp_path / "other")
    with world.opened() as store:
        with world.following(store) as follower:
            world.commit(store, 3)
            follower.step()
        following = operations.follower(store.read().__enter__())
        assert following is not None
        store.change_log(partial(operations.begin, following=following))  # as a data directory that was set back
        world.commit(store, 1)
    assert "end at batch 3, where the log does not go on" in reason()
    with world.opened() as store:
        world.commit(store, 2, note="batches 2 and 3, which are others than those that were copied")
    assert "end at batch 3, where the log does not go on" in reason()
    (segment,) = listed(world.folder)
    segment.path.write_bytes(b"?" + segment.path.read_bytes()[1:])
    assert "does not begin as its name says" in reason()
    with world.opened() as store:
        store.change_log(partial(operations.drop, now_ms=5, because="it was too large"))
    assert reason() == "the operation log was dropped: it was too large"


def test_a_follower_reports_that_its_timeline_has_ended(world: BackedUp):
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        assert follower.step()
        store.change_log(operations.end)
        assert not follower.step()
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        store.change_log(partial(operations.drop, now_ms=5, because="it was too large"))
        assert not follower.step()


# Snapshots


def test_a_snapshot_describes_its_contents_and_is_readable_by_its_owner_only(world: BackedUp):
    with world.opened() as store:
        world.commit(store, 3)
    taken = world.snapshot()
    assert taken.path.name == "snapshot-20260101T000004.000Z"
    assert taken.manifest.rows["ledger"] == 3
    assert (taken.manifest.timeline, taken.manifest.sequence, taken.manifest.pepper) == (None, None, False)
    assert sorted(path.name for path in taken.path.iterdir()) == ["data.mdb", "manifest.json"]
    assert stat.S_IMODE(taken.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in taken.path.iterdir()} == {0o600}
    assert snapshots.listed(world.folder) == [taken]


def test_a_snapshot_of_a_corrupt_store_is_not_kept(world: BackedUp):
    with world.opened() as store:
        store.write_now([put(BALANCES, 1, value=5)])
    with pytest.raises(
        DirectoryError, match="does not pass its verification, so no snapshot was kept: organization 1 has a balance"
    ):
        world.snapshot()
    assert [path.name for path in world.folder.iterdir()] == [".lock"]


def test_checksum_verification_does_not_check_the_rules_between_rows(world: BackedUp, tmp_path: Path):
    """A faithful copy of a store that breaks a rule is better than none; the manifest says how it was verified."""
    with world.opened() as store:
        store.write_now([put(BALANCES, 1, value=5)])
    taken = world.snapshot(verification=Verification.CHECKSUMS)
    assert snapshots.read(taken.path).manifest.verified == "checksums"
    with pytest.raises(CorruptionError, match="does not pass its verification: organization 1 has a balance of 5"):
        world.restore(tmp_path / "full")
    world.restore(tmp_path / "restored", verification=Verification.CHECKSUMS)
    assert not (tmp_path / "full").exists()
    assert world.rows(tmp_path / "restored")["balances"] == world.rows()["balances"]


def garble(store: Store, table: Table[Any]) -> None:
    """Change the last byte of the first row of a table, as a disk would: its checksum stays as it was."""

    def flip(writer: EngineWriter) -> None:
        key, value = next(iter(writer.range(KeyRange(table.name, checked=False))))
        writer.put(table.name, key, value[:-1] + bytes([value[-1] ^ 1]))

    store.engine.write(flip)


@pytest.mark.parametrize("how", Verification)
@pytest.mark.parametrize("table", [BALANCES, LEDGER, ORGANIZATIONS, META])
def test_a_corrupt_row_makes_no_snapshot(world: BackedUp, table: Table[Any], how: Verification):
    with world.opened() as store:
        world.commit(store, 3)
        garble(store, table)
    with pytest.raises((DirectoryError, CorruptionError), match=f"a row of {table.name} fails its check"):
        world.snapshot(verification=how)
    assert not list(world.folder.glob("snapshot-*"))


def test_the_remains_of_an_interrupted_backup_are_removed(world: BackedUp):
    (world.folder / ".snapshot.partial").mkdir(parents=True)
    (world.folder / ".snapshot.partial" / "data.mdb").write_bytes(b"half")
    taken = world.snapshot()
    assert sorted(path.name for path in world.folder.iterdir()) == [".lock", taken.path.name]


def test_a_symbolic_link_in_place_of_a_backup_is_rejected_and_not_followed(world: BackedUp, tmp_path: Path):
    world.folder.mkdir(parents=True)
    (tmp_path / "target").mkdir()
    (world.folder / ".snapshot.partial").symlink_to(tmp_path / "target")
    with pytest.raises(DirectoryError, match=r"snapshot\.partial is a symbolic link, which no backup makes: remove it"):
        world.snapshot()
    assert list((tmp_path / "target").iterdir()) == []


def test_two_concurrent_backups_and_two_stores_in_one_folder_are_rejected(world: BackedUp, tmp_path: Path):
    world.snapshot()
    with (
        exclusive(world.folder / ".lock", "held by this test"),
        pytest.raises(DirectoryError, match="another backup is being made"),
    ):
        world.snapshot()
    other = BackedUp(tmp_path / "other")
    other.folder = world.folder
    with pytest.raises(DirectoryError, match="holds backups of another store"):
        other.snapshot()


def test_a_restore_past_a_new_pepper_leaves_the_old_one_out(world: BackedUp):
    """The snapshot has it, and the log that continues the snapshot has the mark of its successor."""
    world.follow()
    world.snapshot(pepper=world.data / "pepper")
    with world.opened() as store, world.following(store) as follower:
        before_ms = world.clock.now_ms
        world.clock.advance(seconds=1)
        put_new_pepper(store, world.data / "pepper", world.world.entropy, lambda: 0)
        world.commit(store)
        follower.step(is_last=True)
    for to_ms, told in ((before_ms, "restored"), (None, "missing")):
        directory = world.data.with_name(told)
        assert world.restore(directory, to_ms=to_ms).pepper == told
        assert (directory / "pepper").exists() == (told == "restored")


def test_pruning_keeps_the_newest_snapshots_and_the_segments_that_they_need(world: BackedUp):
    world.follow()
    names: list[str] = []
    last_ms = 0
    for _ in range(3):
        with world.opened() as store, world.following(store) as follower:
            world.commit(store, 2)
            follower.step()
        last_ms = world.clock.now_ms
        world.clock.advance(hours=2)
        names.append(world.snapshot().path.name)
    assert len(snapshots.listed(world.folder)) == 4
    assert [segment.first for segment in listed(world.folder)] == [1, 3, 5]
    before = world.rows()
    snapshots.prune(world.folder, 2, None)
    assert [snapshot.path.name for snapshot in snapshots.listed(world.folder)] == names[1:]
    assert [segment.first for segment in listed(world.folder)] == [5], "the older snapshot holds all before batch 5"
    restored = world.restore(world.data.with_name("new"), source=snapshots.listed(world.folder)[0].path,
                             to_ms=last_ms)  # fmt: skip
    assert restored.batches == 2
    assert world.rows(world.data.with_name("new")) == before


@pytest.mark.parametrize("jump_ms", [3650 * 24 * HOUR_MS, -24 * HOUR_MS], ids=["ahead", "behind"])
def test_the_newest_snapshot_is_the_one_taken_last_whatever_the_clock_showed(
    world: BackedUp, tmp_path: Path, jump_ms: int
):
    """By its date a snapshot of a clock that ran ahead stayed the newest for ten years: pruning removed each that came
    after it, and a restore took it.
    """
    taken: list[Path] = []
    for shift_ms in (0, jump_ms, -jump_ms):
        with world.opened() as store:
            world.commit(store)
        world.clock.jump(seconds=shift_ms / 1000)
        taken.append(world.snapshot().path)
    assert [snapshot.path for snapshot in snapshots.listed(world.folder)] == taken
    assert [snapshot.manifest.number for snapshot in snapshots.listed(world.folder)] == [1, 2, 3]
    assert world.restore(tmp_path / "new").snapshot.path == taken[-1]
    assert snapshots.prune(world.folder, 1, None) == taken[:-1]


def test_snapshots_without_a_number_are_ordered_by_date_among_the_others(world: BackedUp):
    """Programs before this one wrote none; after a downgrade such a snapshot may be the newest."""
    taken = [world.snapshot().path for _ in range(4)]
    for path in (taken[0], taken[3]):
        file = path / "manifest.json"
        file.write_text(re.sub(r',\s*"number": \d+', "", file.read_text()))
    assert [snapshot.manifest.number for snapshot in snapshots.listed(world.folder)] == [0, 2, 3, 0]
    assert [snapshot.path for snapshot in snapshots.listed(world.folder)] == taken


@pytest.mark.parametrize("content", [None, b""], ids=["missing", "empty"])
def test_a_snapshot_without_its_manifest_says_what_to_do(world: BackedUp, tmp_path: Path, content: bytes | None):
    """What is left of a folder that somebody began to delete stopped each backup after it."""
    first, second = world.snapshot(), world.snapshot()
    (first.path / "manifest.json").unlink()
    if content is not None:
        (first.path / "manifest.json").write_bytes(content)
    for attempt in (world.snapshot, partial(world.restore, tmp_path / "new")):
        with pytest.raises(DirectoryError, match=rf"{first.path}.*: move that snapshot out of {world.folder};"):
            attempt()
    assert world.restore(tmp_path / "new", source=second.path).snapshot == second
    first.path.rename(tmp_path / "moved")
    world.snapshot()


def test_pruning_keeps_the_segment_being_written(world: BackedUp):
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        world.commit(store)
        follower.step()
    (segment,) = listed(world.folder)
    with world.opened() as store:
        store.change_log(operations.end)
    world.clock.advance(seconds=1)
    world.snapshot()
    snapshots.prune(world.folder, 1, segment.timeline)
    assert listed(world.folder) == [segment]
    snapshots.prune(world.folder, 1, None)
    assert listed(world.folder) == []


# Restore


@pytest.mark.slow
def test_a_store_can_be_restored_to_every_moment(world: BackedUp, tmp_path: Path):
    states = {}
    with world.opened() as store:
        world.commit(store, 2)
    world.follow()
    for _ in range(2):
        with world.opened() as store, world.following(store) as follower:
            for _ in range(3):
                states[world.clock.now_ms] = rows_of(store)
                world.commit(store)
                follower.step()
            states[world.clock.now_ms] = rows_of(store)
            world.clock.advance(seconds=1)
            follower.step(is_last=True)
        world.snapshot()
    assert len(states) == 8
    for number, (moment, rows) in enumerate(states.items()):
        directory = tmp_path / f"at-{number}"
        restored = world.restore(directory, to_ms=moment + 999)
        assert moment - 1000 <= restored.at_ms <= moment
        assert world.rows(directory) == rows
    world.restore(tmp_path / "last")
    assert world.rows(tmp_path / "last") == rows


def test_a_moment_is_reached_across_commits_of_a_clock_that_ran_ahead(world: BackedUp, tmp_path: Path):
    """The first of them ended the restore, which reported no loss of what came after."""
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        world.commit(store)
        world.clock.jump(hours=87_600)
        world.commit(store, 2)
        world.clock.jump(hours=-87_600)
        world.commit(store, 2)
        moment, rows = world.clock.now_ms, rows_of(store)
        world.commit(store)
        follower.step(is_last=True)
    restored = world.restore(tmp_path / "new", to_ms=moment)
    assert (restored.batches, restored.at_ms, restored.loss) == (5, moment, None)
    assert world.rows(tmp_path / "new") == rows


def test_a_named_snapshot_is_restored_as_taken_or_rolled_forward(world: BackedUp, tmp_path: Path):
    first = world.follow()
    with world.opened() as store, world.following(store) as follower:
        world.commit(store, 2)
        follower.step()
    assert world.restore(tmp_path / "as-taken", source=first.path).batches == 0
    assert world.restore(tmp_path / "on", source=first.path, to_ms=world.clock.now_ms).batches == 2


def test_a_restored_store_is_not_followed_and_its_log_is_empty(world: BackedUp, tmp_path: Path):
    world.follow()
    with world.opened() as store:
        world.commit(store, 2)
    world.clock.advance(seconds=1)
    world.snapshot()  # with two batches in its log
    world.restore(tmp_path / "new")
    with world.opened(tmp_path / "new") as store:
        assert recorded(store) == []
        with store.read() as snapshot:
            assert operations.follower(snapshot) is None


def test_no_session_and_no_link_is_restored_from_a_snapshot_or_the_log(world: BackedUp, tmp_path: Path):
    """Nor from a moment at which they were good: a link may have been used since, and a session ended."""
    with world.opened() as store:
        sign_in(world, store, "before")
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        sign_in(world, store, "later")
        follower.step()
    held = world.rows()
    assert (len(held["sessions"]), len(held["console_links"])) == (4, 2)
    restored = world.restore(tmp_path / "new")
    rows = world.rows(tmp_path / "new")
    assert (rows["sessions"], rows["console_links"]) == ([], [])
    revoked = {key.name: key.revoked_at_ms for _, key in rows["keys"]}
    for name in ("before", "later"):
        assert revoked[f"{name}-pasted"] is None
        assert {revoked[f"{name}-session"], revoked[f"{name}-link"]} == {restored.at_ms}
    changed = {"sessions", "console_links", "keys", "holdings"}
    assert {name for name in rows if rows[name] != held[name]} == changed


def sign_in(world: BackedUp, store: Store, name: str) -> None:
    """A session that a link began, an unused link, and a session of a key that was pasted."""
    now_ms = world.clock.now_ms

    def job(transaction: Transaction) -> None:
        for what in ("session", "link", "pasted"):
            key, secret = fresh_key(
                world.world,
                b"pepper",
                organization=1,
                kind="management",
                name=f"{name}-{what}",
                environment=None,
                region="us",
                role="admin",
            )
            found_by = digest(b"pepper", secret)
            store_key(transaction, key, found_by)
            if what == "link":
                link = ConsoleLink(key_id=key.id, expires_at_ms=now_ms + 600_000, owns_key=True)
                put_link(transaction, 1, found_by, link, now_ms)
            else:
                session = new_session(now_ms, secure=True, key_id=key.id, owns_key=what == "session")
                begin_session(transaction, 1, found_by, session)

    assert store.write_now([job]) == [None]


def test_a_torn_end_is_omitted_and_reported(world: BackedUp, tmp_path: Path):
    """It was never recorded as copied, so that nothing that was is missing."""
    world.follow()
    with world.opened() as store:
        with world.following(store) as follower:
            world.commit(store, 2)
            follower.step()
        world.commit(store)
        resumed = resume(store, world.folder)
        assert isinstance(resumed, SegmentWriter)
        ((sequence, raw),) = [batch for batch in recorded_batches(store) if batch[0] > resumed.copied]
        resumed.append(sequence, raw)
        resumed.close()
    (segment,) = listed(world.folder)
    whole = [record.end for record in records(segment, last=True)]
    segment.path.write_bytes(segment.path.read_bytes()[:-1])
    restored = world.restore(tmp_path / "new")
    assert restored.batches == 2
    assert restored.torn == Torn(segment.path, whole[1], whole[2] - whole[1] - 1)


def test_corruption_in_the_middle_is_rejected_and_what_precedes_it_can_be_restored(world: BackedUp, tmp_path: Path):
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        world.commit(store, 1)
        before, moment = rows_of(store), world.clock.now_ms
        world.commit(store, 3)
        follower.step()
    (segment,) = listed(world.folder)
    _, second, *_ = [record.end for record in records(segment, last=True)]
    content = bytearray(segment.path.read_bytes())
    content[second - 1] ^= 1
    segment.path.write_bytes(content)
    with pytest.raises(LossError) as refused:
        world.restore(tmp_path / "new")
    assert str(segment.path) in str(refused.value)
    assert f"ends at {timestamp(moment)}, 3 s before" in str(refused.value)
    assert not (tmp_path / "new").exists()
    world.restore(tmp_path / "new", to_ms=moment)
    assert world.rows(tmp_path / "new") == before


def test_a_missing_segment_is_rejected(world: BackedUp, tmp_path: Path):
    world.follow()
    for _ in range(3):
        with world.opened() as store, world.following(store) as follower:
            world.commit(store)
            follower.step()
            world.clock.advance(hours=1)
    listed(world.folder)[1].path.unlink()
    with pytest.raises(LossError, match="the segment with batch 2 is missing before"):
        world.restore(tmp_path / "new")


def test_batches_of_another_timeline_are_never_applied_to_a_snapshot(world: BackedUp, tmp_path: Path):
    first = world.follow()
    with world.opened() as store:
        world.commit(store, 2)  # lost: nobody copied them before following began again
    world.clock.advance(seconds=1)
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        world.commit(store, 2)
        follower.step()
    later = world.clock.now_ms
    assert world.restore(tmp_path / "old", source=first.path, to_ms=later).batches == 0
    assert world.restore(tmp_path / "new", to_ms=later).batches == 2
    assert world.rows(tmp_path / "new") == world.rows()


def bad_directory(world: BackedUp) -> None:
    (world.data.with_name("new")).mkdir()
    (world.data.with_name("new") / "something").touch()


def bad_leftover(world: BackedUp) -> None:
    world.data.with_name("new.restoring").mkdir()


def bad_snapshot_file(world: BackedUp) -> None:
    file = snapshots.listed(world.folder)[0].file
    file.write_bytes(file.read_bytes()[:-1] + b"?")


def bad_manifest(world: BackedUp) -> None:
    (snapshots.listed(world.folder)[0].path / "manifest.json").write_text("{}")


def newer_manifest(world: BackedUp) -> None:
    (snapshots.listed(world.folder)[0].path / "manifest.json").write_text('{"format": 2}')


def newer_store(world: BackedUp) -> None:
    file = snapshots.listed(world.folder)[0].path / "manifest.json"
    file.write_text(file.read_text().replace(f'"store_version": {SCHEMA.version}', '"store_version": 99'))


def no_snapshot(world: BackedUp) -> None:
    snapshots.listed(world.folder)[0].path.rename(world.folder / "renamed")


@pytest.mark.parametrize(
    ("spoil", "kind", "says"),
    [
        (bad_directory, DirectoryError, "is there and not empty"),
        (bad_leftover, DirectoryError, "left of a restore that did not end"),
        (bad_snapshot_file, CorruptionError, "is not what its manifest says"),
        (bad_manifest, DirectoryError, "is not a manifest"),
        (newer_manifest, NewerStoreError, "has the form 2"),
        (newer_store, NewerStoreError, "has version 99 and this program knows"),
        (no_snapshot, DirectoryError, "holds no snapshot"),
    ],
)
def test_an_impossible_restore_is_rejected_and_leaves_nothing(
    world: BackedUp, spoil: Callable[[BackedUp], None], kind: type[Exception], says: str
):
    world.snapshot()
    spoil(world)
    before = sorted(world.data.parent.rglob("*"))
    with pytest.raises(kind, match=says):
        world.restore(world.data.with_name("new"))
    assert sorted(world.data.parent.rglob("*")) == before


def test_a_restore_beside_a_running_one_says_that_it_runs(world: BackedUp):
    refused: list[str] = []

    class Beside(Steps):
        def stage(self, label: str, length: int) -> None:
            with pytest.raises(DirectoryError) as error:
                world.restore(world.data.with_name("new"))
            refused.append(str(error.value))

    world.snapshot()
    world.restore(world.data.with_name("new"), steps=Beside())
    assert refused
    assert all("another `svc restore` is running" in line for line in refused), refused
    assert world.rows(world.data.with_name("new")) == world.rows()


def test_a_moment_before_the_oldest_snapshot_is_rejected(world: BackedUp, tmp_path: Path):
    taken = world.snapshot()
    for source in (world.folder, taken.path):
        with pytest.raises(DirectoryError, match=r"was taken at 2026-01-01T00:00:01\.000Z"):
            world.restore(tmp_path / "new", source=source, to_ms=world.clock.now_ms - 1)


def test_a_log_that_leads_to_a_newer_store_is_rejected(world: BackedUp, tmp_path: Path):
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        store.write_now([put(META, "version", value=SCHEMA.version + 1)])
        follower.step()
    with pytest.raises(NewerStoreError):
        world.restore(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_older_snapshot_is_upgraded(world: BackedUp, tmp_path: Path):
    taken = world.snapshot()
    later = (*SCHEMA.migrations, lambda transaction: None)
    with program_with(migrations=later):
        with pytest.raises(DirectoryError, match="older program"), snapshots.read_only(taken.file, live=False):
            pass
        world.restore(tmp_path / "new")
        with world.opened(tmp_path / "new") as store, store.read() as snapshot:
            assert snapshot.get(META, "version") == len(later)


@pytest.mark.slow
def test_a_large_row_that_became_smaller_within_the_log_is_restored(world: BackedUp, tmp_path: Path):
    """The commits of a log are made again in one transaction, and there LMDB leaves a smaller value the pages of the
    larger one that it replaces. The verification refused that as corrupt, and with it a sound backup.
    """
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        for size in (30_000, 6_000, 9_000):
            store.write_now([put(STATISTICS, 1, 0, 0, value=bytes(range(250)) * (size // 250))])
            follower.step()
    assert world.restore(tmp_path / "new").batches == 3
    assert world.rows(tmp_path / "new") == world.rows()


def test_a_large_log_is_applied_in_several_commits(world: BackedUp, tmp_path: Path):
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        for number in range(2, 60):
            job = partial(create_organization, organization_id=f"org_{number}", name="n" * 400_000, now_ms=0,
                          rate_limit_per_s=0)  # fmt: skip
            assert not isinstance(store.write_now([job])[0], Exception)
            follower.step()
    restored = world.restore(tmp_path / "new")
    assert restored.batches == 58
    assert world.rows(tmp_path / "new") == world.rows()
