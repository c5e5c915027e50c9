"""The tokens of one visitor: values that its browser, or its system, brings back on a later visit.

What may live here: what is kept of a token, how long it has to prove itself, which other tokens contradict it, and its
bytes. A token lies in the storage of one site (`origin`); the identifier of a device lies in the system and is kept as
a token of the origin `DEVICE`.

A browser has one token for each origin. So two tokens of one origin that both come back are two browsers, whatever
their reports say: twins, profiles of one computer, a copied report. A token that never comes back was a private
window's, or its storage was cleared.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from svc.identify.matching.features import Features
from svc.identify.matching.parameters import PROBATION_DAYS, SILENT_DAYS

TOKENS: Final = 12
"""Tokens kept of a visitor."""
DEVICE: Final = 1
"""Origin of identifiers that the system gives a device."""
UNKNOWN_ORIGIN: Final = 0
"""Of tokens that store version 4 kept, until they come back."""

CAME_BACK: Final = 1
"""Lowest bit of a stored token: it was read back from the browser's storage at least once."""
IN_DOUBT: Final = PROBATION_DAYS + 1
"""Days of probation of a token that joined by a link which was not sure enough to change the template."""
STRANGERS: Final = 255
"""In place of days of probation: the token of another device that passed for this visitor."""
RENEWED: Final = 254
"""In place of days of probation: its browser has another one. A page that was open may bring it again, signed."""
DAY_S: Final = 86_400

_PRIVATE, _KEYED, _KEY_WAITS, _DISPUTED = 1, 2, 4, 8
_LAYOUT: Final = struct.Struct("<QIIIBB")
_KEY_LAYOUT: Final = struct.Struct("<QI")
_WAIT_LAYOUT: Final = struct.Struct("<IHBB")
LENGTH: Final = _LAYOUT.size
KEY_LENGTH: Final = _KEY_LAYOUT.size
WAIT_LENGTH: Final = _WAIT_LAYOUT.size


class KeyProbation(msgspec.Struct, frozen=True, gc=False):
    """The probation of a key that signed with a token which had none (decisions 18.2)."""

    address: int
    """Hash of the only address that the visitor had on two days before the key first signed; 0 = there is none."""
    day: int
    """The last day that was counted, in days since 1970."""
    at_home: int
    """Days on which it signed at that address."""
    anywhere: int
    """Days on which it signed."""

    def signed(self, address: int, now_s: int) -> KeyProbation | None:
        """Return the probation after a signed visit from `address`; `None` once the key has joined."""
        day = now_s // DAY_S
        if day <= self.day:
            return self
        at_home = self.at_home + (address == self.address != 0)
        if at_home >= KEY_DAYS_AT_HOME or self.anywhere + 1 >= KEY_DAYS:
            return None
        return KeyProbation(self.address, day, at_home, self.anywhere + 1)


KEY_DAYS_AT_HOME: Final = 3
KEY_DAYS: Final = 5


class Token(msgspec.Struct, frozen=True, gc=False):
    """The record of a token. Times are seconds since 1970, hashes as in `Features`."""

    hash: int
    origin: int
    first_s: int
    last_s: int
    """May lie up to six hours before the true time: visits that change nothing are not written."""
    probation: int = 0
    """How many more days it must come from a known network before it proves anything from elsewhere."""
    came_back: bool = False
    private: bool = False
    """It joined in a private window, whose storage is erased when the window is closed."""
    key: int = 0
    """Hash of the public key that signs the reports of its browser; 0 = none does."""
    key_s: int = 0
    """When the first report was signed by that key."""
    key_probation: KeyProbation | None = None
    """`None` once the key has joined: it proves then, and before it does not."""
    is_disputed: bool = False
    """Its browser is to renew it: another key signed with it, or its key was revoked. A key that had joined before is
    proof all the same; one that had not never is."""

    @property
    def has_joined_key(self) -> bool:
        """Whether a report that its key signed is proven."""
        return self.key != 0 and self.key_probation is None

    @property
    def has_no_proof(self) -> bool:
        """Whether no report with it is ever proven: rival keys claimed it, or its key was revoked."""
        return self.is_disputed and self.key_probation is not None

    @property
    def is_own(self) -> bool:
        """Whether a browser of this visitor may still have it."""
        return self.probation < RENEWED

    @property
    def is_live(self) -> bool:
        """Whether a browser of this visitor is known to have stored it."""
        return self.came_back and self.probation < RENEWED

    def needs_key(self, now_s: int) -> bool:
        """Return whether its browser has signed for so long that a report without a signature is another's."""
        return self.has_joined_key and now_s - self.key_s >= KEY_NEEDED_AFTER_S


KEY_NEEDED_AFTER_S: Final = 7 * DAY_S


def joining(features: Features, now_s: int, probation: int) -> Token:
    """Return the record of the report's token as it joins a visitor."""
    return Token(
        features.token,
        features.origin,
        now_s,
        now_s,
        probation,
        came_back=not features.token_is_new,
        private=features.private,
        key=features.key,
        key_s=now_s if features.key else 0,
    )


def joining_device(features: Features, now_s: int) -> Token:
    """Return the record of the report's device id as it joins a visitor."""
    return Token(features.device, DEVICE, now_s, now_s, came_back=True)


def come_back(
    token: Token, features: Features, now_s: int, *, at_home: bool, others: tuple[Token, ...], home_address: int = 0
) -> Token:
    """Return the token after a visit that presented it again and is surely its visitor's. `at_home`: the visit is from
    a network that the visitor used before; `others`: the visitor's other tokens; `home_address`: see `KeyProbation`.
    """
    new_day = now_s // DAY_S > token.last_s // DAY_S
    key, key_s, waits, disputed = token.key, token.key_s, token.key_probation, token.is_disputed
    if features.key and not key:
        key, key_s = features.key, now_s
        waits = KeyProbation(home_address, now_s // DAY_S, int(features.address == home_address != 0), 1)
    elif features.key:
        disputed = disputed or features.key != key
        waits = waits if disputed or waits is None else waits.signed(features.address, now_s)
    probation = token.probation
    if 0 < probation < RENEWED and new_day and at_home and not token.private:
        # Until the other token of its storage has been silent for days, this one may be a neighbor's.
        left = max(min(probation, PROBATION_DAYS) - 1, 0)
        probation = left or int(not _is_silent(token, others, now_s))
    return msgspec.structs.replace(
        token,
        origin=features.origin,
        last_s=max(token.last_s, now_s),
        probation=probation,
        came_back=token.came_back or not features.token_is_new,
        private=token.private and not new_day,
        key=key,
        key_s=key_s,
        key_probation=waits,
        is_disputed=disputed,
    )


def revoked(token: Token, now_s: int) -> Token:
    """Return the token after its key was revoked: it proves nothing, and the browser is to renew both."""
    return msgspec.structs.replace(token, key_probation=KeyProbation(0, now_s // DAY_S, 0, 0), is_disputed=True)


def is_replaced(token: Token, tokens: tuple[Token, ...]) -> bool:
    """Return whether a signed token of the same origin took the place of this one, which nothing proves any more."""
    return token.has_no_proof and any(
        other.origin == token.origin and other.is_live and other.has_joined_key
        for other in tokens[: _index(token, tokens)]
    )


def _is_silent(token: Token, tokens: tuple[Token, ...], now_s: int) -> bool:
    """Return whether no older token of the same origin came for days."""
    older = older_beside(token, tokens)
    return older is None or now_s - older.last_s >= SILENT_DAYS * DAY_S


def rivals_of(token: Token, tokens: tuple[Token, ...], now_s: int) -> tuple[Token, ...]:
    """Return the other tokens that must belong to other browsers, now that this one came back: they joined in its
    storage after it, which was therefore not cleared. Tokens of a private window that may still be open are left out,
    and those of an unknown origin, which may be of another site. A token that two keys claim, or that was renewed, says
    nothing of others.
    """
    if len(tokens) == 1 or token.origin == UNKNOWN_ORIGIN or token.has_no_proof or token.probation == RENEWED:
        return ()
    return tuple(
        other
        for other in tokens[: _index(token, tokens)]
        if other.origin == token.origin
        and other.is_own
        and not (other.private and now_s // DAY_S == other.first_s // DAY_S)
    )


def dropped(hash_: int, features: Features, tokens: tuple[Token, ...], since_s: int) -> Token | None:
    """Return the record of a token that joined these after `since_s`, was dropped since so many joined after it, and
    now comes back: a stranger's, as a storage that was cleared brings no token back. `None` if no token of its site is
    left: then those that joined may be of other sites.
    """
    if features.token_is_new or all(token.origin != features.origin for token in tokens):
        return None
    return Token(hash_, features.origin, since_s, since_s, STRANGERS, came_back=True)


def _index(token: Token, tokens: tuple[Token, ...]) -> int:
    """Return a token's index among those of a visitor, which are in the order in which they joined, newest first."""
    return next(index for index, other in enumerate(tokens) if other.hash == token.hash)


def without_strangers(tokens: tuple[Token, ...], strangers: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return the tokens, with `strangers` marked as tokens of other browsers."""
    return tuple(
        msgspec.structs.replace(token, probation=STRANGERS) if token in strangers else token for token in tokens
    )


def older_beside(token: Token, tokens: tuple[Token, ...]) -> Token | None:
    """Return the visitor's own older token of the same origin that was seen last; `None` if there is none."""
    if len(tokens) == 1 or token.probation == RENEWED:
        return None
    older = [other for other in tokens[_index(token, tokens) + 1 :] if other.origin == token.origin and other.is_own]
    return max(older, key=lambda other: other.last_s, default=None)


def kept(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return at most `TOKENS` of the tokens, in their order. Client tokens of other browsers are dropped first, then
    those that never came back, then those that did; within each of these, those whose last visit is longest ago, and of
    the same second those that joined first. The token that the visitor began with is the last of its kind to go: among
    equal devices, which join while they are strangers to each other, it is the one whose visitor this is. The last one
    that joined on its site had no time yet to come back: it goes after those that it is the successor of (ADR 235).
    """
    if len(tokens) <= TOKENS:
        return tokens
    dispensable = min(reversed(tokens), key=lambda token: _worth(token, tokens))
    return kept(tuple(token for token in tokens if token is not dispensable))


def _worth(token: Token, tokens: tuple[Token, ...]) -> tuple[bool | int, ...]:
    """Return what orders tokens by how dispensable they are, the most dispensable first."""
    is_first = token is tokens[-1]
    later = [each for each in tokens[: _index(token, tokens)] if each.origin == token.origin and each.is_own]
    is_superseded = not is_first and any(each.is_live for each in later)
    return token.is_own, token.is_live or not later, not is_superseded, token.is_live, is_first, token.last_s


def replaced(tokens: tuple[Token, ...], token: Token) -> tuple[Token, ...]:
    """Return the tokens, this one in the place of that of its hash, or as the newest; `TOKENS` at most are kept."""
    for index, known in enumerate(tokens):
        if known.hash == token.hash:
            return (*tokens[:index], token, *tokens[index + 1 :])
    return kept((token, *tokens))


def told_apart(after: tuple[Token, ...], before: tuple[Token, ...]) -> bool:
    """Return whether anything but the times of last visits changed."""
    if after is before:
        return False
    if len(after) != len(before):
        return True
    for new, old in zip(after, before, strict=True):
        if new is not old and (
            new.hash != old.hash
            or new.probation != old.probation
            or new.came_back != old.came_back
            or new.origin != old.origin
            or new.private != old.private
            or new.key != old.key
            or new.key_probation != old.key_probation
            or new.is_disputed != old.is_disputed
        ):
            return True
    return False


def pack(tokens: tuple[Token, ...]) -> bytes:
    """Return 22 little-endian bytes a token, then 12 for each with a key, then 8 for each key on probation."""
    rows: list[bytes] = []
    keys: list[bytes] = []
    waiting: list[bytes] = []
    for token in tokens:
        flags = _PRIVATE if token.private else 0
        if token.key:
            flags |= _KEYED
            keys.append(_KEY_LAYOUT.pack(token.key, token.key_s))
            if token.is_disputed:
                flags |= _DISPUTED
            waits = token.key_probation
            if waits is not None:
                flags |= _KEY_WAITS
                waiting.append(_WAIT_LAYOUT.pack(waits.address, waits.day, waits.at_home, waits.anywhere))
        rows.append(
            _LAYOUT.pack(
                token.hash | token.came_back, token.origin, token.first_s, token.last_s, token.probation, flags
            )
        )
    return b"".join((*rows, *keys, *waiting))


def unpack(raw: bytes, at: int, count: int) -> tuple[tuple[Token, ...], int]:
    """Read `count` tokens from the bytes of `pack` at offset `at`; return them and the offset after them."""
    tokens: list[Token] = []
    keys_at = at + count * LENGTH
    waiting: list[int] = []
    for offset in range(at, keys_at, LENGTH):
        value, origin, first_s, last_s, probation, flags = _LAYOUT.unpack_from(raw, offset)
        key = key_s = 0
        if flags & _KEYED:
            key, key_s = _KEY_LAYOUT.unpack_from(raw, keys_at)
            keys_at += KEY_LENGTH
            if flags & _KEY_WAITS:
                waiting.append(len(tokens))
        tokens.append(
            Token(
                value & ~CAME_BACK,
                origin,
                first_s,
                last_s,
                probation,
                bool(value & CAME_BACK),
                bool(flags & _PRIVATE),
                key,
                key_s,
                None,
                bool(flags & _DISPUTED),
            )
        )
    for index in waiting:  # their rows stand behind those of all keys
        probation_of_key = KeyProbation(*_WAIT_LAYOUT.unpack_from(raw, keys_at))
        tokens[index] = msgspec.structs.replace(tokens[index], key_probation=probation_of_key)
        keys_at += WAIT_LENGTH
    return tuple(tokens), keys_at


def of_new_visitor(features: Features, now_s: int, since_s: int | None) -> tuple[Token, ...]:
    """Return the tokens of a visitor's first report. `since_s`: when its token was first seen, if that is not now."""
    tokens = (joining(features, now_s, 0),) if features.token else ()
    if since_s is not None:
        tokens = tuple(msgspec.structs.replace(token, first_s=since_s) for token in tokens)
    return (*tokens, joining_device(features, now_s)) if features.device else tokens


def end_of(raw: bytes, at: int, count: int) -> int:
    """Return the offset after `count` tokens, as `unpack` does, without reading them."""
    flags = raw[at + LENGTH - 1 : at + count * LENGTH : LENGTH]
    keyed = sum(1 for each in flags if each & _KEYED)
    waiting = sum(1 for each in flags if each & _KEYED and each & _KEY_WAITS)
    return at + count * LENGTH + keyed * KEY_LENGTH + waiting * WAIT_LENGTH


def of_version_4(tokens: tuple[int, ...], probation: tuple[int, ...], first_s: int, last_s: int) -> tuple[Token, ...]:
    """Return the tokens of a record of store version 4, which has only hashes, newest first, and no origins."""
    return tuple(
        Token(token & ~CAME_BACK, UNKNOWN_ORIGIN, first_s, last_s, left, came_back=bool(token & CAME_BACK))
        for token, left in zip(tokens, probation, strict=True)
    )
