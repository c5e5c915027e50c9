"""The probes of the project's own web SDK (`signals.probes`, version 1): what neither library that it uses asks.

What may live here: where the probes stand in a report, and what they mean. Another version of them is another table;
one that is not known is only archived. `web/sdk/src/report.ts` writes them.
"""

from __future__ import annotations

from svc.identify.report import canonical
from svc.identify.report.table import Adapter, FieldTable, ReportPart, Signals, fields
from svc.identify.report.values import flag, members, short_text, text_of, whole

VERSION = 1
_CONTEXT = "{userAgent,platform,language,cores,memory,webdriver,gpuVendor,gpuRenderer,timeZone}"


def _find(signals: Signals, taken: set[str]) -> ReportPart | None:
    """Return the object `probes` if its version is known."""
    del taken
    named = members(signals.get("probes"))
    version = named.get("version")
    return ReportPart(named) if type(version) is int and version == VERSION else None


TABLE = FieldTable(
    fields(text_of(1_024), user_agent="contexts.page.userAgent"),
    fields(short_text, platform="contexts.page.platform", language="contexts.page.language"),
    fields(canonical.language_list, languages="contexts.page.{languages,language}"),
    fields(canonical.time_zone, timezone="contexts.page.timeZone"),
    fields(canonical.client_hints, hints=f"hints.{canonical.HINTS}"),
    fields(whole, plugin_count="plugins.count"),
    fields(canonical.plugins_patched, plugins_patched="plugins.{genuine,linked,overflows}"),
    fields(flag, canvas_noise="canvas.noise", framed="screen.framed"),
    fields(canonical.pixel_ratio, PIXEL_RATIO="screen.pixelRatio"),
    fields(canonical.pointer, pointer="media.{anyPointer,anyHover}"),
    fields(canonical.contexts, contexts=f"contexts.iframe.{_CONTEXT} + contexts.worker.{_CONTEXT}"),
    fields(canonical.webdriver_anywhere, webdriver="drivers.webdriver + contexts.{page,iframe,worker}.webdriver"),
    fields(
        canonical.driver_marks,
        driver_marks="drivers.{webdriver,inspected,playwright,selenium,webdriverWritable}",
    ),
)

ADAPTER = Adapter("probes", "`probes`, where its `version` is 1", _find, TABLE, canonical.complete)
