"""A disk that stalls or fails, for the processes that load a library before all others (`stall.c`)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def disk_library(directory: Path) -> Path:
    """The library, for `LD_PRELOAD`; the files that it looks for are named by `STALL` and `FAIL`. Skips the test where
    there is no compiler.
    """
    if shutil.which("cc") is None:
        pytest.skip("needs `cc`")
    library = directory / "stall.so"
    source = Path(__file__).with_name("stall.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library
