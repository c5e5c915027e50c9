"""Metrics: every one as a typed constant, and how each is read from what the parts of the service count anyway.

Nothing is pushed here. Mailboxes, store, outbox and the others keep plain numbers and give them out as records; a
scrape asks them all. So a request pays for a few additions and for nothing of Prometheus, and two services in one
process have nothing in common. Labels are bounded by the program itself: operation ids, codes, signals, tables; never
a visitor, a key, an address or a path, of organizations only the few that hold most of the store, and of network files
the names of those in use, at most 256.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from itertools import chain
from typing import NamedTuple

import structlog
import trio
from prometheus_client import ProcessCollector

import svc
from svc.features.accounts.recounter import RecountProgress
from svc.features.billing.credit_watch import CreditWatch
from svc.features.events.live import LiveHub, LiveStatistics
from svc.features.identification.pipeline.messages import IdentificationStatistics
from svc.features.identification.pipeline.pipeline import Pipeline
from svc.features.retention.sweeper import Progress, RetentionStatistics
from svc.features.webhooks.sending.outbox import Outbox
from svc.http.server.capacity import EdgeStatistics
from svc.http.traffic import Traffic, TrafficStatistics
from svc.identify.history.evidence import LOOKALIKES
from svc.kernel.limits.quotas import Quotas
from svc.kernel.store.store import Store
from svc.kernel.values.timestamps import utc
from svc.kernel.work.mailbox import MailboxStatistics
from svc.kernel.work.store_watch import CorruptRows, EventLoopLag, StoreWatch
from svc.serve.metrics.samples import (
    PROMETHEUS,
    Format,
    Metric,
    OneFamily,
    PublishedSamples,
    Samples,
    SampleTable,
    added,
    by,
    family,
    one,
    pack_samples,
    read_samples,
)
from svc.serve.metrics.store import (
    STORE_METRICS,
    NodeSources,
    Stored,
    backup_samples,
    commit_samples,
    corrupt_samples,
    credit_samples,
    holding_samples,
    node_samples,
    read_stored,
    space_samples,
    watch_samples,
)
from svc.serve.metrics.webhooks import WEBHOOK_METRICS, attempt_samples, queue_samples, webhook_samples
from svc.workers.shared_memory import Counts, WorkerSlot
from svc.world import World

log = structlog.get_logger()


REQUESTS = Metric(
    "svc_http_requests",
    "counter",
    "Requests by operation id, status (`gone` = the client went away first) and code of the refusal, if any.",
    ("route", "status", "code"),
)
REQUEST_SECONDS = Metric(
    "svc_http_request_duration_seconds",
    "histogram",
    "From the head of a request until its response was ready.",
    ("route",),
)
IN_FLIGHT = Metric(
    "svc_http_requests_in_flight", "gauge", "Requests without a response yet, and open streams.", is_summed=True
)
MALFORMED = Metric("svc_http_requests_malformed", "counter", "Malformed requests, refused before routing.")
CONNECTIONS = Metric("svc_connections_open", "gauge", "Client connections, idle ones included.", is_summed=True)
ACCEPTED = Metric("svc_connections_accepted", "counter", "Client connections taken in.")
REJECTED = Metric("svc_connections_rejected", "counter", "Client connections closed at once: `max_connections`.")
CLOSED = Metric(
    "svc_connections_closed",
    "counter",
    "Client connections that the service closed: `evicted` (it waited for its client, and another wanted its place "
    "under `max_connections`), `idle`, `reading` (a request did not arrive in time), `writing` (a response was not "
    "taken in time).",
    ("reason",),
)

CERTIFICATE_EXPIRES = Metric(
    "svc_tls_certificate_expires_timestamp_seconds",
    "gauge",
    "When the TLS certificate that is served with expires; 0 = plain HTTP.",
)

STREAMS = Metric("svc_streams_open", "gauge", "Live streams of the console that are open.", is_summed=True)
STREAMED = Metric("svc_stream_events_sent", "counter", "Identifications that were handed to a live stream.")
STREAM_DROPPED = Metric(
    "svc_stream_events_missed",
    "counter",
    "Identifications dropped from a live stream because its viewer reads too slowly.",
)

MAILBOX_DEPTH = Metric("svc_mailbox_depth", "gauge", "Messages in a stage's mailbox.", ("mailbox",), is_summed=True)
MAILBOX_CAPACITY = Metric("svc_mailbox_capacity", "gauge", "Messages that it holds.", ("mailbox",), is_summed=True)
MAILBOX_ACCEPTED = Metric("svc_mailbox_accepted", "counter", "Messages that it took.", ("mailbox",))
MAILBOX_REJECTED = Metric(
    "svc_mailbox_rejected",
    "counter",
    "Messages rejected because it was full: each is a 503.",
    ("mailbox",),
)
MAILBOX_BATCHES = Metric("svc_mailbox_batches", "counter", "Times that its reader took what was there.", ("mailbox",))
MAILBOX_SECONDS = Metric(
    "svc_mailbox_wait_seconds", "histogram", "From when a message was handed over until it was read.", ("mailbox",)
)

IDENTIFICATIONS = Metric(
    "svc_identifications",
    "counter",
    "Identifications on disk, by how the visitor was found or why not, and by confidence.",
    ("match", "confidence"),
)
QUOTA_REACHED = Metric(
    "svc_quota_reached",
    "counter",
    "Identifications that met a quota of their organization: `nonproduction_day` (429), `archive_day` (stored without "
    "the report), `store_share` (503).",
    ("quota",),
)
DUPLICATES = Metric("svc_duplicates", "counter", "Duplicates of an earlier one with the same Idempotency-Key.")
FLOODING = Metric(
    "svc_flooding_identifications",
    "counter",
    f"Identifications from addresses that flood: {LOOKALIKES} new visitors of the organization sent others' reports "
    "from there that day.",
)
LEVELS = Metric("svc_suspect_levels", "counter", "Identifications by suspect level; `none` = not scored.", ("level",))
SIGNALS = Metric("svc_signals", "counter", "Triggers by signal: those that had a weight.", ("signal",))
DECISIONS = Metric(
    "svc_decisions", "counter", "Identifications by what a rule decided; `none` = no rule matched.", ("action",)
)
SHADOW_MATCHES = Metric(
    "svc_shadow_matches", "counter", "Matches of rules in shadow mode, by what they would decide.", ("action",)
)
RULE_ERRORS = Metric("svc_rule_errors", "counter", "Evaluations of rules and of webhook filters that failed.")
LOOKUPS = Metric(
    "svc_network_lookups", "counter", "Identifications by state of the network facts and reason.", ("state", "reason")
)
NETWORK_DATA = Metric("svc_network_data", "gauge", "1 for the state that the network data are in.", ("state",))
NETWORK_AGE_SECONDS = Metric(
    "svc_network_data_age_seconds",
    "gauge",
    "Age of the built-in ranges, and of each file of network data in use, in whole days.",
    ("file", "kind"),
)

REVIEW_SECONDS = Metric(
    "svc_review_oldest_open_seconds", "gauge", "How long the oldest open review has been open; 0 = none is."
)

RETENTION_DELETED = Metric("svc_retention_deleted", "counter", "Rows that retention deleted, by table.", ("table",))
RETENTION_FAILURES = Metric("svc_retention_failures", "counter", "Steps of retention that changed nothing.", ("task",))
RETENTION_LAST_SUCCESS = Metric(
    "svc_retention_last_success_timestamp_seconds",
    "gauge",
    "When retention had last looked at everything; before that, when the service was started.",
)
RETENTION_HELD = Metric("svc_retention_held", "gauge", "1 while nothing is deleted, since the clock has jumped ahead.")
RECOUNTED = Metric("svc_recounted_events", "counter", "Events of before an upgrade that were counted after it.")
RECOUNTS = Metric(
    "svc_organizations_being_recounted", "gauge", "Organizations whose counts are being rebuilt after an upgrade."
)
WORKER_RESTARTS = Metric("svc_worker_restarts", "counter", "Workers that died and were replaced.", ("worker",))
ACTOR_RESTARTS = Metric("svc_actor_restarts", "counter", "Restarts of actors beside the pipeline.", ("actor",))
EVENT_LOOP_LAG_SECONDS = Metric("svc_event_loop_lag_seconds", "histogram", "How late a sleep of 100 ms ended.")
WORKERS_SILENT = Metric(
    "svc_workers_silent", "gauge", "Workers whose counts are more than 5 seconds old: they are stuck, or start."
)
BUILD = Metric("svc_build_info", "gauge", "Always 1.", ("version",))

METRICS: tuple[Metric, ...] = (
    *(value for value in list(globals().values()) if isinstance(value, Metric)),
    *WEBHOOK_METRICS,
    *STORE_METRICS,
)
"""All of them, in this order. `process_*` of prometheus-client comes beside them."""

BY_NAME = {metric.name: metric for metric in METRICS}

NETWORK_STATES = ("ok", "missing", "stale")
PUBLISH_INTERVAL_S = 0.25
"""How often a worker publishes its counts: what another one shows of them is at most this old, and if the worker dies,
what it counted for at most this long is lost."""
SILENT_MS = 5_000


class Sources(NamedTuple):
    """The parts of a service that a scrape reads."""

    world: World
    store: Store
    traffic: Traffic
    live: LiveHub
    edge: Callable[[], EdgeStatistics | None]
    """`None` while it has not started."""
    pipeline: Pipeline
    outbox: Outbox
    network_data: Callable[[], str]
    """`ok`, `missing` or `stale`, now."""
    network_files: Callable[[], Iterable[tuple[str, str, date]]]
    """(file, kind, date of its data) of what is in use."""
    quotas: Quotas
    retention: Progress
    recounted: RecountProgress
    credit: CreditWatch
    watch: StoreWatch
    certificate_expires_ms: Callable[[], int]
    """Unix ms; 0 = plain HTTP."""
    corrupt: CorruptRows
    restarts: Counter[str]
    worker_restarts: Callable[[], Sequence[int]]
    loop: EventLoopLag
    node: NodeSources | None = None
    """`None` without a database."""
    is_leader: Callable[[], bool] = lambda: True
    """Whether this process says what is the same for all of them."""


class Metrics:
    """Collects the metrics of one service from its parts when they are asked for; nothing is pushed (ADR 15)."""

    def __init__(self, sources: Sources, slot: WorkerSlot = WorkerSlot(), counts: Counts | None = None) -> None:  # noqa: B008
        """Take `counts` as those of all workers, `None` if there is one."""
        self._sources = sources
        self._process = ProcessCollector(registry=None)
        self._slot = slot
        self._counts = counts
        before = None if counts is None else read_samples(counts.read(slot.index))
        self._before = {} if before is None else lasting(before.values)
        """What the workers before this one at its slot have counted."""

    async def run(self) -> None:
        """Publish this worker's counts every `PUBLISH_INTERVAL_S`, until cancelled. Do nothing with one worker."""
        if self._counts is None:
            await trio.sleep_forever()
        while True:
            self.publish()
            await trio.sleep(PUBLISH_INTERVAL_S)

    def publish(self) -> None:
        """Write this worker's counts, and those of its predecessors, to the memory from which the other workers read
        them. Do nothing with one worker; log an error if the counts exceed this worker's part of the memory.
        """
        if self._counts is None:
            return
        mine = added(self._before, table_of(self._own()))
        if not self._counts.write(self._slot.index, pack_samples(PublishedSamples(self._sources.world.now_ms(), mine))):
            log.error("the counts of this worker are too many to be shared")

    async def expose(self, form: Format = PROMETHEUS) -> bytes:
        """Return all values now, in a format, as UTF-8. Encoded metric by metric, with checkpoints in between."""
        sources, stored = self._sources, None
        if sources.is_leader():
            stored = await read_stored(sources.world, sources.store, sources.quotas.store_share, sources.corrupt)
        families = (family(metric, values) for metric, values in self._samples(stored))
        written: list[bytes] = []
        for found in chain(families, self._process.collect()):
            written.append(form.encode(OneFamily(found)))
            await trio.lowlevel.checkpoint()
        return b"".join((*written, form.end))

    def _samples(self, stored: Stored | None) -> Samples:
        total = added(self._before, table_of(self._own()))
        now_ms, silent = self._sources.world.now_ms(), 0
        for index in range(self._slot.workers):
            if self._counts is not None and index != self._slot.index:
                published = read_samples(self._counts.read(index))
                silent += published is None or now_ms - published.at_ms > SILENT_MS
                if published is not None:
                    is_silent = now_ms - published.at_ms > SILENT_MS
                    total = added(total, lasting(published.values) if is_silent else published.values)
        for name, values in total.items():
            yield BY_NAME[name], values.items()
        yield WORKERS_SILENT, one(silent)
        yield from self._here(now_ms)
        if stored is not None:
            yield from self._of_store(stored, now_ms)

    def _own(self) -> Samples:
        """Yield what this worker counts."""
        sources = self._sources
        yield from _traffic(sources.traffic.statistics())
        yield from _streams(sources.live.statistics())
        edge = sources.edge()
        if edge is not None:
            yield from _edge(edge)
        yield from _mailboxes(sources.pipeline.statistics())
        yield from _identifications(sources.pipeline.counters.statistics())
        yield from commit_samples(sources.store.statistics())
        yield from attempt_samples(sources.outbox.statistics())
        yield from _retention(sources.retention.statistics())
        yield RECOUNTED, one(sources.recounted.events)
        yield from corrupt_samples(sources.corrupt)
        yield ACTOR_RESTARTS, by(sources.restarts)
        yield EVENT_LOOP_LAG_SECONDS, one(sources.loop.statistics())

    def _here(self, now_ms: int) -> Samples:
        """Yield what is the same for all workers of this service, and what each node says for itself."""
        sources = self._sources
        state = sources.network_data()
        yield NETWORK_DATA, [((name,), float(name == state)) for name in NETWORK_STATES]
        today = utc(now_ms).date()
        ages = [((file, kind), max((today - of).total_seconds(), 0)) for file, kind, of in sources.network_files()]
        yield NETWORK_AGE_SECONDS, ages
        yield CERTIFICATE_EXPIRES, one(sources.certificate_expires_ms() / 1000)
        yield from node_samples(sources.node)
        yield from watch_samples(sources.watch, is_full=sources.store.statistics().full)
        yield WORKER_RESTARTS, by({str(worker): times for worker, times in enumerate(sources.worker_restarts())})
        yield BUILD, [((svc.__version__,), 1)]

    def _of_store(self, stored: Stored, now_ms: int) -> Samples:
        """Yield what the leader alone reports, for all processes that use the store."""
        sources = self._sources
        space = stored.space
        yield from space_samples(sources.store.statistics(), space)
        if stored.held is not None:
            yield from holding_samples(stored.held, round(stored.share * sources.store.capacity_bytes()))
        yield from queue_samples(sources.outbox.statistics(), space)
        if stored.endpoints is not None:
            yield from webhook_samples(stored.endpoints, now_ms)
        yield from credit_samples(sources.credit.statistics())
        if stored.review_open_ms is not None:
            yield REVIEW_SECONDS, one(max(0, stored.review_open_ms) / 1000)
        yield RETENTION_LAST_SUCCESS, one(sources.retention.statistics().swept_at_ms / 1000)
        yield RECOUNTS, one(sources.recounted.organizations)
        if stored.backup_behind_ms is not None:
            yield from backup_samples(stored.backup_behind_ms)
        yield RETENTION_HELD, one(int(sources.retention.statistics().is_held))


def table_of(samples: Samples) -> SampleTable:
    """Return the values of counters, histograms and those gauges that are added over all workers, by metric name and
    labels.
    """
    summed = ((metric, values) for metric, values in samples if metric.kind != "gauge" or metric.is_summed)
    return {metric.name: dict(values) for metric, values in summed}


def lasting(table: SampleTable) -> SampleTable:
    """Return the samples of a table that stay true when the worker that counted them has died: counters and histograms,
    no gauges. `table` is by names of metrics that there are.
    """
    return {name: values for name, values in table.items() if BY_NAME[name].kind != "gauge"}


def _streams(live: LiveStatistics) -> Samples:
    yield STREAMS, one(live.open)
    yield STREAMED, one(live.sent)
    yield STREAM_DROPPED, one(live.missed)


def _traffic(traffic: TrafficStatistics) -> Samples:
    yield REQUESTS, traffic.requests.items()
    yield REQUEST_SECONDS, by(traffic.requests_s)
    yield IN_FLIGHT, one(traffic.in_flight)


def _edge(edge: EdgeStatistics) -> Samples:
    yield MALFORMED, one(edge.requests_malformed)
    yield CONNECTIONS, one(edge.connections_open)
    yield ACCEPTED, one(edge.connections_accepted)
    yield REJECTED, one(edge.connections_refused)
    closed = {
        "evicted": edge.connections_evicted,
        "idle": edge.connections_closed_idle,
        "reading": edge.connections_cut_reading,
        "writing": edge.connections_cut_writing,
    }
    yield CLOSED, by(closed)


def _mailboxes(mailboxes: dict[str, MailboxStatistics]) -> Samples:
    yield MAILBOX_DEPTH, [((name,), box.waiting) for name, box in mailboxes.items()]
    yield MAILBOX_CAPACITY, [((name,), box.capacity) for name, box in mailboxes.items()]
    yield MAILBOX_ACCEPTED, [((name,), box.accepted) for name, box in mailboxes.items()]
    yield MAILBOX_REJECTED, [((name,), box.refused) for name, box in mailboxes.items()]
    yield MAILBOX_BATCHES, [((name,), box.batches) for name, box in mailboxes.items()]
    yield MAILBOX_SECONDS, [((name,), box.waits_s) for name, box in mailboxes.items()]


def _identifications(counters: IdentificationStatistics) -> Samples:
    yield IDENTIFICATIONS, counters.matched.items()
    yield QUOTA_REACHED, by(counters.quotas)
    yield DUPLICATES, one(counters.duplicates)
    yield FLOODING, one(counters.flooding)
    yield LEVELS, by(counters.levels)
    yield SIGNALS, by(counters.signals)
    yield DECISIONS, by(counters.decisions)
    yield SHADOW_MATCHES, by(counters.shadow)
    yield RULE_ERRORS, one(counters.rule_errors)
    yield LOOKUPS, counters.networks.items()


def _retention(retention: RetentionStatistics) -> Samples:
    yield RETENTION_DELETED, by(retention.deleted)
    yield RETENTION_FAILURES, by(retention.failed)
