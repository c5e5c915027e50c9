"""Converters and derived fields that several adapters share: one browser, one text, however often it is upgraded.

What may live here: JSON values or canonical fields in, a canonical field out. A form leaves out what a release, a
rotated screen or a spelling changes without the device having changed, and nothing else.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from svc.identify.data import read_tables
from svc.identify.model import Attribute, ClientHints
from svc.identify.report.table import Reading
from svc.identify.report.values import (
    Converter,
    compact,
    digest,
    entries_of,
    flag,
    members,
    number,
    number_text,
    pattern,
    read_brands,
    scalar_text,
    short_text,
    shown,
    text,
    text_of,
    texts,
    whole,
)

LONGEST_RENDERER = 256

_NOISE = re.compile(
    r"""
      \bdirect3d\S*\s+vs_\S+\s+ps_[\d_]+            # the shader models of Direct3D
    | \b(?:direct3d|d3d)[\w.\-]*                    # the API, with or without a driver version
    | \bopengl(?:\ es)?\b(?:[\ \-]?[\d.]+)?(?:\ engine)?
    | \b(?:vulkan|metal)\ [\d.]+
    | \bangle\ metal\ renderer:
    | \bunspecified\ version | \bversion\ [\d.]+
    | /pcie | /sse2
    | ,?\ or\ similar                               # Firefox rounds the name to that of a family
    | \(core\ profile\) | \bcompatibility\ profile\b
    | \bmesa\b(?:\ [\d.]+\S*)? | \bllvm\ [\d.]+ | \bdrm\ [\d.]+
    | \b\w+\.dll\b
    | \((?:r|tm|c)\) | (?<=radeon)t\b | [\u00ae\u2122]
    """,
    re.VERBOSE,
)
_MAKERS = re.compile(r"\b(?:corporation|inc\.?|technologies|open[- ]source|driver)(?=\s|$|[,)])")
_WRAPPED = re.compile(r"angle \((.*)\)\s*(?:, or similar)?", re.DOTALL)
_PUNCTUATION = re.compile(r"[(),;:/\s]+")


@lru_cache(maxsize=4096)
def canonical_gpu(vendor: str, renderer: str) -> str:
    """The processor's name in lower case: no API, no driver, no ANGLE. "" when nothing is left.

    The device number stays (`0x00002504`): it belongs to the silicon, and Chromium on Windows reports it throughout.
    """
    name = renderer[:LONGEST_RENDERER].lower()
    wrapped = _WRAPPED.fullmatch(name)
    if wrapped is not None:
        name = _of_wrapped(wrapped.group(1))
    name = _plain(name)
    return name or _plain(vendor[:LONGEST_RENDERER].lower())


def _of_wrapped(inner: str) -> str:
    """Return the name from ANGLE's parentheses, `maker, name, driver`; older releases wrote the name alone.

    The split is at commas outside parentheses, since names contain commas, too.
    """
    parts: list[str] = []
    depth, start = 0, 0
    for position, character in enumerate(inner):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth <= 0:
            parts.append(inner[start:position])
            start = position + 1
    parts.append(inner[start:])
    return parts[1] if len(parts) >= 2 else parts[0]


def _plain(name: str) -> str:
    name = _NOISE.sub(" ", name)
    name = _MAKERS.sub(" ", name)
    return " ".join(_PUNCTUATION.sub(" ", name).split())


MAX_LANGUAGES = 32
LARGEST_COMPARED_MEMORY_GB = 8
SMALLEST_COMPARED_MEMORY_GB = 2
"""Chromium reported memory as .25 to 8 GB, and from release 147 on as 2 to 32 on desktops: a 16 GB machine "grew" from
8 to 16 overnight. Compared is what both report."""

HINTS = "{brands,fullVersionList,mobile,platform,platformVersion,architecture,bitness,model,formFactors}"
"""Members of `navigator.userAgentData` and of its high-entropy values, in the order of `client_hints`."""
PREFERENCE_NAMES = ("contrast", "forcedColors", "invertedColors", "monochrome", "reducedMotion", "reducedTransparency")
PREFERENCES = "{" + ",".join(PREFERENCE_NAMES) + "}"
"""Members in the order of `preferences`."""

_RENAMED_ZONES = read_tables("zones", dict[str, str])

_OFF_ALWAYS: tuple[Any, ...] = (None, False, 0)
_NO_HINTS = ClientHints()


def client_hints(*values: Any) -> ClientHints | None:
    """The values of `HINTS`: lists of brands, a boolean, texts of at most 64 characters, the model of at most 128, and
    a list.

    Empty text means not said. Source: W3C UA Client Hints, 4.1.
    """
    brands, full_versions, mobile, platform, platform_version, architecture, bitness, model, form_factors = values
    pairs, invented = read_brands(brands)
    hints = ClientHints(
        brands=(full_versions is not None and read_brands(full_versions)[0]) or pairs,
        grease=invented,
        emptied=brands == [] and platform == "",
        overridden=architecture == "" and bitness == "",
        form_factors=type(form_factors) is list,
        mobile=flag(mobile),
        platform=text(platform, 64),
        platform_version=text(platform_version, 64),
        architecture=text(architecture, 64),
        model=text(model, 128),
    )
    return None if hints == _NO_HINTS else hints


def language_list(languages: Any, language: Any = None) -> tuple[str, ...] | None:
    """List of at most 512 language tags of at most 64 characters; where there is no list, the one language."""
    tags = texts(languages, 64)
    if tags is None:
        one = text(language, 64)
        return None if one is None else (one,)
    return tuple(tags)


def listed_languages(lists: Any) -> tuple[str, ...] | None:
    """List of at most 32 lists of language tags: `[[language], [languages...]]`. Chromium fills only the first."""
    tags: dict[str, None] = {}
    for inner in entries_of(lists)[:MAX_LANGUAGES]:
        for tag in texts(inner, 64) or ():
            tags[tag] = None
    return tuple(tags) or None


def time_zone(value: Any) -> str | None:
    """IANA time zone of at most 64 characters, by its present name."""
    zone = text(value, 64)
    return None if zone is None else _RENAMED_ZONES.get(zone, zone)


def font_set(fonts: Any) -> tuple[str, ...] | None:
    """List of at most 512 font names of at most 128 characters; kept sorted, each once."""
    found = texts(fonts)
    return None if found is None else tuple(sorted(set(found)))


def plugin_names(plugins: Any) -> tuple[str, ...] | None:
    """List of at most 512 plugins, as names of at most 128 characters or as objects with `name`."""
    if type(plugins) is not list:
        return None
    return tuple(
        [text(one if type(one) is str else members(one).get("name"), 128) or "" for one in entries_of(plugins)]
    )


def text_tuple(value: Any) -> tuple[str, ...] | None:
    """List of at most 512 texts of at most 64 characters."""
    found = texts(value, 64)
    return None if found is None else tuple(found)


def pixel_ratio(value: Any) -> str | None:
    """Physical pixels of one CSS pixel, above 0; compared to three decimals."""
    ratio = number(value)
    return shown(round(ratio, 3)) if ratio is not None and ratio > 0 else None


def preferences(*values: Any) -> str:
    """Texts, numbers or booleans: accessibility preferences; only those that are on are compared."""
    return preferences_text(dict(zip(PREFERENCE_NAMES, values, strict=True)))


def preferences_text(said: dict[str, Any]) -> str:
    """Accessibility preferences that are on. One that a browser does not know yet is off, so that learning it in a
    later release changes nothing.
    """
    on: list[str] = []
    for name, value in said.items():
        if value not in _OFF_ALWAYS:
            found = scalar_text(value)
            if found is not None and found not in ("none", "no-preference", "standard"):
                on.append(f"{name}={found}")
    return compact(",".join(sorted(on))) or "default"


touch = pattern("{0}/{2}/{1}", whole, short_text, whole, needs=2)
"""Touch points, platform, architecture."""


def widths(count: int) -> Converter:
    """A converter of so many widths of one text, in CSS pixels, each in another font."""
    return pattern("/".join(["{}"] * count), *[number_text] * count, needs=count, missing="")


_UNPATCHED = (True, True, False)
"""What a genuine list of plugins shows: it is one, a plugin owns its types, an index too large finds nothing."""
_CONTEXT_FIELDS: dict[str, Converter] = {
    "user_agent": text_of(1_024),
    "platform": short_text,
    "language": short_text,
    "cores": number,
    "memory_gb": number,
    "webdriver": flag,
    "gpu_vendor": text_of(256),
    "gpu_renderer": text_of(256),
    "timezone": time_zone,
}
"""What is asked in an iframe and in a worker, by its name in `Claims` -> converter. Not all ask the last."""


def contexts(*given: Any) -> dict[str, dict[str, Any]] | None:
    """Texts of at most 1,024, 64 and 256 characters, numbers and a boolean, of an iframe and of a worker.

    They answer to `_CONTEXT_FIELDS`, in that order.
    """
    middle = len(given) // 2
    found = {"iframe": _answers(given[:middle]), "worker": _answers(given[middle:])}
    return {name: said for name, said in found.items() if said} or None


def _answers(given: tuple[Any, ...]) -> dict[str, Any]:
    pairs = zip(_CONTEXT_FIELDS.items(), given, strict=False)
    found = {name: convert(value) for (name, convert), value in pairs if value is not None}
    return {name: value for name, value in found.items() if value is not None}


def webdriver_anywhere(*answers: Any) -> bool | None:
    """Booleans of page, iframe and worker, of which one is enough."""
    return True if any(answer is True for answer in answers) else flag(answers[0])


DRIVER_MARKS = ("cdp", "playwright", "selenium", "webdriver_writable")


def driver_marks(webdriver: Any, *marks: Any) -> tuple[str, ...] | None:
    """Booleans.

    They are `navigator.webdriver`, and whether each of `DRIVER_MARKS` was found.
    """
    if all(flag(mark) is None for mark in marks):
        return None
    found = [name for name, mark in zip(DRIVER_MARKS, marks, strict=True) if mark is True]
    # Where `navigator.webdriver` does not exist, as in Chromium before version 89, writing to it creates it.
    if flag(webdriver) is None and "webdriver_writable" in found:
        found.remove("webdriver_writable")
    return tuple(found)


def plugins_patched(*answers: Any) -> bool | None:
    """Booleans."""
    said = [(flag(answer), expected) for answer, expected in zip(answers, _UNPATCHED, strict=True)]
    known = [answer != expected for answer, expected in said if answer is not None]
    return any(known) if known else None


def pointer(kind: Any, hover: Any) -> bool | None:
    """Text of at most 16 characters, `none` where there is no pointer; and a boolean."""
    named, hovers = text(kind, 16), flag(hover)
    return None if named is None or hovers is None else named != "none" or hovers


FOLLOWING = {
    "MODEL": "hints",
    "GPU": "gpu_vendor, gpu_renderer",
    "HARDWARE": "cores, memory_gb",
    "SCREEN": "screen",
    "FRAME": "frame, or screen and available",
    "TIMEZONE": "timezone",
    "LANGUAGES": "languages",
    "FIRST_LANGUAGE": "languages",
    "FONTS": "fonts",
    "PLUGINS": "plugin_names",
}
"""Attribute that `complete` adds -> the fields that it follows from."""


def complete(reading: Reading) -> None:
    """Add to `reading`, in place, the attributes of `FOLLOWING` whose fields it has, as canonical text. `PLUGINS` and
    `HARDWARE` that the adapter's table gave stay; `frame`, `plugin_count` and a leaf for the exact memory may be added.
    """
    claims, attributes, parts = reading.claims, reading.attributes, reading.parts
    _add_hardware(reading)
    _add_screen(reading)
    if "timezone" in claims:
        attributes[Attribute.TIMEZONE] = claims["timezone"]
    tags = _language_tags(claims.get("languages", ()))
    if tags:
        attributes[Attribute.LANGUAGES] = compact(",".join(tags))
        attributes[Attribute.FIRST_LANGUAGE] = compact(tags[0])
    fonts = claims.get("fonts")
    if fonts is not None:
        # An empty set says something too: none of the fonts that the collector looked for.
        attributes[Attribute.FONTS] = digest("\n".join(fonts)) if fonts else "none"
    names = parts.get("plugin_names")
    if names is not None and Attribute.PLUGINS not in attributes:
        attributes[Attribute.PLUGINS] = compact(",".join(names)) or "none"
        claims["plugin_count"] = len(names)


def _add_hardware(reading: Reading) -> None:
    claims, attributes = reading.claims, reading.attributes
    hints = claims.get("hints")
    if hints is not None and hints.model:
        attributes[Attribute.MODEL] = compact(hints.model)
    name = canonical_gpu(claims.get("gpu_vendor", ""), claims.get("gpu_renderer", ""))
    if name:
        attributes[Attribute.GPU] = compact(name)
    cores, memory_gb = claims.get("cores"), claims.get("memory_gb")
    if Attribute.HARDWARE in attributes or (cores is None and memory_gb is None):
        return
    memory = ""
    if memory_gb is not None:
        compared = min(max(memory_gb, SMALLEST_COMPARED_MEMORY_GB), LARGEST_COMPARED_MEMORY_GB)
        memory = shown(compared)
        if compared != memory_gb:
            reading.rest.append(f"deviceMemory={shown(memory_gb)}")
    attributes[Attribute.HARDWARE] = f"{'' if cores is None else shown(cores)}/{memory}"


def _add_screen(reading: Reading) -> None:
    """Add screen and frame. The longer side comes first: a turned phone keeps its screen."""
    attributes, parts = reading.attributes, reading.parts
    screen, available = reading.claims.get("screen"), parts.get("available")
    if screen is not None and min(screen) > 0:
        attributes[Attribute.SCREEN] = f"{shown(max(screen))}x{shown(min(screen))}"
    if screen is not None and available is not None:
        parts["frame"] = (int(screen[0] - available[0]), int(screen[1] - available[1]))
    if "frame" in parts:
        attributes[Attribute.FRAME] = ",".join("" if side is None else str(side) for side in parts["frame"])


def _language_tags(languages: tuple[str, ...]) -> list[str]:
    """Return lower-case tags in the visitor's order, without encoding or variant (`de_DE.UTF-8@euro` = `de-de`). The
    variant `posix` is no language: Chromium up to 109 gives `en-US@posix` if no locale is set (`LANG=C`).
    """
    tags: dict[str, None] = {}
    for language in languages[:MAX_LANGUAGES]:
        tag = "" if language.endswith("@posix") else language
        if "@" in tag or "." in tag:
            tag = tag.partition("@")[0].partition(".")[0]
        tag = tag.strip().replace("_", "-").lower()
        if tag:
            tags[tag] = None
    return list(tags)
