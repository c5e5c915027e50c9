"""The canonical forms that more than one adapter produces: one browser, one text, however often it is upgraded.

What may live here: typed values in, comparable text out. A form leaves out what a release, a rotated screen or a
spelling changes without the device having changed, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from svc.domain.model import Attribute, ClientHints
from svc.domain.report.brands import brand_list, invented_brand
from svc.domain.report.gpu import canonical_gpu
from svc.domain.report.reading import Reading
from svc.domain.report.values import compact, digest, entries_of, flag, number, scalar_text, shown, text, texts

MAX_LANGUAGES = 32
LARGEST_COMPARED_MEMORY_GB = 8
SMALLEST_COMPARED_MEMORY_GB = 2
"""Chromium reported memory as .25 to 8 GB, and from release 147 on as 2 to 32 on desktops: a 16 GB machine "grew" from
8 to 16 overnight. Compared is what both report."""

_RENAMED_ZONES = {
    "Africa/Asmera": "Africa/Asmara",
    "America/Buenos_Aires": "America/Argentina/Buenos_Aires",
    "America/Catamarca": "America/Argentina/Catamarca",
    "America/Cordoba": "America/Argentina/Cordoba",
    "America/Fort_Wayne": "America/Indiana/Indianapolis",
    "America/Godthab": "America/Nuuk",
    "America/Indianapolis": "America/Indiana/Indianapolis",
    "America/Jujuy": "America/Argentina/Jujuy",
    "America/Louisville": "America/Kentucky/Louisville",
    "America/Mendoza": "America/Argentina/Mendoza",
    "Asia/Calcutta": "Asia/Kolkata",
    "Asia/Katmandu": "Asia/Kathmandu",
    "Asia/Rangoon": "Asia/Yangon",
    "Asia/Saigon": "Asia/Ho_Chi_Minh",
    "Atlantic/Faeroe": "Atlantic/Faroe",
    "Etc/GMT": "UTC",
    "Etc/UCT": "UTC",
    "Etc/UTC": "UTC",
    "Europe/Kiev": "Europe/Kyiv",
    "GMT": "UTC",
    "Pacific/Enderbury": "Pacific/Kanton",
    "Pacific/Ponape": "Pacific/Pohnpei",
    "Pacific/Truk": "Pacific/Chuuk",
}
"""Old names that browsers still report for a while after the zone was renamed (IANA tz database, `backward`)."""

_OFF_ALWAYS: tuple[Any, ...] = (None, False, 0)


def put_screen(attributes: dict[Attribute, str], screen: tuple[float, float] | None) -> None:
    """The longer side first: a turned phone keeps its screen."""
    if screen is not None and screen[0] > 0 and screen[1] > 0:
        attributes[Attribute.SCREEN] = f"{shown(max(screen))}x{shown(min(screen))}"


def put_processors(reading: Reading, *, vendor: Any, renderer: Any, cores: Any, memory_gb: Any) -> None:
    """What a browser tells of its graphics, cores and memory, as claims and as attributes."""
    claims = reading.claims
    claims["gpu_vendor"] = text(vendor, 256)
    claims["gpu_renderer"] = text(renderer, 256)
    put_gpu(reading.attributes, claims["gpu_vendor"], claims["gpu_renderer"])
    claims["cores"] = number(cores)
    claims["memory_gb"] = number(memory_gb)
    reading.rest += put_hardware(reading.attributes, claims["cores"], claims["memory_gb"])


def put_hardware(attributes: dict[Attribute, str], cores: float | None, memory_gb: float | None) -> list[str]:
    """Cores and memory. Returns the leaf of a memory that is known better than it is compared."""
    if cores is None and memory_gb is None:
        return []
    leaves: list[str] = []
    memory = ""
    if memory_gb is not None:
        compared = min(max(memory_gb, SMALLEST_COMPARED_MEMORY_GB), LARGEST_COMPARED_MEMORY_GB)
        memory = shown(compared)
        if compared != memory_gb:
            leaves.append(f"deviceMemory={shown(memory_gb)}")
    attributes[Attribute.HARDWARE] = f"{'' if cores is None else shown(cores)}/{memory}"
    return leaves


def put_languages(attributes: dict[Attribute, str], languages: Sequence[str] | None) -> None:
    """In the visitor's order, lower case, without the locale's encoding or variant (`en_US.UTF-8@posix` = `en-us`)."""
    if not languages:
        return
    tags: dict[str, None] = {}
    for language in languages[:MAX_LANGUAGES]:
        tag = language
        if "@" in tag or "." in tag:
            tag = tag.partition("@")[0].partition(".")[0]
        tag = tag.strip().replace("_", "-").lower()
        if tag:
            tags[tag] = None
    if tags:
        attributes[Attribute.LANGUAGES] = compact(",".join(tags))
        attributes[Attribute.FIRST_LANGUAGE] = compact(next(iter(tags)))


def listed_languages(lists: Any) -> tuple[str, ...] | None:
    """The languages, as reported, of a list of lists: `[[language], [languages...]]`. Chromium fills only the first."""
    tags: dict[str, None] = {}
    for inner in entries_of(lists)[:MAX_LANGUAGES]:
        for tag in texts(inner, 64) or ():
            tags[tag] = None
    return tuple(tags) or None


def put_gpu(attributes: dict[Attribute, str], vendor: str | None, renderer: str | None) -> None:
    if vendor is not None or renderer is not None:
        name = canonical_gpu(vendor or "", renderer or "")
        if name:
            attributes[Attribute.GPU] = compact(name)


def put_fonts(attributes: dict[Attribute, str], fonts: Sequence[str] | None) -> None:
    """The set of fonts; an empty one says something too: none of the fonts that the collector looked for."""
    if fonts is not None:
        attributes[Attribute.FONTS] = digest("\n".join(fonts)) if fonts else "none"


def font_set(fonts: Iterable[str] | None) -> tuple[str, ...] | None:
    """Fonts sorted, each once."""
    return None if fonts is None else tuple(sorted(set(fonts)))


def time_zone(value: Any) -> str | None:
    """An IANA zone by its present name."""
    zone = text(value, 64)
    return None if zone is None else _RENAMED_ZONES.get(zone, zone)


def preferences_text(preferences: dict[str, Any]) -> str:
    """Accessibility preferences that are on. One that a browser does not know yet is off, so that learning it in a
    later release changes nothing.
    """
    on: list[str] = []
    for name, value in preferences.items():
        if value not in _OFF_ALWAYS:
            said = scalar_text(value)
            if said is not None and said not in ("none", "no-preference", "standard"):
                on.append(f"{name}={said}")
    return compact(",".join(sorted(on))) or "default"


def read_user_agent_data(value: dict[str, Any]) -> ClientHints:
    """`navigator.userAgentData` with whatever high-entropy values were asked for. Empty text means not said."""
    return ClientHints(
        brands=brand_list(value.get("fullVersionList")) or brand_list(value.get("brands")),
        grease=invented_brand(value.get("brands")),
        emptied=value.get("brands") == [] and value.get("platform") == "",
        overridden=value.get("architecture") == "" and value.get("bitness") == "",
        mobile=flag(value.get("mobile")),
        platform=text(value.get("platform"), 64),
        platform_version=text(value.get("platformVersion"), 64),
        architecture=text(value.get("architecture"), 64),
        model=text(value.get("model"), 128),
    )
