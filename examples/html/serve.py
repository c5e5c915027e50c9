"""Serves index.html with the address of the service and its public key filled in, and decides about who subscribes:
`python3 serve.py`. With a server library, `decide` is one call: see ../django.
"""

import html
import json
import os
import re
import secrets
import sys
import urllib.request
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

HERE = Path(__file__).parent
KEYS = Path(os.environ.get("SVC_DEV_KEYS", HERE.parents[1] / "data" / "dev-keys.json"))
PORT = int(os.environ.get("PORT", "8000"))

kept = json.loads(KEYS.read_text()) if KEYS.exists() else {}
URL = os.environ.get("SVC_URL") or kept.get("url")
PUBLIC_KEY = os.environ.get("SVC_PUBLIC_KEY") or kept.get("public")
SECRET_KEY = os.environ.get("SVC_SECRET_KEY") or kept.get("secret")
if not (URL and PUBLIC_KEY and SECRET_KEY):
    sys.exit(
        'No key: start the service with "make run" in the checkout first, or set SVC_URL and both keys (README.md).'
    )

tags: set[str] = set()  # of the forms that wait for their visitors; a shop keeps each in its session
SAID = {
    "accept": "You are subscribed.",
    "verify": "Confirm your address: we have sent you a link.",
    "refuse": "We can't subscribe you. Please contact our support.",
}


def decide(request_id: str, origin: str) -> str:
    """`accept`, `verify` or `refuse`: what the rules decided, and the score."""
    if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", request_id):
        return "verify"  # no identification: an extension may have blocked it
    request = urllib.request.Request(f"{URL}/api/v1/events/{request_id}", headers={"x-api-key": SECRET_KEY})
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            event = json.load(response)
    except (OSError, HTTPException, ValueError):
        return "verify"  # there is none, or the service can't be asked
    if event.get("origin") != origin or event.get("tag") not in tags:
        return "refuse"  # of another site or form, or used before
    tags.remove(event["tag"])
    rule, level = event.get("decision", {}).get("action", "allow"), event.get("suspect_level")
    if rule == "block" or level == "high":
        return "refuse"
    return "accept" if rule in ("allow", "review") and level == "low" else "verify"


class Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = (HERE / "index.html").read_text()
        tags.add(tag := secrets.token_urlsafe(16))
        values = {"url": URL, "public_key": PUBLIC_KEY, "tag": tag}
        for name, value in values.items():
            page = page.replace("{{" + name + "}}", value)
        self.respond(page)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        request_id = form.get("request_id", [""])[0]
        decision = decide(request_id, f"http://{self.headers['host']}")
        print(f"{decision}: {request_id}", flush=True)
        reference = f"Reference: <code>{html.escape(request_id)}</code>"
        self.respond(f"<!doctype html><title>Newsletter</title><p>{SAID[decision]} {reference}</p>")

    def respond(self, page: str) -> None:
        content = page.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("cache-control", "no-store")  # each form has a tag of its own
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


print(f"http://localhost:{PORT}", flush=True)
ThreadingHTTPServer(("127.0.0.1", PORT), Shop).serve_forever()
