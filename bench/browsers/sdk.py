"""The web SDK in real browsers without automation: what fires, whether the id stays, and how long it takes.

    python -m bench.browsers.sdk [--only TEXT] [--json FILE]

Each browser is opened nine times the way a person opens it, by its command line alone. Its page loads the SDK from a
development service under a strict content security policy, identifies, and posts what came of it. All browsers share
one service and one address, so that one which is taken for another shows. It needs the browsers of Debian 12
(README.md), Xvfb and `make web`; a browser that is not installed is left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.browsers.launch import display, environment_of, start, stop
from bench.browsers.server import Collector
from bench.browsers.settings import Setting, settings

SECONDS = 40.0
"""How long a browser may take to report."""
TAGS = ("chromium/plain", "firefox/plain", "minibrowser/plain", "chromium/headless-new", "firefox/headless")
PRIVATE = {"chromium": "--incognito", "firefox": "--private-window", "minibrowser": "--private"}
WORKER = Path(__file__).parents[2] / "svc" / "web_static" / "sdk" / "svc.worker.js"

PAGE = """\
<!doctype html><html lang="en"><head><meta charset="utf-8"><title>shop</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' {service}; worker-src 'self';
 connect-src 'self' {service}">
<link rel="icon" href="data:,"></head><body><script type="module" src="page.js"></script></body></html>
"""
SCRIPT = """\
const violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
const asked = new URLSearchParams(location.search);
if (asked.get("visit").includes("cleared")) {
  localStorage.clear();
  for (const part of document.cookie.split("; ")) document.cookie = part.split("=")[0] + "=; max-age=0; path=/";
}
async function report() {
  const { load } = await import("SERVICE/sdk/v1/svc.esm.js");
  const client = load({ apiKey: "KEY", workerUrl: "/svc.worker.js", ...OPTIONS });
  const found = {};
  try {
    found.response = await client.identify({ tag: asked.get("visit") });
  } catch (error) {
    found.error = `${error.code}: ${error.message}`;
  }
  await client.deferredSent();
  await fetch(location.href, { method: "POST", body: JSON.stringify({ ...found, timing: client.timing, violations }) });
}
report(); // engines of 2020 know no await outside of functions
"""


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


@contextmanager
def development_service() -> Iterator[tuple[str, dict[str, str]]]:
    """(address, keys) of a `svc dev` on data of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as data:
        command = [str(Path(sys.executable).parent / "svc"), "dev", "--bind", bind, "--data", data]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "Ctrl-C" in line:
                    break
            yield f"http://{bind}", json.loads((Path(data) / "dev-keys.json").read_text())
        finally:
            process.terminate()
            process.wait(timeout=30)


def write_site(folder: Path, service: str, key: str, **options: int) -> None:
    """A shop's page with the SDK, under the policy of a careful shop: the worker comes from its own origin. Options are
    those of the SDK's `load`.
    """
    (folder / "index.html").write_text(PAGE.format(service=service))
    script = SCRIPT.replace("SERVICE", service).replace("KEY", key).replace("OPTIONS", json.dumps(options))
    (folder / "page.js").write_text(script)
    shutil.copy(WORKER, folder / "svc.worker.js")


def opened(setting: Setting, visit: Visit, home: Path, collector: Collector, log: Path) -> dict[str, Any] | None:
    """What the page posted and how many seconds that took; `None` where nothing came."""
    name = f"{setting.browser}.{setting.kind}.{visit.name}"
    profile = home / "profile"
    profile.mkdir(parents=True, exist_ok=True)
    for path, text in setting.files.items():
        (profile / path).parent.mkdir(parents=True, exist_ok=True)
        (profile / path).write_text(text)
    command = [*setting.command[:-1], *([PRIVATE[setting.browser]] if visit.is_private else []), setting.command[-1]]
    filled = [part.replace("{profile}", str(profile)).replace("{url}", collector.address(name)) for part in command]
    more = {**setting.environment, "GSETTINGS_BACKEND": "memory"}

    def run(environment: dict[str, str]) -> dict[str, Any] | None:
        began = time.monotonic()
        process = start(filled, environment, log)
        try:
            found = collector.wait(name, SECONDS)
            return None if found is None else {**found["report"], "seconds": time.monotonic() - began}
        finally:
            stop(process)

    if not setting.windowed:
        return run(environment_of(home, more))
    with display(setting.screen, setting.dpi, setting.manager) as shown:
        return run(environment_of(home, {**more, **shown}))


def read_event(service: str, secret: str, request_id: str) -> dict[str, Any]:
    request = urllib.request.Request(f"{service}/api/v1/events/{request_id}", headers={"x-api-key": secret})
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def measure(only: str) -> list[dict[str, Any]]:
    """A row for each visit."""
    rows: list[dict[str, Any]] = []
    chosen = [row for tag in TAGS for row in settings() if row.tag == tag and only in tag]
    with development_service() as (service, keys), tempfile.TemporaryDirectory() as scratch:
        site = Path(scratch) / "site"
        site.mkdir()
        write_site(site, service, keys["public"])
        collector = Collector(site)
        try:
            for setting in chosen:
                if shutil.which(setting.command[0]) is None:
                    print(f"{setting.tag}: {setting.command[0]} is not installed", file=sys.stderr)
                    continue
                homes = {name: Path(scratch) / f"{setting.browser}-{setting.kind}-{name}" for name in "ab"}
                for visit in VISITS:
                    found = opened(setting, visit, homes[visit.profile], collector, Path(scratch) / "log")
                    row = {
                        "tag": setting.tag,
                        "kind": setting.kind,
                        "visit": visit.name,
                        **(found or {"error": "no report"}),
                    }
                    if "response" in row:
                        row["event"] = read_event(service, keys["secret"], row["response"]["request_id"])
                    rows.append(row)
                    print(_line(row), flush=True)
        finally:
            collector.close()
    return rows


def _line(row: dict[str, Any]) -> str:
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


def table(rows: Sequence[dict[str, Any]]) -> str:
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="tags that contain this text")
    parser.add_argument("--json", type=Path, help="write every row there")
    arguments = parser.parse_args()
    rows = measure(arguments.only)
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"\n{table(rows)}")


if __name__ == "__main__":
    main()
