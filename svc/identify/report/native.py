"""Reports of SDKs inside apps on Android and iOS: `platform`, the device's model, its identifiers, its flags.

What may live here: the names that such SDKs use, at the top level or in `device`, and what they mean. The schema is
closed: what is not named here is archived and never compared, so that a new field of an SDK changes nobody's
confidence. What names the release of the system or the app (`os_build`, `app`) is not an attribute either: it changes
while the device stays, and two apps of one maker on one device are one visitor. An identifier that many devices have
would make one visitor of all of them, and is not usable.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final, Literal

from svc.identify.model import scoring_platform
from svc.identify.report import canonical, values
from svc.identify.report.table import Adapter, FieldTable, ReportPart, Signals, fields
from svc.identify.report.values import compact, first_of, members, number, scalar_text, shown, text, text_of

SHORTEST: Final = 16
"""Characters: an `android_id` has so many, a UUID more. What is shorter can be guessed, or is a name."""
LONGEST: Final = 64
SHARED_IDS: Final = frozenset(
    {
        # Given to every device of some makers (Android issue 10603).
        "9774d56d682e549c",
        # Examples of UUIDs in documentation and standards, copied into programs.
        "e621e1f8c36c495a93fc0c247a3e6e5f",
        "123e4567e89b12d3a456426614174000",
        "123e4567e89b12d3a456426655440000",
        "550e8400e29b41d4a716446655440000",
        "6ba7b8109dad11d180b400c04fd430c8",
        "f81d4fae7dec11d0a76500a0c91e6bf6",
    }
)
"""Identifiers that many devices have, in lower case and without hyphens."""

_FEWEST_CHARACTERS: Final = 5
"""Different ones. Of 16 random hexadecimal digits fewer than so many differ once in two million."""
_STEPS_IN_A_ROW: Final = 2 / 3
"""Of the steps from a character to the next that are equal, as in `123456781234...`: at random, once in ten million."""
_WORDS: Final = re.compile(
    r"unknown|undefined|unavailable|available|placeholder|example|default|null|none|object|android|iphone|emulator"
    r"|simulator"
)
_BUILD: Final = re.compile(r"[a-z0-9_ -]*\b[a-z0-9]{3,5}\.\d{6}\.\d{3}(?:[._-].*)?|.*[/:\s].*", re.DOTALL)
"""Names of a release of the system, such as `AP4A.250105.002.A1`, which some libraries call the id of the device; and
what holds a slash, a colon or a space, as the fingerprint of a build does.
"""


def usable_device_id(*ids: object) -> str | None:
    """Return the first text, as sent, that may be the identifier of one device alone; `None` if there is none."""
    for one in ids:
        found = text(one, LONGEST, shortest=SHORTEST)
        if found is not None and not _is_of_many_devices(found.lower()):
            return found
    return None


def _is_of_many_devices(device_id: str) -> bool:
    """Return whether a lower-case text is known to be shared, made by a person, or the name of something else."""
    bare = device_id.replace("-", "")
    return (
        len(bare) < SHORTEST
        or bare in SHARED_IDS
        or len(set(bare)) < _FEWEST_CHARACTERS
        or _is_repetition(bare)
        or _is_counting(bare)
        or _WORDS.search(device_id) is not None
        or _BUILD.fullmatch(device_id) is not None
    )


def _is_repetition(bare: str) -> bool:
    """Return whether the text is a shorter one, written twice or more often."""
    return bare in (bare + bare)[1:-1]


def _is_counting(bare: str) -> bool:
    """Return whether most characters follow the one before by the same step, as in digits or the alphabet."""
    steps = [ord(after) - ord(before) for before, after in pairwise(bare)]
    return max(map(steps.count, set(steps))) >= _STEPS_IN_A_ROW * len(steps)


FLAGS = (
    "app_tampering", "cloned_app", "debugger", "developer_options", "emulator", "frida", "hooked", "jailbroken",
    "location_spoofing", "mitm", "rooted", "simulator", "unofficial_store", "vpn_active",
)  # fmt: skip
MARKS = (
    "model", "device_model", "manufacturer", "os_version", "os_build", "vendor_id", "identifier_for_vendor",
    "android_id",
)  # fmt: skip
"""What an SDK sends at least one of, or a flag: without any, it is the flat report of a web page."""

ARCHIVED = {
    "app.package": "Name of the app: the package on Android, the bundle on iOS.",
    "app.version": "Its version.",
    "app.installer": "What installed it, such as `com.android.vending`.",
    "app.signer": "SHA-256 of the certificate that it is signed with.",
    "app.bridge": "Name and version of the bridge that made the report, such as `react-native/0.1.0`.",
    "app.left_out": "Sources that failed, took too long or gave no value of their kind, such as `screen` or "
    "`flags.rooted`.",
}
"""Fields that an SDK may send for people to read, by path, with what they say. They are archived and never compared, as
is anything that has no name here."""
LONGEST_SETTING = 96
"""Characters of a setting: the name of a package, a mode, a number of milliseconds."""
_VERSION = re.compile(r"\d{1,5}(?:\.\d{1,5}){0,3}", re.ASCII)
_NARROWEST_TABLET = 600
"""Density-independent pixels of the short side, from where on Android counts a device as a tablet (`sw600dp`)."""
_LARGEST_DISK_GB = 2**20
_SETTINGS = ("clock_24", "input_method", "night_mode", "screen_off_ms")
_SPELLINGS_OF_TRUE = ("true", "1")

Native = Literal["android", "ios"]


def _find(signals: Signals, taken: set[str]) -> ReportPart | None:
    """Read members of `device` before those at the top level. A flag may be in either, or in `flags`."""
    platform = _platform_of(signals)
    if platform is None:
        return None
    device, flags = members(signals.get("device")), members(signals.get("flags"))
    said = {name: value for part in (signals, device) for name, value in part.items() if value is not None}
    said["flags"] = {name: True for name in FLAGS if any(_is_set(part.get(name)) for part in (signals, device, flags))}
    said["platform"] = platform
    # An app's report is as flat as a plain one, and uses some of its names.
    taken.update(signals)
    return ReportPart(said)


def _platform_of(signals: Signals) -> Native | None:
    """Return the system whose SDK made the report, including bridges (`react-native-ios`); `None` if none did."""
    said = text(signals.get("platform"), 64)
    platform = "web" if said is None else scoring_platform(said)
    if platform == "web":
        return None
    for part in (members(signals.get("device")), signals):
        if any(scalar_text(part.get(mark)) is not None for mark in MARKS) or any(name in part for name in FLAGS):
            return platform
    return None


def _version(value: Any) -> str | None:
    """Number, or text of at most 32 characters: the digits of a version, as `17.4.1`."""
    said = text(value, 32) if type(value) is str else scalar_text(value)
    found = _VERSION.match(said or "")
    return None if found is None else found[0]


_first_model = first_of(text_of(128))


def _model(platform: Any, manufacturer: Any, *models: Any) -> str | None:
    """Texts of at most 128 characters, the manufacturer of at most 64.

    Apple's models have one manufacturer; elsewhere two makers may use one name.
    """
    model = _first_model(*models)
    if model is None:
        return None
    maker = text(manufacturer, 64) if platform == "android" else None
    return compact(f"{(maker or '').lower()}/{model}")


def _memory(value: Any) -> float | None:
    """MiB above 0; kept in GiB."""
    megabytes = number(value)
    return None if megabytes is None or megabytes <= 0 else megabytes / 1024


def _hardware(cores: Any, memory_mb: Any) -> str | None:
    """Number; MiB above 0, compared in whole GiB: what the kernel keeps for itself changes with updates."""
    count, memory = number(cores), _memory(memory_mb)
    if count is None and memory is None:
        return None
    return f"{'' if count is None else shown(count)}/{'' if memory is None else round(memory)}"


def _disk(platform: Any, value: Any) -> list[str] | None:
    """Gigabytes above 0 and below 2^20; kept as sold, of which systems show what they leave: the next power of two.
    Android only: Apple does not allow the size of the disk to leave the device, so that of iOS is not read.
    """
    disk = number(value)
    if platform == "ios" or disk is None or not 0 < disk < _LARGEST_DISK_GB:
        return None
    sold = 1
    while sold < disk:
        sold *= 2
    return [f"disk_gb={sold}"]


def _kind(*given: Any) -> Literal["tablet", "mobile"]:
    """Texts of at most 128 characters, and CSS or physical pixels: a tablet has 600 density-independent ones."""
    platform, model, device_model, width, height, scale = given
    if platform == "ios":
        return "tablet" if (_first_model(model, device_model) or "").startswith("iPad") else "mobile"
    screen, density = values.size(width, height), number(scale)
    wide = screen is not None and density is not None and density > 0 and min(screen) / density >= _NARROWEST_TABLET
    return "tablet" if wide else "mobile"


def _font_scale(value: Any) -> str | None:
    """Factor; kept to two decimals."""
    scale = number(value)
    return None if scale is None else canonical.preferences_text({"fontScale": None if scale == 1 else round(scale, 2)})


def _settings(*given: Any) -> list[str]:
    """Texts of at most 96 characters, numbers or booleans: what the user chose in the system's settings."""
    shown_values = [scalar_text(value) for value in given]
    return [
        f"settings.{name}={value}"
        for name, value in zip(_SETTINGS, shown_values, strict=True)
        if value is not None and len(value) <= LONGEST_SETTING
    ]


def _device_id(*given: Any) -> str | None:
    """Text of 16 to 64 characters: the first that may be of this device alone. Not what many devices have: zeros and
    other repetitions, counting digits, words, the name of a build, ids that some makers gave to all of their devices.
    """
    *ids, os_build = given
    return usable_device_id(*(one for one in ids if one != os_build))


def _is_set(value: Any) -> bool:
    """Return whether a flag is set, as JSON or as bridges of other languages write it: `true`, 1, or one as text."""
    return value is True or (type(value) is int and value == 1) or (type(value) is str and value in _SPELLINGS_OF_TRUE)


def _flags(*flags: Any) -> tuple[str, ...] | None:
    """`true`, the number 1, or either as text; anything else leaves the flag unset."""
    return tuple([name for name, value in zip(FLAGS, flags, strict=True) if _is_set(value)]) or None


TABLE = FieldTable(
    fields(values.short_text, native_platform="platform"),
    fields(_version, native_os_version="os_version"),
    fields(_kind, native_kind="{platform,model,device_model} + screen.{width,height,scale}"),
    fields(first_of(text_of(1_024)), user_agent="{userAgent,user_agent}"),
    fields(_model, MODEL="{platform,manufacturer,model,device_model}"),
    fields(first_of(text_of(32)), TOUCH="{architecture,abi,cpu_abi}"),
    fields(text_of(256), gpu_vendor="gpu.vendor"),
    fields(first_of(text_of(256)), gpu_renderer="gpu + gpu.renderer"),
    fields(number, cores="cores"),
    fields(_memory, memory_gb="memory_mb"),
    fields(_hardware, HARDWARE="{cores,memory_mb}"),
    fields(_disk, rest="{platform,disk_gb}"),
    fields(_settings, rest="settings.{" + ",".join(_SETTINGS) + "}"),
    fields(values.size, screen="screen.{width,height}"),
    fields(canonical.pixel_ratio, PIXEL_RATIO="screen.scale"),
    fields(canonical.language_list, languages="{languages,locale}"),
    fields(canonical.time_zone, timezone="timezone"),
    fields(_font_scale, ACCESSIBILITY="font_scale"),
    fields(_device_id, device_id="{android_id,identifier_for_vendor,vendor_id,os_build}"),
    fields(_flags, device_flags="flags.{" + ",".join(FLAGS) + "}"),
    fields(values.epoch_ms, factory_reset_at_ms="factory_reset_at"),
)
READ_HERE = TABLE.names | {*MARKS, *FLAGS, "device", "app"}
"""Members of a report, or of its `device`, that mean something here."""

ADAPTER = Adapter("native", "the top level, or `device`, which counts first", _find, TABLE, canonical.complete)
