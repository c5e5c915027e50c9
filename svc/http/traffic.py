"""Traffic: the results of requests, counted by route, and one log line for each.

What may live here: counting and reporting. Labels are bounded: routes by operation id, never by path; and nothing of a
request goes into its line but ids, what was decided, and how long it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec
import structlog
import trio

from svc.http.callers.caller import Caller
from svc.http.schema import IdentifyAnswer
from svc.http.server.messages import Request
from svc.kernel.net.trace_context import TraceContext, span_of, trace_fields
from svc.kernel.values.histogram import REQUEST_S, Histogram, HistogramStatistics
from svc.kernel.values.refusals import Refusal

log = structlog.get_logger()

UNKNOWN = "unknown"
"""In the place of an operation id: no route takes this path with this method."""
PREFLIGHT = "preflight"
"""In the place of an operation id: the response for any route that browsers may ask."""
GONE = "gone"
"""In the place of a status: nobody waited for the response."""

Logged = Literal["all", "refused", "none"]
"""Which requests have a line: `refused` are those whose response was not 2xx."""


class RequestContext(msgspec.Struct, kw_only=True):
    """One request while it is handled, and what is known of it so far."""

    request_id: UUID
    at_ms: int
    """When it arrived; the only reading of the clock."""
    began_at: float = msgspec.field(default_factory=trio.current_time)
    operation_id: str = UNKNOWN
    caller: Caller | None = None
    refusal: Refusal | None = None
    request: Request | None = None
    """For lines that people read."""
    caused_by: TraceContext | None = None
    """The trace and the caller's span that the request names."""
    body: Any = None
    """Of the response, before it is encoded; likewise."""

    @property
    def trace(self) -> TraceContext | None:
        """Return the same trace with the request's own span, which its log lines and webhooks name."""
        return None if self.caused_by is None else self.caused_by.child(span_of(self.request_id.bytes))

    @property
    def trace_fields(self) -> dict[str, str]:
        """Return what log lines say of the trace: the trace, and the caller's span as `parent_id`."""
        if self.caused_by is None:
            return {}
        return {**trace_fields(self.trace), "parent_id": self.caused_by.span_id.hex()}


Describe = Callable[[RequestContext], dict[str, Any]]


class Finished(NamedTuple):
    """A label set of request counts: route, status (`GONE` without a response) and code."""

    operation_id: str
    status: str
    code: str
    """Of the refusal; empty without one."""


class TrafficStatistics(msgspec.Struct, frozen=True):
    """Requests in progress, and counts since the start."""

    in_flight: int
    """Requests that have begun and have no response yet, or one that is a stream and goes on."""
    requests: dict[Finished, int]
    """Since the start. What the edge refuses by itself never gets here."""
    requests_s: dict[str, HistogramStatistics]
    """From the head of a request until its response is ready, or its stream has ended, by operation id."""


class Traffic:
    """Counts all requests of one service, and logs those that `logged` names.

    `describe` adds fields to a line, for people who read the log; without it a line has no path and no visitor.
    """

    def __init__(self, logged: Logged = "all", describe: Describe | None = None) -> None:
        self.use(logged, describe)
        self._in_flight = 0
        self._requests: Counter[Finished] = Counter()
        self._requests_s: dict[str, Histogram] = {}

    def use(self, logged: Logged, describe: Describe | None) -> None:
        """Log these requests so from now on, in the format that is set up now."""
        self._logged = logged
        self._describe = describe
        self._log = log.bind()  # else made again for each line

    def began(self, request_id: UUID, at_ms: int) -> RequestContext:
        """Count a request as in flight. `at_ms` is when it arrived. The caller must end it with `ended` in any case."""
        self._in_flight += 1
        return RequestContext(request_id=request_id, at_ms=at_ms)

    def ended(self, context: RequestContext, status: int | None) -> None:
        """Count and log a request whose response has this `status`; `None` = its client went away first."""
        self._in_flight -= 1
        seconds = trio.current_time() - context.began_at
        operation_id = context.operation_id
        code = "" if context.refusal is None else context.refusal.code
        self._requests[Finished(operation_id, GONE if status is None else str(status), code)] += 1
        histogram = self._requests_s.get(operation_id)
        if histogram is None:
            histogram = self._requests_s[operation_id] = Histogram(REQUEST_S)
        trace = context.caused_by
        sampled = trace.trace_id.hex() if trace is not None and trace.is_sampled else None
        histogram.observe(seconds, sampled, context.at_ms)
        if self._logged == "all" or (self._logged == "refused" and (status is None or status >= 300)):
            self._log_request(context, status, seconds)

    def statistics(self) -> TrafficStatistics:
        """Return a copy of the counts."""
        return TrafficStatistics(
            in_flight=self._in_flight,
            requests=dict(self._requests),
            requests_s={name: histogram.statistics() for name, histogram in self._requests_s.items()},
        )

    def _log_request(self, context: RequestContext, status: int | None, seconds: float) -> None:
        fields: dict[str, Any] = {"request_id": str(context.request_id), "operation": context.operation_id}
        if status is not None:
            fields["status"] = status
        fields["duration_ms"] = round(1000 * seconds, 1)
        fields |= context.trace_fields
        caller, refusal = context.caller, context.refusal
        if caller is not None:
            fields["organization"] = caller.organization.id
            fields["key_id" if caller.member is None else "member_id"] = caller.key.id
        if refusal is not None:
            fields["code"] = refusal.code
            if refusal.key is not None:
                fields["key_id"] = refusal.key.id
            if refusal.reason:
                fields["reason"] = refusal.reason
        if self._describe is not None:
            fields |= self._describe(context)
        if status is None:
            self._log.info("client closed request", **fields)
        elif status >= 500:
            self._log.warning("request", **fields)
        else:
            self._log.info("request", **fields)


_OF_VERDICT = (
    "visitor_id", "visitor_is_new", "visitor_confidence", "suspect_score", "suspect_level", "identifiable"
)  # fmt: skip


def details(context: RequestContext) -> dict[str, Any]:
    """Return `method` and `path` without its query; of an identification its verdict; of a body or query that was
    refused its `fields`.
    """
    fields: dict[str, Any] = {}
    if context.request is not None:
        fields["method"] = context.request.method
        fields["path"] = context.request.path.decode("latin-1")
    body = context.body
    if isinstance(body, IdentifyAnswer):
        fields |= {name: getattr(body, name) for name in _OF_VERDICT}
    refusal = context.refusal
    if refusal is not None and refusal.details:
        fields["fields"] = [f"{detail.field or 'body'}: {detail.issue}" for detail in refusal.details]
    return fields
