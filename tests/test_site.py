"""The documentation site is what docs says: built without a warning, every page in its navigation."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tools import docs
from tools.docs import DOCS, Stage, navigation, place, readable


@pytest.mark.slow(2)
def test_the_site_builds_strictly_with_valid_links_and_anchors():
    """By a build where a source changed since the last one: Sphinx reads every page, which takes some seconds."""
    if any(importlib.util.find_spec(name) is None for name in docs.NEEDED):
        pytest.skip("Sphinx is not installed")
    assert docs.main() == 0
    assert (docs.OUTPUT / docs.BUILT).exists()


@pytest.mark.slow(2)
@pytest.mark.parametrize("link", ["concepts.md#no-such-heading", "no-such-page.md"])
def test_a_broken_link_fails_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], link: str
):
    written = tmp_path / "docs"
    written.mkdir()
    (written / "README.md").write_text("# Documentation\n\n## Begin\n\n- [Concepts](concepts.md)\n")
    (written / "concepts.md").write_text(f"# Concepts\n\nSee [this]({link}).\n")
    monkeypatch.setattr(docs, "DOCS", written)
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    if link.startswith("no-such"):
        with pytest.raises(FileNotFoundError, match=r"no-such-page\.md"):
            docs.build(tmp_path / "site")
    else:
        assert docs.build(tmp_path / "site") != 0
        assert "no-such-heading" in capfd.readouterr().err
    assert not (tmp_path / "site").exists()


def test_every_page_is_listed_once():
    listed = [
        (readme.parent / page).resolve()
        for readme, found in navigation().items()
        for _, pages in found
        for page in pages
    ]
    assert len(listed) == len(set(listed))
    inside = {str(path.relative_to(DOCS)) for path in listed if path.is_relative_to(DOCS)}
    pages = {str(place(path).with_suffix("")) for path in DOCS.rglob("*.md")}
    decisions = {page for page in pages if page.startswith("adr/") and page != "adr/index"}
    assert pages - decisions - {"index"} - inside == set(), "no README.md in docs links to them"


def test_the_navigation_reads_groups_from_headings_and_from_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written = tmp_path / "docs"
    (written / "deep").mkdir(parents=True)
    (written / "adr").mkdir()
    for name in ("one.md", "two.md", "three.md", "deep/four.md", "adr/0001-first.md", "picture.png"):
        (written / name).write_text("# Page\n")
    (written / "adr" / "README.md").write_text("# Decisions\n\n- [First](0001-first.md)\n")
    (written / "README.md").write_text(
        "# Documentation\n\nBegin with [one](one.md).\n\n## guides\n\n- [Two](two.md#start)\n- [Again](one.md)\n\n"
        "| if you | |\n|---|---|\n| run the service | [Three](three.md) |\n"
        "## Internals\n\n[Deep](deep/README.md), [Decisions](adr), [a picture](picture.png)\n"
    )
    (written / "deep" / "README.md").write_text("# Deep\n\n[Four](four.md), [one](../one.md)\n")
    monkeypatch.setattr(docs, "DOCS", written)
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    assert navigation() == {
        written / "README.md": [
            ("", ["one"]),
            ("Guides", ["two"]),
            ("Run the service", ["three"]),
            ("Internals", ["deep/index", "adr/index"]),
        ],
        written / "adr" / "README.md": [],
        written / "deep" / "README.md": [("", ["four"])],
    }


@pytest.mark.slow(0.2)
def test_linked_pages_outside_of_docs_are_included_and_code_is_not_changed(tmp_path: Path):
    Stage(tmp_path).fill()
    assert (tmp_path / "project" / "examples" / "index.md").is_file()
    assert "](../../backend.md#" in (tmp_path / "project" / "examples" / "index.md").read_text()
    assert any((tmp_path / "project" / "ops").iterdir())
    staged = (tmp_path / "quickstart.md").read_text()
    assert staged.split("```")[1::2] == (DOCS / "quickstart.md").read_text().split("```")[1::2]


def test_a_folder_without_a_page_is_not_a_link():
    assert readable(docs.ROOT / "examples" / "html") is None
    assert readable(DOCS / "images") is None
