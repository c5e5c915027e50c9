"""The provider of the settings: where to send a browser, and the identity that it returns with (OpenID Connect Core
1.0, 3.1).

What may live here: the order of the requests, what is kept of the provider between them, and what bounds them.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlencode, urlsplit

import trio
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import parameters as _parameters
from authlib.oauth2.rfc7636 import create_s256_code_challenge as _create_challenge  # pyright: ignore[reportUnknownVariableType]
from joserfc.jwk import KeySet

from svc.features.members.provider.asking import DeniedError, ProviderError, ask
from svc.features.members.provider.tokens import TokenError, UnknownKeyError, read_keys, verified_claims
from svc.features.members.sign_in.openid import Attempt, Identity, NoIdentity, identity_of
from svc.kernel.access.members import is_provider_url
from svc.kernel.access.roles import Role

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
"""Attempts of one worker that wait for the provider. Others are told to try again."""


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

    def _one_of_few(self) -> _Turn:
        return _Turn(self._limit)

    def _code(self, endpoints: _Endpoints, attempt: Attempt, response: Mapping[str, str]) -> str:
        """The code of a response to this very attempt. Raises `OAuth2Error`, and `TokenError` for the response of
        another provider.
        """
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
        """Raises `ProviderError`."""
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
        """Raises `ProviderError` and `TokenError`."""
        if self._keys is not None and trio.current_time() - self._keys[0] < kept_s:
            return self._keys[1]
        keys = read_keys(await ask(self._tls, endpoints.keys))
        self._keys = trio.current_time(), keys
        return keys


class _Turn:
    """One of the attempts that may wait for the provider. Raises `trio.WouldBlock` where there are enough."""

    def __init__(self, limit: trio.CapacityLimiter) -> None:
        self._limit = limit

    def __enter__(self) -> None:
        self._limit.acquire_on_behalf_of_nowait(self)

    def __exit__(self, *_: object) -> None:
        self._limit.release_on_behalf_of(self)
