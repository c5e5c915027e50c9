"""BotD (1.x and 2.x): `signals.botd` holds components of `{state, value}`, 0 meaning that it could be read.

What may live here: which components could be read and what they say. The verdicts are drawn in `detection`, not here,
and the library's own verdict is only archived.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from svc.domain.report import values
from svc.domain.report.canonical import listed_languages
from svc.domain.report.table import Adapter, FieldTable, ReportPart, Signals, fields
from svc.domain.report.values import MAX_LIST, entries_of, flag, is_unicode, members, number, text, text_of, whole

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


def _find(signals: Signals, taken: set[str]) -> ReportPart | None:
    """The values of the components that could be read, cut to a bounded size."""
    del taken
    components = members(signals.get("botd"))
    is_botd = False
    readable: Signals = {}
    budget = _Budget(MAX_VALUES)
    for name, component in islice(components.items(), MAX_COMPONENTS):
        fields = members(component)
        state = fields.get("state")
        if type(state) is not int or len(name) > 64:
            continue
        is_botd = True
        if state == SUCCESS:
            value = _bounded(fields.get("value"), 0, budget)
            if value is not None and is_unicode(name):
                readable[name] = value
    if not is_botd:
        return None
    return ReportPart({"value": readable, "state": {"webGL": members(components.get("webGL")).get("state")}})


def _bounded(value: Any, depth: int, budget: _Budget) -> Any:
    """The value with long text cut, long lists shortened and what is nested too deep left out."""
    kind = value.__class__
    if kind is str:
        return value[:LONGEST_TEXT] if value.isascii() or is_unicode(value) else None
    if kind is bool or value is None:
        return value
    if kind is dict and depth < MAX_DEPTH:
        fields = members(value)
        return {
            name: _bounded(inner, depth + 1, budget)
            for name, inner in islice(fields.items(), budget.take(min(len(fields), MAX_COMPONENTS)))
            if len(name) <= 64 and (name.isascii() or is_unicode(name))
        }
    if kind is list and depth < MAX_DEPTH:
        entries = entries_of(value)
        shown = budget.take(min(len(entries), MAX_LIST >> 2 * depth))
        return [_bounded(inner, depth + 1, budget) for inner in entries[:shown]]
    return number(value)


def _readable(components: Any) -> Any:
    """Object of at most 64 components and 4,000 values, texts of at most 2,048 characters."""
    return components


def _renderer(value: Any) -> str | None:
    """Text of at most 256 characters, not the masked name."""
    return None if value == MASKED_RENDERER else text(value, 256)


TABLE = FieldTable(
    fields(_readable, botd="value.*"),
    fields(values.when(NULL, result=False), webgl="state.webGL"),
    fields(text_of(1_024), user_agent="value.userAgent"),
    fields(text_of(32), product_sub="value.productSub"),
    fields(listed_languages, languages="value.languages"),
    fields(values.size, outer_window="value.windowSize.{outerWidth,outerHeight}"),
    fields(values.size, inner_window="value.windowSize.{innerWidth,innerHeight}"),
    fields(_renderer, gpu_renderer="value.webGL.renderer"),
    fields(flag, focused="value.documentFocus", webdriver="value.webDriver"),
    fields(whole, plugin_count="value.pluginsLength", eval_length="value.evalLength"),
)

ADAPTER = Adapter(
    "botd", "`botd`: `value.NAME` is the `value` of component `NAME`, `state.NAME` its `state`", _find, TABLE
)
