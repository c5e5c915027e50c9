"""What an SDK keeps: its token, its queue of deferred reports, and the state of its attestation.

What may live here: what becomes of each in every fault, as functions of values.
"""

from __future__ import annotations

import base64
import binascii
import re
from hashlib import sha256
from typing import Any

TOKEN = re.compile(r"[0-9a-f]{32}")
QUEUE_LENGTH = 5
QUEUE_BYTES = 65_536
CHALLENGE_BYTES = 32
MAX_CERTIFICATES, MAX_CERTIFICATE_BYTES = 10, 10_000
DAY_MS = 86_400_000


def token(given: dict[str, Any]) -> dict[str, Any]:
    """The token that is sent, and what is stored afterwards.

    `given`: `content` of the store or `None`; `faults`, of `read`, `write` (both throw) and `lost_write` (is lost);
    `made`, the token to make; `storage`, whether anything may be stored.
    """
    content, faults, made = given["content"], given["faults"], given["made"]
    if not given["storage"]:
        return {"client_token": None, "content": content}
    if "read" in faults:
        return {"client_token": None, "content": content}  # what is there may be the token: it stays
    if content is not None and TOKEN.fullmatch(content):
        return {"client_token": content, "content": content}
    written = content if {"write", "lost_write"} & set(faults) else made
    return {"client_token": made if written == made else None, "content": written}


def deferred(given: dict[str, Any]) -> dict[str, Any]:
    """What stays in the queue, and which reports were sent, in order.

    `given`: `now_ms`; `queue`, oldest first, of `id`, `expires_at_ms`, `bytes`; `add`, one more or `None`; `responses`,
    one for each request: a status, or 0 for none.
    """
    queue = [one for one in given["queue"] if one["expires_at_ms"] > given["now_ms"]]
    added = given["add"]
    if added is not None and added["bytes"] <= QUEUE_BYTES and added["expires_at_ms"] > given["now_ms"]:
        queue = [*queue, added][-QUEUE_LENGTH:]
    requests: list[str] = []
    left = [one["id"] for one in queue]
    for one, status in zip(queue, given["responses"], strict=False):
        requests.append(one["id"])
        if status == 0 or status >= 500 or status == 429:
            break  # later, and so will the others be
        left.remove(one["id"])
    return {"queue": left, "requests": requests}


def challenge_bytes(text: Any) -> bytes | None:
    """The 32 bytes of a challenge as the service sends it; `None` for anything else."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return None
    return found if len(found) == CHALLENGE_BYTES else None


def client_data_hash(challenge: Any) -> str | None:
    """What App Attest signs: SHA-256 of the challenge's bytes, in hexadecimal."""
    found = challenge_bytes(challenge)
    return None if found is None else sha256(found).hexdigest()


def android_claim(given: dict[str, Any]) -> dict[str, Any]:
    """`signals.attestation` of Android. `given`: `challenge` as it came or `None`, and `chain`, the sizes of the
    certificates in bytes (each of zeros), or `None` where the key store failed.
    """
    challenge, chain = given["challenge"], given["chain"]
    fits = chain and len(chain) <= MAX_CERTIFICATES and all(0 < size <= MAX_CERTIFICATE_BYTES for size in chain)
    if challenge_bytes(challenge) is None or not fits:
        return {"format": "none"}
    certificates = [base64.b64encode(bytes(size)).decode() for size in chain]
    return {"format": "android-key", "challenge": challenge, "certificate_chain": certificates}


def choose(state: dict[str, Any], now_ms: int) -> str:
    """What to do for the next report with App Attest: `attest` a new key, `assert` by the known one, or `none`.

    A state has `key_id` or `None`, whether it is `pending` (no response has confirmed it) and `attested_at_ms`, when a
    key was last attested, or `None`. A key that stayed pending may be unknown to the service, where an assertion would
    look like fraud: it is replaced. There is one new key a day.
    """
    if state["key_id"] is not None and not state["pending"]:
        return "assert"
    last = state["attested_at_ms"]
    return "none" if last is not None and 0 <= now_ms - last < DAY_MS else "attest"


def after(state: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    """The next state. `event`: `did`, what `choose` said, with `key_id` of a new key; `response`: `ok`, `failed` (it
    fired `attestation_failed`) or `lost`; at `now_ms`.
    """
    did, response = event["did"], event["response"]
    if did == "attest":
        kept = None if response == "failed" else event["key_id"]
        return {"key_id": kept, "pending": response == "lost", "attested_at_ms": event["now_ms"]}
    if did == "assert" and response == "failed":
        return {**state, "key_id": None}
    return state
