"""Figures of two trees, side by side."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from bench.linkage import compare
from bench.linkage.compare import Figure, comparison, load, save
from bench.linkage.theft import Count, Results


def figure(name: str, value: float, part: str = "all", of: int = 1000) -> Figure:
    return Figure("small, token", part, name, value, of, name in compare.LESS_IS_BETTER)


def test_a_figure_is_flagged_where_it_is_worse_by_more_than_the_tolerance():
    before = [
        figure("relinked", 0.99),
        figure("false merge", 0.001),
        figure("ownership", 0.9),
        figure("pair recall", 0.5),
    ]
    now = [figure("relinked", 0.9875), figure("false merge", 0.0029), figure("ownership", 0.95), figure("new", 0.1)]
    table, worse = comparison(before, now)
    assert worse == 1
    assert [(row[2], row[5], row[8]) for row in table.rows] == [
        ("relinked", "-0.0025", "WORSE"), ("false merge", "+0.0019", ""), ("ownership", "+0.0500", ""),
    ]  # fmt: skip
    assert comparison(before, [figure("false merge", 0.0031)])[1] == 1


def test_parts_are_shown_where_they_are_worse():
    before = [figure("relinked", 0.9, part) for part in ("all", "fitted on", "held out")]
    now = [figure("relinked", value, part) for part, value in (("all", 0.9), ("fitted on", 0.91), ("held out", 0.88))]
    table, worse = comparison(before, now)
    assert worse == 1
    assert [(row[1], row[8]) for row in table.rows] == [("all", ""), ("held out", "WORSE")]


def test_what_thieves_get_is_better_when_it_is_less(monkeypatch: pytest.MonkeyPatch):
    results: dict[str, Results] = {
        "thief": {("whole report", "young", False): Count(10, 1), ("whole report", "young", True): Count(10, 2)},
        "owner": {("unchanged", "young", False): Count(10, 9)},
    }

    def measured(folder: Path) -> dict[str, Results]:
        del folder
        return results

    monkeypatch.setattr(compare, "measure_thefts", measured)
    figures = {found.key[1:]: found for found in compare.theft_figures(Path("small"))}
    assert figures["all", "thief, young: whole report"][3:] == (0.15, 20, True)
    assert figures["held out", "thief, young: whole report"].value == 0.2
    assert figures["all", "owner, young: unchanged"][3:] == (0.9, 10, False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "linkage" / "tiny"
    folder.mkdir(parents=True)
    signals = {
        "userAgent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/137.0.0.0 Safari/537.36",
        "platform": "Win32", "languages": ["de-DE"], "timezone": "Europe/Berlin", "hardwareConcurrency": 20,
        "deviceMemory": 8, "screen": {"width": 1536, "height": 864, "colorDepth": 24, "devicePixelRatio": 1.25},
        "webgl": {"vendor": "Google Inc. (Intel)", "renderer": "ANGLE (Intel, UHD Graphics)"},
        "fonts": ["Agency FB", "Calibri", "Century", "Marlett"],
    }  # fmt: skip
    with gzip.open(folder / "fps.jsonl.gz", "wt", encoding="utf-8") as lines:
        lines.write(json.dumps({"fp": 0, "signals": signals}) + "\n")
    with gzip.open(folder / "events.csv.gz", "wt", encoding="utf-8", newline="") as rows:
        writer = csv.writer(rows)
        writer.writerow(["event", "t", "instance", "device", "fp", "ip", "storage_id", "private", "causes"])
        for event in range(4):
            at = f"2026-01-0{event + 1}T10:00:00Z"
            writer.writerow([event, at, 1, 1, 0, "81.2.69.142", f"{1:020x}", 0, ""])
    return tmp_path


def test_the_figures_of_a_stream_are_kept_and_compared(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    kept = tmp_path / "before.json"
    options = ["--data", str(data), "--streams", "tiny", "--processes", "1"]
    compare.main([*options, "--save", str(kept)])
    found = load(kept)
    assert {one.subject for one in found} == {"tiny, token", "tiny, no token"}
    assert next(one.value for one in found if one.key == ("tiny, token", "all", "relinked")) == 1
    compare.main([*options, "--against", str(kept)])
    assert "0 of " in capsys.readouterr().out
    save(kept, [one._replace(value=one.value + 0.1) if one.name == "relinked" else one for one in found])
    with pytest.raises(SystemExit) as ended:
        compare.main([*options, "--against", str(kept)])
    assert ended.value.code == 1
    assert "WORSE" in capsys.readouterr().out
