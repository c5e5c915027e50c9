"""ThumbmarkJS (0.x and 1.x): a tree of components without entries around them, `{"audio": {"sampleHash": ...}, ...}`.

What may live here: where the tree stands in a report, and which component means what. A component that timed out
(`{"timeout": "true"}`), failed (`{"error": ...}`) or is `null` is as if it were not there.
"""

from __future__ import annotations

import re
from typing import Any

from svc.domain.model import Attribute, ClientHints
from svc.domain.report.canonical import (
    font_set,
    preferences_text,
    put_fonts,
    put_languages,
    put_processors,
    put_screen,
    time_zone,
)
from svc.domain.report.leaves import NOT_OF_THE_DEVICE, leaves_of
from svc.domain.report.reading import Reading
from svc.domain.report.values import (
    MAX_LIST,
    compact,
    digest,
    flag,
    members,
    number,
    scalar_text,
    shown,
    structure_text,
    text,
    texts,
    whole,
)

NAME = "thumbmark"

MARKS = {
    "audio": ("sampleHash",),
    "canvas": ("commonPixelsHash", "commonImageDataHash"),
    "hardware": ("videocard", "jsHeapSizeLimit"),
    "locales": ("languages", "timezone"),
    "screen": ("is_touchscreen", "mediaMatches"),
    "system": ("useragent",),
    "webgl": ("commonPixelsHash", "commonImageHash"),
}
"""Component -> members that no other collector has in a component of that name."""
# fmt: off
KNOWN = frozenset(
    {
        "audio", "canvas", "fonts", "hardware", "intl", "locales", "math", "mathml", "mediaDevices", "permissions",
        "plugins", "screen", "speech", "system", "webgl", "webrtc",
    }
)
# fmt: on
FEWEST_ELSEWHERE = 2
"""Components that must bear their marks where the tree is not announced by the name `thumbmark`."""

LONGEST_USER_AGENT = 1_024
MASKED_RENDERER = "WebKit WebGL"
"""What Chromium and WebKit call every renderer for whoever does not ask for the unmasked name, as the library does."""
PREFERENCES = {
    "prefers-contrast": "contrast",
    "forced-colors": "forcedColors",
    "inverted-colors": "invertedColors",
    "prefers-reduced-motion": "reducedMotion",
    "prefers-reduced-transparency": "reducedTransparency",
}
"""Media query -> accessibility preference."""
POINTERS = frozenset({"pointer", "any-pointer", "hover", "any-hover"})
STOCK_FONTS = ("Arial", "Courier New", "Georgia", "Helvetica", "Times New Roman", "Verdana")
"""Their widths show how text is rendered; those of other fonts change with what is installed."""
SMALLEST_CONSTANT = 1e-9
"""Integrals that should be nothing are left with rounding noise, which differs between releases."""

_NOT_LEAVES = KNOWN | NOT_OF_THE_DEVICE
_DIGITS = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)
_RESOLUTION = re.compile(r"(\d{1,6})x(\d{1,6})", re.ASCII)


def tree_of(signals: dict[str, Any]) -> dict[str, Any] | None:
    """The object that holds the components, or `None` when this is no report of ThumbmarkJS.

    It stands under `thumbmark`, either bare or as the library's whole answer, under `components` as in that answer, or
    at the top level.
    """
    named = members(signals.get("thumbmark"))
    for tree, fewest in (
        (named, 1),
        (members(named.get("components")), 1),
        (members(signals.get("components")), FEWEST_ELSEWHERE),
        (signals, FEWEST_ELSEWHERE),
    ):
        if tree and _marked(tree) >= fewest:
            return tree
    return None


def _marked(tree: dict[str, Any]) -> int:
    found = 0
    for name, marks in MARKS.items():
        component = _component(tree, name)
        if component and any(mark in component for mark in marks):
            found += 1
    return found


def _component(tree: dict[str, Any], name: str) -> dict[str, Any]:
    """A component's members; none when it failed."""
    component = members(tree.get(name))
    return {} if _failed(component) else component


def _failed(component: dict[str, Any]) -> bool:
    return "timeout" in component or "error" in component


def read(tree: dict[str, Any], *, alone: bool) -> Reading:
    """What the components say. `alone`: whatever else stands in the tree is a component too, of the page's making."""
    reading = Reading(collector=NAME, attributes={}, claims={}, rest=[])
    _read_device(tree, reading)
    _read_screen(_component(tree, "screen"), reading)
    _read_place(_component(tree, "locales"), reading)
    _read_rendering(tree, reading)
    _read_engine(tree, reading)
    _read_extras(tree, reading)
    if alone:
        reading.rest += leaves_of(
            (name, value) for name, value in tree.items() if name not in _NOT_LEAVES and not _failed(members(value))
        )
    return reading


def _read_device(tree: dict[str, Any], reading: Reading) -> None:
    hardware, system, screen = (_component(tree, name) for name in ("hardware", "system", "screen"))
    card = members(hardware.get("videocard"))
    vendor, renderer = card.get("vendorUnmasked"), card.get("rendererUnmasked")
    if not vendor and not renderer and card.get("renderer") != MASKED_RENDERER:
        vendor, renderer = card.get("vendor"), card.get("renderer")
    put_processors(
        reading,
        vendor=vendor,
        renderer=renderer,
        cores=system.get("hardwareConcurrency"),
        memory_gb=_memory(hardware.get("deviceMemory")),
    )
    claims = reading.claims
    claims["platform"] = platform = text(system.get("platform"), 64)
    claims["touch_points"] = points = whole(screen.get("maxTouchPoints"))
    if platform is not None or points is not None:
        architecture = whole(hardware.get("architecture"))
        reading.attributes[Attribute.TOUCH] = compact(f"{points}/{architecture}/{platform}")


def _memory(value: Any) -> float | None:
    """A number written as text; 0 where the browser does not tell."""
    said = text(value, 16)
    memory = number(value) if said is None else float(said) if _DIGITS.fullmatch(said) else None
    return memory if memory is not None and memory > 0 else None


def _read_screen(screen: dict[str, Any], reading: Reading) -> None:
    attributes = reading.attributes
    resolution = _RESOLUTION.fullmatch(text(screen.get("resolution"), 16) or "")
    if resolution is not None:
        reading.claims["screen"] = total = (float(resolution[1]), float(resolution[2]))
        put_screen(attributes, total)
    depth = number(screen.get("colorDepth"))
    if depth is not None:
        attributes[Attribute.COLOUR] = shown(depth)
    matches = texts(screen.get("mediaMatches"), 64)
    if matches:
        chosen: dict[str, Any] = {}
        for match in matches:
            query, _, value = match.partition(": ")
            if query in PREFERENCES:
                chosen[PREFERENCES[query]] = value
            elif query in POINTERS:
                reading.rest.append(f"mediaMatches={match}")
        attributes[Attribute.ACCESSIBILITY] = preferences_text(chosen)


def _read_place(locales: dict[str, Any], reading: Reading) -> None:
    """Release 1 tells only the first language, as text."""
    languages = texts(locales.get("languages"), 64)
    if languages is None:
        language = text(locales.get("languages"), 64)
        languages = None if language is None else [language]
    if languages is not None:
        reading.claims["languages"] = tuple(languages)
        put_languages(reading.attributes, languages)
    zone = time_zone(locales.get("timezone"))
    if zone is not None:
        reading.claims["timezone"] = zone
        reading.attributes[Attribute.TIMEZONE] = zone


def _read_rendering(tree: dict[str, Any], reading: Reading) -> None:
    attributes = reading.attributes
    widths = members(tree.get("fonts"))
    if type(tree.get("fonts")) is dict and not _failed(widths):
        measured = [name for name in list(widths)[:MAX_LIST] if number(widths[name]) is not None]
        fonts = font_set(texts(measured))
        reading.claims["fonts"] = fonts
        put_fonts(attributes, fonts)
        stock = [number(widths.get(name)) for name in STOCK_FONTS]
        if any(width is not None for width in stock):
            attributes[Attribute.FONT_PREFERENCES] = compact(
                "/".join("" if width is None else shown(width) for width in stock)
            )

    canvas, graphics = _component(tree, "canvas"), _component(tree, "webgl")
    for attribute, drawn in (
        (Attribute.CANVAS, canvas.get("commonPixelsHash") or canvas.get("commonImageDataHash")),
        (Attribute.WEBGL, graphics.get("commonPixelsHash") or graphics.get("commonImageHash")),
    ):
        said = scalar_text(drawn)
        if said is not None:
            attributes[attribute] = compact(said)

    heard = number(_component(tree, "audio").get("sampleHash"))
    # 0 is what the library answers for Samsung, whose noise it does not measure.
    if heard is not None and heard > 0:
        attributes[Attribute.AUDIO] = f"{heard:.4f}"


def _read_engine(tree: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    system = _component(tree, "system")
    claims["user_agent"] = text(system.get("useragent"), LONGEST_USER_AGENT)
    claims["product_sub"] = product = text(system.get("productSub"), 32)
    if members(system.get("browser")).get("name") == "Brave":
        claims["hints"] = ClientHints(brands=(("Brave", ""),))

    listed = _component(tree, "plugins").get("plugins")
    if type(listed) is list:
        names = [plugin.partition("|")[0] for plugin in texts(listed, 1_024) or ()]
        claims["plugin_count"] = len(names)
        reading.plugin_names = tuple(names)
        attributes[Attribute.PLUGINS] = compact(",".join(names)) or "none"

    maths = {
        name: found if abs(found) >= SMALLEST_CONSTANT else 0
        for name, value in list(_component(tree, "math").items())[:64]
        if (found := number(value)) is not None and len(name) <= 32
    }
    cookies = flag(system.get("cookieEnabled"))
    if maths or product is not None:
        written = structure_text(
            {
                "math": {name: f"{value:.10g}" for name, value in maths.items()},
                "product": product,
                "cookies": cookies,
            }
        )
        if written is not None:
            attributes[Attribute.MISCELLANEOUS] = digest(written)


def _read_extras(tree: dict[str, Any], reading: Reading) -> None:
    """Answers that no attribute takes, without what changes from one minute to the next in them.

    `intl` is not among them: it shows the language data of the release.
    """
    found: list[tuple[str, Any]] = []
    states = _component(tree, "permissions")
    # What was not decided is left out, so that a permission that a release invents changes nothing.
    found.append(("permissions", {name: state for name, state in states.items() if state != "prompt"}))
    codecs = members(_component(tree, "webrtc").get("details"))
    found += [(f"webrtc.{name}", members(codecs.get(name)).get("hash")) for name in ("audio", "video")]
    found.append(("mathml", _component(tree, "mathml").get("hash")))
    voices = members(_component(tree, "speech").get("details"))
    # None yet: they arrive some time after the page.
    if number(voices.get("voiceCount")):
        found.append(("speech", voices.get("voicesHash")))
    found.append(("mediaDevices", _component(tree, "mediaDevices")))
    reading.rest += leaves_of(found)
