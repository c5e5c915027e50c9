"""Serves index.html with the address of the service and its public key filled in: `python3 serve.py`."""

import html
import json
import os
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

HERE = Path(__file__).parent
KEYS = Path(os.environ.get("SVC_DEV_KEYS", HERE.parents[1] / "data" / "dev-keys.json"))
PORT = int(os.environ.get("PORT", "8000"))

kept = json.loads(KEYS.read_text()) if KEYS.exists() else {}
URL = os.environ.get("SVC_URL") or kept.get("url")
PUBLIC_KEY = os.environ.get("SVC_PUBLIC_KEY") or kept.get("public")
if not URL or not PUBLIC_KEY:
    sys.exit('No key: start the service with "make run" in the checkout first, or set SVC_URL and SVC_PUBLIC_KEY.')


class Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = (HERE / "index.html").read_text()
        values = {"url": URL, "public_key": PUBLIC_KEY, "tag": secrets.token_urlsafe(16)}
        for name, value in values.items():
            page = page.replace("{{" + name + "}}", value)
        self.respond(page)

    def do_POST(self) -> None:
        """A real server reads the event of this request id now, and compares its tag with that of the form: see
        ../django.
        """
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        request_id = html.escape(form.get("request_id", ["none"])[0])
        self.respond(
            f"<!doctype html><title>Done</title><p>The server got the request id <code>{request_id}</code>.</p>"
        )

    def respond(self, page: str) -> None:
        content = page.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


print(f"http://localhost:{PORT}", flush=True)
ThreadingHTTPServer(("127.0.0.1", PORT), Shop).serve_forever()
