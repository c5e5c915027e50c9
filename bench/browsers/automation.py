"""Browsers driven by today's tools, as the web SDK and the service see them: what fires for each.

    python -m bench.browsers.automation [--only TEXT] [--scratch DIR] [--captures FILE] [--json FILE]

Each tool opens a page with the SDK against a development service, once in a window and once without one where it can,
set up the way its own documentation begins. Undriven browsers, and Chromium as its developer tools emulate phones, are
opened beside them: nothing but what is true of the machine may fire there. It needs the browsers of Debian 12
(README.md), Xvfb, npm and PyPI, and `make web`; a tool that does not start is reported as such.
"""

from __future__ import annotations

import subprocess
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.browsers.shop import Row, shop, shown, write
from bench.usage import read_options

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


def measure(only: str, scratch: Path) -> Iterator[Row]:
    """A row for each tool and mode: its tag, and what came of it."""
    python = install(scratch)
    more = {"MODULES": str(scratch), "TZ": "America/New_York"}
    with shop() as (page, own):
        for tool in tools(python):
            if only in tool.tag:
                name = tool.tag.replace("/", ".")
                screen = "1920x1080x24" if tool.mode == "window" else None
                found = page.visited(name, tool.command, own / name, scratch / f"{name}.log", more, screen=screen)
                row = {"tag": tool.tag, **found}
                print(shown(row), flush=True)
                yield row


def main() -> None:
    given = read_options(__doc__)
    with tempfile.TemporaryDirectory() as own:
        write(measure(given.only or "", given.scratch or Path(own)), given.captures, given.json)


if __name__ == "__main__":
    main()
