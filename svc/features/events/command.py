"""`svc events`: read stored identifications, one by one or as they come in."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import click
import msgspec

from svc.command.data_directory import Readable, reading
from svc.command.help import examples
from svc.command.operation import Operation, OrganizationGroup
from svc.command.output import CommandError, data_option, json_lines_option, refuse_without_reader, settings, show_json
from svc.features.events import text as event_text
from svc.features.events.archived_document import DocumentBody, document_body, event_detail
from svc.features.events.source import (
    Wanted,
    filter_options,
    how_many,
    newest_first,
    number_of,
    oldest_first,
    refuse_filters,
    refuse_in_feed,
    say_nothing_found,
)
from svc.features.events.tail_command import FeedOptions, tail_feed
from svc.identify.events.archive import inflate
from svc.identify.events.listing import Filters
from svc.identify.network.request_headers import RequestHeaders, read_headers
from svc.identify.queries import events as event_queries
from svc.identify.queries.events import EventMatch, EventPosition, UnreadableEvent, listed_row, read_all, readable_event
from svc.identify.queries.visitors import visitor_id_of
from svc.identify.records import DeferredReport, Document
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot
from svc.world import World, pause

LATE_MS = 10_000
"""How long after its arrival an event may be stored and still be seen by `svc events tail`: requests take turns."""
POLL_S = 0.5
NEVER_MS = 2**62

_encoder = msgspec.json.Encoder()


@click.group(cls=OrganizationGroup)
def events() -> None:
    """List, explain and follow stored identifications."""


@events.command(
    "list",
    reads=True,
    epilog=examples(
        "svc events list ORG --since 1h --level high",
        "svc events list ORG --environment development --signal headless --json",
    ),
)
@filter_options(since="24h")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Maximum number.")
@click.option("--ids", is_flag=True, help="Show request ids, rules, agents and tags as well, in a wider table.")
def list_events(operation: Operation, wanted: Wanted, limit: int, ids: bool) -> None:
    """List events of an organization, newest first, also while the service runs.

    "seen" is the confidence, or "new"; "in" is the country. With --json, rows are those of GET /events.
    """
    found = newest_first(operation.store, operation.number, wanted, limit + 1)
    more, found = len(found) > limit, found[:limit]
    if operation.as_json:
        operation.show({"events": [listed_row(each) for each in found], "more": more})
        return
    if not found:
        click.echo("no events")
        say_nothing_found(wanted.environment)
        return
    click.echo(event_text.head(ids=ids))
    for each in found:
        click.echo(event_text.found_line(each, ids=ids))
    if more:
        click.echo("There are older ones: raise --limit, or narrow the filters.", err=True)


@events.command(
    reads=True,
    epilog=examples(
        "svc events count ORG --since 7d --group vpn --action sign_up",
        "svc events count ORG --since 30d --rule rul_0qppzPLvL54VURDkQrfS",
    ),
)
@filter_options(since="24h")
def count(operation: Operation, wanted: Wanted) -> None:
    """Count events of an organization, also while the service runs: by the index, without reading them."""
    counted = how_many(operation.store, operation.number, wanted)
    if operation.as_json:
        operation.show({"count": counted})
        return
    click.echo(f"{counted:,} event{'s' * (counted != 1)}")
    if not counted:
        say_nothing_found(wanted.environment)


@events.command(reads=True, epilog=examples("svc events get ORG 019b76da-a800-7000-8000-000000000000"))
@click.argument("request_id", type=click.UUID, metavar="REQUEST_ID")
def get(operation: Operation, request_id: UUID) -> None:
    """Explain one event: the score as a sum, the evidence of each signal, how the visitor was recognized.

    With --json, everything stored about it: the response of GET /events/{request_id} and the request's headers.
    """
    number, config = operation.number, settings()
    with operation.store.read() as snapshot:
        event = readable_event(snapshot, number, request_id, operation.now_ms, config.event_retention_ms())
        if event is None:
            raise CommandError(
                f"{operation.organization_id} has no event {request_id}; events are kept for "
                f"{config.event_retention_days} days (`svc events list --ids` shows them)"
            )
        archived = Archives().read(snapshot, number, EventMatch(request_id, event))
    if operation.as_json:
        show_json(archived.line())
        return
    deferred, former = archived.deferred is not None, archived.split_from
    for text in event_text.explained(event, request_id, archived.document, deferred=deferred, split_from=former):
        click.echo(text)


@events.command(
    cls=click.Command,
    epilog=examples(
        "svc events tail ORG --environment development",
        "svc events tail ORG --since 10m --json | jq .visitor_id",
        "svc events tail ORG --since 30d --cursor-file cursor --json >> events.jsonl",
        "svc events tail ORG --changes --since 400d --cursor-file cursor --json >> changes.jsonl",
    ),
)
@click.argument("organization_id", metavar="ORG")
@filter_options(since="0s")
@click.option("--from", "cursor", metavar="CURSOR", help="Read the feed behind this cursor.")
@click.option(
    "--cursor-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read the feed behind the cursor in FILE, or from --since on if it is not there, and keep it up to date.",
)
@click.option("--follow/--no-follow", default=True, show_default=True, help="Wait for more; of a feed.")
@click.option("--changes", is_flag=True, help="Follow changes of events as well: those of GET /changes.")
@click.option("--ids", is_flag=True, help="Show request ids, rules, agents and tags as well, in wider lines.")
@data_option
@json_lines_option
def tail(organization_id: str, wanted: Wanted, ids: bool, directory: Path, as_json: bool, **feed: Any) -> None:
    """Follow an organization's events until Ctrl-C, or until --until: each once, in the order of arrival.

    An event that is stored more than ten seconds after it arrived is missed, but not with --from or --cursor-file:
    then the events are those of GET /events?order=oldest, about two seconds after they arrived, and the cursors are the
    same. With --json each line has its own: a client that stops at any time resumes after its last whole line. Filters
    on what may change later (--account, --action, --tag, --label) are refused then: events would be missed. With
    --changes each event comes as event.created, and again as event.updated and event.erased; there are no filters, and
    --since is when a change was made.
    """
    options = FeedOptions(**feed)
    if options.cursor is not None or options.cursor_file is not None or not options.follow or options.changes:
        if wanted.has_end:
            raise click.UsageError("--until is not for a feed, which has no end")
        if options.changes:
            refuse_filters(wanted)
        refuse_in_feed(wanted, "a feed (--from, --cursor-file, --no-follow)")
        tail_feed(directory, organization_id, wanted, options, as_json=as_json, ids=ids)
        return
    world = World.real()
    if not wanted.has_end:
        wanted = wanted._replace(until_ms=NEVER_MS)
    with reading(directory) as store:
        number = number_of(store, organization_id)
        if not as_json:
            click.echo(f"Following {wanted.environment}; --environment names another.", err=True)
            click.echo(event_text.head(ids=ids))
        try:
            for found in follow_arrivals(store, number, wanted, world.now_ms, _wait):
                if as_json:
                    show_json(listed_row(found))
                else:
                    click.echo(event_text.found_line(found, ids=ids))
        except KeyboardInterrupt:
            return


def _wait(seconds: float) -> None:
    pause(seconds)
    refuse_without_reader()


def follow_arrivals(
    store: Readable, number: int, wanted: Wanted, now_ms: Callable[[], int], wait: Callable[[float], None]
) -> Iterator[EventMatch | UnreadableEvent]:
    """Yield the events that were asked for as they are stored, until `wanted.until_ms`. Looks every `POLL_S`, each time
    `LATE_MS` back; what was seen is not read again.
    """
    seen: dict[bytes, int] = {}
    since_ms = wanted.since_ms

    def unseen(
        snapshot: Snapshot, rows: list[EventPosition], filters: Filters
    ) -> list[tuple[int, EventMatch | UnreadableEvent]]:
        new = {row.request_id: row.position.arrival_ms for row in rows if row.request_id not in seen}
        found = read_all(snapshot, [row for row in rows if row.request_id in new], filters)
        return [(new[each.request_id.bytes], each) for each in found]

    while True:
        looked_ms = now_ms()
        until_ms = min(looked_ms + 1, wanted.until_ms)
        window = wanted._replace(since_ms=since_ms, until_ms=until_ms)
        for _, found in oldest_first(store, number, window, unseen):
            seen.update((each.request_id.bytes, arrived_ms) for arrived_ms, each in found)
            yield from (each for _, each in found)
        if looked_ms >= wanted.until_ms + LATE_MS:
            return
        since_ms = max(wanted.since_ms, until_ms - LATE_MS)
        seen = {request_id: arrived_ms for request_id, arrived_ms in seen.items() if arrived_ms >= since_ms}
        wait(POLL_S)


class Archived(NamedTuple):
    """An event with its archive, out of the store."""

    match: EventMatch
    document: Document | None
    weights: dict[str, int]
    deferred: DeferredReport | None
    split_from: str | None
    """Id of the visitor that the document names, where it is still known."""

    def line(self) -> bytes:
        """Return one JSON object: the response of `GET /events/{request_id}`, and under `headers` what the request said
        of its browser besides. An archive that cannot be read is `null`.
        """
        request_id, event = self.match
        body, headers = self._body()
        deferred = None if self.deferred is None else inflate(self.deferred.signals)
        detail = _encoder.encode(event_detail(event, request_id, body, deferred))
        return detail if headers is None else detail[:-1] + b',"headers":' + _encoder.encode(headers) + b"}"

    def _body(self) -> tuple[DocumentBody | None, RequestHeaders | None]:
        if self.document is None:
            return None, None
        try:
            body = document_body(
                self.match.event, self.document, inflate(self.document.signals), self.weights, self.split_from
            )
            return body, None if self.document.headers is None else read_headers(self.document.headers)
        except (zlib.error, msgspec.DecodeError):
            return None, None


class Archives:
    """Reads archives of events. Sets of weights are kept, of which there are few."""

    def __init__(self) -> None:
        self._weights: dict[bytes, dict[str, int]] = {}

    def read_all(
        self, number: int, snapshot: Snapshot, rows: list[EventPosition], filters: Filters
    ) -> list[Archived | UnreadableEvent]:
        """Return the events of these index rows with their archives, in their order, less those that `filters` do not
        fit; an archive that is corrupt counts as none.
        """
        return [
            each if isinstance(each, UnreadableEvent) else self.read(snapshot, number, each)
            for each in read_all(snapshot, rows, filters)
        ]

    def read(self, snapshot: Snapshot, number: int, match: EventMatch) -> Archived:
        """Return an event of organization `number` with its archived report, the weights that scored it and its
        deferred report, of one snapshot. A corrupt archive counts as none. Raises `CorruptionError` for a deferred
        report.
        """
        request_id, event = match
        deferred = event_queries.deferred_report(snapshot, number, request_id)
        try:
            document = event_queries.document(snapshot, number, request_id) if event.has_document else None
            weights = {} if document is None else self._weights_of(snapshot, document.weights_digest)
        except CorruptionError:
            return Archived(match, None, {}, deferred, None)
        former = None if document is None else visitor_id_of(snapshot, number, document.split_from)
        return Archived(match, document, weights, deferred, former)

    def _weights_of(self, snapshot: Snapshot, digest: bytes) -> dict[str, int]:
        found = self._weights.get(digest)
        if found is None:
            found = self._weights[digest] = event_queries.weights_snapshot(snapshot, digest)
        return found
