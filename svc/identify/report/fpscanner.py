"""fpscanner (1.x): sections of signals, and the same questions asked once more in an iframe and in a worker.

What may live here: where the sections stand in a report, and which signal means what. The library writes `ERROR`,
`NA`, `SKIPPED` or `INIT` where a value should stand: those are as if nothing were there. Its own verdicts
(`fastBotDetectionDetails`) are only archived.
"""

from __future__ import annotations

from typing import Any

import msgspec

from svc.identify.model import ClientHints
from svc.identify.report import canonical, values
from svc.identify.report.masks import STANDARD_PLUGINS
from svc.identify.report.table import Adapter, FieldTable, ReportPart, Signals, fields, leaves_of
from svc.identify.report.values import flag, members, number, pattern, scalar_text, short_text, text, text_of, whole

SECTIONS = ("automation", "device", "browser", "graphics", "codecs", "locale", "contexts")
MARKS = ("automation", "graphics", "contexts")
"""Sections that all stand in every report of the library."""
SENTINELS = frozenset({"ERROR", "NA", "SKIPPED", "INIT"})
_SENTINEL_LEAVES = tuple(f"={sentinel}" for sentinel in sorted(SENTINELS))

STANDARD_PLUGINS_HASH = "-2cdc5c8b"
"""What the library makes of `STANDARD_PLUGINS`: names joined by commas, hashed in 32 bits."""
QUERIES = {"prefersReducedMotion": "reducedMotion", "prefersReducedTransparency": "reducedTransparency"}
"""Media query -> accessibility preference."""
_CONTEXT = "{userAgent,platform,language,cpuCount,memory,webdriver,vendor,renderer}"


def _find(signals: Signals, taken: set[str]) -> ReportPart | None:
    """Return the sections, at the top level or in `fpscanner`: bare, or in `signals` as in the whole response."""
    named = members(signals.get("fpscanner"))
    for sections in (named, members(named.get("signals")), members(signals.get("signals")), signals):
        if _are_sections(sections):
            taken.update(SECTIONS if sections is signals else ("signals",))
            return ReportPart(sections)
    return None


def _are_sections(value: Signals) -> bool:
    for mark in MARKS:  # noqa: SIM110 -- a generator costs more than the look-ups
        if value.get(mark).__class__ is not dict:
            return False
    return True


def _hints(*given: Any) -> ClientHints | None:
    """The values of `HINTS`, and whether the browser is Brave, a boolean."""
    hints = canonical.client_hints(*given[:-1])
    if given[-1] is not True or (hints is not None and any(brand == "Brave" for brand, _ in hints.brands)):
        return hints
    hints = hints or ClientHints()
    return msgspec.structs.replace(hints, brands=(*hints.brands, ("Brave", "")))


def _preferences(queries: Any) -> str | None:
    """Object: scalars of the media queries; one that is `null` is asked and off."""
    asked = [(name, members(queries)[query]) for query, name in QUERIES.items() if query in members(queries)]
    said = {name: value for name, value in asked if type(value) is not str or value not in SENTINELS}
    return canonical.preferences_text(said) if said else None


def _flavors(value: Any) -> tuple[str, ...] | None:
    """Boolean: whether there is `window.chrome`."""
    return None if type(value) is not bool else ("chrome",) if value else ()


def _canvas(drawn: Any, modified: Any) -> str | None:
    """Hash of an image, text of at most 64 characters; none where it has pixels that were not drawn, a boolean."""
    return None if flag(modified) else text(drawn, 64)


def _leaves(*names: str) -> values.Converter:
    """Return a converter that walks as many values, each under its name, and drops what stands for a missing value."""

    def convert(*given: Any) -> list[str]:
        """JSON of any shape, of which at most 1,024 values are looked at and 128 kept."""
        return [leaf for leaf in leaves_of(zip(names, given, strict=True)) if not leaf.endswith(_SENTINEL_LEAVES)]

    return convert


_POINTERS = ("pointer", "anyPointer", "hover", "anyHover")
TABLE = FieldTable(
    fields(text_of(1_024), user_agent="browser.userAgent"),
    fields(short_text, platform="device.platform", language="locale.languages.language"),
    fields(text_of(256), gpu_vendor="graphics.webGL.vendor", gpu_renderer="graphics.webGL.renderer"),
    fields(number, cores="device.cpuCount", memory_gb="device.memory"),
    fields(number, color_depth="device.screenResolution.colorDepth"),
    fields(whole, plugin_count="browser.plugins.pluginCount", eval_length="browser.etsl"),
    fields(flag, canvas_noise="graphics.canvas.hasModifiedCanvas"),
    fields(_hints, hints=f"browser.highEntropyValues.{canonical.HINTS} + browser.features.brave"),
    fields(values.size, screen="device.screenResolution.{width,height}"),
    fields(values.size, available="device.screenResolution.{availableWidth,availableHeight}"),
    fields(values.size, inner_window="device.screenResolution.{innerWidth,innerHeight}"),
    fields(
        pattern("{}/{}/{}", values.number_text, scalar_text, scalar_text, needs=1, missing=""),
        COLOUR="device.screenResolution.colorDepth + device.mediaQueries.{colorGamut,colorDepth}",
    ),
    fields(_preferences, ACCESSIBILITY="device.mediaQueries.(prefersReducedMotion,prefersReducedTransparency)"),
    fields(canonical.pointer, pointer="device.mediaQueries.{anyPointer,anyHover}"),
    fields(canonical.language_list, languages="locale.languages.{languages,language}"),
    fields(canonical.time_zone, timezone="locale.internationalization.timezone"),
    fields(_flavors, vendor_flavors="browser.features.chrome"),
    fields(
        canonical.plugins_patched,
        plugins_patched="browser.plugins.{isValidPluginArray,pluginConsistency1,pluginOverflow}",
    ),
    fields(values.when(STANDARD_PLUGINS_HASH, STANDARD_PLUGINS), plugin_names="browser.plugins.pluginNamesHash"),
    fields(pattern("{1}/{0}", short_text, whole, needs=1), PLUGINS="browser.plugins.{pluginNamesHash,pluginCount}"),
    fields(pattern("{}", short_text, needs=1), TOUCH="device.platform"),
    fields(
        pattern("{}/{}/{}", scalar_text, scalar_text, flag, needs=2),
        MISCELLANEOUS="browser.{maths,etsl} + browser.toSourceError.hasToSource",
    ),
    fields(_canvas, CANVAS="graphics.canvas.{canvasFingerprint,hasModifiedCanvas}"),
    fields(canonical.contexts, contexts=f"contexts.iframe.{_CONTEXT} + contexts.webWorker.{_CONTEXT}"),
    fields(canonical.webdriver_anywhere, webdriver="automation.webdriver + contexts.{iframe,webWorker}.webdriver"),
    fields(
        canonical.driver_marks,
        driver_marks="automation.{webdriver,cdp,playwright,selenium,webdriverWritable}",
    ),
    fields(
        _leaves(*(f"mediaQueries.{name}" for name in _POINTERS)),
        rest="device.mediaQueries.{" + ",".join(_POINTERS) + "}",
    ),
    fields(_leaves("localeLanguage"), rest="locale.internationalization.localeLanguage"),
    # The features of the browser are not among them: they say its release.
    fields(
        _leaves("codecs", "extensions", "keyboard", "media", "webgpu"),
        rest="codecs + browser.extensions.extensions + device.{keyboard,multimediaDevices} + graphics.webgpu",
    ),
    absent=SENTINELS,
)

ADAPTER = Adapter("fpscanner", "the sections", _find, TABLE, canonical.complete)
