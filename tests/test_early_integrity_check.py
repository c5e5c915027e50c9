"""The integrity check that begins before the service is loaded: what it finds, and what it leaves to others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from svc.cli.store.early_integrity_check import EarlyIntegrityCheck
from svc.features.schema import SCHEMA
from svc.kernel.store.directory import open_directory
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.local import LocalStore
from svc.kernel.store.opening import open_store
from svc.kernel.store.schema.codec import CorruptionError
from tests.support.engines import Wrapped
from tests.support.schemas import program_with
from tests.support.worlds import inline

PAGE = 4096


class Counting(Wrapped):
    """An engine that counts the checks made on it."""

    checks = 0

    def check(self, *arguments: object) -> None:
        self.checks += 1


@pytest.fixture
def data(tmp_path: Path) -> Path:
    open_directory(tmp_path / "data", inline, os.urandom).store.close()
    return tmp_path / "data"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[LocalStore]:
    found = LocalStore(Counting(open_store(tmp_path / "other", inline).engine), inline, lambda: 0)
    yield found
    found.close()


def begun(directory: Path) -> EarlyIntegrityCheck:
    check = EarlyIntegrityCheck.begin(directory)
    assert check is not None
    return check


def test_a_valid_store_is_checked_by_the_child_process_alone(data: Path, opened: LocalStore):
    begun(data).finish(opened)
    assert opened.engine.checks == 0


def test_a_store_may_be_opened_and_written_meanwhile(data: Path, opened: LocalStore):
    check = begun(data)
    store = open_directory(data, inline, os.urandom).store
    check.finish(opened)
    store.close()
    assert opened.engine.checks == 0


def test_corruption_found_by_the_child_process_is_raised_here(data: Path, opened: LocalStore):
    file = data / "store" / "data.mdb"
    pages = bytearray(file.read_bytes())
    for place in range(2 * PAGE, len(pages), PAGE):  # one bit of each page's own number
        pages[place] ^= 64
    file.write_bytes(pages)
    with pytest.raises(CorruptionError, match="page"):
        begun(data).finish(opened)
    assert opened.engine.checks == 0


def test_a_child_process_that_cannot_check_leaves_it_to_the_caller(tmp_path: Path, opened: LocalStore):
    begun(tmp_path / "nothing").finish(opened)
    assert opened.engine.checks == 1


def test_the_child_process_is_reaped(data: Path, opened: LocalStore):
    check = begun(data)
    check.finish(opened)
    with pytest.raises(ChildProcessError):
        os.waitpid(check._process, os.WNOHANG)


def test_an_older_store_is_not_checked_while_it_is_upgraded(data: Path):
    with program_with(migrations=(*SCHEMA.migrations, lambda _: None)):
        assert EarlyIntegrityCheck.begin(data) is None
    with closing(LmdbEngine.open(data / "store")):  # nothing has it open any more
        pass
