"""One authority for all receivers: making keys is slow."""

from __future__ import annotations

import pytest

from tests.webhook_transport.loopback import Authority


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()
