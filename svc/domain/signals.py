"""The catalogue of signals as data: what can fire, on which platforms, and what it weighs by default.

What may live here: names, groups, sentences and numbers, and questions that the catalogue alone can answer. The names
are a public contract and permanent (signals.md 2). What makes a signal fire lives in `detection` and in the
identification's transaction; what a fired signal adds up to lives in `scoring`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from svc.domain.model import PLATFORMS, Platform

Mode = Literal["method", "confidence"]
"""How the VPN and the residential-proxy families are weighed: by how it was noticed, or by how sure it is."""

MAX_WEIGHT = 100
"""The largest weight a configuration may give to one signal (decisions 6.1)."""


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the catalogue."""

    name: str
    group: str
    description: str
    """One line for people: what it means."""
    fires_on: str = ""
    """For people who want to know exactly: the evidence that fires it. Empty = the description says it all."""
    weights: dict[Platform, int]
    """Default weight per platform; a platform that is absent does not know the signal."""
    mode: Mode | None = None
    """Set for the VPN and residential-proxy families only: the mode in which the signal fires."""
    since: str = "1"
    """Version of the catalogue that introduced it. Profiles stored earlier count it as 0."""


def _everywhere(weight: int) -> dict[Platform, int]:
    return dict.fromkeys(PLATFORMS, weight)


def _native(weight: int) -> dict[Platform, int]:
    return {"android": weight, "ios": weight}


def _signal(
    group: str,
    name: str,
    weights: dict[Platform, int],
    description: str,
    mode: Mode | None = None,
    *,
    fires_on: str = "",
) -> Signal:
    return Signal(name=name, group=group, description=description, fires_on=fires_on, weights=weights, mode=mode)


_SIGNALS: tuple[Signal, ...] = (
    _signal(
        "bot",
        "automation",
        _everywhere(40),
        "The browser or app is driven by a program: a driver's flag, a driver's traces, or contradictions only a "
        "driver leaves.",
        fires_on=(
            "A driver's flag in the page, an iframe or a worker; marks of Selenium, Playwright or Puppeteer; a "
            "rule of BotD; a debugger where the developer tools are known to be closed or anything else is wrong;"
            " a page that fills a screen smaller than its window; what a stealth tool leaves (hints that no "
            "release sends, the limits of a software renderer behind a card's name) together with a contradiction"
            " elsewhere or a missing window; WebKit that calls itself Safari without Apple's fonts."
        ),
    ),
    _signal(
        "bot",
        "headless",
        {"web": 30},
        "The browser runs without a window: it says so, or its surroundings show it.",
        fires_on=(
            "The user agent or a brand says so; or two traits of a missing window, never one alone. Chromium: no outer "
            "window, the screen that it invents without a display, a window far larger than its screen, a page larger "
            "than its window, or neither plugins nor a `chrome` object; software rendering, a missing locale or a "
            "user agent that was overridden at the start count as the second. Firefox: a window that fills its screen "
            "or has the size of a first window on a screen without a desktop, or less than the screen that it "
            "invents, together with no WebGL; a window larger than that screen, together with no graphics hardware. "
            "WebKit outside Apple's systems: its invented screen, and no plugins. Any of them: nothing to point with, "
            "by the media queries, as one of the two. BotD: inconsistent notification permissions."
        ),
    ),
    _signal(
        "bot",
        "bot_user_agent",
        _everywhere(20),
        "The user agent names a program, such as a library, a monitor or a scraper.",
        fires_on="The user agent is a program's. The HTTP library of an app counts as its own on Android and iOS.",
    ),
    _signal(
        "bot",
        "spoofed_crawler",
        _everywhere(40),
        "The user agent names a crawler, but its operator does not publish this address.",
        fires_on=(
            "Its operator publishes addresses, and this is none of them; not where the address could not be looked up."
        ),
    ),
    _signal(
        "bot",
        "ai_agent",
        _everywhere(10),
        "The user agent names an AI crawler or assistant.",
        fires_on="By the user agent; an address that its operator publishes makes it certain.",
    ),
    _signal(
        "bot",
        "search_crawler",
        _everywhere(0),
        "The user agent names a search crawler, and its address fits.",
        fires_on=(
            "By the user agent, from an address that its operator publishes, or where none publishes any. Weighs "
            "nothing: it tells what kind of visitor this is."
        ),
    ),
    _signal(
        "tampering",
        "anti_detect_browser",
        {"web": 30},
        "The report contradicts itself in three places or more, as browsers that invent a device do.",
        fires_on=(
            "Contradictions in three places at least, of: platform, fonts, touch, graphics, graphics limits, "
            "headers, languages, client hints, versions, engine, built-in functions, iframe, worker."
        ),
    ),
    _signal(
        "tampering",
        "browser_tampering",
        {"web": 15},
        "Functions built into the browser were replaced, or values show noise added by an extension.",
        fires_on=(
            "`Function.prototype.bind` or the list of plugins is not the browser's own; noise in canvas images, "
            "unless the browser adds it itself; an iframe or a worker sees other hardware, graphics or another "
            "version than the page; client hints of another version than the user agent, or such as no release "
            "sends; a desktop Chromium that was started with another user agent; the limits of a software renderer "
            "behind a card's name. Firefox's cores are compared as it shows them in private windows: 4 or 8."
        ),
    ),
    _signal(
        "tampering",
        "os_mismatch",
        _everywhere(12),
        "User agent, platform, client hints or fonts speak of different operating systems.",
        fires_on=(
            "Systems that differ, by user agent, `navigator.platform`, `navigator.oscpu`, client hints, page and "
            "header, page and worker; Windows or macOS without any of their fonts; iOS without a touch screen; Android "
            "with client hints of a desktop, or with a desktop's processor and no touch screen; a native report from "
            "another system than its request says."
        ),
    ),
    _signal(
        "tampering",
        "engine_mismatch",
        {"web": 12},
        "The browser engine is another than the user agent says.",
        fires_on=(
            "`vendor`, `productSub`, the length of `eval`, error stacks, interfaces, mathematical constants, "
            "client hints or `oscpu` of another engine than the user agent's, or another engine in an iframe or a"
            " worker."
        ),
    ),
    _signal(
        "tampering",
        "gpu_mismatch",
        {"web": 8},
        "The graphics renderer cannot exist on that operating system.",
        fires_on=(
            "Direct3D outside Windows, Metal or Apple's chips outside Apple's systems, a phone's graphics in a "
            "desktop and the like; Chromium with the renderer that stealth tools put in by default. WebKit calls its "
            "graphics Apple's on every system."
        ),
    ),
    _signal(
        "tampering",
        "developer_tools",
        {"web": 6, "android": 6},
        "The developer tools were open.",
        fires_on="The collector says so; or a debugger is attached and nothing else is wrong.",
    ),
    _signal(
        "tampering",
        "app_tampering",
        _native(25),
        "The app's signature or bundle is not the one its maker ships.",
        fires_on="The SDK says so.",
    ),
    _signal(
        "tor", "tor", _everywhere(25), "The address is an exit of the Tor network.", fires_on="The address is listed."
    ),
    _signal(
        "vpn",
        "vpn_public",
        _everywhere(8),
        "The address belongs to a known VPN provider.",
        "method",
        fires_on="The address is in a provider's range; silent beside `tor` or `vpn_relay`.",
    ),
    _signal(
        "vpn",
        "vpn_timezone_mismatch",
        _everywhere(5),
        "The device's time zone is not one of the address's country.",
        "method",
        fires_on=(
            "No place in the address's country keeps the clock of the device's time zone. Zones without a place, "
            "such as UTC, say nothing."
        ),
    ),
    _signal(
        "vpn",
        "vpn_os_mismatch",
        _everywhere(5),
        "The connection was made by another operating system than the user agent says.",
        "method",
        fires_on="A trusted proxy that fingerprints connections says so, in the header that the setting "
        "`connection_os_header` names; without one it never fires.",
    ),
    _signal(
        "vpn",
        "vpn_auxiliary_mobile",
        _native(10),
        "The device reports that a tunnel interface is up.",
        "method",
        fires_on="The SDK says so.",
    ),
    _signal(
        "vpn",
        "vpn_relay",
        _everywhere(3),
        "The address belongs to a privacy relay.",
        "method",
        fires_on="The address is a relay's exit.",
    ),
    _signal(
        "vpn",
        "vpn_low",
        _everywhere(4),
        "A VPN is possible: one indication.",
        "confidence",
        fires_on="A foreign clock alone.",
    ),
    _signal(
        "vpn",
        "vpn_medium",
        _everywhere(9),
        "A VPN is likely: one proof.",
        "confidence",
        fires_on="A listed address alone.",
    ),
    _signal(
        "vpn",
        "vpn_high",
        _everywhere(15),
        "A VPN is certain: two independent proofs.",
        "confidence",
        fires_on="A listed address and a foreign clock.",
    ),
    _signal("proxy", "public_proxy", _everywhere(20), "The address is listed as an open proxy."),
    _signal(
        "proxy",
        "hosting",
        _everywhere(15),
        "The address belongs to a data centre.",
        fires_on="The address is in a hosting range, and Tor, a VPN, a relay or a crawler at home does not explain it.",
    ),
    _signal(
        "residential_proxy",
        "residential_proxy_listed",
        _everywhere(15),
        "The address is listed as a residential proxy.",
        "method",
    ),
    _signal(
        "residential_proxy",
        "residential_proxy_behavior",
        _everywhere(10),
        "Many visitors of many countries appear behind one household address.",
        "method",
    ),
    _signal(
        "residential_proxy",
        "residential_proxy_low",
        _everywhere(5),
        "A residential proxy is possible: one indication.",
        "confidence",
    ),
    _signal(
        "residential_proxy",
        "residential_proxy_medium",
        _everywhere(10),
        "A residential proxy is likely: one proof.",
        "confidence",
        fires_on="A listed address, or visitors of many countries behind one address.",
    ),
    _signal(
        "residential_proxy",
        "residential_proxy_high",
        _everywhere(18),
        "A residential proxy is certain: two independent proofs.",
        "confidence",
    ),
    _signal(
        "ip_reputation", "ip_attack_source", _everywhere(20), "A list of the operator's names the address for attacks."
    ),
    _signal("ip_reputation", "ip_email_spam", _everywhere(15), "A list of the operator's names the address for spam."),
    _signal(
        "environment",
        "virtual_machine",
        {"web": 15},
        "The graphics renderer is that of a virtual machine.",
        fires_on="A hypervisor's graphics make it certain; software rendering alone is a hint.",
    ),
    _signal(
        "environment", "emulator", {"android": 25}, "The app runs in an Android emulator.", fires_on="The SDK says so."
    ),
    _signal("environment", "simulator", {"ios": 25}, "The app runs in the iOS simulator.", fires_on="The SDK says so."),
    _signal(
        "environment",
        "cloned_app",
        {"android": 20},
        "The app runs as a clone beside the original.",
        fires_on="The SDK says so.",
    ),
    _signal("integrity", "rooted", {"android": 15}, "The device is rooted.", fires_on="The SDK says so."),
    _signal("integrity", "jailbroken", {"ios": 15}, "The device is jailbroken.", fires_on="The SDK says so."),
    _signal(
        "integrity",
        "frida",
        _native(30),
        "An instrumentation toolkit is attached to the app.",
        fires_on="The SDK says so.",
    ),
    _signal(
        "integrity",
        "mitm_attack",
        _native(25),
        "The app's connection is intercepted.",
        fires_on="The SDK says so. Companies do this to their own phones, too.",
    ),
    _signal(
        "integrity",
        "attestation_failed",
        _native(30),
        "The device's attestation is missing, stale, foreign or does not verify.",
        fires_on="A report that claims an attestation: its challenge is missing, unknown, expired, used or another "
        "key's, or its chain of certificates does not verify up to a trusted root or shows another device state or app "
        "than is accepted. A report that claims none is silent.",
    ),
    _signal(
        "integrity",
        "factory_reset",
        _native(5),
        "The device was reset to its factory state in the last 7 days.",
        fires_on="By the moment of the reset that the SDK tells.",
    ),
    _signal(
        "location",
        "location_spoofing",
        _native(20),
        "The device reports a made-up location.",
        fires_on="The SDK says so.",
    ),
    _signal("privacy", "incognito", {"web": 4}, "The browser is in a private mode.", fires_on="The collector says so."),
    _signal(
        "privacy",
        "privacy_settings",
        {"web": 6},
        "The browser randomises values against fingerprinting.",
        fires_on=(
            "Brave, Firefox that resists fingerprinting, Safari in a private window, or canvas noise that a "
            "browser adds by itself. What is masked is not compared."
        ),
    ),
    _signal("velocity", "high_activity", _everywhere(8), "The visitor was identified unusually often within an hour."),
    _signal("velocity", "velocity_ip", _everywhere(8), "The visitor came from many addresses within an hour."),
    _signal("velocity", "velocity_country", _everywhere(15), "The visitor came from several countries within a day."),
    _signal(
        "velocity",
        "token_conflict",
        _everywhere(15),
        "The stored token of one device was presented by a device that contradicts it.",
    ),
    _signal("replay", "replayed", _everywhere(40), "The report, or the nonce it carries, was sent before."),
    _signal("rarity", "rare_device", _everywhere(3), "Hardly any other visitor has a device like this one."),
)

CATALOGUE: dict[str, Signal] = {signal.name: signal for signal in _SIGNALS}
"""Every signal by name, in the order of signals.md 2."""

CATALOGUE_ORDER: dict[str, int] = {name: position for position, name in enumerate(CATALOGUE)}


def signal_names(platform: Platform) -> tuple[str, ...]:
    """Names of the signals that exist on `platform`, in catalogue order."""
    return tuple(name for name, signal in CATALOGUE.items() if platform in signal.weights)


def default_weights(platform: Platform) -> dict[str, int]:
    """Default weight of each signal that exists on `platform`, in catalogue order; a new dictionary each time."""
    return {name: signal.weights[platform] for name, signal in CATALOGUE.items() if platform in signal.weights}
