"""BotD (1.x and 2.x): `signals.botd` holds components of `{state, value}`, 0 meaning that it could be read.

What may live here: which components could be read and what they say. The verdicts are drawn in `detection`, not here,
and the library's own verdict is only archived.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from svc.domain.report.canonical import listed_languages
from svc.domain.report.reading import Reading
from svc.domain.report.values import MAX_LIST, entries_of, flag, is_unicode, members, number, size, text, whole

NAME = "botd"

SUCCESS = 0
NULL = -4
"""State of a component that the browser does not have."""
MAX_COMPONENTS = 64
MAX_DEPTH = 4
MAX_VALUES = 4_000
"""In all components together; those of a browser have some hundreds. A body may have five times as many."""
LONGEST_TEXT = 2_048
MASKED_RENDERER = "WebKit WebGL"
"""BotD asks for the masked names. The vendor is a constant of the engine, and so is this; only Firefox names the real
renderer."""


class _Budget:
    """How many values may still be kept."""

    def __init__(self, left: int) -> None:
        self._left = left

    def take(self, count: int) -> int:
        """How many of these."""
        taken = min(count, self._left)
        self._left -= taken
        return taken


def read(signals: dict[str, Any]) -> Reading | None:
    """The components that could be read, cut to a bounded size, or `None` when there is no such report."""
    components = members(signals.get("botd"))
    recognised = False
    readable: dict[str, Any] = {}
    budget = _Budget(MAX_VALUES)
    for name, component in islice(components.items(), MAX_COMPONENTS):
        fields = members(component)
        state = fields.get("state")
        if type(state) is not int or len(name) > 64:
            continue
        recognised = True
        if state == SUCCESS:
            value = _bounded(fields.get("value"), 0, budget)
            if value is not None and is_unicode(name):
                readable[name] = value
    if not recognised:
        return None
    claims = _claims(readable)
    if members(components.get("webGL")).get("state") == NULL:
        claims["webgl"] = False
    return Reading(collector=NAME, attributes={}, claims=claims, rest=[], botd=readable)


def _claims(readable: dict[str, Any]) -> dict[str, Any]:
    window = members(readable.get("windowSize"))
    renderer = text(members(readable.get("webGL")).get("renderer"), 256)
    return {
        "user_agent": text(readable.get("userAgent"), 1_024),
        "product_sub": text(readable.get("productSub"), 32),
        "languages": listed_languages(readable.get("languages")),
        "outer_window": size(window.get("outerWidth"), window.get("outerHeight")),
        "inner_window": size(window.get("innerWidth"), window.get("innerHeight")),
        "gpu_renderer": None if renderer == MASKED_RENDERER else renderer,
        "focused": flag(readable.get("documentFocus")),
        "plugin_count": whole(readable.get("pluginsLength")),
        "webdriver": flag(readable.get("webDriver")),
        "eval_length": whole(readable.get("evalLength")),
    }


def _bounded(value: Any, depth: int, budget: _Budget) -> Any:
    """The value with long text cut, long lists shortened and what is nested too deep left out."""
    kind = value.__class__
    if kind is str:
        return value[:LONGEST_TEXT] if is_unicode(value) else None
    if kind is bool:
        return value
    if kind is dict and depth < MAX_DEPTH:
        fields = members(value)
        return {
            name: _bounded(inner, depth + 1, budget)
            for name, inner in islice(fields.items(), budget.take(min(len(fields), MAX_COMPONENTS)))
            if len(name) <= 64 and is_unicode(name)
        }
    if kind is list and depth < MAX_DEPTH:
        entries = entries_of(value)
        shown = budget.take(min(len(entries), MAX_LIST >> 2 * depth))
        return [_bounded(inner, depth + 1, budget) for inner in entries[:shown]]
    return number(value)
