"""What the parts of a node have counted. Only types: metrics name them where no database is served."""

from __future__ import annotations

from typing import NamedTuple


class NodeStatistics(NamedTuple):
    """What a node knows of itself and the others."""

    living: int
    """Nodes, this one among them, at its last beat."""
    beats: int
    """Answered."""
    beats_failed: int
    leases_held: int
    """But those of shares."""
    shares_held: int
    """Of the outbox."""
    clock_offset_s: float
    """That its clock is ahead of the database's; see `clock.offset_s`."""


class NoticeStatistics(NamedTuple):
    """Counts since the start."""

    sent: int
    received: int
    dropped: int
    """Not sent: too many waited, or too long."""
    listening: bool
    """Whether notices come now; else the node looks by itself."""


class PostgresqlStatistics(NamedTuple):
    """What the serving side has done since the store was opened."""

    groups: int
    jobs: int
    runs: int
    """Of jobs: as many as jobs where the hints know everything."""
    round_trips: int
    """Of groups."""
    unfenced: int
    """Groups that began again because a fence was not declared."""
    retries: int
    """Groups and queries that were tried again after a conflict or a lost connection."""
    uncertain: int
    """Commits whose answer was lost."""
    queries: int
    query_round_trips: int
    waiting: int
    """Groups and queries that wait for a connection now."""
