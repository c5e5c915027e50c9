"""The tables of who may come in: keys, and sessions of the console with the links that begin them.

What may live here: declarations as in `tables`, which has them too; import them from there.
"""

from __future__ import annotations

from svc.domain.credentials import ApiKey
from svc.domain.sessions import ConsoleLink, Session
from svc.store.codec import Key, Opaque, Record
from svc.store.key_parts import MOMENT, SECRET_32, TEXT, U32
from svc.store.table import NOT_PERSONAL, Swept, Table, With

KEYS = Table(
    "keys",
    Key(digest=SECRET_32),
    Record(ApiKey, remembered=1024),
    Swept("400 days after it was revoked, or after it expired if it was not"),
    NOT_PERSONAL,
    fenced_by="owner",
    rules=("keys",),
)
"""HMAC-SHA256(pepper, secret)"""
KEY_IDS = Table("key_ids", Key(key_id=TEXT), Opaque("digest"), With("keys"), NOT_PERSONAL, fenced_by="owner")
"""key id -> digest"""
ORGANIZATION_KEYS = Table(
    "organization_keys",
    Key(organization=U32, created_at=MOMENT, key_id=TEXT),
    Opaque("digest"),
    With("keys"),
    NOT_PERSONAL,
    rules=("active_keys",),
)
"""-> digest: oldest first"""

SESSIONS = Table(
    "sessions",
    Key(organization=U32, digest=SECRET_32),
    Record(Session, remembered=1024),
    Swept("when it has ended"),
    NOT_PERSONAL,
)
"""Of the console, by HMAC-SHA256(pepper, token)."""
CONSOLE_LINKS = Table(
    "console_links",
    Key(organization=U32, digest=SECRET_32),
    Record(ConsoleLink),
    Swept("when it has expired; using it deletes it"),
    NOT_PERSONAL,
)
