"""What a program in a compiled language is asked to do with its client library against a running service, and what must
come of it. The programs are in `programs`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import trio

from tests.clients.cases import ABOUT, checks, forged, verdict_checks
from tests.spec.subscriber import URL, subscribing
from tests.support.live import ORIGIN, mistyped, report
from tests.support.ports import free_port

COLUMNS = (
    *("id", "organization", "environment", "now", "origin", "ip", "tag"),
    *("account_id", "action", "platform", "proven"),
)
"""Of a check or verdict, where a program reads lines."""


def in_lines(given: dict[str, Any]) -> str:
    """What a program is given, for a language that has no JSON: a line for each value, as `programs/java` reads it."""
    lines: list[list[Any]] = []
    for name, value in given.items():
        for one in value if isinstance(value, list) else [value]:
            cells = [one] if isinstance(one, str) else [one.get(column) for column in COLUMNS]
            lines.append([name, *cells])
    return "\n".join(
        "\t".join("\\N" if cell is None else str(cell).replace("\n", "\\n") for cell in line) for line in lines
    )


async def asked(command: Sequence[str], folder: Path, given: str) -> dict[str, Any]:
    """What a program prints of what it is given."""
    done = await trio.run_process(
        command, cwd=folder, stdin=given.encode(), capture_stdout=True, capture_stderr=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


async def does_everything(
    command: Sequence[str], folder: Path, tmp_path: Path, written: Callable[[dict[str, Any]], str] = json.dumps
) -> None:
    """Checks, verdicts, changes, faults, identifications, the management API, and the example of the guide."""
    async with subscribing(tmp_path, now_ms=round(time.time() * 1000)) as subscriber:
        live = subscriber.live
        key, secret = live.issue()[1], live.issue("secret")[1]
        earlier = [(await live.identify(key)).json()["request_id"] for _ in range(2)]
        live.clock.now_ms += 2_000  # the feed has them
        seen = (await live.identify(key, **ABOUT, verdict=True)).json()
        changed = (await live.identify(key, action="sign_up", tag="t")).json()["request_id"]
        logged_in = (await live.identify(key, tag="t")).json()["request_id"]
        cases = [
            (case, problem)
            for case, problem in checks(seen["request_id"], live.clock.now_ms)
            if isinstance(case["id"], str)
        ]
        verdicts = verdict_checks(live.clock.now_ms, live.organization.id)
        tokens = [token for token in forged(seen["verdict"]).values() if isinstance(token, str)]
        given = {
            "url": live.url,
            "nobody": f"http://127.0.0.1:{free_port()}",
            "secret": secret,
            "stranger": mistyped(secret),
            "management": live.issue("management", role="admin")[1],
            "hook": URL,
            "token": seen["verdict"],
            "event": changed,
            "login": logged_in,
            "tag": "t",
            "report": report(),
            "checks": [case for case, _ in cases],
            "verdicts": [case for case, _ in verdicts],
            "forged": tokens,
            "expect": {"origin": ORIGIN, "now": live.clock.now_ms},
        }
        told = await asked(command, folder, written(given))
        ids = [request_id for request_id, event in live.events() if event.tag == "a&b=é"]
    assert [problem or None for problem, _ in told["checks"]] == [problem for _, problem in cases]
    assert {decision for problem, decision in told["checks"] if problem} == {"refuse"}
    assert told["forged"] == [["invalid", True]] * len(tokens)
    assert told["unused"] == 0
    assert [problem or None for problem, _ in told["verdicts"]] == [problem for _, problem in verdicts]
    assert told["used"] == [seen["request_id"]]
    assert told["updates"] == [["a", True, "sign_up", "t"]] * 2 + [["a", True, "sign_up", None]] + [
        [None, None, "sign_up", None]
    ]
    assert told["errors"]["stranger"] == [401, "unauthorized", 0, True]
    assert told["errors"]["nobody"] == [False]
    assert told["errors"]["invalid"] == [422, "validation_error", 1, True]
    assert "address" in told["errors"]["nowhere"][0]
    assert told["identified"]["rows"] == told["identified"]["ids"][::-1]
    assert told["identified"]["fed"] == earlier
    assert told["identified"]["changed"] == [f"event.created {one}" for one in earlier]
    assert sorted(ids) == sorted(told["identified"]["ids"])
    assert told["identified"]["visitor"] is True
    assert told["management"] == {"again": [409, "sdk_key_revoked", 0, True], "webhooks": 0}
    assert told["log_in"] == ["accept", "refuse"]
