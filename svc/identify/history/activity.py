"""What a visitor or an address did lately, as its row keeps it: its velocity in each kind of environment, and its day.

What may live here: these records, how a day begins again, and their bytes. Pure. What they show is in `evidence`. An
identification reads and writes either once: a row at a random place of the store costs more than what is in it
(docs/adr/0216).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from svc.identify.velocity.counts import EMPTY, EnvironmentKind, VelocityRow


class VisitorHistory(msgspec.Struct, frozen=True):
    """What a visitor did lately. Times are seconds since 1970."""

    activity: tuple[tuple[int, int], ...] = ()
    """(slot of ten minutes since 1970, identifications in it), newest first."""
    addresses: tuple[tuple[int, int], ...] = ()
    """(address id, last seen), newest first: the latest `MANY_ADDRESSES`."""
    countries: tuple[tuple[str, int], ...] = ()
    """(ISO 3166-1 code, last seen), newest first: the latest `MANY_COUNTRIES`."""
    lessons: int = 0
    """Visits of its UTC day that matching learned from, up to `VISITOR_UPDATES`."""
    day: int = 0
    """The UTC day of its last visit, since 1970."""

    def on(self, day: int) -> VisitorHistory:
        """Return the history as it counts on a UTC day: the first visit of a day takes over the day before, but counts
        lessons from zero. A visit of the day before may be committed after midnight's.
        """
        if day <= self.day <= day + 1:
            return self
        if self.day == day - 1:
            return VisitorHistory(self.activity, self.addresses, self.countries, 0, day)
        return VisitorHistory(day=day)

    def pack(self) -> bytes:
        """Return 8 bytes, and 5, 12 and 6 for each slot, address and country; little-endian (docs/internals/format.md).
        Nothing for an empty history.
        """
        if not self.day:
            return b""
        slots, counts = zip(*self.activity, strict=True) if self.activity else ((), ())
        addresses, seen = zip(*self.addresses, strict=True) if self.addresses else ((), ())
        codes, in_country = zip(*self.countries, strict=True) if self.countries else ((), ())
        sizes = len(slots), len(addresses), len(codes)
        return _visitor_layout(*sizes).pack(
            self.day,
            self.lessons,
            *sizes,
            *slots,
            *counts,
            *addresses,
            *seen,
            *(code.encode() for code in codes),
            *in_country,
        )

    @staticmethod
    def unpack(raw: bytes) -> VisitorHistory:
        """Return the history in these bytes. Raises `struct.error` for bytes that are none."""
        if not raw:
            return VisitorHistory()
        sizes = _VISITOR_HEAD.unpack_from(raw)[2:]
        found = _visitor_layout(*sizes).unpack(raw)
        lists: list[tuple[Any, ...]] = []
        at = len(_HEAD_OF_VISITOR)
        for size in sizes:
            lists.append(tuple(zip(found[at : at + size], found[at + size : at + 2 * size], strict=True)))
            at += 2 * size
        countries = tuple((code.decode(), at_s) for code, at_s in lists[2])
        return VisitorHistory(lists[0], lists[1], countries, found[1], found[0])


_HEAD_OF_VISITOR: Final = "IBBBB"
_VISITOR_HEAD: Final = struct.Struct(f"<{_HEAD_OF_VISITOR}")
"""Day, lessons, and the sizes of the three lists."""


@lru_cache(maxsize=256)
def _visitor_layout(slots: int, addresses: int, countries: int) -> struct.Struct:
    lists = f"{slots}I{slots}B{addresses}Q{addresses}I" + "2s" * countries + f"{countries}I"
    return struct.Struct(f"<{_HEAD_OF_VISITOR}{lists}")


class AddressHistory(msgspec.Struct, frozen=True):
    """The first visitors behind an address on one UTC day: a sample, which is enough to judge the rest by."""

    visitors: tuple[int, ...] = ()
    """Their numbers; for visitors that cannot be recognized, the 64-bit hash of the report."""
    homelands: tuple[str, ...] = ()
    """The country that each one's clock is set to, in the same order."""
    lessons: int = 0
    """Visits of this day that matching learned from, up to `ADDRESS_UPDATES`."""
    lookalikes: int = 0
    """New visitors of this day whose very report others sent before, up to `LOOKALIKES`."""
    day: int = 0
    """The day, since 1970."""

    def on(self, day: int) -> AddressHistory:
        """Return the history of a UTC day, which begins empty; the day before may be committed after midnight."""
        return self if day <= self.day <= day + 1 else AddressHistory(day=day)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing of its day."""
        return not (self.visitors or self.lessons or self.lookalikes)

    def without(self, visitor: int) -> AddressHistory:
        """Return the history without a visitor, by its number; an empty one where no other is left, since that would be
        a count under an address that may be this visitor's alone.
        """
        kept = [pair for pair in zip(self.visitors, self.homelands, strict=True) if pair[0] != visitor]
        if not kept:
            return AddressHistory()
        visitors, homelands = tuple(number for number, _ in kept), tuple(homeland for _, homeland in kept)
        return AddressHistory(visitors, homelands, self.lessons, self.lookalikes, self.day)

    def pack(self) -> bytes:
        """Return 7 bytes and 10 a visitor, little-endian (docs/internals/format.md); none for an empty history."""
        if self.is_empty:
            return b""
        size = len(self.visitors)
        homelands = (homeland.encode() for homeland in self.homelands)
        return _address_layout(size).pack(self.day, self.lessons, self.lookalikes, size, *self.visitors, *homelands)

    @staticmethod
    def unpack(raw: bytes) -> AddressHistory:
        """Return the history in these bytes. Raises `struct.error` for bytes that are none."""
        if not raw:
            return AddressHistory()
        size = _ADDRESS_HEAD.unpack_from(raw)[3]
        day, lessons, lookalikes, _, *both = _address_layout(size).unpack(raw)
        homelands = tuple(homeland.decode() for homeland in both[size:])
        return AddressHistory(tuple(both[:size]), homelands, lessons, lookalikes, day)


_ADDRESS_HEAD: Final = struct.Struct("<IBBB")
"""Day, lessons, lookalikes, and the number of visitors."""


@lru_cache(maxsize=64)
def _address_layout(visitors: int) -> struct.Struct:
    return struct.Struct(f"<IBBB{visitors}Q" + "2s" * visitors)


_SIZES: Final = struct.Struct("<HH")
"""Bytes of the velocity in production, and outside of it."""


class _Rows(NamedTuple):
    live: VelocityRow
    test: VelocityRow
    rest: bytes

    @property
    def packed(self) -> bytes:
        live, test = (b"" if row is EMPTY or row == EMPTY else row.pack() for row in (self.live, self.test))
        return b"".join((_SIZES.pack(len(live), len(test)), live, test, self.rest))

    @staticmethod
    def of(raw: bytes) -> _Rows:
        live, test = _SIZES.unpack_from(raw)
        test_at = _SIZES.size + live
        rest_at = test_at + test
        return _Rows(
            VelocityRow.unpack(raw[_SIZES.size : test_at]) if live else EMPTY,
            VelocityRow.unpack(raw[test_at:rest_at]) if test else EMPTY,
            raw[rest_at:],
        )


class VisitorActivity(NamedTuple):
    """Of a visitor."""

    live: VelocityRow = EMPTY
    test: VelocityRow = EMPTY
    history: VisitorHistory = VisitorHistory()

    def row(self, kind: EnvironmentKind) -> VelocityRow:
        """Return its velocity in environments of this kind."""
        return self.live if kind == "live" else self.test

    def with_row(self, kind: EnvironmentKind, row: VelocityRow) -> VisitorActivity:
        """Return the same with this velocity."""
        return VisitorActivity(row, self.test, self.history) if kind == "live" else self._replace(test=row)

    def since(self, oldest_s: int) -> VisitorActivity:
        """Return what is left where nothing from before this time (Unix seconds) is kept of a visitor that was not seen
        since; the same object if it was.
        """
        last_s = max(self.live.last_s, self.test.last_s)
        return self if last_s > oldest_s else VisitorActivity()

    def pack(self) -> bytes:
        """Return its bytes (docs/internals/format.md); none for an empty one."""
        return b"" if self == VisitorActivity() else _Rows(self.live, self.test, self.history.pack()).packed

    @staticmethod
    def unpack(raw: bytes) -> VisitorActivity:
        """Return the activity in these bytes. Raises `struct.error` for bytes that are none."""
        if not raw:
            return VisitorActivity()
        live, test, rest = _Rows.of(raw)
        return VisitorActivity(live, test, VisitorHistory.unpack(rest))

    @staticmethod
    def row_in(raw: bytes, kind: EnvironmentKind) -> VelocityRow:
        """Return `unpack(raw).row(kind)`, without the rest."""
        if not raw:
            return EMPTY
        live, test = _SIZES.unpack_from(raw)
        at, size = (_SIZES.size, live) if kind == "live" else (_SIZES.size + live, test)
        return VelocityRow.unpack(raw[at : at + size]) if size else EMPTY


class AddressActivity(NamedTuple):
    """Of an address."""

    live: VelocityRow = EMPTY
    test: VelocityRow = EMPTY
    history: AddressHistory = AddressHistory()

    def row(self, kind: EnvironmentKind) -> VelocityRow:
        """Return its velocity in environments of this kind."""
        return self.live if kind == "live" else self.test

    def with_row(self, kind: EnvironmentKind, row: VelocityRow) -> AddressActivity:
        """Return the same with this velocity."""
        return AddressActivity(row, self.test, self.history) if kind == "live" else self._replace(test=row)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing, whatever the window."""
        return self.live.is_empty and self.test.is_empty and self.history.is_empty

    def pack(self) -> bytes:
        """Return its bytes (docs/internals/format.md)."""
        return _Rows(self.live, self.test, self.history.pack()).packed

    @staticmethod
    def unpack(raw: bytes) -> AddressActivity:
        """Return the activity in these bytes. Raises `struct.error` for bytes that are none."""
        live, test, rest = _Rows.of(raw)
        return AddressActivity(live, test, AddressHistory.unpack(rest))
