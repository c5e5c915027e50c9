"""The benches of webhooks, in their quick form: that each measures what it says, and not how fast this machine is."""

from __future__ import annotations

import re

import pytest

from bench.webhooks import MEASURES, QUICK, measure, unread_log

pytestmark = pytest.mark.slow(30)


async def measured(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Its rows, each of which is shown."""
    with unread_log():
        rows = {row.what: row.figure for row in await measure([name], QUICK)}
    shown = capsys.readouterr().out
    assert rows
    assert all(what in shown and figure in shown for what, figure in rows.items())
    assert "nan" not in "".join(rows.values())
    return rows


def test_every_bench_is_tested():
    assert set(MEASURES) == {"black-holes", "hostile"}


async def test_a_healthy_endpoint_gets_as_many_deliveries_beside_black_holes_as_without(
    capsys: pytest.CaptureFixture[str],
):
    rows = await measured("black-holes", capsys)
    healthy = [figure for what, figure in rows.items() if what.startswith("one healthy endpoint and ")]
    assert [figure.rpartition(" of ")[2] for figure in healthy] == ["5", "5"]


@pytest.mark.long
async def test_every_attempt_to_a_hostile_receiver_ends(capsys: pytest.CaptureFixture[str]):
    rows = await measured("hostile", capsys)
    hostile = {what: figure for what, figure in rows.items() if "attempts: " in figure}
    assert len(hostile) == 10
    for what, figure in hostile.items():
        assert re.search(r"[1-9]\d* attempts: .*; the longest \d+\.\d+ s", figure), (
            f"{what} has shown nothing: {figure}"
        )
    assert "timeout" in hostile["never accepts"]
    assert "response_too_large" in hostile["1 MB of headers"]
