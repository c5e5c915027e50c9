"""One report, many new ids: whether a new visitor repeats what other new visitors sent lately (docs/signals.md).

What may live here: the judgment over visitors that sent the very same report, which the transaction has read. Pure.

A fresh id costs a cleared storage and another address; the report stays. But two phones of one model, language and
release send one report as well. What tells them apart is what else is alike: a common model has older visitors too, on
other releases, and some of them come back. A report that only new ids ever sent, each once and each from somewhere
else, is one device's; so it is where the organization knows enough devices of the class to know its models.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from svc.identify.history.evidence import DAY_S, ENOUGH_DEVICES, rare_device
from svc.identify.matching.blocks import EVERYTHING, BlockKey, attribute_keys, exact_key
from svc.identify.model import Observation

if TYPE_CHECKING:
    from svc.identify.matching import Features, Statistics, Visitor

WINDOW_S: Final = 7 * DAY_S
READ: Final = 16
"""Visitors that are looked at, of those that look alike: the newest."""
ENOUGH_OTHERS: Final = 2
"""New visitors that sent it lately, each from a network of its own. One is a cleared storage and a moved phone."""
CAME_BACK_S: Final = 6 * 3600
"""Between a visitor's first visit and its last, for it to count as one that comes back."""


def alike_key(features: Features) -> BlockKey:
    """Return the key of the block of devices that differ from this one at most in rendering and versions; if the report
    says too little for that, the block of the exact report.
    """
    keys = attribute_keys(features.family, features.collector, features.values)
    return keys[0] if keys and keys[0][0] == EVERYTHING else exact_key(features.exact)


def repeated_report(
    features: Features, now_s: int, alike: Iterable[Visitor], statistics: Statistics
) -> list[Observation]:
    """Return the signal `repeated_report` of a new visitor, and `repeated_rare_report` if the report is also rare; an
    empty list if chance explains the repetition. `alike`: the newest `READ` other visitors that differ from it at most
    in rendering and versions.
    """
    networks: set[int] = set()
    living = 0
    for other in alike:
        if _came_back(other):
            living += 1
        elif features.exact in other.exact_hashes and abs(now_s - other.first_seen_s) <= WINDOW_S:
            networks.add(other.networks[0][0] if other.networks else 0)
    repeats = len(networks - {features.near_network})
    if repeats < ENOUGH_OTHERS or 2 * living >= repeats:
        return []
    devices = statistics.devices(features.family)
    if devices < ENOUGH_DEVICES and _is_of_few_models(features):
        return []
    found = [Observation("repeated_report", "medium", ("sent_by_new_visitors",))]
    rare = rare_device(statistics, features, repeats + living)
    if rare is not None:
        found.append(Observation("repeated_rare_report", "high", rare.evidence))
    return found


def _came_back(other: Visitor) -> bool:
    return other.last_seen_s - other.first_seen_s > CAME_BACK_S or other.keeps_tokens


def _is_of_few_models(features: Features) -> bool:
    """Return whether devices of the class come in few models that all look alike: phones, tablets, apps, Safari."""
    return features.mobile or features.native or features.forgetful
