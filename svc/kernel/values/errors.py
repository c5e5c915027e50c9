"""Errors that an operator can act on.

What may live here: the class that the command line catches, the numbers of system errors that mean a full disk, what
to do about a system error, and what an error code of the API means. An error with another base is a fault of the
program and ends a command with a traceback.
"""

from __future__ import annotations

import errno
from typing import ClassVar, Final, NamedTuple

NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of errors: a full disk, a quota that is used up, a file that may not be larger."""

_NEXT_STEPS = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), "run the command as the user to whom it belongs, or chown it"),
    **dict.fromkeys(NO_SPACE, "free some space"),
    errno.EROFS: "look into dmesg for the reason, then remount it: mount -o remount,rw",
}


def cause(error: OSError) -> str:
    """Return the cause of a system error that is about a file, and what to do where the cause tells."""
    said = str(error.strerror or error)
    step = _NEXT_STEPS.get(error.errno or 0)
    return said if step is None else f"{said}; {step}"


def explained(what_failed: str, path: object, error: OSError) -> str:
    """Return one line about a system error: what failed, the file, and its `cause`."""
    return f"{what_failed} {path}: {cause(error)}"


class OperatorError(Exception):
    """An expected error, which `svc` prints as one line that says what to do next."""

    exit_status: ClassVar[int] = 1
    """2 where the same command fails until somebody acts, so that a supervisor does not repeat it."""

    @property
    def line(self) -> str:
        """The text that the command line prints after `svc: `; `str()` unless a subclass adds what to do."""
        return str(self)


class DirectoryError(OperatorError):
    """The directory cannot be used; the message says what to do."""


class ErrorCode(NamedTuple):
    """What an error code of the API means. Features name theirs before anything is loaded (`refusals`)."""

    status: int
    """Of HTTP."""
    message: str
    """For the caller: what to do."""
