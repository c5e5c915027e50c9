"""Signals that end a program: what it made for itself alone goes before."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ending_signals() -> list[signal.Signals]:
    """Return the signals that end this program, without those that it was started to ignore, as by `nohup`."""
    return [each for each in _ENDING if signal.getsignal(each) is not signal.SIG_IGN]


@contextmanager
def ended_by_signals() -> Generator[None]:
    """End a `with` block at SIGTERM and SIGHUP by an exception, so that it cleans up; then the signal takes effect."""
    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if received:
            return  # a terminal that is closed sends SIGHUP twice, and the second would interrupt the removal
        received.append(number)
        interrupt = signal.getsignal(signal.SIGINT)
        if not callable(interrupt):
            raise KeyboardInterrupt
        interrupt(signal.SIGINT, frame)  # that of trio waits where its loop could not bear an exception

    former = {each: signal.signal(each, end) for each in ending_signals() if each is not signal.SIGINT}
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
        if received:
            signal.raise_signal(received[0])
