"""`read_report`: finds the collectors behind a report and joins what they found.

What may live here: the choice of adapters, the order in which they are believed, and the fields that any report may
carry whatever its shape.
"""

from __future__ import annotations

from typing import Any

from svc.domain.model import Attribute, Claims, ClientHints, Report, RequestFacts
from svc.domain.report import botd, fingerprintjs, fpscanner, native, plain, thumbmark
from svc.domain.report.masks import deliberate_noise
from svc.domain.report.reading import Reading
from svc.domain.report.values import digest, epoch_ms, flag, text

MAX_LEAVES = 128
"""Leaves kept for near comparison, over all collectors of a report."""


def read_report(signals: dict[str, Any], facts: RequestFacts) -> Report:
    """Read any JSON object: every shape, every wrong type and every size gives a `Report`, never an exception.

    The adapters are chosen by what the report looks like. The first that recognises a part gives the attributes, the
    later ones fill what it left open; a value is always prefixed by the collector it came from, so values of two
    libraries are never equal.
    """
    readings: list[Reading] = []
    taken: set[str] = set()
    platform = native.platform_of(signals)
    if platform is not None:
        readings.append(native.read(signals, platform))
    tree = thumbmark.tree_of(signals)
    components = fingerprintjs.components_of(signals)
    # A component of ThumbmarkJS that failed looks like one of FingerprintJS, but no object is both.
    if components is not None and components is not tree:
        readings.append(fingerprintjs.read(components))
        if components is signals:
            taken |= fingerprintjs.entry_names(signals)
    if tree is not None:
        readings.append(thumbmark.read(tree, alone=tree is not signals))
        if tree is signals:
            taken |= thumbmark.KNOWN
    sections = fpscanner.sections_of(signals)
    if sections is not None:
        readings.append(fpscanner.read(sections))
        taken.update(fpscanner.SECTIONS if sections is signals else ("signals",))
    # An app's report is as flat as a plain one, and uses some of its names.
    plain_reading = plain.read(signals, taken) if platform is None else None
    if plain_reading is not None:
        readings.append(plain_reading)
    botd_reading = botd.read(signals)
    if botd_reading is not None:
        readings.append(botd_reading)
    return _joined(signals, facts, readings)


def _joined(signals: dict[str, Any], facts: RequestFacts, readings: list[Reading]) -> Report:
    claims = _claims(readings)
    incognito = flag(signals.get("incognito"))
    attributes: dict[Attribute, str] = {}
    rest: list[str] = []
    for reading in readings:
        prefix = reading.collector + ":"
        for attribute, value in reading.attributes.items():
            if attribute not in attributes:
                attributes[attribute] = prefix + value
        rest += reading.rest
    rest = sorted(set(rest))[:MAX_LEAVES]
    if rest:
        attributes[Attribute.REST] = f"{readings[0].collector}:{digest(chr(10).join(rest))}"

    masked = deliberate_noise(claims, facts, readings, incognito=incognito)
    for attribute in masked:
        attributes.pop(attribute, None)
    vendor_id = next((reading.vendor_id for reading in readings if reading.vendor_id is not None), None)
    token = text(signals.get("client_token"), 64, shortest=16) or vendor_id
    return Report(
        collectors=tuple([reading.collector for reading in readings]),
        attributes=attributes,
        fonts=() if Attribute.FONTS in masked else claims.fonts or (),
        rest=tuple(rest),
        masked=masked,
        claims=claims,
        botd=next((reading.botd for reading in readings if reading.botd is not None), None),
        device_flags=next((reading.device_flags for reading in readings if reading.device_flags), ()),
        factory_reset_at_ms=next(
            (reading.factory_reset_at_ms for reading in readings if reading.factory_reset_at_ms is not None), None
        ),
        client_token=token,
        client_token_is_new=token is not None and signals.get("client_token_is_new") is True,
        collected_at_ms=epoch_ms(signals.get("collected_at")),
        nonce=text(signals.get("nonce"), 128, shortest=8),
        incognito=incognito,
        developer_tools=flag(signals.get("developer_tools")),
        deferred=signals.get("tier") == "deferred",
    )


def _claims(readings: list[Reading]) -> Claims:
    """What the collectors say, the first that says anything believed; but one that sees a webdriver is enough."""
    if len(readings) == 1:
        return Claims(**readings[0].claims)
    said: dict[str, Any] = {}
    for reading in readings:
        if reading.claims.get("webdriver") is True:
            said["webdriver"] = True
        for name, value in reading.claims.items():
            if value is not None and (name not in said or said[name] == _NO_HINTS):
                said[name] = value
    return Claims(**said)


_NO_HINTS = ClientHints()
