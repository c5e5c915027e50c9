"""How Sphinx makes the documentation site of the staged pages (docs/adr/0054). `tools.docs` runs it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer  # pyright: ignore[reportMissingTypeStubs]
from sphinx.application import Sphinx

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


def setup(app: Sphinx) -> None:
    """Diagrams are text in the page, which `diagrams.js` draws."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("html-page-context", _with_levels, priority=900)


def _with_levels(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """The captions of the navigation are headings to assistive technology, and need a level as such."""
    context["furo_navigation_tree"] = context["furo_navigation_tree"].replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )
