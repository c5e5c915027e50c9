"""Tests that every engine of the store passes. A new engine is one more line in `ENGINES`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from svc.kernel.store.engine import Engine
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from tests.support.postgresql import Cluster

OpenAt = Callable[[Path], Engine]
"""Opens the engine that belongs to a path, empty where the path is new."""


class Place(NamedTuple):
    """Where a store is: as `open_directory` has it."""

    directory: Path
    database: StoreUrl | None = None


def lmdb(_: pytest.FixtureRequest) -> OpenAt:
    return lambda directory: LmdbEngine.open(directory, map_bytes=64 << 20, durable=False)


def postgresql(request: pytest.FixtureRequest) -> OpenAt:
    """In one database: a new path empties it."""
    cluster: Cluster = request.getfixturevalue("cluster")
    database: str = request.getfixturevalue("database")
    known: set[Path] = set()

    def open_at(path: Path) -> Engine:
        if path not in known:
            cluster.execute("drop schema if exists svc cascade", database)
            known.add(path)
        return PostgresqlEngine.open(cluster.url(database))

    return open_at


ENGINES: dict[str, Callable[[pytest.FixtureRequest], OpenAt]] = {"lmdb": lmdb, "postgresql": postgresql}
every_engine = pytest.mark.parametrize("open_at", ENGINES.values(), ids=ENGINES, indirect=True)
"""The test gets `open_at`."""
every_place = pytest.mark.parametrize("place", ENGINES, indirect=True)
"""The test gets `place`."""


def examples_of(request: pytest.FixtureRequest, count: int) -> int:
    """How many examples a test tries: fewer where each read is a round trip."""
    return count if "postgresql" not in request.node.name else max(1, count // 4)
