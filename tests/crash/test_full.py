"""A full map, a full disk and a limit: refused and not ready, never down, nothing lost, and well again by itself
(reliability R12).

The long forms are `python -m bench.full`, with `--tmpfs-mib 64` and with `--limit-mib 16`.
"""

from __future__ import annotations

import errno
import os
import resource
import time
from pathlib import Path

import httpx
import pytest

from bench.full import Ballast, Full, Limit, Outcome, small_disk
from svc.identify.tables import STATISTICS
from svc.kernel.store.engine import CheckDepth
from svc.kernel.store.opening import open_store
from svc.kernel.store.store import StoreFullError
from svc.world import World
from tests.support.process import Served, run

MIB = 1 << 20


def show(outcome: Outcome, *answers: str) -> None:
    assert outcome.wrong == []
    assert [answer for answer in answers if not outcome.answers[answer]] == [], outcome.answers


@pytest.mark.slow(2)
def test_a_full_map_refuses_visits_and_can_be_emptied_also_after_a_kill(tmp_path: Path):
    outcome = Full(tmp_path / "data", size=2 * MIB, map_bytes=2 * MIB).run(rounds=2)
    show(outcome, "identify 200", "identify 503", "challenge 503", "read 200", "revoke 200", "erase 204")
    assert outcome.answers["erase 204"] >= 50


@pytest.mark.slow(2)
def test_a_full_disk_refuses_visits_and_can_be_emptied_whatever_filled_it(tmp_path: Path):
    try:
        with small_disk(6) as disk:
            outcome = Full(disk / "data", size=6 * MIB, somebody=Ballast(disk / "ballast")).run(rounds=1)
    except PermissionError as refused:
        pytest.skip(str(refused))
    show(outcome, "identify 200", "identify 503", "challenge 503", "read 200", "revoke 200", "erase 204")


@pytest.mark.slow
def test_a_file_at_its_size_limit_refuses_visits_until_the_limit_is_raised(tmp_path: Path):
    """As a quota does: nothing shows it before it is reached."""
    data = tmp_path / "data"
    outcome = Full(data, size=8 * MIB, somebody=Limit(data / "store", 8 * MIB)).run(rounds=0)
    show(outcome, "identify 200", "identify 503", "read 200")
    assert outcome.answers["identify 200"] >= 50


@pytest.mark.slow
@pytest.mark.parametrize("command", [("org", "list"), ("check",)])
def test_a_full_disk_without_a_lock_file_is_named(tmp_path: Path, command: tuple[str, ...]):
    """As behind a restore or a copy: LMDB writes to that file by way of memory, and the process ended by SIGBUS."""
    try:
        with small_disk(2) as disk:
            data = disk / "data"
            run("org", "create", "shop", "--data", str(data))
            (data / "store" / "lock.mdb").unlink()
            ballast = Ballast(disk / "ballast")
            ballast.take(0)
            told = run(*command, "--data", str(data), status=1)
            assert "the disk of the data directory is full" in told.stderr + told.stdout
            ballast.give_back(0)
            run("check", "--data", str(data))
    except PermissionError as refused:
        pytest.skip(str(refused))


@pytest.mark.slow
def test_a_service_starts_on_a_full_disk_and_takes_writes_once_there_is_space(tmp_path: Path):
    try:
        with small_disk(2) as disk:
            data = disk / "data"
            run("org", "create", "shop", "--data", str(data))
            ballast = Ballast(disk / "ballast")
            ballast.take(0)
            server = Served(data)
            try:
                assert readiness(server) == (503, "full")
                ballast.give_back(0)
                until = time.monotonic() + 30
                while readiness(server) != (200, "ok"):
                    assert time.monotonic() < until
                    time.sleep(0.1)
            finally:
                assert server.terminate() == 0
    except PermissionError as refused:
        pytest.skip(str(refused))


def readiness(server: Served) -> tuple[int, str]:
    response = httpx.get(f"http://127.0.0.1:{server.port}/readyz")
    return response.status_code, response.json()["checks"]["store"]


def test_a_partial_write_is_reported_as_a_full_disk_and_not_as_an_io_error(tmp_path: Path):
    """LMDB says EIO then. The service ended of it."""

    def put(number: int, size: int) -> list[object]:
        return store.write_now([lambda transaction: transaction.put(STATISTICS, (number, 0, 0), os.urandom(size))])

    store = open_store(tmp_path, World.real().run_sync, map_bytes=64 * MIB)
    put(0, 10)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "data.mdb").stat().st_size + 5 * 4096 + 100, hard))
    try:
        with pytest.raises(StoreFullError) as told:
            put(1, 300_000)
        assert getattr(told.value.__cause__, "code", None) == errno.EIO
        assert store.is_full
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    put(2, 300_000)
    assert not store.is_full
    with store.read() as snapshot:
        assert [key for key, _ in snapshot.scan(STATISTICS)] == [(0, 0, 0), (2, 0, 0)]
    store.engine.check(CheckDepth.EVERYTHING)
    store.close()
