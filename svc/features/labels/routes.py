"""Labels of events, how signals, rules and levels did by them, and the weights that they suggest (decisions 14.1-14.3).

A suggestion reads labeled events and fits weights in slices of time; of all organizations one long read
runs at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Annotated, NamedTuple

import msgspec
import trio
from msgspec import UNSET, UnsetType

from svc.features.accounts.queries import environments_of
from svc.features.events.routes import find_positions, read_request_id
from svc.features.labels.bodies import (
    LabelBody,
    PerformanceBody,
    PerformanceLine,
    PerformanceQuery,
    PerformanceScores,
    PerformanceTotal,
    performance_line,
)
from svc.features.labels.jobs import LabelChange, label_request
from svc.features.labels.outcomes import OUTCOME_MS
from svc.features.labels.outcomes import Outcome as LabeledOutcome
from svc.features.labels.performance import Kind, Performance
from svc.features.labels.queries import (
    PerformanceSums,
    Stretch,
    labeled_days,
    labeled_segments,
    read_rows,
    stored_outcome,
    stretches,
)
from svc.features.labels.suggested_weights import LEAST_LABELS, Labeled, QualityBody, SuggestedWeightBody, suggest
from svc.features.rules.jobs import rule_names
from svc.http.change import caller_of, change
from svc.http.route import ORGANIZATION, Call, Route, Services
from svc.http.schema import InKind, LabelAnswer
from svc.identify.events.listing import LEVELS, Filters, Listing
from svc.identify.model import LABELS
from svc.identify.queries import events
from svc.identify.queries.events import EventPosition
from svc.identify.queries.weights import weights_in_force
from svc.identify.velocity.counts import EnvironmentKind
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import PLATFORMS, Platform, about
from svc.kernel.values.ids import DAY_MS, end_of_now
from svc.kernel.values.refusals import Detail, Issue, Refusal
from svc.kernel.values.struct_fields import sent
from svc.kernel.values.timestamps import read_timestamp, timestamp
from svc.kernel.work.slices import carried_out, in_slices, in_turns, scanned

DEFAULT_WINDOW_MS = 30 * DAY_MS


async def label_event(services: Services, call: Call) -> LabelAnswer | Refusal:
    """`PUT .../events/{request_id}/label`: another label for an event of any environment, or none, for 400 days from
    its arrival. `404 event_not_found`, `422 invalid_request_id`.
    """
    body: LabelBody = call.body
    request_id = read_request_id(call.path["request_id"])
    if isinstance(request_id, Refusal):
        return request_id
    job = partial(
        label_request,
        number=call.organization.number,
        request_id=request_id.bytes,
        change=LabelChange(body.label, body.label_reason),
        now_ms=call.at_ms,
    )
    labeled = await change(services, call, job)
    if isinstance(labeled, Refusal):
        return labeled
    return LabelAnswer(request_id=str(request_id), label=labeled.label, label_reason=labeled.reason)


async def read_performance(services: Services, call: Call) -> PerformanceBody | Refusal:
    """`GET .../performance`: how signals, groups, rules and levels did in the UTC days that the window touches. `422
    invalid_window`.
    """
    query: PerformanceQuery = call.query
    window = read_days(sent(query.start), sent(query.end), call.at_ms)
    if isinstance(window, Refusal):
        return window
    number = call.organization.number
    performance = Performance()
    for environment in environments_of(query.environment):
        for stretch in stretches(number, environment, window.first, window.last):
            performance.add(await _summed(services, stretch))
    names = await services.store.query(partial(rule_names, number=number, kind=query.environment))
    return PerformanceBody(
        start=timestamp(window.first * DAY_MS),
        end=timestamp((window.last + 1) * DAY_MS),
        total=PerformanceTotal(
            events=performance.events,
            labelled=performance.fraud + performance.legitimate,
            fraud=performance.fraud,
            legitimate=performance.legitimate,
        ),
        signals=_lines(performance, "signals"),
        groups=_lines(performance, "groups"),
        rules=tuple(
            performance_line(line, names.known.get(line.name, line.name), line.name)
            for line in performance.lines("rules", names.in_force)
        ),
        levels=tuple(performance_line(line) for line in performance.lines("levels", LEVELS)),
        scores=tuple(PerformanceScores(**bucket._asdict()) for bucket in performance.scores()),
    )


def _lines(performance: Performance, kind: Kind) -> tuple[PerformanceLine, ...]:
    return tuple(map(performance_line, performance.lines(kind)))


async def _summed(services: Services, stretch: Stretch) -> Performance:
    """Return the sums over a stretch of days. Other tasks run after each day that has changed."""
    sums, days = services.part(PerformanceSums), list[Performance]()
    await trio.lowlevel.checkpoint()
    for day, rows in (await services.store.query(partial(read_rows, stretch=stretch))).items():
        if not sums.knows(stretch, day, rows):
            await trio.lowlevel.checkpoint()
        days.append(sums.of_day(stretch, day, rows))
    return sums.of_stretch(stretch, tuple(days))


class Days(NamedTuple):
    """UTC days since 1970, both included."""

    first: int
    last: int


def read_days(start: str | None, end: str | None, now_ms: int) -> Days | Refusal:
    """Return the days that a window touches, at most 400 and not before those of which outcomes are kept; without a
    start the last 30. `422 invalid_window`.
    """
    to_ms = now_ms + 1 if end is None else read_timestamp(end)
    if to_ms is None:
        return _invalid("to", "invalid_value")
    from_ms = to_ms - DEFAULT_WINDOW_MS if start is None else read_timestamp(start)
    if from_ms is None:
        return _invalid("from", "invalid_value")
    window = Days(from_ms // DAY_MS, (to_ms - 1) // DAY_MS)
    if from_ms >= to_ms or window.first < (now_ms - OUTCOME_MS) // DAY_MS:
        return _invalid("to" if start is None else "from", "out_of_range")
    if to_ms - from_ms > OUTCOME_MS or window.last > now_ms // DAY_MS + 1:
        return _invalid("to", "out_of_range")
    return window


def _invalid(parameter: str, issue: Issue) -> Refusal:
    return Refusal("invalid_window", (Detail(parameter, issue, "query"),), explanation=_WINDOW)


_WINDOW = (
    "The window is not valid. It has at most 400 days, none of them over 400 days ago, and its start is before its "
    "end, both RFC 3339 with + sent as %2B."
)

_route = partial(Route, tag="Management: labels", kinds=("management",))


_LAST = b"\xff" * 16


class Bounds(NamedTuple):
    """How much a request looks at."""

    events: int = 20_000
    """Labeled events of each label and environment that are stored."""
    looks: int = 3_000
    """At the index for them: some ten million events."""
    segments: int = 2_000
    """About a million identifications, the newest of the archive."""


BOUNDS = Bounds()
_EVERYTHING = Bounds(1 << 40, 1 << 40, 1 << 40)
"""What `svc weights suggest` looks at: it holds nobody up."""


class SuggestionQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose labels are meant."""

    environment: InKind = "live"


class SuggestionBody(msgspec.Struct, frozen=True, kw_only=True):
    """Weights that the labels suggest for a platform (decisions 14.3)."""

    platform: Annotated[str, about("Platform whose weights they are.", "web")]
    fraud: Annotated[int, about("Events labeled as fraud.", 130)]
    legitimate: Annotated[int, about("Events labeled as legitimate.", 410)]
    suspect_threshold: Annotated[int, about("The threshold in force, which keeps its meaning.", 30)]
    needed: Annotated[int, about("Events of each label without which nothing is suggested.", 50)] = LEAST_LABELS
    is_complete: Annotated[
        bool,
        about(
            "Whether every label was looked at; `false` = older ones were left out. `svc weights suggest` takes all.",
            True,
        ),
    ] = True
    before: (
        Annotated[QualityBody, about("By the weights in force; left out while there are too few labels.")] | UnsetType
    ) = UNSET
    after: Annotated[QualityBody, about("By the suggested weights; left out then, too.")] | UnsetType = UNSET
    weights: Annotated[
        tuple[SuggestedWeightBody, ...],
        about("Signals that fired in at least 10 labeled events. All others keep theirs."),
    ]


async def read_suggestion(services: Services, call: Call) -> SuggestionBody | Refusal:
    """`GET .../risk-weights/{platform}/suggestion`: weights that labels suggest, beside those in force. `404` for an
    unknown platform, `429` while another long read of the organization runs.
    """
    query: SuggestionQuery = call.query
    named = call.path["platform"]
    platform = PLATFORMS[PLATFORMS.index(named)] if named in PLATFORMS else None
    if platform is None:
        return Refusal("not_found")
    refusal = call.turn.refusal()
    if refusal is not None:
        return refusal
    with call.turn.exclusive():
        return await _suggested(services, call, query.environment, platform)


async def _suggested(services: Services, call: Call, kind: EnvironmentKind, platform: Platform) -> SuggestionBody:
    number, labeled = call.organization.number, Labeled(platform)
    bounds = BOUNDS if caller_of(call).operator is None else _EVERYTHING
    has_all_stored = await _add_stored(services, call, kind, labeled, bounds)
    is_complete = await _add_archived(services, call, kind, labeled, bounds.segments) and has_all_stored
    in_force = await services.store.query(partial(weights_in_force, number=number, key_id=None, platform=platform))
    if not labeled.is_enough:
        return SuggestionBody(
            platform=platform,
            fraud=labeled.fraud,
            legitimate=labeled.legitimate,
            suspect_threshold=in_force.threshold,
            is_complete=is_complete,
            weights=(),
        )
    suggestion = await carried_out(services.world, suggest(labeled, in_force, platform), call.turn.held)
    return SuggestionBody(
        platform=platform,
        fraud=suggestion.fraud,
        legitimate=suggestion.legitimate,
        suspect_threshold=suggestion.threshold,
        is_complete=is_complete,
        before=suggestion.today,
        after=suggestion.suggested,
        weights=tuple(suggestion.weights),
    )


async def _add_stored(services: Services, call: Call, kind: EnvironmentKind, labeled: Labeled, bounds: Bounds) -> bool:
    """Add the newest stored events with a label; return whether these are all."""
    is_complete = True
    for environment in environments_of(kind):
        for label in LABELS:
            listing = Listing(0, end_of_now(call.at_ms), Filters(label=label), limit=bounds.events)
            number = call.organization.number
            found, resume = await find_positions(services, call.turn, number, [environment], listing, bounds.looks)
            is_complete = is_complete and resume is None and len(found) < bounds.events
            read = partial(_outcomes, number, listing.filters)
            slices = in_slices(services.world, services.store, found, read)
            async with aclosing(in_turns(slices, call.turn.held)) as parts:
                async for some in parts:
                    labeled.add(outcome for outcome in some if outcome is not None)
    return is_complete


def _outcomes(
    number: int, filters: Filters, snapshot: Snapshot, places: Sequence[EventPosition]
) -> Iterator[LabeledOutcome | None]:
    for match in events.read_each(snapshot, places, filters):
        yield None if match is None else stored_outcome(snapshot, number, match.request_id.bytes, match.event)


async def _add_archived(
    services: Services, call: Call, kind: EnvironmentKind, labeled: Labeled, most_segments: int
) -> bool:
    """Add the labeled outcomes among the newest in the archive; return whether these are all."""
    number, environments = call.organization.number, environments_of(kind)
    of_days = await services.store.query(partial(labeled_days, number=number))
    segments = partial(labeled_segments, number=number, of_days=of_days, now_ms=call.at_ms)
    looked_at = 0
    slices = scanned(services.world, services.store, segments, _LAST)
    async with aclosing(in_turns(slices, call.turn.held)) as parts:
        async for some in parts:
            for _, outcomes in some:
                labeled.add(outcome for outcome in outcomes or () if outcome.facts.environment in environments)
                looked_at += outcomes is not None
            if looked_at >= most_segments:
                return False
    return True


ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="labelEvent",
        method="PUT",
        path=ORGANIZATION + "/events/{request_id}/label",
        summary="Label an event",
        description=(
            "What it turned out to be, of an event of any environment, for 400 days from its arrival. Servers with a "
            "secret key use `updateEvent`."
        ),
        handler=label_event,
        needs="judge",
        body=LabelBody,
        errors=("event_not_found", "invalid_request_id"),
    ),
    _route(
        operation_id="getPerformance",
        path=ORGANIZATION + "/performance",
        summary="Read how signals, rules and levels did",
        description=(
            "By the labels of events: of those in which a signal fired, how many are fraud (precision), and how much "
            "of all fraud that is (recall). Of the whole UTC days that the window touches, at most 400. An event "
            "without a label is never counted as legitimate."
        ),
        handler=read_performance,
        query=PerformanceQuery,
        errors=("invalid_window",),
    ),
    Route(
        operation_id="getWeightsSuggestion",
        path=ORGANIZATION + "/risk-weights/{platform}/suggestion",
        tag="Management: weights",
        summary="Read which weights labels suggest",
        description=(
            "From the organization's own labeled events of the platform, at least 50 of each label: the stored ones, "
            "and those among about the newest million that are deleted. Nothing is changed. With fewer there "
            "are no weights in the response."
        ),
        handler=read_suggestion,
        kinds=("management",),
        query=SuggestionQuery,
    ),
)
