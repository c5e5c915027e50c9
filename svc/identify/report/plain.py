"""The flat report that small collectors send: `userAgent`, `platform`, `languages`, `screen`, `webgl`, ...

What may live here: the names that such collectors use and what they mean. Whatever has a name that is not listed here
becomes leaves for near comparison.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from svc.identify.report import canonical, values
from svc.identify.report.fingerprintjs import CANVAS_SENTINELS
from svc.identify.report.table import (
    NOT_OF_THE_DEVICE,
    UNKNOWN,
    Adapter,
    FieldTable,
    Reading,
    ReportPart,
    Signals,
    fields,
)
from svc.identify.report.values import compact, digest, members, number, pattern, scalar_text, shown, structure_text

FEWEST_VALUES = 2
"""Usable values that a report must hold, unless it has a user agent, to be taken for one of this shape."""


def _find(signals: Signals, taken: AbstractSet[str]) -> ReportPart | None:
    """Return what no other collector put there, if any of it has a name that is read here."""
    own = {name: value for name, value in signals.items() if name not in taken} if taken else signals
    if READ_HERE.isdisjoint(own):
        return None
    return ReportPart(own, ((name, value) for name, value in own.items() if name not in _NOT_LEAVES))


def _complete(reading: Reading) -> bool:
    canonical.complete(reading)
    return "user_agent" in reading.claims or len(reading.attributes) >= FEWEST_VALUES


def _either_number(first: Any, second: Any) -> float | None:
    return number(first) or number(second)


def _pixel_ratio(of_screen: Any, of_window: Any) -> str | None:
    """Physical pixels of one CSS pixel, above 0; kept to three decimals."""
    return canonical.pixel_ratio(_either_number(of_screen, of_window))


def _colors(of_screen: Any, depth: Any, *named: Any) -> str | None:
    """Bits of a pixel; scalars, the gamut and whether there is high dynamic range."""
    bits = _either_number(of_screen, depth)
    return None if bits is None else compact("/".join([shown(bits), *(scalar_text(value) or "" for value in named)]))


def _canvas(value: Any) -> str | None:
    """Hash or data URL of an image; hashed when longer than 64 characters. Not `skipped` and its like."""
    if type(value) is not str or value in CANVAS_SENTINELS:
        return None
    return compact(value) if value.isascii() else digest(value)


def _audio(value: Any) -> str | None:
    """Number above 0, or text of at most 4,096 characters. A failed measurement is a small negative number."""
    heard = number(value)
    if heard is not None:
        return shown(heard) if heard > 0 else None
    said = values.text(value, 4_096)
    return None if said is None or said.startswith("-") or said in CANVAS_SENTINELS else compact(said)


def _graphics(value: Any) -> str | None:
    """Object: parameters of WebGL beside `vendor` and `renderer`, hashed together."""
    graphics = members(value)
    if len(graphics) <= 2:
        return None
    written = structure_text({name: value for name, value in graphics.items() if name not in ("vendor", "renderer")})
    return None if written is None else digest(written)


def _font_preferences(value: Any) -> str | None:
    """Object of any members, compared as a whole."""
    written = structure_text(value) if members(value) else None
    return None if written is None else compact(written)


def _processor(hints: Any) -> list[tuple[str, Any]] | None:
    """Texts: kind and width of the processor."""
    said = members(hints)
    return [(f"uaData.{name}", said.get(name)) for name in ("architecture", "bitness")] if said else None


TABLE = FieldTable(
    fields(values.text_of(1_024), user_agent="userAgent"),
    fields(values.short_text, platform="platform", vendor="vendor", os_cpu="oscpu", language="language"),
    fields(values.text_of(32), product_sub="productSub"),
    fields(values.text_of(256), gpu_vendor="webgl.vendor", gpu_renderer="webgl.renderer"),
    fields(values.first_of(canonical.text_tuple), vendor_flavors="vendorFlavors + extra.vendorFlavors"),
    fields(values.number, cores="hardwareConcurrency", memory_gb="deviceMemory"),
    fields(values.whole, touch_points="maxTouchPoints"),
    fields(values.flag, webdriver="webdriver"),
    fields(values.figures, math="math.*"),
    fields(values.size, screen="screen.{width,height}", available="screen.{availWidth,availHeight}"),
    fields(values.size, outer_window="{outerWidth,outerHeight}", inner_window="{innerWidth,innerHeight}"),
    fields(canonical.client_hints, hints=f"uaData|userAgentData.{canonical.HINTS}"),
    fields(_processor, **{UNKNOWN: "uaData.(architecture,bitness)"}),
    fields(canonical.language_list, languages="{languages,language}"),
    fields(canonical.time_zone, timezone="timezone"),
    fields(canonical.font_set, fonts="fonts"),
    fields(canonical.plugin_names, plugin_names="plugins[].name"),
    fields(canonical.preferences, ACCESSIBILITY=canonical.PREFERENCES),
    fields(pattern("{}/{}", values.whole, values.short_text, needs=2), TOUCH="{maxTouchPoints,platform}"),
    fields(_pixel_ratio, PIXEL_RATIO="screen.devicePixelRatio + devicePixelRatio"),
    fields(_colors, COLOUR="screen.colorDepth + {colorDepth,colorGamut,hdr}"),
    fields(_font_preferences, FONT_PREFERENCES="fontPreferences.*"),
    fields(_canvas, CANVAS="canvas"),
    fields(_audio, AUDIO="audio"),
    fields(_graphics, WEBGL="webgl.*"),
    fields(
        pattern("{}/{}/{}", values.short_text, values.text_of(32), values.short_text, needs=2, missing=""),
        MISCELLANEOUS="{vendor,productSub,oscpu}",
    ),
)
READ_HERE = TABLE.names - {"extra"}
_NOT_LEAVES = READ_HERE | NOT_OF_THE_DEVICE

ADAPTER = Adapter("plain", "the top level", _find, TABLE, _complete)
