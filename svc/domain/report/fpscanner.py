"""fpscanner (1.x): sections of signals, and the same questions asked once more in an iframe and in a worker.

What may live here: where the sections stand in a report, and which signal means what. The library writes `ERROR`,
`NA`, `SKIPPED` or `INIT` where a value should stand: those are as if nothing were there. Its own verdicts
(`fastBotDetectionDetails`) are only archived.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from svc.domain.model import Attribute
from svc.domain.report.canonical import (
    preferences_text,
    put_languages,
    put_processors,
    put_screen,
    read_user_agent_data,
    time_zone,
)
from svc.domain.report.leaves import leaves_of
from svc.domain.report.masks import STANDARD_PLUGINS
from svc.domain.report.reading import Reading
from svc.domain.report.values import compact, flag, members, number, scalar_text, shown, size, text, texts, whole

NAME = "fpscanner"

SECTIONS = ("automation", "device", "browser", "graphics", "codecs", "locale", "contexts")
MARKS = ("automation", "graphics", "contexts")
"""Sections that all stand in every report of the library."""
SENTINELS = frozenset({"ERROR", "NA", "SKIPPED", "INIT"})
_SENTINEL_LEAVES = tuple(f"={sentinel}" for sentinel in sorted(SENTINELS))

LONGEST_USER_AGENT = 1_024
STANDARD_PLUGINS_HASH = "-2cdc5c8b"
"""What the library makes of `STANDARD_PLUGINS`: names joined by commas, hashed in 32 bits."""
DRIVERS = {
    "cdp": "cdp",
    "playwright": "playwright",
    "selenium": "selenium",
    "webdriverWritable": "webdriver_writable",
}
"""Signal of the section `automation` -> driver mark."""
PREFERENCES = {"prefersReducedMotion": "reducedMotion", "prefersReducedTransparency": "reducedTransparency"}
POINTERS = ("pointer", "anyPointer", "hover", "anyHover")


def sections_of(signals: dict[str, Any]) -> dict[str, Any] | None:
    """The object that holds the sections, or `None` when this is no report of fpscanner.

    It stands at the top level or under `fpscanner`, either bare or, as in the library's whole answer, under `signals`.
    """
    named = members(signals.get("fpscanner"))
    for sections in (named, members(named.get("signals")), members(signals.get("signals")), signals):
        if all(type(sections.get(mark)) is dict for mark in MARKS):
            return sections
    return None


def read(sections: dict[str, Any]) -> Reading:
    """What the sections say."""
    reading = Reading(collector=NAME, attributes={}, claims={}, rest=[])
    device, browser = _section(sections, "device"), _section(sections, "browser")
    graphics = _section(sections, "graphics")
    _read_device(device, _section(graphics, "webGL"), reading)
    _read_screen(device, reading)
    _read_place(_section(sections, "locale"), reading)
    _read_browser(browser, reading)
    _read_canvas(_section(graphics, "canvas"), reading)
    _read_automation(_section(sections, "automation"), _section(sections, "contexts"), reading)
    _read_extras(sections, reading)
    return reading


def _section(parent: dict[str, Any], name: str) -> dict[str, Any]:
    """The members of a section that were answered."""
    return {
        key: value
        for key, value in members(parent.get(name)).items()
        if type(value) is not str or value not in SENTINELS
    }


def _read_device(device: dict[str, Any], graphics: dict[str, Any], reading: Reading) -> None:
    put_processors(
        reading,
        vendor=graphics.get("vendor"),
        renderer=graphics.get("renderer"),
        cores=device.get("cpuCount"),
        memory_gb=device.get("memory"),
    )
    reading.claims["platform"] = platform = text(device.get("platform"), 64)
    if platform is not None:
        reading.attributes[Attribute.TOUCH] = compact(platform)


def _read_screen(device: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    screen, queries = _section(device, "screenResolution"), _section(device, "mediaQueries")
    claims["screen"] = total = size(screen.get("width"), screen.get("height"))
    put_screen(attributes, total)
    available = size(screen.get("availableWidth"), screen.get("availableHeight"))
    if total is not None and available is not None:
        reading.frame = (int(total[0] - available[0]), int(total[1] - available[1]))
        attributes[Attribute.FRAME] = f"{reading.frame[0]},{reading.frame[1]}"
    claims["inner_window"] = size(screen.get("innerWidth"), screen.get("innerHeight"))

    claims["colour_depth"] = depth = number(screen.get("colorDepth"))
    if depth is not None:
        gamut, bits = scalar_text(queries.get("colorGamut")), scalar_text(queries.get("colorDepth"))
        attributes[Attribute.COLOUR] = compact(f"{shown(depth)}/{gamut or ''}/{bits or ''}")
    if any(query in queries for query in PREFERENCES):
        attributes[Attribute.ACCESSIBILITY] = preferences_text(
            {name: queries.get(query) for query, name in PREFERENCES.items()}
        )
    pointer, hover = text(queries.get("anyPointer"), 16), flag(queries.get("anyHover"))
    if pointer is not None and hover is not None:
        claims["pointer"] = pointer != "none" or hover
    reading.rest += _leaves((f"mediaQueries.{query}", queries.get(query)) for query in POINTERS)


def _read_place(locale: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    spoken, formats = _section(locale, "languages"), _section(locale, "internationalization")
    languages = texts(spoken.get("languages"), 64)
    claims["language"] = language = text(spoken.get("language"), 64)
    if languages is None:
        languages = None if language is None else [language]
    if languages is not None:
        claims["languages"] = tuple(languages)
        put_languages(attributes, languages)
    zone = time_zone(formats.get("timezone"))
    if zone is not None:
        claims["timezone"] = zone
        attributes[Attribute.TIMEZONE] = zone
    reading.rest += _leaves([("localeLanguage", formats.get("localeLanguage"))])


def _read_browser(browser: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    claims["user_agent"] = text(browser.get("userAgent"), LONGEST_USER_AGENT)
    hints = read_user_agent_data(_section(browser, "highEntropyValues"))
    if _section(browser, "features").get("brave") is True and all(brand != "Brave" for brand, _ in hints.brands):
        hints = msgspec.structs.replace(hints, brands=(*hints.brands, ("Brave", "")))
    claims["hints"] = hints
    if hints.model:
        attributes[Attribute.MODEL] = compact(hints.model)

    chrome = flag(_section(browser, "features").get("chrome"))
    if chrome is not None:
        claims["vendor_flavors"] = ("chrome",) if chrome else ()
    plugins = _section(browser, "plugins")
    claims["plugins_patched"] = _patched(plugins)
    claims["plugin_count"] = count = whole(plugins.get("pluginCount"))
    names = text(plugins.get("pluginNamesHash"), 64)
    if names is not None:
        attributes[Attribute.PLUGINS] = compact(f"{count}/{names}")
        if names == STANDARD_PLUGINS_HASH:
            reading.plugin_names = STANDARD_PLUGINS

    claims["eval_length"] = whole(browser.get("etsl"))
    maths, length = scalar_text(browser.get("maths")), scalar_text(browser.get("etsl"))
    if maths is not None or length is not None:
        source = flag(_section(browser, "toSourceError").get("hasToSource"))
        attributes[Attribute.MISCELLANEOUS] = compact(f"{maths}/{length}/{source}")


PLUGIN_CHECKS = {"isValidPluginArray": True, "pluginConsistency1": True, "pluginOverflow": False}
"""What the list of plugins answers where nobody replaced it: it is one, a plugin owns its types, an index too large
finds nothing."""


def _patched(plugins: dict[str, Any]) -> bool | None:
    answers = [(flag(plugins.get(name)), expected) for name, expected in PLUGIN_CHECKS.items()]
    if all(answer is None for answer, _ in answers):
        return None
    return any(answer is not None and answer != expected for answer, expected in answers)


def _read_canvas(canvas: dict[str, Any], reading: Reading) -> None:
    """An image that comes back with pixels that were not drawn is noise, and differs the next time."""
    drawn = text(canvas.get("canvasFingerprint"), 64)
    reading.claims["canvas_noise"] = noisy = flag(canvas.get("hasModifiedCanvas"))
    if drawn is not None and not noisy:
        reading.attributes[Attribute.CANVAS] = drawn


def _read_automation(automation: dict[str, Any], contexts: dict[str, Any], reading: Reading) -> None:
    claims = reading.claims
    answers = {"iframe": _answers(_section(contexts, "iframe")), "worker": _answers(_section(contexts, "webWorker"))}
    claims["contexts"] = {name: found for name, found in answers.items() if found} or None
    driven = flag(automation.get("webdriver"))
    if any(found.get("webdriver") is True for found in answers.values()):
        driven = True
    claims["webdriver"] = driven
    if any(flag(automation.get(name)) is not None for name in DRIVERS):
        marks = [mark for name, mark in DRIVERS.items() if automation.get(name) is True]
        # Where `navigator.webdriver` does not exist, as in Chromium before version 89, writing to it creates it.
        if flag(automation.get("webdriver")) is None and "webdriver_writable" in marks:
            marks.remove("webdriver_writable")
        claims["driver_marks"] = tuple(marks)


def _answers(context: dict[str, Any]) -> dict[str, Any]:
    """What one context answered, under the names of `Claims`."""
    found = {
        "user_agent": text(context.get("userAgent"), LONGEST_USER_AGENT),
        "platform": text(context.get("platform"), 64),
        "language": text(context.get("language"), 64),
        "cores": number(context.get("cpuCount")),
        "memory_gb": number(context.get("memory")),
        "webdriver": flag(context.get("webdriver")),
        "gpu_vendor": text(context.get("vendor"), 256),
        "gpu_renderer": text(context.get("renderer"), 256),
    }
    return {name: value for name, value in found.items() if value is not None}


def _read_extras(sections: dict[str, Any], reading: Reading) -> None:
    """Answers that no attribute takes. The features of the browser are none of them: they say its release."""
    device, graphics = members(sections.get("device")), members(sections.get("graphics"))
    browser = members(sections.get("browser"))
    reading.rest += _leaves(
        [
            ("codecs", sections.get("codecs")),
            ("extensions", members(browser.get("extensions")).get("extensions")),
            ("keyboard", device.get("keyboard")),
            ("media", device.get("multimediaDevices")),
            ("webgpu", graphics.get("webgpu")),
        ]
    )


def _leaves(found: Iterable[tuple[str, Any]]) -> list[str]:
    return [leaf for leaf in leaves_of(found) if not leaf.endswith(_SENTINEL_LEAVES)]
