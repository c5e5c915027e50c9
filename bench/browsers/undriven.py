"""The web SDK in browsers that no driver steers: people's, the same without a window, and under a false name.

    python -m bench.browsers.undriven [--only TEXT] [--qt DIR] [--captures FILE] [--json FILE]

Each browser opens a page with the SDK once, against a development service. What fires for each is printed, and with
`--captures` the reports are written for `tests/domain/test_sdk_browsers.py`. It needs the browsers of Debian 12
(README.md), Xvfb and `make web`. `--qt` is a folder of virtual environments `qt6.4`, `qt6.5`, ..., each with
PyQt6-WebEngine and its Qt of that version from PyPI; without it these are left out, as is each browser that is not
installed.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.browsers.automation import fired
from bench.browsers.disguises import CHROMIUM_ITSELF, USER_AGENTS
from bench.browsers.launch import display, environment_of, start, stop
from bench.browsers.pack import compressed, of_the_browser, without_visit
from bench.browsers.sdk import development_service, read_event, write_site
from bench.browsers.server import Collector
from bench.browsers.settings import Setting, settings

SECONDS = 40.0
"""How long a browser may take to report."""
HERE = Path(__file__).parent
QT_VERSIONS = ("6.4", "6.5", "6.6", "6.7", "6.8", "6.9", "6.10", "6.11")
NO_COOKIES = {"profile": {"default_content_setting_values": {"cookies": 2}}}
"""Preferences of Chromium that let no site keep anything."""
PLACES = ("plain", "german")
"""Of the places of `settings.py`, those in which the browsers of people are opened."""
_UNBOXED = {"QTWEBENGINE_DISABLE_SANDBOX": "1", "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox"}
_NO_GPU = {**_UNBOXED, "QT_QUICK_BACKEND": "software", "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox --disable-gpu"}

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
    found = {row.tag: row for row in settings()}
    chosen: list[Setting] = []
    for browser in (
        "chromium", "firefox", "minibrowser", "epiphany", "falkon", "konqueror", "qutebrowser", "angelfish", "morph",
    ):  # fmt: skip
        chosen += [found[f"{browser}/{place}"] for place in PLACES]
    chosen += [found[tag] for tag in (
        "chromium/incognito", "firefox/private", "firefox/strict", "firefox/resisting",
        "minibrowser/private", "epiphany/private", "falkon/private", "chromium/developer-tools",
        "chromium/swiftshader", "chromium/no-gpu", "chromium/background-tab",
        "firefox/headless-1920x1080", "firefox/headless-on-display", "falkon/offscreen", "konqueror/offscreen",
    )]  # fmt: skip
    # A guest's window keeps nothing either.
    chosen.append(replace(found["chromium/guest"], true=frozenset({"incognito"})))
    chromium, firefox = found["chromium/plain"], found["firefox/plain"]
    private = found["firefox/private"]
    chosen += [
        replace(chromium, name="cookies-refused", files={"Default/Preferences": json.dumps(NO_COOKIES)}),
        _preferring(firefox, "cookies-refused", "network.cookie.cookieBehavior", 2),
        _preferring(private, "private-cookies-refused", "network.cookie.cookieBehavior", 2),
        _preferring(firefox, "no-storage", "dom.storage.enabled", value=False),
    ]
    chosen += _headless_chromium(chromium)
    chosen += _under_another_name(chromium)
    if qt is not None:
        chosen += _qt(qt)
    return [replace(row, visits=1) for row in chosen]


def _preferring(row: Setting, name: str, preference: str, value: object) -> Setting:
    """Firefox with one preference more."""
    written = row.files["user.js"] + f"user_pref({json.dumps(preference)}, {json.dumps(value)});\n"
    return replace(row, name=name, files={"user.js": written})


def _with(row: Setting, name: str, kind: Any, *flags: str, **changes: Any) -> Setting:
    return replace(row, name=name, kind=kind, command=(*row.command[:-1], *flags, row.command[-1]), **changes)


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
        yield _with(chromium, f"headless-{name}", "headless", "--headless", *flags, windowed=False)


def _under_another_name(chromium: Setting) -> Iterator[Setting]:
    """In a window: what people do by flags and extensions. They contradict themselves, and no program is at work."""
    software = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
    allowed = "--disable-features=DisableLoadExtensionCommandLineSwitch"
    for name in EXTENSIONS:
        yield _with(chromium, name, "spoofed", "--load-extension={profile}/extension", allowed,
                    *(software if name == "renamed-gpu" else ()), files=_extension(name))  # fmt: skip
    for name in ("windows", "iphone", "chrome"):
        yield _with(chromium, f"as-{name}", "spoofed", f"--user-agent={USER_AGENTS[name]}")
    yield _with(chromium, "as-itself", "spoofed", f"--user-agent={CHROMIUM_ITSELF}")
    yield _with(chromium, "as-itself-swiftshader", "spoofed", f"--user-agent={CHROMIUM_ITSELF}", *software)


def _qt(folder: Path) -> Iterator[Setting]:
    """A program with a web view, as many are made with Qt."""
    for version in QT_VERSIONS:
        python = folder / f"qt{version}" / "bin" / "python"
        command = (str(python), str(HERE / "webview.py"), "{profile}", "{url}")
        row = Setting(f"qt-{version}", "plain", "normal", command, environment={**_UNBOXED, "TZ": "America/New_York"})
        yield row
        if version in ("6.4", "6.11"):
            chromium = {"6.4": "102.0.5005.177", "6.11": "140.0.0.0"}[version]
            german = {"LANG": "de_DE.UTF-8", "TZ": "Europe/Berlin"}
            yield replace(row, name="german", environment={**row.environment, **german}, screen="1366x768x24")
            yield replace(row, name="software-gl", environment={**row.environment, **_NO_GPU})
            yield replace(row, name="private", command=(*command[:2], "--private", *command[2:]),
                          true=frozenset({"incognito"}))  # fmt: skip
            # As qutebrowser of 2025 and others name themselves, since sites refuse engines that they do not know.
            own_name = CHROMIUM_ITSELF.replace("156.0.0.0", chromium)
            yield replace(row, name="as-chrome", command=(*command[:2], "--user-agent", own_name, *command[2:]))
            yield replace(row, name="offscreen", kind="headless", windowed=False,
                          environment={**row.environment, **_NO_GPU, "QT_QPA_PLATFORM": "offscreen"})  # fmt: skip


def opened(row: Setting, home: Path, collector: Collector, log: Path) -> dict[str, Any] | None:
    """What the page posted; `None` where nothing came."""
    name = row.tag.replace("/", ".")
    profile = home / "profile"
    for path, text in row.files.items():
        (profile / path).parent.mkdir(parents=True, exist_ok=True)
        (profile / path).write_text(text)
    filling = {"{profile}": str(profile), "{url}": collector.address(name)}
    command = [_filled(part, filling) for part in row.command]
    more = {**row.environment, "GSETTINGS_BACKEND": "memory"}

    def run(environment: dict[str, str]) -> dict[str, Any] | None:
        process = start(command, environment, log)
        try:
            return collector.wait(name, SECONDS)
        finally:
            stop(process)

    if not row.windowed:
        return run(environment_of(home, more))
    with display(row.screen, row.dpi, row.manager) as shown:
        return run(environment_of(home, {**more, **shown}))


def _filled(part: str, filling: dict[str, str]) -> str:
    for name, value in filling.items():
        part = part.replace(name, value)
    return part


def measure(chosen: Sequence[Setting]) -> list[dict[str, Any]]:
    """A row for each browser that is installed: what it is, and the event with the archived report or what went
    wrong.
    """
    found: list[dict[str, Any]] = []
    with development_service() as (service, keys), tempfile.TemporaryDirectory() as scratch:
        site = Path(scratch) / "site"
        site.mkdir()
        write_site(site, service, keys["public"])
        collector = Collector(site)
        try:
            for number, setting in enumerate(chosen):
                if shutil.which(setting.command[0]) is None:
                    print(f"{setting.tag}: {setting.command[0]} is not installed", file=sys.stderr)
                    continue
                row: dict[str, Any] = {"tag": setting.tag, "kind": setting.kind, "true": sorted(setting.true)}
                home = Path(scratch) / str(number)
                home.mkdir()
                said = opened(setting, home, collector, Path(scratch) / "log")
                shutil.rmtree(home, ignore_errors=True)
                if said is None or "response" not in said["report"]:
                    row["error"] = "no report" if said is None else said["report"].get("error")
                else:
                    row["headers"] = said["headers"]
                    row["timing"] = said["report"]["timing"]
                    row["event"] = read_event(service, keys["secret"], said["report"]["response"]["request_id"])
                found.append(row)
                print(_line(row), flush=True)
        finally:
            collector.close()
    return found


def _line(row: dict[str, Any]) -> str:
    if "event" not in row:
        return f"{row['tag']:32} {row['error']}"
    shown = "; ".join(f"{name} ({', '.join(why)})" for name, why in fired(row).items()) or "nothing"
    missed = f"  missed: {', '.join(row['timing']['missed'])}" if row["timing"]["missed"] else ""
    return f"{row['tag']:32} {row['event']['suspect_score']:>4} {shown}{missed}"


_VERSION = re.compile(r"(?:HeadlessChrome|Chrome|Firefox|Version)/([\d.]+)")


def write_captures(found: Sequence[dict[str, Any]], out: Path) -> None:
    """The reports and headers of every row with an event, for the tests."""
    packed: list[dict[str, Any]] = []
    for row in found:
        if "event" in row:
            signals = without_visit(row["event"]["document"]["signals"])
            engine = _VERSION.search(row["headers"].get("user-agent", ""))
            packed.append(
                {
                    "tag": row["tag"],
                    "kind": row["kind"],
                    "true": row["true"],
                    "engine": engine[0] if engine else "",
                    "signals": signals,
                    "headers": of_the_browser(row["headers"]),
                }
            )
    out.write_bytes(compressed(packed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="tags that contain this text")
    parser.add_argument("--qt", type=Path, metavar="DIR", help="virtual environments with PyQt6-WebEngine")
    parser.add_argument("--captures", type=Path, metavar="FILE", help="write the reports there, for the tests")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every row there")
    arguments = parser.parse_args()
    found = measure([row for row in rows(arguments.qt) if arguments.only in row.tag])
    if arguments.captures:
        write_captures(found, arguments.captures)
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(row) + "\n" for row in found))


if __name__ == "__main__":
    sys.exit(main())
