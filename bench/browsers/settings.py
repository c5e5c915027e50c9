"""Which browsers are opened, and as whose: one row for each browser and way of setting it up.

What may live here: command lines, preferences and surroundings of browsers as Debian 12 packages them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from bench.browsers.disguises import CHROMIUM_ITSELF, USER_AGENTS

Kind = Literal["normal", "headless", "driven", "spoofed"]

CHROMIUM = "/usr/lib/chromium/chromium"
MINIBROWSER = "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser"
HELD_OUT_BROWSERS = frozenset({"angelfish", "luakit"})
"""Seen by nobody before the rules were done, whatever their settings."""


@dataclass(frozen=True)
class Setting:
    """One browser, set up in one way. `{profile}` and `{url}` in commands are filled in."""

    browser: str
    name: str
    kind: Kind
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Path within the profile -> text, written before the first visit."""
    screen: str = "1920x1080x24"
    dpi: int = 96
    manager: str | None = "openbox"
    windowed: bool = True
    """Whether it gets a display at all."""
    visits: int = 1
    true: frozenset[str] = frozenset()
    """Signals that are true of the visit, beside those of the machine."""

    @property
    def tag(self) -> str:
        return f"{self.browser}/{self.name}"

    @property
    def number(self) -> int:
        """Drawn from the name, so that it stays when rows are added."""
        return int.from_bytes(hashlib.sha256(self.tag.encode()).digest()[:4], "big")

    @property
    def held_out(self) -> bool:
        """One in four, and some browsers whole."""
        return self.browser in HELD_OUT_BROWSERS or self.number % 4 == 0


def settings() -> list[Setting]:
    """Every row, in an order that mixes the browsers."""
    rows = [
        *_chromium(), *_firefox(), *_webkit(), *_qt(), *_headless_chromium(), *_headless_firefox(),
        *_other_headless(), *_driven(), *_spoofed(),
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row.number)


# ---- surroundings that every browser is opened in

_PLACES: tuple[tuple[str, dict[str, object]], ...] = (
    ("plain", {"screen": "1920x1080x24", "environment": {"TZ": "America/New_York"}, "visits": 2}),
    ("german", {"screen": "1366x768x24", "environment": {"LANG": "de_DE.UTF-8", "TZ": "Europe/Berlin"}}),
    ("japanese", {"screen": "1280x800x24", "environment": {"LANG": "ja_JP.UTF-8", "TZ": "Asia/Tokyo"}}),
    ("brazilian", {"screen": "1600x900x24", "environment": {"LANG": "pt_BR.UTF-8", "TZ": "America/Sao_Paulo"}}),
    ("no-manager", {"screen": "1440x900x24", "manager": None, "environment": {"TZ": "Europe/London"}}),
    ("posix", {"screen": "1280x1024x24", "manager": None, "environment": {"LANG": "C.UTF-8", "TZ": "UTC"}}),
    ("few-colors", {"screen": "1024x768x16", "environment": {"LANG": "pl_PL.UTF-8", "TZ": "Europe/Warsaw"}}),
    (
        "scaled",
        {
            "screen": "2560x1440x24",
            "dpi": 144,
            "environment": {"GDK_SCALE": "2", "QT_SCALE_FACTOR": "1.5", "TZ": "Asia/Shanghai", "LANG": "zh_CN.UTF-8"},
        },
    ),
    ("wide", {"screen": "3440x1440x24", "environment": {"LANG": "fr_FR.UTF-8", "TZ": "Europe/Paris"}}),
    ("quad", {"screen": "3840x2160x24", "dpi": 192, "environment": {"LANG": "es_ES.UTF-8", "TZ": "Europe/Madrid"}}),
    ("small", {"screen": "800x600x24", "environment": {"LANG": "en_GB.UTF-8", "TZ": "Asia/Kolkata"}}),
    ("arabic", {"screen": "1536x864x24", "environment": {"LANG": "ar_EG.UTF-8", "TZ": "Africa/Cairo"}}),
    ("russian", {"screen": "1680x1050x24", "environment": {"LANG": "ru_RU.UTF-8", "TZ": "Asia/Yekaterinburg"}}),
)


def _everywhere(row: Setting, *, prefix: str = "") -> Iterator[Setting]:
    for name, changes in _PLACES:
        more = changes.get("environment", {})
        environment = {**row.environment, **more} if isinstance(more, dict) else row.environment
        rest = {key: value for key, value in changes.items() if key != "environment"}
        yield replace(row, name=prefix + name, environment=environment, **rest)


def _with(row: Setting, name: str, *flags: str, **changes: object) -> Setting:
    """The same browser with more flags in front of the address."""
    return replace(row, name=name, command=(*row.command[:-1], *flags, row.command[-1]), **changes)


# ---- Chromium

_CHROMIUM = Setting(
    browser="chromium",
    name="",
    kind="normal",
    command=(CHROMIUM, "--no-sandbox", "--no-first-run", "--no-default-browser-check", "--disable-dev-shm-usage",
             "--password-store=basic", "--user-data-dir={profile}", "{url}"),
)  # fmt: skip


def _preferences(**values: object) -> dict[str, str]:
    return {"Default/Preferences": json.dumps(values)}


def _chromium() -> Iterator[Setting]:
    row = _CHROMIUM
    yield from _everywhere(row)
    downloads = _preferences(plugins={"always_open_pdf_externally": True})
    yield from (replace(found, files=downloads) for found in _everywhere(row, prefix="pdf-download-"))
    software = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
    yield _with(row, "lang-flag", "--lang=fr")
    yield replace(row, name="accept-languages", files=_preferences(intl={"accept_languages": "de-CH,de,fr-CH,fr,en"}))
    yield replace(row, name="accept-one-language", files=_preferences(intl={"accept_languages": "sv"}))
    for ratio in ("0.9", "1.25", "1.5", "1.75", "2", "3"):
        yield _with(row, f"scale-{ratio}", f"--force-device-scale-factor={ratio}")
    for size in ("1280,720", "1024,768", "1100,900", "800,600", "500,900"):
        yield _with(row, f"window-{size.replace(',', 'x')}", f"--window-size={size}")
    yield _with(row, "maximised", "--start-maximized")
    yield _with(row, "full-screen", "--start-fullscreen")
    yield _with(row, "full-screen-pdf-download", "--start-fullscreen", files=downloads)
    yield _with(row, "kiosk", "--kiosk")
    yield _with(row, "kiosk-no-manager", "--kiosk", manager=None, screen="1280x720x24")
    for level in (-1.0, -2.5):
        zoom = _preferences(partition={"default_zoom_level": {"x": level}})
        yield replace(row, name=f"zoom{level:+}", files=zoom)
        yield replace(row, name=f"zoom{level:+}-pdf-download", files={**_merged(zoom, downloads)})
    yield _with(row, "incognito", "--incognito", true=frozenset({"incognito"}))
    yield _with(row, "incognito-pdf-download", "--incognito", files=downloads, true=frozenset({"incognito"}))
    yield _with(row, "guest", "--guest")
    yield _with(row, "no-webgl", "--disable-3d-apis")
    yield _with(row, "no-gpu", "--disable-gpu", "--disable-software-rasterizer")
    yield _with(row, "no-webgl-pdf-download", "--disable-3d-apis", files=downloads)
    yield _with(row, "swiftshader", *software)
    yield _with(row, "swiftshader-pdf-download", *software, files=downloads)
    yield _with(row, "swiftshader-pdf-download-full", *software, "--start-fullscreen", files=downloads)
    yield _with(row, "opengl", "--use-gl=angle", "--use-angle=gl", "--ignore-gpu-blocklist")
    yield _with(row, "opengl-es", "--use-gl=angle", "--use-angle=gles", "--ignore-gpu-blocklist")
    yield _with(row, "opengl-pdf-download", "--use-gl=angle", "--use-angle=gl", "--ignore-gpu-blocklist",
                files=downloads)  # fmt: skip
    yield _with(row, "jitless", "--js-flags=--jitless")
    yield _with(row, "reduced-motion", "--force-prefers-reduced-motion")
    yield _with(row, "dark", "--force-dark-mode")
    yield _with(row, "high-contrast", "--force-high-contrast")
    yield _with(row, "touch", "--touch-events=enabled")
    yield _with(row, "no-hints", "--disable-features=UserAgentClientHint")
    yield replace(row, name="app", command=(*row.command[:-1], "--app={url}"))
    yield replace(row, name="app-pdf-download", command=(*row.command[:-1], "--app={url}"), files=downloads)
    yield _with(row, "developer-tools", "--auto-open-devtools-for-tabs", true=frozenset({"developer_tools"}))
    # Chromium says of itself then that it is driven.
    yield _with(row, "debugging-port", "--remote-debugging-port=0", kind="driven")
    yield _with(row, "no-canvas-reading", "--disable-reading-from-canvas")
    yield replace(row, name="background-tab", command=(*row.command[:-1], "{url}", "about:blank"))
    yield replace(row, name="background-tab-pdf-download", command=(*row.command[:-1], "{url}", "about:blank"),
                  files=downloads)  # fmt: skip
    for name, extensions in (("ublock", "ublock-origin"), ("privacy-badger", "privacy-badger")):
        flag = f"--load-extension=/usr/share/chromium/extensions/{extensions}"
        yield _with(row, name, flag)
        yield _with(row, f"{name}-pdf-download", flag, files=downloads)
    yield replace(row, name="cookies-blocked", files=_preferences(profile={"block_third_party_cookies": True}))
    yield replace(row, name="no-notifications",
                  files=_preferences(profile={"default_content_setting_values": {"notifications": 2}}))  # fmt: skip
    yield replace(row, name="debian-wrapper", command=("/usr/bin/chromium", *row.command[1:]))
    yield replace(row, name="debian-wrapper-pdf-download", command=("/usr/bin/chromium", *row.command[1:]),
                  files=downloads)  # fmt: skip


def _merged(*files: Mapping[str, str]) -> dict[str, str]:
    values: dict[str, object] = {}
    for file in files:
        values |= json.loads(file["Default/Preferences"])
    return _preferences(**values)


# ---- Firefox

_FIREFOX = Setting(
    browser="firefox",
    name="",
    kind="normal",
    command=("firefox-esr", "--no-remote", "--new-instance", "--profile", "{profile}", "{url}"),
    environment={"MOZ_DISABLE_CONTENT_SANDBOX": "1", "MOZ_CRASHREPORTER_DISABLE": "1"},
    files={"user.js": ""},
)
_QUIET = {
    "browser.aboutwelcome.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "termsofuse.bypassNotification": True,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "extensions.enabledScopes": 1,
}
_RESISTING = frozenset({"privacy_settings", "incognito"})


def _user_js(**values: object) -> dict[str, str]:
    merged = {**_QUIET, **{name.replace("__", "."): value for name, value in values.items()}}
    return {"user.js": "".join(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in merged.items())}


def _firefox() -> Iterator[Setting]:
    row = replace(_FIREFOX, files=_user_js())
    yield from _everywhere(row)
    for name, values in _FIREFOX_PREFERENCES.items():
        true = _RESISTING if name.startswith(("resist", "protect", "strict")) else frozenset()
        yield replace(row, name=name, files=_user_js(**values), true=frozenset(true))
    yield _with(row, "private", "--private-window", true=_RESISTING)
    yield _with(replace(row, files=_user_js(browser__contentblocking__category="strict")), "strict-private",
                "--private-window", true=_RESISTING)  # fmt: skip
    yield _with(row, "kiosk", "--kiosk")
    yield _with(row, "kiosk-no-manager", "--kiosk", manager=None, screen="1366x768x24")
    yield _with(row, "no-manager-laptop", manager=None, screen="1366x768x24")
    yield _with(row, "window-1366x768", "--width", "1366", "--height", "768", screen="1366x768x24", manager=None)
    yield _with(row, "window-1280x720", "--width", "1280", "--height", "720", screen="1280x720x24", manager=None)
    yield _with(row, "window-1920x1080", "--width", "1920", "--height", "1080", manager=None)
    yield _with(row, "window-900x700", "--width", "900", "--height", "700")
    yield replace(row, name="software-gl", environment={**row.environment, "LIBGL_ALWAYS_SOFTWARE": "1"})


_FIREFOX_PREFERENCES: dict[str, dict[str, object]] = {
    "languages": {"intl__accept_languages": "nl-BE, nl, fr, en"},
    "english-only": {"intl__accept_languages": "en-US"},
    "pdf-download": {"pdfjs__disabled": True},
    "strict": {"browser__contentblocking__category": "strict"},
    "protection": {"privacy__fingerprintingProtection": True},
    "resisting": {"privacy__resistFingerprinting": True},
    "resisting-letterbox": {
        "privacy__resistFingerprinting": True,
        "privacy__resistFingerprinting__letterboxing": True,
    },
    "no-webgl": {"webgl__disabled": True},
    "no-webgl-pdf-download": {"webgl__disabled": True, "pdfjs__disabled": True},
    "webgl-forced": {"webgl__force-enabled": True},
    "no-debug-renderer": {"webgl__enable-debug-renderer-info": False},
    "jitless": {"javascript__options__ion": False, "javascript__options__baselinejit": False},
    "scale-1.5": {"layout__css__devPixelsPerPx": "1.5"},
    "scale-2": {"layout__css__devPixelsPerPx": "2"},
    "dark": {"layout__css__prefers-color-scheme__content-override": 0},
    "reduced-motion": {"ui__prefersReducedMotion": 1},
    "do-not-track": {"privacy__donottrackheader__enabled": True, "privacy__globalprivacycontrol__enabled": True},
    "no-workers-webrtc": {"media__peerconnection__enabled": False, "dom__serviceWorkers__enabled": False},
    "no-storage": {"dom__storage__enabled": False},
    "extensions": {"extensions__enabledScopes": 15, "extensions__autoDisableScopes": 0},
    "no-fonts": {"browser__display__use_document_fonts": 0},
    "many-cores": {"dom__maxHardwareConcurrency": 16},
    "menu-bar": {"ui__key__menuAccessKeyFocuses": True, "browser__tabs__inTitlebar": 0},
    "no-title-bar": {"browser__tabs__inTitlebar": 1},
}

# ---- WebKit


def _webkit() -> Iterator[Setting]:
    unboxed = {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
    mini = Setting("minibrowser", "", "normal", (MINIBROWSER, "{url}"), environment=unboxed)
    yield from _everywhere(mini)
    yield _with(mini, "private", "--private", true=frozenset({"incognito"}))
    yield _with(mini, "no-webgl", "--enable-webgl=false")
    yield _with(mini, "full-screen", "--full-screen")
    yield _with(mini, "dark", "--dark-mode")
    yield _with(mini, "geometry", "--geometry=1300x700")
    epiphany = Setting("epiphany", "", "normal", ("epiphany-browser", "--new-window", "{url}"), environment=unboxed)
    yield from _everywhere(epiphany)
    yield _with(epiphany, "private", "--incognito-mode", true=frozenset({"incognito"}))
    yield _with(epiphany, "own-instance", "--private-instance")
    surf = Setting("surf", "", "normal", ("surf", "{url}"), environment=unboxed)
    yield from _everywhere(surf)
    yield _with(surf, "zoomed", "-z", "1.3")
    yield _with(surf, "full-screen", "-F")
    yield _with(surf, "no-disk-cache", "-d")
    luakit = Setting("luakit", "", "normal", ("luakit", "--nounique", "{url}"), environment=unboxed)
    yield from _everywhere(luakit)


# ---- QtWebEngine


def _qt() -> Iterator[Setting]:
    unboxed = {"QTWEBENGINE_DISABLE_SANDBOX": "1", "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox"}
    rows = {
        "falkon": ("falkon", "--no-remote", "{url}"),
        "konqueror": ("konqueror", "{url}"),
        "qutebrowser": ("qutebrowser", "--basedir", "{profile}", "--untrusted-args", "{url}"),
        "angelfish": ("angelfish", "{url}"),
        "morph": ("morph-browser", "{url}"),
    }
    for browser, command in rows.items():
        row = Setting(browser, "", "normal", command, environment=unboxed)
        yield from _everywhere(row)
        software = {**unboxed, "LIBGL_ALWAYS_SOFTWARE": "1"}
        yield replace(row, name="software-gl", environment=software)
        no_graphics = {**unboxed, "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox --disable-gpu --disable-3d-apis"}
        yield replace(row, name="no-webgl", environment=no_graphics)
    falkon = Setting("falkon", "", "normal", rows["falkon"], environment=unboxed)
    yield _with(falkon, "private", "--private-browsing", true=frozenset({"incognito"}))
    yield _with(falkon, "no-extensions", "--no-extensions")
    qute = Setting("qutebrowser", "", "normal", (*rows["qutebrowser"][:-2], "{url}"), environment=unboxed)
    for name, option in (("zoom", "zoom.default 125%"), ("dark", "colors.webpage.darkmode.enabled true"),
                         ("pdfjs", "content.pdfjs true"), ("no-canvas", "content.canvas_reading false"),
                         ("languages", "content.headers.accept_language de,en;q=0.5")):  # fmt: skip
        yield _with(qute, name, "--set", *option.split(" "))


# ---- no window


def _headless_chromium() -> Iterator[Setting]:
    base = replace(_CHROMIUM, kind="headless", windowed=False)
    renamed = f"--user-agent={CHROMIUM_ITSELF}"
    port = "--remote-debugging-port=0"
    shell = ("chromium-headless-shell", *base.command[1:])
    downloads = _preferences(plugins={"always_open_pdf_externally": True})
    for prefix, row in (
        ("new", _with(base, "", "--headless", port)),
        ("shell", _with(replace(base, command=shell), "", port)),
    ):
        yield replace(row, name=f"headless-{prefix}", visits=2)
        yield _with(row, f"headless-{prefix}-renamed", renamed)
        for size in ("1920,1080", "1280,720", "1366,768", "1440,900"):
            yield _with(row, f"headless-{prefix}-{size.replace(',', 'x')}", f"--window-size={size}")
            yield _with(row, f"headless-{prefix}-{size.replace(',', 'x')}-renamed", f"--window-size={size}", renamed)
        yield _with(row, f"headless-{prefix}-german", "--lang=de", renamed, environment={"TZ": "Europe/Berlin"})
        yield _with(row, f"headless-{prefix}-gl-renamed", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
                    renamed)  # fmt: skip
        yield replace(_with(row, f"headless-{prefix}-on-display-renamed", renamed), windowed=True)
        yield _with(row, f"headless-{prefix}-pdf-download-renamed", renamed, files=downloads)
        yield _with(row, f"headless-{prefix}-scaled-renamed", renamed, "--force-device-scale-factor=2")
        yield _with(row, f"headless-{prefix}-screen-renamed", renamed, "--screen-info={1920x1080}",
                    "--window-size=1600,900")  # fmt: skip


def _headless_firefox() -> Iterator[Setting]:
    row = _with(replace(_FIREFOX, files=_user_js(), kind="headless", windowed=False), "headless", "--headless")
    yield replace(row, visits=2)
    for size in ("1920x1080", "1280x720", "1440x900", "1536x864", "1366x768", "1600x900", "2560x1440", "1280x1024",
                 "1024x768", "1680x1050"):  # fmt: skip
        width, _, height = size.partition("x")
        environment = {**row.environment, "MOZ_HEADLESS_WIDTH": width, "MOZ_HEADLESS_HEIGHT": height}
        yield replace(row, name=f"headless-{size}", environment=environment)
        yield _with(row, f"headless-window-{size}", "--width", width, "--height", height)
        yield _with(row, f"headless-both-{size}", "--width", width, "--height", height, environment=environment)
    yield replace(row, name="headless-on-display", windowed=True)
    for name in ("languages", "no-webgl", "strict", "protection", "scale-2", "webgl-forced", "no-debug-renderer"):
        yield replace(row, name=f"headless-{name}", files=_user_js(**_FIREFOX_PREFERENCES[name]))
    hd = {**row.environment, "MOZ_HEADLESS_WIDTH": "1920", "MOZ_HEADLESS_HEIGHT": "1080"}
    for name in ("languages", "no-webgl", "strict", "scale-1.5"):
        yield replace(row, name=f"headless-1920x1080-{name}", files=_user_js(**_FIREFOX_PREFERENCES[name]),
                      environment=hd)  # fmt: skip
    yield replace(row, name="headless-german", environment={**hd, "LANG": "de_DE.UTF-8", "TZ": "Europe/Berlin"})
    yield _with(row, "headless-private", "--private-window")
    yield _with(row, "headless-1920x1080-private", "--private-window", environment=hd)
    yield _with(row, "headless-1920x1080-kiosk", "--kiosk", environment=hd)


def _other_headless() -> Iterator[Setting]:
    unboxed = {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
    row = Setting("cog", "headless", "headless", ("cog", "--platform=headless", "{url}"), environment=unboxed)
    yield replace(row, windowed=False)
    offscreen = {
        "QT_QPA_PLATFORM": "offscreen",
        "QT_QUICK_BACKEND": "software",
        "QTWEBENGINE_DISABLE_SANDBOX": "1",
        "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox --disable-gpu",
    }
    for browser, command in (("falkon", ("falkon", "--no-remote", "{url}")), ("konqueror", ("konqueror", "{url}"))):
        yield Setting(browser, "offscreen", "headless", command, environment=offscreen, windowed=False)


# ---- driven


def _driven() -> Iterator[Setting]:
    """Run by `page/../drive.mjs`: driver, browser and mode."""
    for driver, browser, mode in (
        ("puppeteer", "chromium", "window"), ("puppeteer", "chromium", "headless"),
        ("puppeteer", "chromium", "shell"), ("puppeteer", "firefox", "window"), ("puppeteer", "firefox", "headless"),
        ("playwright", "chromium", "window"), ("playwright", "chromium", "headless"),
        ("playwright", "chromium", "shell"), ("selenium", "chromium", "window"),
        ("selenium", "chromium", "headless"), ("selenium", "minibrowser", "window"),
        ("puppeteer-attached", "chromium", "window"), ("puppeteer-flagless", "chromium", "window"),
    ):  # fmt: skip
        kind: Kind = "driven"
        yield Setting(browser, f"{driver}-{mode}", kind, ("node", "{drive}", driver, browser, mode, "{url}"))


# ---- another name


def _spoofed() -> Iterator[Setting]:
    chromium = replace(_CHROMIUM, kind="spoofed")
    firefox = replace(_FIREFOX, kind="spoofed")
    software = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
    for name, user_agent in USER_AGENTS.items():
        if name != "chrome":
            yield _with(chromium, f"as-{name}", f"--user-agent={user_agent}")
            yield _with(chromium, f"as-{name}-german", f"--user-agent={user_agent}", "--lang=de", *software,
                        screen="1366x768x24", environment={"TZ": "Europe/Berlin"})  # fmt: skip
        if name not in ("firefox", "safari"):
            yield replace(firefox, name=f"as-{name}", files=_user_js(general__useragent__override=user_agent))
    unboxed = {
        "QTWEBENGINE_DISABLE_SANDBOX": "1",
        "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox",
        "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1",
    }
    for name in ("android", "windows", "iphone", "firefox"):
        user_agent = USER_AGENTS[name]
        config = f"config.load_autoconfig(False)\nc.content.headers.user_agent = {user_agent!r}\n"
        for browser, command in (
            ("qutebrowser", ("qutebrowser", "--basedir", "{profile}", "--untrusted-args", "{url}")),
            ("minibrowser", (MINIBROWSER, f"--user-agent={user_agent}", "{url}")),
            ("surf", ("surf", "-u", user_agent, "{url}")),
        ):
            files = {"config/config.py": config} if browser == "qutebrowser" else {}
            yield Setting(browser, f"as-{name}", "spoofed", command, environment=unboxed, files=files)
