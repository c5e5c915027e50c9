"""The comparison of a report with the record of one visitor, attribute by attribute.

What may live here: which attributes differ, and how likely these differences are if both are the same device. What
follows from that is the business of `decision`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from svc.identify.matching import parameters
from svc.identify.matching.chance import BIT
from svc.identify.matching.learned.return_intervals import ROW_OF_DAY
from svc.identify.model import Attribute

if TYPE_CHECKING:
    from svc.identify.matching.changes import ChangeRow
    from svc.identify.matching.features import Features
    from svc.identify.matching.visitor import Visitor

_FONTS, _REST = _SETS = int(Attribute.FONTS), int(Attribute.REST)
LEADERS: Final = tuple(
    tuple(
        0 if leader is None or (leader is Attribute.CANVAS and not upgraded) else BIT[leader]
        for leader in map(parameters.FOLLOWS.get, Attribute)
    )
    for upgraded in (False, True)
)
"""[version changed][attribute] -> bit of the attribute whose change explains it."""
INDEPENDENT: Final = sum(BIT[attribute] for attribute in Attribute if attribute not in parameters.FOLLOWS)


def differences(features: Features, visitor: Visitor) -> int:
    """Return the bit mask over `Attribute` of the values that changed or are no longer reported; a value that the
    visitor had before is not a change.
    """
    differing, attribute = 0, -1
    for new, old in zip(features.values, visitor.values, strict=True):
        attribute += 1
        if new != old and old and (attribute, new) not in visitor.former:
            differing |= BIT[attribute]
    return differing


def compare(features: Features, visitor: Visitor, logs: ChangeRow, leaders: tuple[int, ...]) -> tuple[float, int]:
    """Return the log likelihood of the differences if it is the same device, and the bit mask of the agreeing
    attributes. `logs`: a row of `change_table`; `leaders`: for each attribute the mask of those that it follows from, 0
    = none.
    """
    log_kept, log_changed = logs
    former = visitor.former
    likelihood, agreement = 0.0, 0
    for new, old, kept, bit in zip(features.values, visitor.values, log_kept, BIT, strict=True):
        if new == old:
            agreement |= bit
            if new:
                likelihood += kept
        elif new and old:
            attribute = bit.bit_length() - 1
            leader = leaders[attribute]
            followed = leader and not agreement & leader
            if former and (attribute, new) in former:
                likelihood += parameters.LOG_HABIT_FOLLOWED if followed else parameters.LOG_HABIT
                agreement |= bit
            elif followed:
                likelihood += parameters.LOG_FOLLOWED
            else:
                change = log_changed[attribute]
                if attribute in _SETS:
                    change += _set_correction(features, visitor, attribute)
                likelihood += change
                if former:
                    times = sum(known == attribute for known, _ in former)
                    likelihood += parameters.LOG_CHANGED_BEFORE * math.log1p(times)
    return likelihood, agreement


def _set_correction(features: Features, visitor: Visitor, attribute: int) -> float:
    """Return a correction for a changed set, by how much of it stayed."""
    if attribute == _FONTS:
        ours, theirs = features.font_sketch, visitor.font_sketch
        if ours and theirs:
            return parameters.LOG_NEAR_FONTS if _near(ours, theirs) else parameters.LOG_FAR_FONTS
    elif attribute == _REST:
        ours, theirs = features.rest_sketch, visitor.rest_sketch
        if ours and theirs:
            return parameters.LOG_NEAR_REST if _near(ours, theirs) else parameters.LOG_FAR_REST
    return 0.0


def row_of(gap_days: int) -> int:
    """Return the index in a `ChangeTable`, within one number of releases, of the row for a gap of `gap_days`."""
    return ROW_OF_DAY[min(gap_days, len(ROW_OF_DAY) - 1)]


def is_other_program(features: Features, visitor: Visitor, gap_s: int) -> bool:
    """Return whether the browser version fell by releases since the visitor's last visit, or rose by many within days:
    then it is another program with the same engine, such as an app with an engine of its own.
    """
    ours, theirs = features.browser_version, visitor.browser_version
    if not ours or not theirs:
        return False
    leapt = ours - theirs >= parameters.LEAPS_TENTHS and gap_s < parameters.LEAPS_WITHIN_S
    return leapt or theirs - ours >= parameters.FALLS_TENTHS


def changed_first(ahead: Visitor, behind: Visitor, features: Features) -> bool:
    """Return whether the report is what `behind` would send after the changes that `ahead` had already: two equal
    devices, of which one was updated before the other.
    """
    if 0 < features.browser_version < behind.browser_version or 0 < features.os_release < behind.os_release:
        return False
    former = ahead.former
    return all(
        new == old or not new or not old or (attribute, old) in former
        for attribute, (new, old) in enumerate(zip(features.values, behind.values, strict=True))
    )


def other_version(features: Features, visitor: Visitor) -> float:
    """Return the log likelihood of another browser or system version on the same device, lower for each version that
    decreased. The changes that a version causes in the report are not included.
    """
    downgrades = (0 < features.browser_version < visitor.browser_version) + (
        0 < features.os_release < visitor.os_release
    )
    likelihood = parameters.LOG_OTHER_VERSION + downgrades * parameters.LOG_VERSION_DOWN
    if features.browser_version and features.family == visitor.family:
        fallen = visitor.browser_version - features.browser_version - 10
        likelihood += parameters.LOG_TENTH_DOWN * max(fallen, 0)
    return likelihood


def _near(ours: int, theirs: int) -> bool:
    return 4 * (ours & theirs).bit_count() >= 3 * (ours | theirs).bit_count()
