"""User agents that browsers are configured to send instead of their own."""

from __future__ import annotations

_BLINK = "AppleWebKit/537.36 (KHTML, like Gecko)"
_APPLE = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
_CHROME = f"{_BLINK} Chrome/156.0.0.0"
_WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64"
_MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"

CHROMIUM_ITSELF = f"Mozilla/5.0 (X11; Linux x86_64) {_CHROME} Safari/537.36"
"""For a Chromium without a window, which would name itself otherwise."""

USER_AGENTS = {
    "android": f"Mozilla/5.0 (Linux; Android 10; K) {_CHROME} Mobile Safari/537.36",
    "android-old": f"Mozilla/5.0 (Linux; Android 13; SM-S918B) {_BLINK} Chrome/120.0.6099.144 Mobile Safari/537.36",
    "android-tablet": f"Mozilla/5.0 (Linux; Android 12; SM-X906C) {_CHROME} Safari/537.36",
    "samsung": (
        f"Mozilla/5.0 (Linux; Android 14; SM-G991B) {_BLINK} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36"
    ),
    "iphone": (
        f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) {_APPLE} Version/18.5 Mobile/15E148 Safari/604.1"
    ),
    "ipad": f"Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) {_APPLE} Version/17.5 Mobile/15E148 Safari/604.1",
    "windows": f"{_WINDOWS}) {_CHROME} Safari/537.36",
    "windows-edge": f"{_WINDOWS}) {_CHROME} Safari/537.36 Edg/156.0.0.0",
    "mac": f"{_MAC} {_CHROME} Safari/537.36",
    "safari": f"{_MAC} {_APPLE} Version/18.5 Safari/605.1.15",
    "firefox": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "firefox-windows": f"{_WINDOWS}; rv:140.0) Gecko/20100101 Firefox/140.0",
    "chrome": f"Mozilla/5.0 (X11; Linux x86_64) {_BLINK} Chrome/140.0.0.0 Safari/537.36",
    "firefox-android": "Mozilla/5.0 (Android 14; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0",
}
"""Name of a setting -> user agent."""
