"""The record of one visitor: what a returning device is compared with, and its compact binary form.

What may live here: the record, how it follows a visit, and its bytes. A record is 120 to 330 bytes: everything in it
is hashed, and every list in it is short.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from svc.domain.matching.parameters import ATTRIBUTE_COUNT, PROBATION_DAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from svc.domain.matching.features import Features

FORMAT: Final = 2
"""First byte of a packed record. Format 1, of store version 1, had no probation."""
_UNLISTED: Final = 3
"""First byte of one that is not `listed`; else as format 2."""
FORMER_VALUES: Final = 12
NETWORKS: Final = 4
TOKENS: Final = 3
EXACT_HASHES: Final = 4
NOWHERE: Final = (0, 0)
"""In the list of networks: a visit from an address that tells nothing of where the device is."""
_Item = TypeVar("_Item")
_MOST_VISITS: Final = 0xFFFF
_FIXED: Final = struct.Struct(f"<B20sIIIIHHHHIBQQ{ATTRIBUTE_COUNT}I4B")
_FORMER: Final = struct.Struct("<BI")

CAME_BACK: Final = 1
"""Lowest bit of a token in a record: it was read back from the browser's storage at least once."""
IN_DOUBT: Final = PROBATION_DAYS + 1
"""Days of probation of a token that joined by a link which was not sure enough to change the template."""
STRANGERS: Final = 255
"""In place of days of probation: the token of another device that passed for this visitor."""
DEVICE: Final = 254
"""In place of days of probation: no token, but the identifier that the system gave the device. It is the last of the
list, and no token pushes it out."""
VARIES: Final = 1
"""In place of an address: proven visits came from several addresses of that network."""
_DAY_S: Final = 86_400


class Visitor(msgspec.Struct, frozen=True, gc=False):
    """What is kept of one visitor. Times are whole seconds since 1970, hashes as in `Features`."""

    visitor_id: str
    """20 letters and digits; empty only until the caller gives a new visitor its id."""
    family: int
    collector: int
    values: tuple[int, ...]
    """The template: the latest known value of each attribute."""
    browser_version: int
    os_release: int
    font_sketch: int
    rest_sketch: int
    first_seen_s: int
    last_seen_s: int
    """The last visit that was sure to be its own."""
    visits: int = 1
    visits_without_token: int = 0
    """Visits that brought no token or a new one. Counts stop at 65,535; visits within six hours may go uncounted."""
    parent: int = 0
    """Number of the visitor that this one was split from in doubt; 0 = none."""
    parent_probability: int = 0
    """That it is the same device after all, in 1/255."""
    former: tuple[tuple[int, int], ...] = ()
    """(attribute, value) pairs that it had before, newest first."""
    networks: tuple[tuple[int, int], ...] = ()
    """(near, wide) networks, newest first."""
    addresses: tuple[int, ...] = ()
    """For each network, the address of the last visit that more than a likeness proved (`updated`); 0 = none was."""
    tokens: tuple[int, ...] = ()
    """Token hashes, newest first, each with `CAME_BACK` in its lowest bit."""
    probation: tuple[int, ...] = ()
    """For each token, how many more days it must come from a known network before it proves anything from elsewhere."""
    exact_hashes: tuple[int, ...] = ()
    """Of its latest different reports, newest first."""
    listed: bool = True
    """Whether it stands in the blocks of its report and its attributes. A new visitor with a known report, from a
    flooding address, is found by its network and its token alone until it comes back on a later day.
    """

    def has_near_network(self, near_network: int) -> bool:
        """Whether it used this network before; never where the network is not known (0)."""
        if near_network:
            for near, _ in self.networks:
                if near == near_network:
                    return True
        return False

    @property
    def was_hidden(self) -> bool:
        """Whether it came before from an address that tells nothing of where it is. Records of earlier versions without
        any network never came from another.
        """
        return NOWHERE in self.networks or not self.networks

    @property
    def was_seen(self) -> bool:
        """Whether it came before from an address that tells where it is."""
        return any(near for near, _ in self.networks)

    def disowning_newest_token(self) -> Visitor:
        """The record after its newest token showed to be another device's. One that joined by likeness is remembered
        as that; one that was proven may be this visitor's after all.
        """
        if self.probation[0]:
            return msgspec.structs.replace(self, probation=(STRANGERS, *self.probation[1:]))
        return msgspec.structs.replace(self, tokens=self.tokens[1:], probation=self.probation[1:])

    def is_proven_address(self, features: Features) -> bool:
        """Whether a proven visit came from this very address; `False` where the report's address is unknown (0)."""
        return features.address != 0 and features.address in self.addresses

    @property
    def keeps_tokens(self) -> bool:
        """Whether a token of this visitor ever came back: its browser stores them, private windows apart."""
        return any(token & CAME_BACK for token in self.tokens)

    @property
    def device(self) -> int:
        """Its device id, as `Features.device`; 0 where none is known."""
        return self.tokens[-1] if self.tokens and self.probation[-1] == DEVICE else 0

    def is_another_device(self, features: Features) -> bool:
        """Whether identifiers prove that the report is from another device, however alike it is: its system gives each
        device an id that stays, and this is another; or both the id and the token are others, of which an app that is
        installed anew keeps one.
        """
        device = self.device
        if not device or not features.device or device == features.device:
            return False
        if features.fixed_device:
            return True
        return bool(features.token) and len(self.tokens) > 1 and not self.has_token(features.token)

    def has_token(self, token: int) -> bool:
        """Whether it brought this token before."""
        return any(known & ~CAME_BACK == token for known in self.tokens)

    def token_probation(self, token: int) -> int:
        """Days of probation that are left to this token; those of a token that would join now, where it is unknown."""
        for known, days in zip(self.tokens, self.probation, strict=True):
            if known & ~CAME_BACK == token:
                return days
        return PROBATION_DAYS

    def counted(self, features: Features, *, remembered: bool = True) -> Visitor:
        """The record after a visit that is not sure enough to change its template: at most the report is remembered.

        The time of the template stays with it: changes are judged by how long it has had to age.
        """
        tokens, probation = self.tokens, self.probation
        if features.token and not self.has_token(features.token):
            newest = features.token | (not features.token_is_new), IN_DOUBT
            tokens, probation = _identifiers(newest, *zip(tokens, probation, strict=True))
        return msgspec.structs.replace(
            self,
            visits=min(self.visits + 1, _MOST_VISITS),
            visits_without_token=min(self.visits_without_token + _without_token(features), _MOST_VISITS),
            tokens=tokens,
            probation=probation,
            exact_hashes=_first(features.exact, self.exact_hashes, EXACT_HASHES) if remembered else self.exact_hashes,
        )

    def updated(self, features: Features, now_ms: int, *, proven: bool = False) -> Visitor:
        """The record after a visit that is surely its own: the template follows, what it replaces is remembered.

        `proven`: more than a likeness says that it is, so that a token that joins needs no probation.
        """
        if features.collector == self.collector:
            values, former = _follow(self.values, self.former, features.values)
        else:
            values, former = features.values, ()
        networks, addresses = self.networks, self.addresses
        network = (features.near_network, features.wide_network)
        known = dict(zip(networks, addresses, strict=True))
        networks = _first(network, networks, NETWORKS)
        address = known.get(network, 0)
        if proven:
            address = features.address if address in (0, features.address) else VARIES
        known[network] = address
        addresses = tuple(known[each] for each in networks)
        tokens, probation = self.tokens, self.probation
        if features.token:
            others = [pair for pair in zip(tokens, probation, strict=True) if pair[0] & ~CAME_BACK != features.token]
            came_back = not features.token_is_new or features.token | CAME_BACK in tokens
            left = 0 if proven else self._probation_after(features, now_ms)
            tokens, probation = _identifiers((features.token | came_back, left), *others)
        # Beside a token of the visitor's that did not come with it, a device id may be a thief's, whatever the address.
        if features.device and proven and (not self.tokens or any(self.has_token(key) for key in features.keys)):
            others = [pair for pair in zip(tokens, probation, strict=True) if pair[0] & ~CAME_BACK != features.device]
            tokens, probation = _identifiers((features.device, DEVICE), *others)
        return Visitor(
            visitor_id=self.visitor_id,
            family=features.family,
            collector=features.collector,
            values=values,
            browser_version=features.browser_version or self.browser_version,
            os_release=features.os_release or self.os_release,
            font_sketch=features.font_sketch or self.font_sketch,
            rest_sketch=features.rest_sketch or self.rest_sketch,
            first_seen_s=self.first_seen_s,
            last_seen_s=max(self.last_seen_s, now_ms // 1000),
            visits=min(self.visits + 1, _MOST_VISITS),
            visits_without_token=min(self.visits_without_token + _without_token(features), _MOST_VISITS),
            parent=self.parent,
            parent_probability=self.parent_probability,
            former=former,
            networks=networks,
            addresses=addresses,
            tokens=tokens,
            probation=probation,
            exact_hashes=_first(features.exact, self.exact_hashes, EXACT_HASHES),
            listed=self.listed or now_ms // 1000 // _DAY_S > self.first_seen_s // _DAY_S,
        )

    def _probation_after(self, features: Features, now_ms: int) -> int:
        """What is left to the report's token after this visit: one day less on each new day on a known network."""
        left = min(self.token_probation(features.token), PROBATION_DAYS)
        is_new_day = now_ms // 1000 // _DAY_S > self.last_seen_s // _DAY_S
        joined = self.has_token(features.token)
        counts = left and joined and is_new_day and self.has_near_network(features.near_network)
        return left - bool(counts)

    def pack(self) -> bytes:
        """Format byte, fixed part, four counts, then the lists; little-endian. A byte of probation for each token."""
        former, networks, tokens, exact_hashes = self.former, self.networks, self.tokens, self.exact_hashes
        return b"".join(
            (
                _FIXED.pack(
                    FORMAT if self.listed else _UNLISTED,
                    self.visitor_id.encode("ascii"),
                    self.family,
                    self.collector,
                    self.first_seen_s,
                    self.last_seen_s,
                    self.visits,
                    self.visits_without_token,
                    self.browser_version,
                    self.os_release,
                    self.parent,
                    self.parent_probability,
                    self.font_sketch,
                    self.rest_sketch,
                    *self.values,
                    len(former),
                    len(networks),
                    len(tokens),
                    len(exact_hashes),
                ),
                struct.pack(
                    f"<{len(tokens) + len(exact_hashes)}Q{3 * len(networks)}I",
                    *tokens,
                    *exact_hashes,
                    *(half for network in networks for half in network),
                    *self.addresses,
                ),
                bytes(self.probation),
                *(_FORMER.pack(*pair) for pair in former),
            ),
        )

    @staticmethod
    def unpack(raw: bytes) -> Visitor:
        """The record in these bytes. Raises `ValueError` when they are of another format.

        In format 1 tokens had no probation: those are proven.
        """
        if not raw or raw[0] not in (1, FORMAT, _UNLISTED):
            raise ValueError(f"not a visitor record of format {FORMAT}: first byte {raw[:1]!r}")
        fixed = _FIXED.unpack_from(raw)
        former_count, network_count, token_count, exact_count = fixed[-4:]
        is_first_format = raw[0] == 1
        networks_at = token_count + exact_count
        addresses_at = networks_at + 2 * network_count
        lists = _lists(networks_at, addresses_at - networks_at + (0 if is_first_format else network_count))(
            raw, _FIXED.size
        )
        probation_at = _FIXED.size + 8 * networks_at + 4 * (len(lists) - networks_at)
        former_at = probation_at + (0 if is_first_format else token_count)
        visitor_id: bytes = fixed[1]
        networks: Any = tuple([lists[at : at + 2] for at in range(networks_at, addresses_at, 2)])
        return Visitor(  # by position: by name, 22 fields take 0.8 µs more
            visitor_id.rstrip(b"\0").decode("ascii"),
            fixed[2],  # family
            fixed[3],  # collector
            fixed[14:-4],  # values
            fixed[8],  # browser_version
            fixed[9],  # os_release
            fixed[12],  # font_sketch
            fixed[13],  # rest_sketch
            fixed[4],  # first_seen_s
            fixed[5],  # last_seen_s
            fixed[6],  # visits
            fixed[7],  # visits_without_token
            fixed[10],  # parent
            fixed[11],  # parent_probability
            tuple(_FORMER.iter_unpack(raw[former_at:])) if former_count else (),
            networks,
            (0,) * network_count if is_first_format else lists[addresses_at:],
            lists[:token_count],
            (0,) * token_count if is_first_format else tuple(raw[probation_at:former_at]),
            lists[token_count:networks_at],  # exact_hashes
            raw[0] != _UNLISTED,
        )


@lru_cache(maxsize=256)
def _lists(longs: int, words: int) -> Callable[[bytes, int], tuple[int, ...]]:
    """Reads the lists of a packed record from its bytes, from an offset on."""
    return struct.Struct(f"<{longs}Q{words}I").unpack_from


def first_record(
    features: Features, now_ms: int, *, parent: int = 0, parent_probability: float = 0.0, listed: bool = True
) -> Visitor:
    """The record of a new visitor; the caller gives it its id. `parent`: the number of the visitor that it was split
    from in doubt, with the probability (0 to 1) that it is that one after all.
    """
    token = ((features.token | (not features.token_is_new), 0),) if features.token else ()
    tokens, probation = _identifiers(*token, *(((features.device, DEVICE),) if features.device else ()))
    return Visitor(
        visitor_id="",
        family=features.family,
        collector=features.collector,
        values=features.values,
        browser_version=features.browser_version,
        os_release=features.os_release,
        font_sketch=features.font_sketch,
        rest_sketch=features.rest_sketch,
        first_seen_s=now_ms // 1000,
        last_seen_s=now_ms // 1000,
        parent=parent,
        parent_probability=int(255 * parent_probability),
        networks=((features.near_network, features.wide_network),),
        addresses=(features.address,),
        tokens=tokens,
        probation=probation,
        exact_hashes=(features.exact,),
        listed=listed,
    )


def _identifiers(*pairs: tuple[int, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens, and their days of probation: the newest of these pairs, and behind them the newest device id."""
    devices = [pair for pair in pairs if pair[1] == DEVICE][:1]
    kept = [pair for pair in pairs if pair[1] != DEVICE][: TOKENS - len(devices)] + devices
    return tuple(token for token, _ in kept), tuple(days for _, days in kept)


def _without_token(features: Features) -> bool:
    return not features.token or features.token_is_new


def _first(item: _Item, others: tuple[_Item, ...], most: int) -> tuple[_Item, ...]:
    if others and others[0] == item:
        return others
    return (item, *(other for other in others if other != item))[:most]


def _follow(
    values: tuple[int, ...], former: tuple[tuple[int, int], ...], reported: Iterable[int]
) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """The template after a report, and the values it had before; what was not reported stays."""
    followed = list(values)
    remembered = list(former)
    for attribute, (old, new) in enumerate(zip(values, reported, strict=True)):
        if new in (0, old):
            continue
        followed[attribute] = new
        remembered = [pair for pair in remembered if pair not in ((attribute, old), (attribute, new))]
        if old:
            remembered.insert(0, (attribute, old))
    return tuple(followed), tuple(remembered[:FORMER_VALUES])
