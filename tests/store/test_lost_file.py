"""A growing store file is not reported as lost (decisions 17.4). `tests/crash/test_hung.py` loses one for real."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from svc.kernel.store.lmdb.engine import LmdbEngine

PAGE = 4096
PAGES = 5_000


def test_a_file_that_grows_while_several_threads_look_is_not_lost(tmp_path: Path):
    """Threads that look at the same time see different sizes; a size that another one saw later is no sign of a cut."""
    with closing(LmdbEngine.open(tmp_path, map_bytes=64 << 20, durable=False)) as engine, short_turns():
        file, seen, grown = tmp_path / "data.mdb", set[str | None](), threading.Event()
        size = file.stat().st_size

        def look() -> None:
            while not grown.is_set():
                seen.add(engine.lost())

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for pages in range(1, PAGES + 1):
            os.truncate(file, size + pages * PAGE)
        grown.set()
        for thread in threads:
            thread.join()
        assert seen == {None}
        assert engine.lost() is None  # sees the last size
        os.truncate(file, size)
        assert engine.lost() == f"{file} was cut from {size + PAGES * PAGE} to {size} bytes"


@contextmanager
def short_turns() -> Iterator[None]:
    """Have threads take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
