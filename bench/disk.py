"""What a process wrote to a file, and what a power loss may leave of it.

What may live here: the log that tests/crash/write_log.c makes, and the model of a disk. What a sync covered is there;
of what none did, each sector of 512 bytes is as any of the writes to it left it, or its first bytes are of the one and
the rest of what was there before. The file is as long as the last sector that is there.
"""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SHIM = Path(__file__).parents[1] / "tests" / "crash" / "write_log.c"
HEADER = struct.Struct("=cBHIQQ")
SECTOR = 512


class Record(NamedTuple):
    """One line of the log."""

    kind: bytes
    is_durable: bool
    offset: int
    data: bytes
    at: int
    """Its place in the log, in bytes."""


class NoCompiler(Exception):  # noqa: N818
    """There is no `cc` to make the log with."""


def compiled(directory: Path) -> Path:
    """The shim, made here. Raises `NoCompiler`."""
    cc = shutil.which("cc")
    if cc is None:
        raise NoCompiler("needs `cc`, to log the writes of a process")
    library = directory / "write_log.so"
    subprocess.run([cc, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, SHIM], check=True)
    return library


def read_log(path: Path) -> Iterator[Record]:
    raw, at = path.read_bytes(), 0
    while at < len(raw):
        kind, is_durable, _, _, length, offset = HEADER.unpack_from(raw, at)
        data = b"" if kind in (b"S", b"T", b"M") else raw[at + HEADER.size : at + HEADER.size + length]
        if kind == b"M":
            raise ValueError("the file was mapped for writing: what was written is not in the log")
        at += HEADER.size + len(data)
        yield Record(kind, bool(is_durable), offset, data, at)


class Disk:
    """A file as it certainly is, and what may have become of its sectors since."""

    def __init__(self) -> None:
        self.image = bytearray()
        self.pending: dict[int, list[bytes]] = {}
        """Sector -> what each write since the last sync made of it, oldest first."""

    def apply(self, record: Record) -> None:
        if record.kind == b"S":
            for sector, versions in self.pending.items():
                self._settle(sector, versions[-1])
            self.pending.clear()
        elif record.kind == b"T":
            raise ValueError("the file was cut: nothing here knows how")
        elif record.kind == b"W":
            self._write(record)

    def after_power_loss(self, chance: random.Random) -> bytes:
        """One of the files that may be found."""
        image = bytearray(self.image)
        kept = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        torn = chance.choice((0.0, 0.0, 0.3))
        for sector, versions in self.pending.items():
            start = sector * SECTOR
            found = chance.choice(versions) if chance.random() < kept else None
            if found is not None and chance.random() < torn:
                first = chance.randrange(1, SECTOR)
                found = found[:first] + self._before(sector)[first:]
            if found is not None:
                image.extend(bytes(max(0, start + len(found) - len(image))))
                image[start : start + len(found)] = found
        return bytes(image)

    def _write(self, record: Record) -> None:
        end = record.offset + len(record.data)
        for sector in range(record.offset // SECTOR, -(-end // SECTOR)):
            start = sector * SECTOR
            versions = self.pending.get(sector)
            data = bytearray(versions[-1] if versions else self._before(sector))
            first, last = max(record.offset, start), min(end, start + SECTOR)
            data[first - start : last - start] = record.data[first - record.offset : last - record.offset]
            if record.is_durable:
                self._settle(sector, bytes(data))
                self.pending.pop(sector, None)
            else:
                self.pending.setdefault(sector, []).append(bytes(data))

    def _before(self, sector: int) -> bytes:
        return bytes(self.image[sector * SECTOR : (sector + 1) * SECTOR]).ljust(SECTOR, b"\0")

    def _settle(self, sector: int, data: bytes) -> None:
        start = sector * SECTOR
        self.image.extend(bytes(max(0, start + SECTOR - len(self.image))))
        self.image[start : start + SECTOR] = data


class Loss(NamedTuple):
    """A power loss, and the file that it left."""

    cut: int
    """Records before it."""
    at: int
    """The same in bytes of the log."""
    image: bytes


def losses(records: list[Record], count: int, seed: int) -> Iterator[Loss]:
    """So many, in the order of the log: half of them anywhere, half just after something was told to a client."""
    chance = random.Random(seed)
    told = [number for number, record in enumerate(records, start=1) if record.kind == b"A"]
    anywhere = [chance.randrange(1, len(records) + 1) for _ in range(count - count // 2)]
    disk, done = Disk(), 0
    for cut in sorted(anywhere + chance.choices(told, k=count // 2)):
        for record in records[done:cut]:
            disk.apply(record)
        done = cut
        yield Loss(cut, records[cut - 1].at, disk.after_power_loss(chance))
