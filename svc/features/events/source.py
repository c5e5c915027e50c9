"""Events for commands that read: which ones are meant, and pages of them out of a store that a service may be using.

Each page is read in a state of its own that is closed before anything is printed: a pager that is left open, or a slow
pipe, does not make the file of a running service grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, wraps
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import click

from svc.command.data_directory import Readable, known_organization, read_through
from svc.command.output import TimestampType, settings
from svc.features.feed.feed import refused_filters
from svc.identify.events.listing import EVERYTHING, FILTERS, KINDS, LEVELS, Filters, Listing, Position
from svc.identify.matching import Visitor
from svc.identify.model import LABELS, RULE_ACTIONS
from svc.identify.queries.events import (
    EventMatch,
    EventPosition,
    EventScan,
    UnreadableEvent,
    positions,
    read_all,
    scan_counts,
)
from svc.identify.queries.visitors import Activity, counted_from_ms, scan_activities, sum_of
from svc.identify.scoring.signals import CATALOG, GROUPS
from svc.kernel.net.addresses import parse_ip
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import end_of_now, is_visitor_id
from svc.world import World

F = TypeVar("F", bound=Callable[..., Any])

EVENTS_A_READ = 500
_FIRST_STRETCH_MS = 60_000
_ALL = 2**62


class Wanted(NamedTuple):
    """Which events a command is about."""

    environment: Environment
    since_ms: int
    """Of arrival, inclusive."""
    until_ms: int
    """Exclusive."""
    filters: Filters
    has_end: bool = True
    """`False` = nobody asked for one: `until_ms` is the time of the command."""


def oldest_ms(now_ms: int) -> int:
    """Return when the oldest event arrived that is readable, by the settings in force."""
    return now_ms - settings().event_retention_ms()


def number_of(store: Readable, organization_id: str) -> int:
    """Return the number of an organization by its id. Raises `CommandError` if there is none, or if it was removed."""
    return known_organization(store, organization_id, after_removal=": its events are erased").number


def environment_option(command: F) -> F:
    """Add `--environment`, passed on as `environment`."""
    return click.option(
        "--environment",
        type=click.Choice(ENVIRONMENTS),
        default="production",
        show_default=True,
        help="Environment of the keys.",
    )(command)


def filter_options(since: str) -> Callable[[F], F]:
    """Return the options that choose events; the command gets them as `wanted`. `since`: the default of `--since`, as
    people write it.
    """

    def decorate(command: F) -> F:
        @wraps(command)
        def given(*arguments: Any, environment: Environment, since_ms: int, until_ms: int | None, **rest: Any) -> Any:
            options = {name: rest.pop(name) for name in Filters.__struct_fields__}
            filters = _filters(**options)
            return command(*arguments, wanted=events_wanted(environment, since_ms, until_ms, filters), **rest)

        wrapped: Any = given
        for option in reversed(_FILTERS):
            wrapped = option(wrapped)
        return time_options(since)(wrapped)

    return decorate


def _filters(*, rule: str | None, shadow: bool, **others: Any) -> Filters:
    """Return the filters of these options. Raises `UsageError` for `--shadow` without `--rule`."""
    if shadow and rule is None:
        raise click.UsageError("--shadow goes with --rule")
    return Filters(**others, rule=None if shadow else rule, shadow=rule if shadow else None)


def time_options(since: str) -> Callable[[F], F]:
    """Add `--environment`, `--since` and `--until`: `environment`, `since_ms` and `until_ms` for `events_wanted`."""

    def decorate(command: F) -> F:
        until = click.option("--until", "until_ms", type=TimestampType(), metavar="T", help="Arrived before this time.")
        beginning = click.option(
            "--since",
            "since_ms",
            type=TimestampType(),
            default=since,
            show_default=True,
            metavar="T",
            help="Arrived since: 30m, 24h, 7d, or RFC 3339.",
        )
        return environment_option(beginning(until(command)))

    return decorate


def say_nothing_found(environment: Environment) -> None:
    """Print, where nothing was found, that only one environment was searched, which is often another than meant."""
    click.echo(f"Nothing was found in {environment}; --environment names another.", err=True)


def events_wanted(environment: Environment, since_ms: int, until_ms: int | None, filters: Filters) -> Wanted:
    """Return what the options ask for, within the time for which events are kept; `until_ms=None` is now. Raises
    `UsageError` for a time that is empty.
    """
    now_ms = World.real().now_ms()
    config, has_end = settings(), until_ms is not None
    until_ms = end_of_now(now_ms) if until_ms is None else until_ms
    since_ms = max(since_ms, now_ms - config.event_retention_ms())
    if since_ms >= until_ms:
        raise click.UsageError(f"--until is not after --since; events are kept for {config.event_retention_days} days")
    return Wanted(environment, since_ms, until_ms, filters, has_end)


def _read_by(read: Callable[[str], str | None], problem: str) -> Callable[..., str | None]:
    """Return an option callback that applies `read`, and rejects the value with `problem` where that is `None`."""

    def callback(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
        known = None if value is None else read(value)
        if value is not None and known is None:
            raise click.BadParameter(f"{value!r} {problem}")
        return known

    return callback


_visitor = _read_by(
    lambda text: text if is_visitor_id(text) else None, "is not a visitor id, which is 20 letters and digits"
)
_address = _read_by(parse_ip, "is not an IPv4 or IPv6 address")
_country = _read_by(
    lambda text: text.upper() if len(text) == 2 and text.isascii() and text.isalpha() else None,
    "is not a country code of two letters, such as DE",
)
_signal = _read_by(lambda text: text if text in CATALOG else None, "is not a signal; `svc signals` lists them")
_account = _read_by(FILTERS["account_id"], "is not an account id: 1 to 256 characters, without control characters")
_action = _read_by(FILTERS["action"], "is not an action: lower-case letters, digits, '_', '.' and '-', a letter first")
_rule = _read_by(
    FILTERS["rule"], "is not the id of a rule: rul_ and 20 letters and digits; `svc rule show ORG --json` has them"
)
_asn = _read_by(FILTERS["asn"], "is not an autonomous system number: digits alone")

tag_option = click.option("--tag", metavar="TAG", help="Tag, exactly as sent.")
address_option = click.option("--ip", "ip_address", metavar="A", callback=_address, help="IP address.")
_FILTERS = (
    click.option("--level", type=click.Choice(LEVELS), help="Suspect level."),
    click.option("--visitor", "visitor_id", metavar="VISITOR", callback=_visitor, help="Visitor id."),
    tag_option,
    address_option,
    click.option("--country", metavar="CC", callback=_country, help="Country (ISO 3166-1 alpha-2)."),
    click.option("--signal", metavar="S", callback=_signal, help="Signal that fired."),
    click.option("--group", type=click.Choice(tuple(GROUPS)), metavar="GROUP", help="Signal group, such as vpn."),
    click.option("--kind", type=click.Choice(KINDS), help="Kind of visitor."),
    click.option("--account", "account_id", metavar="ACCOUNT", callback=_account, help="Account id."),
    click.option("--action", metavar="A", callback=_action, help="What the visitor did, such as log_in."),
    click.option("--decision", type=click.Choice(RULE_ACTIONS), help="What a rule decided."),
    click.option("--rule", metavar="RULE", callback=_rule, help="Id of the rule that decided."),
    click.option("--shadow", is_flag=True, help="List what --rule matched in shadow mode, not what it decided."),
    click.option("--label", type=click.Choice(LABELS), help="What it turned out to be."),
    click.option("--asn", metavar="N", callback=_asn, help="Number of the autonomous system."),
)
"""An option for each field of `Filters`."""


def refuse_in_feed(wanted: Wanted, feed: str) -> None:
    """Raise a usage error if the filters ask for what an event may get after a feed has given it out. `feed`: what is
    read, in the message.
    """
    for name in refused_filters(wanted.filters):
        option = {"account_id": "--account", "shadow": "--rule"}.get(name, f"--{name}")
        raise click.UsageError(
            f"{feed} has no {option}: an event may get it after it was given out, and would be missed"
        )


def refuse_filters(wanted: Wanted) -> None:
    """Raise a usage error if there is any filter: changes have none."""
    if wanted.filters != EVERYTHING:
        raise click.UsageError("--changes takes no filters: what an event is found by may change")


def how_many(store: Readable, number: int, wanted: Wanted) -> int:
    """Return how many of the wanted events organization `number` has."""
    listing = Listing(wanted.since_ms, wanted.until_ms, wanted.filters)
    scan = partial(scan_counts, number=number, environment=wanted.environment, listing=listing, most=_ALL)
    return sum(part for _, part in read_through(store, scan, listing.start))


def newest_first(store: Readable, number: int, wanted: Wanted, limit: int) -> list[EventMatch | UnreadableEvent]:
    """Return at most `limit` of the wanted events of organization `number`, newest first."""
    listing = Listing(wanted.since_ms, wanted.until_ms, wanted.filters)
    scan = EventScan(number, [wanted.environment], listing)
    found = (each for _, each in read_through(store, scan.events, listing.start) if each is not None)
    return list(islice(found, limit))


def newest_readable(store: Readable, number: int, wanted: Wanted, limit: int) -> list[EventMatch]:
    """Return the same as `newest_first`, without events that cannot be read: for what is made of events."""
    return [each for each in newest_first(store, number, wanted, limit) if isinstance(each, EventMatch)]


def activity_of(store: Readable, number: int, visitor_id: str, record: Visitor | None, now_ms: int) -> Activity:
    """Return the number of a visitor's stored events in all environments, and when the first and last of them arrived.
    The events are counted in parts, each in its own snapshot.
    """
    since_ms = counted_from_ms(record, oldest_ms(now_ms))
    scan = partial(scan_activities, number=number, visitor_ids=(visitor_id,), since_ms=since_ms)
    parts = (
        counted
        for environment in ENVIRONMENTS
        for _, counted in read_through(
            store, partial(scan, environment=environment), Position(end_of_now(now_ms), bytes(16))
        )
    )
    return sum_of(each for counted in parts for each in counted.values())


class Stretch(NamedTuple):
    """The events of one part of the requested time, oldest first."""

    to_ms: int
    """Everything that arrived before then has been read."""
    found: list[Any]


def oldest_first(
    store: Readable, number: int, wanted: Wanted, read_events: Callable[..., list[Any]] = read_all
) -> Iterator[Stretch]:
    """Yield all the events in the order of arrival, some hundred at a time, in constant memory.

    The indexes are read from the newest on, so the time is cut into stretches of about `EVENTS_A_READ` events each.
    `read_events(snapshot, rows, filters)` reads them.
    """
    start, stretch = wanted.since_ms, _FIRST_STRETCH_MS
    while start < wanted.until_ms:
        end = min(start + stretch, wanted.until_ms)
        listing = Listing(start, end, wanted.filters, limit=EVENTS_A_READ)
        with store.read() as snapshot:
            rows = snapshot.evaluate(partial(_places, number=number, environment=wanted.environment, listing=listing))
            if rows is None:
                stretch = (end - start) // 2
                continue
            events = snapshot.evaluate(partial(_read, read_events, rows[::-1], wanted.filters))
        yield Stretch(end, events)
        start = end
        if not rows:
            stretch *= 4
        elif len(rows) < EVENTS_A_READ // 4:
            stretch *= 2


def _places(
    snapshot: Snapshot, *, number: int, environment: Environment, listing: Listing
) -> list[EventPosition] | None:
    """Return where all events of a listing are, newest first; `None` where they are too many for one page and their
    time can be cut.
    """
    found = positions(snapshot, number, environment, listing)
    if found.resume is not None and listing.to_ms - listing.from_ms > 1:
        return None
    rows = found.rows
    while found.resume is not None:  # more than a page in a single millisecond
        found = positions(snapshot, number, environment, listing._replace(after=found.resume.after))
        rows += found.rows
    return rows


def _read(
    read_events: Callable[..., list[Any]], rows: list[EventPosition], filters: Filters, snapshot: Snapshot
) -> list[Any]:
    return read_events(snapshot, rows, filters)
