"""Archived reports: JSON byte for byte, compressed with what most reports have in common (ADR 72).

What may live here: the codec. Its dictionaries are files beside the tables of `data`, named by their Adler-32, which
each archive carries (RFC 1950, FDICT): a file that was released is kept for ever, and `bench.archive_dictionary` makes
new ones. Archives of earlier versions have no dictionary, and are read as well.
"""

from __future__ import annotations

import zlib
from importlib.resources import files
from typing import Final

from isal import isal_zlib

LONG_BYTES: Final = 4096
"""From this length on a report is compressed with `LONG`."""
SHORT: Final = 0x9EBDB4AE
"""Adler-32 of the dictionary for reports that SDKs of apps and other collectors send."""
LONG: Final = 0xBCD61DE1
"""Adler-32 of the dictionary for reports of the web SDK."""

_FDICT: Final = 0x20
"""Flag in the second byte: a preset dictionary is needed."""
_FOLDER = files("svc.identify.data")
DICTIONARIES: Final = {
    int(file.name.partition(".")[0], 16): file.read_bytes()
    for file in _FOLDER.iterdir()
    if file.name.endswith(".dictionary")
}
"""Adler-32 -> dictionary: all that any version compressed with."""


def deflate(document: bytes) -> bytes:
    """Compress a document in zlib's format, at level 1 of ISA-L (ADR 58), with a dictionary."""
    return compressed(document, DICTIONARIES[SHORT if len(document) < LONG_BYTES else LONG])


def compressed(document: bytes, dictionary: bytes) -> bytes:
    """Compress a document as `deflate` does, with this dictionary."""
    compressor = isal_zlib.compressobj(1, zdict=dictionary)  # pyright: ignore[reportUnknownMemberType]  its stub
    return compressor.compress(document) + compressor.flush()  # pyright: ignore[reportUnknownMemberType]


def inflate(archive: bytes) -> bytes:
    """Return the bytes given to `deflate`, of this version or an earlier one. Raises `zlib.error` for anything else."""
    if len(archive) < 6 or not archive[1] & _FDICT:
        return zlib.decompress(archive)
    dictionary = DICTIONARIES.get(int.from_bytes(archive[2:6]))
    if dictionary is None:
        raise zlib.error(f"compressed with a dictionary that this version does not have: {archive[2:6].hex()}")
    reader = zlib.decompressobj(zdict=dictionary)
    document = reader.decompress(archive)
    if not reader.eof or reader.unused_data:
        raise zlib.error("the archive is cut off, or something follows it")
    return document
