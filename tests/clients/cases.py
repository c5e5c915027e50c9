"""What the client libraries must do alike with an identification and a verdict of a running service. What needs no
service is in `clients/vectors`.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.live import ORIGIN

ABOUT = {"tag": "signup", "account_id": "a", "action": "log_in"}
"""What the identifications that are checked are about."""
ACCOUNT = "account_id"
"""The field of a case that `in_node` names as the library for Node.js does."""
UNPRINTABLE, PRINTED = "50% M\u00fc \u20ac\r\nx: y", "50% M%C3%BC %E2%82%AC%0D%0Ax: y"
"""A text that a header cannot carry, and how every library sends it: no two texts are sent alike."""
NEVER = "019b76da-a800-7000-8000-000000000000"


def checks(request_id: str, now_ms: int) -> list[tuple[dict[str, Any], str | None]]:
    """What is asked of one identification of `ORIGIN`, `127.0.0.1` and `ABOUT`, in order, and the problem."""
    right = {"id": request_id, "now": now_ms, "origin": ORIGIN, "ip": "127.0.0.1", "tag": "signup"}
    return [
        ({**right, "id": NEVER}, "not_found"),
        ({**right, "id": "../../healthz"}, "not_found"),
        ({**right, "id": "é" * 36}, "not_found"),
        ({**right, "id": None}, "not_found"),
        ({**right, "id": ["a"]}, "not_found"),
        ({**right, "now": now_ms + 300_001}, "too_old"),
        ({**right, "now": now_ms - 31_000}, "too_old"),
        ({**right, "origin": "https://other.example"}, "other_origin"),
        ({**right, "origin": None}, "other_origin"),
        ({**right, "ip": "81.2.69.160", "tag": "payment"}, "other_tag"),
        ({**right, "tag": None}, "other_tag"),
        ({**right, ACCOUNT: "b"}, "other_account"),
        ({**right, ACCOUNT: ""}, "other_account"),
        ({**right, "action": "sign_up"}, "other_action"),
        ({**right, "platform": "ios", "proven": True}, "other_platform"),
        ({**right, "ip": "::FFFF:127.0.0.1", "now": now_ms + 290_000, "platform": "web"}, None),
        (right, "used_before"),
        ({**right, "ip": None}, "used_before"),
        ({**right, "ip": "81.2.69.160"}, "used_before"),
        ({**right, ACCOUNT: "a", "action": "log_in", "proven": True}, "used_before"),
    ]


def in_node(cases: list[tuple[dict[str, Any], str | None]]) -> list[dict[str, Any]]:
    """What is asked in these cases, by the names of the library for Node.js."""
    return [{"accountId" if name == ACCOUNT else name: value for name, value in case.items()} for case, _ in cases]


# Signed verdicts

FORGER = Ed25519PrivateKey.from_private_bytes(bytes(32))


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def same_bits(character: str) -> str:
    """The other characters that a lax reader takes for the last one of 64 bytes in base64url: two bits of it count."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    first = alphabet.index(character) & 0b110000
    return alphabet[first : first + 16].replace(character, "")


def forged(token: str) -> dict[str, Any]:
    """What nobody may accept, by what is wrong with it, made of a verdict that is right."""
    header, claims, signature = token.split(".")
    fields, says = json.loads(decoded(header)), json.loads(decoded(claims))

    def with_header(**changes: Any) -> str:
        return f"{encoded(json.dumps({**fields, **changes}).encode())}.{claims}.{signature}"

    better = encoded(json.dumps({**says, "suspect_level": "low", "visitor_confidence": 100}).encode())
    public = FORGER.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {
        "other claims": f"{header}.{better}.{signature}",
        "a forger's signature": f"{header}.{better}.{encoded(FORGER.sign(f'{header}.{better}'.encode()))}",
        "no signature": f"{header}.{claims}.",
        "a signature cut short": token[:-4],
        "algorithm none": with_header(alg="none"),
        "an algorithm with the public key as a secret": with_header(alg="HS256"),
        "another type": with_header(typ="JWT"),
        "no key": with_header(kid=None),
        "a key that is not published": with_header(kid="unknown"),
        "a key of its own": with_header(jwk={"kty": "OKP", "crv": "Ed25519", "x": encoded(public)}),
        "two parts": f"{header}.{claims}",
        "four parts": token + ".x",
        "no header": f".{claims}.{signature}",
        "no JSON": f"{encoded(b'hello')}.{claims}.{signature}",
        "no object": f"{encoded(b'[1]')}.{claims}.{signature}",
        "no base64": f"****.{claims}.{signature}",
        "no ASCII": "ä.ä.ä",
        "a nest": f"{encoded(b'[' * 20_000)}.{claims}.{signature}",
        "nothing": "",
        **{f"its last character as {last}": token[:-1] + last for last in same_bits(token[-1])},
        "padding": token + "=",
        "two of it": token + "==",
        **(
            {"the other alphabet": f"{header}.{claims}.{signature.translate(str.maketrans('-_', '+/'))}"}
            if {"-", "_"} & set(signature)
            else {}
        ),
        "a line behind it": token + "\n",
        "a space in it": f"{header}.{claims}.{signature[:40]} {signature[40:]}",
        "no text": 7,
        "null": None,
    }


def verdict_checks(now_ms: int, organization: str) -> list[tuple[dict[str, Any], str | None]]:
    """What is asked of one verdict of `ORIGIN`, `127.0.0.1` and `ABOUT`, in order, and the problem."""
    right = {
        "now": now_ms,
        "organization": organization,
        "environment": "development",
        "origin": ORIGIN,
        "ip": "127.0.0.1",
        "tag": "signup",
    }
    return [
        ({**right, "environment": "production"}, "invalid"),
        ({**right, "now": now_ms + 300_000}, "too_old"),
        ({**right, "now": now_ms - 31_000}, "too_old"),
        ({**right, "origin": None}, "other_origin"),
        ({**right, "ip": "81.2.69.160", "tag": None}, "other_tag"),
        ({**right, ACCOUNT: "b"}, "other_account"),
        ({**right, "action": "sign_up"}, "other_action"),
        ({**right, "platform": "android", "proven": True}, "other_platform"),
        ({**right, "ip": "::ffff:127.0.0.1", "now": now_ms + 299_000, "platform": "web"}, None),
        (right, "used_before"),
        ({**right, "ip": "81.2.69.160", "proven": True}, "used_before"),
    ]
