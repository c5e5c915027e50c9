"""Reports that mean harm: wrong types, depth and size in every key that an adapter knows, and how long they take.

Every report has as much in it as the API accepts, or more: 1 MiB, 20,000 values, 32 levels. Times are CPU time of this
process for the adapters, the user agent and detection on every platform together.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from bench.detection.automation import ADDRESS, look
from bench.linkage.tables import Table
from svc.identify.detection import detect
from svc.identify.model import Network, RequestFacts
from svc.identify.report import fingerprintjs, fpscanner, native, plain, thumbmark
from svc.kernel.values.environments import PLATFORMS

BOUND_MS = 20.0
SIZE = 1_000_000
COUNT = 19_000
LEVELS = 30
TIMES = 3
"""Runs of each report, of which the quickest counts: what the machine does meanwhile is not the report's doing."""
WORST = 8
"""Reports shown."""

USER_AGENT = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36"
)
NETWORK = Network(state="enriched", country_code="DE", vpn=True)

BOTD = (
    "appVersion", "browserKind", "distinctiveProps", "documentElementKeys", "errorTrace", "evalLength", "functionBind",
    "languages", "pluginsLength", "process", "productSub", "userAgent", "webGL", "windowExternal", "windowSize",
)  # fmt: skip


def _deep() -> Any:
    value: Any = 1
    for _ in range(LEVELS // 2):
        value = {"a": [value]}
    return value


VALUES: dict[str, Any] = {
    "number": 1e308,
    "true": True,
    "null": None,
    "long text": "x" * SIZE,
    "text of signs": "é(,)=/;ANGLE (" * (SIZE // 14),
    "list of numbers": list(range(COUNT)),
    "list of texts": ["ALIASED_POINT_SIZE_RANGE=1=1,1023 x" + "y" * 16] * COUNT,
    "list of objects": [{"name": "n", "brand": "Not A Brand", "version": "1"}] * (COUNT // 4),
    "object": {f"key{number}": number for number in range(COUNT)},
    "object of texts": {f"key{number}": "Android Windows " * 3 for number in range(COUNT // 2)},
    "deep": _deep(),
}

SECTION_KEYS = (
    "automation", "webdriver", "selenium", "userAgent", "platform", "cpuCount", "memory", "language", "languages",
    "vendor", "renderer", "plugins", "highEntropyValues", "features", "canvas", "webGL", "screenResolution",
)  # fmt: skip


def reports() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every hostile value in every known key of every adapter, and in all keys of one at once."""
    keys = {
        "fingerprintjs": sorted(fingerprintjs.KNOWN),
        "botd": BOTD,
        "thumbmark": sorted(thumbmark.KNOWN),
        "fpscanner": (*fpscanner.SECTIONS, *SECTION_KEYS),
        "native": sorted(native.READ_HERE),
        "plain": sorted(plain.READ_HERE),
    }
    for adapter, names in keys.items():
        for name in names:
            for shape, value in VALUES.items():
                yield f"{adapter}.{name}: {shape}", _report(adapter, {name: value})
        for shape, value in VALUES.items():
            part = value[: len(value) // len(names)] if isinstance(value, str | list) else value
            if not isinstance(part, dict):
                yield f"{adapter}, every key: {shape}", _report(adapter, dict.fromkeys(names, part))


def _report(adapter: str, values: dict[str, Any]) -> dict[str, Any]:
    """A report of one collector around the values."""
    match adapter:
        case "fingerprintjs":
            return {"components": {name: {"value": value, "duration": 1} for name, value in values.items()}}
        case "botd":
            return {"botd": {name: {"value": value, "state": 0} for name, value in values.items()}}
        case "thumbmark":
            return {"thumbmark": {"hardware": {"videocard": {}}, **values}}
        case "fpscanner":
            sections = {name: values.get(name, dict(values)) for name in fpscanner.SECTIONS}
            return {"fpscanner": {**sections, **{mark: dict(values) for mark in fpscanner.MARKS if mark not in values}}}
        case "native":
            return {"platform": "android", "device": {"model": "x"}, **values}
        case _:
            return {"userAgent": USER_AGENT, **values}


def hostile_table() -> Table:
    """The slowest of all hostile reports, in milliseconds of CPU."""
    facts = RequestFacts(ip=ADDRESS, user_agent=USER_AGENT, accept_language="de," * 20_000)
    times: list[tuple[float, str]] = []
    for name, signals in reports():
        times.append((min(_milliseconds(signals, facts) for _ in range(TIMES)), name))
    times.sort(reverse=True)
    table = Table("Hostile reports", ("report", "ms of CPU"))
    table.rows.extend((name, f"{spent:.2f}") for spent, name in times[:WORST])
    over = sum(spent > BOUND_MS for spent, _ in times)
    table.rows.append((f"{len(times):,} reports; over {BOUND_MS:.0f} ms: {over}", ""))
    return table


def _milliseconds(signals: dict[str, Any], facts: RequestFacts) -> float:
    started = time.process_time()
    looked = look(signals, facts)
    for platform in PLATFORMS:
        detect(*looked, NETWORK, platform)
    return 1e3 * (time.process_time() - started)
