"""What a restore misses of what was copied, by the record of the follower (decisions 17.6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from svc.features.backup import copied_up_to, snapshots
from svc.features.backup.follower import Follower, NotResumed, resume
from svc.features.backup.restore import LossError
from svc.features.backup.segments import SegmentFile, SegmentWriter, listed
from svc.kernel.store import operations
from svc.kernel.store.installation import NewerStoreError
from svc.kernel.values.errors import DirectoryError
from tests.support.backup import BackedUp, recorded

HOURS = 3


@pytest.fixture
def world(tmp_path: Path) -> BackedUp:
    """Three segments of two commits each, an hour apart, and an idle minute at the end; `times` of the commits."""
    world = BackedUp(tmp_path)
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        for _ in range(HOURS):
            world.commit(store, 2)
            assert follower.step()
            world.clock.advance(hours=1)
        world.clock.advance(seconds=60)
        assert follower.step(is_last=True)
    assert [segment.first for segment in listed(world.folder)] == [1, 3, 5]
    return world


def record(world: BackedUp) -> copied_up_to.CopiedUpTo:
    (copied,) = copied_up_to.listed(world.folder)
    return copied


def remove(segment: SegmentFile) -> None:
    segment.path.unlink()


def cut(segment: SegmentFile) -> None:
    """A whole record less, as a file system that lost its end: nothing about it is torn."""
    data = segment.path.read_bytes()
    length = int.from_bytes(data[33 + 8 : 33 + 12])
    segment.path.write_bytes(data[: 33 + 16 + length])


def tear(segment: SegmentFile) -> None:
    segment.path.write_bytes(segment.path.read_bytes()[:-1])


def flip(segment: SegmentFile) -> None:
    data = bytearray(segment.path.read_bytes())
    data[60] ^= 1
    segment.path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "number", "batches"),
    [
        (remove, 0, 0), (remove, 1, 2), (remove, 2, 4),
        (cut, 0, 1), (cut, 1, 3), (cut, 2, 5),
        (tear, 0, 1), (tear, 1, 3), (tear, 2, 5),
        (flip, 0, 0), (flip, 1, 2), (flip, 2, 4),
    ],
)  # fmt: skip
def test_a_part_of_the_log_that_is_missing_is_refused_with_how_much_it_is(
    world: BackedUp, tmp_path: Path, spoil: Callable[[SegmentFile], None], number: int, batches: int
):
    spoil(listed(world.folder)[number])
    before = sorted(tmp_path.iterdir())
    copied = record(world)
    for to_ms in (None, copied.at_ms):
        with pytest.raises(LossError, match=rf"{6 - batches} commit"):
            world.restore(tmp_path / "new", to_ms=to_ms)
    assert sorted(tmp_path.iterdir()) == before, "nothing was made"
    restored = world.restore(tmp_path / "new", accept_loss=True)
    assert restored.loss is not None
    assert (restored.batches, restored.loss.commits) == (batches, 6 - batches)
    assert restored.loss.short_s == (copied.at_ms - restored.at_ms) / 1000
    assert restored.loss.reached_ms == restored.at_ms
    assert world.restore(tmp_path / "as-asked", to_ms=restored.at_ms).batches == batches, "that moment is reached"


def test_a_moment_within_a_gap_is_refused(world: BackedUp, tmp_path: Path):
    """The next segment that is there begins after that moment, which says nothing of the one that is missing."""
    before = snapshots.listed(world.folder)[0].manifest.taken_at_ms
    remove(listed(world.folder)[1])
    with pytest.raises(LossError, match="batch 3 is missing before"):
        world.restore(tmp_path / "new", to_ms=before + 3_700_000)
    assert world.restore(tmp_path / "new", to_ms=before + 2000).batches == 2


def test_an_idle_hour_is_no_loss_and_what_comes_after_the_last_record_is(world: BackedUp, tmp_path: Path):
    at_ms = record(world).at_ms
    for name, to_ms in (("last", None), ("idle", at_ms - 3_500_000), ("end", at_ms)):
        restored = world.restore(tmp_path / name, to_ms=to_ms)
        assert (restored.batches, restored.loss, restored.is_unknown) == (6, None, False)
    with pytest.raises(LossError, match=r"1\.5 s before"):
        world.restore(tmp_path / "new", to_ms=at_ms + 1500)
    restored = world.restore(tmp_path / "new", to_ms=at_ms + 1500, accept_loss=True)
    assert restored.loss is not None
    assert (restored.batches, restored.loss.short_s, restored.loss.commits) == (6, 1.5, 0)


def test_a_snapshot_that_is_newer_than_the_log_is_no_loss(world: BackedUp, tmp_path: Path):
    with world.opened() as store:
        world.commit(store, 2)  # never copied
    taken = world.snapshot()
    for segment in listed(world.folder):
        remove(segment)
    restored = world.restore(tmp_path / "new")
    assert (restored.batches, restored.at_ms, restored.loss) == (0, taken.manifest.taken_at_ms, None)
    with pytest.raises(LossError, match="nothing was copied after that"):
        world.restore(tmp_path / "later", to_ms=restored.at_ms + 1)


def test_without_a_record_the_end_is_unknown_and_a_gap_is_refused(world: BackedUp, tmp_path: Path):
    """Backups of older versions have none: they are restored as before."""
    (path,) = world.folder.glob("copied-*")
    path.unlink()
    late_ms = world.clock.now_ms + 60_000
    for name, to_ms, is_unknown in (
        ("last", None, True),
        ("late", late_ms, True),
        ("early", late_ms - 7_300_000, False),
    ):
        restored = world.restore(tmp_path / name, to_ms=to_ms)
        assert (restored.loss, restored.is_unknown) == (None, is_unknown)
    remove(listed(world.folder)[1])
    with pytest.raises(LossError, match="what was committed later is lost: the segment with batch 3 is missing"):
        world.restore(tmp_path / "new")
    restored = world.restore(tmp_path / "new", accept_loss=True)
    assert restored.loss is not None
    assert (restored.batches, restored.loss.short_s) == (2, None)


@pytest.mark.parametrize(
    ("content", "error"), [(b"", DirectoryError), (b"{}", DirectoryError), (b"\xff", DirectoryError),
    (b'{"format": 2, "timeline": "", "sequence": 1, "at_ms": 1}', NewerStoreError)],
)  # fmt: skip
def test_a_record_that_cannot_be_read_is_refused(world: BackedUp, tmp_path: Path, content: bytes, error: type):
    (path,) = world.folder.glob("copied-*")
    path.write_bytes(content)
    with pytest.raises(error, match=path.name):
        world.restore(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_snapshots_without_a_log_reach_their_own_moment_only(tmp_path: Path):
    world = BackedUp(tmp_path)
    at_ms = world.snapshot().manifest.taken_at_ms
    assert world.restore(tmp_path / "last").loss is None
    assert world.restore(tmp_path / "then", to_ms=at_ms).loss is None
    with pytest.raises(LossError, match=r"60 s before .* no log continues the snapshot"):
        world.restore(tmp_path / "new", to_ms=at_ms + 60_000)
    restored = world.restore(tmp_path / "new", to_ms=at_ms + 60_000, accept_loss=True)
    assert restored.loss is not None
    assert restored.loss.short_s == 60


def test_a_later_timeline_whose_snapshot_is_missing_is_a_loss(world: BackedUp, tmp_path: Path):
    (early,) = snapshots.listed(world.folder)
    later = world.follow()
    with world.opened() as store, world.following(store) as follower:
        world.commit(store, 2)
        assert follower.step()
    later.path.rename(tmp_path / "elsewhere")
    assert snapshots.listed(world.folder) == [early]
    with pytest.raises(LossError, match="the snapshot that the later log continues is missing"):
        world.restore(tmp_path / "new")
    assert world.restore(tmp_path / "new", accept_loss=True).batches == 6
    assert world.restore(tmp_path / "named", source=early.path).loss is None, "as it was taken"


def test_what_is_cut_off_the_log_is_in_the_record_first(world: BackedUp, tmp_path: Path):
    """A follower that ends at any step leaves a record that names all that was cut off, and no more than was copied."""
    with world.opened() as store:
        for steps in range(1, 7):
            resumed = resume(store, world.folder)
            assert isinstance(resumed, SegmentWriter)
            follower = Follower(store, resumed, lambda: world.clock.now_ms)
            for _ in range(steps):
                world.commit(store)
                follower.step()
                assert recorded(store)[0] <= record(world).sequence <= resumed.copied
            resumed.close()  # the file alone: nothing is recorded or cut off
            assert world.restore(tmp_path / f"after-{steps}").loss is None


def test_the_record_is_made_every_ten_seconds_while_nothing_is_committed(world: BackedUp):
    with world.opened() as store, world.following(store) as follower:
        world.clock.advance(seconds=1)
        follower.step()
        first = record(world)
        assert first.at_ms == world.clock.now_ms
        world.clock.advance(seconds=9)
        follower.step()
        assert record(world) == first
        world.clock.advance(seconds=1)
        follower.step()
        assert record(world).at_ms == first.at_ms + 10_000
        assert record(world).sequence == first.sequence == 6


@pytest.mark.parametrize("spoil", [remove, tear])
def test_a_segment_that_goes_while_it_is_written_ends_the_timeline(
    world: BackedUp, tmp_path: Path, spoil: Callable[[SegmentFile], None]
):
    """What the file held is in no other place, so that the follower begins again with a snapshot."""
    with world.opened() as store:
        with world.following(store) as follower:
            world.commit(store)
            for _ in range(5):
                assert follower.step()
            spoil(listed(world.folder)[-1])
            world.commit(store)
            assert not follower.step()
            assert recorded(store) == [7, 8], "the last was not cut off"
        assert isinstance(resume(store, world.folder), NotResumed)
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        assert follower.step()
    world.restore(tmp_path / "new")
    assert world.rows(tmp_path / "new") == world.rows()


def test_records_of_timelines_that_nothing_needs_are_pruned(world: BackedUp):
    old = record(world).timeline
    world.follow()
    with world.opened() as store, world.following(store) as follower:
        world.commit(store)
        follower.step()
        with store.read() as snapshot:
            following = operations.follower(snapshot)
    assert following is not None
    assert {copied.timeline for copied in copied_up_to.listed(world.folder)} == {old, following.timeline.hex()}
    snapshots.prune(world.folder, 2, following.timeline)
    assert len(copied_up_to.listed(world.folder)) == 2
    snapshots.prune(world.folder, 1, following.timeline)
    assert record(world).timeline == following.timeline.hex()


def test_a_store_that_ends_before_what_its_follower_copied_is_named(world: BackedUp):
    """`svc check` and `svc doctor` compare with the follower's record, too: it is on another disk."""
    with world.opened() as store:
        with store.read() as snapshot:
            following, end = operations.recorded(snapshot), operations.position(snapshot)
        assert following is not None
        assert end is not None
        assert copied_up_to.beyond(following, store.read) is None
        copied = record(world)
        copied_up_to.write(world.folder, msgspec.structs.replace(copied, sequence=end.sequence + 1))
        found = str(copied_up_to.beyond(following, store.read))
        assert f"the store ends with batch {end.sequence}, and batch {end.sequence + 1} was copied" in found
        former = msgspec.structs.replace(following, timeline=bytes(16))
        copied_up_to.write(world.folder, msgspec.structs.replace(copied, timeline=bytes(16).hex(), sequence=10**6))
        assert copied_up_to.beyond(former, store.read) is None, "another follower has begun since"
        (world.folder / f"copied-{copied.timeline}.json").unlink()
        assert copied_up_to.beyond(following, store.read) is None


def test_a_store_that_goes_on_while_it_is_compared_has_not_gone_back(world: BackedUp):
    """The record is newer than the state that is checked, and not than the store."""
    with world.opened() as store, world.following(store) as follower, store.read() as before:
        following = operations.recorded(before)
        assert following is not None
        world.commit(store, 2)
        assert follower.step(is_last=True)
        assert record(world).sequence > operations.newest(before)
        assert copied_up_to.beyond(following, store.read) is None
