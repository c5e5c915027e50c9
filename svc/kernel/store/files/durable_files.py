"""Files that are whole and on disk under their name, or not there at all.

What may live here: writing, renaming and making durable. A file that is on disk says nothing of its name: that is its
folder's, and is made durable by itself.
"""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Make a file durable with fsync; of a folder, the names in it. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes) -> None:
    """Write a new file with mode 0600 and fsync it; its name is durable when its folder is synced. Raises
    `FileExistsError` if there is one, and other `OSError`s.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def rename(partial: Path, path: Path) -> None:
    """Rename a durable file, replacing the file with the new name; the new name is durable on return. Both must be on
    one file system. Raises `OSError`.
    """
    partial.replace(path)
    sync(path.parent)


def replace(path: Path, content: bytes) -> None:
    """Write a file with mode 0600 in place of the present one: after a crash it has the old or the new content. Raises
    `OSError`.
    """
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    write(partial, content)
    rename(partial, path)
