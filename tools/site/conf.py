"""How Sphinx makes the documentation site of the staged pages (docs/adr/0054). `tools.docs` runs it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer  # pyright: ignore[reportMissingTypeStubs]
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.search.en import SearchEnglish

HERE = Path(__file__).parent

project = "svc"
html_title = f"svc {os.environ['SVC_DOCS_VERSION']}"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 6
smartquotes = False

html_theme = "furo"
html_static_path = [str(HERE / "static"), *filter(None, [os.environ.get("SVC_DOCS_MERMAID")])]
html_css_files = ["site.css"]
html_js_files = [("scrolling.js", {"defer": "defer"}), ("diagrams.js", {"defer": "defer"})]
templates_path = [str(HERE / "templates")]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/service.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_search_scorer = str(HERE / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = False


STEMS: dict[str, str] = {}
"""Of the words that were looked at."""


class StatusesToo(SearchEnglish):
    """Sphinx finds no number; who looks for 401 means a status, which pages explain."""

    def word_filter(self, word: str) -> bool:
        """Whether the index has this word."""
        return super().word_filter(word) or re.fullmatch(r"[45]\d\d", word) is not None

    def stem(self, word: str) -> str:
        """As Sphinx, but once for each word of the site, and not of each page."""
        if word not in STEMS:
            STEMS[word] = super().stem(word)
        return STEMS[word]


def setup(app: Sphinx) -> None:
    """Diagrams are text in the page, which `diagrams.js` draws."""
    app.add_lexer("mermaid", TextLexer)
    app.add_search_language(StatusesToo)
    app.connect("html-page-context", _with_levels, priority=900)
    app.connect("build-finished", _ask_for_statuses)


def _with_levels(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """The captions of the navigation are headings to assistive technology, and need a level as such."""
    context["furo_navigation_tree"] = context["furo_navigation_tree"].replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )


def _ask_for_statuses(app: Sphinx, problem: Exception | None) -> None:
    """In the browser as in `StatusesToo`: of what is looked for, numbers that may be a status are kept."""
    if problem is not None:
        return
    script = Path(app.outdir, "_static", "searchtools.js")
    text, number = script.read_text(), r"queryTerm.match(/^\d+$/)"
    if text.count(number) != 1:
        raise ExtensionError(f"searchtools.js has no {number}, or several: look at its new version")
    script.write_text(text.replace(number, r"queryTerm.match(/^(?![45]\d\d$)\d+$/)"))
