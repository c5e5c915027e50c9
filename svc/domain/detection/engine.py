"""Which engine runs the page: constants, the way errors are written, and interfaces that one engine alone has.

What may live here: checks that compare the engine of the user agent with what only another engine would answer. They
all look at one place, the engine, so that a page shown by another engine is one contradiction however often it shows.
"""

from __future__ import annotations

from typing import Any

from svc.domain.detection.claimed import BrowserEngine, Claimed
from svc.domain.detection.findings import Findings
from svc.domain.model import Claims, ClientHints

_VENDORS: dict[str, BrowserEngine] = {"Google Inc.": "chromium", "Apple Computer, Inc.": "webkit"}
_PRODUCTS = ("20030107", "20100101")
_LENGTH_OF_EVAL = {33: ("chromium",), 37: ("gecko", "webkit")}
"""Length of `eval.toString()` -> the engines that write it so."""

FIRST_STEADY_CHROMIUM = 100
"""The first version of which the checks that ask for today's interfaces speak."""

V8_MATHS = {
    "acos": 1.4473588658278522,
    "acosh": 709.889355822726,
    "acoshPf": 355.291251501643,
    "asin": 0.12343746096704435,
    "asinh": 0.881373587019543,
    "atanh": 0.5493061443340548,
    "atan": 0.4636476090008061,
    "sin": 0.8178819121159085,
    "sinh": 1.1752011936438014,
    "cos": -0.8390715290095377,
    "cosh": 1.5430806348152437,
    "tan": -1.4214488238747245,
    "tanh": 0.7615941559557649,
    "expm1": 1.718281828459045,
    "log1p": 2.3978952727983707,
}
"""What FingerprintJS's questions are answered by V8, which computes these in software, the same on all machines. Seen
without a change in Chromium 109 to 156."""

FEWEST_WRONG_MATHS = 3
"""Answers that must differ: one that a compiler rounds otherwise shows nothing."""


def detect_engine(
    claims: Claims, sent: ClientHints, components: dict[str, Any], claimed: Claimed, findings: Findings
) -> None:
    """Add contradictions of what the browser's engine answered with the engine that is claimed; nothing where none is.
    `sent`: the hints of the request's headers; `components`: those of BotD.
    """
    engine = claimed.engine
    if engine is None:
        return
    vendor = _VENDORS.get(claims.vendor) if claims.vendor else None
    checks = {
        "vendor_vs_user_agent": vendor is not None and vendor != engine,
        "product_sub_vs_user_agent": (
            claims.product_sub in _PRODUCTS and (claims.product_sub == "20100101") != (engine == "gecko")
        ),
        "eval_length_vs_user_agent": engine not in _LENGTH_OF_EVAL.get(claims.eval_length or 0, (engine,)),
        "error_stack_vs_user_agent": _is_stack_of_another(engine, components.get("errorTrace")),
        "features_vs_user_agent": _are_features_of_another(claimed, components.get("browserEngineKind")),
        "math_vs_user_agent": _is_math_of_another(claimed, claims.math),
        # Neither Firefox nor Safari has client hints.
        "hints_of_another_engine": engine != "chromium" and bool(claims.hints.brands or sent.brands),
        "os_cpu_of_another_engine": engine != "gecko" and claims.os_cpu is not None,
    }
    for evidence, differs in checks.items():
        if differs:
            findings.contradict("engine", "engine_mismatch", evidence)


def _is_stack_of_another(engine: BrowserEngine, trace: Any) -> bool:
    """V8 writes `at function (place)`, the others `function@place`."""
    if not isinstance(trace, str):
        return False
    start = trace[:2048]
    chromium = "\n    at " in start
    return (chromium or "@" in start) and chromium != (engine == "chromium")


def _are_features_of_another(claimed: Claimed, kind: Any) -> bool:
    """BotD counts interfaces to find the engine. Phones' web views lack too many of them for that."""
    if kind not in ("chromium", "gecko", "webkit") or not claimed.desktop:
        return False
    recent = claimed.engine != "chromium" or claimed.version >= FIRST_STEADY_CHROMIUM
    return recent and kind != claimed.engine


def _is_math_of_another(claimed: Claimed, math: dict[str, float] | None) -> bool:
    if math is None or claimed.engine != "chromium" or claimed.version < FIRST_STEADY_CHROMIUM:
        return False
    wrong = sum(math[name] != value for name, value in V8_MATHS.items() if name in math)
    return wrong >= FEWEST_WRONG_MATHS
