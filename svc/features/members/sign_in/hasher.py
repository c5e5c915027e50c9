"""Hashing of members' passwords, a few at a time."""

from __future__ import annotations

from functools import partial

import trio

from svc.features.members.sign_in.passwords import password_hash, sign_in_key
from svc.http.callers.limits import RETRY_AFTER_S
from svc.kernel.values.refusals import Refusal
from svc.world import RunSync


class PasswordHasher:
    """Hashes passwords on a thread, one at a time: a flood of sign-ins takes a core of a worker at most, and nothing of
    the loop. `key`: see `sign_in_key`.
    """

    def __init__(self, pepper: bytes, run_sync: RunSync) -> None:
        self.key = sign_in_key(pepper)
        self._run_sync = run_sync
        self._turn = trio.Lock()

    async def hash(self, email: str, password: str) -> bytes | Refusal:
        """Return the `password_hash` of these arguments, or `503 service_unavailable` if too many callers wait."""
        if self._turn.statistics().tasks_waiting >= MAX_WAITING_PASSWORDS:
            return Refusal("service_unavailable", retry_after_s=RETRY_AFTER_S, reason="too many sign-ins at once")
        async with self._turn:
            return await self._run_sync(partial(password_hash, self.key, email, password))


MAX_WAITING_PASSWORDS = 32
"""Passwords that wait to be hashed in one worker: about two seconds."""
