"""What differs between a report and the record of its visitor: names for people, no part of a link decision."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

from svc.identify.matching import parameters
from svc.identify.matching.features import Features
from svc.identify.matching.visitor import Visitor
from svc.identify.model import Attribute

ChangeRow = tuple[tuple[float, ...], tuple[float, ...]]
"""Per attribute: log P(kept), log P(changed)."""
ChangeTable = tuple[tuple[ChangeRow, ...], ...]
"""By releases between the visits, by days of absence."""

TABLE_OF_RELEASES: Final = tuple(
    min(range(len(parameters.CHANGE_RELEASES)), key=lambda table: abs(parameters.CHANGE_RELEASES[table] - releases))
    for releases in range(parameters.CHANGE_RELEASES[-1] + 1)
)


@cache
def _gone(mobile: int) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Tabulate probabilities that attributes change, by releases, days between two visits and attribute."""
    rates = parameters.CHANGE_MOBILE if mobile else parameters.CHANGE_DESKTOP

    def gone(attribute: Attribute, day: int, releases: int) -> float:
        base, daily, release = rates[attribute]
        return 1 - (1 - base) * math.exp(-daily * day) * (1 - release) ** (releases**0.5)

    return tuple(
        tuple(tuple(gone(attribute, day, releases) for attribute in Attribute) for day in parameters.CHANGE_DAYS)
        for releases in parameters.CHANGE_RELEASES
    )


def change_table(mobile: int, scale: list[float]) -> ChangeTable:
    """Return the log probabilities that attributes keep or change their value, by the releases and days between two
    visits. `scale`: one factor per attribute, which corrects the built-in rates.
    """

    def row(gone: tuple[float, ...]) -> ChangeRow:
        changes = [
            min(max(each * by, parameters.CHANGE_FLOOR), parameters.CHANGE_CEILING)
            for each, by in zip(gone, scale, strict=True)
        ]
        return tuple([math.log(1 - change) for change in changes]), tuple([math.log(change) for change in changes])

    return tuple(tuple(map(row, rows)) for rows in _gone(mobile))


def releases_between(features: Features, visitor: Visitor) -> int:
    """Return how many releases of browser or system lie between report and last visit: 1 at least if any differs."""
    browser = features.browser_version - visitor.browser_version
    if not features.browser_version or not visitor.browser_version:
        browser = 0
    system_moved = features.os_release != visitor.os_release and features.os_release and visitor.os_release
    if not browser and not system_moved:
        return 0
    # Browser versions count tenths of a major release.
    return min(max(abs(browser) // 10, 1), parameters.CHANGE_RELEASES[-1])


@cache
def unlearned_table(mobile: int) -> ChangeTable:
    """Return the table of desktops or of mobiles by the built-in rates alone."""
    return change_table(mobile, [1.0] * parameters.ATTRIBUTE_COUNT)


@cache
def change_rates(mobile: int) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Return the built-in probability that each attribute changes, by releases and days as a `ChangeTable`."""
    return tuple(
        tuple(tuple(math.exp(log) for log in changed) for _, changed in rows) for rows in unlearned_table(mobile)
    )


_NAMES: Final = tuple(attribute.name.lower() for attribute in Attribute)


def changes(features: Features, visitor: Visitor) -> tuple[str, ...]:
    """Return what differs from the last report that was surely this visitor's (decisions 7.3): names of `Attribute` in
    lower case and in its order, then `browser_version`, `os_version`, and `device_class` if system or browser is
    another one. Values that either side did not report are ignored. Values of two collectors cannot be compared: then
    `collector` stands for the attributes.
    """
    found: list[str] = []
    if features.collector == visitor.collector:
        pairs = zip(_NAMES, features.values, visitor.values, strict=True)
        found += [name for name, new, old in pairs if new != old and new and old]
    else:
        found.append("collector")
    versions = (
        ("browser_version", features.browser_version, visitor.browser_version),
        ("os_version", features.os_release, visitor.os_release),
    )
    found += [name for name, new, old in versions if new != old and new and old]
    if features.family != visitor.family:
        found.append("device_class")
    return tuple(found)
