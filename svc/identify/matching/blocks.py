"""Blocks: the lists through which matching finds candidates without looking at every visitor.

What may live here: block keys, the value stored under one, and nothing that decides. A key survives some changes and
not others; between them, the eight kinds find nearly every return (the blocking step of record linkage, Christen,
"Data Matching", 2012, ch. 4).

    kind  over                                                              survives
    X     exact hash                                                        nothing
    E     everything but rendering and versions                             a browser upgrade
    A     model, GPU, screen, hardware, touch, first language, time zone    fonts, rendering, versions
    B     GPU, hardware, canvas, WebGL, audio, font preferences             travel, monitor, fonts, languages
    C     model, GPU, hardware, touch, fonts                                travel, monitor, languages, rendering,
                                                                            versions
    D     screen, languages, time zone, fonts, color, accessibility,       GPU and core-count noise, rendering,
          frame, rest                                                       versions
    N     class, near network (0 = an address that tells nothing)           everything but the network
    T     client token; device id                                           everything
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Final, Protocol, TypeAlias, cast

import msgspec
from blake3 import blake3

from svc.identify.matching import parameters
from svc.identify.matching.features import Features
from svc.identify.matching.parameters import BLOCK_LENGTH
from svc.identify.matching.tokens import told_apart
from svc.identify.matching.visitor import Visitor
from svc.identify.model import Attribute

BlockKey: TypeAlias = bytes
"""Nine bytes: the kind's letter and a 64-bit hash, big-endian. Short, of one width, and a dictionary key as it is."""
KEY_LENGTH: Final = 9

EXACT: Final = ord("X")
EVERYTHING: Final = ord("E")
HARDWARE: Final = ord("A")
RENDERING: Final = ord("B")
FONTS: Final = ord("C")
SETTINGS: Final = ord("D")
NETWORK: Final = ord("N")
TOKEN: Final = ord("T")

COVERED: Final[dict[int, tuple[Attribute, ...]]] = {
    EVERYTHING: (
        Attribute.MODEL,
        Attribute.GPU,
        Attribute.SCREEN,
        Attribute.PIXEL_RATIO,
        Attribute.HARDWARE,
        Attribute.TOUCH,
        Attribute.LANGUAGES,
        Attribute.TIMEZONE,
        Attribute.FONTS,
        Attribute.FRAME,
        Attribute.COLOUR,
        Attribute.ACCESSIBILITY,
        Attribute.PLUGINS,
    ),
    HARDWARE: (
        Attribute.MODEL,
        Attribute.GPU,
        Attribute.SCREEN,
        Attribute.HARDWARE,
        Attribute.TOUCH,
        Attribute.FIRST_LANGUAGE,
        Attribute.TIMEZONE,
    ),
    RENDERING: (
        Attribute.GPU,
        Attribute.HARDWARE,
        Attribute.CANVAS,
        Attribute.WEBGL,
        Attribute.AUDIO,
        Attribute.FONT_PREFERENCES,
    ),
    FONTS: (
        Attribute.MODEL,
        Attribute.GPU,
        Attribute.HARDWARE,
        Attribute.TOUCH,
        Attribute.FONTS,
    ),
    SETTINGS: (
        Attribute.SCREEN,
        Attribute.LANGUAGES,
        Attribute.TIMEZONE,
        Attribute.FONTS,
        Attribute.COLOUR,
        Attribute.ACCESSIBILITY,
        Attribute.FRAME,
        Attribute.REST,
    ),
}
"""Which attributes each kind of attribute key covers."""

_NEEDED: Final = {EVERYTHING: 3, HARDWARE: 3, RENDERING: 3, FONTS: 3, SETTINGS: 4}
"""A key over fewer reported attributes would gather half the world; it is left out."""
_SELECT: Final = {
    kind: cast("Callable[[tuple[int, ...]], tuple[int, ...]]", itemgetter(*covered))
    for kind, covered in COVERED.items()
}
"""Functions that select the covered values from those of all attributes."""
_RECIPES: Final = tuple(
    (bytes((kind,)), _SELECT[kind], len(covered) - _NEEDED[kind], struct.Struct(f"<BII{len(covered)}I").pack)
    for kind, covered in COVERED.items()
)
"""(kind, what selects the covered values, how many of them may be missing, what packs them)"""
_CANVAS: Final = int(Attribute.CANVAS)
_RENDERING: Final = bytes((RENDERING,))


@lru_cache(maxsize=64)
def attribute_keys(family: int, collector: int, values: tuple[int, ...]) -> tuple[BlockKey, ...]:
    """Return the block keys over attributes, in the order E A B C D, without those that cover too few reported
    attributes. `values`: one hash for each `Attribute`, 0 = not reported. Recent results are cached: one identification
    asks for them up to three times, 9 µs each.
    """
    keys: list[BlockKey] = []
    for letter, select, spared, pack in _RECIPES:
        selected = select(values)
        if selected.count(0) > spared or (letter == _RENDERING and not values[_CANVAS]):
            continue
        keys.append(letter + blake3(pack(letter[0], family, collector, *selected)).digest(8))
    return tuple(keys)


def same_attribute_keys(ours: tuple[int, ...], theirs: tuple[int, ...]) -> set[int]:
    """Return the kinds of attribute keys, by the hashes of two devices of one class, whose attributes are equal."""
    return {kind for kind, select in _SELECT.items() if select(ours) == select(theirs)}


def exact_key(exact: int) -> BlockKey:
    """Return the block key of kind X: the same report, by its 64-bit hash."""
    return b"X" + exact.to_bytes(8, "big")


def network_key(family: int, near_network: int) -> BlockKey:
    """Return the block key of kind N: devices of one class (`family`) in one near network, both as 32-bit hashes."""
    return b"N" + family.to_bytes(4, "big") + near_network.to_bytes(4, "big")


def token_key(token: int) -> BlockKey:
    """Return the block key of kind T: a client token or a device id, by its 64-bit hash, whose lowest bit is ignored
    since visitors store `CAME_BACK` there.
    """
    return b"T" + (token & ~1).to_bytes(8, "big")


def block_keys(features: Features) -> tuple[BlockKey, ...]:
    """Return all block keys of a report, at most nine: X, those over attributes, N, and T if it has a token, for an
    app's report also of its device id. N of the network 0 collects the devices whose addresses say nothing.
    """
    keys = (
        exact_key(features.exact),
        *attribute_keys(features.family, features.collector, features.values),
        network_key(features.family, features.near_network),
    )
    return (*keys, *map(token_key, features.keys))


_WORDS: Final = tuple(struct.Struct(f"<{words}I") for words in range(BLOCK_LENGTH + 2))
"""By number of words: the layout of that many u32."""


class Block(msgspec.Struct, frozen=True, gc=False):
    """The value stored under one block key: how many devices share it, and which visitors they are."""

    count: float = 0.0
    """Expected number of devices: a doubtful new visitor counts less than one. Kept in sixteenths."""
    numbers: tuple[int, ...] = ()
    """Visitor numbers, newest first, at most 32 (`BLOCK_LENGTH`)."""

    def with_posting(self, number: int, weight: float) -> Block:
        """Return the block with a visitor, who counts `weight` devices (0 to 1); the same object if it has it."""
        if number in self.numbers:
            return self
        return Block(self.count + round(weight * 16) / 16, (number, *self.numbers[: BLOCK_LENGTH - 1]))

    def without(self, number: int) -> Block:
        """Return the block without a visitor; the same object if it does not list the visitor."""
        if number not in self.numbers:
            return self
        return Block(max(self.count - 1.0, 0.0), tuple(other for other in self.numbers if other != number))

    def pack(self) -> bytes:
        """Return the block as bytes: the count in sixteenths, then the visitor numbers, each a little-endian u32."""
        sixteenths = min(round(self.count * 16), 0xFFFFFFFF)
        return _WORDS[len(self.numbers) + 1].pack(sixteenths, *self.numbers)

    @staticmethod
    def unpack(raw: bytes) -> Block:
        """Read the bytes of `pack`. Raises `struct.error` or `IndexError` for others."""
        words = _WORDS[len(raw) >> 2].unpack(raw)
        return Block(words[0] / 16, words[1:])


EMPTY_BLOCK: Final = Block()


_ALWAYS_LISTED: Final = (EXACT, NETWORK)
"""Kinds whose newest visitors are worth reading however long the block is."""


class Index(Protocol):
    """What the store offers to matching inside a transaction, for one organization. Repeated reads cost nothing."""

    def block(self, key: BlockKey) -> Block:
        """Return the block under this key; an empty one if there is none."""
        ...

    def visitor(self, number: int) -> Visitor | None:
        """Return the record of a visitor; `None` if no visitor has this number, or it was deleted."""
        ...


def likely_visitors(features: Features, read: Mapping[BlockKey, Block]) -> list[int]:
    """Return the numbers of the visitors whose records `match_visitor` will most likely read, the likeliest first,
    given every block of a report. It may read others.
    """
    for key in features.keys:
        known = read.get(token_key(key))
        if known is not None and known.numbers:
            return [known.numbers[0]]
    found = {key[0]: block for key, block in read.items() if key[0] != TOKEN}
    exact = found.get(EXACT, EMPTY_BLOCK).numbers
    if len(exact) == 1 and exact[0] in found.get(NETWORK, EMPTY_BLOCK).numbers:
        return [exact[0]]
    return likely_numbers(found, parameters.RECORDS_READ - 1)


def read_blocks(index: Index, features: Features) -> dict[int, Block]:
    """Return the blocks of a report by kind, except that of the token, which is proof and not compared."""
    return {key[0]: index.block(key) for key in block_keys(features) if key[0] != TOKEN}


def device_counts(read: dict[int, Block]) -> dict[int, float]:
    """Return how many devices each block counts, by kind."""
    return {kind: block.count for kind, block in read.items()}


def read_records(index: Index, numbers: Iterable[int]) -> list[tuple[int, Visitor]]:
    """Return (number, record) of these visitors, in their order, without those that were deleted."""
    return [(number, visitor) for number in numbers if (visitor := index.visitor(number)) is not None]


def likely_numbers(read: dict[int, Block], most: int) -> list[int]:
    """Return the numbers of the visitors that most of these blocks list, at most `most`; ties in the order in which
    blocks list them.

    A block that counts more devices than it lists has common values: it is counted but not searched. The few devices of
    the report's own network come first, so that a flood of copies from elsewhere cannot crowd out the owner.
    """
    votes: dict[int, int] = {}
    for kind, block in read.items():
        is_whole = block.count <= parameters.BLOCK_LENGTH
        if is_whole or kind in _ALWAYS_LISTED:
            weight = parameters.NETWORK_VOTES if is_whole and kind == NETWORK else 1
            for number in block.numbers:
                votes[number] = votes.get(number, 0) + weight
    bar = max(votes.values(), default=0) - parameters.VOTES_WITHIN
    numbers = [number for number, counted in votes.items() if counted >= bar]
    if len(numbers) > most:
        numbers.sort(key=votes.__getitem__, reverse=True)  # stable: ties stay in order
    return numbers[:most]


_KINDS_OF_UNLISTED: Final = (NETWORK, TOKEN)
"""Kinds of blocks in which a visitor stands that is not `listed`."""


def differs(after: Visitor, before: Visitor) -> bool:
    """Return whether more changed than the times and counts of visits."""
    return (
        after.values != before.values
        or told_apart(after.tokens, before.tokens)
        or after.networks != before.networks
        or after.addresses != before.addresses
        or after.exact_hashes != before.exact_hashes
        or after.browser_version != before.browser_version
        or after.os_release != before.os_release
        or after.family != before.family
        or after.collector != before.collector
        or after.listed != before.listed
    )


def keys_to_add(features: Features, visitor: Visitor, after: Visitor) -> list[BlockKey]:
    """Return the keys of the report under which this visitor does not stand yet, as far as its record tells: `visitor`
    is the one before this visit. Of token and device id those that the record has `after` it.
    """
    same_class = visitor.family == features.family
    keys: list[BlockKey] = []
    is_remembered = visitor.listed and features.exact in visitor.exact_hashes
    if not is_remembered:
        keys.append(exact_key(features.exact))
    is_comparable = visitor.listed and same_class and visitor.collector == features.collector
    if not is_comparable or features.values != visitor.values:  # most return as they were
        standing = same_attribute_keys(features.values, visitor.values) if is_comparable else ()
        covered = attribute_keys(features.family, features.collector, features.values)
        keys += [key for key in covered if key[0] not in standing]
    if not same_class or features.near_network not in dict(visitor.networks):
        keys.append(network_key(features.family, features.near_network))
    keys += [token_key(key) for key in features.keys if visitor.token(key) is None and after.token(key) is not None]
    return keys


def postings_of(keys: Iterable[BlockKey], weight: float, *, listed: bool) -> tuple[tuple[BlockKey, float], ...]:
    """Return the postings under those keys in whose blocks a visitor may stand, who is `listed` or not."""
    return tuple((key, weight) for key in keys if listed or key[0] in _KINDS_OF_UNLISTED)
