"""The feed of events, and of their changes: what a request for a part of it asks for, its cursors, and how far it may
be given out (ADR 130, 221).

What may live here: what the query says in, a `Feed` or a `Refusal` out; no store.
"""

from __future__ import annotations

import struct
from typing import Final, Literal, NamedTuple

from svc.identify.events.listing import Asked, CursorScope, Filters, Position, read_filters
from svc.kernel.values.encodings import Cursors
from svc.kernel.values.fields import ENVIRONMENTS
from svc.kernel.values.refusals import Detail, Refusal, invalid
from svc.kernel.values.timestamps import read_timestamp

HOLD_MS = 2_000
"""How long after their arrival events are given out: most of them are stored by then, and come in the order of arrival.
Nothing else depends on it: one that is stored later, or by a clock that is behind, comes after those."""
STEP_MS = 500
"""The feed is closed by the clock once in this time at most, since that is a commit."""
AHEAD_MS = 10_000
"""An event that arrived by a clock so far ahead is not held back until the clock is there."""
BEGINNING = Position(0, bytes(16))
Which = Literal["feed", "changes"]
"""Of events alone, or with what happens to them later. Their cursors are not each other's."""
_LAST_ID = b"\xff" * 16
_CURSOR = struct.Struct(">Q16s")
"""Position."""
_NOT_HERE = ("page", "cursor", "end")
"""A feed has no pages and no end."""
NOT_WITH_ORDER: Final = ("account_id", "action", "tag", "label", "rule", "shadow")
"""Filters that are refused (decisions 19): what they select may change, or be known, only when the event has long been
given out, and it would be missed. Names as in `Filters`; those that lists do not have yet are there for when they do.
"""


class Feed(NamedTuple):
    """A checked request for a part of the feed."""

    after: Position
    """It begins behind this."""
    filters: Filters
    limit: int
    oldest_ms: int
    """Events that arrived before are not readable any more."""

    @property
    def start(self) -> Position:
        """Return where reading begins: no event before it can be read."""
        return max(self.after, Position(self.oldest_ms, bytes(16)))

    def at_end(self, closed_to_ms: int) -> Position:
        """Return the position to continue after, when everything up to the closed part's end was read."""
        return max(self.after, Position(closed_to_ms, _LAST_ID))


class Ahead(NamedTuple):
    """What the feed has behind the end of its closed part. Times are Unix milliseconds."""

    closed_to_ms: int
    late_at_ms: int | None
    """The first place of an event that was stored late."""
    due_at_ms: int | None
    """When the newest event arrived that was held back long enough (`due_before_ms`)."""
    newest_at_ms: int | None
    """When the newest event arrived."""

    @staticmethod
    def due_before_ms(now_ms: int) -> int:
        """Return the time before which an arrival was held back long enough."""
        return now_ms - HOLD_MS + 1

    def closing_ms(self, now_ms: int, at_least_ms: int) -> int:
        """Return the time up to which the feed is to be closed now; `closed_to_ms` = no further. `at_least_ms`: the
        time of the position from which the caller continues, which is later only in a restored store.
        """
        to_ms = max(self.closed_to_ms, at_least_ms, self.late_at_ms or 0)
        if self.due_at_ms is not None and now_ms - HOLD_MS - self.closed_to_ms >= STEP_MS:
            to_ms = max(to_ms, self.due_at_ms)
        if self.newest_at_ms is not None and self.newest_at_ms > now_ms + AHEAD_MS:
            to_ms = max(to_ms, self.newest_at_ms)
        return to_ms


def read_feed(asked: Asked, now_ms: int, scope: CursorScope, oldest_ms: int) -> Feed | Refusal:
    """Check the parameters of a list of events with `order=oldest`: `422 invalid_window` for its beginning, `422
    validation_error` for the others, those included that a feed does not have. `oldest_ms`: when the oldest
    event arrived that the feed has; a cursor that is older goes on with it.
    """
    refused = _refused(asked)
    if refused is not None:
        return refused
    filters = read_filters(asked)
    if isinstance(filters, Refusal):
        return filters
    after: Position | None = BEGINNING
    if asked.after is not None:
        after = read_feed_cursor(asked.after, scope)
    elif asked.start is not None:
        from_ms = read_timestamp(asked.start)
        if from_ms is None or not oldest_ms <= from_ms <= now_ms:
            issue = "invalid_value" if from_ms is None else "out_of_range"
            return Refusal("invalid_window", (Detail("from", issue, "query"),))
        after = Position(from_ms, bytes(16))
    if after is None:
        return invalid("after", "invalid_cursor", "query")
    return Feed(after, filters, asked.limit, oldest_ms)


def _refused(asked: Asked) -> Refusal | None:
    """Return a refusal for parameters and filters that a feed does not accept."""
    for name in _NOT_HERE:
        if getattr(asked, name) is not None:
            return invalid({"end": "to"}.get(name, name), "invalid_value", "query")
    if asked.after is not None and asked.start is not None:
        return invalid("from", "invalid_value", "query")
    changing = refused_filters(asked)
    return invalid(changing[0], "not_with_order", "query") if changing else None


def refused_filters(given: Asked | Filters) -> list[str]:
    """Return the names of filters by which a feed would miss events."""
    return [name for name in NOT_WITH_ORDER if getattr(given, name, None) not in (None, False)]


def feed_cursor(position: Position, scope: CursorScope, which: Which = "feed") -> str:
    """Return the cursor for what follows a position; it may be used with any filters."""
    return _cursors(scope, which).write(_CURSOR.pack(*position))


def read_feed_cursor(text: str, scope: CursorScope, which: Which = "feed") -> Position | None:
    """Return the position of a cursor by `feed_cursor` of the same feed, organization and environment; `None` for other
    text.
    """
    row = _cursors(scope, which).read(text)
    return None if row is None else Position(*_CURSOR.unpack(row))


def _cursors(scope: CursorScope, which: Which) -> Cursors:
    """Return the cursors of a feed, bound to its organization and environment."""
    return Cursors(scope.key, which, scope.organization, bytes([ENVIRONMENTS.index(scope.environment)]))
