"""The web SDK in browsers that no driver steers: people's, the same without a window, and under a false name.

    python -m bench.browsers.undriven [--only TEXT] [--qt DIR] [--captures FILE] [--json FILE]

Each browser opens a page with the SDK once, against a development service. What fires for each is printed, and with
`--captures` the reports are written for `tests/domain/test_sdk_browsers.py`. It needs the browsers of Debian 12
(README.md), Xvfb and `make web`. `--qt` is a folder of virtual environments `qt6.4`, `qt6.5`, ..., each with
PyQt6-WebEngine and its Qt of that version from PyPI; without it these are left out, as is each browser that is not
installed.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.browsers.settings import CHROMIUM_ITSELF, INCOGNITO, NO_GPU, UNBOXED, USER_AGENTS, Setting, settings, user_js
from bench.browsers.shop import Row, is_installed, shop, shown, write
from bench.usage import read_options

HERE = Path(__file__).parent
QT_VERSIONS = ("6.4", "6.5", "6.6", "6.7", "6.8", "6.9", "6.10", "6.11")
NO_COOKIES = {"profile": {"default_content_setting_values": {"cookies": 2}}}
"""Preferences of Chromium that let no site keep anything."""
EXTENSIONS = {
    "renamed-gpu": """
        const names = { 37445: "Google Inc. (NVIDIA)",
          37446: "ANGLE (NVIDIA, NVIDIA GeForce RTX 3060/PCIe/SSE2, OpenGL 4.5.0)" };
        for (const { prototype } of [WebGLRenderingContext, WebGL2RenderingContext]) {
          const own = prototype.getParameter;
          prototype.getParameter = function (name) { return names[name] ?? own.call(this, name); };
        }""",
    "canvas-noise": """
        const own = CanvasRenderingContext2D.prototype.getImageData;
        CanvasRenderingContext2D.prototype.getImageData = function (...area) {
          const image = own.apply(this, area);
          for (let place = 0; place < image.data.length; place += 7) image.data[place] ^= 1;
          return image;
        };""",
    "other-cores": """
        Object.defineProperty(Navigator.prototype, "hardwareConcurrency", { get: () => 12, configurable: true });""",
}
"""Name -> what a content script does in the page before anything else runs there, as privacy extensions do."""


def _extension(name: str) -> dict[str, str]:
    """Files of an extension, by their paths within the profile."""
    manifest = {
        "manifest_version": 3,
        "name": name,
        "version": "1",
        "content_scripts": [
            {"matches": ["<all_urls>"], "js": ["page.js"], "run_at": "document_start", "world": "MAIN"}
        ],
    }
    return {"extension/manifest.json": json.dumps(manifest), "extension/page.js": EXTENSIONS[name]}


def rows(qt: Path | None) -> list[Setting]:
    """Every browser and way of opening it."""
    found = settings()
    chromium, firefox, private = found["chromium/plain"], found["firefox/plain"], found["firefox/private"]
    refused = user_js(("network.cookie.cookieBehavior", 2))
    return [
        *(row for tag, row in found.items() if tag not in ("chromium/headless-new", "firefox/headless")),
        replace(chromium, name="cookies-refused", files={"Default/Preferences": json.dumps(NO_COOKIES)}),
        replace(firefox, name="cookies-refused", files=refused),
        replace(private, name="private-cookies-refused", files=refused),
        replace(firefox, name="no-storage", files=user_js(("dom.storage.enabled", False))),
        *_headless_chromium(chromium),
        *_under_another_name(chromium),
        *(_qt(qt) if qt is not None else ()),
    ]


def _headless_chromium(chromium: Setting) -> Iterator[Setting]:
    """Under an ordinary browser's name, on screens of other sizes than it invents."""
    renamed = f"--user-agent={CHROMIUM_ITSELF}"
    for name, flags in {
        "as-is": (),
        "renamed": (renamed,),
        "renamed-window": (renamed, "--window-size=1600,900"),
        "renamed-screen": (renamed, "--window-size=1600,900", "--screen-info={1920x1080 workAreaBottom=40}"),
        "renamed-full-hd": (renamed, "--window-size=1920,1040", "--screen-info={1920x1080 workAreaBottom=40}"),
        "renamed-laptop": (renamed, "--window-size=1280,700", "--screen-info={1366x768 workAreaBottom=32}",
                           "--lang=de"),
        "renamed-swiftshader": (renamed, "--window-size=1600,900", "--screen-info={1920x1080}",
                                "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
        "renamed-no-webgl": (renamed, "--window-size=1600,900", "--screen-info={1920x1080}", "--disable-3d-apis"),
        "renamed-windows": (f"--user-agent={USER_AGENTS['windows']}", "--window-size=1600,900",
                            "--screen-info={1920x1080 workAreaBottom=40}"),
    }.items():  # fmt: skip
        yield chromium.having(f"headless-{name}", "--headless", *flags, kind="headless", windowed=False)


def _under_another_name(chromium: Setting) -> Iterator[Setting]:
    """In a window: what people do by flags and extensions. They contradict themselves, and no program is at work."""
    software = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
    allowed = "--disable-features=DisableLoadExtensionCommandLineSwitch"
    for name in EXTENSIONS:
        flags = ("--load-extension={profile}/extension", allowed, *(software if name == "renamed-gpu" else ()))
        yield chromium.having(name, *flags, kind="spoofed", files=_extension(name))
    for name, user_agent in USER_AGENTS.items():
        yield chromium.having(f"as-{name}", f"--user-agent={user_agent}", kind="spoofed")
    itself = chromium.having("as-itself", f"--user-agent={CHROMIUM_ITSELF}", kind="spoofed")
    yield from (itself, itself.having("as-itself-swiftshader", *software))


def _qt(folder: Path) -> Iterator[Setting]:
    """A program with a web view, as many are made with Qt."""
    for version in QT_VERSIONS:
        python = folder / f"qt{version}" / "bin" / "python"
        command = (str(python), str(HERE / "webview.py"), "{profile}", "{url}")
        row = Setting(f"qt-{version}", "plain", command, environment={**UNBOXED, "TZ": "America/New_York"})
        yield row
        if version in ("6.4", "6.11"):
            chromium = {"6.4": "102.0.5005.177", "6.11": "140.0.0.0"}[version]
            german = {"LANG": "de_DE.UTF-8", "TZ": "Europe/Berlin"}
            yield replace(row, name="german", environment={**row.environment, **german}, screen="1366x768x24")
            yield replace(row, name="software-gl", environment={**row.environment, **NO_GPU})
            yield replace(row, name="private", command=(*command[:2], "--private", *command[2:]),
                          true=INCOGNITO)  # fmt: skip
            # As qutebrowser of 2025 and others name themselves, since sites refuse engines that they do not know.
            own_name = CHROMIUM_ITSELF.replace("156.0.0.0", chromium)
            yield replace(row, name="as-chrome", command=(*command[:2], "--user-agent", own_name, *command[2:]))
            yield replace(row, name="offscreen", kind="headless", windowed=False,
                          environment={**row.environment, **NO_GPU, "QT_QPA_PLATFORM": "offscreen"})  # fmt: skip


def measure(chosen: Sequence[Setting]) -> Iterator[Row]:
    """A row for each browser that is installed: what it is, and what came of it."""
    with shop() as (page, scratch):
        for number, setting in enumerate(chosen):
            if is_installed(setting.tag, setting.command[0]):
                home, screen = scratch / str(number), setting.screen if setting.windowed else None
                name = setting.tag.replace("/", ".")
                found = page.visited(
                    name, setting.command, home, scratch / "log", setting.environment, setting.files, screen
                )
                row = {"tag": setting.tag, "kind": setting.kind, "true": sorted(setting.true), **found}
                if "event" in row:
                    engine = _VERSION.search(row["headers"].get("user-agent", ""))
                    row["engine"] = engine[0] if engine else ""
                shutil.rmtree(home, ignore_errors=True)
                print(shown(row), flush=True)
                yield row


_VERSION = re.compile(r"(?:HeadlessChrome|Chrome|Firefox|Version)/([\d.]+)")


def main() -> None:
    given = read_options(__doc__)
    write(measure([row for row in rows(given.qt) if (given.only or "") in row.tag]), given.captures, given.json)


if __name__ == "__main__":
    main()
