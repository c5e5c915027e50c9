"""Files that commands write for others: complete or not there, and readable by their owner alone."""

from __future__ import annotations

import gzip
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from svc.command.output import CommandError, standard_output
from svc.kernel.store.files import durable_files

_PREFIX, _SUFFIX = ".svc-export-", ".partial"
PARTIAL = f"{_PREFIX}*{_SUFFIX}"
"""Names of files that are being written, or were left by a program that was ended."""


@contextmanager
def output_file(path: Path | None) -> Generator[Callable[[bytes], Any]]:
    """Open for writing, in a `with` block, standard output or a file that only its owner can read, since exports are
    personal data. The file appears under its name, replacing an earlier one, when it is complete. A device or a pipe is
    written directly. Raises `CommandError` if the file cannot be written.
    """
    if path is None:
        yield standard_output()
        sys.stdout.buffer.flush()
        return
    try:
        with path.open("wb") if _is_special(path) else _replacement(path) as file:
            if path.suffix != ".gz":
                yield file.write
                return
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
                yield packed.write
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


def _is_special(path: Path) -> bool:
    """Whether it is a device, a pipe, or an open file such as `/dev/stdout`. Follows no other symbolic link."""
    folder = path.parent.resolve()
    if folder in {Path("/dev"), Path("/dev/fd")} or folder.is_relative_to("/proc"):
        return True
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISLNK(mode)


@contextmanager
def _replacement(path: Path) -> Generator[IO[bytes]]:
    """A temporary file of mode 0600 beside `path`: renamed to it at the end of the block, deleted where that fails."""
    descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        durable_files.sync(Path(name))
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
