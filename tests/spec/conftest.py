"""What the tests of the contract begin with: a running service, or the program on an empty directory; on both engines.

A test that opens a store takes the fixture `engine`, by itself or with `live` or `run`, and runs once on each engine.
One that can only be true of one of them says so, and why: `@pytest.mark.only_on("lmdb", "a database has its own
backups")`. Of the cases of a test PostgreSQL gets one, but for `every_case`, whose cases differ in what they ask of the
store; tests whose subject no store can change are marked `any_store`. `make test-long` tries all on both.
"""

from __future__ import annotations

import logging
import os
import sys
import zlib
from collections.abc import AsyncGenerator, Generator, Iterator
from pathlib import Path

import pytest
import structlog

from tests.spec.commands import Run, runner
from tests.support import live as live_services
from tests.support.effort import LONG
from tests.support.every_engine import ENGINES
from tests.support.live import Live, live_service
from tests.support.postgresql import MISSING, programs
from tests.support.serving_postgresql import directories_in_use, give_back_databases

SECONDS_ON_POSTGRESQL = 0.1


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" not in metafunc.fixturenames:
        return
    engines = list(ENGINES)
    for only in metafunc.definition.iter_markers("only_on"):
        engine, why = only.args
        assert engine in (*ENGINES, None)
        assert why
        engines = [] if engine is None else [engine]
    if engines:
        metafunc.parametrize("engine", engines, indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the cases of a test, each is tried on LMDB and one on PostgreSQL; none where the store is all the same. What
    runs on PostgreSQL is slow.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if _engine_of(item) == "postgresql" and not any(map(item.get_closest_marker, ("every_case", "only_on"))):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: list[pytest.Item] = []
    for name, some in cases.items():
        if some[0].get_closest_marker("any_store"):
            left_out += some
        else:
            tried = some[zlib.crc32(name.encode()) % len(some)]
            left_out += [item for item in some if item is not tried]
    if left_out and not LONG:
        config.hook.pytest_deselected(items=left_out)
        rest = set(left_out)
        items[:] = [item for item in items if item not in rest]
    for item in items:
        if _engine_of(item) == "postgresql" and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.slow(SECONDS_ON_POSTGRESQL))


def _engine_of(item: pytest.Item) -> str | None:
    return (
        item.callspec.params.get("engine") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
    )


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The engine of every store that the test opens."""
    name: str = getattr(request, "param", "")
    if name == "postgresql" and programs() is None:
        pytest.skip(MISSING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_services, "ENGINE", name)
        yield name
    give_back_databases()


@pytest.fixture(autouse=True)
def databases(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Those of the test are for the next one; its module's stay. A test without `engine` opens none."""
    if "engine" not in request.fixturenames:
        monkeypatch.setattr(live_services, "ENGINE", None)
    before = directories_in_use()
    yield
    give_back_databases(but=before)


@pytest.fixture
async def live(tmp_path: Path, engine: str) -> AsyncGenerator[Live, None]:
    async with live_service(tmp_path) as running:
        yield running


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: str
) -> Generator[Run]:
    """The program `svc` on an empty data directory of the test's own, named by SVC_DATA."""
    for name in [name for name in os.environ if name.startswith("SVC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SVC_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)  # both are put back after `serve` has set its own
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    yield runner(capsys, monkeypatch)
    structlog.reset_defaults()  # what `serve` set up writes to a stream that ends with the test
