"""Files of the console, streamed: the events that a view shows, and the entries of a list (decisions 16.3).

A file has what was there when it was asked for. How many events it will have is known before its first byte: by the
counters of hours where they say enough, else by the index.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from typing import NamedTuple
from uuid import UUID

from svc.features.events.console_bodies import ExportEventsQuery
from svc.features.exports.lines import FILE_COLUMNS, csv_row, json_row, unreadable_csv_row, unreadable_json_row
from svc.features.lists.lists import ListEntry
from svc.features.lists.queries import entries_behind, find_list
from svc.features.lists.routes import LIST_ID
from svc.http.callers.limits import Turn
from svc.http.listing import note_unreadable
from svc.http.route import Call, Outcome, Route, Services, Stream, console_route
from svc.identify.events.hour_counts import HourCounts, sum_of
from svc.identify.events.listing import Filters, Listing, Resume, read_search
from svc.identify.queries import events
from svc.identify.queries.hours import hours
from svc.identify.records import Event
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import Environment
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.refusals import Detail, Refusal
from svc.kernel.values.text_files import csv_line, written
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work.slices import Slice, in_turns, scanned

MAX_ROWS = 1_000_000


class Format(NamedTuple):
    """A form of the file of events."""

    media_type: str
    row: Callable[[Event, UUID], bytes]
    unreadable_row: Callable[[UUID], bytes]
    head: bytes
    """What comes before the first row."""


FORMATS = {
    "csv": Format("text/csv; charset=utf-8", csv_row, unreadable_csv_row, csv_line(FILE_COLUMNS)),
    "jsonl": Format("application/x-ndjson", json_row, unreadable_json_row, b""),
}
ENTRY_COLUMNS = ("value", "note", "expires_at")
TOO_MANY = f"More than {MAX_ROWS:,} events would be exported. Narrow the window, or add a filter."

WHOLE = "A file that ends without the end of its response, as one does whose session or key has ended, is not whole."


async def export_events(services: Services, call: Call) -> Outcome | Refusal:
    """`GET /console/api/events/export`: the events of a list as a file, newest first. `422 invalid_window`, and `422
    validation_error` where there are more than `MAX_ROWS`.
    """
    query: ExportEventsQuery = call.query
    number = call.organization.number
    listing = read_search(query.asked(), call.at_ms, services.event_retention_ms)
    if isinstance(listing, Refusal):
        return listing
    if await _is_too_long(services, call.turn, number, query.environment, listing):
        return Refusal("validation_error", (Detail("from", "out_of_range", "query"),), explanation=TOO_MANY)
    form = FORMATS[query.format]
    parts = _event_lines(services, call.turn, number, query.environment, listing, form)
    return _file(parts, form.media_type, f"events-{query.environment}-{timestamp(call.at_ms)[:10]}.{query.format}")


async def _is_too_long(services: Services, turn: Turn, number: int, environment: Environment, listing: Listing) -> bool:
    """Return whether more than `MAX_ROWS` events match. The index is searched only where the counters leave it open."""
    days: list[HourCounts] = []
    time = Slice(services.world)
    for day_ms in range(listing.from_ms, listing.to_ms, DAY_MS):
        until_ms = min(day_ms + DAY_MS, listing.to_ms)
        read = partial(hours, number=number, environment=environment, from_ms=day_ms, to_ms=until_ms)
        days.append(sum_of(counts for _, counts in await services.store.query(read)))
        await time.pause()
    if _at_most(sum_of(days), listing.filters) <= MAX_ROWS:
        return False
    found = 0
    scan = events.EventScan(number, [environment], listing).positions
    slices = scanned(services.world, services.store, scan, listing.start)
    async with aclosing(in_turns(slices, turn.held)) as parts:
        async for places in parts:
            found += sum(place is not None for _, place in places)
            if found > MAX_ROWS:
                return True
    return False


def _at_most(total: HourCounts, filters: Filters) -> int:
    """Return an upper bound of the events that match, by the counters of the hours that the window touches."""
    bounds = [total.identifications]
    if filters.level is not None:
        bounds.append(total.levels.get(filters.level, 0))
    for value, counts in (
        (filters.country, total.countries),
        (filters.signal, total.signals),
        (filters.kind, total.kinds),
        (filters.rule, total.rules),
        (filters.shadow, total.rules),
    ):
        if value is not None:
            bounds.append(counts.get(value, 0))
    return min(bounds)


async def _event_lines(
    services: Services, turn: Turn, number: int, environment: Environment, listing: Listing, form: Format
) -> AsyncGenerator[bytes]:
    if form.head:
        yield form.head
    scan = partial(_lines, form, events.EventScan(number, [environment], listing))
    slices = scanned(services.world, services.store, scan, listing.start)
    async with aclosing(in_turns(slices, turn.held)) as parts:
        async for some in parts:
            found = [line for _, line in some if line is not None]
            note_unreadable(services, "exportConsoleEvents", number, [event for event, _ in found])
            if found:
                yield b"".join(line for _, line in found)


def _lines(
    form: Format, scan: events.EventScan, snapshot: Snapshot, resume: Resume, count: int
) -> Iterator[tuple[Resume, tuple[events.EventMatch | events.UnreadableEvent, bytes] | None]]:
    for behind, found in scan.events(snapshot, resume, count):
        if found is None:
            yield behind, None
        elif isinstance(found, events.UnreadableEvent):
            yield behind, (found, form.unreadable_row(found.request_id))
        else:
            yield behind, (found, form.row(found.event, found.request_id))


async def export_entries(services: Services, call: Call) -> Outcome | Refusal:
    """`GET /console/api/lists/{list_id}/export`: the living entries of a list as CSV. `404 not_found`."""
    number = call.organization.number
    found = await services.store.query(partial(find_list, number=number, list_id=call.path["list_id"]))
    if found is None:
        return Refusal("not_found")
    parts = _entry_lines(services, call.turn, number, found.id, call.at_ms)
    return _file(parts, "text/csv; charset=utf-8", f"{found.name}.csv")


async def _entry_lines(services: Services, turn: Turn, number: int, list_id: str, now_ms: int) -> AsyncGenerator[bytes]:
    yield csv_line(ENTRY_COLUMNS)

    def scan(snapshot: Snapshot, after: str, count: int) -> Iterator[tuple[str, bytes]]:
        for at, entry in entries_behind(snapshot, number, list_id, "", after, count):
            yield at, csv_line(_cells(entry)) if entry.is_living(now_ms) else b""

    async with aclosing(in_turns(scanned(services.world, services.store, scan, ""), turn.held)) as parts:
        async for some in parts:
            lines = b"".join(line for _, line in some)
            if lines:
                yield lines


def _cells(entry: ListEntry) -> tuple[str, ...]:
    expires_at = "" if entry.expires_at_ms is None else timestamp(entry.expires_at_ms)
    return written(entry.value), written(entry.note), expires_at


def _file(parts: AsyncGenerator[bytes], media_type: str, name: str) -> Outcome:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Accel-Buffering": "no"}
    return Outcome(Stream(parts, media_type, _nothing, is_file=True), headers=headers)


def _nothing() -> None:
    """Do nothing: a file that nobody reads any more leaves nothing behind."""


ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="exportConsoleEvents",
        path="/events/export",
        summary="Export events of an environment",
        description=(
            "As the list of events, with the same window and filters, newest first, as a file. In CSV, lists are "
            "joined by spaces, and a cell that begins with = + - @ gets an apostrophe in front, so that no spreadsheet "
            f"evaluates it. More than {MAX_ROWS:,} events are refused before the first byte. {WHOLE}"
        ),
        handler=export_events,
        query=ExportEventsQuery,
        media_type="text/csv, application/x-ndjson",
        errors=("invalid_window",),
    ),
    console_route(
        operation_id="exportConsoleEntries",
        path="/lists/{list_id}/export",
        variables=LIST_ID,
        summary="Export the entries of a list",
        description=(f"As CSV with the columns value, note and expires_at, without those that have expired. {WHOLE}"),
        handler=export_entries,
        media_type="text/csv",
        errors=("not_found",),
    ),
)
