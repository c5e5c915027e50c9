"""The types of the identification pipeline, in the order in which they travel: Identify -> Admitted -> Assessed.

An `Assessed` can only be made from an `Admitted` and that only from an `Identify`, so nothing is assessed that was not
admitted and nothing recorded that was not assessed. Each carries the one `Reply` of the caller.
"""

from __future__ import annotations

from typing import NamedTuple

from svc.identify.identification import Assessment, Duplicate, Identified, Refused, Submission
from svc.kernel.limits.ratelimit import Bound
from svc.kernel.work.mailbox import Reply


class Admission(NamedTuple):
    """The organization's rate limit at the moment of admission: the headers of decisions 3.10."""

    limit_per_s: int
    """0 = none."""
    remaining: int


class RateLimited(NamedTuple):
    """Refused by a rate limit: `429`, nothing stored (decisions 4)."""

    retry_after_s: int
    reached: Bound


class Failed(NamedTuple):
    """The request failed inside the service; its reason is in the log."""

    code: str
    """`internal_error`, or `service_unavailable` when trying again may help."""
    unreachable: bool = False
    """The store did not respond: nothing can be asked of it for the response either."""


class PipelineResult(NamedTuple):
    """The response of the pipeline to an `Identify`: the rate limit at admission, and the outcome."""

    admission: Admission
    outcome: Identified | Duplicate | Refused | RateLimited | Failed


class Identify(NamedTuple):
    """A request at the entry of the pipeline: its key is valid and its body could be read."""

    submission: Submission
    limit_per_s: int
    """The organization's rate limit now."""
    address: str | None
    """The visitor's, shortened to what is counted as one, where it has a limit of its own (decisions 4)."""
    reply: Reply[PipelineResult]


class Admitted(NamedTuple):
    """An `Identify` that passed the rate limits."""

    submission: Submission
    admission: Admission
    reply: Reply[PipelineResult]

    def respond(self, outcome: Identified | Duplicate | Refused | Failed) -> None:
        """Send the outcome to the caller, with the rate limit as it was at admission. Call this once."""
        self.reply.set(PipelineResult(self.admission, outcome))


class Assessed(NamedTuple):
    """An `Admitted` with everything that can be derived from its report without the store; the transaction is still to
    be made.
    """

    assessment: Assessment
    admitted: Admitted
