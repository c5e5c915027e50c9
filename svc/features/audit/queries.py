"""The audit log as it is read. Queries over a snapshot; they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from svc.kernel.access.audit import AuditRecord
from svc.kernel.access.members import MEMBER_PREFIX
from svc.kernel.access.tables import AUDIT
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.queries import find_key_of, organizations
from svc.kernel.values.ids import first_id

BEYOND_MS = (1 << 48) - 1
"""Later than any record: what 48 bits of an id can say."""


class Sought(NamedTuple):
    """A filter of audit records. Their times are those of their ids."""

    organization: int | None = None
    """`None` = any."""
    since_ms: int = 0
    """Inclusive."""
    until_ms: int = BEYOND_MS
    """Exclusive."""
    action: str | None = None
    """`None` = any."""
    actor: str | None = None
    """An id or a name; `None` = any."""

    def fits(self, record: AuditRecord) -> bool:
        """Return whether action and actor of a record are those sought."""
        return self.action in (None, record.action) and self.actor in (None, record.actor.id, record.actor.name)


class AuditMatch(NamedTuple):
    """A record of the audit log with its id, a UUIDv7 that says when it was written."""

    id: UUID
    record: AuditRecord


def newest(snapshot: Snapshot, sought: Sought, limit: int) -> list[AuditMatch]:
    """Return at most `limit` records that match, newest first.

    Reads records from the newest on until it has as many, so a rare actor or action reads the whole period.
    """
    return list(islice(_found(snapshot, sought), limit))


def before(snapshot: Snapshot, number: int, first: bytes, raw_id: bytes, limit: int) -> Iterator[AuditMatch]:
    """Yield at most `limit` records of an organization older than the one with this id, and not older than `first`
    (16 bytes each), newest first.
    """
    rows = snapshot.scan_reverse(AUDIT, (number, first), (number, raw_id)) if first < raw_id else iter(())
    return (AuditMatch(UUID(bytes=found), record) for (_, found), record in islice(rows, limit))


def is_for_admins(snapshot: Snapshot, number: int, record: AuditRecord) -> bool:
    """Return whether a record of the organization is about a member or a proxy key, which admins alone may read of
    (interface 5, rule 5; decisions 15.1).
    """
    subject = record.subject or ""
    return subject.startswith(MEMBER_PREFIX) or find_key_of(snapshot, number, subject, ("proxy",)) is not None


def _found(snapshot: Snapshot, sought: Sought) -> Iterator[AuditMatch]:
    numbers = organizations(snapshot) if sought.organization is None else [sought.organization]
    first, beyond = first_id(sought.since_ms), first_id(sought.until_ms)
    of_each = (snapshot.scan_reverse(AUDIT, (number, first), (number, beyond)) for number in numbers)
    for (_, raw_id), record in merge(*of_each, key=lambda row: row[0][1], reverse=True):
        if sought.fits(record):
            yield AuditMatch(UUID(bytes=raw_id), record)
