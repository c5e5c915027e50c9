"""ThumbmarkJS (0.x and 1.x): a tree of components without entries around them, `{"audio": {"sampleHash": ...}, ...}`.

What may live here: where the tree stands in a report, and which component means what. A component that timed out
(`{"timeout": "true"}`), failed (`{"error": ...}`) or is `null` is as if it were not there.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from svc.identify.model import ClientHints
from svc.identify.report import canonical, values
from svc.identify.report.table import NOT_OF_THE_DEVICE, Adapter, FieldTable, ReportPart, Signals, fields, leaves_of
from svc.identify.report.values import compact, digest, members, number, number_text, scalar_text, text, texts

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
FEWEST_ELSEWHERE = 2
"""Components that must bear their marks where the tree is not announced by the name `thumbmark`."""

MASKED_RENDERER = "WebKit WebGL"
"""What Chromium and WebKit call every renderer unless the unmasked name is asked for, as this library does not."""
QUERIES = {
    "prefers-contrast": "contrast",
    "forced-colors": "forcedColors",
    "inverted-colors": "invertedColors",
    "prefers-reduced-motion": "reducedMotion",
    "prefers-reduced-transparency": "reducedTransparency",
}
"""Media query -> accessibility preference."""
POINTERS = frozenset({"pointer", "any-pointer", "hover", "any-hover"})
SMALLEST_CONSTANT = 1e-9
"""Integrals that should be nothing are left with rounding noise, which differs between releases."""
MAX_CONSTANTS = 64

_DIGITS = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)
_RESOLUTION = re.compile(r"(\d{1,6})x(\d{1,6})", re.ASCII)


def _find(signals: Signals, taken: set[str]) -> ReportPart | None:
    """Return the components that did not fail. In an object of its own, unknown members are components that the page
    added.
    """
    tree = tree_of(signals)
    if tree is None:
        return None
    components = {name: tree[name] for name in KNOWN if name in tree and not _failed(tree[name])}
    if tree is signals:
        taken |= KNOWN
        return ReportPart(components)
    return ReportPart(
        components, ((name, value) for name, value in tree.items() if name not in _NOT_LEAVES and not _failed(value))
    )


def tree_of(signals: Signals) -> Signals | None:
    """Return the object that holds the components; `None` if this is not a report of ThumbmarkJS. It is under
    `thumbmark`, either bare or as the library's whole response, under `components` as in that response, or at the top
    level.
    """
    named = members(signals.get("thumbmark"))
    if named:
        for tree in (named, members(named.get("components"))):
            if _marked(tree) >= 1:
                return tree
    for tree in (members(signals.get("components")), signals):
        if _marked(tree) >= FEWEST_ELSEWHERE:
            return tree
    return None


def _marked(tree: Signals) -> int:
    """Count the components that have their marks and did not fail."""
    found = 0
    for name, marks in MARKS.items() if tree else ():
        if name in tree:
            component = members(tree[name])
            for mark in marks:
                if mark in component:
                    found += not _failed(component)
                    break
    return found


def _failed(component: Any) -> bool:
    return component.__class__ is dict and ("timeout" in component or "error" in component)


def _vendor(unmasked: Any, unmasked_renderer: Any, renderer: Any, vendor: Any) -> str | None:
    """Text of at most 256 characters: the unmasked name, else the plain one if the renderer's is not masked."""
    return text(vendor if _is_plain(unmasked, unmasked_renderer, renderer) else unmasked, 256)


def _renderer(unmasked_vendor: Any, unmasked: Any, renderer: Any) -> str | None:
    """Text of at most 256 characters: the unmasked name, else the plain one if it is not masked."""
    return text(renderer if _is_plain(unmasked_vendor, unmasked, renderer) else unmasked, 256)


def _is_plain(unmasked_vendor: Any, unmasked_renderer: Any, renderer: Any) -> bool:
    return not unmasked_vendor and not unmasked_renderer and renderer != MASKED_RENDERER


def _memory(value: Any) -> float | None:
    """Gigabytes, as a number or as text of digits; 0 where the browser does not tell."""
    said = text(value, 16)
    memory = number(value) if said is None else float(said) if _DIGITS.fullmatch(said) else None
    return memory if memory is not None and memory > 0 else None


def _resolution(value: Any) -> tuple[float, float] | None:
    """Text: width and height in CSS pixels, as `1920x1080`."""
    found = _RESOLUTION.fullmatch(text(value, 16) or "")
    return None if found is None else (float(found[1]), float(found[2]))


def _preferences(matches: Any) -> str | None:
    """List of at most 512 texts: media queries that match, as `prefers-contrast: more`."""
    pairs = [match.partition(": ") for match in texts(matches, 64) or ()]
    return (
        canonical.preferences_text({QUERIES[query]: value for query, _, value in pairs if query in QUERIES})
        if pairs
        else None
    )


def _pointers(matches: Any) -> list[str]:
    """List of at most 512 texts: media queries that match, as `pointer: coarse`."""
    found = texts(matches, 64) or ()
    return [f"mediaMatches={match}" for match in found if match.partition(": ")[0] in POINTERS]


def _languages(value: Any) -> tuple[str, ...] | None:
    """List of language tags; release 1 tells only the first, as text."""
    return canonical.language_list(value, value)


def _fonts(value: Any) -> tuple[str, ...] | None:
    """Object of font name -> width of a text in it, of which 512 are looked at."""
    if type(value) is not dict:
        return None
    fonts = members(value)
    return canonical.font_set([name for name in islice(fonts, values.MAX_LIST) if number(fonts[name]) is not None])


def _hash(first: Any, second: Any) -> str | None:
    """Hash as text, hashed once more when longer than 64 characters; the second where the first is empty."""
    said = scalar_text(first or second)
    return None if said is None else compact(said)


def _plugin_names(plugins: Any) -> tuple[str, ...] | None:
    """List of at most 512 texts of at most 1,024 characters: `name|file|description`."""
    names = texts(plugins, 1_024)
    return None if names is None else tuple([name.partition("|")[0] for name in names])


def _engine(constants: Any, product: Any, cookies: Any) -> str | None:
    """Object of numbers, of which 64 are looked at; text of at most 32 characters; boolean. Hashed together."""
    maths = {
        name: f"{found if abs(found) >= SMALLEST_CONSTANT else 0:.10g}"
        for name, value in islice(members(constants).items(), MAX_CONSTANTS)
        if (found := number(value)) is not None and len(name) <= 32
    }
    if not maths and product is None:
        return None
    written = values.structure_text({"math": maths, "product": product, "cookies": values.flag(cookies)})
    return None if written is None else digest(written)


def _extras(*given: Any) -> list[str]:
    """Texts, and objects of any members: what no attribute takes and what does not change by the minute.

    Of permissions, what was not decided is left out, so that a permission that a release invents changes nothing; of
    voices, all until the first is there, since they arrive some time after the page.
    """
    permissions, audio_codecs, video_codecs, mathml, voice_count, voices, devices = given
    decided = {name: state for name, state in members(permissions).items() if state != "prompt"}
    return leaves_of(
        [
            ("permissions", decided),
            ("webrtc.audio", audio_codecs),
            ("webrtc.video", video_codecs),
            ("mathml", mathml),
            ("speech", voices if number(voice_count) else None),
            ("mediaDevices", members(devices)),
        ]
    )


_BRAVE = ClientHints(brands=(("Brave", ""),))
TABLE = FieldTable(
    fields(values.text_of(1_024), user_agent="system.useragent"),
    fields(values.short_text, platform="system.platform"),
    fields(values.text_of(32), product_sub="system.productSub"),
    fields(values.when("Brave", _BRAVE), hints="system.browser.name"),
    fields(number, cores="system.hardwareConcurrency"),
    fields(values.whole, touch_points="screen.maxTouchPoints"),
    fields(_memory, memory_gb="hardware.deviceMemory"),
    fields(_vendor, gpu_vendor="hardware.videocard.{vendorUnmasked,rendererUnmasked,renderer,vendor}"),
    fields(_renderer, gpu_renderer="hardware.videocard.{vendorUnmasked,rendererUnmasked,renderer}"),
    fields(_resolution, screen="screen.resolution"),
    fields(number_text, COLOUR="screen.colorDepth"),
    fields(_preferences, ACCESSIBILITY="screen.mediaMatches"),
    fields(_pointers, rest="screen.mediaMatches"),
    fields(_languages, languages="locales.languages"),
    fields(canonical.time_zone, timezone="locales.timezone"),
    fields(_fonts, fonts="fonts.*"),
    # Their widths show how text is rendered; those of other fonts change with what is installed.
    fields(canonical.widths(6), FONT_PREFERENCES="fonts.{Arial,Courier New,Georgia,Helvetica,Times New Roman,Verdana}"),
    fields(_plugin_names, plugin_names="plugins.plugins"),
    fields(_hash, CANVAS="canvas.{commonPixelsHash,commonImageDataHash}"),
    fields(_hash, WEBGL="webgl.{commonPixelsHash,commonImageHash}"),
    # 0 stands for Samsung, whose noise the library does not measure.
    fields(values.above_zero(".4f"), AUDIO="audio.sampleHash"),
    fields(canonical.touch, TOUCH="screen.maxTouchPoints + system.platform + hardware.architecture"),
    fields(_engine, MISCELLANEOUS="math.* + @product_sub + system.cookieEnabled"),
    fields(
        _extras,
        rest="permissions.* + webrtc.details.{audio,video}.hash + mathml.hash + "
        "speech.details.{voiceCount,voicesHash} + mediaDevices.*",
    ),
)
KNOWN = TABLE.names | {"intl"}
"""`intl` is not read: it shows the language data of the release."""
_NOT_LEAVES = KNOWN | NOT_OF_THE_DEVICE

ADAPTER = Adapter("thumbmark", "the tree of components", _find, TABLE, canonical.complete)
