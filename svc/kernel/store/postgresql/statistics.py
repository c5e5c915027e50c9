"""What the parts of a node have counted. Only types: metrics name them where no database is served."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class NodeStatistics(NamedTuple):
    """What a node knows about itself and the other nodes."""

    living: int
    """Nodes, this one among them, at its last heartbeat."""
    beats: int
    """Heartbeats that the database acknowledged."""
    beats_failed: int
    leases_held: int
    """Without those of partitions."""
    partitions_held: int
    """Partitions of the outbox."""
    clock_offset_s: float
    """How far its clock is ahead of the database's; see `leases.offset_s`."""


class NoticeStatistics(NamedTuple):
    """Counts since the start."""

    sent: int
    received: int
    dropped: int
    """Notices not sent, since too many waited, or for too long."""
    listening: bool
    """Whether notices come now; else the node polls."""


class PostgresqlStatistics(msgspec.Struct):
    """What the serving side has done since the store was opened."""

    commits: int = 0
    """Commits that wrote something."""
    outcomes: int = 0
    """Outcomes of jobs that were returned."""
    groups: int = 0
    """Groups that were committed, or had nothing to write."""
    ahead: int = 0
    """Those groups whose jobs ran before the fence was held."""
    jobs: int = 0
    """Jobs in those groups."""
    runs: int = 0
    """Runs of jobs; equal to `jobs` if the hints know all that is read."""
    round_trips: int = 0
    """Round trips of groups."""
    unfenced: int = 0
    """Groups that began again because a fence was not declared."""
    retries: int = 0
    """Groups and queries that were tried again after a conflict or a lost connection."""
    uncertain: int = 0
    """Commits whose answer was lost."""
    queries: int = 0
    query_round_trips: int = 0
    waiting: int = 0
    """Groups and queries that wait for a connection now."""
