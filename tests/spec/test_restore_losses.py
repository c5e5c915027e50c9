"""Decisions 17.6: `svc restore` of a backup that ends too early, from followers that were killed."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from svc.cli.serve.doctor import backup
from svc.features.backup import copied_up_to, segments
from svc.kernel.store import operations
from svc.kernel.store.reading import read_only
from svc.kernel.values.timestamps import read_timestamp, timestamp
from tests.spec.commands import Run
from tests.spec.test_doctor import examined
from tests.support.drill import Following

pytestmark = pytest.mark.only_on("lmdb", "a database is backed up with its own tools: test_store_in_a_database.py")

FIELDS = {
    "data", "snapshot", "restored_to", "commits_after_snapshot", "copied_up_to", "lost_s", "torn", "pepper",
}  # fmt: skip


@pytest.fixture
def pepper(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("org", "create", "first", "--json")
    monkeypatch.setenv("SVC_PEPPER_FILE", str(tmp_path / "data" / "pepper"))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def wait_for_record(root: Path) -> copied_up_to.CopiedUpTo:
    """Until the record names the last commit."""
    end = time.monotonic() + 30
    while True:
        with read_only(root / "data" / "store", live=True) as store, store.read() as snapshot:
            position = operations.position(snapshot)
        assert position is not None
        copied = copied_up_to.of_timeline(root / "backup", position.timeline.hex())
        if copied is not None and copied.sequence == position.sequence:
            return copied
        assert time.monotonic() < end, "the follower does not record what it copied"
        time.sleep(0.05)


def names(run: Run, data: Path) -> set[str]:
    return {one["name"] for one in run("org", "list", "--data", data, "--json").json["organizations"]}


def followed(run: Run, root: Path) -> copied_up_to.CopiedUpTo:
    """Five commits that only the log has; the follower is killed when it has recorded them."""
    following = Following(root / "data", root / "backup")
    for number in range(5):
        run("org", "create", f"later-{number}", "--json")
    copied = wait_for_record(root)
    following.kill()
    assert following.end(signal.SIGKILL) == -signal.SIGKILL
    return copied


def restored(run: Run, root: Path, name: str, *options: str) -> dict[str, Any]:
    printed = run("restore", root / "backup", "--data", root / name, *options, "--json").json
    assert set(printed) == FIELDS
    return printed


@pytest.mark.usefixtures("pepper")
@pytest.mark.slow(1.2)
def test_a_backup_whose_log_is_gone_is_refused_unless_the_loss_is_accepted(run: Run, tmp_path: Path):
    copied = followed(run, tmp_path)
    whole = restored(run, tmp_path, "whole")
    assert (whole["lost_s"], whole["copied_up_to"]) == (0, timestamp(copied.at_ms))
    assert len(names(run, tmp_path / "whole")) == 6
    for log in (tmp_path / "backup").glob("operations-*.log"):
        log.unlink()
    before = sorted(tmp_path.iterdir())
    for to in ((), ("--to", timestamp(copied.at_ms))):
        ran = run("restore", tmp_path / "backup", "--data", tmp_path / "new", *to)
        ran.assert_refused("5 commits", f"s before {timestamp(copied.at_ms)}", "--accept-loss", "nothing was made")
    assert sorted(tmp_path.iterdir()) == before
    lost = run("restore", tmp_path / "backup", "--data", tmp_path / "new", "--accept-loss", "--json")
    reached = read_timestamp(lost.json["restored_to"])
    assert reached is not None
    assert lost.json["lost_s"] == (copied.at_ms - reached) / 1000
    assert "is lost (5 commits)" in lost.err
    assert names(run, tmp_path / "new") == {"first"}


@pytest.mark.usefixtures("pepper")
@pytest.mark.slow(0.2)
def test_a_moment_after_the_last_copy_is_refused_and_an_idle_time_is_not(run: Run, tmp_path: Path):
    followed(run, tmp_path)
    idle_ms = now_ms()
    following = Following(tmp_path / "data", tmp_path / "backup")
    assert following.end(signal.SIGTERM) == 0
    copied = wait_for_record(tmp_path)
    assert copied.at_ms >= idle_ms
    for name, to_ms in (("idle", idle_ms), ("end", copied.at_ms)):
        assert restored(run, tmp_path, name, "--to", timestamp(to_ms))["lost_s"] == 0
        assert len(names(run, tmp_path / name)) == 6
    late = ("--to", timestamp(copied.at_ms + 2_711_256_947))
    run("restore", tmp_path / "backup", "--data", tmp_path / "new", *late).assert_refused(
        "2,711,256.947 s before", late[1]
    )
    assert restored(run, tmp_path, "new", *late, "--accept-loss")["lost_s"] == 2_711_256.947


@pytest.mark.usefixtures("pepper")
@pytest.mark.slow(0.9)
def test_a_backup_of_an_older_version_is_restored_and_its_end_is_unknown(run: Run, tmp_path: Path):
    followed(run, tmp_path)
    (path,) = (tmp_path / "backup").glob("copied-*.json")
    path.unlink()
    ran = run("restore", tmp_path / "backup", "--data", tmp_path / "new", "--json")
    assert (ran.json["copied_up_to"], ran.json["lost_s"], ran.json["commits_after_snapshot"]) == (None, None, 5)
    assert "unknown whether its end is missing" in ran.err


@pytest.mark.slow
@pytest.mark.usefixtures("pepper")
def test_a_follower_that_is_killed_at_any_point_leaves_a_backup_that_reaches_its_record(run: Run, tmp_path: Path):
    """Its record never names what is not there: a restore needs no consent, and has all up to that moment."""
    made: dict[str, int] = {}
    recorded = 0
    for number in range(12):
        following = Following(tmp_path / "data", tmp_path / "backup")
        for each in range(number % 4):
            run("org", "create", f"{number}-{each}", "--json")
            made[f"{number}-{each}"] = now_ms()
        time.sleep(number / 40)  # where in its steps it is killed; nothing is expected of that
        following.kill()
        following.end(signal.SIGKILL)
        printed = restored(run, tmp_path, f"restored-{number}")
        if printed["copied_up_to"] is None:  # its first record was not made yet
            assert (printed["lost_s"], printed["commits_after_snapshot"]) == (None, 0)
            continue
        recorded += 1
        copied_ms = read_timestamp(printed["copied_up_to"])
        assert copied_ms is not None
        assert printed["lost_s"] == 0
        found = names(run, tmp_path / f"restored-{number}")
        assert {name for name, at_ms in made.items() if at_ms <= copied_ms} <= found
    assert recorded
    following = Following(tmp_path / "data", tmp_path / "backup")
    wait_for_record(tmp_path)
    assert following.end(signal.SIGTERM) == 0
    restored(run, tmp_path, "last")
    assert names(run, tmp_path / "last") == {"first", *made}


@pytest.mark.usefixtures("pepper")
@pytest.mark.slow(0.9)
def test_the_doctor_says_up_to_when_commits_were_copied(run: Run, tmp_path: Path):
    data = tmp_path / "data"
    assert "not continuous" in backup(examined(data)).says
    copied = followed(run, tmp_path)
    finding = backup(examined(data, now_ms=copied.at_ms + 5000))
    assert (finding.status, finding.says) == (
        "ok", f"copied up to {timestamp(copied.at_ms)}, 5 s ago, to {tmp_path / 'backup'}",
    )  # fmt: skip
    late = backup(examined(data, now_ms=copied.at_ms + 61_000))
    assert (late.status, "--follow" in late.do) == ("warning", True)
    (path,) = (tmp_path / "backup").glob("copied-*.json")
    path.unlink()
    finding = backup(examined(data))
    assert (finding.status, "does not say" in finding.says) == ("warning", True)
    path.parent.rename(tmp_path / "moved")
    finding = backup(examined(data))
    assert (finding.status, re.search("cannot read", finding.says) is not None) == ("warning", True)
    assert segments.listed(tmp_path / "moved")
    assert "nothing to back up" in backup(examined(tmp_path / "none")).says
