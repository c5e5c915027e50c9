"""The tables of attestation: challenges that were given out, and the keys of Apple devices."""

from __future__ import annotations

from svc.identify.attestation.challenge import LIFETIME_MS, AttestedKey, Challenge, VisitorKeys
from svc.kernel.store.schema.codec import Key, Record
from svc.kernel.store.schema.key_parts import (
    SECRET_32,
    U32,
    VISITOR_ID,
    digest,
    period,
)
from svc.kernel.store.schema.table import (
    NOT_PERSONAL,
    ErasedBy,
    LastTwoPeriods,
    Swept,
    Table,
    With,
)

# Attestation: challenges that were given out, and the keys of Apple devices.
CHALLENGES = Table(
    "challenges",
    Key(organization=U32, period=period(LIFETIME_MS), challenge=SECRET_32),
    Record(Challenge),
    LastTwoPeriods(),
    NOT_PERSONAL,
)
"""By the period of 5 minutes in which it was issued, and the challenge itself."""
ATTESTED_KEYS = Table(
    "attested_keys",
    Key(organization=U32, attested_key=digest(32)),
    Record(AttestedKey),
    Swept("unused for `visitor_retention_days`; sooner with its visitor"),
    ErasedBy("purge_attested_keys"),
    invariants=("attested_keys",),
)
"""By the id of an Apple device's key, which is the SHA-256 of the public key."""
VISITOR_KEYS = Table(
    "visitor_keys",
    Key(organization=U32, visitor_id=VISITOR_ID),
    Record(VisitorKeys),
    With("attested_keys"),
    ErasedBy("purge_attested_keys"),
    invariants=("attested_keys",),
)
"""-> the attested keys of a visitor, also of one who has no number."""
