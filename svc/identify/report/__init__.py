"""Free-form signals in, one canonical `Report` out, whatever library collected them (docs/report-fields.md).

What may live here: the choice of adapters, and the order in which they are believed. One module per collector
(`fingerprintjs`, `thumbmark`, `fpscanner`, `botd`, `probes`, `native`, `plain`) has its table of fields; beside them
are the engine that reads through a table (`table`), the converters that they share (`values`, `canonical`), and what a
browser garbles on purpose (`masks`). Nothing outside this package knows the shape of a report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from svc.identify.model import Attribute, Claims, Report, RequestFacts
from svc.identify.report import botd, fingerprintjs, fpscanner, native, plain, probes, thumbmark, values
from svc.identify.report.masks import deliberate_noise
from svc.identify.report.table import IN_ANY_REPORT, Adapter, Reading, Signals, first_part

__all__ = ["ADAPTERS", "read_report"]

MAX_LEAVES = 128
"""Leaves kept for near comparison, over all collectors of a report."""

ADAPTERS: tuple[Adapter, ...] = (
    native.ADAPTER,
    fingerprintjs.ADAPTER,
    thumbmark.ADAPTER,
    probes.ADAPTER,
    fpscanner.ADAPTER,
    plain.ADAPTER,
    botd.ADAPTER,
)
"""In the order in which they are believed. `plain` reads what those before it left."""


def read_report(signals: Signals, facts: RequestFacts) -> Report:
    """Read any JSON object: every shape, every wrong type and every size gives a `Report`, never an exception.

    The adapters are chosen by what the report looks like. The first that recognizes a part gives the attributes, the
    later ones fill what it left open; a value is always prefixed by the collector it came from, so values of two
    libraries are never equal. Source: docs/report-fields.md.
    """
    taken: set[str] = set()
    readings = [reading for adapter in ADAPTERS if (reading := adapter.read(signals, taken)) is not None]
    common = {} if IN_ANY_REPORT.names.isdisjoint(signals) else IN_ANY_REPORT.read("", signals).parts
    claims = _claims(readings)
    attributes: dict[Attribute, str] = {}
    rest: set[str] = set()
    for reading in reversed(readings):
        prefix = reading.collector + ":"
        attributes |= {attribute: prefix + value for attribute, value in reading.attributes.items()}
        rest.update(reading.rest)
    kept = tuple(sorted(rest)[:MAX_LEAVES])
    if kept:
        attributes[Attribute.REST] = f"{readings[0].collector}:{values.digest(chr(10).join(kept))}"
    masked = deliberate_noise(claims, facts, readings, incognito=common.get("incognito"))
    for attribute in masked:
        attributes.pop(attribute, None)
    if "client_token" not in common or native.ADAPTER.name in {reading.collector for reading in readings}:
        # It says that the window is private or its storage was cleared, which an app cannot know of itself.
        common["client_token_is_new"] = False
    return Report(
        collectors=tuple([reading.collector for reading in readings]),
        attributes=attributes,
        fonts=() if Attribute.FONTS in masked else claims.fonts or (),
        rest=kept,
        masked=masked,
        claims=claims,
        botd=first_part(readings, "botd"),
        device_id=first_part(readings, "device_id"),
        device_flags=first_part(readings, "device_flags") or (),
        factory_reset_at_ms=first_part(readings, "factory_reset_at_ms"),
        **common,
    )


def _claims(readings: Sequence[Reading]) -> Claims:
    """Join the claims. The first collector that has a value is believed, but one that sees a webdriver is enough."""
    if len(readings) == 1:
        return Claims(**readings[0].claims)
    said: dict[str, Any] = {}
    for reading in reversed(readings):
        said |= reading.claims
    if any(reading.claims.get("webdriver") is True for reading in readings):
        said["webdriver"] = True
    return Claims(**said)
