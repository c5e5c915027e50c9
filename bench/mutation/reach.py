"""Which tests run which lines, and how long each takes: seen once, on the code as it is."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Generator
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from bench.mutation.mutants import Mutant
from bench.mutation.targets import Target

AT_IMPORT = ""
"""In the place of a test: what runs before any of them."""


class Reach(msgspec.Struct):
    """What the tests of a target do while nothing is wrong."""

    lines: dict[str, dict[int, list[str]]]
    """module -> line -> the tests that run it."""
    took_s: dict[str, float]
    """test -> how long."""
    failed: list[str]

    def at_import(self, mutant: Mutant) -> bool:
        """Whether it has to be there from the start: a function that is exchanged later has had its effect."""
        ran = self.lines.get(mutant.module, {})
        here = range(mutant.line, mutant.last_line + 1)
        return not mutant.function or any(AT_IMPORT in ran.get(line, ()) for line in here)

    def tests(self, mutant: Mutant) -> list[str]:
        """Those that may notice it, the quickest first.

        What is made at import may be used by any test, those that run a function of the module the likeliest.
        """
        ran = self.lines.get(mutant.module, {})
        if self.at_import(mutant):
            likely = {test for tests in ran.values() for test in tests}
            return sorted(self.took_s, key=lambda test: (test not in likely, self.took_s[test], test))
        found = {test for line in range(mutant.line, mutant.last_line + 1) for test in ran.get(line, ())}
        return sorted(found, key=lambda test: (self.took_s[test], test))


class Watch:
    """A plugin of pytest that notes what each test runs of some files."""

    def __init__(self, root: Path, target: Target) -> None:
        self._modules = {str(root / module): module for module in target.modules}
        self._test = AT_IMPORT
        self._ran: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self._took_s: dict[str, float] = {}
        self._failed: list[str] = []

    def start(self) -> None:
        """From now on, in every thread."""
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def reach(self) -> Reach:
        lines: dict[str, dict[int, list[str]]] = {}
        for (path, line), tests in self._ran.items():
            lines.setdefault(self._modules[path], {})[line] = sorted(tests)
        return Reach(lines, self._took_s, self._failed)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._test = item.nodeid
        started = time.perf_counter()
        try:
            return (yield)
        finally:
            self._took_s[item.nodeid] = time.perf_counter() - started

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename not in self._modules:
            return None
        return self._line(frame, event, arg)

    def _line(self, frame: FrameType, _: str, __: Any) -> Any:
        self._ran[frame.f_code.co_filename, frame.f_lineno].add(self._test)
        return self._line


def kept_at(root: Path, target: Target) -> Path:
    """Where what was seen is kept, until one of the modules or one of the files of tests changes."""
    digest = blake2b(target.marks.encode(), digest_size=12)
    support = [path.relative_to(root).as_posix() for path in sorted((root / "tests" / "support").glob("*.py"))]
    for path in (*target.modules, *target.tests, *support):
        digest.update(path.encode() + b"\0" + (root / path).read_bytes())
    return Path(tempfile.gettempdir()) / f"svc-mutation-{digest.hexdigest()}.json"


def load(path: Path) -> Reach:
    return msgspec.convert(json.loads(path.read_text()), Reach, strict=False)


def save(path: Path, reach: Reach) -> None:
    path.write_bytes(msgspec.json.encode(reach))
