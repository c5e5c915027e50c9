"""Labels of events, and how signals, rules and levels did by them (decisions 14.1, 14.2)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import trio

from svc.features.accounts.queries import environments_of
from svc.features.events.routes import read_request_id
from svc.features.labels.bodies import (
    LabelBody,
    PerformanceBody,
    PerformanceLine,
    PerformanceQuery,
    PerformanceTotal,
    performance_line,
    performance_scores,
)
from svc.features.labels.jobs import LabelChange, label_request
from svc.features.labels.outcomes import OUTCOME_MS
from svc.features.labels.performance import Kind, Performance
from svc.features.labels.performance_queries import PerformanceSums, Stretch, read_rows, stretches
from svc.features.rules.jobs import rule_names
from svc.http.change import change
from svc.http.route import ORGANIZATION, Call, Route, Services
from svc.http.schema import LabelAnswer
from svc.identify.events.listing import LEVELS
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.refusals import Detail, Issue, Refusal
from svc.kernel.values.struct_fields import sent
from svc.kernel.values.timestamps import read_timestamp, timestamp

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
        scores=tuple(map(performance_scores, performance.scores())),
    )


def _lines(performance: Performance, kind: Kind) -> tuple[PerformanceLine, ...]:
    return tuple(map(performance_line, performance.lines(kind)))


async def _summed(services: Services, stretch: Stretch) -> Performance:
    """What a stretch of days adds up to; others have their turn after each day that has changed."""
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
        response=LabelAnswer,
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
        response=PerformanceBody,
        errors=("invalid_window",),
    ),
)
