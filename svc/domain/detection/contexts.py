"""The same questions asked in the page, in an iframe and in a worker: of an honest browser the answers agree.

What may live here: checks that compare `Claims.contexts` with the page. Tools that change what a page sees, be they
stealth plugins or extensions, rarely reach into workers: what differs is false in the page, not in the worker.
"""

from __future__ import annotations

from typing import Any

from svc.domain.detection.claimed import COMPARED, Claimed, differ, read_claimed, system_of_platform
from svc.domain.detection.findings import Findings
from svc.domain.model import Attribute, Claims, Report

_GRAPHICS = ("gpu_vendor", "gpu_renderer")


def detect_contexts(report: Report, claimed: Claimed, findings: Findings) -> None:
    """Add findings where frames and workers give other values than the page. A value that only one side has shows
    nothing.
    """
    for name, answers in (report.claims.contexts or {}).items():
        if answers.get("webdriver") is True:
            findings.add("automation", f"webdriver_in_{name}", "definitive", "webdriver")
        _compare_agents(name, report.claims, answers, claimed, findings)
        _compare_values(name, report, answers, claimed, findings)


def _compare_agents(name: str, claims: Claims, answers: dict[str, Any], claimed: Claimed, findings: Findings) -> None:
    """By system, engine and version: on an iPad that asks for desktop pages, only the page says Macintosh."""
    inner = read_claimed(answers.get("user_agent"))
    if inner.headless:
        findings.add("headless", f"headless_user_agent_in_{name}", "definitive", "user_agent")
    system = system_of_platform(answers.get("platform"))
    outer_system = system_of_platform(claims.platform) or claimed.system
    if system is not None and outer_system is not None and system != outer_system:
        findings.contradict(name, "os_mismatch", f"platform_in_{name}")
    outer = read_claimed(claims.user_agent) if claims.user_agent else claimed
    for part in COMPARED:
        if differ(inner, outer, part):
            findings.contradict(name, COMPARED[part], f"user_agent_{part}_in_{name}")


def _compare_values(name: str, report: Report, answers: dict[str, Any], claimed: Claimed, findings: Findings) -> None:
    """What a browser garbles on purpose it may garble differently here and there."""
    claims = report.claims
    if Attribute.HARDWARE not in report.masked and _is_other_hardware(claims, answers, claimed):
        findings.contradict(name, "browser_tampering", f"hardware_in_{name}")
    if report.masked.isdisjoint((Attribute.GPU, Attribute.WEBGL)) and _differs(claims, answers, _GRAPHICS):
        findings.contradict(name, "browser_tampering", f"renderer_in_{name}", about="graphics")
    if Attribute.TIMEZONE not in report.masked and _is_other_zone(claims.timezone, answers.get("timezone")):
        findings.contradict(name, "browser_tampering", f"timezone_in_{name}", about="timezone")
    page = claims.language or (claims.languages[0] if claims.languages else None)
    language = answers.get("language")
    if page is not None and language is not None and page[:2].lower() != language[:2].lower():
        findings.contradict(name, None, f"language_in_{name}", about="languages")


def _is_other_hardware(claims: Claims, answers: dict[str, Any], claimed: Claimed) -> bool:
    page, there = claims.cores, answers.get("cores")
    if page is not None and there is not None:
        rounded = claimed.engine == "gecko"
        if _level(page) != _level(there) if rounded else page != there:
            return True
    return _differs(claims, answers, ("memory_gb",))


def _is_other_zone(page: str | None, there: str | None) -> bool:
    """By name. Where the page doesn't know one, FingerprintJS gives an offset such as `UTC+2`, which names none."""
    if page is None or there is None or page.startswith(("UTC+", "UTC-")):
        return False
    return page != there


def _level(cores: float) -> int:
    """Collectors round Firefox's cores to 4 or 8, as its private windows do; an iframe and a worker give the number."""
    return 8 if cores >= 8 else 4


def _differs(claims: Claims, answers: dict[str, Any], questions: tuple[str, ...]) -> bool:
    pairs = ((getattr(claims, question), answers.get(question)) for question in questions)
    return any(page is not None and there is not None and page != there for page, there in pairs)
