"""Devices without end, for measuring time and room: number in, canonical report out; the same number, the same device.

Values are as unevenly common as in the world (a few screens, chips and phones make up most), so that blocks fill and
overflow as they do there. Nothing about accuracy may be read from these devices: they are made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import NamedTuple, TypeVar

from svc.identify.model import Agent, Attribute, Report, RequestFacts

T = TypeVar("T")

FONTS = tuple(f"Font family {number}" for number in range(60))
_DESKTOP_SCREENS = ("1920x1080", "1536x864", "1366x768", "2560x1440", "1440x900", "1512x982", "1728x1117", "3840x2160")


class _Kind(NamedTuple):
    """A class of devices: operating system and browser."""

    os: str
    browser: str
    mobile: bool
    platform: str


_KINDS = (
    _Kind("windows", "chrome", mobile=False, platform="Win32"),
    _Kind("android", "chrome", mobile=True, platform="Linux armv81"),
    _Kind("ios", "safari", mobile=True, platform="iPhone"),
    _Kind("mac", "chrome", mobile=False, platform="MacIntel"),
    _Kind("windows", "edge", mobile=False, platform="Win32"),
    _Kind("mac", "safari", mobile=False, platform="MacIntel"),
    _Kind("windows", "firefox", mobile=False, platform="Win32"),
    _Kind("linux", "firefox", mobile=False, platform="Linux x86_64"),
)


def _zipf(count: int) -> list[float]:
    """Cumulative weights of `count` values of which the n-th is 1/n as common as the first."""
    return list(accumulate(1 / (place + 1) for place in range(count)))


_WEIGHTS = {count: _zipf(count) for count in (6, 8, 12, 24, 40, 60, 300, 400)}


def _one(chance: Random, count: int) -> int:
    return chance.choices(range(count), cum_weights=_WEIGHTS[count])[0]


def _pick(chance: Random, values: Sequence[T]) -> T:
    return values[_one(chance, len(values))]


class Reported(NamedTuple):
    """What `svc.identify.matching.extract` takes."""

    report: Report
    agent: Agent
    facts: RequestFacts


def device(number: int, *, releases: int = 0, token: str | None = None, token_is_new: bool = False) -> Reported:
    """A visit of the device of this number, `releases` browser releases after its first visit."""
    chance = Random(number)
    kind = _pick(chance, _KINDS)
    browser_version = 1400 + 10 * (chance.randrange(3) + releases)
    language, zone = _one(chance, 12), _one(chance, 24)
    hardware = _one(chance, 300 if kind.mobile else 400)
    # A phone's model settles its parts; a desktop's parts are combined more freely.
    parts = Random(hardware) if kind.mobile else chance
    gpu, screen, cores = _one(parts, 60), _pick(parts, _DESKTOP_SCREENS), parts.choice((4, 6, 8, 12, 16))
    fonts = FONTS[: 10 + _one(chance, 6)]
    if not kind.mobile:
        fonts += tuple(FONTS[16 + _one(chance, 40)] for _ in range(_one(chance, 6)))
    engine = f"{kind.os}/{kind.browser}/{browser_version}"
    attributes = {
        Attribute.GPU: f"gpu {kind.os} {gpu}",
        Attribute.SCREEN: screen,
        Attribute.PIXEL_RATIO: f"{1 + len(screen) % 3}",
        Attribute.HARDWARE: f"{cores}/8",
        Attribute.TOUCH: f"{5 * kind.mobile}/{kind.platform}",
        Attribute.LANGUAGES: f"language {language},en,{_one(chance, 6)}",
        Attribute.TIMEZONE: f"zone {language} {zone}",
        Attribute.FONTS: "\n".join(sorted(set(fonts))),
        Attribute.CANVAS: f"{engine} {gpu} {_one(chance, 12)}",
        Attribute.WEBGL: f"{kind.os} {gpu}",
        Attribute.AUDIO: f"{kind.os}/{kind.browser} {_one(chance, 6)}",
        Attribute.FONT_PREFERENCES: f"{kind.os} {_one(chance, 6)}",
        Attribute.FRAME: "0,0" if kind.mobile else f"0,{_one(chance, 8)}",
        Attribute.COLOUR: f"{24 + 6 * (gpu % 2)}",
        Attribute.ACCESSIBILITY: f"{_one(chance, 6)}",
        Attribute.PLUGINS: kind.browser,
        Attribute.MISCELLANEOUS: kind.browser,
        Attribute.REST: f"{_one(chance, 40)} {_one(chance, 6)}",
        Attribute.FIRST_LANGUAGE: f"language {language}",
    }
    if kind.os == "android":
        attributes[Attribute.MODEL] = f"model {hardware}"
    report = Report(
        collectors=("plain",),
        attributes=attributes,
        fonts=fonts,
        rest=tuple(attributes[Attribute.REST].split()),
        client_token=token,
        client_token_is_new=token_is_new,
    )
    agent = Agent(
        browser_family=kind.browser,
        browser_version=browser_version,
        os_family=kind.os,
        os_release=1500,
        mobile=kind.mobile,
    )
    address = chance.getrandbits(20)  # a million networks of 256 addresses
    ip = f"{20 + (address >> 16)}.{address >> 8 & 255}.{address & 255}.{chance.randrange(1, 255)}"
    return Reported(report, agent, RequestFacts(ip=ip))
