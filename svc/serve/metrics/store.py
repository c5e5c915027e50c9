"""The metrics of the store: what this process has written, how large the store is, and, of a node on PostgreSQL, how it
lives with the others and its database. Without a database those are all 0.

Also what the store says of all its organizations at a scrape, read in slices of time, so that a scrape delays nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from heapq import nlargest
from typing import NamedTuple, TypeVar

from svc.features.reviews.queries import first_open_reviews
from svc.kernel.store import operations
from svc.kernel.store.postgresql.statistics import NodeStatistics, NoticeStatistics, PostgresqlStatistics
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.store import Store, StoreSpace, StoreStatistics
from svc.kernel.tenants.billing import CreditState
from svc.kernel.tenants.jobs import holdings
from svc.kernel.tenants.queries import organization, share_in_force
from svc.kernel.work.slices import scanned
from svc.kernel.work.store_watch import CorruptRows, StoreWatch
from svc.serve.metrics.samples import Metric, Samples, by, one
from svc.serve.metrics.webhooks import EndpointCounts, count_endpoints
from svc.world import World

T = TypeVar("T")

ORGANIZATIONS_SHOWN = 10

COMMITS = Metric("svc_store_commits", "counter", "Commits of the store.")
JOBS = Metric("svc_store_jobs", "counter", "Changes in those commits.")
REPEATED = Metric("svc_store_jobs_repeated", "counter", "Changes made again: another process changed what they read.")
COMMIT_SECONDS = Metric("svc_store_commit_duration_seconds", "histogram", "From its turn until a group was on disk.")
WAIT_SECONDS = Metric("svc_store_wait_seconds", "histogram", "Until it was a group's turn to be written.")
BATCH_SIZE = Metric("svc_store_batch_size", "histogram", "Changes in one group.")
FULL = Metric("svc_store_full", "gauge", "1 while the last write found the map or the disk full.")
USED_BYTES = Metric("svc_store_used_bytes", "gauge", "Size of the store's file.")
HELD_BYTES = Metric(
    "svc_organization_stored_bytes",
    "gauge",
    "What an organization holds of the store, for the ten that hold most.",
    ("organization",),
)
MAY_HOLD_BYTES = Metric(
    "svc_organization_limit_bytes",
    "gauge",
    "What one organization may hold: `store_share` of the store, or all of it where there is one organization.",
)
SHARE = Metric(
    "svc_organization_share",
    "gauge",
    "What an organization holds, as a part of what it may hold, for the ten that hold most: at 1 it gets 503.",
    ("organization",),
)
MAP_BYTES = Metric("svc_store_map_bytes", "gauge", "Size that it may grow to: `map_gib`.")
DISK_FREE_BYTES = Metric("svc_store_disk_free_bytes", "gauge", "Left on the disk of the data directory.")
READERS = Metric("svc_store_readers", "gauge", "Reader slots taken, of 126, by all processes.")
READER_LAG = Metric(
    "svc_store_reader_lag_commits",
    "gauge",
    "Commits since the oldest snapshot that is still read; makes the file grow.",
)
CREDIT = Metric(
    "svc_organizations_short_of_credit",
    "gauge",
    "Organizations whose credit is `used_up`, or `low`: it covers less than seven days.",
    ("state",),
)
BACKUP_BEHIND = Metric(
    "svc_backup_behind_seconds",
    "gauge",
    "Age of the oldest commit that the follower of a continuous backup has not copied; 0 = none, or nobody follows.",
)
ROWS = Metric("svc_store_rows", "gauge", "Rows by table; on PostgreSQL as of its last vacuum or analysis.", ("table",))
COMMIT_AGE = Metric("svc_store_commit_age_seconds", "gauge", "Age of the oldest commit that is under way.")
FAILING = Metric(
    "svc_store_failing",
    "gauge",
    "1 while nothing is stored: writes were tried for 10 s and failed, or the clock is behind the last write.",
)
LOST = Metric("svc_store_lost", "gauge", "1 while the store's file is replaced, removed, cut or overwritten.")
CORRUPT = Metric("svc_corrupt_rows", "counter", "Rows that could not be read, by what was being done.", ("operation",))
WORKER_SILENT = Metric(
    "svc_worker_silent_seconds", "gauge", "How long the event loop of a worker has not run.", ("worker",)
)

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

STORE_METRICS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of these, in this order."""


class Stored(NamedTuple):
    """What was read from the store for a scrape."""

    endpoints: EndpointCounts | None
    """`None` where a row of it cannot be read."""
    held: dict[str, int] | None
    """Bytes, of the organizations that hold most; `None` where a row of it cannot be read."""
    space: StoreSpace
    share: float
    """Of the store, which one organization may use."""
    review_open_ms: int | None
    """How long the oldest open review has been open; `None` where a row of it cannot be read."""
    backup_behind_ms: int | None
    """`None` where a row of it cannot be read."""


async def read_stored(world: World, store: Store, store_share: float, corrupt: CorruptRows) -> Stored:
    """Read what a scrape shows of the store. A corrupt row takes its own figures away, and no others (decisions 17.5);
    it is noted in `corrupt`.
    """
    return Stored(
        await _unless_corrupt(partial(count_endpoints, world, store), corrupt),
        await _unless_corrupt(partial(largest_holdings, world, store), corrupt),
        await store.measured(),
        await store.query(partial(share_in_force, store_share=store_share)),
        await _unless_corrupt(partial(oldest_open_review, world, store), corrupt),
        await _unless_corrupt(partial(store.query, partial(operations.behind_ms, now_ms=world.now_ms())), corrupt),
    )


async def _unless_corrupt(read: Callable[[], Awaitable[T]], corrupt: CorruptRows) -> T | None:
    try:
        return await read()
    except CorruptionError as error:
        corrupt.note("metrics", None, error)
        return None


async def oldest_open_review(world: World, store: Store) -> int:
    """Return for how many ms the oldest open review of all organizations has been open; 0 if none is."""
    now_ms = world.now_ms()
    async with aclosing(scanned(world, store, first_open_reviews, 0)) as slices:
        return max([now_ms - opened_ms async for some in slices for _, opened_ms in some], default=0)


async def largest_holdings(world: World, store: Store) -> dict[str, int]:
    """Return the bytes held, by organization id, of the `ORGANIZATIONS_SHOWN` that hold most."""
    largest: list[tuple[int, int]] = []
    async with aclosing(scanned(world, store, holdings, 0)) as slices:
        async for some in slices:
            held = [(holding.held_bytes, number) for number, holding in some]
            largest = nlargest(ORGANIZATIONS_SHOWN, [*largest, *held])
    return await store.query(
        lambda snapshot: {organization(snapshot, number).id: held_bytes for held_bytes, number in largest}
    )


def commit_samples(store: StoreStatistics) -> Samples:
    """Return the samples of what this process has written: commits, changes in them, and how long they took, in
    seconds.
    """
    yield COMMITS, one(store.commits)
    yield JOBS, one(store.jobs)
    yield REPEATED, one(store.repeated)
    yield COMMIT_SECONDS, one(store.commits_s)
    yield WAIT_SECONDS, one(store.waits_s)
    yield BATCH_SIZE, one(store.groups)


def corrupt_samples(corrupt: CorruptRows) -> Samples:
    """Return the samples of what this process could not read."""
    yield CORRUPT, by(corrupt.found)


def watch_samples(watch: StoreWatch, *, is_full: bool) -> Samples:
    """Return the samples of what keeps this process from storing anything, and of what hangs: a commit, the loop of a
    worker.
    """
    yield FULL, one(is_full)
    yield COMMIT_AGE, one(watch.oldest_commit_s())
    state = watch.state()
    yield FAILING, one(int(state in ("failing", "unreachable")))
    yield LOST, one(int(state == "lost"))
    yield WORKER_SILENT, by({str(worker): silent_s for worker, silent_s in enumerate(watch.silences_s())})


def space_samples(store: StoreStatistics, space: StoreSpace) -> Samples:
    """Return the samples of how large the store is and may become, which are the same for all that use it."""
    yield USED_BYTES, one(store.used_bytes)
    yield MAP_BYTES, one(store.map_bytes)
    yield DISK_FREE_BYTES, one(space.disk_free_bytes)
    yield READERS, one(space.readers)
    yield READER_LAG, one(space.reader_lag)
    yield ROWS, by(space.rows)


def backup_samples(behind_ms: int) -> Samples:
    """Return the samples of how far the follower of a continuous backup is behind."""
    yield BACKUP_BEHIND, one(behind_ms / 1000)


def credit_samples(short: Mapping[CreditState, int]) -> Samples:
    """Return the samples of how many organizations are short of credit."""
    yield CREDIT, by({state: short.get(state, 0) for state in ("low", "used_up")})


def holding_samples(held: Mapping[str, int], may_hold_bytes: int) -> Samples:
    """Return the samples of bytes by organization id, and of what one organization may hold."""
    yield HELD_BYTES, by(held)
    yield MAY_HOLD_BYTES, one(may_hold_bytes)
    yield SHARE, by({name: held_bytes / max(may_hold_bytes, 1) for name, held_bytes in held.items()})


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
    """Return the samples of a node on PostgreSQL; zeros for `None`, a service without a database."""
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
