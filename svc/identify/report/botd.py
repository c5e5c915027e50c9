"""BotD (1.x and 2.x): `signals.botd` holds components of `{state, value}`, 0 meaning that it could be read.

What may live here: which components could be read and what they say. The verdicts are drawn in `detection`, not here,
and the library's own verdict is only archived.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from svc.identify.report import values
from svc.identify.report.canonical import listed_languages
from svc.identify.report.table import Adapter, FieldTable, ReportPart, Signals, fields
from svc.identify.report.values import flag, members, text, text_of, whole

SUCCESS = 0
NULL = -4
"""State of a component that the browser does not have."""
MAX_COMPONENTS = 64
LONGEST_NAME = 64
MASKED_RENDERER = "WebKit WebGL"
"""BotD asks for the masked names: constants of the engine, but for the renderer of Firefox."""


def _find(signals: Signals, taken: set[str]) -> ReportPart | None:
    """Return the values of the components that could be read, unchanged: the reader of one bounds what it looks at."""
    del taken
    components = members(signals.get("botd"))
    is_botd = False
    readable: Signals = {}
    for name, component in islice(components.items(), MAX_COMPONENTS):
        state = component.get("state") if component.__class__ is dict else None
        if state.__class__ is not int or len(name) > LONGEST_NAME:
            continue
        is_botd = True
        if state == SUCCESS:
            value = component.get("value")
            if value is not None:
                readable[name] = value
    if not is_botd:
        return None
    return ReportPart({"value": readable, "state": {"webGL": members(components.get("webGL")).get("state")}})


def _readable(components: Any) -> Any:
    """Object of at most 64 components, each looked at as far as a rule needs."""
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
