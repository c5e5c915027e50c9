"""When a call is sent again, and how long to wait before."""

from __future__ import annotations

from dataclasses import dataclass

from svc_client.errors import ApiError, SvcError, UnreachableError

NOT_DONE = frozenset({408, 425, 429})
"""Statuses of requests that were refused before anything was done."""


@dataclass(frozen=True)
class Retries:
    """Attempts of one call, with full-jitter backoff. `Retries(attempts=1)` sends every call once."""

    attempts: int = 3
    first_wait_s: float = 0.1
    """The longest wait before the second attempt; it doubles with each further one."""
    longest_wait_s: float = 2.0
    longest_retry_after_s: int = 5
    """A `Retry-After` beyond it is not waited for: the error is raised."""

    def wait_s(self, failure: SvcError, *, attempt: int, is_repeatable: bool, random: float) -> float | None:
        """Seconds until the next attempt after number `attempt` (from 1) failed; `None` = there is none.

        `random` is from 0 to 1. A call that is not repeatable is sent again only where it was not done.
        """
        if attempt >= self.attempts or not _may_help(failure, is_repeatable=is_repeatable):
            return None
        backoff_s = random * min(self.longest_wait_s, self.first_wait_s * 2 ** (attempt - 1))
        if not isinstance(failure, ApiError) or failure.retry_after_s is None:
            return backoff_s
        if failure.retry_after_s > self.longest_retry_after_s:
            return None
        return failure.retry_after_s + backoff_s


def _may_help(failure: SvcError, *, is_repeatable: bool) -> bool:
    if isinstance(failure, UnreachableError):
        return is_repeatable or not failure.was_sent
    if not isinstance(failure, ApiError):
        return False
    return failure.status in NOT_DONE or (is_repeatable and failure.status >= 500)
