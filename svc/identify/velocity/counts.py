"""Velocity: events and distinct others of a visitor, an account or an address in three windows (decisions 11.4).

What may live here: the row of one subject, how an event changes it, and what it counts to. Pure: rows in, rows out.

A row has the times of the newest 64 events, and of each kind of other the newest 64, each with the time when it was
seen last. A count up to 64 is therefore exact in every window, to the second; more than 64 are 64 (docs/adr/0111).
"""

from __future__ import annotations

import re
import struct
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

import msgspec

from svc.kernel.values.ids import MAX_LEAD_MS, made_at_ms

ACCOUNT_ID_FORM: Final = r"^[^\u0000-\u001f\u007f-\u009f]{1,256}$(?!\n)"
"""1 to 256 characters, none of them a control character. ECMA-262 and Python read it alike: in Python alone, `$` would
match before a last line feed, too.
"""
ACTION_FORM: Final = r"^[a-z][a-z0-9_.-]{0,63}$(?!\n)"
ACCOUNT_ID: Final = re.compile(ACCOUNT_ID_FORM)
ACTION: Final = re.compile(ACTION_FORM)
SIGN_UP: Final = "sign_up"
"""The action of an event that opens an account: without an account it counts as one of its own (decisions 11.2)."""


def folded(account_id: str) -> str:
    """Return what is left of an id without what people do not see: case, width, blanks and invisible characters. Ids
    are compared as they are; this is for pointing out those that look alike.
    """
    seen = unicodedata.normalize("NFKC", account_id).casefold()
    return "".join(one for one in seen if not one.isspace() and not _is_invisible(one))


def _is_invisible(one: str) -> bool:
    return unicodedata.category(one) == "Cf" or one in _FILLERS or "\ufe00" <= one <= "\ufe0f"


_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5"
"""Shown as nothing, and of no category that says so."""


MOST: Final = 64
"""Entries of each kind that a row has, and the largest count."""
WINDOWS: Final[dict[str, int]] = {"1h": 3600, "24h": 24 * 3600, "30d": 30 * 24 * 3600}
"""Name -> seconds."""
_HOUR_S, _DAY_S, LONGEST_S = WINDOWS.values()
_LEAD_S: Final = MAX_LEAD_MS // 1000
"""What is further ahead of now was stored by a clock that was ahead, and is in no window before its time comes."""

EnvironmentKind = Literal["live", "test"]
"""Production, or staging and development together: they are counted apart."""
KINDS: Final[tuple[EnvironmentKind, ...]] = ("live", "test")
Subject = Literal["visitor", "account", "address"]
OTHERS: Final[dict[Subject, tuple[str, ...]]] = {
    "visitor": ("accounts", "addresses", "countries"),
    "account": ("visitors", "addresses", "countries"),
    "address": ("visitors", "accounts"),
}
"""What is counted of each subject beside its events. The order is stored: append, never move."""
SUBJECTS: Final[tuple[Subject, ...]] = tuple(OTHERS)
"""Their positions in keys are stored, too."""

_HEAD = struct.Struct("<II4B")
"""First and last time, entries of events and of each list of others."""

Window = tuple[int, int, int]
"""A count in each of `WINDOWS`."""


class Counts(msgspec.Struct, frozen=True, array_like=True):
    """What a row counts to at one time, as an event keeps it: events, and the others in the order of `OTHERS`."""

    events: Window
    others: tuple[Window, ...]


class Velocity(msgspec.Struct, frozen=True, array_like=True):
    """The counts of an event's subjects, the event included. `None` = it has no account. Append fields."""

    visitor: Counts
    account: Counts | None
    address: Counts
    is_counted: bool = True
    """Whether rows count the event: a report that was sent before moves no count, and its counts are without it."""


class Seen(NamedTuple):
    """Others of one kind: when each was seen last, in ascending order, and their 64-bit ids in the same order."""

    times: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()

    def with_one(self, other: int, at_s: int) -> Seen:
        """Return the record with `other`, seen at this time, which may be earlier than the times of others."""
        if not self.ids or (self.ids[-1] == other and at_s >= self.times[-1]):  # nearly always
            return Seen((*self.times[:-1], at_s), (*self.ids[:-1], other))
        times, ids = list(self.times), list(self.ids)
        if other in ids:
            position = ids.index(other)
            at_s = max(at_s, times.pop(position))
            ids.pop(position)
        position = bisect_right(times, at_s)
        times.insert(position, at_s)
        ids.insert(position, other)
        return Seen(tuple(times[-MOST:]), tuple(ids[-MOST:]))

    def without(self, other: int) -> Seen:
        """Return the record without `other`; the same object if it does not contain it."""
        if other not in self.ids:
            return self
        at = self.ids.index(other)
        return Seen(self.times[:at] + self.times[at + 1 :], self.ids[:at] + self.ids[at + 1 :])

    def since(self, at_s: int) -> Seen:
        """Return the others that were seen after this time."""
        if not self.times or self.times[0] > at_s:
            return self
        at = bisect_right(self.times, at_s)
        return Seen(self.times[at:], self.ids[at:])

    def until_now(self, now_s: int) -> Seen:
        """Return the others without those that a clock which was ahead has seen."""
        if not self.times or self.times[-1] <= now_s + _LEAD_S:
            return self
        at = bisect_right(self.times, now_s + _LEAD_S)
        return Seen(self.times[:at], self.ids[:at])


class VelocityRow(msgspec.Struct, frozen=True):
    """What is known of one subject. Times are seconds since 1970."""

    first_s: int
    last_s: int
    """Of its events, those that have left the windows included."""
    events: tuple[int, ...]
    """Times, in ascending order."""
    others: tuple[Seen, Seen, Seen]

    def with_event(self, at_s: int, others: tuple[int | None, ...]) -> VelocityRow:
        """Return the row with an event and its others, in the order of `OTHERS`; `None` = it has none of the kind."""
        events = self.events
        if not events or at_s >= events[-1]:  # nearly always
            events = (*events[1 - MOST :], at_s)
        else:
            position = bisect_right(events, at_s)
            events = (*events[:position], at_s, *events[position:])[-MOST:]
        first_s = min(self.first_s, at_s) if self.first_s else at_s
        return VelocityRow(first_s, max(self.last_s, at_s), events, self._others_with(at_s, others))

    def with_others(self, at_s: int, others: tuple[int | None, ...]) -> VelocityRow:
        """Return the row with others of an event at this time that it has counted already."""
        return VelocityRow(self.first_s, self.last_s, self.events, self._others_with(at_s, others))

    def _others_with(self, at_s: int, others: tuple[int | None, ...]) -> tuple[Seen, Seen, Seen]:
        seen = list(self.others)
        for number, other in enumerate(others):
            if other is not None:
                seen[number] = seen[number].with_one(other, at_s)
        return seen[0], seen[1], seen[2]

    def with_newcomers(self, newcomers: Seen) -> VelocityRow:
        """Return the row of an address with these newcomers, which lie in the place of a third kind of others and are
        no count (`history/newcomers.py`).
        """
        return VelocityRow(self.first_s, self.last_s, self.events, (self.others[0], self.others[1], newcomers))

    def without_event(self, at_s: int, others: tuple[int | None, ...]) -> VelocityRow:
        """Return the row without an event at this time, if it has one, and without these others. If the event was the
        first or the last, the next remaining one takes its place.
        """
        if at_s not in self.events:
            return self.without_others(others)
        at = self.events.index(at_s)
        events = self.events[:at] + self.events[at + 1 :]
        first_s, last_s = (events[0], events[-1]) if events else (0, 0)
        if at_s != self.first_s:
            first_s = self.first_s
        if at_s != self.last_s:
            last_s = self.last_s
        return VelocityRow(first_s, last_s, events, self.others).without_others(others)

    def without_others(self, others: tuple[int | None, ...]) -> VelocityRow:
        """Return the row without these others, in the order of `OTHERS`; `None` = the kind stays as it is."""
        seen = list(self.others)
        for number, other in enumerate(others):
            if other is not None:
                seen[number] = seen[number].without(other)
        return VelocityRow(self.first_s, self.last_s, self.events, (seen[0], seen[1], seen[2]))

    def within(self, now_s: int) -> VelocityRow:
        """Return the row without entries older than the longest window."""
        oldest = now_s - LONGEST_S
        one, two, three = self.others
        events = self.events
        if not events or events[0] > oldest:
            if one.since(oldest) is one and two.since(oldest) is two and three.since(oldest) is three:  # nearly always
                return self
        else:
            events = events[bisect_right(events, oldest) :]
        others = (one.since(oldest), two.since(oldest), three.since(oldest))
        return VelocityRow(self.first_s, self.last_s, events, others)

    def with_space(self, now_s: int) -> VelocityRow:
        """Return the row with space for an event of now."""
        if self.last_s <= now_s + _LEAD_S:  # nearly always
            return self
        events = self.events[:-1] if _lacks_space(self.events, now_s) else self.events
        one, two, three = (
            Seen(seen.times[:-1], seen.ids[:-1]) if _lacks_space(seen.times, now_s) else seen for seen in self.others
        )
        return VelocityRow(self.first_s, self.last_s, events, (one, two, three))

    def counts(self, subject: Subject, now_s: int) -> Counts:
        """Return how many events and others each window has now."""
        one, two, three = self.others
        first_two = _window(one.times, now_s), _window(two.times, now_s)
        others = first_two if len(OTHERS[subject]) == len(first_two) else (*first_two, _window(three.times, now_s))
        return Counts(_window(self.events, now_s), others)

    @property
    def is_empty(self) -> bool:
        """Whether it counts to nothing, whatever the window."""
        return not self.events and not any(seen.ids for seen in self.others)

    def pack(self) -> bytes:
        """Return 12 bytes, 4 an event, 12 an other; little-endian (docs/internals/format.md)."""
        one, two, three = self.others
        sizes = len(self.events), len(one.ids), len(two.ids), len(three.ids)
        head = _HEAD.pack(self.first_s, self.last_s, *sizes)
        return head + _body(*sizes).pack(
            *self.events, *one.times, *one.ids, *two.times, *two.ids, *three.times, *three.ids
        )

    @staticmethod
    def unpack(raw: bytes) -> VelocityRow:
        """Return the row in these bytes. Raises `struct.error` for bytes that are not a row."""
        first_s, last_s, events, *sizes = _HEAD.unpack_from(raw)
        values = _body(events, *sizes).unpack(raw[_HEAD.size :])
        seen: list[Seen] = []
        at = events
        for size in sizes:
            seen.append(Seen(values[at : at + size], values[at + size : at + 2 * size]))
            at += 2 * size
        return VelocityRow(first_s, last_s, values[:events], (seen[0], seen[1], seen[2]))


EMPTY: Final = VelocityRow(0, 0, (), (Seen(), Seen(), Seen()))


@lru_cache(maxsize=4096)
def _body(events: int, *others: int) -> struct.Struct:
    return struct.Struct(f"<{events}I" + "".join(f"{size}I{size}Q" for size in others))


def _lacks_space(times: tuple[int, ...], now_s: int) -> bool:
    """Return whether what a clock that was ahead has stored leaves the entries of a day no space."""
    return len(times) == MOST and times[-1] > now_s + _LEAD_S and times[0] > now_s - _DAY_S


def _window(times: tuple[int, ...], now_s: int) -> Window:
    total = len(times)
    if total and times[-1] > now_s + _LEAD_S:
        total = bisect_right(times, now_s + _LEAD_S)
    if not total or times[0] > now_s - _HOUR_S:
        return total, total, total
    return (
        total - bisect_right(times, now_s - _HOUR_S),
        total - bisect_right(times, now_s - _DAY_S),
        total - bisect_right(times, now_s - LONGEST_S),
    )


def account_digest(organization: int, account_id: str) -> int:
    """Return 64 bits by which rows know an account. Not secret: the events of the same store name the account."""
    return int.from_bytes(blake2b(account_id.encode(), digest_size=8, salt=organization.to_bytes(8)).digest())


def sign_up_digest(organization: int, request_id: bytes) -> int:
    """Return 64 bits for the account of a sign-up that names none (decisions 11.2). `request_id`: 16 bytes."""
    salt = organization.to_bytes(8)
    return int.from_bytes(blake2b(request_id, digest_size=8, salt=salt, person=b"sign_up").digest())


def country_digest(code: str) -> int:
    """Return the two letters of a country as a number."""
    return int.from_bytes(code.encode())


def kind_of(environment: str) -> EnvironmentKind:
    """Return the kind of environments with which an event of this environment is counted."""
    return "live" if environment == "production" else "test"


class Recount(msgspec.Struct, frozen=True, array_like=True):
    """How far an organization's old events are counted, newest first. Append fields with defaults, never move."""

    counted_from: bytes
    """The lowest id (16 bytes) that is counted: velocity rows count events with this id and above, and none below."""
    events: int = 0
    """Old events that were counted."""
    is_complete: bool = False
    """Whether all old events of the last 30 days are counted."""

    @property
    def counted_since_ms(self) -> int | None:
        """Unix ms since which all events are counted; `None` once the counts are complete."""
        return None if self.is_complete else made_at_ms(self.counted_from)
