"""A loop that does not run leaves a trace of where it stands, whoever ends its process then."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, time, trio
from svc import serving

serving.ALIVE_S = 0.05

def where_it_hangs():
    time.sleep(float(sys.argv[1]))

async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serving.trace_hang, 0.5)
        await trio.sleep(0.2)
        where_it_hangs()
        await trio.sleep(0.2)
        nursery.cancel_scope.cancel()

trio.run(main)
time.sleep(0.8)
"""


def said_of_a_loop_that_stands_for(seconds: float) -> str:
    """On the standard error, once the program has ended; it goes on for longer than the limit after that."""
    program = [sys.executable, "-c", PROGRAM, str(seconds)]
    return subprocess.run(program, capture_output=True, text=True, check=True, timeout=60).stderr


def test_a_loop_that_stands_still_says_where():
    assert "in where_it_hangs" in said_of_a_loop_that_stands_for(1.2)


def test_a_loop_that_runs_says_nothing_and_neither_does_one_that_has_ended():
    assert said_of_a_loop_that_stands_for(0.0) == ""
