"""How well user agents and addresses are read, as tables.

    python -m bench.detection [--data ../shared/data] [--network DIR]

`--network` names a folder of databases and lists, such as `svc data update` makes.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.detection.network import lists_table, network_table
from bench.detection.useragents import useragent_table
from bench.usage import read_options


def main(arguments: Sequence[str] | None = None) -> None:
    given = read_options(__doc__, arguments)
    for name in ("network", "useragents"):
        if not (given.data / name).is_dir():
            raise SystemExit(f"no folder {name} in {given.data}; name the folder with --data")
    # One after the other, so that a terminal shows what is there already.
    for table in (
        lambda: useragent_table(given.data),
        lambda: network_table(given.data, given.network),
        lambda: lists_table(given.data, given.network),
    ):
        print(f"{table().text()}\n", flush=True)


if __name__ == "__main__":
    main()
