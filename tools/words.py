"""How long the documentation is: `python -m tools.words` prints the words of each section of `docs/README.md`.

What may live here: counting. A word is text between blanks that contains a letter or a digit; tables and code count.
Generated pages are counted apart, and internals not at all.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

DOCS = Path(__file__).parents[1] / "docs"
GENERATED = frozenset({"api.md", "commands.md", "configuration.md", "metrics.md", "signals.md", "report-fields.md"})
"""Pages that the program writes."""
LIMIT = 33_000
"""Words that the pages written for users may have together."""


def count(text: str) -> int:
    """How many words a page in Markdown has."""
    return sum(1 for word in text.split() if any(letter.isalnum() for letter in word))


def sections() -> dict[str, list[Path]]:
    """Heading of the index -> its pages in `docs`, internals without; the index itself under its own title."""
    index = DOCS / "README.md"
    parts = re.split(r"^#+ (.+)$", index.read_text(), flags=re.MULTILINE)[1:]
    found = {
        title: [DOCS / name for name in re.findall(r"\]\(([\w-]+\.md)\)", text)]
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }
    return {**found, parts[0]: [index]}


def words(*, generated: bool) -> dict[str, int]:
    """Words by section, of generated pages or of those that people wrote."""
    return {
        title: sum(count(page.read_text()) for page in pages if (page.name in GENERATED) == generated)
        for title, pages in sections().items()
    }


@click.command()
def main() -> None:
    """Print the words of each section of the documentation."""
    written, generated = words(generated=False), words(generated=True)
    for title, number in written.items():
        click.echo(f"{title:<16} {number:>7,}")
    click.echo(f"{'all':<16} {sum(written.values()):>7,}   of {LIMIT:,}")
    click.echo(f"{'generated':<16} {sum(generated.values()):>7,}")


if __name__ == "__main__":
    main()
