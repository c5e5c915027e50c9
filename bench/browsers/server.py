"""The server that shows the page and keeps what each browser posts, on loopback.

What may live here: serving the built page, and handing each report with its headers to the one who waits for it.
"""

from __future__ import annotations

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

LARGEST_REPORT = 4_000_000


class Collector:
    """Serves `site` and waits for reports. A report: `{"headers": {...}, "report": {...}}`."""

    def __init__(self, site: Path) -> None:
        self._arrived = threading.Condition()
        self._reports: dict[str, dict[str, Any]] = {}
        handler = partial(_Handler, self, directory=str(site))
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def address(self, visit: str) -> str:
        """The page that reports under this name."""
        return f"http://127.0.0.1:{self._server.server_port}/index.html?visit={visit}"

    def keep(self, visit: str, report: dict[str, Any]) -> None:
        with self._arrived:
            self._reports.setdefault(visit, report)
            self._arrived.notify_all()

    def wait(self, visit: str, seconds: float) -> dict[str, Any] | None:
        """What was posted under this name, or `None` when nothing came in time."""
        with self._arrived:
            self._arrived.wait_for(lambda: visit in self._reports, seconds)
            return self._reports.pop(visit, None)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that is ended leaves its connections broken: nothing to say."""


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, collector: Collector, *arguments: Any, **named: Any) -> None:
        self._collector = collector
        super().__init__(*arguments, **named)

    def end_headers(self) -> None:
        # As a site that wants to know the browser's full versions.
        self.send_header("Accept-CH", "Sec-CH-UA-Full-Version-List, Sec-CH-UA-Platform-Version, Sec-CH-UA-Model")
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(min(length, LARGEST_REPORT))
        visit = parse_qs(urlsplit(self.path).query).get("visit", [""])[0]
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._collector.keep(visit, {"headers": headers, "report": json.loads(body)})
        self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing: what the runner prints is enough."""
