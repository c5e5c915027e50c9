"""What jobs write before it is applied, and what they read: a transaction without an engine below it.

An `Overlay` is a `Writer` over a state of which nothing is changed: what is written lies in its `changes`. To undo it,
drop it; to apply it, write its changes to an engine in one go. A `Recording` also keeps what was read through it, so
that it can be told later whether another state would have given the same answers.

What may live here: overlays over anything that can be read. No engine, thread or group of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from svc.kernel.store.engine import KeyRange, Reader, Writer
from svc.kernel.store.schema.operation_log import Changes

T = TypeVar("T")

Raw = bytes | None
"""The bytes under a key; `None` = no row."""
RowKey = tuple[str, bytes]
"""Table and key."""
_UNKNOWN: Any = object()


class Overlay(Writer):
    """A `Writer` in memory: it reads through to `below`, and keeps writes in `changes`. Clearing a table reads every
    key of it; closing does nothing, as the state below belongs to another.
    """

    __slots__ = ("below", "changes")

    def __init__(self, below: Reader, changes: Changes | None = None) -> None:
        self.below = below
        self.changes: Changes = {} if changes is None else changes
        """What differs from the state below: as the operation log has it."""

    @property
    def commit(self) -> int:
        """See `Reader.commit`: that of the state below."""
        return self.below.commit

    @property
    def is_missing(self) -> bool:
        """See `Reader.is_missing`."""
        return self.below.is_missing

    def get(self, table: str, key: bytes, /) -> Raw:
        """See `Reader.get`."""
        own = self.changes.get(table)
        return own[key] if own is not None and key in own else self.below.get(table, key)

    def range(self, asked: KeyRange, /) -> Iterator[tuple[bytes, bytes]]:
        """See `Reader.range`."""
        table, first, beyond, reverse, keys_only, _ = asked
        below = self._range_below(asked)
        own = self.changes.get(table)
        if not own:
            return below
        keys = sorted((key for key in own if key >= first and (beyond is None or key < beyond)), reverse=reverse)
        return _merged(below, [(key, own[key]) for key in keys], reverse=reverse, keys_only=keys_only)

    def count(self, table: str, /) -> int:
        """See `Reader.count`; takes longer for each row of the table that was changed."""
        own = self.changes.get(table, {})
        gained = sum((raw is not None) - (self._get_below(table, key) is not None) for key, raw in own.items())
        return self._count_below(table) + gained

    def size(self, table: str, /) -> int:
        """See `Reader.size`: of the state below, and never compared with another."""
        return self.below.size(table)

    def put(self, table: str, key: bytes, value: bytes, /) -> None:
        """See `Writer.put`; cannot fail."""
        self._set(table, key, value)

    def put_many(self, table: str, rows: Sequence[tuple[bytes, bytes]], /) -> None:
        """See `Writer.put_many`; cannot fail."""
        for key, value in rows:
            self._set(table, key, value)

    def delete(self, table: str, key: bytes, /) -> bool:
        """See `Writer.delete`."""
        found = self.get(table, key) is not None
        if found:
            self._set(table, key, None)
        return found

    def delete_many(self, table: str, keys: Sequence[bytes], /) -> None:
        """See `Writer.delete_many`."""
        for key in keys:
            self._set(table, key, None)

    def clear(self, table: str, /) -> None:
        """See `Writer.clear`; reads every key of the table."""
        for key, _ in list(self.range(KeyRange(table, keys_only=True))):
            self._set(table, key, None)

    def take(self, changes: Changes) -> None:
        """Add these changes to the present ones; later ones replace earlier ones."""
        for table, rows in changes.items():
            self.changes.setdefault(table, {}).update(rows)

    def _set(self, table: str, key: bytes, raw: Raw) -> None:
        self.changes.setdefault(table, {})[key] = raw

    def _get_below(self, table: str, key: bytes) -> Raw:
        return self.below.get(table, key)

    def _range_below(self, asked: KeyRange) -> Iterator[tuple[bytes, bytes]]:
        return self.below.range(asked)

    def _count_below(self, table: str) -> int:
        return self.below.count(table)


class _Update(NamedTuple):
    before: Raw
    steps: list[Callable[[Raw], Raw]]


class _Asked(NamedTuple):
    before: Raw
    answers: list[tuple[Callable[[Raw], Any], Any]]
    """(question, its answer)"""


class _Range(NamedTuple):
    """Rows of the state below that a range gave out, as far as it was read."""

    asked: KeyRange
    rows: list[tuple[bytes, bytes]]
    ended: list[bool]
    """Holds an entry once the range was read to its end."""


class Recording(Overlay):
    """An overlay that records what was read from the state below, including missing rows and ranges."""

    __slots__ = ("_asked", "_counts", "_ranges", "_reads", "_updates")

    def __init__(self, below: Reader) -> None:
        super().__init__(below)
        self._reads: dict[tuple[str, bytes], Raw] = {}
        self._ranges: list[_Range] = []
        self._counts: list[tuple[str, int]] = []
        self._asked: dict[tuple[str, bytes], _Asked] = {}
        self._updates: dict[tuple[str, bytes], _Update] = {}

    @property
    def is_missing(self) -> bool:
        """Return `False`: a job runs again only if what it read differs, so nothing else may decide what it does."""
        return False

    def update(self, table: str, key: bytes, step: Callable[[Raw], Raw], /) -> None:
        """Replace a row by the result of `step` without recording a read: over another state, `step` runs again. `step`
        must be a pure function, and may raise for a row that it cannot read.
        """
        row_key, own = (table, key), self.changes.get(table, {})
        if key in own:  # after an update it is one more step; after a put there is no step to repeat
            before = own[key]
            if row_key in self._updates:
                self._updates[row_key].steps.append(step)
        elif row_key in self._reads:
            before = self._reads[row_key]
        else:
            asked = self._asked.get(row_key)
            before = self.below.get(table, key) if asked is None else asked.before
            self._updates[row_key] = _Update(before, [step])
        super()._set(table, key, step(before))

    def ask(self, table: str, key: bytes, question: Callable[[Raw], Any], /) -> Any:
        """Return the answer of `question`, a pure function, for a row, of which only that answer is recorded."""
        row_key = table, key
        if row_key in self._reads or key in self.changes.get(table, {}):
            return question(self.get(table, key))
        asked = self._asked.get(row_key)
        if asked is None:
            asked = self._asked[row_key] = _Asked(self.below.get(table, key), [])
        answer = question(asked.before)
        asked.answers.append((question, answer))
        return answer

    def holds_over(self, state: Reader) -> bool:
        """Return whether all reads would have the same results over this state. Raises what a question raises."""
        return (
            all(state.get(*row_key) == raw for row_key, raw in self._reads.items())
            and all(_is_answered(asked, state.get(*row_key)) for row_key, asked in self._asked.items())
            and all(_is_same(found, state) for found in self._ranges)
            and all(state.count(table) == count for table, count in self._counts)
        )

    def holds_but_for(self, changed: Collection[RowKey], state: Reader) -> bool:
        """Return `holds_over` for a state that differs in results of steps and these rows, which no range had."""
        return all(
            (row_key not in self._reads or state.get(*row_key) == self._reads[row_key])
            and (row_key not in self._asked or _is_answered(self._asked[row_key], state.get(*row_key)))
            for row_key in changed
        )

    def changes_over(self, state: Reader) -> Changes:
        """Return the changes for a state that it `holds_over`: steps run again where rows differ, and may raise."""
        moved = [(row_key, made) for row_key, made in self._updates.items() if state.get(*row_key) != made.before]
        if not moved:
            return self.changes
        changes = {table: dict(rows) for table, rows in self.changes.items()}
        for (table, key), made in moved:
            raw = state.get(table, key)
            for step in made.steps:
                raw = step(raw)
            changes[table][key] = raw
        return changes

    def _set(self, table: str, key: bytes, raw: Raw) -> None:
        if self._updates:
            self._updates.pop((table, key), None)  # the new value replaces what the updates were applied to
        self.changes.setdefault(table, {})[key] = raw

    def get(self, table: str, key: bytes, /) -> Raw:
        """See `Reader.get`. Reading a row that was updated records a read of the row below."""
        own = self.changes.get(table)
        if own is None or key not in own:
            row_key = table, key
            raw = self._reads.get(row_key, _UNKNOWN)
            if raw is _UNKNOWN:
                raw = self._reads[row_key] = self.below.get(table, key)
            return raw
        made = self._updates.get((table, key))
        if made is not None:
            self._reads[table, key] = made.before
        return own[key]

    def range(self, asked: KeyRange, /) -> Iterator[tuple[bytes, bytes]]:
        """See `Reader.range`. As with `get`, a row in it that was updated counts as read: the state below may have been
        read at several moments, and lack in the range what it had under the key (`postgresql/rows.py`).
        """
        table, first, beyond = asked.table, asked.first, asked.beyond
        for (of, key), made in self._updates.items():
            if of == table and key >= first and (beyond is None or key < beyond):
                self._reads[of, key] = made.before
        return super().range(asked)

    def _get_below(self, table: str, key: bytes) -> Raw:
        row_key = table, key
        if row_key not in self._reads:
            self._reads[row_key] = self.below.get(table, key)
        return self._reads[row_key]

    def _range_below(self, asked: KeyRange) -> Iterator[tuple[bytes, bytes]]:
        found = _Range(asked, [], [])
        self._ranges.append(found)
        for row in self.below.range(asked):
            found.rows.append(row)
            yield row
        found.ended.append(True)

    def _count_below(self, table: str) -> int:
        count = self.below.count(table)
        self._counts.append((table, count))
        return count


def _is_answered(asked: _Asked, raw: Raw) -> bool:
    return raw == asked.before or all(question(raw) == answer for question, answer in asked.answers)


def _is_same(found: _Range, state: Reader) -> bool:
    rows = state.range(found.asked)
    return list(islice(rows, len(found.rows))) == found.rows and (not found.ended or next(rows, None) is None)


def _merged(
    below: Iterator[tuple[bytes, bytes]], own: list[tuple[bytes, Raw]], *, reverse: bool, keys_only: bool
) -> Iterator[tuple[bytes, bytes]]:
    """Merge the rows in the order of their keys. If both have a key, that of `own` counts."""
    waiting = next(below, None)
    for key, raw in own:
        while waiting is not None and (waiting[0] > key if reverse else waiting[0] < key):
            yield waiting
            waiting = next(below, None)
        if waiting is not None and waiting[0] == key:
            waiting = next(below, None)
        if raw is not None:
            yield key, b"" if keys_only else raw
    if waiting is not None:
        yield waiting
        yield from below
