"""Folders of tests that need not run again, since nothing that they look at has changed since they last passed.

Browsers and other languages take a third of the time of all tests, and most commits touch neither. `PASSED` has the
digest of what the tests of a folder look at, from when all of them passed; `python -m tests.support.unchanged` runs
them and writes it. `EFFORT=long` runs them always.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

ROOT = Path(__file__).parents[2]
PASSED = ROOT / "tests" / "passed.toml"
_OF_THE_SERVICE = (
    "svc/http/**/*", "svc/features/**/*routes.py", "svc/features/**/*bodies.py", "svc/identify/samples/*",
    "tests/support/*.py", "pyproject.toml", "requirements.lock",
)  # fmt: skip
INPUTS: dict[str, tuple[str, ...]] = {
    "tests/web": (
        "web/**/*", "tests/web/**/*", "tools/web.py", "docs/openapi.json", "clients/fingerprint-compat/**/*",
        "tests/clients/fingerprint.py", "tools/node_client.py", *_OF_THE_SERVICE,
    ),
    "tests/clients": (
        "clients/**/*", "examples/**/*", "tests/clients/**/*", "docs/openapi.json", "web/*/package.json",
        "web/*/LICENSE", "LICENSE", "tools/*.py", "svc/identify/data/signals.toml", "docs/webhooks.md",
        "tests/test_receivers_guide.py", *_OF_THE_SERVICE,
    ),
}  # fmt: skip
"""Folder -> patterns of the files that its tests depend on. The tests of the contract check what a route returns."""
OUTPUTS = ("__pycache__", "node_modules", "dist", "target", "build", ".gradle", ".build", "web_static")


def _files(folder: str) -> Iterator[Path]:
    found = {path for pattern in INPUTS[folder] for path in ROOT.glob(pattern) if path.is_file()}
    for path in sorted(found):
        if not any(part in OUTPUTS or part.endswith(".egg-info") for part in path.relative_to(ROOT).parts):
            yield path


@cache
def digest(folder: str) -> str:
    """The digest of what the tests of a folder look at: names and contents, of what is no product of a build."""
    found = blake2b(digest_size=16)
    ignored = _ignored(folder)
    for path in _files(folder):
        if path not in ignored and path != Path(__file__):
            found.update(f"{path.relative_to(ROOT)}\0{blake2b(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def _ignored(folder: str) -> set[Path]:
    """What git ignores; nothing where there is no git."""
    names = "\0".join(str(path.relative_to(ROOT)) for path in _files(folder))
    try:
        done = subprocess.run(
            ["git", "check-ignore", "--stdin", "-z"], input=names, text=True, capture_output=True, cwd=ROOT, check=False
        )
    except OSError:
        return set()
    return {ROOT / name for name in done.stdout.split("\0") if name}


@cache
def unchanged() -> frozenset[str]:
    """The folders of which nothing has changed since all of their tests passed."""
    passed = tomllib.loads(PASSED.read_text()) if PASSED.exists() else {}
    return frozenset(folder for folder in INPUTS if passed.get(folder) == digest(folder))


def main() -> None:
    """Run the tests of both folders, and write down that they passed."""
    before = {folder: digest(folder) for folder in INPUTS}
    command = [sys.executable, "-m", "pytest", "-n", "3", "--dist", "worksteal", "-q", *INPUTS]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status:
        sys.exit(status)
    PASSED.write_text("".join(f'"{folder}" = "{found}"\n' for folder, found in before.items()))


if __name__ == "__main__":
    main()
