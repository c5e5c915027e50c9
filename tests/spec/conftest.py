"""What the tests of the contract begin with: a running service, or the program on an empty directory."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import structlog

from tests.spec.commands import Run, runner
from tests.support.live import Live, live_service


@pytest.fixture
async def live(tmp_path: Path) -> AsyncGenerator[Live, None]:
    async with live_service(tmp_path) as running:
        yield running


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[Run]:
    """The program `svc` on an empty data directory of the test's own, named by SVC_DATA."""
    for name in [name for name in os.environ if name.startswith("SVC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SVC_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)  # both are put back after `serve` has set its own
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    yield runner(capsys, monkeypatch)
    structlog.reset_defaults()  # what `serve` set up writes to a stream that ends with the test
