"""A shop's page with the web SDK, beside a development service of its own, and browsers that are opened on it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bench.browsers.launch import display, environment_of, start, stop
from bench.browsers.pack import compressed, of_the_browser, without_visit
from bench.serving import free_port

SECONDS = 45.0
"""How long a browser may take to report."""
WORKER = Path(__file__).parents[2] / "svc" / "web_static" / "sdk" / "svc.worker.js"
PAGE = """\
<!doctype html><html lang="en"><head><meta charset="utf-8"><title>shop</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' {service}; worker-src 'self';
 connect-src 'self' {service}">
<link rel="icon" href="data:,"></head><body><script type="module" src="page.js"></script></body></html>
"""
"""Under the policy of a careful shop: the worker comes from its own origin."""
SCRIPT = """\
const violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
const asked = new URLSearchParams(location.search);
if (asked.get("visit").includes("cleared")) {
  localStorage.clear();
  for (const part of document.cookie.split("; ")) document.cookie = part.split("=")[0] + "=; max-age=0; path=/";
}
async function report() {
  const { load } = await import("SERVICE/sdk/v1/svc.esm.js");
  const client = load({ apiKey: "KEY", workerUrl: "/svc.worker.js" });
  const found = {};
  try {
    found.response = await client.identify({ tag: asked.get("visit") });
  } catch (error) {
    found.error = `${error.code}: ${error.message}`;
  }
  await client.deferredSent();
  await fetch(location.href, { method: "POST", body: JSON.stringify({ ...found, timing: client.timing, violations }) });
}
report(); // engines of 2020 know no await outside of functions
"""
LARGEST_REPORT = 4_000_000
Row = dict[str, Any]


class Shop:
    """The page, and what it posts."""

    def __init__(self, service: str, secret: str, collector: Collector) -> None:
        self._service, self._secret, self._collector = service, secret, collector

    def visited(
        self,
        name: str,
        command: Sequence[str],
        home: Path,
        log: Path,
        environment: Mapping[str, str],
        files: Mapping[str, str] | None = None,
        screen: str | None = "1920x1080x24",
    ) -> Row:
        """What came of one opening: `headers`, `timing`, `violations`, the `seconds` that it took and the `event` with
        the archived report; or `error`. Without a `screen` the browser gets no display.
        """
        profile = home / "profile"
        profile.mkdir(parents=True, exist_ok=True)
        for path, text in (files or {}).items():
            (profile / path).parent.mkdir(parents=True, exist_ok=True)
            (profile / path).write_text(text)
        url = self._collector.address(name)
        filled = [part.replace("{profile}", str(profile)).replace("{url}", url) for part in command]
        more = {**environment, "GSETTINGS_BACKEND": "memory"}
        began = time.monotonic()
        if screen is None:
            found = self._open(name, filled, environment_of(home, more), log)
        else:
            with display(screen) as shown:
                began = time.monotonic()
                found = self._open(name, filled, environment_of(home, {**more, **shown}), log)
        if found is None or "response" not in found["report"]:
            return {"error": "no report" if found is None else found["report"].get("error")}
        report = found["report"]
        event = self._event(report.pop("response")["request_id"])
        return {"headers": found["headers"], **report, "seconds": time.monotonic() - began, "event": event}

    def _open(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Row | None:
        process = start(command, environment, log)
        try:
            return self._collector.wait(name, SECONDS)
        finally:
            stop(process)

    def _event(self, request_id: str) -> Row:
        url = f"{self._service}/api/v1/events/{request_id}"
        with urllib.request.urlopen(
            urllib.request.Request(url, headers={"x-api-key": self._secret}), timeout=10
        ) as read:
            return json.load(read)


@contextmanager
def shop() -> Iterator[tuple[Shop, Path]]:
    """The page beside a `svc dev` on data of its own; and a folder for what browsers write."""
    bind = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "site").mkdir()
        command = [str(Path(sys.executable).parent / "svc"), "dev", "--bind", bind, "--data", str(scratch / "data")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            next(line for line in process.stdout if "Ctrl-C" in line)
            keys, service = json.loads((scratch / "data" / "dev-keys.json").read_text()), f"http://{bind}"
            (scratch / "site" / "index.html").write_text(PAGE.format(service=service))
            script = SCRIPT.replace("SERVICE", service).replace("KEY", keys["public"])
            (scratch / "site" / "page.js").write_text(script)
            shutil.copy(WORKER, scratch / "site" / "svc.worker.js")
            collector = Collector(scratch / "site")
            try:
                yield Shop(service, keys["secret"], collector), scratch
            finally:
                collector.close()
        finally:
            process.terminate()
            process.wait(timeout=30)


def is_installed(tag: str, program: str) -> bool:
    """Says so where it is not."""
    if shutil.which(program) is None:
        print(f"{tag}: {program} is not installed", file=sys.stderr)
        return False
    return True


def shown(row: Row) -> str:
    """A row as a line: score, signals with their evidence, and what the SDK did not get in time."""
    if "event" not in row:
        return f"{row['tag']:36} {row['error']}"
    evidence = row["event"]["document"]["evidence"]
    fired = (f"{one['signal']} ({', '.join(evidence.get(one['signal'], []))})" for one in row["event"]["signals"])
    missed = f"  missed: {', '.join(row['timing']['missed'])}" if row["timing"]["missed"] else ""
    return f"{row['tag']:36} {row['event']['suspect_score']:>4} {'; '.join(fired) or 'nothing'}{missed}"


def write(rows: Iterable[Row], captures: Path | None, everything: Path | None) -> None:
    """`captures`: the reports and headers of rows with an event, for the tests."""
    kept = list(rows)
    if captures is not None:
        captures.write_bytes(
            compressed(
                {
                    "tag": row["tag"],
                    "signals": without_visit(row["event"]["document"]["signals"]),
                    "headers": of_the_browser(row["headers"]),
                }
                for row in kept
                if "event" in row
            )
        )
    if everything is not None:
        everything.write_text("".join(json.dumps(row) + "\n" for row in kept))


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
