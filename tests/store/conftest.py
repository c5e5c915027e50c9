"""Fixtures for tests of every engine (`tests/support/every_engine.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.every_engine import OpenAt, Place


@pytest.fixture
def open_at(request: pytest.FixtureRequest) -> OpenAt:
    return request.param(request)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "lmdb":
        return Place(tmp_path)
    cluster, database = request.getfixturevalue("cluster"), request.getfixturevalue("database")
    return Place(tmp_path, cluster.url(database))
