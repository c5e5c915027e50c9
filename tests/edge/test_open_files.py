"""The limit of open files: as many connections are taken as fit within it, so that one can be evicted for a new one."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource
from svc.http.server.capacity import fitting

for limit in ((1024, 8192), (1024, 1024), (64, 64)):  # lowered only, which everybody may
    resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    print(fitting(1000), fitting(20), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_the_limit_is_raised_where_it_may_be_and_fewer_connections_are_taken_where_not():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    answers = [line for line in done.stdout.splitlines() if "too few" not in line]
    assert answers == ["1000 20 2256 8192", "768 20 1024 1024", "32 20 64 64"]
    assert done.stdout.count("too few open files for max_connections") == 2
