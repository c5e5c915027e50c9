"""Standard input, output and error of the program, also where whoever started it had closed some of them."""

from __future__ import annotations

import os
import sys
from typing import TextIO, cast

_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR = range(3)


def fill_standard_streams() -> None:
    """Connect each of descriptors 0 to 2 that is closed with /dev/null, and give the interpreter its stream.

    To be called before anything is opened: a store or a socket that got one of these numbers would receive what is
    meant for a person.
    """
    for descriptor in (_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR):
        try:
            os.fstat(descriptor)
        except OSError:
            _open_null(descriptor)
    # A stream is `None` where its descriptor was closed when the interpreter started.
    if sys.stdin is None:
        sys.stdin = sys.__stdin__ = _stream(_STANDARD_INPUT, "r")
    if sys.stdout is None:
        sys.stdout = sys.__stdout__ = _stream(_STANDARD_OUTPUT, "w")
    if sys.stderr is None:
        sys.stderr = sys.__stderr__ = _stream(_STANDARD_ERROR, "w")


def _open_null(descriptor: int) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened == descriptor:  # the lowest that is free
        os.set_inheritable(opened, True)  # as the standard ones are
    else:
        os.dup2(opened, descriptor)
        os.close(opened)


def _stream(descriptor: int, mode: str) -> TextIO:
    return cast("TextIO", os.fdopen(descriptor, mode, encoding="utf-8", errors="backslashreplace", closefd=False))
