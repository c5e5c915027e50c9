"""The service's own answers: `svc replay` as a process of its own, over what a request shows and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.linkage.judge import Answer


class Replayed(NamedTuple):
    answers: list[Answer]
    digest: str
    """SHA-256 of everything that was written."""


def replay(lines: Iterable[bytes]) -> Replayed:
    """Raises `CalledProcessError` when a line is refused, with what the program said on stderr."""
    with tempfile.TemporaryDirectory(prefix="svc-accuracy-") as directory:
        reports, answered = Path(directory, "reports.jsonl"), Path(directory, "answers.jsonl")
        with reports.open("wb") as file:
            file.writelines(lines)
        # Settings of the environment must not change the answers.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
        command = ["replay", str(reports), "--output", str(answered)]
        done = subprocess.run(
            [sys.executable, "-c", "import svc.cli; svc.cli.main()", *command],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"svc replay ended with {done.returncode}:\n{done.stderr.strip()}")
        digest = hashlib.sha256()
        return Replayed(list(_answers(answered, digest.update)), digest.hexdigest())


def _answers(path: Path, watch) -> Iterator[Answer]:
    known: set[str] = set()
    with path.open("rb") as lines:
        for line in lines:
            watch(line)
            answer = json.loads(line)
            visitor = answer["visitor_id"]
            if answer["visitor_is_new"] != (visitor not in known):
                raise SystemExit(f"visitor_is_new is wrong on the visit with tag {answer['event']['tag']}")
            known.add(visitor)
            yield Answer(visitor, answer["visitor_confidence"])
