"""Commands beside a running `svc dev` find it at whatever port it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.development import development_service
from tests.support.process import run, run_json

pytestmark = pytest.mark.slow(4)


def test_a_console_link_and_the_doctor_name_the_address_of_a_running_development_service(tmp_path: Path):
    data = tmp_path / "data"
    with development_service(data) as dev:
        (shop,) = run_json("org", "list", "--data", str(data))["organizations"]
        link = run_json("console", "link", shop["organization_id"], "--data", str(data))
        assert link["url"].startswith(f"{dev.url}/console#")
        assert f"is ready at {dev.url}" in run("doctor", "--data", str(data)).stdout
    link = run_json("console", "link", shop["organization_id"], "--data", str(data))
    assert link["url"].startswith("http://127.0.0.1:8080/console#"), "it no longer runs: the settings say where"
