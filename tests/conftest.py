"""Fixtures that every part of the suite may use."""

from __future__ import annotations

import signal
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


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real captures beside the project; tests that need it are skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"needs the captures in {SHARED_DATA.parent.name}/{SHARED_DATA.name}, which are not here")
    return SHARED_DATA
