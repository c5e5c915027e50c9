"""The tool of mutation testing can tell a fault that is found from one that is not, wherever in a module it stands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.mutation.mutants import mutants

ROOT = Path(__file__).parents[2]

SHOP = '''
"""A shop."""
import time
LIMIT = 10
LARGEST = max(LIMIT, 3)


def doubled(count: int) -> int:
    return count * 2


AT_ONCE = doubled(2)


class Shop:
    def __init__(self) -> None:
        self.sold = 0

    def sell(self, count: int) -> bool:
        if count > LIMIT:
            return False
        while count:
            count -= 1
            self.sold += 1
            time.sleep(0.001)
        return True

    def never(self) -> int:
        return 1
'''
TESTS = """
from shop import AT_ONCE, LARGEST, LIMIT, Shop, doubled

def test_ten_may_be_sold_and_eleven_not():
    shop = Shop()
    assert shop.sell(LIMIT) is True
    assert shop.sell(11) is False
    assert shop.sold == 10

def test_a_constant_computed_at_import_has_its_value():
    assert AT_ONCE == 4
"""
TRY = """
import json, sys
from pathlib import Path
from bench.mutation.run import all_mutants, run
from bench.mutation.targets import Target
target, root = Target(("shop.py",), ("test_shop.py",)), Path.cwd()
asked = json.load(sys.stdin)
chosen = [one for one in all_mutants(root, target) if f"{one.line}: {one.before} -> {one.after}" in asked]
tried = run(root, target, chosen, 2)
print(json.dumps({f"{one.mutant.line}: {one.mutant.before} -> {one.mutant.after}": one.fate for one in tried}))
"""
FATES = {
    "3: 10 -> 11": "killed",  # a constant, there at import
    "4: max(LIMIT, 3) -> min(LIMIT, 3)": "survived",
    "8: 2 -> 3": "killed",  # in a function that is called at import
    "19: count > LIMIT -> count >= LIMIT": "killed",
    "20: return False -> return None": "killed",
    "22: count -= 1 -> pass": "hung",
    "28: return 1 -> return None": "unreached",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP.lstrip())
    (tmp_path / "test_shop.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


@pytest.mark.slow(12)
def test_a_mutant_is_killed_where_a_test_detects_it_and_survives_otherwise(shop: Path):
    environment = {"PYTHONPATH": f"{ROOT}:{shop}", "TMPDIR": str(shop), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", TRY],
        cwd=shop,
        env=environment,
        input=json.dumps(list(FATES)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == FATES


def changes(tmp_path: Path, source: str) -> set[str]:
    (tmp_path / "module.py").write_text(source)
    return {f"{mutant.before} -> {mutant.after}" for mutant in mutants(tmp_path, "module.py")}


def test_code_without_behavior_is_not_mutated(tmp_path: Path):
    source = '''
"""Texts."""
__all__ = ["a"]

class A(Struct, frozen=True):
    __slots__ = ("a",)

    @cached(maxsize=1)
    def a(self, b: Annotated[int, 1]) -> Annotated[int, 1]:
        assert b > 1, f"{b + 1}"
        log.info("a", b=1)
        while True:
            raise ValueError(f"{1}")
'''
    assert changes(tmp_path, source) == {"raise ValueError(f'{1}') -> pass"}


def test_conditions_numbers_and_statements_are_mutated(tmp_path: Path):
    assert changes(tmp_path, "a = b if c <= 7 else 5_000") == {
        "b if c <= 7 else 5000 -> b if True else 5000",
        "b if c <= 7 else 5000 -> b if False else 5000",
        "c <= 7 -> c < 7",
        "c <= 7 -> c > 7",
        "7 -> 8",
        "7 -> 6",
        "5000 -> 10000",
        "5000 -> 2500",
    }
    assert changes(tmp_path, "a[1:] += max(b and not c)") == {
        "a[1:] += max(b and (not c)) -> pass",
        "a[1:] += max(b and (not c)) -> a[1:] -= max(b and (not c))",
        "1: -> :",
        "1 -> 2",
        "1 -> 0",
        "max(b and (not c)) -> min(b and (not c))",
        "b and (not c) -> b or not c",
        "not c -> c",
    }
    assert changes(tmp_path, "def f():\n    a = b\n    del a\n    return [c for c in d if c]") == {
        "del a -> pass",
        "return [c for c in d if c] -> return None",
        "for … if c -> for …",
    }


@pytest.mark.slow(3)
def test_the_tests_of_the_service_can_be_collected_by_the_process_that_has_loaded_what_they_use() -> None:
    program = (
        "import sys, pytest; from bench.mutation import run; run._load(); "
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--collect-only', *sys.argv[1:]]))"
    )
    command = [sys.executable, "-c", program, "tests/domain/test_matching_floods.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
