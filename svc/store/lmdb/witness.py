"""The witness of a store that nobody has open: a file beside `data.mdb` that says which commit it had reached.

A service writes it once a second while something is committed, without a sync: after a power failure it may lag behind
the store, and is never ahead of what was durable. An older `data.mdb` that is copied over the present one leaves it
there, while a folder that is restored has none (ADR 184).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

FILE = "last-commit"


def write(store: Path, commit: int) -> None:
    """Write down that the store in this folder has reached a commit. Raises `OSError`."""
    descriptor = os.open(store / FILE, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, b"%020d\n" % commit, 0)  # of one width: never half a number
    finally:
        os.close(descriptor)


def forget(store: Path) -> None:
    """Remove the witness, before a file with other numbers takes the store's place. Raises `OSError`."""
    (store / FILE).unlink(missing_ok=True)


def went_back(store: Path, commit: int) -> str | None:
    """Return a sentence if the store in this folder, whose last commit is `commit`, is known to have reached a later
    one; `None` if not, or if there is no witness that can be read.
    """
    reached = 0
    with suppress(OSError, ValueError):
        reached = int((store / FILE).read_bytes())
    if commit >= reached:
        return None
    return (
        f"{store} ends with commit {commit}, and commit {reached} was stored: what was acknowledged between them is "
        f"gone. If an older data.mdb was put there on purpose, delete {store / FILE}"
    )
