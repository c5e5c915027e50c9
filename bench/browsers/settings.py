"""Which browsers are opened, and as whose: one row for each browser and way of setting it up.

What may live here: command lines, preferences and surroundings of browsers as Debian 12 packages them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Kind = Literal["normal", "headless", "spoofed"]

MINIBROWSER = "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser"
PLACES: dict[str, dict[str, Any]] = {
    "plain": {"environment": {"TZ": "America/New_York"}},
    "german": {"screen": "1366x768x24", "environment": {"LANG": "de_DE.UTF-8", "TZ": "Europe/Berlin"}},
}
"""Surroundings in which the browsers of people are opened."""
CHROMIUM_ITSELF = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
)
"""For a Chromium without a window, which would name itself otherwise."""
USER_AGENTS = {
    "iphone": (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 "
        "Mobile/15E148 Safari/604.1"
    ),
    "windows": CHROMIUM_ITSELF.replace("X11; Linux x86_64", "Windows NT 10.0; Win64; x64"),
    "chrome": CHROMIUM_ITSELF.replace("156", "140"),
}
"""Name of a setting -> the user agent of another browser."""
INCOGNITO = frozenset({"incognito"})
UNBOXED = {"QTWEBENGINE_DISABLE_SANDBOX": "1", "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox"}
NO_GPU = {**UNBOXED, "QT_QUICK_BACKEND": "software", "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox --disable-gpu"}
"""For Qt."""


@dataclass(frozen=True)
class Setting:
    """One browser, set up in one way. `{profile}` and `{url}` in commands are filled in."""

    browser: str
    name: str
    command: tuple[str, ...]
    kind: Kind = "normal"
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Path within the profile -> text, written before the first visit."""
    screen: str = "1920x1080x24"
    windowed: bool = True
    """Whether it gets a display at all."""
    true: frozenset[str] = frozenset()
    """Signals that are true of the visit, beside those of the machine."""

    @property
    def tag(self) -> str:
        return f"{self.browser}/{self.name}"

    def having(self, name: str, *flags: str, **changes: Any) -> Setting:
        """The same browser with more flags in front of the address."""
        return replace(self, name=name, command=(*self.command[:-1], *flags, self.command[-1]), **changes)

    def in_places(self) -> list[Setting]:
        """The row in each of `PLACES`."""
        rows = [replace(self, name=name, **changes) for name, changes in PLACES.items()]
        return [replace(row, environment={**self.environment, **row.environment}) for row in rows]


def user_js(*lines: tuple[str, object]) -> dict[str, str]:
    """Preferences of Firefox, as files of a profile."""
    quiet = {
        "browser.aboutwelcome.enabled": False,
        "browser.shell.checkDefaultBrowser": False,
        "datareporting.policy.dataSubmissionEnabled": False,
        "termsofuse.bypassNotification": True,
        "toolkit.telemetry.reportingpolicy.firstRun": False,
        "extensions.enabledScopes": 1,
    }
    preferences = {**quiet, **dict(lines)}
    return {"user.js": "".join(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in preferences.items())}


def settings() -> dict[str, Setting]:
    """Tag -> row."""
    rows = [*_chromium(), *_firefox(), *_webkit(), *_qt()]
    return {row.tag: row for row in rows}


def _chromium() -> list[Setting]:
    flags = ("--no-sandbox", "--no-first-run", "--no-default-browser-check", "--disable-dev-shm-usage",
             "--password-store=basic", "--user-data-dir={profile}", "{url}")  # fmt: skip
    row = Setting("chromium", "", ("/usr/lib/chromium/chromium", *flags))
    return [
        *row.in_places(),
        row.having("incognito", "--incognito", true=INCOGNITO),
        row.having("guest", "--guest", true=INCOGNITO),  # keeps nothing either
        row.having("no-gpu", "--disable-gpu", "--disable-software-rasterizer"),
        row.having("swiftshader", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
        row.having("developer-tools", "--auto-open-devtools-for-tabs", true=frozenset({"developer_tools"})),
        replace(row, name="background-tab", command=(*row.command, "about:blank")),
        row.having("headless-new", "--headless", "--remote-debugging-port=0", kind="headless", windowed=False),
    ]


def _firefox() -> list[Setting]:
    row = Setting(
        "firefox", "", ("firefox-esr", "--no-remote", "--new-instance", "--profile", "{profile}", "{url}"),
        environment={"MOZ_DISABLE_CONTENT_SANDBOX": "1", "MOZ_CRASHREPORTER_DISABLE": "1"}, files=user_js(),
    )  # fmt: skip
    resisting = frozenset({"privacy_settings", "incognito"})
    hd = {**row.environment, "MOZ_HEADLESS_WIDTH": "1920", "MOZ_HEADLESS_HEIGHT": "1080"}
    headless = row.having("headless", "--headless", kind="headless", windowed=False)
    return [
        *row.in_places(),
        row.having("private", "--private-window", true=resisting),
        replace(row, name="strict", true=resisting, files=user_js(("browser.contentblocking.category", "strict"))),
        replace(row, name="resisting", true=resisting, files=user_js(("privacy.resistFingerprinting", True))),
        headless,
        replace(headless, name="headless-1920x1080", environment=hd),
        replace(headless, name="headless-on-display", windowed=True),
    ]


def _webkit() -> list[Setting]:
    unboxed = {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
    mini = Setting("minibrowser", "", (MINIBROWSER, "{url}"), environment=unboxed)
    epiphany = Setting("epiphany", "", ("epiphany-browser", "--new-window", "{url}"), environment=unboxed)
    return [
        *mini.in_places(),
        mini.having("private", "--private", true=INCOGNITO),
        *epiphany.in_places(),
        epiphany.having("private", "--incognito-mode", true=INCOGNITO),
    ]


def _qt() -> list[Setting]:
    rows = {
        "falkon": ("falkon", "--no-remote", "{url}"),
        "konqueror": ("konqueror", "{url}"),
        "qutebrowser": ("qutebrowser", "--basedir", "{profile}", "--untrusted-args", "{url}"),
        "angelfish": ("angelfish", "{url}"),
        "morph": ("morph-browser", "{url}"),
    }
    made = {browser: Setting(browser, "", command, environment=UNBOXED) for browser, command in rows.items()}
    offscreen = {**NO_GPU, "QT_QPA_PLATFORM": "offscreen"}
    return [
        *(placed for row in made.values() for placed in row.in_places()),
        made["falkon"].having("private", "--private-browsing", true=INCOGNITO),
        *(replace(made[browser], name="offscreen", kind="headless", environment=offscreen, windowed=False)
          for browser in ("falkon", "konqueror")),
    ]  # fmt: skip
