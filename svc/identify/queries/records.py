"""Events, their documents and deferred reports by request id: functions of a snapshot."""

from __future__ import annotations

from uuid import UUID

from svc.identify.records import DeferredReport, Document, Event
from svc.identify.tables.events import DEFERRED_REPORTS, DOCUMENTS, EVENTS
from svc.identify.tables.weights import WEIGHTS_SNAPSHOTS
from svc.kernel.store.snapshot import Snapshot


def event(snapshot: Snapshot, number: int, request_id: UUID) -> Event | None:
    """Return an event of the organization in any environment, however old, if retention has not deleted it; else
    `None`.
    """
    return snapshot.get(EVENTS, number, request_id.bytes)


def document(snapshot: Snapshot, number: int, request_id: UUID) -> Document | None:
    """Return the archived report of an event; `None` if none was archived, or it was deleted."""
    return snapshot.get(DOCUMENTS, number, request_id.bytes)


def deferred_report(snapshot: Snapshot, number: int, request_id: UUID) -> DeferredReport | None:
    """Return the deferred report that was accepted for an event; `None` if there is none."""
    return snapshot.get(DEFERRED_REPORTS, number, request_id.bytes)


def weights_snapshot(snapshot: Snapshot, digest: bytes) -> dict[str, int]:
    """Return the weights by signal that have this digest, which a document names. They are kept as long as a document
    names them.
    """
    kept = snapshot.get(WEIGHTS_SNAPSHOTS, digest)
    assert kept is not None, f"the weights {digest.hex()} are not kept"
    return kept.weights
