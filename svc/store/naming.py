"""What the parts of each key are called, and how people write them: for whoever looks into a store (`svc inspect`).

`tables.py` says how a key lies on disk; this says what it means. What would let somebody in is never shown whole.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

from svc.domain.attestation.challenge import LIFETIME_MS
from svc.domain.ids import DAY_MS, is_visitor_id
from svc.domain.listing import LEVELS, read_timestamp
from svc.domain.model import ENVIRONMENTS, PLATFORMS
from svc.domain.timestamps import timestamp
from svc.domain.webhooks.records import DELIVERY_KINDS, WEBHOOK_ENVIRONMENTS
from svc.store.tables import Table

SHOWN_OF_A_SECRET = 8
"""Hexadecimal digits: enough to tell two apart."""


class Form(NamedTuple):
    """How one value is written. `read` raises `ValueError` for a text that is none."""

    show: Callable[[Any], Any]
    read: Callable[[str], Any]


def moment(at_ms: int) -> str | int:
    """RFC 3339; the number itself where no calendar goes so far."""
    try:
        return timestamp(at_ms)
    except (ValueError, OverflowError, OSError):
        return at_ms


def abbreviated(secret: bytes) -> str:
    return secret.hex()[:SHOWN_OF_A_SECRET] + "…"


def _read_moment(text: str) -> int:
    at_ms = read_timestamp(text)
    if at_ms is None:
        raise ValueError(f"{text!r} is not a time such as 2026-01-05T10:00:00Z")
    return at_ms


def _day(number: int) -> str | int:
    shown = moment(number * DAY_MS)
    return shown[:10] if isinstance(shown, str) else number


def _read_day(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def _show_uuid(raw: bytes) -> str:
    return str(UUID(bytes=raw))


def _read_uuid(text: str) -> bytes:
    return UUID(text).bytes


def _show_visitor_id(raw: bytes) -> str:
    return raw.decode("ascii", "replace")


def _read_visitor_id(text: str) -> bytes:
    if not is_visitor_id(text):
        raise ValueError(f"{text!r} is not a visitor id: 20 letters and digits")
    return text.encode()


def _hex(length: int, show: Callable[[bytes], str] = bytes.hex) -> Form:
    def read(text: str) -> bytes:
        raw = bytes.fromhex(text)
        if len(raw) != length:
            raise ValueError(f"{text!r} is not {length} bytes in hexadecimal digits")
        return raw

    return Form(show, read)


def _period(length_ms: int) -> Form:
    """By its beginning; read from any moment in it."""

    def show(number: int) -> str | int:
        return moment(number * length_ms)

    def read(text: str) -> int:
        return _read_moment(text) // length_ms

    return Form(show, read)


def _place(names: Sequence[str]) -> Form:
    def read(text: str) -> int:
        if text not in names:
            raise ValueError(f"{text!r} is none of {', '.join(names)}")
        return names.index(text)

    def show(place: int) -> str | int:
        return names[place] if place < len(names) else place

    return Form(show, read)


_NUMBER = Form(int, int)
_TEXT = Form(str, str)
UUID_FORM = Form(_show_uuid, _read_uuid)
_VISITOR = Form(_show_visitor_id, _read_visitor_id)
_MOMENT = Form(moment, _read_moment)
_DAY = Form(_day, _read_day)
_LEVEL = _place(("not_scored", *LEVELS))
_ENVIRONMENT = _place(ENVIRONMENTS)
_WEBHOOK_ENVIRONMENT = _place(WEBHOOK_ENVIRONMENTS)
_KIND = _place(DELIVERY_KINDS)
_HEX_9, _HEX_16 = _hex(9), _hex(16)
_SECRET_32 = _hex(32, abbreviated)

Parts = dict[str, Form]

_ORGANIZATION: Parts = {"organization": _NUMBER}
_ENDPOINT: Parts = {**_ORGANIZATION, "endpoint": _NUMBER}
_REQUEST: Parts = {**_ORGANIZATION, "request_id": UUID_FORM}
_OWN_ID: Parts = {**_ORGANIZATION, "id": UUID_FORM}
_VISITOR_ID: Parts = {**_ORGANIZATION, "visitor_id": _VISITOR}
_VISITOR_NUMBER: Parts = {**_ORGANIZATION, "visitor": _NUMBER}

KEY_PARTS: dict[str, Parts] = {
    "meta": {"name": _TEXT},
    "organizations": _ORGANIZATION,
    "organization_ids": {"organization_id": _TEXT},
    "keys": {"digest": _SECRET_32},
    "key_ids": {"key_id": _TEXT},
    "organization_keys": {**_ORGANIZATION, "created_at": _MOMENT, "key_id": _TEXT},
    "balances": _ORGANIZATION,
    "holdings": _ORGANIZATION,
    "ledger": _OWN_ID,
    "settlements": {**_ORGANIZATION, "day": _DAY},
    "billing_changes": _OWN_ID,
    "past_due": _ORGANIZATION,
    "audit": _OWN_ID,
    "idempotency": {**_ORGANIZATION, "digest": _HEX_16},
    "events": _REQUEST,
    "documents": _REQUEST,
    "deferred_reports": _REQUEST,
    "events_by_level": {
        **_ORGANIZATION, "environment": _ENVIRONMENT, "level": _LEVEL, "arrival": _MOMENT, "request_id": UUID_FORM,
    },
    "events_by_visitor": {
        **_ORGANIZATION, "environment": _ENVIRONMENT, "visitor_id": _VISITOR, "level": _LEVEL, "arrival": _MOMENT,
        "request_id": UUID_FORM,
    },
    "weights_snapshots": {"digest": _HEX_16},
    "weights": {**_ORGANIZATION, "platform": _place(PLATFORMS), "key_id": _TEXT},
    "visitors": _VISITOR_NUMBER,
    "visitor_counts": _ORGANIZATION,
    "visitor_ids": _VISITOR_ID,
    "blocks": {**_ORGANIZATION, "block": _HEX_9},
    "departed": _VISITOR_NUMBER,
    "erasures": _VISITOR_ID,
    "erased_events": _ORGANIZATION,
    "statistics": {**_ORGANIZATION, "scope": _place(("production", "other")), "class": _NUMBER},
    "visitor_history": {**_ORGANIZATION, "day": _DAY, "visitor": _NUMBER},
    "address_history": {**_ORGANIZATION, "day": _DAY, "address": _NUMBER},
    "sendings": {**_ORGANIZATION, "period": _period(30 * DAY_MS), "digest": _HEX_16},
    "challenges": {**_ORGANIZATION, "period": _period(LIFETIME_MS), "challenge": _SECRET_32},
    "webhook_endpoints": _ENDPOINT,
    "webhook_endpoint_counts": _ORGANIZATION,
    "webhook_endpoint_health": _ENDPOINT,
    "webhook_removed_endpoints": _ENDPOINT,
    "webhook_events": {**_ORGANIZATION, "event_id": UUID_FORM},
    "webhook_deliveries": {**_ENDPOINT, "event_id": UUID_FORM, "kind": _KIND},
    "webhook_due": {**_ENDPOINT, "due": _MOMENT, "event_id": UUID_FORM, "kind": _KIND},
    "webhook_manual": _ENDPOINT,
    "webhook_attempts": {**_ORGANIZATION, "attempt_id": UUID_FORM},
    "webhook_attempts_by_environment": {
        **_ORGANIZATION, "environment": _WEBHOOK_ENVIRONMENT, "attempt_id": UUID_FORM,
    },
    "webhook_attempt_counts": {**_ENDPOINT, "minute": _period(60_000)},
    "webhook_refusals": {**_ORGANIZATION, "key_id_and_code": _TEXT},
    "following": {"name": _TEXT},
    "operations": {"sequence": _NUMBER, "part": _NUMBER},
}  # fmt: skip
"""Table -> the parts of its key, in their order."""

_SECRET_KEYS = frozenset(name for name, parts in KEY_PARTS.items() if _SECRET_32 in parts.values())


def by_organization(table: Table[Any]) -> bool:
    """Whether the rows of one organization lie together in it."""
    return "organization" in KEY_PARTS[table.name]


def show_key(table: Table[Any], raw: bytes) -> dict[str, Any]:
    """A packed key that was vouched for."""
    forms = KEY_PARTS[table.name].items()
    return {name: form.show(part) for (name, form), part in zip(forms, table.key.unpack(raw), strict=True)}


def show_key_bytes(table: Table[Any], raw: bytes) -> str:
    """A key that cannot be believed, in hexadecimal digits; of one that may hold a secret the first."""
    return abbreviated(raw) if table.name in _SECRET_KEYS else raw.hex()


def read_key(table: Table[Any], texts: Sequence[str]) -> bytes:
    """The bytes that every key begins with of which these are the first parts. Raises `ValueError`."""
    parts = KEY_PARTS[table.name]
    if len(texts) > len(parts):
        raise ValueError(f"a key of {table.name} has {len(parts)} parts: {', '.join(parts)}")
    values: list[Any] = []
    for text, (name, form) in zip(texts, parts.items(), strict=False):
        try:
            values.append(form.read(text))
        except ValueError as error:
            raise ValueError(f"{name} of {table.name}: {error}") from error
    try:
        return table.key.prefix(*values)
    except struct.error as error:
        raise ValueError(f"no key of {table.name} has such a number: {error}") from error


def read_prefix(table: Table[Any], text: str) -> bytes:
    """The first bytes of a key: in hexadecimal digits, or as they are where the key is a text. Raises `ValueError`."""
    if set(KEY_PARTS[table.name].values()) == {_TEXT}:
        return text.encode()
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise ValueError(
            f"{text!r}: the keys of {table.name} are no text, so name bytes in hexadecimal digits"
        ) from error
