"""An older store in the place of the present one, while nobody serves it (ADR 184): the next one who looks says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import trio

from svc.features.organizations.command import create_organization
from svc.kernel.store.directory import open_directory
from svc.kernel.store.lmdb import witness
from svc.kernel.store.lmdb.meta_pages import last_commit_of
from svc.world import World
from tests.crash.test_failing_disk import identify
from tests.support.acknowledged import shop
from tests.support.process import Served, Started, run, run_json


def witnessed(store: Path) -> int:
    file = store / witness.WITNESS
    return int(file.read_bytes()) if file.exists() else 0


async def identified(directory: Path, key: str, count: int) -> Served:
    """Run a service until it has stored so many identifications and its witness has the last commit, and end it."""
    server = await trio.to_thread.run_sync(Served, directory)
    for _ in range(count):
        assert await identify(server.port, key) == 200
    with trio.fail_after(30):
        while witnessed(directory / "store") != last_commit_of(directory / "store" / "data.mdb"):  # noqa: ASYNC110
            await trio.sleep(0.05)  # another process writes it
    assert server.terminate() == 0
    return server


@pytest.mark.slow(8)
async def test_an_older_file_is_missed_by_check_doctor_and_the_next_start(tmp_path: Path):
    data, file = tmp_path / "data", tmp_path / "data" / "store" / "data.mdb"
    key = shop(data)
    await identified(data, key, 2)
    older = tmp_path / "older.mdb"
    shutil.copyfile(file, older)
    server = await identified(data, key, 3)
    assert not server.said("the store is older than it was")
    run("check", "--data", str(data))

    shutil.copyfile(older, file)
    done = run("check", "--data", str(data), status=1)
    assert f"{file.parent} ends with commit" in done.stdout
    assert "1 violation;" in done.stderr
    findings = run("doctor", "--data", str(data), "--json", status=1).stdout
    assert "what was acknowledged between them is gone" in findings

    server = await identified(data, key, 1)
    (said,) = server.said("the store is older than it was")
    assert said["level"] == "critical"
    run("check", "--data", str(data))


@pytest.mark.slow
async def test_a_file_that_is_overwritten_while_it_is_served_is_missed_afterwards_too(tmp_path: Path):
    """Decisions 17.4: the process that knows of the later commit leaves it behind, however soon that happened."""
    data, file = tmp_path / "data", tmp_path / "data" / "store" / "data.mdb"
    key = shop(data)
    older = tmp_path / "older.mdb"
    shutil.copyfile(file, older)
    server = await trio.to_thread.run_sync(Served, data)
    for _ in range(5):
        assert await identify(server.port, key) == 200
    file.write_bytes(older.read_bytes())
    with trio.fail_after(10):
        while await identify(server.port, key) != 503:  # noqa: ASYNC110  another process notices it
            await trio.sleep(0.1)
        while not witnessed(file.parent):  # noqa: ASYNC110  another process writes it
            await trio.sleep(0.1)
    server.terminate()
    assert "ends with commit" in run("check", "--data", str(data), status=1).stdout


@pytest.mark.slow
async def test_a_store_that_is_compacted_has_not_gone_back(tmp_path: Path):
    """LMDB counts the commits of the copy from one."""
    data = tmp_path / "data"
    key = shop(data)
    await identified(data, key, 3)
    assert (data / "store" / witness.WITNESS).exists()
    run_json("store", "compact", "--data", str(data))
    run("check", "--data", str(data))
    assert not (await identified(data, key, 1)).said("the store is older than it was")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """One of a few commits, which no service has served."""
    world = World.real()
    found = open_directory(tmp_path / "data", world.run_sync, world.entropy)
    create_organization(found, world, "shop", credit=None)
    found.store.close()
    return tmp_path / "data" / "store"


@pytest.mark.parametrize("content", [b"", b"x" * 21, b"\0" * 21])
def test_a_witness_that_cannot_be_read_says_nothing(content: bytes, store: Path):
    (store / witness.WITNESS).write_bytes(content)
    assert witness.went_back(store) is None


def test_a_witness_is_compared_with_the_last_commit(store: Path):
    last = last_commit_of(store / "data.mdb")
    assert last
    assert witness.went_back(store) is None
    witness.write(store, last + 1000)
    witness.write(store, last)
    assert witness.went_back(store) is None
    witness.write(store, last + 1)
    assert f"ends with commit {last}, and commit {last + 1} was stored" in str(witness.went_back(store))
    witness.forget(store)
    assert witness.went_back(store) is None


@pytest.mark.slow(0.2)
def test_a_store_that_lacks_its_last_commit_alone_is_missed_by_the_start(store: Path):
    """Opening it to serve commits, so that it is compared before."""
    last = last_commit_of(store / "data.mdb")
    assert last
    witness.write(store, last + 1)
    with Started(store.parent) as started:
        (said,) = [line for line in map(json.loads, started.log) if line["event"] == "the store is older than it was"]
    assert f"commit {last + 1} was stored" in said["because"]


def test_a_store_that_is_missing_or_empty_has_not_gone_back(tmp_path: Path):
    witness.write(tmp_path, 7)
    assert witness.went_back(tmp_path) is None
    (tmp_path / "data.mdb").touch()
    assert witness.went_back(tmp_path) is None
