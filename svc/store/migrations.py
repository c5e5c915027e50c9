"""Versions of the store. Each migration and its version bump are one transaction; a newer store is refused.

A migration is a function of the transaction, in order, never changed once released. Version 0 is an empty directory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from svc.store.snapshot import Transaction
from svc.store.tables import META

Migration = Callable[[Transaction], None]


def _first_version(_: Transaction) -> None:
    """Version 1: the tables of the first release; nothing to convert."""


MIGRATIONS: tuple[Migration, ...] = (_first_version,)


class NewerStore(Exception):  # noqa: N818  tells what the store is
    """The store was written by a later version of the service."""


def migrate(transaction: Transaction, migrations: Sequence[Migration]) -> None:
    """Bring the store to the version that this program knows."""
    version = transaction.get(META, "version") or 0
    if version > len(migrations):
        raise NewerStore(
            f"the store has version {version} and this program knows {len(migrations)}: "
            "run the newer program, or restore a backup that this one made"
        )
    for number, migration in enumerate(migrations[version:], start=version + 1):
        migration(transaction)
        transaction.put(META, ("version",), number)
