"""What benches read of processes and of their own figures: CPU, memory, and what part of the times was shorter."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int, *, with_ended: bool = False) -> float:
    """Seconds that a process has used, user and system; `with_ended`: and its children that have ended."""
    return sum(cpu_times_s(pid)[: 4 if with_ended else 2])


def cpu_times_s(pid: int) -> list[float]:
    """Seconds of a process in user and in system mode, and of its children that have ended the same."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(ticks) / TICKS_PER_S for ticks in fields[11:15]]


def family(*roots: int) -> list[int]:
    """These processes, their children, and theirs, as far as they run."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = list(roots)
    for pid in found:
        found += children.get(pid, [])
    return found


def memory_mib(pid: int | str = "self", *, mapped: bool = True) -> float:
    """Resident memory of a process. Not `mapped`: without the pages of files, which the kernel takes back when it needs
    them, such as those of the store.
    """
    name = "VmRSS:" if mapped else "RssAnon:"
    return int(Path(f"/proc/{pid}/status").read_text().partition(name)[2].split()[0]) / 1024


def written_bytes(pid: int | str = "self") -> int:
    """What a process has handed to the kernel to write, files and sockets. `write_bytes` would count a whole folio of
    the page cache for each page.
    """
    lines = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(lines["wchar"])


def quantile(values: Sequence[float], part: float) -> float:
    """Of sorted values the one that this part of them (0 to 1) is below; 0 where there are none."""
    return values[min(len(values) - 1, int(part * len(values)))] if values else 0.0


def p50_p99(values: Sequence[float]) -> tuple[float, float]:
    """Of values in any order."""
    ordered = sorted(values)
    return quantile(ordered, 0.5), quantile(ordered, 0.99)
