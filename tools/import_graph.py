"""Which package of `svc` imports which, as a picture for docs/internals/README.md.

    python -m tools.import_graph

What may live here: the packages below `svc`, the arrows between them, and Mermaid's form of both. An arrow that other
arrows lead along as well is left out, as long as there is no cycle: a package may import whatever its arrows lead to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
Arrows = dict[str, set[str]]
"""Package -> the packages that it imports."""


def arrows(sources: Iterator[tuple[str, str]]) -> Arrows:
    """Return the imports between packages directly below `svc`, of sources by their path from the root of the
    repository. What only types are imported for counts as well.
    """
    found: Arrows = {}
    for path, text in sources:
        importer = _package(path.removesuffix(".py").removesuffix("/__init__").split("/"))
        if not importer:
            continue
        found.setdefault(importer, set())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "svc":
                names = [[*node.module.split("."), name.name] for name in node.names]
                found[importer] |= {_package(name) for name in names} - {importer, ""}
    return {package: imported & found.keys() for package, imported in found.items()}


def picture(found: Arrows) -> str:
    """Return a flowchart of Mermaid, without its fence: each package and the arrows that no others imply."""
    lines = [f"  {package} --> {other}" for package in sorted(found) for other in sorted(_direct(found, package))]
    imported = {one for others in found.values() for one in others}
    alone = [f"  {package}" for package in sorted(found) if not found[package] and package not in imported]
    return "\n".join(["flowchart TB", *alone, *lines]) + "\n"


def of_checkout() -> Iterator[tuple[str, str]]:
    """Yield path and text of the modules of this checkout."""
    for path in sorted((ROOT / "svc").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text()


def _package(names: list[str]) -> str:
    """Return the package or module directly below `svc` that a dotted name is in; `""` for `svc` itself."""
    return names[1] if len(names) > 1 and not names[1].startswith("__") else ""


def _direct(found: Arrows, package: str) -> set[str]:
    others = found[package]
    reached = {one: _reached(found, one) for one in others}
    return {one for one in others if not any(one in reached[other] for other in others - {one} - reached[one])}


def _reached(found: Arrows, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [*found[start]]
    while waiting:
        if (one := waiting.pop()) not in seen:
            seen.add(one)
            waiting.extend(found[one])
    return seen


@click.command()
def main() -> None:
    """Print the picture, and the numbers of packages and arrows to standard error."""
    found = arrows(of_checkout())
    click.echo(picture(found), nl=False)
    click.echo(f"{len(found)} packages, {sum(map(len, found.values()))} arrows", err=True)


if __name__ == "__main__":
    main()
