"""CHANGELOG.md, read: a release and the packages of it quote the section of their version."""

from __future__ import annotations

import re


class ChangelogError(Exception):
    """There is no section of that version."""


def section_of(text: str, wanted: str) -> str:
    """The section of a version, without its heading. Raises `ChangelogError` where there is none."""
    found = re.search(rf"^## {re.escape(wanted)}(?: \([^)]*\))?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ChangelogError(f"CHANGELOG.md has no section {wanted}")
    return found[1].strip() + "\n"
