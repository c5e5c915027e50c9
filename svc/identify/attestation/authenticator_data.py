"""Authenticator data: what the device signs of itself, in attestations and in assertions of App Attest.

What may live here: its binary layout (Web Authentication 6.1, as Apple uses it). The flags are not asked: an assertion
claims to carry a credential and does not, and a map that follows is announced by some devices only. What is there is
found by its offset.

The objects of App Attest are CBOR (RFC 8949), read strictly: lengths are definite and written in the shortest form, a
map has no key twice, and there are no tags. Depth and number of items are bounded.
"""

from __future__ import annotations

import struct
from typing import Any, cast

import msgspec

from svc.identify.attestation.challenge import AppleEnvironment

MAX_DEPTH = 6
MAX_ITEMS = 128
"""Items inside one item, including itself and keys of maps. Objects of current devices have 13 at most."""

_SIMPLE = 7
_SIMPLE_VALUES = {20: False, 21: True, 22: None}
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}


class CborError(ValueError):
    """The bytes are not the part of CBOR that is read here."""


def read_item(raw: bytes, start: int = 0) -> tuple[Any, int]:
    """Return the item that begins at `start`, and where it ends. Raises `CborError`; no bytes make it raise anything
    else.

    Integers, byte strings, text, lists, dictionaries, `bool`, `None` and floats; keys of dictionaries are integers,
    byte strings or text.
    """
    reader = _Reader(raw, start)
    return reader.item(MAX_DEPTH), reader.at


def read_map(raw: bytes, start: int = 0) -> dict[Any, Any]:
    """Return the map that begins at `start` and ends with the bytes. Raises `CborError` for anything else."""
    found, end = read_item(raw, start)
    if type(found) is not dict or end != len(raw):
        raise CborError("not one map")
    return cast("dict[Any, Any]", found)


class _Reader:
    def __init__(self, raw: bytes, at: int) -> None:
        self._raw = raw
        self._items = 0
        self.at = at

    def item(self, depth: int) -> Any:
        self._items += 1
        if not depth or self._items > MAX_ITEMS:
            raise CborError("too deep or too many items")
        (first,) = self._take(1)
        kind, info = first >> 5, first & 0x1F
        if kind == _SIMPLE:
            return self._simple(info)
        number = self._number(info)
        match kind:
            case 0 | 1:
                return -1 - number if kind else number
            case 2:
                return self._take(number)
            case 3:
                return self._text(number)
            case 4:
                return [self.item(depth - 1) for _ in range(number)]
            case 5:
                return self._map(number, depth - 1)
            case _:
                raise CborError("a tag")

    def _take(self, count: int) -> bytes:
        start, self.at = self.at, self.at + count
        if self.at > len(self._raw):
            raise CborError("the bytes end early")
        return self._raw[start : self.at]

    def _number(self, info: int) -> int:
        if info < 24:
            return info
        if info > 27:
            raise CborError("a length that is not definite")
        size = 1 << (info - 24)
        number = int.from_bytes(self._take(size))
        if number < (24 if size == 1 else 1 << (4 * size)):
            raise CborError("a number that is not in its shortest form")
        return number

    def _text(self, count: int) -> str:
        try:
            return self._take(count).decode()
        except UnicodeDecodeError as error:
            raise CborError("text that is not UTF-8") from error

    def _map(self, count: int, depth: int) -> dict[Any, Any]:
        read: dict[Any, Any] = {}
        for _ in range(count):
            key = self.item(depth)
            if type(key) not in (int, bytes, str) or key in read:
                raise CborError("a key of a map that is repeated, or of another kind")
            read[key] = self.item(depth)
        return read

    def _simple(self, info: int) -> Any:
        if info in _FLOATS:
            layout = _FLOATS[info]
            (number,) = struct.unpack(layout, self._take(struct.calcsize(layout)))
            return number
        if info not in _SIMPLE_VALUES:
            raise CborError("a simple value that is not known")
        return _SIMPLE_VALUES[info]


KEY_ID_BYTES = 32
MAX_VERSION = 64
"""Characters that are kept of a bundle version."""

_HEAD_BYTES = 37
_COUNTER = slice(33, 37)
_AAGUID = slice(37, 53)
_CREDENTIAL_ID_LENGTH = slice(53, 55)
_CREDENTIAL_ID = slice(55, 55 + KEY_ID_BYTES)
_KEY = _CREDENTIAL_ID.stop

_ENVIRONMENTS: dict[bytes, AppleEnvironment] = {
    b"appattestdevelop": "development",
    b"appattest\x00\x00\x00\x00\x00\x00\x00": "production",
}
_COSE_P256 = {1: 2, 3: -7, -1: 1}
"""Fields of a COSE key (RFC 9053): EC2, ES256, P-256. Its fields -2 and -3 are x and y."""

DISTRIBUTIONS = {
    1: "system",
    2: "testflight",
    3: "development",
    4: "app_store",
    5: "enterprise",
    6: "developer_id",
    10: "other",
}
"""`apple_validation_category_01`, since iOS 27: how the app came onto the device."""


class AuthenticatorData(msgspec.Struct, frozen=True):
    """The authenticator data of an assertion or an attestation."""

    app_digest: bytes
    """SHA-256 of the app id."""
    counter: int
    bundle_version: str | None = None
    distribution: str | None = None
    """A name of `DISTRIBUTIONS`; the number as text where it has none."""


class AttestedCredential(msgspec.Struct, frozen=True):
    """The part that only an attestation has."""

    environment: AppleEnvironment | None
    """`None` for an identifier that is neither."""
    id: bytes
    """32 bytes."""
    point: bytes | None
    """The public key, uncompressed; `None` for a key that is not one of P-256."""


def read_assertion_data(raw: bytes) -> AuthenticatorData:
    """Return 37 bytes, and since iOS 27 a map behind them. Raises `ValueError` for anything else."""
    if len(raw) < _HEAD_BYTES:
        raise ValueError("authenticator data ends early")
    return _head(raw, _HEAD_BYTES)


def read_attestation_data(raw: bytes) -> tuple[AuthenticatorData, AttestedCredential]:
    """Return 37 bytes, a credential of 32 bytes with its key, and since iOS 27 a map behind it. Raises `ValueError` for
    anything else.
    """
    if len(raw) < _KEY or int.from_bytes(raw[_CREDENTIAL_ID_LENGTH]) != KEY_ID_BYTES:
        raise ValueError("authenticator data has no credential of 32 bytes")
    key, end = read_item(raw, _KEY)
    return _head(raw, end), AttestedCredential(_ENVIRONMENTS.get(raw[_AAGUID]), raw[_CREDENTIAL_ID], _point(key))


def _head(raw: bytes, end: int) -> AuthenticatorData:
    extensions = {} if end == len(raw) else read_map(raw, end)
    version = extensions.get("apple_bundle_version_01")
    category = extensions.get("apple_validation_category_01")
    number = int.from_bytes(category, "little") if type(category) is bytes and len(category) == 4 else None
    return AuthenticatorData(
        app_digest=raw[:32],
        counter=int.from_bytes(raw[_COUNTER]),
        bundle_version=version[:MAX_VERSION] if type(version) is str else None,
        distribution=None if number is None else DISTRIBUTIONS.get(number, str(number)),
    )


def _point(key: Any) -> bytes | None:
    """Return a COSE key in the uncompressed form; `None` unless it is on P-256."""
    if type(key) is not dict:
        return None
    fields = cast("dict[Any, Any]", key)
    x, y = fields.get(-2), fields.get(-3)
    is_p256 = all(fields.get(name) == value for name, value in _COSE_P256.items())
    if not is_p256 or type(x) is not bytes or type(y) is not bytes:
        return None
    return b"\x04" + x + y
