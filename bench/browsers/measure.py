"""Captures of browsers (`tests/captures`): the shapes in which one is sent, and what counts as right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench.browsers.pack import read_rows
from svc.identify.detection import detect
from svc.identify.detection.graphics import is_software_renderer
from svc.identify.model import Network, Observation, RequestFacts
from svc.identify.network.request_headers import read_fetch_metadata
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from svc.identify.useragent.agent import read_hints

Shape = Literal["libraries", "probes", "sdk"]
SHAPES: tuple[Shape, ...] = ("libraries", "probes", "sdk")
"""FingerprintJS and BotD as they document it; the same with what an SDK asks beside them, in the shape of fpscanner;
and as the web SDK sends it."""

ADDRESS = "203.0.113.7"
PROGRAMS = frozenset({"automation", "headless"})
CONTRADICTIONS = frozenset(
    {"os_mismatch", "engine_mismatch", "gpu_mismatch", "browser_tampering", "anti_detect_browser", "automation"}
)


_SDK_NAMES = {"cpuCount": "cores", "vendor": "gpuVendor", "renderer": "gpuRenderer", "timezone": "timeZone"}
"""Question as the captures name it -> as the web SDK does, where the two differ."""
_NOT_OF_THE_SDK = ("userAgentData", "domBlockers", "audioBaseLatency", "privateClickMeasurement", "dateTimeLocale")
"""Components that the SDK leaves out (`web/build.mjs`)."""


def as_the_sdk_sends(report: dict[str, Any]) -> dict[str, Any]:
    """A captured report in the shape of the web SDK."""
    asked = report["fpscanner"]
    contexts = {
        name: {_SDK_NAMES.get(question, question): answer for question, answer in answers.items()}
        for name, answers in asked["contexts"].items()
    }
    plugins = asked["browser"]["plugins"]
    # A sane page says what its iframe says, except for its user agent and the flag of drivers, which were captured.
    page = {"userAgent": asked["browser"]["userAgent"], "webdriver": asked["automation"].get("webdriver")}
    probes = {
        "version": 1,
        "contexts": {"page": page, "iframe": contexts.get("iframe"), "worker": contexts.get("webWorker")},
        "hints": asked["browser"].get("highEntropyValues"),
        "drivers": asked["automation"],
        "plugins": {
            "count": plugins["pluginCount"],
            "genuine": plugins["isValidPluginArray"],
            "linked": plugins["pluginConsistency1"],
            "overflows": plugins["pluginOverflow"],
        },
        "canvas": {"noise": asked["graphics"]["canvas"].get("hasModifiedCanvas")},
    }
    components = {name: value for name, value in report["components"].items() if name not in _NOT_OF_THE_SDK}
    given = {"components": components, "botd": report["botd"], "probes": probes, "incognito": report.get("incognito")}
    return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Capture:
    """One visit of a browser."""

    tag: str
    browser: str
    kind: str
    visit: int
    true: frozenset[str]
    """Signals that are true of this visit."""
    headers: dict[str, str]
    report: dict[str, Any]
    held_out: bool
    """Whether nobody looked at it before the rules were made."""

    def signals(self, shape: Shape) -> dict[str, Any]:
        if shape == "sdk":
            return as_the_sdk_sends(self.report)
        names = ("components", "botd") if shape == "libraries" else ("components", "botd", "fpscanner", "incognito")
        return {name: self.report[name] for name in names if self.report.get(name) is not None}

    def facts(self) -> RequestFacts:
        return RequestFacts(
            ip=ADDRESS,
            user_agent=self.headers.get("user-agent"),
            accept_language=self.headers.get("accept-language"),
            hints=read_hints(self.headers),
            context="secure",
            fetch=read_fetch_metadata(self.headers),
        )

    def observe(self, shape: Shape) -> tuple[Observation, ...]:
        facts = self.facts()
        report = read_report(self.signals(shape), facts)
        return detect(report, facts, read_agent(facts, report), Network(state="enriched"), "web")


def read_captures(file: Path) -> list[Capture]:
    """Captures in the order in which they were taken."""
    return [
        Capture(
            tag=row["tag"],
            browser=row["browser"],
            kind=row["kind"],
            visit=row["visit"],
            true=frozenset(row["true"]) | _of_machine(row["report"]),
            headers=row["headers"],
            report=row["report"],
            held_out=row["held_out"],
        )
        for row in read_rows(file)
    ]


def _of_machine(report: dict[str, Any]) -> frozenset[str]:
    """A software renderer is true of the machine, whatever the browser."""
    graphics = (report.get("components") or {}).get("webGlBasics", {}).get("value")
    names = [graphics.get("rendererUnmasked"), graphics.get("renderer")] if isinstance(graphics, dict) else []
    names += [answers.get("renderer") for answers in report["fpscanner"]["contexts"].values()]
    return frozenset({"virtual_machine"}) if any(map(is_software_renderer, names)) else frozenset()


def false_signals(capture: Capture, seen: Iterable[Observation]) -> set[str]:
    """Signals of a person's visit that are not true of it."""
    return {observation.signal for observation in seen} - capture.true


def is_found(capture: Capture, seen: Iterable[Observation]) -> bool:
    """Whether what was done to the browser shows: that it has no window or a driver, or another's name."""
    fired = {observation.signal for observation in seen}
    return bool(fired & (CONTRADICTIONS if capture.kind == "spoofed" else PROGRAMS))
