"""FingerprintJS (3.x to 5.x): components of `{value, duration}`, or `{error, duration}` when one failed.

What may live here: which component means what. A component without a value (JavaScript's `undefined` vanishes in
JSON), with `null` or with one of the library's codes for "not supported" is as if it were not there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from svc.identify.report import canonical, thumbmark, values
from svc.identify.report.table import Adapter, FieldTable, ReportPart, Signals, fields
from svc.identify.report.values import compact, digest, entries_of, members, number, pattern, scalar_text, text, whole

ENTRY_KEYS = frozenset({"value", "error", "duration"})
FEWEST_AT_TOP_LEVEL = 3
"""Entries that the top level must hold to be taken for components; inside `components` one is enough."""

UNSTABLE = "unstable"
"""Stands for an image that came out differently when it was drawn once more."""
CANVAS_SENTINELS = frozenset({"", "skipped", "unsupported", UNSTABLE})
UNSTEADY_MATHS = frozenset({"powPI", "atanhPf"})
"""Their last digit changed between Chromium 127 and 138, and 148 and 156, on the same machine."""
LONGEST_LIMITS = 32_768
"""Characters of one list of graphics parameters; the longest honest one has 12,000."""
NO_GRAPHICS = -1
"""Stands for WebGL where there is none."""
_POINT_SIZES = re.compile(r"ALIASED_POINT_SIZE_RANGE=\d{1,8}=[\d.]{1,12},(\d{1,8})", re.ASCII)


def _find(signals: Signals, taken: set[str]) -> ReportPart | None:
    """Return the values of the components, which stand in `components` or at the top level."""
    components = _components_of(signals)
    # A component of ThumbmarkJS that failed looks like one of FingerprintJS, but no object is both.
    if components is None or components is thumbmark.tree_of(signals):
        return None
    read: Signals = {}
    unknown: list[tuple[str, Any]] = []
    for name, entry in components.items():
        if entry.__class__ is not dict:
            continue
        value = entry.get("value")
        if value is not None and (len(entry) == 1 or is_entry(entry)):
            if name in _READ_OR_IGNORED:
                read[name] = value
            elif len(unknown) < values.MAX_LIST:
                unknown.append((name, value))
    if components is signals:
        taken.update(name for name, value in signals.items() if is_entry(value))
    return ReportPart(read, unknown)


def _components_of(signals: Signals) -> Signals | None:
    inner = members(signals.get("components"))
    for name, value in inner.items():
        if name in KNOWN and is_entry(value):
            return inner
    entries = 0
    for name, value in signals.items():
        if value.__class__ is dict and name in KNOWN and is_entry(value):
            entries += 1
            if entries >= FEWEST_AT_TOP_LEVEL:
                return signals
    return None


def is_entry(value: Any) -> bool:
    """Return whether a JSON value is like one component: an object of members of `ENTRY_KEYS` alone, not empty."""
    return value.__class__ is dict and 0 < len(value) <= len(ENTRY_KEYS) and ENTRY_KEYS.issuperset(value)


def _resolution(value: Any) -> tuple[float, float] | None:
    """List of width and height in CSS pixels."""
    sides = entries_of(value)
    return values.size(*sides) if len(sides) == 2 else None


def _frame(value: Any) -> tuple[int | None, ...] | None:
    """List of four sides in CSS pixels; `null` for one that the browser does not tell; four `null`s are not a frame."""
    sides = [whole(side) for side in entries_of(value)]
    return tuple(sides) if len(sides) == 4 and any(side is not None for side in sides) else None


def _canvas(geometry: Any, drawn: Any) -> str | None:
    """Data URLs or hashes of two images, hashed together; `skipped`, `unsupported` and `unstable` are none."""
    if type(geometry) is not str or type(drawn) is not str or CANVAS_SENTINELS & {geometry, drawn}:
        return None
    return digest(f"{geometry}\n{drawn}")


def _canvas_noise(geometry: Any, drawn: Any) -> bool | None:
    """`unstable` instead of an image that came out differently when it was drawn once more."""
    return True if UNSTABLE in (geometry, drawn) else None


def _point_size_limit(parameters: Any) -> float | None:
    """List of `NAME=number=values`; pixels, the upper end of `ALIASED_POINT_SIZE_RANGE=33901=1,1024`."""
    for entry in entries_of(parameters):
        if type(entry) is str and entry.startswith("ALIASED_POINT_SIZE_RANGE="):
            found = _POINT_SIZES.fullmatch(entry)
            return None if found is None else float(found[1])
    return None


def _apple_font(default: Any, apple: Any) -> bool | None:
    """Widths of a text in CSS pixels."""
    one, other = number(default), number(apple)
    return None if one is None or other is None else one != other


def _plugin_names(plugins: Any) -> tuple[str, ...] | None:
    """List of at most 512 objects with `name`, text of at most 128 characters."""
    if type(plugins) is not list:
        return None
    return tuple([text(members(plugin).get("name"), 128) or "" for plugin in entries_of(plugins)])


def _plugin_count(plugins: Any) -> int | None:
    """List, of which at most 512 entries are counted."""
    return len(entries_of(plugins)) if type(plugins) is list else None


def _plugins(viewer: Any, plugins: Any) -> str | None:
    """Scalar, whether there is a PDF viewer; list of at most 512 objects with `name`."""
    names = _plugin_names(plugins)
    return None if names is None else compact(f"{scalar_text(viewer) or ''}/{','.join(names)}")


def _engine(*given: Any) -> str | None:
    """Canonical fields, texts of at most 64 characters, a number and booleans: constants, hashed together.

    Of the storage, `openDatabase` is not a part: Chromium dropped WebSQL, which says the release and not the device.
    """
    maths, vendor, flavors, system, cpu, pay, raw_vendor, *storage = given
    if maths is None and raw_vendor is None and storage[0] is None:
        return None
    state = whole(pay)
    written = values.structure_text(
        {
            "math": {name: value for name, value in members(maths).items() if name not in UNSTEADY_MATHS},
            "storage": [value is True for value in storage],
            "vendor": vendor,
            "flavors": flavors and sorted(flavors),
            "cpu": text(cpu, 64),
            "os": system,
            "pay": state if state is not None and state >= 0 else None,
        }
    )
    return None if written is None else digest(written)


def _graphics_limits(*lists: Any) -> str | None:
    """Lists of at most 512 texts, 32,768 characters together: what the graphics stack can do, hashed together."""
    texts_of: list[str] = []
    for entries in map(entries_of, lists):
        try:
            joined = "\n".join(entries)
        except TypeError:  # an entry is not text; the check of each would cost more than all the rest
            joined = "\n".join(values.texts(entries) or ())
        texts_of.append(joined if len(joined) <= LONGEST_LIMITS and values.is_unicode(joined) else "")
    return _limits_digest(*texts_of) if texts_of[0] else None


@lru_cache(maxsize=512)
def _limits_digest(parameters: str, precisions: str, extensions: str, extension_parameters: str) -> str:
    """Hash what the hardware allows: maxima and ranges, precisions, texture compression.

    What shows only the release is left out: bare constants (`RGB8=32849`), masks whose default was redefined
    (`STENCIL_*`), and the extensions that browsers add over the years.
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


TABLE = FieldTable(
    fields(values.number, cores="hardwareConcurrency", memory_gb="deviceMemory", color_depth="colorDepth"),
    fields(values.flag, cookies="cookiesEnabled"),
    fields(values.whole, touch_points="touchSupport.maxTouchPoints"),
    fields(values.short_text, platform="platform", vendor="vendor", os_cpu="osCpu"),
    fields(canonical.text_tuple, vendor_flavors="vendorFlavors"),
    fields(canonical.client_hints, hints=f"userAgentData.{canonical.HINTS}"),
    fields(canonical.listed_languages, languages="languages"),
    fields(canonical.time_zone, timezone="timezone"),
    fields(canonical.font_set, fonts="fonts"),
    fields(canonical.preferences, ACCESSIBILITY=canonical.PREFERENCES),
    fields(canonical.pixel_ratio, PIXEL_RATIO="devicePixelRatio"),
    fields(canonical.touch, TOUCH="touchSupport.maxTouchPoints + platform + architecture"),
    fields(pattern("{}/{}/{}", *[scalar_text] * 3, needs=1, missing=""), COLOUR="{colorDepth,colorGamut,hdr}"),
    fields(_resolution, screen="screenResolution"),
    fields(_frame, frame="screenFrame"),
    fields(values.text_of(256), gpu_vendor="webGlBasics.vendorUnmasked", gpu_renderer="webGlBasics.rendererUnmasked"),
    fields(values.when(NO_GRAPHICS, result=False), webgl="webGlBasics"),
    fields(_graphics_limits, WEBGL="webGlExtensions.{parameters,shaderPrecisions,extensions,extensionParameters}"),
    fields(_point_size_limit, point_size_limit="webGlExtensions.parameters"),
    fields(canonical.widths(7), FONT_PREFERENCES="fontPreferences.{default,apple,serif,sans,mono,min,system}"),
    fields(_apple_font, apple_font="fontPreferences.{default,apple}"),
    fields(_canvas, CANVAS="canvas.{geometry,text}"),
    fields(_canvas_noise, canvas_noise="canvas.{geometry,text}"),
    # Chromium 148 to 156 moved the ninth digit on one machine; six digits set devices apart just as well.
    fields(values.above_zero(".5f"), AUDIO="audio"),
    fields(_plugin_names, plugin_names="plugins[].name"),
    fields(_plugin_count, plugin_count="plugins"),
    fields(_plugins, PLUGINS="pdfViewerEnabled + plugins[].name"),
    fields(values.figures, math="math.*"),
    fields(
        _engine,
        MISCELLANEOUS="@math + @vendor + @vendor_flavors + @os_cpu + {cpuClass,applePay,vendor} + "
        "{cookiesEnabled,sessionStorage,localStorage,indexedDB}",
    ),
)
_LEAVES = {"domBlockers", "dateTimeLocale", "privateClickMeasurement", "audioBaseLatency"}
"""Components that become leaves."""
KNOWN = TABLE.names | _LEAVES | {"accessibility", "openDatabase"}
_READ_OR_IGNORED = KNOWN - _LEAVES

ADAPTER = Adapter("fingerprintjs", "the `value` of each component", _find, TABLE, canonical.complete)
