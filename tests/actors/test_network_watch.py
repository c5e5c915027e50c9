"""The network watch takes up what changes in its folder, and keeps what works when a file breaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog
import trio
from trio.testing import MockClock

from svc.identify.network.facts import read_network
from svc.identify.network_data.lookup import BuiltInRanges
from svc.identify.network_data.watch import NetworkWatch
from tests.support.worlds import sim_world

IP = "81.2.69.160"
INTERVAL_S = 30.0
LOOK_S = INTERVAL_S + 1
"""Virtual seconds after which one more look was had, the time on the thread included."""


@asynccontextmanager
async def watching(folder: Path, built_in: BuiltInRanges | None = None) -> AsyncGenerator[NetworkWatch, None]:
    watch = NetworkWatch(folder, built_in)
    watch.read_now()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run, sim_world(1).run_sync, INTERVAL_S)
        yield watch
        nursery.cancel_scope.cancel()


def events(logged: list[Any], name: str) -> list[Any]:
    return [line for line in logged if line["event"] == name]


async def test_files_are_loaded_replaced_and_dropped_without_a_restart(tmp_path: Path, autojump_clock: MockClock):
    async with watching(tmp_path) as watch:
        assert read_network(IP, watch.ranges).reason == "no_network_data"
        (tmp_path / "tor.txt").write_text("81.2.69.160\n")
        await trio.sleep(LOOK_S)
        assert read_network(IP, watch.ranges).tor
        (tmp_path / "tor.txt").write_text("81.2.69.161\n")
        (tmp_path / "attack.txt").write_text("81.2.69.0/24\n")
        await trio.sleep(LOOK_S)
        facts = read_network(IP, watch.ranges)
        assert (facts.tor, facts.attack_source) == (False, True)
        for name in ("tor.txt", "attack.txt"):
            (tmp_path / name).unlink()
        await trio.sleep(LOOK_S)
        assert watch.ranges is None


async def test_a_ranges_object_in_use_does_not_change_when_its_file_is_removed(
    tmp_path: Path, autojump_clock: MockClock
):
    (tmp_path / "tor.txt").write_text("81.2.69.160\n")
    async with watching(tmp_path) as watch:
        taken = watch.ranges
        (tmp_path / "tor.txt").unlink()
        await trio.sleep(LOOK_S)
        assert read_network(IP, taken).tor
        assert watch.ranges is not taken


async def test_a_broken_file_is_rejected_once_with_its_line_and_the_old_data_is_kept(
    tmp_path: Path, autojump_clock: MockClock
):
    (tmp_path / "tor.txt").write_text("81.2.69.160\n")
    with structlog.testing.capture_logs() as logged:
        async with watching(tmp_path) as watch:
            (tmp_path / "tor.txt").write_text("81.2.69.161\n<html>\n")
            for _ in range(5):
                await trio.sleep(LOOK_S)
            assert read_network(IP, watch.ranges).tor
            (refusal,) = events(logged, "network file rejected")
            assert (refusal["log_level"], refusal["file"], refusal["line"]) == ("error", "tor.txt", 2)
            assert "one a line" in refusal["problem"]
            assert "stays in use" in refusal["in_force"]
            (tmp_path / "tor.txt").write_text("81.2.69.161\n")
            await trio.sleep(LOOK_S)
            assert not read_network(IP, watch.ranges).tor
            assert len(events(logged, "network file in use")) == 2


async def test_the_operator_is_warned_when_no_network_data_exists_and_all_traffic_is_free(tmp_path: Path):
    with structlog.testing.capture_logs() as logged:
        NetworkWatch(tmp_path / "none", None).read_now()
        assert len(logged) == 1
        assert "free" in logged[0]["event"]
        NetworkWatch(tmp_path / "none", BuiltInRanges()).read_now()
        assert len(logged) == 1


async def test_a_folder_that_cannot_be_listed_is_reported_once_and_loaded_data_is_kept(
    tmp_path: Path, autojump_clock: MockClock
):
    folder = tmp_path / "network"
    folder.mkdir()
    (folder / "tor.txt").write_text("81.2.69.160\n")
    with structlog.testing.capture_logs() as logged:
        async with watching(folder) as watch:
            folder.rename(tmp_path / "away")
            folder.touch()
            for _ in range(3):
                await trio.sleep(LOOK_S)
            assert len([line for line in logged if line["log_level"] == "error"]) == 1
            assert read_network(IP, watch.ranges).tor
            folder.unlink()
            (tmp_path / "away").rename(folder)
            (folder / "tor.txt").unlink()
            await trio.sleep(LOOK_S)
            assert watch.ranges is None


async def test_without_a_folder_there_is_nothing_to_watch():
    with trio.fail_after(60):
        await NetworkWatch(None, BuiltInRanges()).run(sim_world(1).run_sync, INTERVAL_S)
