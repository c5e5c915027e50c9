"""`svc export events --hourly`: a folder with a file for each hour, written once the hour has ended.

A file has the events, or the changes, of a part of the feed (ADR 162), from the end of the file before to the end of
its hour. The feed is closed up to there first, so nothing comes into that part later: each is in one file, however late
it was stored. Which part is next is noted after its file has its name. So a run that ends in between writes the same
file again, under the same name.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
import trio

from svc.command.output import CommandError, settings
from svc.features.changes import jobs as changes
from svc.features.changes.jobs import Change
from svc.features.events.source import EVENTS_A_READ, Wanted
from svc.features.exports.event_files import PARTIAL, EventFile, Form, change_file, event_file, output_file
from svc.features.feed import jobs as feed
from svc.features.feed.jobs import close
from svc.identify.events.listing import Filters, Position
from svc.identify.index.queries import Scope
from svc.identify.queries.event_changes import newest_change
from svc.identify.queries.events import EventMatch, UnreadableEvent
from svc.kernel.store.files import durable_files
from svc.kernel.store.store import Store
from svc.kernel.values.errors import explained
from svc.kernel.values.fields import ENVIRONMENTS
from svc.kernel.values.timestamps import timestamp
from svc.world import World, pause

HOUR_MS = 3_600_000
HOLD_MS = 120_000
"""After the end of an hour, so that what was stored a little late is in the file of its hour. Nothing else depends on
it: one that is stored later is in a later file.
"""
_LOOK_S = 30.0
_STATE, _LOCK = ".svc-export.json", ".svc-export.lock"


class _State(msgspec.Struct, frozen=True):
    """Which export a folder belongs to, and where the next run begins."""

    organization_id: str
    environment: str
    filters: tuple[str | None, ...]
    form: Form
    next_hour_ms: int
    behind_ms: int
    """Places of the feed up to there, included, are in files."""
    to_ms: int | None = None
    """Where the file of the next hour ends, included, once it is known."""
    changes: bool = False
    """Whether files have changes."""

    def following(self) -> _State:
        """Return the state once the file of the next hour is written."""
        end_ms = max(self.behind_ms, self.to_ms or 0)
        return msgspec.structs.replace(self, next_hour_ms=self.next_hour_ms + HOUR_MS, behind_ms=end_ms, to_ms=None)

    @property
    def events(self) -> tuple[str, str, Filters, Form, bool]:
        """Return what determines the events of the files. Filters added since the state was written are unset."""
        filters = Filters(**dict(zip(Filters.__struct_fields__, self.filters, strict=False)))  # pyright: ignore[reportArgumentType]
        return self.organization_id, self.environment, filters, self.form, self.changes


class HoursWanted(NamedTuple):
    """The events of which a folder has files."""

    organization_id: str
    number: int
    events: Wanted
    form: Form
    changes: bool = False
    """Whether files have what happens to events later, too."""

    @property
    def scope(self) -> Scope:
        """Return the scope of the feed."""
        return Scope(self.number, ENVIRONMENTS.index(self.events.environment))

    def beginning(self) -> _State:
        """Return the state of an empty folder."""
        start_ms = self.events.since_ms - self.events.since_ms % HOUR_MS
        filters = msgspec.structs.astuple(self.events.filters)
        return _State(
            self.organization_id,
            self.events.environment,
            filters,
            self.form,
            start_ms,
            start_ms - 1,
            changes=self.changes,
        )


def export_hours(store: Store, wanted: HoursWanted, folder: Path, *, follow: bool) -> None:
    """Write the hours that are complete and are not there yet; with `follow`, also those that come. Prints a line for
    each file. Raises `CommandError`.
    """
    with _alone(folder):
        state = _read(folder / _STATE, wanted.beginning())
        _close(store, wanted, max(state.behind_ms, state.to_ms or 0))  # a store that was restored is not
        while True:
            now_ms = World.real().now_ms()
            latest_ms = now_ms - HOLD_MS if follow else min(now_ms - HOLD_MS, wanted.events.until_ms)
            while state.next_hour_ms + HOUR_MS <= latest_ms:
                if state.to_ms is None:
                    end_ms = _end_ms(store, wanted, state, latest_ms, now_ms)
                    state = msgspec.structs.replace(state, to_ms=end_ms)
                    if state.to_ms != state.next_hour_ms + HOUR_MS - 1:  # what another run would not find again
                        durable_files.replace(folder / _STATE, msgspec.json.encode(state))
                _export(store, wanted, state, folder)
                state = state.following()
                durable_files.replace(folder / _STATE, msgspec.json.encode(state))
            if not follow:
                return
            pause(_LOOK_S)


def _end_ms(store: Store, wanted: HoursWanted, state: _State, latest_ms: int, now_ms: int) -> int:
    """Close the feed as far as the next hour's file goes, and return its end."""
    end_ms = state.next_hour_ms + HOUR_MS - 1
    newest_ms = latest_ms - latest_ms % HOUR_MS - 1
    """The end of the newest hour that is complete: all hours before are closed with it."""
    with store.read() as snapshot:
        ahead = feed.ahead(snapshot, wanted.scope, now_ms)
        changed = newest_change(snapshot, wanted.scope, ahead.closed_to_ms + 1) if wanted.changes else None
    if ahead.closed_to_ms > now_ms and end_ms == newest_ms:
        # A clock was ahead: places go on behind its time. They are not waited for, and end in the newest file.
        end_ms = newest_ms = max(ahead.closed_to_ms, ahead.late_at_ms or 0, 0 if changed is None else changed[2])
    _close(store, wanted, newest_ms)
    return end_ms


def _close(store: Store, wanted: HoursWanted, to_ms: int) -> None:
    with store.read() as snapshot:
        closed_ms = feed.closed_to_ms(snapshot, wanted.scope)
    if to_ms > closed_ms:
        trio.run(store.write_one, partial(close, scope=wanted.scope, to_ms=to_ms), wanted.number)


def _export(store: Store, wanted: HoursWanted, state: _State, folder: Path) -> None:
    rows: Iterator[Any] = _rows(store, wanted.scope, wanted.events.filters, state)
    first = next(rows, None)
    if first is None:
        return
    what = "changes" if state.changes else "events"
    path = folder / f"{what}-{timestamp(state.next_hour_ms)[:13]}Z.{state.form}"
    count = 1
    with output_file(path) as write:
        file: EventFile[Any] = (change_file if state.changes else event_file)(state.form, write)
        file.add(first)
        for count, row in enumerate(rows, start=2):  # noqa: B007
            file.add(row)
        file.end()
    durable_files.sync(folder)
    click.echo(f"{path.name}  {count}")


def _rows(
    store: Store, scope: Scope, filters: Filters, state: _State
) -> Iterator[EventMatch | UnreadableEvent | Change]:
    """Yield the events or the changes of that part of the feed in its order. Each page is read from a snapshot of its
    own.
    """
    assert state.to_ms is not None
    now_ms, retention_ms = World.real().now_ms(), settings().event_retention_ms()
    with store.read() as snapshot:
        kept_ms = feed.oldest_shown_ms(snapshot, scope.number, now_ms, retention_ms)
    after: Position | None = max(Position(state.behind_ms + 1, bytes(16)), Position(kept_ms, bytes(16)))
    while after is not None:
        with store.read() as snapshot:
            if state.changes:
                noted = changes.places(snapshot, scope, filters, after, state.to_ms, EVENTS_A_READ)
                after, rows = noted.resume, changes.read_each(snapshot, noted.rows, scope, kept_ms)
                found: list[EventMatch | UnreadableEvent | Change] = [row for row in rows if row is not None]
            else:
                places = feed.positions(snapshot, scope, filters, after, state.to_ms, EVENTS_A_READ)
                after = places.resume
                found = [match for _, match in feed.read(snapshot, places.rows, filters, kept_ms)]
        yield from found


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Hold the folder's lock and delete half-written files of an earlier run."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with durable_files.exclusive(folder / _LOCK, f"another export is writing to {folder}: name another folder"):
            for path in folder.glob(PARTIAL):
                path.unlink()
            yield
    except OSError as error:
        raise CommandError(explained("cannot write to", folder, error)) from error


def _read(path: Path, asked: _State) -> _State:
    """Read the folder's state; `asked` where it is new. Raises `CommandError` where it belongs to another export."""
    try:
        known = msgspec.json.decode(path.read_bytes(), type=_State)
    except FileNotFoundError:
        return asked
    except msgspec.DecodeError as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
    if known.events != asked.events:
        raise CommandError(
            f"{path.parent} has other events, by another organization, filter or format, or changes: name another"
        )
    return known
