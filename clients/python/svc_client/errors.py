"""What can go wrong, as exceptions with fields for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from svc_client.types import DetailBody


class SvcError(Exception):
    """Any error of this library."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled with its fields: a pool of processes, and a queue of tasks, hand errors on so."""
        return _restored, (type(self), self.args, vars(self))


def _restored(kind: type[SvcError], args: tuple[Any, ...], fields: dict[str, Any]) -> SvcError:
    error = kind.__new__(kind, *args)
    vars(error).update(fields)
    return error


class ApiError(SvcError):
    """The service refused a request, or failed."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        details: Sequence[DetailBody] = (),
        request_id: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        faults = ", ".join(
            f"{detail.get('field') or detail.get('location')}: {detail.get('issue')}" for detail in details
        )
        super().__init__(f"{status} {code}: {message}" + (f" ({faults})" if faults else ""))
        self.status = status
        self.code = code
        """Such as `rate_limited`; `unexpected_response` where the response is not of this service."""
        self.message = message
        """For people: what to do about it."""
        self.details = details
        """Each fault in the request; the text of the exception names them."""
        self.request_id = request_id
        """Quote it to the operator."""
        self.retry_after_s = retry_after_s
        """For how long the service asks to wait, in seconds."""


def unexpected(status: int, *, request_id: str | None = None, retry_after_s: int | None = None) -> ApiError:
    """The error for a response of a proxy, or of something else at this address."""
    message = "The response is not one of this service."
    return ApiError(status, "unexpected_response", message, request_id=request_id, retry_after_s=retry_after_s)


class UnreachableError(SvcError):
    """No response arrived: the connection failed or took too long. What was asked for may have been done."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        """`False` where there was no connection, so that nothing can have been done."""


class WebhookError(SvcError):
    """A delivery that is not authentic, or no webhook of this version. Answer `401`, and do nothing else with it."""
