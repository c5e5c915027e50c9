"""The report of a phone: what its sources read, checked and named as `docs/report-fields.md` says.

What may live here: raw values of sources in, `signals` out. A source is a name and a value; a value that is missing was
not there to be read, and one that is a `fault`, of another type or out of bounds leaves its fields out and its name in
`app.left_out`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

MAX_LANGUAGES = 5
HASHED_BELOW_API = 26
SHORTEST_ID, LONGEST_ID = 16, 64
FAULTY_ID = "9774d56d682e549c"
NIGHT_MODES = ("auto", "no", "yes", "custom")
_CPUS = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?)*")
_LANGUAGE = re.compile(r"[A-Za-z0-9-]{2,35}")
_PACKAGE = re.compile(r"[A-Za-z0-9_.-]{1,96}")


class NonsenseError(ValueError):
    """What a source gave is no value of its kind."""


Fields = dict[str, Any]


def text(value: Any, longest: int) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise NonsenseError
    return value


def matched(value: Any, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise NonsenseError
    return value


def whole(value: Any, least: int, largest: int) -> int:
    if type(value) is not int or not least <= value <= largest:
        raise NonsenseError
    return value


def factor(value: Any, digits: int) -> float:
    """A number above 0 and up to 100, rounded half up."""
    if type(value) not in (int, float) or not 0 < value <= 100:
        raise NonsenseError
    scale = 10**digits
    return int(value * scale + 0.5) / scale


def member(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise NonsenseError
    return value.get(name)


def android_build(value: Any) -> Fields:
    abis = member(value, "abis")
    if not isinstance(abis, list) or not abis:
        raise NonsenseError
    return {
        "manufacturer": text(member(value, "manufacturer"), 64),
        "model": text(member(value, "model"), 128),
        "os_version": text(member(value, "os_version"), 32),
        "os_build": text(member(value, "os_build"), 96),
        "architecture": text(abis[0], 32),
    }


def ios_build(value: Any) -> Fields:
    return {
        "model": text(member(value, "machine"), 128),
        "os_version": text(member(value, "os_version"), 32),
        "os_build": text(member(value, "os_build"), 96),
    }


def cores(value: Any) -> Fields:
    """A number, or the text of `/sys/devices/system/cpu/possible`, such as `0-3,4-7`."""
    if isinstance(value, str):
        count = 0
        for part in matched(value.strip(), _CPUS).split(","):
            first, _, last = part.partition("-")
            count += int(last or first) - int(first) + 1
        value = count
    return {"cores": whole(value, 1, 4_096)}


def memory(value: Any) -> Fields:
    return {"memory_mb": whole(value, 2**20, 2**50) // 2**20}


def disk(value: Any) -> Fields:
    return {"disk_gb": whole(value, 10**9, 10**15) // 10**9}


def android_screen(value: Any) -> Fields:
    modes = member(value, "modes")
    if not isinstance(modes, list) or not modes or not all(isinstance(one, list) and len(one) == 2 for one in modes):
        raise NonsenseError
    sizes = [(whole(width, 1, 100_000), whole(height, 1, 100_000)) for width, height in modes]
    width, height = max(sizes, key=lambda size: size[0] * size[1])
    density = whole(member(value, "density"), 1, 10_000)
    return {"screen": {"width": width, "height": height, "scale": factor(density / 160, 3)}}


def ios_screen(value: Any) -> Fields:
    width, height = (whole(member(value, name), 1, 100_000) for name in ("width", "height"))
    return {"screen": {"width": width, "height": height, "scale": factor(member(value, "scale"), 3)}}


def languages(value: Any) -> Fields:
    if not isinstance(value, list) or not value:
        raise NonsenseError
    return {"languages": [matched(one, _LANGUAGE) for one in value[:MAX_LANGUAGES]]}


def clock_24(value: Any) -> Fields:
    if type(value) is not bool:
        raise NonsenseError
    return {"settings.clock_24": value}


def android_night(value: Any) -> Fields:
    return {"settings.night_mode": NIGHT_MODES[whole(value, 0, 3)]}


def ios_night(value: Any) -> Fields:
    if value not in ("yes", "no"):
        raise NonsenseError
    return {"settings.night_mode": value}


def input_method(value: Any) -> Fields:
    """`package/class`, of which the package is sent."""
    return {"settings.input_method": matched(text(value, 1_024).partition("/")[0], _PACKAGE)}


COMMON: dict[str, Callable[[Any], Fields]] = {
    "cores": cores,
    "memory": memory,
    "languages": languages,
    "timezone": lambda value: {"timezone": text(value, 64)},
    "font_scale": lambda value: {"font_scale": factor(value, 2)},
    "clock_24": clock_24,
}
SOURCES: dict[str, dict[str, Callable[[Any], Fields]]] = {
    "android": {
        **COMMON,
        "disk": disk,
        "screen": android_screen,
        "input_method": input_method,
        "night_mode": android_night,
        "screen_off": lambda value: {"settings.screen_off_ms": whole(value, 0, 2**31 - 1)},
    },
    "ios": {**COMMON, "screen": ios_screen, "night_mode": ios_night},
}
"""Platform -> source -> its fields, those of `settings` by path."""
BUILD = {"android": android_build, "ios": ios_build}


def app(platform: str, value: Any) -> Fields:
    found = {"package": text(member(value, "package"), 128), "version": text(member(value, "version"), 64)}
    for name, longest in (("installer", 128), ("signer", 64)) if platform == "android" else ():
        if member(value, name) is not None:
            found[name] = text(value[name], longest)
    return found


def device_id(platform: str, device: dict[str, Any]) -> Fields:
    """The id of the device, where it is one. Before Android 8 all apps see the same, so that it is hashed with the
    certificate that the app is signed with.
    """
    if platform == "ios":
        value = device.get("identifier_for_vendor")
        return {} if value is None else {"identifier_for_vendor": _id(value)}
    value = device.get("android_id")
    if value is None:
        return {}
    found = _id(value)
    if member(device.get("build"), "api_level") is None or device["build"]["api_level"] < HASHED_BELOW_API:
        signer = text(member(device.get("app"), "signer"), 64)
        found = sha256(f"{signer}:{found}".encode()).hexdigest()[:32]
    return {"android_id": found}


def _id(value: Any) -> str:
    found = text(value, LONGEST_ID)
    if len(found) < SHORTEST_ID or found == FAULTY_ID or not set(found) - {"0", "-"}:
        raise NonsenseError
    return found


def _is_fault(value: Any) -> bool:
    """Raises where it is one."""
    if isinstance(value, dict) and "fault" in value:
        raise NonsenseError
    return False


def signals(given: dict[str, Any]) -> dict[str, Any]:
    """`signals` of a report. `given`: `platform`; `device`, raw values by source; `options` `storage`, `device_id`,
    `minimal`, `bridge`; `flags` that fired; `token` or `None`; `nonce`; `collected_at`.
    """
    platform, device, options = given["platform"], given["device"], given["options"]
    found: Fields = {"platform": platform, "nonce": given["nonce"], "collected_at": given["collected_at"]}
    left_out: set[str] = set(given.get("failed_checks", ()))

    def read(name: str, reader: Callable[[Any], Fields]) -> Fields:
        value = device.get(name)
        if value is None:
            return {}
        try:
            return {} if _is_fault(value) else reader(value)
        except NonsenseError:
            left_out.add(name)
            return {}

    build = read("build", BUILD[platform])
    if options["minimal"]:
        build = {name: value for name, value in build.items() if name in ("model", "os_version")}
    found |= build
    settings: Fields = {}
    for name, reader in () if options["minimal"] else SOURCES[platform].items():
        for path, value in read(name, reader).items():
            group, _, inner = path.partition(".")
            if inner:
                settings[inner] = value
            else:
                found[group] = value
    if settings:
        found["settings"] = settings
    about = read("app", lambda value: app(platform, value))
    if options["storage"] and options["device_id"]:
        source = "android_id" if platform == "android" else "identifier_for_vendor"
        found |= read(source, lambda _: device_id(platform, device))
    if given["token"] is not None:
        found["client_token"] = given["token"]
    if given["flags"]:
        found["flags"] = dict.fromkeys(given["flags"], True)
    if options["bridge"] is not None:
        about["bridge"] = options["bridge"]
    if left_out:
        about["left_out"] = sorted(left_out)
    return {**found, "app": about} if about else found
