"""Fixtures that every part of the suite may use, and the order in which its tests run.

`--crash-seed N` repeats the crash tests of another run. Each commit has a seed of its own, so that many runs try more
moments at which a service is killed than one run could.
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from svc.kernel.store.directory import open_directory
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.world import World
from tests.support.effort import LONG, effort
from tests.support.postgresql import MISSING, Cluster, shared_cluster
from tests.support.run_folder import run_folder
from tests.support.unchanged import INPUTS, unchanged

ROOT = Path(__file__).parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"

# How long an example takes depends on what else the machine does: no verdict may. The suite tries the same examples at
# each run; HYPOTHESIS_PROFILE=explore draws others.
settings.register_profile(
    "explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=effort(25, 100)
)
settings.register_profile("suite", settings.get_profile("explore"), derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# Shells start what runs in the background with SIGINT ignored, and every program that a test starts would inherit that
# and not hear a Ctrl-C; `nohup` does so with SIGHUP.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Images of Python set these. Without compiled modules each start of `svc` takes longer than anything else that a
# command does, and with unbuffered output it is another program than that of an operator.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.pop("PYTHONUNBUFFERED", None)
sys.dont_write_bytecode = False

GARBAGE_OBJECTS = 50_000
"""After how many new objects garbage is looked for, instead of 700; as in `svc serve`."""
SECONDS_ON_POSTGRESQL = 0.1
LEFT_OUT = pytest.StashKey[list[str]]()
"""Folders of tests that need not run."""

# Until everything is collected: what importing and collecting make is kept, and there are a million objects of it.
gc.disable()


# A store flushes each commit, which costs milliseconds on a disk and nothing in memory. What a killed process leaves is
# the same in both, and what a power cut leaves is derived from a record of the writes (tests/crash/test_power.py).
MEMORY = Path("/dev/shm")
ROOM_BYTES = 2 << 30
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM_BYTES:
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # was chosen before

run_folder()  # before xdist starts its processes


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--crash-seed", type=int, help="seed of the crash tests (default: that of the commit)")


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: no collection of garbage need look at it again."""
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is long is for `make test-long`. Each worker begins with its share of the slow tests, the longest
    first, and none waits for another's at the end.

    xdist gives each worker a run of the list, as long as any other's, and lets it take from others when it is through.
    The slow tests of a module stay together, since they share fixtures. What needs PostgreSQL's server is slow.
    """
    left_out = {item for item in items if item.get_closest_marker("long") and not LONG} | _not_drawn(config, items)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if _on_postgresql(item) and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.slow(SECONDS_ON_POSTGRESQL))
    workers: int = getattr(config, "workerinput", {}).get("workercount", 1)
    modules: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow"):
            modules.setdefault(item.nodeid.partition("::")[0], []).append(item)
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    seconds = [0.0] * workers
    for module in sorted(modules.values(), key=_seconds, reverse=True):
        least = min(range(workers), key=seconds.__getitem__)
        shares[least] += sorted(module, key=lambda item: _seconds([item]), reverse=True)
        seconds[least] += _seconds(module)
    quick = [item for item in items if not item.get_closest_marker("slow")]
    left = len(items)
    items.clear()
    for place, share in enumerate(shares):
        headroom = max(0, left // (workers - place) - len(share))
        items += [*share, *quick[:headroom]]
        del quick[:headroom]
        left -= len(share) + headroom
    items += quick


def pytest_configure(config: pytest.Config) -> None:
    """Folders of which nothing has changed since they passed, unless somebody names them. One process finds out."""
    given = getattr(config, "workerinput", {}).get("left_out")
    named = any(folder in argument for folder in INPUTS for argument in config.args)
    config.stash[LEFT_OUT] = given if given is not None else [] if LONG or named else sorted(unchanged())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """What a process of xdist is told."""
    node.workerinput["left_out"] = node.config.stash[LEFT_OUT]


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Of several processes each imports another share of the modules first. In a fresh checkout, where no module is
    compiled, all would compile all of them at the same time, which takes longer than the rest of collecting.
    """
    told = getattr(session.config, "workerinput", None)
    if told is None or session.config.args != session.config.getini("testpaths"):
        return
    left_out = [ROOT / folder for folder in session.config.stash[LEFT_OUT]]
    modules = sorted(path for path in ROOT.glob("tests/**/test_*.py") if not any(map(path.is_relative_to, left_out)))
    first = len(modules) * int(told["workerid"].removeprefix("gw")) // told["workercount"]
    for path in modules[first:] + modules[:first]:
        with suppress(Exception, pytest.skip.Exception), warnings.catch_warnings(action="error"):
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Tests that are left out are not even imported."""
    if any(collection_path == ROOT / folder for folder in config.stash[LEFT_OUT]):
        return True
    return None


def pytest_report_header(config: pytest.Config) -> list[str]:
    """One line for each folder that is left out."""
    what = "nothing that it looks at has changed since it passed; EFFORT=long runs it"
    return [f"{folder}: {what}" for folder in config.stash[LEFT_OUT]]


def _not_drawn(config: pytest.Config, items: list[pytest.Item]) -> set[pytest.Item]:
    """Cases of tests marked `one_case`, or tests marked with the same words, that are not this commit's."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if (marker := item.get_closest_marker("one_case")) and not LONG:
            words = marker.args[0] if marker.args else item.nodeid.partition("[")[0]
            cases.setdefault(words, []).append(item)
    return {item for some in cases.values() for at, item in enumerate(some) if at != seed_of(config) % len(some)}


def _on_postgresql(item: pytest.Item) -> bool:
    """Whether the test uses a server: by the fixture, or as the case of an engine (`tests/support/every_engine.py`)."""
    given = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    return "cluster" in getattr(item, "fixturenames", ()) or any(
        getattr(value, "__name__", value) == "postgresql" for value in given
    )


def _seconds(items: list[pytest.Item]) -> float:
    """What `@pytest.mark.slow(seconds)` says of tests of one module; of all together where it marks the module."""
    found: dict[object, float] = {}
    for item in items:
        node, marker = next(item.iter_markers_with_node("slow"))
        found[node] = marker.args[0] if marker.args else 1
    return sum(found.values())


@pytest.fixture
def crash_seed(request: pytest.FixtureRequest) -> int:
    """When services are killed and how their receivers fail. It is printed, and so shown where a test fails."""
    seed = seed_of(request.config)
    print(f"repeat with --crash-seed {seed}")  # noqa: T201
    return seed


def seed_of(config: pytest.Config) -> int:
    """What the run draws by: `--crash-seed`, else the commit."""
    given = config.getoption("--crash-seed")
    return seed_of_the_commit() if given is None else given


@cache
def seed_of_the_commit() -> int:
    """1 where there is no commit to tell."""
    try:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 1
    return int(head[:8], 16)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real captures beside the project; tests that need it are skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"needs the captures in {SHARED_DATA.parent.name}/{SHARED_DATA.name}, which are not here")
    return SHARED_DATA


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The PostgreSQL server of this test process; skips where the machine has none."""
    found = shared_cluster()
    if found is None:
        pytest.skip(MISSING)
    return found


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    """The name of a fresh, empty database of `cluster`."""
    with cluster.database() as name:
        yield name


@pytest.fixture
def url(cluster: Cluster, database: str) -> StoreUrl:
    """Of `database`."""
    return cluster.url(database)


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    """What is part of a reference cycle stays."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An empty data directory."""
    world = World.real()
    open_directory(tmp_path / "data", world.run_sync, world.entropy).store.close()
    return tmp_path / "data"
