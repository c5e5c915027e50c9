"""What both client libraries must do alike: the checks of an identification, and of webhook deliveries."""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from svc.domain.webhooks.envelope import seal
from svc.domain.webhooks.signature import signed_headers
from tests.support.live import ORIGIN

NEVER = "019b76da-a800-7000-8000-000000000000"
SECRET, PREVIOUS = "svc_whsec_" + "aB3" * 14 + "x", "svc_whsec_" + "zY8" * 14 + "w"
NOW_S = 1_772_359_200
EVENT = UUID("01993f0e-52a1-7c3d-9b52-6f1f3c0a9d11")


def checks(request_id: str, now_ms: int) -> list[tuple[dict[str, Any], str | None]]:
    """What is asked of one identification of `ORIGIN`, `127.0.0.1` and the tag `signup`, in order, and the problem."""
    right = {"id": request_id, "now": now_ms, "origin": ORIGIN, "ip": "127.0.0.1", "tag": "signup"}
    return [
        ({**right, "id": NEVER}, "not_found"),
        ({**right, "id": "../../healthz"}, "not_found"),
        ({**right, "id": None}, "not_found"),
        ({**right, "id": ["a"]}, "not_found"),
        ({**right, "now": now_ms + 300_001}, "too_old"),
        ({**right, "now": now_ms - 31_000}, "too_old"),
        ({**right, "origin": "https://other.example"}, "other_origin"),
        ({**right, "origin": None}, "other_origin"),
        ({**right, "ip": "81.2.69.160"}, "other_address"),
        ({**right, "ip": "::1"}, "other_address"),
        ({**right, "tag": "payment"}, "other_tag"),
        ({**right, "tag": None}, "other_tag"),
        ({**right, "ip": "::FFFF:127.0.0.1", "now": now_ms + 290_000}, None),
        (right, "used_before"),
        ({**right, "ip": None}, "used_before"),
    ]


class Delivery(NamedTuple):
    body: bytes
    headers: dict[str, str]
    secrets: str | list[str]
    now_s: int = NOW_S


def deliveries() -> dict[str, tuple[Delivery, bool]]:
    """Deliveries, signed by the service's own code, and whether they are authentic."""
    organization = "org_4Jm0Vn2rT8sKq1ZxYb3A"
    event = seal(EVENT, "webhook.test", "live", organization, {"message": "Zoë, 😀"}, NOW_S * 1000)
    headers = signed_headers(EVENT, event, (SECRET, PREVIOUS), NOW_S)
    right = Delivery(event.body, headers, SECRET)

    def signed(body: bytes) -> Delivery:
        changed = msgspec.structs.replace(event, body=body)
        return Delivery(body, signed_headers(EVENT, changed, (SECRET,), NOW_S), SECRET)

    return {
        "as it was sent": (right, True),
        "headers in other letters": (right._replace(headers={n.upper(): v for n, v in headers.items()}), True),
        "the previous secret": (right._replace(secrets=[PREVIOUS]), True),
        "both secrets": (right._replace(secrets=["svc_whsec_other", SECRET]), True),
        "minutes old": (right._replace(now_s=NOW_S + 299), True),
        "too old": (right._replace(now_s=NOW_S + 301), False),
        "too new": (right._replace(now_s=NOW_S - 301), False),
        "another secret": (right._replace(secrets="svc_whsec_other"), False),
        "no secret": (right._replace(secrets=[]), False),
        "an empty secret": (right._replace(secrets=""), False),
        "another body": (right._replace(body=event.body + b" "), False),
        "no signature": (right._replace(headers={**headers, "X-Svc-Signature": ""}), False),
        "no headers": (right._replace(headers={}), False),
        "no JSON": (signed(b"hello"), False),
        "no text": (signed(b'{"version": 1, "id": "\xff"}'), False),
        "no object": (signed(b"[1]"), False),
        "null": (signed(b"null"), False),
        "another version": (signed(json.dumps({"version": 2}).encode()), False),
    }
