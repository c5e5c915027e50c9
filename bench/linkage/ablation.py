"""What each kind of evidence of matching is worth: every stream again, each time without one of them.

    python -m bench.linkage.ablation [--streams small every-7-days small-hard] [--tokens small] [--json FILE]

A kind of evidence is switched off by the numbers in `parameters` that it rests on; all other numbers stay as they were
fitted with it. Without client tokens, where matching has nothing else to go by, and some streams with them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.linkage.inprocess import Extraction, answers
from bench.linkage.judge import Verdict, judge
from bench.linkage.streams import Stream, read_stream
from bench.linkage.tables import Table
from svc.domain.matching import parameters

STREAMS = ("small", "every-7-days", "small-hard")
EVIDENCE: dict[str, dict[str, Any]] = {
    "nothing left out": {},
    "caution": {"CAUTION": (0.0, 0.0)},
    "calibration": {"CALIBRATION": ((0.0, 1.0),) * len(parameters.CALIBRATION)},
    "return intervals": {"RETURN_INTERVALS_BOUNDS": (1.0, 1.0)},
    "former values come back": {"LOG_HABIT": -4.0, "LOG_HABIT_FOLLOWED": -4.0},
    "what changed before changes again": {"LOG_CHANGED_BEFORE": 0.0},
    "who never hid hides": {"LOG_HIDDEN_FIRST": 0.0},
    "other networks: how often the visitor came": {"LOG_OFTEN": ((0.0, 1.0), (0.0, 1.0))},
    "other networks: who else was there": {"LOG_FAR_SHARED": (0.0, 0.0), "LOG_FAR_UNVISITED": 0.0},
    "other networks: a visit within the day": {"LOG_FAR_AT_ONCE": 0.0},
    "the wide network": {"LOG_TWIN_SAME_WIDE_NETWORK": 0.0},
    "a change within the day": {"LOG_CHANGED_AT_ONCE": 0.0},
    "another time zone at home": {"LOG_MOVED_AT_HOME": 0.0},
    "noise in a private canvas": {"LOG_PRIVATE_CANVAS": 0.0},
    "near and far sets of fonts": {"LOG_NEAR_FONTS": 0.0, "LOG_FAR_FONTS": 0.0},
    "near and far sets of the rest": {"LOG_NEAR_REST": 0.0, "LOG_FAR_REST": 0.0},
    "versions go up": {"LOG_VERSION_DOWN": 0.0},
    "a former report elsewhere": {"LOG_FORMER_REPORT": 0.0},
    "rare values come together": {"RARE_TOGETHER": 0.0},
    "records split in doubt count together": {"SPLIT_PROBABILITY": 1.1},
}


@contextmanager
def without(numbers: dict[str, Any]) -> Iterator[None]:
    """Other numbers in `parameters` for a while. Raises `AttributeError` for one that is not there."""
    before = {name: getattr(parameters, name) for name in numbers}
    for name, value in numbers.items():
        setattr(parameters, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(parameters, name, value)


def ablate(stream: Stream, evidence: dict[str, dict[str, Any]], *, with_tokens: bool = False) -> dict[str, Verdict]:
    """The verdict on the stream, by what was left out."""
    extraction = Extraction()
    verdicts: dict[str, Verdict] = {}
    for name, numbers in evidence.items():
        with without(numbers):
            given = answers(stream, with_tokens=with_tokens, extraction=extraction)
            verdicts[name] = judge(stream.visits, given, stream.every_days)
    return verdicts


def ablation_table(verdicts: dict[str, dict[str, Verdict]]) -> Table:
    """`verdicts` by stream, then by what was left out; the first is the whole, the others are shown against it."""
    header = ("left out", *(f"{stream}, {what}" for stream in verdicts for what in ("relinked", "false merges")))
    rows: list[tuple[str, ...]] = []
    for name in next(iter(verdicts.values())):
        cells: list[str] = []
        for by_name in verdicts.values():
            whole, part = next(iter(by_name.values())), by_name[name]
            change = (part.relinked_changed or 0.0) - (whole.relinked_changed or 0.0)
            merges = _merges(part) - _merges(whole)
            first = part is whole
            cells.append(f"{part.relinked_changed or 0.0:.4f}" if first else f"{change:+.4f}")
            cells.append(str(_merges(whole)) if first else f"{merges:+d}")
        rows.append((name, *cells))
    note = "Relinked after a change, and false merges among all visits, against the first row."
    return Table("What each kind of evidence is worth", header, rows, note=note)


def _merges(verdict: Verdict) -> int:
    return verdict.all_returns.false_merge + verdict.first_visits - verdict.first_right


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="+", default=STREAMS, metavar="STREAM")
    parser.add_argument("--tokens", nargs="*", default=STREAMS[:1], metavar="STREAM", help="with client tokens, too")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder with linkage/")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure as JSON, too")
    options = parser.parse_args(arguments)
    columns = [(name, False) for name in options.streams] + [(name, True) for name in options.tokens]
    verdicts = {
        f"{name}, token" if tokens else name: ablate(
            read_stream(options.data / "linkage" / name), EVIDENCE, with_tokens=tokens
        )
        for name, tokens in columns
    }
    print(ablation_table(verdicts).markdown())
    if options.json:
        facts = {stream: {name: one.facts() for name, one in found.items()} for stream, found in verdicts.items()}
        options.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
