"""Read queries: functions of a snapshot. What they return is what the callers show; they change nothing."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from svc.domain.credentials import Key
from svc.domain.records import Document, Event, Organization
from svc.store.snapshot import Snapshot
from svc.store.tables import BALANCES, DOCUMENTS, EVENTS, KEYS, ORGANIZATION_IDS, ORGANIZATION_KEYS, ORGANIZATIONS


class Account(NamedTuple):
    organization: Organization
    balance_micros: int


def find_key(snapshot: Snapshot, digest: bytes) -> Key | None:
    return snapshot.get(KEYS, digest)


def organization(snapshot: Snapshot, number: int) -> Organization:
    found = snapshot.get(ORGANIZATIONS, number)
    if found is None:
        raise LookupError(f"no organization has the number {number}")
    return found


def find_account(snapshot: Snapshot, organization_id: str) -> Account | None:
    """An organization by its public id, with its balance."""
    number = snapshot.get(ORGANIZATION_IDS, organization_id) if organization_id else None
    return None if number is None else Account(organization(snapshot, number), balance(snapshot, number))


def accounts(snapshot: Snapshot) -> list[Account]:
    """All organizations, oldest first."""
    return [Account(found, balance(snapshot, number)) for (number,), found in snapshot.scan(ORGANIZATIONS)]


def balance(snapshot: Snapshot, number: int) -> int:
    return snapshot.get(BALANCES, number) or 0


def keys_of(snapshot: Snapshot, number: int) -> list[Key]:
    """All keys of an organization, oldest first, revoked included."""
    digests = [digest for _, digest in snapshot.scan(ORGANIZATION_KEYS, number)]
    return [key for digest in digests if (key := snapshot.get(KEYS, digest)) is not None]


def event(snapshot: Snapshot, number: int, request_id: UUID) -> Event | None:
    return snapshot.get(EVENTS, number, request_id.bytes)


def document(snapshot: Snapshot, number: int, request_id: UUID) -> Document | None:
    return snapshot.get(DOCUMENTS, number, request_id.bytes)
