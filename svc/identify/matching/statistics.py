"""What an organization's visits taught: how common values are, how often devices change, how often people return.

What may live here: the bounded tables of one scope of an organization, what they answer, and how they learn from a
`StatisticsUpdate`. Production is one scope, all other environments together are another. The visitor index holds them
in memory; an update is applied after the visit is on the disk, never before. Losing the tables costs precision, not
truth.

They are stored as one row for each class of devices, and one for what all classes share. A class can be loaded and
unloaded by itself; before any question about a class is asked, it has to be loaded.

Bounds: at most `CLASSES` classes, each with a table for every attribute of at most twice `COMMON_VALUES` entries
(lossy counting, Manku & Motwani, VLDB 2002). A full class takes 40 kB in the store and 0.3 MB in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from svc.identify.matching import parameters
from svc.identify.matching.changes import (
    TABLE_OF_RELEASES,
    ChangeTable,
    change_rates,
    change_table,
    releases_between,
    unlearned_table,
)
from svc.identify.matching.features import Features
from svc.identify.matching.lessons import (
    ROW_OF_DAY,
    Handshakes,
    Rendering,
    Renderings,
    ReturnIntervals,
    StatisticsUpdate,
    Successions,
    is_unusual,
    learn_handshake,
    learn_rendering,
    share_apart,
    unseen_renderings,
)
from svc.identify.matching.parameters import ATTRIBUTE_COUNT, PRIOR_DEVICES
from svc.identify.matching.visitor import Visitor
from svc.identify.model import Attribute

FORMAT: Final = 3
CLASSES: Final = 48
COMMON_VALUES: Final = 64
COMMON_HARDWARE: Final = 256
VERSIONS_REMEMBERED: Final = 600.0
HARDWARE: Final = ATTRIBUTE_COUNT
LOCALE: Final = ATTRIBUTE_COUNT + 1
"""Places of the two joint values behind those of the attributes."""
_TABLES: Final = ATTRIBUTE_COUNT + 2
_DROPPED: Final = 0
"""Key of a table's largest count that was ever dropped from it; hashes are never 0."""


class _Class(msgspec.Struct, gc=False):
    devices: float = 0.0
    tables: list[dict[int, float]] = msgspec.field(default_factory=lambda: [{} for _ in range(_TABLES)])
    version_visits: float = 0.0
    versions: dict[int, float] = msgspec.field(default_factory=dict[int, float])
    handshakes: Handshakes = msgspec.field(default_factory=dict[int, dict[int, float]])
    successions: Successions = msgspec.field(default_factory=Successions)


class _Changes(msgspec.Struct, gc=False):
    """Observed and expected changes of desktops or mobiles."""

    links: int = 0
    proven_observed: list[float] = msgspec.field(default_factory=lambda: [0.0] * ATTRIBUTE_COUNT)
    proven_expected: list[float] = msgspec.field(default_factory=lambda: [0.0] * ATTRIBUTE_COUNT)
    judged_observed: list[float] = msgspec.field(default_factory=lambda: [0.0] * ATTRIBUTE_COUNT)
    judged_expected: list[float] = msgspec.field(default_factory=lambda: [0.0] * ATTRIBUTE_COUNT)
    scale: list[float] = msgspec.field(default_factory=lambda: [1.0] * ATTRIBUTE_COUNT)


class _Shared(msgspec.Struct, gc=False):
    """What is learned for all classes together."""

    format: int = FORMAT
    classes: dict[int, float] = msgspec.field(default_factory=dict[int, float])
    """Class -> its visits lately: those that have tables of their own."""
    returns: dict[int, tuple[float, float]] = msgspec.field(default_factory=dict[int, tuple[float, float]])
    changes: list[_Changes] = msgspec.field(default_factory=lambda: [_Changes(), _Changes()])
    return_intervals: ReturnIntervals = msgspec.field(default_factory=ReturnIntervals, name="rhythm")  # as it is stored
    waited: float = 0.0
    found: float = 0.0
    """Tokens that had joined a visitor beside an older one and came back first; those of another device."""
    successions: list[Successions] = msgspec.field(default_factory=lambda: [Successions(), Successions()])
    """Of desktops and of mobiles."""
    renderings: Renderings = msgspec.field(default_factory=dict[int, Rendering])
    newcomers: float = 0.0
    visits: float = 0.0
    """Devices that visits added lately, by expectation, and these visits."""


class _Format2(msgspec.Struct, gc=False):
    """Everything in one row, as in store version 1."""

    format: int = 2
    classes: dict[int, _Class] = msgspec.field(default_factory=dict[int, _Class])
    returns: dict[int, tuple[float, float]] = msgspec.field(default_factory=dict[int, tuple[float, float]])
    changes: list[_Changes] = msgspec.field(default_factory=lambda: [_Changes(), _Changes()])


class StatisticsRows(NamedTuple):
    """The stored rows of a scope, as MessagePack: the shared one, and one for each class (`family`)."""

    shared: bytes
    classes: dict[int, bytes]

    @property
    def size(self) -> int:
        """Bytes of all rows together."""
        return len(self.shared) + sum(map(len, self.classes.values()))


def rows_of_format_2(raw: bytes) -> StatisticsRows | None:
    """Return the row of store version 1 as rows of today; `None` for an older one. Raises `msgspec.DecodeError`."""
    state = msgspec.msgpack.decode(raw, type=_Format2)
    if state.format != _Format2().format:
        return None
    visits = {family: known.version_visits for family, known in state.classes.items()}
    shared = _Shared(FORMAT, visits, state.returns, state.changes)
    encode = msgspec.msgpack.encode
    return StatisticsRows(encode(shared), {family: encode(known) for family, known in state.classes.items()})


_PRIOR: Final = tuple(
    PRIOR_DEVICES * frequency
    for frequency in (
        *(parameters.PRIOR_FREQUENCY[attribute] for attribute in Attribute),
        parameters.PRIOR_HARDWARE,
        parameters.PRIOR_LOCALE,
    )
)
_EMPTY_CLASS: Final = _Class()


class Statistics:
    """The frequencies of one scope, in memory. Only `load`, `unload` and `learn` change anything; a class that is not
    loaded counts as empty.
    """

    def __init__(self, shared: bytes | None = None, *, of_another_scope: bool = False) -> None:
        """Load the shared row; one of another format counts as none. With `of_another_scope`, start from the row of
        another scope, without its classes. Raises `msgspec.DecodeError`.
        """
        self._shared = _Shared() if shared is None else msgspec.msgpack.decode(shared, type=_Shared)
        if self._shared.format != FORMAT:
            self._shared = _Shared()
        if of_another_scope:
            self._shared.classes.clear()
        self._classes: dict[int, _Class] = {}
        self.change_tables: list[ChangeTable] = [
            change_table(mobile, changes.scale) if changes.links else unlearned_table(mobile)
            for mobile, changes in enumerate(self._shared.changes)
        ]
        """For desktops and for mobiles."""

    @classmethod
    def of_rows(cls, rows: StatisticsRows) -> Statistics:
        """Return statistics with the shared row and every class of a scope loaded. Raises `msgspec.DecodeError`."""
        statistics = cls(rows.shared)
        for family, raw in rows.classes.items():
            statistics.load(family, raw)
        return statistics

    def rows(self) -> StatisticsRows:
        """Return the rows to store: the shared one, and those of the classes that are loaded."""
        return StatisticsRows(self.shared_bytes(), {family: self.class_bytes(family) for family in self._classes})

    def has_own(self, family: int) -> bool:
        """Return whether this scope has learned from a device of this class, and so stores a row of its own."""
        return family in self._shared.classes

    def visits(self, family: int) -> float:
        """Return the visits of this class lately, at most `VERSIONS_REMEMBERED`: halved where there are more."""
        return self._shared.classes.get(family, 0.0)

    def load(self, family: int, raw: bytes) -> None:
        """Read the stored row of a class into memory, instead of what is loaded of it. Raises
        `msgspec.DecodeError`.
        """
        self._classes[family] = msgspec.msgpack.decode(raw, type=_Class)

    def unload(self, family: int) -> None:
        """Remove the tables of a class from memory; what they learned since they were stored is lost."""
        self._classes.pop(family, None)

    def shared_bytes(self) -> bytes:
        """Return the row that is not of any one class, as MessagePack: changes and returns."""
        return msgspec.msgpack.encode(self._shared)

    def class_bytes(self, family: int) -> bytes:
        """Return the row of a class, as MessagePack. Raises `KeyError` for a class that is not loaded."""
        return msgspec.msgpack.encode(self._classes[family])

    def devices(self, family: int) -> float:
        """Return the expected number of devices of this class seen so far; a doubtful one counts for less."""
        return self._classes.get(family, _EMPTY_CLASS).devices

    def log_frequencies(self, features: Features) -> list[float]:
        """Log P(another device of the class reports the same), per attribute, hardware, locale; 0 if not reported."""
        known = self._classes.get(features.family, _EMPTY_CLASS)
        values = (*features.values, features.hardware, features.locale)
        return _log_frequencies(known.devices, zip(values, known.tables, _PRIOR, strict=True))

    def log_frequencies_of(self, features: Features, attributes: Sequence[Attribute]) -> list[float]:
        """Return `log_frequencies` of these attributes alone, in their order."""
        known = self._classes.get(features.family, _EMPTY_CLASS)
        rows = [(features.values[attribute], known.tables[attribute], _PRIOR[attribute]) for attribute in attributes]
        return _log_frequencies(known.devices, rows)

    def version_share(self, features: Features) -> float:
        """Return the share of this version among recent visits of its class, smoothed: above 0, up to 1."""
        known = self._classes.get(features.family, _EMPTY_CLASS)
        return (known.versions.get(_version(features), 0.0) + 0.5) / (known.version_visits + 2.0)

    def is_unusual_handshake(self, features: Features, fingerprint: int) -> bool:
        """Return whether enough visits of this class and version showed other TLS handshakes than this (its hash)."""
        known = self._classes.get(features.family, _EMPTY_CLASS)
        return is_unusual(known.handshakes, features.browser_version // 10, fingerprint)

    def return_rate(self, features: Features) -> float:
        """Return the probability that a visit in this token state is a return, for visits whose token is not known; it
        is kept within the bounds of `RETURN_RATE_WITH_TOKEN` or `RETURN_RATE_WITHOUT_TOKEN`.
        """
        returned, visits = self._shared.returns.get(_token_state(features), (0.0, 0.0))
        usual, low, high = parameters.RETURN_RATE_WITH_TOKEN if features.token else parameters.RETURN_RATE_WITHOUT_TOKEN
        rate = (usual * parameters.RETURN_RATE_VISITS + returned) / (parameters.RETURN_RATE_VISITS + visits)
        # In a class that hardly came so far, other classes say little.
        of_class = self._classes.get(features.family, _EMPTY_CLASS).version_visits
        rate += (usual - rate) * parameters.CLASS_VISITS / (parameters.CLASS_VISITS + of_class)
        return min(max(rate, low), high)

    def unseen_renderings(self, features: Features) -> tuple[Attribute, ...]:
        """Return which of canvas and audio has a value that no known device of the same release has."""
        return unseen_renderings(self._shared.renderings, features)

    def new_for_each_known(self) -> float:
        """Return how many new devices come for each visit of a known one, within `parameters.NEW_FOR_EACH_KNOWN`."""
        low, high = parameters.NEW_FOR_EACH_KNOWN
        new, visits = (
            count + usual
            for count, usual in zip((self._shared.newcomers, self._shared.visits), parameters.NEWCOMERS, strict=True)
        )
        return min(max(new / max(visits - new, 1.0), low), high)

    def twin_odds(self) -> float:
        """Return the odds that a token which joined beside an older one, and came back, is another device's."""
        found, of = (
            count + usual
            for count, usual in zip((self._shared.found, self._shared.waited), parameters.TWINS, strict=True)
        )
        return found / max(of - found, 1.0)

    def share_apart(self, features: Features) -> float:
        """Return the share, 0 to 1, of new tokens beside a visitor's older one that are another device's here."""
        known = self._classes.get(features.family, _EMPTY_CLASS)
        return share_apart(known.successions, self._shared.successions[features.mobile])

    def link_nearby(self, features: Features) -> float:
        """Return the probability from which on a changed report with a token that is not known is linked at home. In a
        class that hardly came so far it is that of a report without a token: who else lives there was not seen yet.
        """
        visits = self._classes.get(features.family, _EMPTY_CLASS).version_visits
        youth = max(1.0 - visits / parameters.YOUNG_VISITS, 0.0)
        return parameters.LINK_WITH_TOKEN_NEARBY + (parameters.LINK_AT_HOME - parameters.LINK_WITH_TOKEN_NEARBY) * youth

    def recency(self, gap_days: float) -> float:
        """Return how much likelier than others a visitor that has been away for so long is to come now."""
        return self._shared.return_intervals.recency(gap_days)

    def caution(self) -> float:
        """Log odds to take off a link to a visitor that is not where it was (`parameters.CAUTION`)."""
        (grown, young), half = parameters.CAUTION, parameters.CAUTION_VISITS
        return grown + (young - grown) * half / (half + sum(self._shared.classes.values()))

    def learn(self, update: StatisticsUpdate) -> int | None:
        """Apply an update. Return the class (`family`) that was given up and whose row is to be deleted, or `None`."""
        features = update.features
        if features is None:
            return None
        known = self._classes.setdefault(features.family, _Class())
        if update.new_devices > 0.0:
            _count_device(known, features, update.new_devices)
        _count_version(known, features)
        if update.handshake:
            learn_handshake(known.handshakes, features.browser_version // 10, update.handshake)
        for counts in (known.successions, self._shared.successions[features.mobile]):
            counts.learn(update.joined, update.parted)
        if update.rendered:
            learn_rendering(self._shared.renderings, features, update.rendered)
        self._count_newcomer(update.new_devices)
        given_up = self._note(features.family, known.version_visits)
        if update.before is not None and update.returned_at_s:
            self._shared.return_intervals.learn(update.days, update.before.first_seen_s, update.returned_at_s)
        else:
            self._shared.return_intervals.learn(None, 0, 0)
        if update.returned is not None:
            state = _token_state(features)
            returned, visits = self._shared.returns.get(state, (0.0, 0.0))
            fading = 0.5 if visits >= parameters.RETURN_RATE_MEMORY else 1.0
            self._shared.returns[state] = ((returned + update.returned) * fading, (visits + 1.0) * fading)
        self._shared.waited += update.twins_waited
        self._shared.found += update.twins_found
        if self._shared.waited > parameters.TWINS_REMEMBERED:
            self._shared.waited /= 2.0
            self._shared.found /= 2.0
        if update.before is not None:
            self._count_changes(features, update.before, update.days, proven=update.proven)
        return given_up

    def _count_newcomer(self, new_devices: float) -> None:
        self._shared.newcomers += new_devices
        self._shared.visits += 1.0
        if self._shared.visits > parameters.NEWCOMERS_REMEMBERED:
            self._shared.newcomers /= 2.0
            self._shared.visits /= 2.0

    def _note(self, family: int, visits: float) -> int | None:
        """Record the visits of a class. Drop and return the least visited other class if there are too many."""
        classes = self._shared.classes
        given_up = None
        if family not in classes and len(classes) >= CLASSES:
            given_up = min(classes, key=lambda other: (classes[other], other))
            del classes[given_up]
            self.unload(given_up)
        classes[family] = visits
        return given_up

    def _count_changes(self, features: Features, before: Visitor, days: int, *, proven: bool) -> None:
        """Count observed and expected changes of attributes; rescale the expectation now and then.

        Links that a token proved are unbiased. Judged ones favor devices that changed little: they only raise a rate.
        """
        changes = self._shared.changes[features.mobile]
        table = change_rates(features.mobile)[TABLE_OF_RELEASES[releases_between(features, before)]]
        expected_changes = table[ROW_OF_DAY[min(days, len(ROW_OF_DAY) - 1)]]
        observed = changes.proven_observed if proven else changes.judged_observed
        expected = changes.proven_expected if proven else changes.judged_expected
        attribute = -1
        for new, old in zip(features.values, before.values, strict=True):
            attribute += 1
            if new and old:
                expected[attribute] += expected_changes[attribute]
                if new != old and (attribute, new) not in before.former:
                    observed[attribute] += 1.0
        changes.links += 1
        if changes.links in (50, 100, 200, 400) or changes.links % 1000 == 0:
            self._rescale(changes, mobile=features.mobile)

    def _rescale(self, changes: _Changes, *, mobile: bool) -> None:
        for attribute in Attribute:
            proven = (changes.proven_observed[attribute] + 10) / (changes.proven_expected[attribute] + 10)
            observed, expected = changes.judged_observed[attribute], changes.judged_expected[attribute]
            judged = (observed + 10) / (expected + 10) if observed > expected else 0.0
            changes.scale[attribute] = min(max(proven, judged, 0.3), 30.0)
        self.change_tables[mobile] = change_table(mobile, changes.scale)
        if changes.links > 20_000:
            changes.links = 10_000
            for counts in (
                changes.proven_observed,
                changes.proven_expected,
                changes.judged_observed,
                changes.judged_expected,
            ):
                counts[:] = [count / 2 for count in counts]


def _log_frequencies(devices: float, rows: Iterable[tuple[int, dict[int, float], float]]) -> list[float]:
    """Return the log frequency of each value (0 = not reported), given the counts and the prior of its attribute."""
    # The visitor that is compared is one of the devices counted, and does not speak for the others.
    scale = 1.0 / (max(devices - 1.0, 0.0) + PRIOR_DEVICES)
    log = math.log
    logs: list[float] = []
    for value, table, prior in rows:
        if not value:
            logs.append(0.0)
            continue
        count = table.get(value)
        if count is None:
            count = table.get(_DROPPED, 0.0) * 0.5
        share = (count - 1.0 + prior if count > 1.0 else prior) * scale
        logs.append(log(share) if share < 1.0 else 0.0)
    return logs


def _token_state(features: Features) -> int:
    """Return the group in which a visit counts: the visits of a group are alike in how often they are returns."""
    token = 0 if not features.token else 1 if features.token_is_new else 2
    return token + 3 * (features.forgetful and token > 0) + 6 * features.native


def _version(features: Features) -> int:
    return features.browser_version << 16 | features.os_release


def _count_device(known: _Class, features: Features, weight: float) -> None:
    known.devices += weight
    index = -1
    for value in (*features.values, features.hardware, features.locale):
        index += 1
        if value:
            table = known.tables[index]
            table[value] = table.get(value, 0.0) + weight
            most = COMMON_HARDWARE if index == HARDWARE else COMMON_VALUES
            if len(table) > 2 * most:
                _keep_common(table, most)


def _keep_common(table: dict[int, float], most: int) -> None:
    """Drop all but the `most` highest counts, and remember how high the dropped ones were."""
    dropped = table.pop(_DROPPED, 0.0)
    bar = sorted(table.values(), reverse=True)[most]
    for value in [value for value, count in table.items() if count <= bar]:
        del table[value]
    table[_DROPPED] = max(dropped, bar)


def _count_version(known: _Class, features: Features) -> None:
    known.version_visits += 1.0
    version = _version(features)
    known.versions[version] = known.versions.get(version, 0.0) + 1.0
    if known.version_visits > VERSIONS_REMEMBERED:
        known.version_visits /= 2
        known.versions = {version: count / 2 for version, count in known.versions.items() if count > 0.6}
