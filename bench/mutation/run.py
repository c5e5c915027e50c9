"""Tries mutants: each in a process of its own that has everything loaded and ends with the first test that fails.

A mutant inside a function is put into the loaded modules, once the tests are collected: a fork and the tests that run
its line are all that it costs. One that runs at import, such as a constant, is there before the modules are loaded.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal, NamedTuple

import pytest

from bench.mutation import reach
from bench.mutation.mutants import Mutant, mutants, mutated
from bench.mutation.reach import Reach
from bench.mutation.targets import Target

Fate = Literal["killed", "hung", "survived", "unreached"]

LOADED = (
    "cryptography.x509",
    "httpx",
    "hypercorn",
    "lmdb",
    "msgspec",
    "openapi_spec_validator",
    "quart_trio",
)
"""Loaded once for all processes, where they are there: nothing of the service, which is what is changed."""
PATIENCE_S, PATIENCE = 5.0, 10
"""A test may take so long beside so many times what it took before; then it hangs, and the mutant is found."""
IMPORT_S = 60.0
MEMORY_BYTES = 4 << 30
NOTHING_FAILED, FAILED, NOT_THERE = 0, 1, 3


class Tried(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    fate: Fate
    by: str
    """The test that found it."""
    took_s: float

    @property
    def found(self) -> bool:
        return self.fate in ("killed", "hung")


def all_mutants(root: Path, target: Target) -> list[Mutant]:
    return [mutant for module in target.modules for mutant in mutants(root, module)]


def see(root: Path, target: Target) -> Reach:
    """What each test runs; the tests are run for it, where that is not known from before."""
    kept = reach.kept_at(root, target)
    if not kept.exists():
        _in_child(lambda: _watch(root, target, kept), None)
    seen = reach.load(kept)
    if seen.failed or not seen.took_s:
        kept.unlink()
        raise SystemExit("without any change these tests fail:\n" + "\n".join(seen.failed or target.tests))
    return seen


def run(root: Path, target: Target, chosen: Sequence[Mutant], jobs: int = 1) -> Iterator[Tried]:
    """Try these mutants, in no particular order."""
    _load()
    seen = see(root, target)
    receive, send = os.pipe()
    workers: list[int] = []
    for job in range(jobs):
        worker = os.fork()
        if worker == 0:
            os.close(receive)
            _end(partial(_work, root, target, seen, chosen[job::jobs], send))
        workers.append(worker)
    os.close(send)
    with os.fdopen(receive) as lines:
        for line in lines:
            mutant, fate, by, took_s = json.loads(line)
            yield Tried(Mutant(*mutant), fate, by, took_s)
    for worker in workers:
        os.waitpid(worker, 0)


def _load() -> None:
    """So that no process has to do it again. Plugins are loaded by pytest itself: it rewrites them on the way."""
    with tempfile.TemporaryDirectory() as empty, redirect_stdout(io.StringIO()):
        pytest.main(["-q", "-p", "no:cacheprovider", "--collect-only", empty])
    for name in LOADED:
        with suppress(ImportError):
            importlib.import_module(name)


def _watch(root: Path, target: Target, kept: Path) -> int:
    watch = reach.Watch(root, target)
    watch.start()
    _pytest(target.tests, target.marks, watch)
    reach.save(kept, watch.reach())
    return 0


def _work(root: Path, target: Target, seen: Reach, chosen: Sequence[Mutant], send: int) -> int:
    """The share of one process."""

    def tell(mutant: Mutant, fate: Fate, by: str, started: float) -> None:
        line = json.dumps([mutant, fate, by, time.perf_counter() - started]) + "\n"
        os.write(send, line.encode())  # short enough to be written whole

    later: list[Mutant] = []
    with tempfile.TemporaryDirectory(prefix="svc-mutation-") as own:
        tempfile.tempdir = os.environ["TMPDIR"] = own
        for mutant in chosen:
            if not seen.tests(mutant):
                tell(mutant, "unreached", "", time.perf_counter())
            elif seen.at_import(mutant):
                _try_at_import(root, mutant, seen, tell)
            else:
                later.append(mutant)
        if later:
            _pytest(target.tests, target.marks, Exchange(root, later, seen, tell))
    return 0


def _try_at_import(root: Path, mutant: Mutant, seen: Reach, tell: Callable[..., None]) -> None:
    started = time.perf_counter()
    tests = seen.tests(mutant)

    def attempt() -> int:
        signal.setitimer(signal.ITIMER_REAL, IMPORT_S)
        sys.meta_path.insert(0, Changed(root, mutant))
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        code = _pytest(tuple(files), "", First(tests, seen))
        return NOTHING_FAILED if code == 0 else FAILED

    fate, by = _fate(*_in_child(attempt, tests))
    tell(mutant, fate, by, started)


class Changed(importlib.abc.MetaPathFinder):
    """Finds one module changed."""

    def __init__(self, root: Path, mutant: Mutant) -> None:
        self._path = root / mutant.module
        self._mutant = mutant
        self._name = ".".join(Path(mutant.module).with_suffix("").parts).removesuffix(".__init__")

    def find_spec(
        self, fullname: str, _: Sequence[str] | None, __: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = _ChangedLoader(fullname, str(self._path), self._mutant)
        return importlib.util.spec_from_file_location(fullname, self._path, loader=loader)


class _ChangedLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutant: Mutant) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, _: str) -> CodeType:
        return compile(mutated(Path(self.path).read_text(), self._mutant), self.path, "exec", dont_inherit=True)


class First:
    """A plugin of pytest that runs these tests, in this order, and ends the process with the first that fails."""

    def __init__(self, tests: Sequence[str], seen: Reach) -> None:
        self._tests = tests
        self._seen = seen

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        chosen = [items[test] for test in self._tests if test in items]
        for item, after in zip(chosen, [*chosen[1:], None], strict=True):
            _note(self._tests.index(item.nodeid))
            signal.setitimer(signal.ITIMER_REAL, PATIENCE_S + PATIENCE * self._seen.took_s[item.nodeid])
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os._exit(FAILED)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            os._exit(FAILED)


class Exchange:
    """A plugin of pytest that runs tests once for each mutant, each time in a fork where one function is another."""

    def __init__(self, root: Path, chosen: Sequence[Mutant], seen: Reach, tell: Callable[..., None]) -> None:
        self._root = root
        self._chosen = chosen
        self._seen = seen
        self._tell = tell
        self._finds: Counter[tuple[str, str]] = Counter()
        """(function, test): how many mutants it has found there."""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for mutant in self._chosen:
            self._try(session, mutant)
        return True

    def _try(self, session: pytest.Session, mutant: Mutant) -> None:
        started = time.perf_counter()
        tests = self._seen.tests(mutant)
        place = f"{mutant.module}:{mutant.function}"
        tests.sort(key=lambda test: self._seen.took_s[test] / (1 + self._finds[place, test]))

        def attempt() -> int:
            if not exchange(self._root, mutant):
                return NOT_THERE
            first = First(tests, self._seen)
            session.config.pluginmanager.register(first)
            first.pytest_runtestloop(session)
            return NOTHING_FAILED

        status, by = _in_child(attempt, tests)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == NOT_THERE:
            raise SystemExit(f"cannot be exchanged: {mutant}")
        fate, by = _fate(status, by)
        self._finds[place, by] += 1
        self._tell(mutant, fate, by, started)


def exchange(root: Path, mutant: Mutant) -> bool:
    """Give every loaded function that holds the change its changed code; whether there was one."""
    path = str(root / mutant.module)
    changed = compile(mutated(Path(path).read_text(), mutant), path, "exec", dont_inherit=True)
    place = (mutant.function, mutant.function_line)
    code = next(found for found in _codes(changed) if (found.co_qualname, found.co_firstlineno) == place)
    gc.unfreeze()  # the suite's conftest has frozen what was imported, and what is frozen is not listed
    functions = [
        found
        for found in gc.get_objects()
        if isinstance(found, FunctionType)
        and found.__code__.co_filename == path
        and (found.__code__.co_qualname, found.__code__.co_firstlineno) == place
    ]
    for function in functions:
        function.__code__ = code
    return bool(functions)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _pytest(tests: Sequence[str], marks: str, plugin: Any) -> int:
    with suppress(ImportError):
        _settle_hypothesis()
    with tempfile.TemporaryDirectory() as base:
        quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning", "-m", marks]
        return int(pytest.main([*quiet, f"--basetemp={base}/tests", *tests], plugins=[plugin]))


def _settle_hypothesis() -> None:
    """The same examples each time, none remembered, none made smaller: that one fails is enough."""
    from hypothesis import HealthCheck, Phase, settings  # noqa: PLC0415 - where there is one

    settings.register_profile(
        "mutation",
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutation")


_noted: list[int] = []
"""Where a child says which test it is at."""


def _note(test: int) -> None:
    for pipe in _noted:
        os.write(pipe, test.to_bytes(4, "big"))


def _in_child(attempt: Callable[[], int], tests: Sequence[str] | None) -> tuple[int, str]:
    """Run it in a fork; how that ended, and at which of the tests."""
    receive, send = os.pipe()
    os.set_blocking(send, False)
    child = os.fork()
    if child == 0:
        os.close(receive)
        _noted[:] = [send] if tests is not None else []
        if tests is not None:
            with suppress(ValueError):
                resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        _end(attempt)
    os.close(send)
    at = b""
    with os.fdopen(receive, "rb") as noted:
        while piece := noted.read(4):
            at = piece
    _, status = os.waitpid(child, 0)
    return status, tests[int.from_bytes(at, "big")] if tests and at else ""


def _fate(status: int, by: str) -> tuple[Fate, str]:
    if os.WIFSIGNALED(status):
        return ("hung" if os.WTERMSIG(status) == signal.SIGALRM else "killed"), by
    return ("survived", "") if os.WEXITSTATUS(status) == NOTHING_FAILED else ("killed", by or "import")


def _end(attempt: Callable[[], int]) -> None:
    """Run it as the whole of this process, and say nothing: what a test prints of a fault on purpose is no news."""
    code = FAILED
    quiet = os.open(os.devnull, os.O_RDWR)
    try:
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        code = attempt()
    finally:
        os._exit(code)
