"""Reports of SDKs inside apps on Android and iOS: `platform`, the device's model, its identifiers, its flags.

What may live here: the names that such SDKs use, at the top level or in `device`, and what they mean. What names the
release of the system or the app (`os_build`, `app`) is no attribute: it changes while the device stays, and two apps of
one maker on one device are one visitor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from svc.domain.model import Attribute, scoring_platform
from svc.domain.report.canonical import preferences_text, put_gpu, put_languages, put_screen, time_zone
from svc.domain.report.leaves import NOT_OF_THE_DEVICE, leaves_of
from svc.domain.report.reading import Reading
from svc.domain.report.values import compact, epoch_ms, flag, members, number, scalar_text, shown, size, text, texts

NAME = "native"

FLAGS = (
    "app_tampering",
    "cloned_app",
    "emulator",
    "frida",
    "jailbroken",
    "location_spoofing",
    "mitm",
    "rooted",
    "simulator",
    "vpn_active",
)
MODEL = ("model", "device_model")
VENDOR_ID = ("vendor_id", "identifier_for_vendor", "android_id")
ARCHITECTURE = ("architecture", "abi", "cpu_abi")
MARKS = (*MODEL, "manufacturer", "os_version", "os_build", *VENDOR_ID)
"""What an SDK sends at least one of, or a flag: without any, it is the flat report of a web page."""

# fmt: off
READ_HERE = frozenset(
    {
        *MARKS, *FLAGS, *ARCHITECTURE, "platform", "device", "flags", "screen", "cores", "memory_mb", "disk_gb", "gpu",
        "languages", "locale", "timezone", "font_scale", "app", "factory_reset_at", "userAgent", "user_agent",
    }
)
# fmt: on
_NOT_LEAVES = READ_HERE | NOT_OF_THE_DEVICE

SHARED_IDS = frozenset({"9774d56d682e549c"})
"""Identifiers that many devices have: this one was given to every device of some makers (Android issue 10603)."""
_NOTHING_BUT_ZEROS = re.compile(r"[0-]+")
_VERSION = re.compile(r"\d{1,5}(?:\.\d{1,5}){0,3}", re.ASCII)
_NARROWEST_TABLET = 600
"""Density-independent pixels of the short side, from where on Android counts a device as a tablet (`sw600dp`)."""

Native = Literal["android", "ios"]


def platform_of(signals: dict[str, Any]) -> Native | None:
    """The system whose SDK made the report, bridges included (`react-native-ios`); `None` when none did."""
    said = text(signals.get("platform"), 64)
    platform = "web" if said is None else scoring_platform(said)
    if platform == "web":
        return None
    device = members(signals.get("device"))
    for part in (device, signals):
        if any(scalar_text(part.get(mark)) is not None for mark in MARKS) or any(name in part for name in FLAGS):
            return platform
    return None


def read(signals: dict[str, Any], platform: Native) -> Reading:
    """What the SDK says. Members of `device` count before those at the top level."""
    said = dict(_flat(signals))
    reading = Reading(collector=NAME, attributes={}, claims={}, rest=[])
    claims = reading.claims
    claims["native_platform"] = platform
    claims["native_os_version"] = _version(said.get("os_version"))
    claims["user_agent"] = text(said.get("userAgent"), 1_024) or text(said.get("user_agent"), 1_024)
    _read_hardware(said, platform, reading)
    _read_screen(said, platform, reading)
    _read_place(said, reading)
    reading.vendor_id = _vendor_id(said)
    reading.device_flags = _flags(signals)
    reading.factory_reset_at_ms = epoch_ms(said.get("factory_reset_at"))
    reading.rest += leaves_of((name, value) for name, value in said.items() if name not in _NOT_LEAVES)
    return reading


def _flat(signals: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for part in (signals, members(signals.get("device"))):
        for name, value in part.items():
            if value is not None:
                yield name, value


def _first_text(said: dict[str, Any], names: tuple[str, ...], longest: int) -> str | None:
    return next((found for name in names if (found := text(said.get(name), longest)) is not None), None)


def _version(value: Any) -> str | None:
    """The digits of a version: `17.4.1`, `14`."""
    said = text(value, 32) if type(value) is str else scalar_text(value)
    found = _VERSION.match(said or "")
    return None if found is None else found[0]


def _read_hardware(said: dict[str, Any], platform: Native, reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    model = _first_text(said, MODEL, 128)
    if model is not None:
        # Apple's models have one manufacturer; elsewhere two makers may use one name.
        maker = text(said.get("manufacturer"), 64) if platform == "android" else None
        attributes[Attribute.MODEL] = compact(f"{(maker or '').lower()}/{model}")

    graphics = said.get("gpu")
    card = members(graphics)
    claims["gpu_vendor"] = vendor = text(card.get("vendor"), 256)
    claims["gpu_renderer"] = renderer = text(graphics, 256) or text(card.get("renderer"), 256)
    put_gpu(attributes, vendor, renderer)

    claims["cores"] = cores = number(said.get("cores"))
    megabytes = number(said.get("memory_mb"))
    memory = None if megabytes is None or megabytes <= 0 else megabytes / 1024
    claims["memory_gb"] = memory
    if cores is not None or memory is not None:
        # What the kernel keeps for itself changes with updates of the system: whole gigabytes do not.
        rounded = "" if memory is None else str(round(memory))
        attributes[Attribute.HARDWARE] = f"{'' if cores is None else shown(cores)}/{rounded}"
    disk = number(said.get("disk_gb"))
    if disk is not None and 0 < disk < 2**20:
        reading.rest.append(f"disk_gb={_sold_as(disk)}")
    architecture = _first_text(said, ARCHITECTURE, 32)
    if architecture is not None:
        attributes[Attribute.TOUCH] = architecture


def _sold_as(gigabytes: float) -> int:
    """The size of the storage as sold, of which systems show what they leave: the next power of two."""
    size_sold = 1
    while size_sold < gigabytes:
        size_sold *= 2
    return size_sold


def _read_screen(said: dict[str, Any], platform: Native, reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    screen = members(said.get("screen"))
    claims["screen"] = total = size(screen.get("width"), screen.get("height"))
    put_screen(attributes, total)
    scale = number(screen.get("scale"))
    if scale is not None and scale > 0:
        attributes[Attribute.PIXEL_RATIO] = shown(round(scale, 3))
    if platform == "ios":
        tablet = (_first_text(said, MODEL, 128) or "").startswith("iPad")
    else:
        tablet = total is not None and scale is not None and scale > 0 and min(total) / scale >= _NARROWEST_TABLET
    claims["native_kind"] = "tablet" if tablet else "mobile"


def _read_place(said: dict[str, Any], reading: Reading) -> None:
    attributes, claims = reading.attributes, reading.claims
    languages = texts(said.get("languages"), 64)
    if languages is None:
        language = text(said.get("locale"), 64)
        languages = None if language is None else [language]
    if languages is not None:
        claims["languages"] = tuple(languages)
        put_languages(attributes, languages)
    zone = time_zone(said.get("timezone"))
    if zone is not None:
        claims["timezone"] = zone
        attributes[Attribute.TIMEZONE] = zone
    scale = number(said.get("font_scale"))
    if scale is not None:
        attributes[Attribute.ACCESSIBILITY] = preferences_text({"fontScale": None if scale == 1 else round(scale, 2)})


def _vendor_id(said: dict[str, Any]) -> str | None:
    """An identifier as long as a client token must be, and of this device alone."""
    for name in VENDOR_ID:
        found = text(said.get(name), 64, shortest=16)
        if found is not None and found.lower() not in SHARED_IDS and _NOTHING_BUT_ZEROS.fullmatch(found) is None:
            return found
    return None


def _flags(signals: dict[str, Any]) -> tuple[str, ...]:
    """Only `true` is true; a flag may stand at the top level, in `device` or in `flags`."""
    parts = (signals, members(signals.get("device")), members(signals.get("flags")))
    return tuple([name for name in FLAGS if any(flag(part.get(name)) for part in parts)])
