"""Files that are whole and on disk under their name, or not there at all.

What may live here: writing, renaming and making durable. A file that is on disk says nothing of its name: that is its
folder's, and is made durable by itself.
"""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes) -> None:
    """A new file, for its owner only, on disk when this returns; its name is durable when its folder is synced."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def rename(partial: Path, path: Path) -> None:
    """Give a file that is on disk its name, durably, in the place of what had it before. Both are on one disk."""
    partial.replace(path)
    sync(path.parent)


def replace(path: Path, content: bytes) -> None:
    """Write a file, for its owner only, in the place of what is there. What an interruption left beside it goes."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    write(partial, content)
    rename(partial, path)
