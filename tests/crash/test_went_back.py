"""An older store in the place of the present one, while nobody serves it (ADR 184): the next one who looks says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio

from svc.store.lmdb import witness
from tests.crash.test_failing_disk import identify
from tests.support.acknowledged import shop
from tests.support.process import Served, run, run_json


async def identified(directory: Path, key: str, count: int) -> Served:
    """A service that was ended after it stored so many identifications, and had a second to write that down."""
    server = await trio.to_thread.run_sync(Served, directory)
    for _ in range(count):
        assert await identify(server.port, key) == 200
    await trio.sleep(2.5)
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


@pytest.mark.slow(4)
async def test_a_store_that_is_compacted_has_not_gone_back(tmp_path: Path):
    """LMDB counts the commits of the copy from one."""
    data = tmp_path / "data"
    key = shop(data)
    await identified(data, key, 3)
    assert (data / "store" / witness.FILE).exists()
    run_json("store", "compact", "--data", str(data))
    run("check", "--data", str(data))
    assert not (await identified(data, key, 1)).said("the store is older than it was")


@pytest.mark.parametrize("content", [b"", b"x" * 21, b"\0" * 21])
def test_a_witness_that_cannot_be_read_says_nothing(content: bytes, tmp_path: Path):
    (tmp_path / witness.FILE).write_bytes(content)
    assert witness.went_back(tmp_path, 0) is None


def test_a_witness_is_compared_with_the_last_commit(tmp_path: Path):
    assert witness.went_back(tmp_path, 0) is None
    witness.write(tmp_path, 1000)
    witness.write(tmp_path, 7)
    assert witness.went_back(tmp_path, 7) is None
    assert "commit 7 was stored" in str(witness.went_back(tmp_path, 6))
    witness.forget(tmp_path)
    assert witness.went_back(tmp_path, 6) is None
