"""Reports to measure with, every device different: made-up ones of plausible desktop browsers, and what the web SDK
sent from real browsers (`tests/captures`). See `Kind`.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from svc.features.identification.transaction import Recorded, identify
from svc.identify.identification import Submission, assess
from svc.identify.matching import Statistics
from svc.identify.model import RequestFacts
from svc.identify.network.facts import Ranges
from svc.kernel.store.store import Store
from svc.world import World, visitor_id

CAPTURES = Path(__file__).parents[1] / "tests" / "captures"

Kind = Literal["made-up", "small", "large"]
"""`made-up` are of 1.8 kB, as a collector of one's own may send. Of the web SDK, `small` is what browsers without WebGL
sent, 5.4 to 6.5 kB, and `large` what Chromium with WebGL sent, 19 to 20 kB. A third of that is sent, after gzip."""
KINDS = get_args(Kind)

ZONES = ("Europe/London", "Europe/Berlin", "America/New_York", "America/Los_Angeles", "Asia/Tokyo", "Australia/Sydney")
LANGUAGES = (["en-GB", "en"], ["de-DE", "de", "en"], ["en-US", "en"], ["es"], ["ja", "en-US"], ["en-AU", "en"])
SCREENS = ((1920, 1080), (1536, 864), (2560, 1440), (1366, 768), (1440, 900), (3840, 2160))
CARDS = ("Intel(R) UHD Graphics 620", "Intel(R) Iris(R) Xe Graphics", "NVIDIA GeForce RTX 3060", "AMD Radeon RX 66")
FONTS = (
    "Agency FB", "Arial Unicode MS", "Calibri", "Century", "Century Gothic", "Franklin Gothic", "Futura", "Gill Sans",
    "Haettenschweiler", "Helvetica Neue", "Leelawadee", "Lucida Bright", "Lucida Sans", "MS Outlook", "MS UI Gothic",
    "MT Extra", "Marlett", "Microsoft Uighur", "Monotype Corsiva", "Pristina", "Segoe UI Light", "SimHei", "Univers",
)  # fmt: skip


def device_report(number: int) -> dict[str, Any]:
    """The report of a device; the same number gives the same report."""
    chance = random.Random(number)
    zone = chance.randrange(len(ZONES))
    width, height = chance.choice(SCREENS)
    card = chance.choice(CARDS)
    return {
        "userAgent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/137.0.0.0 Safari/537.36",
        "uaData": {
            "brands": [
                {"brand": "Google Chrome", "version": "137"},
                {"brand": "Chromium", "version": "137"},
                {"brand": "Not/A)Brand", "version": "24"},
            ],
            "mobile": False,
            "platform": "Windows",
        },
        "platform": "Win32",
        "vendor": "Google Inc.",
        "productSub": "20030107",
        "languages": LANGUAGES[zone],
        "timezone": ZONES[zone],
        "screen": {
            "width": width,
            "height": height,
            "availWidth": width,
            "availHeight": height - 40,
            "colorDepth": 24,
            "devicePixelRatio": chance.choice((1, 1.25, 1.5, 2)),
        },
        "hardwareConcurrency": chance.choice((4, 8, 12, 16)),
        "deviceMemory": 8,
        "maxTouchPoints": 0,
        "webgl": {
            "vendor": "Google Inc. (Intel)",
            "renderer": f"ANGLE ({card} (0x{chance.randrange(4096):08X}) Direct3D11 vs_5_0 ps_5_0, D3D11)",
        },
        "fonts": sorted(chance.sample(FONTS, 16)),
        "plugins": ["PDF Viewer", "Chrome PDF Viewer", "Chromium PDF Viewer", "Microsoft Edge PDF Viewer"],
        "audioCodecs": {"ogg": "probably", "mp3": "probably", "wav": "probably", "m4a": "maybe", "aac": "probably"},
        "videoCodecs": {"ogg": "", "h264": "probably", "webm": "probably"},
        "mediaDevices": {"speakers": 1, "micros": 1, "webcams": chance.randrange(2)},
        "canvas": f"{chance.getrandbits(128):032x}",
        "audio": "124.04347527516074",
        "extra": {"vendorFlavors": ["chrome"], "pdfViewerEnabled": True, "installedApps": []},
        "performance": {f"mark{index}": chance.getrandbits(32) / 1000 for index in range(8)},
    }


def submitted(world: World, signals: dict[str, Any], facts: RequestFacts, **given: Any) -> Submission:
    """What identify is asked with this report: now, of organization 1 in production, and as `given` says otherwise."""
    fields: dict[str, Any] = {
        "at_ms": world.now_ms(),
        "organization": 1,
        "key_id": "key_bench",
        "touched_key": None,
        "environment": "production",
        "sdk_platform": "web",
        "sdk_version": None,
        "origin": None,
        "tag": None,
        "idempotency": None,
        **given,
    }
    if "signals_json" not in given:
        fields["signals_json"] = msgspec.json.encode(signals)
    return Submission(
        request_id=world.request_id(fields["at_ms"]),
        new_visitor_id=visitor_id(world.entropy, fields["at_ms"]),
        facts=facts,
        signals=signals,
        **fields,
    )


def identified(store: Store, submissions: Sequence[Submission], ranges: Ranges, learned: Statistics) -> list[Recorded]:
    """What a store records of these, committed as one group; `learned` learns from it, as the pipeline's does."""
    jobs = [partial(identify, assessment=assess(one, ranges), statistics=learned) for one in submissions]
    found: list[Recorded] = []
    for recorded in store.write_now(jobs):
        assert isinstance(recorded, Recorded), recorded
        if recorded.statistics_update is not None:
            learned.learn(recorded.statistics_update)
        found.append(recorded)
    return found


def sdk_report(number: int, kind: Kind = "large") -> tuple[dict[str, Any], dict[str, str]]:
    """The report of a device as the web SDK sends it, `small` or `large`, and the headers of its request; the same
    number gives the same report.
    """
    captures = _captures(kind)
    capture = captures[number % len(captures)]
    signals = json.loads(capture["signals"])
    chance = random.Random(number)
    components = signals["components"]
    drawn = f"{chance.getrandbits(128):032x}"
    if "canvas" in components:
        components["canvas"]["value"] |= {"text": drawn}
    components["fonts"] = {"value": sorted(chance.sample(FONTS, 16))}
    if kind == "large":
        for name in ("renderer", "rendererUnmasked"):
            components["webGlBasics"]["value"][name] += f" 0x{number % 100:08X}"
    signals |= {"nonce": f"{chance.getrandbits(128):032x}", "collected_at": 1_790_000_000_000 + number}
    return signals, capture["headers"]


@cache
def _captures(kind: Kind) -> list[dict[str, Any]]:
    if kind == "large":
        read = _lines("sdk-upgrades")
    else:
        read = [one for one in _lines("sdk-browsers") if one["kind"] == "normal" and not _has_graphics(one)]
    return [{"signals": json.dumps(one["signals"]), "headers": one["headers"]} for one in read]


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((CAPTURES / f"{name}.jsonl.gz").read_bytes()).splitlines()]


def _has_graphics(capture: dict[str, Any]) -> bool:
    return isinstance(capture["signals"]["components"]["webGlExtensions"]["value"], dict)
