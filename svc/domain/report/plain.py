"""The flat report that small collectors send: `userAgent`, `platform`, `languages`, `screen`, `webgl`, ...

What may live here: the names that such collectors use and what they mean. Whatever has a name that is not listed here
becomes leaves for near comparison.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from svc.domain.model import Attribute
from svc.domain.report.canonical import (
    font_set,
    preferences_text,
    put_fonts,
    put_languages,
    put_processors,
    put_screen,
    read_user_agent_data,
    time_zone,
)
from svc.domain.report.fingerprintjs import CANVAS_SENTINELS
from svc.domain.report.leaves import NOT_OF_THE_DEVICE, leaves_of
from svc.domain.report.reading import Reading
from svc.domain.report.values import (
    compact,
    digest,
    entries_of,
    figures,
    flag,
    members,
    number,
    scalar_text,
    shown,
    size,
    structure_text,
    text,
    texts,
    whole,
)

NAME = "plain"

FEWEST_VALUES = 2
"""Usable values that a report must hold, unless it has a user agent, to be taken for one of this shape."""
LONGEST_USER_AGENT = 1_024

PREFERENCES = ("contrast", "forcedColors", "invertedColors", "monochrome", "reducedMotion", "reducedTransparency")
# fmt: off
READ_HERE = frozenset(
    {
        "userAgent", "uaData", "userAgentData", "platform", "vendor", "vendorFlavors", "productSub", "oscpu",
        "languages", "language", "timezone", "screen", "devicePixelRatio", "colorDepth", "colorGamut", "hdr",
        "hardwareConcurrency", "deviceMemory", "maxTouchPoints", "webgl", "fonts", "fontPreferences", "plugins",
        "canvas", "audio", "math", "webdriver", "outerWidth", "outerHeight", "innerWidth", "innerHeight",
        *PREFERENCES,
    }
)
# fmt: on
_NOT_LEAVES = READ_HERE | NOT_OF_THE_DEVICE


def read(signals: dict[str, Any], taken: AbstractSet[str] = frozenset()) -> Reading | None:
    """What a flat report says, or `None` when it is none. `taken`: names of what other collectors put into it."""
    if taken:
        signals = {name: value for name, value in signals.items() if name not in taken}
    reading = Reading(collector=NAME, attributes={}, claims={}, rest=[])
    claims = reading.claims
    claims["user_agent"] = user_agent = text(signals.get("userAgent"), LONGEST_USER_AGENT)
    _read_device(signals, reading)
    _read_screen(signals, reading)
    _read_place(signals, reading)
    _read_rendering(signals, reading)
    _read_engine(signals, reading)
    if user_agent is None and len(reading.attributes) < FEWEST_VALUES:
        return None
    reading.rest += leaves_of(_unknown(signals))
    return reading


def _unknown(signals: dict[str, Any]) -> list[tuple[str, Any]]:
    found = [(name, value) for name, value in signals.items() if name not in _NOT_LEAVES]
    hints = members(signals.get("uaData"))
    if hints:
        found = [(f"uaData.{name}", hints.get(name)) for name in ("architecture", "bitness")] + found
    return found


def _read_device(signals: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    hints = read_user_agent_data(members(signals.get("uaData")) or members(signals.get("userAgentData")))
    claims["hints"] = hints
    if hints.model:
        attributes[Attribute.MODEL] = compact(hints.model)

    graphics = members(signals.get("webgl"))
    put_processors(
        reading,
        vendor=graphics.get("vendor"),
        renderer=graphics.get("renderer"),
        cores=signals.get("hardwareConcurrency"),
        memory_gb=signals.get("deviceMemory"),
    )

    claims["platform"] = platform = text(signals.get("platform"), 64)
    claims["touch_points"] = points = whole(signals.get("maxTouchPoints"))
    if platform is not None or points is not None:
        attributes[Attribute.TOUCH] = compact(f"{points}/{platform}")


def _read_screen(signals: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    screen = members(signals.get("screen"))
    claims["screen"] = total = size(screen.get("width"), screen.get("height"))
    put_screen(attributes, total)
    available = size(screen.get("availWidth"), screen.get("availHeight"))
    if total is not None and available is not None:
        reading.frame = (int(total[0] - available[0]), int(total[1] - available[1]))
        attributes[Attribute.FRAME] = f"{reading.frame[0]},{reading.frame[1]}"

    ratio = number(screen.get("devicePixelRatio")) or number(signals.get("devicePixelRatio"))
    if ratio is not None and ratio > 0:
        attributes[Attribute.PIXEL_RATIO] = shown(round(ratio, 3))
    depth = number(screen.get("colorDepth")) or number(signals.get("colorDepth"))
    if depth is not None:
        gamut, hdr = scalar_text(signals.get("colorGamut")), scalar_text(signals.get("hdr"))
        attributes[Attribute.COLOUR] = compact(f"{shown(depth)}/{gamut or ''}/{hdr or ''}")
    claims["outer_window"] = size(signals.get("outerWidth"), signals.get("outerHeight"))
    claims["inner_window"] = size(signals.get("innerWidth"), signals.get("innerHeight"))


def _read_place(signals: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    languages = texts(signals.get("languages"), 64)
    claims["language"] = language = text(signals.get("language"), 64)
    if languages is None:
        languages = None if language is None else [language]
    if languages is not None:
        claims["languages"] = tuple(languages)
        put_languages(attributes, languages)
    zone = time_zone(signals.get("timezone"))
    if zone is not None:
        claims["timezone"] = zone
        attributes[Attribute.TIMEZONE] = zone
    if any(signals.get(name) is not None for name in PREFERENCES):
        attributes[Attribute.ACCESSIBILITY] = preferences_text({name: signals.get(name) for name in PREFERENCES})


def _read_rendering(signals: dict[str, Any], reading: Reading) -> None:
    attributes = reading.attributes
    fonts = font_set(texts(signals.get("fonts")))
    reading.claims["fonts"] = fonts
    put_fonts(attributes, fonts)

    canvas = signals.get("canvas")
    if type(canvas) is str and canvas not in CANVAS_SENTINELS:
        attributes[Attribute.CANVAS] = compact(canvas) if canvas.isascii() else digest(canvas)

    audio = signals.get("audio")
    heard = number(audio)
    if heard is not None:
        if heard > 0:
            attributes[Attribute.AUDIO] = shown(heard)
    else:
        said = text(audio, 4_096)
        # A failed measurement is a small negative number here too, written as text.
        if said is not None and not said.startswith("-") and said not in CANVAS_SENTINELS:
            attributes[Attribute.AUDIO] = compact(said)

    graphics = members(signals.get("webgl"))
    if len(graphics) > 2:
        parameters = graphics.copy()
        for name in ("vendor", "renderer"):
            parameters.pop(name, None)
        written = structure_text(parameters)
        if written is not None:
            attributes[Attribute.WEBGL] = digest(written)
    preferences = members(signals.get("fontPreferences"))
    if preferences:
        written = structure_text(preferences)
        if written is not None:
            attributes[Attribute.FONT_PREFERENCES] = compact(written)


def _read_engine(signals: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    claims["webdriver"] = flag(signals.get("webdriver"))
    claims["vendor"] = vendor = text(signals.get("vendor"), 64)
    claims["product_sub"] = product = text(signals.get("productSub"), 32)
    claims["os_cpu"] = text(signals.get("oscpu"), 64)
    flavors = texts(signals.get("vendorFlavors"), 64)
    if flavors is None:
        flavors = texts(members(signals.get("extra")).get("vendorFlavors"), 64)
    claims["vendor_flavors"] = None if flavors is None else tuple(flavors)
    if vendor is not None or product is not None:
        system = claims["os_cpu"]
        attributes[Attribute.MISCELLANEOUS] = compact(f"{vendor or ''}/{product or ''}/{system or ''}")

    plugins = signals.get("plugins")
    if type(plugins) is list:
        names = [
            text(plugin if type(plugin) is str else members(plugin).get("name"), 128) or ""
            for plugin in entries_of(plugins)
        ]
        claims["plugin_count"] = len(names)
        reading.plugin_names = tuple(names)
        attributes[Attribute.PLUGINS] = compact(",".join(names)) or "none"

    maths = figures(signals.get("math"))
    if maths:
        claims["math"] = maths
