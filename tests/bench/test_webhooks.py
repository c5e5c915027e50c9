"""The benches of webhooks, in their quick form: that each measures what it says, and not how fast this machine is."""

from __future__ import annotations

import re

import pytest

from bench.webhooks import MEASURES, QUICK, measure, unread_log

SMOKE = [name for name in MEASURES if name != "black-holes"]
"""`black-holes` waits for a second process under load, which says more of the machine than of the measure."""


@pytest.mark.slow
async def test_everything_that_is_sent_arrives_and_every_attempt_ends(capsys: pytest.CaptureFixture[str]):
    with unread_log():
        rows = {row.what: row.figure for row in await measure(SMOKE, QUICK)}
    shown = capsys.readouterr().out
    assert all(what in shown and figure in shown for what, figure in rows.items())
    (latency,) = (figure for what, figure in rows.items() if what.endswith("to ten endpoints"))
    assert " 0 missing" in latency
    assert "nan" not in "".join(rows.values())
    hostile = {what: figure for what, figure in rows.items() if "attempts: " in figure}
    assert len(hostile) == 10
    for what, figure in hostile.items():
        (longest,) = re.findall(r"longest (\d+\.\d+) s", figure)
        assert float(longest) <= QUICK.deadline_s + 5, f"{what} held an attempt beyond its deadline"
    assert "timeout" in hostile["never accepts"]
    assert "response_too_large" in hostile["1 MB of headers"]
    assert f"svc serve on {QUICK.rows:,} due rows" in rows
