"""What the documentation shows to be copied is run by a test, or says beside it that it was not run.

A block is a recipe where its language is one that somebody runs. It needs one of three: a line of `RUN_BY`; commands of
`svc` alone, each of which has its tests, while `test_docs.py` holds that they exist with these options; or the words
"not run" in the block, in its section, or in the introduction of its page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from svc.config_loading import load
from tests.test_docs import DOCS, FENCED, ROOT, block
from tools.words import GENERATED

RUNNABLE = {
    *("sh", "bash", "console", "python", "javascript", "typescript", "jsx", "html"),
    *("go", "java", "kotlin", "groovy", "swift", "sql", "toml", "xml"),
}
RUN_BY = {
    ("docs/signed-verdicts.md", "javascript", "verdict: true"): "tests/web/test_snippets.py",
    ("docs/react-native.md", "typescript", ""): "tests/web/test_snippets.py",
    ("docs/frontend.md", "jsx", ""): "tests/web/test_snippets.py",
    ("docs/frontend.md", "javascript", ""): "tests/web/test_snippets.py",
    ("docs/collectors.md", "javascript", "import FingerprintJS"): "tests/web/test_snippets.py",
    ("README.md", "html", ""): "tests/web/test_examples.py",
    ("docs/accounts.md", "sh", ""): "tests/test_curl_recipes.py",
    ("docs/backend.md", "python", ""): "tests/test_docs.py",
    ("docs/backend.md", "javascript", ""): "tests/test_docs.py",
    ("docs/backend.md", "sh", ""): "tests/test_curl_recipes.py",
    ("docs/backtesting.md", "sh", ""): "tests/test_backtesting.py",
    ("docs/collectors.md", "javascript", "STORED_AS"): "tests/test_docs.py",
    ("docs/frontend.md", "html", ""): "tests/web/test_examples.py",
    ("docs/labels.md", "bash", ""): "tests/test_curl_recipes.py",
    ("docs/members.md", "toml", ""): "tests/test_recipes.py",
    ("docs/privacy.md", "sh", ""): "tests/spec/test_privacy_page.py",
    ("docs/quickstart.md", "sh", ""): "tests/test_docs.py",
    ("docs/quickstart.md", "sh run", ""): "tests/test_docs.py",
    ("docs/quickstart.md", "sh serves", ""): "tests/test_docs.py",
    ("docs/quickstart.md", "sh reads", ""): "tests/test_docs.py",
    ("docs/rules.md", "sh", ""): "tests/test_curl_recipes.py",
    ("docs/server-libraries.md", "python", ""): "tests/clients/test_guide.py",
    ("docs/server-libraries.md", "javascript", ""): "tests/clients/test_guide.py",
    ("docs/server-libraries.md", "go", ""): "tests/clients/test_go.py",
    ("docs/server-libraries.md", "java", ""): "tests/clients/test_java.py",
    ("docs/signed-verdicts.md", "python", ""): "tests/clients/test_verdicts.py",
    ("docs/signed-verdicts.md", "javascript", "refuse"): "tests/clients/test_verdicts.py",
    ("docs/warehouse.md", "sql", ""): "tests/spec/test_sql.py",
    ("docs/warehouse.md", "python", "duckdb"): "tests/spec/test_parquet.py",
    ("docs/warehouse.md", "python", "pandas"): "tests/spec/test_parquet.py",
    ("docs/warehouse.md", "python", "polars"): "tests/spec/test_parquet.py",
    ("docs/webhooks.md", "go", ""): "tests/test_receivers_guide.py",
    ("docs/webhooks.md", "javascript", ""): "tests/test_receivers_guide.py",
    ("docs/webhooks.md", "python", ""): "tests/test_receivers_guide.py",
    ("docs/webhooks.md", "sh", "age="): "tests/test_receivers_guide.py",
    ("docs/sizing.md", "sh", ""): "tests/test_curl_recipes.py",
    ("docs/webhooks.md", "sh", "curl"): "tests/test_curl_recipes.py",
}
"""(page, language, text that the block contains) -> the test that runs it; it names the page."""
_NOT_RUN = re.compile(r"\bnot run\b")
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)


class Recipe(NamedTuple):
    page: str
    kind: str
    text: str
    section: str
    """The text around it, from its heading to the next, and the introduction of the page."""

    @property
    def name(self) -> str:
        return f"{self.page}: {self.kind}: {self.text.strip().splitlines()[0][:60]}"

    @property
    def run_by(self) -> str | None:
        for (page, kind, contained), test in RUN_BY.items():
            if (page, kind) == (self.page, self.kind) and contained in self.text:
                return test
        return None

    @property
    def is_marked(self) -> bool:
        return _NOT_RUN.search(self.section) is not None

    @property
    def is_svc_alone(self) -> bool:
        lines = [line.removeprefix("$ ") for line in self.text.replace("\\\n", " ").splitlines()]
        if self.kind == "console":
            lines = [line.removeprefix("$ ") for line in self.text.splitlines() if line.startswith("$ ")]
        return all(re.match(r"\s*(?:#|$|svc )", line) for line in lines)


def recipes_of(page: str, text: str) -> list[Recipe]:
    found: list[Recipe] = []
    introduction = FENCED.sub("", text.partition("\n## ")[0])
    ends = [one.start() for one in _HEADING.finditer(FENCED.sub(lambda one: " " * len(one[0]), text))]
    for one in FENCED.finditer(text):
        if one["kind"].split(" ")[0] in RUNNABLE:
            start = max((end for end in ends if end <= one.start()), default=0)
            end = min((end for end in ends if end > one.start()), default=len(text))
            found.append(Recipe(page, one["kind"], one["text"], introduction + text[start:end]))
    return found


PAGES = [
    ROOT / "README.md",
    *(page for page in sorted(DOCS.glob("*.md")) if page.name not in GENERATED),
]
RECIPES = [one for page in PAGES for one in recipes_of(page.relative_to(ROOT).as_posix(), page.read_text())]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_recipe_is_run_or_says_that_it_was_not(recipe: Recipe):
    assert recipe.run_by is not None or recipe.is_svc_alone or recipe.is_marked, (
        f"nothing runs it: give it a test and a line of RUN_BY, or say beside it that it was not run\n{recipe.text}"
    )


def test_what_is_said_to_run_a_recipe_names_its_page_and_no_line_is_left_over():
    for (page, kind, contained), test in RUN_BY.items():
        source = (ROOT / test).read_text()
        assert page.removeprefix("docs/") in source or page.removeprefix("docs/").removesuffix(".md") in source, page
        of_line = [one for one in RECIPES if (one.page, one.kind) == (page, kind) and contained in one.text]
        assert of_line, f"{page} has no block of {kind} with {contained!r}"


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("# A\n```sh\ncurl x\n```\n", False),
        ("# A\n```sh\ncurl x   # not run\n```\n", True),
        ("# A\n```sh\ncurl x\n```\nNot run: nobody has it. It was not run.\n", True),
        ("# A\n## B\nThis was not run.\n## C\n```sh\ncurl x\n```\n", False),
        ("# A\nThis was not run.\n## B\n```sh\ncurl x\n```\n", True),
        ("# A\n```sh\nsvc doctor\n# a comment\nsvc events list ORG \\\n  --json\n```\n", True),
        ("# A\n```sh\nsvc doctor\nreboot\n```\n", False),
        ("# A\n```console\n$ svc doctor\nall is well\n```\n", True),
    ],
)
def test_a_block_that_nothing_runs_is_found(text: str, is_right: bool):
    (recipe,) = recipes_of("docs/none.md", text)
    assert (recipe.is_svc_alone or recipe.is_marked) is is_right


def test_the_settings_of_the_page_about_members_are_valid(tmp_path: Path):
    file = tmp_path / "svc.toml"
    file.write_text(block("members.md", "toml", "console_oidc_issuer"))
    config = load(file, {})
    assert config.console_oidc_issuer == "https://id.example.com/realms/shop"
