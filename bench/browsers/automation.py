"""Browsers driven by today's tools, as the web SDK and the service see them: what fires for each.

    python -m bench.browsers.automation [--only TEXT] [--scratch DIR] [--captures FILE] [--json FILE]

Each tool opens a page with the SDK against a development service, once in a window and once without one where it can,
set up the way its own documentation begins. Undriven browsers, and Chromium as its developer tools emulate phones, are
opened beside them: nothing but what is true of the machine may fire there. It needs the browsers of Debian 12
(README.md), Xvfb, npm and PyPI, and `make web`; a tool that does not start is reported as such.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.browsers.launch import display, environment_of, start, stop
from bench.browsers.pack import compressed, of_the_browser, without_visit
from bench.browsers.sdk import development_service, read_event, write_site
from bench.browsers.server import Collector

SECONDS = 45.0
"""How long a browser may take to report."""
HERE = Path(__file__).parent
NODE_PACKAGES = (
    "puppeteer-core@24", "playwright-core@1", "selenium-webdriver@4", "puppeteer-extra@3",
    "puppeteer-extra-plugin-stealth@2", "playwright-extra@4", "rebrowser-puppeteer-core", "rebrowser-playwright-core",
    "patchright-core", "fingerprint-injector", "fingerprint-generator",
)  # fmt: skip
PYTHON_PACKAGES = (
    "setuptools", "selenium", "undetected-chromedriver", "seleniumbase", "nodriver", "zendriver", "selenium-driverless",
    "pydoll-python", "DrissionPage", "playwright", "playwright-stealth", "botasaurus-driver",
)  # fmt: skip
BOTH = ("window", "headless")


class Tool(NamedTuple):
    """A driver in one of its modes."""

    name: str
    mode: str
    command: tuple[str, ...]
    """`{url}` and `{profile}` are filled in."""

    @property
    def tag(self) -> str:
        return f"{self.name}/{self.mode}"


def tools(python: Path) -> list[Tool]:
    """Every driver and mode. `python` has `PYTHON_PACKAGES`."""
    found: list[Tool] = []

    def node(name: str, browser: str, *modes: str) -> None:
        title = name if browser == "chromium" else f"{name}-{browser}"
        command = "node", str(HERE / "drive.mjs"), name, browser
        found.extend(Tool(title, mode, (*command, mode, "{url}")) for mode in modes)

    for name in ("puppeteer", "playwright"):
        node(name, "chromium", *BOTH, "shell")
        node(f"{name}-stealth", "chromium", *BOTH)
        node(f"{name}-rebrowser", "chromium", *BOTH)
    for name in ("patchright", "patchright-no-viewport", "playwright-flagless", "playwright-attached"):
        node(name, "chromium", *BOTH)
    node("fingerprint-injector", "chromium", *BOTH)
    node("puppeteer", "firefox", *BOTH)
    node("puppeteer-attached", "chromium", "window")
    node("puppeteer-flagless", "chromium", *BOTH)
    node("selenium", "minibrowser", "window")
    for device in ("pixel", "galaxy", "iphone", "ipad"):
        node(f"device-mode-{device}", "chromium", "window")
    for name in (
        "selenium", "undetected-chromedriver", "seleniumbase-uc", "nodriver", "zendriver", "selenium-driverless",
        "pydoll", "drissionpage", "botasaurus", "playwright-stealth",
    ):  # fmt: skip
        title = f"{name}-python" if name == "playwright-stealth" else name  # Node.js has one of that name
        command = str(python), str(HERE / "drive.py"), name
        found.extend(Tool(title, mode, (*command, mode, "{url}", "{profile}")) for mode in BOTH)
    return found


def install(scratch: Path) -> Path:
    """The drivers, in `scratch`, once; returns the Python that has those of PyPI."""
    scratch.mkdir(parents=True, exist_ok=True)
    if not (scratch / "node_modules").is_dir():
        (scratch / "package.json").write_text('{"private": true, "type": "module"}\n')
        flags = ("--no-audit", "--no-fund", "--no-save", "--ignore-scripts")
        subprocess.run(("npm", "install", *flags, *NODE_PACKAGES), cwd=scratch, check=True, capture_output=True)
    python = scratch / "python" / "bin" / "python"
    if not python.exists():
        venv.create(scratch / "python", with_pip=True)
        for package in PYTHON_PACKAGES:  # one by one: no set of versions suits them all
            subprocess.run((python, "-m", "pip", "install", "-q", package), check=True, capture_output=True)
    return python


def visit(tool: Tool, collector: Collector, scratch: Path, log: Path) -> dict[str, Any] | None:
    """What the page posted; `None` where nothing came."""
    home = Path(tempfile.mkdtemp(prefix="driven-"))
    filling = {"url": collector.address(tool.tag.replace("/", ".")), "profile": str(home / "profile")}
    command = [part.format(**filling) if part.startswith("{") else part for part in tool.command]
    more = {"MODULES": str(scratch), "GSETTINGS_BACKEND": "memory", "TZ": "America/New_York"}

    def run(environment: dict[str, str]) -> dict[str, Any] | None:
        process = start(command, environment, log)
        try:
            return collector.wait(tool.tag.replace("/", "."), SECONDS)
        finally:
            stop(process)

    if tool.mode != "window":
        return run(environment_of(home, more))
    with display("1920x1080x24", 96, "openbox") as shown:
        return run(environment_of(home, {**more, **shown}))


def measure(only: str, scratch: Path) -> list[dict[str, Any]]:
    """A row for each tool and mode: its tag, and the event with the archived report, or what went wrong."""
    python = install(scratch)
    rows: list[dict[str, Any]] = []
    with development_service() as (service, keys), tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        write_site(site, service, keys["public"])
        collector = Collector(site)
        try:
            for tool in tools(python):
                if only not in tool.tag:
                    continue
                found = visit(tool, collector, scratch, scratch / f"{tool.tag.replace('/', '.')}.log")
                row: dict[str, Any] = {"tag": tool.tag}
                if found is None or "response" not in found["report"]:
                    row["error"] = "no report" if found is None else found["report"].get("error")
                else:
                    row["headers"] = found["headers"]
                    row["event"] = read_event(service, keys["secret"], found["report"]["response"]["request_id"])
                rows.append(row)
                print(_line(row), flush=True)
        finally:
            collector.close()
    return rows


def fired(row: dict[str, Any]) -> dict[str, list[str]]:
    """Signal -> its evidence, of one row with an event."""
    evidence = row["event"]["document"]["evidence"]
    return {one["signal"]: evidence.get(one["signal"], []) for one in row["event"]["signals"]}


def _line(row: dict[str, Any]) -> str:
    if "event" not in row:
        return f"{row['tag']:36} {row['error']}"
    shown = "; ".join(f"{name} ({', '.join(why)})" for name, why in fired(row).items()) or "nothing"
    return f"{row['tag']:36} {row['event']['suspect_score']:>4} {shown}"


def write_captures(rows: Sequence[dict[str, Any]], out: Path) -> None:
    """The reports and headers of every row with an event, for the tests."""
    out.write_bytes(
        compressed(
            {
                "tag": row["tag"],
                "signals": without_visit(row["event"]["document"]["signals"]),
                "headers": of_the_browser(row["headers"]),
            }
            for row in rows
            if "event" in row
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="tags that contain this text")
    parser.add_argument("--scratch", type=Path, help="where the drivers are installed, and kept for the next time")
    parser.add_argument("--captures", type=Path, help="write the reports there, for the tests")
    parser.add_argument("--json", type=Path, help="write every row there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        rows = measure(arguments.only, arguments.scratch or Path(own))
    if arguments.captures:
        write_captures(rows, arguments.captures)
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
