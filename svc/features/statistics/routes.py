"""Results of the identifications of an environment, by hour or day: read from counters, never by looking at events.

Thirty days are 720 rows, read and added up a day at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from heapq import nsmallest
from itertools import groupby
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.events.console_bodies import InEnvironment
from svc.features.events.routes import find_events
from svc.features.weights.preview import LevelCounts
from svc.http.listing import encoded_row
from svc.http.route import Call, Route, Services, console_route
from svc.http.schema import WindowEnd
from svc.identify.events.hour_counts import NOTHING, HourCounts, sum_of
from svc.identify.events.listing import Listing, read_window
from svc.identify.queries.events import NOTHING_BEHIND, scan_action_counts
from svc.identify.queries.hours import hours
from svc.identify.scoring.signals import SignalName
from svc.kernel.values.fields import TIME_FORM, Timestamp, about
from svc.kernel.values.ids import DAY_MS, HOUR_MS
from svc.kernel.values.refusals import Detail, Refusal
from svc.kernel.values.struct_fields import body_of, sent
from svc.kernel.values.timestamps import timestamp, unix_ms
from svc.kernel.work.slices import Slice, in_turns, scanned

StepLength = Annotated[Literal["hour", "day"], about("Length of a period; days are those of UTC.", "hour")]
SIGNALS_SHOWN = 20
EVENTS_LOOKED_AT = 2000
"""The newest of a window, of which networks are counted: no counter has them, since there are too many."""
PARTS_LOOKED_AT = 20
"""Parts of a window, from the newest events of which actions are taken: nothing knows all of them."""
NETWORKS_SHOWN = 50
ACTIONS_SHOWN = 20
MAX_ACTION_LOOKS = 1000
"""Steps of the index that counting actions takes, each of about half a millisecond: some millions of events."""
COUNTRIES_SHOWN = 50
LAST_HOUR_MS = unix_ms(datetime(9999, 12, 31, 23, tzinfo=UTC))
"""RFC 3339 has no year beyond."""


WindowStart = Annotated[
    str | UnsetType,
    about("Start of the window; 24 hours before its end when left out.", "2026-01-05T09:00:00Z", form=TIME_FORM),
]


class WindowQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the networks, and of the actions. The window is checked by `svc.identify.events.listing`."""

    environment: InEnvironment = "production"
    start: WindowStart = msgspec.field(default=UNSET, name="from")
    end: WindowEnd = msgspec.field(default=UNSET, name="to")


class StatisticsQuery(WindowQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the statistics."""

    step: StepLength = "hour"


class SignalCount(msgspec.Struct, frozen=True):
    """How often a signal fired."""

    signal: SignalName
    count: Annotated[int, about("Identifications in which it fired.", 42)]


class CountryCount(msgspec.Struct, frozen=True):
    """How many identifications came from a country."""

    country_code: Annotated[str, about("ISO 3166-1 alpha-2.", "GB")]
    count: Annotated[int, about("Identifications from there.", 420)]


class PeriodCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the identifications of a stretch of time: numbers for a chart."""

    identifications: Annotated[int, about("All of them.", 1500)]
    levels: Annotated[LevelCounts, about("By suspect level.")]
    new: Annotated[int, about("Of visitors that were not known.", 900)]
    returning: Annotated[int, about("Of visitors that were recognized.", 580)]
    unidentifiable: Annotated[int, about("Of visitors that cannot be recognized.", 20)]
    amount_micros: Annotated[
        int, about("What they cost, in millionths of a US dollar; the account has what was charged.", 4450000)
    ]
    kinds: Annotated[dict[str, int], about("Kind of visitor to identifications.", {"human": 1450, "automation": 50})]
    decisions: Annotated[
        dict[str, int],
        about("Decision of the rules to identifications; those without one are left out.", {"review": 4}),
    ]


class PeriodBody(PeriodCounts, frozen=True, kw_only=True):
    """Results of the identifications of one period."""

    at: Annotated[Timestamp, about("When the period begins.")]


class CountsBody(PeriodCounts, frozen=True, kw_only=True):
    """Results of all identifications of a window."""

    scores: Annotated[
        tuple[Annotated[tuple[int, ...], Meta(min_length=2, max_length=2)], ...],
        about(
            "Histogram of the scores: where each part begins, and how many are in it. Parts without any are left out, "
            "and so are identifications that were not scored.",
            [[0, 1200], [30, 280]],
        ),
    ]
    signals: Annotated[tuple[SignalCount, ...], about("The 20 that fired most often.")]
    countries: Annotated[tuple[CountryCount, ...], about("The 50 with most identifications.")]


class StatisticsBody(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of an environment."""

    step: StepLength
    start: Annotated[Timestamp, about("Start of the first hour.")] = msgspec.field(name="from")
    end: Annotated[Timestamp, about("End of the last hour.")] = msgspec.field(name="to")
    totals: Annotated[CountsBody, about("Of the whole window.")]
    periods: Annotated[tuple[PeriodBody, ...], about("Oldest first; those without identifications are left out.")]


class NetworkCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many identifications came from a network."""

    asn: Annotated[str, about("Number of the autonomous system.", "20712")]
    asn_name: Annotated[str | UnsetType, about("Its name, where it is known.", "Andrews & Arnold Ltd")] = UNSET
    events: Annotated[int, about("Identifications from there.", 420)]
    suspicious: Annotated[int, about("Those of the level medium or high.", 12)]


class NetworksBody(msgspec.Struct, frozen=True, kw_only=True):
    """The networks of a window."""

    networks: Annotated[tuple[NetworkCount, ...], about("The 50 with most identifications.")]
    events: Annotated[int, about("Identifications that were looked at.", 2000)]
    is_complete: Annotated[bool, about("Whether these are all of the window.", False)]


class ActionCount(msgspec.Struct, frozen=True):
    """How many identifications had an action."""

    action: Annotated[str, about("As it was sent, or set afterwards.", "log_in")]
    count: Annotated[int, about("Identifications with it.", 420)]


class ActionsBody(msgspec.Struct, frozen=True, kw_only=True):
    """The actions of a window."""

    actions: Annotated[tuple[ActionCount, ...], about("The 20 that are met most often, most first.")]
    is_complete: Annotated[bool, about("Whether the whole window was counted.", True)]
    since: Annotated[Timestamp, about("Where it was not: from when on.")] | UnsetType = UNSET


async def read_networks(services: Services, call: Call) -> NetworksBody | Refusal:
    """`GET /console/api/networks`: where the newest identifications of a window came from. `422 invalid_window`."""
    query: WindowQuery = call.query
    window = read_window(sent(query.start), sent(query.end), call.at_ms, services.event_retention_ms)
    if isinstance(window, Refusal):
        return window
    number = call.organization.number
    listing = Listing(*window, limit=EVENTS_LOOKED_AT)
    found, resume = await find_events(services, call.turn, number, [query.environment], listing)
    events = Counter[str]()
    suspicious = Counter[str]()
    names: dict[str, str] = {}
    for _, event in found:
        if event.asn is not None:
            events[event.asn] += 1
            suspicious[event.asn] += event.verdict.suspect_level in ("medium", "high")
            if event.asn_name is not None:
                names.setdefault(event.asn, event.asn_name)
    rows = (
        NetworkCount(asn=asn, asn_name=names.get(asn, UNSET), events=count, suspicious=suspicious[asn])
        for asn, count in _most(events, NETWORKS_SHOWN)
    )
    return NetworksBody(networks=tuple(rows), events=len(found), is_complete=resume is None)


async def read_actions(services: Services, call: Call) -> ActionsBody | Refusal:
    """`GET /console/api/actions`: how many identifications of a window had each action. `422 invalid_window`.

    What actions there are is taken from events all over the window; the index counts those.
    """
    query: WindowQuery = call.query
    window = read_window(sent(query.start), sent(query.end), call.at_ms, services.event_retention_ms)
    if isinstance(window, Refusal):
        return window
    from_ms, to_ms = window
    number, environment = call.organization.number, query.environment
    named = Counter[str]()
    part_ms = -(-(to_ms - from_ms) // PARTS_LOOKED_AT)
    for start_ms in range(from_ms, to_ms, part_ms):
        listing = Listing(start_ms, min(start_ms + part_ms, to_ms), limit=EVENTS_LOOKED_AT // PARTS_LOOKED_AT)
        found, _ = await find_events(services, call.turn, number, [environment], listing)
        named.update(event.action for _, event in found if event.action is not None)
    actions = [action for action, _ in _most(named, ACTIONS_SHOWN)]
    counted = Counter[str]()
    scan = partial(scan_action_counts, number=number, environment=environment, actions=actions, from_ms=from_ms)
    looks, behind = 0, NOTHING_BEHIND
    start = Listing(from_ms, to_ms).start
    slices = scanned(services.world, services.store, scan, start)
    async with aclosing(in_turns(slices, call.turn.held)) as parts:
        async for some in parts:
            for behind, part in some:  # noqa: B007  the last one is where it ended
                counted.update(part)
            looks += len(some)
            if looks >= MAX_ACTION_LOOKS:
                break
    is_complete = behind == NOTHING_BEHIND
    return ActionsBody(
        actions=tuple(ActionCount(*one) for one in _most(counted, ACTIONS_SHOWN)),
        is_complete=is_complete,
        since=UNSET if is_complete else timestamp(behind.after.arrival_ms),
    )


async def read_statistics(services: Services, call: Call) -> StatisticsBody | Refusal:
    """`GET /console/api/statistics`: counts of the hours that the window touches, as whole hours or days, and their
    sum. `422 invalid_window`.
    """
    query: StatisticsQuery = call.query
    window = read_window(sent(query.start), sent(query.end), call.at_ms, services.event_retention_ms)
    if isinstance(window, Refusal):
        return window
    end_ms = call.at_ms + 1 if query.end is UNSET else window[1]  # the hour that has come, and not the next
    from_ms, to_ms = window[0] // HOUR_MS * HOUR_MS, -(-end_ms // HOUR_MS) * HOUR_MS
    if to_ms > LAST_HOUR_MS:
        return Refusal("invalid_window", (Detail("to", "out_of_range", "query"),))
    step_ms = HOUR_MS if query.step == "hour" else DAY_MS
    number = call.organization.number
    totals = NOTHING
    rows: list[Any] = []
    async with call.turn.page():
        time = Slice(services.world)
        for day_ms in range(from_ms // DAY_MS * DAY_MS, to_ms, DAY_MS):
            first_ms, beyond_ms = max(day_ms, from_ms), min(day_ms + DAY_MS, to_ms)
            read = partial(hours, number=number, environment=query.environment, from_ms=first_ms, to_ms=beyond_ms)
            periods = _periods(await services.store.query(read), step_ms)
            totals = sum_of((totals, *periods.values()))
            for at_ms, counts in periods.items():
                await time.pause()
                levels = LevelCounts(**counts.levels)
                rows.append(encoded_row(body_of(PeriodBody, counts, levels=levels, at=timestamp(at_ms))))
    return StatisticsBody(
        step=query.step,
        start=timestamp(from_ms),
        end=timestamp(to_ms),
        totals=_counts(totals),
        periods=tuple(rows),
    )


def _periods(found: Iterable[tuple[int, HourCounts]], step_ms: int) -> dict[int, HourCounts]:
    """Return start of the period -> sum of its hours, oldest first."""
    return {
        period_ms: sum_of(counts for _, counts in some)
        for period_ms, some in groupby(found, lambda one: one[0] // step_ms * step_ms)
    }


def _counts(counts: HourCounts) -> CountsBody:
    return body_of(
        CountsBody,
        counts,
        levels=LevelCounts(**counts.levels),
        scores=tuple(sorted(counts.scores.items())),
        signals=tuple(SignalCount(*one) for one in _most(counts.signals, SIGNALS_SHOWN)),
        countries=tuple(CountryCount(*one) for one in _most(counts.countries, COUNTRIES_SHOWN)),
    )


def _most(counts: Mapping[str, int], shown: int) -> list[tuple[str, int]]:
    """Return the `shown` largest counts, ties by name."""
    return nsmallest(shown, counts.items(), key=lambda one: (-one[1], one[0]))


ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="getConsoleStatistics",
        path="/statistics",
        summary="Read statistics of an environment",
        description=(
            "Of the whole hours that the window touches, at most 30 days of those for which events are kept. They are "
            "counted with each identification, and what is erased or no longer kept is taken off. Scores, signals and "
            "countries are those of the whole window."
        ),
        handler=read_statistics,
        query=StatisticsQuery,
        errors=("invalid_window",),
    ),
    console_route(
        operation_id="getConsoleActions",
        path="/actions",
        summary="Count the actions of an environment",
        description=(
            "Of all identifications of the window, by the index. What actions there are is taken from "
            f"{EVENTS_LOOKED_AT:,} of them, the newest of each of {PARTS_LOOKED_AT} parts of the window: a rare one "
            "may be missing."
        ),
        handler=read_actions,
        query=WindowQuery,
        errors=("invalid_window",),
    ),
    console_route(
        operation_id="getConsoleNetworks",
        path="/networks",
        summary="Read the networks of an environment",
        description=f"Of the newest {EVENTS_LOOKED_AT:,} identifications of the window.",
        handler=read_networks,
        query=WindowQuery,
        errors=("invalid_window",),
    ),
)
