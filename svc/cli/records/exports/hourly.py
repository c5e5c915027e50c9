"""`svc export events --hourly`: a folder with a file for each hour, written once the hour has ended.

An hour is exported when every event that arrived in it is stored. Its file gets its name when it is whole and on disk;
then the hour that is next is noted. So a run that ends in between writes the same file again, under the same name.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from svc.cli.output import CommandError
from svc.cli.records.event_source import Wanted, oldest_first, oldest_ms
from svc.cli.records.exports.event_files import Form, event_file
from svc.cli.records.exports.output_files import PARTIAL, output_file
from svc.domain.timestamps import timestamp
from svc.store import durable_files
from svc.store.inspection.reading import ReadOnlyStore
from svc.store.views.events import EventMatch
from svc.world import World, pause

HOUR_MS = 3_600_000
HOLD_MS = 120_000
"""After the end of an hour: requests end within seconds, and clocks of nodes may differ."""
_LOOK_S = 30.0
_STATE, _LOCK = ".svc-export.json", ".svc-export.lock"


class _State(msgspec.Struct, frozen=True):
    """What a folder is of, and where the next run begins."""

    organization_id: str
    environment: str
    filters: tuple[str | None, ...]
    form: Form
    next_hour_ms: int


def export_hours(
    store: ReadOnlyStore, organization_id: str, number: int, wanted: Wanted, form: Form, folder: Path, *, follow: bool
) -> None:
    """Write the hours that are complete and are not there yet; with `follow`, also those that come. Prints a line for
    each file. Raises `CommandError`.
    """
    with _alone(folder):
        start_ms = wanted.since_ms - wanted.since_ms % HOUR_MS
        asked = _State(organization_id, wanted.environment, msgspec.structs.astuple(wanted.filters), form, start_ms)
        state = _read(folder / _STATE, asked)
        while True:
            now_ms = World.real().now_ms()
            latest_ms = now_ms - HOLD_MS if follow else min(now_ms - HOLD_MS, wanted.until_ms)
            while state.next_hour_ms + HOUR_MS <= latest_ms:
                _export(store, number, wanted, state, folder)
                state = msgspec.structs.replace(state, next_hour_ms=state.next_hour_ms + HOUR_MS)
                durable_files.replace(folder / _STATE, msgspec.json.encode(state))
            if not follow:
                return
            pause(_LOOK_S)


def _export(store: ReadOnlyStore, number: int, wanted: Wanted, state: _State, folder: Path) -> None:
    hour_ms = state.next_hour_ms
    since_ms = max(hour_ms, oldest_ms(World.real().now_ms()))
    if since_ms >= hour_ms + HOUR_MS:
        return
    events = _events(store, number, wanted._replace(since_ms=since_ms, until_ms=hour_ms + HOUR_MS))
    first = next(events, None)
    if first is None:
        return
    path = folder / f"events-{timestamp(hour_ms)[:13]}Z.{state.form}"
    count = 1
    with output_file(path) as write:
        file = event_file(state.form, write)
        file.add(first)
        for count, match in enumerate(events, start=2):  # noqa: B007
            file.add(match)
        file.end()
    durable_files.sync(folder)
    click.echo(f"{path.name}  {count}")


def _events(store: ReadOnlyStore, number: int, wanted: Wanted) -> Iterator[EventMatch]:
    return (match for stretch in oldest_first(store, number, wanted) for match in stretch.found)


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """What another run has left half-written is deleted."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (folder / _LOCK).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CommandError(f"another export is writing to {folder}: name another folder") from None
            for path in folder.glob(PARTIAL):
                path.unlink()
            yield
    except OSError as error:
        raise CommandError(f"cannot write to {folder}: {error.strerror or error}") from error


def _read(path: Path, asked: _State) -> _State:
    """The state of the folder; `asked` where it is new. Raises `CommandError` where it is of another export."""
    try:
        known = msgspec.json.decode(path.read_bytes(), type=_State)
    except FileNotFoundError:
        return asked
    except msgspec.DecodeError as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
    if msgspec.structs.replace(known, next_hour_ms=asked.next_hour_ms) != asked:
        raise CommandError(f"{path.parent} has other events, by another organization, filter or format: name another")
    return known
