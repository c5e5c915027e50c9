"""The feed for `svc events tail`: events, or their changes, read once each by a program that may be stopped at any time
and goes on where it was (ADR 130, 221).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
import trio

from svc.command.data_directory import opened
from svc.command.output import CommandError, refuse_without_reader, settings, show_json
from svc.features.changes import jobs as changes
from svc.features.changes.bodies import change_body
from svc.features.changes.jobs import ChangePlace
from svc.features.changes.routes import CHANGES
from svc.features.events import text as event_text
from svc.features.events.source import Wanted, number_of
from svc.features.feed import jobs as feeds
from svc.features.feed.feed import Feed, Which, feed_cursor, read_feed_cursor
from svc.features.feed.jobs import FeedPosition, close, oldest_shown_ms
from svc.features.feed.pages import FEED, FeedPage, FeedPages, Source
from svc.identify.events.listing import CursorScope, Position
from svc.identify.index.queries import Scope
from svc.identify.queries.events import listed_row
from svc.kernel.store.directory import Opened
from svc.kernel.store.files import durable_files
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.store import Store
from svc.kernel.values.encodings import cursors_key
from svc.kernel.values.errors import cause
from svc.kernel.values.fields import ENVIRONMENTS
from svc.world import World

MAX_EVENTS = 200
POLL_S = 0.5

_encoder = msgspec.json.Encoder()
_Row = tuple[Position, Any]
"""Where it is, and what is there."""


class _Kind(NamedTuple):
    """What a feed is of: how it is found and read, and how a row is shown."""

    which: Which
    source: Source[Any]
    read: Callable[[Scope, Feed, Sequence[Any], Snapshot], list[_Row]]
    body: Callable[[Any], msgspec.Struct]
    head: Callable[..., str]
    line: Callable[..., str]


def _read_events(_: Scope, feed: Feed, places: Sequence[FeedPosition], snapshot: Snapshot) -> list[_Row]:
    return [*feeds.read(snapshot, places, feed.filters, feed.oldest_ms)]


def _read_changes(scope: Scope, feed: Feed, places: Sequence[ChangePlace], snapshot: Snapshot) -> list[_Row]:
    found = changes.read_each(snapshot, places, scope, feed.oldest_ms)
    return [(change.place, change) for change in found if change is not None]


_EVENTS = _Kind("feed", FEED, _read_events, listed_row, event_text.head, event_text.found_line)
_CHANGES = _Kind("changes", CHANGES, _read_changes, change_body, event_text.change_head, event_text.change_line)


class FeedOptions(NamedTuple):
    """How a feed is read, by the options of the command."""

    cursor: str | None
    """To begin behind; `None` = with the file's, else at the time that is wanted."""
    cursor_file: Path | None
    follow: bool
    """Whether to wait for events at the end."""
    changes: bool = False
    """Whether to read what happens to events later, too."""


def tail_feed(
    directory: Path, organization_id: str, wanted: Wanted, options: FeedOptions, *, as_json: bool, ids: bool
) -> None:
    """Write the events to standard output. Each line of JSON has the cursor; the cursor file is written after the
    events before the cursor were. Without either, the last cursor is written to standard error. Raises `CommandError`.
    """
    with _alone(options.cursor_file), opened(directory) as found, feed_store(found) as store:
        number = number_of(store, organization_id)
        cursors = CursorScope(cursors_key(found.pepper), number, wanted.environment)
        kind = _CHANGES if options.changes else _EVENTS
        after = _beginning(wanted, options, cursors, kind.which)
        printer = _Printer(kind, cursors, options.cursor_file, as_json=as_json, ids=ids)
        try:
            trio.run(_print_all, store, number, wanted, after, options.follow, printer)
        except KeyboardInterrupt:
            return
        finally:
            printer.end()


@contextmanager
def feed_store(found: Opened) -> Generator[Store]:
    """Give, in a `with` block, a store on which closing the feed blocks nobody: in a database, it takes a transaction
    of one organization.
    """
    if found.database is None:
        yield found.store
        return
    from svc.kernel.store.postgresql.engine import PostgresqlEngine  # noqa: PLC0415  a file is read without
    from svc.kernel.store.postgresql.store import PostgresqlStore  # noqa: PLC0415

    engine = found.store.engine
    assert isinstance(engine, PostgresqlEngine)
    with closing(PostgresqlStore(engine, found.database, World.real(), writers=1, readers=1)) as store:
        yield store


def _alone(cursor_file: Path | None) -> AbstractContextManager[None]:
    """Lock the cursor file. Comes first: events that cannot be noted would be printed again. Raises `OperatorError`."""
    if cursor_file is None:
        return nullcontext()
    taken = f"another command keeps its cursor in {cursor_file}: name another file"
    return durable_files.exclusive(cursor_file.with_name(f"{cursor_file.name}.lock"), taken)


def _read_cursor(file: Path) -> str | None:
    try:
        return file.read_bytes().decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"the cursor in {file} cannot be read: {cause(error)}") from error


def _beginning(wanted: Wanted, options: FeedOptions, cursors: CursorScope, which: Which) -> Position:
    text, source = options.cursor, "--from"
    if text is None and options.cursor_file is not None:
        text, source = _read_cursor(options.cursor_file), str(options.cursor_file)
    if text is None:
        return Position(wanted.since_ms, bytes(16))
    after = read_feed_cursor(text, cursors, which)
    if after is None:
        raise CommandError(
            f"{source} has no cursor of this feed: cursors belong to an organization and an environment, those of "
            "--changes to it alone; without one, --since says where to begin"
        )
    return after


class _Printer:
    """Prints pages, each in full before its cursor is saved."""

    def __init__(self, kind: _Kind, cursors: CursorScope, file: Path | None, *, as_json: bool, ids: bool) -> None:
        self.kind, self._cursors, self._file, self._as_json, self._ids = kind, cursors, file, as_json, ids
        self._last: str | None = None
        if not as_json:
            click.echo(kind.head(ids=ids))

    def page(self, page: FeedPage[_Row]) -> None:
        """Write its rows, and then its cursor. Raises `CommandError` where the file cannot be written."""
        for at, found in page.rows:
            if self._as_json:
                row = _encoder.encode(self.kind.body(found))
                show_json(row[:-1] + b',"cursor":"' + self._cursor(at).encode() + b'"}')
            else:
                click.echo(self.kind.line(found, ids=self._ids))
        sys.stdout.flush()
        cursor = self._cursor(page.behind)
        if cursor == self._last:
            return
        self._last = cursor
        if self._file is not None:
            try:
                durable_files.replace(self._file, cursor.encode() + b"\n")
            except OSError as error:
                raise CommandError(f"the cursor cannot be written to {self._file}: {cause(error)}") from error

    def _cursor(self, at: Position) -> str:
        return feed_cursor(at, self._cursors, self.kind.which)

    def end(self) -> None:
        """Say how to go on, where nothing else does."""
        if self._last is not None and self._file is None:
            click.echo(f"Go on with --from {self._last}", err=True)


async def _print_all(
    store: Store, number: int, wanted: Wanted, after: Position, follow: bool, printer: _Printer
) -> None:
    """Print pages; at the end of the feed, poll every `POLL_S` or stop."""
    world, kind, scope = World.real(), printer.kind, Scope(number, ENVIRONMENTS.index(wanted.environment))

    async def close_to(to_ms: int) -> int:
        return await store.write_one(partial(close, scope=scope, to_ms=to_ms), number)

    pages = FeedPages(world, store, scope, kind.source, close_to)
    while True:
        at_ms = world.now_ms()
        bound = partial(oldest_shown_ms, number=number, now_ms=at_ms, retention_ms=settings().event_retention_ms())
        feed = Feed(after, wanted.filters, MAX_EVENTS, await store.query(bound))

        async def read(places: Sequence[Any], feed: Feed = feed) -> list[_Row]:
            return await store.query(partial(kind.read, scope, feed, places))

        page = await pages.page(feed, at_ms, read)
        printer.page(page)
        after = page.behind
        if not page.has_more:
            if not follow:
                return
            await trio.sleep(POLL_S)
            refuse_without_reader()
