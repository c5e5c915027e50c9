"""Read queries about visitors: who there is, who was seen with a tag or at an address, and with which tags.

What is seen with what is read from index rows, by one seek for each visitor or tag; what is counted is bounded, so that
a busy visitor costs no more than `MOST_COUNTED` keys. They change nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from svc.domain.ids import is_visitor_id
from svc.domain.listing import FACETS, Filters
from svc.domain.matching import Visitor
from svc.domain.model import ENVIRONMENTS, Environment
from svc.store.events import value_digest
from svc.store.snapshot import Snapshot
from svc.store.tables import EVENTS, EVENTS_BY_FACET, TAG_VISITORS, VISITOR_IDS, VISITOR_TAGS, VISITORS, Table

MOST_COUNTED = 1000
"""Events of one visitor with one tag that are counted: that many stand for at least as many."""
MOST_OF_AN_ADDRESS = 500
"""Newest events of an address among which its visitors are looked for."""
_BEYOND_MS = 2**64 - 1


class Sighting(NamedTuple):
    """A visitor and how often it was seen with what was asked for."""

    visitor_id: str
    first_seen_ms: int
    last_seen_ms: int
    events: int
    """At most `MOST_COUNTED`."""


class TagUse(NamedTuple):
    """A tag and how often a visitor was seen with it."""

    tag: str
    first_seen_ms: int
    last_seen_ms: int
    events: int
    """At most `MOST_COUNTED`."""


class _Run(NamedTuple):
    """The index rows that begin with the same parts."""

    first_ms: int
    last_ms: int
    events: int
    newest: bytes
    """Request id."""


def find_visitor(snapshot: Snapshot, number: int, visitor_id: str) -> Visitor | None:
    """The record of a visitor of the organization; `None` for any other text, and for a visitor that cannot be
    recognized, of which there are only events.
    """
    found = snapshot.get(VISITOR_IDS, number, visitor_id.encode()) if is_visitor_id(visitor_id) else None
    return None if found is None else snapshot.get(VISITORS, number, found)


def visitors(snapshot: Snapshot, number: int, after: int | None, limit: int) -> list[tuple[int, Visitor]]:
    """(number of the visitor, its record) of at most `limit` visitors, the most recently created first; with `after`,
    those created before the visitor of that number.
    """
    beyond = (number + 1,) if after is None else (number, after)
    keys = islice(snapshot.scan_keys_reverse(VISITORS, (number,), beyond), limit)
    rows = ((visitor, snapshot.get(VISITORS, number, visitor)) for _, visitor in keys)
    return [(visitor, record) for visitor, record in rows if record is not None]


def visitors_with(
    snapshot: Snapshot, number: int, environment: Environment, filters: Filters, after: str | None, limit: int
) -> list[Sighting]:
    """At most `limit` visitors that were seen with a tag or at an address, in the order of their ids; with `after`,
    those behind this id. Those of an address are found among its `MOST_OF_AN_ADDRESS` newest events, and what is said
    of them is about those. Raises `ValueError` unless `filters` asks for exactly one of the two.
    """
    if (filters.tag is None) == (filters.ip_address is None):
        raise ValueError("either a tag or an address")
    if filters.tag is not None:
        found = _with_tag(snapshot, number, environment, filters.tag, after)
    else:
        found = _at_address(snapshot, number, environment, filters, after)
    return list(islice(found, limit))


def tags_of(snapshot: Snapshot, number: int, environment: Environment, visitor_id: str, limit: int) -> list[TagUse]:
    """At most `limit` tags that a visitor was seen with, the latest seen first. Which ones, where it has more, is left
    open.
    """
    digests = tag_digests(snapshot, number, environment, visitor_id, limit)
    return latest_first(tag_uses(snapshot, number, environment, visitor_id, digests))


def tag_digests(snapshot: Snapshot, number: int, environment: Environment, visitor_id: str, limit: int) -> list[bytes]:
    """What at most `limit` tags that a visitor was seen with stand for in keys: for `tag_uses`, which may take them
    some at a time.
    """
    if not is_visitor_id(visitor_id):
        return []
    stem = (number, ENVIRONMENTS.index(environment), visitor_id.encode())
    return list(islice(_distinct(snapshot, VISITOR_TAGS, stem, None), limit))


def tag_uses(
    snapshot: Snapshot, number: int, environment: Environment, visitor_id: str, digests: Sequence[bytes]
) -> list[TagUse]:
    """The tags of a visitor that these digests stand for; those whose events were deleted since are left out. Reads at
    most `MOST_COUNTED` keys for each.
    """
    stem = (number, ENVIRONMENTS.index(environment), visitor_id.encode())
    found: list[TagUse] = []
    for digest in digests:
        if next(snapshot.scan(VISITOR_TAGS, *stem, digest), None) is None:
            continue
        run = _run(snapshot, VISITOR_TAGS, (*stem, digest))
        event = snapshot.get(EVENTS, number, run.newest)
        if event is not None and event.tag is not None:
            found.append(TagUse(event.tag, run.first_ms, run.last_ms, run.events))
    return found


def latest_first(uses: Iterable[TagUse]) -> list[TagUse]:
    """Tags in the order in which they are shown."""
    return sorted(uses, key=lambda use: (-use.last_seen_ms, use.tag))


def _with_tag(
    snapshot: Snapshot, number: int, environment: Environment, tag: str, after: str | None
) -> Iterator[Sighting]:
    stem = (number, ENVIRONMENTS.index(environment), value_digest(tag))
    for raw_id in _distinct(snapshot, TAG_VISITORS, stem, None if after is None else after.encode()):
        run = _run(snapshot, TAG_VISITORS, (*stem, raw_id))
        event = snapshot.get(EVENTS, number, run.newest)
        if event is not None and event.tag == tag:
            yield Sighting(raw_id.decode(), run.first_ms, run.last_ms, run.events)


def _at_address(
    snapshot: Snapshot, number: int, environment: Environment, filters: Filters, after: str | None
) -> Iterator[Sighting]:
    assert filters.ip_address is not None
    stem = (number, ENVIRONMENTS.index(environment), FACETS.index("ip_address"), value_digest(filters.ip_address))
    keys = snapshot.scan_keys_reverse(EVENTS_BY_FACET, stem, (*stem, _BEYOND_MS))
    seen: defaultdict[str, list[int]] = defaultdict(list)
    for *_, request_id in islice(keys, MOST_OF_AN_ADDRESS):
        event = snapshot.get(EVENTS, number, request_id)
        if event is not None and filters.matches(event):
            seen[event.verdict.visitor_id].append(event.occurred_at_ms)
    for visitor_id in sorted(seen):
        if after is None or visitor_id > after:
            moments = seen[visitor_id]
            yield Sighting(visitor_id, moments[-1], moments[0], len(moments))


def _distinct(snapshot: Snapshot, table: Table[bytes], stem: tuple[Any, ...], after: bytes | None) -> Iterator[bytes]:
    """The different values of the part that follows `stem`, in order: one seek for each."""
    start = None if after is None else (*stem, after, _BEYOND_MS, b"\xff" * 16)
    while (row := next(snapshot.scan(table, *stem, start=start), None)) is not None:
        value = row[0][len(stem)]
        yield value
        start = (*stem, value, _BEYOND_MS, b"\xff" * 16)


def _run(snapshot: Snapshot, table: Table[bytes], stem: tuple[Any, ...]) -> _Run:
    """The rows that begin with `stem`, of which there is one at least."""
    oldest = next(snapshot.scan(table, *stem))[0]
    newest = list(islice(snapshot.scan_keys_reverse(table, stem, (*stem, _BEYOND_MS)), MOST_COUNTED))
    return _Run(oldest[-2], newest[0][-2], len(newest), newest[0][-1])
