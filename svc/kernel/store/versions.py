"""Versions of a store: which ones are refused, and how an older one is brought to the present version."""

from __future__ import annotations

from collections.abc import Sequence

from svc.kernel.store.schema.schema import Migration
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.tables import META
from svc.kernel.values.errors import OperatorError


class NewerStoreError(OperatorError):
    """The store was written by a later version of the service."""


class OlderStoreError(OperatorError):
    """The store was written by an earlier version of the service, and has to be upgraded first."""


def refuse_newer(version: int, known: int) -> None:
    """Raise `NewerStoreError` if the store's version is above `known`, the latest that this program knows."""
    if version > known:
        raise NewerStoreError(
            f"the store has version {version} and this program knows {known}: "
            "run the newer program, or restore a backup that this one made"
        )


def migrate(transaction: Transaction, migrations: Sequence[Migration]) -> None:
    """Run the missing migrations of the store in the caller's transaction. Version N is the result of the first N
    migrations. Raises `NewerStoreError`.
    """
    version = transaction.get(META, "version") or 0
    refuse_newer(version, len(migrations))
    for number, migration in enumerate(migrations[version:], start=version + 1):
        migration(transaction)
        transaction.put(META, ("version",), number)
