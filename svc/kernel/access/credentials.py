"""Keys: their grammar, checksum, and the keyed hash under which alone they are stored (interface 5, decisions 2).

    svc_pk_us_production_ + 43 base62 characters (256 random bits) + 6 base62 characters (CRC-32 of all before)

Management keys have no environment: `svc_mk_us_...`. The checksum lets a typo or a secret scanner be judged without a
look-up; it proves nothing, the hash does.
"""

from __future__ import annotations

import hmac
import re
import zlib
from typing import Literal, cast, get_args

import msgspec

from svc.kernel.access.roles import Role
from svc.kernel.values.encodings import base62
from svc.kernel.values.fields import Environment, Platform

KeyKind = Literal["public", "secret", "proxy", "management"]
KEY_KINDS: tuple[KeyKind, ...] = get_args(KeyKind)
LONGEST_NAME = 200

_MARKS: dict[KeyKind, str] = {"public": "pk", "secret": "sk", "proxy": "px", "management": "mk"}
_KINDS: dict[str, KeyKind] = {mark: kind for kind, mark in _MARKS.items()}
_SECRET_LENGTH = 43
_CHECK_LENGTH = 6
_GRAMMAR = re.compile(
    r"svc_(pk|sk|px|mk)_([a-z][a-z0-9]{0,15})_(?:(production|staging|development)_)?[0-9A-Za-z]{49}",
    re.ASCII,
)


class Credential(msgspec.Struct, frozen=True):
    """A presented key of correct form. Whether it was issued, only the store knows."""

    kind: KeyKind
    region: str
    environment: Environment | None
    """`None` for management keys, and only for them."""
    secret: str

    def __repr__(self) -> str:
        return f"<{self.kind} key ...{self.secret[-4:]}>"


class ApiKey(msgspec.Struct, frozen=True, array_like=True):
    """A key as stored: all but what is secret of it. Times are Unix milliseconds. Append fields, never move them."""

    id: str
    organization: int
    """The organization's number in the store."""
    kind: KeyKind
    name: str
    environment: Environment | None
    region: str
    role: Role | None
    platforms: tuple[Platform, ...]
    allowed_origins: tuple[str, ...]
    prefix: str
    last4: str
    created_at_ms: int
    expires_at_ms: int | None = None
    revoked_at_ms: int | None = None
    last_used_at_ms: int | None = None
    is_derived: bool = False
    """Whether `public_text` can say it: of public keys that were issued from 0.3.0 on."""
    created_by: str | None = None
    """The id of the member who issued it; `None` = a management key or the command line did."""
    revoked_by: str | None = None

    @property
    def status(self) -> Literal["active", "revoked"]:
        """`revoked` once it was revoked; expiry does not change it (interface 2.7)."""
        return "active" if self.revoked_at_ms is None else "revoked"

    @property
    def ended_at_ms(self) -> int | None:
        """Unix ms when it was revoked, else when it expires or expired; `None` for a key that does neither."""
        return self.expires_at_ms if self.revoked_at_ms is None else self.revoked_at_ms

    def usable(self, now_ms: int) -> bool:
        """Return whether it is neither revoked nor expired; it stops working at `expires_at_ms` itself."""
        return self.revoked_at_ms is None and (self.expires_at_ms is None or now_ms < self.expires_at_ms)


def prefix(kind: KeyKind, region: str, environment: Environment | None) -> str:
    """Return how a key starts, such as `svc_px_us_production`. Raises `ValueError` if kind and environment disagree."""
    if (environment is None) != (kind == "management"):
        raise ValueError("management keys, and only they, have no environment")
    return "_".join(filter(None, ("svc", _MARKS[kind], region, environment)))


def beginning(kind: KeyKind) -> str:
    """Return how every key of this kind begins, such as `svc_px_`."""
    return f"svc_{_MARKS[kind]}_"


def issue_secret(kind: KeyKind, region: str, environment: Environment | None, entropy: bytes) -> str:
    """Return a new key from 32 bytes of entropy, checksum included (decisions 2.1). Raises `ValueError` as `prefix`."""
    body = f"{prefix(kind, region, environment)}_{random_text(entropy)}"
    return body + _checksum(body)


def random_text(entropy: bytes) -> str:
    """Return 32 bytes of entropy as 43 base62 characters. Raises `ValueError` for another length."""
    if len(entropy) != 32:
        raise ValueError("a secret takes 32 bytes of entropy")
    return base62(int.from_bytes(entropy), _SECRET_LENGTH)


def new_key(  # noqa: PLR0913  a key is its fields
    *,
    key_id: str,
    organization: int,
    kind: KeyKind,
    name: str,
    environment: Environment | None,
    region: str,
    entropy: bytes,
    now_ms: int,
    role: Role | None = None,
    platforms: tuple[Platform, ...] = (),
    allowed_origins: tuple[str, ...] = (),
    expires_at_ms: int | None = None,
    pepper: bytes | None = None,
) -> tuple[ApiKey, str]:
    """Return a new key and its secret, which is shown once. Origins must be normalized (`origins.normalize_pattern`).
    With the installation's `pepper` a public key follows from its id, so that it can be shown again. Raises
    `ValueError` if platforms, origins, role or environment do not suit the kind.
    """
    if kind != "public" and (platforms or allowed_origins):
        raise ValueError("only public keys have platforms and origins")
    if (role is None) == (kind == "management"):
        raise ValueError("management keys, and only they, have a role")
    is_derived = kind == "public" and pepper is not None
    if kind == "public" and pepper is not None:
        entropy = _public_entropy(pepper, key_id)
    secret = issue_secret(kind, region, environment, entropy)
    key = ApiKey(
        id=key_id,
        organization=organization,
        kind=kind,
        name=name,
        environment=environment,
        region=region,
        role=role,
        platforms=platforms,
        allowed_origins=allowed_origins,
        prefix=prefix(kind, region, environment),
        last4=secret[-4:],
        created_at_ms=now_ms,
        expires_at_ms=expires_at_ms,
        is_derived=is_derived,
    )
    return key, secret


def public_text(key: ApiKey, pepper: bytes) -> str | None:
    """Return the whole text of a public key, which is not a secret: pages contain it. It is derived and not stored, as
    no key is (decisions 2.2); `None` of other keys, and of those that were issued before 0.3.0.
    """
    if not key.is_derived:
        return None
    text = issue_secret(key.kind, key.region, key.environment, _public_entropy(pepper, key.id))
    return text if text.endswith(key.last4) else None  # else it was issued before the pepper was replaced


def _public_entropy(pepper: bytes, key_id: str) -> bytes:
    return hmac.digest(pepper, f"svc public key 1\n{key_id}".encode(), "sha256")


def parse(text: str) -> Credential | None:
    """Read a presented key; `None` when its form or checksum is wrong. Says nothing of whether it was issued."""
    match = _GRAMMAR.fullmatch(text)
    if match is None or _checksum(text[:-_CHECK_LENGTH]) != text[-_CHECK_LENGTH:]:
        return None
    mark, region, environment = match.groups()
    kind = _KINDS[mark]
    if (environment is None) != (kind == "management"):
        return None
    return Credential(kind, region, cast("Environment | None", environment), text)


def digest(pepper: bytes, secret: str) -> bytes:
    """Return the HMAC-SHA256 of the secret with the pepper, 32 bytes, under which it is stored (decisions 2.2)."""
    return hmac.digest(pepper, secret.encode(), "sha256")


def _checksum(body: str) -> str:
    return base62(zlib.crc32(body.encode()), _CHECK_LENGTH)


_SECRET = re.compile(r"(svc_(?:pk|sk|px|mk|cs|cl|ci|whsec)_(?:[0-9A-Za-z]{1,16}_){0,2})[0-9A-Za-z]{17,}", re.ASCII)
"""More than the grammar of `credentials`: wrong checksums, other lengths and pieces count too. What is shorter than 17
characters is a prefix, or too little to guess the rest from (decisions 2.1)."""


def redact(text: str) -> str:
    """Return the text with `svc_sk_us_production_[redacted]` instead of a key, and so for every kind of secret that
    came in with an exception, a header, a path. Public keys go too: nothing in a log needs them.
    """
    return _SECRET.sub(r"\1[redacted]", text) if "svc_" in text else text
