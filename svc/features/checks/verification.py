"""How a copy of a store is verified: every page and row against its checksum, or every rule between rows as well.

A copy differs from its original by corruption, which the checksums find at the speed of a disk. The rules find what a
fault of a program has written, in the original as in the copy, and read each row several times: they are for
`svc check`, and for copies where that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from svc.features.checks.invariants import row_faults, violations
from svc.features.tables import TABLES
from svc.kernel.store.engine import KeyRange
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.steps import Steps, counted


class Verification(StrEnum):
    """How thoroughly a copy is verified."""

    CHECKSUMS = "checksums"
    """Every page is where it belongs, every row is what was written under its key, and none is missing."""
    FULL = "full"
    """As `svc check`: the rules between rows, too."""


def faults(store: ReadOnlyStore, snapshot: Snapshot, how: Verification, steps: Steps) -> Iterator[str]:
    """Yield a sentence for each fault in a store; `snapshot` is the state to verify. The pages are checked first, since
    LMDB ends a process that follows a corrupt one. Progress is reported to `steps`.
    """
    corrupt = store.corrupt_pages(steps)
    if corrupt:
        return iter(corrupt)
    return violations(snapshot, steps) if how is Verification.FULL else corrupt_rows(snapshot, steps)


def corrupt_rows(snapshot: Snapshot, steps: Steps) -> Iterator[str]:
    """Yield a sentence for every table with a row that differs from what was written under its key, or with a number of
    rows other than the recorded one. Every row is read once, and none is decoded.
    """
    steps.stage("checking every row", sum(snapshot.count(table) for table in TABLES))

    def rows(table: Table[Any]) -> Iterator[bool]:
        check = table.verify_checksum
        for key, raw in counted(snapshot.reader.range(KeyRange(table.name)), steps):
            check(key, raw)
            yield True

    return row_faults(snapshot, rows)
