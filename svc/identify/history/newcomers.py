"""Who is new at an address: storage cleared again and again, new visitors in bursts, repeated reports (decisions 18.6).

What may live here: what an address's row remembers of those that came to it as new, and what that shows. Pure.

The row is that of its velocity, which is written for each event anyway. In the place of a third kind of others it has
those of the last day that were new, at most 64: 12 bytes each, of hashes, from which nobody is known again. They are no
counts of an event, and none of the API.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from svc.identify.history.evidence import DAY_S, ENOUGH_DEVICES, rare_device
from svc.identify.matching import Features, Statistics, Visitor
from svc.identify.matching.blocks import EVERYTHING, BlockKey, Index, attribute_keys, exact_key, network_key
from svc.identify.model import Observation
from svc.identify.velocity.counts import MOST, Seen, VelocityRow

THIRD: Final = 3
"""With so many new tokens of one report at one address within a day, its storage was cleared again and again."""
USUAL: Final = (12 * 3600, 30)
"""(seconds, new visitors of one class): what an address may have at once, such as a class of pupils in one lesson.
Beyond that it is a burst, and beyond twice that it weighs twice."""
FAST: Final = (30, 18)
"""Beyond this it is a program, and weighs twice: no group of people opens a page this fast."""
EXPECTED_TIMES: Final = 3.0
"""For each known visitor here, this many times as many new ones are usual as the organization sees for each known one:
an office, a school or a carrier has people who come back, a program has none."""
COMPARED_VISITORS: Final = 8
"""Visitors with the same report, of the address's network, that are looked at to tell devices of one model apart."""

_NEW_VISITOR, _NEW_TOKEN = 1, 2
_TOKEN_BITS, _NUMBER_BITS, _REPORT_BITS, _CLASS_BITS = 10, 16, 20, 16
_TOKEN_AT = 2
_NUMBER_AT = _TOKEN_AT + _TOKEN_BITS
_REPORT_AT = _NUMBER_AT + _NUMBER_BITS
_CLASS_AT = _REPORT_AT + _REPORT_BITS


class Arrival(NamedTuple):
    """An identification as its address sees it."""

    family: int
    report: int
    """A hash of the report and the device id."""
    token: int
    """0 = none."""
    visitor: int
    """Number of the visitor."""
    is_new_visitor: bool
    has_new_token: bool
    """It brought a token that the organization never saw."""

    @property
    def is_new(self) -> bool:
        """Whether the row of the address remembers it."""
        return self.is_new_visitor or self.has_new_token

    @property
    def entry(self) -> int:
        """64 bits by which the row remembers it: class, report, visitor, token, and which of these are new."""
        number = _low(self.visitor, _NUMBER_BITS) << _NUMBER_AT
        flags = _NEW_VISITOR * self.is_new_visitor | _NEW_TOKEN * self.has_new_token
        return self.several | number | self.token_bits << _TOKEN_AT | flags

    @property
    def several(self) -> int:
        """The entry which says that several devices here send this report."""
        return _low(self.family, _CLASS_BITS) << _CLASS_AT | _low(self.report >> 1, _REPORT_BITS) << _REPORT_AT

    @property
    def token_bits(self) -> int:
        """As much of the token as an entry has; its lowest bit is always 0."""
        return _low(self.token >> 1, _TOKEN_BITS)


def _low(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def arrived(row: VelocityRow, arrival: Arrival, at_s: int) -> VelocityRow:
    """Return the row of an address with an identification; the same object if nothing is to be remembered of it."""
    newcomers = row.others[2]
    kept = newcomers.since(at_s - DAY_S).until_now(at_s)
    if arrival.is_new:
        kept = kept.with_one(arrival.entry, at_s)
    elif arrival.token and kept.ids and _returned_after_another(kept, arrival):
        kept = kept.with_one(arrival.several, at_s)
    return row if kept is newcomers else row.with_newcomers(kept)


def _returned_after_another(newcomers: Seen, arrival: Arrival) -> bool:
    """Return whether a known token came with the report of a token that joined here after it: these are two devices."""
    for entry in reversed(newcomers.ids):
        if entry >> _REPORT_AT == arrival.several >> _REPORT_AT and entry & _NEW_TOKEN:
            return _low(entry >> _TOKEN_AT, _TOKEN_BITS) != arrival.token_bits
    return False


def without(row: VelocityRow, visitor: int | None) -> VelocityRow:
    """Return an address's row without what it remembers of a visitor (its number); the same object if nothing."""
    if visitor is None:
        return row
    newcomers = row.others[2]
    for entry in newcomers.ids:
        if entry & (_NEW_VISITOR | _NEW_TOKEN) and _low(entry >> _NUMBER_AT, _NUMBER_BITS) == _low(
            visitor, _NUMBER_BITS
        ):
            newcomers = newcomers.without(entry)
    return row if newcomers is row.others[2] else row.with_newcomers(newcomers)


def renewals(row: VelocityRow, arrival: Arrival) -> int:
    """Return how many new tokens of this report came within a day, this included; 0 if several devices send it."""
    same = [entry for entry in row.others[2].ids if entry >> _REPORT_AT == arrival.several >> _REPORT_AT]
    return 0 if arrival.several in same else sum(bool(entry & _NEW_TOKEN) for entry in same)


def has_several_devices(index: Index, features: Features) -> bool:
    """Return whether two visitors of the address's network that sent this very report are known to be two devices: each
    was seen after the other had appeared.
    """
    here = set(index.block(network_key(features.family, features.near_network)).numbers)
    numbers = [number for number in index.block(exact_key(features.exact)).numbers if number in here]
    visitors = [known for number in numbers[:COMPARED_VISITORS] if (known := index.visitor(number)) is not None]
    return any(one.coexists(other) for at, one in enumerate(visitors) for other in visitors[:at])


def new_visitor_burst(row: VelocityRow, arrival: Arrival, at_s: int, new_for_each_known: float) -> Observation | None:
    """Return the signal `new_visitor_burst` of a new visitor whose address has too many of its class; `None` otherwise.
    `row`: that of the address, this one included; `new_for_each_known`: what the organization sees elsewhere.
    """
    excess = _excess(row, arrival, at_s, new_for_each_known, USUAL)
    if excess > 2.0 or _excess(row, arrival, at_s, new_for_each_known, FAST) > 1.0:
        evidence = ("new_visitors_of_address", "twice_as_many_new_visitors_of_address")
        return Observation("new_visitor_burst", "high", evidence)
    return Observation("new_visitor_burst", "medium", ("new_visitors_of_address",)) if excess > 1.0 else None


def _excess(row: VelocityRow, arrival: Arrival, at_s: int, new_for_each_known: float, burst: tuple[int, int]) -> float:
    """Return by which factor new visitors of the class exceed their usual number in the window of a burst."""
    window_s, usual = burst
    visitors, newcomers = row.others[0].until_now(at_s), row.others[2].until_now(at_s)
    since_s = at_s - window_s
    if len(visitors.ids) == MOST:  # a full list does not reach back further
        since_s = max(since_s, visitors.times[0] - 1)
    new = [entry for entry in newcomers.since(since_s).ids if entry & _NEW_VISITOR]
    known = max(len(visitors.since(since_s).ids) - len(new), 0)
    of_class = sum(entry >> _CLASS_AT == arrival.several >> _CLASS_AT for entry in new)
    return of_class / (usual + EXPECTED_TIMES * new_for_each_known * known)


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
