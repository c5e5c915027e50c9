"""The web SDK in real browsers without automation: what fires, whether the id stays, and how long it takes.

    python -m bench.browsers.sdk [--only TEXT] [--json FILE]

Each browser is opened nine times the way a person opens it, by its command line alone. Its page loads the SDK from a
development service under a strict content security policy, identifies, and posts what came of it. All browsers share
one service and one address, so that one which is taken for another shows. It needs the browsers of Debian 12
(README.md), Xvfb and `make web`; a browser that is not installed is left out.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.browsers.shop import Row, is_installed, shop, write
from bench.usage import read_options

QUIET = {
    "browser.aboutwelcome.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "termsofuse.bypassNotification": True,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "extensions.enabledScopes": 1,
}
"""Preferences of Firefox."""


class Program(NamedTuple):
    """A browser as Debian 12 packages it. `{profile}` and `{url}` in commands are filled in."""

    command: tuple[str, ...]
    private: str
    """Option that opens a private window."""
    environment: dict[str, str]
    files: dict[str, str]
    """Path within the profile -> text, written before the first visit."""


PROGRAMS = {
    "chromium": Program(
        ("/usr/lib/chromium/chromium", "--no-sandbox", "--no-first-run", "--no-default-browser-check",
         "--disable-dev-shm-usage", "--password-store=basic", "--user-data-dir={profile}", "{url}"),
        "--incognito", {}, {},
    ),
    "firefox": Program(
        ("firefox-esr", "--no-remote", "--new-instance", "--profile", "{profile}", "{url}"), "--private-window",
        {"MOZ_DISABLE_CONTENT_SANDBOX": "1", "MOZ_CRASHREPORTER_DISABLE": "1"},
        {"user.js": "".join(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in QUIET.items())},
    ),
    "minibrowser": Program(
        ("/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser", "{url}"), "--private",
        {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}, {},
    ),
}  # fmt: skip
WAYS = {
    "chromium/plain": None,
    "firefox/plain": None,
    "minibrowser/plain": None,
    "chromium/headless-new": ("--headless", "--remote-debugging-port=0"),
    "firefox/headless": ("--headless",),
}
"""Browser and how it is opened -> options, where it gets no window."""


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
    with shop() as (page, scratch):
        for tag, options in WAYS.items():
            browser, _, kind = tag.partition("/")
            program = PROGRAMS[browser]
            if only not in tag or not is_installed(tag, program.command[0]):
                continue
            for visit in VISITS:
                private = (program.private,) if visit.is_private else ()
                row = page.visited(
                    f"{browser}.{kind}.{visit.name}",
                    (*program.command[:-1], *(options or ()), *private, program.command[-1]),
                    scratch / f"{browser}-{kind}-{visit.profile}",
                    scratch / "log",
                    {"TZ": "America/New_York", **program.environment},
                    program.files,
                    None if options else "1920x1080x24",
                )
                row |= {"tag": tag, "kind": "headless" if options else "normal", "visit": visit.name}
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
        fired = Counter(one["signal"] for event in events for one in event["signals"])
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
