"""Which ids come more than once, in bounded memory however many there are: sorted in runs on disk, then merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from heapq import merge
from itertools import islice, pairwise
from tempfile import TemporaryFile

ID_BYTES = 16
IDS_A_RUN = 1 << 18
"""About 15 MB of them in memory."""


def repeated(ids: Iterable[bytes], ids_a_run: int = IDS_A_RUN) -> Iterator[bytes]:
    """The ids of 16 bytes that equal an earlier one, sorted. Temporary files take 16 bytes for each id; memory holds
    `ids_a_run` of them.
    """
    left = iter(ids)
    with ExitStack() as opened:
        runs: list[Iterator[bytes]] = []
        while run := sorted(islice(left, ids_a_run)):
            file = opened.enter_context(TemporaryFile())
            file.writelines(run)
            file.seek(0)
            runs.append(iter(partial(file.read, ID_BYTES), b""))
        for one, other in pairwise(merge(*runs)):
            if one == other:
                yield other
