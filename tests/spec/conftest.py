"""What the tests of the contract begin with: a running service, or the program on an empty directory; on both engines.

A test that opens a store takes the fixture `engine`, mostly by `live`, `hooks`, `run` or `directory`, and runs once on
each engine. One that can only be true of one of them says so, and why: `@pytest.mark.only_on("lmdb", "a database has
its own backups")`. Of the cases of a test PostgreSQL gets one, but for `every_case`, whose cases differ in what they
ask of the store; tests whose subject no store can change are marked `any_store`. Of the other tests a sixth runs on
PostgreSQL, another one with each commit: `--crash-seed` gives the seed. `make test-long` tries all on both.
"""

from __future__ import annotations

import logging
import os
import sys
import zlib
from collections.abc import AsyncGenerator, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from svc.features.retention import sweeper
from tests.conftest import seed_of
from tests.spec.automation import Automation
from tests.spec.commands import Run, runner
from tests.spec.console import Console
from tests.spec.console_browser import Browser
from tests.spec.subscriber import Subscriber, subscribing
from tests.support import live as live_services
from tests.support.effort import LONG
from tests.support.every_engine import ENGINES
from tests.support.live import Live, live_service
from tests.support.postgresql import MISSING, programs
from tests.support.serving_postgresql import directories_in_use, give_back_databases
from tests.support.worlds import HeldThreads

ONE_IN = 6
"""Of the tests that run on LMDB as well, this share runs on PostgreSQL at a commit."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" not in metafunc.fixturenames:
        return
    engines = list(ENGINES)
    marked = metafunc.definition.get_closest_marker
    if not LONG and not marked("every_case"):
        drawn = zlib.crc32(metafunc.definition.nodeid.encode()) + seed_of(metafunc.config)
        if marked("any_store") or drawn % ONE_IN:
            engines.remove("postgresql")
    for only in metafunc.definition.iter_markers("only_on"):
        engine, why = only.args
        assert engine in (*ENGINES, None)
        assert why
        engines = [] if engine is None else [engine]
    if engines:
        metafunc.parametrize("engine", engines, indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the cases of a test, each is tried on LMDB and one on PostgreSQL."""
    if LONG:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if _engine_of(item) == "postgresql" and not any(map(item.get_closest_marker, ("every_case", "only_on"))):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    for name, some in cases.items():
        left_out.update(some)
        left_out.remove(some[zlib.crc32(name.encode()) % len(some)])
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


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
        patch.setattr(sweeper, "REST", 0.0)  # nobody waits for the writer while a test sweeps
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
def directory(tmp_path: Path, engine: str) -> Path:
    """An empty directory, in which stores are opened on the engine of the test."""
    return tmp_path


@pytest.fixture
def threads() -> HeldThreads:
    """On which the service of `live` commits, for a test that takes both."""
    return HeldThreads()


@pytest.fixture
def served(request: pytest.FixtureRequest) -> dict[str, Any]:
    """With what the service of `live` or `hooks` runs: `@pytest.mark.served(region="eu")`; as `live_service`."""
    marker = request.node.get_closest_marker("served")
    given = {} if marker is None else marker.kwargs
    return given | ({"run_sync": request.getfixturevalue("threads")} if "threads" in request.fixturenames else {})


@pytest.fixture
async def live(directory: Path, served: dict[str, Any]) -> AsyncGenerator[Live, None]:
    async with live_service(directory, **served) as running:
        yield running


@pytest.fixture
def public(live: Live) -> str:
    """A public key of production."""
    return live.issue(environment="production")[1]


@pytest.fixture
def secret(live: Live) -> str:
    """A secret key of production."""
    return live.issue("secret", "production")[1]


@pytest.fixture
def key(live: Live) -> str:
    """A public key of development."""
    return live.issue()[1]


@pytest.fixture
def server_key(live: Live) -> str:
    """A secret key of development."""
    return live.issue("secret")[1]


@pytest.fixture
def proxy(live: Live) -> str:
    """A proxy key of development."""
    return live.issue("proxy")[1]


@pytest.fixture
def management(live: Live) -> str:
    """A management key with the role admin."""
    return live.issue("management")[1]


@pytest.fixture
def admin(live: Live) -> Automation:
    """An admin's management key at work."""
    return Automation(live)


@pytest.fixture
def console(live: Live) -> Console:
    """A developer's management key at the console."""
    return Console(live)


@pytest.fixture
def browser(live: Live) -> Browser:
    """A browser at the console, not signed in."""
    return Browser(live)


@pytest.fixture
async def hooks(directory: Path, served: dict[str, Any]) -> AsyncGenerator[Subscriber, None]:
    async with subscribing(directory, **served) as subscriber:
        yield subscriber


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
