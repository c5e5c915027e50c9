"""Pictures of the pages for the documentation: `python -m tools.screenshots`, into docs/images.

They are taken in a headless Chromium, which the page /try finds out: so a picture shows what a score is made of.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.web import ROOT, WEB, find_node, install

PAGES = ("/try",)
CONSOLE = ("live-dark", "event-light", "app-light", "account-light", "reviews-light", "visitor-phone")
"""Screens of the console, and how they are shown."""
OUTPUT = ROOT / "docs" / "images"


def main() -> int:
    """Take every picture; 1 where no browser can be had here."""
    node = find_node()
    reason = "there is no node with npm" if node is None else install(node, WEB / "browsers", _stamp())
    if node is None or reason is not None:
        print(f"No pictures were taken: {reason}.")
        return 1
    OUTPUT.mkdir(exist_ok=True)
    svc = Path(sys.executable).parent / "svc"
    with tempfile.TemporaryDirectory() as data:
        command = [str(svc), "dev", "--data", data, "--bind", "127.0.0.1:18097"]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert service.stdout is not None
            address = next(found[0] for line in service.stdout if (found := re.search(r"http://[\d.:]+", line)))
            look = [str(node.node), "look.mjs", address, "--shots", str(OUTPUT), *PAGES]
            subprocess.run(look, cwd=WEB / "browsers", env=node.environment, stdout=subprocess.DEVNULL, check=True)
            keys = json.loads((Path(data) / "dev-keys.json").read_bytes())
            configuration = json.dumps({"service": address, **keys})
            look = [str(node.node), "console.mjs", "look", configuration, "--shots", str(OUTPUT), *CONSOLE]
            subprocess.run(look, cwd=WEB / "browsers", env=node.environment, stdout=subprocess.DEVNULL, check=True)
        finally:
            service.terminate()
            service.wait(timeout=30)
    for picture in sorted(OUTPUT.glob("*.png")):
        print(f"{picture.relative_to(ROOT)}  {picture.stat().st_size // 1000} kB")
    return 0


def _stamp() -> Path:
    return WEB / "browsers" / "node_modules" / ".svc-installed"


if __name__ == "__main__":
    sys.exit(main())
