"""The web SDK in real browsers without automation: what fires, whether the id stays, and how long it takes.

    python -m bench.browsers.sdk [--only TEXT] [--json FILE]

Each browser is opened nine times the way a person opens it, by its command line alone. Its page loads the SDK from a
development service under a strict content security policy, identifies, and posts what came of it. All browsers share
one service and one address, so that one which is taken for another shows. It needs the browsers of Debian 12
(README.md), Xvfb and `make web`; a browser that is not installed is left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.browsers.settings import settings
from bench.browsers.shop import Row, is_installed, shop, write
from bench.usage import read_options

TAGS = ("chromium/plain", "firefox/plain", "minibrowser/plain", "chromium/headless-new", "firefox/headless")
PRIVATE = {"chromium": "--incognito", "firefox": "--private-window", "minibrowser": "--private"}


class Visit(NamedTuple):
    """One opening of a browser."""

    name: str
    profile: str
    """Of the profiles of one browser."""
    is_private: bool = False


VISITS = (
    Visit("first", "a"),
    Visit("restarted", "a"),
    Visit("restarted-again", "a"),
    Visit("cleared", "a"),
    Visit("private", "a", is_private=True),
    Visit("private-again", "a", is_private=True),
    Visit("new-profile", "b"),
    Visit("new-profile-restarted", "b"),
    Visit("back", "a"),
)


def measure(only: str) -> Iterator[Row]:
    """A row for each visit."""
    found = settings()
    with shop() as (page, scratch):
        for setting in (found[tag] for tag in TAGS if only in tag):
            if not is_installed(setting.tag, setting.command[0]):
                continue
            for visit in VISITS:
                command = setting.command
                if visit.is_private:
                    command = (*command[:-1], PRIVATE[setting.browser], command[-1])
                row = page.visited(
                    f"{setting.browser}.{setting.kind}.{visit.name}",
                    command,
                    scratch / f"{setting.browser}-{setting.kind}-{visit.profile}",
                    scratch / "log",
                    setting.environment,
                    setting.files,
                    setting.screen if setting.windowed else None,
                )
                row |= {"tag": setting.tag, "kind": setting.kind, "visit": visit.name}
                print(_line(row), flush=True)
                yield row


def _line(row: Row) -> str:
    if "event" not in row:
        return f"{row['tag']:24} {row['visit']:22} {row['error']}"
    event, timing = row["event"], row["timing"]
    fired = ", ".join(f"{one['signal']} {one['weight']}" for one in event["signals"]) or "nothing fires"
    how = (
        "new" if event["visitor_is_new"] else f"{event['visitor_confidence']} {event['document']['linkage']['outcome']}"
    )
    violations = f"  CSP: {row['violations']}" if row["violations"] else ""
    return (
        f"{row['tag']:24} {row['visit']:22} {event['visitor_id']} {how:12} {fired}  collect {timing['collectMs']:.0f} "
        f"network {timing['networkMs']:.0f} ms, {timing['sentBytes']} bytes, opened to reported {row['seconds']:.1f} s"
        f"{violations}"
    )


def table(rows: Sequence[Row]) -> str:
    """One line for each browser, as in docs/internals/browsers.md."""
    columns = (
        "browser", "visits", "ids", "new after the first", "fires", "CSP violations", "collect, ms",
        "network and server, ms", "kB",
    )  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---|---:|---:|---:|---|---:|---:|---:|---:|"]
    for tag in dict.fromkeys(row["tag"] for row in rows):
        mine = [row for row in rows if row["tag"] == tag and "event" in row]
        if not mine:
            continue
        events = [row["event"] for row in mine]
        fired = {one["signal"]: 0 for event in events for one in event["signals"]}
        for event in events:
            for one in event["signals"]:
                fired[one["signal"]] += 1
        shown = ", ".join(f"{name} {count}" for name, count in fired.items()) or "nothing"
        collect, network, sent = (
            [row["timing"][name] for row in mine] for name in ("collectMs", "networkMs", "sentBytes")
        )
        lines.append(
            f"| {tag} | {len(mine)} | {len({event['visitor_id'] for event in events})} "
            f"| {sum(event['visitor_is_new'] for event in events[1:])} | {shown} "
            f"| {sum(len(row['violations']) for row in mine)} | {min(collect):.0f} to {max(collect):.0f} "
            f"| {min(network):.0f} to {max(network):.0f} | {statistics.median(sent) / 1000:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    given = read_options(__doc__)
    rows = list(measure(given.only or ""))
    write(rows, None, given.json)
    print(f"\n{table(rows)}")


if __name__ == "__main__":
    main()
