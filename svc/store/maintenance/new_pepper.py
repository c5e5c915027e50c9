"""A new pepper for a store whose own is lost, or known to others.

Nothing that was made with the old one holds afterwards: keys, signing secrets of webhooks, deferred tokens, cursors.
The caller has revoked every key before, so that a store never names keys as active that can never verify.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from svc.store import durable_files
from svc.store.directory import PEPPER_BYTES, pepper_mark
from svc.store.schema.tables import META
from svc.store.snapshot import Transaction
from svc.store.store import Store


def put_new_pepper(store: Store, path: Path, entropy: Callable[[int], bytes]) -> None:
    """Make a pepper, have the store take no other, and put it in its place, mode 0600.

    After an interruption it must be run again: until its end the store refuses to be opened with the pepper that is
    there.
    """
    pepper = entropy(PEPPER_BYTES)
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    durable_files.write(beside, pepper)

    def mark(transaction: Transaction) -> None:
        transaction.put(META, ("pepper_mark",), pepper_mark(pepper))

    store.write_one_now(mark)
    durable_files.rename(beside, path)
