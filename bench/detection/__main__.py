"""Everything that is measured of facts and signals, as tables.

    python -m bench.detection [--data ../shared/data] [--network DIR]

Automation on captures of browsers, false alarms on plain ones and on people's fingerprints, user agents, addresses,
the cost of detection, and reports that mean harm.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.detection.automation import captures_table, cost_table, people_table, read_captures
from bench.detection.hostile import hostile_table
from bench.detection.network import lists_table, network_table
from bench.detection.useragents import useragent_table
from bench.usage import read_options

FOLDERS = ("bots", "browsers", "linkage", "network", "useragents")


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(__doc__, arguments)
    missing = [name for name in FOLDERS if not (options.data / name).is_dir()]
    if missing:
        raise SystemExit(f"no folder {missing[0]} in {options.data}; name the folder with --data")
    captures = read_captures(options.data)
    # One after the other, so that a terminal shows what is there already.
    for table in (
        lambda: captures_table(captures, "automated"),
        lambda: captures_table(captures, "plain"),
        lambda: people_table(options.data),
        lambda: useragent_table(options.data),
        lambda: network_table(options.data, options.network),
        lambda: lists_table(options.data, options.network),
        lambda: cost_table(captures),
        hostile_table,
    ):
        print(f"{table().text()}\n", flush=True)


if __name__ == "__main__":
    main()
