"""What tests of actors begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.kernel.store.directory import Opened
from tests.actors.test_pipeline import open_store
from tests.support.outbox import OutboxWorld, outbox_world
from tests.support.worlds import HeldThreads


@pytest.fixture
def world(tmp_path: Path) -> Iterator[OutboxWorld]:
    """Of an outbox; virtual for a test that takes `autojump_clock` too. Every invariant is checked at the end."""
    with outbox_world(tmp_path) as world:
        yield world


@pytest.fixture
def threads() -> HeldThreads:
    """Those of `found`."""
    return HeldThreads()


@pytest.fixture
def found(tmp_path: Path, threads: HeldThreads) -> Iterator[Opened]:
    """A store with five organizations."""
    opened = open_store(tmp_path, threads)
    yield opened
    opened.store.close()
