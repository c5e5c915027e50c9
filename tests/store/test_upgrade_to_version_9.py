"""The upgrade to store version 9, which moves velocity and days to visitors, accounts and addresses (ADR 216)."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from svc.features.checks.invariants import violations
from svc.features.retention.sweeper import sweep
from svc.features.upgrade.upgrade import open_as_it_is, upgrade
from svc.kernel.store.opening import version_of
from svc.kernel.store.reading import read_only
from svc.kernel.values.ids import DAY_MS
from svc.world import World
from tests.spec.responses import visit
from tests.store.former_store import to_version_8, with_former_tables
from tests.support.backup import rows_of
from tests.support.live import Live, live_service, report

MAP_BYTES = 64 << 20


async def populate(live: Live) -> None:
    """Visits of production and development over three days: of visitors with and without accounts, from addresses that
    they share, some of them from Tor.
    """
    keys = [live.issue(environment=environment)[1] for environment in ("production", "development")]
    for each in range(30):
        signals = report(each % 7) | {"client_token": f"{each % 7:032x}"}
        account = None if each % 4 == 3 else f"account {each % 5}"
        named = {} if account is None else {"account_id": account}
        address = ("81.2.69.160", "81.2.69.161", "185.220.101.1")[each % 3]
        answer = await visit(live, keys[each % 2], signals, headers={"x-forwarded-for": address}, **named)
        assert answer.status_code == 200, answer.text
        live.clock.advance(hours=2)


@pytest.fixture
async def store(tmp_path: Path) -> Path:
    async with live_service(tmp_path / "data") as live:
        await populate(live)
    return tmp_path / "data" / "store"


def upgraded(store: Path) -> None:
    done = upgrade(store.parent, World.real().run_sync, program="9.9", map_bytes=MAP_BYTES, now_ms=lambda: 99)
    assert done is not None
    assert (done.before, done.after) == (8, 9)


def contents(store: Path) -> dict[str, list[Any]]:
    with read_only(store, live=False) as opened:
        with opened.read() as snapshot:
            assert list(violations(snapshot)) == []
        return rows_of(opened)


def version(store: Path) -> int:
    engine = open_as_it_is(store)
    try:
        return version_of(engine)
    finally:
        engine.close()


@pytest.mark.slow(0.5)
async def test_every_row_is_what_it_was(store: Path):
    before = contents(store)
    with_former_tables(store, to_version_8)
    upgraded(store)
    assert contents(store) == before


@pytest.mark.slow(0.5)
async def test_velocity_that_retention_had_deleted_before_is_not_missed(tmp_path: Path):
    """Of events that are kept for longer than windows."""
    async with live_service(tmp_path / "data", event_retention_days=90) as live:
        await populate(live)
        for _ in range(2):
            live.clock.advance(hours=24 * 35)
            await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True, event_ms=90 * DAY_MS)
    store = tmp_path / "data" / "store"
    assert len(contents(store)["events"]) == 30
    with_former_tables(store, to_version_8)
    upgraded(store)
    assert len(contents(store)["events"]) == 30


UPGRADE = """
import os, signal, sys
import svc.cli
from svc.kernel.store.snapshot import Transaction

last, writes, put = int(sys.argv.pop()), 0, Transaction.put

def counting(transaction, *args):
    global writes
    writes += 1
    if writes == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return put(transaction, *args)

Transaction.put = counting
try:
    svc.cli.main()
finally:
    print(f"{writes=}")
"""
"""A program that kills itself before a write, or prints how many there were."""


def upgraded_until(store: Path, last: int) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-c", UPGRADE, "upgrade", "--data", str(store.parent), str(last))
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow(6)
async def test_an_upgrade_that_is_killed_has_changed_nothing_and_is_made_again(store: Path, tmp_path: Path):
    """At ten points, before the first write and before the last among them."""
    before = contents(store)
    with_former_tables(store, to_version_8)
    copy = shutil.copytree(store.parent, tmp_path / "copy" / "data") / "store"
    writes = int(upgraded_until(copy, 0).stdout.rpartition("writes=")[2])
    assert writes > 40
    for point in range(10):
        assert upgraded_until(store, 1 + point * (writes - 1) // 9).returncode == -signal.SIGKILL
        assert version(store) == 8
    upgraded(store)
    assert contents(store) == before
