"""Serves index.html with the address of the service and its public key filled in: `python3 serve.py`."""

import html
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

HERE = Path(__file__).parent
KEYS = Path(os.environ.get("SVC_DEV_KEYS", HERE.parents[1] / "data" / "dev-keys.json"))
PORT = int(os.environ.get("PORT", "8000"))

if "SVC_PUBLIC_KEY" not in os.environ and not KEYS.exists():
    sys.exit('No key: start the service with "make run" in the checkout first, or set SVC_URL and SVC_PUBLIC_KEY.')
URL = os.environ.get("SVC_URL", "http://127.0.0.1:8080")
PUBLIC_KEY = os.environ.get("SVC_PUBLIC_KEY") or json.loads(KEYS.read_text())["public"]


class Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = (HERE / "index.html").read_text()
        self.respond(page.replace("{{url}}", URL).replace("{{public_key}}", PUBLIC_KEY))

    def do_POST(self) -> None:
        """A real server reads the event of this request id now: see ../django."""
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
