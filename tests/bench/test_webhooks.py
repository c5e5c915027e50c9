"""The benches of webhooks, in their quick form: that each measures what it says, and not how fast this machine is."""

from __future__ import annotations

import re

import pytest

from bench.webhooks import MEASURES, QUICK, measure, unread_log


@pytest.mark.slow
async def test_everything_that_is_sent_arrives_and_every_attempt_ends(capsys: pytest.CaptureFixture[str]):
    with unread_log():
        rows = {row.what: row.figure for row in await measure(list(MEASURES), QUICK)}
    shown = capsys.readouterr().out
    assert all(what in shown and figure in shown for what, figure in rows.items())
    (latency,) = (figure for what, figure in rows.items() if "endpoints that are told of each" in what)
    assert " 0 missing" in latency
    assert "nan" not in "".join(rows.values())
    healthy = [figure for what, figure in rows.items() if what.startswith("one healthy endpoint and ")]
    assert [figure.rpartition(" of ")[2] for figure in healthy] == ["5", "5"], "as many beside black holes as without"
    hostile = {what: figure for what, figure in rows.items() if "attempts: " in figure}
    assert len(hostile) == 10
    for what, figure in hostile.items():
        assert re.search(r"[1-9]\d* attempts: .*; the longest \d+\.\d+ s", figure), (
            f"{what} has shown nothing: {figure}"
        )
    assert "timeout" in hostile["never accepts"]
    assert "response_too_large" in hostile["1 MB of headers"]
    assert f"svc serve on {QUICK.rows:,} due rows" in rows
