"""The scorer: reads a submission before the store is asked.

Owns nothing but its mailbox; the network ranges are read-only, and asked for again for each report, since they may be
replaced in between. What attestations are measured against stays the same.
Hears `Admitted`. Says `Assessed` to the visitor index, or the failure of one hostile report to its asker alone.
Never reads the store or the clock. Takes one at a time, so that others can overtake the rest.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
import trio

from svc.actors.mailbox import Mailbox
from svc.actors.messages import Admitted, Assessed, Failed
from svc.domain.attestation.trust import Trust
from svc.domain.identification import assess
from svc.domain.network.facts import Ranges

log = structlog.get_logger()


async def run(
    inbox: Mailbox[Admitted],
    visitor_index: Mailbox[Assessed],
    ranges: Callable[[], Ranges | None],
    trust: Trust | None,
) -> None:
    """Assess messages until the inbox is closed and empty; then close the visitor index's. `ranges()` are those in
    force now, `trust` as of `assess`.
    """
    try:
        while True:
            for admitted in await inbox.batch(1):
                try:
                    assessment = assess(admitted.submission, ranges(), trust)
                except Exception:  # a report that breaks an adapter must not be an off-switch
                    log.exception("assessment failed", request_id=str(admitted.submission.request_id))
                    admitted.respond(Failed("internal_error"))
                    continue
                await visitor_index.put(Assessed(assessment, admitted))
    except trio.EndOfChannel:
        visitor_index.close()
