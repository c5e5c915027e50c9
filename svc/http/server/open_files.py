"""How many connections fit within the limit of open files of this process."""

from __future__ import annotations

import resource
from contextlib import suppress

import structlog

log = structlog.get_logger()

OTHER_FILES = 256
"""Open files beside those of clients: the store, webhooks, metrics, the bus of the workers, the log."""


def fitting(max_connections: int) -> int:
    """Return how many connections this process can take: `max_connections`, or as many as its limit of open files
    leaves beside `OTHER_FILES`, at least half of it. The limit is raised before, as far as the process may. Where files
    ran out, no connection would be accepted, and so none evicted for a new one; a log line says that fewer are taken.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return max_connections
    wanted = 2 * max_connections + OTHER_FILES
    if soft < wanted and soft != hard:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):  # a sandbox may not permit it
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    fit = min(max_connections, max(soft - OTHER_FILES, soft // 2))
    if fit < max_connections:
        log.warning(
            "too few open files for max_connections: raise their limit (LimitNOFILE=, ulimit -n)",
            open_files=soft,
            max_connections=max_connections,
            taken=fit,
        )
    return fit
