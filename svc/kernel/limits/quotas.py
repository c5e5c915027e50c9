"""Quotas: what one organization may hold of the store, and take of it in a day (decisions 4); how many keys it may have
and issue (decisions 2.5).

What may live here: the count that is kept for each organization, and the rules over it.

Bytes held are an estimate that needs no look at the disk: the stored rows of archived reports by their length, and an
allowance for all that belongs to an event or to a visitor (docs/sizing.md). Ledger lines are not in it: they are for
production traffic, small, and kept for ever.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Literal, NamedTuple, get_args

import msgspec

from svc.kernel.tenants.billing import IDENTIFIABLE_MICROS, UNIDENTIFIABLE_MICROS, Usage
from svc.kernel.values.ids import DAY_MS, MAX_LEAD_MS

EVENT_BYTES = 2_304
"""An event with its index rows, its idempotency key, its replay memory and one webhook about it."""
VISITOR_BYTES = 704
"""A visitor with its blocks."""
PAGE_BYTES = 4_096
ROW_BYTES = 2_000
"""Rows that are longer lie on pages of their own."""

Quota = Literal["nonproduction_day", "archive_day", "store_share"]
"""Which quota an identification met: the response was 429, its document was not stored, or the response was 503."""
QUOTAS: tuple[Quota, ...] = get_args(Quota)


class Quotas(NamedTuple):
    """The operator's settings for what each organization may hold and take (decisions 4)."""

    nonproduction_per_day: int = 100_000
    """Identifications outside production in a UTC day."""
    archive_bytes_per_day: float = 4 << 30
    """Archived reports of production in a UTC day."""
    nonproduction_archive_bytes_per_day: float = 1 << 28
    """Archived reports of everything else in a UTC day."""
    store_share: float = 0.5
    """Of the store's capacity."""
    keys_per_day: int = 1_000
    """Keys issued in a UTC day."""


class DayCounts(msgspec.Struct, frozen=True, array_like=True):
    """What one organization has taken on one day, for quotas. Append fields with defaults, never move them."""

    nonproduction: int = 0
    archived_bytes: int = 0
    nonproduction_archived_bytes: int = 0
    keys_issued: int = 0


class DayBill(msgspec.Struct, frozen=True, array_like=True):
    """The identifications of production on a UTC day, by their price."""

    day: int
    """Since 1970."""
    identifiable: int
    unidentifiable: int
    free: int

    @property
    def usage(self) -> Usage:
        """Totals of the day's identifications in production."""
        charged = self.identifiable * IDENTIFIABLE_MICROS + self.unidentifiable * UNIDENTIFIABLE_MICROS
        return Usage(self.identifiable, self.unidentifiable, self.free, charged)


class Holding(msgspec.Struct, frozen=True, array_like=True):
    """What one organization has in the store, and what it has taken on the last day with traffic. The counts for quotas
    have a day of their own, which follows a clock that is set right; the bill's never goes back (ADR 177).
    """

    events: int = 0
    visitors: int = 0
    report_bytes: int = 0
    """`row_bytes` of its documents and deferred reports."""
    day: int = 0
    """UTC day since 1970 of the bill so far, and of the counts for quotas where `quota_day` is not set."""
    nonproduction: int = 0
    """Identifications outside production."""
    archived_bytes: int = 0
    """`row_bytes` of reports that were archived in production."""
    nonproduction_archived_bytes: int = 0
    keys_issued: int = 0
    """Keys issued on that day."""
    active_keys: ActiveKeys | None = None
    """`None` = not counted yet."""
    identifiable: int = 0
    """Identifications of production on that day, by their price; the bill of the day so far."""
    unidentifiable: int = 0
    free: int = 0
    quota_day: int | None = None
    """UTC day of the counts for quotas, where it is before `day`: a clock that was ahead has begun `day`."""
    ahead: DayCounts | None = None
    """The counts for quotas of `day`, where those in the record are of another day."""
    ended: DayBill | None = None
    """The bill of the last day before `day` with production traffic, which may not be settled yet."""

    @property
    def bill(self) -> DayBill:
        """The bill of the day so far."""
        return DayBill(self.day, self.identifiable, self.unidentifiable, self.free)

    @property
    def usage(self) -> Usage:
        """Totals of the day's identifications in production."""
        return self.bill.usage

    @property
    def held_bytes(self) -> int:
        """Estimated bytes in the store, for the limit of `Quotas.store_share`."""
        return self.events * EVENT_BYTES + self.visitors * VISITOR_BYTES + self.report_bytes

    def on(self, at_ms: int) -> Holding:
        """Return the record at this moment, the clock's own: on a later UTC day than the record's, the counts of the
        day begin at zero. At an earlier moment the counts stay, but those for quotas are of that moment's day where
        theirs is ahead by more than `MAX_LEAD_MS` (decisions 17.2). Those of `day` are kept for a clock that was right.
        """
        day = at_ms // DAY_MS
        if day > self.day:
            return Holding(
                events=self.events,
                visitors=self.visitors,
                report_bytes=self.report_bytes,
                day=day,
                active_keys=self.active_keys,
                ended=self.bill if self.usage.identifications else self.ended,
            )
        counted = self.day if self.quota_day is None else self.quota_day
        if counted * DAY_MS - MAX_LEAD_MS <= at_ms < (counted + 1) * DAY_MS:
            return self
        ahead = self.ahead or self._counts()
        counts, left = (ahead, None) if day == self.day else (DayCounts(), ahead)
        return msgspec.structs.replace(
            self, quota_day=None if day == self.day else day, ahead=left, **msgspec.structs.asdict(counts)
        )

    def _counts(self) -> DayCounts:
        return DayCounts(self.nonproduction, self.archived_bytes, self.nonproduction_archived_bytes, self.keys_issued)

    def closed(self, day: int) -> Holding:
        """Return the record with a bill that is for a later UTC day than `day`; the same object if it is already."""
        return self if self.day > day else self.on((day + 1) * DAY_MS)

    def plus(self, *, events: int = 0, visitors: int = 0, report_bytes: int = 0) -> Holding:
        """Return the record with these differences added, which may be negative. The counts of the day stay."""
        return msgspec.structs.replace(
            self,
            events=self.events + events,
            visitors=self.visitors + visitors,
            report_bytes=self.report_bytes + report_bytes,
        )

    def with_identification(self, *, visitors: int, report_bytes: int, production: bool, price: int) -> Holding:
        """Return the record after one more event on its day; `visitors` is 1 for a new one, `report_bytes`
        (`row_bytes`) 0 without a document, `price` in micro-dollars.
        """
        return msgspec.structs.replace(
            self.with_report(report_bytes, production=production),
            events=self.events + 1,
            visitors=self.visitors + visitors,
            nonproduction=self.nonproduction + (not production),
            identifiable=self.identifiable + (price > UNIDENTIFIABLE_MICROS),
            unidentifiable=self.unidentifiable + (price == UNIDENTIFIABLE_MICROS),
            free=self.free + (production and not price),
        )

    def with_report(self, report_bytes: int, *, production: bool) -> Holding:
        """Return the record after one more archived report of `report_bytes` (`row_bytes`) on the record's own day:
        call it on the result of `on`. The report counts as held, and for its environment as taken on that day.
        """
        of_day = "archived_bytes" if production else "nonproduction_archived_bytes"
        counts = {of_day: getattr(self, of_day) + report_bytes}
        return msgspec.structs.replace(self, report_bytes=self.report_bytes + report_bytes, **counts)


def row_bytes(length: int) -> int:
    """Return the bytes of a row in the store's file: `length`, or whole pages of its own above `ROW_BYTES`."""
    return length if length <= ROW_BYTES else -(-length // PAGE_BYTES) * PAGE_BYTES


def may_identify(
    holding: Holding, quotas: Quotas, capacity_bytes: int, *, production: bool
) -> Literal["nonproduction_day", "store_share"] | None:
    """Return which quota forbids one more event now, `None` = none; `holding` is that of today (`Holding.on`)."""
    if not production and holding.nonproduction >= quotas.nonproduction_per_day:
        return "nonproduction_day"
    return None if has_capacity(holding, quotas, capacity_bytes) else "store_share"


def has_capacity(holding: Holding, quotas: Quotas, capacity_bytes: int) -> bool:
    """Return whether the organization holds less than its share of a store that can have `capacity_bytes`."""
    return holding.held_bytes < quotas.store_share * capacity_bytes


def may_archive(holding: Holding, quotas: Quotas, length: int, *, production: bool) -> bool:
    """Return whether `length` more bytes (`row_bytes`) fit into today's budget; `holding` as for `may_identify`."""
    if production:
        return holding.archived_bytes + length <= quotas.archive_bytes_per_day
    return holding.nonproduction_archived_bytes + length <= quotas.nonproduction_archive_bytes_per_day


def seconds_to_midnight(at_ms: int) -> int:
    """Return the whole seconds until the next UTC day, at least 1."""
    return -(-(DAY_MS - at_ms % DAY_MS) // 1000)


MAX_ACTIVE_KEYS = 200
"""Keys of an organization that are neither revoked nor expired, of all kinds together."""


class ActiveKeys(msgspec.Struct, frozen=True, array_like=True):
    """How many active keys one organization has."""

    unlimited: int = 0
    """Those without an expiry."""
    expiries_ms: tuple[int, ...] = ()
    """When the others expire, in order; each is after `as_of_ms`."""
    as_of_ms: int = 0
    """Keys that expired until then are left out. Where it is ahead of the clock, see `is_ahead`."""

    @property
    def count(self) -> int:
        """Active keys at `as_of_ms`: call it on the result of `at`."""
        return self.unlimited + len(self.expiries_ms)

    def is_ahead(self, now_ms: int) -> bool:
        """Return whether a clock that was ahead wrote it, so that keys are missing and must be counted again."""
        return self.as_of_ms - now_ms > MAX_LEAD_MS

    def at(self, now_ms: int) -> ActiveKeys:
        """Return the record at `now_ms`, or `as_of_ms` if that is later, without the keys that have expired."""
        as_of_ms = max(self.as_of_ms, now_ms)
        expired = bisect_right(self.expiries_ms, as_of_ms)
        return ActiveKeys(self.unlimited, self.expiries_ms[expired:], as_of_ms)

    def plus_key(self, expires_at_ms: int | None) -> ActiveKeys:
        """Return the record with one more key; the same object for a key that has expired already."""
        if expires_at_ms is None:
            return msgspec.structs.replace(self, unlimited=self.unlimited + 1)
        if expires_at_ms <= self.as_of_ms:
            return self
        return msgspec.structs.replace(self, expiries_ms=tuple(sorted((*self.expiries_ms, expires_at_ms))))

    def minus_key(self, expires_at_ms: int | None) -> ActiveKeys:
        """Return the record without a key that was not revoked before; itself for one that is left out already."""
        if expires_at_ms is None:
            return msgspec.structs.replace(self, unlimited=self.unlimited - 1)
        if expires_at_ms not in self.expiries_ms:
            return self
        expiries = list(self.expiries_ms)
        expiries.remove(expires_at_ms)
        return msgspec.structs.replace(self, expiries_ms=tuple(expiries))
