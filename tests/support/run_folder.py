"""A folder for what is made once in a test run and used by all of its processes.

The first process of a run makes it and deletes it when it ends; those that it starts find it by the environment.
"""

from __future__ import annotations

import atexit
import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

_NAME = "TEST_RUN_FOLDER"


@cache
def run_folder() -> Path:
    if _NAME in os.environ:
        return Path(os.environ[_NAME])
    folder = Path(mkdtemp(prefix="svc-test-run-"))
    folder.chmod(0o755)  # for the user of a server
    own = os.getpid()
    atexit.register(lambda: own == os.getpid() and shutil.rmtree(folder, ignore_errors=True))
    os.environ[_NAME] = str(folder)
    return folder
