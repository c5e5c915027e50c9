"""FingerprintJS (3.x to 5.x): components of `{value, duration}`, or `{error, duration}` when one failed.

What may live here: which component means what. A component without a value (JavaScript's `undefined` vanishes in
JSON), with `null` or with one of the library's codes for "not supported" is as if it were not there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from svc.domain.model import Attribute
from svc.domain.report.canonical import (
    font_set,
    listed_languages,
    preferences_text,
    put_fonts,
    put_languages,
    put_processors,
    put_screen,
    read_user_agent_data,
    time_zone,
)
from svc.domain.report.leaves import leaves_of
from svc.domain.report.reading import Reading
from svc.domain.report.values import (
    MAX_LIST,
    compact,
    digest,
    entries_of,
    figures,
    is_unicode,
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

NAME = "fingerprintjs"

# fmt: off
KNOWN = frozenset(
    {
        "accessibility", "applePay", "architecture", "audio", "audioBaseLatency", "canvas", "colorDepth",
        "colorGamut", "contrast", "cookiesEnabled", "cpuClass", "dateTimeLocale", "deviceMemory",
        "devicePixelRatio", "domBlockers", "fontPreferences", "fonts", "forcedColors", "hardwareConcurrency", "hdr",
        "indexedDB", "invertedColors", "languages", "localStorage", "math", "monochrome", "openDatabase", "osCpu",
        "pdfViewerEnabled", "platform", "plugins", "privateClickMeasurement", "reducedMotion",
        "reducedTransparency", "screenFrame", "screenResolution", "sessionStorage", "timezone", "touchSupport",
        "userAgentData", "vendor", "vendorFlavors", "webGlBasics", "webGlExtensions",
    }
)
# fmt: on
ENTRY_KEYS = frozenset({"value", "error", "duration"})
FEWEST_AT_TOP_LEVEL = 3
"""Entries that the top level must hold to be taken for components; inside `components` one is enough."""

UNSTABLE = "unstable"
"""Stands for an image that came out differently when it was drawn once more."""
CANVAS_SENTINELS = frozenset({"", "skipped", "unsupported", UNSTABLE})
PREFERENCES = ("contrast", "forcedColors", "invertedColors", "monochrome", "reducedMotion", "reducedTransparency")
STORAGE = ("cookiesEnabled", "sessionStorage", "localStorage", "indexedDB")
"""`openDatabase` is no part of it: Chromium dropped WebSQL, which says the release and not the device."""
UNSTEADY_MATHS = frozenset({"powPI", "atanhPf"})
"""Their last digit changed between Chromium 127 and 138, and 148 and 156, on the same machine."""
LONGEST_LIMITS = 32_768
"""Characters of one list of graphics parameters; the longest honest one has 12,000."""
NO_GRAPHICS = -1
"""Stands for WebGL where there is none."""
FONT_PREFERENCES = ("default", "apple", "serif", "sans", "mono", "min", "system")
_READ_ELSEWHERE = KNOWN - {"domBlockers", "dateTimeLocale", "privateClickMeasurement", "audioBaseLatency"}


def components_of(signals: dict[str, Any]) -> dict[str, Any] | None:
    """The object that holds the components, or `None` when this is no report of FingerprintJS."""
    inner = members(signals.get("components"))
    for name, value in inner.items():
        if name in KNOWN and is_entry(value):
            return inner
    entries = 0
    for name, value in signals.items():
        if type(value) is dict and name in KNOWN and is_entry(value):
            entries += 1
            if entries >= FEWEST_AT_TOP_LEVEL:
                return signals
    return None


def entry_names(components: dict[str, Any]) -> set[str]:
    """The names under which components stand, among whatever else is there."""
    return {name for name, value in components.items() if is_entry(value)}


def is_entry(value: Any) -> bool:
    """Whether a value has the form of one component."""
    entry = members(value)
    return 0 < len(entry) <= len(ENTRY_KEYS) and ENTRY_KEYS.issuperset(entry)


def read(components: dict[str, Any]) -> Reading:
    """What the components say, by themselves: they hold no user agent, which comes from the request's header."""
    values: dict[str, Any] = {}
    unknown: list[tuple[str, Any]] = []
    for name, entry in components.items():
        if is_entry(entry):
            value = entry.get("value")
            if value is not None:
                if name in _READ_ELSEWHERE:
                    values[name] = value
                elif len(unknown) < MAX_LIST:
                    unknown.append((name, value))
    reading = Reading(collector=NAME, attributes={}, claims={}, rest=[])
    _read_device(values, reading)
    _read_place(values, reading)
    _read_rendering(values, reading)
    _read_engine(values, reading)
    if unknown:
        reading.rest += leaves_of(unknown)
    return reading


def _read_device(values: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    hints = read_user_agent_data(members(values.get("userAgentData")))
    claims["hints"] = hints
    if hints.model:
        attributes[Attribute.MODEL] = compact(hints.model)

    graphics = members(values.get("webGlBasics"))
    if values.get("webGlBasics") == NO_GRAPHICS:
        claims["webgl"] = False
    put_processors(
        reading,
        vendor=graphics.get("vendorUnmasked"),
        renderer=graphics.get("rendererUnmasked"),
        cores=values.get("hardwareConcurrency"),
        memory_gb=values.get("deviceMemory"),
    )

    touch = members(values.get("touchSupport"))
    claims["touch_points"] = points = whole(touch.get("maxTouchPoints"))
    claims["platform"] = platform = text(values.get("platform"), 64)
    architecture = whole(values.get("architecture"))
    if points is not None or platform is not None:
        attributes[Attribute.TOUCH] = compact(f"{points}/{architecture}/{platform}")

    resolution = entries_of(values.get("screenResolution"))
    if len(resolution) == 2:
        claims["screen"] = screen = size(resolution[0], resolution[1])
        put_screen(attributes, screen)
    ratio = number(values.get("devicePixelRatio"))
    if ratio is not None and ratio > 0:
        attributes[Attribute.PIXEL_RATIO] = shown(round(ratio, 3))
    _read_frame(values.get("screenFrame"), reading)
    claims["colour_depth"] = number(values.get("colorDepth"))
    colours = [scalar_text(values.get(name)) for name in ("colorDepth", "colorGamut", "hdr")]
    if colours[0] is not None:
        attributes[Attribute.COLOUR] = compact("/".join(colour or "" for colour in colours))


def _read_frame(value: Any, reading: Reading) -> None:
    """Four sides; a side that the browser does not tell is `null`, and four of those are no frame."""
    sides = [whole(side) for side in entries_of(value)]
    if len(sides) == 4 and any(side is not None for side in sides):
        reading.frame = tuple([side or 0 for side in sides])
        reading.attributes[Attribute.FRAME] = ",".join("" if side is None else str(side) for side in sides)


def _read_place(values: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    languages = listed_languages(values.get("languages"))
    claims["languages"] = languages
    put_languages(attributes, languages)
    zone = time_zone(values.get("timezone"))
    if zone is not None:
        claims["timezone"] = zone
        attributes[Attribute.TIMEZONE] = zone
    if any(name in values for name in PREFERENCES):
        attributes[Attribute.ACCESSIBILITY] = preferences_text({name: values.get(name) for name in PREFERENCES})


def _read_rendering(values: dict[str, Any], reading: Reading) -> None:
    attributes = reading.attributes
    fonts = font_set(texts(values.get("fonts")))
    reading.claims["fonts"] = fonts
    put_fonts(attributes, fonts)

    canvas = members(values.get("canvas"))
    geometry, drawn = canvas.get("geometry"), canvas.get("text")
    if type(geometry) is str and type(drawn) is str and not CANVAS_SENTINELS & {geometry, drawn}:
        attributes[Attribute.CANVAS] = digest(f"{geometry}\n{drawn}")
    elif UNSTABLE in (geometry, drawn):
        reading.claims["canvas_noise"] = True

    audio = number(values.get("audio"))
    if audio is not None and audio > 0:
        # Chromium 148 to 156 moved the ninth digit on one machine; six decimals set devices apart just as well.
        attributes[Attribute.AUDIO] = f"{audio:.5f}"

    graphics = members(values.get("webGlExtensions"))
    limits = _graphics_limits(graphics)
    if limits is not None:
        attributes[Attribute.WEBGL] = limits
    reading.claims["point_size_limit"] = _point_size_limit(graphics.get("parameters"))

    preferences = members(values.get("fontPreferences"))
    widths = [number(preferences.get(name)) for name in FONT_PREFERENCES]
    if any(width is not None for width in widths):
        attributes[Attribute.FONT_PREFERENCES] = compact(
            "/".join("" if width is None else shown(width) for width in widths)
        )
    default, apple = widths[:2]
    if default is not None and apple is not None:
        reading.claims["apple_font"] = apple != default


_POINT_SIZES = re.compile(r"ALIASED_POINT_SIZE_RANGE=\d{1,8}=[\d.]{1,12},(\d{1,8})", re.ASCII)


def _point_size_limit(parameters: Any) -> float | None:
    """The upper end of `ALIASED_POINT_SIZE_RANGE=33901=1,1024`."""
    for entry in entries_of(parameters):
        if type(entry) is str and entry.startswith("ALIASED_POINT_SIZE_RANGE="):
            found = _POINT_SIZES.fullmatch(entry)
            return None if found is None else float(found[1])
    return None


def _read_engine(values: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    claims["vendor"] = vendor = text(values.get("vendor"), 64)
    claims["os_cpu"] = text(values.get("osCpu"), 64)
    flavors = texts(values.get("vendorFlavors"), 64)
    claims["vendor_flavors"] = None if flavors is None else tuple(flavors)

    plugins = values.get("plugins")
    if type(plugins) is list:
        names = [text(members(plugin).get("name"), 128) or "" for plugin in entries_of(plugins)]
        claims["plugin_count"] = len(names)
        reading.plugin_names = tuple(names)
        viewer = scalar_text(values.get("pdfViewerEnabled")) or ""
        attributes[Attribute.PLUGINS] = compact(f"{viewer}/{','.join(names)}")

    maths = figures(values.get("math"))
    if maths:
        claims["math"] = maths
    constants: dict[str, Any] = {
        "math": {name: value for name, value in maths.items() if name not in UNSTEADY_MATHS},
        "storage": [values.get(name) is True for name in STORAGE],
        "vendor": vendor,
        "flavors": flavors and sorted(flavors),
        "cpu": text(values.get("cpuClass"), 64),
        "os": text(values.get("osCpu"), 64),
        "pay": pay if (pay := whole(values.get("applePay"))) is not None and pay >= 0 else None,
    }
    if maths or "vendor" in values or "cookiesEnabled" in values:
        written = structure_text(constants)
        if written is not None:
            attributes[Attribute.MISCELLANEOUS] = digest(written)


def _graphics_limits(graphics: dict[str, Any]) -> str | None:
    """The limits of the graphics stack, from the lists of `webGlExtensions`; `None` when there are none."""
    texts_of: list[str] = []
    for name in ("parameters", "shaderPrecisions", "extensions", "extensionParameters"):
        entries = entries_of(graphics.get(name))
        try:
            joined = "\n".join(entries)
        except TypeError:  # an entry is no text; the check of each would cost more than all the rest
            joined = "\n".join(texts(entries) or ())
        texts_of.append(joined if len(joined) <= LONGEST_LIMITS and is_unicode(joined) else "")
    if not texts_of[0]:
        return None
    return _limits_digest(*texts_of)


@lru_cache(maxsize=512)
def _limits_digest(parameters: str, precisions: str, extensions: str, extension_parameters: str) -> str:
    """What the hardware allows: maxima and ranges, precisions, texture compression.

    Left out is what says only the release: bare constants (`RGB8=32849`), masks whose default was redefined
    (`STENCIL_*`), and the extensions that browsers learn as the years pass.
    """
    kept = [
        parameter
        for parameter in parameters.split("\n")
        if parameter.count("=") == 2 and not parameter.startswith("STENCIL_")
    ]
    kept += precisions.split("\n")
    kept += [name for name in extensions.split("\n") if "compressed_texture" in name]
    kept += [name for name in extension_parameters.split("\n") if name.startswith("MAX_TEXTURE_MAX_ANISOTROPY")]
    return digest("\n".join(sorted(kept)))
