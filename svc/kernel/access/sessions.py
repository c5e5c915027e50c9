"""Sessions of the console, and the one-use links that begin them: their tokens, their records, and when they end.

A session stands for a member, or for a management key that never enters the browser (docs/adr/0038). Every token, that
of an invitation too, is 32 random bytes and the organization's id, so that the store looks among one organization's
rows alone; the store has only their keyed hash (`credentials.digest`), as it has of keys.

    svc_cs_ + 43 base62 characters (256 random bits) + _ + the organization's id without `org_`
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from svc.kernel.access.credentials import random_text
from svc.kernel.values.ids import MAX_LEAD_MS

SESSION_MS = 12 * 3600 * 1000
"""Time from sign-in until the session ends, however it is used."""
IDLE_MS = 30 * 60 * 1000
"""Time from the last request, or the last moment of an open live screen, until the session ends."""
NOTED_EVERY_MS = 60_000
"""A session's last use is written at most this often."""
MAX_SESSIONS = 200
"""Of one organization. One more ends the one that was used least recently."""
MAX_LINKS = 20
"""Of one organization that are not used yet. One more ends the one that expires first."""
LONGEST_LINK_MINUTES = 24 * 60

TokenKind = Literal["session", "link", "invitation"]
_MARKS: dict[TokenKind, str] = {"session": "svc_cs_", "link": "svc_cl_", "invitation": "svc_ci_"}
_FORM = re.compile(r"(svc_c[sli]_)[0-9A-Za-z]{43}_([0-9A-Za-z]{20})", re.ASCII)
_ORGANIZATION = "org_"


class Session(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A session as stored, but for its token. Times are Unix milliseconds. Append fields, never move them."""

    key_id: str
    """The management key whose role and organization it has; empty for a member's."""
    created_at_ms: int
    last_used_at_ms: int
    """Exact to `NOTED_EVERY_MS`."""
    expires_at_ms: int
    secure: bool
    """Whether it began over HTTPS; it is good for no other kind of connection."""
    owns_key: bool
    """Whether the key was made for its link, and nobody has its secret: it is revoked with the session."""
    member_id: str | None = None
    """The member whose session it is."""

    def has_ended(self, now_ms: int) -> bool:
        """Return whether its lifetime or idle timeout has expired, or a clock that was ahead began it."""
        is_over = now_ms >= self.expires_at_ms or now_ms - self.last_used_at_ms >= IDLE_MS
        return is_over or self.created_at_ms - now_ms > MAX_LEAD_MS

    def touch_is_due(self, now_ms: int) -> bool:
        """Return whether its use now is to be written: it is not within `NOTED_EVERY_MS` of the one that is."""
        return not -MAX_LEAD_MS <= now_ms - self.last_used_at_ms < NOTED_EVERY_MS


class ConsoleLink(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A one-use link as stored, but for its token. Append fields, never move them."""

    key_id: str
    """The management key whose session it begins."""
    expires_at_ms: int
    owns_key: bool
    """As in `Session`."""

    def has_ended(self, now_ms: int) -> bool:
        """Return whether it has expired; its key may have ended it before."""
        return now_ms >= self.expires_at_ms


def new_session(
    now_ms: int, *, secure: bool, key_id: str = "", owns_key: bool = False, member_id: str | None = None
) -> Session:
    """Return a session that begins now, of a key or of a member."""
    return Session(
        key_id=key_id,
        created_at_ms=now_ms,
        last_used_at_ms=now_ms,
        expires_at_ms=now_ms + SESSION_MS,
        secure=secure,
        owns_key=owns_key,
        member_id=member_id,
    )


def new_token(kind: TokenKind, organization_id: str, entropy: bytes) -> str:
    """Return the whole text of a new token from 32 bytes of entropy. Raises `ValueError` for another length."""
    return f"{_MARKS[kind]}{random_text(entropy)}_{organization_id.removeprefix(_ORGANIZATION)}"


def console_url(origin: str, token: str) -> str:
    """Return the link of a token. It is the fragment, which no browser sends and no log has."""
    return f"{origin}/console#{token}"


def organization_of(kind: TokenKind, token: str) -> str | None:
    """Return the organization's id in a token of this kind, issued or not; `None` for a text of another form."""
    found = _FORM.fullmatch(token)
    return _ORGANIZATION + found[2] if found is not None and found[1] == _MARKS[kind] else None
