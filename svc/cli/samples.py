"""The bundled sample reports, sent to a service as a customer's server sends them."""

from __future__ import annotations

import http.client
import json
from importlib.resources import files
from typing import Any

from svc.cli.output import CommandError

SAMPLE_ADDRESS = "81.2.69.160"
"""A public address for the samples: this machine's own is private, and so has no network facts."""
AUTOMATED = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/126.0.0.0 Safari/537.36"
)
"""The user agent of an automated browser."""


def identify_sample(address: str, secret: str, sample: str, *, automated: bool = False) -> dict[str, Any]:
    """Send a bundled report with a secret key to the service at HOST:PORT, the visitor's details forwarded; returns the
    response. `automated` sends it as a browser that a program drives. Raises `CommandError` where it is refused, and
    `OSError` where nothing answers.
    """
    report = json.loads(files("svc.samples").joinpath(f"{sample}.json").read_bytes())
    signals = report["signals"]
    if automated:
        signals = {**signals, "webdriver": True}
    body = {"sdk": {"platform": "web", "version": "0.1.0"}, "signals": signals}
    status, response = post(address, secret, body, AUTOMATED if automated else report["user_agent"])
    if status != http.HTTPStatus.OK:
        raise CommandError(f"the sample report was refused: {response['error']['message']}")
    return response


def post(address: str, secret: str, body: Any, user_agent: str) -> tuple[int, dict[str, Any]]:
    """POST a body to identify as a customer's server does; returns the status and the response."""
    headers = {
        "content-type": "application/json",
        "x-api-key": secret,
        "x-svc-visitor-ip": SAMPLE_ADDRESS,
        "x-svc-visitor-user-agent": user_agent,
        "x-svc-visitor-origin": "https://shop.example",
    }
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("POST", "/api/v1/identify", json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()
