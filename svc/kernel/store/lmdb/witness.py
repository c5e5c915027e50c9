"""The witness of a store that nobody has open: a file beside `data.mdb` that says which commit it had reached.

A service writes it once a second while something is committed, without a sync, so that it may lag behind the store. An
older `data.mdb` that is copied over the present one leaves it there, while a folder that is restored has none (ADR
184).
"""

from __future__ import annotations

import os
from pathlib import Path

from svc.kernel.store.lmdb.environment import FILE
from svc.kernel.store.lmdb.meta_pages import last_commit_of

WITNESS = "last-commit"


def write(store: Path, commit: int) -> None:
    """Record that the store in this folder has reached a commit. Raises `OSError`."""
    descriptor = os.open(store / WITNESS, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, b"%020d\n" % commit, 0)  # of one width: never half a number
    finally:
        os.close(descriptor)


def forget(store: Path) -> None:
    """Remove the witness, before a file with other numbers takes the store's place. Raises `OSError`."""
    (store / WITNESS).unlink(missing_ok=True)


def went_back(store: Path) -> str | None:
    """Return a sentence if the store in this folder is known to have reached a later commit than its last one; `None`
    if not, or if that cannot be told. A service may run on it.
    """
    try:
        reached = int((store / WITNESS).read_bytes())  # read first, so that what is read later is at least as new
        last = last_commit_of(store / FILE)
    except (OSError, ValueError):
        return None
    if last is None or last >= reached:
        return None
    return (
        f"{store} ends with commit {last}, and commit {reached} was stored: what was acknowledged between them is "
        f"gone. If an older data.mdb was put there on purpose, delete {store / WITNESS}"
    )
