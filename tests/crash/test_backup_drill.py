"""A drill of backup and restore under load, with service and follower killed (decisions 2.2, 3.3, 10; R15, R17)."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
import trio

from svc.kernel.values.ids import made_at_ms
from svc.kernel.values.timestamps import read_timestamp, timestamp
from tests.support.drill import Drill, Following, TimedJournal, lose_the_node, requests_in, under_load
from tests.support.process import Served, run, run_json


@pytest.mark.slow(3)
async def test_acknowledged_data_is_restored_from_a_backup_whatever_is_killed(tmp_path: Path):
    drill = await trio.to_thread.run_sync(Drill, tmp_path)
    journal = TimedJournal()
    server = await trio.to_thread.run_sync(Served, drill.data)
    follower = await trio.to_thread.run_sync(Following, drill.data, drill.folder)
    assert follower.said == ["new timeline: full snapshot required", "snapshot taken", "following"]

    async with under_load(server, drill, journal):
        await journal.grow()
        hot = await trio.to_thread.run_sync(
            run_json, "backup", str(drill.folder), "--keep", "5", "--data", str(drill.data)
        )
        await journal.grow()
        moment = time.time_ns() // 1_000_000
        await journal.grow()
    assert hot["followed"] is True
    run("check", hot["snapshot"])
    await trio.to_thread.run_sync(drill.wait_until_copied)
    assert follower.end(signal.SIGKILL) == -signal.SIGKILL

    await _ends_as_the_store_was(drill, journal)
    await _is_what_it_was_at_a_moment(drill, journal, moment)
    await _a_killed_follower_leaves_a_whole_past_and_goes_on(drill, journal)
    _no_secret_is_in(drill)


@pytest.mark.slow(2)
async def test_the_loss_of_a_node_loses_only_the_newest_responses(tmp_path: Path):
    drill = await trio.to_thread.run_sync(Drill, tmp_path)
    journal = TimedJournal()
    first = await lose_the_node(drill, journal, "first", 0.5)
    second = await lose_the_node(drill, journal, "second", 0.2)
    assert first.answered > first.missing
    assert second.answered - second.missing > first.answered, "what was not copied at the first end was copied later"


async def _ends_as_the_store_was(drill: Drill, journal: TimedJournal) -> None:
    directory, restored = await trio.to_thread.run_sync(drill.restore, "end")
    assert restored["commits_after_snapshot"] > 0
    rows = drill.rows(directory)
    assert set(journal.answered_at_ms) <= requests_in(rows)
    assert rows == drill.rows(drill.data)


async def _is_what_it_was_at_a_moment(drill: Drill, journal: TimedJournal, moment: int) -> None:
    restore = partial(drill.restore, "moment", "--to", timestamp(moment))
    directory, restored = await trio.to_thread.run_sync(restore)
    reached = read_timestamp(restored["restored_to"])
    assert reached is not None
    assert reached <= moment
    found = requests_in(drill.rows(directory))
    assert journal.until(moment) <= found
    assert not {one for one in journal.answered_at_ms if made_at_ms(UUID(one).bytes) > moment} & found
    assert found < set(requests_in(drill.rows(drill.data)))


async def _a_killed_follower_leaves_a_whole_past_and_goes_on(drill: Drill, journal: TimedJournal) -> None:
    """Killed in the middle of the load, it has every answer up to the moment that a restore names; then it goes on."""
    server = await trio.to_thread.run_sync(Served, drill.data)
    follower = await trio.to_thread.run_sync(Following, drill.data, drill.folder)
    assert follower.said == ["following"], "its timeline goes on, without a snapshot"
    async with under_load(server, drill, journal):
        await journal.grow()
        await trio.to_thread.run_sync(follower.end, signal.SIGKILL)
        await journal.grow()
    directory, restored = await trio.to_thread.run_sync(drill.restore, "half")
    reached = read_timestamp(restored["restored_to"])
    assert reached is not None
    assert journal.until(reached) <= requests_in(drill.rows(directory))

    follower = await trio.to_thread.run_sync(Following, drill.data, drill.folder)
    await trio.to_thread.run_sync(drill.wait_until_copied)
    assert await trio.to_thread.run_sync(follower.end, signal.SIGTERM) == 0
    directory, _ = await trio.to_thread.run_sync(drill.restore, "whole")
    assert set(journal.answered_at_ms) <= requests_in(drill.rows(directory))
    assert drill.rows(directory) == drill.rows(drill.data)


def _no_secret_is_in(drill: Drill) -> None:
    kept = [path for path in drill.folder.rglob("*") if path.is_file()]
    assert len(kept) > 4
    for path in kept:
        content = path.read_bytes()
        assert not [secret for secret in drill.hidden if secret in content], path
        assert path.stat().st_mode & 0o077 == 0, path
    assert os.path.commonpath([*kept]) == str(drill.folder)
