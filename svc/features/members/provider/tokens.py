"""Verifying an ID token (OpenID Connect Core 1.0, 3.1.3.7): signature by joserfc, claims by Authlib."""

from __future__ import annotations

from typing import Any, cast

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, KeySetSerialization

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Asymmetric ones alone: never `none`, and no HMAC, whose key would be the client's secret."""
LEEWAY_S = 60
"""By which the provider's clock may differ."""
LONGEST_TOKEN = 64 * 1024
_LONGEST_LIFE_S = 24 * 3600
"""An ID token is issued for this very attempt: one from further back is none of it."""


class TokenError(Exception):
    """The ID token is not to be believed; the message says why, for the log."""


class UnknownKeyError(TokenError):
    """None of the provider's keys that are known has signed the token."""


def read_keys(answer: dict[str, Any]) -> KeySet:
    """Return the provider's keys, as it publishes them; those of kinds that are not known, and of no use here, are left
    out. Raises `TokenError` if none is left.
    """
    listed = answer.get("keys")
    usable: list[Any] = []
    for one in cast("list[Any]", listed) if isinstance(listed, list) else []:
        if isinstance(one, dict) and cast("dict[str, Any]", one).get("kty") in ("RSA", "EC"):
            try:
                KeySet.import_key_set({"keys": [one]})
            except (JoseError, ValueError, TypeError, KeyError):
                continue
            usable.append(one)
    if not usable:
        raise TokenError("the provider publishes no key that can be used")
    return KeySet.import_key_set(cast("KeySetSerialization", {"keys": usable}))


def verified_claims(
    token: object, keys: KeySet, *, issuer: str, client_id: str, nonce: str, now_ms: int, access_token: object
) -> dict[str, Any]:
    """Return the claims of an ID token that these keys have signed, for this client and this attempt. Raises
    `TokenError`, `UnknownKeyError` where another key may have.
    """
    if not isinstance(token, str) or len(token) > LONGEST_TOKEN:
        raise TokenError("the response has no ID token")
    try:
        read = jwt.decode(token, keys, algorithms=[*ALGORITHMS])
    except (JoseError, ValueError, TypeError) as error:
        kind = type(error).__name__
        if kind in ("InvalidKeyIdError", "MissingKeyError", "BadSignatureError"):
            raise UnknownKeyError(f"no key of the provider has signed the ID token ({kind})") from error
        raise TokenError(f"the ID token cannot be verified: {kind} {error}") from error
    options = {"iss": {"essential": True, "value": issuer}, "aud": {"essential": True, "value": client_id}}
    params = {"client_id": client_id, "nonce": nonce, "access_token": access_token}
    claims = CodeIDToken(read.claims, read.header, options, params)
    now_s = now_ms // 1000
    try:
        claims.validate(now=now_s, leeway=LEEWAY_S)  # pyright: ignore[reportUnknownMemberType]  Authlib has no types
        is_old = read.claims["iat"] < now_s - _LONGEST_LIFE_S
    except (JoseError, ValueError, TypeError) as error:
        raise TokenError(f"the ID token is not valid: {error}") from error
    if is_old:
        raise TokenError("the ID token was issued long ago")
    return dict(read.claims)
