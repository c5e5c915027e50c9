"""The metrics of a node on PostgreSQL. Without a database they are all 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from svc.kernel.store.postgresql.statistics import NodeStatistics, NoticeStatistics, PostgresqlStatistics
from svc.serve.metrics.samples import Metric, Samples, by, one

NODES = Metric("svc_nodes", "gauge", "Nodes that serve the database, as this one last counted them; 0 with LMDB.")
LEASES = Metric("svc_leases_held", "gauge", "Leases that this node has: 1 = it is the leader.")
PARTITIONS = Metric(
    "svc_webhook_shares_held",
    "gauge",
    "Partitions of all endpoints to which this node sends webhooks: 64 over all nodes.",
)
HEARTBEATS = Metric("svc_node_heartbeats", "counter", "Heartbeats: `answered`, `failed`.", ("result",))
CLOCK = Metric(
    "svc_node_clock_offset_seconds",
    "gauge",
    "How far the node's clock is ahead of the database's, negative = behind; 0 within a round trip.",
)
NOTICES = Metric(
    "svc_notices",
    "counter",
    "Notices between nodes: `sent`, `received`, `dropped` (too long, or no connection to send them over).",
    ("result",),
)
LISTENING = Metric("svc_notices_listening", "gauge", "1 while notices come; else the node looks every second.")

GROUPS = Metric("svc_database_groups", "counter", "Groups of changes that came to their end on the database.")
ROUND_TRIPS = Metric(
    "svc_database_round_trips", "counter", "Round trips to the database: of `groups`, of `queries`.", ("of",)
)
RUNS = Metric(
    "svc_database_job_runs", "counter", "Runs of changes: more than changes where rows had to be fetched late."
)
QUERIES = Metric("svc_database_queries", "counter", "Reads of the database, each of one or more round trips.")
RETRIES = Metric(
    "svc_database_retries",
    "counter",
    "What began again: `conflict` (or a lost connection), `unfenced` (rows of another organization were touched), "
    "`uncertain` (the response to a commit was lost).",
    ("cause",),
)
WAITING = Metric("svc_database_waiting", "gauge", "Groups and reads that wait for a connection of the pool.")
NODE_METRICS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of these, in this order."""


class NodeSources(NamedTuple):
    """The parts of a node that a scrape reads."""

    node: Callable[[], NodeStatistics]
    notices: Callable[[], NoticeStatistics]
    exchanges: Callable[[], PostgresqlStatistics]


_NOTHING = NodeSources(
    lambda: NodeStatistics(0, 0, 0, 0, 0, 0.0),
    lambda: NoticeStatistics(0, 0, 0, listening=False),
    PostgresqlStatistics,
)


def node_samples(sources: NodeSources | None) -> Samples:
    """Return the samples of all `NODE_METRICS`, in their order; zeros for `None`, a service without a database."""
    sources = sources or _NOTHING
    node, notices = sources.node(), sources.notices()
    yield NODES, one(node.living)
    yield LEASES, one(node.leases_held)
    yield PARTITIONS, one(node.partitions_held)
    yield HEARTBEATS, by({"answered": node.beats, "failed": node.beats_failed})
    yield CLOCK, one(node.clock_offset_s)
    yield NOTICES, by({"sent": notices.sent, "received": notices.received, "dropped": notices.dropped})
    yield LISTENING, one(float(notices.listening))
    done = sources.exchanges()
    yield GROUPS, one(done.groups)
    yield ROUND_TRIPS, by({"groups": done.round_trips, "queries": done.query_round_trips})
    yield RUNS, one(done.runs)
    yield QUERIES, one(done.queries)
    yield RETRIES, by({"conflict": done.retries, "unfenced": done.unfenced, "uncertain": done.uncertain})
    yield WAITING, one(done.waiting)
