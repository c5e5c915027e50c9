"""What commands put into the folder, and what they note of it: checksums, credits, and one writer at a time.

    SHA256SUMS         as `sha256sum` writes it: what was put there, and so may be replaced; mirrors are checked by it
    CREDITS-free.md    license and credit of each
    .update.lock       held by the command that changes them

What may live here: writing these files and replacing one, each in one step. Files that are not in SHA256SUMS are the
operator's and are never replaced.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from svc.kernel.values.errors import OperatorError
from svc.kernel.values.text_files import decode_text

CHECKSUMS_FILE = "SHA256SUMS"
CREDITS_FILE = "CREDITS-free.md"
LOCK_FILE = ".update.lock"
MAX_CHECKSUMS_BYTES = 1 << 16

_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *]([A-Za-z0-9][A-Za-z0-9._-]{0,99})", re.ASCII)
_BEFORE_CHECKSUMS = ("country.mmdb", "asn.mmdb")
"""What version 0.1 put there before it wrote checksums."""


class FolderError(OperatorError):
    """The folder cannot be changed; the message says why."""


@contextmanager
def locked_folder(folder: Path) -> Generator[None]:
    """Lock the folder in a `with` block; create it if it is missing. Raises `FolderError` if it cannot be written to,
    or another command is changing it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise FolderError(f"cannot write to {folder}: {error.strerror or error}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise FolderError(f"another command is changing {folder}; wait until it has ended") from error
    finally:
        os.close(descriptor)


def read_checksums(content: bytes) -> dict[str, str]:
    """Return the SHA-256 in hexadecimal by file name, from a file that `sha256sum` wrote. Raises `ValueError` at the
    first line of another form.
    """
    if len(content) > MAX_CHECKSUMS_BYTES:
        raise ValueError(f"is larger than {MAX_CHECKSUMS_BYTES:,} bytes")
    checksums: dict[str, str] = {}
    for number, line in enumerate(decode_text(content).splitlines(), 1):
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"line {number} is not a checksum and a file name as `sha256sum` writes them")
        checksums[found[2]] = found[1].lower()
    return checksums


def kept_files(folder: Path) -> dict[str, str]:
    """Return a dict of name -> SHA-256 of the files that commands put there. Raises `FolderError` if that cannot be
    read.
    """
    try:
        return read_checksums((folder / CHECKSUMS_FILE).read_bytes())
    except FileNotFoundError:
        installed_before = (folder / CREDITS_FILE).exists()
        return dict.fromkeys(_BEFORE_CHECKSUMS, "") if installed_before else {}
    except (OSError, ValueError) as error:
        raise FolderError(
            f"{folder / CHECKSUMS_FILE}: {error}; restore it, or remove it and the files of it"
        ) from error


def put(folder: Path, file: str, content: bytes, credit: str, written: datetime | None = None) -> None:
    """Put a file into the folder in one step, with its checksum and credit. `written` becomes its time of writing.

    The checksum is noted first: a process that ends in between leaves a file that a later update may replace. Raises
    `OSError`.
    """
    there = {name: checksum for name, checksum in kept_files(folder).items() if checksum and (folder / name).exists()}
    checksums = {**there, file: hashlib.sha256(content).hexdigest()}
    lines = [f"{checksum}  {name}\n" for name, checksum in sorted(checksums.items())]
    replace(folder / CHECKSUMS_FILE, "".join(lines).encode())
    replace(folder / CREDITS_FILE, _credits({**credits_of(folder), file: credit}).encode())
    replace(folder / file, content, written)


def replace(path: Path, content: bytes, written: datetime | None = None) -> None:
    """Write a file under another name first, so that nobody sees half of it. Raises `OSError`."""
    unfinished = path.with_name(f".{path.name}.part")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        if written is not None:
            os.utime(file.fileno(), (written.timestamp(), written.timestamp()))
        os.fsync(file.fileno())
    unfinished.replace(path)


def credits_of(folder: Path) -> dict[str, str]:
    """Return license and origin by file name, as far as the file of credits exists and names them."""
    try:
        text = (folder / CREDITS_FILE).read_text(errors="replace")
    except OSError:
        return {}
    parts = (part.partition("\n") for part in text.split("\n## ")[1:])
    return {file.strip(): credit.strip() for file, _, credit in parts}


def _credits(by_file: Mapping[str, str]) -> str:
    parts = [f"## {file}\n\n{credit}\n" for file, credit in sorted(by_file.items())]
    return "\n".join(["# Where these files are from\n", *parts])
