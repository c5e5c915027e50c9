"""Visits of a headless Chromium to a real service, by one of the scripts of `web/browsers`."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.chromium import browser, built
from tests.support.ports import free_port
from tests.support.process import ENVIRONMENT, read_until, start

Visits = dict[str, dict[str, Any]]


def seen_by(
    script: str, folders: pytest.TempPathFactory, worker_id: str, *more: str, name: str | None = None
) -> Visits:
    """What the script saw, by the name of the visit: made once, whatever number of processes tests. `name`: under which
    it is kept, where one script is run with other arguments.
    """
    own = folders.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    seen = shared / f"{name or script}.jsonl"
    with (shared / f"{name or script}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not seen.exists():
            seen.write_text(_visited(script, folders.mktemp("visits"), more))
    return {visit["name"]: visit for visit in map(json.loads, seen.read_text().splitlines())}


def _visited(script: str, folder: Path, more: tuple[str, ...]) -> str:
    """A line of JSON for each visit, of a fresh service."""
    sdk, opened, data = built() / "sdk", browser(), folder / "data"
    port, shop = free_port(), free_port()
    dev = ["dev", "--data", str(data), "--bind", f"127.0.0.1:{port}", "--origin", f"http://shop.example:{shop}"]
    service = start(*dev, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    try:
        read_until(service, "Ctrl-C")
        keys = json.loads((data / "dev-keys.json").read_text())
        given = [
            f"http://127.0.0.1:{port}",
            keys["public"],
            keys["secret"],
            str(sdk),
            str(folder / "profile"),
            str(shop),
        ]
        return opened.run(script, *given, *more)
    finally:
        service.send_signal(signal.SIGINT)
        service.communicate(timeout=30)
