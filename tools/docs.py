"""Builds the documentation site into svc/docs_site: `python -m tools.docs`. Does nothing where nothing changed.

What may live here: which files become the site, under which names, and in which order they are listed. Sphinx makes the
pages (docs/adr/0054), by `tools/site`. The navigation is docs/README.md: its headings or the first cells of its tables
name the groups, and its links are the pages of a group, in their order. Pages that only the README.md of a folder links
to are below that one. A page that none of them lists, and a link or an anchor that leads nowhere, is an error.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from tools.versions import version
from tools.web import digest_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = Path(__file__).parent / "site"
OUTPUT = ROOT / "svc" / "docs_site"
MERMAID = ROOT / "web" / "node_modules" / "@mermaid-js" / "tiny"
BUILT = "digest.txt"
"""In the output: the digest of the sources that it was built of."""
ELSEWHERE = "project"
"""Folder of the site for files from outside docs that its pages lead to."""
NEEDED = ("sphinx", "myst_parser", "furo")
OF_PYTHON = {"furo": "MIT", "sphinx": "BSD-2-Clause"}
"""Packages of Python whose scripts and styles are part of the site, and their licenses."""
NOT_SERVED = frozenset({".buildinfo", "objects.inv", "_sources", ".map"})
COMPRESSED_ALREADY = frozenset({".png"})
"""Everything else is kept compressed in the package, and served so."""
SKIPPED = "The documentation site is left out: {} is not installed. The service runs without it."

_PARTS = re.compile(
    r"^ *```.*?^ *```$"  # a block of code, which has no links
    r"|(?P<image>!?)\[(?P<words>(?:[^\[\]`]|`[^`]*`|!?\[[^\]]*\](?:\([^)]*\))?)*)\]"
    r"\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)"
    r"|`[^`\n]*`",
    re.MULTILINE | re.DOTALL,
)


class Stage:
    """The pages and files of the site in one folder, as Sphinx reads them: docs at its root, what they lead to outside
    of docs below `ELSEWHERE`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: set[Path] = set()
        self._waiting = sorted(DOCS.rglob("*.md"))
        self._listed: dict[Path, list[tuple[str, list[str]]]] = {}

    def fill(self) -> None:
        """Write every page, and what the pages lead to. Raises `FileNotFoundError` for a link that leads nowhere."""
        self._listed = navigation()
        while self._waiting:
            path = self._waiting.pop()
            if path in self._written:
                continue
            self._written.add(path)
            if path.suffix == ".md":
                self._target(path).write_text(self._page(path))
            else:
                self._target(path).write_bytes(path.read_bytes())

    def _page(self, path: Path) -> str:
        text = _PARTS.sub(lambda part: self._link(path, part), path.read_text())
        if path.is_relative_to(DOCS) and path.name == "README.md":
            return text + "".join(_toctree(group, pages) for group, pages in self._listed[path])
        name = str(place(path).with_suffix(""))
        is_listed = any(name in pages for _, pages in self._listed[DOCS / "README.md"])
        if is_listed or (path.is_relative_to(DOCS) and not _is_decision(path)):
            return text
        return f"---\norphan: true\n---\n\n{text}"

    def _link(self, page: Path, part: re.Match[str]) -> str:
        if part["target"] is None:
            return part[0]
        words = part["words"]
        if not part["image"]:
            words = _PARTS.sub(lambda inner: self._link(page, inner), words)
        path = readable(page.parent / part["target"])
        if path is None:
            return words  # a folder of sources, which has no page
        self._waiting.append(path)
        leads = os.path.relpath(place(path), place(page).parent)
        return f"{part['image']}[{words}]({leads}{part['anchor'] or ''})"

    def _target(self, path: Path) -> Path:
        target = self._folder / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


def _is_decision(path: Path) -> bool:
    """Whether the index of decisions lists this page, and not the navigation: it is on each page, and with all of them
    the site took four times as long to build.
    """
    return path.parent == DOCS / "adr" and path.name != "README.md"


def _toctree(group: str, pages: list[str]) -> str:
    caption = [f":caption: {group}"] if group else []
    return "\n".join(["", "```{toctree}", ":hidden:", ":maxdepth: 1", *caption, "", *pages, "```", ""])


def navigation() -> dict[Path, list[tuple[str, list[str]]]]:
    """README.md of docs or of a folder in it -> (group, names of its pages), in order. A page is listed once: in the
    first group that links to it, and by docs/README.md before the others.
    """
    listed: dict[Path, list[tuple[str, list[str]]]] = {}
    seen = {"index", str(place(ROOT / "README.md").with_suffix(""))}
    for path in sorted(DOCS.rglob("README.md"), key=lambda path: (len(path.parts), path)):
        listed[path] = groups(path, seen)
    return listed


def groups(readme: Path, seen: set[str]) -> list[tuple[str, list[str]]]:
    """(group, names of its pages) of a README.md, in order, without those in `seen`, which learns them."""
    found: list[tuple[str, list[str]]] = [("", [])]
    own = str(place(readme).with_suffix(""))
    for line in readme.read_text().splitlines():
        heading, row = re.match(r"##+ +(.+)", line), re.match(r"\| *([^\[|]*[^\[| -][^\[|]*?) *\|", line)
        name = heading[1] if heading else row[1] if row and "](" in line else None
        if name is not None:
            found.append((name[:1].upper() + name[1:], []))
        for link in _PARTS.finditer(line):
            path = readable(readme.parent / link["target"]) if link["target"] and not link["image"] else None
            page = None if path is None or path.suffix != ".md" or _is_decision(path) else place(path).with_suffix("")
            is_above = page is not None and page.parts[0] == ELSEWHERE and readme != DOCS / "README.md"
            if page is not None and str(page) not in seen and str(page) != own and not is_above:
                seen.add(str(page))
                found[-1][1].append(os.path.relpath(page, place(readme).parent))
    return [(name, pages) for name, pages in found if pages]


def readable(path: Path) -> Path | None:
    """The file that a link to this path shows: of a folder its README.md, `None` where it has none. Raises
    `FileNotFoundError`.
    """
    path = Path(os.path.normpath(path))
    if path.is_dir():
        page = path / "README.md"
        return page if page.exists() else None
    if not path.exists():
        raise FileNotFoundError(f"a page links to {path.relative_to(ROOT)}, which is not there")
    return path


def place(path: Path) -> Path:
    """Where a file stands in the site, relative to its root."""
    inside = path.relative_to(DOCS) if path.is_relative_to(DOCS) else Path(ELSEWHERE, path.relative_to(ROOT))
    return inside.with_name("index.md") if inside.name == "README.md" else inside


def sources() -> Iterator[Path]:
    """Files that the site follows from, of which `digest_of` is taken: all of docs and tools/site in a fixed order, and
    some of the project's root. Left out are files outside of docs that only a page links to. May name one that is not
    there.
    """
    yield from (ROOT / name for name in ("README.md", "CHANGELOG.md", "pyproject.toml", "examples/README.md"))
    yield Path(__file__)
    for folder in (DOCS, SITE):
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    yield MERMAID / "package.json"


def build(output: Path) -> int:
    """Make the site in this folder, whose content is replaced. Returns Sphinx's exit status."""
    with tempfile.TemporaryDirectory(prefix="svc-docs-") as name:
        staged, made = Path(name, "pages"), Path(name, "site")
        Stage(staged).fill()
        mermaid = MERMAID / "dist" / "mermaid.tiny.js"
        environment = {**os.environ, "SVC_DOCS_VERSION": version(), "PYTHONDONTWRITEBYTECODE": "1"}
        if mermaid.exists():
            environment["SVC_DOCS_MERMAID"] = str(mermaid)
        options = ["-q", "-W", "--keep-going", "-b", "html", "-c", str(SITE), "-d", str(Path(name, "trees"))]
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", *options, str(staged), str(made)], env=environment, check=False
        )
        if done.returncode == 0:
            shutil.rmtree(output, ignore_errors=True)
            _pack(made, output)
            (output / "LICENSES.txt").write_text(licenses())
    return done.returncode


def licenses() -> str:
    """What of others the site contains, in the form of that which `make web` writes."""
    parts: list[str] = []
    for name, license_id in OF_PYTHON.items():
        package = distribution(name)
        (file,) = [
            file for file in package.files or () if file.name.startswith("LICENSE") and ".dist-info" in str(file)
        ]
        parts.append(f"{name} {package.version} ({license_id})\n\n{file.read_text().strip()}\n")
    if MERMAID.exists():
        described = json.loads((MERMAID / "package.json").read_text())
        text = (MERMAID / "LICENSE").read_text().strip()
        parts.append(f"{described['name']} {described['version']} ({described['license']})\n\n{text}\n")
    return f"\n{'-' * 78}\n\n".join(["The documentation is part of svc (Apache-2.0) and contains:\n", *parts])


def _pack(made: Path, output: Path) -> None:
    """What is served; the same bytes at each build."""
    for file in sorted(path for path in made.rglob("*") if path.is_file()):
        inside = file.relative_to(made)
        if NOT_SERVED.intersection((*inside.parts, file.suffix)):
            continue
        target = output / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix in COMPRESSED_ALREADY:
            target.write_bytes(file.read_bytes())
        else:
            target.with_name(f"{target.name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))


def main() -> int:
    """Build; 0 also where that is impossible here, otherwise what Sphinx ends with."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(SKIPPED.format(missing[0]))
        return 0
    digest, built = digest_of(sources(), ROOT), OUTPUT / BUILT
    if built.exists() and built.read_text() == digest:
        return 0
    print("Building the documentation site.", flush=True)
    status = build(OUTPUT)
    if status == 0:
        built.write_text(digest)
    return status


if __name__ == "__main__":
    sys.exit(main())
