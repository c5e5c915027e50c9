"""The OpenID provider that the settings name: asked over the network, its tokens verified (OpenID Connect Core 1.0,
3.1; docs/adr/0121).

What may live here: everything that opens a socket to the provider or reads what it says. A request is bounded in time
and size, and follows no redirect. Which role somebody gets, and who may sign in, is decided in `openid.py`.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlencode, urlsplit

import httpcore
import msgspec
import trio
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import parameters as _parameters
from authlib.oauth2.rfc7636 import create_s256_code_challenge as _create_challenge  # pyright: ignore[reportUnknownVariableType]
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, KeySetSerialization

from svc.features.members.sign_in.openid import Attempt, Identity, NoIdentity, identity_of
from svc.identify.network_data.update import bounded_content
from svc.kernel.access.members import is_provider_url, read_roles
from svc.kernel.access.roles import Role
from svc.kernel.config import Config, ConfigError
from svc.kernel.values.errors import explained


def provider_of(config: Config, tls: ssl.SSLContext, *, is_known: bool) -> OpenIdProvider:
    """Return the provider of settings that name one; `is_known`: the store has the organization that they name. Raises
    `ConfigError`.
    """
    file, organization_id = config.console_oidc_client_secret_file, config.console_oidc_organization
    assert config.console_oidc_issuer, "settings without a provider"
    assert file, "they are set together"
    assert config.console_oidc_client_id, "they are set together"
    assert config.console_oidc_role_claim, "they are set together"
    assert organization_id, "they are set together"
    if not is_known:
        raise ConfigError(f"console_oidc_organization: the store has no organization {organization_id}")
    try:
        secret = next(iter(Path(file).read_text().splitlines()), "").strip()
    except OSError as error:
        raise ConfigError(explained("console_oidc_client_secret_file: cannot read", file, error)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"console_oidc_client_secret_file: {file} is not text") from error
    if not secret:
        raise ConfigError(f"console_oidc_client_secret_file: the first line of {file} is empty")
    client = Client(
        config.console_oidc_issuer,
        config.console_oidc_client_id,
        secret,
        organization_id,
        config.console_oidc_role_claim,
        read_roles(config.console_oidc_roles),
    )
    return OpenIdProvider(client, tls)


LIMIT_S = 5.0
"""For one request: name, connection, TLS and the whole response."""
MAX_BYTES = 256 * 1024
"""Of a response's body."""


class ProviderError(Exception):
    """The provider did not respond as it should; the message says how, for the log."""


class DeniedError(ProviderError):
    """The provider said that it does not take what it was sent."""


async def ask(
    tls: ssl.SSLContext, url: str, form: str | None = None, authorization: str | None = None
) -> dict[str, Any]:
    """Send a `GET`, or a `POST` of the form, and return the response's JSON object. Raises `ProviderError`."""
    headers = [("Accept", "application/json"), ("Accept-Encoding", "identity"), ("User-Agent", "svc")]
    if authorization is not None:
        headers.append(("Authorization", authorization))
    if form is not None:
        headers.append(("Content-Type", "application/x-www-form-urlencoded"))
    where = urlsplit(url)._replace(query="").geturl()
    content = None if form is None else form.encode()
    try:
        with trio.fail_after(LIMIT_S):
            status, body = await _exchange(tls, "GET" if form is None else "POST", url, headers, content)
    except trio.TooSlowError as error:
        raise ProviderError(f"{where} has not responded within {LIMIT_S:g} s") from error
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError) as error:
        raise ProviderError(f"{where} cannot be asked: {type(error).__name__} {error}") from error
    if status in (400, 401, 403):
        raise DeniedError(f"{where} has responded {status}")
    if status != 200:
        raise ProviderError(f"{where} has responded {status}")
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProviderError(f"{where} has not responded with JSON") from error
    if not isinstance(answer, dict):
        raise ProviderError(f"{where} has not responded with an object")
    return cast("dict[str, Any]", answer)


async def _exchange(
    tls: ssl.SSLContext, method: str, url: str, headers: list[tuple[str, str]], content: bytes | None
) -> tuple[int, bytes]:
    async with (
        httpcore.AsyncConnectionPool(ssl_context=tls) as pool,
        pool.stream(method, url, headers=headers, content=content) as response,
    ):
        body = await bounded_content(response, MAX_BYTES)
    if body is None:
        raise ProviderError(f"the response to {method} has more than {MAX_BYTES:,} bytes")
    return response.status, body


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


# Authlib has no types.
_grant_uri = cast("Callable[..., str]", _parameters.prepare_grant_uri)  # pyright: ignore[reportUnknownMemberType]
_token_request = cast("Callable[..., str]", _parameters.prepare_token_request)  # pyright: ignore[reportUnknownMemberType]
_read_response = cast("Callable[..., dict[str, str]]", _parameters.parse_authorization_code_response)  # pyright: ignore[reportUnknownMemberType]
_challenge = cast("Callable[[str], str]", _create_challenge)

SCOPE = "openid email profile"
KEPT_S = 3600.0
"""What the provider says of itself, and its keys; keys are asked for again where one is missing."""
KEYS_AGAIN_S = 60.0
"""At most this often."""
MAX_AT_ONCE = 8
"""Attempts of one worker that wait for the provider. Others get an error that says to try again."""


class Client(NamedTuple):
    """How this service is known to the provider, and what it takes from it."""

    issuer: str
    client_id: str
    client_secret: str
    organization_id: str
    role_claim: str
    roles: Mapping[str, Role]


class _Endpoints(NamedTuple):
    authorization: str
    token: str
    keys: str
    takes_basic: bool
    """Whether the client's secret goes into the header `Authorization`, and not into the form."""
    names_issuer: bool
    """Whether responses must name the issuer (RFC 9207)."""


class OpenIdProvider:
    """Implements `svc.features.members.sign_in.openid.Provider` over the network. `tls` says which authorities are
    trusted.
    """

    def __init__(self, client: Client, tls: ssl.SSLContext) -> None:
        self.issuer, self.organization_id = client.issuer, client.organization_id
        self._client = client
        self._tls = tls
        self._endpoints: tuple[float, _Endpoints] | None = None
        self._keys: tuple[float, KeySet] | None = None
        self._limit = trio.CapacityLimiter(MAX_AT_ONCE)

    async def authorization_url(self, attempt: Attempt) -> str | NoIdentity:
        """See `Provider`."""
        try:
            with self._one_of_few():
                endpoints = await self._discovered()
        except (ProviderError, trio.WouldBlock) as error:
            return NoIdentity("unavailable", str(error) or "too many attempts at once")
        return _grant_uri(
            endpoints.authorization,
            self._client.client_id,
            "code",
            redirect_uri=attempt.redirect_uri,
            scope=SCOPE,
            state=attempt.state,
            nonce=attempt.nonce,
            code_challenge=_challenge(attempt.verifier),
            code_challenge_method="S256",
        )

    async def identify(self, attempt: Attempt, response: Mapping[str, str], now_ms: int) -> Identity | NoIdentity:
        """See `Provider`."""
        try:
            with self._one_of_few():
                endpoints = await self._discovered()
                code = self._code(endpoints, attempt, response)
                claims = await self._claims(endpoints, attempt, code, now_ms)
        except (OAuth2Error, TokenError, DeniedError) as error:
            return NoIdentity("refused", str(error))
        except (ProviderError, trio.WouldBlock) as error:
            return NoIdentity("unavailable", str(error) or "too many attempts at once")
        return identity_of(claims, self.issuer, self._client.role_claim, self._client.roles)

    @contextmanager
    def _one_of_few(self) -> Generator[None]:
        """Give one of the attempts that may wait for the provider. Raises `trio.WouldBlock` where there are enough."""
        attempt = object()
        self._limit.acquire_on_behalf_of_nowait(attempt)
        try:
            yield
        finally:
            self._limit.release_on_behalf_of(attempt)

    def _code(self, endpoints: _Endpoints, attempt: Attempt, response: Mapping[str, str]) -> str:
        """Return the code of a response. Raises `OAuth2Error`, `TokenError` for another provider's or attempt's."""
        named = response.get("iss")
        if (named is None and endpoints.names_issuer) or named not in (None, self.issuer):
            raise TokenError("the response is of another issuer")
        if response.get("state") != attempt.state:
            raise TokenError("the response is to another attempt")
        if "error" in response:
            raise TokenError(f"the provider said no: {response['error'][:100]!r}")
        url = f"{attempt.redirect_uri}?{urlencode(response)}"
        found = _read_response(url, attempt.state)
        return found["code"]

    async def _claims(self, endpoints: _Endpoints, attempt: Attempt, code: str, now_ms: int) -> dict[str, Any]:
        client = self._client
        form = _token_request(
            "authorization_code", redirect_uri=attempt.redirect_uri, code=code, code_verifier=attempt.verifier
        )
        authorization = None
        if endpoints.takes_basic:
            pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
            authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form += (
                f"&client_id={quote(client.client_id, safe='')}&client_secret={quote(client.client_secret, safe='')}"
            )
        answer = await ask(self._tls, endpoints.token, form, authorization)

        def verified(keys: KeySet) -> dict[str, Any]:
            return verified_claims(
                answer.get("id_token"),
                keys,
                issuer=self.issuer,
                client_id=client.client_id,
                nonce=attempt.nonce,
                now_ms=now_ms,
                access_token=answer.get("access_token"),
            )

        try:
            return verified(await self._published_keys(endpoints, KEPT_S))
        except UnknownKeyError:  # it may have changed its keys
            return verified(await self._published_keys(endpoints, KEYS_AGAIN_S))

    async def _discovered(self) -> _Endpoints:
        """Return the provider's endpoints, cached for `KEPT_S`. Raises `ProviderError`."""
        if self._endpoints is not None and trio.current_time() - self._endpoints[0] < KEPT_S:
            return self._endpoints[1]
        answer = await ask(self._tls, f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        if answer.get("issuer") != self.issuer:
            raise ProviderError(f"the provider calls itself {answer.get('issuer')!r}, and not {self.issuer!r}")
        loopback = urlsplit(self.issuer).scheme == "http"
        urls = [answer.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
        if not all(isinstance(url, str) and is_provider_url(url, loopback=loopback) for url in urls):
            raise ProviderError("the provider names an endpoint that is not a valid URL, or not over TLS")
        methods = answer.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        found = _Endpoints(
            *map(str, urls),
            takes_basic=isinstance(methods, list) and "client_secret_basic" in methods,
            names_issuer=answer.get("authorization_response_iss_parameter_supported") is True,
        )
        self._endpoints = trio.current_time(), found
        return found

    async def _published_keys(self, endpoints: _Endpoints, kept_s: float) -> KeySet:
        """Return the provider's keys, cached for `kept_s`. Raises `ProviderError` and `TokenError`."""
        if self._keys is not None and trio.current_time() - self._keys[0] < kept_s:
            return self._keys[1]
        keys = read_keys(await ask(self._tls, endpoints.keys))
        self._keys = trio.current_time(), keys
        return keys
