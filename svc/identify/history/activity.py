"""What a visitor or an address did lately, as its row keeps it: its velocity in each kind of environment, and its day.

What may live here: the two together, and their bytes. Pure. An identification reads and writes either once: a row at a
random place of the store costs more than what is in it (docs/adr/0216).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from svc.identify.history.days import AddressHistory, VisitorHistory
from svc.identify.velocity.counts import EMPTY, EnvironmentKind, VelocityRow

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
