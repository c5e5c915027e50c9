"""Fixtures that every part of the suite may use, and the order in which its tests run."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"

# How long an example takes depends on what else the machine does: no verdict may.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

# Shells start what runs in the background with SIGINT ignored, and every program that a test starts would inherit that
# and not hear a Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start `svc` hundreds of times. Where this variable is set, as in images of Python, each start would compile
# every module again, which takes longer than anything else that a command does.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests run first, as `slow` says, so that no worker waits for another's at the end."""
    items.sort(key=_seconds, reverse=True)


def _seconds(item: pytest.Item) -> float:
    """As `@pytest.mark.slow(seconds)` says. Tests with the same figure keep their order."""
    marker = item.get_closest_marker("slow")
    if marker is None:
        return 0
    return marker.args[0] if marker.args else 1


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real captures beside the project; tests that need it are skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"needs the captures in {SHARED_DATA.parent.name}/{SHARED_DATA.name}, which are not here")
    return SHARED_DATA
