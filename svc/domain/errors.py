"""The base class of errors that an operator can act on.

What may live here: the class that the command line catches. An error with another base is a fault of the program and
ends a command with a traceback.
"""

from __future__ import annotations

from typing import ClassVar


class OperatorError(Exception):
    """An expected error. `svc` prints it as one line that says what to do next."""

    exit_status: ClassVar[int] = 1
    """2 where the same command fails until somebody acts, so that a supervisor does not repeat it."""

    @property
    def line(self) -> str:
        """The text that the command line prints after `svc: `; `str()` unless a subclass adds what to do."""
        return str(self)
