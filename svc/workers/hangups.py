"""SIGHUP while the service starts or waits until it can serve: it ends nothing, and is handled once it serves."""

from __future__ import annotations

import signal
import threading
from typing import Final

_CAME: Final = threading.Event()


def hold() -> None:
    """Note a SIGHUP from now on, in the place of ending this process. To be called on the main thread."""
    signal.signal(signal.SIGHUP, _note)


def release() -> None:
    """Send this process the SIGHUP that came since `hold`, if one did: its handler is in place now."""
    if _CAME.is_set():
        _CAME.clear()
        signal.raise_signal(signal.SIGHUP)


def _note(*_: object) -> None:
    _CAME.set()
