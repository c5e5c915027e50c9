"""An OpenID provider on loopback that does what a test wants it to do wrong; without a wish, everything right."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jws, jwt
from joserfc.jwk import ECKey, RSAKey

CLIENT_ID, CLIENT_SECRET = "svc-console", "a secret: 100 % shared"


@cache
def key(number: int) -> RSAKey:
    """The provider signs by key 0; making one takes a tenth of a second."""
    return RSAKey.generate_key(2048, {"kid": f"key-{number}"})


class OddProvider:
    """What it says and does. `now_ms` is the clock of its tokens."""

    def __init__(self, url: str, now_ms: Callable[[], int]) -> None:
        self.url, self.now_ms = url, now_ms
        self.keys, self.signing_key = [key(0)], key(0)
        self.metadata: dict[str, Any] = {}
        """Instead of what its discovery says."""
        self.claims: dict[str, Any] = {}
        """Instead of those of its tokens; `None` leaves one out."""
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        """By path, instead of the right one: status, headers, body."""
        self.waits: dict[str, threading.Event] = {}
        """By path: what it waits for before it answers."""
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Paths, and the form that came with each."""
        self.authorization = ""
        self.codes: dict[str, dict[str, str]] = {}
        """Code -> the request that it was given for."""
        self.is_lax = False
        """It takes a code as often as it comes."""

    def authorized(self, location: str) -> dict[str, str]:
        """The parameters with which it sends a browser back that came to this URL."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def signed(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "RS256", "kid": self.signing_key.kid}, claims, self.signing_key)

    def token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        asked = self.codes.get(form.get("code", "")) if self.is_lax else self.codes.pop(form.get("code", ""), None)
        if asked is None or not _fits(asked, form):
            return 400, {"error": "invalid_grant"}
        now_s = self.now_ms() // 1000
        claims: dict[str, Any] = {
            "iss": self.url,
            "sub": "248289761001",
            "aud": CLIENT_ID,
            "exp": now_s + 300,
            "iat": now_s,
            "nonce": asked["nonce"],
            "email": "ada@shop.example",
            "email_verified": True,
            "name": "Ada Lovelace",
            "groups": ["staff", "svc-admins"],
        }
        claims = {name: value for name, value in (claims | self.claims).items() if value is not None}
        return 200, {"token_type": "Bearer", "access_token": "x", "id_token": self.sign(claims)}

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        self.asked.append((path, form))
        if path in self.waits:
            self.waits[path].wait(30)
        if path in self.answers:
            return self.answers[path]
        status, body = 200, dict[str, Any]()
        if path == "/.well-known/openid-configuration":
            body = {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                **self.metadata,
            }
        elif path == "/keys":
            body = {"keys": [key.as_dict(private=False) for key in self.keys]}
        elif path == "/token":
            status, body = self.token(form)
        return status, {"Content-Type": "application/json"}, json.dumps(body).encode()


def _fits(asked: dict[str, str], form: dict[str, str]) -> bool:
    """The token request against the one that the code was given for: RFC 6749, 4.1.3 and RFC 7636, 4.6."""
    challenge = _base64url(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
    return (
        form.get("redirect_uri") == asked["redirect_uri"]
        and asked["code_challenge_method"] == "S256"
        and challenge == asked["code_challenge"]
    )


def unsigned(claims: dict[str, Any]) -> str:
    """A token of the algorithm `none`."""
    return ".".join(_base64url(json.dumps(part).encode()) for part in ({"alg": "none"}, claims)) + "."


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def by_secret(secret: bytes) -> Callable[[dict[str, Any]], str]:
    """Signs by HMAC: with the client's secret, or with the public key that everybody knows."""

    def sign(claims: dict[str, Any]) -> str:
        signed = ".".join(_base64url(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": "key-0"}, claims))
        return f"{signed}.{_base64url(hmac.digest(secret, signed.encode(), 'sha256'))}"

    return sign


def by_strange_key(claims: dict[str, Any]) -> str:
    """One that is named like the provider's own."""
    return jwt.encode({"alg": "RS256", "kid": "key-0"}, claims, key(2))


def with_own_key(claims: dict[str, Any]) -> str:
    """The token brings the key by which it is to be verified."""
    key = ECKey.generate_key("P-256")
    header = {"alg": "ES256", "jwk": key.as_dict(private=False), "kid": "key-0"}
    return jws.serialize_compact(header, json.dumps(claims).encode(), key)


@contextmanager
def odd_provider(now_ms: Callable[[], int]) -> Generator[OddProvider]:
    """It listens for the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond({})

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            provider.authorization = self.headers.get("Authorization", "")
            self._respond({name: values[0] for name, values in parse_qs(text).items()})

        def _respond(self, form: dict[str, str]) -> None:
            status, headers, body = provider.answer(urlsplit(self.path).path, form)
            try:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except OSError:  # who asked has gone
                pass

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider = OddProvider(f"http://127.0.0.1:{server.server_port}", now_ms)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
    finally:
        for event in provider.waits.values():
            event.set()
        server.shutdown()
        server.server_close()
        thread.join()
