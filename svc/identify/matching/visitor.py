"""The record of one visitor: what a returning device is compared with, and its compact binary form.

What may live here: the record, how it follows a visit, and its bytes. A record is 160 to 700 bytes and its activity:
everything in it is hashed, and every list in it is short.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from svc.identify.matching import parameters
from svc.identify.matching import tokens as of_tokens
from svc.identify.matching.features import Features
from svc.identify.matching.tokens import DAY_S, DEVICE, STRANGERS, Token

FORMAT: Final = 6
"""First byte of a packed record. Formats 4 and 5 had no activity, and 1 to 3 other tokens, in 1 without probation."""
_UNLISTED: Final = 7
_FORMATS: Final = {1: True, 2: True, 3: False, 4: True, 5: False, FORMAT: True, _UNLISTED: False}
"""Format -> whether the visitor is `listed`."""
FORMER_VALUES: Final = 12
NETWORKS: Final = 4
EXACT_HASHES: Final = 4
NOWHERE: Final = (0, 0)
"""In the list of networks: a visit from an address that tells nothing of where the device is."""
_Item = TypeVar("_Item")
_MAX_VISITS: Final = 0xFFFF
_FIXED: Final = struct.Struct(f"<B20sIIIIHHHHIBQQ{parameters.ATTRIBUTE_COUNT}I4B")
_FORMER: Final = struct.Struct("<BI")

VARIES: Final = 1
"""In place of an address: proven visits came from several addresses of that network."""


class Visitor(msgspec.Struct, frozen=True, gc=False):
    """The record of one visitor. Times are whole seconds since 1970, hashes as in `Features`."""

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
    """That it is the same device after all, in 1/255; 0 beside a parent: its token was parted (ADR 269)."""
    former: tuple[tuple[int, int], ...] = ()
    """(attribute, value) pairs that it had before, newest first."""
    networks: tuple[tuple[int, int], ...] = ()
    """(near, wide) networks, newest first."""
    addresses: tuple[int, ...] = ()
    """For each network, the address of the last visit that more than a likeness proved (`updated`); 0 = none was."""
    tokens: tuple[Token, ...] = ()
    """Newest first, in the order in which they joined."""
    exact_hashes: tuple[int, ...] = ()
    """Of its latest different reports, newest first."""
    listed: bool = True
    """Whether it stands in the blocks of its report and its attributes. A new visitor with a known report, from a
    flooding address, is found by its network and its token alone until it comes back on a later day.
    """
    activity: bytes = b""
    """What it did lately (`history.activity`), packed: matching does not look at it."""

    def has_near_network(self, near_network: int) -> bool:
        """Return whether the visitor used this near network before; `False` for an unknown network (0)."""
        if near_network:
            for near, _ in self.networks:
                if near == near_network:
                    return True
        return False

    @property
    def was_hidden(self) -> bool:
        """Whether it came before from an address that says nothing about where it is. Records of earlier versions
        without any network are of visitors that came only from such addresses.
        """
        return NOWHERE in self.networks or not self.networks

    @property
    def was_seen(self) -> bool:
        """Whether it came before from an address that says where it is."""
        return any(near for near, _ in self.networks)

    def disowning(self, strangers: tuple[Token, ...]) -> Visitor:
        """Return the record after these tokens proved to be other browsers'."""
        return msgspec.structs.replace(self, tokens=of_tokens.without_strangers(self.tokens, strangers))

    def is_proven_address(self, features: Features) -> bool:
        """Return whether a proven visit came from this very address; `False` if the report's address is unknown (0)."""
        return features.address != 0 and features.address in self.addresses

    @property
    def home_address(self) -> int:
        """The address that every proven visit came from, on two days at least; 0 where there is none."""
        known = self.addresses[0] if len(set(self.addresses)) == 1 else 0
        return known if known != VARIES and self.last_seen_s // DAY_S > self.first_seen_s // DAY_S else 0

    @property
    def keeps_tokens(self) -> bool:
        """Whether a token of this visitor ever came back: its browser stores them, private windows apart."""
        return any(token.is_live and token.origin != DEVICE for token in self.tokens)

    def token(self, hash_: int) -> Token | None:
        """Return this visitor's record of a token or device id with this 64-bit hash; `None` if it has none."""
        return next((token for token in self.tokens if token.hash == hash_), None)

    def alive(self, last_s: int, since_s: int, now_s: int) -> float:
        """Return the likelihood that what was seen at `last_s`, and not since `since_s`, is still in use, relative to
        certainty that it is gone: visits come by chance, at a rate estimated from this visitor's (Poisson and gamma).
        """
        silent_s = max(now_s - max(last_s, since_s), 0)
        known_s = max(since_s - self.first_seen_s, 0) + parameters.RATE_DAYS * DAY_S
        return (known_s / (known_s + silent_s)) ** self.visits

    def is_gone(self, last_s: int, since_s: int, now_s: int) -> bool:
        """Return whether it has been silent too long to be in use, compared with how often this visitor comes."""
        days = (now_s - max(last_s, since_s)) // DAY_S
        return days >= parameters.OPEN_DAYS or (
            days >= parameters.SILENT_DAYS and self.alive(last_s, since_s, now_s) < parameters.REPLACED_BELOW
        )

    def has_replaced(self, token: Token, now_s: int) -> bool:
        """Return whether this token has replaced the older one of the same origin."""
        older = of_tokens.older_beside(token, self.tokens)
        return older is not None and self.is_gone(older.last_s, token.first_s, now_s)

    def is_past_of(self, other: Visitor, now_s: int) -> bool:
        """Return whether this one fell silent when the other appeared, and is gone: one browser that was parted."""
        since_s = other.first_seen_s
        return self.first_seen_s < since_s >= self.last_seen_s and self.is_gone(self.last_seen_s, since_s, now_s)

    def hidden(self, now_s: int, apart: float) -> float:
        """Return how many further devices are expected behind this visitor, 0 to 1. Tokens of which each fell silent
        when the next one joined are one browser whose storage was cleared (ADR 173): one that joined lately counts for
        no more than `apart`, the share of such tokens that turned out to be another device's here. It counts in full
        once an older one returned after it, and less if the visitor left such tokens before, since it then uses private
        windows.
        """
        expected, closed = 0.0, 0
        for token in self.tokens:
            older = of_tokens.older_beside(token, self.tokens) if token.probation and not token.private else None
            if older is None:
                continue
            if token.probation == STRANGERS:
                if token.came_back:
                    return 1.0
                alive = 1.0
            else:
                alive = apart * self.alive(older.last_s, token.first_s, now_s)
            if token.came_back:
                continue
            if now_s - token.last_s < parameters.OPEN_DAYS * DAY_S:
                expected = max(expected, alive)
            else:
                closed += 1
        return expected / (1 + closed)

    def coexists(self, other: Visitor) -> bool:
        """Return whether each of the two was seen after the other had appeared: neither is the other's browser after
        its storage was cleared.
        """
        return self.last_seen_s > other.first_seen_s and other.last_seen_s > self.first_seen_s

    def without_token(self, token: Token) -> Visitor:
        """Return the record without a token that now belongs to a visitor of its own."""
        return msgspec.structs.replace(self, tokens=tuple(known for known in self.tokens if known.hash != token.hash))

    @property
    def device(self) -> int:
        """The id of its device, as `Features.device`; 0 if none is known."""
        return next((token.hash for token in self.tokens if token.origin == DEVICE), 0)

    def is_other_device(self, features: Features) -> bool:
        """Return whether ids prove that the report is from another device, however alike it is: the system gives each
        device a permanent id, and this one differs; or both the device id and the token differ, of which an app that is
        reinstalled keeps one.
        """
        device = self.device if features.device else 0
        if not device or device == features.device:
            return False
        if features.fixed_device:
            return True
        has_tokens = any(token.origin != DEVICE for token in self.tokens)
        return features.token != 0 and has_tokens and self.token(features.token) is None

    def counted(self, features: Features, now_ms: int, *, remembered: bool = True) -> Visitor:
        """Return the record after a visit that is not certain enough to change its template: at most the report is
        remembered. The template keeps its time, since changes are judged by its age.
        """
        tokens = self.tokens
        if features.device and self.token(features.device) is not None:
            tokens = of_tokens.replaced(tokens, of_tokens.joining_device(features, now_ms // 1000))
        if features.token and self.token(features.token) is None:
            tokens = of_tokens.replaced(tokens, of_tokens.joining(features, now_ms // 1000, of_tokens.IN_DOUBT))
        return msgspec.structs.replace(
            self,
            visits=min(self.visits + 1, _MAX_VISITS),
            visits_without_token=min(self.visits_without_token + features.came_without_token, _MAX_VISITS),
            tokens=tokens,
            exact_hashes=_first(features.exact, self.exact_hashes, EXACT_HASHES) if remembered else self.exact_hashes,
        )

    def updated(self, features: Features, now_ms: int, *, proven: bool = False) -> Visitor:
        """Return the record after a visit that is surely its own: the template is replaced, and its former values are
        remembered. `proven`: more than a likeness proves the visit, so that the address is remembered too.
        """
        if features.collector == self.collector:
            values, former = _follow(self.values, self.former, features.values)
        else:
            values, former = features.values, ()
        network = (features.near_network, features.wide_network)
        known = dict(zip(self.networks, self.addresses, strict=True))
        networks = _first(network, self.networks, NETWORKS)
        address = known.get(network, 0)
        if proven:
            address = features.address if address in (0, features.address) else VARIES
        known[network] = address
        return msgspec.structs.replace(
            self,
            family=features.family,
            collector=features.collector,
            values=values,
            browser_version=features.browser_version or self.browser_version,
            os_release=features.os_release or self.os_release,
            font_sketch=features.font_sketch or self.font_sketch,
            rest_sketch=features.rest_sketch or self.rest_sketch,
            last_seen_s=max(self.last_seen_s, now_ms // 1000),
            visits=min(self.visits + 1, _MAX_VISITS),
            visits_without_token=min(self.visits_without_token + features.came_without_token, _MAX_VISITS),
            former=former,
            networks=networks,
            addresses=tuple(known[each] for each in networks),
            tokens=self._tokens_after(features, now_ms // 1000, at_proven_address=proven),
            exact_hashes=_first(features.exact, self.exact_hashes, EXACT_HASHES),
            listed=self.listed or now_ms // 1000 // DAY_S > self.first_seen_s // DAY_S,
        )

    def _tokens_after(self, features: Features, now_s: int, *, at_proven_address: bool) -> tuple[Token, ...]:
        tokens = self.tokens
        token = self.token(features.token) if features.token else None
        known_device = False
        if features.device:
            known_device = self.token(features.device) is not None
            # Beside a token of the visitor's that did not come with it, a device id may be a thief's, whatever the
            # address.
            if known_device or token is not None or (at_proven_address and not tokens):
                others = tuple(each for each in tokens if each.hash != features.device and each.origin != DEVICE)
                tokens = of_tokens.kept((*others, of_tokens.joining_device(features, now_s)))
        if not features.token:
            return tokens
        if token is None:
            beside = any(other.origin == features.origin for other in tokens)
            days = (
                0
                if known_device
                else parameters.JOINED_DAYS
                if at_proven_address and beside
                else parameters.PROBATION_DAYS
            )
            return of_tokens.replaced(tokens, of_tokens.joining(features, now_s, days))
        at_home = self.has_near_network(features.near_network)
        home = self.home_address if features.key and not token.key else 0
        after = of_tokens.come_back(token, features, now_s, at_home=at_home, others=tokens, home_address=home)
        return of_tokens.replaced(tokens, after)

    def pack(self) -> bytes:
        """Return the record as little-endian bytes: a format byte, the fixed part, four counts, lists and activity."""
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
                    f"<{len(exact_hashes)}Q{3 * len(networks)}I",
                    *exact_hashes,
                    *(half for network in networks for half in network),
                    *self.addresses,
                ),
                of_tokens.pack(tokens),
                *(_FORMER.pack(*pair) for pair in former),
                self.activity,
            ),
        )

    @staticmethod
    def unpack(raw: bytes) -> Visitor:
        """Return the record in bytes of this format or an earlier one. Raises `ValueError` for others."""
        listed = _FORMATS.get(raw[0]) if raw else None
        if listed is None:
            raise ValueError(f"not a visitor record of format {FORMAT}: first byte {raw[:1]!r}")
        fixed = _FIXED.unpack_from(raw)
        former_count, network_count, token_count, exact_count = fixed[-4:]
        is_current = raw[0] >= 4  # with tokens as they are now
        longs = exact_count if is_current else token_count + exact_count
        addresses_at = longs + 2 * network_count
        words = (2 if raw[0] == 1 else 3) * network_count
        lists = _lists(longs, words)(raw, _FIXED.size)
        at = _FIXED.size + 8 * longs + 4 * words
        if is_current:
            tokens, at = of_tokens.unpack(raw, at, token_count)
            exact_hashes = lists[:exact_count]
        else:
            probation = (0,) * token_count if raw[0] == 1 else tuple(raw[at : at + token_count])
            at += 0 if raw[0] == 1 else token_count
            tokens = of_tokens.of_version_4(lists[:token_count], probation, fixed[4], fixed[5])
            exact_hashes = lists[token_count:longs]
        visitor_id, activity_at = fixed[1], at + _FORMER.size * former_count
        networks: Any = tuple([lists[offset : offset + 2] for offset in range(longs, addresses_at, 2)])
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
            tuple(_FORMER.iter_unpack(raw[at:activity_at])) if former_count else (),
            networks,
            (0,) * network_count if raw[0] == 1 else lists[addresses_at:],
            tokens,
            exact_hashes,
            listed,
            raw[activity_at:],
        )

    @staticmethod
    def activity_in(raw: bytes) -> bytes:
        """Return `unpack(raw).activity` without the rest, which takes longer. Raises `ValueError` as it does."""
        if not raw or raw[0] not in (FORMAT, _UNLISTED):
            return Visitor.unpack(raw).activity
        former_count, network_count, token_count, exact_count = raw[_FIXED.size - 4 : _FIXED.size]
        at = of_tokens.end_of(raw, _FIXED.size + 8 * exact_count + 12 * network_count, token_count)
        return raw[at + _FORMER.size * former_count :]


@lru_cache(maxsize=256)
def _lists(longs: int, words: int) -> Callable[[bytes, int], tuple[int, ...]]:
    """Return a function that reads the lists of a packed record, given its bytes and an offset."""
    return struct.Struct(f"<{longs}Q{words}I").unpack_from


def first_record(
    features: Features,
    now_ms: int,
    *,
    parent: int = 0,
    parent_probability: float = 0.0,
    listed: bool = True,
    token_since_s: int | None = None,
) -> Visitor:
    """Return the record of a new visitor; the caller gives it its id. `parent`: the number of the visitor that it was
    split from in doubt, with the probability (0 to 1) that the two are the same after all. `token_since_s`: when its
    token was first seen, if that is not now.
    """
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
        tokens=of_tokens.of_new_visitor(features, now_ms // 1000, token_since_s),
        exact_hashes=(features.exact,),
        listed=listed,
    )


def _first(item: _Item, others: tuple[_Item, ...], most: int) -> tuple[_Item, ...]:
    if others and others[0] == item:
        return others
    return (item, *(other for other in others if other != item))[:most]


def _follow(
    values: tuple[int, ...], former: tuple[tuple[int, int], ...], reported: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Return the template after a report, and its former values. What was not reported stays."""
    if reported == values:
        return values, former
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
